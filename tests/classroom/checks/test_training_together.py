"""Scripts and functions that train are run: right ones pass, others are told what they lack."""

import functools

import pytest
from attempts import training_together as attempts

from workbook.classroom import cli, problems
from workbook.classroom.checks import training_together as checks
from workbook.classroom.study import solutions
from workbook.classroom.study.verbs import check

pytestmark = pytest.mark.usefixtures("path_of_imports")


def outcome(attempt):
    return check("training_together", attempt)


@pytest.fixture
def script(tmp_path):
    """What the check says of a script with this text."""

    def outcome_of(text):
        path = tmp_path / "train.py"
        path.write_text(text)
        return outcome(path)

    return outcome_of


@pytest.mark.parametrize("name", attempts.RIGHT)
def test_a_right_function_is_accepted(name):
    report = outcome(attempts.RIGHT[name])
    assert report.status == "correct" and "Worth knowing" not in report.message, report


@pytest.mark.parametrize(("words", "edits"), [(said, edits) for said, *edits in attempts.REMARKED])
def test_another_reading_of_the_task_is_accepted_with_a_remark(words, edits):
    report = outcome(attempts.function(*edits))
    assert report.status == "correct" and "Worth knowing" in report.message, report
    assert words in report.message, report


def test_a_file_with_a_function_in_place_of_options_is_checked_by_the_function(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(attempts.PARTS.replace("import argparse\n", "") + attempts.TRAIN)
    attempt = cli.load_attempt(path, "", problems.with_id("training_together"))
    assert attempt.__name__ == "train" and outcome(attempt).status == "correct"
    path.write_text(attempts.script())
    assert cli.load_attempt(path, "", problems.with_id("training_together")) == path


@pytest.mark.parametrize("name", attempts.RIGHT_SCRIPTS)
def test_a_right_script_is_accepted(name, script):
    report = script(attempts.RIGHT_SCRIPTS[name])
    assert report.status == "correct", report


NOT_RIGHT = [("wrong", *row) for row in attempts.WRONG]
NOT_RIGHT += [("almost", *row) for row in attempts.ALMOST]


@pytest.mark.parametrize(
    ("status", "words", "edits"), [(status, words, edits) for status, words, *edits in NOT_RIGHT]
)
def test_a_mistake_is_called_by_its_name(status, words, edits):
    report = outcome(attempts.function(*edits))
    assert report.status == status and words in report.message, report


@pytest.mark.parametrize(("status", "words", "text"), attempts.REFUSED_SCRIPTS)
def test_a_script_that_fails_is_told_where(status, words, text, script):
    report = script(text)
    assert report.status == status and words in report.message, report


HANGS = "import time\ntime.sleep(600)\n"
NEVER_STOPS = f"import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n{HANGS}"


@pytest.mark.parametrize(("text", "seconds"), [(HANGS, 1), (NEVER_STOPS, 2)])
def test_a_script_that_never_ends_is_ended(text, seconds, script, monkeypatch, judged_here):
    monkeypatch.setattr(checks.watched, "RUN_SECONDS", 1.0)
    monkeypatch.setattr(checks, "RUN_SECONDS", 1.0 if text is NEVER_STOPS else 60.0)
    monkeypatch.setattr(checks, "SPARE_SECONDS", 1.0)
    report = script(text)
    assert report.status == "wrong" and f"stopped after {seconds} s" in report.message, report


def my_training(**settings) -> None:
    """As the notebook has it before anything is written."""
    raise NotImplementedError


def test_what_is_not_there_is_not_attempted(judged_here):
    for nothing in (None, ..., my_training, "", "a.py", "my script", "it's", "It\ntrains."):
        assert outcome(nothing).status == "not attempted"


def with_settings(train):
    """Hand over the settings, as hydra does."""
    return functools.wraps(train)(lambda: train({"lr": 1e-3}))


@with_settings
def decorated(cfg):
    raise AssertionError("it must not be called")


def without_data(steps, lr):
    raise AssertionError("it must not be called")


READS_A_FILE = attempts.run("def main():\n    open('configures/m4.yaml')\n")["main"]
OUTSIDE_THE_CONTRACT = [
    (READS_A_FILE, "It takes no settings, and ends with FileNotFoundError"),
    (decorated, "It asks for `cfg`"),
    (without_data, "It lacks the settings checkpoint_path, train_path"),
    (type("Trainer", (), {"train": without_data}), "This is the class `Trainer`"),
    (3, "This is an int: 3"),
]


@pytest.mark.parametrize(("attempt", "words"), OUTSIDE_THE_CONTRACT)
def test_what_is_not_in_the_contract_is_told_the_contract(attempt, words, judged_here):
    report = outcome(attempt)
    assert report.status == "not attempted" and words in report.message, report
    assert checks.CONTRACT in report.message


READS = "import argparse\nif __name__ == '__main__':\n    argparse.ArgumentParser().parse_args()\n"


@pytest.mark.parametrize(
    ("text", "name"), [("", ""), (f"{READS}def run_training():\n    ", "run_training")]
)
def test_where_nothing_can_be_set_no_failure_is_called_wrong(text, name, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(f"{text}open('configs/small.yaml')\n")
    report = outcome(cli.load_attempt(path, name, problems.with_id("training_together")))
    words = "It takes no settings, and ends with FileNotFoundError"
    assert report.status == "not attempted" and words in report.message, report


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A folder like the course's repository, with scripts that import what lies in it."""
    package = tmp_path / "repository" / "basics"
    (package / "scripts").mkdir(parents=True)
    (package.parent / "pyproject.toml").touch()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text(attempts.PARTS + attempts.TRAIN)
    text = "import argparse\nfrom {}parts import train\nfrom basics.parts import save\n"
    (package / "train.py").write_text(text.format(".") + attempts.MAIN)
    (package / "scripts" / "train.py").write_text(text.format("basics.") + attempts.MAIN)
    monkeypatch.chdir(package.parent)
    return package.parent


def files(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_a_script_in_a_folder_of_a_repository_finds_its_packages_and_files(repository):
    (repository / "small.yaml").touch()
    with (repository / "basics" / "scripts" / "train.py").open("a") as script:
        script.write("open('small.yaml')\n")
    report = outcome("basics/scripts/train.py")
    assert report.status == "correct", report


def test_a_command_is_run_with_its_own_arguments_and_leaves_no_file(repository):
    before = files(repository)
    report = outcome("!python basics/train.py --lr 0")
    assert report.status == "wrong" and "learning rate is never above 0" in report.message, report
    assert files(repository) == before


def test_the_command_line_hands_a_script_in_as_a_path_and_a_kept_function_as_such(tmp_path):
    problem = problems.with_id("training_together")
    path = tmp_path / "training_together.py"
    for text, expected in (
        ("raise OSError('it must not be imported')", path),
        (f"{solutions.KEPT.format(problem.id, 'correct')}\ntrain = 3\n__all__ = ['train']\n", 3),
    ):
        path.write_text(text)
        assert cli.load_attempt(path, "", problem) == expected
    path.write_text("def mine(): ...")
    assert cli.load_attempt(path, "mine", problem).__name__ == "mine"
