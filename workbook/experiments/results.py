"""What is read from finished runs: tables, the log of all experiments, and what a loss is worth.

Functions take runs by their labels, as a plan returns them. Nothing in a table is typed by hand, so
nothing can be forgotten: a run that failed is a row like any other.
"""

import math
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import linear_regression

import numpy as np
import pandas as pd

from workbook import accounting
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.experiments import significance
from workbook.experiments.plans import Results
from workbook.experiments.significance import Difference, Spread
from workbook.experiments.studies import best, by_seed, losses, rate_of
from workbook.training.data import train_data
from workbook.training.loss_bounds import bits_per_byte, nats_per_token, uniform_loss
from workbook.training.parts import NAMES
from workbook.training.train import Run

# The label, and settings that follow from others: the column "changed" leaves them out.
HIDDEN = {"name", "warmup_iters", "log_every", "eval_every", "checkpoint_every", "corpus_bytes"}
LAST = 5  # logged training losses: one by itself is that of a single batch
WIDTH = 88  # characters of a line of a text that a model wrote


# ------------------------------------------------------------------------- tables of runs


def table(results: Results) -> pd.DataFrame:
    """One row per run: the settings in which the runs differ, and what came out."""
    runs = results.values()
    settings = pd.DataFrame([settings_of(run.config) for run in runs]).drop(columns="name")
    outcomes = pd.DataFrame(
        {
            "status": run.status,
            "steps taken": run.steps,
            "tokens": run.tokens,
            "seconds": run.seconds,
            "validation_loss": run.loss,
            "bits_per_byte": run.bits_per_byte,
        }
        for run in runs
    )
    differing = settings.loc[:, settings.nunique(dropna=False) > 1]
    return differing.join(outcomes).set_index(pd.Index(results, name="run"))


def compare(runs: Results) -> pd.DataFrame:
    """`table`, with whose parts each run was made of where they are not all ours.

    Losses of runs whose tokenizers differ compare in bits per byte alone.
    """
    found = table(runs)
    if any(run.made_of for run in runs.values()):
        yours = [set(run.made_of) for run in runs.values()]
        found.insert(0, "yours", ["all" if y >= {*NAMES} else ", ".join(sorted(y)) for y in yours])
    return found


def settings_of(config: TrainConfig) -> dict:
    """All settings by name, those of the model and the optimizer among them."""
    flat = asdict(config)
    return flat.pop("model") | flat.pop("optimizer") | flat


# ------------------------------------------------------------------------- the log of experiments


def journal(studied: Mapping[str, Results], bases: Mapping[str, TrainConfig]) -> pd.DataFrame:
    """One row per run: who asked for it first, how it differs from the base, and what came out.

    `studied` holds the results of each experiment by its name, `bases` the base config of each
    corpus.
    """
    rows = [
        {
            "experiment": name,
            "run": label,
            "corpus": run.config.corpus,
            "changed": changes(run.config, bases[run.config.corpus]),
            "outcome": "finished"
            if not run.diverged
            else "diverged: " + run.outcome["reason"].split(";")[0],
            "steps": run.outcome["step"],
            "seconds": run.seconds,
            "loss": run.loss,
        }
        for name, label, run in each_once(studied)
    ]
    return pd.DataFrame(rows).set_index("experiment")


def journal_text(log: pd.DataFrame, questions: Mapping[str, str]) -> str:
    """A `journal` as text, two lines per run, under the question of its experiment.

    Losses are those of validation in nats per token.
    """
    lines = []
    for name, rows in log.groupby("experiment", sort=False):
        lines += ["", f"{name}: {questions[name]}"]
        for row in rows.itertuples():
            came_out = f"loss {row.loss:.3f}" if row.outcome == "finished" else row.outcome
            lines.append(f"  {row.run:28} {row.steps:5,} steps {row.seconds:4.0f} s  {came_out}")
            lines.append(f"      {row.corpus}, {row.changed}")
    return "\n".join(lines[1:])


def overview(studied: Mapping[str, Results], questions: Mapping[str, str]) -> pd.DataFrame:
    """One row per experiment: its question, its runs, and those that none before it asked for."""
    first_asked = each_once(studied)
    rows = []
    for name, results in studied.items():
        own = [run for asked_by, _, run in first_asked if asked_by == name]
        rows.append(
            {
                "experiment": name,
                "question": questions[name],
                "runs": len(results),
                "of them new": len(own),
                "diverged": sum(run.diverged for run in own),
                "minutes": sum(run.seconds for run in own) / 60,
            }
        )
    return pd.DataFrame(rows).set_index("experiment")


