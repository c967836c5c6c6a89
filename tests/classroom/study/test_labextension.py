"""The learner's cells in a real JupyterLab: their looks, the way to the next one, what is saved.

Needs Chromium, as `test_browser.py` does. Pictures go to `build/screenshots/`.
"""

import os
import re
from copy import deepcopy
from random import Random

import psutil
import pytest
from contrast import contrast
from nbformat.v4 import new_code_cell, new_markdown_cell
from real_lab import (
    SCREENSHOTS,
    Desk,
    browse,
    expect,
    menu,
    require_browser,
    serve,
    set_theme,
    write_notebook,
)
from real_lab import settings as lab_settings

from workbook.classroom.study import copy, notebooks
from workbook.classroom.study.answers import MIME
from workbook.classroom.study.progress import MARK, Progress

NAME = "01_unicode.ipynb"
STUDY = f"study/{NAME}"
WORKED = f"notebooks/{NAME}"


def cell(role: str, part: str, source: str):
    """A cell of unicode1, as in a study folder."""
    metadata = {"workbook": {"problem": "unicode1", "part": part, "role": role}}
    if role in ("try", "answer"):
        metadata["tags"] = ["your-turn"]
    return new_code_cell(source, metadata=metadata)


def prose(n: int) -> list:
    """So much that what stands above and below is never in sight together."""
    return [new_markdown_cell(f"Paragraph {n}.{i}\n\n" + "Words. " * 200) for i in range(6)]


SETUP = {"workbook": {"role": "setup"}}
CELLS = [
    new_code_cell('import colorsys\n"check" in globals()', metadata=SETUP),
    new_code_cell('check("softmx", colorsys)'),
    *prose(1),
    cell("try", "a", 'my_character = "U+0000"'),
    cell("check", "a", 'check("unicode1", my_character, part="a")'),
    cell("answer", "a", 'answer("unicode1", "a", "U+0001")'),
    *prose(2),
    cell("try", "b", "my_difference = ..."),
    cell("check", "b", 'check("unicode1", my_difference, part="b")'),
    cell("evidence", "b", 'print("explained", chr(0))'),
    new_code_cell("", metadata={"workbook": {"problem": "unicode2", "role": "try"}}),
    new_markdown_cell("### Seen", metadata={"workbook": {"problem": "unicode1", "role": "prose"}}),
    cell("evidence", "b", 'print("and shown", repr(chr(0)))'),
    cell("answer", "b", 'answer("unicode1", "b", """\nThe repr is an escape.\n""")'),
    *prose(3),
    cell("try", "c", "my_observation = (chr(0), 1)"),
    cell("check", "c", 'check("unicode1", my_observation, part="c")'),
]
# How each of the learner's cells begins, from the first to the last.
WAY = [cell.source.split("\n")[0] for cell in CELLS if "tags" in cell.metadata]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """JupyterLab on a study folder and a folder of worked notebooks, which have no tags."""
    require_browser()
    root = tmp_path_factory.mktemp("labextension")
    (root / "study" / MARK).mkdir(parents=True)
    (root / "notebooks").mkdir()
    with serve(root, os.environ | lab_settings(root, windowing="full")) as running:
        yield running


def write(server) -> None:
    """Write the two notebooks."""
    write_notebook(server.root / STUDY, CELLS)
    worked = deepcopy(CELLS)
    for copied in worked:
        copied.metadata.pop("tags", None)
    write_notebook(server.root / WORKED, worked)


@pytest.fixture(scope="module")
def browser(server):
    """One browser, and the list of what it asked other machines for."""
    with browse() as started:
        yield started


@pytest.fixture
def page(browser, server):
    """A page that has to stay without errors and warnings, and both notebooks as at first."""
    write(server)
    context, left = browser
    with context.new_page() as page:
        said = []
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        yield page
        # JupyterLab's own: of the kernel that it stops, and of a busy machine.
        harmless = re.compile(
            "warning: (Connection lost|Plugin .* to activate)|error: WebSocket connection to"
        )
        unwanted = [line for line in said if line.startswith(("error", "warning"))]
        assert [line for line in unwanted if not harmless.match(line)] == []
        assert left == [], "the page asked another machine for something"


def open_study(page, server) -> Desk:
    """Open the notebook of the study folder, and wait until its exercises are marked."""
    desk = Desk(page, server, STUDY)
    expect(page.locator(".workbook-study")).to_be_visible()
    return desk


