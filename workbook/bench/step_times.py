"""Where the time of a training step goes, and a run that is killed on purpose."""

import multiprocessing
import os
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from workbook.config import TrainConfig
from workbook.training import devices, log
from workbook.training.processes import Team
from workbook.training.train import train
from workbook.training.train_data import TrainData
from workbook.training.trainer import Trainer

PARTS = ("data", "forward", "backward", "clip", "update", "log")


def step_times(config: TrainConfig, data: TrainData, steps: int = 20) -> dict[str, float]:
    """The seconds of each part of a step, the shortest of `steps` steps; each is logged."""
    best = dict.fromkeys(PARTS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(replace(config, eval_tokens=4_096), Path(folder), data, Team())
        with trainer.open_log(()):
            trainer.begin(None)
            clock = time.perf_counter()

            def lap(part: str) -> None:
                nonlocal clock
                devices.synchronize(trainer.device)
                now = time.perf_counter()
                best[part] = min(best[part], now - clock)
                clock = now

            trainer.lap = lap
            for _ in range(steps):
                loss, norm = trainer.update()
                trainer.record(loss, norm, rate=0.0, evaluates=False)  # nobody reads this log
    return best


def killed_run(config: TrainConfig, folder: Path, at_step: int) -> int:
    """The last step in the log of a run in a process of its own, killed once `at_step` is there.

    SIGKILL cannot be caught: it is to a process what a power cut is to a machine.
    """
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_train_until, args=(config, folder, at_step))
    process.start()
    try:
        process.join()
    finally:
        process.kill()  # an interrupted cell leaves nothing running
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"the run ended by itself, with exit code {process.exitcode}")
    return last_step(folder)


def _train_until(config: TrainConfig, folder: Path, at_step: int) -> None:
    """Train, and kill this process as soon as the step is in the log: a watcher may come late."""

    def strike(record: dict) -> None:
        if record["step"] == at_step:
            os.kill(os.getpid(), signal.SIGKILL)

    train(config, folder, listeners=[strike])


def last_step(folder: Path) -> int:
    """The last step in the log; -1 where there is none yet."""
    if not (folder / log.LINES).exists():
        return -1
    found = log.records(folder)
    return found[-1]["step"] if found else -1
