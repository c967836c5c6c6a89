"""Notebook 08: sweeps, curves of several seeds, batches, ablations, the leaderboard, as pictures.

What a colour says, a marker or a kind of line says too. A cross is a run that diverged.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter, NullLocator

from workbook.experiments.records import Run
from workbook.experiments.results import BatchCurve
from workbook.views import plots
from workbook.views.plots import BLUE, COLOURS, GREEN, GREY, INK, ORANGE, RED, axes, note

MARKERS = "osD^vPX*"
X_AXES = {"steps": "steps", "tokens": "tokens", "seconds": "time (seconds)"}
LOSS, FINAL = "validation loss (nats/token)", "final loss (nats/token)"
WIDE, HEIGHT = 6.2, 3.0  # inches, of figures with panels side by side
CEILING = 9.7  # nats per token: higher losses are drawn here
CROSS = {"color": RED, "marker": "x", "s": 45, "linewidths": 2, "zorder": 4}  # a run that diverged
Groups = Mapping[str, Sequence[Run]]  # the runs of a setting, one per seed


def curves(
    groups: Groups, x: str = "tokens", y: str = "validation_loss", ax: Axes | None = None
) -> Axes:
    """One line per group over "steps", "tokens" or "seconds": the mean of its runs and their range.

    Over seconds each run has a line of its own. A diverged run shows its training loss, and ends in
    a cross. The loss before training is left out. `y` is the column of the log that is drawn.
    """
    ax, highest = axes(ax, HEIGHT), 0.0
    for colour, marker, (name, runs) in zip(COLOURS, MARKERS, groups.items(), strict=False):
        look = {"color": colour, "marker": marker, "linewidth": 1.5, "ms": 3.5}
        if x == "seconds" or any(run.diverged for run in runs):
            for run in runs:
                label = f"{name} (training loss)" if run.diverged else name
                highest = max(highest, _one_run(ax, run, x, y, label=label, **look))
            continue
        table = pd.concat([_losses(run, y) for run in runs], axis=1)
        highest = max(highest, table.max(axis=None))
        places = along(runs[0], x)[table.index]
        if len(runs) > 1:
            low, high = table.min(axis=1), table.max(axis=1)
            ax.fill_between(places, low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(places, table.mean(axis=1), label=name, **look)
    if highest:
        lowest = min(run.log[y].min() for runs in groups.values() for run in runs)
        room = 0.06 * (highest - lowest)
        ax.set_ylim(lowest - room, highest + room)
    ax.set(xlabel=X_AXES[x], ylabel=LOSS)
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.grid()
    return ax


def along(run: Run, x: str) -> pd.Series:
    """Where the logged steps of a run lie on an axis, by step."""
    return run.log.assign(steps=run.log.index)[x]


def _losses(run: Run, y: str) -> pd.Series:
    """A column of the log by step, without what was measured before training."""
    return run.log[y].dropna().loc[1:]


def _one_run(ax: Axes, run: Run, x: str, y: str, label: str, **look) -> float:
    """Draw the line of a run, and return its highest loss. A label is given only once.

    A diverged run, which was given up before there were many validation losses, shows those of
    training and ends in a cross.
    """
    losses = _cut(ax, run.log["train_loss"].dropna()) if run.diverged else _losses(run, y)
    places = along(run, x)[losses.index]
    known = ax.get_legend_handles_labels()[1]
    look |= {"ms": 2} if run.diverged else {}
    ax.plot(places, losses, label=None if label in known else label, **look)
    if run.diverged:
        ax.scatter(places.iloc[-1:], losses.iloc[-1:], **CROSS)
    return losses.max()


def panels(groups: Groups, xs: Sequence[str] = ("steps", "tokens", "seconds")) -> Figure:
    """The same curves over several axes, side by side, with one legend; time and steps are log."""
    figure, row = plt.subplots(1, len(xs), figsize=(WIDE, HEIGHT), sharey=True)
    for ax, x in zip(row, xs, strict=True):
        curves(groups, x, ax=ax)
        ax.set_xscale("linear" if x == "tokens" else "log")
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.label_outer()
    plots.legend_outside(figure, row[0])
    return figure


def everything(groups: Groups) -> Figure:
    """Every run as a thin line, against steps and against seconds; the second group is dashed.

    Of a diverged run the training losses are shown, up to a cross.
    """
    figure, row = plt.subplots(1, 2, figsize=(WIDE, HEIGHT), sharey=True)
    best = min(run.loss for runs in groups.values() for run in runs)
    for ax, x in zip(row, ("steps", "seconds"), strict=True):
        styles = zip((BLUE, ORANGE), ("-", "--"), groups.items(), strict=False)
        for colour, dashes, (name, runs) in styles:
            look = {"color": colour, "ls": dashes, "linewidth": 0.6, "antialiased": False}
            for run in runs:  # not antialiased: the file stays small
                _one_run(ax, run, x, "validation_loss", label=name, **look)
        ax.set(xscale="log", xlabel=X_AXES[x], ylim=(best - 0.3, CEILING + 0.3))
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
        ax.grid()
    row[0].set_ylabel("loss (nats/token)")
    row[0].scatter([], [], color=RED, marker="x", label="diverged (training loss)")
    plots.legend_outside(figure, row[0])
    return figure


def sweep(
    sweeps: Mapping[str, Mapping[float, Run]],
    marks: Mapping[str, float] | None = None,
    edge: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The final loss over the learning rate, one line per sweep; diverged runs are crosses on top.

    A diverged run has no final loss. `marks` name levels; the `edge` between two learning rates is
    shaded.
    """
    ax = axes(ax, HEIGHT)
    for colour, marker, (name, runs) in zip(COLOURS, MARKERS, sweeps.items(), strict=False):
        good = {rate: run.loss for rate, run in sorted(runs.items()) if not run.diverged}
        ax.plot(good.keys(), good.values(), color=colour, marker=marker, ms=5, label=name)
    for name, height in (marks or {}).items():
        plots.level(ax, name, height, 0.01, xycoords=ax.get_yaxis_transform())
    lost = [rate for runs in sweeps.values() for rate, run in runs.items() if run.diverged]
    if lost:
        low, high = ax.get_ylim()
        above = high + 0.06 * (high - low)
        ax.scatter(lost, [above] * len(lost), label="diverged: no final loss", **CROSS)
    if edge is not None:
        ax.axvspan(*edge, color=RED, alpha=0.2, linewidth=0, label="edge of stability")
    ax.set(xscale="log", xlabel="peak learning rate", ylabel=FINAL)
    ax.grid()
    return ax


