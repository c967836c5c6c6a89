"""Someone's number is reproduced by the assumptions that yield it, and no others are blamed."""

import csv
import random
from dataclasses import replace

import pytest
from work import calls

from workbook import config
from workbook.accounting import answers, asked, explain, numbers, significant, switches
from workbook.accounting.assumptions import FIELDS, SWITCHES, Assumptions

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
TWO, TIED, POSITIONS = "two matrices", "share one matrix", "table of positions"
NO_SCORES, NO_HEAD, LEFT = "scores and weighted sums", "the head is left out", "left at 6,400"
GIB, LOST = "GiB are called GB", "factor of 1,000 is lost"
BY_PARAMETERS = "6·P in training"
# Every claim whose cause is an assumption, a unit or an omitted term: for each of its numbers the
# words that have to be in one explanation together, or None where the number is right.
CAUSES = {
    ("W1", MODEL, "a", "2127056000"): [["final norm is left out"]],
    ("W2", MODEL, "a", "1.56e9"): [[TWO, TIED, POSITIONS]],
    ("W2", MODEL, "a", "5.80 GB"): [[TWO, TIED, POSITIONS, GIB]],
    ("W2", MODEL, "b", "3.02e12"): [[TWO, NO_SCORES, NO_HEAD]],
    ("W2", MODEL, "d", "attention share 19.35, 24.24, 28.57 %"): [[LEFT, TWO, NO_SCORES, NO_HEAD]]
    * 3,
    ("W2", MODEL, "e", "133.42e12"): [[TWO]],
    ("W0", ADAMW, "b", "10.49 B + 26.17 GB, batch 5"): [
        ["only one map", "embedding's output"],
        None,
        ["only one map"],
    ],
    ("W1", ADAMW, "b", "16.15 B + 26.17 GB, batch 3"): [["residual"], None, None],
    ("W0", ADAMW, "c", "15 P"): [["bias corrections are counted"]],
    ("W2", ADAMW, "c", "12 P"): [["in the moments"]],
    ("W2", ADAMW, "d", "4.6 days"): [[BY_PARAMETERS, TIED, LOST]],
}
# One of these has a cause for one of its numbers alone; the others are slips of the pen.
MIXED = {
    ("W2", ADAMW, "b", "15.14 B + 24.37 GB, batch 3"): [[], [GIB], None],
    ("W3", MODEL, "b", "4513313484800"): [[]],
    ("W3", MODEL, "e", "149.8e12, x33.2"): [[], []],
}
RIGHT = {
    ("W3", MODEL, "a", "2127057600"),
    ("W0", ADAMW, "a", "1.64e9"),
    ("W1", MODEL, "b", "4.51e12"),
    ("W1", MODEL, "d", "small 3.50e11, medium 1.03e12, large 2.26e12"),
    ("W1", MODEL, "e", "1.50e14"),
}
WITHOUT_CAUSE = {  # no number, or one that is right or wrong by rounding
    ("W1", MODEL, "c", "the query-key products need most"),
    ("W3", MODEL, "c", "FFN"),
    ("W3", MODEL, "d", "small 0.32e12, large 2.23e12"),
    ("W0", ADAMW, "d", "5116 days"),
}


def claimed() -> set[tuple]:
    path = config.repository() / "data" / "reported" / "claims.csv"
    with open(path, encoding="utf-8", newline="") as file:
        return {
            (row["writeup"], row["problem"], row["part"], row["claimed"])
            for row in csv.DictReader(file)
            if row["problem"] in (MODEL, ADAMW)
        }


def test_no_published_claim_is_left_out():
    assert claimed() == {*CAUSES, *MIXED, *RIGHT, *WITHOUT_CAUSE}


@pytest.mark.parametrize(("claim", "causes"), [*CAUSES.items(), *MIXED.items()])
def test_the_cause_of_a_published_claim_is_found(claim, causes):
    _, problem, part, text = claim
    found = explain(problem, text, part).numbers
    assert len(found) == len(causes)
    for each, words in zip(found, causes, strict=True):
        changes = [" + ".join(way.changes) for way in each.explanations]
        if words is None:
            assert changes == [""]
        elif not words:
            assert changes == [] and "no stated assumption" in str(each)
        else:
            assert any(all(word in change for word in words) for change in changes), each


