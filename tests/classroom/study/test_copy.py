"""The learner's copy: made once, never overwritten, brought up to date, solved, started over."""

import json
import os
from collections import Counter
from copy import deepcopy

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from workbook import config
from workbook.classroom import cli
from workbook.classroom.study import copy as study
from workbook.classroom.study import notebooks, update
from workbook.classroom.study.notebooks import role
from workbook.classroom.study.progress import Progress

STUB = "def train_bpe(input_path, vocab_size, special_tokens):\n    raise NotImplementedError"
SOLVED = STUB.replace("raise NotImplementedError", "return {}, []")
SETUP = "from workbook import answer, check\nfrom workbook.tokenization import bpe\n\nTWO = 2"


def cell(source, role=None, problem=None, part=None):
    """A cell with what the workbook notes of it."""
    about = {"role": role, "problem": problem, "part": part}
    metadata = {"workbook": {key: value for key, value in about.items() if value}}
    make = new_markdown_cell if role in ("prose", "prompt") else new_code_cell
    return make(source, metadata=metadata)


WORKED = [
    cell("# BPE", "prose"),
    cell(SETUP, "setup"),
    cell("## unicode1\n\nWhich?", "prompt", "unicode1"),
    cell("found = ...", "try", "unicode1", "a"),
    cell('check("unicode1", found, part="a")', "check", "unicode1", "a"),
    cell('answer("unicode1", "a", f"OURS {2}.", corpora=[])', "answer", "unicode1", "a"),
    cell("What to notice", "prose"),
    cell("2 + 2", "evidence"),
    cell("## train_bpe", "prompt", "train_bpe"),
    cell(STUB, "try", "train_bpe"),
    cell('check("train_bpe", train_bpe)', "check", "train_bpe"),
    cell('answer("train_bpe", None, "OURS.")', "answer", "train_bpe"),
    cell("2 + 2", "evidence"),
]
WORKED[7].outputs = [new_output("stream", text="ran\n")]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one notebook and the study folder of it."""
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))  # as the command line does
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebooks").mkdir()
    publish(tmp_path, WORKED)
    study.make_copies()
    return tmp_path


def publish(checkout, cells, name="02_bpe"):
    """Store a version of a worked notebook, as `git pull` does."""
    worked = notebooks.normalise(new_notebook(cells=deepcopy(cells)))
    notebooks.write_notebook(checkout / "notebooks" / f"{name}.ipynb", worked)


def revised(**texts):
    """The worked cells, some with another text: named by their ids."""
    cells = notebooks.normalise(new_notebook(cells=deepcopy(WORKED))).cells
    for cell in cells:
        cell.source = texts.pop(cell.id.replace("-", "_"), cell.source)
    assert not texts
    return cells


def learners(checkout):
    return notebooks.read_notebook(checkout / "study" / "02_bpe.ipynb")


def save(checkout, notebook):
    notebooks.write_notebook(checkout / "study" / "02_bpe.ipynb", notebook)


def by_id(notebook):
    return {cell.id: cell for cell in notebook.cells}


def test_a_copy_has_stubs_no_outputs_and_our_answers_folded_away(checkout):
    copy = learners(checkout)
    assert copy.metadata.workbook.notebook == "02_bpe"
    assert all(cell.outputs == [] for cell in copy.cells if "outputs" in cell)
    by_role = {role(cell): cell.source for cell in reversed(copy.cells)}
    assert by_role["answer"] == 'answer("unicode1", "a", """\n""", corpora=[])'
    assert by_role["look_up"] == 'look_up("unicode1", "a")'
    assert by_role["evidence"] == "2 + 2" and STUB in [cell.source for cell in copy.cells]
    assert "OURS" not in str(copy)
    verbs, ours, more, *rest = by_role["setup"].splitlines()
    assert [verbs, ours] == SETUP.splitlines()[:2] and rest == ["", "TWO = 2"]
    assert more.startswith("from workbook import examples, look_up, tick  # ")
    roles = [role(cell) for cell in copy.cells]
    assert roles[roles.index("answer") + 1] == "look_up"
    assert roles.count("answer") == 1, "a code problem is answered in code"
    for cell in copy.cells:
        assert ("your-turn" in cell.metadata.get("tags", [])) == (role(cell) in study.STUBS)
    notes = {cell.metadata.workbook.original for cell in copy.cells}
    assert len(notes) == len(copy.cells), "two cells of one text are told apart"
    assert update.notices(checkout / "study") == []


def test_what_the_learner_wrote_is_never_overwritten_and_new_notebooks_are_added(checkout, capsys):
    mine = checkout / "study" / "02_bpe.ipynb"
    mine.write_bytes(b"mine, even if it is no notebook")
    publish(checkout, WORKED, "03_transformer")
    assert [path.name for path in study.make_copies()] == ["03_transformer.ipynb"]
    assert study.make_copies() == [] and mine.read_bytes() == b"mine, even if it is no notebook"
    assert capsys.readouterr().out.startswith("study/03_transformer.ipynb")


def test_starting_over_changes_one_problem_and_loses_nothing(checkout, capsys, monkeypatch):
    folder = checkout / "study"
    notebook = learners(checkout)
    cells = by_id(notebook)
    cells["train_bpe-try"].source = SOLVED
    cells["unicode1-answer-a"].source = "mine"
    about = cells["train_bpe-try"].metadata  # what was split off belongs to the problem as well
    notebook.cells.append(new_code_cell("# second half", metadata=about, id="split-off"))
    save(checkout, notebook)
    for problem in ("train_bpe", "unicode1"):
        with Progress(folder).changing(problem, None) as part:
            part.reach("correct")
    (folder / "mine").mkdir()
    (folder / "mine" / "train_bpe.py").write_text(SOLVED)
    before = by_id(learners(checkout))
    update.reset("train_bpe")
    after = by_id(learners(checkout))
    assert list(before) == [*after, "split-off"] and after["train_bpe-try"].source == STUB
    assert [name for name in after if before[name] != after[name]] == ["train_bpe-try"]
    assert set(Progress(folder).read()) == {"unicode1"}
    monkeypatch.chdir(folder)
    update.reset("train_bpe")
    backups = sorted((folder / ".workbook" / "backup").glob("train_bpe-*.ipynb"))
    kept = [by_id(notebooks.read_notebook(path))["train_bpe-try"].source for path in backups]
    assert kept == [SOLVED, STUB] and str(backups[0]) in capsys.readouterr().out
    code = backups[0].with_suffix(".py")
    assert code.read_text() == SOLVED and not list((folder / "mine").iterdir())

    notebook = learners(checkout)
    notebook.cells.remove(by_id(notebook)["train_bpe-try"])
    save(checkout, notebook)
    publish(checkout, revised(train_bpe_check="newer"))
    later = Progress(folder).path
    later.write_text('{"version": 99}')
    unchanged = (folder / "02_bpe.ipynb").read_bytes()
    with pytest.raises(OSError, match="later version"):
        update.reset("train_bpe")
    assert (folder / "02_bpe.ipynb").read_bytes() == unchanged
    later.unlink()
    update.reset("train_bpe")
    assert list(by_id(learners(checkout))) == list(after), "what was deleted comes back"
    assert update.notices(folder) == [], "and the rest is brought up to date"


def test_starting_over_tells_what_is_missing(checkout):
    with pytest.raises(ValueError, match="no notebook '04_accounting'"):
        update.reset("adamw_accounting")
    (checkout / "study" / "02_bpe.ipynb").unlink()
    with pytest.raises(ValueError, match="workbook lab"):
        update.reset("train_bpe")


def test_an_update_takes_what_is_new_and_keeps_what_was_typed(checkout, capsys):
    notebook = learners(checkout)
    cells = by_id(notebook)
    cells["train_bpe-try"].source = SOLVED
    cells["train_bpe-try"].outputs = [new_output("stream", text="ran\n")]
    cells["unicode1-prompt"].source += "\n\nmy note"
    cells["train_bpe-prompt"].source += "\n\nmy other note"
    at = notebook.cells.index(cells["train_bpe-try"])
    notebook.cells.insert(at + 1, new_code_cell("my own cell"))
    save(checkout, notebook)
    before = (checkout / "study" / "02_bpe.ipynb").read_bytes()
    changes = {
        "unicode1_try_a": "found = ...  # a code point",
        "unicode1_prompt": "## unicode1\n\nWhich one?",
        "train_bpe_try": f"{STUB}  # better",
        "train_bpe_check": 'check("train_bpe", train_bpe)  # newer',
    }
    publish(checkout, [*revised(**changes), cell("Takeaways", "prose")])
    (notice,) = update.notices(checkout / "study")
    older = "study/02_bpe.ipynb is older than its original (new or changed cells: 5)"
    assert notice.startswith(older)
    update.update()
    after = learners(checkout)
    ids = [cell.id for cell in after.cells]
    sources = [cell.source for cell in after.cells]
    new = by_id(after)
    assert new["unicode1-try-a"].source == changes["unicode1_try_a"], "an untouched stub"
    kept = new["train_bpe-try"]
    assert kept == {**cells["train_bpe-try"], "metadata": kept.metadata}
    assert sources[ids.index("train_bpe-try") + 1] == "my own cell"
    assert new["train_bpe-check"].source == changes["train_bpe_check"]
    place = ids.index("unicode1-prompt")  # both sides changed it
    assert sources[place - 2].endswith("Which?\n\nmy note")
    ours = "## unicode1\n\n*About 15 minutes*\n\nWhich one?"
    assert sources[place - 1 : place + 1] == [update.NEWER_BELOW, ours]
    assert new["train_bpe-prompt"].source.endswith("my other note"), "only one side changed it"
    assert sources[-1] == "Takeaways" and len(ids) == len(notebook.cells) + 3
    told = capsys.readouterr().out
    assert "Cells kept as you had them: 4, 1 of them above our new version." in told
    (backup,) = (checkout / "study" / ".workbook" / "backup").glob("*")
    assert str(backup) in told and backup.read_bytes() == before
    assert update.notices(checkout / "study") == []


def test_what_is_gone_from_the_original_goes_unless_the_learner_worked_on_it(checkout):
    notebook = learners(checkout)
    by_id(notebook)["train_bpe-try"].source = "solved = True"
    save(checkout, notebook)
    publish(checkout, WORKED[:6])
    assert "cells gone, moved or marked" in update.notices(checkout / "study")[0]
    update.update()
    after = learners(checkout)
    assert [cell.source for cell in after.cells[-2:]][1] == "solved = True"
    assert len(after.cells) == 8


def test_what_another_command_has_updated_is_backed_up_once(checkout, monkeypatch, capsys):
    publish(checkout, revised(train_bpe_try=f"{STUB}  # better"))
    look = update._news

    def and_meanwhile(path, study):
        news = look(path, study)
        monkeypatch.setattr(update, "_news", look)
        update.update()
        return news

    monkeypatch.setattr(update, "_news", and_meanwhile)
    update.update()
    told = capsys.readouterr().out
    assert told.count("is up to date now") == 1 and told.count("is up to date.") == 1
    assert len(list((checkout / "study" / ".workbook" / "backup").iterdir())) == 1


@pytest.mark.parametrize(("notes", "ids"), [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_what_other_programs_drop_loses_nothing_and_doubles_nothing(checkout, notes, ids):
    notebook = json.loads((checkout / "study" / "02_bpe.ipynb").read_bytes())
    typed = {7: "typed", 11: SOLVED, 5: 'answer("unicode1", "a", """It is NUL.""")'}
    for place, source in typed.items():
        notebook["cells"][place]["source"] = source
    notebook["metadata"] = {}
    notebook["nbformat_minor"] = 5 if ids else 4
    for cell in notebook["cells"]:
        cell["metadata"].get("workbook", {}).pop("original")
        if not notes:
            cell["metadata"] = {}
        if not ids:
            del cell["id"]
    (checkout / "study" / "02_bpe.ipynb").write_text(json.dumps(notebook))
    publish(checkout, revised(train_bpe_try=f"{STUB}  # better"))
    assert "new or changed cells: 1)" in update.notices(checkout / "study")[0]
    update.update()
    after = [cell.source for cell in learners(checkout).cells]
    assert set(typed.values()) <= set(after)
    assert after.index('check("train_bpe", train_bpe)') == after.index(SOLVED) + 1
    assert not any("NotImplementedError" in cell or '"""\n"""' in cell for cell in after)
    # Nobody can tell who changed that text: ours is there too, below a line that says so.
    assert len(after) == len(notebook["cells"]) + (2 if ids else 1)
    update.reset("train_bpe")
    assert typed[11] not in [cell.source for cell in learners(checkout).cells]


def test_of_renamed_copies_and_links_the_one_saved_last_counts(checkout):
    path = (checkout / "study" / "02_bpe.ipynb").rename(checkout / "study" / "my bpe.ipynb")
    for name in ("a copy", "z copy"):
        older = path.with_name(f"{name}.ipynb")
        older.write_bytes(path.read_bytes())
        os.utime(older, (0, 0))
    away = path.rename(checkout / "synced.ipynb")
    path.symlink_to(away)
    assert study.make_copies() == []
    publish(checkout, revised(train_bpe_try="newer"))
    update.reset("train_bpe")
    assert path.is_symlink() and notebooks.read_notebook(away).cells[11].source == "newer"
    assert len(update.notices(checkout / "study")) == 2, "the copies are as old as before"


def test_the_command_line_says_what_is_older_and_updates_it(checkout, capsys):
    publish(checkout, revised(train_bpe_check="newer"))
    for command, said in (
        (["study"], "is older than its original (new or changed cells: 1). `workbook"),
        (["study", "--update"], "is up to date now"),
        (["study", "--update"], "study/02_bpe.ipynb is up to date.\n"),
    ):
        assert cli.main(command) == 0
        assert said in capsys.readouterr().out


def test_a_damaged_notebook_is_named_and_the_others_are_updated(checkout):
    path = checkout / "study" / "02_bpe.ipynb"
    other = path.with_name("copied.ipynb")
    other.write_bytes(path.read_bytes())
    publish(checkout, revised(train_bpe_check="newer"))
    path.write_text("<<<<<<< HEAD\n")
    assert f"{path} cannot be read as a notebook" in update.notices(checkout / "study")[0]
    with pytest.raises(ValueError, match=r"02_bpe\.ipynb cannot be read as a notebook"):
        update.update()
    assert notebooks.read_notebook(other).cells[-2].source == "newer"
    assert path.read_text() == "<<<<<<< HEAD\n"


def test_what_stands_in_the_place_of_a_notebook_is_told(checkout):
    path = checkout / "study" / "02_bpe.ipynb"
    folder = checkout / "study"
    cut = path.read_text("utf-8")[:200]
    path.write_text(f"{cut}\n<<<<<<< HEAD\n")
    assert f"{path} cannot be read as a notebook (JSONDecodeError: " in update.notices(folder)[0]
    assert f" line {cut.count(chr(10)) + 2} column 1 (" in update.notices(folder)[0]
    path.unlink()
    path.symlink_to("moved.ipynb")
    said = "cannot be read as a notebook (FileNotFoundError: No such file or directory); move it"
    assert update.notices(folder)[0].startswith(f"{path}, a link to moved.ipynb, {said}")


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has named pipes")
def test_a_pipe_is_no_notebook_and_nobody_waits_for_it(checkout):
    path = checkout / "study" / "02_bpe.ipynb"
    path.unlink()
    os.mkfifo(path)
    assert update.notices(checkout / "study") == []
    with pytest.raises(ValueError, match="there is no notebook '02_bpe'"):
        update.reset("train_bpe")


def test_a_notebook_that_is_saved_meanwhile_is_not_overwritten(checkout, monkeypatch):
    path = checkout / "study" / "02_bpe.ipynb"
    before = path.read_text()
    backup_path = study.backup_path

    def saved_meanwhile(*arguments):
        path.write_text(before + "\n")  # as JupyterLab would
        return backup_path(*arguments)

    monkeypatch.setattr(study, "backup_path", saved_meanwhile)
    with pytest.raises(ValueError, match="changed while it was read"):
        update.reset("train_bpe")
    assert path.read_text() == before + "\n"
    with pytest.raises(ValueError, match="changed while it was read"):  # at the last moment
        notebooks.write_notebook(path, learners(checkout), (1, 1))


# Any history: the original is revised, the learner and their programs do what they like.

SOURCES = ["", "x", "y", "my_x = 1", "plt.show()", "Look at this.", "a\nb"]
ROLES = ["prose", "evidence", "prompt", "try", "check", "reveal", "answer"]
places = st.tuples(*map(st.sampled_from, (ROLES, ["unicode1", "unicode2"], ["a", "b"])))
general = st.tuples(st.sampled_from(["prose", "evidence", "setup"]), st.none(), st.none())
originals = st.lists(st.tuples(general | places, st.sampled_from(SOURCES)), max_size=9)
LEARNERS = ["append", "replace", "delete", "add", "paste", "move"]
PROGRAMS = ["crlf", "drop-id", "drop-note", "strip"]  # what other programs do to a notebook
numbers = st.integers(0, 99)
edits = st.lists(st.tuples(st.sampled_from(LEARNERS + PROGRAMS), numbers, numbers), max_size=8)


def worked(spec):
    """A worked notebook of these cells; no two of them try or answer the same."""
    cells = []
    stubs = set()
    for (kind, problem, part), source in spec:
        if kind in study.STUBS and (kind, problem, part) in stubs:
            continue
        stubs.add((kind, problem, part))
        if kind == "answer":
            source = f'answer("{problem}", "{part}", "{len(source)}")'
        elif kind == "setup":
            source = "import math"
        cells.append(cell(source, kind, problem, part))
    return notebooks.normalise(new_notebook(cells=cells))


def edited(notebook, edits):
    """What a learner and other programs made of a copy, as JSON."""
    notebook = json.loads(nbformat.writes(notebook))
    cells = notebook["cells"]
    for number, (kind, where, to) in enumerate(edits):
        typed = f"typed {number}"
        at = where % (len(cells) + 1)
        if kind == "add":
            cells.insert(at, new_code_cell(typed))
        if at == len(cells):
            continue
        cell = cells[at]
        source = "".join(cell["source"])
        if kind == "append":
            cell["source"] = f"{source}\n{typed}"
        elif kind == "replace":
            cell["source"] = typed
        elif kind == "delete":
            del cells[at]
        elif kind == "paste":
            cells.insert(to % (len(cells) + 1), deepcopy(cell))
            if to % 2:  # some programs give the copy the same id
                cell["id"] = f"pasted-{number}"
        elif kind == "move":
            cells.insert(to % len(cells), cells.pop(at))
        elif kind == "crlf":
            cell["source"] = source.replace("\n", "\r\n")
        elif kind == "drop-id":
            for one in cells:
                one.pop("id", None)
            notebook["nbformat_minor"] = 4
        elif kind == "drop-note":
            for one in cells:
                one["metadata"].get("workbook", {}).pop("original", None)
            notebook["metadata"].pop("workbook", None)
        elif kind == "strip":
            for one in cells:
                one["metadata"] = {}
            notebook["metadata"] = {}
    return notebook


def plain(source):
    return "".join(source).replace("\r\n", "\n").rstrip()


@pytest.mark.slow
@pytest.mark.stress
@settings(max_examples=60 * int(os.environ.get("STRESS", "1")))
@given(originals, originals, st.permutations(range(9)), st.data())
def test_nothing_typed_is_lost_whatever_both_sides_did(tmp_path_factory, old, other, order, data):
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "checkout", lambda: folder)
        (folder / "notebooks").mkdir()
        original = folder / "notebooks" / "01_x.ipynb"
        path = folder / "study" / "01_x.ipynb"
        notebooks.write_notebook(original, worked(old))
        study.make_copies(folder / "study")
        stored = edited(notebooks.read_notebook(path), data.draw(edits))
        path.write_text(json.dumps(stored))
        mixed = [*old, *other]  # the new original has cells of the old one, in any order
        notebooks.write_notebook(original, worked([mixed[i] for i in order if i < len(mixed)]))
        was_old = update.notices(folder / "study")
        update.update(folder=folder / "study")
        result = notebooks.read_notebook(path)
        new = study.fresh(original)
        nbformat.validate(result)
        assert update.notices(folder / "study") == []

        original_texts = {plain(cell.source) for cell in study.copy_of(worked(old)).cells}
        typed = Counter(plain(cell["source"]) for cell in stored["cells"])
        kept = Counter(plain(cell.source) for cell in result.cells)
        for source, count in typed.items():
            assert source in original_texts or kept[source] >= count

        ids = [cell.id for cell in result.cells]
        assert len(set(ids)) == len(ids)
        if was_old:
            assert [cell.id for cell in new.cells] == [i for i in ids if i in by_id(new)]
            for cell in new.cells:
                here = by_id(result)[cell.id]
                assert here.metadata.workbook == cell.metadata.workbook
                assert plain(here.source) in {plain(cell.source), *typed}

        before = path.read_bytes()
        update.update(folder=folder / "study")
        assert path.read_bytes() == before
