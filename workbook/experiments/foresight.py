"""What a plan asks for, as far as it is known, and what it may ask for after that.

A plan asks for runs in rounds, and what it asks for next depends on what came out. So only the
first round without records is known. The others are imagined: as they would be if the middle one of
the learning rates were the best, and ten times as much diverged.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbook.config import TrainConfig
from workbook.experiments import records
from workbook.experiments.plans import Plan, Results, Stage
from workbook.experiments.records import Run


@dataclass(frozen=True)
class Imagined(Run):
    """A result as it may come out, for whoever wants to know what a plan would ask for then."""

    nats: float = math.inf

    @property
    def loss(self) -> float:
        """The imagined validation loss; infinite for a run that diverged."""
        return self.nats

    @property
    def diverged(self) -> bool:
        """Whether it was given up."""
        return math.isinf(self.nats)


def imagined(asked: Mapping[str, TrainConfig]) -> Results:
    """The records of these runs, and for those without one results as they may come out."""
    rates = sorted(config.optimizer.max_learning_rate for config in asked.values())
    middle = rates[len(rates) // 2]

    def result(config: TrainConfig) -> Run:
        decades = math.log10(config.optimizer.max_learning_rate / middle)
        return Imagined(config, Path(), math.inf if decades >= 1 else 3 + decades**2)

    return {label: records.find(config) or result(config) for label, config in asked.items()}


def unfolded(plan: Plan) -> tuple[list[TrainConfig], list[TrainConfig]]:
    """The runs that a plan waits for now, and those of its later rounds as they are imagined."""
    stage = Stage(plan)
    stage.advance()
    known, later, asked = stage.missing(), [], stage.asked
    try:
        while asked:
            asked = plan.send(imagined(asked))
            later += [config for config in asked.values() if records.find(config) is None]
    except StopIteration:
        pass
    return known, later
