"""Records of runs that nobody made, for tests of what reads them."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import tiny_runs

from workbook.experiments.records import keep_record
from workbook.training import log
from workbook.training.presets import varied
from workbook.training.trainer import Run

ENVIRONMENT = {"processor": "Abacus", "cores": 2, "threads": 1, "peak_flops_per_second": 1e9}
ENVIRONMENT |= {"system": "Linux x86_64", "device": "cpu", "precision": "float32"}
ENVIRONMENT |= {"versions": {"python": "3.11.7", "torch": "2.13.0"}, "commit": "0123456789abcdef"}


def config(**changes):
    """A config of a tiny run; settings of the model and the optimizer by their names."""
    return varied(tiny_runs.tiny(), **changes)


def kept(study: str, folder: Path, asked, losses) -> None:
    """Keep a run that finished with these losses, as `record` makes it, among the records."""
    keep_record(study, record(folder, asked, losses), tiny_runs.data())


def record(folder: Path, asked, losses, *, diverged: bool = False) -> Run:
    """A run in a folder with these validation losses, one a step from 0 on, two seconds each."""
    place = folder / f"{asked.name}-{asked.key}"
    place.mkdir(parents=True, exist_ok=True)
    tokens = asked.batch_size * asked.model.context_length
    lines = []
    for step, loss in enumerate(losses):
        measured = {"validation_loss": loss, "validation_bits_per_byte": loss / 2}
        line = {"step": step, "tokens": step * tokens, "seconds": 2.0 * step, "train_loss": loss}
        lines.append(json.dumps(line | measured) + "\n")
    reason = "the loss is nan at step 3; nothing was saved yet" if diverged else ""
    status = "diverged" if diverged else "finished"
    contents = {
        "config.json": asdict(asked),
        "environment.json": ENVIRONMENT,
        log.OUTCOME: {"status": status, "step": len(losses) - 1, "reason": reason, "flags": []},
    }
    for name, content in contents.items():
        (place / name).write_text(json.dumps(content))
    (place / "log.jsonl").write_text("".join(lines))
    return Run(asked, place)


@dataclass(frozen=True)
class Imagined(Run):
    """A run without a record, as it might turn out: with this final validation loss."""

    loss: float = math.inf  # nats per token

    @property
    def diverged(self):
        return math.isinf(self.loss)
