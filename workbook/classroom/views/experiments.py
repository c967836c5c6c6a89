"""Notebook 08: sweeps, curves of several seeds, batches, ablations, the leaderboard, as pictures.

What a colour says, a marker or a kind of line says too. A cross is a run that diverged.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter, NullLocator

from workbook.classroom.views import plots
from workbook.classroom.views.plots import ABOVE, BLUE, COLOURS, DASHED, GREY, INK, RED, axes, note
from workbook.experiments.results import Comparison, Family
from workbook.training.trainer import Run

MARKERS = "osD^vPX*"
LOSS, FINAL = "validation loss (nats/token)", "final loss (nats/token)"
FEW = 5  # groups with colours of their own
PANELS_WIDTH, PANELS_HEIGHT = 6.2, 3.0  # inches, of figures with panels side by side
BAR = ("nats", "error")  # of a difference
CEILING = 9.7  # nats per token: higher losses are drawn here
# Of a run that diverged.
CROSS: dict[str, Any] = {"color": RED, "marker": "x", "s": 45, "linewidths": 2, "zorder": 4}
Groups = Mapping[str, Sequence[Run]]  # the runs of a setting, one per seed


def curves(
    groups: Groups, x: str = "tokens", y: str = "validation_loss", ax: Axes | None = None
) -> Axes:
    """One line per group over "tokens" or "seconds": the mean of its runs and their range.

    Over seconds each run has a line of its own. A diverged run shows its training loss, and ends in
    a cross. The loss before training is left out. `y` is the column of the log that is drawn.
    """
    ax = ax or axes(PANELS_HEIGHT)
    highest = 0.0
    for colour, marker, (name, runs) in zip(_colours(groups), cycle(MARKERS), groups.items()):
        look = {"color": colour, "marker": marker, "linewidth": 1.5, "ms": 3.5}
        if x == "seconds" or any(run.diverged for run in runs):
            for run in runs:
                label = f"{name} (training loss)" if run.diverged else name
                highest = max(highest, _one_run(ax, run, x, y, label=label, **look))
            continue
        table = pd.concat([_losses(run, y) for run in runs], axis=1)
        highest = max(highest, table.max(axis=None))
        places = runs[0].log[x][table.index]
        if len(runs) > 1:
            low = table.min(axis=1)
            high = table.max(axis=1)
            ax.fill_between(places, low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(places, table.mean(axis=1), label=name, **look)
    if highest:
        lowest = min(run.log[y].min() for runs in groups.values() for run in runs)
        room = 0.06 * (highest - lowest)
        ax.set_ylim(lowest - room, highest + room)
    ax.set(xlabel=plots.X_AXES[x], ylabel=LOSS)
    ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    ax.grid()
    _legend(ax, groups)
    return ax


def _legend(ax: Axes, groups: Groups, title: str | None = None) -> None:
    """A legend in the picture for a few groups, a bar of their colours beside it for many."""
    if len(groups) <= FEW:
        ax.legend(fontsize=8, title=title)
        return
    colours = ScalarMappable(Normalize(-0.5, len(groups) - 0.5), ListedColormap(_colours(groups)))
    bar = plt.colorbar(colours, ax=ax, label=title)
    bar.set_ticks(range(len(groups)), labels=list(groups), fontsize=8)


def _colours(groups: Collection) -> Sequence:
    """A colour for each group: those of all plots for a few, a scale from dark to light for many.

    Many groups are in order, such as learning rates.
    """
    if len(groups) <= FEW:
        return COLOURS[: len(groups)]
    return [*plt.get_cmap("viridis")(np.linspace(0, 0.92, len(groups)))]


def _losses(run: Run, y: str) -> pd.Series:
    """A column of the log by step, without what was measured before training."""
    return run.log[y].dropna().loc[1:]


def _one_run(ax: Axes, run: Run, x: str, y: str, label: str, **look) -> float:
    """Draw the line of a run, and return its highest loss. A label is given only once.

    A diverged run, which was given up before there were many validation losses, shows those of
    training and ends in a cross.
    """
    losses = _cut(ax, run.log["train_loss"].dropna()) if run.diverged else _losses(run, y)
    places = run.log[x][losses.index]
    known = ax.get_legend_handles_labels()[1]
    look |= {"ms": 2} if run.diverged else {}
    ax.plot(places, losses, label=None if label in known else label, **look)
    if run.diverged:
        ax.scatter(places.iloc[-1:], losses.iloc[-1:], **CROSS)
    return losses.max()


def training_curves(groups: Groups, edge: tuple[float, float] | None = None) -> Axes:
    """The training losses of many runs over steps, from dark to light in the order of the groups.

    A group is named by its learning rate; those beyond the `edge` are dashed.
    """
    ax = axes(PANELS_HEIGHT + 0.4)
    for colour, (name, runs) in zip(_colours(groups), groups.items(), strict=True):
        dashes = "--" if edge and float(name) >= edge[1] else "-"
        for run in runs:
            losses = _cut(ax, run.log["train_loss"].dropna())
            # Without antialiasing the file stays small.
            look: dict[str, Any] = {"color": colour, "ls": dashes, "antialiased": False}
            ax.plot(losses.index, losses, linewidth=1.2, label=name, **look)
            if run.diverged:
                ax.scatter(losses.index[-1:], losses.iloc[-1:], **CROSS)
    ax.set(xlabel="steps", ylabel="training loss (nats/token)")
    ax.grid()
    _legend(ax, groups, "peak learning rate")
    return ax


def every_run(studied: Mapping[str, Sequence[Run]]) -> Axes:
    """One row per experiment: a dot at the final loss of each run, a cross for one that diverged.

    Losses above `CEILING` are drawn there.
    """
    ax = axes(0.9 + 0.26 * len(studied))
    for row, runs in enumerate(studied.values()):
        ended = [min(run.loss, CEILING) for run in runs if not run.diverged]
        ax.plot(ended, [row] * len(ended), "o", mec=BLUE, mfc="none", ms=5)
        lost = len(runs) - len(ended)
        ax.scatter([CEILING + 0.3] * lost, [row] * lost, **CROSS)
    plots.named_rows(ax, studied)
    ax.set_xlabel(f"{FINAL}, none drawn above {CEILING}; crosses: diverged")
    ax.grid(axis="x")
    return ax


def sweep(
    sweeps: Mapping[str, Mapping[float, Run]],
    marks: Mapping[str, float] | None = None,
) -> Axes:
    """The final loss over the learning rate, one line per sweep; diverged runs are crosses on top.

    A diverged run has no final loss; higher losses are drawn at `CEILING`. `marks` name levels.
    """
    ax = axes(PANELS_HEIGHT)
    for colour, marker, (name, runs) in zip(_colours(sweeps), cycle(MARKERS), sweeps.items()):
        good = {rate: run.loss for rate, run in sorted(runs.items()) if not run.diverged}
        drawn = _cut(ax, pd.Series(good, dtype=float))
        ax.plot(drawn.index, drawn, color=colour, marker=marker, ms=4, label=name)
    for name, height in (marks or {}).items():
        plots.level(ax, name, height, 0.01, xycoords=ax.get_yaxis_transform())
    lost = [rate for runs in sweeps.values() for rate, run in runs.items() if run.diverged]
    if lost:
        low, high = ax.get_ylim()
        above = high + 0.06 * (high - low)
        ax.scatter(lost, [above] * len(lost), label="diverged: no final loss", **CROSS)
    ax.set(xscale="log", xlabel="peak learning rate", ylabel=FINAL)
    ax.grid()
    return ax


def ablation(comparisons: Mapping[int, Comparison], usual: str = "unchanged") -> Figure:
    """Learning curves at the largest budget on the left; at every budget, the tuning on the right.

    On the left the range over seeds is shaded, and the third line is the changed model at the best
    rate of the unchanged one: a rate decides how a curve goes before its end. On the right, the
    losses by learning rate of the unchanged model (full lines) and the changed one (dashed), a
    colour per budget; a cross on top is a run that diverged.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(PANELS_WIDTH, PANELS_HEIGHT))
    last = [*comparisons.values()][-1]
    old = last.unchanged.rate
    own = last.changed.rate
    sides = {f"{last.label} at {old:.3g}": [last.at_old_rate]}
    sides[f"{last.label} at {own:.3g}"] = [*last.changed.seeds.values()]
    curves({f"{usual} at {old:.3g}": [*last.unchanged.seeds.values()]} | sides, ax=left)
    left.legend(fontsize=8, **ABOVE)
    rates: set[float] = set()
    heights = np.linspace(0.97, 0.85, len(comparisons))  # of crosses: none lies on another
    looks = zip(_colours(comparisons), heights, comparisons.items(), strict=True)
    for colour, height, (tokens, pair) in looks:
        for marker, dashes, side in (("o", "-", pair.unchanged), ("s", "--", pair.changed)):
            ended = {rate: run.loss for rate, run in side.tuned.items() if not run.diverged}
            label = f"{tokens / 1e6:.1f} M tokens" if side is pair.unchanged else None
            right.plot(
                ended.keys(),
                ended.values(),
                color=colour,
                ls=dashes,
                marker=marker,
                ms=4,
                label=label,
            )
            lost = [rate for rate, run in side.tuned.items() if run.diverged]
            on_top = right.get_xaxis_transform()
            right.scatter(lost, [height] * len(lost), transform=on_top, **CROSS | {"color": colour})
            rates |= side.tuned.keys()
    right.plot([], [], color=INK, ls="--", marker="s", ms=4, label=last.label)
    changed = [run for pair in comparisons.values() for run in pair.changed.tuned.values()]
    if any(run.diverged for run in changed):
        right.scatter([], [], label="diverged", **CROSS | {"color": INK})
    right.set(xscale="log", xlabel="peak learning rate", ylabel=FINAL)
    right.set_xticks(sorted(rates), [f"{rate:.3g}" for rate in sorted(rates)], fontsize=8)
    right.xaxis.set_minor_formatter(NullFormatter())
    right.grid()
    # Long enough that the dashes can be seen beside the marker.
    right.legend(fontsize=8, **ABOVE, ncols=2, handlelength=3.4)
    return figure


