"""Published claims are whole, and their causes and losses are computed."""

import pytest

from workbook.accounting import explain
from workbook.experiments.published import all_claims, claims
from workbook.training.loss_bounds import STATED_FLOORS, bits_per_byte

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
VERDICTS = {"right", "wrong", "plausible", "doubtful", "implausible", "assumption", "incomplete"}


def test_claims_come_by_problem_and_part():
    assert len(claims("unicode2")) > len(claims("unicode2", "a")) > 3
    with pytest.raises(ValueError, match="no claims about 'unicode3'"):
        claims("unicode3")


def test_every_claim_has_a_verdict_and_every_wrong_one_a_right_value_or_a_reason():
    table = all_claims()
    assert set(table["verdict"]) == VERDICTS
    wrong = table[table["verdict"] == "wrong"]
    assert (wrong["right"] + wrong["why"]).str.len().min() > 0
    assert not table.duplicated().any()


def test_the_values_of_a_claim_are_in_its_words():
    """The columns were filled by hand; (c) of transformer_accounting names a part instead."""
    for row in all_claims().itertuples():
        if row.unit != "largest part":
            assert all(value in row.claimed for value in row.value.split("; "))
        assert row.value or row.problem not in (MODEL, ADAMW)


# Every claim whose cause is an assumption, a unit or an omitted term: for each of its numbers the
# words that have to be in one explanation together; [] where none explains it, None where it is
# right. All other claims with numbers are right.
TWO, TIED, POSITIONS = "two matrices", "share one matrix", "table of positions"
NO_SCORES, NO_HEAD, LEFT = "scores and weighted sums", "the head is left out", "left at 6,400"
ONE_MAP = "only one map"
GIB, LOST, BY_PARAMETERS = "GiB are called GB", "factor of 1,000 is lost", "6·P in training"
CAUSES = {
    (MODEL, "2127056000"): [["final norm is left out"]],
    (MODEL, "1.56e9"): [[TWO, TIED, POSITIONS]],
    (MODEL, "5.80 GB"): [[TWO, TIED, POSITIONS, GIB]],
    (MODEL, "3.02e12"): [[TWO, NO_SCORES, NO_HEAD]],
    (MODEL, "4513313484800"): [[]],
    (MODEL, "attention share 19.35, 24.24, 28.57 %"): [[LEFT, TWO, NO_SCORES, NO_HEAD]] * 3,
    (MODEL, "small 0.32e12, large 2.23e12"): [["one matmul"], []],
    (MODEL, "133.42e12"): [[TWO]],
    (MODEL, "149.8e12, x33.2"): [[], []],
    (ADAMW, "10.49 B + 26.17 GB, batch 5"): [[ONE_MAP, "embedding's output"], None, [ONE_MAP]],
    (ADAMW, "16.15 B + 26.17 GB, batch 3"): [["residual"], None, None],
    (ADAMW, "15.14 B + 24.37 GB, batch 3"): [[], [GIB], None],
    (ADAMW, "15 P"): [["bias corrections are counted"]],
    (ADAMW, "12 P"): [["in the moments"]],
    (ADAMW, "5116 days"): [[]],
    (ADAMW, "4.6 days"): [[BY_PARAMETERS, TIED, LOST]],
}


def test_the_cause_of_every_published_number_is_found():
    explained = set()
    for claim in all_claims().itertuples():
        if claim.problem not in (MODEL, ADAMW) or claim.unit == "largest part":
            continue
        explained.add((claim.problem, claim.claimed))
        numbers = list(zip(claim.value.split("; "), claim.unit.split("; "), strict=True))
        causes = CAUSES.get((claim.problem, claim.claimed), [None] * len(numbers))
        for (value, unit), words in zip(numbers, causes, strict=True):
            ways = explain.ways(claim.problem, explain.Amount.of(value, unit), claim.part)
            changes = [" + ".join(way.changes) for way in ways]
            if words is None:
                assert changes[0] == ""
            elif not words:
                assert changes == []
            else:
                assert any(all(word in change for word in words) for change in changes), ways
    assert set(CAUSES) <= explained


def test_a_loss_is_called_implausible_just_where_it_is_below_the_floor():
    table = all_claims()
    # All by one write-up: notebook 08 divides by the bytes per token that it measured.
    measured = table[table["unit"] == "bytes per token of TinyStories; bytes per token of OWT"]
    lengths = measured.set_index("writeup")["value"]
    assert lengths["W2"] == "4.12; 4.37"
    losses = table[table["unit"].str.startswith("nats per token")]
    assert set(losses["writeup"]) == {"W2"}
    texts = {"TinyStories": (4.12, "tinystories"), "OWT": (4.37, "owt")}
    below = set()
    for loss in losses.itertuples():
        length, corpus = texts[loss.unit.removeprefix("nats per token of ")]
        if bits_per_byte(float(loss.value), length) < STATED_FLOORS[corpus]:
            below.add(loss.claimed)
    assert below == set(table[table["verdict"] == "implausible"]["claimed"]) and len(below) >= 6
