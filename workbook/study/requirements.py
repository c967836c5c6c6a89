"""What a problem asks of an answer beyond its words: a figure, figures with units, enough text.

Only what can be seen in the answer itself is looked for. An answer that falls short is named by
the export; nobody's prose is graded.
"""

import re
from collections.abc import Callable
from functools import partial

from workbook.tokenization.pretokens import pretokenize

NUMBER = r"\d[\d,_.]*(?:e[+-]?\d+)?"
QUANTITIES = {
    "a time": rf"{NUMBER}\s*(?:[µmn]?s\b|secs?\b|seconds?|min\b|minutes?|h\b|hours?|days?|years?)",
    "a memory": rf"{NUMBER}\s*(?:[kKMGT]i?B\b|bytes?)",
    "a rate in bytes per second": (
        rf"{NUMBER}\s*(?:[kKMGT]i?B|bytes?|tokens?)\s*(?:/|per|a)\s*(?:s\b|sec|second)"
    ),
    "an example in bytes": r"b['\"]|(?:\\x|0x|\b)[0-9a-fA-F]{2}(?![0-9a-zA-Z])|\.encode\(",
}
END = re.compile(r"<\|endoftext\|>|end[- ]of[- ]text|end[- ]token|\bEOS\b", re.IGNORECASE)
STATED = re.compile(r"(\d[\d,]*)[ -]tokens?\b")
QUOTED = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1|((?:^>[^\n]*(?:\n|\Z))+)", re.DOTALL | re.M)
LOSS = re.compile(r"\bloss\b[^.\n]*?(\d+\.\d+)", re.IGNORECASE)
TOKENS_A_PIECE = 1.5  # more tokens than this to a word or mark means a tokenizer for another text

Complaint = Callable[[str, int], str | None]  # of an answer's text and its number of figures


def _figure(text: str, figures: int) -> str | None:
    return None if figures else "it shows no figure"


def _quantity(kind: str, text: str, figures: int) -> str | None:
    return None if re.search(QUANTITIES[kind], text) else f"it names no {kind.split(' ', 1)[1]}"


def _numbers(wanted: tuple[str, ...], text: str, figures: int) -> str | None:
    missing = [n for n in wanted if not re.search(rf"(?<![\d.,]){n}(?!\d|[,.]\d)", text)]
    return f"it does not name {' and '.join(missing)}" if missing else None


def _loss(most: float, text: str, figures: int) -> str | None:
    losses = [float(loss) for loss in LOSS.findall(text)]
    if not losses:
        return "it names no loss"
    return f"the lowest loss is {min(losses):g}, asked is {most:g}" if min(losses) > most else None


def _generated(least: int, text: str, figures: int) -> str | None:
    """Too short a text: by the count that it states, or by its words and marks.

    A token is seldom less than a word or a mark, and never more, so that their number tells a
    text of 60 tokens from one of 256 whatever the tokenizer.
    """
    if END.search(text):
        return None
    blocks = ["".join(each[1:]).replace("\n>", "\n") for each in QUOTED.findall(text)]
    pieces = sum(1 for _ in pretokenize([max(blocks, key=len, default=text).strip()]))
    stated = [int(number.replace(",", "")) for number in STATED.findall(text)]
    if stated and max(stated) < least:
        return f"the text has {max(stated)} tokens, asked are {least} or an end token"
    if pieces * TOKENS_A_PIECE < least:
        return f"the text has about {pieces} tokens, asked are {least} or an end token"
    return None


REQUIREMENTS: dict[tuple[str, str], tuple[Complaint, ...]] = {
    ("unicode2", "b"): (partial(_quantity, "an example in bytes"),),
    ("unicode2", "c"): (partial(_quantity, "an example in bytes"),),
    ("train_bpe_tinystories", "a"): (partial(_quantity, "a time"), partial(_quantity, "a memory")),
    ("tokenizer_experiments", "c"): (
        partial(_quantity, "a rate in bytes per second"),
        partial(_quantity, "a time"),
    ),
    ("transformer_accounting", "a"): (partial(_quantity, "a memory"),),
    ("adamwAccounting", "d"): (partial(_quantity, "a time"),),
    ("experiment_log", ""): (_figure,),
    ("learning_rate", "a"): (_figure, partial(_loss, 2.0)),
    ("learning_rate", "b"): (_figure,),
    ("batch_size_experiment", ""): (_figure, partial(_numbers, ("64", "128"))),
    ("generate", ""): (partial(_generated, 256),),
    ("layer_norm_ablation", ""): (_figure,),
    ("pre_norm_ablation", ""): (_figure,),
    ("no_pos_emb", ""): (_figure,),
    ("swiglu_ablation", ""): (_figure,),
    ("main_experiment", ""): (_figure, partial(_generated, 256)),
    ("leaderboard", ""): (_figure, partial(_loss, 5.0)),
}

# Problems whose right answer differs between the editions, and by what.
DIFFERS = {
    "transformer_accounting": "the inner width of the feed-forward layer",
    "adamwAccounting": "the feed-forward layer, the GPU and the unit of time",
    "leaderboard": "the time allowed",
}


def complaints(problem: str, part: str, text: str, figures: int) -> list[str]:
    """In what an answer falls short of what its problem asks, each in a few words."""
    checks = REQUIREMENTS.get((problem, part), ())
    return [said for check in checks if (said := check(text, figures))]
