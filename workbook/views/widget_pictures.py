"""What live views of tokens look like on paper: framed tokens in lines, and ranked pairs."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from workbook.tokenization.bpe import Pair
from workbook.views.live import EDGE, INK, TONES
from workbook.views.plots import BLUE, GREY
from workbook.views.visible import drawable, visible

COLUMNS = 72  # characters of the monospaced font that fit side by side
LINE = 0.27  # inches from line to line, and as much again where something is written below
Framed = tuple[bytes | str, str, str]  # a token, its tone in `TONES`, a note; no tone: plain text


def token_lines(lines: Sequence[Sequence[Framed]], ax: Axes | None = None) -> Axes:
    """Tokens in frames, one after the other; each of `lines` begins anew, long ones are wrapped.

    Letters that the font lacks are written as escapes.
    """
    placed, depth = _placed(lines)
    noted = any(note for *_, note in placed)
    if ax is None:
        height = 0.1 + LINE * depth * (1.7 if noted else 1)
        ax = plt.subplots(figsize=(plt.rcParams["figure.figsize"][0], height))[1]
    for x, y, text, tone, note in placed:
        middle, height = x + len(text) / 2, 0.45 if noted else 0.7
        if tone:
            frame = FancyBboxPatch(
                (x - 0.35, y + 0.1), len(text) + 0.7, height, boxstyle="square,pad=0",
                fc=TONES[tone][1], ec=EDGE, lw=2 if tone == "new" else 0.8,
            )  # fmt: skip
            ax.add_patch(frame)
        ax.text(
            middle, y + 0.1 + height / 2, text, color=TONES[tone][0] if tone else INK,
            family="monospace", fontsize=9, weight="bold" if tone == "new" else "normal",
            ha="center", va="center_baseline", parse_math=False,
        )  # fmt: skip
        ax.text(middle, y + 0.6, note, color=INK, fontsize=7, ha="center", va="top")
    ax.set(xlim=(-0.5, COLUMNS), ylim=(depth, 0))
    ax.set_axis_off()
    return ax


def _placed(
    lines: Sequence[Sequence[Framed]],
) -> tuple[list[tuple[float, int, str, str, str]], int]:
    """Column, line, text, tone and note of every token, and how many lines there are."""
    placed, y = [], 0
    for line in lines:
        x = 0.0
        for token, tone, note in line:
            text = drawable(visible(token) if tone else token)
            text = text if len(text) < COLUMNS else text[: COLUMNS - 2] + "…"
            width = max(len(text), 0.8 * len(note)) + 1.2
            if x and x + width > COLUMNS:
                x, y = 0.0, y + 1
            placed.append((x + (width - 1.2 - len(text)) / 2, y, text, tone, note))
            x += width
        y += 1
    return placed, y


def pair_bars(ranking: Sequence[tuple[Pair, int]], tied: int, ax: Axes) -> Axes:
    """A bar a pair, as long as its count; the first is merged next, the first `tied` are equal."""
    names = [drawable(" + ".join(map(visible, pair))) for pair, _ in ranking]
    counts = [count for _, count in ranking]
    colours = [BLUE] + [GREY] * (len(names) - 1)
    bars = ax.barh(range(len(names)), counts, color=colours[: len(names)])
    notes = ["next"] + ["tied" if place < tied else "" for place in range(1, len(names))]
    labels = [f"{count:,}  {note}".rstrip() for count, note in zip(counts, notes, strict=False)]
    ax.bar_label(bars, labels, padding=3, fontsize=8)
    ax.set_yticks(range(len(names)), names, family="monospace", fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.set_xlabel("how often the pair occurs")
    return ax
