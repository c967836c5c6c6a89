"""The checks of chapter 7: tables of training runs, and which runs are impossible.

A table is a list with a dict per run, such as [{"learning_rate": 3e-3, "loss": 1.41}, ...], or a
pandas table with these columns. The columns that are judged are `NUMBERS`, "corpus" and what a
problem compares; a table may have others. A run that diverged has the loss nan; a dict without
any loss is a run that nobody has evaluated. Folders of runs, and runs themselves, have become rows
before (`experiments.own_runs.as_rows`).

Runs that are compared differ in what is compared and in nothing else, every one of them
(`_expect_one_change`): else a change is credited with what another one did.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any

import pandas as pd

from workbook import config
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    NumberInWords,
    Praise,
    Prose,
    Unreadable,
    expect,
    shown,
)
from workbook.experiments import studies
from workbook.training import loss_bounds
from workbook.training.loss_bounds import BOARD_BEST, TARGET, TARGET_ON_CPU, bits_per_byte

NUMBERS = (  # `seconds` of the whole run; `loss` of validation, in nats per token
    *("learning_rate", "batch_size", "context_length", "steps", "tokens", "seconds", "loss"),
    *("perplexity", "bits_per_byte", "bytes_per_token", "d_ff"),
)
SIMPLE = ("tinystories", "stories")
WEB = ("owt", "docstrings")
# Other names of a column, and how much of it one of theirs is: as our own tables call them too.
ALSO = {
    "loss": {"validation_loss": 1, "val_loss": 1},
    "learning_rate": {"max_learning_rate": 1, "lr": 1},
    "steps": {"steps_taken": 1},
    "seconds": {"minutes": 60, "hours": 3600},
}
# What people write for the loss of a run that diverged.
GONE = ("diverged", "nan", "inf", "none", "n/a", "∞", "-", "")
GOING_ON = ("new", "running", "stopped")  # the status of runs that have no loss to compare yet
# What runs that are compared have in common, except for what is compared.
SETTINGS = [
    *("corpus", "corpus_bytes", "edition", "batch_size", "weight_decay"),
    *(f.name for f in fields(config.ModelConfig)),
]
SETTINGS.remove("kernels")  # two ways to the same values
WITH = {"ffn": ("d_ff",)}  # a gated layer of equal size is narrower
# What may explain a small difference, too: one value of it should be the same in all kinds of runs.
NOTED = ("seed", "precision", "device", "update", "betas", "max_l2_norm")
BY_CORPUS = ("corpus", "vocab_size", "corpus_bytes")
LARGEST_VOCABULARY = max(profile.web_vocab_size for profile in config.PROFILES.values())
LATE = 1.01  # a run notices the end of its time after the step in which it comes
CLOSE, SAME = 0.02, 0.05  # relative: of rounded figures; of settings that are nearly the same
WANTED = f"{TARGET} is asked for, {TARGET_ON_CPU:.2f} with 40,960,000 tokens"

# The likely mistakes.
SMALLER = "Try smaller learning rates, or a longer warm-up."
SUMMED = "Is it a perplexity? Or a loss that was summed and not averaged?"
LEAK = "Does it see its targets, or its training text? Or is this in bits per byte, not in nats?"
FORMULAS = {  # by column: how it follows from the others, and the likely mistake
    "tokens": ("steps × batch × context", "Is the batch size or the context length left out?"),
    "perplexity": ("exp(loss)", "2 ** loss is for bits: this loss is in nats, so take exp."),
    "bits_per_byte": ("loss / ln 2 / bytes_per_token", "Is a division left out?"),
}
MORE_TEXT = "A run that has read more text is better for that alone: compare at equal tokens."
ACCUMULATE = "What does not fit in memory goes in parts, whose gradients add up."
NO_TIME = "Record `time.perf_counter() - start` with each loss."
UPWARDS = "Go on upwards, doubling it each time; if a run did diverge, are two of them swapped?"
BISECT = "Bisect on a logarithmic scale, until the two are a factor of two or so apart."
TUNE = "Let it see all the tokens, and tune the learning rate: these matter most."
TWO_CHANGES = (
    "With two changes at once, nobody can say which of them made the difference: hand in only runs"
    " that are alike in the rest."
)
BOTH_RATES = "The old one shows what norms protect against, a lower one what is possible without."
WIDER = "At the same inner width the plain layer, with two matrices for three, is a third smaller."
SWAPPED = "Were the two widths swapped? The plain layer is the wider one."
OTHER_UNIT_OF_RATE = "Is the learning rate in another unit, such as 1e-4?"
OF_NO_LOSS = 'write "diverged" for a run that did, and leave out one that never ran'
OTHER_TEXT = "If this was another text, name its `corpus`."
BELOW_BEST = (
    f"No verified entry of 2025 is below {BOARD_BEST:g}: is it over the whole validation text?"
)
HOW_MUCH = "whether all read equally many tokens"
ON_TIME = "Give the run `--max-seconds`: then its learning rate follows the clock."
WRONG_SPLIT = "Were the two swapped? Or was it validated on its training text?"


def _table(attempt: Any, corpus: str, *needed: str) -> pd.DataFrame:
    """Read a table of runs: a row each, with all columns of `NUMBERS`, nan for unknown.

    Arguments:
        corpus: of the runs that name none.
        needed: columns besides the loss; a run that lacks one is left out.

    A loss of nan becomes infinite; `diverged` is true of these runs. What was left out is told in
    the table's `attrs`, for `_praised`.
    """
    rows = _rows(attempt)
    for column in ("loss", *needed):
        if not _has(rows, column):
            columns = ", ".join(dict.fromkeys(key for row in rows for key in row))
            raise Unreadable(attempt, f"No run has a `{column}`: the columns are {columns}.")
    ended = [row for row in rows if row.get("status") not in GOING_ON]
    told = [row for row in ended if _has([row], "loss") or _says_diverged(row)]
    read = pd.DataFrame([_read(row, corpus) for row in told], columns=None if told else needed)
    runs = read.dropna(subset=[*needed])
    columns = " or ".join(f"`{column}`" for column in needed)
    remarks = [
        f"{many} of {len(rows)} runs left out: {why}."
        for many, why in (
            (len(rows) - len(ended), "they have not ended"),
            (len(ended) - len(told), "they have no `loss`"),
            (len(told) - len(runs), f"they lack {columns}"),
        )
        if many
    ]
    if runs.empty:
        raise NotAttempted(" ".join(remarks))
    runs.attrs["remarks"] = remarks
    return runs


def _says_diverged(row: dict) -> bool:
    return row.get("status") == "diverged" or row.get("diverged") in (True, "true", "yes")


def _has(rows: list[dict], column: str) -> bool:
    """Whether any run has this column, under whichever name."""
    names = {column, *ALSO.get(column, ())}
    return any(names & row.keys() for row in rows)


def _praised(words: str, runs: pd.DataFrame, loss: float | None = None) -> Praise:
    """The verdict on runs that are possible, with what could not be looked at."""
    return Praise(_told(words, runs), loss)


def _told(words: str, runs: pd.DataFrame) -> str:
    """Words on runs, with what was left out or not looked at."""
    return " ".join([words, *runs.attrs["remarks"]])


def _rows(attempt: Any) -> list[dict]:
    """A dict per run, from any form of a table; a row with an ellipsis is not filled in yet.

    Names and words are in small letters: "SwiGLU" is as good as "swiglu".
    """
    if isinstance(attempt, pd.DataFrame):
        index = [name for name in attempt.index.names if name not in (None, *attempt)]
        attempt = attempt.reset_index(index).to_dict("records")
    elif isinstance(attempt, dict):
        attempt = [attempt]
    elif isinstance(attempt, str):
        with suppress(ValueError):
            float(attempt)
            raise NumberInWords(attempt)
    if not isinstance(attempt, list | tuple) or not all(isinstance(row, dict) for row in attempt):
        raise Unreadable(attempt)
    rows = [dict(_cell(*each) for each in row.items()) for row in attempt]
    rows = [row for row in rows if all(value is not ... for value in row.values())]
    if not rows:
        raise NotAttempted
    steps = {str(row["step"]) for row in rows if "step" in row}
    if len(steps) == len(rows) > 1 and "0" in steps:
        raise Unreadable(attempt, "These are the steps of one run: a row is to be a run.")
    return rows


def _cell(key: Any, value: Any) -> tuple[str, Any]:
    """The name of a column and a value there, as they are compared."""
    key = str(key).strip().lower().replace(" ", "_").replace("-", "_")
    if value is None and key in ("norm", "position"):
        return key, "none"
    return key, value.strip().lower() if isinstance(value, str) else value


def _read(run: dict, corpus: str) -> dict:
    """Read one run. Raises: `Unreadable` for what is no number, or an unknown corpus."""
    numbers = {column: _number(column, run) for column in NUMBERS}
    named = run["corpus"] if isinstance(run.get("corpus"), str) else corpus
    if named not in (*SIMPLE, *WEB):
        raise Unreadable(run, f"A `corpus` is one of {(*SIMPLE, *WEB)}, not {named!r}.")
    has_diverged = _says_diverged(run) or math.isnan(numbers["loss"])
    numbers["loss"] = math.inf if has_diverged else numbers["loss"]
    if math.isnan(numbers["tokens"]):
        numbers["tokens"] = numbers["steps"] * numbers["batch_size"] * numbers["context_length"]
    return run | numbers | {"corpus": named, "diverged": math.isinf(numbers["loss"])}


def _number(column: str, run: dict) -> float:
    """A column of a run, under whichever name; nan if it is unknown, or a loss that diverged."""
    name = column
    scale = 1
    for other, factor in ALSO.get(column, {}).items():
        if other in run and (column not in run or other == "steps_taken"):
            name = other
            scale = factor
    value = run.get(name)
    if column == "loss" and isinstance(value, str) and value in GONE:
        return math.nan
    try:
        return math.nan if value is None else scale * float(value)
    except (TypeError, ValueError, OverflowError) as error:
        words = f"; {OF_NO_LOSS}" if column == "loss" else ""
        raise Unreadable(run, f"The `{name}` {shown(value)} is no number{words}.") from error


def _means(runs: pd.DataFrame, by: str = "learning_rate") -> pd.Series:
    """The mean loss of the runs that ended for each value of a setting, the best first."""
    # Runs whose learning rate is unknown are taken to have the same.
    return runs[~runs["diverged"]].groupby(by, dropna=False)["loss"].mean().sort_values()


# --- What every run must hold to


def _expect_possible(runs: pd.DataFrame) -> None:
    """Raise for a run that contradicts itself, and where none has learned anything."""
    for run in runs.itertuples():
        for column in NUMBERS:
            value = getattr(run, column)
            odd = not run.diverged and column != "loss" and value <= 0
            expect(not odd, f"The `{column}` of a run is above 0.", got=value)
        _expect_possible_loss(run)
        _expect_consistent(run)
    ended = runs[~runs["diverged"]]
    expect(len(ended), f"No run finished: {len(runs)} of {len(runs)} diverged.", SMALLER)
    lowest = ended["loss"].min()
    blind = _blind()
    of_what = f"ln {LARGEST_VOCABULARY:,} = {blind:.2f}"
    claim = f"Blind guessing gets {of_what} nats per token: yours has {lowest:.4g}."
    expect(lowest < blind, claim, SUMMED)


def _blind() -> float:
    """The loss of a model that finds all tokens of the largest vocabulary equally likely."""
    return loss_bounds.uniform_loss(LARGEST_VOCABULARY)


def _expect_possible_loss(run: Any) -> None:
    """Raise where no model has such a loss on this text."""
    expect(run.loss >= 0, "A loss is never negative: it is -ln of a probability.", got=run.loss)
    limit = loss_bounds.bounds(run.corpus, run.bytes_per_token if run.bytes_per_token > 0 else None)
    claim = f"This is lower than any model can get on {run.corpus}: {limit.reason}."
    expected = Prose(f"{limit.lowest:.2f} nats per token ({limit.floor:.2f} bits per byte)")
    expect(run.loss >= limit.lowest, claim, LEAK, expected=expected, got=run.loss)


def _expect_consistent(run: Any) -> None:
    """Raise where the tokens, the perplexity or the bits of a run do not follow from the rest."""
    asked = run.steps * run.batch_size * run.context_length
    if not run.diverged and 0 < asked < math.inf and 0 < run.tokens < math.inf:
        # A run may end early; and where gradients are accumulated, or several devices take part,
        # one step reads several batches.
        several = run.tokens / asked
        sizes = (run.batch_size, run.context_length, run.batch_size * run.context_length)
        short = any(size > 1 and _near(run.tokens * size, asked) for size in sizes)
        odd = short or (several > 1 + CLOSE and not _near(several, round(several)))
        _expect_follows(run, "tokens", asked, not odd)
    if not 0 < run.loss < 100:
        return
    right = math.exp(run.loss)
    close = not abs(run.perplexity / right - 1) > SAME  # true of nan, which is an unknown
    _expect_follows(run, "perplexity", right, close)
    is_known = run.bytes_per_token > 0  # a token may have 1.2 to 12 bytes
    length = run.bytes_per_token if is_known else loss_bounds.BYTES_PER_TOKEN[run.corpus]
    right = bits_per_byte(run.loss, length)
    most = 1 + SAME if is_known else 3
    close = not (run.bits_per_byte < right / most or run.bits_per_byte > right * most)
    _expect_follows(run, "bits_per_byte", right, close, f" with {length:g} bytes per token")


def _expect_follows(run: Any, column: str, right: float, holds: bool, given: str = "") -> None:
    """Raise unless a figure of a run follows from the others; `given` says what was taken."""
    formula, mistake = FORMULAS[column]
    claim = f"In one run the `{column}` and the other figures do not agree."
    digits = 4 if given else 10
    expected = Prose(f"{formula} = {right:,.{digits}g}{given}")
    got = Prose(f"{getattr(run, column):,.10g}")
    expect(holds, claim, mistake, expected=expected, got=got)


def _near(value: float, other: float) -> bool:
    return abs(value - other) < CLOSE * abs(other)


def _expect_equal_tokens(seen: Iterable[tuple[str, float]], of: str = "tokens") -> None:
    """Raise where runs are compared that saw different numbers of tokens; each has its name.

    Arguments:
        of: what was counted; steps, where all batches have the same size.
    """
    read = [tokens for _, tokens in seen]
    got = Prose(", ".join(f"{name}: {tokens:,.0f}" for name, tokens in seen))
    equal = not read or max(read) <= (1 + SAME) * min(read)
    expect(equal, f"These runs saw different numbers of {of}.", MORE_TEXT, got=got)


def _expect_one_change(runs: pd.DataFrame, compared: str, *besides: str) -> None:
    """Raise where runs differ in more than what is compared, or in how much they read.

    Every run counts, but that those which diverged have read less.

    Arguments:
        compared: the column in which they may differ, beside the learning rate.
        besides: columns that may differ with it.
    """
    remarks = runs.attrs["remarks"]
    for name in SETTINGS:
        if name in (compared, *besides) or name not in runs:
            continue
        values = sorted({*runs[name].dropna()}, key=str)
        claim = f"They differ in more than `{compared}`: in `{name}` as well."
        got = Prose(", ".join(map(_plainly, values)))
        expect(len(values) < 2, claim, TWO_CHANGES, got=got)
        if values and runs[name].isna().any():
            remarks.append(f"Not looked at: the `{name}` of all, as some runs do not name it.")
    if compared != "corpus" and runs["corpus"].iloc[0] in WEB:
        remarks.append(f"The problem asks for simple stories: these are {runs['corpus'].iloc[0]}.")
    # Batches of other sizes have other numbers of steps to warm up.
    names = NOTED if compared == "batch_size" else (*NOTED, "warmup_iters")
    noted = [name for name in names if name in runs and not _shared(runs, name, compared)]
    if noted:
        remarks.append(f"They have no `{'` and no `'.join(noted)}` in common: say so.")
    if compared == "batch_size":  # small batches may read less: `_expect_fair_batches`
        return
    ended = runs[~runs["diverged"]]
    # All have the same batches: where tokens are unknown, steps tell as much.
    count = "tokens" if ended["tokens"].notna().any() else "steps"
    known = ended.dropna(subset=[count]).sort_values(count)
    ends = known.iloc[[0, -1]] if len(known) else known
    seen = [(f"`{compared}` {_plainly(run[compared])}", run[count]) for _, run in ends.iterrows()]
    _expect_equal_tokens(seen, count)
    if len(known) < len(ended) > 1:
        who = "no run has" if known.empty else "some runs have no"
        remarks.append(f"Not looked at: {HOW_MUCH}, as {who} `tokens`.")


def _shared(runs: pd.DataFrame, name: str, compared: str) -> bool:
    """Whether all kinds of runs have a value of a setting in common, where they name any."""
    kinds = runs.dropna(subset=[name]).groupby(compared)[name]
    values = [{*map(str, of_kind)} for _, of_kind in kinds]
    return not values or bool(set.intersection(*values))


def _plainly(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- The problems


def experiment_log(attempt: Any, part: str | None = None) -> Praise:
    """Judge a table with a row for each run."""
    runs = _table(attempt, config.profile().simple_corpus)
    if len(runs) < 2:
        raise NotAttempted(_told("That is one run. A log holds all that were tried.", runs))
    _expect_possible(runs)
    expect((runs["seconds"] > 0).any(), "How long did they take? No run has `seconds`.", NO_TIME)
    untimed = (runs["seconds"].isna() & ~runs["diverged"]).sum()
    if untimed:
        runs.attrs["remarks"].append(f"Without `seconds`: {untimed} of them.")
    words = f"{len(runs)} runs, none of which contradicts itself. What failed belongs here too."
    return _praised(words, runs)


def learning_rate(attempt: Any, part: str | None = None) -> Praise:
    """Judge a sweep: (a) the loss that it reaches, (b) where runs begin to diverge."""
    runs = _table(attempt, config.profile().simple_corpus, "learning_rate")
    rates = sorted({*runs["learning_rate"]})
    least = 2 if part == "b" else 3
    if len(rates) < least:
        few = f"That is too few learning rates: {least} are needed at least."
        raise NotAttempted(_told(few, runs))
    _expect_possible(runs)
    best = _means(runs).index[0]
    expect(best < 1, f"AdamW trains no model at a learning rate of {best:g}.", OTHER_UNIT_OF_RATE)
    _expect_one_change(runs, "learning_rate")
    return _edge(runs, rates) if part == "b" else _best(runs, rates)


def _best(runs: pd.DataFrame, rates: list[float]) -> Praise:
    """Judge where in a sweep the best loss is, and how good it is beside what is asked for."""
    losses = _means(runs)
    corpus = runs["corpus"].iloc[0]  # that of all
    best = losses.index[0]
    loss = losses.iloc[0]
    claim = f"The best learning rate, {best:g}, is at an end of those that were tried."
    expect(rates[0] < best < rates[-1], _told(claim, runs), "One beyond it may be better: try it.")
    enough = corpus != "tinystories" or loss <= TARGET_ON_CPU
    expect(enough, f"{loss:.4g} is not low enough: {WANTED}.", TUNE)
    words = (
        f"The best, {best:g}, lies inside, with {loss:.4g} on {corpus}. On TinyStories {WANTED}."
    )
    return _praised(words, runs, loss)


def _edge(runs: pd.DataFrame, rates: list[float]) -> Praise:
    """Judge where the edge of stability lies, above which runs diverge."""
    losses = _means(runs)
    best = losses.index[0]
    # Far too large a learning rate often gives no nan: the loss stays high.
    high = losses[(losses.index > best) & (losses > losses[best] + loss_bounds.TOO_HIGH)]
    lost = {*runs[runs["diverged"]]["learning_rate"], *high.index}
    # A run below the best rate may diverge by chance; the edge is the first failure above it.
    above = [rate for rate in lost if rate > best]
    claim = f"No run diverges above the best learning rate, {best:g}: they go up to {rates[-1]:g}."
    expect(above, _told(claim, runs), UPWARDS)
    edge = min(above)
    stable = max(rate for rate in rates if rate < edge)
    claim = f"The edge lies somewhere between {stable:g}, which converges, and {edge:g}."
    expect(edge / stable <= 30, claim, BISECT)
    words = f"{best:g}, is {edge / best:.3g} times below {edge:g}, which diverges."
    return _praised(f"The best learning rate, {words}", runs)


def batch_size_experiment(attempt: Any, part: str | None = None) -> Praise:
    """Judge a sweep over batch sizes."""
    runs = _table(attempt, config.profile().simple_corpus, "batch_size")
    _expect_possible(runs)
    sizes = sorted({*runs["batch_size"]})
    missing = [size for size in (1, 64, 128) if size not in sizes]
    claim = f"No run has a batch size of {', '.join(map(str, missing))}."
    mistake = ACCUMULATE if max(missing, default=0) > sizes[-1] else None
    expect(not missing, _told(claim, runs), mistake)
    _expect_one_change(runs, "batch_size")
    _expect_fair_batches(runs)
    losses = _means(runs, "batch_size")
    words = f"{len(sizes)} sizes; the lowest loss, {losses.iloc[0]:.4g}, is at {losses.index[0]:g}."
    return _praised(words, runs)


def _expect_fair_batches(runs: pd.DataFrame) -> None:
    """Raise for different numbers of tokens; small batches may stop early, equal times are fair."""
    ended = runs[~runs["diverged"]]
    tokens = ended["tokens"].fillna(ended["steps"] * ended["batch_size"])
    seen = tokens.groupby(ended["batch_size"]).max().dropna()  # the smallest batch first
    if len(seen) < len({*ended["batch_size"]}):
        remark = f"Not looked at: {HOW_MUCH}, as some runs have neither `tokens` nor `steps`."
        runs.attrs["remarks"] += [remark]
    full = [*(seen >= (1 - SAME) * seen.max())]
    times = ended["seconds"]
    if times.max() <= (1 + SAME) * times.min() or (sum(full) > 1 and sorted(full) == full):
        return
    _expect_equal_tokens([(f"batch {size:g}", most) for size, most in seen.items()])


def _compared(
    column: str, kinds: tuple[str, str], claims: list[Callable], attempt: Any, part: Any = None
) -> Praise:
    """Judge the runs of two kinds, each at its best learning rate; `claims` are about the two."""
    besides = WITH.get(column, ())
    runs = _table(attempt, config.profile().simple_corpus, column, *besides)
    sides = _sides(runs, column, kinds)
    several = len(runs)
    runs = runs[runs[column].isin(kinds)]
    remarks = runs.attrs["remarks"]
    if len(runs) < several:
        others = f"{several - len(runs)} of {several} runs left out"
        remarks.append(f"{others}: their `{column}` is neither {' nor '.join(kinds)}.")
    _expect_possible(runs)
    _expect_one_change(runs, column, *besides)
    for claim in claims:
        claim(*sides)
    means = [_means(side) for side in sides]
    for kind, losses in zip(kinds, means, strict=True):
        if losses.empty:
            return _praised(f"All runs with `{column}` {kind} diverged. Say where, and when.", runs)
        if losses.iloc[0] > _blind():
            remarks.append(
                f"{losses.iloc[0]:.4g} is worse than blind guessing: is it copied right?"
            )
    rates = [{*side["learning_rate"].dropna()} for side in sides]
    if all(rates) and not set.intersection(*rates):
        remarks.append("No learning rate was tried with both: is the difference that of the rates?")
    apart = means[1].iloc[0] - means[0].iloc[0]
    difference = f"{kinds[1]} against {kinds[0]}: {apart:+.3g} nats per token."
    return _praised(f"{difference} Do two seeds differ less?", runs)


def _sides(runs: pd.DataFrame, column: str, kinds: tuple[str, str]) -> list[pd.DataFrame]:
    """The runs of each kind. Raises: `NotAttempted` where one has none."""
    sides = [runs[runs[column] == kind] for kind in kinds]
    if any(side.empty for side in sides):
        found = ", ".join(f'"{kind}"' for kind in dict.fromkeys(runs[column].dropna()))
        wanted = f'runs with `{column}` "{kinds[0]}" and with "{kinds[1]}"'
        raise NotAttempted(_told(f"Hand in {wanted}; yours have {found or 'none'}.", runs))
    return sides


def _expect_two_rates(usual: pd.DataFrame, other: pd.DataFrame) -> None:
    """Raise unless runs without norms are at the old best learning rate and at a lower one."""
    claim = "Without norms two learning rates are asked for: the old best one, and a lower one."
    tried = sorted({*other["learning_rate"].dropna()})
    if not tried or usual["learning_rate"].isna().any():
        raise NotAttempted(f"{claim} Some runs have no `learning_rate`.")
    for old in _means(usual).index[:1]:  # none where all diverged
        both = tried[0] < 0.99 * old and any(_near(rate, old) for rate in tried)
        expected = Prose(f"{old:g}, and a lower one")
        got = Prose(", ".join(map(_plainly, tried)))
        expect(both, claim, BOTH_RATES, expected=expected, got=got)


def _expect_matched(usual: pd.DataFrame, other: pd.DataFrame) -> None:
    """Raise where a run with one kind of feed-forward layer has far more parameters."""
    for gate, plain in product(sorted({*usual["d_ff"]}), sorted({*other["d_ff"]})):
        # A gated layer has three matrices, a plain one two. The course's own width of the plain
        # layer, 4·d, is 13 % off on the small model.
        apart = max(3 * gate, 2 * plain) > 1.13 * min(3 * gate, 2 * plain)
        got = Prose(f"3·d·{gate:g} and 2·d·{plain:g}")
        mistake = WIDER if gate == plain else None
        if _near(2 * gate, 3 * plain):
            mistake = SWAPPED
        expect(not apart, "The parameter counts are not matched.", mistake, got=got)


layer_norm_ablation = partial(_compared, "norm", ("pre", "none"), [_expect_two_rates])
pre_norm_ablation = partial(_compared, "norm", ("pre", "post"), [])
no_pos_emb = partial(_compared, "position", ("rope", "none"), [])


def swiglu_ablation(attempt: Any, part: str | None = None) -> Praise:
    """Judge runs with and without the gate; while no run has a loss, only their inner widths."""
    rows = _rows(attempt)
    kinds = ("swiglu", "silu")
    if _has(rows, "loss"):
        return _compared("ffn", kinds, [_expect_matched], rows)
    runs = _table([row | {"loss": None} for row in rows], SIMPLE[0], "ffn", "d_ff")
    _expect_matched(*_sides(runs, "ffn", kinds))
    return _praised("Both have about as many parameters. Train them, and add the losses.", runs)


def main_experiment(attempt: Any, part: str | None = None) -> Praise:
    """Judge a loss on web text, alone or beside that on stories."""
    runs = _table(attempt, config.profile().web_corpus, "corpus")
    web, simple = (runs[runs["corpus"].isin(names)] for names in (WEB, SIMPLE))
    if web.empty:
        raise NotAttempted(_told('No run has the `corpus` "owt" or "docstrings".', runs))
    for side in filter(len, (simple, web)):
        _expect_possible(side)
        names = sorted({*side["corpus"]})
        claim = f"One text of each kind is compared: these are {' and '.join(names)}."
        expect(len(names) < 2, claim, TWO_CHANGES)
    # Each corpus has a tokenizer of its own.
    _expect_one_change(runs, *BY_CORPUS)
    loss = web["loss"].min()
    for unit in ("loss", "bits_per_byte"):
        one = web[unit].min()
        two = simple[unit].min()
        claim = f"Text from the web is not easier than stories, but has the lower `{unit}`."
        expect(not one < two, claim, WRONG_SPLIT, got=Prose(f"{one:.4g} against {two:.4g}"))
    words = f"{loss:.4g} nats per token is possible: a perplexity of {math.exp(loss):,.3g}."
    return _praised(words, runs, loss)


def leaderboard(attempt: Any, part: str | None = None) -> Praise:
    """Judge an entry: the lowest loss of the runs that ended in time."""
    runs = _table(attempt, config.profile().web_corpus, "seconds")
    _expect_possible(runs)
    corpora = sorted({*runs["corpus"]})
    claim = f"Entries compete on one text: these are {' and '.join(corpora)}."
    expect(len(corpora) < 2, claim, TWO_CHANGES)
    corpus = corpora[0]
    expect(corpus in WEB, f"Entries compete on text from the web: {corpus} is none.")
    limit, most, whose = _time_limit(corpus)
    ended = runs[~runs["diverged"]]
    in_time = ended[ended["seconds"] <= most]
    claim = f"{_duration(ended['seconds'].min())}: {whose} allows {_duration(limit)}."
    is_named = _has(_rows(attempt), "corpus")
    expect(len(in_time), claim, ON_TIME if is_named else f"{ON_TIME} {OTHER_TEXT}")
    best = in_time.loc[in_time["loss"].idxmin()]
    loss = best["loss"]
    target = loss_bounds.BOARD_TARGET
    expect(corpus != "owt" or loss < target, f"{loss:.4g} is not below {target:g}.")
    old = " Before version 26.0.3 it was 90." if best["seconds"] > LATE * limit else ""
    took = _duration(best["seconds"])
    words = f"{loss:.4g} on {corpus}, in {took}. The limit is {_duration(limit)}.{old}"
    if corpus == "owt" and loss < BOARD_BEST:
        runs.attrs["remarks"].append(BELOW_BEST)
    if len(in_time) < len(runs):
        words += f" Only runs within it count: {len(in_time)} of {len(runs)}."
    return _praised(words, runs, loss)


def _time_limit(corpus: str) -> tuple[float, float, str]:
    """The seconds that an entry may take, those that are let pass, and who says so."""
    profile = config.profile().name
    edition = config.edition()
    if corpus == "owt" or profile in ("full", "gpu"):
        # The texts of 2026 before 26.0.3 allowed 90 minutes, too.
        return loss_bounds.CAPS[edition], LATE * loss_bounds.CAPS["2025"], f"edition {edition}"
    cap = studies.scale_named(profile, edition).cap
    return cap, LATE * cap, f"the profile {profile}, on its stand-in {corpus},"


def _duration(seconds: float) -> str:
    if seconds > 60_000:
        return f"{seconds / 60:,.0f} minutes"
    return f"{seconds / 60:.3g} minutes" if seconds > 120 else f"{seconds:.3g} seconds"
