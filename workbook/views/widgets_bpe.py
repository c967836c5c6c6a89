"""The live views of notebook 02: training merge by merge, and tokenizers to play with."""

from collections.abc import Mapping, Sequence

import ipywidgets
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.tokenization.bpe import Pair
from workbook.tokenization.tokenizer import Encoder, compression_ratio
from workbook.tokenization.watch import Step, apply_merges, training_steps
from workbook.views.live import Live, escape, number, stepper, text_field, token_html, well_formed
from workbook.views.visible import visible
from workbook.views.widget_pictures import LINE, pair_bars, token_lines

MOST_WORDS = MOST_PAIRS = 8  # that are shown of the training
MOST_TOKENS = 300  # that are shown of a text
LONGEST = 300  # characters of a text that the stepper cuts, the plain and slow way
LONGEST_PLAYED = 10_000  # and that the playground cuts
DRAWN_TOKENS = 60  # in a picture

ALTERNATING = ("tone0", "tone1", "tone2", "tone3")  # neighbours differ


def merge_stepper(
    counts: Mapping[str, int], num_merges: int, text: str = "the lowest newt", after: int = 0
) -> Live:
    """BPE training on counted words, one merge at a time, and what the merges do to a text.

    It begins `after` some merges; the slider and the buttons go on, back and anywhere.
    """
    steps = training_steps(counts, num_merges)
    slider, row = stepper("Merges made", last=len(steps) - 1, value=after)
    field = text_field("Your text", text)

    def look(part):
        return lambda merges, text: part(steps[merges], well_formed(text))

    controls = {"merges": slider, "text": field}
    views = map(look, (_stepper_html, _stepper_picture, _stepper_words))
    return Live(controls, *views, rows=[row, field])


def _plus(pair: Pair) -> str:
    return " + ".join(map(visible, pair))


def _told(step: Step) -> str:
    """What was merged last and what is next, in two sentences."""
    made = len(step.merges)
    done = f"{number(made, 'merge')} made" if made else "No merge made yet"
    if made:
        done += f", the last {_plus(step.merges[-1])}"
    if not step.ranking:
        return f"{done}. No pair is left."
    (best, count), tied = step.ranking[0], len(step.tied)
    reason = f", the greatest of {tied} equally frequent pairs" if tied > 1 else ""
    return f"{done}. Next is {_plus(best)}, {number(count, 'time')}{reason}."


def _tone(token: bytes, step: Step) -> str:
    """How a token is marked: the one merged last stands out."""
    return "new" if step.merges and token == b"".join(step.merges[-1]) else "plain"


def _stepper_html(step: Step, text: str) -> str:
    tokens = apply_merges(text[:LONGEST], step.merges)
    hidden = len(text) - LONGEST
    more = f"<p>and {number(hidden, 'character')} more, not cut</p>" if hidden > 0 else ""
    return f"""
<p>{escape(_told(step))}</p>
<h4>Your text, in {number(len(tokens), "token")}</h4>
{_tokens_html([(token, _tone(token, step), "") for token in tokens])}{more}
<p><span class="token new">abc</span> bold in a thick frame: merged last.</p>
<div class="columns">
<div><h4>The words</h4>{_words_html(step)}</div>
<div><h4>The pairs in them</h4>{_pairs_html(step)}</div>
</div>
<h4>The merges so far</h4>
<p>{", ".join(f"<code>{escape(_plus(pair))}</code>" for pair in step.merges) or "none yet"}</p>"""


def _words_html(step: Step) -> str:
    rows = "".join(
        f'<tr><td class="number">{count:,}</td><td>'
        f"{_tokens_html([(symbol, _tone(symbol, step), '') for symbol in symbols])}</td></tr>"
        for symbols, count in step.words[:MOST_WORDS]
    )
    hidden = len(step.words) - MOST_WORDS
    more = f"<p>and {number(hidden, 'other word')}</p>" if hidden > 0 else ""
    return (
        '<table aria-label="How often each word occurs, and its tokens"><thead><tr>'
        '<th scope="col" class="number">times</th><th scope="col">tokens</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>{more}"
    )


def _pairs_html(step: Step) -> str:
    tied = len(step.tied)
    notes = ["merged next"] + ["tied"] * (tied - 1) + [""] * MOST_PAIRS
    rows = "".join(
        f"<tr><td><code>{escape(_plus(pair))}</code></td>"
        f'<td class="number">{count:,}</td><td>{note}</td></tr>'
        for (pair, count), note in zip(step.ranking[:MOST_PAIRS], notes, strict=False)
    )
    hidden = len(step.ranking) - MOST_PAIRS
    more = f"<p>and {number(hidden, 'other pair')}</p>" if hidden > 0 else ""
    return (
        '<table aria-label="How often each pair occurs"><thead><tr><th scope="col">pair</th>'
        '<th scope="col" class="number">count</th><th scope="col">rank</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>{more}"
    )


