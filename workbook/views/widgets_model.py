"""The live views of notebook 03: RoPE as turning arrows, and who attends to whom."""

from collections.abc import Mapping, Sequence

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from workbook.views import transformer
from workbook.views.live import Live, escape, number, stepper
from workbook.views.plots import BLUE, GREY, INK, RED
from workbook.views.visible import drawable, visible

MOST_PAIRS = 4  # that get a circle
LONGEST_LABEL = 8  # characters of a token beside a map
NAMES_APART = 0.22  # radians between the names of two arrows
SHADES = ("#ffffff", "#e3eff9", "#c6dff2", "#9ecae9", "#6aaedd")  # of a weight, dark on light


def rope_arrows(queries: ArrayLike, keys: ArrayLike, query_at: int = 3, key_at: int = 1) -> Live:
    """One query and one key, each moved to any position, and the score that they give there.

    Row i of `queries`, and of `keys`, is the vector as RoPE turns it at position i.
    """
    queries, keys = np.asarray(queries), np.asarray(keys)
    sliders = {
        name: ipywidgets.IntSlider(
            value=value, min=0, max=len(queries) - 1, description=label,
            style={"description_width": "initial"}, layout={"width": "auto", "max_width": "32rem"},
        )
        for name, label, value in (
            ("query_at", "Query at position", query_at), ("key_at", "Key at position", key_at)
        )
    }  # fmt: skip

    def look(part):
        return lambda query_at, key_at: part(queries[query_at], keys[key_at], query_at, key_at)

    return Live(sliders, *map(look, (_rope_html, _rope_picture, _rope_words)))


