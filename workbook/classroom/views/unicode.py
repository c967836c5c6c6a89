"""Notebook 01: sizes and bits of encoded text as pictures, and the UTF-8 explorer, a live view."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from workbook.classroom.views import live, plots
from workbook.classroom.views.live import Live, Shown, drawable, plural, visible
from workbook.classroom.views.plots import BLUE, COLOURS, GREY, INK, PALE, axes, note
from workbook.tokenization.utf8 import template_bits

ENCODINGS = {"UTF-8": "utf-8", "UTF-16": "utf-16-le", "UTF-32": "utf-32-le"}
MOST_SHOWN = 64  # characters in the live table
MOST_DRAWN = 8  # and in the picture


def size_steps(table: pd.DataFrame, quantity: str, marks: Mapping[str, int]) -> Axes:
    """One staircase per column of `table` over its index, on a log axis; `marks` names places."""
    ax = axes()
    for i, column in enumerate(table.columns):
        # A line that lies on another would hide it: each is wider than the one in front of it.
        look: dict[str, Any] = {"color": COLOURS[i], "linewidth": 2 + 2.5 * i, "zorder": 2 - i}
        ax.step(table.index, table[column], where="post", label=column, **look)
    for name, place in marks.items():
        ax.axvline(place, color=GREY, linestyle=":", linewidth=1, zorder=-len(table.columns))
        note(ax, name, (place, 0.15), (3, 0), fontsize=8, color=INK)
    plots.log2_axis(ax, table.index, "U+{:04X}".format)
    most = table.max(axis=None)
    ax.set(ylim=(0, most + 0.5), yticks=range(most + 1))
    ax.set(xlabel="code point (log scale)", ylabel=quantity)
    plots.legend_above(ax)
    return ax


def bit_layout(rows: Mapping[str, bytes]) -> Axes:
    """Each row's UTF-8 bytes bit by bit: the template dark, the number's own bits light."""
    ax = axes(0.7 + 0.55 * len(rows))
    stride = 8.6  # eight bits and a gap
    for y, data in enumerate(rows.values()):
        for i, byte in enumerate(data):
            fixed = template_bits(byte)
            for j, bit in enumerate(f"{byte:08b}"):
                face, ink, weight = (BLUE, "white", "bold") if j < fixed else (PALE[0], INK, None)
                plots.cell(
                    ax,
                    stride * i + j,
                    y - 0.35,
                    bit,
                    face,
                    height=0.7,
                    color=ink,
                    weight=weight,
                    family="monospace",
                )
            ax.text(stride * i + 4, y - 0.42, f"{byte:02X}", ha="center", va="bottom", fontsize=8)
    widest = max(len(data) for data in rows.values())
    ax.set(xlim=(-0.2, stride * widest), ylim=(len(rows) - 0.5, -0.75), xticks=[])
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def byte_pairs(kinds: Sequence[Sequence[str]], valid: Collection[str]) -> Axes:
    """A 256 x 256 map of the first byte (down) and the second (across): pale where `valid`.

    `kinds[first][second]` names what the pair is. The key beside the map begins with what is valid,
    and then has the most frequent first.
    """
    names, codes, counts = np.unique(np.array(kinds), return_inverse=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: (names[i] not in valid, -counts[i]))
    rank = np.argsort(order)[codes.reshape(256, 256)]
    pale = sum(name in valid for name in names)
    colours = PALE[:pale] + COLOURS[: len(names) - pale]
    ax = axes(4.1)
    ax.imshow(rank, cmap=ListedColormap(colours), interpolation="nearest")
    key = [
        Rectangle((0, 0), 1, 1, fc=colour, ec=GREY, label=f"{names[which]}: {counts[which]:,}")
        for colour, which in zip(colours, order, strict=True)
    ]
    ax.legend(handles=key, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    ticks = range(0, 256, 32)
    ax.set_xticks(ticks, [f"{tick:02X}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:02X}" for tick in ticks])
    ax.set(xlabel="second byte (hexadecimal)", ylabel="first byte (hexadecimal)")
    return ax


def utf8_explorer(text: str = "héllo") -> Live:
    """A field to type in, and each character's code point, bytes and bits in UTF-8 below it."""
    return Live("UTF-8 explorer", {"text": live.text_field("Text", text)}, _explored)


def _explored(text: str) -> Shown:
    points = plural(len(text), "code point")
    sizes = {title: len(text.encode(codec)) for title, codec in ENCODINGS.items()}
    bold = ", ".join(f"<b>{size:,}</b> in {title}" for title, size in sizes.items())
    characters = live.table(
        "The characters of the text, their code points and their bytes in UTF-8",
        ["character", "code point and name", "bytes in UTF-8: hexadecimal, bits, role"],
        map(_cells, text[:MOST_SHOWN]),
    )
    html = f"""
<p><b>{points}</b>. Bytes: {bold}.</p>
<p><span class="bits"><span class="strong">110</span></span> bold on blue: the template of a byte.
<span class="bits"><span class="plain">00011</span></span> thin: the code point's own bits.</p>
{characters}{live.rest(len(text) - MOST_SHOWN, "more character", ", not shown")}"""

    summary = "; ".join(
        f"{visible(character)} is {_code(character)}, bytes {character.encode().hex(' ').upper()}"
        for character in text[:MOST_DRAWN]
    )
    hidden = len(text) - MOST_DRAWN
    plain = ", ".join(f"{size:,} in {title}" for title, size in sizes.items())
    words = f"{text!r}: {points}; bytes: {plain}."
    if summary:
        words += f" {summary}"
    if hidden > 0:
        words += f"; and {hidden:,} more"
    return Shown(html, words, lambda: _drawn(text[:MOST_DRAWN]))


def _code(character: str) -> str:
    """The code point as it is usually written."""
    return f"U+{ord(character):04X}"


def _cells(character: str) -> tuple[str, str, str]:
    """One character, its code point, and its bytes: in hexadecimal, bit by bit, and their roles."""
    data = character.encode()
    roles = ["continues"] * len(data)
    roles[0] = f"first of {len(data)}" if len(data) > 1 else "single"
    cells = ""
    for byte, role in zip(data, roles, strict=True):
        bits = f"{byte:08b}"
        fixed = template_bits(byte)
        cells += (
            f'<div><code>{byte:02X}</code> <span class="bits">'
            f'<span class="strong">{bits[:fixed]}</span><span class="plain">{bits[fixed:]}</span>'
            f"</span><small>{role}</small></div>"
        )
    return (
        f'<span class="glyph">{escape(visible(character))}</span>',
        f"{_code(character)}<small>{escape(live.character_name(character))}</small>",
        f'<div class="tokens">{cells}</div>',
    )


def _drawn(text: str) -> Axes:
    rows = {}
    for place, character in enumerate(text, start=1):
        glyph = drawable(visible(character))
        code = _code(character)
        label = f"{glyph}  {code}" if len(glyph) < 3 else code  # an escape would repeat the code
        rows[f"{place}.  {label}"] = character.encode()
    ax = bit_layout(rows or {"no text": b""})
    ax.set_xlabel("dark: the template of a byte; light: the code point's own bits")
    return ax
