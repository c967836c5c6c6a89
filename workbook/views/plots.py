"""The workbook's pictures: each function takes data and an `ax`, draws one idea, returns the axes.

Importing this module sets one style for all of them. The colours are Okabe and Ito's, which stay
apart for colour-blind eyes; what a colour says, a label says too. Labels keep to letters that
matplotlib's own font has: a Chinese character or an emoji would come out as an empty box.
"""

from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from workbook.tokenization import utf8

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, YELLOW, GREY = "#56B4E9", "#CC79A7", "#F0E442", "#999999"
COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK, YELLOW, GREY)
INK = "#222222"
PALE = ("#f2f2f2", "#d9d9d9")  # for what is as it should be, beside what is coloured

plt.rcParams.update(
    {
        "figure.figsize": (6.4, 3.6),
        "figure.dpi": 100,
        "savefig.dpi": 144,  # 922 pixels wide: sharp on a good screen, and a small file
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.prop_cycle": plt.cycler(color=COLOURS),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "legend.frameon": False,
    }
)


def show(picture: Axes | Figure, alt: str) -> None:
    """Nothing; displays the picture as a PNG whose description in words is `alt`.

    The words are the output's plain text and the image's `alt`, so that a screen reader, a
    terminal and the exported write-up have them.
    """
    data, metadata = bundle(picture, alt)
    display(data, metadata=metadata, raw=True)


def bundle(picture: Axes | Figure, alt: str) -> tuple[dict, dict]:
    """The output that shows a picture, and its metadata; the figure is closed."""
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"show expects alt text that says what the picture shows, got {alt!r}")
    figure = picture if isinstance(picture, Figure) else picture.figure
    data = {"image/png": png(figure), "text/plain": alt}
    metadata = {"image/png": {"alt": alt, "width": _width(figure)}}
    plt.close(figure)  # else Jupyter shows it a second time, without its words
    return data, metadata


def png(figure: Figure) -> bytes:
    """The figure as PNG bytes: the same figure gives the same bytes on one machine.

    256 colours are plenty for a map, 48 for lines; they make the file three or four times smaller.
    k-means moves them to where they are needed: a small red cross stays red.
    """
    colours = 256 if any(ax.images for ax in figure.axes) else 48
    drawn, small = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    Image.open(drawn).convert("RGB").quantize(colours, kmeans=4).save(small, "png", optimize=True)
    return small.getvalue()


def _width(figure: Figure) -> int:
    """The width on the page in CSS pixels; the file has more, for sharp screens."""
    return round(figure.get_figwidth() * 100)


