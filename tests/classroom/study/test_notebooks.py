"""The normal form drops what a run of a notebook leaves behind; a second run adds nothing."""

from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbval.plugin import get_sanitize_patterns

from workbook import bench, config
from workbook.classroom import cli
from workbook.classroom.checks.machinery.timeout import limited
from workbook.classroom.study import notebooks
from workbook.classroom.study.notebooks import REPLACEMENTS, WIDGET_VIEW, normalise

NASTY = ["/home/ada/x.txt", "/tmp/tmpab12cd_9", "C:\\Users\\ada\\", "at 0x7f3a2c1d5e10", "é", "🙂"]
NASTY += [*" \t\n\r/a0)", "50%|##  | 1/2 [00:01<00:02]", "..", "<b>", "tmp"]
texts = st.lists(st.sampled_from(NASTY) | st.text(max_size=3), max_size=8).map("".join)
mimes = st.sampled_from(["text/plain", "text/html", "image/png", WIDGET_VIEW])
bundles = st.dictionaries(mimes, texts, max_size=4)
streams = st.sampled_from(["stdout", "stderr"])
outputs = st.one_of(
    st.builds(new_output, st.just("stream"), name=streams, text=texts),
    st.builds(new_output, st.just("display_data"), data=bundles),
)
about = st.sampled_from([{}, {"role": "try"}, {"role": "prose", "problem": "u1"}])
metadata = st.fixed_dictionaries({"workbook": about, "tags": st.sampled_from([[], ["b", "a"]])})
cells = st.one_of(
    st.builds(new_markdown_cell, texts, metadata=metadata),
    st.builds(new_code_cell, texts, metadata=metadata, outputs=st.lists(outputs, max_size=4)),
)


def normal_outputs(*stored):
    """The outputs of one code cell after normalising."""
    notebook = new_notebook(cells=[new_code_cell("x", outputs=list(stored), execution_count=1)])
    return normalise(notebook).cells[0].outputs


