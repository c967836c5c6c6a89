"""Live views follow their controls, show what the package computes, and are stored without them."""

import re
from functools import partial
from html import unescape
from itertools import pairwise

import matplotlib.image
import pytest
from contrast import contrast
from work import calls

from workbook import views
from workbook.study.notebooks import WIDGET_VIEW
from workbook.tokenization import bpe
from workbook.tokenization.simple import ByteTokenizer, WordTokenizer
from workbook.tokenization.tokenizer import Tokenizer
from workbook.views import live

TOY = {"low": 5, "lower": 2, "widest": 3, "newest": 6}
MERGES = bpe.train_naive(TOY, 6)
TOKENS = [bytes([byte]) for byte in range(256)] + [left + right for left, right in MERGES]
TRAINED = Tokenizer(dict(enumerate(TOKENS)), MERGES)
HOSTILE = "<img src=x onerror=alert(1)> & \"'</div><script>\ud800"

VIEWS = {
    "utf8_explorer": lambda text="né": views.utf8_explorer(text),
    "merge_stepper": lambda text="lowest": views.merge_stepper(TOY, 6, text),
    "tokenizer_playground": lambda text="lowest": views.tokenizer_playground(
        {"toy": TRAINED, "byte": ByteTokenizer(), "word": WordTokenizer(["low"])}, text
    ),
}
every_view = pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)


