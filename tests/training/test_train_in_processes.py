"""Two processes train as one with the whole batch would."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_runs

from workbook.training import log
from workbook.training.processes import Team
from workbook.training.train import train

SCRIPT = """
import sys
import tiny_runs, torch
from workbook.training import train
torch.set_num_threads(1)
train.matmul_peak = lambda *_: 1e15
train.train(tiny_runs.tiny(accumulation=int(sys.argv[2])), sys.argv[1], tiny_runs.data())
"""


def test_the_shares_of_a_batch_are_the_whole_of_it():
    places = np.arange(12)
    shares = [places[Team(rank, 3).share(12)].tolist() for rank in range(3)]
    assert np.concatenate(shares).tolist() == places.tolist()
    assert {len(share) for share in shares} == {4}


@pytest.mark.slow
@pytest.mark.parametrize("accumulation", [1, 2])
def test_two_processes_give_the_loss_of_one_with_twice_the_batch(tmp_path, accumulation):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    done = subprocess.run(
        [*command, script, tmp_path / "two", str(accumulation)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr  # all of it: what the processes say comes first
    one = train(tiny_runs.tiny(), tmp_path / "one", tiny_runs.data())
    two = log.read(tmp_path / "two")
    environment = log.load_json(tmp_path / "two" / log.ENVIRONMENT)
    assert environment["processes"] == 2
    rounding = {"float32": 1e-4, "bfloat16": 0.05}[environment["precision"]]
    for column in ("train_loss", "validation_loss", "gradient_norm", "tokens"):
        np.testing.assert_allclose(two[column], one.log[column], rtol=rounding)
