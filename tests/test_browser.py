"""Every notebook opens in a real JupyterLab, and every live view answers to mouse and keyboard.

All cells are run elsewhere, by nbval; here only those that a live view needs. Needs Chromium and
playwright. Where one is missing it is skipped, and says so; with WORKBOOK_REQUIRE_BROWSER set, as
`.ci/run` does, that is an error. Pictures of the views, in both themes, go to `build/screenshots/`.
"""

import re
import symtable

import pytest
from contrast import contrast
from real_lab import (
    COLOURS,
    PATIENCE,
    ROOT,
    browse,
    menu,
    require_browser,
    run_cells,
    save,
    serve,
    wait_for,
)

from workbook.classroom import views
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import WIDGET_VIEW, role
from workbook.classroom.views.accounting import QUESTIONS

SCREENSHOTS = ROOT / "build" / "screenshots"
PATHS = {path.stem: path for path in notebooks.find_worked()}


@pytest.fixture(scope="module", autouse=True)
def _needs_a_browser():
    require_browser()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """JupyterLab on a copy of the notebooks, with their outputs, but as if no cell had run."""
    root = tmp_path_factory.mktemp("browser")
    (root / "copies").mkdir()
    for path in PATHS.values():
        notebook = notebooks.read_notebook(path)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = None
        notebooks.write_notebook(root / "copies" / path.name, notebook)
    with serve(root) as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    """One browser for all notebooks: it keeps what it has loaded of JupyterLab."""
    with browse() as running:
        yield running


def shown(view) -> str:
    """The text below the controls of a live view, as one line."""
    return " ".join(view.locator(".shown").inner_text().split())


def wait_for_text(view, text: str) -> None:
    view.locator(".shown", has_text=text).wait_for()


def use_utf8_explorer(page, view):
    field = view.get_by_role("textbox", name="Text")
    field.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("ß€")
    wait_for_text(view, "EURO SIGN")
    assert "2 code points. Bytes: 5 in UTF-8, 4 in UTF-16, 8 in UTF-32." in shown(view)
    assert "E2 11100010 first of 3 82 10000010 continues AC 10101100 continues" in shown(view)
    page.keyboard.press("Backspace")
    wait_for_text(view, "1 code point.")
    assert field.evaluate("field => field === document.activeElement"), "typing lost the focus"
    page.keyboard.press("Control+a")
    page.keyboard.type("<b>&")
    wait_for_text(view, "AMPERSAND")
    assert view.locator(".shown td b").count() == 0, "typed text became a part of the page"


def use_merge_stepper(page, view):
    slider = view.get_by_role("slider")

    def after(merges: int) -> None:
        wait_for_text(view, f"{merges} merge{'s' * (merges != 1)} made")

    slider.focus()
    page.keyboard.press("Home")
    wait_for_text(view, "No merge made yet")
    view.get_by_role("button", name="Forward").click()
    after(1)
    page.keyboard.press("Enter")
    after(2)
    page.keyboard.press("Shift+Tab")  # to the button back
    page.keyboard.press("Space")
    after(1)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")  # past the button forward, to the slider
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    after(3)
    tokens = [row.inner_text().split() for row in view.locator("table .tokens").all()]
    assert tokens == [
        ["l", "ow"],
        ["l", "ow", "e", "r"],
        ["w", "i", "d", "est"],
        ["n", "e", "w", "est"],
    ]
    page.keyboard.press("ArrowLeft")
    after(2)
    place = slider.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    page.mouse.move(place["x"] + 1000, place["y"], steps=5)
    page.mouse.up()
    wait_for_text(view, "No pair is left.")
    page.keyboard.press("Tab")  # to the number, which can be typed
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    after(4)
    view.get_by_role("textbox", name="Your text").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("slowest")  # at once: `slo` has three tokens as well
    wait_for_text(view, "Your text, in 3 tokens")
    assert view.locator(".tokens").first.inner_text().split() == ["s", "low", "est"]


def use_tokenizer_playground(page, view):
    buttons = view.locator("button")
    names = buttons.all_inner_texts()
    field = view.get_by_role("textbox", name="Your text")
    field.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("The caf\u00e9")
    view.get_by_role("button", name="byte", exact=True).click()
    wait_for_text(view, "byte: 9 tokens for 9 bytes, 1.00 bytes per token.")
    assert view.locator(".token small").all_inner_texts()[-2:] == ["195", "169"]
    buttons.first.focus()
    for turn, name in enumerate(names):  # every tokenizer, with the keyboard alone
        page.keyboard.press("Enter" if turn % 2 else "Space")
        wait_for_text(view, f"{name}: ")
        assert re.search(r": \d+ tokens? for 9 bytes, \d\.\d\d bytes per token", shown(view))
        page.keyboard.press("Tab")
    page.keyboard.press("End")
    page.keyboard.type(".")
    wait_for_text(view, "for 10 bytes")


