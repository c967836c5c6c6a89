"""The live view and the pictures of notebook 07 show the probabilities that they are given."""

import re
from html import unescape

import matplotlib.image
import matplotlib.pyplot as plt
import pytest

from workbook import views
from workbook.study.notebooks import WIDGET_VIEW
from workbook.views import generation, plots

SHARES = {b" fox": 0.6, b" <b>": 0.25, b"\n": 0.1, b"\xc3": 0.045, b"$x$": 0.005}


def next_tokens(text, temperature, top_p):
    """As a model would: top-p keeps the first few, temperature 0 the first."""
    if temperature == 0:
        return {b" fox": 1.0}
    kept, together = {}, 0.0
    for token, share in SHARES.items():
        if together < top_p:
            kept[token] = share
            together += share
    return {token: share / together for token, share in kept.items()}


def seen(html):
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


@pytest.fixture
def view():
    return views.next_token_chances(next_tokens)


def test_it_shows_what_the_function_gives(view):
    assert "Temperature 1, top-p 1: 5 tokens of 5 may come next." in seen(view.html)
    assert "The likeliest is ␣fox, with 60%." in seen(view.html)
    assert seen(view.html).count("<1% <1%") == 1
    view.controls["top_p"].value = 0.8
    assert "2 tokens of 5 may come next. The likeliest is ␣fox, with 71%." in seen(view.html)
    assert seen(view.html).count("cut") == 3
    view.controls["temperature"].value = 0
    assert "1 token of 5 may come next. The likeliest is ␣fox, with 100%." in seen(view.html)


def test_a_token_can_break_nothing(view):
    assert "<b>" not in view.html
    view.controls["text"].value = "<script>\ud83e" + "x" * 9_999
    assert "<script>" not in view.html


def test_it_is_stored_as_a_picture_and_words(view):
    data, metadata = view._repr_mimebundle_()
    assert {WIDGET_VIEW, "image/png", "text/plain"} <= set(data)
    assert metadata["image/png"]["alt"] == data["text/plain"] == repr(view)
    assert repr(view).startswith("Next token, live when the cell is run. Temperature 1, top-p 1:")
    assert "␣fox 60%, 60%" in repr(view)


def drawn(ax):
    """The picture's pixels differ, so something is drawn, and no warning was raised."""
    from io import BytesIO

    pixels = matplotlib.image.imread(BytesIO(plots.png(ax.figure)))
    plt.close(ax.figure)
    return pixels.std() > 0


def test_every_picture_can_be_drawn():
    texts = [b"Once", b" upon", b"\n", b"\xf0\x9f"]
    assert drawn(generation.judged_text(texts, [0.9, 0.2, 0.03, 0.001]))
    assert drawn(generation.next_bars(SHARES, next_tokens("", 1, 0.5)))
    assert drawn(generation.step_times({"kept": [1.0] * 30, "anew": [2.0] * 30}, 20))
    assert drawn(generation.reach({"as it is": [0.25] * 4}, 0.9))


def test_where_top_p_cuts_is_named():
    ax = generation.reach({"sure": [0.05, 0.95], "even": [0.1] * 10}, 0.85)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["sure: 1 id", "even: 9 ids"]
    plt.close(ax.figure)


@pytest.mark.parametrize(
    ("share", "name", "words"),
    [(1, "plain", "100%"), (0.3, "tone0", "30%"), (0.01, "tone1", "1%"), (0, "strong", "<1%")],
)
def test_a_probability_has_a_tone_and_a_number(share, name, words):
    assert generation.tone(share) == name
    assert generation.percent(share) == words
