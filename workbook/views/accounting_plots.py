"""The pictures of notebook 04: shares, memory against its limit, time, and the bits of numbers."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, PercentFormatter

from workbook.optimizer.floats import FloatFormat, Stored
from workbook.views.plots import BLUE, COLOURS, GREEN, GREY, INK, ORANGE, PALE, _axes

THIN = 0.07  # of the whole height: too thin for letters
DARK = (BLUE, GREEN)  # backgrounds on which white letters can be read
FIELDS = {"sign": (GREY, INK), "exponent": (ORANGE, INK), "mantissa": ("#cfe6f5", INK)}


def _ink(colour: str) -> str:
    """The colour of letters on a background."""
    return "white" if colour in DARK else INK


def shares(table: pd.DataFrame, what: str, ax: Axes | None = None) -> Axes:
    """A bar a row of `table`, cut into the shares of its columns; small shares have no number."""
    ax = _axes(ax, height=1.2 + 0.42 * len(table))
    parts = table.div(table.sum(axis=1), axis=0)
    left = np.zeros(len(table))
    for colour, name in zip(COLOURS, parts.columns, strict=False):
        bars = ax.barh(range(len(table)), parts[name], left=left, color=colour, height=0.7)
        texts = [f"{share:.0%}" if share >= 0.045 else "" for share in parts[name]]
        ax.bar_label(bars, texts, label_type="center", color=_ink(colour), fontsize=8)
        bars.set_label(name)
        left += parts[name].to_numpy()
    ax.set_yticks(range(len(table)), table.index)
    ax.invert_yaxis()  # the first row on top, as in the table
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.set_xlim(0, 1)
    ax.set_xlabel(what)
    ax.set_ylabel(table.index.name)
    _legend_above(ax)
    return ax


def _legend_above(ax: Axes) -> None:
    """A legend on top of the axes, its entries side by side in as few rows as fit."""
    labels = ax.get_legend_handles_labels()[1]
    rows = -(-sum(len(label) + 7 for label in labels) // 78)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=-(-len(labels) // rows))


def shares_along(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The columns' shares as bands over the index, on a log axis; each band is named in itself.

    A band too thin for its name has it above the picture.
    """
    ax = _axes(ax, height=3.4)
    parts = table.div(table.sum(axis=1), axis=0)
    tops = parts.cumsum(axis=1)
    x = table.index.to_numpy(dtype=float)
    for colour, name in zip(COLOURS, parts.columns, strict=False):
        ax.fill_between(x, tops[name] - parts[name], tops[name], color=colour, lw=0)
        place = int(np.argmax(parts[name].to_numpy()))
        side = {0: "left", len(x) - 1: "right"}.get(place, "center")
        share = parts[name].iloc[place]
        if share >= THIN:
            ax.annotate(
                f" {name} ", (x[place], tops[name].iloc[place] - share / 2), color=_ink(colour),
                ha=side, va="center", fontweight="bold", fontsize=9,
            )  # fmt: skip
        else:
            ax.annotate(
                f"{name}, at most {share:.0%}", (x[place], 1), (0, 3), color=INK, fontsize=9,
                textcoords="offset points", ha=side, va="bottom", annotation_clip=False,
            )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(x, [_short(value) for value in x])
    ax.minorticks_off()
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1))
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.set_xlabel(table.index.name)
    return ax


def _short(value: float) -> str:
    """A number of positions as people write it: 512, 4K, 1M."""
    for size, letter in ((2**20, "M"), (2**10, "K")):
        if value >= size and value % size == 0:
            return f"{value / size:,.0f}{letter}"
    return f"{value:,.0f}"


def stacked(
    table: pd.DataFrame, quantity: str, limit: float, limit_name: str, ax: Axes | None = None
) -> Axes:
    """A bar a row of `table`, its columns one upon the other, and a dashed line at the limit.

    A bar that crosses the line is crossed out.
    """
    ax = _axes(ax)
    bottom = np.zeros(len(table))
    for colour, name in zip(COLOURS, table.columns, strict=False):
        ax.bar(range(len(table)), table[name], bottom=bottom, color=colour, label=name, width=0.75)
        bottom += table[name].to_numpy()
    for place, total in enumerate(bottom):
        fits = total <= limit
        text = f"{total:,.1f}" + ("" if fits else "\ntoo much")
        weight = "normal" if fits else "bold"
        ax.annotate(
            text, (place, total), (0, 3), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, color=INK, fontweight=weight,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )  # fmt: skip
    ax.axhline(limit, color=INK, linestyle="--", linewidth=1)
    ax.annotate(
        limit_name, (-0.45, limit), (0, 3), textcoords="offset points", fontsize=8, color=INK
    )
    ax.set_xticks(range(len(table)), table.index)
    ax.set_xlim(-0.5, len(table) - 0.5)
    ax.margins(y=0.15)
    ax.set_xlabel(table.index.name)
    ax.set_ylabel(quantity)
    ax.grid(axis="y")
    _legend_above(ax)
    return ax


TIMES = {"1 hour": 1 / 24, "1 day": 1, "1 week": 7, "1 month": 30, "1 year": 365, "10 years": 3650}


