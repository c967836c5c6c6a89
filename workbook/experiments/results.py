"""An ablation, read from its runs: at the old best rate, at its own, and whether it is luck.

What a loss is worth: beside blind guessing, beside counting, and beside what the text costs.

A model that finds every id equally likely has ln V. One that only knows how frequent each id is,
whatever stands before it, has less, and is the least that training should beat.

How large a batch pays: the steps to one loss by batch size, and the bend in them.

A larger batch takes fewer steps to a loss, but never fewer than some number; a smaller one takes
less text, but never less than some amount. In between lies the critical batch. There a run takes
twice the fewest steps and twice the least text:

    steps = fewest · (1 + critical / batch)        text = least · (1 + batch / critical)

Source: McCandlish, Kaplan, Amodei & the OpenAI Dota Team 2018, "An Empirical Model of Large-Batch
Training", eq. 2.11 and 2.12 (their S_min is `fewest`, B_crit is `critical`).

The log of all experiments, read from their records: what was tried, why, and what came out.

Nothing in it is typed by hand, so nothing can be forgotten: a run that failed is a row like any
other.

What trained models wrote, from their records: laid out to be read, and counted.

The counts are those of `workbook.corpora.fluency`; none of them says that a text makes sense.
"""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import linear_regression
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbook import accounting
from workbook.accounting import parameters
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.experiments import significance
from workbook.experiments.records import Run, differing, settings_of
from workbook.experiments.significance import Difference, Spread
from workbook.experiments.studies import best, by_seed, losses, rate_of
from workbook.training.data import train_data
from workbook.training.loss_bounds import bits_a_byte, guessing, nats_a_token


@dataclass(frozen=True)
class Ablation:
    """A change beside the unchanged model: each with several seeds at its own best rate."""

    label: str
    unchanged: dict[int, Run]  # by seed
    changed: dict[int, Run]  # by seed
    tuned: dict[float, Run]  # the changed model by learning rate; none where it kept the old one

    @property
    def old_rate(self) -> float:
        """The best rate of the unchanged model."""
        return rate_of(first(self.unchanged))

    @property
    def own_rate(self) -> float:
        """The best rate of the changed model, of those that were tried."""
        return rate_of(first(self.changed))

    @property
    def at_old_rate(self) -> Run:
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

    def groups(self, usual: str = "unchanged") -> dict[str, list[Run]]:
        """The runs to draw curves of, by names: the changed model at the old best rate as well."""
        found = {usual: [*self.unchanged.values()], self.label: [*self.changed.values()]}
        if self.own_rate == self.old_rate:
            return found
        found[f"{self.label}, own best rate"] = found.pop(self.label)
        return found | {f"{self.label}, old best rate": [self.at_old_rate]}


def read_ablation(results: Mapping[str, Run], label: str) -> Ablation:
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


def row(label: str, runs: Mapping[int, Run], at_old_rate: str) -> dict:
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


def by_rate(results: Mapping[str, Run], seed: int) -> dict[float, Run]:
    """The runs with this seed by their learning rates, from the smallest rate to the largest."""
    found = {rate_of(each): each for each in results.values() if each.config.seed == seed}
    return dict(sorted(found.items()))


def by_batch(results: Mapping[str, Run], suffix: str = "") -> dict[int, Run]:
    """The best run of each batch size, from the results of `studies.batch_size`.

    `suffix` is what stands behind the batch size in the label, such as " on 1/4".
    """
    found: dict[int, dict[str, Run]] = {}
    for label, each in results.items():
        size = each.config.batch_size
        if label.startswith(f"batch {size}{suffix}, rate "):
            found.setdefault(size, {})[label] = each
    return {size: best(tried) for size, tried in sorted(found.items())}


def first(runs: Mapping[int, Run]) -> Run:
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


def ending(result: Run) -> str:
    """How a run ended, in words: its loss, or the step at which it was given up."""
    if result.diverged:
        return f"diverged at step {result.outcome['step']:,}"
    return f"ended at {result.loss:.3f} nats/token"


