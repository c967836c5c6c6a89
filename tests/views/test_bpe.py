"""The pictures of notebook 02 show what they were given, in letters that fonts can draw."""

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from workbook.tokenization.bpe import train_naive
from workbook.tokenization.watch import merges_behind
from workbook.views import bpe, plots

FOUR = pd.DataFrame(
    {"vocabulary": [256, 2048, 2048], "bytes/token": [1, 4.2, 3.9], "unknown": [0, 0.1, 0]},
    index=["byte", "word", "BPE"],
)
TREE = merges_behind(b"west", train_naive({"low": 5, "lower": 2, "widest": 3, "newest": 6}, 6))
PROFILE = pd.DataFrame({"function": ["lock.acquire", "bpe.merge_pair"], "share": [0.7, 0.3]})
GROWING = pd.DataFrame(
    {"a": [1, 2, 3], "b": [1, 1.5, None]}, index=pd.Index([256, 512, 1024], name="ids")
)
RATES = {"W3 reported": 3000, "here, one core": 1e6, "64 cores here": 6.4e7}
PICTURES = {
    "tokenizers": lambda ax=None: bpe.tokenizers(FOUR, ax),
    "merge_tree": lambda ax=None: bpe.merge_tree(TREE, ax),
    "ladder": lambda ax=None: bpe.ladder({"naive": 900.0, "compiled": 0.02}, ax),
    "days_for": lambda ax=None: bpe.days_for(825 * 10**9, RATES, ax),
    "curves": lambda ax=None: plots.curves(GROWING, "bytes/token", ax, log=True, marks={"W": 2.5}),
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_draws_on_the_axes_it_is_given(name):
    ax = plt.figure().add_subplot()
    assert PICTURES[name](ax) is ax
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", PICTURES)
def test_every_plot_is_a_picture_that_fonts_can_draw(name):
    # A glyph that the font lacks is a warning, and warnings are errors here.
    assert len(plots.png(PICTURES[name]().figure)) < 60_000


def test_a_tokenizer_that_loses_words_says_so():
    assert texts(bpe.tokenizers(FOUR)) == ["byte", "word, 10.0% unknown", "BPE"]


def test_a_family_tree_names_every_token_and_merge():
    named = texts(bpe.merge_tree(TREE))
    assert {"west", "est", "st", "w", "e", "s", "t"} < set(named)
    assert [text for text in named if text.startswith("merge")] == ["merge 5", "merge 2", "merge 1"]


@pytest.mark.parametrize(
    ("token", "label"), [(b" a\n", "␣a↵"), (b"\xc3", "c3"), ("人".encode(), "e4 ba ba")]
)
def test_labels_are_text_where_it_can_be_drawn(token, label):
    assert bpe.label(token) == label


def test_waiting_stands_out_in_a_profile():
    figure = bpe.profiles({"one": PROFILE, "pool": PROFILE})
    for ax in figure.axes:
        colours = [plt.matplotlib.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
        assert [colour.upper() for colour in colours] == [plots.ORANGE, plots.BLUE]
    plots.png(figure)


def test_days_become_hours_where_they_are_few():
    assert texts(bpe.days_for(825 * 10**9, RATES)) == [
        "3,182.9 days", "9.5 days", "3.6 hours",
    ]  # fmt: skip


def test_curves_have_names_at_their_ends_or_a_legend():
    assert texts(plots.curves(GROWING, "bytes/token")) == ["a", "b"]
    together = GROWING.fillna(3)
    ax = plots.curves(together, "bytes/token")
    assert texts(ax) == []
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_a_ladder_names_each_step_with_its_time():
    assert {"naive: 900 s", "compiled: 0.02 s"} <= set(texts(PICTURES["ladder"]()))
