"""An ablation, read from its runs: at the old best rate, at its own, and whether it is luck."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from workbook import accounting
from workbook.experiments import significance
from workbook.experiments.records import Result
from workbook.experiments.significance import Difference, Spread
from workbook.experiments.studies import best, by_seed, losses, rate_of


@dataclass(frozen=True)
class Ablation:
    """A change beside the unchanged model: each with several seeds at its own best rate."""

    label: str
    unchanged: dict[int, Result]  # by seed
    changed: dict[int, Result]  # by seed
    tuned: dict[float, Result]  # the changed model by learning rate; none where it kept the old one

    @property
    def old_rate(self) -> float:
        """The best rate of the unchanged model."""
        return rate_of(first(self.unchanged))

    @property
    def own_rate(self) -> float:
        """The best rate of the changed model, of those that were tried."""
        return rate_of(first(self.changed))

    @property
    def at_old_rate(self) -> Result:
        """The changed model at the best rate of the unchanged."""
        return self.tuned.get(self.old_rate) or first(self.changed)

    @property
    def before(self) -> Spread:
        """The losses of the unchanged model."""
        return significance.spread(losses(self.unchanged))

    @property
    def after(self) -> Spread:
        """The losses of the changed model at its own best rate."""
        return significance.spread(losses(self.changed))

    @property
    def difference(self) -> Difference:
        """How much higher the losses of the changed model are, each at its own best rate."""
        return significance.difference(losses(self.changed), losses(self.unchanged))

    def groups(self, usual: str = "unchanged") -> dict[str, list[Result]]:
        """The runs to draw curves of, by names: the changed model at the old best rate as well."""
        found = {usual: [*self.unchanged.values()], self.label: [*self.changed.values()]}
        if self.own_rate == self.old_rate:
            return found
        found[f"{self.label}, own best rate"] = found.pop(self.label)
        return found | {f"{self.label}, old best rate": [self.at_old_rate]}


def read_ablation(results: Mapping[str, Result], label: str) -> Ablation:
    """The ablation of this label, from the results of `studies.ablation`."""
    prefix = f"{label}, rate "
    tuned = {rate_of(each): each for name, each in results.items() if name.startswith(prefix)}
    return Ablation(label, by_seed(results, "unchanged"), by_seed(results, label), tuned)


def ablation_table(*found: Ablation) -> pd.DataFrame:
    """A row a setting: its size, its best rate, its losses there, and at the old best rate."""
    some = found[0]
    rows = [row("unchanged", some.unchanged, ending(first(some.unchanged)))]
    for each in found:
        row_of = row(each.label, each.changed, ending(each.at_old_rate))
        if not each.tuned:
            row_of["own best rate"] += " (not tuned)"
        rows.append(row_of)
    return pd.DataFrame(rows).set_index("setting")


def row(label: str, runs: Mapping[int, Result], at_old_rate: str) -> dict:
    """What the table says of one setting."""
    return {
        "setting": label,
        "parameters": f"{accounting.parameters(first(runs).config.model).total:,}",
        "at the old best rate": at_old_rate,
        "own best rate": f"{rate_of(first(runs)):.3g}",
        "loss there (nats/token)": str(significance.spread(losses(runs))),
    }


def side_by_side(*found: Ablation) -> pd.DataFrame:
    """A row a change, the costliest first: what it costs at its own best rate, and how sure."""
    rows = [
        {
            "change": each.label,
            "costs (nats/token)": f"{each.difference.nats:+.3f}",
            "p": f"{each.difference.chance:.3f}",
            "seeds": f"{len(each.changed)} against {len(each.unchanged)}",
            "a difference": "yes" if each.difference.claimed else "cannot be shown",
        }
        for each in sorted(found, key=lambda each: -each.difference.nats)
    ]
    return pd.DataFrame(rows).set_index("change")


def by_rate(results: Mapping[str, Result], seed: int) -> dict[float, Result]:
    """The runs with this seed by their learning rates, from the smallest rate to the largest."""
    found = {rate_of(each): each for each in results.values() if each.config.seed == seed}
    return dict(sorted(found.items()))


def by_batch(results: Mapping[str, Result], suffix: str = "") -> dict[int, Result]:
    """The best run of each batch size, from the results of `studies.batch_size`.

    `suffix` is what stands behind the batch size in the label, such as " on 1/4".
    """
    found: dict[int, dict[str, Result]] = {}
    for label, each in results.items():
        size = each.config.batch_size
        if label.startswith(f"batch {size}{suffix}, rate "):
            found.setdefault(size, {})[label] = each
    return {size: best(tried) for size, tried in sorted(found.items())}


def first(runs: Mapping[int, Result]) -> Result:
    """The first of some runs; all have the same settings but the seed."""
    return next(iter(runs.values()))


def verdict(difference: Difference) -> str:
    """What may be said of a difference, in words that luck does not make wrong."""
    nats, chance = difference.nats, f"p = {difference.chance:.3f}"
    if not difference.claimed:
        seen = "runs of one side diverged" if math.isinf(nats) else f"{nats:+.3f} nats/token"
        return f"no difference that these runs can show ({seen}, {chance})"
    if math.isinf(nats):
        way = "it diverges" if nats > 0 else "it trains where the other diverges"
        return f"{way}, more than luck explains ({chance})"
    way = "worse" if nats > 0 else "better"
    return f"{way} by {abs(nats):.3f} nats/token, more than luck explains ({chance})"


def ending(result: Result) -> str:
    """How a run ended, in words: its loss, or the step at which it was given up."""
    if result.diverged:
        return f"diverged at step {result.outcome['step']:,}"
    return f"ended at {result.loss:.3f} nats/token"
