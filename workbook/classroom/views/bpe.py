"""Notebook 02: tokenizers compared, and a file cut for workers.

The live views are the merge stepper (training merge by merge) and the tokenizer playground.
"""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.classroom.views import live, plots
from workbook.classroom.views.live import LINE, Framed, Live, Shown, plural, visible
from workbook.classroom.views.plots import BLUE, CENTRED, COLOURS, GREY, INK, PALE, RED, axes, note
from workbook.tokenization.bpe import Pair
from workbook.tokenization.tokenizer import Encoder, compression_ratio
from workbook.tokenization.watch import TrainingStep, apply_merges, training_steps

# What the live views show at most.
MOST_WORDS = MOST_PAIRS = 8  # of the training
MOST_TOKENS = 300  # of a text
LONGEST = 300  # characters of a text that the stepper cuts, the plain and slow way
LONGEST_PLAYED = 10_000  # and that the playground cuts
DRAWN_TOKENS = 60  # in a picture

ALTERNATING = ("tone0", "tone1", "tone2", "tone3")  # neighbours differ


def tokenizers(table: pd.DataFrame) -> Axes:
    """Each row of `table` (columns vocabulary, bytes/token, unknown) as a named point.

    Further right is a larger vocabulary, higher up are shorter sequences. A ring: words are lost.
    """
    ax = axes()
    best = table["bytes/token"].max()
    for colour, (name, row) in zip(COLOURS, table.iterrows(), strict=False):
        place = (row["vocabulary"], row["bytes/token"])
        lost = row["unknown"] > 0
        ax.plot(*place, "o", ms=11, mec=colour, mew=2.5, mfc="white" if lost else colour)
        text = f"{name}, {row['unknown']:.1%} unknown" if lost else name
        below = best / 2 < row["bytes/token"] < best  # beside the best there is room on one side
        note(
            ax,
            text,
            place,
            (0, -20 if below else 12),
            color=colour,
            fontweight="bold",
            ha="center",
        )
    ax.set(xscale="log", xmargin=0.15, ylim=(0, 1.25 * best))
    ax.set(xlabel="vocabulary (tokens, log scale)", ylabel="compression (bytes/token)")
    ax.grid()
    return ax


def shared_file(ends: Sequence[int], workers: int) -> Axes:
    """A file cut for workers: equal parts, each cut moved to the next of the `ends` of documents.

    Below are the parts that this gives, and the one list of counts that they add up to.
    """
    ax = axes(2.6)
    size = ends[-1]
    blind = [size * part / workers for part in range(1, workers)]
    cuts = [0, *(min(end for end in ends if end >= at) for at in blind), size]
    for start, end in pairwise([0, *ends]):
        ax.barh(0, end - start, 0.6, start, color=PALE[0], edgecolor=GREY)
    for at, cut in zip(blind, cuts[1:], strict=False):
        ax.plot([at, at], [-0.45, 0.45], "--", color=RED)
        ax.annotate("", (cut, 0.7), (at, 0.45), arrowprops={"arrowstyle": "->", "color": RED})
    for number, (start, end) in enumerate(pairwise(cuts)):
        middle = (start + end) / 2
        ax.barh(1, end - start, 0.6, start, color=plots.SKY, edgecolor="white", lw=3)
        ax.text(middle, 1, f"worker {number + 1}", color=INK, **CENTRED)
        ax.annotate("", (middle, 1.72), (middle, 1.3), arrowprops={"arrowstyle": "->"})
    ax.barh(2, size, 0.5, color=BLUE)
    ax.text(size / 2, 2, "adds up the counts, then merges", color="white", **CENTRED)
    plots.named_rows(ax, ["documents", "parts", "parent"])
    ax.set_xlabel("position in the file (bytes); dashed: equal parts")
    return ax


def merge_stepper(
    counts: Mapping[str, int], num_merges: int, text: str = "the lowest newt", after: int = 0
) -> Live:
    """BPE training on counted words, one merge at a time, and what the merges do to a text.

    It begins `after` so many merges; the slider and the buttons move on, back and anywhere.
    """
    steps = training_steps(counts, num_merges)
    slider, row = live.stepper("Merges made", last=len(steps) - 1, value=after)
    field = live.text_field("Your text", text)

    def show(merges: int, text: str) -> Shown:
        return _stepped(steps[merges], text)

    return Live("Merge stepper", {"merges": slider, "text": field}, show, rows=[row, field])


