"""What is read out of notebooks: a learner's own words and code, whatever shape the file has."""

import inspect
import json
import re
import shutil
import zipfile
from dataclasses import replace

import pytest
from export_folders import answered, cell, learner, notebook, printed, shown

from workbook import cli, config
from workbook.export import export, states
from workbook.export.document import compose
from workbook.export.pandoc import nodes_in, text_of
from workbook.export.stored import read_folder
from workbook.study import copy, notebooks
from workbook.study.answers import CHECK_MIME, MIME
from workbook.study.notebooks import role
from workbook.study.progress import Progress
from workbook.study.verbs import check
from workbook.tokenization import bpe


@pytest.fixture(scope="module")
def half_filled(tmp_path_factory):
    """The write-up of a study folder with two answers and one passing attempt."""
    folder = tmp_path_factory.mktemp("learner") / "study"
    copy.make(folder)
    path = folder / "01_unicode.ipynb"
    filled = json.loads(path.read_text(encoding="utf-8"))
    mine = {"a": "MY WORDS: it is called NUL.", "b": "MY WORDS: one shows, one does not."}
    for each in filled["cells"]:
        about = each["metadata"].get("workbook", {})
        if about.get("role") == "answer" and about["problem"] == "unicode1":
            if about.get("part") in mine:
                part = about["part"]
                each["outputs"] = answered("unicode1", part, mine[part])["outputs"]
        elif about.get("role") == "look_up":
            folded = "<details>OURS, looked up</details>"
            each["outputs"] = [shown(markdown=folded, plain="OURS")]
    path.write_text(json.dumps(filled), encoding="utf-8")
    source = "def train_bpe(input_path, vocab_size, special_tokens):\n    return MY_CODE, []\n"
    with Progress(folder).changing("train_bpe", None) as part:
        part.reach("correct")
        part.source = source
    return folder.parent / "build", export(folder, to=folder.parent / "build")


def test_it_holds_their_answers_and_code(half_filled):
    build, said = half_filled
    for name in ("writeup.md", "writeup.html"):
        text = (build / name).read_text(encoding="utf-8")
        assert "called NUL" in text and "one shows" in text and "MY_CODE" in text
    assert "answered: a, b; unanswered: c" in (build / "writeup.md").read_text(encoding="utf-8")
    assert said[0].startswith("Write-up, edition 2025")


CODE = """# softmax, kept when its check said correct
import torch

def softmax(x, dim):
    return torch.nn.Softmax(dim)(x)
"""


@pytest.mark.parametrize("copied", ["all", "notebooks", "notebooks and mine", "no outputs"])
def test_a_copy_under_any_name_exports_as_itself(tmp_path, copied):
    checked = {"problem": "softmax", "part": None, "status": "correct"}
    checked |= {"source": CODE, "trouble": ""}
    wrong = {"problem": "rope", "part": None, "status": "wrong"}
    cells = [
        answered("unicode1", "a", "It is NUL.", verdict="correct"),
        cell("check(...)", {"output_type": "execute_result", "data": {CHECK_MIME: checked}}),
        cell("check(...)", {"output_type": "execute_result", "data": {CHECK_MIME: wrong}}),
    ]
    study = learner(tmp_path / "study", *cells, passed={"softmax": CODE})
    with Progress(study).changing("rope", None) as part:
        part.reach("wrong")
    (study / "mine").mkdir()
    (study / "mine" / "softmax.py").write_text(CODE)
    renamed = tmp_path / "a copy of mine"
    shutil.copytree(study, renamed)
    if copied != "all":
        shutil.rmtree(renamed / ".workbook")
    if copied == "notebooks":
        shutil.rmtree(renamed / "mine")
    if copied == "no outputs":  # what was checked from the command line alone
        notebook(renamed / "01_unicode.ipynb", cells[0], cells[2])
    both = [states.assess(folder, "2025", prove=True) for folder in (study, renamed)]
    listed = text_of(compose(both[1]).blocks)
    assert "import torch" in listed and "kept when" not in listed
    assert both[0].entries == both[1].entries
    assert both[0].summary == both[1].summary
    assert "1 wrong" in both[0].summary and "1 code correct" in both[0].summary