def environments(studied: Mapping[str, Results]) -> pd.DataFrame:
    """One row for each environment in which runs were made: machine, versions, commit."""
    rows = []
    for _, _, run in each_once(studied):
        found = run.environment
        machine = f"{found['processor']}, {found['cores']} cores"
        if found["device"] == "cpu":
            machine += f", {found['threads']} thread per run"
        else:
            machine = f"{found['device']}, {machine}"
        rows.append(
            {
                "machine": f"{machine}, {found['precision']}",
                "system": found["system"],
                "threads": found["threads"],
                **found["versions"],
                "commit": str(found["commit"])[:10],
            }
        )
    found = pd.DataFrame(rows)
    return found.groupby(list(found.columns), sort=False).size().rename("runs").reset_index()


def each_once(studied: Mapping[str, Results]) -> list[tuple[str, str, Run]]:
    """The experiment, the label and the run of every config, where it was first asked for."""
    seen: dict[str, tuple[str, str, Run]] = {}
    for name, results in studied.items():
        for label, run in results.items():
            seen.setdefault(run.config.key, (name, label, run))
    return list(seen.values())


def changes(config: TrainConfig, base: TrainConfig) -> str:
    """How a config differs from the base, such as "batch_size=64, steps=48"."""

    def lowest(config: TrainConfig) -> float:  # the smallest learning rate, relative to the largest
        rates = config.optimizer
        return round(rates.min_learning_rate / rates.max_learning_rate, 9)

    hidden = HIDDEN | ({"min_learning_rate"} if lowest(config) == lowest(base) else set())
    usual = settings_of(base)
    shown = [
        f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in settings_of(config).items()
        if name not in hidden and value != usual[name]
    ]
    return ", ".join(shown) or "the base run"


def ending(run: Run) -> str:
    """How a run ended, in words: its loss, or the step at which it was given up."""
    if run.diverged:
        return f"diverged at step {run.outcome['step']:,}"
    return f"ended at {run.loss:.3f} nats/token"


# ------------------------------------------------------------------------- what a loss is worth


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Baselines for the losses of a run in nats per token, on the tokens it is evaluated on."""

    guessing: float  # every token equally likely: ln V
    counting: float  # every token as likely as it is frequent in the training text
    text: float  # the entropy of the text, or what no small model is known to do better than
    known: bool  # whether `text` is the entropy, and not just a stated bound
    bytes_per_token: float
    train_tokens: int  # of the training text

    @property
    def text_bits(self) -> float:
        """The loss `text` in bits per byte."""
        return bits_per_byte(self.text, self.bytes_per_token)

    @property
    def named(self) -> dict[str, float]:
        """The levels to draw, by the words to draw beside them."""
        text = "what the text itself costs" if self.known else "nobody does better (stated)"
        return {"knows only how frequent tokens are": self.counting, text: self.text}


def levels(config: TrainConfig) -> Levels:
    """The levels for runs of this config."""
    data, size = train_data(config), config.model.vocab_size
    held_out = data.validation[: config.eval_tokens]
    bytes_per_token = float(data.token_bytes[held_out].mean())
    return Levels(
        guessing=uniform_loss(size),
        counting=unigram_loss(data.train, held_out, size),
        text=nats_per_token(data.entropy or data.floor, bytes_per_token),
        known=data.entropy is not None,
        bytes_per_token=bytes_per_token,
        train_tokens=len(data.train),
    )


def unigram_loss(train: np.ndarray, held_out: np.ndarray, vocab_size: int) -> float:
    """The loss in nats per token of a model that has only counted the tokens of the training text.

    Each token counts once more than it occurred, so that none is impossible.

    >>> round(unigram_loss(np.array([0, 0, 1]), np.array([0, 1]), 2), 3)  # 3/5 and 2/5
    0.714
    """
    counts = np.bincount(train, minlength=vocab_size) + 1
    if len(counts) > vocab_size:
        raise ValueError(
            f"the training text has the token {len(counts) - 1:,}, and there are {vocab_size:,}"
            " tokens; give the vocab_size of its tokenizer"
        )
    nats = -np.log(counts / counts.sum())
    return float(nats[held_out].mean())


def loss_facts(run: Run) -> dict[str, str]:
    """A run's loss in both units, and what helps to judge it, as a column of a table."""
    found = levels(run.config)
    return {
        "vocabulary": f"{run.config.model.vocab_size:,}",
        "parameters": f"{accounting.parameters(run.config.model).total:,}",
        "bytes per token": f"{found.bytes_per_token:.2f}",
        "tokens in the training text": f"{found.train_tokens:,}",
        "tokens seen, as a part of it": f"{run.tokens / found.train_tokens:.2f}",
        "guessing (nats/token)": f"{found.guessing:.2f}",
        "counting (nats/token)": f"{found.counting:.2f}",
        f"last {LAST} logged training losses (nats/token)": f"{last_training_loss(run):.2f}",
        "validation loss (nats/token)": f"{run.loss:.3f}",
        "validation loss (bits/byte)": f"{run.bits_per_byte:.3f}",
        "the text itself (bits/byte)": f"{found.text_bits:.3f}" if found.known else "unknown",
    }