def _stepped(step: TrainingStep, text: str) -> Shown:
    def framed(tokens: Sequence[bytes]) -> list[Framed]:
        """The tokens with their tones: the one merged last stands out."""
        last = b"".join(step.merges[-1]) if step.merges else None
        return [(token, "new" if token == last else "plain", "") for token in tokens]

    summary = _in_sentences(step)
    tokens = framed(apply_merges(text[:LONGEST], step.merges))
    words = [(framed(symbols), count) for symbols, count in step.words[:MOST_WORDS]]
    pairs = step.ranking[:MOST_PAIRS]
    notes = ["merged next"] + ["tied"] * (len(step.tied) - 1)
    notes += [""] * (len(pairs) - len(notes))

    words_table = live.table(
        "How often each word occurs, and its tokens",
        ["times", "tokens"],
        ((f"{count:,}", _tokens_html(symbols)) for symbols, count in words),
        numbers={"times"},
    )
    pairs_table = live.table(
        "How often each pair occurs",
        ["pair", "count", "rank"],
        (
            (f"<code>{escape(_plus(pair))}</code>", f"{count:,}", note)
            for (pair, count), note in zip(pairs, notes, strict=False)
        ),
        numbers={"count"},
    )
    merges = ", ".join(f"<code>{escape(_plus(pair))}</code>" for pair in step.merges)
    html = f"""
<p>{escape(summary)}</p>
<h4>Your text, in {plural(len(tokens), "token")}</h4>
{_tokens_html(tokens)}{live.rest(len(text) - LONGEST, "more character", ", not cut")}
<p><span class="token new">abc</span> bold in a thick frame: merged last.</p>
<div class="columns">
<div><h4>The words</h4>{words_table}{live.rest(len(step.words) - MOST_WORDS, "other word")}</div>
<div><h4>The pairs in them</h4>{pairs_table}
{live.rest(len(step.ranking) - MOST_PAIRS, "other pair")}</div>
</div>
<h4>The merges so far</h4>
<p>{merges or "none yet"}</p>"""

    listed = "; ".join(
        f"{' '.join(visible(symbol) for symbol, *_ in symbols)} ({plural(count, 'time')})"
        for symbols, count in words
    )
    cut = " | ".join(visible(token) for token, *_ in tokens[:DRAWN_TOKENS])

    def picture() -> Figure:
        lines = [[(plural(count, "time").rjust(9), "", ""), *symbols] for symbols, count in words]
        lines.append([("your text".rjust(9), "", ""), *tokens[:DRAWN_TOKENS]])
        heights = [LINE * len(lines), 0.5 + 0.2 * len(pairs)]
        size = plots.FIGURE_WIDTH, sum(heights) + 0.2
        figure, (above, below) = plt.subplots(2, 1, figsize=size, height_ratios=heights)
        live.token_lines(lines, above)
        counted = pd.DataFrame({"times": {_plus(pair): count for pair, count in pairs}})
        plots.grouped_bars(counted, "how often the pair occurs", below)
        return figure

    return Shown(html, f"{summary} Words: {listed}. Text: {cut}.", picture)


def _in_sentences(step: TrainingStep) -> str:
    """What was merged last and what is next, in two sentences."""
    made = len(step.merges)
    done = f"{plural(made, 'merge')} made" if made else "No merge made yet"
    if made:
        done += f", the last {_plus(step.merges[-1])}"
    if not step.ranking:
        return f"{done}. No pair is left."
    best, count = step.ranking[0]
    tied = len(step.tied)
    reason = f", the greatest of {tied} equally frequent pairs" if tied > 1 else ""
    return f"{done}. Next is {_plus(best)}, {plural(count, 'time')}{reason}."


def _plus(pair: Pair) -> str:
    return " + ".join(map(visible, pair))


def _tokens_html(framed: Sequence[Framed]) -> str:
    frames = "".join(live.token_html(*one) for one in framed[:MOST_TOKENS])
    more = live.rest(len(framed) - MOST_TOKENS, "more token", ", not shown")
    return f'<div class="tokens">{frames}</div>{more}'


def tokenizer_playground(
    tokenizers: Mapping[str, Encoder], text: str = "Once upon a time, a dragon found 3 cafés."
) -> Live:
    """A field to type in, and the tokens of one of the tokenizers, with their ids, below it."""
    controls = {
        "name": live.choice("Tokenizer", tokenizers),
        "text": live.text_field("Your text", text, lines=3),
    }

    def show(name: str, text: str) -> Shown:
        return _played(name, tokenizers[name], text)

    return Live("Tokenizer playground", controls, show)


def _played(name: str, tokenizer: Encoder, text: str) -> Shown:
    summary = ""
    if len(text) > LONGEST_PLAYED:
        text = text[:LONGEST_PLAYED]
        summary = f"The first {LONGEST_PLAYED:,} characters: "
    split = tokenizer.tokens(text)
    summary += f"{plural(len(split), 'token')} for {plural(len(text.encode()), 'byte')}"
    if split:
        ratio = compression_ratio(text, [token_id for token_id, _ in split])
        summary += f", {ratio:.2f} bytes per token"
    summary += f". The vocabulary has {tokenizer.vocab_size:,} tokens."

    framed = [
        (token, ALTERNATING[place % len(ALTERNATING)], str(token_id))
        for place, (token_id, token) in enumerate(split)
    ]
    key = "Each frame is a token, with its ID below it."
    html = f"<p><b>{escape(name)}</b>: {escape(summary)} {key}</p>{_tokens_html(framed)}"
    listed = " | ".join(f"{visible(token)} {below}" for token, _, below in framed[:DRAWN_TOKENS])
    words = f"Tokenizer {name}: {summary} Tokens and IDs: {listed or 'none'}."

    def picture() -> Axes:
        lines: list[list[Framed]] = [[]]
        for one in framed[:DRAWN_TOKENS]:
            lines[-1].append(one)
            if one[0].endswith(b"\n"):
                lines.append([])
        return live.token_lines(lines)

    return Shown(html, words, picture)
