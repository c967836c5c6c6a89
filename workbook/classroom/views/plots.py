"""What all pictures share: their style, how they are shown, and the plots that fit any table.

Each plot takes data, draws one idea and returns the axes; those of one notebook are in the file of
its name. Importing this module sets one style for all of them. The colours are Okabe
and Ito's, which stay apart for colour-blind eyes; what a colour says, a label says too. Labels keep
to letters that matplotlib's own font has: a Chinese character or an emoji would come out as an
empty box. At the end are tables of numbers as people read them.
"""

import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from io import BytesIO
from itertools import combinations
from math import isqrt
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.rcsetup import cycler
from matplotlib.ticker import MaxNLocator, PercentFormatter
from PIL import Image

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PINK, YELLOW, GREY = "#56B4E9", "#CC79A7", "#F0E442", "#999999"
COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK, YELLOW, GREY)
INK = "#222222"
PALE = ("#f2f2f2", "#d9d9d9")  # for what is as it should be, beside what is coloured
DARK = (BLUE, GREEN)  # backgrounds on which white letters can be read
FIGURE_WIDTH, FIGURE_HEIGHT = 6.4, 3.6  # inches, of a figure
X_AXES = {"step": "steps", "tokens": "tokens", "seconds": "time (seconds)"}  # of a run's log
# How a theory, a limit or a reference is drawn beside what was measured.
DASHED: dict[str, Any] = {"color": INK, "linestyle": "--", "linewidth": 1}
CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}  # a text on its place
ABOVE: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1)}  # a legend on the axes
# What has one colour in all pictures: the parts of the model, and the kinds of memory.
FIXED_COLOURS = {
    "embedding": SKY,
    "attention": ORANGE,
    "projections": ORANGE,
    "scores + weighted sum": YELLOW,
    "feed-forward": BLUE,
    "norms": GREY,
    "head": GREEN,
    "parameters": "#555555",
    "gradients": GREY,
    "two moments": "#cccccc",
    "activations": RED,
}

plt.rcParams.update(
    {
        "figure.figsize": (FIGURE_WIDTH, FIGURE_HEIGHT),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.axisbelow": True,
        "grid.color": "#dddddd",
        "legend.frameon": False,
    }
)


def show(picture: Axes | Figure, alt: str) -> None:
    """Display the picture as a PNG whose description in words is `alt`.

    The words are the output's plain text and the image's `alt`, so that a screen reader, a
    terminal and the exported write-up have them.
    """
    data, metadata = bundle(picture, alt)
    display(data, metadata=metadata, raw=True)


def bundle(picture: Axes | Figure, alt: str) -> tuple[dict, dict]:
    """The output that shows a picture, and its metadata; the figure is closed."""
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(f"show expects alt text that says what the picture shows, got {alt!r}")
    figure: Any = picture if isinstance(picture, Figure) else picture.figure
    data = {"image/png": png(figure), "text/plain": alt}
    width = round(figure.get_figwidth() * 100)  # CSS pixels
    plt.close(figure)  # else Jupyter shows it a second time, without its words
    return data, {"image/png": {"alt": alt, "width": width}}


def figures_in(picture: Any) -> list[Figure]:
    """The figures that somebody hands in: matplotlib's, axes, saved pictures, or a list of these.

    Raises: ValueError for anything else.
    """
    if isinstance(picture, list | tuple | np.ndarray):
        # The axes of one figure, as `plt.subplots` returns them, are one picture.
        return [*dict.fromkeys(figure for part in picture for figure in figures_in(part))]
    if isinstance(picture, Figure):
        return [picture]
    if isinstance(picture, Axes):
        return [picture.get_figure(root=True)]
    if isinstance(picture, str | os.PathLike):
        return [_saved(Path(picture))]
    kind = f"the module {picture.__name__}" if inspect.ismodule(picture) else type(picture).__name__
    raise ValueError(
        "expected a matplotlib figure, its axes, the path of a saved picture, or a list of these,"
        f" not {kind}; `plt.gcf()` is the figure that was drawn last"
    )


def _saved(path: Path) -> Figure:
    """A picture in a file as a figure of its size. Raises: ValueError if there is none."""
    try:
        pixels = plt.imread(path)
    except FileNotFoundError:
        raise ValueError(f"there is no picture {path}") from None
    except (OSError, SyntaxError, ValueError) as error:  # the second one: of a damaged PNG
        raise ValueError(f"{path} is not a picture that can be read, such as a PNG") from error
    height, width = pixels.shape[:2]
    figure = Figure(figsize=(width / 100, height / 100), dpi=100)
    figure.set_layout_engine("none")
    figure.add_axes((0, 0, 1, 1)).axis("off")
    figure.axes[0].imshow(pixels, cmap="gray")
    return figure


