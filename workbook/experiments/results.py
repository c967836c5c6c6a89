"""What is read from finished runs: tables, the log of all experiments, and what a loss is worth.

Functions take runs by their labels, as a plan returns them. Nothing in a table is typed by hand, so
nothing can be forgotten: a run that failed is a row like any other.
"""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, linear_regression

import numpy as np
import pandas as pd

from workbook import accounting
from workbook.config import Edition, TrainConfig
from workbook.corpora import corpora
from workbook.experiments import dry_run, significance
from workbook.experiments.plans import Results, Stage
from workbook.experiments.significance import Difference, Spread
from workbook.experiments.studies import (
    STUDIES,
    at_rate,
    best,
    numbered,
    rate_of,
    scale_named,
)
from workbook.training.data import prepare
from workbook.training.loss_bounds import bits_per_byte, nats_per_token, uniform_loss
from workbook.training.parts import NAMES
from workbook.training.presets import varied
from workbook.training.train import Run

STARTLED = 0.5  # nats per token above the start: batches differ by less
LAST = 5  # logged training losses: one by itself is that of a single batch
BLOCK = 2**24  # tokens counted at a time
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
    """`table`, with a column for the learner's parts if any run has some.

    Losses of runs whose tokenizers differ can be compared only in bits per byte.
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


def journal(results: Results) -> str:
    """The runs of one experiment as text: a line for each setting, with the loss of every run.

    Losses are validation losses in nats per token; a run that diverged has its `ending` instead.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for label, run in results.items():
        setting, last = re.fullmatch(r"(?:(.*), )?([^,]*)", label).groups()
        kind, _, value = last.partition(" ")
        if not re.fullmatch(r"(rate|seed) [\d.e+-]+", last):  # neither of a sweep nor of some seeds
            setting, kind, value = label, "", ""
        outcome = ending(run) if run.diverged else f"{run.loss:.3f}"
        rows = found.setdefault(setting or "one short sweep", {})
        rows.setdefault(kind, []).append(f"{value} {outcome}".strip())
    lines = []
    for setting, kinds in found.items():
        for kind, outcomes in kinds.items():
            many = {"rate": "learning rates: ", "seed": "seeds: ", "": ""}[kind]
            text = f"{setting}: {many}{'; '.join(outcomes)}"
            lines += textwrap.wrap(text, 100, subsequent_indent="    ")
    return "\n".join(lines)


def first_asked(studied: Mapping[str, Results]) -> dict[str, Results]:
    """The runs of each experiment that none before it asked for, by label."""
    found: dict[str, Results] = {name: {} for name in studied}
    seen: set[str] = set()
    for name, runs in studied.items():
        for label, run in runs.items():
            if run.config.key not in seen:
                seen.add(run.config.key)
                found[name][label] = run
    return found


