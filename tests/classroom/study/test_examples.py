"""`examples`: a test of one's own is tried, told about, kept for pytest, and exported."""

import os
import subprocess
import sys

import pytest
from attempts import own_tests
from attempts import transformer_right_functions as right

from workbook import check, examples
from workbook.classroom import cli
from workbook.classroom.study import progress


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder that we are in."""
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    return tmp_path / "study"


def of_three(softmax):
    x = own_tests.torch.tensor([1.0, 2.0, 3.0])
    assert own_tests.torch.allclose(softmax(x, 0), x.softmax(0))


def stub(softmax):
    """It asserts nothing."""
    ...


def columns(softmax):
    x = own_tests.torch.zeros(2, 4)
    assert softmax(x, 0)[0, 0] == 0.25


def test_a_weak_test_is_accepted_with_an_input_and_no_mistake(study):
    told = str(examples("softmax", of_three))
    assert "✓ test of softmax: accepts what is right" in told
    assert "It accepts two right programs, and catches " in told
    assert "One that got away goes wrong here: softmax(x, dim), x = [1" in told
    assert "overflow" not in told and "Likely" not in told
    assert progress.Progress(study).of("softmax", None).best == "open", "it is worth no points"


def test_once_the_problem_is_solved_what_got_away_is_named(study):
    check("softmax", right.softmax)
    told = str(examples("softmax", of_three))
    assert "What got away:\nexp of a large number overflows" in told


def test_a_wrong_test_is_refused(study):
    told = str(examples("softmax", columns))
    assert "✗ test of softmax: refuses what is right" in told
    assert "Yours expects 0.25; right programs give something else." in told
    assert not (study / "mine").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("softmax", stub), "Nothing was done: `stub` asserts nothing yet"),
        (("softmax", 3), "expected a function that takes the program alone"),
        (
            ("softmax", right.softmax),
            "expected a function that takes the program",
        ),
        (("softmax", lambda softmax: softmax), "expected a function that takes the program alone"),
        (("linear", of_three), "there are no examples to state for linear"),
        (("sofmax", of_three), "did you mean 'softmax'?"),
    ],
)
def test_a_wrong_call_is_answered_in_words(study, capsys, arguments, words):
    examples(*arguments)
    said = capsys.readouterr().out
    assert words in said
    assert ("Write it like this" in said) == ("asserts nothing" not in words)


def run_pytest(folder, root):
    """What pytest prints about the tests of a folder, where the modules of `root` are known."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    return done.stdout


@pytest.mark.slow
def test_a_good_test_is_kept_runs_with_pytest_and_is_exported(study, tmp_path, capsys):
    examples("count_pairs", own_tests.test_count_pairs)
    kept = study / "mine" / "test_count_pairs.py"
    assert "1 skipped" in run_pytest(study / "mine", study), "there is no code of one's own yet"
    told = examples("softmax", own_tests.test_softmax)
    assert "Kept as `mine/test_softmax.py`: `pytest` tries it on mine/softmax.py" in str(told)
    assert check("softmax", right.softmax).status == "correct"
    assert "1 passed, 1 skipped" in run_pytest(study / "mine", study)
    (study / "mine" / "softmax.py").write_text("def softmax(x, dim):\n    return x\n")
    assert "1 failed" in run_pytest(study / "mine", study)
    kept.write_text(f"{kept.read_text()}# mine\n")
    examples("count_pairs", own_tests.test_count_pairs)
    assert kept.with_name("test_count_pairs-1.py").read_text().endswith("# mine\n")
    examples("count_pairs", own_tests.test_count_pairs)
    assert not kept.with_name("test_count_pairs-2.py").exists()
    check("softmax", right.softmax)
    assert cli.main(["export", "--adapters", str(tmp_path / "course")]) == 0
    assert "1 passed, 1 skipped" in run_pytest(tmp_path / "course" / "tests", tmp_path / "course")


def test_outside_of_a_study_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBOOK_STUDY", raising=False)
    told = str(examples("merge_pair", own_tests.test_merge_pair))
    assert "catches" in told and "Kept" not in told
