"""Scripts and functions that train are run: right ones pass, others are told what they lack."""

import argparse
import sys

import numpy as np
import pytest
import torch
from attempts import training_together as attempts

from workbook import cli
from workbook.checks import training_together as checks
from workbook.study import problems, solutions
from workbook.study.verbs import check


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
def test_a_right_function_or_class_is_accepted(name):
    report = outcome(attempts.RIGHT[name])
    assert report.status == "correct" and "Worth knowing" not in report.message, report


@pytest.mark.parametrize("name", attempts.RIGHT_SCRIPTS)
def test_a_right_script_is_accepted(name, script):
    report = script(attempts.RIGHT_SCRIPTS[name])
    assert report.status == "correct", report


def test_what_reads_all_data_into_memory_is_told_but_not_refused():
    report = outcome(attempts.IN_MEMORY)
    assert report.status == "correct" and "np.memmap" in report.message, report


@pytest.mark.parametrize(("name", "edits", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(name, edits, words):
    report = outcome(attempts.function(*edits))
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(("name", "edits", "words"), attempts.ALMOST)
def test_what_fails_in_a_corner_alone_is_almost_right(name, edits, words):
    report = outcome(attempts.function(*edits))
    assert report.status == "almost" and words in report.message, report


@pytest.mark.parametrize(("name", "text", "status", "words"), attempts.WRONG_SCRIPTS)
def test_a_script_that_fails_is_told_where(name, text, status, words, script):
    report = script(text)
    assert report.status == status and words in report.message, report


def test_a_script_that_never_ends_is_ended(script, monkeypatch, judged_here):
    monkeypatch.setattr(checks, "SCRIPT_SECONDS", 3.0)
    report = script(attempts.HANGING)
    assert report.status == "wrong" and "stopped after 3 s" in report.message, report


def test_a_script_that_cannot_be_stopped_is_ended(script, monkeypatch, judged_here):
    monkeypatch.setattr(checks, "SCRIPT_SECONDS", 1.0)
    monkeypatch.setattr(checks, "LAST_SECONDS", 9.0)
    text = "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\ntime.sleep(600)\n"
    report = script(text)
    assert report.status == "wrong" and "stopped after 10 s" in report.message, report


def test_a_function_that_never_ends_is_stopped(monkeypatch, judged_here):
    monkeypatch.setattr(checks, "FUNCTION_SECONDS", 0.5)
    report = outcome(attempts.function((attempts.LOOP, f"while True: pass\n    {attempts.LOOP}")))
    assert report.status == "wrong" and "stopped after 0.5 s" in report.message, report


def my_training(settings: dict) -> None:
    """As the notebook has it before anything is written."""
    raise NotImplementedError


class Settings:
    """A class that does nothing."""


@pytest.mark.parametrize(
    "nothing", [None, ..., my_training, "", "a.py", "my script", "it's", Settings, "It\ntrains."]
)
def test_what_is_not_there_is_not_attempted(nothing):
    assert outcome(nothing).status == "not attempted"


def test_what_asks_for_something_unknown_is_told_the_contract():
    def train(train_path, valid_path, steps, tokenizer_config):
        raise AssertionError("it must not be called")

    def without_data(steps, lr):
        """No more than that."""
        print("done")

    for attempt, words in ((train, "`tokenizer_config`"), (without_data, "the training data")):
        report = outcome(attempt)
        assert report.status == "not attempted" and words in report.message, report
        assert checks.CONTRACT in report.message


def test_what_is_no_script_is_told_so():
    report = outcome(3)
    assert report.status == "wrong" and "This is neither a script nor a function." in report.message


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder like the course's repository, with a script that imports its neighbours."""
    package = tmp_path / "checkout" / "basics"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import importlib.metadata\n__version__ = importlib.metadata.version('no_such_basics')\n"
    )
    (package / "parts.py").write_text(attempts.PARTS + attempts.TRAIN)
    (package / "other.py").write_text("batches = 2\n")
    text = (
        "import argparse\nfrom .parts import train\nfrom basics.parts import save\nimport other\n"
    )
    (package / "train.py").write_text(text + attempts.MAIN)
    monkeypatch.chdir(package.parent)
    return package.parent


def files(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_a_command_is_run_with_its_own_arguments_and_leaves_no_file(checkout):
    before = files(checkout)
    report = outcome("!python basics/train.py --lr 0")
    assert report.status == "wrong" and "learning rate is 0" in report.message, report
    assert files(checkout) == before


def test_the_command_line_hands_a_script_in_as_a_path_and_a_kept_function_as_such(tmp_path):
    problem, path = problems.get("training_together"), tmp_path / "training_together.py"
    for text, expected in (
        ("raise OSError('it must not be imported')", path),
        (f"{solutions.KEPT.format(problem.id, 'correct')}\ntrain = 3\n__all__ = ['train']\n", 3),
    ):
        path.write_text(text)
        assert cli.load_attempt(path, "", problem) == expected
    path.write_text("def mine(): ...")
    assert cli.load_attempt(path, "mine", problem).__name__ == "mine"


def test_our_own_trainer_passes():
    report = outcome(attempts.ours)
    assert report.status == "correct" and "Worth knowing" not in report.message, report


def test_nothing_is_left_of_a_watched_run(tmp_path, monkeypatch):
    held = (torch.nn.Module.__call__, torch.Tensor.backward, torch.compile, np.memmap.__new__,
            argparse.ArgumentParser.parse_known_args, sys.stdout)  # fmt: skip
    monkeypatch.chdir(tmp_path)
    outcome(attempts.function())
    outcome(attempts.function((attempts.LOOP, "raise SystemExit\n    " + attempts.LOOP)))
    after = (torch.nn.Module.__call__, torch.Tensor.backward, torch.compile, np.memmap.__new__,
             argparse.ArgumentParser.parse_known_args, sys.stdout)  # fmt: skip
    assert all(a is b or a == b for a, b in zip(held, after, strict=True))
    assert list(tmp_path.iterdir()) == []
