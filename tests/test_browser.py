"""In a real JupyterLab every live view answers to mouse and keyboard, and is a picture when stored.

The views are those of `view_inputs.py`, in a notebook of their own: what the worked notebooks make
of them is run elsewhere, by nbval, and only their cells with views are opened here, as stored.
Needs Chromium and playwright. Where one is missing it is skipped, and says so; with
WORKBOOK_REQUIRE_BROWSER set, as `.ci/run` does, that is an error. Pictures of the views, in both
themes, go to `build/screenshots/`.
"""

import os
import re
import socket

import pytest
import real_lab
from contrast import contrast
from nbformat.v4 import new_code_cell
from real_lab import ROOT, SCREENSHOTS, Desk, browse, expect, require_browser, serve, write_notebook

from workbook.classroom import views
from workbook.classroom.study import notebooks
from workbook.classroom.study.lab import HOST
from workbook.classroom.study.notebooks import WIDGET_VIEW

PATHS = notebooks.find_worked()

# By live view, what is done and the words that it shows then. A control is a role, a name and, of
# several, a number; none is where the keyboard is. `=words` are typed over what a field holds.
STEPS = {
    "utf8_explorer": [("textbox/Text", "=<b>&", "AMPERSAND"), ("", "Backspace", "3 code points.")],
    "merge_stepper": [
        ("slider", "Home", "No merge made yet"),
        ("button/Forward", "click", "1 merge made"),
        ("", "Shift+Tab Space", "No merge made yet"),  # the button back
        ("", "Tab Tab ArrowRight ArrowRight", "2 merges made"),  # past the button, to the slider
        ("slider", "drag", "6 merges made"),
        ("", "Tab Control+a 4 Enter", "4 merges made"),  # the number, which can be typed
        ("textbox/Your text", "=slowest", "Your text, in 3 tokens"),
    ],
    "tokenizer_playground": [
        ("textbox/Your text", "=The caf\u00e9", "for 9 bytes"),
        ("button/byte", "click", "byte: 9 tokens for 9 bytes, 1.00 bytes per token."),
        ("", "Tab Space", "word: "),
    ],
    "rope_arrows": [
        ("slider//0", "Home", "Query at 0"),
        ("slider//1", "Home", "Query at 0, key at 0: the query is at the key's position."),
        ("slider//0", "ArrowRight ArrowRight ArrowRight", "the query is 3 positions after the key"),
    ],
    "attention_viewer": [
        ("slider", "Home", "Position 0, a, attends most to position 0, a: 100% of its weight."),
        ("button/Forward", "click", "Position 1, b, attends most to"),
        ("button/evenly", "click", "evenly. Position 1"),
        ("", "Shift+Tab Enter", "previous. Position 1"),
    ],
    "float_explorer": [
        ("textbox/Number", "=70000", "overflow: the largest number is 65504"),
        ("button/Halve", "click", "Python holds 35000.0"),
        ("", "Tab Space", "Python holds 70000.0"),
        ("textbox/Number", "=<b>&", "is not a number. Try 0.1"),
    ],
    "switchboard": [
        ("button/parameters", "click", "No switch is on"),
        ("checkbox/the final norm is left out", "Space", "2,127,056,000"),
        ("button/time", "Enter", "5,115.2 days"),
        ("button/2026", "click", "202.1 days (4,850 hours)"),
    ],
    "learning_rate_slider": [
        ("button/1,000", "click", "Learning rate 1,000. It grows for 99 steps"),
        ("slider", "ArrowLeft", "Learning rate 999."),
        ("", "Shift+Tab Shift+Tab Space", "Learning rate 100. The first step flips every sign"),
    ],
    "next_token_chances": [
        ("slider//0", "Home", "Temperature 0, top-p 1: 1 token of"),
        ("slider//1", "ArrowLeft", "Temperature 0, top-p 0.9"),
        ("textbox/Your text", "=Once upon a", "␣fox"),
    ],
}


@pytest.fixture(scope="module")
def trap():
    """Where the web should be: it notes who calls."""
    with socket.create_server((HOST, 0)) as caught:
        caught.setblocking(False)
        yield caught


