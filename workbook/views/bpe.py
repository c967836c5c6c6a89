"""The pictures of notebook 02: tokenizers compared, a token's family tree, where the time goes."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.tokenization.watch import Ancestor
from workbook.views.plots import BLUE, COLOURS, GREY, INK, ORANGE, _axes

DAY = 24 * 60 * 60  # seconds


def tokenizers(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Each row of `table` (columns vocabulary, bytes/token, unknown) as a named point.

    Right is a large vocabulary, up are short sequences. A ring says that words are lost.
    """
    ax = _axes(ax)
    best = table["bytes/token"].max()
    for colour, (name, row) in zip(COLOURS, table.iterrows(), strict=False):
        place, lost = (row["vocabulary"], row["bytes/token"]), row["unknown"] > 0
        ax.plot(*place, "o", ms=11, mec=colour, mew=2.5, mfc="white" if lost else colour)
        text = f"{name}, {row['unknown']:.1%} unknown" if lost else name
        below = best / 2 < row["bytes/token"] < best  # beside the best there is room on one side
        ax.annotate(
            text, place, (0, -20 if below else 12), color=colour, textcoords="offset points",
            fontweight="bold", ha="center",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.margins(x=0.15)
    ax.set_ylim(0, 1.25 * best)
    ax.set_xlabel("vocabulary (ids, log scale)")
    ax.set_ylabel("compression (bytes/token)")
    ax.grid()
    return ax


def readable(token: bytes) -> str:
    """A token as a label: a space is ␣, a line end ↵; what is no plain text is hexadecimal."""
    text = token.decode("utf-8", errors="replace").replace(" ", "␣").replace("\n", "↵")
    return text if all(c in "␣↵" or "!" <= c <= "~" for c in text) else token.hex(" ")


def merge_tree(tree: Ancestor, ax: Axes | None = None) -> Axes:
    """A token above the two it was merged from, down to its bytes; small, the merges' numbers."""
    ax = _axes(ax, height=0.6 + 0.6 * _height(tree))
    for node, x, y, ends in _placed(tree, 0):
        for end, below in ends:
            ax.plot([end, end, x], [below, y, y], color=GREY, zorder=1)
        top = node is tree
        ax.text(
            x, y, readable(node.token), ha="center", va="center", family="monospace",
            color="white" if top else INK,
            bbox={"boxstyle": "round,pad=0.3", "fc": BLUE if top else "white",
                  "ec": GREY if node.merge else "none"},
        )  # fmt: skip
        if node.merge:
            ax.annotate(
                f"merge {node.merge:,}", (x, y), (0, -11), color=BLUE, fontsize=7,
                textcoords="offset points", ha="center", va="top",
                bbox={"boxstyle": "square,pad=0", "fc": "white", "ec": "none"},
            )  # fmt: skip
    ax.set(xlim=(-0.7, len(tree.token) - 0.3), ylim=(-0.5, _height(tree) + 0.5))
    ax.set_axis_off()
    return ax


def _height(tree: Ancestor) -> int:
    """The longest way from a token down to a byte, in merges."""
    return 1 + max(map(_height, tree.parts)) if tree.parts else 0


def _placed(
    tree: Ancestor, start: int
) -> list[tuple[Ancestor, float, int, list[tuple[float, int]]]]:
    """Every token with its x and y, and those of its parts; the bytes stand at x = 0, 1, 2, ..."""
    if not tree.parts:
        return [(tree, start, 0, [])]
    left, right = tree.parts
    lefts, rights = _placed(left, start), _placed(right, start + len(left.token))
    ends = [(x, y) for _, x, y, _ in (lefts[0], rights[0])]
    return [(tree, sum(x for x, _ in ends) / 2, _height(tree), ends), *lefts, *rights]


def profiles(tables: Mapping[str, pd.DataFrame], top: int = 6) -> Figure:
    """The functions that each profile (columns function, share) spends most time in, side by side.

    Waiting for a lock or for data is orange: no work is done there.
    """
    figure, axes = plt.subplots(1, len(tables), figsize=(8.4, 0.9 + 0.3 * top), sharex=True)
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        rows = table.head(top)
        colours = [ORANGE if is_waiting(name) else BLUE for name in rows["function"]]
        bars = ax.barh(rows["function"], rows["share"], color=colours)
        ax.bar_label(bars, [f"{share:.0%}" for share in rows["share"]], padding=3, fontsize=8)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.margins(x=0.15)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("share of own time")
    return figure


def is_waiting(function: str) -> bool:
    """Whether a function of a profile only waits: for a lock, a pipe or another process."""
    return function.endswith((".acquire", ".poll", ".select", ".sleep", ".read", ".wait"))


def ladder(seconds: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """What a job takes at each step of a ladder, the slowest on top, on a log axis."""
    slowest_last = sorted(seconds.items(), key=lambda step: step[1])
    ax = _axes(ax, height=1 + 0.4 * len(seconds))
    for at, (name, taken) in enumerate(slowest_last):
        ax.plot(taken, at, "o", color=BLUE, ms=9)
        ax.annotate(
            f"{name}: {taken:,.3g} s", (taken, at), xytext=(0, 9), textcoords="offset points",
            ha="center", color=INK,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.margins(x=0.25, y=0.2)
    ax.set_yticks([])
    ax.set_xlabel("time (seconds, log scale)")
    ax.grid(axis="x")
    return ax


def days_for(size: int, rates: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """The days that `size` bytes take at each of the `rates` (bytes/s), the slowest on top.

    What was measured here, by its name, is blue; what others report is grey.
    """
    ax = _axes(ax, height=0.9 + 0.32 * len(rates))
    slowest_first = sorted(rates, key=rates.get)
    for y, name in enumerate(slowest_first):
        days, colour = size / rates[name] / DAY, BLUE if "here" in name else GREY
        duration = f"{days:,.1f} days" if days > 1 else f"{24 * days:.1f} hours"
        ax.plot(days, y, "o", ms=8, color=colour)
        ax.annotate(
            duration, (days, y), (9, 0), textcoords="offset points",
            va="center", fontsize=9, color=INK,
        )  # fmt: skip
    ax.set_yticks(range(len(rates)), slowest_first)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.margins(x=0.2, y=0.1)
    ax.set_xscale("log")
    ax.set_xlabel("time (days, log scale)")
    ax.grid(axis="x")
    return ax