def overview(studied: Mapping[str, Results], questions: Mapping[str, str]) -> pd.DataFrame:
    """One row per experiment: its question, its runs, and those that none before it asked for."""
    rows = {
        name: {
            "question": questions[name],
            "runs": len({run.config.key for run in studied[name].values()}),
            "new": len(own),
            "minutes": sum(run.seconds for run in own.values()) / 60,
        }
        for name, own in first_asked(studied).items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("experiment")


def environments(studied: Mapping[str, Results]) -> pd.DataFrame:
    """One row per environment in which runs were made, with the number of runs."""
    made = [run.environment for own in first_asked(studied).values() for run in own.values()]
    asked = ["processor", "cores", "device", "precision", "threads", "system"]
    rows = [{name: found[name] for name in asked} | found["versions"] for found in made]
    return (
        pd.DataFrame(rows, columns=None if rows else asked).value_counts().reset_index(name="runs")
    )


def ending(run: Run) -> str:
    """How a run ended, in words: its loss, or the step at which it was given up."""
    if run.diverged and pd.isna(run.log["validation_loss"].iloc[0]):
        return "had an infinite or NaN loss before the first step"
    if run.diverged:
        return f"diverged at step {run.outcome['step']:,}"
    return f"ended at {run.loss:.3f} nats/token"


# ------------------------------------------------------------------------- what a loss is worth


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Baselines for the losses of a run in nats per token, on the tokens it is evaluated on."""

    guessing: float  # every token equally likely: ln V
    counting: float  # every token as likely as it is frequent in the training text
    text: float  # the generator's choices, an upper bound on the entropy; or a stated lower bound
    known: bool  # whether `text` was computed, and not just stated
    bytes_per_token: float
    train_tokens: int  # of the training text

    @property
    def text_bits(self) -> float:
        """The loss `text` in bits per byte."""
        return bits_per_byte(self.text, self.bytes_per_token)

    @property
    def named(self) -> dict[str, float]:
        """The levels to draw, by the words to draw beside them."""
        text = "cost of the generator's choices" if self.known else "nobody does better (stated)"
        return {"knows only how frequent tokens are": self.counting, text: self.text}


def levels(config: TrainConfig) -> Levels:
    """The levels for runs of this config."""
    data, size = prepare(config), config.model.vocab_size
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
    counts = np.ones(vocab_size, np.int64)
    for start in range(0, len(train), BLOCK):  # bincount copies what it counts, in eight bytes each
        part = np.bincount(train[start : start + BLOCK], minlength=vocab_size)
        if len(part) > vocab_size:
            raise ValueError(
                f"the training text has the token {len(part) - 1:,}, but vocab_size={vocab_size:,};"
                " give the vocab_size of its tokenizer"
            )
        counts += part
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
        "tokens seen, as a share of those": f"{run.tokens / found.train_tokens:.2f}",
        "guessing (nats/token)": f"{found.guessing:.2f}",
        "counting (nats/token)": f"{found.counting:.2f}",
        f"last {LAST} logged training losses (nats/token)": f"{last_training_loss(run):.2f}",
        "validation loss (nats/token)": f"{run.loss:.3f}",
        "validation loss (bits/byte)": f"{run.bits_per_byte:.3f}",
        "random choices behind it (bits/byte)": f"{found.text_bits:.3f}" if found.known else "?",
    }


def last_training_loss(run: Run) -> float:
    """The mean of the last `LAST` logged training losses of a run, in nats per token."""
    return float(run.log["train_loss"].dropna().iloc[-LAST:].mean())


# ------------------------------------------------------------------------- comparisons


@dataclass(frozen=True)
class Setting:
    """A setting at one budget of tokens: tuned with one seed, then run with others at its best."""

    tuned: dict[float, Run]  # by learning rate, from the smallest to the largest
    seeds: dict[int, Run]  # at the best of these rates, by seed

    @property
    def best(self) -> Run:
        """The run with the lowest loss of those that tuned the rate."""
        return best(numbered(self.tuned))

    @property
    def rate(self) -> float:
        """The best learning rate of those that were tried."""
        return rate_of(self.best)

    @property
    def losses(self) -> dict[int, float]:
        """The losses at the best rate, by seed."""
        return {seed: run.loss for seed, run in self.seeds.items()}

    @property
    def bits_per_byte(self) -> float:
        """The mean over seeds at the best rate."""
        return fmean(run.bits_per_byte for run in self.seeds.values())

    @property
    def spread(self) -> Spread:
        """The losses at the best rate."""
        return significance.spread([*self.losses.values()])


def settings(results: Results, label: str) -> dict[int, Setting]:
    """The budgets in tokens at which `studies.settled` has finished a setting, smallest first.

    `label` is what the labels of its runs begin with, such as "no norm".
    """
    found: dict[int, Setting] = {}
    for name, run in results.items():
        if match := re.fullmatch(rf"{re.escape(label)}, ([\d,]+) tokens, (rate|seed) .*", name):
            each = found.setdefault(int(match[1].replace(",", "")), Setting({}, {}))
            if match[2] == "rate":
                each.tuned[rate_of(run)] = run
            else:
                each.seeds[run.config.seed] = run
    return {
        tokens: Setting(dict(sorted(each.tuned.items())), each.seeds)
        for tokens, each in sorted(found.items())
        if len(each.seeds) > 1
    }


@dataclass(frozen=True)
class Comparison:
    """A change beside the unchanged model at one budget, each at its own best learning rate."""

    label: str
    unchanged: Setting
    changed: Setting

    @property
    def at_old_rate(self) -> Run:
        """The changed model at the best learning rate of the unchanged one."""
        return self.changed.tuned[self.unchanged.rate]

    @property
    def difference(self) -> Difference:
        """How much higher the losses of the changed model are, seed by seed."""
        return significance.difference(self.changed.losses, self.unchanged.losses)

    def sides(self, usual: str, changed: str) -> dict[str, Run]:
        """Three runs by name: both sides at the best old rate, and the change at its own best."""
        return {
            usual: self.unchanged.best,
            f"{changed}, old best rate": self.at_old_rate,
            f"{changed}, own best rate": self.changed.best,
        }


def ablation(results: Results, label: str, usual: str = "unchanged") -> dict[int, Comparison]:
    """A change beside the unchanged model, by the budgets in tokens that both have finished."""
    before, after = settings(results, usual), settings(results, label)
    return {
        tokens: Comparison(label, before[tokens], each)
        for tokens, each in after.items()
        if tokens in before
    }


def last(found: Mapping[int, Comparison]) -> Comparison:
    """The comparison at the largest budget."""
    return found[max(found)]


def comparison_table(found: Mapping[int, Comparison], usual: str = "unchanged") -> pd.DataFrame:
    """Two rows per budget: the best rate of both sides, their losses, and what the change costs."""
    rows = {}
    for tokens, each in found.items():
        for name, side in ((usual, each.unchanged), (each.label, each.changed)):
            changed = side is each.changed
            rows[f"{tokens:,}", name] = {
                "best rate": f"{side.rate:.3g}",
                "loss there (nats/token)": str(side.spread),
                f"at the best rate of “{usual}”": ending(each.at_old_rate) if changed else "",
                "costs": cost(each.difference) if changed else "",
            }
    return by_pairs(rows, "tokens", "setting")


def by_pairs(rows: Mapping[tuple, dict], *names: str) -> pd.DataFrame:
    """A table whose rows have two labels, in columns called `names`; it may be empty."""
    return pd.DataFrame([*rows.values()], pd.MultiIndex.from_tuples(rows, names=names))


def cost(difference: Difference) -> str:
    """A difference in words: its mean and the standard error of the mean."""
    if not math.isfinite(difference.nats):
        return f"{sum(map(math.isinf, difference.gaps))} of {len(difference.gaps)} seeds diverged"
    return f"{difference.nats:+.3f} ± {difference.error:.3f}"


CHANGES = {  # by its label, the experiment that compares a change with the unchanged model
    "no norm": "layer_norm",
    "post-norm": "pre_norm",
    "no RoPE": "no_position",
    "SiLU": "swiglu",
    "SiLU, 4 d_model": "swiglu",
}


class Family:
    """All comparisons of chapter 7, with Holm's correction over all that is claimed."""

    def __init__(self, studied: Mapping[str, Results]):
        self.by_change = {
            label: ablation(studied.get(study, {}), label) for label, study in CHANGES.items()
        }
        self.differences = {
            (label, tokens): each.difference
            for label, found in self.by_change.items()
            for tokens, each in found.items()
        }
        self.claimed = significance.claimed(self.differences)

    def __getitem__(self, label: str) -> dict[int, Comparison]:
        """A change by the budgets in tokens that both sides have finished."""
        return self.by_change[label]

    def __len__(self) -> int:
        """How many comparisons there are."""
        return len(self.differences)

    def effects(self) -> pd.DataFrame:
        """One row per comparison: its cost, whether luck explains it, the least cost claimable."""
        rows = {
            (label, f"{tokens:,}"): {
                "costs (nats/token)": cost(each),
                "p": significance.in_words(each.chance).removeprefix("= "),
                "claimed": "yes" if self.claimed[label, tokens] else "no",
                "smallest claimable": f"{each.smallest_claim(len(self)):.3f}",
            }
            for (label, tokens), each in self.differences.items()
        }
        return by_pairs(rows, "change", "tokens")

    def verdict(self, label: str, tokens: int) -> str:
        """What may be said of a comparison in words, without claiming what may be luck."""
        each = self.differences[label, tokens]
        if not math.isfinite(each.nats):
            return f"{cost(each)}, so there is no mean to compare"
        words = f"{cost(each)} nats/token, p {significance.in_words(each.chance)}"
        if self.claimed[label, tokens]:
            return f"{'worse' if each.nats > 0 else 'better'} ({words})"
        least = f"a gap of {each.smallest_claim(len(self)):.3f} could have been claimed"
        higher = f"higher with {sum(gap > 0 for gap in each.gaps)} of {len(each.gaps)} seeds"
        return f"no difference that these runs can establish ({words}, {higher}; {least})"

    def sentences(self, label: str) -> str:
        """What may be said of a change at each budget, one line of a list each."""
        return "\n".join(
            f"- {tokens:,} tokens: {self.verdict(label, tokens)}" for tokens in self[label]
        )


def span(values: Sequence[float]) -> str:
    """The smallest and the largest of some differences.

    >>> span([0.14, 0.81, 0.25])
    '+0.14 to +0.81'
    """
    return f"{min(values):+.2f} to {max(values):+.2f}"


def first(runs: Mapping[int, Run]) -> Run:
    """The first of some runs, which have the same settings except for the seed."""
    return next(iter(runs.values()))


def by_rate(results: Results, config: TrainConfig) -> dict[float, Run]:
    """The runs that differ from this config in the learning rate only, by rate, lowest first."""
    found = {
        rate_of(each): each
        for each in results.values()
        if at_rate(config, rate_of(each)).key == each.config.key
    }
    return dict(sorted(found.items()))


def seeds_at(results: Results, config: TrainConfig) -> dict[int, Run]:
    """The runs of this config with any seed, by seed."""
    return {
        run.config.seed: run
        for run in results.values()
        if replace(run.config, seed=config.seed).key == config.key
    }


def start_loss(run: Run) -> float:
    """The validation loss before the first step, in nats per token."""
    return float(run.log["validation_loss"].iloc[0])


def rose(run: Run) -> bool:
    """Whether a logged training loss was above the loss before the first step, by `STARTLED`."""
    return bool(run.log["train_loss"].max() > start_loss(run) + STARTLED)


def sweep_table(swept: Mapping[float, Run], levels: Levels) -> pd.DataFrame:
    """One row per learning rate: how the run ended, and how high its training loss was."""
    rows = {
        f"{rate:.3g}": {
            "outcome": ending(run),
            "bits/byte": None if run.diverged else run.bits_per_byte,
            "highest training loss": run.log["train_loss"].max(),
            "worse than counting": run.loss > levels.counting,
            f"rose {STARTLED:g} above its start": rose(run),
        }
        for rate, run in swept.items()
    }
    return pd.DataFrame(rows).T.rename_axis("learning rate")


# ------------------------------------------------------------------------- batch sizes


def by_batch(results: Results) -> dict[int, dict[float, Run]]:
    """The runs of each batch size by their learning rates, from `studies.batch_size`."""
    found: dict[int, dict[float, Run]] = {}
    for label, each in sorted(results.items(), key=lambda item: rate_of(item[1])):
        if label.startswith("batch "):
            found.setdefault(each.config.batch_size, {})[rate_of(each)] = each
    return dict(sorted(found.items()))


def neighbours(tuned: Mapping[float, Run]) -> list[str]:
    """How much worse half and twice the best learning rate are, in nats per token."""
    top = best(numbered(tuned))
    beside = (tuned.get(rate_of(top) * factor) for factor in (0.5, 2))
    return ["not tried" if run is None else f"{run.loss - top.loss:+.3f}" for run in beside]


def growth_exponent(values: Mapping[float, float]) -> float:
    """The power with which values grow, 1/2 for a root: the slope of a line through logarithms.

    >>> round(growth_exponent({8: 2.0, 32: 4.0, 128: 8.0}), 6)
    0.5
    """
    line = linear_regression([*map(math.log, values)], [*map(math.log, values.values())])
    return line.slope


# ------------------------------------------------------------------------- the leaderboard


def entries(board: Results) -> dict[str, dict[int, Run]]:
    """The entries of a finished leaderboard by label and seed; none if it is not finished."""
    found: dict[str, dict[int, Run]] = {}
    for name, run in board.items():
        label = re.sub(r", seed \d+$", "", name)
        if run.config.max_seconds is not None and ", rate " not in label:  # which only tuned it
            found.setdefault(label, {})[run.config.seed] = run
    return found if "final" in found else {}


def made_of(found: Mapping[str, Mapping[int, Run]]) -> str:
    """What the final entry consists of: the label of the entry that it tuned."""
    final = first(found["final"]).config
    for label, runs in found.items():
        config = first(runs).config
        if label != "final" and same_but_rate(config, final):
            return f"“{label}” at a learning rate of {final.optimizer.max_learning_rate:.3g}"
    raise ValueError("the final entry is not one of the others at another learning rate")


def same_but_rate(config: TrainConfig, other: TrainConfig) -> bool:
    """Whether two configs differ in nothing but the learning rates and the seed."""
    lowest, largest = other.optimizer.min_learning_rate, other.optimizer.max_learning_rate
    rates = {"min_learning_rate": lowest, "max_learning_rate": largest}
    return varied(config, seed=other.seed, **rates).key == other.key


def board_table(found: Mapping[str, Mapping[int, Run]]) -> pd.DataFrame:
    """One row per entry of a leaderboard: its losses by seed, and what fitted into the time."""
    rows = {
        label: {
            "loss by seed": ", ".join(f"{run.loss:.3f}" for run in runs.values()),
            "rate": f"{rate_of(first(runs)):.3g}",
            "steps": ", ".join(f"{run.steps:,}" for run in runs.values()),
            "tokens": ", ".join(f"{run.tokens:,}" for run in runs.values()),
            "seconds": f"{max(run.seconds for run in runs.values()):.1f}",
        }
        for label, runs in found.items()
    }
    return pd.DataFrame(rows).T


# ------------------------------------------------------------------------- generated texts


def sample_text(run: Run) -> str:
    """What the model of a run wrote, without end tokens and in short lines.

    Raises: ValueError for a run without one, such as one that diverged.
    """
    if run.sample is None:
        raise ValueError(f"{run.config.name} has no text; give an experiment's finished run")
    text = run.sample["text"].replace(corpora.END_OF_TEXT, "").strip()
    return "\n".join(textwrap.fill(line, WIDTH) for line in text.split("\n"))


# ------------------------------------------------------------------------- what there is


def deep(results: Results) -> dict[str, Setting]:
    """The settings of `studies.depth` that are done, by where their norms are."""
    norms = {"pre-norm": "deep", "without norms": "deep, no norm", "post-norm": "deep, post-norm"}
    found = {name: settings(results, label) for name, label in norms.items()}
    return {name: each for name, by_tokens in found.items() for each in by_tokens.values()}


def rates_table(found: Mapping[str, Setting]) -> pd.DataFrame:
    """One row per setting: how it ended at each learning rate, and its seeds at the best one."""
    tried = sorted({rate for each in found.values() for rate in each.tuned})
    rows = {
        name: {f"{rate:.3g}": ending(run) for rate, run in each.tuned.items()}
        | {"seeds at the best": str(each.spread)}
        for name, each in found.items()
    }
    columns = [*(f"{rate:.3g}" for rate in tried), "seeds at the best"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).fillna("")


def best_in_words(found: Mapping[str, Setting]) -> str:
    """The loss of each setting at its best learning rate, or that all of them diverged."""
    return "; ".join(
        f"{name} diverged at every learning rate"
        if each.best.diverged
        else f"{name} {each.spread} at {each.rate:.3g}"
        for name, each in found.items()
    )


def verdicts(studied: Mapping[str, Results]) -> dict[str, str]:
    """What came out of each experiment, in a sentence."""
    family = Family(studied)
    found = dict.fromkeys(studied, "not finished yet")
    for label, study in [*CHANGES.items()][:-1]:
        if family[label]:
            tokens = max(family[label])
            found[study] = f"at {tokens:,} tokens {family.verdict(label, tokens)}"
    for study, label in {"learning_rate": "unchanged", "main_experiment": "web"}.items():
        if by_budget := settings(studied.get(study, {}), label):
            found[study] = "; ".join(
                f"{tokens:,} tokens: best at {each.rate:.3g}, {each.spread}"
                for tokens, each in by_budget.items()
            )
    if deep_ones := deep(studied.get("depth", {})):
        found["depth"] = best_in_words(deep_ones)
    if sizes := by_batch(studied.get("batch_size", {})):
        top = {size: best(numbered(runs)) for size, runs in sizes.items()}
        found["batch_size"] = "; ".join(f"{size}: {run.loss:.3f}" for size, run in top.items())
    if board := entries(studied.get("leaderboard", {})):
        spread = significance.spread([run.loss for run in board["final"].values()])
        found["leaderboard"] = f"{made_of(board)}: {spread}"
    return found


class Recorded:
    """The experiments of a scale, as far as they are recorded."""

    def __init__(self, name: str, edition: Edition):
        """Take the scale of that name, such as "laptop"."""
        self.name, self.scale = name, scale_named(name, edition)
        self.stages = {study: Stage(each.plan(self.scale)) for study, each in STUDIES.items()}
        for stage in self.stages.values():
            stage.advance()

    @property
    def so_far(self) -> dict[str, Results]:
        """The recorded runs of each experiment that has any."""
        found = {study: stage.so_far() for study, stage in self.stages.items()}
        return {study: runs for study, runs in found.items() if runs}

    def __getitem__(self, study: str) -> Results:
        """The recorded runs of an experiment; if some are missing, print what makes them."""
        stage = self.stages[study]
        if not stage.over:
            missing = stage.missing()
            hours = sum(dry_run.seconds_of(missing)) / 3_600
            print(
                f"{study}: {len(missing)} runs have no record yet. They take about {hours:,.1f}"
                f" hours, and may lead to more; `workbook experiments run {study} --scale"
                f" {self.name}` makes them."
            )
        return stage.so_far()
