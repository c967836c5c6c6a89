"""The checks of chapter 7: tables of training runs, and which runs are impossible.

A table is a list with a dict per run, such as [{"learning_rate": 3e-3, "loss": 1.41}, ...], or a
pandas table with these columns. The columns that are judged are `NUMBERS` and `KINDS`; a table may
have others. A run that diverged has the loss nan.
"""

import math
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import pandas as pd

from workbook import config
from workbook.checks.verdicts import NotAttempted, Unreadable, Words, expect, shown
from workbook.training import loss_bounds
from workbook.training.loss_bounds import TARGET, TARGET_ON_CPU, bits_per_byte

NUMBERS = (  # `seconds` of the whole run; `loss` of validation, in nats per token
    *("learning_rate", "batch_size", "context_length", "steps", "tokens", "seconds", "loss"),
    *("perplexity", "bits_per_byte", "bytes_per_token", "d_ff"),
)
KINDS = {
    "corpus": ("tinystories", "owt", "stories", "docstrings"),
    "norm": ("pre", "post", "none"),
    "position": ("rope", "none"),
    "ffn": ("swiglu", "silu"),
}
SIMPLE, WEB = ("tinystories", "stories"), ("owt", "docstrings")
# What the two sides of a comparison have in common, except for what is compared.
SETTINGS = ["corpus", "batch_size", "weight_decay", *(f.name for f in fields(config.ModelConfig))]
CLOSE, SAME = 0.02, 0.05  # relative: of rounded figures; of settings that are nearly the same
COARSE = 30  # two learning rates so far apart only show that there is an edge between them
BATCHES = (1, 64, 128)  # that the sweep has to hold
MATCHED = 0.13  # relative: the course's own width, 4·d, is that far off on the small model
OLD_MINUTES = 90  # of the leaderboard, in the texts of 2026 before 26.0.3 as well
WANTED = f"{TARGET} is asked for, {TARGET_ON_CPU:.2f} with 40,960,000 tokens"

# The likely mistakes.
SMALLER = "Try smaller learning rates, or a longer warm-up."
SUMMED = "Is it a perplexity? Or a loss that was summed and not averaged?"
LEAK = "The model sees its targets (causal mask?), or it was validated on its training text."
MORE_TEXT = "A run that has read more text is better for that reason alone."
SAME_STEPS = "All took the same number of steps: the larger batch has read more text."
NO_TIME = "Record `time.perf_counter() - start` with each loss."
SWAPPED = "The two may be swapped, or the two runs differ in something else as well."
BISECT = "Bisect on a logarithmic scale, until the two are a factor of two or so apart."
TUNE = "Let it see all the tokens, and tune the learning rate: these matter most."
TWO_CHANGES = "With two changes at once, nobody can say which of them made the difference."
NO_LOWER = "The lower one is missing: what can a model without norms do at its best?"
NO_OLD = "The old one is missing: it shows what norms protect against."
WIDER = "At the same inner width the plain layer, with two matrices for three, is a third smaller."
WRONG_SPLIT = "Were the two swapped? Or was it validated on its training text?"
OVERTIME = "Wall-clock time counts, including evaluation and saving."
ALL_WORKED = " Did everything work? What failed belongs here too."
SIMPLE_RUN = "A simple run of the main experiment gets there in time."


def table(attempt: Any, corpus: str, *needed: str) -> pd.DataFrame:
    """Read a table of runs: a row each, with all columns of `NUMBERS` and `KINDS`, nan for unknown.

    Arguments:
        corpus: of the runs that name none.
        needed: columns besides the loss; a run that lacks one is left out.

    A loss of nan becomes infinite; `diverged` is true of these runs.
    """
    rows = _rows(attempt)
    for column in ("loss", *needed):
        if not any(column in row for row in rows):
            raise Unreadable(attempt, f"No run has a `{column}`.")
    runs = pd.DataFrame([_read(row, corpus) for row in rows]).dropna(subset=[*needed])
    if runs.empty:
        raise NotAttempted
    return runs


def _rows(attempt: Any) -> list[dict]:
    """A dict per run, from either form of a table; a row with an ellipsis is not filled in yet."""
    if isinstance(attempt, pd.DataFrame):
        attempt = attempt.to_dict("records")
    if not isinstance(attempt, list | tuple) or not all(isinstance(row, dict) for row in attempt):
        raise Unreadable(attempt)
    rows = [row for row in attempt if all(value is not ... for value in row.values())]
    if not rows:
        raise NotAttempted
    return rows


