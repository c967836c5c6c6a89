"""The pictures of notebook 04: shares, memory against its limit, time, and the bits of numbers.

The switchboard of assumptions: flip one, and see which number, and whose, comes out.

The live view of floating point numbers: what three formats make of the number that is typed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import ipywidgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, PercentFormatter

from workbook.accounting.answers import Figure, answers, significant
from workbook.accounting.assumptions import SWITCHES, Assumptions, Switch, asked, switches
from workbook.accounting.explain import Explanation, explain_all, ways
from workbook.accounting.training import GB, GiB
from workbook.config import EDITIONS, Edition
from workbook.experiments.published import claims_about
from workbook.optimizer import floats
from workbook.optimizer.floats import FORMATS, FloatFormat, Stored
from workbook.views.live import Live, escape, text_field, token_lines, well_formed
from workbook.views.plots import BLUE, COLOURS, GREEN, GREY, INK, ORANGE, PALE, axes

THIN = 0.07  # of the whole height: too thin for letters
DARK = (BLUE, GREEN)  # backgrounds on which white letters can be read
FIELDS = {"sign": (GREY, INK), "exponent": (ORANGE, INK), "mantissa": ("#cfe6f5", INK)}


def _ink(colour: str) -> str:
    """The colour of letters on a background."""
    return "white" if colour in DARK else INK


def shares(table: pd.DataFrame, what: str, ax: Axes | None = None) -> Axes:
    """A bar a row of `table`, cut into the shares of its columns; small shares have no number."""
    ax = axes(ax, height=1.2 + 0.42 * len(table))
    parts = table.div(table.sum(axis=1), axis=0)
    left = np.zeros(len(table))
    for colour, name in zip(COLOURS, parts.columns, strict=False):
        bars = ax.barh(range(len(table)), parts[name], left=left, color=colour, height=0.7)
        texts = [f"{share:.0%}" if share >= 0.045 else "" for share in parts[name]]
        ax.bar_label(bars, texts, label_type="center", color=_ink(colour), fontsize=8)
        bars.set_label(name)
        left += parts[name].to_numpy()
    ax.set_yticks(range(len(table)), table.index)
    ax.invert_yaxis()  # the first row on top, as in the table
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter(PercentFormatter(1))
    ax.set_xlim(0, 1)
    ax.set_xlabel(what)
    ax.set_ylabel(table.index.name)
    _legend_above(ax)
    return ax


def _legend_above(ax: Axes) -> None:
    """A legend on top of the axes, its entries side by side in as few rows as fit."""
    labels = ax.get_legend_handles_labels()[1]
    rows = -(-sum(len(label) + 7 for label in labels) // 78)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=-(-len(labels) // rows))


def shares_along(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The columns' shares as bands over the index, on a log axis; each band is named in itself.

    A band too thin for its name has it above the picture.
    """
    ax = axes(ax, height=3.4)
    parts = table.div(table.sum(axis=1), axis=0)
    tops = parts.cumsum(axis=1)
    x = table.index.to_numpy(dtype=float)
    for colour, name in zip(COLOURS, parts.columns, strict=False):
        ax.fill_between(x, tops[name] - parts[name], tops[name], color=colour, lw=0)
        place = int(np.argmax(parts[name].to_numpy()))
        side = {0: "left", len(x) - 1: "right"}.get(place, "center")
        share = parts[name].iloc[place]
        if share >= THIN:
            ax.annotate(
                f" {name} ", (x[place], tops[name].iloc[place] - share / 2), color=_ink(colour),
                ha=side, va="center", fontweight="bold", fontsize=9,
            )  # fmt: skip
        else:
            ax.annotate(
                f"{name}, at most {share:.0%}", (x[place], 1), (0, 3), color=INK, fontsize=9,
                textcoords="offset points", ha=side, va="bottom", annotation_clip=False,
            )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(x, [_positions(value) for value in x])
    ax.minorticks_off()
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1))
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.set_xlabel(table.index.name)
    return ax


def _positions(value: float) -> str:
    """A number of positions as people write it: 512, 4K, 1M."""
    for size, letter in ((2**20, "M"), (2**10, "K")):
        if value >= size and value % size == 0:
            return f"{value / size:,.0f}{letter}"
    return f"{value:,.0f}"


