"""Notebook 04: shares, memory against its limit and the range of formats, as pictures.

The live views are the number explorer (what three formats make of a number) and the switchboard of
assumptions: flip one, and see which numbers change.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from html import escape

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, PercentFormatter

from workbook.accounting.answers import Quantity, answers
from workbook.accounting.assumptions import SWITCHES, Switch, asked, switches
from workbook.accounting.training import GB, GiB
from workbook.classroom.views import live, plots
from workbook.classroom.views.live import Live, Shown
from workbook.classroom.views.plots import BLUE, DASHED, PALE, axes, note
from workbook.config import EDITIONS, Edition
from workbook.optimizer import floats
from workbook.optimizer.floats import FORMATS, FloatFormat, Stored


def shares_along(table: pd.DataFrame) -> Axes:
    """The columns' shares as bands over the index, which is on a log axis."""
    ax = axes()
    parts = table.div(table.sum(axis=1), axis=0)
    ax.stackplot(table.index, parts.T, labels=parts.columns, colors=plots.colours_of(parts.columns))
    plots.log2_axis(ax, table.index, EngFormatter(sep="", places=0))
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.set(xlabel=table.index.name, ylabel="share of the FLOPs", ylim=(0, 1))
    ax.margins(x=0)
    plots.legend_above(ax)
    return ax


def stacked(table: pd.DataFrame, quantity: str, limit: float) -> Axes:
    """One bar per row of `table`, its columns stacked, and a dashed line at the `limit`."""
    ax = axes()
    colours = plots.colours_of(table.columns)
    table.plot.bar(ax=ax, stacked=True, width=0.75, rot=0, color=colours, legend=False)
    totals = table.sum(axis=1).map("{:,.1f}".format)
    ax.bar_label(plots.bars_of(ax)[-1], totals, padding=3, fontsize=8)
    plots.level(ax, f"limit: {limit:g}", limit, -0.45)
    ax.set(ylabel=quantity, ymargin=0.15)
    ax.grid(axis="y")
    plots.legend_above(ax)
    return ax


def float_ranges(formats: Sequence[FloatFormat], marks: Mapping[str, float]) -> Axes:
    """How far each format reaches on a log axis: normal numbers solid, subnormal ones pale.

    `marks` are numbers that are pointed out on the axis.
    """
    ax = axes(1.3 + 0.5 * len(formats))
    for y, kind in enumerate(formats):
        ends = np.log10([kind.smallest_subnormal, kind.smallest_normal, kind.largest])
        ax.barh(y, np.diff(ends), 0.5, ends[:-1], color=(PALE[1], BLUE), ec=BLUE)
    for name, value in marks.items():
        ax.axvline(np.log10(value), **DASHED, zorder=3)
        note(ax, name, (np.log10(value), -0.5), (0, 3), fontsize=8, ha="center", va="bottom")
    plots.named_rows(ax, [kind.name for kind in formats])
    plots.tens(ax, range(-45, 40, 15))
    ax.set(xlabel="size of a number (pale: subnormal, with fewer digits)", ylim=(2.5, -0.5))
    ax.grid(axis="x")
    return ax


# The bits of a number

FIELD_TONES = {"sign": "plain", "exponent": "tone1", "mantissa": "tone0"}  # as in the picture
LONGEST = 60  # characters that are read as a number


def float_explorer(text: str = "0.1") -> Live:
    """A field for a number, and its bits and its value in three formats below it.

    Two buttons halve and double it, to walk down to where a format underflows and up to where it
    overflows.
    """
    field = live.text_field("Number", text)

    def scale(by: float) -> None:
        number = _number(field.value)
        if number is not None:
            field.value = repr(number * by)

    halve = live.button("Halve", "divide it by 2", partial(scale, 0.5), "4.5rem")
    double = live.button("Double", "multiply it by 2", partial(scale, 2.0), "4.5rem")
    row = live.side_by_side(field, halve, double)
    return Live("Number explorer", {"text": field}, _number_shown, rows=[row])


