"""The bench of training measures what it says, and its table says what was measured."""

from contextlib import ExitStack

import pytest
import tiny_runs

from workbook import step_times, train_bench, trainer
from workbook.train_rivals import RIVALS


@pytest.fixture(autouse=True)
def peak(monkeypatch):
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)


@pytest.fixture
def record():
    speeds = {"naive": [100.0, 90.0], "workbook": [200.0, 270.0]}
    found = {
        "tokens_a_second": speeds, "batch_size": 8, "precision": "float32", "threads": 2,
        "flops_a_token": 10, "peak_flops_a_second": 5_400.0,
        "step_seconds": {"data": 0.001, "forward": 0.04, "backward": 0.058, "log": 0.001},
    }  # fmt: skip
    where = {"cores": 2, "processor": "abacus", "system": "Linux", "load": 0.1, "versions": {}}
    return {"machine": where, "shapes": {"laptop": found}}


def test_the_table_gives_ratios_round_by_round_and_best_against_best(record):
    shown = train_bench.table(record)
    assert "2.5x as fast (2.0 to 3.0); best against best 2.70x" in shown
    assert "data and log are 2.00% of it" in shown
    assert train_bench.mfu(record["shapes"]["laptop"]) == 0.5


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_takes_steps(name):
    if name.startswith("llama"):
        pytest.importorskip("transformers")
    with ExitStack() as stack:
        step = RIVALS[name](tiny_runs.tiny(), tiny_runs.data(), stack)
        assert train_bench.best_seconds(step, 2) > 0


def test_a_llama_has_as_many_parameters_as_our_model():
    transformers = pytest.importorskip("transformers")
    from workbook import accounting
    from workbook.train_rivals import llama_config

    shape = tiny_runs.tiny().model
    model = transformers.LlamaForCausalLM(llama_config(shape))
    assert sum(p.numel() for p in model.parameters()) == accounting.parameters(shape).total


def test_every_part_of_a_step_is_timed():
    found = step_times.step_times(tiny_runs.tiny(), tiny_runs.data(), steps=3)
    assert list(found) == ["data", "forward", "backward", "clip", "update", "log"]
    assert all(0 < seconds < 10 for seconds in found.values())


def test_random_ids_fit_the_vocabulary():
    data = train_bench.random_data(tiny_runs.tiny())
    assert data.train.max() < tiny_runs.VOCAB_SIZE == len(data.token_bytes)
