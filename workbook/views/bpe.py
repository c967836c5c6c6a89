"""Notebook 02: tokenizers compared, a file cut for workers, a token's family tree, and times.

The live views are the merge stepper (training merge by merge) and the tokenizer playground.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workbook.tokenization.bpe import Pair
from workbook.tokenization.tokenizer import Encoder, compression_ratio
from workbook.tokenization.watch import Ancestor, Step, apply_merges, training_steps
from workbook.views import live
from workbook.views.live import LINE, Framed, Live, Shown, drawable, escape, plural, visible
from workbook.views.plots import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    axes,
    named_rows,
    note,
)

DAY = 24 * 60 * 60  # seconds

# What the live views show at most.
MOST_WORDS = MOST_PAIRS = 8  # of the training
MOST_TOKENS = 300  # of a text
LONGEST = 300  # characters of a text that the stepper cuts, the plain and slow way
LONGEST_PLAYED = 10_000  # and that the playground cuts
DRAWN_TOKENS = 60  # in a picture

ALTERNATING = ("tone0", "tone1", "tone2", "tone3")  # neighbours differ


def tokenizers(table: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Each row of `table` (columns vocabulary, bytes/token, unknown) as a named point.

    Further right is a larger vocabulary, higher up are shorter sequences. A ring: words are lost.
    """
    ax = axes(ax)
    best = table["bytes/token"].max()
    for colour, (name, row) in zip(COLOURS, table.iterrows(), strict=False):
        place, lost = (row["vocabulary"], row["bytes/token"]), row["unknown"] > 0
        ax.plot(*place, "o", ms=11, mec=colour, mew=2.5, mfc="white" if lost else colour)
        text = f"{name}, {row['unknown']:.1%} unknown" if lost else name
        below = best / 2 < row["bytes/token"] < best  # beside the best there is room on one side
        note(
            ax, text, place, (0, -20 if below else 12), color=colour, fontweight="bold",
            ha="center",
        )  # fmt: skip
    ax.set(xscale="log", xmargin=0.15, ylim=(0, 1.25 * best))
    ax.set(xlabel="vocabulary (tokens, log scale)", ylabel="compression (bytes/token)")
    ax.grid()
    return ax


def merge_tree(tree: Ancestor, ax: Axes | None = None) -> Axes:
    """A token above the two it was merged from, down to its bytes, with the merges' numbers."""
    ax = axes(ax, height=0.6 + 0.6 * _height(tree))

    def draw(node: Ancestor, start: int) -> tuple[float, int]:
        """Draw a token above its parts, and return its place; byte 0, 1, ... is at x = 0, 1, ..."""
        x, y, top = start, _height(node), node is tree
        if node.parts:
            left, right = node.parts
            ends = [draw(left, start), draw(right, start + len(left.token))]
            x = sum(end for end, _ in ends) / 2
            for end, below in ends:
                ax.plot([end, end, x], [below, y, y], color=GREY, zorder=1)
        ax.text(
            x, y, drawable(visible(node.token)), ha="center", va="center", family="monospace",
            color="white" if top else INK,
            bbox={"boxstyle": "round,pad=0.3", "fc": BLUE if top else "white",
                  "ec": GREY if node.merge else "none"},
        )  # fmt: skip
        if node.merge:
            note(
                ax, f"merge {node.merge:,}", (x, y), (0, -11), color=BLUE, fontsize=7, ha="center",
                va="top", bbox={"boxstyle": "square,pad=0", "fc": "white", "ec": "none"},
            )  # fmt: skip
        return x, y

    draw(tree, 0)
    ax.set(xlim=(-0.7, len(tree.token) - 0.3), ylim=(-0.5, _height(tree) + 0.5))
    ax.set_axis_off()
    return ax


def _height(tree: Ancestor) -> int:
    """The number of merges on the longest way from a token down to a byte."""
    return 1 + max(map(_height, tree.parts)) if tree.parts else 0


def profiles(tables: Mapping[str, pd.DataFrame], top: int = 6) -> Figure:
    """The functions in which each profile (columns function, share) spends most time, side by side.

    Waiting for a lock or for data is orange: no work is done then.
    """
    figure, panels = plt.subplots(1, len(tables), figsize=(8.4, 0.9 + 0.3 * top), sharex=True)
    for ax, (title, table) in zip(panels, tables.items(), strict=True):
        rows = table.head(top)
        colours = [ORANGE if is_waiting(name) else BLUE for name in rows["function"]]
        bars = ax.barh(rows["function"], rows["share"], color=colours)
        ax.bar_label(bars, [f"{share:.0%}" for share in rows["share"]], padding=3, fontsize=8)
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.xaxis.set_major_formatter("{x:.0%}")
        ax.margins(x=0.15)
        ax.set_title(title, fontsize=10, loc="left")
        ax.set_xlabel("own time (share of the total)")
    return figure


def is_waiting(function: str) -> bool:
    """Whether a function of a profile only waits: for a lock, a pipe or another process."""
    return function.endswith((".acquire", ".poll", ".select", ".sleep", ".read", ".wait"))


