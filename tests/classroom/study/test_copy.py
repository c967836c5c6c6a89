"""The learner's copy: made once, never overwritten, solved, and started over problem by problem."""

import re
from copy import deepcopy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from workbook import config
from workbook.classroom.study import copy as study
from workbook.classroom.study import notebooks, update
from workbook.classroom.study.notebooks import role
from workbook.classroom.study.progress import Progress

STUB = '''def train_bpe(input_path, vocab_size, special_tokens):
    """The vocabulary and the merges."""
    raise NotImplementedError'''
SOLVED = '''def train_bpe(input_path, vocab_size, special_tokens):
    """Mine, and right."""
    return bpe.train_bpe(input_path, vocab_size, special_tokens)'''


def cell(source, role, problem=None, part=None):
    """A cell that ran, with what the workbook notes of it."""
    about = {"role": role, "problem": problem, "part": part}
    metadata = {"workbook": {key: value for key, value in about.items() if value}}
    if role in ("prose", "prompt"):
        return new_markdown_cell(source, metadata=metadata)
    shown = [new_output("stream", name="stdout", text="what it printed\n")]
    return new_code_cell(source, metadata=metadata, outputs=shown, execution_count=1)


WORKED = [
    cell("# Two problems", "prose"),
    cell(
        "from workbook import answer, check\nfrom workbook.tokenization import bpe\n\nTWO = 2",
        "setup",
    ),
    cell("## unicode2", "prompt", "unicode2"),
    cell("my_bytes = ...", "try", "unicode2", "c"),
    cell('check("unicode2", my_bytes, part="c")', "check", "unicode2", "c"),
    cell("n = 2", "evidence", "unicode2", "c"),
    cell('answer("unicode2", "c", f"OUR {n}.", corpora=[])', "answer", "unicode2", "c"),
    cell("## train_bpe", "prompt", "train_bpe"),
    cell(STUB, "try", "train_bpe"),
    cell('check("train_bpe", train_bpe)', "check", "train_bpe"),
    cell("len('evidence')", "evidence", "train_bpe"),
    cell('answer("train_bpe", None, "OUR summary.")', "answer", "train_bpe"),
]
WHERE = ("01_unicode", "02_bpe")  # unicode2 is worked in one, train_bpe in the other


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The study folder of a checkout in which both problems stand in both notebooks."""
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)  # the real checkout may hold a study folder, which would be nearer
    (tmp_path / "notebooks").mkdir()
    for name in WHERE:
        worked = notebooks.normalise(new_notebook(cells=deepcopy(WORKED)))
        notebooks.write_notebook(tmp_path / "notebooks" / f"{name}.ipynb", worked)
    return tmp_path / "study"


def change(path, sources):
    """Write into cells of a notebook, found by their ids, as JupyterLab would."""
    notebook = notebooks.read_notebook(path)
    for name, source in sources.items():
        next(c for c in notebook.cells if c.id == name).source = source
    notebooks.write_notebook(path, notebook)


def sources(path):
    return {cell.id: cell.source for cell in notebooks.read_notebook(path).cells}


def test_a_copy_has_stubs_no_outputs_and_our_answers_folded_away(folder):
    study.make_copies()
    copy = notebooks.read_notebook(folder / "02_bpe.ipynb")
    assert all(c.outputs == [] and c.execution_count is None for c in copy.cells if "outputs" in c)
    by_role = {role(c): c.source for c in copy.cells}
    assert by_role["try"] == STUB
    assert by_role["answer"] == 'answer("unicode2", "c", """\n""", corpora=[])'
    assert by_role["look_up"] == 'look_up("unicode2", "c")'
    assert by_role["evidence"] == "len('evidence')"
    assert "OUR" not in "".join(sources(folder / "02_bpe.ipynb").values())
    verbs, ours, more, *rest = by_role["setup"].splitlines()
    assert verbs == "from workbook import answer, check" and ours.endswith("import bpe")
    assert more.startswith("from workbook import look_up, tick  # ") and rest == ["", "TWO = 2"]
    roles = [role(c) for c in copy.cells]
    assert roles[roles.index("answer") + 1] == "look_up"
    assert roles[-1] == "evidence", "a code problem is answered in code"


def test_what_the_learner_wrote_is_never_overwritten_and_new_notebooks_are_added(folder, capsys):
    newcomer = config.shipped() / "notebooks" / "02_bpe.ipynb"
    later = newcomer.read_bytes()
    newcomer.unlink()
    assert [path.name for path in study.make_copies()] == ["01_unicode.ipynb"]
    (folder / "01_unicode.ipynb").write_bytes(b"mine, even if it is no notebook")
    newcomer.write_bytes(later)
    assert [path.name for path in study.make_copies()] == ["02_bpe.ipynb"]
    assert study.make_copies() == []
    assert (folder / "01_unicode.ipynb").read_bytes() == b"mine, even if it is no notebook"
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == ["study/01_unicode.ipynb", "study/02_bpe.ipynb"]


def test_starting_over_changes_one_problem_and_loses_nothing(folder, capsys, monkeypatch):
    study.make_copies()
    path = folder / "02_bpe.ipynb"
    change(path, {"train_bpe-try": SOLVED, "unicode2-answer-c": 'answer("unicode2", "c", "Mine.")'})
    before = sources(path)
    update.reset("train_bpe")
    after = sources(path)
    assert [name for name in before if before[name] != after[name]] == ["train_bpe-try"]
    assert after["train_bpe-try"] == STUB and list(before) == list(after)
    monkeypatch.chdir(folder)
    update.reset("train_bpe")
    first, second = sorted((folder / ".workbook" / "backup").glob("train_bpe-*.ipynb"))
    assert SOLVED in sources(first).values() and STUB in sources(second).values()
    assert str(first) in capsys.readouterr().out


def test_starting_over_finds_cells_that_were_moved_split_or_deleted(folder):
    study.make_copies()
    path = folder / "01_unicode.ipynb"
    notebook = notebooks.read_notebook(path)
    by_id = {c.id: c for c in notebook.cells}
    mine = new_code_cell("# my own cell")
    split = new_code_cell("# its second half", metadata=by_id["unicode2-try-c"].metadata)
    by_id["unicode2-try-c"].source = "# its first half"
    kept = [c for c in notebook.cells if c.id not in ("unicode2-answer-c", "unicode2-try-c")]
    notebook.cells = [by_id["unicode2-try-c"], split, mine, *kept]
    notebooks.write_notebook(path, notebook)
    update.reset("unicode2")
    after = list(sources(path).items())
    assert after[:2] == [("unicode2-try-c", "my_bytes = ..."), (mine.id, "# my own cell")]
    names = [name for name, _ in after]
    assert split.id not in names
    evidence = next(n for n in names if re.match("unicode2-evidence", n))
    assert names.index("unicode2-answer-c") == names.index(evidence) + 1


def test_starting_over_takes_either_spelling_and_tells_what_is_missing(folder):
    with pytest.raises(ValueError, match="did you mean 'train_bpe'"):
        update.reset("train_bep")
    with pytest.raises(ValueError, match="workbook lab"):
        update.reset("train_bpe")
    with pytest.raises(ValueError, match="no notebook '04_accounting'"):
        update.reset("adamw_accounting")


def test_a_study_is_made_solved_checked_and_started_over(folder):
    study.make_copies()
    path = folder / "02_bpe.ipynb"
    # Calling the workbook's own trainer gives the right values, but is not from scratch.
    for trainer, letters in (("not attempted", "not attempted"), ("almost", "correct")):
        done = notebooks.execute(path)
        shown = {c.id: str(c.outputs) for c in done.cells if c.cell_type == "code"}
        assert trainer in shown["train_bpe-check"]
        assert letters in shown["unicode2-check-c"]
        written = {
            "train_bpe-try": SOLVED,
            "unicode2-try-c": 'my_bytes = b"\\xc3\\x28"',
            "unicode2-answer-c": 'answer("unicode2", "c", "Two bytes, one out of place.")',
        }
        change(path, written)
    record = Progress(folder).read()
    assert SOLVED in record["train_bpe"][""].source and record["train_bpe"][""].best == "almost"
    assert "from workbook.tokenization import bpe\n" in record["train_bpe"][""].source
    assert record["unicode2"]["c"].answered and record["unicode2"]["c"].best == "correct"
    kept = (folder / "mine" / "train_bpe.py").read_text()
    update.reset("train_bpe")
    [backup] = (folder / ".workbook" / "backup").glob("train_bpe-*.py")
    assert backup.read_text() == kept and not list((folder / "mine").iterdir())
    assert set(Progress(folder).read()) == {"unicode2"}