def ablation(groups: Groups, sweeps: Mapping[str, Mapping[float, Run]]) -> Figure:
    """Curves with the range over seeds on the left, and the loss by learning rate on the right.

    On the right the first sweep is shown around the rates of the second.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, HEIGHT))
    curves(groups, ax=left)
    (usual, all_usual), (other, tried) = sweeps.items()
    near = {rate: run for rate, run in all_usual.items() if min(tried) / 4 < rate < max(tried) * 4}
    sweep({usual: near, other: tried}, ax=right)
    for ax in (left, right):
        ax.legend(fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1))
    return figure


def batches(
    full: Mapping[int, Run], part: Mapping[int, Run], rates: Mapping[int, Sequence[float]]
) -> Figure:
    """The best loss by batch size on the left, and the learning rate that it took on the right.

    `full` and `part` are the best runs by batch size, those of `part` on fewer tokens; `rates` are
    all learning rates tried for each size. Dashed: a best one that grows with the root of the size.
    """
    each, less = (next(iter(runs.values())).tokens for runs in (full, part))
    fewer = f"{each / less:.0f} times fewer"
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 2.9))
    for name, runs, marker in (("all tokens", full, "o"), (fewer, part, "s")):
        losses = [run.loss for run in runs.values()]
        left.plot(list(runs), losses, marker=marker, label=name)
        top = [run.config.optimizer.max_learning_rate for run in runs.values()]
        right.plot(list(runs), top, marker=marker, label=f"best, {name}", zorder=3)
    tried = [(size, rate) for size, several in rates.items() for rate in several]
    right.scatter(*zip(*tried, strict=True), color=GREY, s=9, label="tried")
    sizes = np.array(list(full))
    start = full[sizes[0]].config.optimizer.max_learning_rate
    root = start * np.sqrt(sizes / sizes[0])
    right.plot(sizes, root, color=INK, linestyle="--", linewidth=1, label="root of the batch")
    usual_rates = sorted({rate for _, rate in tried})
    right.set(yscale="log", ylabel="peak learning rate")
    right.set_yticks(usual_rates, [f"{rate:.4g}" for rate in usual_rates], fontsize=8)
    right.yaxis.set_minor_locator(NullLocator())
    left.set_ylabel(FINAL)
    for ax in (left, right):
        _batch_axis(ax, sorted({*full, *part}))
        ax.legend(fontsize=8)
    return figure


def steps_by_batch(
    found: Mapping[float, tuple[Mapping[int, float], BatchCurve]], ax: Axes | None = None
) -> Axes:
    """The steps to each loss over the batch size, and the fitted curve with its critical batch."""
    ax = axes(ax, HEIGHT)
    sizes: set[int] = set()
    for colour, marker, (loss, (steps, bend)) in zip(COLOURS, MARKERS, found.items(), strict=False):
        label = f"to {loss:.2f} nats/token"
        ax.plot(steps.keys(), steps.values(), color=colour, marker=marker, ls="", label=label)
        fine = np.geomspace(min(steps), max(steps), 50)
        ax.plot(fine, [bend.steps(size) for size in fine], color=colour, ls="--", linewidth=1)
        if min(steps) <= bend.critical <= max(steps):
            ax.plot(bend.critical, bend.steps(bend.critical), color=colour, marker="*", ms=14)
        sizes |= set(steps)
    ax.plot([], [], color=INK, marker="*", ms=10, ls="", label="critical batch")
    ax.plot([], [], color=INK, ls="--", linewidth=1, label="fitted")
    ax.set(yscale="log", ylabel="steps to the loss")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    _batch_axis(ax, sorted(sizes))
    ax.legend(fontsize=8)
    return ax


def two_units(groups: Groups, levels: Mapping[str, float]) -> Figure:
    """The same curves in nats per token and in bits per byte, the unit in which they compare.

    `levels` are known bounds in bits per byte.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 2.9))
    curves(groups, ax=left)
    curves(groups, y="validation_bits_per_byte", ax=right)
    right.set_ylabel("validation loss (bits/byte)")
    for name, level in levels.items():
        right.axhline(level, color=INK, linestyle="--", linewidth=1, zorder=0)
        note(
            right, name, (0.99, level), (0, 3), xycoords=right.get_yaxis_transform(), ha="right",
            fontsize=8,
        )  # fmt: skip
    left.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    plots.legend_outside(figure, left)
    return figure


