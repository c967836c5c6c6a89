"""What write-ups claim about runs is judged by arithmetic, and the records agree."""

import pytest

from workbook.experiments.published import (
    BELOW,
    NOT_SHOWN,
    POSSIBLE,
    claimed_loss,
    claims,
    judge_runs,
    token_length,
)
from workbook.study.problems import PROBLEMS


def test_every_claim_of_the_chapter_is_in_the_ledger():
    table = judge_runs()
    for problem in (p.id for p in PROBLEMS.values() if p.chapter == 7):
        try:
            count = len(claims(problem))
        except ValueError:  # none is known
            count = 0
        assert (table.index.get_level_values("problem") == problem).sum() == count


def test_a_loss_is_called_implausible_just_where_it_is_below_the_floor():
    table = judge_runs()
    below = table["computed"] == BELOW
    assert (below == (table["recorded"] == "implausible")).all()
    assert (below == (table["bits_a_byte"] < table["floor"])).all()
    assert below.sum() >= 6


def test_what_shows_nothing_is_recorded_as_doubtful_or_incomplete():
    table = judge_runs()
    rest = table[table["computed"].isin([NOT_SHOWN, POSSIBLE])]
    assert set(rest["recorded"]) <= {"doubtful", "incomplete"}
    assert table["why"].str.len().min() > 20


def test_a_loss_is_judged_with_the_tokens_of_its_own_write_up():
    loss = claimed_loss("W2", "TinyStories best validation loss 0.5034")
    assert loss.bytes_a_token == token_length("W2", "tinystories") == 4.12
    assert loss.bits_a_byte == pytest.approx(0.176, abs=1e-3) and not loss.possible
    assert "0.5034 bits a byte would be 1.44 nats a token" in loss.why


def test_of_the_two_best_losses_the_one_on_web_text_would_be_the_lower():
    simple = claimed_loss("W2", "TinyStories best validation loss 0.5034")
    web = claimed_loss("W2", "OWT validation loss 0.521")
    assert web.nats > simple.nats and web.bits_a_byte < simple.bits_a_byte


def test_a_claim_without_a_loss_has_none():
    assert claimed_loss("W2", "SwiGLU significantly outperforms SiLU") is None
    assert claimed_loss("W9", "OWT validation loss 3.0").bytes_a_token == 4.5
