"""Training runs that take a second, for tests: a small model, and ids with a pattern."""

import multiprocessing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.training import presets, trainer
from workbook.training.data import TrainData
from workbook.training.parts import Parts
from workbook.training.trainer import Run

VOCAB_SIZE, END = 64, 0
CURVE = ["tokens", "train_loss", "learning_rate", "gradient_norm", "validation_loss"]


def tiny(**changes) -> TrainConfig:
    """A run of 24 steps that logs, evaluates and saves often, in the precision of this machine."""
    sizes = {"vocab_size": VOCAB_SIZE, "context_length": 16, "d_model": 16, "num_layers": 2}
    shape = ModelConfig(**sizes, num_heads=2, d_ff=32)
    optimizer = OptimizerConfig(max_learning_rate=1e-2, warmup_iters=4)
    usual = {"name": "tiny", "model": shape, "optimizer": optimizer, "steps": 24, "batch_size": 8}
    usual |= {"log_every": 1, "eval_every": 8, "eval_tokens": 256, "checkpoint_every": 4}
    return replace(presets.laptop(), **usual | {"device": "cpu", "precision": "auto"} | changes)


def ids(count: int, seed: int = 0) -> np.ndarray:
    """Ids that count up by 0, 1 or 2: easy to learn in part; a document ends every 50."""
    rng = np.random.default_rng(seed)
    tokens = (np.cumsum(rng.integers(0, 3, count)) % (VOCAB_SIZE - 1) + 1).astype(np.uint16)
    tokens[49::50] = END
    return tokens


def data(**changes) -> TrainData:
    """Two splits without a common document."""
    usual = {"train": ids(10_000), "validation": ids(2_000, seed=1), "end_id": END}
    usual |= {"token_bytes": np.ones(VOCAB_SIZE, np.int64)}
    return TrainData(**(usual | changes))


def trained(folder, *listeners, on=None, parts=None, clock=None, **changes) -> Run:
    """Train a tiny run, or finish it: on other data, of other parts by name, by another clock."""
    config = tiny(**changes)
    made_of = replace(Parts.ours(config), **parts or {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "matmul_peak", lambda *_: 1e15)  # measuring takes 0.3 s
        if clock is not None:
            patch.setattr(trainer, "time", clock)
        return trainer.train(config, on or data(), folder, listeners, made_of)


def at_step(step: int, event):
    """A listener that lets something happen when that step is logged."""
    return lambda record: event() if record["step"] == step else None


def assert_same(run: Run, other: Run) -> None:
    """All figures that do not depend on the clock are equal to the last bit, and all weights."""
    pd.testing.assert_frame_equal(run.log[CURVE], other.log[CURVE], check_exact=True)
    for one, two in zip(run.model().parameters(), other.model().parameters(), strict=True):
        assert torch.equal(one, two)


def forked(target, *arguments) -> multiprocessing.Process:
    """A process, forked from one that has loaded torch: it is at work within milliseconds."""
    context = multiprocessing.get_context("forkserver")
    # DistributedDataParallel would load torch._dynamo in each process: two seconds.
    context.set_forkserver_preload(["workbook.training.trainer", "tiny_runs", "torch._dynamo"])
    process = context.Process(target=target, args=arguments)
    process.start()
    return process