@pytest.mark.parametrize("claim", sorted(RIGHT))
def test_a_right_claim_needs_no_change(claim):
    _, problem, part, text = claim
    for each in explain(problem, text, part).numbers:
        assert [way.changes for way in each.explanations] == [()]
        assert "as the problem states it" in str(each)


def test_one_cause_of_several_numbers_comes_first():
    first = [each.explanations[0] for each in explain(MODEL, "1.56e9, 5.80 GB", "a").numbers]
    assert first[0].flipped == first[1].flipped
    assert {switch.field for switch in first[0].flipped} >= {"matrices", "embeddings"}


@pytest.mark.parametrize(
    ("problem", "part", "value", "words"),
    [
        (MODEL, "a", 1_557_611_200, "biases are counted in (GPT-2 has them)"),  # GPT-2 XL itself
        (MODEL, "a", "7.92 GB", "GiB are called GB"),
        (MODEL, "a", "8.51 GiB", "GB are called GiB"),
        (MODEL, "a", "8.51 MB", "a factor of 1,000 is lost"),
        (MODEL, "a", "4.25 GB", "a number takes 2 bytes"),
        (MODEL, "a", "34.03 GB", "gradients and optimizer state are counted in"),
        (MODEL, "a", 1_640_452_800, "multiple of 64 nearest to 8/3"),
        (MODEL, "b", 2_256_668_262_400, "counted as one FLOP"),
        (MODEL, "b", "4.19e12", "scores and weighted sums (T × T) are left out"),
        (MODEL, "b", "4.35e12", "the head is left out"),
        (MODEL, "b", "13.54e12", "the backward pass is counted in"),
        (MODEL, "b", "4.51e9", "a factor of 1,000 is lost"),
        (MODEL, "b", 2_257_754_521_600, "the size is that of GPT-2 large"),
        (ADAMW, "b", "18.04 GB", "three matrices"),
        (ADAMW, "b", 4, "the batch is rounded up"),
        (ADAMW, "c", 16, "bias corrections are counted (and the rate apart)"),
        (ADAMW, "d", "2558 days", "reach its whole peak"),
        (ADAMW, "d", "6584 days", "three matrices (SwiGLU)"),
        (ADAMW, "d", "4886 days", "6·P in training"),
    ],
)
def test_other_common_causes_are_found(problem, part, value, words):
    found = explain(problem, value, part).numbers[0].explanations
    fewest = [way for way in found if len(way.changes) == len(found[0].changes)]
    assert any(words in " + ".join(way.changes) for way in fewest), found


def test_editions_have_their_own_right_values():
    assert explain(MODEL, 1_640_452_800, "a", edition="2026").explanations[0].changes == ()
    assert explain("adamw_accounting", "4850 hours", "d", "2026").explanations[0].changes == ()
    assert explain(ADAMW, "26.17 GB", "b", "2026").explanations[0].changes == (
        "d_ff is 8/3·d_model (not a multiple of 64)",
    )


def test_accidents_are_rare():
    """Of numbers drawn at random, few are explained, and hardly any by more than two changes."""
    draw = random.Random(0)
    many = explained = 0
    for _ in range(500):
        power = 3 ** draw.uniform(-1, 1)
        for problem, part, text in (
            (MODEL, "a", f"{2_127_057_600 * power:.2e}"),
            (MODEL, "a", f"{8.508 * power:.3g} GB"),
            (MODEL, "b", f"{4.513e12 * power:.2e}"),
            (ADAMW, "b", f"{20 * power:.3g} GB"),
            (ADAMW, "d", f"{5_115 * power:.3g} days"),
        ):
            found = explain(problem, text, part).explanations
            explained += bool(found)
            many += bool(found) and len(found[0].changes) > 2
    assert explained < 0.2 * 2_500 and many < 0.02 * 2_500


