"""Notebook 05: losses on a log axis, walks through a valley and sizes of gradients, as pictures.

The live view is the learning-rate slider: the handout's toy at any learning rate.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.classroom.views import live, plots
from workbook.classroom.views.live import Live, Shown
from workbook.classroom.views.plots import BLUE, DASHED, INK, ORANGE, PALE, RED, axes, note
from workbook.optimizer import toys
from workbook.optimizer.floats import FORMATS


def valley(paths: Mapping[str, np.ndarray], height: Callable[[np.ndarray], np.ndarray]) -> Figure:
    """One map per path, an array of (places, 2), over the same landscape.

    `height` gives the ground at any places. A path begins at the square, and the + is the lowest
    point.
    """
    rows = -(-len(paths) // 3)
    figure, panels = plt.subplots(
        rows, 3, figsize=(plots.FIGURE_WIDTH, 1.8 * rows), sharex=True, sharey=True, squeeze=False
    )
    across = np.linspace(-5, 5, 121)
    up = np.linspace(-3.6, 3.6, 121)
    ground = height(np.stack(np.meshgrid(across, up), axis=-1))
    levels = ground.max() * np.linspace(0.06, 1, 9) ** 2.5
    for ax, (name, path) in zip(panels.flat, paths.items(), strict=False):
        ax.contour(across, up, ground, levels, colors=PALE[1], linewidths=0.8)
        ax.plot(*path.T, color=BLUE, marker="o", ms=2.5, linewidth=1)
        ax.plot(*path[0], color=ORANGE, marker="s", ms=6)
        ax.plot(0, 0, color=INK, marker="+", ms=9, mew=2)
        ax.set_title(name, fontsize=10)
        ax.set(xlim=(across[0], across[-1]), ylim=(up[0], up[-1]), aspect="equal")
        ax.set(xlabel="x", ylabel="y")
        ax.label_outer()
    for ax in panels.flat[len(paths) :]:
        ax.set_axis_off()
    return figure


def side_by_side(
    tables: Mapping[str, pd.DataFrame], quantity: str, exact: pd.Series | None = None
) -> Figure:
    """One picture per table, each with a line per column over its index, all at one scale."""
    figure, panels = plt.subplots(
        1, len(tables), figsize=(plots.FIGURE_WIDTH, 3.1), sharey=True, squeeze=False
    )
    for ax, (title, table) in zip(panels.flat, tables.items(), strict=True):
        ax.plot(table, linewidth=2, label=list(table.columns))
        if exact is not None:
            ax.plot(exact, **DASHED, label=exact.name)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel(table.index.name)
        ax.grid()
    panels.flat[0].set_ylabel(quantity)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
    return figure


def size_histogram(sizes: Mapping[str, np.ndarray]) -> Axes:
    """The distribution of sizes of numbers, on a log axis, and where float16 begins to lose any."""
    ax = axes(3.8)
    half = FORMATS["float16"]
    edges = np.arange(-12, 2.01, 0.25)
    for colour, (name, numbers) in zip((BLUE, ORANGE), sizes.items(), strict=False):
        share = np.histogram(np.log10(numbers), edges)[0] / len(numbers)
        ax.stairs(share, edges, color=colour, fill=True, alpha=0.45)
        ax.stairs(share, edges, color=colour, linewidth=2, label=name)
    lines = {
        "becomes 0 in float16": half.smallest_subnormal / 2,
        "has fewer digits": half.smallest_normal,
    }
    ax.axvspan(edges[0], np.log10(half.smallest_subnormal / 2), color=RED, alpha=0.12, lw=0)
    for row, (name, size) in enumerate(lines.items()):
        ax.axvline(np.log10(size), **DASHED)
        note(
            ax,
            f"← {name}",
            (np.log10(size), 0.97 - 0.08 * row),
            (-3, 0),
            fontsize=9,
            ha="right",
            xycoords=("data", "axes fraction"),
            va="top",
        )
    plots.tens(ax, range(-12, 3, 2))
    ax.set(xlim=(edges[0], edges[-1]), ymargin=0.25)
    ax.set(xlabel="size of a gradient that is not 0 (log scale)", ylabel="share of the numbers")
    ax.legend(loc="upper right")
    return ax


STEPS = 10
FACTORS_OF_TEN = 16  # that bars and picture reach down, and bars up, from the first loss
LONGEST_BAR = 6.0  # rem


def learning_rate_slider(lr: int = 100) -> Live:
    """A slider from 1 to 1,200, and what the toy's loss does in its first ten steps.

    Arrow keys move it by 1; a number can be typed beside it; three buttons set the handout's
    learning rates.
    """
    slider = live.slider("Learning rate", lr, 1, 1_200, readout_format=",d")
    buttons = [
        live.button(
            f"{rate:,}", f"learning rate {rate:,}", partial(setattr, slider, "value", rate), "4rem"
        )
        for rate in (10, 100, 1_000)
    ]
    row = live.side_by_side(*buttons, slider)
    return Live("Learning-rate slider", {"lr": slider}, _steps_shown, rows=[row])


def _steps_shown(lr: int) -> Shown:
    story = toys.course_of_loss(lr)
    losses = toys.relative_losses(lr, STEPS)
    factors = [toys.step_factor(lr, t) for t in range(STEPS)]
    columns = ["step", "weights times", "loss times", "loss after it (start: 1)"]
    steps = live.table(
        "The first ten steps: how weights and loss are multiplied",
        [*columns, "on a log scale, | is 1"],
        (
            (f"{t}", f"{factor:+.3f}", f"{factor**2:.3f}", f"{loss:.3g}", _bar(loss))
            for t, (factor, loss) in enumerate(zip(factors, losses[1:], strict=True))
        ),
        numbers=columns,
    )
    html = f"""
<p><b>Learning rate {lr:,}.</b> {escape(story)}</p>
{steps}
<p>In exact arithmetic, for any initial weights.</p>"""
    summary = ", ".join(f"{loss:.3g}" for loss in losses)
    words = (
        f"Learning rate {lr:,}: {story} The loss, if it began at 1, before and after each of "
        f"{STEPS} steps: {summary}."
    )

    def picture() -> Axes:
        table = pd.DataFrame({"loss": losses}).rename_axis(f"step, at learning rate {lr:,}")
        lowest = 10.0**-FACTORS_OF_TEN
        quantity = "loss, if it began at 1"
        start = {"start": 1.0}
        return plots.curves(table, quantity, log_y=True, lowest=lowest, marks=start)

    return Shown(html, words, picture)


def _bar(loss: float) -> str:
    """A bar to the left of the middle for a loss below 1, to the right for one above."""
    tens = math.log10(loss) if loss > 0 else -math.inf
    length = min(abs(tens), FACTORS_OF_TEN) / FACTORS_OF_TEN * LONGEST_BAR
    left, right = (length, 0.0) if tens < 0 else (0.0, length)
    before = live.bar(left, f"margin-left: {LONGEST_BAR - left:.2f}rem; background: {BLUE};")
    return f"{before}|{live.bar(right, f'background: {RED};')}"