LAST = 5  # logged training losses: one alone is that of a single batch


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Levels for the losses of a run, in nats a token, on the very ids that it is evaluated on."""

    guessing: float  # every id equally likely
    counting: float  # every id as likely as it is frequent in the training text
    text: float  # what the text itself costs, or what no small model is known to do better than
    known: bool  # whether that is known, and not just stated
    bytes_a_token: float
    train_tokens: int  # of the training text

    @property
    def text_bits(self) -> float:
        """What the text costs in bits a byte."""
        return bits_a_byte(self.text, self.bytes_a_token)

    @property
    def named(self) -> dict[str, float]:
        """Those that belong into a plot."""
        text = "what the text itself costs" if self.known else "nobody does better (stated)"
        return {"knows only how frequent tokens are": self.counting, text: self.text}


def levels(config: TrainConfig) -> Levels:
    """The levels for runs of this config."""
    data, size = train_data(config), config.model.vocab_size
    held_out = data.validation[: config.eval_tokens]
    bytes_a_token = float(data.token_bytes[held_out].mean())
    return Levels(
        guessing=guessing(size),
        counting=unigram_loss(data.train, held_out, size),
        text=nats_a_token(data.entropy or data.floor, bytes_a_token),
        known=data.entropy is not None,
        bytes_a_token=bytes_a_token,
        train_tokens=len(data.train),
    )


def loss_facts(result: Run) -> dict[str, str]:
    """A run's loss in both units, and what helps to judge it, as a column of a table."""
    found = levels(result.config)
    return {
        "ids": f"{result.config.model.vocab_size:,}",
        "parameters": f"{parameters(result.config.model).total:,}",
        "bytes a token": f"{found.bytes_a_token:.2f}",
        "tokens in the training text": f"{found.train_tokens:,}",
        "tokens seen, as a part of it": f"{result.tokens / found.train_tokens:.2f}",
        "guessing (nats/token)": f"{found.guessing:.2f}",
        "counting (nats/token)": f"{found.counting:.2f}",
        f"last {LAST} logged training losses (nats/token)": f"{last_training_loss(result):.2f}",
        "validation loss (nats/token)": f"{result.loss:.3f}",
        "validation loss (bits/byte)": f"{result.bits_per_byte:.3f}",
        "the text itself (bits/byte)": f"{found.text_bits:.3f}" if found.known else "unknown",
    }


def last_training_loss(result: Run) -> float:
    """The mean of the last `LAST` logged training losses of a run, in nats a token."""
    return float(result.log["train_loss"].dropna().iloc[-LAST:].mean())


def unigram_loss(train: np.ndarray, held_out: np.ndarray, vocab_size: int) -> float:
    """The loss in nats a token of a model that has only counted the ids of the training text.

    Each id counts once more than it occurred, so that none is impossible.

    >>> round(unigram_loss(np.array([0, 0, 1]), np.array([0, 1]), 2), 3)  # 3/5 and 2/5
    0.714
    """
    counts = np.bincount(train, minlength=vocab_size) + 1
    if len(counts) > vocab_size:
        raise ValueError(
            f"the training text has the id {len(counts) - 1:,}, and there are {vocab_size:,} ids;"
            " give the vocab_size of its tokenizer"
        )
    nats = -np.log(counts / counts.sum())
    return float(nats[held_out].mean())


if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class BatchCurve:
    """The two numbers of the curve of steps over batch size."""

    fewest: float  # steps to the loss, however large the batch
    critical: float  # sequences; 0 where no batch was small, inf where none was large

    def steps(self, batch_size: float) -> float:
        """The steps that a batch of this size takes to the loss."""
        return self.fewest * (1 + self.critical / batch_size)


def steps_to(log: "pd.DataFrame", loss: float) -> float:
    """The step at which the validation loss first is `loss`, on a line between evaluations.

    Infinite where the run never came so low.
    """
    held_out = log["validation_loss"].dropna()
    before = None
    for step, value in held_out.items():
        if value <= loss:
            if before is None:
                return float(step)
            early, high = before
            return early + (step - early) * (high - loss) / (high - value)
        before = step, value
    return math.inf


