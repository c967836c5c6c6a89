"""Notebook 04: shares, memory against its limit, time and the bits of numbers, as pictures.

The live views are the number explorer (what three formats make of a number) and the switchboard of
assumptions: flip one, and see which number, and whose, comes out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import ipywidgets
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, PercentFormatter

from workbook.accounting.answers import Figure, answers, significant
from workbook.accounting.assumptions import SWITCHES, Assumptions, Switch, asked, switches
from workbook.accounting.explain import explain_all, ways
from workbook.accounting.training import GB, GiB
from workbook.config import EDITIONS, Edition
from workbook.experiments.published import claims_about
from workbook.optimizer import floats
from workbook.optimizer.floats import FORMATS, FloatFormat, Stored
from workbook.views import live, plots
from workbook.views.live import Live, Shown, escape
from workbook.views.plots import BLUE, COLOURS, GREY, INK, ORANGE, PALE, axes, note

THIN = 0.07  # of the whole height: too thin for letters
FIELDS = {"sign": GREY, "exponent": ORANGE, "mantissa": "#cfe6f5"}
PATCH = {"boxstyle": "square,pad=0.1", "fc": "white", "ec": "none"}  # behind what a line may cross


def shares(table: pd.DataFrame, what: str, ax: Axes | None = None) -> Axes:
    """One bar per row of `table`, cut into its columns' shares; small shares have no number."""
    ax = axes(ax, height=1.2 + 0.42 * len(table))
    plots.share_bars(ax, table)
    plots.named_rows(ax, table.index)
    ax.set(xlabel=what, ylabel=table.index.name)
    _legend_above(ax)
    return ax