def in_bits(runs: Mapping[str, Run], ax: Axes | None = None) -> Axes:
    """The validation losses of some runs over tokens, in the unit that any tokenizers share."""
    ax = curves({name: [run] for name, run in runs.items()}, y="validation_bits_per_byte", ax=ax)
    ax.set_ylabel("validation loss (bits/byte)")
    ax.legend(fontsize=8)
    return ax


def _cut(ax: Axes, losses: pd.Series) -> pd.Series:
    """The losses, none above `CEILING`; where one was, a line says so."""
    if losses.max() > CEILING and not any(line.get_gid() == "ceiling" for line in ax.lines):
        ax.axhline(CEILING, color=GREY, linestyle=":", linewidth=1, zorder=0, gid="ceiling")
        place = (0.99, CEILING)
        note(
            ax, f"cut at {CEILING}", place, (0, -3), xycoords=ax.get_yaxis_transform(), ha="right",
            va="top", fontsize=8, color=INK,
        )  # fmt: skip
    return losses.clip(upper=CEILING)


def _batch_axis(ax: Axes, sizes: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes], fontsize=8)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("batch size (sequences)")
    ax.grid()


SMOOTH = 5  # logged training losses that are drawn as their mean


def standings(
    entries: Mapping[str, Sequence[float]], helped: Sequence[str], ax: Axes | None = None
) -> Axes:
    """One row per entry, the lowest mean on top: its losses as dots, and the range of the first.

    Those that `helped` are diamonds, the first and the last entry full circles, the rest open ones.
    An entry such as "a + b" is named by what was added last.
    """
    ax = axes(ax, height=1.0 + 0.23 * len(entries))
    names = sorted(entries, key=lambda name: fmean(entries[name]))
    start, *_, final = entries
    ax.axvspan(
        min(entries[start]), max(entries[start]), color=BLUE, alpha=0.15, linewidth=0,
        label=f"range of “{start}”",
    )  # fmt: skip
    for row, name in enumerate(names):
        ends = name in (start, final)
        colour = BLUE if ends else GREEN if name in helped else GREY
        face = "none" if colour == GREY else colour
        marker = "D" if colour == GREEN else "o"
        losses = entries[name]
        ax.plot(losses, [row] * len(losses), marker, mec=colour, mfc=face, ms=6)
        ax.plot([fmean(losses)], [row], "|", color=INK, ms=14)
    ax.plot([], [], "o", color=BLUE, label="first and last")
    ax.plot([], [], "D", color=GREEN, label="helped")
    ax.plot([], [], "o", mec=GREY, mfc="none", label="did not")
    ax.plot([], [], "|", color=INK, ms=12, label="mean")
    plots.named_rows(ax, map(short, names))
    ax.set_xlabel(FINAL)
    ax.grid(axis="x")
    ax.figure.legend(loc="outside upper center", ncols=5, fontsize=8)
    return ax


def short(name: str) -> str:
    """The name of an entry, of several changes the last.

    >>> short("half the context + SiLU")
    '... + SiLU'
    """
    *before, last = name.split(" + ")
    return f"... + {last}" if before else last


def against_time(groups: Groups, cap: float, ax: Axes | None = None) -> Axes:
    """Loss curves against seconds, and the time at which every run has to end.

    Marked lines are validation losses, thin ones training losses, smoothed.
    """
    ax = curves({f"{name}: validation": runs for name, runs in groups.items()}, "seconds", ax=ax)
    for colour, runs in zip(COLOURS, groups.values(), strict=False):
        for run in runs:
            losses = run.log["train_loss"].dropna().rolling(SMOOTH).mean()
            places = along(run, "seconds")[losses.index]
            ax.plot(places, losses, color=colour, linewidth=0.6, antialiased=False)  # a small file
    ax.relim()
    ax.autoscale()
    ax.axvline(cap, color=INK, linestyle="--", linewidth=1)
    note(
        ax, f"limit: {cap:,.0f} s", (cap, 0.97), (-4, 0), xycoords=("data", "axes fraction"),
        ha="right", va="top", rotation=90, fontsize=8,
    )  # fmt: skip
    ax.set_ylabel("loss (nats/token)")
    ax.plot([], [], color=INK, linewidth=0.6, label=f"training, mean of {SMOOTH}")
    ax.legend()
    return ax