def use_rope_arrows(page, view):
    query, key = view.get_by_role("slider").all()

    def score() -> str:
        return re.search(r"Their score is (-?[\d.]+)\d\.", shown(view))[1]

    query.focus()
    page.keyboard.press("Home")
    key.focus()
    page.keyboard.press("Home")
    wait_for_text(view, "Query at 0, key at 0: the query is at the key's position.")
    query.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_for_text(view, "Query at 3, key at 0: the query is 3 positions after the key.")
    three_apart = score()
    page.keyboard.press("Tab")  # past the number that can be typed, to the other slider
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    wait_for_text(view, "Query at 3, key at 1:")
    assert score() != three_apart
    place = query.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    page.mouse.move(place["x"] + 1000, place["y"], steps=5)
    page.mouse.up()
    wait_for_text(view, "Query at 31, key at 1:")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    wait_for_text(view, "Query at 4, key at 1: the query is 3 positions after the key.")
    assert score() == three_apart, "the score depends on the distance alone"
    pictures = view.locator("svg[role=img]")
    assert pictures.count() == 4
    assert pictures.first.get_attribute("aria-label").startswith("pair 0: the query points to")
    drawn = view.locator("svg text").all()
    assert len(drawn) == 8 and all(one.is_visible() for one in drawn)


def use_attention_viewer(page, view):
    heads, slider = view.locator(".widget-toggle-button"), view.get_by_role("slider")
    assert heads.count() == 4
    slider.focus()
    page.keyboard.press("Home")
    wait_for_text(
        view,
        "Position 0, b, attends most to position 0, b: 100% of its weight. The mask hides 23 later",
    )
    view.get_by_role("button", name="Forward").click()
    wait_for_text(view, "Position 1, l, attends most to")
    notes = view.locator(".token small").all_inner_texts()
    assert notes[2:] == ["later"] * 22 and sum(int(note[:-1]) for note in notes[:2]) == 100
    heads.nth(2).click()
    wait_for_text(view, "layer 1, head 0. Position 1")
    page.keyboard.press("Tab")  # to the next head
    page.keyboard.press("Enter")
    wait_for_text(view, "layer 1, head 1. Position 1")
    slider.focus()
    page.keyboard.press("End")
    wait_for_text(view, "Position 23, c, attends most to")
    assert "later" not in view.locator(".token small").all_inner_texts()


def use_float_explorer(page, view):
    field = view.get_by_role("textbox", name="Number")

    def type_in(text: str) -> None:
        field.click()
        page.keyboard.press("Control+a")
        page.keyboard.type(text)

    type_in("70000")
    wait_for_text(view, "overflow: the largest number is 65504")
    view.get_by_role("button", name="Halve").click()
    wait_for_text(view, "Python holds 35000.0")
    page.keyboard.press("Enter")
    wait_for_text(view, "Python holds 17500.0")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    wait_for_text(view, "Python holds 35000.0")
    type_in("1e-8")
    wait_for_text(view, "underflow: the smallest positive number is 5.96e-08")
    type_in("<b>&")
    wait_for_text(view, "is not a number. Try 0.1")
    type_in("0.1")
    wait_for_text(view, "Python holds 0.1")


def use_switchboard(page, view):
    def press(name: str) -> None:
        view.get_by_role("button", name=name, exact=True).click()

    wait_for_text(view, "Flipped: ")  # it opens with one on
    view.get_by_role("checkbox", checked=True).uncheck()
    wait_for_text(view, "No switch is on")
    press("parameters")
    box = view.get_by_role("checkbox", name="the final norm is left out")
    box.check()
    wait_for_text(view, "2,127,056,000")
    box.focus()
    page.keyboard.press("Space")
    wait_for_text(view, "No switch is on")
    switches = view.get_by_role("checkbox")  # those in sight
    for question in list(QUESTIONS)[1:]:
        before = shown(view)
        press(question)
        wait_for(lambda before=before: shown(view) != before, PATIENCE, f"{question} is not shown")
        assert switches.count() >= 3, question
        switches.last.check()
        wait_for_text(view, "Flipped: ")
        switches.last.uncheck()
        wait_for_text(view, "No switch is on")
    press("2026")
    wait_for_text(view, "202.1 days (4,850 hours)")
    view.get_by_role("button", name="2025", exact=True).focus()
    page.keyboard.press("Enter")
    wait_for_text(view, "5,115.2 days")
    press("parameters")


def use_learning_rate_slider(page, view):
    slider = view.get_by_role("slider")
    view.get_by_role("button", name="1,000", exact=True).click()
    wait_for_text(view, "Learning rate 1,000. It grows for 99 steps")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    wait_for_text(view, "Learning rate 999.")
    page.keyboard.press("Home")
    wait_for_text(view, "Learning rate 1. It falls from the first step on")
    page.keyboard.press("Shift+Tab")  # to the last button
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    wait_for_text(view, "Learning rate 100. The first step flips every sign")
    first = view.locator("tbody tr").first.locator("td").all_inner_texts()
    assert first[:4] == ["0", "-1.000", "1.000", "1"]
    place = slider.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.down()
    page.mouse.move(place["x"] + 1000, place["y"], steps=5)
    page.mouse.up()
    wait_for_text(view, "Learning rate 1,200.")
    page.keyboard.press("Tab")  # to the number, which can be typed
    page.keyboard.press("Control+a")
    page.keyboard.type("50")
    page.keyboard.press("Enter")
    wait_for_text(view, "Learning rate 50.")
    wait_for_text(view, "After 1 step it is exactly 0.")


