"""Notebook 03: the model from outside, and what goes on in its parts, as pictures.

The live views are RoPE as turning arrows, and the attention viewer: what attends to what.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Rectangle
from numpy.typing import ArrayLike

from workbook.classroom.views import live, plots
from workbook.classroom.views.live import Live, Shown, drawable, plural, visible
from workbook.classroom.views.plots import BLUE, CENTRED, GREY, INK, PALE, RED, axes
from workbook.config import ModelConfig

TINTS = ("#d3e8f7", "#fbe3b5", "#cbeee1", "#f6d8e8")  # light enough to write on
# The parts of the model, in tints of the colours that they have in all plots.
EMBEDDING_TINT = "#d6eefb"
ATTENTION_TINT = TINTS[1]
FEED_FORWARD_TINT = "#b0cfe6"
HEAD_TINT = TINTS[2]
BOX: dict[str, Any] = {"boxstyle": "round,pad=0.08", "ec": GREY}


def architecture(config: ModelConfig) -> Axes:
    """The path of a batch through a pre-norm model, from left to right, with the shapes below.

    One block is drawn; the line above it is the residual stream, to which each layer adds.
    """
    ax = axes(2.5)
    low, stream = 0.4, 1.5  # heights of the layers in a block, and of the residual stream
    ax.plot([0.1, 9.7], [stream, stream], color=INK, lw=1.5, zorder=1)
    for branch, end in ((1.8, 4.6), (4.9, 7.7)):  # away from the stream, and back into it
        ax.plot([branch, branch, end, end], [stream, low, low, stream], color=INK, lw=1.5, zorder=1)
        ax.text(
            end,
            stream,
            "+",
            **CENTRED,
            fontsize=11,
            zorder=4,
            bbox={"boxstyle": "circle,pad=0.1", "fc": "white", "ec": INK},
        )
    for x, y, name, colour in (
        (0.9, stream, "embed", EMBEDDING_TINT),
        (2.5, low, "norm", PALE[0]),
        (3.7, low, "attention", ATTENTION_TINT),
        (5.6, low, "norm", PALE[0]),
        (6.8, low, "feed-\nforward", FEED_FORWARD_TINT),
        (8.6, stream, "norm", PALE[0]),
        (9.7, stream, "head", HEAD_TINT),
    ):
        box = FancyBboxPatch((x - 0.42, y - 0.28), 0.84, 0.56, fc=colour, zorder=3, **BOX)
        ax.add_patch(box)
        ax.text(x, y, name, **CENTRED, fontsize=8, zorder=4, color=INK)
    ax.add_patch(FancyBboxPatch((1.6, -0.1), 6.3, 2, fc="none", ls="--", zorder=0, **BOX))
    for x, y, words in (
        (-0.45, stream, "tokens"),
        (10.6, stream, "logits"),
        (4.75, 2.08, f"a block, {config.num_layers} times"),
    ):
        ax.text(x, y, words, **CENTRED, fontsize=9, color=INK)
    for x, shape in (
        (0.3, "(batch, seq)"),
        (4.75, f"(batch, seq, {config.d_model})"),
        (9.7, f"(batch, seq, {config.vocab_size:,})"),
    ):
        ax.text(x, -0.5, shape, ha="center", fontsize=8, family="monospace", color=INK)
    ax.set(xlim=(-0.9, 11.2), ylim=(-0.7, 2.3))
    ax.set_axis_off()
    return ax


def heat_maps(
    maps: Mapping[str, ArrayLike], tokens: Sequence[str] = (), quantity: str = "weight"
) -> Figure:
    """Each map as a square, side by side, dark where it is large: queries down, keys across."""
    side = 2.3 if len(tokens) < 20 else 2.8  # long texts need room for their letters
    figure, panels = plt.subplots(
        1, len(maps), figsize=(side * len(maps) + 1.1, side + 0.5), squeeze=False
    )
    values = {name: np.asarray(one) for name, one in maps.items()}
    low = min(0, *(one.min() for one in values.values()))
    high = max(one.max() for one in values.values())
    for ax, (name, one) in zip(panels[0], values.items(), strict=True):
        drawn = ax.imshow(one, cmap="Blues", vmin=low, vmax=high)
        ax.set_title(name, fontsize=9)
        ax.set_xlabel("key")
        if len(tokens):
            look = {"family": "monospace", "parse_math": False}
            look["fontsize"] = 8 if len(tokens) < 20 else 7
            ax.set_xticks(range(len(tokens)), tokens, **look)
            ax.set_yticks(range(len(tokens)), tokens, **look)
            ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    panels[0, 0].set_ylabel("query")
    figure.colorbar(drawn, ax=panels, label=quantity, shrink=0.75)
    return figure


def turned(vectors: ArrayLike, pairs: Sequence[int]) -> Figure:
    """The same vector at positions 0 to 5: an arrow for each, a circle for each of `pairs`.

    `vectors` is (positions, d_k), as RoPE gives it back; its pairs are neighbours.
    """
    vectors = np.asarray(vectors)
    figure, panels = plt.subplots(1, len(pairs), figsize=(1.7 * len(pairs), 1.95), squeeze=False)
    for ax, pair in zip(panels[0], pairs, strict=True):
        both = vectors[:6, 2 * pair : 2 * pair + 2]
        radius = np.hypot(*both[0])
        _ring(ax, f"pair {pair}", 10, radius, 1.4 * radius)
        labelled = both[0] + radius
        for position, (x, y) in enumerate(both):
            colour = RED if position == 0 else BLUE
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour})
            if np.hypot(*(both[position] - labelled)) > 0.25 * radius:  # or it covers the last one
                ax.text(1.18 * x, 1.18 * y, position, **CENTRED, color=colour)
                labelled = both[position]
    return figure


def _ring(ax: Axes, title: str, fontsize: int, radius: float, reach: float) -> None:
    """Draw the circle around which a pair turns, and show `reach` in each direction."""
    ax.add_patch(Circle((0, 0), radius, fc="none", ec=GREY))
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
    ax.set_title(title, fontsize=fontsize)


def number_grids(grids: Mapping[str, ArrayLike], owners: Mapping[int, int] | None = None) -> Figure:
    """Matrices side by side, each below its name and shape.

    `owners` says which head a number belongs to and gives it that head's colour, so one sees where
    numbers end up. Without it, each matrix has a colour of its own.
    """
    rows, columns = zip(*(np.shape(grid) for grid in grids.values()), strict=True)
    height = 0.7 + 7.5 * max(rows) / sum(columns)
    figure, panels = plt.subplots(
        1, len(grids), figsize=(8.4, height), width_ratios=columns, squeeze=False
    )
    for place, (name, grid) in enumerate(grids.items()):
        ax = panels[0, place]
        for (row, column), number in np.ndenumerate(np.asarray(grid)):
            owner = place if owners is None else owners[int(number)]
            plots.cell(ax, column, row, f"{number:.3g}", TINTS[owner % len(TINTS)], fontsize=9)
        ax.set(xlim=(0, columns[place]), ylim=(rows[place], 0), aspect="equal")
        ax.set_axis_off()
        ax.set_title(f"{name}\n{rows[place]} × {columns[place]}", fontsize=9)
    return figure


# RoPE as arrows

MOST_PAIRS = 4  # that get a circle
NAMES_APART = 0.22  # radians between the names of two arrows


class Arrow(NamedTuple):
    """How an arrow looks, and where it goes in the unit circle."""

    name: str
    colour: str
    line: str  # on paper
    dashes: str  # in SVG
    tip: np.ndarray
    name_at: np.ndarray


def rope_arrows(queries: ArrayLike, keys: ArrayLike, query_at: int = 3, key_at: int = 1) -> Live:
    """One query and one key, each moved to any position, and the score that they give there.

    Row i of `queries`, and of `keys`, is the vector as RoPE turns it at position i.
    """
    queries = np.asarray(queries)
    keys = np.asarray(keys)
    last = len(queries) - 1
    sliders = {
        "query_at": live.slider("Query at position", query_at, 0, last),
        "key_at": live.slider("Key at position", key_at, 0, last),
    }

    def show(query_at: int, key_at: int) -> Shown:
        return _arrows_shown(queries[query_at], keys[key_at], query_at, key_at)

    return Live("RoPE as arrows", sliders, show)


def _arrows_shown(query: np.ndarray, key: np.ndarray, query_at: int, key_at: int) -> Shown:
    apart = query_at - key_at
    side = "after" if apart > 0 else "before"
    where = f"{plural(abs(apart), 'position')} {side} the key" if apart else "at the key's position"
    summary = (
        f"Query at {query_at}, key at {key_at}: the query is {where}. "
        f"Their score is {query @ key:.3f}."
    )
    pairs = list(zip(query.reshape(-1, 2), key.reshape(-1, 2), strict=True))[:MOST_PAIRS]
    circles = "".join(_circle(place, *pair) for place, pair in enumerate(pairs))
    html = f"""