def _read(row: dict, corpus: str) -> dict:
    """Read one run. Raises: `Unreadable` for what is no number, or none of the `KINDS`."""
    run = {**row}
    for column in NUMBERS:
        value = row.get(column)
        try:
            run[column] = math.nan if value is None or value is pd.NA else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise Unreadable(row, f"The `{column}` {shown(value)} is no number.") from error
    for column, known in KINDS.items():
        run[column] = row.get(column) if isinstance(row.get(column), str) else None
        if run[column] not in (None, *known):
            raise Unreadable(row, f"A `{column}` is one of {known}, not {run[column]!r}.")
    run["corpus"] = run["corpus"] or corpus
    run["loss"] = math.inf if math.isnan(run["loss"]) else run["loss"]
    return run | {"diverged": math.isinf(run["loss"])}


def _means(runs: pd.DataFrame, by: str = "learning_rate") -> pd.Series:
    """The mean loss of the runs that ended for each value of a setting, the best first."""
    return runs[~runs["diverged"]].groupby(by)["loss"].mean().sort_values()


# --- What every run must hold to


def _expect_possible(runs: pd.DataFrame) -> None:
    """Raise for a run that contradicts itself, and where none has learned anything."""
    for run in runs.itertuples():
        _expect_possible_loss(run)
        _expect_consistent(run)
    ended = runs[~runs["diverged"]]
    expect(len(ended), f"No run finished: all {len(runs)} diverged.", SMALLER)
    lowest, text = ended["loss"].min(), "simple" if {*ended["corpus"]} <= {*SIMPLE} else "web"
    most = max(getattr(profile, f"{text}_vocab_size") for profile in config.PROFILES.values())
    blind = f"ln {most:,} = {math.log(most):.2f} nats per token"
    claim = f"Even a model that has learned nothing gets {blind}: yours has {lowest:.4g}."
    expect(lowest < loss_bounds.uniform_loss(most), claim, SUMMED)


def _expect_possible_loss(run: Any) -> None:
    """Raise where no model has such a loss on this text."""
    limit = loss_bounds.bounds(run.corpus, run.bytes_per_token if run.bytes_per_token > 0 else None)
    loss, length = run.loss, limit.bytes_per_token
    expect(loss >= 0, "A loss is never negative: it is -ln of a probability.", got=loss)
    mistake = LEAK
    if loss > limit.floor:
        nats = f"{loss_bounds.nats_per_token(loss, length):.2f} nats per token"
        mistake += f" Or the unit is different: {loss:.4g} bits per byte are {nats}."
    claim = f"This is lower than any model can get on {run.corpus}: {limit.reason}."
    expected = Words(f"{limit.lowest:.2f} nats per token ({limit.floor:.2f} bits per byte)")
    got = Words(f"{loss:.4g} nats per token, {bits_per_byte(loss, length):.2f} bits per byte")
    expect(loss >= limit.lowest, claim, mistake, expected=expected, got=got)


def _expect_consistent(run: Any) -> None:
    """Raise where the tokens, the perplexity or the bits of a run do not follow from the rest."""
    product = math.nan if run.diverged else run.steps * run.batch_size * run.context_length
    loss = run.loss if 0 < run.loss < 100 else math.nan
    told = run.bytes_per_token > 0
    length = run.bytes_per_token if told else loss_bounds.BYTES_PER_TOKEN[run.corpus]
    # A run may end early; and where gradients are accumulated, or several devices take part, one
    # step reads several batches.
    several = run.tokens / product if product > 0 and run.tokens < math.inf else math.nan
    whole = several > 1 and _near(several, round(several))
    figures = (  # column, formula, value, at least and at most times that, and usual slips
        ("tokens", "steps × batch × context", product, 0, math.inf if whole else 1 + CLOSE, {
            run.context_length: "The context length is missing from the product.",
            run.batch_size: "The batch size is missing from the product.",
        }),
        ("perplexity", f"exp({loss:g})", math.exp(loss), 0.95, 1.05, {
            (math.e / 2) ** loss: "2 ** loss is for bits: this loss is in nats, so take exp.",
        }),
        # A token may have 1.2 to 12 bytes.
        ("bits_per_byte", f"{loss:g} / ln 2 / {length:g}", bits_per_byte(loss, length),
         *((0.95, 1.05) if told else (1 / 3, 3)), {
            1 / length: "That is in bits per token: divide by the bytes per token.",
            1 / math.log(2): "It is still in nats: divide by ln 2.",
        }),
    )  # fmt: skip
    for column, formula, value, least, most, slips in figures:
        got = getattr(run, column)
        # What the figure must be multiplied with to be right tells the slip.
        slip = next((words for by, words in slips.items() if _near(got * by, value)), None)
        odd = got < least * value or got > most * value or (column == "tokens" and slip)
        claim = f"In one run, {column.replace('_', ' ')} and the other figures do not agree."
        expected = Words(f"{formula} = {value:,.{0 if column == 'tokens' else 2}f}")
        expect(not odd, claim, slip, expected=expected, got=Words(f"{got:,.10g}"))


