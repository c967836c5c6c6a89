"""Finished runs as text, found by what they were asked for: in data/runs, or in the data folder.

    data/runs/rate-0.01-3f0c.../  config.json environment.json log.jsonl outcome.json sample.json

No weights: a record is small enough to be committed, and all tables and curves come from it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workbook import config as settings
from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.training import log as runlog

if TYPE_CHECKING:
    import pandas as pd

TEXTS = (runlog.CONFIG, runlog.ENVIRONMENT, runlog.LINES, runlog.OUTCOME, runlog.SAMPLE)
ENDED = ("finished", "diverged")


_apart: ContextVar[Path | None] = ContextVar("_apart", default=None)


@contextmanager
def apart() -> Iterator[Path]:
    """A folder for all records, in place of the usual ones; gone afterwards.

    For trying something out: what is made inside does not mix with what was recorded.
    """
    with tempfile.TemporaryDirectory() as folder:
        token = _apart.set(Path(folder))
        try:
            yield Path(folder)
        finally:
            _apart.reset(token)


def folders() -> tuple[Path, ...]:
    """Where records lie: first where new ones go, then those that came with the workbook."""
    if (apart_from_all := _apart.get()) is not None:
        return (apart_from_all,)
    own, given = settings.data_folder() / "runs", settings.repository() / "data" / "runs"
    return (own,) if own == given else (own, given)


def find(config: TrainConfig) -> Run | None:
    """The record of the run of this config, whatever it was called; None if there is none."""
    for place in folders():
        for folder in sorted(place.glob(f"*-{config.key}")):
            if (folder / runlog.OUTCOME).is_file():
                return Run(config, folder)
    return None


def every() -> Iterator[Run]:
    """All records there are, each once."""
    seen = set()
    for place in folders():
        for folder in sorted(place.glob("*-*")):
            if (folder / runlog.OUTCOME).is_file():
                config = read_config(folder)
                if config.key not in seen:
                    seen.add(config.key)
                    yield Run(config, folder)


def read_config(folder: Path) -> TrainConfig:
    """The config that a run was asked for."""
    asked = runlog.config(folder)
    parts = {
        "model": ModelConfig(**asked["model"]),
        "optimizer": OptimizerConfig(**asked["optimizer"]),
    }
    return TrainConfig(**asked | parts)


def keep(config: TrainConfig, run: Path) -> Run:
    """The record of a run that has ended: its texts, copied from its folder, all of them or none.

    Raises: ValueError for a run that has not ended.
    """
    status = runlog.load_json(run / runlog.OUTCOME)["status"]
    if status not in ENDED:
        raise ValueError(f"the run in {run} is {status}; only one that has ended is kept")
    target = folders()[0] / f"{config.name}-{config.key}"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as temporary:
        whole = Path(temporary) / "record"
        whole.mkdir()
        for name in TEXTS:
            if (run / name).is_file():
                shutil.copy(run / name, whole / name)
        if target.exists():
            shutil.rmtree(target)
        os.replace(whole, target)
    return Run(config, target)


def settings_of(config: TrainConfig) -> dict:
    """All settings by name, those of the model and the optimizer among them."""
    flat = asdict(config)
    return flat.pop("model") | flat.pop("optimizer") | flat


def differing(configs: Mapping[str, TrainConfig]) -> list[str]:
    """The names of the settings in which these configs are not all the same."""
    flat = [settings_of(config) for config in configs.values()]
    return [
        name for name in flat[0] if name != "name" and len({str(each[name]) for each in flat}) > 1
    ]


def table(results: Mapping[str, Run]) -> "pd.DataFrame":
    """A row a run: what differs between them, and what came out."""
    import pandas as pd  # here: whoever only trains need not load it

    names = differing({label: result.config for label, result in results.items()})
    return pd.DataFrame(
        [
            {
                "run": label,
                **{name: settings_of(result.config)[name] for name in names},
                "status": result.outcome["status"],
                "steps taken": result.steps,
                "tokens": result.tokens,
                "seconds": result.seconds,
                "validation_loss": result.loss,
                "bits_per_byte": result.bits_per_byte,
            }
            for label, result in results.items()
        ]
    ).set_index("run")
