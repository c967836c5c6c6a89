"""What is read out of notebooks: a learner's own words and code, whatever shape the file has."""

import inspect
import json
import re
import shutil
import zipfile

import pytest
from export_folders import answered, cell, learner, notebook, printed, shown

from workbook import config
from workbook.classroom import cli
from workbook.classroom.checks.machinery.judging import MIME as CHECK_MIME
from workbook.classroom.export import export, status
from workbook.classroom.export.document import compose
from workbook.classroom.export.pandoc import nodes_in, text_of
from workbook.classroom.export.saved_notebooks import read_folder
from workbook.classroom.study import copy
from workbook.classroom.study.answers import MIME
from workbook.classroom.study.progress import Progress
from workbook.tokenization import bpe
from workbook.transformer import nn


@pytest.mark.slow
def test_a_study_folder_is_exported_with_their_answers_and_code_and_nothing_of_ours(tmp_path):
    folder = tmp_path / "study"
    build = tmp_path / "build"
    copy.make_copies(folder)
    path = folder / "01_unicode.ipynb"
    filled = json.loads(path.read_text("utf-8"))
    for stored in filled["cells"]:
        about = stored["metadata"].get("workbook", {})
        role, problem, part = map(about.get, ("role", "problem", "part"))
        if role == "answer" and part in ("a", "b"):
            stored["outputs"] = answered(problem, part, f"MY WORDS on {part}.")["outputs"]
        elif role == "look_up":
            folded = "<details>OURS, looked up</details>"
            stored["outputs"] = [shown(markdown=folded, plain="OURS")]
    learner(folder, passed={"train_bpe": "def train_bpe(path):\n    return MY_CODE, []\n"})
    path.write_text(json.dumps(filled), "utf-8")
    assert export(folder, to=build)[0].startswith("Write-up, edition 2025")
    text = (build / "writeup.md").read_text("utf-8")
    for page in (text, (build / "writeup.html").read_text("utf-8")):
        assert "WORDS on a" in page and "WORDS on b" in page and "MY_CODE" in page
    assert "answered: a, b; unanswered: c" in text
    with zipfile.ZipFile(build / "code.zip") as archive:
        assert archive.namelist() == ["train_bpe.py"]
        assert b"MY_CODE" in archive.read("train_bpe.py")
    ours = read_folder(config.shipped() / "notebooks").answers
    assert len(ours) > 10 and not any(answer.text[:40] in text for answer in ours)
    assert "OURS" not in text and "reference" not in text.lower()
    assert "which character" not in text.lower(), "the prompts are ours too"
    assert not list((build / "figures").glob("*"))


CODE = "# softmax, kept when its check said correct\nimport math\n\nsoftmax = math.exp\n"


def test_a_copy_under_any_name_exports_as_itself_even_if_it_is_only_the_notebooks(tmp_path):
    right = {"problem": "softmax", "status": "correct", "source": CODE, "trouble": ""}
    records = [{"part": None, **right}, {"part": None, "problem": "rope", "status": "wrong"}]
    outputs = [{"output_type": "execute_result", "data": {CHECK_MIME: one}} for one in records]
    answer = answered("unicode1", "a", "It is NUL.", verdict="correct")
    study = learner(tmp_path / "study", answer, cell("check", *outputs), passed={"softmax": CODE})
    with Progress(study).changing("rope", None) as part:
        part.reach("wrong")
    (study / "mine").mkdir()
    (study / "mine" / "softmax.py").write_text(CODE)
    whole = status.assess(study, "2025", prove=True)
    assert "1 wrong" in whole.summary and "1 code correct" in whole.summary
    study = study.rename(tmp_path / "a copy of mine")
    for lost in (None, ".workbook", "mine"):
        if lost:
            shutil.rmtree(study / lost)
        left = status.assess(study, "2025", prove=True)
        assert whole.entries == left.entries and whole.summary == left.summary
        assert "import math" in text_of(compose(left).blocks)