<p>{summary}</p>
<div class="columns">{circles}</div>
{live.rest(len(query) // 2 - MOST_PAIRS, "slower pair", ", not drawn")}
<p>The solid arrow q is the query, the dashed arrow k the key. Move both by the same number of
positions: the arrows turn, but the angles between them stay the same, and so does the score.</p>"""
    listed = "; ".join(
        f"pair {place} points to {_degrees(q)}° and {_degrees(k)}° and gives {q @ k:+.3f}"
        for place, (q, k) in enumerate(pairs)
    )
    return Shown(html, f"{summary} Query and key: {listed}.", lambda: _arrows_drawn(pairs))


def _degrees(arrow: np.ndarray) -> int:
    """Where an arrow points: 0 is to the right, 90 upwards, from 0 to 359."""
    return round(np.degrees(np.arctan2(arrow[1], arrow[0]))) % 360


def arrows_of(query: np.ndarray, key: np.ndarray) -> list[Arrow]:
    """The arrows of a query and a key. The longer reaches the circle; the names never overlap."""
    size = max(np.hypot(*query), np.hypot(*key))
    angles = np.array([np.arctan2(arrow[1], arrow[0]) for arrow in (query, key)])
    between = (angles[0] - angles[1] + np.pi) % (2 * np.pi) - np.pi
    lacking = max(NAMES_APART - abs(between), 0) * (1 if between >= 0 else -1)
    angles += np.array([lacking, -lacking]) / 2
    names = [1.22 * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]
    return [
        Arrow("q", BLUE, "solid", "", query / size, names[0]),
        Arrow("k", RED, "dashed", "6 4", key / size, names[1]),
    ]


def _circle(place: int, query: np.ndarray, key: np.ndarray) -> str:
    """One pair as SVG: a circle, the arrow of the query and that of the key."""
    arrows = ""
    for arrow in arrows_of(query, key):
        x, y = 60 * arrow.tip
        left, up = 60 * arrow.name_at
        arrows += (
            f'<line x1="0" y1="0" x2="{x:.1f}" y2="{-y:.1f}" stroke="{arrow.colour}"'
            f' stroke-width="4" stroke-dasharray="{arrow.dashes}"/>'
            f'<circle cx="{x:.1f}" cy="{-y:.1f}" r="5" fill="{arrow.colour}"/>'
            f'<text x="{left:.1f}" y="{5 - up:.1f}" text-anchor="middle"'
            f' fill="currentColor">{arrow.name}</text>'
        )
    label = f"pair {place}: the query points to {_degrees(query)}°, the key to {_degrees(key)}°"
    return (
        f"<div><h4>pair {place}: {query @ key:+.3f}</h4>"
        f'<svg role="img" aria-label="{label}" viewBox="-82 -82 164 164" width="150" height="150">'
        f'<circle r="60" fill="none" stroke="{GREY}"/>{arrows}</svg></div>'
    )


def _arrows_drawn(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Figure:
    """The same circles on paper."""
    figure, panels = plt.subplots(1, len(pairs), figsize=(1.6 * len(pairs), 1.9), squeeze=False)
    for place, (ax, pair) in enumerate(zip(panels[0], pairs, strict=True)):
        _ring(ax, f"pair {place}: {pair[0] @ pair[1]:+.3f}", 9, 1, 1.35)
        for arrow in arrows_of(*pair):
            x, y = arrow.tip
            ax.plot([0, x], [0, y], color=arrow.colour, lw=2.5, ls=arrow.line)
            ax.plot(x, y, "o", color=arrow.colour)
            ax.text(*arrow.name_at, arrow.name, **CENTRED, color=INK)
    return figure


# Who looks at whom

LONGEST_LABEL = 8  # characters of a token beside a map
SHADES = ("#ffffff", "#e3eff9", "#c6dff2", "#9ecae9", "#6aaedd")  # of a weight, dark on light


def attention_viewer(
    tokens: Sequence[str],
    maps: Mapping[str, ArrayLike],
    query: int | None = None,
    head: str | None = None,
) -> Live:
    """A text, one of its tokens as the query, and how much of its weight each token gets.

    `maps` are attention weights by name: a row for each query, a column for each key. The view
    opens with the map `head`, or the first, and with `query`, or the last.
    """
    weights = {name: np.asarray(one) for name, one in maps.items()}
    last = len(tokens) - 1
    heads = live.choice("Head", weights, head)
    slider, row = live.stepper("Query", last=last, value=last if query is None else query)

    def show(head: str, query: int) -> Shown:
        return _weights_shown(tokens, weights[head], head, query)

    return Live("Attention viewer", {"head": heads, "query": slider}, show, rows=[heads, row])


def _weights_shown(tokens: Sequence[str], weights: np.ndarray, head: str, query: int) -> Shown:
    best = int(weights[query].argmax())
    most = (
        f"Position {query}, {visible(tokens[query])}, attends most to position {best}, "
        f"{visible(tokens[best])}: {weights[query, best]:.0%} of its weight."
    )
    frames = "".join(
        _weighed(token, weights[query, at], at, query) for at, token in enumerate(tokens)
    )
    later = len(tokens) - 1 - query
    hidden = f" The mask hides {later} later {'one' if later == 1 else 'ones'}." if later else ""
    html = f"""
<p>{escape(f"{head}. {most}")}{hidden}</p>
<div class="tokens">{frames}</div>
<p>The thick frame is the query; below each token is its share of the weight.</p>"""
    words = f"The text is {' '.join(map(visible, tokens))}. {head}: {most}"

    def picture() -> Figure:
        labels = [drawable(visible(token)[:LONGEST_LABEL]) for token in tokens]
        figure = heat_maps({head: weights}, labels)
        frame = Rectangle((-0.5, query - 0.5), len(tokens), 1, fc="none", ec=RED, lw=2)
        figure.axes[0].add_patch(frame).set_clip_on(False)
        return figure

    return Shown(html, words, picture)


def _weighed(token: str, weight: float, at: int, query: int) -> str:
    """A token in its frame, the darker the more weight it gets."""
    shade = SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]
    thick = "border-width: 3px; padding: 0 2px; font-weight: bold;" if at == query else ""
    note = "later" if at > query else f"{weight:.0%}"
    return (
        f'<span class="token" style="color: {INK}; background: {shade}; {thick}">'
        f"{escape(visible(token))}<small>{note}</small></span>"
    )