def fit_batch_curves(
    logs: Mapping[int, "pd.DataFrame"],
) -> dict[float, tuple[dict[int, float], BatchCurve]]:
    """By loss, the steps that each batch size took to it, and the curve through them.

    The losses are those that the runs ended at, as far as four batch sizes came as low.
    """
    found = {}
    for loss in sorted(log["validation_loss"].dropna().iloc[-1] for log in logs.values())[3:]:
        steps = {size: steps_to(log, loss) for size, log in logs.items()}
        steps = {size: count for size, count in steps.items() if math.isfinite(count)}
        found[float(loss)] = steps, fit_batch_curve(steps)
    return found


def growth_exponent(values: Mapping[float, float]) -> float:
    """The power with which values grow: 1/2 for a root, by a straight line between logarithms.

    >>> round(power({8: 2.0, 32: 4.0, 128: 8.0}), 6)
    0.5
    """
    line = linear_regression([*map(math.log, values)], [*map(math.log, values.values())])
    return line.slope


def fit_batch_curve(steps: Mapping[float, float]) -> BatchCurve:
    """The curve nearest to the steps by batch size, each step count taken relative to itself.

    Raises: ValueError for fewer than three batch sizes, through which many curves would pass.
    """
    if len(steps) < 3:
        raise ValueError(f"expected the steps of at least 3 batch sizes, got {len(steps)}")
    # Least squares of fewest/steps + slope/(batch · steps) = 1, in two unknowns.
    pairs = [(1 / count, 1 / (batch * count)) for batch, count in steps.items()]
    xx, xy, yy = (
        sum(x * x for x, _ in pairs),
        sum(x * y for x, y in pairs),
        sum(y * y for _, y in pairs),
    )
    sx, sy = (sum(values) for values in zip(*pairs, strict=True))
    determinant = xx * yy - xy * xy
    fewest, slope = (sx * yy - sy * xy) / determinant, (sy * xx - sx * xy) / determinant
    if fewest <= 0:
        return BatchCurve(0.0, math.inf)
    return BatchCurve(fewest, max(slope, 0.0) / fewest)


if TYPE_CHECKING:
    import pandas as pd

# Settings that follow from others: who reads what was changed need not see them.
FOLLOWING = {
    "warmup_iters",
    "log_every",
    "eval_every",
    "checkpoint_every",
    "corpus_bytes",
}


def journal(
    studied: Mapping[str, Mapping[str, Run]], bases: Mapping[str, TrainConfig]
) -> "pd.DataFrame":
    """A row a run: who asked for it first, how it differs from the base, and what came out.

    `studied` holds the runs of each experiment by their labels, `bases` a config for each corpus.
    """
    import pandas as pd  # here: whoever only trains need not load it

    rows = [
        {
            "experiment": name,
            "run": label,
            "corpus": result.config.corpus,
            "changed": changes(result.config, bases[result.config.corpus]),
            "outcome": outcome(result),
            "steps": result.outcome["step"],
            "seconds": result.seconds,
            "loss": result.loss,
        }
        for name, label, result in each_once(studied)
    ]
    return pd.DataFrame(rows).set_index("experiment")


def journal_text(table: "pd.DataFrame", questions: Mapping[str, str]) -> str:
    """The whole table as text, a line a run, under the question of its experiment.

    Losses are those of validation in nats a token.
    """
    lines = []
    for name, rows in table.groupby("experiment", sort=False):
        lines += ["", f"{name}: {questions[name]}"]
        for row in rows.itertuples():
            came_out = f"loss {row.loss:.3f}" if row.outcome == "finished" else row.outcome
            lines.append(f"  {row.run:28} {row.steps:5,} steps {row.seconds:4.0f} s  {came_out}")
            lines.append(f"      {row.corpus}, {row.changed}")
    return "\n".join(lines[1:])