def test_an_explanation_comes_while_you_wait():
    for problem in (MODEL, ADAMW):
        assert calls(lambda problem=problem: explain(problem, 3.21)) < 500_000


def test_every_switch_changes_some_answer():
    used = set()
    for problem, part in FIELDS:
        for edition in config.EDITIONS:
            for size in ("small", "xl") if part == "d" and problem == MODEL else ("xl",):
                base = asked(problem, part, edition, size)
                for options in switches(problem, part, base).values():
                    for switch in options:
                        flipped = replace(base, **{switch.field: switch.value})
                        if answers(problem, part, flipped) != answers(problem, part, base):
                            used.add(switch)
    # 80 GiB hold no larger batch than 80 GB where nothing else is changed.
    assert {switch for switch in SWITCHES if switch not in used} == {
        switch for switch in SWITCHES if switch.value == "80 GiB"
    }
    assert all(hasattr(Assumptions(), switch.field) for switch in SWITCHES)


@pytest.mark.parametrize(
    ("text", "value", "kind", "digits"),
    [
        ("2,127,057,600", 2_127_057_600, "", 10),
        ("2 127 057 600", 2_127_057_600, "", 10),
        ("2_127_057_600", 2_127_057_600, "", 10),
        ("2.13B parameters", 2.13e9, "count", 3),
        ("1.56 Billion", 1.56e9, "count", 3),
        ("8.51GB", 8.51e9, "bytes", 3),
        ("8.51 gigabytes", 8.51e9, "bytes", 3),
        ("7.92 GiB", 7.92 * 1024**3, "bytes", 3),
        ("8,508,230,400 B", 8_508_230_400, "bytes", 10),
        ("4.51 TFLOPs", 4.51e12, "flops", 3),
        ("4,513 GFLOPs", 4.513e12, "flops", 4),
        ("4.5 trillion FLOPs", 4.5e12, "flops", 2),
        ("4.51 × 10^12 FLOPs", 4.51e12, "flops", 3),
        ("4.51·10¹²", 4.51e12, "", 3),
        ("4.51*10**12", 4.51e12, "", 3),
        (r"$4.51 \times 10^{12}$", 4.51e12, "", 3),
        ("10^12", 1e12, "", 1),
        ("66.9 %", 0.669, "share", 3),
        (r"66.9\%", 0.669, "share", 3),
        ("5,115 days", 5_115 * 86_400, "seconds", 4),
        ("14P", 14, "per parameter", 2),
        ("14 FLOPs per parameter", 14, "per parameter", 2),
        ("x33.2", 33.2, "factor", 3),
        ("33.1 times", 33.1, "factor", 3),
        ("3,590,000 FLOPs", 3_590_000, "flops", 3),
    ],
)
def test_numbers_are_read_as_people_write_them(text, value, kind, digits):
    (found,) = numbers(text)
    assert (found.value, found.kind, found.digits) == (pytest.approx(value), kind, digits)


def test_rates_are_no_quantities():
    assert [each.value for each in numbers("19.5 TFLOP/s, 2 TB/s, 5 days")] == [5 * 86_400]


def test_numbers_are_shown_with_a_few_digits():
    assert significant(4_513_336_524_800) == "4.5133e12"
    assert significant(0.66911) == "0.66911"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("linear", 3), "there are transformer_accounting, adamwAccounting"),
        ((MODEL, 3, "f"), "has the parts a, b, c, d, e; there is no part 'f'"),
        ((MODEL, 3, "a", "2024"), "edition '2024' is none of 2025, 2026"),
        ((MODEL, float("nan")), "expected a finite number, got nan"),
        ((MODEL, -3), "expected a positive number, got -3"),
    ],
)
def test_what_cannot_be_explained_is_a_clear_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        explain(*arguments)
    with pytest.raises(TypeError, match="expected a number or a text, got a object"):
        explain(MODEL, object())