def _number(text: str) -> float | None:
    """The number that was typed; None for what is not a number."""
    try:
        return floats.read_number(text[:LONGEST])
    except ValueError:
        return None


def _number_shown(text: str) -> Shown:
    value = _number(text)
    if value is None:
        short = text if len(text) < 20 else f"{text[:18]}…"
        refusal = f"{short!r} is not a number. Try 0.1, 70000, 1e-8, 2^-24 or 1/3."
        picture = partial(live.token_lines, [[(refusal, "", "")]])
        return Shown(f"<p>{escape(refusal)}</p>", refusal, picture)

    stored = {name: kind.store(value) for name, kind in FORMATS.items()}
    ends = {name: became(value, FORMATS[name], bits) for name, bits in stored.items()}
    key = " ".join(_bits({field: field for field in FIELD_TONES}, field) for field in FIELD_TONES)
    rows = [
        (name, _bits(vars(bits), *FIELD_TONES), f"{bits.value:.9g}", ends[name])
        for name, bits in stored.items()
    ]
    columns = ["format", "bits", "value", "what became of it"]
    html = f"""
<p>Python holds <b>{value!r}</b>, in float64. The fields below, from left to right: {key}</p>
{live.table("The number in three formats", columns, rows)}"""
    listed = "; ".join(
        f"{name} {bits.sign} {bits.exponent} {bits.mantissa} = {bits.value:.9g}, {ends[name]}"
        for name, bits in stored.items()
    )
    lines = [
        [
            (name.ljust(8), "", ""),
            *((getattr(bits, field), FIELD_TONES[field], field) for field in FIELD_TONES),
            (f"= {bits.value:.9g}", "", ""),
        ]
        for name, bits in stored.items()
    ]
    return Shown(html, f"{value!r}: {listed}.", partial(live.token_lines, lines))


def _bits(texts: Mapping[str, str], *fields: str) -> str:
    """The texts of some fields in their tones, in one frame."""
    inside = "".join(
        f'<span class="{FIELD_TONES[field]}">{texts[field]}</span>' for field in fields
    )
    return f'<span class="bits">{inside}</span>'


def became(value: float, format: FloatFormat, stored: Stored) -> str:
    """What became of a number, in a few words.

    >>> became(7e4, FORMATS["float16"], FORMATS["float16"].store(7e4))
    'overflow: the largest number is 65504'
    """
    if stored.kind == "not a number" or math.isinf(value) or value == 0:
        return f"{stored.kind}: there are bits for that too"
    if stored.kind == "infinity":
        return f"overflow: the largest number is {format.largest:.6g}"
    if stored.kind == "zero":
        return f"underflow: the smallest positive number is {format.smallest_subnormal:.3g}"
    error = abs(stored.value - value) / abs(value)
    exact = "exact" if error == 0 else f"off by {error:.2g} of its size"
    if stored.kind == "subnormal":
        return f"subnormal, its digits run out: {exact}"
    return exact


# The switchboard of assumptions

TRAINING = "adamwAccounting"
QUESTIONS = {
    "parameters": ("transformer_accounting", "a"),
    "forward FLOPs": ("transformer_accounting", "b"),
    "long context": ("transformer_accounting", "e"),
    "memory, batch": (TRAINING, "b"),
    "AdamW": (TRAINING, "c"),
    "time": (TRAINING, "d"),
}
# The switchboard leaves the size of the model and the number of its blocks alone.
OFFERED = [switch for switch in SWITCHES if switch.field not in {"size", "every_block"}]
NO_SWITCH = "No switch is on: this is what the problem asks for."