def test_our_answers_are_left_out_however_they_came_there(tmp_path):
    ours = read_folder(config.shipped() / "notebooks").answers[0]
    titled = f"Our answer to unicode1 (a)\n\n{ours.text}"
    folded = shown(markdown=f"<details><summary>Our answer</summary>\n\n{ours.text}</details>")
    for text, outputs, source in [
        (ours.text, [], "answer(...)"),
        ("The numbers of another machine.", [], ours.source),
        (titled, [], "answer(...)"),
        ("My words.", [printed(titled), folded], "answer(...)"),
    ]:
        learner(tmp_path, answered("unicode1", "a", text, *outputs, source=source))
        write_up = status.assess(tmp_path, "2025")
        exported = text_of(compose(write_up).blocks)
        assert "null" not in exported and "control character" not in exported
        is_mine = text == "My words."
        assert (text in exported) == is_mine
        assert any("the workbook's own answer" in line for line in write_up.notes) != is_mine


def test_no_name_of_a_file_in_code_zip_leads_out_of_it(tmp_path):
    for name, is_taken in (("nn.softmax", True), ("../../x", False), ("/x", False)):
        code = shown(plain=f"# {name}\nx = 1")
        notebook(tmp_path / "01.ipynb", cell("1", code, role="reveal", problem="softmax"))
        assert bool(read_folder(tmp_path).revealed) == is_taken


def test_code_that_is_ours_or_was_never_correct_is_not_exported(tmp_path):
    ours = f"import regex\n\n{inspect.getsource(bpe.train_bpe)}\n\n__all__ = ['train_bpe']\n"
    own = "def solved(x):\n    return x\n" * 20 + inspect.getsource(nn.silu)  # one helper is ours
    passed = {"train_bpe": ours, "positionwise_feedforward": own}
    folder = learner(tmp_path, cell("1"), passed=passed)
    with Progress(folder).changing("softmax", None) as part:
        part.reach("wrong")
    write_up = status.assess(folder, "2025")
    listed = [entry.id for entry in write_up.entries if entry.listings]
    assert listed == ["positionwise_feedforward"]
    (softmax,) = (entry for entry in write_up.entries if entry.id == "softmax")
    assert softmax.in_words == status.WRONG and "softmax: wrong" in write_up.missing
    assert any("train_bpe is the package's own code" in note for note in write_up.notes)


def test_a_copy_of_the_worked_notebooks_is_the_reference_wherever_it_lies(tmp_path):
    worked = config.shipped() / "notebooks" / "01_unicode.ipynb"
    (tmp_path / "01_unicode.ipynb").write_bytes(worked.read_bytes())
    assert status.assess(tmp_path, "2025").is_reference
    (tmp_path / ".workbook").mkdir()
    copied = status.assess(tmp_path, "2025")
    assert not copied.is_reference and not any(entry.answers for entry in copied.entries)


def test_what_the_cell_shows_beside_the_answer_is_exported_in_its_order(tmp_path):
    head = "<table><thead><tr><th></th><th>ids</th></tr></thead>"
    table = shown(html=f"{head}<tr><th>a</th><td>1</td></tr></table><div>BESIDE</div>", plain="ids")
    learner(tmp_path, answered("unicode1", "a", "Look:", table))
    blocks = compose(status.assess(tmp_path, "2025")).blocks
    tables = [item for item in nodes_in(blocks) if item["t"] == "Table"]
    assert len(tables) == 2 and text_of(tables[1]).split() == ["ids", "a", "1"]
    assert tables[1]["c"][2][1][0]["t"] == "AlignRight"
    assert not [block for block in blocks if block["t"] == "Plain"], "it would run into the next"


def test_what_the_check_said_below_an_answer_is_not_exported(tmp_path):
    data = {"text/html": "<p>JUDGED</p>", "text/plain": "JUDGED", CHECK_MIME: {"status": "read"}}
    panel = {"output_type": "display_data", "data": data}
    learner(tmp_path, answered("unicode1", "b", "It shows an escape.", panel, panel))
    text = text_of(compose(status.assess(tmp_path, "2025")).blocks)
    assert "shows an escape" in text and "JUDGED" not in text