def printed(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def test_a_digest_ignores_windows_line_ends_and_blanks_at_the_end_of_the_cell_alone():
    cell = new_code_cell("a\nb")
    for same in ("a\r\nb", "a\nb \n\n"):
        assert notebooks.digest(new_code_cell(same)) == notebooks.digest(cell)
    for other in (new_code_cell("a \nb"), new_code_cell(" a\nb"), new_markdown_cell("a\nb")):
        assert notebooks.digest(other) != notebooks.digest(cell)


@settings(max_examples=50)
@given(st.lists(cells, max_size=5).map(lambda some: new_notebook(cells=some)))
def test_normalising_twice_changes_nothing_more(notebook):
    before = nbformat.writes(notebook)
    once = normalise(notebook)
    assert normalise(once) == once
    assert nbformat.writes(notebook) == before, "the notebook that was handed in was changed"
    nbformat.validate(once)


def test_nbval_makes_the_same_replacements():
    config = Path(__file__).parents[2].joinpath("sanitize.cfg").read_text("utf-8")
    assert get_sanitize_patterns(config) == list(REPLACEMENTS)


# A line that is printed, and the line that is stored.
REPLACED = {
    "<f at 0x7f3a2c1d5e10>": "<f at 0x...>",
    "read /home/ada/cs336/data/train.txt": "read .../train.txt",
    "'/tmp/tmpab12cd_9/x.json'": "'.../x.json'",
    "in /tmp/tmpab12cd_9": "in .../tmp...",
    r"C:\Users\ada\study\x.txt": ".../x.txt",
    "blanks  \t": "blanks",
    "and at the end ": "and at the end",
}


def test_what_only_this_machine_has_is_replaced():
    (output,) = normal_outputs(printed("\n".join(REPLACED)))
    assert output.text.split("\n") == list(REPLACED.values())


LEFT_ALONE = """
    U+1F600 is 0x1F600, below 0x10ffff
    bytes/s and and/or, 1/2/3, 2026/01/02
    https://example.org/a/b/c
    </summary></details><br/>
    (a+b)/c/d
    data:image/png;base64,iVBOR/abc/def+/gh
"""


def test_what_a_reader_needs_is_left_alone():
    assert normal_outputs(printed(LEFT_ALONE))[0].text == LEFT_ALONE


@pytest.mark.parametrize("line", ["7" * 100_000, " " * 100_000 + "x", "/a" * 50_000, "7a" * 50_000])
def test_a_very_long_line_takes_no_quadratic_time(line):
    shown = new_output("stream", name="stdout", text=line)
    limited(5, lambda: normalise(new_notebook(cells=[new_code_cell("x", outputs=[shown])])))


BAR = "\r  0%|          | 0/9 [00:00<?, ?it/s]\r100%|████| 9/9 [00:01<00:00,  8.9it/s]\n"


STREAMS = [
    (["a", ("oh", "stderr"), "b", None, "c\n"], ["ab", "oh", None, "c\n"]),  # None: a picture
    ([(BAR, "stderr")], []),
    ([("12.3kB [00:01, 9.1kB/s]", "stderr")], []),
    (["1 of 3\r2 of 3\r3 of 3\ndone\r\n"], ["3 of 3\ndone\n"]),
]


@pytest.mark.parametrize(("pieces", "stored"), STREAMS)
def test_streams_are_joined_up_to_a_picture_and_show_their_last_state(pieces, stored):
    picture = new_output("display_data", data={"text/plain": "a plot"})
    texts = [piece if isinstance(piece, tuple) else (piece,) for piece in pieces]
    outputs = [picture if text == (None,) else printed(*text) for text in texts]
    assert [output.get("text") for output in normal_outputs(*outputs)] == stored


def test_a_widget_keeps_its_picture_and_its_text():
    data = {WIDGET_VIEW: {"model_id": "7"}, "image/png": "AA\nAA\n", "text/plain": "a slider"}
    (output,) = normal_outputs(new_output("display_data", data=data))
    assert output.data == {"image/png": "AAAA", "text/plain": "a slider"}


def test_ids_do_not_move_when_a_cell_is_put_in():
    about = {"workbook": {"problem": "unicode1", "role": "answer", "part": "a"}}
    some = [new_markdown_cell("One."), new_code_cell("2"), new_code_cell("3", metadata=about)]
    before = [cell.id for cell in normalise(new_notebook(cells=some)).cells]
    more = [new_markdown_cell("New."), *some]
    after = [cell.id for cell in normalise(new_notebook(cells=more)).cells]
    assert after[1:] == before and before[2] == "unicode1-answer-a"


def test_metadata_is_what_the_workbook_knows():
    known = {"tags": ["b", "a"], "workbook": {"x": 1}}
    cell = new_code_cell("x", metadata={**known, "collapsed": True})
    notebook = normalise(new_notebook(cells=[cell], metadata={"widgets": {}, "title": "x"}))
    assert notebook.cells[0].metadata == {"tags": ["a", "b"], "workbook": {}}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty notebooks/ in a checkout of its own."""
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def store(path, *sources):
    """A notebook in normal form of code cells that never ran."""
    cells = [new_markdown_cell("# One"), *(new_code_cell(source) for source in sources)]
    notebooks.write_notebook(path, normalise(new_notebook(cells=cells)))


@pytest.mark.slow
def test_two_runs_give_the_same_bytes(folder, capsys, monkeypatch):
    monkeypatch.setattr(bench, "disturbance", lambda: None)
    path = folder / "09_try.ipynb"
    store(
        path,
        "import os, sys, tempfile\nprint(tempfile.mkdtemp(), lambda: 0)",
        "print(os.getcwd(), file=sys.stderr)",
        "from tqdm import tqdm\nsum(tqdm(range(3)))",
    )
    path.write_text(path.read_text() + "\n")
    assert cli.main(["notebooks", "--check"]) == 1
    notebooks.run_worked()
    first = path.read_bytes()
    assert cli.main(["notebooks", "--check", "09_try"]) == 0
    notebooks.run_worked(["09_try"])
    assert path.read_bytes() == first
    assert b".../notebooks" in first and str(folder).encode() not in first
    told = capsys.readouterr().out
    for said in (".ipynb is not in normal form", ": stored", ": unchanged"):
        assert f"09_try{said}" in told

    store(path, "1 / 0")  # a run that fails leaves the stored notebook
    failing = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        notebooks.run_worked()
    assert path.read_bytes() == failing


@pytest.mark.slow
def test_nothing_is_stored_from_a_busy_machine(folder, monkeypatch):
    path = folder / "09_try.ipynb"
    store(path, "print(1)")
    before = path.read_bytes()
    monkeypatch.setattr(bench, "disturbance", lambda: "noisy")
    with pytest.raises(ValueError, match="09_try is not stored, its times would be wrong: noisy"):
        notebooks.run_worked()
    busy_afterwards = iter([None, "noisy"]).__next__
    monkeypatch.setattr(bench, "disturbance", busy_afterwards)
    with pytest.raises(ValueError, match="noisy"):
        notebooks.run_worked()
    assert path.read_bytes() == before


CELL = '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"source": ""}]}'
BROKEN = [
    "",
    "text",
    "[]",
    "[" * 100_000,
    '{"nbformat": 4, "cells": 3}',
    '{"nbformat": 99, "cells": []}',
]
RAW = CELL.replace('{"source"', '{"cell_type": "raw", "metadata": NOTES, "source"')
NOTES = ['{"workbook": 3}', '{"workbook": {"original": 3}}', '{"tags": null}']


@pytest.mark.parametrize("text", [*BROKEN, CELL, *(RAW.replace("NOTES", n) for n in NOTES)])
def test_what_is_no_notebook_is_told_in_one_line(tmp_path, text):
    path = tmp_path / "mine.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.ipynb cannot be read as a notebook") as error:
        notebooks.read_notebook(path)
    assert "\n" not in str(error.value)


def test_a_text_that_no_file_can_hold_is_told_by_the_name_of_its_notebook(folder):
    with pytest.raises(ValueError, match=r"x\.ipynb is not a valid notebook .*surrogates"):
        store(folder / "x.ipynb", "'\ud800'")
    assert not list(folder.iterdir())