@pytest.mark.parametrize(
    "record",
    [
        {"problem": "rope", "status": "splendid"},
        {"problem": "no such", "status": "correct", "source": "x"},
        {"problem": ["rope"], "status": "correct"},
        {"problem": "rope", "part": "z", "status": "correct", "source": "x"},
        {"problem": "rope", "part": None, "status": ["correct"], "source": {"a": 1}},
    ],
)
def test_records_of_checks_that_make_no_sense_are_passed_over(tmp_path, record):
    odd = cell("check(...)", {"output_type": "display_data", "data": {CHECK_MIME: record}})
    assert read_folder(notebook(tmp_path / "a.ipynb", odd).parent).checks == {}


def test_nothing_of_ours_is_in_it(half_filled):
    build, _ = half_filled
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


def test_the_reference_asks_part_by_part_what_the_notebook_asks(tmp_path):
    asked = "## unicode1 · 1 point\n\nLook.\n\n- **(a)** Which\n  one?\n- **(b)** Why?\n\nGo on."
    about = {"problem": "unicode1", "role": "prompt"}
    prompt = {"cell_type": "markdown", "metadata": {"workbook": about}, "source": asked}
    notebook(tmp_path / "01_unicode.ipynb", prompt, answered("unicode1", "a", "This one."))
    found = read_folder(tmp_path)
    assert found.prompts == {"unicode1": {"": "Look.\n\nGo on.", "a": "Which\n  one?", "b": "Why?"}}
    write_up = replace(states.assess(tmp_path, "2025"), is_reference=True)
    text = " ".join(text_of(compose(write_up).blocks).split())
    assert text.index("Go on.") < text.index("Which one?") < text.index("This one.")


def test_their_archive_holds_their_passing_attempts_alone(half_filled):
    with zipfile.ZipFile(half_filled[0] / "code.zip") as archive:
        assert archive.namelist() == ["train_bpe.py"]
        assert b"MY_CODE" in archive.read("train_bpe.py")


@pytest.mark.parametrize("how", ["copied text", "copied cell", "quoted", "printed", "shown"])
def test_our_answers_are_left_out_however_they_came_there(tmp_path, how):
    worked = notebooks.read(config.shipped() / "notebooks" / "01_unicode.ipynb")
    our_cell = next(each for each in worked.cells if role(each) == "answer")
    ours = our_cell.outputs[0].data[MIME]["text"]
    titled = f"Our answer to unicode1 (a)\n\n{ours}"
    folded = shown(markdown=f"<details><summary>Our answer</summary>\n\n{ours}</details>")
    mine, outputs, source = {
        "copied text": (ours, [], "answer(...)"),
        "copied cell": ("The numbers of another machine.", [], our_cell.source),
        "quoted": (titled, [], "answer(...)"),
        "printed": ("My words.", [printed(titled)], "answer(...)"),
        "shown": ("My words.", [folded], "answer(...)"),
    }[how]
    learner(tmp_path, answered("unicode1", "a", mine, *outputs, source=source))
    write_up = states.assess(tmp_path, "2025")
    text = text_of(compose(write_up).blocks)
    assert "null" not in text and "control character" not in text
    is_mine = how in ("printed", "shown")
    assert ("My words." in text) == is_mine
    assert any("is the workbook's own answer" in line for line in write_up.notes) != is_mine