@pytest.fixture(scope="module")
def server(tmp_path_factory, trap):
    """JupyterLab on a notebook that shows every view."""
    require_browser()
    root = tmp_path_factory.mktemp("browser")
    sources = ["import view_inputs", *(f'view_inputs.VIEWS["{name}"][0]()' for name in STEPS)]
    write_notebook(root / "views.ipynb", [new_code_cell(source) for source in sources])
    web = f"http://{HOST}:{trap.getsockname()[1]}"
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = os.environ | real_lab.settings(root) | {"HTTP_PROXY": web, "HTTPS_PROXY": web}
    with serve(root, environment | {"PYTHONPATH": path}) as running:
        yield running


@pytest.fixture(scope="module")
def page(server, trap):
    """A page; neither it nor the server may ask another machine for something."""
    with browse() as (context, left), context.new_page() as page:
        yield page
    assert left == []
    with pytest.raises(BlockingIOError):
        trap.accept()


def do(page, view, control: str, keys: str) -> None:
    """Use one control of a live view, or press keys where the keyboard is."""
    if control:
        role, name, number = [*control.split("/"), "", ""][:3]
        element = view.get_by_role(role, name=name or None).nth(int(number or 0))
        element.focus()
    if keys.startswith("="):
        page.keyboard.press("Control+a")
        return page.keyboard.type(keys[1:])
    for key in keys.split():
        if key == "click":
            element.click()
        elif key == "drag":  # from the middle to beyond the right end
            box = element.bounding_box()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.mouse.down()
            page.mouse.move(box["x"] + 1000, box["y"], steps=5)
            page.mouse.up()
        else:
            page.keyboard.press(key)
    return None


def test_every_live_view_answers_to_mouse_and_keyboard(server, page):
    desk = Desk(page, server, "views.ipynb")
    for place in range(1 + len(STEPS)):
        desk.run(desk.select(place))
    outputs = [output for cell in desk.save().cells for output in cell.outputs]
    assert [output.traceback for output in outputs if output.output_type == "error"] == []
    assert not [o for o in outputs if WIDGET_VIEW in o.get("data", {})], "it needs its kernel"
    boxes = page.locator(".workbook-live")
    expect(boxes).to_have_count(len(STEPS))
    for place, steps in enumerate(STEPS.values()):
        view = boxes.nth(place)
        view.scroll_into_view_if_needed()
        for control, keys, words in steps:
            do(page, view, control, keys)
            view.locator(".shown", has_text=words).wait_for()
        assert view.locator(".shown td b").count() == 0, "typed text became a part of the page"
        assert all(text.is_visible() for text in view.locator("svg text").all())
        for picture in view.locator("svg[role=img]").all():
            assert picture.get_attribute("aria-label")
    for theme in ("dark", "light"):
        real_lab.set_theme(page, theme)
        for place, name in enumerate(STEPS):
            colours = boxes.nth(place).evaluate(real_lab.COLOURS)
            faint = [text for text, ink, paper in colours if contrast(ink, paper) < 4.5]
            assert faint == [], (name, theme)
            boxes.nth(place).screenshot(path=SCREENSHOTS / f"{name}_{theme}.png")


LIVE = re.compile(rf"^(?:\w+ = )?(?:views\.)?({'|'.join(STEPS)})\(", re.M)


def cells_with_views():
    """The cells of the worked notebooks that show a live view."""
    worked = [cell for path in PATHS for cell in notebooks.read_notebook(path).cells]
    return [cell for cell in worked if cell.cell_type == "code" and LIVE.search(cell.source)]


def test_every_live_view_of_the_notebooks_is_tried():
    names = {LIVE.search(cell.source)[1] for cell in cells_with_views()}
    # `train_live` has no controls: it shows a run while it trains.
    assert names == set(STEPS) == set(views.__all__) - {"train_live"}


def test_the_notebooks_views_are_pictures_until_they_are_run(server, page):
    shown = cells_with_views()
    write_notebook(server.root / "stored.ipynb", shown)
    page.goto(server.page("stored.ipynb"))
    expect(page.locator(".jp-CodeCell img")).to_have_count(len(shown))
