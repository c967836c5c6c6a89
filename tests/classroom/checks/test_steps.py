"""The optional steps: right ones pass, usual mistakes are named, and nothing of it is counted."""

import pytest
from attempts.steps import RIGHT, WRONG, changed

from workbook import check, harden, hint
from workbook.classroom.problems import PROBLEMS, STEPS


def test_each_step_leads_to_a_problem_of_its_notebook_and_has_a_hint():
    assert STEPS.keys() == RIGHT.keys() and not STEPS.keys() & PROBLEMS.keys()
    for name, step in STEPS.items():
        assert PROBLEMS[step.step_of].notebook == step.notebook and not any(step.points.values())
        assert step.hints[""][0] in str(hint(name))


def test_right_steps_pass_and_stubs_are_told_how_to_begin(judged_here):
    for name, right in RIGHT.items():
        assert check(name, right).status == "correct", name
        assert check(name, None).status == "not attempted", name


@pytest.mark.parametrize(("name", "old", "new", "words"), WRONG)
def test_usual_mistakes_are_named(judged_here, name, old, new, words):
    report = check(name, changed(name, old, new))
    assert report.status == "wrong" and words in str(report), report


@pytest.mark.slow
def test_a_step_is_neither_counted_nor_kept(tmp_path, monkeypatch, capsys):
    (tmp_path / ".workbook").mkdir()
    monkeypatch.chdir(tmp_path)
    assert check("merge_pair", RIGHT["merge_pair"]).status == "correct"
    assert [*tmp_path.iterdir()] == [tmp_path / ".workbook"] and not [*tmp_path.glob("*/*")]
    harden("merge_pair")
    assert "train_bpe" in capsys.readouterr().out