def run(page, source: str):
    """Run the cell that begins with this source, and return what it shows."""
    cell = page.locator(".jp-Notebook .jp-CodeCell", has_text=source)
    cell.locator(".jp-InputPrompt").click()
    page.keyboard.press("Control+Enter")
    return cell.locator(".jp-OutputArea-output")


def expect_active(page, source: str) -> None:
    active = page.locator(".jp-Notebook .jp-Cell.jp-mod-active")
    expect(active).to_contain_text(source)
    expect(active).to_be_in_viewport()


def f8(page, source: str) -> None:
    """Press the key that leads to the next open exercise, and see that it is this one."""
    page.keyboard.press("F8")
    expect_active(page, source)


@pytest.mark.stress
@pytest.mark.skipif("STRESS" not in os.environ, reason="browsers are killed under `make stress`")
def test_a_killed_browser_loses_nothing_that_is_older_than_15_seconds(server):
    """The seconds are those of the page's clock, which stands still while we wait for the file.

    It comes first: there is no second browser while the one of the other tests is open.
    """
    write(server)
    times = int(os.environ["STRESS"])
    stored = []
    random = Random(times)
    for number in range(times // 3):
        with browse() as (context, _):
            page = context.new_page()
            page.clock.install()
            desk = open_study(page, server)
            assert [text for text in stored if text not in desk.path.read_text("utf-8")] == []
            for source in WAY[: random.randint(1, 2)]:  # a try cell, or an answer
                f8(page, source)
            stored.append(f"# typed {number:03}")
            page.keyboard.press("Enter")
            page.keyboard.press("Control+End")
            page.keyboard.insert_text(f"\n{stored[-1]}")
            expect_active(page, stored[-1])
            page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))
            if random.random() < 0.5:
                page.keyboard.press("Control+Enter")
            page.clock.run_for(15_000)
            desk.wait_until_stored(stored[-1])
            page.keyboard.insert_text("\n# typed last")
            started = psutil.Process().children(recursive=True)
            next(process for process in started if "chrom" in process.name()).kill()


def test_a_worked_notebook_is_as_jupyterlab_has_it(page, server):
    Desk(page, server, WORKED)
    expect(run(page, '"check" in')).to_contain_text("False")
    f8(page, '"check" in')  # the key leads nowhere
    marks = ".workbook-study, .workbook-open, .workbook-done, .workbook-folded"
    assert page.locator(marks).count() == 0
    expect(page.get_by_role("button", name="Next open exercise")).to_be_hidden()


def test_check_is_there_after_a_restart_and_the_way_goes_round_the_open_exercises(page, server):
    open_study(page, server)
    expect(run(page, '"check" in')).to_contain_text("True")
    menu(page, "Kernel", "Restart Kernel and Clear Outputs of All Cells…")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(page.locator(".jp-OutputArea-output")).to_have_count(0)
    expect(run(page, "check(")).to_contain_text("did you mean 'softmax'")

    for source in WAY:
        f8(page, source)
    page.keyboard.press("Enter")  # to write in it, and on from there
    f8(page, WAY[0])
    menu(page, "View", "Activate Command Palette")
    page.get_by_placeholder("SEARCH", exact=True).fill("Next open exercise")
    page.keyboard.press("Enter")
    expect_active(page, WAY[1])
    page.get_by_role("button", name="Next open exercise").click()
    expect_active(page, WAY[2])
    page.keyboard.press("F8")  # a click leaves the keyboard with the notebook
    expect_active(page, WAY[3])


def explained(page):
    """The source of a cell that explains the second exercise, which is folded while it is open."""
    return page.locator(".jp-CodeCell", has_text='"explained"').locator(".jp-InputArea-editor")


def test_what_is_done_is_passed_over_and_its_explanation_unfolds(page, server):
    desk = open_study(page, server)
    first_try, first_answer, second_try, second_answer, third_try = WAY

    def is_done(source: str) -> None:
        expect(page.locator(".workbook-done", has_text=source)).to_be_visible()

    page.keyboard.press("F8")
    run(page, first_try)
    expect(run(page, 'check("unicode1", my_character').first).to_contain_text("correct")
    is_done(first_try)
    f8(page, first_answer)
    expect(run(page, first_answer).last).to_contain_text("wrong")
    f8(page, second_try)
    page.keyboard.press("F8")
    expect(explained(page)).to_be_hidden()
    run(page, second_answer)
    is_done(second_answer)
    desk.wait_until_stored(MIME)
    is_done(second_try)  # the text is what is asked
    expect(explained(page)).to_be_visible()
    expect(page.locator(".workbook-folded")).to_have_count(0)
    f8(page, third_try)
    run(page, third_try)
    expect(run(page, 'check("unicode1", my_observation').first).to_contain_text("correct")
    is_done(third_try)
    for _ in range(2):
        f8(page, first_answer)  # has a text, and a wrong one

    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    right = 'answer("unicode1", "a", "U+0000")'
    page.keyboard.insert_text(right)
    page.keyboard.press("Control+Enter")
    is_done(right)
    page.keyboard.press("F8")
    expect(page.get_by_text("Every exercise in this notebook is done.")).to_be_visible()