def report(family: Family, label: str, usual: str = "unchanged") -> None:
    """Show a change beside the usual model: the table of the budgets, and `ablation`."""
    display(family.table(label, usual))
    figure = ablation(family.by_change[label], usual)
    plots.show(figure, f"Curves and losses by rate: {family.verdicts(label)}.")


def effects(
    family: Mapping[str, Mapping[int, Comparison]],
    reported: Mapping[str, Sequence[float]],
    single: Mapping[str, Mapping[int, float]],
) -> Figure:
    """What each change costs over the budget on the left, and what public runs report on the right.

    Lines are means over seeds with their standard errors; `single` are costs in one run each, drawn
    hollow. `reported` are losses above those of the unchanged model, of single runs with the
    course's own model. The axis is linear up to 0.1 and logarithmic beyond, so that one large bar
    does not flatten the rest.
    """
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(PANELS_WIDTH, 3.6), sharey=True, width_ratios=(3, 2)
    )
    looks = zip(COLOURS, MARKERS, family.items(), strict=False)
    for colour, marker, (name, comparisons) in looks:
        gaps = {tokens: one.difference for tokens, one in comparisons.items()}
        finite = {tokens: gap for tokens, gap in gaps.items() if np.isfinite(gap.nats)}
        alone = single.get(name, {})
        public = reported.get(name, ())
        if not (finite or alone or public):
            continue  # nothing to draw, nor to name in the legend
        costs, errors = [[getattr(gap, part) for gap in finite.values()] for part in BAR]
        look: dict[str, Any] = {"color": colour, "marker": marker, "ms": 5}
        left.errorbar(list(finite), costs, errors, capsize=3, label=name, **look)
        look |= {"ls": "none", "mfc": "none"}
        left.plot(alone.keys(), alone.values(), **look)
        right.plot([name] * len(public), public, **look)
    for ax in (left, right):
        ax.axhline(0, color=INK, linewidth=1)
        ax.grid(axis="y")
    left.set_yscale("symlog", linthresh=0.1)
    ticks = (-0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5, 1)
    left.set_yticks(ticks, [f"{tick:+g}" for tick in ticks])
    left.yaxis.set_minor_locator(NullLocator())
    left.set(xscale="log", xlabel="tokens seen", ylabel="cost (nats/token)")
    every = [*family.values(), *single.values()]
    budgets = sorted({tokens for by_budget in every for tokens in by_budget})
    left.set_xticks(budgets, [f"{tokens / 1e6:.1f} M" for tokens in budgets])
    left.xaxis.set_minor_formatter(NullFormatter())
    right.set(xlabel="public runs, unverified:\n164 to 328 M tokens")
    right.tick_params(axis="x", labelrotation=20, labelsize=8)
    right.margins(x=0.2)
    left.legend(fontsize=8, **ABOVE, ncols=3)
    return figure


