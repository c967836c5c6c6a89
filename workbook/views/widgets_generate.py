"""The live view of notebook 07: what temperature and top-p make of a model's next token."""

from collections.abc import Callable, Mapping

import ipywidgets

from workbook.views.generation import MOST_TOKENS, next_bars, percent
from workbook.views.live import Live, escape, number, text_field, well_formed
from workbook.views.visible import visible

LONGEST = 600  # characters of a text, of which a model sees the last few anyway


def next_token_chances(
    next_tokens: Callable[..., Mapping[bytes, float]],
    text: str = "Once upon a time, there was a",
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Live:
    """A text to type, two sliders, and the tokens that may come next with their probabilities.

    `next_tokens(text, temperature, top_p)` gives them, the likeliest first.
    """
    field = text_field("Your text", text, lines=2)
    sliders = {
        name: ipywidgets.FloatSlider(
            value=value, min=least, max=most, step=0.05, description=label, readout_format=".2f",
            style={"description_width": "initial"}, layout={"width": "auto", "max_width": "32rem"},
        )
        for name, label, value, least, most in (
            ("temperature", "Temperature", temperature, 0.0, 2.0),
            ("top_p", "Top-p", top_p, 0.05, 1.0),
        )
    }  # fmt: skip

    def look(part):
        def shown(text, temperature, top_p):
            text = well_formed(text)[-LONGEST:]
            before = next_tokens(text, 1.0, 1.0)
            # Sliders move in steps that add up to 0.9500000000000001.
            after = next_tokens(text, round(temperature, 2), round(top_p, 2))
            return part(before, after, round(temperature, 2), round(top_p, 2))

        return shown

    views = map(look, (_html, lambda before, after, *_: next_bars(before, after), _words))
    return Live({"text": field, **sliders}, *views)


def _told(
    before: Mapping[bytes, float], after: Mapping[bytes, float], temperature: float, top_p: float
) -> str:
    """The settings and how many tokens they leave, in two sentences."""
    likeliest, share = next(iter(after.items()))
    return (
        f"Temperature {temperature:g}, top-p {top_p:g}: {number(len(after), 'token')} of"
        f" {len(before):,} may come next. The likeliest is {visible(likeliest)}, with"
        f" {percent(share)}."
    )


def _html(before, after, temperature: float, top_p: float) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(visible(token))}</code></td>"
        f'<td class="number">{escape(percent(share))}</td>'
        f'<td class="number">{escape(_drawn(token, after))}</td>'
        f"<td>{_bar(after.get(token, 0.0))}</td></tr>"
        for token, share in list(before.items())[:MOST_TOKENS]
    )
    hidden = len(before) - MOST_TOKENS
    more = f"<p>and {number(hidden, 'less likely token')}</p>" if hidden > 0 else ""
    return (
        f"<p>{escape(_told(before, after, temperature, top_p))}</p>"
        '<table aria-label="The likeliest next tokens"><thead><tr><th scope="col">token</th>'
        '<th scope="col" class="number">model</th><th scope="col" class="number">drawn</th>'
        f'<th scope="col"></th></tr></thead><tbody>{rows}</tbody></table>{more}'
    )


def _bar(share: float) -> str:
    """A bar as long as a share; the number beside it says the same."""
    return (
        f'<span class="strong" aria-hidden="true" style="display: inline-block; height: 0.8em;'
        f' width: {12 * share:.2f}rem"></span>'
    )


def _drawn(token: bytes, after: Mapping[bytes, float]) -> str:
    """How often a token will be drawn."""
    return percent(after[token]) if token in after else "cut"


def _words(before, after, temperature: float, top_p: float) -> str:
    shown = "; ".join(
        f"{visible(token)} {percent(share)}, {_drawn(token, after)}"
        for token, share in list(before.items())[:MOST_TOKENS]
    )
    return (
        "Next token, live when the cell is run."
        f" {_told(before, after, temperature, top_p)} Tokens, by the model and as drawn: {shown}."
    )