def _legend_above(ax: Axes) -> None:
    """A legend on top of the axes, its entries side by side in as few rows as fit."""
    labels = ax.get_legend_handles_labels()[1]
    rows = -(-sum(len(label) + 7 for label in labels) // 78)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=-(-len(labels) // rows))


def shares_along(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The columns' shares as bands over the index, on a log axis, each with its name inside.

    A band too thin for its name has it above the picture.
    """
    ax = axes(ax, height=3.4)
    parts = table.div(table.sum(axis=1), axis=0)
    tops = parts.cumsum(axis=1)
    x = table.index.to_numpy(dtype=float)
    for colour, name in zip(plots.colours_of(parts.columns), parts.columns, strict=False):
        ax.fill_between(x, tops[name] - parts[name], tops[name], color=colour, lw=0)
        place = int(np.argmax(parts[name].to_numpy()))
        side = {0: "left", len(x) - 1: "right"}.get(place, "center")
        share = parts[name].iloc[place]
        if share >= THIN:
            ax.annotate(
                f" {name} ", (x[place], tops[name].iloc[place] - share / 2), fontsize=9, ha=side,
                color="white" if colour in plots.DARK else INK, va="center", fontweight="bold",
            )  # fmt: skip
        else:
            note(
                ax, f"{name}, at most {share:.0%}", (x[place], 1), (0, 3), color=INK, fontsize=9,
                ha=side, va="bottom", annotation_clip=False,
            )  # fmt: skip
    plots.log2_axis(ax, x, _positions)
    ax.set(xlim=(x[0], x[-1]), ylim=(0, 1), xlabel=table.index.name, ylabel="share of the FLOPs")
    ax.yaxis.set_major_formatter(PercentFormatter(1))
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
    """One bar per row of `table`, its columns stacked, and a dashed line at the `limit`.

    A bar that crosses the line is labelled "too much".
    """
    ax = axes(ax)
    bottom = np.zeros(len(table))
    for colour, name in zip(plots.colours_of(table.columns), table.columns, strict=False):
        ax.bar(range(len(table)), table[name], bottom=bottom, color=colour, label=name, width=0.75)
        bottom += table[name].to_numpy()
    for place, total in enumerate(bottom):
        more, weight = ("", "normal") if total <= limit else ("\ntoo much", "bold")
        note(
            ax, f"{total:,.1f}{more}", (place, total), (0, 3), ha="center", va="bottom", fontsize=8,
            color=INK, fontweight=weight, bbox=PATCH,
        )  # fmt: skip
    ax.axhline(limit, color=INK, linestyle="--", linewidth=1)
    note(ax, limit_name, (-0.45, limit), (0, 3), fontsize=8, color=INK)
    ax.set_xticks(range(len(table)), table.index)
    ax.set(xlim=(-0.5, len(table) - 0.5), ymargin=0.15)
    ax.set(xlabel=table.index.name, ylabel=quantity)
    ax.grid(axis="y")
    _legend_above(ax)
    return ax


TIMES = {"1 hour": 1 / 24, "1 day": 1, "1 week": 7, "1 month": 30, "1 year": 365, "10 years": 3650}


def days(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """One line per column of `table`, in days, over its index; both axes are logarithmic."""
    ax = axes(ax, height=4.0)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        ax.plot(table[name], color=colour, linewidth=2, marker="o", ms=3)
        note(
            ax, name, (table.index[0], table[name].iloc[0]), (-6, 0), color=INK, fontsize=8,
            ha="right", va="center", annotation_clip=False, bbox=PATCH,
        )  # fmt: skip
    low, high = table.min(axis=None), table.max(axis=None)
    inside = {name: size for name, size in TIMES.items() if low <= size <= high}
    ax.set(yscale="log", xlabel=table.index.name, ylabel="training time")
    ax.set_yticks(list(inside.values()), inside)
    plots.log2_axis(ax, table.index)
    ax.yaxis.tick_right()  # the names of the lines are on the left
    ax.yaxis.set_label_position("right")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid()
    return ax


def rates(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Axes:
    """One line per column of `table` over its index, named at its end; both axes are log."""
    ax = axes(ax)
    for colour, name in zip(COLOURS, table.columns, strict=False):
        line = table[name].dropna()
        ax.plot(line, color=colour, linewidth=2, marker="o", ms=4)
        note(
            ax, f" {name}", (line.index[-1], line.iloc[-1]), (3, 0), color=INK, va="center",
            fontsize=8, annotation_clip=False,
        )  # fmt: skip
    ax.set(yscale="log", xlabel=table.index.name, ylabel=quantity)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:,g}")
    plots.log2_axis(ax, table.index)
    ax.grid()
    return ax


def outcomes(
    values: Mapping[str, tuple[float, str]],
    published: Sequence[tuple[str, str]],
    quantity: str,
    ax: Axes | None = None,
) -> Axes:
    """A bar for each of `values` (size, as written), and published numbers in words below.

    A published number with words beside it is bold: it is the one that comes out.
    """
    rows = len(values) + len(published)
    ax = axes(ax, height=0.6 + 0.32 * rows)
    look = {"va": "center", "fontsize": 9, "color": INK}
    for y, (colour, (size, text)) in enumerate(zip((GREY, BLUE), values.values(), strict=False)):
        ax.barh(y, size, color=colour, height=0.7)
        note(ax, text, (size, y), (4, 0), **look)
    for y, (text, here) in enumerate(published, start=len(values)):
        weight = "bold" if here else "normal"
        note(ax, f"{text}   {here}", (0, y), (4, 0), fontweight=weight, **look)
    labels = [*values, "published", *[""] * rows]
    ax.set_yticks(range(rows), labels[:rows])
    # Room on the right for what is written beside the longest bar.
    widest = 1.5 * max(size for size, _ in values.values())
    ax.set(xlim=(0, widest), ylim=(rows - 0.4, -0.6), xlabel=quantity, xticks=[])
    ax.tick_params(length=0)
    ax.spines["bottom"].set_visible(False)
    return ax


def float_bits(rows: Mapping[str, Stored], ax: Axes | None = None) -> Axes:
    """Each row's number bit by bit: one box per bit, the three fields in their own tones."""
    ax = axes(ax, height=0.5 + 0.85 * len(rows))
    for y, stored in enumerate(rows.values()):
        x = 0
        small = {"fontsize": 8, "color": INK}
        for field, face in FIELDS.items():
            bits = getattr(stored, field)
            for place, bit in enumerate(bits, start=x):
                plots.cell(
                    ax, place, y - 0.3, bit, face, height=0.6, color=INK, family="monospace",
                    va="center_baseline",
                )  # fmt: skip
            name = field if field != "sign" else "±"
            ax.text(x + len(bits) / 2, y - 0.34, name, ha="center", va="bottom", **small)
            x += len(bits)
        ax.text(0, y + 0.34, f"= {stored.value:.9g}, {stored.kind}", va="top", **small)
    ax.set(xlim=(-0.2, 32.2), ylim=(len(rows) - 0.4, -0.6), xticks=[])
    ax.set_yticks(range(len(rows)), rows)
    plots.bare(ax)
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
        note(
            ax, name, (np.log10(value), -0.5), (0, 3), fontsize=8, color=INK, ha="center",
            va="bottom", annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(range(len(formats)), [each.name for each in formats])
    ax.set_ylim(len(formats) - 0.5, -0.5)
    plots.tens(ax, range(-45, 40, 15))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("size of a number (pale: subnormal, with fewer digits)")
    ax.grid(axis="x")
    return ax


# The bits of a number

TONES = {"sign": "plain", "exponent": "tone1", "mantissa": "tone0"}  # as in the picture
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
        return floats.read(text[:LONGEST])
    except ValueError:
        return None


def _number_shown(text: str) -> Shown:
    value = _number(text)
    if value is None:
        short = text if len(text) < 20 else f"{text[:18]}…"
        refusal = f"{short!r} is not a number. Try 0.1, 70000, 1e-8, 2^-24 or 1/3."
        picture = partial(live.token_lines, [[(refusal, "", "")]])
        return Shown(f"<p>{escape(refusal)}</p>", refusal, picture)

    stored = {name: each.store(value) for name, each in FORMATS.items()}
    ends = {name: became(value, FORMATS[name], each) for name, each in stored.items()}
    key = " ".join(_bits({field: field for field in TONES}, field) for field in TONES)
    rows = [
        (name, _bits(vars(each), *TONES), f"{each.value:.9g}", ends[name])
        for name, each in stored.items()
    ]
    columns = ["format", "bits", "value", "what became of it"]
    html = f"""
<p>Python holds <b>{value!r}</b>, in float64. The fields below, from left to right: {key}</p>
{live.table("The number in three formats", columns, rows)}"""
    listed = "; ".join(
        f"{name} {each.sign} {each.exponent} {each.mantissa} = {each.value:.9g}, {ends[name]}"
        for name, each in stored.items()
    )
    return Shown(html, f"{value!r}: {listed}.", partial(float_bits, stored))


def _bits(texts: Mapping[str, str], *fields: str) -> str:
    """The texts of some fields in their tones, in one frame."""
    inside = "".join(f'<span class="{TONES[field]}">{texts[field]}</span>' for field in fields)
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
NONE = "No switch is on: this is what the problem asks for."


@dataclass(frozen=True)
class State:
    """A question, an edition and the flipped switches; all that is shown follows from these."""

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
        """Each number that a write-up claims: who, as written, and "this is it" if it comes out.

        A claim says what its author gets; a slip of units may still separate it from our number.
        """
        problem, part = self.place
        found = []
        for claim in claims_about(problem, part):
            for amount in claim.amounts:
                text = amount.text + f", of “{claim.claimed}”" * (len(claim.amounts) > 1)
                here = ""
                for way in ways(problem, amount, part, self.edition):
                    now = self.now.get(way.quantity)
                    if now is not None and math.isclose(now.value, way.value):
                        here = "this is it" + (f", when {way.slip}" if way.slip else "")
                        break
                found.append((claim.writeup, text, here))
        return found


def switchboard(question: str = "parameters", edition: Edition = "2025") -> Live:
    """Switches for the assumptions of both accounting problems, and the numbers that come out.

    A button for each published claim flips what explains it.
    """
    questions = live.choice("Question", QUESTIONS, question)
    editions = live.choice("Edition", EDITIONS, edition)
    boxes = {
        switch: ipywidgets.Checkbox(
            description=switch.words, indent=False, layout={"width": "27rem", "max_width": "100%"}
        )
        for switch in OFFERED
    }
    presets = live.side_by_side()

    def leave_one(flipped: Switch, change: Mapping) -> None:
        """An assumption has one value: flipping a switch turns off the others of its field."""
        if change["new"]:
            for switch, box in boxes.items():
                if switch.field == flipped.field and switch != flipped:
                    box.value = False

    def flip(flipped: Sequence[Switch]) -> None:
        """Flip these switches and no others."""
        for switch, box in boxes.items():
            box.value = switch in flipped

    def offer(_=None) -> None:
        """Show the switches and the claims that belong to the question."""
        state = State(questions.value, editions.value, ())
        usable = _offered(state)
        for switch, box in boxes.items():
            box.layout.display = None if switch in usable else "none"
        presets.children = [
            ipywidgets.Label("Flip the switches behind"),
            *(live.button(name, "", partial(flip, some)) for name, some in _causes(state).items()),
        ]

    def show(question: str, edition: Edition, **flags: bool) -> Shown:
        state = State(question, edition, ())
        on = [switch for switch, flag in zip(boxes, flags.values(), strict=True) if flag]
        usable = _offered(state) if on else ()
        return _state_shown(replace(state, flipped=tuple(s for s in on if s in usable)))

    for switch, box in boxes.items():
        box.observe(partial(leave_one, switch), "value")
    for control in (questions, editions):
        control.observe(offer, "value")
    offer()
    controls = {"question": questions, "edition": editions}
    controls |= {f"{switch.field}={switch.value}": box for switch, box in boxes.items()}
    rows = [questions, editions, presets, live.side_by_side(*boxes.values())]
    return Live("Switchboard of assumptions", controls, show, rows)


def _offered(state: State) -> list[Switch]:
    """The switches that make a difference to a question, and the one for GB and GiB."""
    some = switches(*state.place, state.base)
    return [
        switch
        for field, options in some.items()
        for switch in options
        if switch in OFFERED
        and (field == "memory" or replace(state, flipped=(switch,)).now != state.right)
    ]


def _causes(state: State) -> dict[str, tuple[Switch, ...]]:
    """The switches behind each claim that switches of ours can explain, and none for "as asked"."""
    problem, part = state.place
    causes: dict[str, tuple[Switch, ...]] = {"as asked": ()}
    for claim in claims_about(problem, part):
        found = explain_all(problem, claim.amounts, part, state.edition)
        best = [each.explanations[0] for each in found if each.explanations]
        best = [way for way in best if set(way.flipped) <= set(OFFERED)]
        if best:
            most = max(best, key=lambda way: len(way.flipped))
            causes[f"{claim.writeup}: {claim.claimed}"] = most.flipped
    return causes


def written(answer: Figure) -> str:
    """A number with its unit, in readable form.

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


def _state_shown(state: State) -> Shown:
    flipped = "; ".join(switch.words for switch in state.flipped)
    summary = f"Flipped: {flipped}." if flipped else NONE
    numbers, found = [], []
    for name, now in state.now.items():
        comes_out = written(now)
        changed = f"<b>{comes_out}</b>" if now != state.right[name] else comes_out
        numbers.append((escape(name), written(state.right[name]), changed))
        found.append(f"{name} {comes_out}")
    columns = ["quantity", "as asked", "with the switches"]
    label = "The numbers as asked and with the switches"
    ours = live.table(label, columns, numbers, numbers=columns[1:])

    claims, explained = [], ""
    for who, text, here in state.published:
        mark = f'<span class="token new">{escape(here)}</span>' if here else ""
        claims.append((who, f"<code>{escape(text)}</code>", mark))
        explained += f" {who} published {text}: {here}." if here else ""
    theirs = live.table("Published numbers", ["write-up", "number", "here"], claims)
    html = f"""
<p>{escape(summary)}</p>
<div class="columns"><div><h4>The numbers</h4>
{ours}
</div><div><h4>Published numbers</h4>
{theirs}</div></div>"""
    words = f"{state.question}, edition {state.edition}. {summary} {'; '.join(found)}.{explained}"

    def picture() -> Axes:
        name = next(iter(state.now))
        both = {"as asked": state.right[name], "with switches": state.now[name]}
        bars = {label: (answer.value, written(answer)) for label, answer in both.items()}
        listed = [(f"{who}: {text}", here) for who, text, here in state.published]
        return outcomes(bars, listed, f"{name}, edition {state.edition}")

    return Shown(html, words, picture)
