"""What the benches rest on: all rivals run, write the same, and learn.

Run by `make bench` before anything is timed, and not by `make test`: it needs the rivals.
"""

import json
from contextlib import closing
from dataclasses import replace

import pytest
import tiny_runs
import torch

from benchmarks import generation, measure, tokenizers, training
from benchmarks.training import RIVALS
from workbook import accounting
from workbook.config import ModelConfig
from workbook.generation.formats import save_tokenizer_json
from workbook.tokenization import bpe
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import devices

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    text = folder / "text.txt"
    text.write_text(f"Once upon a time the owl was 3.\n{END}\n" * 500)
    vocab, merges = bpe.train_bpe(text, 300, [END])
    tokenizer = Tokenizer(vocab, merges, [END])
    tokenizer.save(folder / "vocab.json", folder / "merges.txt")
    save_tokenizer_json(tokenizer, folder / "tokenizer.json")
    return tokenizers.Job(text, 300, folder)


@pytest.mark.parametrize("key", tokenizers.RIVALS)
def test_every_rival_can_be_timed_and_encodes_as_we_do(job, key):
    if not tokenizers.installed(key):
        pytest.skip(f"not installed: {key}")
    outcome = tokenizers.time_rival(key, job, tokenizers.expected(key, job))
    assert outcome.warm >= 0
    # Reading loads nothing, and nor does plain Python.
    assert (outcome.cold is None) == (key.split()[0] == "read" or key.endswith("python"))
    if not key.startswith("train"):
        assert outcome.difference == ""
    elif outcome.difference:  # each has a rule of its own for equally frequent pairs
        assert tokenizers.more_than_ties(key, job) == ""


def test_a_result_that_is_not_ours_is_named_and_gets_no_ratio(job, monkeypatch):
    def other(job):
        return tokenizers.Rival(tokenizers.nothing, lambda loaded: [1, 2])

    monkeypatch.setitem(tokenizers.RIVALS, "list other", other)
    outcome = tokenizers.time_rival("list other", job, tokenizers.expected("list other", job))
    assert outcome.difference.startswith("at 0: 1, ours ")
    record = {
        "text": "text.txt",
        "bytes": 2_000_000,
        "part_bytes": 2_000_000,
        "vocab_size": 300,
        "megabytes_a_second": {"list workbook": [4.0], "list equal": [2.0], "list other": [1.0]},
        "equal": ["list workbook", "list equal"],
        "differences": {"list other": "at 0: 1, ours 7"},
        "machine": measure.machine(()),
    }
    shown = tokenizers.table(record)
    assert "2.0x as fast" in shown and "4.0x" not in shown
    assert "list other differs from ours, so it gets no ratio: at 0: 1, ours 7" in shown


def test_a_library_that_is_not_installed_is_left_out_with_a_line(monkeypatch, capsys):
    monkeypatch.setattr(measure, "installed", lambda library: False)
    assert not tokenizers.installed("array tiktoken") and tokenizers.installed("array workbook")
    assert capsys.readouterr().out == "array tiktoken: left out, since tiktoken is not installed\n"
    assert list(generation.compare(TINY, 1, 8)[0]) == ["workbook", "recomputation"]


@pytest.fixture(params=RIVALS)
def name(request):
    if request.param.startswith("llama"):
        pytest.importorskip("transformers")
    return request.param


def test_every_rival_learns_and_only_our_settings_are_tuned(name, monkeypatch):
    losses = []
    tuned = []
    backward = torch.Tensor.backward
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
    gpt = training.GPT(tiny_runs.tiny().model)
    ids = torch.arange(16)[None]
    changed = ids.clone()
    changed[0, 9] = 63
    differ = (gpt(ids) != gpt(changed)).any(-1)[0]
    assert differ.tolist() == [False] * 9 + [True] * 7


TINY = ModelConfig(
    vocab_size=270, context_length=64, d_model=16, num_layers=1, num_heads=2, d_ff=24
)


def test_three_ways_are_timed_and_recorded(monkeypatch, tmp_path):
    monkeypatch.setattr(generation, "SHAPES", {"tiny": lambda: TINY})
    threads = torch.get_num_threads()
    shown = generation.run(rounds=2, folder=tmp_path, new_tokens=8)
    assert torch.get_num_threads() == threads
    record = json.loads((tmp_path / "generate.json").read_text())
    seconds = record["shapes"]["tiny"]
    assert list(seconds) == ["workbook", "recomputation", "transformers"]
    assert all(len(taken) == 2 for taken in seconds.values())
    assert {"torch", "transformers"} <= set(record["machine"]["versions"])
    assert shown.startswith("8 new tokens, one prompt, one thread") and "x as fast" in shown


def test_a_way_that_writes_different_tokens_gets_no_ratio(monkeypatch, tmp_path):
    monkeypatch.setattr(generation, "SHAPES", {"tiny": lambda: TINY})
    monkeypatch.setattr(generation, "decode", lambda *_, **__: [1])
    shown = generation.run(rounds=1, folder=tmp_path, new_tokens=8)
    assert "tiny: recomputation differs from ours, so it gets no ratio: at 0: 1, ours" in shown


def test_every_part_of_a_step_is_timed():
    best = training.step_times(tiny_runs.tiny(), tiny_runs.data(), steps=3)
    assert list(best) == ["data", "forward", "backward", "clip", "update", "log"]
    assert all(seconds > 0 for seconds in best.values())


def test_a_ratio_compares_the_speeds_of_one_round():
    speeds = {"workbook": [20.0, 27.0], "other": [10.0, 9.0], "alone": [12_345.6]}
    baselines = {"workbook": "workbook", "other": "workbook", "alone": "nobody"}
    _, first, second, third = measure.table(speeds, "MB/s", baselines.get).splitlines()
    assert first.split() == ["workbook", "27.0", "20.0", "2"]
    assert second.split()[4:] == ["2.5x", "as", "fast", "(2.0", "to", "3.0)", "2.70x"]
    assert third.split()[-3:] == ["12,346", "12,346", "1"]
