"""The base of live views: controls, and HTML that follows them; when stored, a picture and words.

A view is its controls and one function of their values, which returns all that is shown for them:

    def explored(text: str) -> Shown:
        return Shown(html=..., words=..., picture=lambda: ...)

    Live("UTF-8 explorer", {"text": text_field("Text", "hi")}, explored)

A running notebook shows the HTML, pages without a kernel show the picture (a matplotlib figure),
screen readers and terminals get the words. All three are made from the same rows and sentences.
Views hold nothing but looks: what they show comes from a function of the package. A new one gets a
line in `tests/view_inputs.py`, and its steps with mouse and keyboard in `tests/test_browser.py`.

The HTML is one value that is replaced as a whole, so nothing flickers. It takes its text colour
from the page, light or dark; whatever has a background sets its own text colour. What a colour
says, a word, a frame or a weight says too. Whatever comes from outside goes through `escape`.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from typing import NamedTuple

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.patches import FancyBboxPatch

from workbook.classroom.views import plots
from workbook.classroom.views.plots import INK

# Ink and background of what is coloured. They hold in both themes; a test measures their contrast.
TONES = {
    "tone0": (INK, "#d3e8f7"),
    "tone1": (INK, "#fbe3b5"),
    "tone2": (INK, "#cbeee1"),
    "tone3": (INK, "#f6d8e8"),
    "plain": (INK, plots.PALE[0]),
    "strong": ("#ffffff", plots.BLUE),
    "new": (INK, plots.ORANGE),
}
EDGE = "#767676"  # between a token and its neighbour, and against either page

_TONES = "\n".join(
    f".workbook-live .{tone} {{ color: {ink}; background: {paper}; }}"
    for tone, (ink, paper) in TONES.items()
)
_STYLE = f"""<style>
.workbook-live {{ max-width: 60rem; padding: 2px; }}
.workbook-live .widget-html-content {{ line-height: 1.5; }}
.workbook-live .shown {{
  color: var(--jp-content-font-color0, inherit); overflow-x: auto;
  font-family: var(--jp-content-font-family, sans-serif); font-size: 14px; line-height: 1.5; }}
.workbook-live .shown p {{ margin: 6px 0; }}
.workbook-live .shown .columns {{ display: flex; flex-wrap: wrap; gap: 0 2.5rem; }}
.workbook-live .shown h4 {{ margin: 10px 0 2px; font-size: 14px; font-weight: 600; }}
.workbook-live table {{ border-collapse: collapse; }}
.workbook-live th, .workbook-live td {{
  text-align: left; vertical-align: top; padding: 3px 14px 3px 0; font-weight: normal; }}
.workbook-live thead th {{ font-weight: 600; border-bottom: 1px solid {EDGE}; }}
.workbook-live .number {{ text-align: right; font-variant-numeric: tabular-nums; }}
.workbook-live small {{ display: block; font-size: 12px; line-height: 1.3; }}
.workbook-live code, .workbook-live .token, .workbook-live .bits, .workbook-live .glyph {{
  font-family: var(--jp-code-font-family, monospace), "DejaVu Sans Mono", monospace; }}
.workbook-live .glyph {{ font-size: 20px; line-height: 1.3; }}
.workbook-live .tokens {{ display: flex; flex-wrap: wrap; gap: 3px; align-items: flex-start; }}
.workbook-live .token, .workbook-live .bits {{
  display: inline-block; border: 1px solid {EDGE}; border-radius: 4px; padding: 0 4px;
  line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere; }}
.workbook-live .token small {{ text-align: center; border-top: 1px dotted {EDGE}; }}
.workbook-live .token.new, .workbook-live .strong {{ font-weight: bold; }}
.workbook-live .token.new {{ border-width: 2px; padding: 0 3px; line-height: calc(1.5em - 2px); }}
.workbook-live .bits {{
  padding: 0; white-space: nowrap; overflow: hidden; vertical-align: bottom; margin-right: 8px; }}
