"""The pictures of notebook 02: tokenizers compared, a token's family tree, where the time goes.

The live views of notebook 02: training merge by merge, and tokenizers to play with.
"""

from collections.abc import Mapping, Sequence

import ipywidgets
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.tokenization.bpe import Pair
from workbook.tokenization.tokenizer import Encoder, compression_ratio
from workbook.tokenization.watch import Ancestor, Step, apply_merges, training_steps
from workbook.views.live import (
    LINE,
    Live,
    drawable,
    escape,
    plural,
    stepper,
    text_field,
    token_html,
    token_lines,
    visible,
    well_formed,
)
from workbook.views.plots import BLUE, COLOURS, GREY, INK, ORANGE, axes

DAY = 24 * 60 * 60  # seconds


def tokenizers(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Each row of `table` (columns vocabulary, bytes/token, unknown) as a named point.

    Right is a large vocabulary, up are short sequences. A ring says that words are lost.
    """
    ax = axes(ax)
    best = table["bytes/token"].max()
    for colour, (name, row) in zip(COLOURS, table.iterrows(), strict=False):
        place, lost = (row["vocabulary"], row["bytes/token"]), row["unknown"] > 0
        ax.plot(*place, "o", ms=11, mec=colour, mew=2.5, mfc="white" if lost else colour)
        text = f"{name}, {row['unknown']:.1%} unknown" if lost else name
        below = best / 2 < row["bytes/token"] < best  # beside the best there is room on one side
        ax.annotate(
            text, place, (0, -20 if below else 12), color=colour, textcoords="offset points",
            fontweight="bold", ha="center",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.margins(x=0.15)
    ax.set_ylim(0, 1.25 * best)
    ax.set_xlabel("vocabulary (ids, log scale)")
    ax.set_ylabel("compression (bytes/token)")
    ax.grid()
    return ax


def label(token: bytes) -> str:
    """A token as a label: a space is ␣, a line end ↵; what is no plain text is hexadecimal."""
    text = token.decode("utf-8", errors="replace").replace(" ", "␣").replace("\n", "↵")
    return text if all(c in "␣↵" or "!" <= c <= "~" for c in text) else token.hex(" ")


def merge_tree(tree: Ancestor, ax: Axes | None = None) -> Axes:
    """A token above the two it was merged from, down to its bytes; small, the merges' numbers."""
    ax = axes(ax, height=0.6 + 0.6 * _height(tree))
    for node, x, y, ends in _tree_places(tree, 0):
        for end, below in ends:
            ax.plot([end, end, x], [below, y, y], color=GREY, zorder=1)
        top = node is tree
        ax.text(
            x, y, label(node.token), ha="center", va="center", family="monospace",
            color="white" if top else INK,
            bbox={"boxstyle": "round,pad=0.3", "fc": BLUE if top else "white",
                  "ec": GREY if node.merge else "none"},
        )  # fmt: skip
        if node.merge:
            ax.annotate(
                f"merge {node.merge:,}", (x, y), (0, -11), color=BLUE, fontsize=7,
                textcoords="offset points", ha="center", va="top",
                bbox={"boxstyle": "square,pad=0", "fc": "white", "ec": "none"},
            )  # fmt: skip
    ax.set(xlim=(-0.7, len(tree.token) - 0.3), ylim=(-0.5, _height(tree) + 0.5))
    ax.set_axis_off()
    return ax


def _height(tree: Ancestor) -> int:
    """The longest way from a token down to a byte, in merges."""
    return 1 + max(map(_height, tree.parts)) if tree.parts else 0


def _tree_places(
    tree: Ancestor, start: int
) -> list[tuple[Ancestor, float, int, list[tuple[float, int]]]]:
    """Every token with its x and y, and those of its parts; the bytes stand at x = 0, 1, 2, ..."""
    if not tree.parts:
        return [(tree, start, 0, [])]
    left, right = tree.parts
    lefts, rights = _tree_places(left, start), _tree_places(right, start + len(left.token))
    ends = [(x, y) for _, x, y, _ in (lefts[0], rights[0])]
    return [(tree, sum(x for x, _ in ends) / 2, _height(tree), ends), *lefts, *rights]


def profiles(tables: Mapping[str, pd.DataFrame], top: int = 6) -> Figure:
    """The functions that each profile (columns function, share) spends most time in, side by side.

    Waiting for a lock or for data is orange: no work is done there.
    """
    figure, axes = plt.subplots(1, len(tables), figsize=(8.4, 0.9 + 0.3 * top), sharex=True)
    for ax, (title, table) in zip(axes, tables.items(), strict=True):
        rows = table.head(top)
        colours = [ORANGE if is_waiting(name) else BLUE for name in rows["function"]]
        bars = ax.barh(rows["function"], rows["share"], color=colours)
        ax.bar_label(bars, [f"{share:.0%}" for share in rows["share"]], padding=3, fontsize=8)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.margins(x=0.15)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("share of own time")
    return figure


def is_waiting(function: str) -> bool:
    """Whether a function of a profile only waits: for a lock, a pipe or another process."""
    return function.endswith((".acquire", ".poll", ".select", ".sleep", ".read", ".wait"))


def ladder(seconds: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """What a job takes at each step of a ladder, the slowest on top, on a log axis."""
    slowest_last = sorted(seconds.items(), key=lambda step: step[1])
    ax = axes(ax, height=1 + 0.4 * len(seconds))
    for at, (name, taken) in enumerate(slowest_last):
        ax.plot(taken, at, "o", color=BLUE, ms=9)
        ax.annotate(
            f"{name}: {taken:,.3g} s", (taken, at), xytext=(0, 9), textcoords="offset points",
            ha="center", color=INK,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.margins(x=0.25, y=0.2)
    ax.set_yticks([])
    ax.set_xlabel("time (seconds, log scale)")
    ax.grid(axis="x")
    return ax


def days_for(size: int, rates: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """The days that `size` bytes take at each of the `rates` (bytes/s), the slowest on top.

    What was measured here, by its name, is blue; what others report is grey.
    """
    ax = axes(ax, height=0.9 + 0.32 * len(rates))
    slowest_first = sorted(rates, key=rates.get)
    for y, name in enumerate(slowest_first):
        days, colour = size / rates[name] / DAY, BLUE if "here" in name else GREY
        duration = f"{days:,.1f} days" if days > 1 else f"{24 * days:.1f} hours"
        ax.plot(days, y, "o", ms=8, color=colour)
        ax.annotate(
            duration, (days, y), (9, 0), textcoords="offset points",
            va="center", fontsize=9, color=INK,
        )  # fmt: skip
    ax.set_yticks(range(len(rates)), slowest_first)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.margins(x=0.2, y=0.1)
    ax.set_xscale("log")
    ax.set_xlabel("time (days, log scale)")
    ax.grid(axis="x")
    return ax


MOST_WORDS = MOST_PAIRS = 8  # that are shown of the training
MOST_TOKENS = 300  # that are shown of a text
LONGEST = 300  # characters of a text that the stepper cuts, the plain and slow way
LONGEST_PLAYED = 10_000  # and that the playground cuts
DRAWN_TOKENS = 60  # in a picture

ALTERNATING = ("tone0", "tone1", "tone2", "tone3")  # neighbours differ


def pair_bars(ranking: Sequence[tuple[Pair, int]], tied: int, ax: Axes) -> Axes:
    """A bar a pair, as long as its count; the first is merged next, the first `tied` are equal."""
    names = [drawable(" + ".join(map(visible, pair))) for pair, _ in ranking]
    counts = [count for _, count in ranking]
    colours = [BLUE] + [GREY] * (len(names) - 1)
    bars = ax.barh(range(len(names)), counts, color=colours[: len(names)])
    notes = ["next"] + ["tied" if place < tied else "" for place in range(1, len(names))]
    labels = [f"{count:,}  {note}".rstrip() for count, note in zip(counts, notes, strict=False)]
    ax.bar_label(bars, labels, padding=3, fontsize=8)
    ax.set_yticks(range(len(names)), names, family="monospace", fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.set_xlabel("how often the pair occurs")
    return ax


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
    done = f"{plural(made, 'merge')} made" if made else "No merge made yet"
    if made:
        done += f", the last {_plus(step.merges[-1])}"
    if not step.ranking:
        return f"{done}. No pair is left."
    (best, count), tied = step.ranking[0], len(step.tied)
    reason = f", the greatest of {tied} equally frequent pairs" if tied > 1 else ""
    return f"{done}. Next is {_plus(best)}, {plural(count, 'time')}{reason}."


def _tone(token: bytes, step: Step) -> str:
    """How a token is marked: the one merged last stands out."""
    return "new" if step.merges and token == b"".join(step.merges[-1]) else "plain"


def _stepper_html(step: Step, text: str) -> str:
    tokens = apply_merges(text[:LONGEST], step.merges)
    hidden = len(text) - LONGEST
    more = f"<p>and {plural(hidden, 'character')} more, not cut</p>" if hidden > 0 else ""
    return f"""
<p>{escape(_told(step))}</p>
<h4>Your text, in {plural(len(tokens), "token")}</h4>
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
    more = f"<p>and {plural(hidden, 'other word')}</p>" if hidden > 0 else ""
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
    more = f"<p>and {plural(hidden, 'other pair')}</p>" if hidden > 0 else ""
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
            (f"{plural(count, 'time')}".rjust(9), "", ""),
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
        f"{' '.join(map(visible, symbols))} ({plural(count, 'time')})"
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
    told += f"{plural(len(found), 'token')} for {plural(len(text.encode()), 'byte')}"
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
