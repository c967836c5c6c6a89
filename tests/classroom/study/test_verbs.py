import os
import time
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest
import torch
from IPython.core.inputtransformer2 import TransformerManager

import workbook
from workbook.classroom.checks.by_problem import CHECKS
from workbook.classroom.checks.machinery import judging, worker
from workbook.classroom.checks.machinery.verdicts import Wrong, call, expect_function, is_learners
from workbook.classroom.study import answers, solutions, verbs
from workbook.classroom.study.verbs import answer, check, hint, look_up, reveal
from workbook.config import PACKAGE

SECONDS = 60  # for each call


def square(attempt):
    """A checker in miniature."""
    expect_function(attempt, "square(n)")
    for n in (2, 3):
        got = call(attempt, n, seconds=SECONDS, given=f"square({n})")
        if got != n * n:
            raise Wrong("A square is wrong.", given=f"square({n})", expected=n * n, got=got)
    return "Both squares are right."


def check_with(monkeypatch, checker, problem="train_bpe"):
    monkeypatch.setitem(CHECKS, problem, checker)


@pytest.fixture(autouse=True)
def square_stands_for_train_bpe(monkeypatch):
    """Judged in this process, where there is such a checker; no attempt here spoils it."""
    monkeypatch.setattr(worker, "is_inside", True)
    check_with(monkeypatch, square)


def judged(attempt, status):
    report = check("train_bpe", attempt)
    assert report.status == status, report
    return str(report)


class Trouble:
    """A value that is nothing but trouble."""

    def __eq__(self, other):
        raise RuntimeError("no comparing")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __repr__(self):
        raise SystemExit("no repr")


def test_what_is_asked_for_is_said():
    assert "Write the function train_bpe(input_path" in judged(None, "not attempted")
    assert "the class itself, not an instance" in check("tokenizer", object()).message


def raising(error):
    def attempt(n):
        raise error

    return attempt


def recurses(n):
    return recurses(n + 1)


def sleeps(n):
    time.sleep(100)


