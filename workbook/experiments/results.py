"""What is read from finished runs: tables, the log of all experiments, and what a loss is worth.

Functions take runs by their labels, as a plan returns them. Nothing in a table is typed by hand, so
nothing can be forgotten: a run that failed is a row like any other.
"""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from workbook.config import LAPTOP, Edition, TrainConfig
from workbook.corpora import corpora
from workbook.experiments import significance
from workbook.experiments.plans import Results, Stage
from workbook.experiments.significance import PairedDifference, Spread
from workbook.experiments.studies import (
    ABLATIONS,
    IDEAS,
    STUDIES,
    at_rate,
    best,
    by_seed,
    final_losses,
    rate_of,
    scale_named,
)
from workbook.training.parts import NAMES
from workbook.training.trainer import Run

STARTLED = 0.5  # nats per token above the start: batches differ by less
WIDTH = 88  # characters of a line of a text that a model wrote


# ------------------------------------------------------------------------- tables of runs


def runs_table(runs: Mapping[Any, Run]) -> pd.DataFrame:
    """One row per run: the settings in which the runs differ, and what came out."""
    settings = pd.DataFrame([settings_of(run.config) for run in runs.values()])
    outcomes = pd.DataFrame(
        {
            "status": run.status,
            "steps taken": run.steps,
            "tokens": run.tokens,
            "seconds": run.seconds,
            "validation_loss": run.loss,
            "bits_per_byte": run.bits_per_byte,
        }
        for run in runs.values()
    )
    # What is the same in all runs says nothing about any of them.
    differing = settings.loc[:, settings.nunique(dropna=False) > 1]
    return differing.join(outcomes).set_index(pd.Index(runs, name="run"))


def settings_of(config: TrainConfig) -> dict[str, Any]:
    """All settings by name, those of the model and the optimizer among them."""
    flat = asdict(config)
    del flat["name"]
    return flat.pop("model") | flat.pop("optimizer") | flat


def compare_runs(runs: Results) -> pd.DataFrame:
    """`runs_table`, with a column for the learner's parts if any run has some.

    Losses of runs whose tokenizers differ can be compared only in bits per byte.
    """
    table = runs_table(runs)
    if any(run.made_of for run in runs.values()):
        table.insert(0, "yours", [yours(run) for run in runs.values()])
    return table


def yours(run: Run) -> str:
    """The parts of a run that are the learner's own, in words."""
    names = set(run.made_of)
    return "all" if names >= {*NAMES} else ", ".join(sorted(names))


# ------------------------------------------------------------------------- the log of experiments


def journal(results: Results) -> str:
    """The runs of one experiment as text: a line for each setting, with the loss of every run.

    Losses are validation losses in nats per token; a run that diverged has its `ending` instead.
    """
    settings: dict[str, dict[str, list[str]]] = {}
    for label, run in results.items():
        # "no norm, 100 tokens, seed 1" is one of the seeds of "no norm, 100 tokens".
        setting, _, last = label.rpartition(", ")
        kind, _, value = last.partition(" ")
        if not re.fullmatch(r"(rate|seed) [\d.e+-]+", last):  # neither of a sweep nor of some seeds
            setting = label
            kind = ""
            value = ""
        outcome = ending(run) if run.diverged else f"{run.loss:.3f}"
        kinds = settings.setdefault(setting or "one short sweep", {})
        kinds.setdefault(kind, []).append(f"{value} {outcome}".strip())
    lines: list[str] = []
    for setting, kinds in settings.items():
        for kind, outcomes in kinds.items():
            many = {"rate": "learning rates: ", "seed": "seeds: ", "": ""}[kind]
            text = f"{setting}: {many}{'; '.join(outcomes)}"
            lines += textwrap.wrap(text, 100, subsequent_indent="    ")
    return "\n".join(lines)


def first_asked(studied: Mapping[str, Results]) -> dict[str, Results]:
    """The runs of each experiment that none before it asked for, by label."""
    own: dict[str, Results] = {name: {} for name in studied}
    seen: set[str] = set()
    for name, runs in studied.items():
        for label, run in runs.items():
            if run.config.key not in seen:
                seen.add(run.config.key)
                own[name][label] = run
    return own


def ending(run: Run) -> str:
    """How a run ended, in words: its loss, or the step at which it was given up."""
    if never_began(run):
        return "had an infinite or NaN loss before the first step"
    if run.diverged:
        return f"diverged at step {run.outcome['step']:,}"
    return f"ended at {run.loss:.3f} nats/token"