def days(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """A line a column of `table`, in days, over its index; both axes are logarithmic."""
    ax = _axes(ax, height=4.0)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        ax.plot(table[name], color=colour, linewidth=2, marker="o", ms=3)
        ax.annotate(
            name, (table.index[0], table[name].iloc[0]), (-6, 0), color=INK, fontsize=8,
            textcoords="offset points", ha="right", va="center", annotation_clip=False,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )  # fmt: skip
    low, high = table.min(axis=None), table.max(axis=None)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(table.index, [f"{x:,}" for x in table.index])
    inside = {name: size for name, size in TIMES.items() if low <= size <= high}
    ax.set_yticks(list(inside.values()), inside)
    ax.minorticks_off()
    ax.yaxis.tick_right()  # the names of the lines are on the left
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(table.index.name)
    ax.grid()
    return ax


def rates(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """A line a column of `table` over its index, named at its end; both axes are logarithmic."""
    ax = _axes(ax)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        line = table[name].dropna()
        ax.plot(line, color=colour, linewidth=2, marker="o", ms=4)
        ax.annotate(
            f" {name}", (line.index[-1], line.iloc[-1]), (3, 0), textcoords="offset points",
            color=INK, va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(table.index, [f"{x:,}" for x in table.index])
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:,g}")
    ax.minorticks_off()
    ax.set_xlabel(table.index.name)
    ax.set_ylabel(quantity)
    ax.grid()
    return ax


def outcomes(
    values: Mapping[str, tuple[float, str]],
    published: Sequence[tuple[str, str]],
    quantity: str,
    ax: Axes | None = None,
) -> Axes:
    """A bar for each of `values` (size, as written), and published numbers in words below.

    A published number with a note beside it is bold: it is the one that comes out.
    """
    ax = _axes(ax, height=0.6 + 0.32 * (len(values) + len(published)))
    for y, (colour, (size, text)) in enumerate(zip((GREY, BLUE), values.values(), strict=False)):
        ax.barh(y, size, color=colour, height=0.7)
        ax.annotate(
            text, (size, y), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK
        )
    for y, (text, note) in enumerate(published, start=len(values)):
        ax.annotate(
            f"{text}   {note}", (0, y), (4, 0), textcoords="offset points", va="center",
            fontsize=9, color=INK, fontweight="bold" if note else "normal",
        )  # fmt: skip
    rows = len(values) + len(published)
    labels = [*values, "published", *[""] * rows]
    ax.set_yticks(range(rows), labels[:rows])
    ax.set_ylim(rows - 0.4, -0.6)
    # Room on the right for what is written beside the longest bar.
    ax.set_xlim(0, 1.5 * max(size for size, _ in values.values()))
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel(quantity)
    return ax


def float_bits(rows: Mapping[str, Stored], ax: Axes | None = None) -> Axes:
    """Each row's number bit by bit: one box a bit, its three fields apart in tone and by name."""
    ax = _axes(ax, height=0.5 + 0.85 * len(rows))
    for y, stored in enumerate(rows.values()):
        x = 0
        for field, (face, ink) in FIELDS.items():
            bits = getattr(stored, field)
            for place, bit in enumerate(bits, start=x):
                ax.add_patch(plt.Rectangle((place, y - 0.3), 1, 0.6, fc=face, ec="white"))
                ax.text(
                    place + 0.5, y, bit, color=ink, family="monospace", ha="center",
                    va="center_baseline",
                )  # fmt: skip
            name = field if field != "sign" else "±"
            ax.text(
                x + len(bits) / 2, y - 0.34, name, fontsize=8, color=INK, ha="center", va="bottom"
            )
            x += len(bits)
        told = f"= {stored.value:.9g}, {stored.kind}"
        ax.text(0, y + 0.34, told, fontsize=8, color=INK, va="top")
    ax.set(xlim=(-0.2, 32.2), ylim=(len(rows) - 0.4, -0.6))
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def float_ranges(
    formats: Sequence[FloatFormat], marks: Mapping[str, float], ax: Axes | None = None
) -> Axes:
    """How far each format reaches on a log axis: normal numbers solid, subnormal ones pale.

    `marks` are numbers that are pointed out on the axis.
    """
    ax = _axes(ax, height=1.3 + 0.5 * len(formats))
    for y, each in enumerate(formats):
        low, middle, high = (
            np.log10(size) for size in (each.smallest_subnormal, each.smallest_normal, each.largest)
        )
        ax.barh(y, middle - low, left=low, color=PALE[1], ec=BLUE, height=0.5)
        ax.barh(y, high - middle, left=middle, color=BLUE, ec=BLUE, height=0.5)
        digits = f"{(each.mantissa_bits + 1) * np.log10(2):.1f} digits"
        ax.text((middle + high) / 2, y, digits, color="white", ha="center", va="center", fontsize=8)
    for name, value in marks.items():
        ax.axvline(np.log10(value), color=INK, linestyle="--", linewidth=1, zorder=3)
        ax.annotate(
            name, (np.log10(value), -0.5), (0, 3), textcoords="offset points", fontsize=8,
            color=INK, ha="center", va="bottom", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(range(len(formats)), [each.name for each in formats])
    ax.set_ylim(len(formats) - 0.5, -0.5)
    ticks = range(-45, 40, 15)
    ax.set_xticks(ticks, [f"$10^{{{tick}}}$" for tick in ticks])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("size of a number (pale: subnormal, its digits run out)")
    ax.grid(axis="x")
    return ax