def _near(value: float, other: float) -> bool:
    return abs(value - other) < CLOSE * abs(other)


def _expect_equal_tokens(seen: dict[str, float], mistake: str) -> None:
    """Raise where runs are compared that saw different numbers of tokens."""
    got = Words(", ".join(f"{name}: {tokens:,.0f}" for name, tokens in seen.items()))
    equal = not seen or max(seen.values()) <= (1 + SAME) * min(seen.values())
    expect(equal, "These runs saw different numbers of tokens.", mistake, got=got)


# --- The problems


def experiment_log(attempt: Any, part: str | None = None) -> str:
    """Judge a table with a row for each run."""
    runs = table(attempt, config.profile().simple_corpus)
    if len(runs) < 2:
        raise NotAttempted("That is one run. A log holds all that were tried.")
    _expect_possible(runs)
    claim = "The log does not say how long it took: no column `seconds`."
    expect((runs["seconds"] > 0).any(), claim, NO_TIME)
    advice = "" if runs["diverged"].any() else ALL_WORKED
    return f"{len(runs)} runs, none of which contradicts itself.{advice}"


def learning_rate(attempt: Any, part: str | None = None) -> str:
    """Judge a sweep: (a) the loss that it reaches, (b) where runs begin to diverge."""
    runs = table(attempt, config.profile().simple_corpus, "learning_rate")
    rates = sorted({*runs["learning_rate"]})
    least = 2 if part == "b" else 3
    if len(rates) < least:
        raise NotAttempted(f"That is too few learning rates: {least} are needed at least.")
    positive = rates[0] > 0 and rates[-1] < math.inf
    expect(positive, "A learning rate is positive and finite.", got=rates)
    _expect_possible(runs)
    return _edge(runs, rates) if part == "b" else _best(runs, rates)


def _best(runs: pd.DataFrame, rates: list[float]) -> str:
    """Judge where in a sweep the best loss is, and how good it is beside what is asked for."""
    losses, corpus = _means(runs), runs["corpus"].iloc[0]
    best, loss = losses.index[0], losses.iloc[0]
    end, on = ("largest", "larger") if best == rates[-1] else ("smallest", "smaller")
    claim = f"The best learning rate, {best:g}, is the {end} one that was tried."
    mistake = f"The sweep ends too early: a {on} one may be better."
    expect(rates[0] < best < rates[-1], claim, mistake)
    inside = f"{len(rates)} learning rates; the best, {best:g}, lies inside."
    if corpus != "tinystories":
        return f"{inside} {loss:.4g} is possible on {corpus}; on TinyStories {WANTED}."
    expect(loss <= TARGET_ON_CPU, f"{loss:.4g} is not low enough: {WANTED}.", TUNE)
    return f"{inside} {loss:.4g} is low enough{' for a CPU' if loss > TARGET else ''}: {WANTED}."


def _edge(runs: pd.DataFrame, rates: list[float]) -> str:
    """Judge where the edge of stability lies, above which runs diverge."""
    losses = _means(runs)
    best = losses.index[0]
    # Far too large a learning rate often gives no nan: the loss stays high.
    high = losses[(losses.index > best) & (losses > losses[best] + loss_bounds.TOO_HIGH)]
    lost = {*runs[runs["diverged"]]["learning_rate"], *high.index}
    claim = f"No run diverges: all converge, up to {rates[-1]:g}."
    expect(lost, claim, f"Go on upwards from {rates[-1]:g}, doubling it each time.")
    claim = f"The best learning rate, {best:g}, is not below {max(lost):g}, which diverges."
    expect(best < max(lost), claim, SWAPPED)
    # A run below the best rate may diverge by chance; the edge is the first failure above it.
    edge = min(rate for rate in lost if rate > best)
    stable = max(rate for rate in rates if rate < edge)
    apart = f"{math.log10(edge / stable):.1f} orders of magnitude lie between {stable:g}, which"
    claim = f"The edge is not located: {apart} converges, and {edge:g}, which diverges."
    expect(edge / stable <= COARSE, claim, BISECT)
    coarse = " Bisect further to locate the edge more precisely." if edge > 4 * stable else ""
    return f"The best learning rate is {edge / best:.3g} times below one that diverges.{coarse}"


