"""The live view of floating point numbers: what three formats make of the number that is typed."""

import math

import ipywidgets
from matplotlib.axes import Axes

from workbook.optimizer import floats
from workbook.optimizer.floats import FORMATS, FloatFormat, Stored
from workbook.views import accounting_plots
from workbook.views.live import Live, escape, text_field, well_formed
from workbook.views.widget_pictures import token_lines

TONES = {"sign": "plain", "exponent": "tone1", "mantissa": "tone0"}  # as in the picture
LONGEST = 60  # characters that are read as a number


def float_explorer(text: str = "0.1") -> Live:
    """A field for a number, and its bits and its value in three formats below it.

    Two buttons halve and double it: so one walks down to where a format underflows, and up to
    where it overflows.
    """
    field = text_field("Number", text)
    buttons = []
    for label, tip, by in (("Halve", "divide it by 2", 0.5), ("Double", "multiply it by 2", 2.0)):
        button = ipywidgets.Button(description=label, tooltip=tip, layout={"width": "4.5rem"})
        button.on_click(lambda _, by=by: _scale(field, by))
        buttons.append(button)
    row = ipywidgets.HBox([field, *buttons], layout={"flex_flow": "row wrap"})
    return Live({"text": field}, _html, _picture, _words, rows=[row])


def _scale(field: ipywidgets.Text, by: float) -> None:
    """Multiply the number in the field, if there is one."""
    number = _number(field.value)
    if number is not None:
        field.value = repr(number * by)


def _number(text: str) -> float | None:
    """The number that was typed; None for what is no number."""
    try:
        return floats.read(well_formed(text)[:LONGEST])
    except ValueError:
        return None


def _refusal(text: str) -> str:
    """What is said instead of bits."""
    short = well_formed(text)
    short = short if len(short) < 20 else f"{short[:18]}…"
    return f"{short!r} is no number. Try 0.1, 70000, 1e-8, 2^-24 or 1/3."


def told(value: float, format: FloatFormat, stored: Stored) -> str:
    """What became of a number, in a few words.

    >>> told(7e4, FORMATS["float16"], FORMATS["float16"].store(7e4))
    'overflow: the largest number is 65504'
    """
    if stored.kind == "not a number" or math.isinf(value) or value == 0:
        return f"{stored.kind}: there are bits for that too"
    if stored.kind == "infinity":
        return f"overflow: the largest number is {format.largest:.6g}"
    if stored.kind == "zero":
        return f"underflow: the smallest number is {format.smallest_subnormal:.3g}"
    error = abs(stored.value - value) / abs(value)
    exact = "exact" if error == 0 else f"off by {error:.2g} of its size"
    if stored.kind == "subnormal":
        return f"subnormal, its digits run out: {exact}"
    return exact


def _html(text: str) -> str:
    value = _number(text)
    if value is None:
        return f"<p>{escape(_refusal(text))}</p>"
    rows = "".join(_row(value, each) for each in FORMATS.values())
    key = " ".join(
        f'<span class="bits"><span class="{tone}">{field}</span></span>'
        for field, tone in TONES.items()
    )
    return f"""
<p>Python holds <b>{value!r}</b>, in float64. Its fields, from left to right: {key}</p>
<table aria-label="The number in three formats">
<thead><tr><th scope="col">format</th><th scope="col">bits</th><th scope="col">value</th>
<th scope="col">what became of it</th></tr></thead><tbody>{rows}</tbody></table>"""


def _row(value: float, format: FloatFormat) -> str:
    """One format as a row of the table."""
    stored = format.store(value)
    fields = "".join(
        f'<span class="{tone}">{getattr(stored, field)}</span>' for field, tone in TONES.items()
    )
    return (
        f'<tr><td>{format.name}</td><td><span class="bits">{fields}</span></td>'
        f"<td>{stored.value:.9g}</td><td>{told(value, format, stored)}</td></tr>"
    )


def _picture(text: str) -> Axes:
    value = _number(text)
    if value is None:
        return token_lines([[(_refusal(text), "", "")]])
    return accounting_plots.float_bits({name: each.store(value) for name, each in FORMATS.items()})


def _words(text: str) -> str:
    value = _number(text)
    if value is None:
        return f"Number explorer, live when the cell is run. {_refusal(text)}"
    rows = []
    for name, each in FORMATS.items():
        stored = each.store(value)
        bits = f"{stored.sign} {stored.exponent} {stored.mantissa}"
        rows.append(f"{name} {bits} = {stored.value:.9g}, {told(value, each, stored)}")
    return f"Number explorer, live when the cell is run. {value!r}: {'; '.join(rows)}."