def batches(runs_of: Mapping[int, Mapping[float, Run]]) -> Figure:
    """The best loss by batch size on the left, and the learning rate that it took on the right.

    `runs_of` has the runs of each batch size by learning rate. The dashed line is a best rate that
    grows with the root of the size.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(PANELS_WIDTH, 2.9))
    top = {size: min(runs, key=lambda rate: runs[rate].loss) for size, runs in runs_of.items()}
    left.plot(list(top), [runs_of[size][rate].loss for size, rate in top.items()], marker="o")
    right.plot(list(top), list(top.values()), marker="o", label="best", zorder=3)
    tried = [(size, rate) for size, runs in runs_of.items() for rate in runs]
    right.scatter(*zip(*tried, strict=True), color=GREY, s=9, label="tried")
    sizes = np.array(list(top))
    middle = sizes[len(sizes) // 2]
    root = top[middle] * np.sqrt(sizes / middle)
    right.plot(sizes, root, **DASHED, label="root of the batch")
    usual_rates = sorted({rate for _, rate in tried})
    right.set(yscale="log", ylabel="peak learning rate")
    right.set_yticks(usual_rates, [f"{rate:.3g}" for rate in usual_rates], fontsize=8)
    right.yaxis.set_minor_locator(NullLocator())
    right.legend(fontsize=8)
    left.set_ylabel(FINAL)
    for ax in (left, right):
        _batch_axis(ax, [*top])
        ax.tick_params(axis="x", labelrotation=45)
    return figure


def in_bits(groups: Groups) -> Axes:
    """The validation losses over tokens, in the unit that all tokenizers share."""
    ax = curves(groups, y="validation_bits_per_byte")
    ax.set_ylabel("validation loss (bits/byte)")
    return ax


def _cut(ax: Axes, losses: pd.Series) -> pd.Series:
    """The losses, none above `CEILING`; if one was, a line says so."""
    if losses.max() > CEILING and not any(line.get_gid() == "ceiling" for line in ax.lines):
        ax.axhline(CEILING, color=GREY, linestyle=":", linewidth=1, zorder=0, gid="ceiling")
        # White behind it, because a line may pass there.
        look: dict[str, Any] = {"ha": "right", "va": "top", "size": 8, "backgroundcolor": "white"}
        across = ax.get_yaxis_transform()
        note(ax, f"cut at {CEILING}", (0.99, CEILING), (0, -6), xycoords=across, **look)
    return losses.clip(upper=CEILING)


def _batch_axis(ax: Axes, sizes: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(sizes, [str(size) for size in sizes], fontsize=7)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("batch size (sequences)")
    ax.grid()


def against_time(groups: Groups, cap: float) -> Axes:
    """Validation losses against seconds, and the time at which every run has to end."""
    ax = curves(groups, "seconds")
    ax.axvline(cap, **DASHED)
    note(
        ax,
        f"limit: {cap:,.0f} s",
        (cap, 0.97),
        (-4, 0),
        xycoords=("data", "axes fraction"),
        ha="right",
        va="top",
        rotation=90,
        fontsize=8,
    )
    return ax