def _pairs(query: np.ndarray, key: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The pairs of neighbours of both vectors that are shown."""
    pairs = zip(query.reshape(-1, 2), key.reshape(-1, 2), strict=True)
    return list(pairs)[:MOST_PAIRS]


def _degrees(arrow: np.ndarray) -> float:
    """Where an arrow points: 0 is to the right, 90 upwards, from 0 to 359."""
    return round(np.degrees(np.arctan2(arrow[1], arrow[0]))) % 360


def _label_places(query: np.ndarray, key: np.ndarray) -> list[np.ndarray]:
    """Where the names of two arrows stand, on a circle around them; never on one another."""
    angles = np.array([np.arctan2(arrow[1], arrow[0]) for arrow in (query, key)])
    between = (angles[0] - angles[1] + np.pi) % (2 * np.pi) - np.pi
    lacking = max(NAMES_APART - abs(between), 0) * (1 if between >= 0 else -1)
    angles += np.array([lacking, -lacking]) / 2
    return [1.22 * np.array([np.cos(angle), np.sin(angle)]) for angle in angles]


def _told(query: np.ndarray, key: np.ndarray, query_at: int, key_at: int) -> str:
    """The score, and what it depends on, in two sentences."""
    apart = query_at - key_at
    side = "after" if apart > 0 else "before"
    place = f"{number(abs(apart), 'position')} {side} the key" if apart else "where the key is"
    return (
        f"Query at {query_at}, key at {key_at}: the query is {place}. "
        f"Their score is {query @ key:.3f}."
    )


def _rope_html(query: np.ndarray, key: np.ndarray, query_at: int, key_at: int) -> str:
    circles = "".join(_circle(place, *pair) for place, pair in enumerate(_pairs(query, key)))
    hidden = len(query) // 2 - MOST_PAIRS
    more = f"<p>and {hidden} slower pairs, not drawn</p>" if hidden > 0 else ""
    return f"""
<p>{_told(query, key, query_at, key_at)}</p>
<div class="columns">{circles}</div>{more}
<p>Solid, with q: the query. Dashed, with k: the key. Move both by the same number of positions:
the arrows turn, the angles between them stay, and so does the score.</p>"""


def _circle(place: int, query: np.ndarray, key: np.ndarray) -> str:
    """One pair as a drawing: a circle, the arrow of the query and that of the key."""
    size = max(np.hypot(*query), np.hypot(*key))
    arrows, lines = "", (("q", query, BLUE, ""), ("k", key, RED, "6 4"))
    places = _label_places(query, key)
    for (name, arrow, colour, dashes), label in zip(lines, places, strict=True):
        (x, y), label = (60 * np.array([1, -1]) * end for end in (arrow / size, label))
        arrows += (
            f'<line x1="0" y1="0" x2="{x:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="4"'
            f' stroke-dasharray="{dashes}"/>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
            f'<text x="{label[0]:.1f}" y="{label[1] + 5:.1f}" text-anchor="middle"'
            f' fill="currentColor">{name}</text>'
        )
    told = f"pair {place}: the query points to {_degrees(query)}°, the key to {_degrees(key)}°"
    return (
        f'<div><h4>pair {place}: {query @ key:+.3f}</h4>'
        f'<svg role="img" aria-label="{told}" viewBox="-82 -82 164 164" width="150" height="150">'
        f'<circle r="60" fill="none" stroke="{GREY}"/>{arrows}</svg></div>'
    )  # fmt: skip


def _rope_picture(query: np.ndarray, key: np.ndarray, query_at: int, key_at: int) -> Figure:
    pairs = _pairs(query, key)
    figure, axes = plt.subplots(1, len(pairs), figsize=(1.6 * len(pairs), 1.9), squeeze=False)
    for place, (ax, pair) in enumerate(zip(axes[0], pairs, strict=True)):
        size = max(np.hypot(*arrow) for arrow in pair)
        ax.add_patch(plt.Circle((0, 0), 1, fc="none", ec=GREY))
        looks = zip("qk", pair, (BLUE, RED), ("solid", "dashed"), _label_places(*pair), strict=True)
        for name, arrow, colour, line, label in looks:
            x, y = arrow / size
            ax.plot([0, x], [0, y], color=colour, lw=2.5, ls=line)
            ax.plot(x, y, "o", color=colour)
            ax.text(*label, name, ha="center", va="center", color=INK)
        ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35))
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_title(f"pair {place}: {pair[0] @ pair[1]:+.3f}", fontsize=9)
    return figure


def _rope_words(query: np.ndarray, key: np.ndarray, query_at: int, key_at: int) -> str:
    pairs = "; ".join(
        f"pair {place} points to {_degrees(q)}° and {_degrees(k)}° and gives {q @ k:+.3f}"
        for place, (q, k) in enumerate(_pairs(query, key))
    )
    return (
        "RoPE as arrows, live when the cell is run. "
        f"{_told(query, key, query_at, key_at)} Query and key: {pairs}."
    )


def attention_viewer(
    tokens: Sequence[str], maps: Mapping[str, ArrayLike], query: int | None = None
) -> Live:
    """A text, one of its tokens as the query, and how much of its weight each token gets.

    `maps` are attention weights by name: a row for each query, a column for each key.
    """
    weights = {name: np.asarray(one) for name, one in maps.items()}
    names, last = list(weights), len(tokens) - 1
    choice = ipywidgets.ToggleButtons(
        options=names, value=names[0], description="Head", style={"button_width": "auto"}
    )
    slider, row = stepper("Query", last=last, value=last if query is None else query)

    def look(part):
        return lambda head, query: part(tokens, weights[head], head, query)

    views = map(look, (_viewer_html, _viewer_picture, _viewer_words))
    return Live({"head": choice, "query": slider}, *views, rows=[choice, row])


def _most(tokens: Sequence[str], weights: np.ndarray, query: int) -> str:
    """Whom a query looks at most, in a sentence."""
    best = int(weights[query].argmax())
    return (
        f"Position {query}, {visible(tokens[query])}, looks most at position {best}, "
        f"{visible(tokens[best])}: {weights[query, best]:.0%} of its weight."
    )


def _viewer_html(tokens: Sequence[str], weights: np.ndarray, head: str, query: int) -> str:
    frames = "".join(
        _weighed(tokens[at], weights[query, at], at, query) for at in range(len(tokens))
    )
    later = len(tokens) - 1 - query
    hidden = f" {later} later ones are out of sight." if later else ""
    return f"""
<p>{escape(head)}. {escape(_most(tokens, weights, query))}{hidden}</p>
<div class="tokens">{frames}</div>
<p>The thick frame is the query; below each token stands its share of the weight.</p>"""


def _weighed(token: str, weight: float, at: int, query: int) -> str:
    """A token in its frame, the darker the more weight it gets."""
    shade = SHADES[min(int(weight * len(SHADES)), len(SHADES) - 1)]
    thick = "border-width: 3px; padding: 0 2px; font-weight: bold;" if at == query else ""
    note = "later" if at > query else f"{weight:.0%}"
    return (
        f'<span class="token" style="color: {INK}; background: {shade}; {thick}">'
        f"{escape(visible(token))}<small>{note}</small></span>"
    )


def _viewer_picture(tokens: Sequence[str], weights: np.ndarray, head: str, query: int) -> Figure:
    shown = [drawable(visible(token)[:LONGEST_LABEL]) for token in tokens]
    figure = transformer.heat_maps({head: weights}, shown)
    frame = plt.Rectangle((-0.5, query - 0.5), len(tokens), 1, fc="none", ec=RED, lw=2)
    figure.axes[0].add_patch(frame).set_clip_on(False)
    return figure


def _viewer_words(tokens: Sequence[str], weights: np.ndarray, head: str, query: int) -> str:
    text = " ".join(map(visible, tokens))
    return (
        f"Attention viewer, live when the cell is run. The text is {text}. {head}: "
        f"{_most(tokens, weights, query)}"
    )
