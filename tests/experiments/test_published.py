"""Published claims are whole; verdicts on them are computed, and agree with the recorded ones."""

import pytest

from workbook.accounting import explain
from workbook.experiments import published
from workbook.experiments.published import (
    BELOW,
    NOT_SHOWN,
    OTHERWISE,
    POSSIBLE,
    RIGHT,
    SLIP,
    UNEXPLAINED,
    Claim,
    all_claims,
    claims,
    judge_claim,
    judge_loss,
    token_length,
)
from workbook.study.problems import PROBLEMS

MODEL, ADAMW = "transformer_accounting", "adamwAccounting"
VERDICTS = {"right", "wrong", "plausible", "doubtful", "implausible", "assumption", "incomplete"}


def test_claims_come_by_problem_and_part():
    table = claims("unicode2", "a")
    assert list(table.columns) == ["part", "claimed", "verdict", "right", "why"]
    assert list(table.index) == ["W1", "W4", "W4", "W4"]
    assert set(table["part"]) == {"a"}
    assert len(claims("unicode2")) > len(table)
    with pytest.raises(ValueError, match="no claims about 'unicode3'"):
        claims("unicode3")


def test_every_claim_has_a_verdict_and_every_wrong_one_a_right_value_or_a_reason():
    assert {claim.verdict for claim in all_claims()} == VERDICTS
    assert [c for c in all_claims() if c.verdict == "wrong" and not c.right + c.why] == []
    assert len(set(all_claims())) == len(all_claims())


def test_the_values_of_a_claim_are_in_its_words():
    """The columns were filled by hand; (c) of transformer_accounting names a part instead."""
    odd = [
        (claim.claimed, value)
        for claim in all_claims()
        for value, unit in claim.numbers
        if unit != "largest part" and value not in claim.claimed
    ]
    assert odd == []
    assert [c.claimed for c in all_claims() if c.problem in (MODEL, ADAMW) and not c.value] == []


# Every claim whose cause is an assumption, a unit or an omitted term: for each of its numbers the
# words that have to be in one explanation together; [] where none explains it, None where it is
# right. All other claims with numbers are right.
TWO, TIED, POSITIONS = "two matrices", "share one matrix", "table of positions"
NO_SCORES, NO_HEAD, LEFT = "scores and weighted sums", "the head is left out", "left at 6,400"
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
    (ADAMW, "10.49 B + 26.17 GB, batch 5"): [
        ["only one map", "embedding's output"],
        None,
        ["only one map"],
    ],
    (ADAMW, "16.15 B + 26.17 GB, batch 3"): [["residual"], None, None],
    (ADAMW, "15.14 B + 24.37 GB, batch 3"): [[], [GIB], None],
    (ADAMW, "15 P"): [["bias corrections are counted"]],
    (ADAMW, "12 P"): [["in the moments"]],
    (ADAMW, "5116 days"): [[]],
    (ADAMW, "4.6 days"): [[BY_PARAMETERS, TIED, LOST]],
}


def test_the_cause_of_every_published_number_is_found():
    explained = set()
    for claim in all_claims():
        if claim.problem not in (MODEL, ADAMW) or claim.unit == "largest part":
            continue
        explained.add((claim.problem, claim.claimed))
        found = explain.explain_all(claim.problem, claim.amounts, claim.part)
        causes = CAUSES.get((claim.problem, claim.claimed), [None] * len(found))
        for each, words in zip(found, causes, strict=True):
            changes = [" + ".join(way.changes) for way in each.explanations]
            if words is None:
                assert changes == [""] and "as the problem states it" in str(each)
            elif not words:
                assert changes == [] and "no stated assumption" in str(each)
            else:
                assert any(all(word in change for word in words) for change in changes), each
    assert set(CAUSES) <= explained