def never_began(run: Run) -> bool:
    """Whether the loss of the new model was infinite or NaN already."""
    return run.diverged and bool(pd.isna(run.log["validation_loss"].iloc[0]))


def rose(run: Run) -> bool:
    """Whether a logged training loss was above the loss before the first step, by `STARTLED`."""
    start = run.log["validation_loss"].iloc[0]
    return bool(run.log["train_loss"].max() > start + STARTLED)


# ------------------------------------------------------------------------- comparisons


@dataclass(frozen=True)
class Setting:
    """A setting at one budget of tokens: tuned with one seed, then run with others at its best."""

    tuned: dict[float, Run]  # by learning rate, from the smallest to the largest
    seeds: dict[int, Run]  # at the best of these rates, by seed

    @property
    def best(self) -> Run:
        """The run with the lowest loss of those that tuned the rate."""
        return best(self.tuned)

    @property
    def rate(self) -> float:
        """The best learning rate of those that were tried."""
        return rate_of(self.best)

    @property
    def losses(self) -> dict[int, float]:
        """The losses at the best rate, by seed."""
        return losses_of(self.seeds)

    @property
    def bits_per_byte(self) -> float:
        """The mean over seeds at the best rate."""
        return fmean(run.bits_per_byte for run in self.seeds.values())

    @property
    def spread(self) -> Spread:
        """The losses at the best rate."""
        return spread_of(self.seeds)