def batch_size_experiment(attempt: Any, part: str | None = None) -> str:
    """Judge a sweep over batch sizes."""
    runs = table(attempt, config.profile().simple_corpus, "batch_size")
    _expect_possible(runs)
    sizes = sorted({*runs["batch_size"]})
    missing = ", ".join(str(size) for size in BATCHES if size not in sizes)
    tried = Words(", ".join(f"{size:g}" for size in sizes))
    mistake = f"Run {missing} as well: what does not fit into memory, in parts whose gradients are"
    mistake += " accumulated. The run with batch 1 may stop early."
    expect(not missing, "A batch size that is asked for is missing.", mistake, got=tried)
    _expect_fair_batches(runs)
    losses = _means(runs, "batch_size")
    lowest = f"The lowest loss, {losses.iloc[0]:.4g}, is at batch size {losses.index[0]:g}."
    return f"{len(sizes)} sizes from {sizes[0]:g} to {sizes[-1]:g}, 64 and 128 among them. {lowest}"


def _expect_fair_batches(runs: pd.DataFrame) -> None:
    """Raise for different numbers of tokens; small batches may stop early, equal times are fair."""
    ended = runs[~runs["diverged"]]
    tokens = ended["tokens"].fillna(ended["steps"] * ended["batch_size"])
    seen = tokens.groupby(ended["batch_size"]).max().dropna()  # the smallest batch first
    full, times = [*(seen >= (1 - SAME) * seen.max())], ended["seconds"]
    if times.max() <= (1 + SAME) * times.min() or (sum(full) > 1 and sorted(full) == full):
        return
    mistake = SAME_STEPS if ended["steps"].nunique() == 1 else MORE_TEXT
    _expect_equal_tokens({f"batch {size:g}": most for size, most in seen.items()}, mistake)


def _compared(column: str, kinds: tuple[str, str], attempt: Any, *claims: Callable) -> str:
    """Judge the runs of two kinds, each at its best learning rate; `claims` are about the two."""
    # Where no learning rate is named, all runs of a kind are taken to have the same.
    runs = table(attempt, config.profile().simple_corpus, column).fillna({"learning_rate": 0})
    runs = runs[runs[column].isin(kinds)]
    sides = _sides(runs, column, kinds)
    _expect_possible(runs)
    for claim in (partial(_expect_alike, column), *claims):
        claim(*sides)
    losses = []
    for side in sides:
        ended = side[~side["diverged"]]
        if ended.empty:
            return (
                f"All runs with `{column}` {side[column].iloc[0]!r} diverged. Say where, and when."
            )
        losses.append(ended[ended["learning_rate"] == _means(side).index[0]]["loss"])
    apart = f"{losses[1].mean() - losses[0].mean():+.3g} nats per token"
    spread = max(side.max() - side.min() for side in losses)
    luck = f", where runs of one kind lie up to {spread:.3g} apart."
    if min(map(len, losses)) == 1:
        luck = " with one run of each kind. How much does the seed change it?"
    return f"{kinds[1]} compared with {kinds[0]}: {apart}{luck}"


def _sides(runs: pd.DataFrame, column: str, kinds: tuple[str, str]) -> list[pd.DataFrame]:
    """The runs of each kind. Raises: `NotAttempted` where one has none."""
    sides = [runs[runs[column] == kind] for kind in kinds]
    if any(side.empty for side in sides):
        raise NotAttempted(f'Hand in runs with `{column}` "{kinds[0]}" and with "{kinds[1]}".')
    return sides


def _expect_alike(column: str, usual: pd.DataFrame, other: pd.DataFrame) -> None:
    """Raise where the two kinds differ in more than what is compared."""
    both = pd.concat([usual, other])
    read = both[~both["diverged"]].groupby(column)["tokens"].max().dropna()
    _expect_equal_tokens(dict(read), MORE_TEXT)
    for name in SETTINGS:
        if name == column or name not in usual or (name, column) == ("d_ff", "ffn"):
            continue
        one, two = {*usual[name].dropna()}, {*other[name].dropna()}
        claim = f"They differ in more than `{column}`: in `{name}` as well."
        expect(one & two or not (one and two), claim, TWO_CHANGES)