def test_code_that_is_ours_or_was_never_correct_is_not_exported(tmp_path):
    ours = f"import regex\n\n{inspect.getsource(bpe.train_bpe)}\n\n__all__ = ['train_bpe']\n"
    folder = learner(tmp_path, cell("1"), passed={"train_bpe": ours})
    with Progress(folder).changing("softmax", None) as part:
        part.reach("wrong")
    write_up = states.assess(folder, "2025")
    assert not any(entry.listings for entry in write_up.entries)
    (softmax,) = (entry for entry in write_up.entries if entry.id == "softmax")
    assert softmax.in_words == states.WRONG and "softmax: wrong" in write_up.missing
    assert any("train_bpe is the package's own code" in note for note in write_up.notes)


def test_a_copy_of_the_worked_notebooks_is_the_reference_wherever_it_lies(tmp_path):
    worked = config.shipped() / "notebooks" / "01_unicode.ipynb"
    (tmp_path / "01_unicode.ipynb").write_bytes(worked.read_bytes())
    assert states.assess(tmp_path, "2025").is_reference
    (tmp_path / ".workbook").mkdir()
    copied = states.assess(tmp_path, "2025")
    assert not copied.is_reference and not any(entry.answers for entry in copied.entries)


def test_cells_that_were_written_and_not_run_are_named(tmp_path):
    silent = cell('answer("unicode1", "a", "Mine.")', role="answer", problem="unicode1", part="a")
    error = {"output_type": "error", "ename": "NameError", "evalue": "x", "traceback": []}
    broken = cell('answer("unicode1", "b", x)', error, role="answer", problem="unicode1", part="b")
    empty = cell('answer("unicode1", "c", """\n""")', role="answer", problem="unicode1", part="c")
    notes = states.assess(learner(tmp_path, silent, broken, empty), "2025").notes
    assert notes == [
        "the cell that answers unicode1 (a) was not run: run it and save",
        "the cell that answers unicode1 (b) ended in an error: fix it and run it again",
    ]


def test_what_the_cell_shows_beside_the_answer_is_exported_in_its_order(tmp_path):
    table = (
        "<table><thead><tr><th></th><th>ids</th></tr></thead><tr><th>a</th><td>1</td></tr></table>"
    )
    learner(tmp_path, answered("unicode1", "a", "Look:", shown(html=table, plain="ids")))
    blocks = compose(states.assess(tmp_path, "2025")).blocks
    tables = [item for item in nodes_in(blocks) if item["t"] == "Table"]
    assert len(tables) == 2 and text_of(tables[1]).split() == ["ids", "a", "1"]
    assert tables[1]["c"][2][1][0]["t"] == "AlignRight"


def test_blocks_of_html_are_paragraphs_of_their_own(tmp_path):
    beside = shown(html="<div>BESIDE</div>", plain="BESIDE")
    both = [answered("unicode1", part, "MINE", beside) for part in "ab"]
    learner(tmp_path, *both)
    blocks = compose(states.assess(tmp_path, "2025")).blocks
    assert [text_of([item]) for item in blocks if item["t"] == "Plain"] == []


