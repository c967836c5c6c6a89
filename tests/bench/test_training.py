"""The bench of training measures what it says, and its table says what was measured."""

import os
import signal
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial

import pytest
import tiny_runs
import torch

from workbook import accounting
from workbook.bench import measure, training
from workbook.bench.training import RIVALS
from workbook.training import devices, presets, train


@pytest.fixture(autouse=True)
def peak(monkeypatch):
    monkeypatch.setattr(train, "matmul_peak", lambda *_: 1e15)


@pytest.fixture
def record():
    speeds = {"naive": [100.0, 90.0], "workbook": [200.0, 270.0]}
    found = {
        "tokens_a_second": speeds, "batch_size": 8, "precision": "float32", "threads": 2,
        "flops_a_token": {"naive": 2e6, "workbook": 10}, "peak_flops_a_second": 5_400.0,
        "step_seconds": {"data": 0.001, "forward": 0.04, "backward": 0.058, "log": 0.001},
    }  # fmt: skip
    where = {"cores": 2, "processor": "abacus", "system": "Linux", "load": 0.1, "versions": {}}
    return {"machine": where, "shapes": {"laptop": found}}


def test_the_table_gives_ratios_round_by_round_and_best_against_best(record):
    lines = training.table(record).splitlines()
    naive = next(line.split() for line in lines if line.startswith("naive"))
    # MFLOP per token, MFU, best and lowest tokens per second, runs; then the ratios
    assert naive[1:6] == ["2.0", "3703704%", "100.0", "90.0", "2"]
    assert " ".join(naive[6:]) == "2.5x as fast (2.0 to 3.0) 2.70x"
    assert next(line.split()[2] for line in lines if line.startswith("workbook")) == "50%"
    assert "data and log are 2.00% of it" in lines[-1]


@pytest.fixture(params=RIVALS)
def name(request):
    if request.param.startswith("llama"):
        pytest.importorskip("transformers")
    return request.param


def test_every_rival_learns_and_only_our_settings_are_tuned(name, monkeypatch):
    losses, tuned, backward = [], [], torch.Tensor.backward
    graphs = []
    monkeypatch.setattr(torch, "compile", lambda model: graphs.append(model) or model)
    monkeypatch.setattr(torch.Tensor, "backward", lambda x: (losses.append(x.item()), backward(x)))
    monkeypatch.setattr(devices, "tune", tuned.append)
    torch.manual_seed(0)
    with closing(RIVALS[name](tiny_runs.tiny(), tiny_runs.data())) as loop:
        for _ in range(20):
            next(loop)
    assert losses[0] > losses[-1] + 0.1
    assert bool(tuned) == (name.startswith("workbook") or "our settings" in name)
    assert bool(graphs) == name.endswith("compiled")


def test_on_a_gpu_models_are_compiled_too_and_the_record_is_another(monkeypatch, tmp_path):
    timed = []
    monkeypatch.setattr(training, "step_seconds", lambda process, name, *_: timed.append(name) or 1)
    monkeypatch.setattr(training, "step_times", lambda *_: {"data": 0.5, "log": 0.5})
    monkeypatch.setattr(measure, "own_process", lambda *_: nullcontext())
    monkeypatch.setattr(training, "matmul_peak", lambda *_: 1e12)
    monkeypatch.setattr(devices, "pick_device", lambda name: torch.device(name))
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "A GPU")
    shown = training.run(1, 1, tmp_path, ["gpu"], "cuda")
    assert "gpu: batches of 64, bfloat16 on A GPU" in shown
    assert {name for name in timed if name.endswith("compiled")} == {
        "workbook, compiled", "nanogpt, our settings, compiled",
    }  # fmt: skip
    timed.clear()
    assert "full: batches of 8, " in training.run(1, 1, tmp_path, ["full"])
    assert not [name for name in timed if name.endswith("compiled")] and "workbook" in timed
    assert {path.name for path in tmp_path.iterdir()} == {"train-cuda.json", "train.json"}


def test_a_loop_in_a_process_of_its_own_takes_steps_and_says_what_went_wrong():
    with measure.own_process() as process:
        seconds = partial(training.step_seconds, process, config=tiny_runs.tiny(), steps=1)
        assert seconds("naive") > 0 and seconds("naive") > 0  # on random tokens
        with pytest.raises(KeyError, match="unknown"):
            seconds("unknown")
        os.kill(process.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(
            RuntimeError, match="the process of 'naive' was killed; was there enough memory"
        ):
            seconds("naive")


def test_a_llama_has_as_many_parameters_as_our_model():
    transformers = pytest.importorskip("transformers")
    shape = tiny_runs.tiny().model
    model = transformers.LlamaForCausalLM(training.llama_config(shape))
    assert size_of(model) == accounting.parameters(shape).total


def size_of(model):
    return sum(weights.numel() for weights in model.parameters())


def test_the_gpt_has_the_matrices_that_are_counted_for_it():
    shape = replace(tiny_runs.tiny().model, d_model=32, num_layers=3)
    positions = shape.context_length * shape.d_model
    counted = accounting.parameters(training.nearest_shape(shape)).total
    assert size_of(training.GPT(shape)) == counted + positions


def test_the_gpt_sees_no_later_id():
    gpt, ids = training.GPT(tiny_runs.tiny().model), torch.arange(16)[None]
    changed = ids.clone()
    changed[0, 9] = 63
    differ = (gpt(ids) != gpt(changed)).any(-1)[0]
    assert differ.tolist() == [False] * 9 + [True] * 7


def test_every_part_of_a_step_is_timed():
    found = training.step_times(tiny_runs.tiny(), tiny_runs.data(), steps=3)
    assert list(found) == ["data", "forward", "backward", "clip", "update", "log"]
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.slow
def test_a_run_is_killed_in_the_step_that_was_asked_for(tmp_path):
    small = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 32, "eval_tokens": 512}
    config = presets.varied(
        presets.laptop(), steps=8, batch_size=2, log_every=1, warmup_iters=1, **small
    )
    assert training.killed_run(config, tmp_path / "killed", at_step=5) == 5
    assert train.Run(config, tmp_path / "killed").status == "running"
    with pytest.raises(RuntimeError, match="ended by itself, before step 9"):
        training.killed_run(config, tmp_path / "whole", at_step=9)
