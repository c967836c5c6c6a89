"""The checks of chapter 7: tables of training runs, and which runs are impossible.

A run is a dict such as {"learning_rate": 3e-3, "batch_size": 64, "steps": 5_000, "seconds": 900,
"context_length": 256, "tokens": 81_920_000, "loss": 1.41, "status": "finished"}, with a "name",
"bits_per_byte", "bytes_per_token", "perplexity", "parameters" and the settings of a `ModelConfig`.
A table is a list of such dicts, a pandas table or a dict with these columns, what
`workbook.experiments` returns, or in short {setting: loss}, where the setting is a number, one of
`KINDS`, or a tuple of both. In place of a loss there may be a list, one per seed; a run that
diverged has nan.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from itertools import pairwise
from numbers import Real
from operator import attrgetter, itemgetter
from statistics import fmean
from types import SimpleNamespace
from typing import Any

import pandas as pd

from workbook import accounting, config
from workbook.checks.verdicts import Findings, NotAttempted, Unreadable, Words, Wrong
from workbook.checks.written import entry
from workbook.experiments import results
from workbook.experiments.significance import RARE, permutation
from workbook.experiments.studies import (
    BOARD_BEST,
    BOARD_TARGET,
    CAPS,
    TARGET,
    TARGET_ON_CPU,
    TOO_HIGH,
)
from workbook.training.loss_bounds import bits_per_byte, bounds, nats_per_token, uniform_loss
from workbook.training.train import Run

LOSS = re.compile(r"(?!.*train)(?:\w+_)?loss")
TIME = re.compile(r"time|elapsed|wall|duration")  # in seconds, where no unit is named
COLUMNS = {  # other names, which take precedence over the column's own
    "learning_rate": ("max_learning_rate", "max_lr", "peak_lr", "lr"),
    "batch_size": ("batch", "bs"),
    "context_length": ("context",),
    "steps": ("steps_taken", "step", "iter"),
    "perplexity": ("ppl",),
    "parameters": ("params",),
    "name": ("run", "label"),
    "status": ("outcome", "diverged"),
}
KINDS = {  # by column, the usual one first
    "norm": ("pre", "post", "none"),
    "position": ("rope", "none"),
    "ffn": ("swiglu", "silu"),
    "corpus": ("tinystories", "owt", "stories", "docstrings", "simple", "web"),
}
ALIASES = {"openwebtext": "owt", "tiny_stories": "tinystories"}
ALIASES |= dict.fromkeys(("nope", "no_", "without"), "none")
USUAL = re.compile(r"base|unchanged|usual|original|with_|rms_?norm")  # runs that change nothing
WORDS = {*KINDS, "name", "status", *COLUMNS["name"], *COLUMNS["status"]}  # the rest are numbers
# What two kinds have in common, except for what is compared.
SETTINGS = ["corpus", "batch_size", "weight_decay", *(f.name for f in fields(config.ModelConfig))]
FORM = 'a dict per run, such as {"learning_rate": 3e-3, "loss": 1.41}, or a pandas table like that'
CLOSE, SAME = 0.02, 0.05  # relative: of rounded figures; of settings that are nearly the same
SEEDS = 8  # losses of one setting; a longer list is the curve of a run
FALLS = 1.3  # the first loss over the last one in a curve: seeds do not differ as much
COARSE = 30  # two learning rates so far apart only show that there is an edge between them
CPU_TOKENS = 40_960_000
BATCHES = (1, 64, 128)  # that the sweep has to hold
MATCHED = 0.13  # relative: the course's own width, 4·d, is that far off on the small model
WIDEST = 20_000  # of an inner width; larger numbers are parameters
OLD_MINUTES = 90  # of the leaderboard, in the texts of 2026 before 26.0.3 as well


class Reported(SimpleNamespace):
    """A run with one seed, as it is handed in: all columns, nan for those that it lacks."""

    def __getattr__(self, column: str) -> float:
        return math.nan

    def kind(self, column: str) -> str:
        """Tell which of `KINDS` it is by that column, or else by its name; "" for none."""
        for word in (getattr(self, column), self.name):
            word = _normal(word).removeprefix("with_")
            word = next((kind for name, kind in ALIASES.items() if word.startswith(name)), word)
            if found := next(filter(word.startswith, KINDS[column]), ""):
                return found
        return ""

    def corpus_of(self, text: str) -> str:
        """Tell its corpus; where none is named, that of the profile: "simple" or "web"."""
        found, profile = self.kind("corpus") or text, config.profile()
        return {"simple": profile.simple_corpus, "web": profile.web_corpus}.get(found, found)


def table(attempt: Any, by: str = "", every: bool = False) -> list[Reported]:
    """Read the runs whose outcome is known; with `every` those without a loss as well.

    If a number names a run, it is a value of the column `by`; without `by`, a number below 1 is a
    learning rate, any other a seed.
    """
    if isinstance(attempt, Real):
        raise NotAttempted(f"There is nothing to compare one number with. Hand in {FORM}.")
    try:
        if len(attempt) == 0 or (isinstance(attempt, str) and attempt.isspace()):
            raise NotAttempted
        runs = [run for row in _rows(attempt, by) for run in _seeds(row)]
    except (AttributeError, TypeError, ValueError) as error:
        raise Unreadable(attempt) from error
    found = [run for run in runs if not math.isnan(run.loss)]
    if not found and not (every and any(run.train_loss > 0 for run in runs)):
        raise NotAttempted  # rows without losses yet: the report says what the part takes
    return runs if every else found


def _rows(attempt: Any, by: str) -> Iterator[Mapping]:
    """Yield a dict for each run."""
    if isinstance(attempt, list) and all(isinstance(e, tuple) and len(e) == 2 for e in attempt):
        attempt = dict(attempt)
    if isinstance(attempt, Mapping):  # {"none": {3e-3: loss}}
        attempt = dict(_unnested(attempt))
    names = attempt.keys() if isinstance(attempt, Mapping | pd.Series) else ()
    of_losses = [name for name in names if LOSS.fullmatch(_normal(name))]
    if of_losses and any(isinstance(attempt[n], list) for n in names if n not in of_losses):
        attempt = pd.DataFrame(attempt)
    if isinstance(attempt, pd.DataFrame):
        label = "index" if attempt.index.dtype.kind == "i" else "name"
        names = [name or label for name in attempt.index.names]
        index = [each if isinstance(each, tuple) else (each,) for each in attempt.index]
        rows = zip(index, attempt.to_dict("records"), strict=True)
        attempt = [dict(zip(names, each, strict=True)) | row for each, row in rows]
    if isinstance(attempt, Mapping | pd.Series):
        named = (_named(*item, by) for item in attempt.items())
        attempt = [attempt] if of_losses else named
    for row in attempt:
        if isinstance(row, Run):
            outcome = ("status", "loss", "steps", "tokens", "seconds", "bits_per_byte")
            row = results.settings_of(row.config) | {name: getattr(row, name) for name in outcome}
        yield row


def _unnested(attempt: Mapping) -> Iterator[tuple]:
    for key, value in attempt.items():
        if isinstance(value, Mapping) and value and all(isinstance(each, Real) for each in value):
            yield from (((key, number), loss) for number, loss in value.items())
        else:
            yield key, value


def _named(key: Any, value: Any, by: str) -> Any:
    """Return the row of a run that is named by a number, a word, or a tuple of both."""
    if isinstance(value, Run):
        return value
    row = dict(value) if isinstance(value, Mapping) else {"loss": value}
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, str):
            row["name"] = part
        if number := re.search(r"((^-)?\d[\d.]*(e[-+]?\d+)?)$", str(part), re.IGNORECASE):
            row[by or ("seed" if float(number[1]) >= 1 else "learning_rate")] = number[1]
    return row


def _seeds(given: Mapping) -> Iterator[Reported]:
    """Yield a run for each seed of a row."""
    given = {_normal(column): value for column, value in given.items()}
    given = {c: value for c, value in given.items() if value is not None or c in KINDS}
    numbers = {column: _number(value) for column, value in given.items()}
    row = {c: n for c, n in numbers.items() if isinstance(n, float | bool) or c in WORDS}
    for column, names in COLUMNS.items():
        row[column] = next((row[name] for name in (*names, column) if name in row), math.nan)
    times = [
        found
        for column, value in numbers.items()
        if not re.search("per|step", column) and (found := entry(column, value))
        if found.kind == "seconds" or (not found.kind and TIME.search(column))
    ]
    row["seconds"] = max(times, key=attrgetter("kind")).value if times else math.nan
    said = _normal(row["status"]).startswith(("diverg", "true"))
    losses = sorted(filter(LOSS.fullmatch, given), key=lambda name: "val" not in name)
    losses = _losses(next((given[name] for name in losses), None))
    for loss in losses or [math.inf if said else math.nan]:
        ended = math.isfinite(loss) and not said
        yield Reported(**row | {"loss": loss, "said": said, "ended": ended})


def _losses(value: Any) -> list[float]:
    """Return the loss of a run, those of its seeds, or the last one of its curve."""
    if isinstance(value, list | tuple):
        found = [loss for each in value for loss in _losses(each)]
        falls = len(found) > 2 and math.inf > found[0] > FALLS * found[-1]
        return found[-1:] if falls or len(found) > SEEDS else found
    loss = math.nan if _normal(value).startswith("diverg") else _number(value)
    return [loss if math.isfinite(loss) else math.inf] if isinstance(loss, float) else []


def _number(value: Any) -> Any:
    """Return a number, even one in a text, as a float; anything else as it is."""
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return value


def _normal(name: Any) -> str:
    """Spell a name as columns are: "Val Loss" and "val/loss" are "val_loss"."""
    return re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")


def _means(runs: list[Reported], by: str = "learning_rate") -> dict[float, float]:
    """Return the mean loss of the runs that ended for each value of a setting, the best first."""
    losses: dict[float, list[float]] = {}
    for run in runs:
        if run.ended:
            losses.setdefault(getattr(run, by), []).append(run.loss)
    return dict(sorted(zip(losses, map(fmean, losses.values()), strict=True), key=itemgetter(1)))


# --- What every run must hold to


def _judged(runs: list[Reported], text: str) -> Findings:
    """Judge every run by itself; `text` is "simple" or "web", where no corpus is named."""
    found = Findings()
    for expect in (_expect_possible, _expect_consistent):
        with found("use"):
            for run in runs:
                expect(run, run.corpus_of(text))
    lowest = min((run.loss for run in runs if run.ended), default=None)
    if lowest is None:
        mistake = "Try smaller learning rates, or a longer warm-up."
        raise Wrong(f"No run finished: all {len(runs)} diverged.", mistake=mistake)
    most = max(getattr(each, f"{text}_vocab_size") for each in config.PROFILES.values())
    if lowest >= uniform_loss(most):
        with found("use"):
            blind = f"ln {most:,} = {uniform_loss(most):.2f} nats per token"
            raise Wrong(
                f"Even a model that has learned nothing gets {blind}: yours has {lowest:.4g}.",
                mistake="Is it a perplexity? Or a loss that was summed and not averaged?",
            )
    if not found:
        found.passes.append("No run contradicts itself.")
    return found


def _expect_possible(run: Reported, corpus: str) -> None:
    """Raise where no model has such a loss on this text."""
    known = bounds(corpus, run.bytes_per_token if run.bytes_per_token > 0 else None)
    loss, length = run.loss, known.bytes_per_token
    if loss < 0:
        raise Wrong("A loss is never negative: it is -ln of a probability.", got=loss)
    if loss >= known.lowest:
        return
    mistake = (
        "The model sees its targets (causal "
        "mask?), or it was validated on text that it was trained on."
    )
    if loss > known.floor:
        nats = f"{loss:.4g} bits per byte are {nats_per_token(loss, length):.2f} nats per token."
        mistake += f" Or the unit is different: {nats}"
    raise Wrong(
        f"This is lower than any model can get on {corpus}: {known.reason}.",
        expected=Words(f"{known.lowest:.2f} nats per token ({known.floor:.2f} bits per byte)"),
        got=Words(f"{loss:.4g} nats per token, {bits_per_byte(loss, length):.2f} bits per byte"),
        mistake=mistake,
    )


def _expect_consistent(run: Reported, corpus: str) -> None:
    """Raise where the tokens, the perplexity or the bits of a run do not follow from the rest."""
    loss, context, known = run.loss, run.context_length, run.bytes_per_token > 0
    length = run.bytes_per_token if known else bounds(corpus).bytes_per_token
    product = run.steps * run.batch_size * context if run.ended else math.nan
    figures = []  # column, formula, value, what is counted as equal, and slips
    if product > 0 < context:
        slips = {
            "The context length is missing from the product.": product / context,
            "The batch size is missing from the product.": product / run.batch_size,
        }
        figures = [("tokens", "steps × batch × context", product, 0, 1 + CLOSE, slips)]
    if 0 < loss < 100:
        slips = {"2 ** loss is for bits: this loss is in nats, so take exp.": 2**loss}
        figures.append(("perplexity", f"exp({loss:g})", math.exp(loss), 0.95, 1.05, slips))
        slips = {
            "That is in bits per token: divide by the bytes per token.": loss / math.log(2),
            "It is still in nats: divide by ln 2.": loss / length,
        }
        bits, room = bits_per_byte(loss, length), 1.05 if known else 3  # 1.2 to 12 bytes a token
        formula = f"{loss:g} / ln 2 / {length:g}"
        figures.append(("bits_per_byte", formula, bits, 1 / room, room, slips))
    for column, formula, value, least, most, slips in figures:
        got, whole = getattr(run, column), column == "tokens"
        slip = next((words for words, other in slips.items() if _near(got, other)), None)
        fits = least * value <= got <= most * value and not (whole and slip)
        parts = whole and value < got < math.inf and _near(got / value, round(got / value))
        if got > 0 and not (fits or parts or _near(got, value)):  # parts of a batch, or devices
            claim = f"In one run, {column.replace('_', ' ')} and the other figures do not agree."
            expected = Words(f"{formula} = {value:,.{0 if whole else 2}f}")
            raise Wrong(claim, expected=expected, got=Words(f"{got:,.10g}"), mistake=slip)


def _near(value: float, other: float) -> bool:
    return abs(value - other) < CLOSE * abs(other)


def _expect_equal_tokens(seen: Mapping[Any, float], mistake: str = "") -> None:
    """Raise where runs are compared that saw different numbers of tokens."""
    if seen and max(seen.values()) > (1 + SAME) * min(seen.values()):
        raise Wrong(
            "These runs saw different numbers of tokens.",
            got=Words(", ".join(f"{name}: {tokens:,.0f}" for name, tokens in seen.items())),
            mistake=mistake or "A run that has read more text is better for that reason alone.",
        )


def _expect_divergence(runs: list[Reported]) -> None:
    """Raise if a run is said to diverge whose loss is no higher than any other."""
    lowest = min((run.loss for run in runs if run.ended), default=-math.inf)
    if said := [run.loss for run in runs if run.said and run.loss <= lowest]:
        mistake = "Rows may be mixed up. A loss that jumps and comes back has not diverged."
        claim = f"A run is said to diverge, but its loss is the lowest of all: {said[0]:.4g}."
        raise Wrong(claim, mistake=mistake)


# --- The problems


def experiment_log(attempt: Any, part: str | None = None) -> str:
    """Judge a table with a row for each run, or the log of one run."""
    runs = table(attempt.log if isinstance(attempt, Run) else attempt, every=True)
    rising = all(early.steps < late.steps for early, late in pairwise(runs))
    named = any(run.batch_size > 0 or isinstance(run.name, str) for run in runs)
    one = len(runs) > 2 and rising and not named
    if not one:
        runs = [run for run in runs if not math.isnan(run.loss)]
    if len(runs) < 2:
        raise NotAttempted("That is one run. A log holds all that were tried.")
    found, seconds = Findings() if one else _judged(runs, "simple"), [r.seconds for r in runs]
    with found("use"):
        if not any(each > 0 for each in seconds):
            mistake = "Record `time.perf_counter() - start` with each loss."
            raise Wrong(
                "The log does not say how long it took: no column `seconds`.", mistake=mistake
            )
        if one and any(late < early for early, late in pairwise(seconds)):
            mistake = "Are they seconds per step? Or did the clock start again after a break?"
            raise Wrong("Time runs backwards in this log.", got=seconds, mistake=mistake)
    if one:
        return found.verdict(f"{len(runs)} lines, with a loss to plot against steps and time.")
    failed = not all(run.ended for run in runs)
    advice = "" if failed else " Did everything work? What failed belongs here too."
    return found.verdict(f"{len(runs)} runs, none of which contradicts itself.{advice}")


def learning_rate(attempt: Any, part: str | None = None) -> str:
    """Judge a sweep: (a) the loss that it reaches, (b) where runs begin to diverge."""
    match part, attempt:
        case "b", [Real() as best, Real() as diverges]:
            return _edge(best, diverges)
        case "b", Mapping() if len(attempt) == 2 and all(type(key) is str for key in attempt):
            named = sorted(attempt, key=lambda key: "diverg" in key)
            if "diverg" in named[1] and all(isinstance(attempt[key], Real) for key in named):
                return _edge(*(attempt[key] for key in named))
        case "a", Real():
            runs = table([{"loss": attempt}])
            return _judged(runs, "simple").verdict(_reached(runs))
    runs = [run for run in table(attempt, "learning_rate") if run.learning_rate > -math.inf]
    rates = sorted({run.learning_rate for run in runs})
    if len(rates) < 3:
        raise NotAttempted(f"A sweep needs at least three learning rates. Hand in {FORM}.")
    if rates[0] <= 0:
        raise Wrong("A learning rate is positive.", got=rates[0])
    found, praise = _judged(runs, "simple"), ""
    if part == "b":
        with found("use"):
            praise = _bracketed(runs, rates)
        return found.verdict(praise)
    best = next(iter(_means(runs)))
    with found("use"):
        if best in (rates[0], rates[-1]):
            end, on = ("largest", "larger") if best == rates[-1] else ("smallest", "smaller")
            claim = f"The best learning rate, {best:g}, is the {end} one that was tried."
            raise Wrong(claim, mistake=f"The sweep ends too early: a {on} one may be better.")
    with found("use"):
        praise = _reached(runs)
    return found.verdict(f"{len(rates)} learning rates; the best, {best:g}, lies inside. {praise}")


def _reached(runs: list[Reported]) -> str:
    loss, corpus = min(_means(runs).values()), runs[0].corpus_of("simple")
    wanted = f"{TARGET} is asked for, {TARGET_ON_CPU:.2f} with {CPU_TOKENS:,} tokens"
    if corpus != "tinystories":
        return f"{loss:.4g} nats per token is possible on {corpus}; on TinyStories {wanted}."
    if loss > TARGET_ON_CPU:
        mistake = "Let it see all the tokens, and tune the learning rate: these matter most."
        raise Wrong(f"{loss:.4g} is not low enough: {wanted}.", mistake=mistake)
    return f"{loss:.4g} is low enough{' for a CPU' if loss > TARGET else ''}: {wanted}."


def _bracketed(runs: list[Reported], rates: list[float]) -> str:
    _expect_divergence(runs)
    losses = _means(runs)
    best, lowest = next(iter(losses.items()))
    lost = [run.learning_rate for run in runs if not run.ended]
    # Far too large a learning rate often gives no nan: the loss stays high.
    lost += [r for r in rates if r > best and losses.get(r, 0.0) > lowest + TOO_HIGH]
    if not lost:
        mistake = f"Go on upwards from {rates[-1]:g}, doubling it each time."
        raise Wrong(f"No run diverges: all converge, up to {rates[-1]:g}.", mistake=mistake)
    edge = min((rate for rate in lost if rate > best), default=max(lost))
    return _edge(best, edge, max((rate for rate in rates if rate < edge), default=best))


def _edge(best: float, diverges: float, stable: float | None = None) -> str:
    """Praise the best learning rate beside one that diverges; `stable` is the last below it."""
    if not (0 < best < math.inf and 0 < diverges < math.inf):
        raise Wrong("A learning rate is positive and finite.", got=(best, diverges))
    if diverges <= best:
        mistake = "The two may be swapped, or the two runs differ in something else as well."
        claim = f"The best learning rate, {best:g}, is not below {diverges:g}, which diverges."
        raise Wrong(claim, mistake=mistake)
    apart = diverges / (stable or best)
    if apart > (COARSE if stable else COARSE**2):
        raise Wrong(
            f"That does not say where the edge is: {math.log10(apart):.1f} orders of magnitude lie"
            f" between {stable or best:g}, which converges, and {diverges:g}, which diverges.",
            mistake="Bisect on a logarithmic scale, until the two are a factor of two or so apart.",
        )
    coarse = " Bisect further to locate the edge more precisely." if stable and apart > 4 else ""
    return f"The best learning rate is {diverges / best:.3g} times below one that diverges.{coarse}"


def batch_size_experiment(attempt: Any, part: str | None = None) -> str:
    """Judge a sweep over batch sizes, or the list of those that were tried."""
    if isinstance(attempt, list | tuple) and attempt and all(isinstance(b, Real) for b in attempt):
        return _sizes(sorted({*attempt}))
    runs = [run for run in table(attempt, "batch_size") if run.batch_size > 0]
    if not runs:
        raise NotAttempted(f"No run in it has a `batch_size`. Hand in {FORM}.")
    found, praise = _judged(runs, "simple"), ""
    size, loss = next(iter(_means(runs, "batch_size").items()))
    with found("use"):
        praise = _sizes(sorted({run.batch_size for run in runs}))
    with found("use"):
        _expect_fair_batches(runs)
    return found.verdict(f"{praise} The lowest loss, {loss:.4g}, is at batch size {size:g}.")


def _sizes(sizes: list[float]) -> str:
    if missing := [size for size in BATCHES if size not in sizes]:
        gigabytes = accounting.peak_bytes(config.tinystories(), 64).total / accounting.GB
        raise Wrong(
            "A batch size that is asked for is missing.",
            expected=Words(f"{', '.join(map(str, BATCHES))}, and up to what fits in memory"),
            got=Words(", ".join(f"{size:g}" for size in sizes)),
            mistake=f"Run {', '.join(map(str, missing))} as well. A step with 64 needs about"
            f" {gigabytes:.1f} GB; if that is too much, accumulate gradients over its parts."
            " The run with batch 1 may stop early.",
        )
    return f"{len(sizes)} sizes from {sizes[0]:g} to {sizes[-1]:g}, with 64 and 128 among them."


def _expect_fair_batches(runs: list[Reported]) -> None:
    """Raise for different numbers of tokens; small batches may stop early, equal times are fair."""
    ended = sorted((run for run in runs if run.ended), key=lambda run: run.batch_size)
    seen: dict[float, float] = {}
    for run in ended:
        tokens = run.tokens if run.tokens > 0 else run.steps * run.batch_size
        seen[run.batch_size] = max(tokens, seen.get(run.batch_size, 0))
    full = [tokens >= (1 - SAME) * max(seen.values()) for tokens in seen.values()]
    times = [run.seconds for run in ended] or [math.nan]
    if max(times) <= (1 + SAME) * min(times) or (sum(full) > 1 and sorted(full) == full):
        return
    same_steps = "All took the same number of steps: the larger batch has read more text."
    seen = {f"batch {size:g}": tokens for size, tokens in seen.items()}
    _expect_equal_tokens(seen, same_steps if len({run.steps for run in ended}) == 1 else "")


def _compared(
    column: str, usual: str, other: str, claims: tuple, attempt: Any, part: str | None = None
) -> str:
    """Judge the runs of two kinds, each at its best learning rate."""
    runs = table(attempt)
    kinds = [run.kind(column) or usual * bool(USUAL.match(_normal(run.name))) for run in runs]
    sides = [[r for r, kind in zip(runs, kinds, strict=True) if kind == k] for k in (usual, other)]
    if not all(sides):
        raise NotAttempted(f'Hand in runs with `{column}` "{usual}" and with "{other}".')
    found = _judged(sides[0] + sides[1], "simple")
    for expect in (partial(_expect_alike, column), *claims):
        with found("use"):
            expect(*sides)
    with found("use"):
        _expect_divergence(sides[0] + sides[1])
    losses = []
    for side in sides:
        best = [*_means(side)][:1]  # none where every run diverged
        losses.append([run.loss for run in side if run.learning_rate in best][:SEEDS])
    if not all(losses):
        return found.verdict(f"{other if losses[0] else usual} diverged. Say where, and when.")
    apart = f"{fmean(losses[1]) - fmean(losses[0]):+.3g} nats per token"
    if min(map(len, losses)) > 1:
        chance = permutation(*losses)
        luck = "which luck rarely explains" if chance < RARE else "which may be luck"
        said = f"{apart}, {luck} (p = {chance:.3f})."
    else:
        said = f"{apart} with one run of each kind. How much does the seed change it?"
    return found.verdict(f"{other} compared with {usual}: {said}")


def _expect_alike(column: str, usual: list[Reported], other: list[Reported]) -> None:
    """Raise where the two kinds differ in more than what is compared."""
    ended = [run for run in (*usual, *other) if run.ended and run.tokens > 0]
    most = {run.kind(column): run.tokens for run in sorted(ended, key=lambda run: run.tokens)}
    _expect_equal_tokens(most)
    for name in SETTINGS:
        one, two = (
            {vars(run)[name] for run in side if name in vars(run)} for side in (usual, other)
        )
        if one and two and not one & two and name != column and (name, column) != ("d_ff", "ffn"):
            mistake = "With two changes at once, nobody can say which of them made the difference."
            raise Wrong(
                f"They differ in more than `{column}`: in `{name}` as well.", mistake=mistake
            )


def _two_rates(usual: list[Reported], other: list[Reported]) -> None:
    """Raise unless runs without norms are at the old best learning rate and at a lower one."""
    old, *_ = [*_means(usual), math.nan]
    tried = [run.learning_rate for run in other]
    lower, at_old = any(rate < 0.99 * old for rate in tried), any(_near(r, old) for r in tried)
    known = not math.isnan(sum(tried, old))
    if len(tried) < 2 or (known and not (lower and at_old)):
        mistake = f"The old one, {old:g}, is missing: it shows what norms protect against."
        if not lower:
            mistake = "The lower one is missing: what can a model without norms do at its best?"
        claim = "Without norms two learning rates are asked for: the old best one, and a lower one."
        raise Wrong(claim, mistake=mistake if known else None)


def _expect_matched(gated: float, plain: float) -> str:
    """Raise where one feed-forward layer, or model, has far more parameters."""
    if max(gated, plain) > (1 + MATCHED) * min(gated, plain):
        raise Wrong(
            "The parameter counts are not matched.",
            expected=Words("3·d·d_ff about 2·d·d_ff': an inner width half as large again, or 4·d"),
            got=Words(f"{gated:,.10g} and {plain:,.10g}, a factor of {gated / (plain or 1):.2f}"),
            mistake="At the same inner width the plain layer, with two matrices in place of three,"
            " has a third fewer parameters.",
        )
    return f"Both have about as many parameters: the plain one {plain / (gated or 1) - 1:+.1%}."


def _same_size(usual: list[Reported], other: list[Reported]) -> None:
    _expect_matched(usual[0].parameters, other[0].parameters)
    _expect_matched(3 * usual[0].d_ff, 2 * other[0].d_ff)


layer_norm_ablation = partial(_compared, "norm", "pre", "none", (_two_rates,))
pre_norm_ablation = partial(_compared, "norm", "pre", "post", ())
no_pos_emb = partial(_compared, "position", "rope", "none", ())


def swiglu_ablation(attempt: Any, part: str | None = None) -> str:
    """Judge losses with and without gate, an inner width of the plain layer, or two sizes."""
    width = attempt if isinstance(attempt, Real) else math.nan
    models = (config.tinystories().d_ff, config.laptop().d_ff)
    gated = [d_ff for d_ff in models if 0.9 * d_ff < width < 1.7 * d_ff]
    match [*attempt.values()] if isinstance(attempt, Mapping) else attempt:
        case Real() if gated:
            return _expect_matched(3 * gated[0], 2 * width)
        case Real():
            raise NotAttempted("No model here has that width. Hand in both, such as (960, 1440).")
        case [Real() as one, Real() as two] if 100 < min(one, two) <= max(one, two) < math.inf:
            if max(one, two) < WIDEST:
                known = next((d_ff for d_ff in (one, two) if d_ff in models), min(one, two))
                one, two = 3 * known, 2 * (one + two - known)
            return _expect_matched(one, two)
    return _compared("ffn", "swiglu", "silu", (_same_size,), attempt)


def main_experiment(attempt: Any, part: str | None = None) -> str:
    """Judge a loss on web text, alone or beside that on stories."""
    runs = table({"web": attempt} if isinstance(attempt, Real) else attempt)
    web = [run for run in runs if run.kind("corpus") in ("web", "owt", "docstrings")]
    simple = [run for run in runs if run.kind("corpus") in ("simple", "tinystories", "stories")]
    if not web:
        raise NotAttempted('No run has a `corpus` that is "owt", "docstrings" or "web".')
    if simple:
        _judged(simple, "simple").verdict("")
    found, loss = _judged(web, "web"), min(run.loss for run in web)
    perplexity = math.exp(min(loss, 700))
    praise = f"{loss:.4g} nats per token is possible: a perplexity of {perplexity:,.3g}."
    for unit in ("loss", "bits_per_byte") if simple else ():
        one, two = (min(getattr(run, unit) for run in side) for side in (web, simple))
        with found("use"):
            if one < two:
                raise Wrong(
                    f"Text from the web is not easier than stories: a `{unit}` of {one:.4g} against"
                    f" {two:.4g}.",
                    mistake="Were the two swapped? Or was it validated on its training text?",
                )
        if one >= two:
            praise += f" Its `{unit}` is {one - two:.3g} above that of the stories."
    return found.verdict(praise)


def leaderboard(attempt: Any, part: str | None = None) -> str:
    """Judge an entry: its loss, and its time against the limit of the edition."""
    match attempt:
        case Real():
            attempt = {"loss": attempt}
        case [Real() as loss, Real() as minutes]:
            attempt = {"loss": loss, "minutes": minutes}
    runs = table(attempt)
    found, best, edition = _judged(runs, "web"), min(runs, key=lambda r: r.loss), config.edition()
    minutes, most, corpus = best.seconds / 60, round(CAPS[edition] / 60), best.corpus_of("web")
    praise = f"{best.loss:.4g} nats per token is possible on {corpus}."
    if minutes > 0:
        praise += f" It took {minutes:.3g} of {most} minutes."
    with found("use"):
        if minutes > 1.005 * OLD_MINUTES:
            claim = f"{minutes:.3g} minutes exceed the {most} that edition {edition} allows."
            raise Wrong(claim, mistake="Wall-clock time counts, including evaluation and saving.")
    if minutes > 1.005 * most:
        praise += f" Before version 26.0.3 the handout of {edition} allowed {OLD_MINUTES}."
    if corpus != "owt":
        praise += f" The handout's {BOARD_TARGET:g} is for OpenWebText, which is a different text."
    elif best.loss < BOARD_BEST:
        praise += f" No public entry known here is below {BOARD_BEST}: is the split clean?"
    with found("use"):
        if corpus == "owt" and best.loss >= BOARD_TARGET:
            claim = f"{best.loss:.4g} is not low enough: less than {BOARD_TARGET:g} is asked for."
            raise Wrong(claim, mistake="A simple run of the main experiment gets there in time.")
    return found.verdict(praise)
