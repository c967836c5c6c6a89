"""Running the worked notebooks: what is stored is one whole run, and a second run adds nothing."""

import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from workbook import cli, config
from workbook.study import notebooks
from workbook.study.notebooks import normalise


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty notebooks/ in a checkout of its own."""
    monkeypatch.setattr(config, "repository", lambda: tmp_path)
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def store(path, *sources, **last):
    """A notebook of code cells that never ran; `last` is metadata of the last one."""
    cells = [new_markdown_cell("# One"), *(new_code_cell(source) for source in sources)]
    cells[-1].metadata.update(last)
    notebooks.write(path, new_notebook(cells=cells))


def timed(text, alt="a plot", picture="AAAA", tags=(notebooks.VARIES,)):
    """A run of a notebook that prints `text` and draws something."""
    shown = [
        new_output("stream", name="stdout", text=text),
        new_output("display_data", data={"image/png": picture, "text/plain": alt}),
    ]
    metadata = {"tags": list(tags)}
    cell = new_code_cell("measure()", outputs=shown, execution_count=1, metadata=metadata)
    return notebooks.normalise(new_notebook(cells=[cell]))


def test_two_runs_give_the_same_bytes(folder, capsys):
    path = folder / "09_try.ipynb"
    sources = [
        "import os, sys, tempfile",
        "print(tempfile.mkdtemp(), lambda: 0)\nprint(os.getcwd(), file=sys.stderr)",
        "from tqdm import tqdm\nsum(tqdm(range(3)))",
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    ]
    store(path, *sources)
    assert cli.main(["notebooks", "--check"]) == 1
    notebooks.run()
    first = path.read_bytes()
    assert cli.main(["notebooks", "--check", "09_try"]) == 0
    notebooks.run(["09_try"])
    assert path.read_bytes() == first
    assert b".../notebooks" in first and str(folder).encode() not in first
    told = capsys.readouterr().out
    assert "cell 1 (cell-" in told and "09_try: stored" in told and "09_try: unchanged" in told


def test_a_run_that_fails_leaves_the_stored_notebook(folder):
    path = folder / "09_try.ipynb"
    store(path, "1 / 0")
    before = path.read_bytes()
    with pytest.raises(Exception, match="ZeroDivisionError"):
        notebooks.run()
    assert path.read_bytes() == before


def test_noise_in_measured_figures_keeps_the_stored_run(folder, capsys, monkeypatch):
    path = folder / "09_try.ipynb"
    notebooks.write(path, timed("took 1.00 s"))
    monkeypatch.setattr(notebooks, "execute", lambda path: timed("took 1.25 s", picture="BBBB"))
    notebooks.run()
    assert notebooks.read(path) == timed("took 1.00 s")
    assert "kept" in capsys.readouterr().out
    notebooks.run(fresh=True)
    assert notebooks.read(path) == timed("took 1.25 s", picture="BBBB")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (timed("took 1.0 s"), timed("took 2.0 s")),
        (timed("took 1 s"), timed("took 1 ms")),
        (timed("took 1 s"), timed("took 0 s")),
        (timed("took 1 s"), timed("took 1 s on 2 cores")),
        (timed("took 1 s"), timed("took 1 s", alt="another plot")),
        (timed("took 1.0 s", tags=()), timed("took 1.1 s", tags=())),
        (timed("took 1 s", tags=()), timed("took 1 s", tags=(), picture="BBBB")),
    ],
)
def test_a_run_that_says_something_else_is_no_noise(old, new):
    assert not notebooks.is_same_run(old, new)


def test_numbers_are_compared_with_their_commas_and_powers():
    assert notebooks.is_same_run(timed("1,000,000 in 2e-05"), timed("1,200,000 in 2.4e-05"))
    assert not notebooks.is_same_run(timed("2e-05 s"), timed("2e-04 s"))


def test_an_unknown_notebook_is_told_with_the_known_ones(folder):
    store(folder / "01_unicode.ipynb", "1")
    with pytest.raises(ValueError, match="no notebook '02_bpe'; pick from 01_unicode"):
        notebooks.find(["02_bpe"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "[]",
        "{}",
        "3",
        '{"nbformat": 4, "metadata": {}}',
        '{"nbformat": 4, "cells": 3}',
        '{"nbformat": 99, "cells": []}',
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"source": ""}]}',
    ],
)
def test_what_is_no_notebook_is_told_in_one_line(tmp_path, text):
    path = tmp_path / "mine.ipynb"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"mine\.ipynb cannot be read as a notebook") as error:
        notebooks.read(path)
    assert "\n" not in str(error.value)


def test_what_is_no_text_is_no_notebook(tmp_path):
    (tmp_path / "mine.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="cannot be read as a notebook"):
        notebooks.read(tmp_path / "mine.ipynb")


def test_ids_that_another_program_left_out_come_back(folder, tmp_path):
    path = tmp_path / "mine.ipynb"
    worked = folder / "01_one.ipynb"
    about = {"problem": "unicode1", "role": "try", "part": "a"}
    store(worked, "x = 1", "x = 2", workbook=about)
    notebook = json.loads(worked.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell.pop("id", None)
    path.write_text(json.dumps({**notebook, "nbformat_minor": 2}))
    assert notebooks.read(path).cells == normalise(notebooks.read(worked)).cells