def test_a_click_ticks_off_a_fact_that_a_text_states(page, server):
    desk = open_study(page, server)
    for source in WAY[:4]:
        f8(page, source)
    run(page, WAY[3])
    for number in (1, 2, 3):
        page.locator(".workbook-fact", has_text=f"{number}. ").click()
        expect(page.locator(".workbook-ticked")).to_have_count(number)
    expect(page.get_by_text("✓ unicode1 (b): ticked")).to_be_visible()
    desk.save()
    assert '"status": "ticked"' in desk.path.read_text("utf-8")
    assert Progress(desk.path.parent).of("unicode1", "b").best == "ticked"


LONG = "02_bpe"


@pytest.fixture(scope="module")
def server_as_usual(tmp_path_factory):
    """JupyterLab as learners have it: cells below the view are attached in idle time."""
    require_browser()
    root = tmp_path_factory.mktemp("as_usual")
    (root / "study" / MARK).mkdir(parents=True)
    with serve(root, os.environ | lab_settings(root, windowing="defer")) as running:
        yield running


def test_f8_right_after_opening_shows_the_exercise(browser, server_as_usual):
    """Nothing is scrolled to a cell that is not attached yet, and here it is far below."""
    (path,) = notebooks.find_worked([LONG])
    study = server_as_usual.root / "study" / f"{LONG}.ipynb"
    notebooks.write_notebook(study, copy.fresh(path))
    context, _ = browser
    with context.new_page() as page:
        page.goto(server_as_usual.page(f"study/{LONG}.ipynb"))
        expect(page.locator(".workbook-study")).to_be_visible()
        page.locator(".jp-Notebook .jp-Cell").first.click()
        for source in (
            "def train_bpe(",
            "# your turn: run train_bpe",
            'answer("train_bpe_tinystories"',
        ):
            f8(page, source)


def test_a_link_of_the_contents_opens_the_fold_that_it_leads_into(page, server):
    link = new_markdown_cell("[There](#Seen)", id="contents")
    write_notebook(server.root / STUDY, [link, *CELLS])
    open_study(page, server)
    seen = page.locator(".jp-MarkdownCell", has_text="Seen").last
    page.get_by_role("link", name="There").click()
    expect(page.locator(".jp-RenderedHTMLCommon h3", has_text="Seen")).to_be_in_viewport()
    expect(seen).not_to_have_class(re.compile("workbook-folded"))


def test_a_cell_for_examples_is_folded_until_something_is_written(page, server):
    source = "def test_softmax(softmax):\n    ...\n\n\nexamples('softmax', test_softmax)"
    metadata = {"workbook": {"problem": "softmax", "role": "examples"}}
    offered = new_code_cell(source, metadata=metadata, id="offered")
    write_notebook(server.root / STUDY, [*CELLS[:1], offered, *CELLS[1:]])
    desk = open_study(page, server)
    folded = page.locator(".workbook-folded-first", has_text="test_softmax")
    expect(folded).to_have_attribute("data-workbook-title", re.compile("^Optional: before you"))
    folded.click()
    expect(folded).to_have_count(0)
    page.locator(".jp-CodeCell", has_text="test_softmax").locator(
        ".cm-line", has_text="..."
    ).click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.insert_text("assert softmax")
    page.keyboard.press("Control+s")
    desk.wait_until_stored("assert softmax")
    page.reload()
    expect(page.locator(".jp-CodeCell", has_text="assert softmax")).to_be_visible()
    expect(page.locator(".workbook-folded", has_text="assert softmax")).to_have_count(0)


LATE = """const fetchNow = window.fetch;
window.fetch = async (...asked) => {
    const isSave = asked[0].method === "PUT";
    const answer = await fetchNow(...asked);
    if (isSave) await new Promise(done => setTimeout(done, 3000));
    return answer;
};"""


