"""The switchboard of assumptions: flip one, and see which number, and whose, comes out."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import ipywidgets
from matplotlib.axes import Axes

from workbook.accounting.answers import Figure, answers, significant
from workbook.accounting.assumptions import SWITCHES, Assumptions, Switch, asked, switches
from workbook.accounting.explain import Explanation, explain_all, ways
from workbook.accounting.training import GB, GiB
from workbook.config import EDITIONS, Edition
from workbook.experiments.published import claims_about
from workbook.views import accounting_plots
from workbook.views.live import Live, escape

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
        case "bytes" | "bytes a sequence":
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
    return accounting_plots.outcomes(values, said, f"{name}, edition {state.edition}")


def _words(state: State) -> str:
    found = "; ".join(f"{name} {written(now)}" for name, now in state.now.items())
    here = [f"{who} published {text}: {told}" for who, text, told in state.published if told]
    published = f" {'. '.join(here)}." if here else ""
    return (
        f"Switchboard of assumptions, live when the cell is run. {state.question}, edition "
        f"{state.edition}. {_flipped(state)} {found}.{published}"
    )