def ladder(seconds: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """What a job takes at each step of a ladder, the slowest on top, on a log axis."""
    ax = axes(ax, height=0.9 + 0.32 * len(seconds))
    slowest_first = sorted(seconds, key=seconds.get, reverse=True)
    for y, name in enumerate(slowest_first):
        ax.plot(seconds[name], y, "o", ms=8, color=BLUE)
        note(ax, f"{seconds[name]:,.3g} s", (seconds[name], y), (9, 0), va="center", color=INK)
    named_rows(ax, slowest_first)
    ax.set(xscale="log", xlabel="time (seconds, log scale)")
    ax.margins(x=0.2, y=0.1)
    ax.grid(axis="x")
    return ax


def shared_file(ends: Sequence[int], workers: int, ax: Axes | None = None) -> Axes:
    """A file cut for workers: equal parts, each cut moved to the next of the `ends` of documents.

    Below are the parts that this gives, and the one list of counts that they add up to.
    """
    ax = axes(ax, height=2.6)
    size = ends[-1]
    blind = [size * part / workers for part in range(1, workers)]
    cuts = [0, *(min(end for end in ends if end >= at) for at in blind), size]
    for start, end in pairwise([0, *ends]):
        ax.barh(0, end - start, 0.6, start, color=PALE[0], edgecolor=GREY)
    for at, cut in zip(blind, cuts[1:], strict=False):
        ax.plot([at, at], [-0.45, 0.45], "--", color=RED)
        ax.annotate("", (cut, 0.7), (at, 0.45), arrowprops={"arrowstyle": "->", "color": RED})
    centred = {"ha": "center", "va": "center"}
    for number, (start, end) in enumerate(pairwise(cuts)):
        middle = (start + end) / 2
        ax.barh(1, end - start, 0.6, start, color=SKY, edgecolor="white", lw=3)
        ax.text(middle, 1, f"worker {number + 1}", color=INK, **centred)
        ax.annotate("", (middle, 1.72), (middle, 1.3), arrowprops={"arrowstyle": "->"})
    ax.barh(2, size, 0.5, color=BLUE)
    ax.text(size / 2, 2, "adds up the counts, then merges", color="white", **centred)
    named_rows(ax, ["documents", "parts", "parent"])
    ax.set_xlabel("position in the file (bytes); dashed: equal parts")
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
        note(ax, duration, (days, y), (9, 0), va="center", fontsize=9, color=INK)
    named_rows(ax, slowest_first)
    ax.set(xscale="log", xlabel="time (days, log scale)")
    ax.margins(x=0.2, y=0.1)
    ax.grid(axis="x")
    return ax


def pair_bars(ranking: Sequence[tuple[Pair, int]], tied: int, ax: Axes | None = None) -> Axes:
    """A bar for each pair; the first is merged next, and the first `tied` are equally frequent."""
    ax = axes(ax, height=0.7 + 0.2 * len(ranking))
    names, counts, colours, labels = [], [], [], []
    for place, (pair, count) in enumerate(ranking):
        names.append(drawable(_plus(pair)))
        counts.append(count)
        colours.append(GREY if place else BLUE)
        rank = "next" if place == 0 else "tied" if place < tied else ""
        labels.append(f"{count:,}  {rank}".rstrip())
    bars = ax.barh(range(len(names)), counts, color=colours)
    ax.bar_label(bars, labels, padding=3, fontsize=8)
    named_rows(ax, names, family="monospace", fontsize=9, parse_math=False)
    ax.set(xmargin=0.15, xlabel="how often the pair occurs")
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


def _stepped(step: Step, text: str) -> Shown:
    def framed(tokens: Sequence[bytes]) -> list[Framed]:
        """The tokens with their tones: the one merged last stands out."""
        last = b"".join(step.merges[-1]) if step.merges else None
        return [(token, "new" if token == last else "plain", "") for token in tokens]

    summary = _in_sentences(step)
    tokens = framed(apply_merges(text[:LONGEST], step.merges))
    words = [(framed(symbols), count) for symbols, count in step.words[:MOST_WORDS]]
    pairs, notes = step.ranking[:MOST_PAIRS], ["merged next"] + ["tied"] * (len(step.tied) - 1)
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
        size = plt.rcParams["figure.figsize"][0], sum(heights) + 0.2
        figure, (above, below) = plt.subplots(2, 1, figsize=size, height_ratios=heights)
        live.token_lines(lines, above)
        pair_bars(pairs, len(step.tied), below)
        return figure

    return Shown(html, f"{summary} Words: {listed}. Text: {cut}.", picture)


def _in_sentences(step: Step) -> str:
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
        text, summary = text[:LONGEST_PLAYED], f"The first {LONGEST_PLAYED:,} characters: "
    found = tokenizer.tokens(text)
    summary += f"{plural(len(found), 'token')} for {plural(len(text.encode()), 'byte')}"
    if found:
        ratio = compression_ratio(text, [token_id for token_id, _ in found])
        summary += f", {ratio:.2f} bytes per token"
    summary += f". The vocabulary has {tokenizer.vocab_size:,} tokens."

    framed = [
        (token, ALTERNATING[place % len(ALTERNATING)], str(token_id))
        for place, (token_id, token) in enumerate(found)
    ]
    key = "Each frame is a token, with its ID below it."
    html = f"<p><b>{escape(name)}</b>: {escape(summary)} {key}</p>{_tokens_html(framed)}"
    listed = " | ".join(f"{visible(token)} {below}" for token, _, below in framed[:DRAWN_TOKENS])
    words = f"Tokenizer {name}: {summary} Tokens and IDs: {listed or 'none'}."

    def picture() -> Axes:
        lines = [[]]
        for one in framed[:DRAWN_TOKENS]:
            lines[-1].append(one)
            if one[0].endswith(b"\n"):
                lines.append([])
        return live.token_lines(lines)

    return Shown(html, words, picture)