def seen(html):
    """The text of some HTML, its elements apart."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def tokens(html, which=0):
    """The framed tokens of one list in some HTML, without the ids below them."""
    found = html.split('<div class="tokens">')[1 + which].partition("</div>")[0]
    framed = re.findall(r'<span class="token \w+" title="[^"]*">(.*?)</span>', found, re.S)
    return [unescape(re.sub("<small>.*?</small>", "", one)) for one in framed]


def test_every_view_that_takes_a_text_is_tried():
    # The views of later notebooks are tried in test_widgets_*.py.
    here = ("workbook.views.unicode", "workbook.views.bpe")
    assert set(VIEWS) == {one for one in views.__all__ if getattr(views, one).__module__ in here}


def test_the_explorer_shows_code_point_bytes_and_bits():
    view = views.utf8_explorer("é")
    assert "1 code point . Bytes: 2 in UTF-8, 2 in UTF-16, 4 in UTF-32." in seen(view.html)
    row = seen(view.html.partition("<tbody>")[2])
    assert row == (
        "é U+00E9 LATIN SMALL LETTER E WITH ACUTE C3 110 00011 first of 2 A9 10 101001 continues"
    )
    view.controls["text"].value = "a"
    assert (
        seen(view.html.partition("<tbody>")[2])
        == "a U+0061 LATIN SMALL LETTER A 61 0 1100001 single"
    )


def test_the_stepper_goes_forward_back_and_anywhere():
    view = views.merge_stepper(TOY, 20, text="lowest", after=3)
    back, forward, slider = view.box.children[1].children
    assert "3 merges made, the last o + w. Next is l + ow, 7 times." in seen(view.html)
    assert tokens(view.html) == ["l", "ow", "est"]
    forward.click()
    assert tokens(view.html) == ["low", "est"]
    assert "the greatest of 3 equally frequent pairs" in seen(view.html)
    back.click()
    back.click()
    assert slider.value == 2 and "2 merges made" in seen(view.html)
    slider.value = 0
    back.click()
    assert "No merge made yet. Next is s + t, 9 times" in seen(view.html)
    slider.value = slider.max
    forward.click()
    assert "12 merges made, the last lowe + r. No pair is left." in seen(view.html)
    view.controls["text"].value = "newest news"
    assert tokens(view.html) == ["newest", "␣", "ne", "w", "s"]


def test_the_stepper_ranks_the_pairs_and_says_what_is_tied():
    text = seen(views.merge_stepper(TOY, 6).html)
    assert "s + t 9 merged next e + s 9 tied w + e 8 o + w 7" in text


def test_the_playground_cuts_the_text_with_the_tokenizer_that_is_chosen():
    view = VIEWS["tokenizer_playground"]("lowest ü")
    assert "toy : 5 tokens for 9 bytes, 1.80 bytes per token" in seen(view.html)
    assert tokens(view.html) == ["low", "est", "␣", r"\xc3", r"\xbc"]
    ids = [int(number) for number in re.findall(r"<small>(\d+)</small>", view.html)]
    assert ids == TRAINED.encode("lowest ü")
    view.controls["name"].value = "byte"
    assert "byte : 9 tokens for 9 bytes, 1.00 bytes per token" in seen(view.html)
    view.controls["text"].value = "low <unk>"
    view.controls["name"].value = "word"
    assert tokens(view.html)[:2] == ["low", "<unk>"]
    view.controls["text"].value = ""
    assert "0 tokens for 0 bytes." in seen(view.html)


def test_neighbouring_tokens_differ_in_tone_and_each_has_a_frame():
    view = VIEWS["tokenizer_playground"]("aaaaaa")
    tones = re.findall(r'class="token (tone\d)"', view.html)
    assert len(tones) == 6 and all(a != b for a, b in pairwise(tones))


@every_view
def test_what_is_typed_is_shown_and_never_obeyed(make):
    html = make(HOSTILE).html
    assert "<img" not in html and "<script" not in html
    assert not re.search(r"<[^>]*\son\w+=[^>]*>", re.sub(r'"[^"]*"', "", html))
    html.encode()  # half a surrogate pair would not go through


@every_view
@pytest.mark.parametrize("text", ["", " ", "\n\r\x00", "人🌍é\u0301\u200d", HOSTILE, "a" * 3_000])
def test_the_stored_form_is_a_picture_and_words(make, text):
    data, metadata = make(text)._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "image/png", "text/plain"}
    assert data["image/png"].startswith(b"\x89PNG") and len(data["image/png"]) < 60_000
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert len(data["text/plain"].split()) > 5
    data["text/plain"].encode()


@every_view
def test_the_picture_is_the_same_each_time_and_follows_the_controls(make):
    first, second, other = make(), make(), make("other")
    pictures = [view._repr_mimebundle_()[0]["image/png"] for view in (first, second, other)]
    assert pictures[0] == pictures[1] != pictures[2]
    first.controls["text"].value = "other"
    assert first._repr_mimebundle_()[0]["image/png"] == pictures[2]
    assert repr(first) == repr(other)


@every_view
def test_nothing_is_drawn_over_the_edge(make, tmp_path):
    data, _ = make("w" * 90 + " " + "🌍" * 9)._repr_mimebundle_()
    (tmp_path / "view.png").write_bytes(data["image/png"])
    pixels = matplotlib.image.imread(tmp_path / "view.png")[:, :, :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()


@every_view
def test_every_control_is_labelled_and_follows_every_key(make):
    view = make()
    for control in view.controls.values():
        assert control.description
        assert getattr(control, "continuous_update", True)
    kinds = {type(part).__name__ for part in walk(view.box)}
    assert not kinds & {"Output", "HTMLMath", "Dropdown"}


def walk(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


@every_view
def test_an_update_replaces_one_value(make):
    view, changed = make(), []
    for part in walk(view.box):
        part.observe(lambda change: changed.append(change["owner"]), "value")
    view.controls["text"].value = "other"
    assert len(changed) == 2 and view.controls["text"] in changed


@every_view
def test_an_answer_takes_little_work_however_long_the_text_is(make):
    field = make().controls["text"]
    for times in (300, 3_000):
        text = "It's not <the> 🌍 newest, it's 天气. " * times
        assert calls(partial(setattr, field, "value", text)) < 50_000


def test_a_stepper_on_many_words_answers_with_as_little():
    counts = {f"word{number}": 1 + number % 7 for number in range(3_000)}
    view = views.merge_stepper(counts, 12)
    for merges in (5, 3, 12):
        assert calls(partial(setattr, view.controls["merges"], "value", merges)) < 5_000
    assert "and 2,992 other words" in seen(view.html)


def rgb(colour):
    """The parts of "#rrggbb"."""
    return bytes.fromhex(colour.removeprefix("#"))


def test_text_is_easy_to_read_and_frames_to_see():
    for ink, paper in live.TONES.values():
        assert contrast(rgb(ink), rgb(paper)) >= 4.5
    for page in ("#ffffff", "#111111"):  # JupyterLab's light and dark
        assert contrast(rgb(live.EDGE), rgb(page)) >= 3
