"""Notebook 07: what may follow, what each token costs, how likely each was, as pictures.

The live view shows what temperature and top-p do to a model's next token.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from workbook.classroom.views import live, plots
from workbook.classroom.views.live import Live, Shown, drawable, plural, visible
from workbook.classroom.views.plots import BLUE, COLOURS, GREY, axes

MOST_TOKENS = 12  # that are listed
# The least probability for each tone of a token, and its name in the key.
LEVELS = (
    (0.5, "plain", ">50%"),
    (0.1, "tone0", "10-50%"),
    (0.01, "tone1", "1-10%"),
    (0.0, "strong", "<1%"),
)


def reach(shares: Mapping[str, Sequence[float]], top_p: float) -> Axes:
    """The cumulative probability of the likeliest tokens, one line per setting.

    `shares` are the probabilities of all tokens, in any order. The dashed line is `top_p`, and a
    ring shows where it cuts.
    """
    ax = axes()
    ax.axhline(top_p, color=GREY, ls="--")
    ax.text(1, top_p, f"top-p {top_p:g} ", va="bottom", color="#555555")
    for colour, (name, one) in zip(COLOURS, shares.items(), strict=False):
        together = np.cumsum(np.sort(np.asarray(one))[::-1])
        needed = int(np.searchsorted(together, top_p)) + 1
        label = f"{name}: {plural(needed, 'token')}"
        ax.plot(np.arange(1, len(together) + 1), together, color=colour, label=label)
        ax.plot(needed, together[needed - 1], "o", ms=9, mfc="none", mec=colour, mew=2)
    ax.set(xscale="log", ylim=(0, 1.05))
    ax.set(xlabel="number of likeliest tokens (log scale)", ylabel="cumulative probability")
    ax.legend(loc="lower right")
    ax.grid()
    return ax


def tone(probability: float) -> str:
    """How a token of this probability is marked."""
    return next(name for least, name, _ in LEVELS if probability >= least)


def percent(probability: float) -> str:
    """A probability as people read it: 87%, 3%, <1%."""
    return f"{probability:.0%}" if probability >= 0.01 else "<1%"


def judged_text(tokens: Sequence[bytes], probabilities: Sequence[float]) -> Axes:
    """A text token by token, each marked by how likely it was, which is written below it.

    The first line says what the marks mean.
    """
    lines: list[list[live.Framed]] = [[(words, name, "") for _, name, words in LEVELS], []]
    for place, (token, probability) in enumerate(zip(tokens, probabilities, strict=True)):
        lines[-1].append((token, tone(probability), percent(probability)))
        if token.endswith(b"\n") and tokens[place + 1 : place + 2] != [b"\n"]:
            lines.append([])
    return live.token_lines([line for line in lines if line])


LONGEST = 600  # characters of a text; a model sees only the last few anyway


def next_token_chances(
    next_tokens: Callable[..., Mapping[bytes, float]],
    text: str = "Once upon a time, there was a",
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Live:
    """A text to type, two sliders, and the tokens that may come next with their probabilities.

    `next_tokens(text, temperature, top_p)` gives them, the likeliest first.
    """
    look = {"step": 0.05, "readout_format": ".2f"}
    controls = {
        "text": live.text_field("Your text", text, lines=2),
        "temperature": live.slider("Temperature", temperature, 0.0, 2.0, **look),
        "top_p": live.slider("Top-p", top_p, 0.05, 1.0, **look),
    }

    def show(text: str, temperature: float, top_p: float) -> Shown:
        text = text[-LONGEST:]
        # Sliders move in steps that add up to 0.9500000000000001.
        temperature = round(temperature, 2)
        top_p = round(top_p, 2)
        before = next_tokens(text, 1.0, 1.0)
        after = next_tokens(text, temperature, top_p)
        return _chances_shown(before, after, f"Temperature {temperature:g}, top-p {top_p:g}")

    return Live("Next token", controls, show)


def _chances_shown(
    before: Mapping[bytes, float], after: Mapping[bytes, float], settings: str
) -> Shown:
    likeliest, share = next(iter(after.items()))
    summary = (
        f"{settings}: {plural(len(after), 'token')} of {len(before):,} may come next."
        f" The likeliest is {visible(likeliest)}, with {percent(share)}."
    )
    rows = []
    listed = []
    for token, share in list(before.items())[:MOST_TOKENS]:
        name = visible(token)
        by_model = percent(share)
        as_drawn = percent(after[token]) if token in after else "cut"
        bar = live.bar(12 * after.get(token, 0.0), f"background: {BLUE};")
        rows.append((f"<code>{escape(name)}</code>", escape(by_model), escape(as_drawn), bar))
        listed.append(f"{name} {by_model}, {as_drawn}")
    columns = ["token", "model", "drawn", ""]
    table = live.table("The likeliest next tokens", columns, rows, numbers={"model", "drawn"})
    hidden = live.rest(len(before) - MOST_TOKENS, "less likely token")
    html = f"<p>{escape(summary)}</p>{table}{hidden}"
    shown = "; ".join(listed)
    words = f"{summary} Tokens, by the model and as drawn: {shown}."

    def picture() -> Axes:
        names = list(before)[:MOST_TOKENS]
        table = pd.DataFrame(
            {
                "from the model": [100 * before[name] for name in names],
                "with temperature and top-p": [100 * after.get(name, 0.0) for name in names],
            },
            index=[drawable(visible(name)) for name in names],
        )
        return plots.grouped_bars(table, "probability of coming next (%)")

    return Shown(html, words, picture)
