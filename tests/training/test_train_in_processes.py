"""Two processes train as one with the whole batch would, and end together."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
import torch
from torch.nn.parallel import DistributedDataParallel

from workbook.training import checkpoints, devices, log
from workbook.training import train as trainer
from workbook.training.train import CHECKPOINTS, train

CURVE = ["train_loss", "validation_loss", "gradient_norm", "tokens"]

STRESS = int(os.environ.get("STRESS", "1"))

pytestmark = pytest.mark.slow


def work(folder, accumulation=1, event="none"):
    """Train as one of two processes; to the second, `event` happens after 6 steps."""
    torch.set_num_threads(1)
    trainer.matmul_peak = lambda *_: 1e15
    update = trainer.Trainer.update

    def watched(self):
        if self.step == 6 and devices.process_rank() == 1:
            if event == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            if event == "error":
                raise MemoryError
        found = update(self)
        torch.save(self.model.state_dict(), f"{folder}-{devices.process_rank()}.pt")
        return found

    trainer.Trainer.update = watched
    train(tiny_runs.tiny(accumulation=accumulation), tiny_runs.data(), folder)


def work_as(rank, port, folder, *more):
    """Work with the environment that torchrun sets; what stops it goes into a file."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    try:
        work(folder, *more)
    except KeyboardInterrupt as stopped:
        Path(f"{folder}-{rank}.txt").write_text(str(stopped))


def fork_two(*arguments):
    """Run `work` in two processes that have torch loaded already, which torchrun's have not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [tiny_runs.forked(work_as, rank, port, *arguments) for rank in (0, 1)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The run of a single process."""
    return train(tiny_runs.tiny(), tiny_runs.data(), tmp_path_factory.mktemp("one"))


def compare(folder, one):
    """The losses of the run in a folder are those of the single process but for rounding."""
    rounding = {"float32": 1e-4, "bfloat16": 0.05}[one.precision]
    found = log.read_log(folder)
    for column in CURVE:
        np.testing.assert_allclose(found[column], one.log[column], rtol=rounding)


def test_two_processes_give_the_losses_of_one_with_twice_the_batch(tmp_path, one):
    folder = tmp_path / "two"
    fork_two(folder, 2)
    assert log.load_json(folder / log.ENVIRONMENT)["processes"] == 2
    compare(folder, one)
    saved = checkpoints.newest(folder / CHECKPOINTS)["model"]
    assert saved.keys() == one.model().state_dict().keys()
    for rank in (0, 1):
        weights = torch.load(f"{folder}-{rank}.pt")
        assert all(torch.equal(saved[name], weights[name]) for name in saved | weights)


def test_a_signal_to_one_process_saves_and_ends_all_and_the_run_goes_on(tmp_path, one):
    folder = tmp_path / "stopped"
    fork_two(folder, 1, "signal")
    for rank in (0, 1):
        said = Path(f"{folder}-{rank}.txt").read_text()
        assert "stopped after step 7, which is saved" in said
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 7
    assert log.load_json(folder / log.OUTCOME)["status"] == "stopped"
    train(one.config, tiny_runs.data(), folder)  # with as many processes as one likes
    compare(folder, one)


def part_often(rank, ports):
    """Be one of two processes that train a step, and part at once, by each of these ports."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    sys.setswitchinterval(1)  # so that gloo's thread has to wait for Python's lock
    for port in ports:
        os.environ["MASTER_PORT"] = str(port)
        with suppress(KeyboardInterrupt), devices.process_group("cpu"):
            model = DistributedDataParallel(torch.nn.Linear(50, 50))
            model(torch.ones(4, 50)).sum().backward()
            raise KeyboardInterrupt
        del model


@pytest.mark.stress
def test_processes_that_part_do_not_wait_for_each_other():
    with ExitStack() as held:
        free = [held.enter_context(socket.socket()) for _ in range(10 * STRESS)]
        for each in free:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in free]
    both = [tiny_runs.forked(part_often, rank, ports) for rank in (0, 1)]
    for process in both:
        process.join(60 + 10 * STRESS)
        process.kill()  # where it hangs
        process.join()
    assert [process.exitcode for process in both] == [0, 0]


def test_under_torchrun_an_error_in_one_ends_all_and_keeps_the_last_checkpoint(tmp_path):
    folder, tests = tmp_path / "broken", Path(__file__).parents[1]
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom training.test_train_in_processes import work\n"
        "work(sys.argv[1], event='error')\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"),
            *(script, folder),
        ],
        env={**os.environ, "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode != 0
    assert "MemoryError" in done.stderr
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 4
    assert log.load_json(folder / log.ENVIRONMENT)["processes"] == 2
