"""The check of `train_bpe`: right solutions pass, and each usual mistake is called by its name."""

from importlib import import_module

import pytest
from attempts import bpe_right, bpe_wrong, bpe_wrong_results, bpe_wrong_words

from workbook.checks import bpe_cases, bpe_variants
from workbook.checks.bpe_explain import predicted
from workbook.checks.bpe_reference import expected, train
from workbook.checks.train_bpe import train_bpe
from workbook.checks.verdicts import NotAttempted, Wrong
from workbook.study.verbs import check


def name(value):
    return getattr(value, "__name__", type(value).__name__) if callable(value) else ""


WRONG = [*bpe_wrong.WRONG, *bpe_wrong_words.WRONG, *bpe_wrong_results.WRONG]


@pytest.fixture
def impatient(monkeypatch):
    """Short limits, so that what is too slow is stopped soon."""
    module = import_module("workbook.checks.train_bpe")  # the package has its function's name
    monkeypatch.setattr(module, "QUICK", 1.0)
    monkeypatch.setattr(module, "LONG", 4.0)


@pytest.mark.parametrize("solution", bpe_right.RIGHT, ids=name)
def test_a_right_solution_is_accepted(solution):
    report = check("train_bpe", solution)
    assert report.status == "correct", report.message


def test_what_the_course_leaves_open_is_told_but_not_refused():
    praise = train_bpe(bpe_right.text_mode)
    assert "text mode" in praise and "longest first" in praise


@pytest.mark.parametrize(
    ("wrong", "words"),
    [pytest.param(wrong, words, id=f"{name(wrong)}: {words}") for wrong, words in WRONG],
)
def test_a_mistake_is_called_by_its_name(wrong, words, impatient):
    with pytest.raises(Wrong) as verdict:
        train_bpe(wrong())
    assert words in f"{verdict.value.claim} {verdict.value.mistake}"


def test_the_failing_input_is_the_smallest_one():
    with pytest.raises(Wrong) as verdict:
        train_bpe(bpe_wrong.Smaller())
    rows = dict(verdict.value.rows)
    assert "room for 1 merge; the file holds ' zz'" in rows["input"]
    assert rows["expected"] == "[(b'z', b'z')]"
    assert rows["got"] == "[(b' ', b'z')]"


def test_a_crash_names_the_line_and_what_the_failing_inputs_share():
    def needs_special(input_path, vocab_size, special_tokens):
        marker = special_tokens[0]
        return bpe_right.heap(input_path, vocab_size, [marker, *special_tokens[1:]])

    with pytest.raises(Wrong) as verdict:
        train_bpe(needs_special)
    assert "special_tokens[0]" in dict(verdict.value.rows)["got"]
    assert "list of special tokens is empty" in verdict.value.mistake


def test_a_mistake_that_nobody_foresaw_is_told_by_the_counts():
    class Odd(bpe_wrong.Plain):
        def best(self, counts):
            counts = {pair: counts[pair] - 3 * (b"a" in self.key(pair)) for pair in counts}
            return max(counts, key=lambda pair: (counts[pair], self.key(pair)))

    with pytest.raises(Wrong) as verdict:
        train_bpe(Odd())
    assert "occurs once" in verdict.value.mistake and "twice" in verdict.value.mistake


def test_two_mistakes_are_told_together():
    class Both(bpe_wrong.FirstSeen):
        def split(self, text):
            return [text]

    with pytest.raises(Wrong) as verdict:
        train_bpe(Both())
    assert "first seen" in verdict.value.mistake
    assert "counted and merged like text" in verdict.value.mistake


def test_an_endless_loop_is_stopped(impatient):
    def endless(input_path, vocab_size, special_tokens):
        while True:
            pass

    with pytest.raises(Wrong) as verdict:
        train_bpe(endless)
    assert "stopped" in verdict.value.claim
    assert "never ends" in verdict.value.mistake


def stub(input_path, vocab_size, special_tokens):
    """Only a docstring."""


def unfinished(input_path, vocab_size, special_tokens):
    vocab = {i: bytes([i]) for i in range(256)}
    raise NotImplementedError(len(vocab))


def no_return(input_path, vocab_size, special_tokens):
    bpe_right.heap(input_path, vocab_size, special_tokens)


@pytest.mark.parametrize("attempt", [stub, unfinished, no_return])
def test_a_stub_is_not_attempted(attempt):
    with pytest.raises(NotAttempted):
        train_bpe(attempt)


@pytest.mark.parametrize("attempt", [7, "train_bpe", bpe_wrong.Plain, {}])
def test_what_is_no_function_is_told_in_words(attempt):
    with pytest.raises(Wrong, match="not a function"):
        train_bpe(attempt)


def test_each_known_mistake_fails_on_a_small_text():
    for variant in bpe_variants.VARIANTS:
        assert any(predicted(given, (variant,)) != expected(given) for given in bpe_cases.SMALL), (
            variant
        )


def test_no_two_known_mistakes_look_alike_on_all_small_texts():
    seen = {}
    for variant in bpe_variants.VARIANTS:
        outcomes = repr([predicted(given, (variant,)) for given in bpe_cases.SMALL])
        assert outcomes not in seen, (variant, seen[outcomes])
        seen[outcomes] = variant


def test_the_small_reference_agrees_with_the_package(tmp_path):
    from workbook.tokenization import bpe

    for given in (*bpe_cases.SMALL, *bpe_cases.larger()):
        path = tmp_path / "text.txt"
        path.write_bytes(given.data)
        _, merges = bpe.train_bpe(path, given.vocab_size, given.special_tokens)
        assert merges == train(given)