def switchboard(question: str = "parameters", edition: Edition = "2025") -> Live:
    """Switches for the assumptions of both accounting problems, and the numbers that come out."""
    questions = live.choice("Question", QUESTIONS, question)
    editions = live.choice("Edition", EDITIONS, edition)
    boxes = {
        switch: ipywidgets.Checkbox(
            description=switch.words, indent=False, layout={"width": "27rem", "max_width": "100%"}
        )
        for switch in OFFERED
    }

    def leave_one(flipped: Switch, change: Mapping) -> None:
        """An assumption has one value: flipping a switch turns off the others of its field."""
        if change["new"]:
            for switch, box in boxes.items():
                if switch.field == flipped.field and switch != flipped:
                    box.value = False

    def offer(_=None) -> None:
        """Show the switches that belong to the question."""
        usable = offered(questions.value, editions.value)
        for switch, box in boxes.items():
            box.layout.display = None if switch in usable else "none"

    def show(question: str, edition: Edition, **flags: bool) -> Shown:
        on = [switch for switch, flag in zip(boxes, flags.values(), strict=True) if flag]
        usable = offered(question, edition) if on else ()
        return _numbers_shown(question, edition, tuple(s for s in on if s in usable))

    for switch, box in boxes.items():
        box.observe(partial(leave_one, switch), "value")
    for control in (questions, editions):
        control.observe(offer, "value")
    offer()
    controls = {"question": questions, "edition": editions}
    controls |= {f"{switch.field}={switch.value}": box for switch, box in boxes.items()}
    rows = [questions, editions, live.side_by_side(*boxes.values())]
    return Live("Switchboard of assumptions", controls, show, rows)


def numbers(question: str, edition: Edition, *flipped: Switch) -> dict[str, Quantity]:
    """The numbers that a question asks for, with some of its assumptions changed."""
    place = QUESTIONS[question]
    changes = {switch.field: switch.value for switch in flipped}
    return answers(*place, replace(asked(*place, edition), **changes))


@cache
def offered(question: str, edition: Edition) -> tuple[Switch, ...]:
    """The switches that make a difference to a question."""
    place = QUESTIONS[question]
    right = numbers(question, edition)
    return tuple(
        switch
        for switch in switches(*place, asked(*place, edition))
        if switch in OFFERED and numbers(question, edition, switch) != right
    )


def _numbers_shown(question: str, edition: Edition, flipped: Sequence[Switch]) -> Shown:
    right = numbers(question, edition)
    now = numbers(question, edition, *flipped)
    named = "; ".join(switch.words for switch in flipped)
    summary = f"Flipped: {named}." if flipped else NO_SWITCH
    rows = [(name, _written(right[name]), _written(now[name])) for name in right]
    cells = [
        (escape(name), before, f"<b>{after}</b>" if now[name] != right[name] else after)
        for name, before, after in rows
    ]
    columns = ["quantity", "as asked", "with the switches"]
    table = live.table("The numbers as asked and with them", columns, cells, numbers=columns[1:])
    listed = "; ".join(f"{name} {after}" for name, _, after in rows)
    lines = [[(summary, "", "")]] + [
        [(f"{name}: {before}", "", "as asked"), (after, "", "with the switches")]
        for name, before, after in rows
    ]
    return Shown(
        f"<p>{escape(summary)}</p>{table}",
        f"{question}, edition {edition}. {summary} {listed}.",
        partial(live.token_lines, lines),
    )


def _written(answer: Quantity) -> str:
    """A number with its unit, in readable form.

    >>> _written(Quantity(8_508_230_400, "bytes")), _written(Quantity(0.669123, "share"))
    ('8.508 GB (7.924 GiB)', '66.91 %')
    >>> _written(Quantity(2_127_057_600, "count")), _written(Quantity(4_513_336_524_800, "flops"))
    ('2,127,057,600', '4.5133e12')
    """
    value = answer.value
    match answer.kind:
        case "bytes":
            return f"{value / GB:,.4g} GB ({value / GiB:,.4g} GiB)"
        case "share":
            return f"{100 * value:.2f} %"
        case "seconds":
            return f"{value / 86_400:,.1f} days ({value / 3_600:,.0f} hours)"
        case "factor":
            return f"{value:.2f} times"
    if float(value).is_integer() and value < 1e11:
        return f"{int(value):,}"
    return f"{value:,.5g}".replace("e+", "e")
