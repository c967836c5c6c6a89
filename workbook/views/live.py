"""Live views: controls, and a piece of HTML that follows them; a picture and words for the rest.

A view is three plain functions of the same values, those of its controls, by their names:

    html(text="hi")      what a running notebook shows
    picture(text="hi")   the same as a matplotlib figure, for pages without a kernel
    words(text="hi")     the same in a few sentences, for screen readers and terminals

`Live` puts them together. A new view needs no more than these functions and its controls. They hold
nothing but looks: what they show comes from a function of the package.

The HTML is one value that is replaced as a whole, so nothing flickers. It takes its text colour
from the page, light or dark; whatever has a background brings its own ink along. What a colour
says, a word, a frame or a weight says too.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape

import ipywidgets
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.views import plots
from workbook.views.visible import visible

INK = plots.INK
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


class Live:
    """A live view: shown by Jupyter as widgets, and stored as a picture and words.

    `controls` are widgets by name; `rows`, where given, is what stands above the HTML, if that is
    not simply one control below the other.
    """

    def __init__(
        self,
        controls: Mapping[str, ipywidgets.ValueWidget],
        html: Callable[..., str],
        picture: Callable[..., Axes | Figure],
        words: Callable[..., str],
        rows: Sequence[ipywidgets.Widget] = (),
    ):
        self.controls = dict(controls)
        self._html, self._picture, self._words = html, picture, words
        self._shown = ipywidgets.HTML()
        above = rows or self.controls.values()
        self.box = ipywidgets.VBox([ipywidgets.HTML(_STYLE), *above, self._shown])
        self.box.add_class("workbook-live")
        for control in self.controls.values():
            control.observe(self._follow, "value")
        self._follow()

    @property
    def values(self) -> dict:
        """What the controls say now, by their names."""
        return {name: control.value for name, control in self.controls.items()}

    @property
    def html(self) -> str:
        """What is shown now below the controls."""
        return self._shown.value

    def _follow(self, _=None) -> None:
        self._shown.value = f'<div class="shown">{self._html(**self.values)}</div>'

    def __repr__(self) -> str:
        return self._words(**self.values)

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """The widget where a kernel runs it; what is stored of it is the picture and the words."""
        data, metadata = plots.bundle(self._picture(**self.values), repr(self))
        return {**self.box._repr_mimebundle_(), **data}, metadata


def text_field(label: str, text: str, lines: int = 1) -> ipywidgets.ValueWidget:
    """A field to type in, of one line or several; the view follows every key."""
    layout = ipywidgets.Layout(width="auto", max_width="40rem")
    kind = ipywidgets.Text if lines == 1 else ipywidgets.Textarea
    field = kind(value=text, description=label, layout=layout)
    if lines > 1:
        field.rows = lines
    return field


def stepper(label: str, last: int, value: int = 0) -> tuple[ipywidgets.IntSlider, ipywidgets.HBox]:
    """A slider from 0 to `last`, and the row that holds it between a button back and one forward.

    Arrow keys, Home and End move the slider; a number can be typed beside it.
    """
    slider = ipywidgets.IntSlider(
        value=value, min=0, max=last, description=label, style={"description_width": "initial"},
        layout={"flex": "1 1 16rem", "width": "auto", "max_width": "32rem"},
    )  # fmt: skip
    buttons = []
    for text, tip, by in (("◀ Back", "one step back", -1), ("Forward ▶", "one step on", 1)):
        button = ipywidgets.Button(description=text, tooltip=tip, layout={"width": "6.5rem"})
        button.on_click(lambda _, by=by: setattr(slider, "value", slider.value + by))
        buttons.append(button)
    row = ipywidgets.HBox([buttons[0], buttons[1], slider], layout={"flex_flow": "row wrap"})
    return slider, row


def token_html(token: bytes | str, tone: str, below: str = "") -> str:
    """A token in its frame, what cannot be seen as a sign; `below` is written under it."""
    note = f"<small>{escape(below)}</small>" if below else ""
    title = escape(repr(token), quote=True)
    frame = f'<span class="token {tone}" title="{title}">{escape(visible(token))}{note}</span>'
    line_ends = token.endswith(b"\n" if isinstance(token, bytes) else "\n")
    return frame + ('<span class="break"></span>' if line_ends else "")


def number(count: int, thing: str) -> str:
    """A count with its noun: 1 byte, 2 bytes."""
    return f"{count:,} {thing}{'s' * (count != 1)}"


def well_formed(text: str) -> str:
    """The text with halves of surrogate pairs, which a browser may send, joined or replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
