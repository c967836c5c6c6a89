"""The check of `Tokenizer`: right classes pass, and each usual mistake is called by its name."""

import re

import pytest
from attempts import tokenizer_wrong
from attempts.ours import copied

from workbook.classroom.checks import pretokens
from workbook.classroom.checks import tokenizer as checks
from workbook.classroom.checks.machinery.verdicts import NotAttempted, Wrong
from workbook.classroom.checks.tokenizer import tokenizer
from workbook.classroom.study.verbs import check
from workbook.tokenization.tokenizer import Tokenizer

Right = tokenizer_wrong.Quick


OURS = copied("tokenization.tokenizer").Tokenizer


def test_what_is_right_but_slow_is_almost_right(monkeypatch, judged_here):
    assert check("tokenizer", OURS).status == "correct"
    monkeypatch.setattr(checks.shared, "LONG_SECONDS", 0.001)
    monkeypatch.setattr(pretokens, "STOPPED", 10**6)
    report = check("tokenizer", OURS)
    assert report.status == "almost"
    assert "`encode` is right, but slow: " in report.claim


@pytest.mark.parametrize("wrong", [tokenizer_wrong.Slow, tokenizer_wrong.Again])
def test_what_is_far_too_slow_is_stopped(wrong, monkeypatch, judged_here):
    monkeypatch.setattr(checks.shared, "LONG_SECONDS", 0.2)
    report = check("tokenizer", wrong)
    assert report.status == "wrong" and "is far too slow" in report.claim, report


def test_numbers_and_texts_are_no_vocabulary(judged_here):
    class Trainer(Right):
        def __init__(self, vocab_size: int, pattern: str = "", special_tokens=None):
            self.size = vocab_size

    report = check("tokenizer", Trainer)
    assert report.claim.startswith("It cannot be called with the arguments"), report
    assert "no value for `vocab_size`" in dict(report.rows)["got"], report


def test_what_passes_is_said_before_the_corners(judged_here):
    report = check("tokenizer", tokenizer_wrong.EachPieceAndNotAppended)
    assert "2 corner cases fail. `decode` is right. `encode_iterable` is right " in report.message
    assert report.message.count("Each piece was treated by itself") == 1


def test_what_is_wrong_with_encode_and_with_decode_is_told_at_once(judged_here):
    class Both(tokenizer_wrong.OnlyBytes):
        def decode(self, ids):
            return super().decode(ids).strip()

    report = check("tokenizer", Both)
    assert "No merge was applied" in report.likely and "`decode` does not give" in report.also[0]


def test_lines_of_a_file_are_told_before_cuts_in_a_word(judged_here):
    report = check("tokenizer", tokenizer_wrong.EachPiece)
    assert r"encode_iterable(['the\n', '\n']) of a tokenizer" in dict(report.rows)["input"]


def test_the_failing_input_is_the_smallest_one():
    with pytest.raises(Wrong) as verdict:
        tokenizer(tokenizer_wrong.LatestFirst)
    rows = dict(verdict.value.rows)
    word = re.match(r"encode\('(\w{3})'\) of a tokenizer with the merges", rows["input"])[1]
    assert f"b'{word[0]}' b'{word[1:]}'" in rows["expected"]
    assert f"b'{word[:2]}' b'{word[2]}'" in rows["got"]


def test_a_class_that_is_half_written_is_told_what_passes():
    class Half(Right):
        def decode(self, ids):
            raise NotImplementedError

        def encode_iterable(self, iterable):
            """Still to write."""

    with pytest.raises(NotAttempted) as verdict:
        tokenizer(Half)
    words = str(verdict.value)
    assert "`encode` is right. `from_files` is there." in words
    assert "`decode` is still missing" in words
    assert "`encode_iterable` is still missing" in words


def test_a_mistake_in_a_half_written_class_is_still_found():
    class Half(tokenizer_wrong.OnlyBytes):
        decode = encode_iterable = None

    with pytest.raises(Wrong, match="encode"):
        tokenizer(Half)


def test_the_small_reference_agrees_with_the_package():
    for case in (*checks.TEXTS, *checks.ODD_TEXTS):
        ours = Tokenizer(case.setup.vocab(), case.setup.merges, case.setup.special_tokens)
        assert ours.encode(case.given) == checks.ENCODE.expected(case)
