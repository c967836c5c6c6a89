import pytest
from attempts import checkpointing as attempts

from workbook.classroom.checks import verdicts
from workbook.classroom.study.verbs import check


@pytest.mark.parametrize("pair", attempts.RIGHT)
def test_a_right_pair_is_accepted(pair):
    report = check("checkpointing", pair)
    assert report.status == "correct", report


@pytest.mark.parametrize(("wrong", "words"), attempts.WRONG)
def test_a_mistake_is_called_by_its_name(wrong, words):
    report = check("checkpointing", wrong)
    assert report.status == "wrong" and words in report.message, report


@pytest.mark.parametrize(("pair", "words"), attempts.ALMOST)
def test_what_fails_for_some_kinds_of_files_alone_is_almost_right(pair, words):
    report = check("checkpointing", pair)
    assert report.status == "almost" and words in report.message, report


def test_one_missing_half_is_wrong():
    def raising(*arguments):
        raise NotImplementedError

    for half in (None, raising):
        for pair in ((attempts.save, half), (half, attempts.load)):
            report = check("checkpointing", pair)
            assert report.status == "wrong" and "is still" in report.claim, report


def test_what_hangs_is_stopped(monkeypatch, judged_here):
    monkeypatch.setitem(verdicts.call.__kwdefaults__, "seconds", 0.5)

    def hanging(*arguments):
        while True:
            pass

    report = check("checkpointing", (hanging, attempts.load))
    assert report.status == "wrong" and "stopped after" in report.message


def test_no_file_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check("checkpointing", (attempts.save, attempts.load))
    assert list(tmp_path.iterdir()) == []