def _short(value: float) -> str:
    """A number as a label: whole numbers in full, others with two decimals."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def _axes(ax: Axes | None, height: float | None = None) -> Axes:
    """The axes to draw on: those given, else those of a new figure `height` inches high."""
    if ax is not None:
        return ax
    width, usual = plt.rcParams["figure.figsize"]
    return plt.subplots(figsize=(width, height or usual))[1]


def grouped_bars(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """One group of bars a row of `table`, one bar a column, each with its value written at its end.

    `quantity` names what is measured and its unit, for the axis.
    """
    ax = _axes(ax, height=0.9 + 0.2 * table.size)
    thickness = 0.8 / len(table.columns)
    rows = np.arange(len(table))
    for i, column in enumerate(table.columns):
        places = rows + (i - (len(table.columns) - 1) / 2) * thickness
        bars = ax.barh(places, table[column], thickness, label=column, color=COLOURS[i])
        ax.bar_label(bars, fmt=_short, padding=3, fontsize=8)
    ax.set_yticks(rows, table.index)
    ax.invert_yaxis()  # the first row on top, as in the table
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(quantity)
    ax.margins(x=0.1)
    ax.grid(axis="x")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(table.columns))
    return ax


def size_steps(
    table: pd.DataFrame, quantity: str, marks: Mapping[str, int], ax: Axes | None = None
) -> Axes:
    """A staircase a column of `table` over its index, on a log axis; `marks` names places on it."""
    ax = _axes(ax)
    for i, column in enumerate(table.columns):
        # A line that lies on another would hide it: each is lowered by a hair.
        y = table[column] - 0.06 * i
        ax.step(table.index, y, where="post", color=COLOURS[i], linewidth=2.5)
        ax.annotate(
            column, (table.index[-1], y.iloc[-1]), (6, 6 - 12 * i), color=COLOURS[i],
            textcoords="offset points", fontweight="bold", va="center",
        )  # fmt: skip
    for name, place in marks.items():
        ax.axvline(place, color=GREY, linestyle=":", linewidth=1, zorder=0)
        ax.annotate(name, (place, 0.15), (3, 0), textcoords="offset points", fontsize=8, color=INK)
    ax.set_xscale("log", base=2)
    ax.set_xticks(table.index, [f"U+{point:04X}" for point in table.index])
    ax.set_ylim(0, table.to_numpy().max() + 0.5)
    ax.set_yticks(range(1 + table.to_numpy().max()))
    ax.set_xlabel("code point (log scale)")
    ax.set_ylabel(quantity)
    return ax


def bit_layout(rows: Mapping[str, bytes], ax: Axes | None = None) -> Axes:
    """Each row's UTF-8 bytes bit by bit: the template dark, the number's own bits light."""
    ax = _axes(ax, height=0.7 + 0.55 * len(rows))
    stride = 8.6  # eight bits and a gap
    for y, data in enumerate(rows.values()):
        for i, byte in enumerate(data):
            bits = f"{byte:08b}"
            fixed = utf8.template_bits(byte)
            for j, bit in enumerate(bits):
                x, template = stride * i + j, j < fixed
                face, ink, weight = (
                    (BLUE, "white", "bold") if template else (PALE[0], INK, "normal")
                )
                ax.add_patch(plt.Rectangle((x, y - 0.35), 1, 0.7, fc=face, ec="white"))
                ax.text(
                    x + 0.5, y, bit, color=ink, weight=weight,
                    family="monospace", ha="center", va="center",
                )  # fmt: skip
            ax.text(stride * i + 4, y - 0.42, f"{byte:02X}", ha="center", va="bottom", fontsize=8)
    widest = max(len(data) for data in rows.values())
    ax.set(xlim=(-0.2, stride * widest), ylim=(len(rows) - 0.5, -0.75))
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def byte_pairs(
    kinds: Sequence[Sequence[str]], valid: Collection[str], ax: Axes | None = None
) -> Axes:
    """A 256 x 256 map of the first byte (down) and the second (across): pale where `valid`.

    `kinds[first][second]` names what the pair is. Every kind has a number, which stands in its
    largest stretch and in the key, beside how many pairs are of that kind.
    """
    names, codes, counts = np.unique(np.array(kinds), return_inverse=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: (names[i] not in valid, -counts[i]))
    rank = np.argsort(order)[codes.reshape(256, 256)]
    pale = sum(name in valid for name in names)
    colours = PALE[:pale] + COLOURS[: len(names) - pale]
    ax = _axes(ax, height=4.1)
    ax.imshow(rank, cmap=ListedColormap(colours), interpolation="nearest")
    _number_regions(rank, ax)
    for number, which in enumerate(order):
        y = 40 + 18 * number
        ax.add_patch(plt.Rectangle((295, y - 5), 10, 10, fc=colours[number], ec=GREY))
        text = f"{number + 1}  {names[which]}: {counts[which]:,}"
        ax.text(311, y, text, va="center", fontsize=8)
    ticks = range(0, 256, 32)
    ax.set_xticks(ticks, [f"{tick:02X}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:02X}" for tick in ticks])
    ax.set(xlim=(-0.5, 430), ylim=(255.5, -0.5))  # the key stands beside the map
    ax.spines[:].set_visible(False)
    ax.set_xlabel("second byte (hexadecimal)", loc="left")
    ax.set_ylabel("first byte (hexadecimal)")
    return ax


def _number_regions(rank: np.ndarray, ax: Axes) -> None:
    """Write 1 + `rank` once into each region, or beside the map where a region is too thin."""
    spots = []
    for number in range(rank.max() + 1):
        region = rank == number
        thin = region.sum() < 1_000
        spots.append((*(_rightmost(region) if thin else _middle(region)), thin, number))
    free = 0  # the height in the margin from which on there is room for a number
    for y, x, thin, number in sorted(spots):
        place = (274, max(y, free)) if thin else (x, y)
        free = place[1] + 17 if thin else free
        ax.annotate(
            str(number + 1), (x, y), place, weight="bold", fontsize=9, ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.15", "fc": "white", "ec": INK},
            arrowprops={"arrowstyle": "-", "color": INK} if thin else None,
        )  # fmt: skip


def _rightmost(mask: np.ndarray) -> tuple[int, int]:
    """Row and column of the cell of `mask` that lies furthest to the right."""
    column = np.flatnonzero(mask.any(axis=0))[-1]
    return int(mask[:, column].argmax()), int(column)


def _middle(mask: np.ndarray) -> tuple[int, int]:
    """Row and column of a cell in the middle of the tallest stretch of `mask`."""
    row = _longest_run(mask[:, mask.sum(axis=0).argmax()])
    return row, _longest_run(mask[row])


def _longest_run(line: np.ndarray) -> int:
    """The index in the middle of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]])))
    starts, ends = edges[::2], edges[1::2]
    longest = (ends - starts).argmax()
    return int(starts[longest] + ends[longest]) // 2


def curves(
    table: pd.DataFrame,
    quantity: str,
    ax: Axes | None = None,
    *,
    log: bool = False,
    marks: Mapping[str, float] | None = None,
) -> Axes:
    """A line a column of `table` over its index, named at its end; dashed levels at the `marks`.

    Where ends lie too close for names, a legend has them. The name of the index labels the x axis,
    which is logarithmic with `log`.
    """
    ax = _axes(ax)
    ends = {column: table[column].dropna() for column in table.columns}
    close = 0.06 * (table.max(axis=None) - table.min(axis=None))
    apart = all(
        one.index[-1] != other.index[-1] or abs(one.iloc[-1] - other.iloc[-1]) > close
        for one, other in combinations(ends.values(), 2)
    )
    for colour, (name, line) in zip(COLOURS, ends.items(), strict=False):
        ax.plot(line, color=colour, linewidth=2, marker="o" if log else None, ms=4, label=name)
        if apart:
            ax.annotate(
                name, (line.index[-1], line.iloc[-1]), (7, 0), color=colour,
                textcoords="offset points", fontweight="bold", va="center", annotation_clip=False,
            )  # fmt: skip
    if not apart:
        ax.legend(loc="best")
    for name, level in (marks or {}).items():
        ax.axhline(level, color=INK, linestyle="--", linewidth=1, zorder=0)
        ax.annotate(
            name, (table.index[0], level), (0, 3), textcoords="offset points", fontsize=8, color=INK
        )
    if log:
        ax.set_xscale("log", base=2)
        ax.set_xticks(table.index, [f"{x:,}" for x in table.index])
        ax.minorticks_off()
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(table.index.name)
    ax.set_ylabel(quantity)
    ax.grid()
    return ax