def settings(results: Results, label: str) -> dict[int, Setting]:
    """The budgets in tokens at which `studies.settled` has finished a setting, smallest first.

    `label` is what the labels of its runs begin with, such as "no norm".
    """
    by_tokens: dict[int, Setting] = {}
    for name, run in results.items():
        if match := re.fullmatch(rf"{re.escape(label)}, ([\d,]+) tokens, (rate|seed) .*", name):
            setting = by_tokens.setdefault(int(match[1].replace(",", "")), Setting({}, {}))
            if match[2] == "rate":
                setting.tuned[rate_of(run)] = run
            else:
                setting.seeds[run.config.seed] = run
    return {
        tokens: Setting(dict(sorted(setting.tuned.items())), setting.seeds)
        for tokens, setting in sorted(by_tokens.items())
        if len(setting.seeds) > 1  # it is not finished without its seeds
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
    def difference(self) -> PairedDifference:
        """How much higher the losses of the changed model are, seed by seed."""
        return significance.paired_difference(self.changed.losses, self.unchanged.losses)


def comparisons(results: Results, label: str) -> dict[int, Comparison]:
    """A change beside the unchanged model, by the budgets in tokens that both have finished."""
    before = settings(results, "unchanged")
    after = settings(results, label)
    shared = [tokens for tokens in after if tokens in before]
    return {tokens: Comparison(label, before[tokens], after[tokens]) for tokens in shared}


def cost(difference: PairedDifference) -> str:
    """A difference in words: its mean and the standard error of the mean."""
    if not math.isfinite(difference.nats):
        return f"{sum(map(math.isinf, difference.gaps))} of {len(difference.gaps)} seeds diverged"
    return f"{difference.nats:+.3f} ± {difference.error:.3f}"


# By its label, the experiment that compares a change with the unchanged model.
CHANGES = {label: study for study, label in ABLATIONS.items()} | {
    "SiLU, 4 d_model": "swiglu",
    "only the final norm": "layer_norm",
}
TRIED = dict.fromkeys(IDEAS, "ideas")  # a family of its own: nothing of the course is claimed by it


class Family:
    """All comparisons of chapter 7, with Holm's correction over all that is claimed."""

    def __init__(self, studied: Mapping[str, Results], changes: Mapping[str, str] = CHANGES):
        """Take the recorded runs by experiment, and the changes with the experiment of each."""
        self.by_change = {
            label: comparisons(studied.get(study, {}), label) for label, study in changes.items()
        }
        self.differences = {
            (label, tokens): compared.difference
            for label, by_budget in self.by_change.items()
            for tokens, compared in by_budget.items()
        }
        self.claimed = significance.claimed(self.differences)

    def table(self, label: str, usual: str = "unchanged") -> pd.DataFrame:
        """A change beside the usual model by budget: losses at the best rates, and what it costs.

        Where no cost is claimed, it says which one could have been: that is no proof of equality.
        """
        rows = {}
        for tokens, pair in self.by_change[label].items():
            gap = pair.difference
            odds = significance.in_words(gap.chance).removeprefix("= ")
            significant = "yes"
            if not math.isfinite(gap.nats):
                odds = ""
                significant = "not tested"
            elif not self.claimed[label, tokens]:
                # Holm's next step: what is claimed already is not counted any more.
                left = len(self.differences) - sum(self.claimed.values())
                significant = f"no (needs {gap.smallest_claim(left):.3f})"
            rows[f"{tokens:,}"] = {
                usual: f"{pair.unchanged.spread} at {pair.unchanged.rate:.3g}",
                label: f"{pair.changed.spread} at {pair.changed.rate:.3g}",
                f"{label} at the rate of {usual}": ending(pair.at_old_rate),
                "cost": cost(gap),
                "p": odds,
                "significant": significant,
            }
        return pd.DataFrame(rows).T.rename_axis("tokens")

    def verdicts(self, label: str) -> str:
        """What the comparisons of a change say, each with its budget."""
        budgets = self.by_change[label]
        return "; ".join(f"at {n:,} tokens, {self.verdict(label, n)}" for n in budgets)

    def verdict(self, label: str, tokens: int) -> str:
        """What a comparison says, in words."""
        gap = self.differences[label, tokens]
        if not math.isfinite(gap.nats):
            return f"with {label}, {cost(gap)}"
        odds = f"p {significance.in_words(gap.chance)}"
        if not self.claimed[label, tokens]:
            return f"no difference shown for {label} ({cost(gap)} nats per token, {odds})"
        moves = "raise" if gap.nats > 0 else "lower"
        moves += "" if label.endswith("weights") else "s"  # they are several
        size = f"{abs(gap.nats):.3f} ± {gap.error:.3f}"
        return f"{label} {moves} the loss by {size} nats per token ({odds})"


def worth(unchanged: Mapping[int, Setting], tokens: int, loss: float) -> float:
    """The tokens that the unchanged model needs for a loss, as a multiple of `tokens`.

    Between the budgets its loss is interpolated over the logarithm of the tokens.
    """
    falling = [-setting.spread.mean for setting in unchanged.values()]
    return math.exp(np.interp(-loss, falling, np.log([*unchanged]))) / tokens


def markdown(table: pd.DataFrame) -> str:
    """A table of texts as Markdown, for an answer."""
    rows = [[table.index.name or "", *table], ["---"] * (1 + len(table.columns))]
    rows += [[name, *row] for name, row in zip(table.index, table.to_numpy(), strict=True)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def span(values: Sequence[float]) -> str:
    """The smallest and the largest of some differences.

    >>> span([0.14, 0.81, 0.015])
    '+0.015 to +0.810'
    """
    low = f"{min(values):+.3f}"
    high = f"{max(values):+.3f}"
    return low if low == high else f"{low} to {high}"


# ------------------------------------------------------------------------- learning rates, batches


def by_rate(results: Results, config: TrainConfig) -> dict[float, Run]:
    """The runs that differ from this config in the learning rate only, by rate, lowest first."""
    runs = {
        rate_of(run): run
        for run in results.values()
        if at_rate(config, rate_of(run)).key == run.config.key
    }
    return dict(sorted(runs.items()))


def by_batch(results: Results) -> dict[int, dict[float, Run]]:
    """The runs of each batch size by their learning rates, from `studies.batch_size`."""
    sizes: dict[int, dict[float, Run]] = {}
    for label, run in sorted(results.items(), key=lambda item: rate_of(item[1])):
        if label.startswith("batch "):
            sizes.setdefault(run.config.batch_size, {})[rate_of(run)] = run
    return dict(sorted(sizes.items()))


# ------------------------------------------------------------------------- the leaderboard


def entries(board: Results) -> dict[str, dict[int, Run]]:
    """The entries of a finished leaderboard by label and seed; none if it is not finished."""
    by_label: dict[str, dict[int, Run]] = {}
    for name, run in board.items():
        label = re.sub(r", seed \d+$", "", name)
        if run.config.max_seconds is not None and ", rate " not in label:  # which only tuned it
            by_label.setdefault(label, {})[run.config.seed] = run
    return by_label if "final" in by_label else {}


def losses_of(runs: Mapping[int, Run]) -> dict[int, float]:
    """The final losses of some runs, by seed."""
    return {seed: run.loss for seed, run in runs.items()}


def spread_of(runs: Mapping[int, Run]) -> Spread:
    """The final losses of some runs that differ in their seeds."""
    return Spread(tuple(final_losses(runs)))


def entries_table(board: Mapping[str, Mapping[int, Run]]) -> pd.DataFrame:
    """Each entry of a leaderboard: its losses, beside the start with the same seeds, its steps."""
    rows = {}
    for label, runs in board.items():
        start = board["start again" if label == "final" else "start"]
        losses = losses_of(runs)
        usual = losses_of(start)
        same = usual.keys() & losses.keys() and label != "start"
        steps = [run.steps for run in runs.values()]
        rows[label] = {
            "loss (nats/token)": str(spread_of(runs)),
            "beside the start": cost(significance.paired_difference(losses, usual)) if same else "",
            "learning rate": f"{rate_of(next(iter(runs.values()))):.3g}",
            "steps": f"{min(steps)} to {max(steps)}",
        }
    return pd.DataFrame(rows).T.rename_axis("entry")


def final_entry(board: Mapping[str, Mapping[int, Run]]) -> str:
    """What the final entry consists of: the label of the entry that it tuned, and its rate."""
    final = next(iter(board["final"].values()))
    rate = rate_of(final)
    starts = {label: next(iter(runs.values())).config for label, runs in board.items()}
    # The first of them that is the final one but for rate and seed: "final" itself is the last.
    label = next(
        label
        for label, config in starts.items()
        if at_rate(replace(config, seed=final.config.seed), rate).key == final.config.key
    )
    return f"“{label}” at a learning rate of {rate:.3g}"


# ------------------------------------------------------------------------- generated texts


def sample_text(run: Run) -> str:
    """What the model of a run that finished wrote, without end tokens and in short lines."""
    assert run.sample is not None, "it diverged"
    text = run.sample["text"].replace(corpora.END_OF_TEXT, "").strip()
    return "\n".join(textwrap.fill(line, WIDTH) for line in text.split("\n"))


# ------------------------------------------------------------------------- what there is


def deep_settings(results: Results) -> dict[str, Setting]:
    """The settings of `studies.depth` that are done, by where their norms are."""
    norms = {"pre-norm": "deep", "without norms": "deep, no norm", "post-norm": "deep, post-norm"}
    return {
        name: setting
        for name, label in norms.items()
        for setting in settings(results, label).values()
    }


def best_in_words(by_name: Mapping[str, Setting]) -> str:
    """The loss of each setting at its best learning rate, or that none could be trained."""
    words = []
    for name, setting in by_name.items():
        if not setting.best.diverged:
            words.append(f"{name} {setting.spread} at {setting.rate:.3g}")
        elif all(map(never_began, setting.tuned.values())):
            words.append(
                f"{name}, no run could start: the new model's loss is already infinite or NaN"
            )
        else:
            words.append(f"{name} diverged at every learning rate")
    return "; ".join(words)


def verdicts(studied: Mapping[str, Results]) -> dict[str, str]:
    """What came out of each experiment, in a sentence."""
    family = Family(studied)
    runs = {study: studied.get(study, {}) for study in STUDIES}
    words = {study: family.verdicts(label) for study, label in ABLATIONS.items()}
    words["learning_rate"] = rates_in_words(settings(runs["learning_rate"], "unchanged"))
    by_size = by_batch(runs["batch_size"]).items()
    words["batch_size"] = "; ".join(f"{size}: {best(tried).loss:.3f}" for size, tried in by_size)
    words["depth"] = best_in_words(deep_settings(runs["depth"]))
    words["longer"] = gaps_in_words(runs["longer"])
    tried = Family(studied, TRIED)
    words["ideas"] = "; ".join(filter(None, map(tried.verdicts, IDEAS)))
    words["main_experiment"] = rates_in_words(settings(runs["main_experiment"], "web"))
    words["leaderboard"] = board_in_words(entries(runs["leaderboard"]))
    return {study: words[study] or "not finished yet" for study in studied}


def rates_in_words(by_tokens: Mapping[int, Setting]) -> str:
    """The best learning rate of a setting and its losses there, by budget."""
    return "; ".join(
        f"{tokens:,} tokens: best at {setting.rate:.3g}, {setting.spread}"
        for tokens, setting in by_tokens.items()
    )


def gaps_in_words(longer: Results) -> str:
    """How much higher the loss of each change is in `studies.longer`, at the same rate and seed."""
    pairs = longest_pairs(longer).items()
    gaps = "; ".join(f"{label} {run.loss - usual.loss:+.3f}" for label, (run, usual) in pairs)
    return f"{gaps} nats per token in one run each" if gaps else ""


def longest_pairs(longer: Results) -> dict[str, tuple[Run, Run]]:
    """Each change in `studies.longer` and the unchanged model at the same rate and seed."""
    unchanged = longest_unchanged(longer)
    pairs = {}
    for label in ABLATIONS.values():
        for seed, run in by_seed(longer, f"longer, {label}").items():
            usual = unchanged.get(rate_of(run), {})
            if seed in usual:
                pairs[label] = (run, usual[seed])
    return pairs


def longest_in_words(longer: Results) -> dict[str, str]:
    """Both losses of each of these pairs, as a clause."""
    return {
        label: f"after {run.tokens:,} tokens, one run ends at {run.loss:.3f}, and the unchanged"
        f" model with the same seed and rate ({rate_of(run):.3g}) at {usual.loss:.3f}"
        for label, (run, usual) in longest_pairs(longer).items()
    }


def longest_unchanged(longer: Results) -> dict[float, dict[int, Run]]:
    """The runs of the unchanged model in `studies.longer`, by learning rate and seed."""
    runs: dict[float, dict[int, Run]] = {}
    for name, run in longer.items():
        if name.startswith("longer, unchanged, "):
            runs.setdefault(rate_of(run), {})[run.config.seed] = run
    return dict(sorted(runs.items(), reverse=True))


def longest_table(longer: Results, before: Run) -> pd.DataFrame:
    """The losses of `studies.longer`; those of the changes beside the unchanged model, too.

    That is at the rate that won its own search, in the run `before`, and at the rate of the change.
    The first row has that run, and the same one on the longer text.
    """
    unchanged = longest_unchanged(longer)
    searched = rate_of(before)
    bridge = longer["longer, bridge"]
    both = f"{bridge.loss:.3f} (on the shorter text {before.loss:.3f})"
    rows = [(f"unchanged, {bridge.tokens:,} tokens", searched, both, "", "")]
    for rate, runs in unchanged.items():
        losses = ", ".join(f"{run.loss:.3f}" for run in runs.values())
        rows.append(("unchanged", rate, losses, "", ""))
    for label, (run, usual) in longest_pairs(longer).items():
        won = unchanged[searched][run.config.seed]
        beside_won = f"{run.loss - won.loss:+.3f}"
        beside_usual = f"{run.loss - usual.loss:+.3f}"
        rows.append((label, rate_of(run), f"{run.loss:.3f}", beside_won, beside_usual))
    names = [
        "setting",
        "rate",
        "loss (nats/token)",
        f"beside {searched:.3g}",
        "beside its own rate",
    ]
    return pd.DataFrame(rows, columns=names).set_index("setting")


def board_in_words(board: Mapping[str, Mapping[int, Run]]) -> str:
    """What the final entry of a leaderboard consists of, and its losses; "" if there is none."""
    return f"{final_entry(board)}: {spread_of(board['final'])}" if board else ""


class Recorded:
    """The experiments of a scale, as far as they are recorded."""

    def __init__(self, name: str, edition: Edition) -> None:
        """Take the scale of that name, such as "laptop"."""
        self.name = name
        self.scale = scale_named(name, edition)
        self.stages = {name: Stage(study.plan(self.scale)) for name, study in STUDIES.items()}
        for stage in self.stages.values():
            stage.advance()

    @property
    def so_far(self) -> dict[str, Results]:
        """The recorded runs of each experiment that has any."""
        studied = {study: stage.so_far() for study, stage in self.stages.items()}
        return {study: runs for study, runs in studied.items() if runs}

    @property
    def unfinished(self) -> list[str]:
        """The experiments of which some runs have no record."""
        return [study for study, stage in self.stages.items() if not stage.over]


def recorded_at(name: str, edition: Edition) -> Recorded:
    """The experiments of that scale once all are recorded; until then, the laptop's.

    It prints which experiments are not finished, and how to make their runs.
    """
    found = Recorded(name, edition)
    if name == LAPTOP.name or not found.unfinished:
        return found
    print(
        f"At scale {name}, these have no complete records: {', '.join(found.unfinished)}. Shown are"
        f" the laptop's; `workbook experiments run --scale {name}` makes the runs."
    )
    return Recorded(LAPTOP.name, edition)