@pytest.mark.parametrize("problem", [MODEL, ADAMW])
def test_every_computed_verdict_agrees_with_the_recorded_one(problem):
    agree = {"right": {RIGHT}, "wrong": {OTHERWISE, SLIP, "wrong"}, "assumption": {OTHERWISE}}
    for place, row in published.judge_accounting(problem).iterrows():
        if row["claimed"] == "5116 days":  # 5,115.2, rounded up: recorded as right
            assert row["computed"] == SLIP and "0.016 % too high" in row["cause"]
            continue
        assert row["computed"] in agree[row["recorded"]], (place, row["claimed"])


def test_the_table_names_the_best_cause_of_a_wrong_number():
    tables = [published.judge_accounting(problem) for problem in (MODEL, ADAMW)]
    cause = {row["claimed"]: row["cause"] for table in tables for _, row in table.iterrows()}
    assert cause["2127056000"] == "the final norm is left out"
    assert "GiB" in cause["5.80 GB"] and "head" in cause["3.02e12"]
    assert cause["attention share 19.35, 24.24, 28.57 %"].startswith("19.35, 24.24, 28.57 %: ")
    assert "10.49: only one map" in cause["10.49 B + 26.17 GB, batch 5"]
    assert cause["15.14 B + 24.37 GB, batch 3"].endswith("24.37 GB: GiB are called GB")
    assert "1,000" in cause["4.6 days"]


def judged(value: str, unit: str, part: str = "a", edition="2025") -> tuple[str, str]:
    return judge_claim(Claim(MODEL, part, "W9", value, value, unit), edition)


def test_a_verdict_depends_on_the_edition_and_a_number_from_nowhere_is_not_explained():
    assert judged("1.6405e9", "parameters", edition="2026") == (RIGHT, "")
    assert judged("2127057600", "parameters", edition="2026")[0] == OTHERWISE
    nowhere = UNEXPLAINED, "no stated assumption gives this"
    assert judged("9.123456e9", "parameters") == nowhere


def test_a_claim_about_the_largest_part_is_judged_by_the_shares():
    assert judged("feed-forward", "largest part", "c") == (RIGHT, "")
    verdict, why = judged("scores", "largest part", "c")
    assert verdict == "wrong" and "66.9%" in why


def test_every_claim_of_the_chapter_on_experiments_is_judged():
    judged = published.judge_runs().index.get_level_values("problem")
    chapter = {problem.id for problem in PROBLEMS.values() if problem.chapter == 7}
    assert list(judged) == [claim.problem for claim in all_claims() if claim.problem in chapter]


def test_a_loss_is_called_implausible_just_where_it_is_below_the_floor():
    table = published.judge_runs()
    below = table["computed"] == BELOW
    assert (below == (table["recorded"] == "implausible")).all()
    assert (below == (table["bits_per_byte"] < table["floor"])).all()
    assert below.sum() >= 6
    rest = table[table["computed"].isin([NOT_SHOWN, POSSIBLE])]
    assert set(rest["recorded"]) <= {"doubtful", "incomplete"}
    assert table["why"].str.len().min() > 20


def claim_of(words: str) -> Claim:
    return next(claim for claim in all_claims() if claim.claimed == words)


def test_a_loss_is_judged_with_the_tokens_of_its_own_write_up():
    loss = judge_loss(claim_of("TinyStories best validation loss 0.5034"))
    assert token_length("W2", "tinystories") == 4.12
    assert loss["bits_per_byte"] == pytest.approx(0.176, abs=1e-3)
    assert loss["if_bits"] == pytest.approx(1.44, abs=0.01)
    assert "0.5034 bits per byte would be 1.44 nats per token" in loss["why"]
    web = judge_loss(claim_of("OWT validation loss 0.521"))
    assert web["nats_per_token"] > loss["nats_per_token"]
    assert web["bits_per_byte"] < loss["bits_per_byte"]
    assert judge_loss(claim_of("SwiGLU significantly outperforms SiLU")) is None
    assert token_length("W9", "owt") == 4.5
