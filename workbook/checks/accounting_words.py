"""What is said about costs in words: which part needs most, and what grows with the model."""

import re
from typing import Any

from workbook.accounting import forward_flops
from workbook.checks.accounting_figures import ADAMW, MODEL
from workbook.checks.figures import claims, is_explained
from workbook.checks.verdicts import Facts, Words, Wrong
from workbook.config import Edition, gpt2

# What a good answer to each part says.
FACTS = {
    (MODEL, "a"): (
        "the number of parameters",
        "the bytes for it in float32, in GB or GiB, and which of the two",
    ),
    (MODEL, "b"): (
        "each product with its shapes: Q, K, V, scores, weighted sum, output, the feed-forward"
        " matrices, the head",
        "how often it occurs: once a block, the head once",
        "the total for one sequence of 1,024 ids",
    ),
    (MODEL, "c"): ("which part needs most", "its share of the total"),
    (MODEL, "d"): (
        "a total and the shares for each of the three sizes",
        "the rule that d_ff follows, since the handout gives it for XL alone",
        "what grows as the model does (feed-forward layers, projections) and what shrinks (head,"
        " scores)",
    ),
    (MODEL, "e"): (
        "the new total, and how many times the old one it is",
        "that the products of T × T need most now, because they alone grow with the square of T",
    ),
    (ADAMW, "a"): (
        "parameters, gradients and optimizer state: P, P and 2·P numbers, 4 bytes each",
        "the activations tensor by tensor: norms, attention with its maps of T × T, feed-forward,"
        " last norm, logits, cross-entropy",
        "the sum of the four",
    ),
    (ADAMW, "b"): ("memory as a·batch + b, with units", "the largest whole batch in 80 GB"),
    (ADAMW, "c"): (
        "the operations for one parameter, step by step: moments, update, decay",
        "their number times P",
    ),
    (ADAMW, "d"): (
        "the FLOPs of one step: forward and twice as much backward, times the batch",
        "the FLOP/s that half the peak is",
        "the time, in days or hours",
    ),
}
_PARTS = {
    "feed-forward": r"feed[\s-]?forwards?|ffns?|ff layers?|mlps?|swi?glu|position-?wise|w1\b|w3\b"
    r"|gated",
    "scores": r"quer(?:y|ies)|q[\s·]*@?\s?k|dot[\s-]products?|weighted sums?|softmax"
    r"|(?:attention )?scores?|attention (?:matrix|matrices|maps?)",
    "attention": r"attentions?|mha|multi-?head",
    "projections": r"projections?|qkvo?\b",
    "head": r"(?:lm|language|output|final)[\s_-](?:head|layer|embedding|projection)s?|lm_head"
    r"|head\b|unembedding|vocab(?:ulary)?(?: projection)?|logits?",
    "embedding": r"embeddings?",
    "norms": r"(?:rms|layer)?[\s-]?norms?|normali[sz]ations?",
}
_MOST = re.compile(
    r"\bmost\b|\bmajority|\bdominat|\blargest|\bbiggest|\bhighest|\bmain(?:ly)?\b|\bbulk\b"
    r"|\bbottleneck|\bexpensive|\bheaviest|\bgreatest|\btwo[\s-]thirds|\bmore than half",
    re.I,
)
_LESS = re.compile(
    r"\bless\b|\bfewer|\bsmaller|\bsecond|\bonly\b|\bnot\b|n't\b|\bno longer|\brather\b|\bwhile\b"
    r"|\bthan\b|\bleast|\bafter\b|\bfollowed|\bnext\b|\blonger|\bgrows?\b|\bbecome",
    re.I,
)


def dominant_part(attempt: Any, edition: Edition) -> str | Facts | None:
    """What holds of a text on the part that needs most FLOPs: None where it names no part.

    Raises `Wrong` where each of its clauses about "most" begins with a part that does not.
    """
    if not isinstance(attempt, str):
        texts = [each for each in attempt if isinstance(each, str)]
        attempt = " ".join(texts)
    named = parts_named(attempt)
    if not named:
        return None
    prose = is_explained(attempt)
    clauses = re.split(r"[.;,:!?]\s|\n|\bbut\b|\bwhereas\b|\bfollowed\b|\bthen\b", attempt)
    most = [parts_named(c) for c in clauses if _MOST.search(c) and not _LESS.search(c)]
    votes = [parts[0] for parts in most if parts]
    # "feed-forward > attention > head", "the attention scores"
    ranked = len(named) == 1 or ">" in attempt or "feed-forward" not in named
    winner = votes[0] if votes else named[0] if not prose and ranked else None
    if winner and "feed-forward" not in votes and winner != "feed-forward":
        table = forward_flops(gpt2("xl", edition))
        shares = {part: 100 * table.share(part) for part in table.by_part()}
        shares["attention"] = shares["scores"] + shares["projections"]
        share = shares.get(winner)
        raise Wrong(
            "Another part needs more.",
            got=Words(f"{winner}: {share:.1f} % of the total" if share else winner),
            mistake=_WHY[winner],
        )
    if prose or winner is None:
        return Facts(("which part needs most", "its share of the total"))
    return "The feed-forward layers: three products with the widest matrices, in every block."


