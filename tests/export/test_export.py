"""The write-up of both editions: states, order, what is refused, what `--strict` demands."""

import re
from itertools import pairwise

import pytest
from export_folders import answered, learner, notebook, png, shown

from workbook import cli, config
from workbook.export import document, export, pandoc, states
from workbook.export.pandoc import nodes_in, text_of
from workbook.study import problems


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The reference write-up of each edition, and what the command said."""
    to = {edition: tmp_path_factory.mktemp(edition) for edition in config.EDITIONS}
    return {edition: (to[edition], export(edition=edition, to=to[edition])) for edition in to}


def states_of(folder, edition="2025"):
    """The state of each problem that is not unanswered, by its id."""
    entries = states.assess(folder, edition).entries
    return {e.problem.id: e.in_words for e in entries if e.in_words != states.UNANSWERED}


@pytest.mark.parametrize("edition", config.EDITIONS)
def test_every_problem_comes_in_the_order_of_the_handout_with_points_and_state(written, edition):
    text = (written[edition][0] / "writeup.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(\w+)`\]\(#[\w-]+\) \| [^|]+ \| (\S+) \| (.+) \|$", text, re.M)
    expected = problems.PROBLEMS.values()
    assert [id for id, _, _ in rows] == [problem.ids[edition] for problem in expected]
    points = [problem.points[edition] for problem in expected]
    assert [row[1] for row in rows] == ["—" if each is None else str(each) for each in points]
    headings = [text.index(f"### `{problem.ids[edition]}`") for problem in expected]
    assert all(one < next for one, next in pairwise(headings))
    states_in_table = {id: state for id, _, state in rows}
    assert states_in_table["unicode1"] == "✓ answered"
    assert states_in_table["train_bpe"] == "✓ code correct"
    assert states_in_table["tokenizer_experiments"] == "≈ answered on a stand-in corpus"


def test_the_reference_says_what_it_is_and_shows_answers_figures_and_code(written):
    folder, said = written["2025"]
    text = (folder / "writeup.md").read_text(encoding="utf-8")
    before, _, after = text.partition("| Problem")
    assert "reference write-up" in before and "follow their course's policy" in before
    assert "U+0000" in after and "def train_bpe(" in after and "**Figure 1.**" in after
    assert said[0].startswith("Reference write-up, edition 2025: 38 problems")
    assert list((folder / "figures").iterdir())


def test_the_edition_chooses_ids_and_points(written):
    old, new = ((written[e][0] / "writeup.md").read_text(encoding="utf-8") for e in config.EDITIONS)
    assert "`adamwAccounting`" in old and "`adamwAccounting`" not in new
    assert "`adamw_accounting`" in new and "edition 2026" in new


def test_parts_that_are_missing_are_named_and_stand_ins_marked(tmp_path):
    basis = {"corpora": [{"name": "stories", "bytes": None}], "stand_in": True}
    learner(
        tmp_path,
        answered("unicode1", "a", "It is NUL."),
        answered("unicode1", "c", "It stays."),
        answered("train_bpe_tinystories", "a", "It took 5 s and 47 MB.", **basis),
        answered("train_bpe_tinystories", "b", "The merges.", **basis),
        answered("learning_rate_tuning", None, "They grow."),
        answered("unicode2", "a", "  "),
        passed={"softmax": "def softmax(x, dim):\n    return x\n"},
    )
    assert states_of(tmp_path) == {
        "unicode1": "answered: a, c; unanswered: b",
        "train_bpe_tinystories": "answered on a stand-in corpus",
        "softmax": "code correct",
        "learning_rate_tuning": "answered",
    }


def test_strict_lists_what_is_missing_and_writes_nothing(tmp_path):
    folder = learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    with pytest.raises(ValueError, match="this is missing") as error:
        export(folder, strict=True, to=tmp_path / "build")
    listed = str(error.value)
    assert "unicode1 (b): unanswered" in listed and "train_bpe: unanswered" in listed
    assert "unicode1 (a)" not in listed
    assert not (tmp_path / "build").exists()


def test_strict_is_content_with_a_whole_write_up(tmp_path):
    basis = {"corpora": [{"name": "stories", "bytes": None}], "stand_in": True}
    said = "5 s, 47 MB, 2 MB/s, `b'x'`, 64 and 128, loss 1.40 before the end of text, 3 days"
    cells = [
        answered(problem.id, part, said, shown(png=png(), alt="A curve."), figure=True, **basis)
        for problem in problems.PROBLEMS.values()
        if problem.kind == "written"
        for part in problem.parts or [None]
    ]
    code = [problem.id for problem in problems.PROBLEMS.values() if problem.kind == "code"]
    passed = {id: f"def solution_of_{id}():\n    return 1\n" for id in code}
    learner(tmp_path / "study", *cells, passed=passed)
    said = export(tmp_path / "study", strict=True, to=tmp_path / "build")
    assert "unanswered" not in said[0] and len(said) == 2


def test_an_answer_that_falls_short_is_named(tmp_path):
    story = "> Once upon a time there was a dog who liked the sun.\n\nFluent, and it is short."
    learner(tmp_path, answered("generate", None, story))
    write_up = states.assess(tmp_path, "2025")
    assert any(
        re.fullmatch(r"generate: the text has about \d+ tokens, asked are 256 .*", line)
        for line in write_up.missing
    )
    assert "short of what is asked" in states_of(tmp_path)["generate"]


@pytest.mark.parametrize("what", ["edition", "profile"])
def test_mixed_answers_are_refused_by_name(tmp_path, what):
    other = {"edition": "2026", "profile": "full"}[what]
    learner(
        tmp_path,
        answered("unicode1", "a", "One."),
        answered("unicode1", "b", "Two.", **{what: other}),
    )
    with pytest.raises(ValueError, match=rf"mix {what}s .*unicode1 \(a\).*'{other}': unicode1 \(b"):
        export(tmp_path, to=tmp_path / "build")


def test_answers_for_both_editions_side_by_side_are_no_mixture(tmp_path):
    learner(
        tmp_path,
        answered("unicode1", "a", "The same in both."),
        answered("adamwAccounting", "d", "5,115 days"),
        answered("adamwAccounting", "d", "4,850 hours", edition="2026"),
    )
    for edition, said in (("2025", "5,115 days"), ("2026", "4,850 hours")):
        entries = {e.problem.id: e for e in states.assess(tmp_path, edition).entries}
        assert entries["adamwAccounting"].answers["d"].text == said
        assert "a" in entries["unicode1"].answers


def test_an_answer_that_differs_between_editions_counts_for_its_own_only(tmp_path):
    learner(tmp_path, answered("adamwAccounting", "d", "5,115 days"))
    write_up = states.assess(tmp_path, "2026")
    assert not any(entry.answers for entry in write_up.entries)
    assert any("edition 2025 only" in note for note in write_up.notes)


def test_the_last_answer_counts(tmp_path):
    learner(tmp_path, answered("unicode1", "a", "First."), answered("unicode1", "a", "Second."))
    write_up = states.assess(tmp_path, "2025")
    assert write_up.entries[0].answers["a"].text == "Second."
    assert any("more than once" in note for note in write_up.notes)


def test_what_the_cell_shows_beside_the_answer_is_exported_in_its_order(tmp_path):
    table = (
        "<table><thead><tr><th></th><th>ids</th></tr></thead><tr><th>a</th><td>1</td></tr></table>"
    )
    learner(tmp_path, answered("unicode1", "a", "Look:", shown(html=table, plain="ids")))
    composed = document.compose(states.assess(tmp_path, "2025"))
    tables = [item for item in nodes_in(composed.blocks) if item["t"] == "Table"]
    assert len(tables) == 2 and text_of(tables[1]).split() == ["ids", "a", "1"]
    assert tables[1]["c"][2][1][0]["t"] == "AlignRight"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no folder"),
        ({}, "holds no notebook"),
        ({"a.ipynb": '{"cells": [{"cell'}, r"a.ipynb is no whole notebook \(Unterminated string"),
        ({"a.ipynb": "[" * 100_000}, "no whole notebook"),
        ({"a.ipynb": "[]"}, "no notebook of format 4"),
        ({"a.ipynb": '{"nbformat": 4, "cells": [3]}'}, "no list of cells"),
        ({"a.ipynb": None}, r"a.ipynb cannot be read \(.*irectory.*\); open it"),
    ],
)
def test_what_is_no_folder_of_notebooks_is_told_in_one_line(tmp_path, capsys, content, message):
    folder = tmp_path / "here"
    if content is not None:
        folder.mkdir()
        for name, text in content.items():
            if text is None:
                (folder / name).mkdir()
            else:
                (folder / name).write_text(text)
    assert cli.main(["export", str(folder), "--to", str(tmp_path / "build")]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said) and said.count("\n") == 1


def test_a_place_where_nothing_can_be_written_is_named(tmp_path, capsys):
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    (tmp_path / "file").touch()
    (tmp_path / "build" / "writeup.pdf").mkdir(parents=True)
    for to in ("file", "file/sub", "build"):
        assert cli.main(["export", str(tmp_path / "study"), "--to", str(tmp_path / to)]) == 2
        said = capsys.readouterr().err
        assert f"cannot be written to {tmp_path / to} (" in said and said.count("\n") == 1
        assert "name another folder (--to)" in said


def test_an_unknown_edition_is_told_what_it_may_be(capsys):
    assert cli.main(["export", "--edition", "2027"]) == 2
    assert "no edition '2027'; pick one of 2025, 2026" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["pypandoc", "typst"])
def test_without_the_extra_the_way_to_install_it_is_told(monkeypatch, tmp_path, missing):
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(ValueError, match=r'needs \w+, .* pip install -e "\.\[export\]"'):
        export(notebook(tmp_path / "a.ipynb").parent)
    assert pandoc.INSTALL.endswith('".[export]"')