NO_FOLDERS = [
    (None, "has no notebooks; name the folder"),
    ({"a.ipynb": '{"cells": [{"cell'}, r"a.ipynb cannot be read as a notebook \(Unterminated"),
    ({"a.ipynb": "[]"}, "no list of cells, as notebooks of format 4 have"),
    ({"a.ipynb": None}, r"a.ipynb cannot be read as a notebook \(.*irectory.*\); open it"),
]


@pytest.mark.parametrize(("content", "message"), NO_FOLDERS)
def test_what_is_no_folder_of_notebooks_is_told_in_one_line(tmp_path, capsys, content, message):
    folder = tmp_path / "here"
    for name, text in ({} if content is None else {"": None, **content}).items():
        (folder / name).mkdir() if text is None else (folder / name).write_text(text)
    assert cli.main(["export", str(folder), "--to", str(tmp_path / "build")]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and said.count("\n") == 1


def test_a_notebook_that_cannot_be_read_is_left_aside_and_hidden_files_are_none(tmp_path, capsys):
    folder = learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    whole = (folder / "01_unicode.ipynb").read_text("utf-8")
    for name, text in {
        "._01_unicode.ipynb": "x\0",
        ".~01_unicode.ipynb": "",
        "02_bpe.ipynb": whole[: len(whole) // 2],
        "03_transformer.ipynb": f"<<<<<<< HEAD\n{whole}",
        "04_accounting.ipynb": "",
    }.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "05_optimizer.ipynb").symlink_to("nowhere")
    assert cli.main(["export", str(folder), "--to", str(tmp_path / "build")]) == 0
    said = capsys.readouterr().err
    named = re.findall(r"left aside: \S+/(\S+) cannot be read", said)
    assert [name[:2] for name in named] == ["02", "03", "04", "05"]
    assert "It is NUL." in (tmp_path / "build" / "writeup.md").read_text("utf-8")
    with pytest.raises(ValueError, match="nothing was written") as error:
        export(folder, strict=True, to=tmp_path / "strict")
    assert "02_bpe.ipynb cannot be read" in str(error.value)
    assert "._01" not in str(error.value) and not (tmp_path / "strict").exists()


NONE_OF_OURS = [
    [],
    {"problem": "\x1b[2J", "status": "correct", "source": "x"},
    {"problem": "unicode1", "part": {}, "status": ["correct"], "source": {"a": 1}},
    {"problem": "unicode1", "part": "a", "text": "x", "edition": "1999", "profile": "laptop"},
    {"problem": "unicode1", "part": None, "text": "x", "edition": "2025", "profile": "laptop"},
]


@pytest.mark.parametrize("record", NONE_OF_OURS)
def test_a_record_that_is_none_of_ours_is_left_out_and_named(tmp_path, record):
    outputs = [{"output_type": "display_data", "data": {one: record}} for one in (MIME, CHECK_MIME)]
    saved = read_folder(learner(tmp_path, cell("x", *outputs)))
    assert saved.answers == [] and saved.checks == {}
    assert len(saved.notes) == 1 and "cannot be read" in saved.notes[0]
    assert saved.notes[0].isprintable()


@pytest.mark.parametrize("junk", [None, 3, "x", {}, [None], [{"data": 3}], [{"data": {"a": [1]}}]])
def test_cells_of_any_shape_are_survived(tmp_path, junk):
    odd = {"cell_type": "code", "source": junk, "outputs": junk, "metadata": junk}
    mark = {"workbook": {"role": "answer", "problem": junk, "part": junk}}
    notebook(tmp_path / "a.ipynb", odd, {**odd, "metadata": mark}, {"cell_type": "code"})
    assert status.assess(tmp_path, "2025").saved.answers == []


def test_a_notebook_of_megabytes_is_no_burden(tmp_path):
    noise = printed("a line that nobody needs\n" * 80_000)
    table = "<table>" + "<tr><td>1</td></tr>" * 10_000 + "</table>"
    beside = [noise, shown(html=table, plain="1")]
    folder = learner(tmp_path, cell("x", noise), answered("unicode1", "a", "Yes.", *beside))
    assert (folder / "01_unicode.ipynb").stat().st_size > 4_000_000
    blocks = json.dumps(compose(status.assess(folder, "2025")).blocks)
    assert len(blocks) < 400_000 and "79,940 more lines" in blocks
