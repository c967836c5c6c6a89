"""The next round of a plan is known, and later ones are imagined without touching a record."""

import math

import pytest
import tiny_runs

from workbook.experiments import records, studies
from workbook.experiments.foresight import Imagined, imagined, unfolded
from workbook.experiments.studies import STUDIES, at_rate
from workbook.training.presets import varied

TINY = tiny_runs.tiny()


@pytest.fixture(autouse=True)
def no_records(tmp_path, monkeypatch):
    """No run has a record."""
    monkeypatch.setattr(records, "folders", lambda: (tmp_path,))


def two_rounds():
    results = yield {str(rate): at_rate(TINY, rate) for rate in (1e-3, 1e-2, 1e-1)}
    top = min(results.values(), key=lambda result: result.loss)
    return results | (yield {"again": varied(top.config, seed=1), "1": at_rate(TINY, 1e-2)})


def test_the_first_round_is_known_and_the_next_imagined():
    known, later = unfolded(two_rounds())
    assert [config.optimizer.max_learning_rate for config in known] == [1e-3, 1e-2, 1e-1]
    assert [config.seed for config in later] == [1, TINY.seed]
    assert later[0].optimizer.max_learning_rate == 1e-2, "the middle rate is not the best"


def test_rounds_that_have_records_are_neither(monkeypatch):
    recorded = {at_rate(TINY, rate).key for rate in (1e-3, 1e-2, 1e-1)}

    def find(config):
        rate = config.optimizer.max_learning_rate
        return Imagined(config, None, rate) if config.key in recorded else None

    monkeypatch.setattr(records, "find", find)
    known, later = unfolded(two_rounds())
    assert [config.seed for config in known] == [1]
    assert known[0].optimizer.max_learning_rate == 1e-3, "the records say otherwise"
    assert later == []


def test_ten_times_the_middle_rate_is_imagined_to_diverge():
    found = imagined({str(rate): at_rate(TINY, rate) for rate in (1e-3, 1e-2, 3e-2, 1e-1, 1.0)})
    assert [result.diverged for result in found.values()] == [False, False, False, False, True]
    assert min(found, key=lambda label: found[label].loss) == "0.03"
    assert found["1.0"].loss == math.inf


@pytest.mark.parametrize("scale", studies.SCALES)
@pytest.mark.parametrize("name", STUDIES)
def test_every_plan_can_be_imagined_to_its_end(name, scale):
    scale = studies.scale_named(scale, "2025")
    known, later = unfolded(STUDIES[name].plan(scale))
    assert len(known) == len(scale.rates)
    assert len({config.key for config in known + later}) > len(known)