def test_what_the_check_said_below_an_answer_is_not_exported(tmp_path, monkeypatch):
    (tmp_path / ".workbook").mkdir()
    monkeypatch.chdir(tmp_path)
    said = check("unicode1", "The repr shows an escape.", "b")
    assert said.status == "read"
    data = {"text/html": said._repr_html_(), "text/plain": str(said), **said._repr_mimebundle_()}
    panel = {"output_type": "display_data", "data": data}
    learner(tmp_path, answered("unicode1", "b", "The repr shows an escape.", panel, panel))
    text = text_of(compose(states.assess(tmp_path, "2025")).blocks)
    assert "shows an escape" in text
    assert not re.search(r"judge|[Tt]ick|cannot be seen", text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no folder"),
        ({}, "has no notebooks"),
        ({"._a.ipynb": "x", ".~a.ipynb": ""}, "has no notebooks"),
        ({"a.ipynb": '{"cells": [{"cell'}, r"a.ipynb is not a complete notebook \(Unterminated"),
        ({"a.ipynb": "[" * 100_000}, "not a complete notebook"),
        ({"a.ipynb": "[]"}, "not a notebook of format 4"),
        ({"a.ipynb": '{"nbformat": 4, "cells": [3]}'}, "no list of cells"),
        ({"a.ipynb": None}, r"a.ipynb cannot be read \(.*irectory.*\); open it"),
    ],
)
def test_what_is_no_folder_of_notebooks_is_told_in_one_line(tmp_path, capsys, content, message):
    folder = tmp_path / "here"
    for name, text in ({} if content is None else {"": None, **content}).items():
        (folder / name).mkdir() if text is None else (folder / name).write_text(text)
    assert cli.main(["export", str(folder), "--to", str(tmp_path / "build")]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and said.count("\n") == 1


def test_a_notebook_that_cannot_be_read_is_left_aside_and_hidden_files_are_none(tmp_path, capsys):
    folder = learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    whole = (folder / "01_unicode.ipynb").read_text(encoding="utf-8")
    for name, text in {
        "._01_unicode.ipynb": "x\0",
        ".~01_unicode.ipynb": "",
        "02_bpe.ipynb": whole[: len(whole) // 2],
        "03_transformer.ipynb": f"<<<<<<< HEAD\n{whole}",
        "04_accounting.ipynb": "",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "05_optimizer.ipynb").symlink_to("nowhere")
    assert cli.main(["export", str(folder), "--to", str(tmp_path / "build")]) == 0
    said = capsys.readouterr().err
    named = re.findall(r"left aside: \S+/(\S+) (?:is not a complete|cannot be read)", said)
    assert [name[:2] for name in named] == ["02", "03", "04", "05"]
    assert "It is NUL." in (tmp_path / "build" / "writeup.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="nothing was written") as error:
        export(folder, strict=True, to=tmp_path / "strict")
    assert "02_bpe.ipynb is not a complete notebook" in str(error.value)
    assert "._01" not in str(error.value) and not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {"problem": ["unicode1"]},
        {"problem": "no_such"},
        {"problem": "unicode1", "part": {}},
        {"problem": "unicode1", "part": "a", "text": 3},
        {"problem": "unicode1", "part": "a", "text": "x", "edition": "1999", "profile": "laptop"},
        {"problem": "unicode1", "part": None, "text": "x", "edition": "2025", "profile": "laptop"},
    ],
)
def test_a_record_that_is_none_of_ours_is_left_out_and_named(tmp_path, record):
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: record or "\x1b[2J"}}
    learner(tmp_path, cell("x", output))
    write_up = states.assess(tmp_path, "2025")
    assert not any(entry.answers for entry in write_up.entries)
    assert len(write_up.notes) == 1 and "cannot be read" in write_up.notes[0]
    assert write_up.notes[0].isprintable()


@pytest.mark.parametrize("junk", [None, 3, "x", {}, [None], [{"data": 3}], [{"data": {"a": [1]}}]])
def test_cells_of_any_shape_are_survived(tmp_path, junk):
    odd = {"cell_type": "code", "source": junk, "outputs": junk, "metadata": junk}
    mark = {"workbook": {"role": "answer", "problem": junk, "part": junk}}
    notebook(tmp_path / "a.ipynb", odd, {**odd, "metadata": mark}, {"cell_type": "code"})
    assert states.assess(tmp_path, "2025").found.answers == []


def test_a_notebook_of_many_megabytes_is_no_burden(tmp_path):
    noise = printed("a line that nobody needs\n" * 800_000)
    table = "<table>" + "<tr><td>1</td></tr>" * 100_000 + "</table>"
    beside = [noise, shown(html=table, plain="1")]
    found = learner(tmp_path, cell("x", noise), answered("unicode1", "a", "Yes.", *beside))
    assert (found / "01_unicode.ipynb").stat().st_size > 40_000_000
    blocks = json.dumps(compose(states.assess(found, "2025")).blocks)
    assert len(blocks) < 200_000 and "799,940 more lines" in blocks
