"""What holds for every plot and every live view, whatever it shows."""

import inspect
import re
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import combinations
from pkgutil import iter_modules
from typing import get_type_hints

import matplotlib.image
import matplotlib.pyplot as plt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from view_inputs import HOSTILE, PLOTS, TYPED, VIEWS, drawn, walk
from work import calls

from workbook.classroom import views
from workbook.classroom.study.notebooks import WIDGET_VIEW
from workbook.classroom.views import accounting, live, plots

every_view = pytest.mark.parametrize("name", VIEWS)


# Plots


def test_every_plot_is_tried():
    public = set()
    for module in iter_modules(views.__path__):
        file = import_module(f"workbook.classroom.views.{module.name}")
        for name, function in inspect.getmembers(file, inspect.isfunction):
            is_own = function.__module__ == file.__name__ and not name.startswith("_")
            if is_own and get_type_hints(function).get("return") in (Axes, Figure):
                public.add(function)
    assert set(PLOTS) == public - {plots.axes, live.token_lines}  # helpers of the others


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.__name__)
def test_a_plot_is_one_small_figure_that_fits_and_says_what_it_shows(plot):
    made = drawn(plot)
    figure = made if isinstance(made, Figure) else made.figure
    assert plt.get_fignums() == [figure.number]
    # A glyph that the font lacks is a warning, and warnings are errors here.
    assert len(plots.png(figure)) < 60_000
    for ax in figure.axes:
        box = ax.get_tightbbox()
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1
        assert box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1
        assert not ax.axison or ax.get_xlabel() or ax.get_ylabel() or ax.get_title() or ax.texts
        assert words_that_meet(ax, plot) == []


def words_that_meet(ax: Axes, plot) -> list[tuple[str, str]]:
    """Pairs of texts that stand on one another."""
    written = [*ax.texts]
    if plot.__module__ == accounting.__name__:  # whose bars have words beside the ticks
        written += [*ax.get_xticklabels(), *ax.get_yticklabels()]
    seen = [text for text in written if text.get_text().strip()]
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in seen]
    return [(a, b) for (a, box), (b, other) in combinations(boxes, 2) if box.overlaps(other)]


# Live views


def stored(view) -> bytes:
    return view._repr_mimebundle_()[0]["image/png"]


def move(name, view) -> str:
    """Move a control of a view, and say which."""
    _, control, value = VIEWS[name]
    view.controls[control].value = value
    return control


def test_every_live_view_is_tried():
    assert set(VIEWS) == set(views.__all__) - {"train_live"}  # a call that trains, with no controls


@every_view
def test_its_stored_form_is_a_picture_and_words_which_follow_the_controls(name):
    view = VIEWS[name][0]()
    same = VIEWS[name][0]()
    data, metadata = view._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "image/png", "text/plain"}
    assert data["image/png"].startswith(b"\x89PNG") and len(data["image/png"]) < 60_000
    assert metadata["image/png"]["alt"] == data["text/plain"] == repr(view)
    assert ", live when the cell is run. " in repr(view) and len(repr(view).split()) > 10
    assert_blank_edge(data["image/png"])
    move(name, view)
    assert stored(view) != data["image/png"] and repr(view) != repr(same)


def assert_blank_edge(png: bytes) -> None:
    """Nothing of a picture reaches over its edge."""
    pixels = matplotlib.image.imread(BytesIO(png))[:, :, :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()


@every_view
def test_its_controls_are_labelled_and_within_reach_of_the_keyboard(name):
    view = VIEWS[name][0]()
    for control in view.controls.values():
        assert control.description
        assert getattr(control, "continuous_update", True)  # follows every key
    kinds = {type(part).__name__ for part in walk(view.box)}
    assert not kinds & {"Output", "HTMLMath", "Dropdown"}
    for opened in re.findall(r"<(?:svg|table)[^>]*>", view.html):
        assert "aria-label=" in opened, "a screen reader has to be told what it is"


@every_view
def test_an_update_replaces_one_value(name):
    view = VIEWS[name][0]()
    changed = []
    for part in walk(view.box):
        part.observe(lambda change: changed.append(change["owner"]), "value")
    control = view.controls[move(name, view)]
    assert {id(one) for one in changed} == {id(control), id(view.box.children[-1])}


@every_view
def test_an_answer_takes_little_work(name):
    view = VIEWS[name][0]()
    assert calls(partial(move, name, view)) < 50_000
    if name in TYPED:  # however long the text is
        text = "It's not <the> 🌍 newest, it's 天气. " * 3_000
        assert calls(partial(setattr, view.controls["text"], "value", text)) < 50_000


LONG = ("w" * 90 + " " + "🌍" * 9) * 30
TEXTS = ["", " \n\r\x00 人🌍é\u0301\u200d", HOSTILE, LONG]


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_typed_is_shown_and_never_obeyed(name, text):
    view = VIEWS[name][0](text)
    assert "<img" not in view.html and "<script" not in view.html
    assert not re.search(r"<[^>]*\son\w+=[^>]*>", re.sub(r'"[^"]*"', "", view.html))
    view.html.encode()  # half a surrogate pair would not go through
    repr(view).encode()
    assert_blank_edge(stored(view))


def test_what_tokens_and_names_hold_is_shown_and_never_obeyed():
    tokens = [HOSTILE, "&", "\n", "", "é", "人", "w" * 30, "</div>"]
    viewer = views.attention_viewer(tokens, {"<b>one</b>": [[1 / 8] * 8] * 8})
    chances = views.next_token_chances(lambda *_: {HOSTILE.encode("utf-8", "replace"): 1.0})
    for view in (viewer, chances):
        assert not re.search("<(img|script|b)>?[ >]", view.html)
        assert stored(view)
