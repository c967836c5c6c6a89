"""The check of `Tokenizer`: right classes pass, and each usual mistake is called by its name."""

import pytest
from attempts import tokenizer_right, tokenizer_wrong, tokenizer_wrong_streams

from workbook.checks import tokenizer_answers, tokenizer_streams
from workbook.checks import tokenizer_cases as cases
from workbook.checks.pretoken_variants import PRETOKENS
from workbook.checks.special_variants import IDS, SPECIALS
from workbook.checks.stream_variants import DECODING, STREAM
from workbook.checks.tokenizer import tokenizer
from workbook.checks.tokenizer_reference import predicted
from workbook.checks.verdicts import NotAttempted, Wrong
from workbook.checks.word_variants import WORDS
from workbook.study.verbs import check
from workbook.tokenization.tokenizer import Tokenizer

Right = tokenizer_wrong.Quick
WRONG = [*tokenizer_wrong.WRONG, *tokenizer_wrong_streams.WRONG]


def name(value):
    return getattr(value, "__name__", "")


@pytest.fixture
def impatient(monkeypatch):
    """Short limits, so that what is too slow is stopped soon."""
    monkeypatch.setattr(tokenizer_streams, "LONG", 4.0)
    monkeypatch.setattr(tokenizer_answers, "QUICK", 1.5)


@pytest.mark.parametrize("solution", [Tokenizer, *tokenizer_right.RIGHT], ids=name)
def test_a_right_class_is_accepted(solution):
    report = check("tokenizer", solution)
    assert report.status == "correct", report.message


def test_what_the_course_leaves_open_is_told_but_not_refused():
    assert "from_files" in tokenizer(tokenizer_right.InOrder)
    assert "changed the vocab" in tokenizer(tokenizer_right.WholeWords)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [pytest.param(wrong, words, id=f"{name(wrong)}: {words}") for wrong, words in WRONG],
)
def test_a_mistake_is_called_by_its_name(wrong, words, impatient):
    with pytest.raises(Wrong) as verdict:
        tokenizer(wrong)
    assert words in f"{verdict.value.claim} {verdict.value.mistake}"


def test_the_failing_input_is_the_smallest_one():
    with pytest.raises(Wrong) as verdict:
        tokenizer(tokenizer_wrong.Leftmost)
    rows = dict(verdict.value.rows)
    assert rows["input"].startswith("encode('nat') of a tokenizer with the merges")
    assert "b'n' b'at'" in rows["expected"]
    assert "b'na' b't'" in rows["got"]


def test_a_stream_that_fails_is_cut_down_to_one_cut():
    with pytest.raises(Wrong) as verdict:
        tokenizer(tokenizer_wrong_streams.EachPiece)
    assert "encode_iterable(['t', 'h'])" in dict(verdict.value.rows)["input"]


def test_a_class_that_is_half_written_is_told_what_passes():
    class Half(Right):
        def decode(self, ids):
            raise NotImplementedError

        def encode_iterable(self, iterable):
            """Still to write."""

    with pytest.raises(NotAttempted) as verdict:
        tokenizer(Half)
    words = str(verdict.value)
    assert "`encode`, `from_files`: passed" in words
    assert "`decode` is still to write" in words
    assert "`encode_iterable` is still to write" in words


def test_what_calls_an_encode_without_a_return_is_not_blamed():
    class NoReturn(Right):
        def encode(self, text):
            super().encode(text)

        def encode_iterable(self, iterable):
            for piece in iterable:
                yield from self.encode(piece)

    with pytest.raises(NotAttempted, match="`encode` returned None"):
        tokenizer(NoReturn)


def test_a_constructor_that_fails_is_not_blamed_on_the_text():
    class TwoArguments(Right):
        def __init__(self, vocab, merges):
            super().__init__(vocab, merges)

    with pytest.raises(Wrong, match="arguments that the problem names") as verdict:
        tokenizer(TwoArguments)
    assert "the third argument" in verdict.value.mistake

    class NoArguments(Right):
        def __init__(self):
            super().__init__({}, [])

    with pytest.raises(Wrong, match="arguments that the problem names") as verdict:
        tokenizer(NoArguments)
    assert verdict.value.mistake is None


def test_a_mistake_in_a_half_written_class_is_still_found():
    class Half(tokenizer_wrong.Greedy):
        decode = encode_iterable = None

    with pytest.raises(Wrong, match="encode"):
        tokenizer(Half)


def test_a_stub_is_not_attempted():
    class Stub:
        def __init__(self, vocab, merges, special_tokens=None):
            raise NotImplementedError

    with pytest.raises(NotAttempted):
        tokenizer(Stub)


@pytest.mark.parametrize("attempt", [7, "Tokenizer", Right({0: b"a"}, []), Right.encode])
def test_what_is_no_class_is_told_in_words(attempt):
    with pytest.raises(Wrong, match="not a class"):
        tokenizer(attempt)


def test_a_mistake_that_nobody_foresaw_is_told_by_the_tokens():
    class Odd(Right):
        def word(self, data):
            return super().word(data[:5]) + super().word(data[5:])

    with pytest.raises(Wrong) as verdict:
        tokenizer(Odd)
    assert "should come where" in verdict.value.mistake


@pytest.mark.parametrize(
    ("inputs", "variants"),
    [
        (cases.texts, (*WORDS, *SPECIALS, *IDS, *PRETOKENS)),
        (cases.id_lists, DECODING),
        (cases.streams, STREAM),
    ],
    ids=["encode", "decode", "encode_iterable"],
)
def test_each_known_mistake_fails_on_some_input(inputs, variants):
    for variant in variants:
        assert any(predicted(given, (variant,)) != predicted(given) for given in inputs()), variant


def test_the_small_reference_agrees_with_the_package():
    for given in cases.texts():
        setup = given.setup
        ours = Tokenizer(setup.vocab(), setup.merges, setup.special_tokens)
        assert ours.encode(given.text) == predicted(given)


def test_a_token_that_is_a_whole_word_encodes_to_itself():
    setup = cases.setup()
    ours = Tokenizer(setup.vocab(), setup.merges)
    for token, token_id in setup.ids().items():
        text = token.decode("utf-8", errors="replace")
        if cases.pretokens(text) == [text] and text.encode() == token:
            assert ours.encode(text) == [token_id]
