"""A learner's folder: their answers and their code, and nothing of the workbook's own."""

import json
import zipfile

import pytest
from export_folders import answered, cell, learner, printed, shown

from workbook import config
from workbook.export import export, states
from workbook.study import copy, notebooks
from workbook.study.answers import MIME
from workbook.study.notebooks import role
from workbook.study.progress import source_of
from workbook.tokenization import bpe


@pytest.fixture(scope="module")
def half_filled(tmp_path_factory):
    """A study folder with two answers and one passing attempt, and its write-up."""
    folder = tmp_path_factory.mktemp("learner") / "study"
    copy.make(folder)
    path = folder / "01_unicode.ipynb"
    notebook = notebooks.read(path)
    mine = {"a": "MY WORDS: it is called NUL.", "b": "MY WORDS: one shows, one does not."}
    for each in notebook.cells:
        part = each.metadata.get("workbook", {}).get("part")
        if role(each) == "answer" and each.metadata.workbook.problem == "unicode1" and part in mine:
            outputs = answered("unicode1", part, mine[part])["outputs"]
            each.outputs = [notebooks.NotebookNode(output) for output in outputs]
            each.outputs[0].data = notebooks.NotebookNode(outputs[0]["data"])
        elif role(each) == "look_up":
            data = {"text/markdown": "<details>OURS, looked up</details>", "text/plain": "OURS"}
            each.outputs = [
                notebooks.NotebookNode(output_type="display_data", metadata={}, data=data)
            ]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    source = "def train_bpe(input_path, vocab_size, special_tokens):\n    return MY_CODE, []\n"
    entry = {"attempted": [""], "correct": [""], "answered": [], "source": {"": source}}
    record = {"version": 1, "problems": {"train_bpe": entry}}
    (folder / ".workbook" / "progress.json").write_text(json.dumps(record), encoding="utf-8")
    return folder, folder.parent / "build", export(folder, to=folder.parent / "build")


def test_it_holds_their_answers_and_code(half_filled):
    _, build, said = half_filled
    for name in ("writeup.md", "writeup.html"):
        text = (build / name).read_text(encoding="utf-8")
        assert "called NUL" in text and "one shows" in text and "MY_CODE" in text
    assert "answered: a, b; unanswered: c" in (build / "writeup.md").read_text(encoding="utf-8")
    assert said[0].startswith("Write-up, edition 2025")


def test_nothing_of_ours_is_in_it(half_filled):
    _, build, _ = half_filled
    text = (build / "writeup.md").read_text(encoding="utf-8")
    ours = [
        output.data[MIME]["text"]
        for path in notebooks.find()
        for each in notebooks.read(path).cells
        for output in each.get("outputs", [])
        if MIME in output.get("data", {})
    ]
    assert len(ours) > 10 and not any(answer[:40] in text for answer in ours)
    assert "OURS" not in text and "reference" not in text.lower()
    assert "which character" not in text.lower(), "the prompts are ours too"
    assert not list((build / "figures").glob("*"))


def test_their_archive_holds_their_passing_attempts_alone(half_filled):
    _, build, _ = half_filled
    with zipfile.ZipFile(build / "code.zip") as archive:
        assert archive.namelist() == ["train_bpe.py"]
        assert b"MY_CODE" in archive.read("train_bpe.py")


@pytest.mark.parametrize("how", ["copied text", "copied cell", "quoted", "printed", "shown"])
def test_our_answers_are_left_out_however_they_came_there(tmp_path, how):
    worked = notebooks.read(config.repository() / "notebooks" / "01_unicode.ipynb")
    our_cell = next(each for each in worked.cells if role(each) == "answer")
    ours = our_cell.outputs[0].data[MIME]["text"]
    mine, outputs, source = "My words.", [], "answer(...)"
    if how == "copied text":
        mine = ours
    elif how == "copied cell":
        mine, source = "The numbers of another machine.", our_cell.source
    elif how == "quoted":
        mine = f"Our answer to unicode1 (a)\n\n{ours}"
    elif how == "printed":
        outputs = [printed(f"Our answer to unicode1 (a)\n\n{ours}")]
    else:
        folded = f"<details><summary>Our answer</summary>\n\n{ours}</details>"
        outputs = [shown(markdown=folded, plain=ours)]
    folder = learner(tmp_path / "study", answered("unicode1", "a", mine, *outputs, source=source))
    said = export(folder, to=tmp_path / "build")
    text = (tmp_path / "build" / "writeup.html").read_text(encoding="utf-8")
    assert "null" not in text and "control character" not in text
    assert ("My words." in text) == (how in ("printed", "shown"))
    if how not in ("printed", "shown"):
        assert any("is the workbook's own answer" in line for line in said)


def test_the_packages_own_code_is_no_attempt_of_theirs(tmp_path):
    folder = learner(tmp_path, cell("1"), passed={"train_bpe": source_of(bpe.train_bpe)})
    write_up = states.assess(folder, "2025")
    assert not any(entry.listings for entry in write_up.entries)
    assert any("the package's own code" in note for note in write_up.notes)


def test_code_that_was_never_correct_is_not_exported(tmp_path):
    folder = learner(tmp_path, cell("1"), passed={"softmax": "def softmax(x, dim): ..."})
    path = folder / ".workbook" / "progress.json"
    record = json.loads(path.read_text())
    record["problems"]["softmax"]["correct"] = []
    path.write_text(json.dumps(record))
    assert not any(entry.listings for entry in states.assess(folder, "2025").entries)


def test_cells_that_were_written_and_not_run_are_named(tmp_path):
    silent = cell('answer("unicode1", "a", "Mine.")', role="answer", problem="unicode1", part="a")
    error = {"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": []}
    broken = cell('answer("unicode1", "b", x)', error, role="answer", problem="unicode1", part="b")
    empty = cell('answer("unicode1", "c", """\n""")', role="answer", problem="unicode1", part="c")
    notes = states.assess(learner(tmp_path, silent, broken, empty), "2025").notes
    assert notes == [
        "the cell that answers unicode1 (a) was not run: run and save it",
        "the cell that answers unicode1 (b) ended in an error: mend it",
    ]


def test_a_copy_of_the_worked_notebooks_is_the_reference_wherever_it_lies(tmp_path):
    worked = config.repository() / "notebooks" / "01_unicode.ipynb"
    (tmp_path / "01_unicode.ipynb").write_bytes(worked.read_bytes())
    assert states.assess(tmp_path, "2025").is_reference
    (tmp_path / ".workbook").mkdir()
    copied = states.assess(tmp_path, "2025")
    assert not copied.is_reference and not any(entry.answers for entry in copied.entries)