def last_training_loss(run: Run) -> float:
    """The mean of the last `LAST` logged training losses of a run, in nats per token."""
    return float(run.log["train_loss"].dropna().iloc[-LAST:].mean())


# ------------------------------------------------------------------------- ablations


@dataclass(frozen=True)
class Ablation:
    """A change beside the unchanged model: each with several seeds at its own best rate."""

    label: str
    unchanged: dict[int, Run]  # by seed
    changed: dict[int, Run]  # by seed
    tuned: dict[float, Run]  # the changed model by learning rate; empty where it kept the old one

    @property
    def old_rate(self) -> float:
        """The best learning rate of the unchanged model."""
        return rate_of(first(self.unchanged))

    @property
    def own_rate(self) -> float:
        """The best learning rate of the changed model, of those that were tried."""
        return rate_of(first(self.changed))

    @property
    def at_old_rate(self) -> Run:
        """The changed model at the best learning rate of the unchanged one."""
        return self.tuned.get(self.old_rate) or first(self.changed)

    @property
    def before(self) -> Spread:
        """The losses of the unchanged model."""
        return significance.spread(losses(self.unchanged))

    @property
    def after(self) -> Spread:
        """The losses of the changed model at its own best learning rate."""
        return significance.spread(losses(self.changed))

    @property
    def difference(self) -> Difference:
        """How much higher the losses of the changed model are, each at its own best rate."""
        return significance.difference(losses(self.changed), losses(self.unchanged))

    def groups(self, usual: str = "unchanged") -> dict[str, list[Run]]:
        """The runs to draw curves of, by names: the changed model at the old best rate as well."""
        unchanged, changed = [*self.unchanged.values()], [*self.changed.values()]
        if self.own_rate == self.old_rate:
            return {usual: unchanged, self.label: changed}
        return {
            usual: unchanged,
            f"{self.label}, own best rate": changed,
            f"{self.label}, old best rate": [self.at_old_rate],
        }


def read_ablation(results: Results, label: str) -> Ablation:
    """The ablation of this label, from the results of `studies.ablation`."""
    prefix = f"{label}, rate "
    tuned = {rate_of(each): each for name, each in results.items() if name.startswith(prefix)}
    return Ablation(label, by_seed(results, "unchanged"), by_seed(results, label), tuned)


def ablation_table(*found: Ablation) -> pd.DataFrame:
    """One row per setting: its size, its best rate, its losses there, and at the old best rate."""

    def row(label: str, runs: Mapping[int, Run], at_old_rate: Run, note: str = "") -> dict:
        return {
            "setting": label,
            "parameters": f"{accounting.parameters(first(runs).config.model).total:,}",
            "at the old best rate": ending(at_old_rate),
            "own best rate": f"{rate_of(first(runs)):.3g}{note}",
            "loss there (nats/token)": str(significance.spread(losses(runs))),
        }

    usual = found[0].unchanged
    rows = [row("unchanged", usual, first(usual))]
    for each in found:
        note = "" if each.tuned else " (not tuned)"
        rows.append(row(each.label, each.changed, each.at_old_rate, note))
    return pd.DataFrame(rows).set_index("setting")


def side_by_side(*found: Ablation) -> pd.DataFrame:
    """One row per change, the costliest first: what it costs at its own best rate, and how sure."""
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


def verdict(difference: Difference) -> str:
    """What may be said of a difference in words, without claiming what may be luck."""
    nats, chance = difference.nats, f"p = {difference.chance:.3f}"
    if not difference.claimed:
        seen = "runs of one side diverged" if math.isinf(nats) else f"{nats:+.3f} nats/token"
        return f"no difference that these runs can show ({seen}, {chance})"
    if math.isinf(nats):
        way = "it diverges" if nats > 0 else "it trains where the other diverges"
    else:
        way = f"{'worse' if nats > 0 else 'better'} by {abs(nats):.3f} nats/token"
    return f"{way}, more than luck explains ({chance})"


def first(runs: Mapping[int, Run]) -> Run:
    """The first of some runs, which have the same settings except for the seed."""
    return next(iter(runs.values()))


def by_rate(results: Results, seed: int) -> dict[float, Run]:
    """The runs with this seed by their learning rates, from the smallest to the largest."""
    found = {rate_of(each): each for each in results.values() if each.config.seed == seed}
    return dict(sorted(found.items()))


# ------------------------------------------------------------------------- batch sizes


