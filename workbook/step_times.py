"""Where the time of a training step goes, and a run that is killed on purpose."""

import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from workbook import devices, runlog, train_options
from workbook.config import TrainConfig
from workbook.processes import Team
from workbook.train_data import TrainData
from workbook.trainer import Trainer

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
    """The last step in the log of a run in a process of its own, killed at `at_step` or just after.

    SIGKILL cannot be caught: it is to a process what a power cut is to a machine.
    """
    command = [sys.executable, "-m", "workbook", "train", *train_options.arguments(config)]
    process = subprocess.Popen(
        [*command, "--folder", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        while process.poll() is None and last_step(folder) < at_step:
            time.sleep(0.005)
    finally:
        process.kill()
        _, errors = process.communicate()
    if process.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the run ended by itself: {errors.decode()[-500:]}")
    return last_step(folder)


def last_step(folder: Path) -> int:
    """The last step in the log; -1 where there is none yet."""
    if not (folder / runlog.LINES).exists():
        return -1
    found = runlog.records(folder)
    return found[-1]["step"] if found else -1
