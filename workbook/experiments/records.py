"""Finished runs as text, found by what they were asked for: in data/runs, or in the data folder.

    data/runs/rate-0.01-3f0c.../  config.json environment.json log.jsonl outcome.json sample.json

A record holds no weights: it is small enough to be committed, and all tables and curves come from
it. The folder's name ends in the hash of the config (`TrainConfig.key`), so a run is never made
twice, whichever experiment asks for it first.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbook import config as settings
from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.training import log
from workbook.training.train import Run

TEXTS = (log.CONFIG, log.ENVIRONMENT, log.LINES, log.OUTCOME, log.SAMPLE)
ENDED = ("finished", "diverged")


def find(config: TrainConfig) -> Run | None:
    """The record of the run with this config, whatever its name; None if there is none."""
    for place in folders():
        for folder in sorted(place.glob(f"*-{config.key}")):
            if (folder / log.OUTCOME).is_file():
                return Run(config, folder)
    return None


def load(folder: Path) -> Run:
    """The run in a folder, with the config that is stored there."""
    asked = {name: value for name, value in log.config(folder).items() if name != "parts"}
    model, optimizer = ModelConfig(**asked["model"]), OptimizerConfig(**asked["optimizer"])
    return Run(TrainConfig(**asked | {"model": model, "optimizer": optimizer}), folder)


def load_all() -> list[Run]:
    """All records there are, each config once."""
    found: dict[str, Run] = {}
    for place in folders():
        for folder in sorted(place.glob("*-*")):
            if (folder / log.OUTCOME).is_file():
                run = load(folder)
                found.setdefault(run.config.key, run)
    return list(found.values())


def keep(config: TrainConfig, folder: Path) -> Run:
    """The record of the run in `folder`: its texts, copied into the first of `folders`.

    All of them are copied or none. Raises: ValueError for a run that has not ended.
    """
    status = Run(config, folder).status
    if status not in ENDED:
        raise ValueError(f"the run in {folder} is {status}; only one that has ended is kept")
    target = folders()[0] / f"{config.name}-{config.key}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as temporary:
        whole = Path(temporary) / "record"
        whole.mkdir()
        for name in TEXTS:
            if (folder / name).is_file():
                shutil.copy(folder / name, whole / name)
        if target.exists():
            shutil.rmtree(target)
        os.replace(whole, target)
    return Run(config, target)


_temporary: Path | None = None  # the folder of `temporary_folder`


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A context in which all records are in one empty folder, which is deleted afterwards.

    Use it to try something out: what is made inside does not mix with what was recorded.
    """
    global _temporary
    with tempfile.TemporaryDirectory() as folder:
        _temporary = Path(folder)
        try:
            yield _temporary
        finally:
            _temporary = None


def folders() -> tuple[Path, ...]:
    """Where records are: first the folder for new ones, then those that came with the workbook."""
    if _temporary is not None:
        return (_temporary,)
    own, given = settings.data_folder() / "runs", settings.shipped() / "data" / "runs"
    return (own,) if own == given else (own, given)