def by_batch(results: Results, suffix: str = "") -> dict[int, Run]:
    """The best run of each batch size, from the results of `studies.batch_size`.

    `suffix` is what follows the batch size in the label, such as " on 1/4".
    """
    found: dict[int, dict[str, Run]] = {}
    for label, each in results.items():
        size = each.config.batch_size
        if label.startswith(f"batch {size}{suffix}, rate "):
            found.setdefault(size, {})[label] = each
    return {size: best(tried) for size, tried in sorted(found.items())}


@dataclass(frozen=True)
class BatchCurve:
    """The steps to one loss by batch size, and with them the critical batch size.

    A larger batch takes fewer steps to a loss, but never fewer than some number; a smaller one
    takes less text, but never less than some amount. A run with the critical batch takes twice the
    fewest steps and twice the least text:

        steps = fewest · (1 + critical / batch)        text = least · (1 + batch / critical)

    Source: McCandlish, Kaplan, Amodei & the OpenAI Dota Team 2018, "An Empirical Model of
    Large-Batch Training", eq. 2.11 and 2.12 (their S_min is `fewest`, B_crit is `critical`).
    """

    fewest: float  # steps to the loss, however large the batch
    critical: float  # sequences; 0 where no batch was small, inf where none was large

    def steps(self, batch_size: float) -> float:
        """The steps that a batch of this size takes to the loss."""
        return self.fewest * (1 + self.critical / batch_size)


def fit_batch_curves(
    logs: Mapping[int, pd.DataFrame],
) -> dict[float, tuple[dict[int, float], BatchCurve]]:
    """By loss, the steps that each batch size took to it, and the curve through them.

    `logs` are those of runs by batch size. The losses are the final ones of the runs, as far as
    four batch sizes came as low.
    """
    found = {}
    for loss in sorted(log["validation_loss"].dropna().iloc[-1] for log in logs.values())[3:]:
        steps = {size: steps_to(log, loss) for size, log in logs.items()}
        steps = {size: count for size, count in steps.items() if math.isfinite(count)}
        found[float(loss)] = steps, fit_batch_curve(steps)
    return found


def fit_batch_curve(steps: Mapping[float, float]) -> BatchCurve:
    """The curve nearest to the steps by batch size, each step count taken relative to itself.

    Raises: ValueError for fewer than three batch sizes, through which many curves would pass.
    """
    if len(steps) < 3:
        raise ValueError(f"expected the steps of at least 3 batch sizes, got {len(steps)}")
    # Divided by `count`, the equation is linear in its two unknowns, `fewest` and
    # `slope` = fewest · critical:  fewest / count + slope / (batch · count) = 1.
    rows = np.array([(1 / count, 1 / (batch * count)) for batch, count in steps.items()])
    fewest, slope = np.linalg.lstsq(rows, np.ones(len(rows)), rcond=None)[0].tolist()
    if fewest <= 0:  # steps fall as 1/batch or faster
        return BatchCurve(0.0, math.inf)
    return BatchCurve(fewest, max(slope, 0.0) / fewest)


def steps_to(log: pd.DataFrame, loss: float) -> float:
    """The step at which the validation loss first is `loss`, interpolated between evaluations.

    Infinite where the run never came so low.
    """
    before = None
    for step, value in log["validation_loss"].dropna().items():
        if value <= loss:
            if before is None:
                return float(step)
            early, high = before
            return early + (step - early) * (high - loss) / (high - value)
        before = step, value
    return math.inf


def growth_exponent(values: Mapping[float, float]) -> float:
    """The power with which values grow: 1/2 for a root, by a straight line between logarithms.

    >>> round(growth_exponent({8: 2.0, 32: 4.0, 128: 8.0}), 6)
    0.5
    """
    line = linear_regression([*map(math.log, values)], [*map(math.log, values.values())])
    return line.slope


# ------------------------------------------------------------------------- generated texts


def sample_text(run: Run) -> str:
    """What the model of a run wrote, without end tokens and in short lines.

    Raises: ValueError for a run that diverged.
    """
    if run.sample is None:
        raise ValueError(f"{run.folder.name} wrote nothing: it diverged; give a finished run")
    text = run.sample["text"].replace(corpora.END_OF_TEXT, "").strip()
    return "\n".join(textwrap.fill(line, WIDTH) for line in text.split("\n"))


def fluency_facts(run: Run) -> dict[str, str]:
    """How much of its text is known, repeated and copied, as a column of a table.

    The counts are those of `workbook.corpora.fluency`; none of them says that a text makes sense.
    """
    counts = run.sample["counts"]
    return {
        "words": f"{counts['words']:,}",
        "known words": f"{counts['known']:.0%}",
        "repeated": f"{counts['repeated']:.0%}",
        "longest copy (words)": f"{counts['copied_words']:,}",
    }