def png(figure: Figure) -> bytes:
    """The figure as PNG bytes: the same figure gives the same bytes on one machine.

    256 colours are plenty for a map, 128 for lines and their blurred edges; they make the file
    about three times smaller. With 32, orange and vermilion became one colour.
    """
    colours = 256 if any(ax.images for ax in figure.axes) else 128
    drawn = BytesIO()
    small = BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    image = Image.open(drawn).convert("RGB")
    # A palette fitted to all pixels is spent on shades of the background, and gives a thin line the
    # colour of its neighbour. So a colour counts by the root of the area that it covers.
    areas = image.getcolors(maxcolors=image.width * image.height)
    pixels: list[Any] = [colour for area, colour in areas for _ in range(isqrt(area))]
    sample = Image.new("RGB", (len(pixels), 1))
    sample.putdata(pixels)
    palette = sample.quantize(colours, kmeans=4)
    shades = np.array(palette.getpalette()).reshape(-1, 3)
    shades[shades.min(axis=1) > 240] = 255  # the background stays white
    palette.putpalette(shades.ravel().tolist())
    image.quantize(palette=palette, dither=Image.Dither.NONE).save(small, "png", optimize=True)
    return small.getvalue()


def axes(height: float | None = None) -> Axes:
    """The axes of a new figure, `height` inches high."""
    return plt.subplots(figsize=(FIGURE_WIDTH, height or FIGURE_HEIGHT))[1]


def note(ax: Axes, text: str, place: tuple, by: tuple[float, float], **look) -> None:
    """Write a text beside a place in the data, offset `by` points to the right and up."""
    ax.annotate(text, place, by, textcoords="offset points", **look)


def named_rows(ax: Axes, names: Iterable[str]) -> None:
    """Name the rows at y = 0, 1, 2, ...; the first is on top, as in a table."""
    names = list(names)
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()


def cell(
    ax: Axes, x: float, y: float, text: object, face: str, height: float = 1.0, **look
) -> None:
    """Draw a box of width 1 with a corner at (x, y) and a text in its middle."""
    ax.add_patch(Rectangle((x, y), 1, height, fc=face, ec="white"))
    ax.text(x + 0.5, y + height / 2, str(text), **CENTRED | look)


def bars_of(ax: Axes) -> list[Any]:
    """The bars that were drawn, one container per column of a table."""
    return [drawn for drawn in ax.containers if isinstance(drawn, BarContainer)]


def colours_of(names: Collection[str]) -> Sequence[str]:
    """The colours of some columns: their fixed ones, or COLOURS in order if any has none."""
    known = set(names) <= set(FIXED_COLOURS)
    return [FIXED_COLOURS[name] for name in names] if known else COLOURS