def test_saves_take_turns_on_a_slow_server(page, server):
    """JupyterLab would ask whether to overwrite what its own save before has written."""
    page.clock.install()
    page.add_init_script(LATE)
    desk = open_study(page, server)
    f8(page, WAY[0])
    page.keyboard.press("Enter")
    with page.expect_request(lambda r: r.method == "PUT" and "/api/contents/" in r.url):
        page.keyboard.insert_text("# typed first ")
        page.clock.fast_forward(15_000)  # after which it is saved, here or at the next look
    page.keyboard.insert_text("# typed last ")
    page.keyboard.press("Control+s")
    desk.wait_until_stored("# typed last ")
    expect(page.locator("li.jp-mod-dirty")).to_have_count(0)
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def test_an_explanation_unfolds_when_asked_and_a_cell_is_marked_when_tagged(page, server):
    open_study(page, server)
    folded = page.locator(".workbook-folded")
    for source in WAY[:3]:
        f8(page, source)
    sections = page.locator(".workbook-folded-first")
    expect(sections).to_have_count(2)
    title = "Folded until you have solved this: Seen (click to read it now)"
    expect(sections.last).to_have_attribute("data-workbook-title", title)
    expect(folded).to_have_count(3)
    expect(explained(page)).to_be_hidden()
    page.screenshot(path=SCREENSHOTS / "folded.png")
    sections.first.click()
    expect(folded).to_have_count(2)
    expect(explained(page)).to_be_visible()
    sections.click()
    expect(folded).to_have_count(0)
    run(page, WAY[2])  # it stays unfolded, though the exercise is open
    expect(page.locator(".workbook-open", has_text=WAY[2])).to_be_visible()
    expect(run(page, 'print("and shown"')).to_contain_text("and shown")
    expect(folded).to_have_count(0)

    for source in (*WAY[3:], WAY[0]):
        f8(page, source)
    page.keyboard.press("c")
    page.keyboard.press("v")  # the copy comes below, and is the active one
    expect(page.locator(".workbook-open", has_text="my_character =")).to_have_count(2)
    page.keyboard.press("ArrowDown")  # to the check
    page.get_by_role("tab", name="Property Inspector").click()
    page.get_by_text("Common Tools").click()
    page.locator(".jp-CellTags").get_by_text("your-turn").click()
    page.locator(".workbook-open .jp-InputPrompt").first.click()
    check = page.locator(".jp-CodeCell", has_text='check("unicode1", my_character')
    expect(check).to_have_class(re.compile("workbook-open"))


# How a cell is told to be the learner's: the bar beside its source, the word below its number.
LOOK = """cell => {
    const bar = getComputedStyle(cell.querySelector('.jp-InputArea-editor'));
    const prompt = cell.querySelector('.jp-InputPrompt');
    const word = getComputedStyle(prompt, '::after');
    let behind = cell;
    while (/, 0\\)$/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
    const paper = getComputedStyle(behind).backgroundColor;
    return {
        width: parseFloat(bar.borderLeftWidth),
        word: word.content, opacity: getComputedStyle(prompt).opacity,
        colours: [bar.borderLeftColor, word.color, paper].map(c => c.match(/\\d+/g).map(Number)),
    };
}"""


def test_the_learners_cells_look_like_theirs(page, server):
    open_study(page, server)
    page.get_by_role("button", name="Next open exercise").click()
    run(page, "my_character =")
    run(page, 'check("unicode1", my_character')
    page.locator(".workbook-done").wait_for()
    check = page.locator(".jp-CodeCell", has_text='check("unicode1", my_character')
    cells = [check, page.locator(".workbook-open").first, page.locator(".workbook-done")]
    for theme in ("light", "dark"):
        set_theme(page, theme)
        ours, *looks = [cell.evaluate(LOOK) for cell in cells]
        assert ours["width"] <= 1, "JupyterLab's own line around the source"
        words = [look["word"] for look in (ours, *looks)]
        assert words == ["none", '"your turn"', '"✓ done"']
        for look in looks:
            bar, word, paper = look["colours"]
            assert look["width"] >= 4 and look["opacity"] == "1"
            assert contrast(bar, paper) >= 3, "what WCAG asks of a sign"
            assert contrast(word, paper) >= 4.5, "what WCAG asks of a text"
        assert looks[0]["colours"][0] != looks[1]["colours"][0]
        for width in (700, 1366):
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=SCREENSHOTS / f"exercises_{theme}_{width}.png")