WRONG = [
    (os, "the module `os`"),
    (lambda a, b: a, "missing 1 required positional argument: 'b'"),
    (raising(KeyError(3)), "in attempt: `raise error`"),
    (raising(SystemExit()), "SystemExit"),
    (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
    (raising(BaseException("odd")), "It raised an error."),
    (recurses, "RecursionError"),
    (lambda n: Path("text.txt").read_text(), "an empty folder of its own"),
    (sleeps, "It was stopped after 0.5 s."),
]


@pytest.mark.slow
@pytest.mark.parametrize(("attempt", "words"), WRONG)
def test_what_is_wrong_with_an_attempt_is_said_in_words(monkeypatch, attempt, words):
    if attempt is sleeps:
        monkeypatch.setitem(globals(), "SECONDS", 0.5)
    assert words in judged(attempt, "wrong")


def test_a_wrong_result_shows_the_input_and_expected_beside_got():
    lines = judged(lambda n: n + n, "wrong").splitlines()
    assert lines[0] == "✗ train_bpe: wrong"
    assert lines[2:] == ["  input     square(3)", "  expected  9", "  got       6"]


def test_whose_a_file_is_shows_in_its_path():
    learners = [f"{PACKAGE}_of_mine.py", "/home/me/cs336/model.py", "<ipython-input-1>"]
    others = [judging.__file__, os.__file__, torch.__file__, "<frozen importlib>"]
    others += ["/home/me/.local/lib/python3.12/site-packages/einops/einops.py"]
    assert all(map(is_learners, learners)) and not any(map(is_learners, others))


def test_results_that_resist_are_shown_shortened():
    for result in (Trouble(), [Trouble()], "x" * 10**7, b"x" * 10**7, 10**5000):
        assert len(judged(lambda n, result=result: result, "wrong")) < 2_000


@pytest.mark.slow
def test_cases_that_take_too_long_together_are_stopped(monkeypatch):
    monkeypatch.setattr(judging, "TOTAL_SECONDS", 0.3)
    check_with(monkeypatch, lambda attempt: attempt(2), "softmax")
    assert "longer than 0.3 s in total" in check("softmax", sleeps).claim


def test_an_unknown_problem_or_part_is_named_and_no_argument_is_an_exception():
    for problem, part, named in (
        ("train_bep", None, "did you mean 'train_bpe'"),
        (Trouble(), None, "expected a problem's id"),
        ("unicode1", "z", "there is no part 'z'"),
        ("unicode1", Trouble(), "expected a part such as 'a', not Trouble"),
    ):
        report = check(problem, 1, part)
        assert report.status == "not attempted" and named in report.message
    for problem, part in [("unicode2", "a"), ("unicode2", None), ("train_bpe", None)]:
        for trouble in (Trouble(), [Trouble()], {Trouble: Trouble()}, numpy.zeros(3)):
            assert check(problem, trouble, part).status in ("wrong", "not attempted", "read")


def test_the_panel_is_escaped_tells_the_status_in_words_and_marks_code():
    report = check("train_bpe", lambda n: "<script>alert(1)</script>")
    html = report._repr_html_()
    assert repr(report) == str(report)
    assert "✗ train_bpe: wrong" in html
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "background" not in html and ";color" not in html
    page = check("softmax", torch.softmax)._repr_html_()  # `torch`'s ready `softmax`
    assert "</code>&#x27;s ready <code" in page and "`" not in page


def test_a_number_may_come_in_any_container():
    for attempt in (numpy.array(2127057600), Decimal(2127057600)):
        assert check("transformer_accounting", attempt, "a").status == "correct"
    assert check("tokenizer_experiments", numpy.array([1e6, 229.2]), "c").status == "correct"
    run = defaultdict(float, corpus="owt", loss=torch.tensor(4.1))
    assert check("main_experiment", [run]).status == "possible"


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder that we stand in."""
    (tmp_path / ".workbook").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_answer_is_checked_where_it_stands_in_a_study_folder(study, monkeypatch, capsys):
    verbs.answer("unicode1", "a", "U+0041")
    printed = capsys.readouterr().out
    assert printed.index("U+0041") < printed.index("✗ unicode1 (a): wrong")
    verbs.answer("unicode1", "c", "It stays in the text.")
    assert "2. when printed, the text looks" in capsys.readouterr().out
    monkeypatch.chdir(study.parent)
    verbs.answer("unicode1", "a", "U+0041")
    assert "wrong" not in capsys.readouterr().out


def test_facts_are_ticked_by_number_or_all(study):
    report = check("unicode1", "It stays in the text.", "c")
    assert '`tick("unicode1", "c")`' in str(report) and "2. when printed" in str(report)
    report = verbs.tick("unicode1", "(C)", 2)
    assert report.status == "read" and str(report).count("✓") == 1
    ticked = '2. <span class="workbook-sign">✓ </span>when printed, the text looks'
    assert ticked in report._repr_html_()
    report = verbs.tick("unicode1", "c", 1, 3)
    assert report.status == "ticked"
    assert report.then == ("That solves unicode1 (c): 1 of 3 parts.",)
    report = check("unicode1", "It stays in the text.", "c")
    assert str(report).count("✓") == 3 and "tick(" not in str(report)
    assert "is solved already" in str(report)
    assert check("unicode1", "U+0000", "a").then == ("That solves unicode1 (a): 2 of 3 parts.",)
    assert check("unicode1", "U+0000", "a").then == ()
    wrong = check("unicode1", "U+0041", "a")
    assert wrong.status == "wrong" and "is solved already" in wrong._repr_html_()


def test_what_cannot_be_ticked_is_told(study):
    for place, said in (
        (("unicode1",), "say which part"),
        (("unicode1", "c", 0), "no fact 0"),
        (("softmax",), "nothing to tick off: `check` judges it"),
    ):
        with pytest.raises(ValueError, match=said):
            verbs.tick(*place)


def squared(n):
    return n * n


def test_a_report_is_stored_in_a_study_folder_alone(study, monkeypatch):
    (record,) = check("train_bpe", squared)._repr_mimebundle_().values()
    kept = (study / "mine" / "train_bpe.py").read_text()
    assert "def squared(n):\n    return n * n\n\ntrain_bpe = squared\n" in kept
    wanted = {"problem": "train_bpe", "part": None, "status": "correct"}
    assert record == {**wanted, "source": kept, "trouble": ""}
    monkeypatch.chdir(study.parent)
    assert check("train_bpe", squared)._repr_mimebundle_() == {}


BROKEN = ["def squared(n:\n    n", "def squared(n):\n    n\n  n", "import no\ndef squared(n): ..."]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_newer_cell_that_stopped_at_an_error_is_told(broken, monkeypatch, judged_here):
    cells = ["", "def squared(n):\n    return n * n", broken]
    shell = TransformerManager()
    shell.history_manager = SimpleNamespace(input_hist_raw=cells, exceptions={2: {}})
    monkeypatch.setattr(solutions, "shell", lambda: shell)
    monkeypatch.setattr(squared, "__module__", "__main__")
    assert "This is about the version before cell [2]" in check("train_bpe", squared).claim
    cells.append("%%time\ndef squared(n):\n    return n * n")
    assert check("train_bpe", squared).claim == "Both squares are right."


def test_where_no_cell_stopped_nothing_is_said_of_one(monkeypatch, judged_here):
    cells = ["", "def squared(n):\n    return n + n", "squared = make(squared)"]
    shell = TransformerManager()
    shell.history_manager = SimpleNamespace(input_hist_raw=cells, exceptions={})
    monkeypatch.setattr(solutions, "shell", lambda: shell)
    monkeypatch.setattr(squared, "__module__", "__main__")
    assert check("train_bpe", squared).claim == "Both squares are right."


def test_a_hint_goes_from_a_nudge_to_the_idea():
    first, second, third = (str(hint("train_bpe")) for _ in range(3))
    assert "1. Make it right on one line" in first and "2. " not in first
    assert "Run hint again" in first and second.endswith("That was the last.")
    assert first.splitlines()[1] == second.splitlines()[1] and second == third
    assert "<code" in hint("train_bpe")._repr_html_()
    with pytest.raises(ValueError, match="did you mean"):
        hint("unicode3")


def test_each_part_has_hints_of_its_own():
    first = str(hint("unicode2", "a"))
    second = str(hint("unicode2", part="(A)"))
    assert "Hint for unicode2 (a)" in first and "2. " not in first and "2. " in second
    assert str(hint("unicode2", "b")).splitlines()[1] != first.splitlines()[1]
    with pytest.raises(ValueError, match="say which part of unicode2 is meant: a, b, c"):
        hint("unicode2")


class Example:
    def method(self):
        """Return <b> & more."""
        return 1


def test_reveal_shows_the_source_and_folds_it():
    for thing, starts in (
        (Example, f"# {__name__}.Example\nclass Example:"),
        (Example.method, f"# {__name__}.Example.method\ndef method(self):"),
        (answers.look_up, "# workbook.classroom.study.answers.look_up\ndef look_up("),
    ):
        assert str(reveal(thing)).startswith(starts)
    markdown = reveal(Example.method)._repr_markdown_()
    assert markdown.startswith("<details><summary>Your own code: <code>")
    assert "<summary>The reference: <code>" in reveal(answers.look_up)._repr_markdown_()
    assert "\n~~~~python\ndef method(self):\n" in markdown and "<b> & more." in markdown


def test_a_wrong_call_in_a_notebook_is_answered_in_words(study, capsys):
    for verb, arguments, words in (
        ("check", (squared,), "argument: 'attempt'\nWrite it like this: `check("),
        ("hint", ("tran_bpe",), "did you mean 'train_bpe'?\nWrite it like this: `hint("),
        ("answer", ("unicode1", "d", "It is."), "no part 'd'\nWrite it like this: `answer("),
        ("reveal", (3,), "whose source cannot be found"),
        ("reveal", (len,), "whose source cannot be found"),
    ):
        assert getattr(workbook, verb)(*arguments) is None
        said = capsys.readouterr().out
        assert said.startswith("○ Nothing was done: ") and words in said


def test_an_answer_to_an_open_part_comes_at_the_second_call(tmp_path, monkeypatch):
    """So "Run All" prints no answer of ours."""
    (tmp_path / ".workbook").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "run this cell again to read our answer" in str(look_up("unicode1", "a"))
    assert "Our answer to unicode1 (a)" in str(look_up("unicode1", "a"))
    answer("unicode1", "b", "It is invisible.")
    assert "Our answer to unicode1 (b)" in str(look_up("unicode1", "b"))
