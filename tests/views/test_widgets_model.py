"""The live views of notebook 03 show what the package computes, and are stored without them."""

import re
from functools import partial
from html import unescape

import matplotlib.image
import numpy as np
import pytest
import torch
from contrast import contrast
from work import calls

from workbook import views
from workbook.study.notebooks import WIDGET_VIEW
from workbook.transformer import nn
from workbook.views import transformer

LETTERS = list("abcdabcd")
HOSTILE = ["<img src=x onerror=alert(1)>", "&", "\"'</div><script>", "\n", "", "é", "人", "w" * 30]
RANDOM = torch.softmax(torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), -1)
MAPS = {"previous": torch.eye(8).roll(-1, 1).tril() + 0, "evenly": torch.ones(8, 8).tril()}
MAPS["previous"][0, 0] = 1
MAPS["evenly"] /= MAPS["evenly"].sum(-1, keepdim=True)
ROPE = nn.RotaryPositionalEmbedding(100.0, 8, 16)
QUERIES, KEYS = (ROPE(torch.tensor(one).expand(16, 8)) for one in ([1.0, 0.2] * 4, [0.5, 0.0] * 4))

VIEWS = {
    "rope_arrows": lambda: views.rope_arrows(QUERIES, KEYS),
    "attention_viewer": lambda: views.attention_viewer(LETTERS, MAPS),
}
MOVES = {"rope_arrows": ("key_at", 9), "attention_viewer": ("query", 2)}
every_view = pytest.mark.parametrize("name", VIEWS)


def seen(html):
    """The text of some HTML, its elements apart."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def move(name, view):
    control, value = MOVES[name]
    view.controls[control].value = value


def test_every_view_is_tried():
    here = {name for name in views.__all__ if getattr(views, name).__module__ ==
            transformer.__name__}  # fmt: skip
    assert set(VIEWS) == set(MOVES) == here


def test_the_score_is_that_of_the_turned_vectors():
    view = views.rope_arrows(QUERIES, KEYS, query_at=7, key_at=2)
    score = float(ROPE(QUERIES[0].expand(16, 8))[7] @ ROPE(KEYS[0].expand(16, 8))[2])
    assert "Query at 7, key at 2: the query is 5 positions after the key." in seen(view.html)
    assert f"Their score is {score:.3f}." in seen(view.html)
    pairs = [float(number) for number in re.findall(r"pair \d: ([+-]\d\.\d{3})", view.html)]
    assert len(pairs) == 4 and sum(pairs) == pytest.approx(score, abs=0.002)


def test_only_the_distance_counts():
    def score(view):
        return re.search(r"Their score is (-?\d\.\d{3})", view.html)[1]

    view = views.rope_arrows(QUERIES, KEYS, query_at=3, key_at=1)
    before = score(view)
    view.controls["query_at"].value = 13
    assert score(view) != before
    view.controls["key_at"].value = 11
    assert score(view) == before
    view.controls["query_at"].value = 11
    assert "the query is where the key is" in seen(view.html)
    view.controls["query_at"].value = 10
    assert "1 position before the key" in seen(view.html)


def test_more_pairs_than_four_are_counted_and_not_drawn():
    many = np.ones((5, 16))
    view = views.rope_arrows(many, many)
    assert view.html.count("<svg") == 4 and "and 4 slower pairs, not drawn" in seen(view.html)


@pytest.mark.parametrize("angle", [0, 0.1, -0.1, 3.1, np.pi, -3.1])
def test_the_names_of_two_arrows_never_meet(angle):
    query, key = np.array([np.cos(angle), np.sin(angle)]), np.array([1.0, 0.0])
    first, second = transformer._label_places(query, key)
    assert np.hypot(*(first - second)) > 0.25


def test_the_weights_of_a_query_stand_below_the_tokens():
    view = views.attention_viewer(LETTERS, MAPS, query=3)
    notes = re.findall(r"<small>(.*?)</small>", view.html)
    assert notes == ["0%", "0%", "100%", "0%", "later", "later", "later", "later"]
    assert "Position 3, d, looks most at position 2, c: 100% of its weight." in seen(view.html)
    assert "4 later ones are out of sight." in seen(view.html)
    view.controls["head"].value = "evenly"
    notes = re.findall(r"<small>(.*?)</small>", view.html)
    assert notes == ["25%", "25%", "25%", "25%", "later", "later", "later", "later"]
    view.controls["query"].value = 7
    assert "later" not in seen(view.html)


def test_the_buttons_go_from_query_to_query():
    view = views.attention_viewer(LETTERS, MAPS, query=3)
    back, forward, slider = view.box.children[2].children
    forward.click()
    assert slider.value == 4 and "Position 4" in seen(view.html)
    back.click()
    back.click()
    assert slider.value == 2 and "Position 2" in seen(view.html)


def test_what_a_token_holds_is_shown_and_never_obeyed():
    view = views.attention_viewer(HOSTILE, {"<b>one</b>": RANDOM})
    assert "<img" not in view.html and "<script" not in view.html and "<b>" not in view.html
    data, _ = view._repr_mimebundle_()
    data["text/plain"].encode()
    assert data["image/png"]


@every_view
def test_the_stored_form_is_a_picture_and_words(name):
    data, metadata = VIEWS[name]()._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "image/png", "text/plain"}
    assert data["image/png"].startswith(b"\x89PNG") and len(data["image/png"]) < 60_000
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert len(data["text/plain"].split()) > 15


@every_view
def test_the_picture_is_the_same_each_time_and_follows_the_controls(name):
    first, second = VIEWS[name](), VIEWS[name]()
    start = first._repr_mimebundle_()[0]["image/png"]
    assert second._repr_mimebundle_()[0]["image/png"] == start
    words = repr(first)
    move(name, first)
    assert first._repr_mimebundle_()[0]["image/png"] != start and repr(first) != words


@every_view
def test_nothing_is_drawn_over_the_edge(name, tmp_path):
    (tmp_path / "view.png").write_bytes(VIEWS[name]()._repr_mimebundle_()[0]["image/png"])
    pixels = matplotlib.image.imread(tmp_path / "view.png")[:, :, :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()


@every_view
def test_every_control_is_labelled_and_an_update_replaces_one_value(name):
    view, changed = VIEWS[name](), []
    assert all(control.description for control in view.controls.values())
    assert all(getattr(one, "continuous_update", True) for one in view.controls.values())
    for part in [*view.controls.values(), *view.box.children]:
        part.observe(lambda change: changed.append(change["owner"]), "value")
    move(name, view)
    assert {id(one) for one in changed} == {
        id(view.controls[MOVES[name][0]]), id(view.box.children[-1])
    }  # fmt: skip


@every_view
def test_an_answer_takes_little_work(name):
    control = VIEWS[name]().controls[MOVES[name][0]]
    for value in (1, 5, 3):
        assert calls(partial(setattr, control, "value", value)) < 5_000


def test_weights_are_easy_to_read_on_every_shade():
    ink = bytes.fromhex(transformer.INK.removeprefix("#"))
    for shade in transformer.SHADES:
        assert contrast(ink, bytes.fromhex(shade.removeprefix("#"))) >= 4.5
