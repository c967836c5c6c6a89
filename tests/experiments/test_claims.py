"""The claims of public write-ups are whole, and can be looked up by problem and part."""

import pandas as pd
import pytest

from workbook import config
from workbook.experiments.published import claims


def test_claims_come_by_problem_and_part():
    table = claims("unicode2", "a")
    assert list(table.columns) == ["part", "claimed", "verdict", "right", "why"]
    assert list(table.index) == ["W1", "W4", "W4", "W4"]
    assert set(table["part"]) == {"a"}
    assert len(claims("unicode2")) > len(table)


def test_unknown_problem_is_a_clear_error():
    with pytest.raises(ValueError, match="no claims about 'unicode3'"):
        claims("unicode3")


def test_every_claim_has_a_verdict_and_every_wrong_one_a_right_value_or_a_reason():
    table = pd.read_csv(
        config.repository() / "data" / "reported" / "claims.csv", dtype=str, keep_default_na=False
    )
    verdicts = {
        "right",
        "wrong",
        "plausible",
        "doubtful",
        "implausible",
        "assumption",
        "incomplete",
    }
    assert set(table["verdict"]) == verdicts
    wrong = table[table["verdict"] == "wrong"]
    assert ((wrong["right"] != "") | (wrong["why"] != "")).all()
    assert not table.duplicated().any()
