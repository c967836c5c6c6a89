"""Every setting of a run can be given on the command line."""

import argparse
import math
from dataclasses import asdict, fields, replace

import pytest

from workbook.classroom import cli
from workbook.config import PROFILES, ModelConfig, OptimizerConfig, TrainConfig
from workbook.experiments import studies
from workbook.training import presets


def parsed(*words):
    parser = argparse.ArgumentParser()
    presets.add_options(parser)
    return presets.chosen(parser.parse_args(words))


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_comes_as_it_is_and_its_smallest_learning_rate_follows_the_largest(name):
    usual = presets.preset(name)
    assert parsed(name) == usual
    asked = parsed(name, "--max-learning-rate", "3e-3")
    assert asked.optimizer.max_learning_rate == 3e-3
    # so the curve of the command's runs lies on that of the recorded ones
    assert asked == studies.at_rate(usual, 3e-3)


def test_settings_change_model_optimizer_and_run():
    words = "laptop --d-model 64 --betas 0.8 0.9 --batch-size 4 --compile --max-l2-norm inf"
    words += " --num-heads 2 --cosine-cycle-iters none --corpus-bytes 1000"
    model = {"d_model": 64, "num_heads": 2}
    run = {"batch_size": 4, "corpus_bytes": 1_000}
    rest = {"betas": (0.8, 0.9), "max_l2_norm": math.inf, "cosine_cycle_iters": None}
    asked = presets.varied(presets.laptop(), **model, **run, **rest, compile=True)
    assert parsed(*words.split()) == asked


def test_another_corpus_is_taken_whole():
    usual = presets.laptop()
    assert presets.preset("laptop", corpus="docstrings").corpus_bytes is None
    assert presets.preset("laptop", corpus=usual.corpus) == usual
    assert presets.preset("laptop", corpus="owt", corpus_bytes=9).corpus_bytes == 9


def test_a_smallest_learning_rate_holds_as_given():
    for words, rates in (
        (["--max-learning-rate", "3e-4", "--min-learning-rate", "2e-4"], (3e-4, 2e-4)),
        (["--min-learning-rate", "2e-4"], (1e-2, 2e-4)),
    ):
        asked = parsed("laptop", *words).optimizer
        assert (asked.max_learning_rate, asked.min_learning_rate) == rates
    off = presets.varied(presets.laptop(), max_learning_rate=0.0)
    assert presets.varied(off, max_learning_rate=0.1).optimizer.min_learning_rate == 0


def test_every_field_of_every_config_has_an_option():
    parser = argparse.ArgumentParser()
    presets.add_options(parser)
    known = {action.dest for action in parser._actions}
    assert all(action.help for action in parser._actions)  # a comment in the source
    helps = {action.dest: action.help for action in parser._actions}
    assert helps["batch_size"] == "sequences per step, over all processes (laptop: 8)"
    for config in (ModelConfig, OptimizerConfig, TrainConfig):
        assert {field.name for field in fields(config)} - {"model", "optimizer"} <= known


SENSELESS = [
    ("nothing", "is not a preset; the presets are laptop"),
    ("laptop --batch-size 0", "--batch-size=0 is not a positive whole number"),
    ("laptop --min-learning-rate 1", "got 1.0 and 0.01; lower the minimum or"),
    ("laptop --decay after", "update='fused' decays the weights before"),
    ("laptop --steps 5 --warmup-iters 20", "the warm-up of 20 steps is longer"),
]


@pytest.mark.parametrize(("words", "message"), SENSELESS)
def test_what_makes_no_sense_is_said_in_one_line(capsys, words, message):
    assert cli.main(["train", *words.split()]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_every_profile_has_a_preset_for_its_model_and_corpus():
    assert list(PROFILES) == list(presets.PRESETS)
    for name, profile in PROFILES.items():
        preset = presets.preset(name)
        assert (preset.name, preset.model) == (name, profile.model)
        assert preset.corpus == profile.simple_corpus
        assert preset.model.vocab_size == profile.simple_vocab_size


def test_a_key_names_the_settings_and_nothing_else():
    base = presets.laptop()
    for same in ({"name": "another"}, {"accumulation": 4}, {"compile": True}):
        assert replace(base, **same).key == base.key
    for other in ({"seed": 1}, {"d_ff": 512}, {"eps": 1e-6}):
        assert presets.varied(base, **other).key != base.key
    again = OptimizerConfig(**{**asdict(base.optimizer), "betas": list(base.optimizer.betas)})
    assert replace(base, optimizer=again).key == base.key