def stacked(
    table: pd.DataFrame, quantity: str, limit: float, limit_name: str, ax: Axes | None = None
) -> Axes:
    """A bar a row of `table`, its columns one upon the other, and a dashed line at the limit.

    A bar that crosses the line is crossed out.
    """
    ax = axes(ax)
    bottom = np.zeros(len(table))
    for colour, name in zip(COLOURS, table.columns, strict=False):
        ax.bar(range(len(table)), table[name], bottom=bottom, color=colour, label=name, width=0.75)
        bottom += table[name].to_numpy()
    for place, total in enumerate(bottom):
        fits = total <= limit
        text = f"{total:,.1f}" + ("" if fits else "\ntoo much")
        weight = "normal" if fits else "bold"
        ax.annotate(
            text, (place, total), (0, 3), textcoords="offset points", ha="center", va="bottom",
            fontsize=8, color=INK, fontweight=weight,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )  # fmt: skip
    ax.axhline(limit, color=INK, linestyle="--", linewidth=1)
    ax.annotate(
        limit_name, (-0.45, limit), (0, 3), textcoords="offset points", fontsize=8, color=INK
    )
    ax.set_xticks(range(len(table)), table.index)
    ax.set_xlim(-0.5, len(table) - 0.5)
    ax.margins(y=0.15)
    ax.set_xlabel(table.index.name)
    ax.set_ylabel(quantity)
    ax.grid(axis="y")
    _legend_above(ax)
    return ax


TIMES = {"1 hour": 1 / 24, "1 day": 1, "1 week": 7, "1 month": 30, "1 year": 365, "10 years": 3650}