.workbook-live .bits span {{ padding: 0 2px; }}
.workbook-live .break {{ flex-basis: 100%; }}
.workbook-live .widget-toggle-button.mod-active {{ font-weight: bold; text-decoration: underline; }}
.workbook-live button:focus-visible, .workbook-live .noUi-handle:focus-visible {{
  outline: 3px solid {plots.BLUE}; outline-offset: 2px; box-shadow: 0 0 0 2px #ffffff; }}
{_TONES}
</style>"""


class Shown(NamedTuple):
    """What a view shows for some values of its controls."""

    html: str
    words: str  # the same in a few sentences
    picture: Callable[[], Axes | Figure]  # the same on paper, drawn only where it is asked for


class Live:
    """A live view: shown by Jupyter as widgets, and stored as a picture and words.

    `title` begins the words. `controls` are widgets by name, and `show` takes their values under
    these names. `rows`, if given, goes above the HTML in place of the controls one below the
    other.
    """

    def __init__(
        self,
        title: str,
        controls: Mapping[str, ipywidgets.ValueWidget],
        show: Callable[..., Shown],
        rows: Sequence[ipywidgets.Widget] = (),
    ):
        self.title = title
        self.controls = dict(controls)
        self._show = show
        self._below = ipywidgets.HTML()
        above = rows or self.controls.values()
        self.box = ipywidgets.VBox([ipywidgets.HTML(_STYLE), *above, self._below])
        self.box.add_class("workbook-live")
        for control in self.controls.values():
            control.observe(self._follow, "value")
        self._follow()

    @property
    def html(self) -> str:
        """The HTML that is below the controls now."""
        return self._below.value

    def _follow(self, _=None) -> None:
        values = {name: control.value for name, control in self.controls.items()}
        for name, value in values.items():
            if isinstance(value, str):
                # A browser may send halves of surrogate pairs: they are joined or replaced.
                pairs = value.encode("utf-16-le", "surrogatepass")
                values[name] = pairs.decode("utf-16-le", "replace")
        self._shown = self._show(**values)
        self._below.value = f'<div class="shown">{self._shown.html}</div>'

    def __repr__(self) -> str:
        return f"{self.title}, live when the cell is run. {self._shown.words}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """The widget, for a running kernel, and the picture and the words, which are stored."""
        data, metadata = plots.bundle(self._shown.picture(), repr(self))
        return {**self.box._repr_mimebundle_(), **data}, metadata


# Controls


def text_field(label: str, text: str, lines: int = 1) -> ipywidgets.ValueWidget:
    """A field to type in, of one line or several; the view follows every key."""
    layout = {"width": "auto", "max_width": "40rem"}
    if lines == 1:
        return ipywidgets.Text(value=text, description=label, layout=layout)
    return ipywidgets.Textarea(value=text, description=label, layout=layout, rows=lines)


def choice(label: str, options: Iterable[str], value: str | None = None):
    """A button for each option, one of them pressed: `value`, or the first.

    Not a drop-down list: JupyterLab takes its arrow keys as moves from cell to cell.
    """
    options = list(options)
    return ipywidgets.ToggleButtons(
        options=options,
        value=options[0] if value is None else value,
        description=label,
        style={"button_width": "auto"},
    )


def slider(label: str, value: float, least: float, most: float, **more):
    """A slider over whole numbers, or over decimals if `more` has a `step`.

    Arrow keys, Home and End move it; a number can be typed beside it.
    """
    kind = ipywidgets.FloatSlider if "step" in more else ipywidgets.IntSlider
    return kind(
        value=value,
        min=least,
        max=most,
        description=label,
        layout={"width": "auto", "max_width": "32rem"},
        style={"description_width": "initial"},
        **more,
    )


def button(label: str, tip: str, act: Callable[[], object], width: str = "auto"):
    """A button that calls `act`; `tip` is shown when the mouse rests on it."""
    made = ipywidgets.Button(description=label, tooltip=tip, layout={"width": width})
    made.on_click(lambda _: act())
    return made


def side_by_side(*widgets: ipywidgets.Widget) -> ipywidgets.HBox:
    """The widgets in a row that wraps; a slider takes the room that the others leave."""
    for widget in widgets:
        if isinstance(widget, ipywidgets.IntSlider):
            widget.layout.flex = "1 1 16rem"
    return ipywidgets.HBox(widgets, layout={"flex_flow": "row wrap"})


def stepper(label: str, last: int, value: int = 0) -> tuple[ipywidgets.IntSlider, ipywidgets.HBox]:
    """A slider from 0 to `last`, and the row that holds it behind a button back and one forward."""
    steps = slider(label, value, 0, last)

    def go(by: int) -> None:
        steps.value += by  # the slider stops at its ends by itself

    back = button("◀ Back", "one step back", lambda: go(-1), "6.5rem")
    forward = button("Forward ▶", "one step forward", lambda: go(1), "6.5rem")
    return steps, side_by_side(back, forward, steps)


# Pieces of HTML


def table(
    label: str, columns: Sequence[str], rows: Iterable[Iterable[str]], numbers: Collection[str] = ()
) -> str:
    """A table with a `label` for screen readers; the cells of `rows` are HTML.

    `columns` are its headings, and `numbers` are those whose columns are set to the right.
    """
    classes = [' class="number"' if name in numbers else "" for name in columns]

    def line(opening: str, closing: str, cells: Iterable[str]) -> str:
        filled = zip(classes, cells, strict=True)
        return "".join(f"<{opening}{kind}>{cell}</{closing}>" for kind, cell in filled)

    head = line('th scope="col"', "th", map(escape, columns))
    body = "".join(f"<tr>{line('td', 'td', row)}</tr>\n" for row in rows)
    return (
        f'<table aria-label="{escape(label)}">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table>"
    )


def rest(hidden: int, thing: str, why: str = "") -> str:
    """A line that says how many more there are, if some are hidden: "and 2 other pairs"."""
    return f"<p>and {plural(hidden, thing)}{why}</p>" if hidden > 0 else ""


def bar(length: float, look: str) -> str:
    """A bar `length` rem long; the number beside it says the same. `look` is a piece of CSS."""
    return (
        '<span aria-hidden="true" style="display: inline-block; height: 0.8em;'
        f' width: {length:.2f}rem; {look}"></span>'
    )


def token_html(token: bytes | str, tone: str, below: str) -> str:
    """A token in its frame, with signs for what cannot be seen; `below` is written under it."""
    note = f"<small>{escape(below)}</small>" if below else ""
    title = escape(repr(token), quote=True)
    frame = f'<span class="token {tone}" title="{title}">{escape(visible(token))}{note}</span>'
    line_ends = token[-1:] in ("\n", b"\n")
    return frame + ('<span class="break"></span>' if line_ends else "")


def plural(count: int, thing: str) -> str:
    """A count with its noun: 1 byte, 2 bytes."""
    return f"{count:,} {thing if count == 1 else f'{thing}s'}"


# Text made visible

SIGNS = {" ": "␣", "\n": "↵", "\t": "⇥", "\r": "␍"}
ACCENTS = {"Mn", "Mc", "Me"}  # categories of marks that combine with the character before them
NO_INK = {"Cc", "Cf", "Zs", "Zl", "Zp", "Cs", "Co", "Cn"}  # controls, blanks, unassigned ones


def visible(text: str | bytes) -> str:
    """The text with a sign for each space and line end; all else that cannot be seen is escaped.

    Bytes that are not UTF-8 are escaped too, and an accent at the beginning gets a base, "◌".

    >>> visible(" a\\n"), visible(b"caf\\xc3"), visible("\\u200d")
    ('␣a↵', 'caf\\\\xc3', '\\\\u200d')
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="backslashreplace")
    shown = "".join(_sign(character) for character in text)
    return "◌" + shown if unicodedata.category(shown[:1] or "a") in ACCENTS else shown


def _sign(character: str) -> str:
    """One character as something that can be seen."""
    if character in SIGNS:
        return SIGNS[character]
    return escaped(character) if unicodedata.category(character) in NO_INK else character


def escaped(text: str) -> str:
    """The text with all but ASCII as Python writes it: \\xe9, \\u4eba, \\U0001f30d."""
    return text.encode("unicode_escape").decode("ascii")


def drawable(text: str) -> str:
    """The text with each character escaped that matplotlib's font would draw as an empty box.

    >>> drawable("né人")
    'né\\\\u4eba'
    """
    known = _glyphs()
    return "".join(c if ord(c) in known else escaped(c) for c in text)


@cache
def _glyphs() -> frozenset[int]:
    """The code points that matplotlib's monospaced font has a glyph for."""
    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans Mono"))).get_charmap())


def character_name(character: str) -> str:
    """The Unicode name of a character, or its kind if it has none."""
    kinds = {"Cc": "control character", "Co": "private use", "Cs": "surrogate"}
    kind = kinds.get(unicodedata.category(character), "not assigned")
    return unicodedata.name(character, kind)


# Tokens on paper

COLUMNS = 72  # characters of the monospaced font that fit side by side
LINE = 0.27  # inches from line to line; 1.7 times that if something is written below
Framed = tuple[bytes | str, str, str]  # a token, its tone in `TONES`, a note; no tone: plain text


def token_lines(lines: Sequence[Sequence[Framed]], ax: Axes | None = None) -> Axes:
    """Tokens in frames, one after the other; each of `lines` is a new line, long ones are wrapped.

    Letters that the font lacks are written as escapes.
    """
    placed, depth = _laid_out(lines)
    noted = any(note for *_, note in placed)
    if ax is None:
        height = 0.1 + LINE * depth * (1.7 if noted else 1)
        ax = plots.axes(height)
    for x, y, text, tone, note in placed:
        middle = x + len(text) / 2
        height = 0.45 if noted else 0.7
        if tone:
            frame = FancyBboxPatch(
                (x - 0.35, y + 0.1),
                len(text) + 0.7,
                height,
                boxstyle="square,pad=0",
                fc=TONES[tone][1],
                ec=EDGE,
                lw=2 if tone == "new" else 0.8,
            )
            ax.add_patch(frame)
        ax.text(
            middle,
            y + 0.1 + height / 2,
            text,
            color=TONES[tone][0] if tone else INK,
            family="monospace",
            fontsize=9,
            weight="bold" if tone == "new" else "normal",
            ha="center",
            va="center_baseline",
            parse_math=False,
        )
        ax.text(middle, y + 0.6, note, color=INK, fontsize=7, ha="center", va="top")
    ax.set(xlim=(-0.5, COLUMNS), ylim=(depth, 0))
    ax.set_axis_off()
    return ax


def _laid_out(
    lines: Sequence[Sequence[Framed]],
) -> tuple[list[tuple[float, int, str, str, str]], int]:
    """Column, line, text, tone and note of every token, and how many lines there are."""
    placed = []
    y = 0
    for line in lines:
        x = 0.0
        for token, tone, note in line:
            text = drawable(visible(token) if tone else str(token))  # plain text is a str
            text = text if len(text) < COLUMNS else text[: COLUMNS - 2] + "…"
            width = max(len(text), 0.8 * len(note)) + 1.2
            if x and x + width > COLUMNS:
                x = 0.0
                y = y + 1
            placed.append((x + (width - 1.2 - len(text)) / 2, y, text, tone, note))
            x += width
        y += 1
    return placed, y
