"""The views of notebook 02 show what the tokenizers do."""

import re
from functools import partial
from html import unescape
from itertools import pairwise

from view_inputs import TOY, TRAINED, VIEWS, drawn, seen, texts
from work import calls

from workbook.classroom import views
from workbook.classroom.views import bpe


def tokens(html):
    """The framed tokens of the first list in some HTML, without the ids below them."""
    found = html.split('<div class="tokens">')[1].partition("</div>")[0]
    framed = re.findall(r'<span class="token \w+" title="[^"]*">(.*?)</span>', found, re.S)
    return [unescape(re.sub("<small>.*?</small>", "", one)) for one in framed]


def test_a_tokenizer_that_loses_words_says_so():
    assert texts(drawn(bpe.tokenizers)) == ["byte", "word, 10.0% unknown", "BPE"]


def test_a_shared_file_is_cut_at_the_ends_of_documents():
    ax = drawn(bpe.shared_file)
    parts = [bar for bar in ax.patches if 0.5 < bar.get_y() < 1]
    assert [bar.get_x() + bar.get_width() for bar in parts] == [50, 100]
    assert texts(ax).count("worker 1") == 1 and "worker 3" not in texts(ax)


def test_the_stepper_goes_forward_back_and_anywhere():
    view = views.merge_stepper(TOY, 20, text="lowest", after=3)
    back, forward, slider = view.box.children[1].children
    assert "3 merges made, the last o + w. Next is l + ow, 7 times." in seen(view.html)
    assert tokens(view.html) == ["l", "ow", "est"]
    forward.click()
    assert tokens(view.html) == ["low", "est"]
    assert "the greatest of 3 equally frequent pairs" in seen(view.html)
    slider.value = 1
    back.click()
    assert "s + t 9 merged next e + s 9 tied w + e 8 o + w 7" in seen(view.html)
    slider.value = slider.max
    assert "12 merges made, the last lowe + r. No pair is left." in seen(view.html)
    view.controls["text"].value = "newest news"
    assert tokens(view.html) == ["newest", "␣", "ne", "w", "s"]


def test_a_stepper_on_many_words_answers_with_little_work():
    counts = {f"word{number}": 1 + number % 7 for number in range(3_000)}
    view = views.merge_stepper(counts, 12)
    for merges in (5, 3, 12):
        assert calls(partial(setattr, view.controls["merges"], "value", merges)) < 5_000
    assert "and 2,992 other words" in seen(view.html)


def test_the_playground_cuts_the_text_with_the_tokenizer_that_is_chosen():
    view = VIEWS["tokenizer_playground"][0]("lowest ü")
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
    view = VIEWS["tokenizer_playground"][0]("aaaaaa")
    tones = re.findall(r'class="token (tone\d)"', view.html)
    assert len(tones) == 6 and all(a != b for a, b in pairwise(tones))