def _expect_two_rates(usual: pd.DataFrame, other: pd.DataFrame) -> None:
    """Raise unless runs without norms are at the old best learning rate and at a lower one."""
    claim = "Without norms two learning rates are asked for: the old best one, and a lower one."
    for old in _means(usual).index[:1]:  # none where all diverged
        expect((other["learning_rate"] < 0.99 * old).any(), claim, NO_LOWER)
        expect(any(_near(rate, old) for rate in other["learning_rate"]), claim, NO_OLD)


def _expect_matched(usual: pd.DataFrame, other: pd.DataFrame) -> None:
    """Raise where one kind of feed-forward layer has far more parameters."""
    gated, plain = 3 * usual["d_ff"].iloc[0], 2 * other["d_ff"].iloc[0]  # matrices of each
    apart = max(gated, plain) > (1 + MATCHED) * min(gated, plain)
    expected = Words("3·d·d_ff about 2·d·d_ff': an inner width half as large again")
    got = Words(f"{gated:,.10g}·d and {plain:,.10g}·d")
    expect(not apart, "The parameter counts are not matched.", WIDER, expected=expected, got=got)


def layer_norm_ablation(attempt: Any, part: str | None = None) -> str:
    """Judge runs with and without norms."""
    return _compared("norm", ("pre", "none"), attempt, _expect_two_rates)


def pre_norm_ablation(attempt: Any, part: str | None = None) -> str:
    """Judge runs whose norms come before each part of a block, and after it."""
    return _compared("norm", ("pre", "post"), attempt)


def no_pos_emb(attempt: Any, part: str | None = None) -> str:
    """Judge runs with and without positions."""
    return _compared("position", ("rope", "none"), attempt)


def swiglu_ablation(attempt: Any, part: str | None = None) -> str:
    """Judge runs with and without the gate; while no run has a loss, only their inner widths."""
    rows, kinds = _rows(attempt), ("swiglu", "silu")
    if any("loss" in row for row in rows):
        return _compared("ffn", kinds, rows, _expect_matched)
    runs = table([row | {"loss": None} for row in rows], "", "ffn", "d_ff")
    _expect_matched(*_sides(runs, "ffn", kinds))
    return "Both have about as many parameters. Train them, and add the losses."


def main_experiment(attempt: Any, part: str | None = None) -> str:
    """Judge a loss on web text, alone or beside that on stories."""
    runs = table(attempt, config.profile().web_corpus, "corpus")
    web, simple = (runs[runs["corpus"].isin(names)] for names in (WEB, SIMPLE))
    if web.empty:
        raise NotAttempted('No run has the `corpus` "owt" or "docstrings".')
    for side in filter(len, (simple, web)):
        _expect_possible(side)
    loss = web["loss"].min()
    praise = f"{loss:.4g} nats per token is possible: a perplexity of {math.exp(loss):,.3g}."
    for unit in ("loss", "bits_per_byte"):
        one, two = web[unit].min(), simple[unit].min()
        claim = "Text from the web is not easier than stories:"
        claim += f" a `{unit}` of {one:.4g} against {two:.4g}."
        expect(not one < two, claim, WRONG_SPLIT)
        if one >= two:
            praise += f" Its `{unit}` is {one - two:.3g} above that of the stories."
    return praise


def leaderboard(attempt: Any, part: str | None = None) -> str:
    """Judge an entry: its loss, and its time against the limit of the edition."""
    runs = table(attempt, config.profile().web_corpus)
    _expect_possible(runs)
    best, edition = runs.loc[runs["loss"].idxmin()], config.edition()
    loss, corpus, target = best["loss"], best["corpus"], loss_bounds.BOARD_TARGET
    minutes, allowed = best["seconds"] / 60, loss_bounds.CAPS[edition] / 60
    claim = f"{minutes:.3g} minutes exceed the {allowed:g} that edition {edition} allows."
    expect(not minutes > 1.005 * OLD_MINUTES, claim, OVERTIME)
    claim = f"{loss:.4g} is not low enough: less than {target:g} is asked for."
    expect(corpus != "owt" or loss < target, claim, SIMPLE_RUN)
    praise = f"{loss:.4g} nats per token is possible on {corpus}."
    if minutes > 0:
        praise += f" It took {minutes:.3g} of {allowed:g} minutes."
    if minutes > 1.005 * allowed:
        praise += f" Before version 26.0.3 the handout of {edition} allowed {OLD_MINUTES}."
    if corpus != "owt":
        praise += f" The handout's {target:g} is for OpenWebText, which is a different text."
    elif loss < loss_bounds.BOARD_BEST:
        praise += " No public entry known here is as low: is the split clean?"
    return praise