def _tokens_html(framed: Sequence[tuple[bytes, str, str]]) -> str:
    frames = "".join(token_html(*one) for one in framed[:MOST_TOKENS])
    hidden = len(framed) - MOST_TOKENS
    more = f"<p>The first {MOST_TOKENS} are shown, {hidden:,} are not.</p>" if hidden > 0 else ""
    return f'<div class="tokens">{frames}</div>{more}'


def _stepper_picture(step: Step, text: str) -> Figure:
    words = [
        [
            (f"{number(count, 'time')}".rjust(9), "", ""),
            *((symbol, _tone(symbol, step), "") for symbol in row),
        ]
        for row, count in step.words[:MOST_WORDS]
    ]
    tokens = [
        (token, _tone(token, step), "") for token in apply_merges(text[:LONGEST], step.merges)
    ]
    lines = [*words, [("your text".rjust(9), "", ""), *tokens[:DRAWN_TOKENS]]]
    pairs = step.ranking[:MOST_PAIRS]
    heights = [LINE * len(lines), 0.5 + 0.2 * len(pairs)]
    size = plt.rcParams["figure.figsize"][0], sum(heights) + 0.2
    figure, (above, below) = plt.subplots(2, 1, figsize=size, height_ratios=heights)
    token_lines(lines, above)
    pair_bars(pairs, len(step.tied), below)
    return figure


def _stepper_words(step: Step, text: str) -> str:
    shown = "; ".join(
        f"{' '.join(map(visible, symbols))} ({number(count, 'time')})"
        for symbols, count in step.words[:MOST_WORDS]
    )
    tokens = " | ".join(map(visible, apply_merges(text[:LONGEST], step.merges)[:DRAWN_TOKENS]))
    return (
        f"Merge stepper, live when the cell is run. {_told(step)} Words: {shown}. Text: {tokens}."
    )


def tokenizer_playground(
    tokenizers: Mapping[str, Encoder], text: str = "Once upon a time, a dragon found 3 cafés."
) -> Live:
    """A field to type in, and the tokens of one of the tokenizers, with their ids, below it."""
    names = list(tokenizers)
    # Not a list to fold out: JupyterLab takes its arrow keys for steps from cell to cell.
    choice = ipywidgets.ToggleButtons(
        options=names, value=names[0], description="Tokenizer", style={"button_width": "auto"}
    )
    field = text_field("Your text", text, lines=3)

    def look(part):
        return lambda name, text: part(name, tokenizers[name], well_formed(text))

    views = map(look, (_playground_html, _playground_picture, _playground_words))
    return Live({"name": choice, "text": field}, *views)


def _counted(tokenizer: Encoder, text: str) -> tuple[list[tuple[int, bytes]], str]:
    """The tokens of a text, and a sentence with their number."""
    told = ""
    if len(text) > LONGEST_PLAYED:
        text, told = text[:LONGEST_PLAYED], f"The first {LONGEST_PLAYED:,} characters: "
    found = tokenizer.tokens(text)
    told += f"{number(len(found), 'token')} for {number(len(text.encode()), 'byte')}"
    if found:
        ratio = compression_ratio(text, [token_id for token_id, _ in found])
        told += f", {ratio:.2f} bytes per token"
    return found, f"{told}. The vocabulary has {tokenizer.vocab_size:,} ids."


def _alternating(found: Sequence[tuple[int, bytes]]) -> list[tuple[bytes, str, str]]:
    """Tokens with their ids below, in tones that differ between neighbours."""
    return [
        (token, ALTERNATING[place % len(ALTERNATING)], str(token_id))
        for place, (token_id, token) in enumerate(found)
    ]


def _playground_html(name: str, tokenizer: Encoder, text: str) -> str:
    found, told = _counted(tokenizer, text)
    key = "Each frame is a token, its id stands below it."
    return f"<p><b>{escape(name)}</b>: {escape(told)} {key}</p>{_tokens_html(_alternating(found))}"


def _playground_picture(name: str, tokenizer: Encoder, text: str) -> Axes:
    lines = [[]]
    for framed in _alternating(_counted(tokenizer, text)[0])[:DRAWN_TOKENS]:
        lines[-1].append(framed)
        if framed[0].endswith(b"\n"):
            lines.append([])
    return token_lines(lines)


def _playground_words(name: str, tokenizer: Encoder, text: str) -> str:
    found, told = _counted(tokenizer, text)
    shown = " | ".join(f"{visible(token)} {token_id}" for token_id, token in found[:DRAWN_TOKENS])
    return (
        f"Tokenizer playground, live when the cell is run. Tokenizer {name}: {told} "
        f"Tokens and ids: {shown or 'none'}."
    )