def legend_above(ax: Axes) -> None:
    """A legend on top of the axes, its entries side by side in as few rows as fit."""
    labels = ax.get_legend_handles_labels()[1]
    rows = -(-sum(len(label) + 7 for label in labels) // 78)
    ax.legend(**ABOVE, ncols=-(-len(labels) // rows))


def level(ax: Axes, name: str, height: float, x: float, **look) -> None:
    """A dashed line at a height, with its name above it from `x` on."""
    ax.axhline(height, **DASHED, zorder=1)  # above the grid
    note(ax, name, (x, height), (0, 3), fontsize=8, color=INK, **look)


def log2_axis(
    ax: Axes, ticks: Sequence[float], written: Callable[[float], str] = "{:,}".format
) -> None:
    """Make x logarithmic, with these ticks and no others. Set a log scale of y before the call."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [written(tick) for tick in ticks])
    ax.minorticks_off()


def tens(ax: Axes, powers: Iterable[int]) -> None:
    """Label the ticks of x, which are logarithms, as powers of ten."""
    ax.set_xticks(list(powers), [f"$10^{{{power}}}$" for power in powers])


def grouped_bars(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """One group of bars per row of `table`, one bar per column, its value written at its end.

    `quantity` names what is measured and its unit, for the axis. A single column has no legend.
    """
    ax = ax or axes(0.9 + 0.2 * table.size)
    table.plot.barh(ax=ax, width=0.8, color=COLOURS, legend=False)
    for bars in bars_of(ax):
        ax.bar_label(bars, fmt=_short, padding=3, fontsize=8)
    named_rows(ax, table.index)
    ax.set(xlabel=quantity, ylabel=None, xmargin=0.1)
    ax.grid(axis="x")
    if len(table.columns) > 1:
        legend_above(ax)
    return ax


def shares(table: pd.DataFrame, quantity: str) -> Axes:
    """One bar per row of `table`, cut into its columns' shares; small shares have no number."""
    ax = axes(1.2 + 0.42 * len(table))
    colours = colours_of(table.columns)
    parts = table.div(table.sum(axis=1), axis=0)
    parts.plot.barh(ax=ax, stacked=True, width=0.7, color=colours, legend=False)
    for colour, bars in zip(colours, bars_of(ax), strict=False):
        texts = [f"{share:.0%}" if share >= 0.045 else "" for share in bars.datavalues]
        ink = "white" if colour in DARK else INK
        ax.bar_label(bars, texts, label_type="center", color=ink, fontsize=8)
    named_rows(ax, table.index)
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.set(xlim=(0, 1), xlabel=quantity, ylabel=table.index.name)
    legend_above(ax)
    return ax


def points(values: Mapping[str, float], quantity: str) -> Axes:
    """One row per value, the largest on top: a point on a log axis, with the value beside it."""
    ax = axes(0.9 + 0.32 * len(values))
    names = sorted(values, key=values.get, reverse=True)
    for y, value in enumerate(values[name] for name in names):
        ax.plot(value, y, "o", ms=8, color=BLUE)
        # Three digits: 3,180 and not 3.18e+03.
        note(ax, f"{float(f'{value:.3g}'):,g}", (value, y), (9, 0), va="center", color=INK)
    named_rows(ax, names)
    ax.set(xscale="log", xlabel=f"{quantity}, log scale", xmargin=0.2, ymargin=0.1)
    ax.grid(axis="x")
    return ax


def curves(
    table: pd.DataFrame,
    quantity: str,
    *,
    log: bool = False,
    log_y: bool = False,
    lowest: float | None = None,
    exact: pd.DataFrame | None = None,
    marks: Mapping[str, float] | None = None,
) -> Axes:
    """One line per column of `table` over its index, named at its end; dashed levels at `marks`.

    If ends lie too close for names, a legend has them. The name of the index labels the x axis,
    which is logarithmic with `log`; y is with `log_y`, and may begin at `lowest`, from where a 0
    runs off the bottom. Where a number is infinite, a line has a gap or its end. `exact` is dashed.
    """
    ax = axes()
    finite = _leaving(table.replace([np.inf, -np.inf], np.nan), lowest)
    for colour, name in zip(COLOURS, finite.columns, strict=False):
        look: dict[str, Any] = {"marker": "o", "ms": 4} if log else {}
        ax.plot(finite[name], color=colour, linewidth=2, label=name, **look)
    if exact is not None:
        ax.plot(_leaving(exact, lowest), **DASHED, zorder=3)
    if log_y:
        ax.set_yscale("log")
        ax.set_ylim(bottom=lowest)
    if log:
        log2_axis(ax, table.index)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not _name_ends(ax, [finite[name].dropna() for name in finite.columns]):
        ax.legend(loc="best")
    for name, height in (marks or {}).items():
        level(ax, name, height, table.index[0])
    ax.set(xlabel=table.index.name, ylabel=quantity)
    ax.grid()
    return ax


def _leaving(table: pd.DataFrame, lowest: float | None) -> pd.DataFrame:
    """Lines that leave a picture at its lower edge, and are not drawn below it.

    On a log axis a 0 lies infinitely deep: a line to it would fall at the point before.
    """
    if lowest is None:
        return table
    below = table < lowest
    return table.clip(lower=lowest).mask(below & below.shift(fill_value=False))


def _name_ends(ax: Axes, lines: Sequence[pd.Series]) -> bool:
    """Write the name of each line at its end, if all have room there."""
    ends = [(line.index[-1], line.iloc[-1]) for line in lines]
    ax.get_ylim()  # settles the limits, on which the next line depends
    heights = (ax.transScale + ax.transLimits).transform(ends)[:, 1]  # 0 to 1 in the picture
    placed = [(x, height) for (x, _), height in zip(ends, heights, strict=True)]
    close = any(
        one[0] == other[0] and abs(one[1] - other[1]) < 0.06
        for one, other in combinations(placed, 2)
    )
    if close or min(heights) < 0:
        return False
    for colour, line, end in zip(COLOURS, lines, ends, strict=False):
        note(
            ax,
            line.name,
            end,
            (7, 0),
            color=colour,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )
    return True


def _short(value: float) -> str:
    """A number as a label: whole numbers in full, others with two decimals."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table as text: 2127057600 is 2,127,057,600, 0.6691 keeps four digits, True is yes.

    >>> readable(pd.DataFrame({"count": [6400], "size": [1234.5678], "equal": [True]}))
       count   size equal
    0  6,400  1,235   yes
    """
    return table.map(_written)


def fold_away(title: str, table: pd.DataFrame) -> None:
    """Display a table behind a fold with this title; a terminal shows all of it."""
    html = f"<details><summary>{title}</summary>{table.to_html()}</details>"
    display({"text/html": html, "text/plain": f"{title}\n{table}"}, raw=True)


def _written(value: Any) -> Any:
    """One cell; text stays as it is, and a missing value becomes empty."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}"
    if isinstance(value, Real):
        value = float(value)
        if np.isnan(value):
            return ""
        small = value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e15)
        return f"{value:.4g}" if small else f"{value:,.{_decimals(value)}f}"
    return value


def _decimals(value: float) -> int:
    """How many decimals give four digits, for numbers from a thousandth up."""
    return max(3 - int(np.floor(np.log10(abs(value)))), 0) if value else 0