def each_once(studied: Mapping[str, Mapping[str, Run]]) -> list[tuple[str, str, Run]]:
    """The experiment, the label and the result of every run, each where it was first asked for."""
    seen: dict[str, tuple[str, str, Run]] = {}
    for name, results in studied.items():
        for label, result in results.items():
            seen.setdefault(result.config.key, (name, label, result))
    return list(seen.values())


def overview(
    studied: Mapping[str, Mapping[str, Run]], questions: Mapping[str, str]
) -> "pd.DataFrame":
    """A row an experiment: its question, its runs, those that no other had asked for before it."""
    import pandas as pd

    fresh = each_once(studied)
    rows = []
    for name, results in studied.items():
        own = [result for asked_by, _, result in fresh if asked_by == name]
        rows.append(
            {
                "experiment": name,
                "question": questions[name],
                "runs": len(results),
                "of them new": len(own),
                "diverged": sum(result.diverged for result in own),
                "minutes": sum(result.seconds for result in own) / 60,
            }
        )
    return pd.DataFrame(rows).set_index("experiment")


def environments(studied: Mapping[str, Mapping[str, Run]]) -> "pd.DataFrame":
    """A row for every kind of place that runs were made in: device, versions, commit."""
    import pandas as pd

    rows = []
    for _, _, result in each_once(studied):
        found = result.environment
        rows.append(
            {
                "machine": machine(result),
                "system": found["system"],
                "threads": found["threads"],
                **found["versions"],
                "commit": str(found["commit"])[:10],
            }
        )
    table = pd.DataFrame(rows)
    return table.groupby(list(table.columns), sort=False).size().rename("runs").reset_index()


def machine(result: Run) -> str:
    """Where a run was made, in words: the machine, its threads, and the precision of matmuls."""
    found = result.environment
    device = found["device"]
    cores = f"{found['processor']}, {found['cores']} cores"
    on_cpu = f"{cores}, {found['threads']} thread per run"
    return f"{on_cpu if device == 'cpu' else f'{device}, {cores}'}, {found['precision']}"


def changes(config: TrainConfig, base: TrainConfig) -> str:
    """How a config differs from the base, such as "batch_size=64, steps=48"."""
    hidden = FOLLOWING | ({"min_learning_rate"} if last_part(config) == last_part(base) else set())
    names = [name for name in differing({"it": config, "base": base}) if name not in hidden]
    values = settings_of(config)
    return ", ".join(f"{name}={short(values[name])}" for name in names) or "the base run"


def last_part(config: TrainConfig) -> float:
    """The smallest learning rate as a part of the largest."""
    rates = config.optimizer
    return round(rates.min_learning_rate / rates.max_learning_rate, 9)


def short(value) -> str:
    """A value of a setting as a person would write it."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def outcome(result: Run) -> str:
    """How a run ended: "finished", or why it was given up, in a few words."""
    if not result.diverged:
        return "finished"
    return "diverged: " + result.outcome["reason"].split(";")[0]


WIDTH = 88  # characters of a line


def text_of(result: Run) -> str:
    """What the model of a run wrote, without end tokens. Raises: ValueError for one that failed."""
    if result.sample is None:
        raise ValueError(f"{result.folder.name} wrote nothing: it diverged; give a finished run")
    return result.sample["text"].replace(corpora.END_OF_TEXT, "").strip()


def sample_text(result: Run) -> str:
    """The same in short lines, its own line ends kept."""
    return "\n".join(textwrap.fill(line, WIDTH) for line in text_of(result).split("\n"))


def fluency_facts(result: Run) -> dict[str, str]:
    """How much of the text is known, repeated and copied, as a column of a table."""
    text_of(result)  # refuses a run that wrote none
    counts = result.sample["counts"]
    return {
        "words": f"{counts['words']:,}",
        "known words": f"{counts['known']:.0%}",
        "repeated": f"{counts['repeated']:.0%}",
        "longest copy (words)": f"{counts['copied_words']:,}",
    }