def use_next_token_chances(page, view):
    sliders = view.get_by_role("slider")
    assert sliders.count() == 2
    sliders.nth(0).focus()
    page.keyboard.press("Home")
    wait_for_text(view, "Temperature 0, top-p 0.9: 1 token of")
    wait_for_text(view, "with 100%.")
    page.keyboard.press("End")
    wait_for_text(view, "Temperature 2, top-p 0.9:")
    sliders.nth(1).focus()
    page.keyboard.press("End")
    wait_for_text(view, "Temperature 2, top-p 1:")
    field = view.get_by_role("textbox", name="Your text")
    field.click()
    before = shown(view)
    page.keyboard.press("Control+a")
    page.keyboard.type("Once upon a")
    wait_for(lambda: shown(view) != before, PATIENCE, "the view does not follow the text")


USES = {
    "next_token_chances": use_next_token_chances,
    "learning_rate_slider": use_learning_rate_slider,
    "float_explorer": use_float_explorer,
    "switchboard": use_switchboard,
    "attention_viewer": use_attention_viewer,
    "rope_arrows": use_rope_arrows,
    "utf8_explorer": use_utf8_explorer,
    "merge_stepper": use_merge_stepper,
    "tokenizer_playground": use_tokenizer_playground,
}


LIVE = re.compile(rf"^(?:\w+ = )?(?:views\.)?({'|'.join(USES)})\(", re.M)


def names(source: str) -> tuple[set[str], set[str]]:
    """The names that a cell takes from the cells before it, and those that it makes."""

    def inside(table: symtable.SymbolTable) -> set[str]:
        of_cells = [symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()]
        return set(of_cells).union(*map(inside, table.get_children()))

    table = symtable.symtable(source, "a cell", "exec")
    used = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
    made = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    return used.union(*map(inside, table.get_children())), made


def needed_by_views(cells: list) -> list[int]:
    """The places of the import cell, of the live views, and of all that these are made from."""
    places, needed = [], set()
    for place, cell in reversed(list(enumerate(cells))):
        if cell.cell_type == "code":
            used, made = names(cell.source)
            if LIVE.search(cell.source) or made & needed or role(cell) == "setup":
                places.insert(0, place)
                needed = needed - made | used
    return places


def assert_readable(view) -> None:
    """Every text in a view stands out from what is behind it."""
    faint = [text for text, ink, paper in view.evaluate(COLOURS) if contrast(ink, paper) < 4.5]
    assert faint == []


def look(view, name: str, theme: str) -> None:
    """Hold a view against what is asked of its colours, and store what it looks like."""
    assert_readable(view)
    view.screenshot(path=SCREENSHOTS / f"{name}_{theme}.png")


@pytest.mark.slow
@pytest.mark.parametrize("name", PATHS)
def test_a_notebook_opens_and_its_views_live(name, server, browser):
    file = f"copies/{name}.ipynb"
    cells = notebooks.read_notebook(PATHS[name]).cells
    places = needed_by_views(cells)
    context, left = browser
    with context.new_page() as page:
        page.goto(server.page(file))
        server.wait_until_ready(file, PATIENCE)
        shown_here = LIVE.findall("\n".join(cell.source for cell in cells))
        for view in shown_here:  # as it is stored, before anything runs
            cell = page.locator(".jp-CodeCell", has_text=f"{view}(")
            assert cell.locator("img").count() == 1, "a live view is stored as a picture"

        run_cells(page, server, file, places)
        saved = save(page, server, file).cells
        assert [saved[place].execution_count for place in places] == list(range(1, len(places) + 1))
        outputs = [output for cell in saved for output in cell.get("outputs", [])]
        assert [o.traceback for o in outputs if o.output_type == "error"] == []
        assert [o for o in outputs if WIDGET_VIEW in o.get("data", {})] == [], "needs its kernel"

        boxes = page.locator(".workbook-live")
        assert boxes.count() == len(shown_here)
        for place, view in enumerate(shown_here):
            boxes.nth(place).scroll_into_view_if_needed()
            USES[view](page, boxes.nth(place))
            look(boxes.nth(place), view, "light")
        if shown_here:
            menu(page, "Settings", "Theme", "JupyterLab Dark")
            page.locator("body[data-jp-theme-light=false]").wait_for(state="attached")
            for place, view in enumerate(shown_here):
                look(boxes.nth(place), view, "dark")
            menu(page, "Settings", "Theme", "JupyterLab Light")
            page.locator("body[data-jp-theme-light=true]").wait_for(state="attached")
    assert left == [], "a page asked another machine for something"
    assert not server.called_out(), "the server or a kernel asked another machine for something"


def test_every_view_has_somebody_who_uses_it():
    # `train_live` has no controls: it shows a run while it trains.
    assert set(USES) == set(views.__all__) - {"train_live"}
    used = {name for path in PATHS.values() for cell in notebooks.read_notebook(path).cells
            for name in LIVE.findall(cell.source)}  # fmt: skip
    assert used == set(USES)
