"""Two processes train as one with the whole batch would, and end together."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import tiny_runs
import torch
from torch.nn.parallel import DistributedDataParallel
from work import PATIENCE

from workbook.training import checkpoints, devices, log
from workbook.training.data import get_batch
from workbook.training.trainer import CHECKPOINTS
from workbook.transformer.model import TransformerLM

STRESS = int(os.environ.get("STRESS", "0"))

stress_only = pytest.mark.skipif(not STRESS, reason="a part of `make stress`")


def work(folder, event="none"):
    """Train as one of two processes; to the second, `event` happens in its seventh step."""
    torch.set_num_threads(1)
    models = []
    batches = count(1)

    def build(config):
        models.append(TransformerLM.from_config(config))
        return models[0]

    def draw(*arguments):
        if devices.process_rank() == 1 and next(batches) == 7:
            if event == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            if event == "error":
                raise MemoryError
        return get_batch(*arguments)

    parts = {"model": build, "get_batch": draw}
    tiny_runs.trained(folder, parts=parts, accumulation=2)
    torch.save(models[0].state_dict(), f"{folder}-{os.environ['RANK']}.pt")


def become(rank, port):
    """Set the environment that torchrun gives to one of two processes."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def work_as(rank, port, folder, *more):
    """Work as one of two processes; what stops it goes into a file."""
    become(rank, port)
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


def test_two_processes_train_as_one_and_a_signal_to_one_saves_and_stops_both(tmp_path):
    folder = tmp_path / "two"
    one = tiny_runs.trained(tmp_path / "one")
    fork_two(folder, "signal")
    for rank in (0, 1):
        said = Path(f"{folder}-{rank}.txt").read_text()
        assert "stopped after step 7, which is saved" in said
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 7
    assert log.load_json(folder / log.OUTCOME)["status"] == "stopped"

    fork_two(folder)
    assert log.load_json(folder / log.ENVIRONMENT)["processes"] == 2
    found = log.read_log(folder)
    for column in ("train_loss", "validation_loss", "gradient_norm", "tokens"):
        rounding = {"float32": 1e-4, "bfloat16": 0.05}[one.precision]
        np.testing.assert_allclose(found[column], one.log[column], rtol=rounding)
    saved = checkpoints.newest(folder / CHECKPOINTS)["model"]
    assert saved.keys() == one.model().state_dict().keys()
    for rank in (0, 1):
        weights = torch.load(f"{folder}-{rank}.pt")
        assert all(torch.equal(saved[name], weights[name]) for name in saved | weights)


def part_often(rank, ports):
    """Be one of two processes that train a step, and part at once, by each of these ports."""
    sys.setswitchinterval(1)  # so that gloo's thread has to wait for Python's lock
    for port in ports:
        become(rank, port)
        with suppress(KeyboardInterrupt), devices.process_group("cpu"):
            model = DistributedDataParallel(torch.nn.Linear(50, 50))
            model(torch.ones(4, 50)).sum().backward()
            raise KeyboardInterrupt
        del model


@stress_only
@pytest.mark.stress
def test_processes_that_part_do_not_wait_for_each_other():
    with ExitStack() as held:
        free = [held.enter_context(socket.socket()) for _ in range(10 * STRESS)]
        for each in free:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in free]
    both = [tiny_runs.forked(part_often, rank, ports) for rank in (0, 1)]
    for process in both:
        process.join(PATIENCE)
        process.kill()  # where it hangs
        process.join()
    assert [process.exitcode for process in both] == [0, 0]


@stress_only
@pytest.mark.stress
def test_under_torchrun_an_error_in_one_ends_all_and_keeps_the_last_checkpoint(tmp_path):
    folder = tmp_path / "broken"
    tests = Path(__file__).parents[1]
    script = tmp_path / "script.py"
    imports = "import sys\nfrom training.test_train_in_processes import work\n"
    script.write_text(f"{imports}work(sys.argv[1], 'error')")
    words = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", script, folder]
    paths = os.environ | {"PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}"}
    done = subprocess.run([sys.executable, *words], env=paths, capture_output=True, text=True)
    assert done.returncode != 0
    assert "MemoryError" in done.stderr
    assert checkpoints.newest(folder / CHECKPOINTS)["iteration"] == 4
    assert log.load_json(folder / log.ENVIRONMENT)["processes"] == 2