_WHY = {
    "scores": "Scores and weighted sums grow with the square of the context; at 1,024 ids that is"
    " less than the width of the matrices adds. Put each product's FLOPs in a table.",
    "attention": "Attention has four products of d × d and two of T × T; the feed-forward layer has"
    " three of d × d_ff, and d_ff is far larger than d. Put each product's FLOPs in a table.",
    "projections": "The projections are d × d; a feed-forward matrix is d × d_ff.",
    "head": "The head is one large product, but there is only one of it; the blocks come 48 times.",
    "embedding": "The embedding is looked up: that is no product at all.",
    "norms": "Norms take a few operations for each value, products thousands.",
}


def parts_named(text: str) -> list[str]:
    """The parts of the model that a text names, in order; a place in a text belongs to one part."""
    found = []
    for part, pattern in _PARTS.items():
        for match in re.finditer(rf"\b(?:{pattern})", text, re.I):
            found.append((match.start(), -match.end(), part))
    order = []
    reach = -1
    for start, end, part in sorted(found):
        if start >= reach:
            order.append(part)
            reach = -end
    return list(dict.fromkeys(order))


_GROWS = re.compile(r"\b(?:grow|increas|ris(?:e|ing)|larger|bigger|more)\w*", re.I)
_FALLS = re.compile(
    r"\b(?:less|decreas|shrink|fall|drop|smaller|diminish|declin|negligible|reduc|lower|fewer)\w*",
    re.I,
)
_AS_IT_GROWS = re.compile(
    r"\b(?:as|when|while|with|for)\b[^.;,]*?\b(?:models?|sizes?|widths?|depths?|d_model|layers)"
    r"\b(?: sizes?)?(?: (?:grows?|increases?|gets? (?:larger|bigger)|becomes? (?:larger|bigger)))?"
    r"|\b(?:larger|bigger|growing|increasing) (?:models?|sizes?|width)",
    re.I,
)


def refuse_trend(attempt: Any) -> None:
    """Raise `Wrong` for a text that has the head's share grow, or the feed-forward layers' fall."""
    if not isinstance(attempt, str):
        return
    for clause in re.split(r"[.;,]\s|\n|\bbut\b|\bwhile\b|\bwhereas\b|\band\b", attempt):
        rest = _AS_IT_GROWS.sub(" ", clause)
        named = parts_named(rest)
        grows, falls = _GROWS.search(rest), _FALLS.search(rest)
        if len(named) != 1 or bool(grows) == bool(falls) or re.search(r"\bnot\b|n't\b", rest):
            continue
        if (named[0] == "head" and grows) or (named[0] == "feed-forward" and falls):
            raise Wrong(
                "It is the other way round.",
                got=Words(clause.strip()),
                mistake="The head is there once, whatever the number of layers, and grows with d;"
                " the blocks grow with L and with d squared. So its share falls, and theirs grows.",
            )


def refuse_linear(attempt: Any) -> None:
    """Raise `Wrong` for a text in which all grows in proportion to the context."""
    if not isinstance(attempt, str) or re.search(r"quadrat|squar|T\s?(?:\^|\*\*)\s?2|T²", attempt):
        return
    if claims(attempt, r"\b(?:total|everything|all (?:parts|products|of it))\b[^.;]*\blinear"):
        raise Wrong(
            "Not everything grows in proportion.",
            got=Words(attempt if len(attempt) < 100 else attempt[:100] + "..."),
            mistake="Scores and weighted sums are products of T × T: at 16 times the context they"
            " cost 256 times as much.",
        )


_STATE = re.compile(
    r"\b(?:optimi[sz]er(?:'?s)?(?: states?| memory)?|adamw?(?:'?s)?(?: states?)?|moments)"
    r"\W{0,3}(?:(?:is|are|takes?|needs?|=|:)\W{0,3})?(\d*)\s?[*·×]?\s?[PN]\b",
    re.I,
)


def refuse_one_moment(attempt: Any) -> None:
    """Raise `Wrong` for a formula that gives the optimizer one number a parameter, not two."""
    for match in _STATE.finditer(attempt) if isinstance(attempt, str) else ():
        if match[1] in ("", "1", "4"):
            raise Wrong(
                "That is not the whole state of the optimizer.",
                got=Words(match[0].strip()),
                mistake="AdamW keeps two numbers for each parameter, the moments m and v: 2·P"
                " numbers, which are 8·P bytes in float32.",
            )
