"""Two processes train as one with the whole batch would, and end together."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
import torch

from workbook.training import checkpoints, log
from workbook.training.train import CHECKPOINTS, train

CURVE = ["train_loss", "validation_loss", "gradient_norm", "tokens"]
SCRIPT = """
import os, signal, sys
import tiny_runs, torch
from workbook.training import devices, train

folder, accumulation, event = sys.argv[1:]
torch.set_num_threads(1)
train.matmul_peak = lambda *_: 1e15
update = train.Trainer.update

def watched(self):
    if self.step == 6 and devices.process_rank() == 1:
        if event == "signal":
            os.kill(os.getpid(), signal.SIGTERM)
        if event == "error":
            raise MemoryError
    found = update(self)
    torch.save(self.model.state_dict(), f"{folder}-{devices.process_rank()}.pt")
    return found

train.Trainer.update = watched
train.train(tiny_runs.tiny(accumulation=int(accumulation)), folder, tiny_runs.data())
"""

pytestmark = pytest.mark.slow


def torchrun(folder, accumulation=1, event="none"):
    """Run SCRIPT in two processes; to the second, `event` happens after 6 steps."""
    script = folder.with_suffix(".py")
    script.write_text(SCRIPT)
    tests = Path(__file__).parents[1]
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"),
            *(script, folder, str(accumulation), event),
        ],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The run of a single process."""
    return train(tiny_runs.tiny(), tmp_path_factory.mktemp("one"), tiny_runs.data())


def compare(folder, one):
    """The losses of the run in a folder are those of the single process but for rounding."""
    rounding = {"float32": 1e-4, "bfloat16": 0.05}[one.precision]
    found = log.read(folder)
    for column in CURVE:
        np.testing.assert_allclose(found[column], one.log[column], rtol=rounding)


def test_two_processes_give_the_losses_of_one_with_twice_the_batch(tmp_path, one):
    folder = tmp_path / "two"
    done = torchrun(folder, accumulation=2)
    assert done.returncode == 0, done.stderr
    assert log.load_json(folder / log.ENVIRONMENT)["processes"] == 2
    compare(folder, one)
    saved = checkpoints.newest(folder / CHECKPOINTS)["model"]
    assert saved.keys() == one.model().state_dict().keys()
    for rank in (0, 1):
        weights = torch.load(f"{folder}-{rank}.pt")
        assert all(torch.equal(saved[name], weights[name]) for name in saved | weights)


def test_a_signal_to_one_process_saves_and_ends_all_and_the_run_goes_on(tmp_path, one):
    folder = tmp_path / "stopped"
    done = torchrun(folder, event="signal")
    assert done.returncode != 0
    assert done.stderr.count("stopped after step 7, which is saved") >= 2
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 7
    assert log.load_json(folder / log.OUTCOME)["status"] == "stopped"
    train(one.config, folder, tiny_runs.data())  # with as many processes as one likes
    compare(folder, one)


def test_an_error_in_one_process_ends_all_and_keeps_the_last_checkpoint(tmp_path):
    folder = tmp_path / "broken"
    done = torchrun(folder, event="error")
    assert done.returncode != 0
    assert "MemoryError" in done.stderr
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 4