def days(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """A line a column of `table`, in days, over its index; both axes are logarithmic."""
    ax = axes(ax, height=4.0)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        ax.plot(table[name], color=colour, linewidth=2, marker="o", ms=3)
        ax.annotate(
            name, (table.index[0], table[name].iloc[0]), (-6, 0), color=INK, fontsize=8,
            textcoords="offset points", ha="right", va="center", annotation_clip=False,
            bbox={"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"},
        )  # fmt: skip
    low, high = table.min(axis=None), table.max(axis=None)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(table.index, [f"{x:,}" for x in table.index])
    inside = {name: size for name, size in TIMES.items() if low <= size <= high}
    ax.set_yticks(list(inside.values()), inside)
    ax.minorticks_off()
    ax.yaxis.tick_right()  # the names of the lines are on the left
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(table.index.name)
    ax.grid()
    return ax


def rates(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """A line a column of `table` over its index, named at its end; both axes are logarithmic."""
    ax = axes(ax)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        line = table[name].dropna()
        ax.plot(line, color=colour, linewidth=2, marker="o", ms=4)
        ax.annotate(
            f" {name}", (line.index[-1], line.iloc[-1]), (3, 0), textcoords="offset points",
            color=INK, va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.set_xticks(table.index, [f"{x:,}" for x in table.index])
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:,g}")
    ax.minorticks_off()
    ax.set_xlabel(table.index.name)
    ax.set_ylabel(quantity)
    ax.grid()
    return ax


def outcomes(
    values: Mapping[str, tuple[float, str]],
    published: Sequence[tuple[str, str]],
    quantity: str,
    ax: Axes | None = None,
) -> Axes:
    """A bar for each of `values` (size, as written), and published numbers in words below.

    A published number with a note beside it is bold: it is the one that comes out.
    """
    ax = axes(ax, height=0.6 + 0.32 * (len(values) + len(published)))
    for y, (colour, (size, text)) in enumerate(zip((GREY, BLUE), values.values(), strict=False)):
        ax.barh(y, size, color=colour, height=0.7)
        ax.annotate(
            text, (size, y), (4, 0), textcoords="offset points", va="center", fontsize=9, color=INK
        )
    for y, (text, note) in enumerate(published, start=len(values)):
        ax.annotate(
            f"{text}   {note}", (0, y), (4, 0), textcoords="offset points", va="center",
            fontsize=9, color=INK, fontweight="bold" if note else "normal",
        )  # fmt: skip
    rows = len(values) + len(published)
    labels = [*values, "published", *[""] * rows]
    ax.set_yticks(range(rows), labels[:rows])
    ax.set_ylim(rows - 0.4, -0.6)
    # Room on the right for what is written beside the longest bar.
    ax.set_xlim(0, 1.5 * max(size for size, _ in values.values()))
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlabel(quantity)
    return ax


def float_bits(rows: Mapping[str, Stored], ax: Axes | None = None) -> Axes:
    """Each row's number bit by bit: one box a bit, its three fields apart in tone and by name."""
    ax = axes(ax, height=0.5 + 0.85 * len(rows))
    for y, stored in enumerate(rows.values()):
        x = 0
        for field, (face, ink) in FIELDS.items():
            bits = getattr(stored, field)
            for place, bit in enumerate(bits, start=x):
                ax.add_patch(plt.Rectangle((place, y - 0.3), 1, 0.6, fc=face, ec="white"))
                ax.text(
                    place + 0.5, y, bit, color=ink, family="monospace", ha="center",
                    va="center_baseline",
                )  # fmt: skip
            name = field if field != "sign" else "±"
            ax.text(
                x + len(bits) / 2, y - 0.34, name, fontsize=8, color=INK, ha="center", va="bottom"
            )
            x += len(bits)
        told = f"= {stored.value:.9g}, {stored.kind}"
        ax.text(0, y + 0.34, told, fontsize=8, color=INK, va="top")
    ax.set(xlim=(-0.2, 32.2), ylim=(len(rows) - 0.4, -0.6))
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def float_ranges(
    formats: Sequence[FloatFormat], marks: Mapping[str, float], ax: Axes | None = None
) -> Axes:
    """How far each format reaches on a log axis: normal numbers solid, subnormal ones pale.

    `marks` are numbers that are pointed out on the axis.
    """
    ax = axes(ax, height=1.3 + 0.5 * len(formats))
    for y, each in enumerate(formats):
        low, middle, high = (
            np.log10(size) for size in (each.smallest_subnormal, each.smallest_normal, each.largest)
        )
        ax.barh(y, middle - low, left=low, color=PALE[1], ec=BLUE, height=0.5)
        ax.barh(y, high - middle, left=middle, color=BLUE, ec=BLUE, height=0.5)
        digits = f"{(each.mantissa_bits + 1) * np.log10(2):.1f} digits"
        ax.text((middle + high) / 2, y, digits, color="white", ha="center", va="center", fontsize=8)
    for name, value in marks.items():
        ax.axvline(np.log10(value), color=INK, linestyle="--", linewidth=1, zorder=3)
        ax.annotate(
            name, (np.log10(value), -0.5), (0, 3), textcoords="offset points", fontsize=8,
            color=INK, ha="center", va="bottom", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(range(len(formats)), [each.name for each in formats])
    ax.set_ylim(len(formats) - 0.5, -0.5)
    ticks = range(-45, 40, 15)
    ax.set_xticks(ticks, [f"$10^{{{tick}}}$" for tick in ticks])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("size of a number (pale: subnormal, its digits run out)")
    ax.grid(axis="x")
    return ax


TRAINING = "adamwAccounting"
QUESTIONS = {
    "parameters": ("transformer_accounting", "a"),
    "forward FLOPs": ("transformer_accounting", "b"),
    "long context": ("transformer_accounting", "e"),
    "memory, batch": (TRAINING, "b"),
    "AdamW": (TRAINING, "c"),
    "time": (TRAINING, "d"),
}
HIDDEN = {"size", "every_block"}  # assumptions that the switchboard leaves alone
NONE = "No switch is on: this is what the problem asks for."


@dataclass(frozen=True)
class State:
    """A question, an edition and the switches that are flipped; all that is shown follows."""

    question: str
    edition: Edition
    flipped: tuple[Switch, ...]

    @property
    def place(self) -> tuple[str, str]:
        """Problem and part."""
        return QUESTIONS[self.question]

    @cached_property
    def base(self) -> Assumptions:
        """What the problem states."""
        return asked(*self.place, self.edition)

    @cached_property
    def right(self) -> dict[str, Figure]:
        """The numbers that the problem asks for."""
        return answers(*self.place, self.base)

    @cached_property
    def now(self) -> dict[str, Figure]:
        """The numbers with the flipped switches."""
        changes = {switch.field: switch.value for switch in self.flipped}
        return answers(*self.place, replace(self.base, **changes))

    @cached_property
    def published(self) -> list[tuple[str, str, str]]:
        """Each number that a write-up claims: who, as claimed, and "" or in words that it is here.

        A claim says what its author gets; a slip of units may still lie between it and our number.
        """
        problem, part = self.place
        found = []
        for claim in claims_about(problem, part):
            for amount in claim.amounts:
                some = ways(problem, amount, part, self.edition)
                here = next((way for way in some if self._gives(way)), None)
                text = amount.text + f", of “{claim.claimed}”" * (len(claim.amounts) > 1)
                found.append((claim.writeup, text, "" if here is None else _slip(here)))
        return found

    def _gives(self, way: Explanation) -> bool:
        """Whether the number that an explanation speaks of is the one that comes out now."""
        now = self.now.get(way.quantity)
        return now is not None and math.isclose(now.value, way.value)


def _slip(way: Explanation) -> str:
    """That a number is here, and what else its author did: units, mostly."""
    return "this is it" + (f", when {way.slip}" if way.slip else "")


def switchboard(question: str = "parameters", edition: Edition = "2025") -> Live:
    """Switches for the assumptions of both accounting problems, and the numbers that come out.

    A button for each published claim flips what explains it.
    """
    questions = ipywidgets.ToggleButtons(
        options=list(QUESTIONS), value=question, description="Question",
        style={"button_width": "auto"},
    )  # fmt: skip
    editions = ipywidgets.ToggleButtons(
        options=list(EDITIONS), value=edition, description="Edition",
        style={"button_width": "auto"},
    )  # fmt: skip
    boxes = {
        switch: ipywidgets.Checkbox(
            description=switch.words, indent=False, layout={"width": "27rem", "max_width": "100%"}
        )
        for switch in SWITCHES
        if switch.field not in HIDDEN
    }
    for switch, box in boxes.items():
        box.observe(lambda change, switch=switch: _leave_one(switch, change["new"], boxes), "value")
    grid = ipywidgets.HBox([*boxes.values()], layout={"flex_flow": "row wrap"})
    presets = ipywidgets.HBox(layout={"flex_flow": "row wrap"})

    def offer(_=None) -> None:
        """Show the switches and the claims that belong to the question."""
        state = State(questions.value, editions.value, ())
        usable = _offered(state)
        for switch, box in boxes.items():
            box.layout.display = None if switch in usable else "none"
        presets.children = [
            ipywidgets.Label("Flip what gives"), *_buttons(state, boxes),
        ]  # fmt: skip

    for control in (questions, editions):
        control.observe(offer, "value")
    offer()
    names = {_name(switch): switch for switch in boxes}

    def look(part: Callable[[State], str | Axes]) -> Callable:
        def view(question: str, edition: Edition, **flags: bool):
            usable = _offered(State(question, edition, ()))
            flipped = (names[name] for name, on in flags.items() if on)
            return part(State(question, edition, tuple(s for s in flipped if s in usable)))

        return view

    controls = {"question": questions, "edition": editions}
    controls |= {_name(switch): box for switch, box in boxes.items()}
    rows = [questions, editions, presets, grid]
    return Live(controls, look(_html), look(_picture), look(_words), rows=rows)


def _name(switch: Switch) -> str:
    return f"{switch.field}={switch.value}"


def _offered(state: State) -> list[Switch]:
    """The switches that make a difference to a question, and the one for GB and GiB."""
    some = switches(*state.place, state.base)
    return [
        switch
        for field, options in some.items()
        for switch in options
        if field not in HIDDEN
        and (field == "memory" or replace(state, flipped=(switch,)).now != state.right)
    ]


def _leave_one(flipped: Switch, on: bool, boxes: dict[Switch, ipywidgets.Checkbox]) -> None:
    """An assumption has one value: flipping a switch puts the others of its field back."""
    if on:
        for switch, box in boxes.items():
            if switch.field == flipped.field and switch != flipped:
                box.value = False


def _buttons(state: State, boxes: dict[Switch, ipywidgets.Checkbox]) -> list[ipywidgets.Button]:
    """A button for what is asked, and one for each claim that switches can explain."""
    problem, part = state.place
    causes: dict[str, tuple[Switch, ...]] = {"as asked": ()}
    for claim in claims_about(problem, part):
        found = explain_all(problem, claim.amounts, part, state.edition)
        best = [each.explanations[0] for each in found if each.explanations]
        best = [way for way in best if all(switch in boxes for switch in way.flipped)]
        if best:
            most = max(best, key=lambda way: len(way.flipped))
            causes[f"{claim.writeup}: {claim.claimed}"] = most.flipped
    buttons = []
    for label, flipped in causes.items():
        button = ipywidgets.Button(description=label, layout={"width": "auto"})
        button.on_click(lambda _, flipped=flipped: _flip(flipped, boxes))
        buttons.append(button)
    return buttons


def _flip(flipped: tuple[Switch, ...], boxes: dict[Switch, ipywidgets.Checkbox]) -> None:
    """Flip these switches and no others."""
    for switch, box in boxes.items():
        box.value = switch in flipped


def written(answer: Figure) -> str:
    """A number with its unit, as one reads it.

    >>> written(Figure(8_508_230_400, "bytes")), written(Figure(0.669123, "share"))
    ('8.508 GB (7.924 GiB)', '66.91 %')
    """
    value = answer.value
    match answer.unit:
        case "bytes" | "bytes per sequence":
            return f"{value / GB:,.4g} GB ({value / GiB:,.4g} GiB)"
        case "share":
            return f"{100 * value:.2f} %"
        case "seconds":
            return f"{value / 86_400:,.1f} days ({value / 3_600:,.0f} hours)"
        case "factor":
            return f"{value:.2f} times"
    return significant(value)


def _flipped(state: State) -> str:
    """The flipped switches in words."""
    words = "; ".join(switch.words for switch in state.flipped)
    return f"Flipped: {words}." if words else NONE


def _html(state: State) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="number">{written(right)}</td>'
        f'<td class="number">{_changed(right, state.now[name])}</td></tr>'
        for name, right in state.right.items()
        if name in state.now
    )
    said = "".join(map(_published_row, state.published))
    return f"""
<p>{escape(_flipped(state))}</p>
<div class="columns"><div><h4>The numbers</h4>
<table aria-label="The numbers as asked and with the switches"><thead><tr>
<th scope="col">quantity</th><th scope="col" class="number">as asked</th>
<th scope="col" class="number">with the switches</th></tr></thead><tbody>{rows}</tbody></table>
</div><div><h4>Published numbers</h4>
<table aria-label="Published numbers"><tbody>{said}</tbody></table></div></div>"""


def _published_row(said: tuple[str, str, str]) -> str:
    """One published number; framed where it is the one that comes out."""
    who, text, here = said
    told = f'<span class="token new">{escape(here)}</span>' if here else ""
    return f"<tr><td>{who}</td><td><code>{escape(text)}</code></td><td>{told}</td></tr>"


def _changed(right: Figure, now: Figure) -> str:
    """The number that comes out; bold where it is another one."""
    return written(now) if now == right else f"<b>{written(now)}</b>"


def _picture(state: State) -> Axes:
    name = next(iter(state.now))
    both = {"as asked": state.right[name], "with switches": state.now[name]}
    values = {label: (answer.value, written(answer)) for label, answer in both.items()}
    said = [(f"{who}: {text}", here) for who, text, here in state.published]
    return outcomes(values, said, f"{name}, edition {state.edition}")


def _words(state: State) -> str:
    found = "; ".join(f"{name} {written(now)}" for name, now in state.now.items())
    here = [f"{who} published {text}: {told}" for who, text, told in state.published if told]
    published = f" {'. '.join(here)}." if here else ""
    return (
        f"Switchboard of assumptions, live when the cell is run. {state.question}, edition "
        f"{state.edition}. {_flipped(state)} {found}.{published}"
    )


FLOAT_TONES = {"sign": "plain", "exponent": "tone1", "mantissa": "tone0"}  # as in the picture
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
    return Live({"text": field}, _float_html, _float_picture, _float_words, rows=[row])


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
        return f"underflow: the smallest number is {format.smallest_subnormal:.3g}"
    error = abs(stored.value - value) / abs(value)
    exact = "exact" if error == 0 else f"off by {error:.2g} of its size"
    if stored.kind == "subnormal":
        return f"subnormal, its digits run out: {exact}"
    return exact


def _float_html(text: str) -> str:
    value = _number(text)
    if value is None:
        return f"<p>{escape(_refusal(text))}</p>"
    rows = "".join(_float_row(value, each) for each in FORMATS.values())
    key = " ".join(
        f'<span class="bits"><span class="{tone}">{field}</span></span>'
        for field, tone in FLOAT_TONES.items()
    )
    return f"""
<p>Python holds <b>{value!r}</b>, in float64. Its fields, from left to right: {key}</p>
<table aria-label="The number in three formats">
<thead><tr><th scope="col">format</th><th scope="col">bits</th><th scope="col">value</th>
<th scope="col">what became of it</th></tr></thead><tbody>{rows}</tbody></table>"""


def _float_row(value: float, format: FloatFormat) -> str:
    """One format as a row of the table."""
    stored = format.store(value)
    fields = "".join(
        f'<span class="{tone}">{getattr(stored, field)}</span>'
        for field, tone in FLOAT_TONES.items()
    )
    return (
        f'<tr><td>{format.name}</td><td><span class="bits">{fields}</span></td>'
        f"<td>{stored.value:.9g}</td><td>{became(value, format, stored)}</td></tr>"
    )


def _float_picture(text: str) -> Axes:
    value = _number(text)
    if value is None:
        return token_lines([[(_refusal(text), "", "")]])
    return float_bits({name: each.store(value) for name, each in FORMATS.items()})


def _float_words(text: str) -> str:
    value = _number(text)
    if value is None:
        return f"Number explorer, live when the cell is run. {_refusal(text)}"
    rows = []
    for name, each in FORMATS.items():
        stored = each.store(value)
        bits = f"{stored.sign} {stored.exponent} {stored.mantissa}"
        rows.append(f"{name} {bits} = {stored.value:.9g}, {became(value, each, stored)}")
    return f"Number explorer, live when the cell is run. {value!r}: {'; '.join(rows)}."
