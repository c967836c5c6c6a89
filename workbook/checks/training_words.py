"""What is said of the training script and of a generated text: facts to tick, and one count."""

import inspect
import re
from pathlib import Path
from types import FunctionType
from typing import Any

from workbook.checks.figures import claims, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong, is_stub, kind_of

ENOUGH = 256  # tokens of a generated text
LENGTH = re.compile(
    r"(?:sample|text|story|generat\w+|writes?|wrote|written|produc\w+)\W+(?:\w+\W+){0,3}?"
    r"(\d[\d,]*)[ -](?:new )?tokens?\b",
    re.I,
)


class Script(Facts):
    """Facts about a script, which was not judged."""

    claim = (
        "No check can judge a training script: only a run of yours can. Does it do these things?"
    )


SCRIPT = Script(
    (
        "model, optimizer and every other setting can be chosen without editing the file",
        "the data is read through a memory map, so that it need not fit into memory",
        "checkpoints are written as it goes, and a run goes on from one as if nothing had happened",
        "training and validation loss are reported every so many steps",
        "it learns a single small batch by heart: the loss falls to almost zero",
    )
)
TEXT = Facts(
    (
        f"a text of {ENOUGH} tokens or more, or one that ended by itself at its end token",
        "how it was made: temperature, top-p, prompt",
        "how fluent it is: grammar, sense, names that stay the same",
        "two things that make it better or worse",
    )
)


def training_together(attempt: Any, part: str | None = None) -> Facts:
    """Facts to tick for whoever wrote the script, or a function of it: nothing is run."""
    if is_stub(attempt) or _only_raises(attempt):
        raise NotAttempted
    if isinstance(attempt, str) and not attempt.strip():
        raise NotAttempted
    if callable(attempt) or inspect.ismodule(attempt) or isinstance(attempt, str | Path):
        return SCRIPT
    raise Wrong(
        "That is no script.",
        expected=Words("the function that trains, its module, or the script's path or text"),
        got=Words(kind_of(attempt)),
    )


def _only_raises(attempt: Any) -> bool:
    """True for a function that only raises NotImplementedError; calling it to see is too risky."""
    return type(attempt) is FunctionType and attempt.__code__.co_names == ("NotImplementedError",)


def generate(attempt: Any, part: str | None = None) -> str | Facts:
    """Facts to tick for a generated text and what is said of it; a count that is too small."""
    if type(attempt) in (int, float):
        _expect_enough(attempt)
        return f"{int(attempt)} tokens are long enough."
    if type(attempt) in (list, tuple) and attempt and all(type(x) is int for x in attempt):
        _expect_enough(len(attempt))
        return f"{len(attempt)} tokens are long enough."
    text = text_of(attempt, "the text and what you say of it, its ids, or its number of tokens")
    counts = [int(number.replace(",", "")) for number in LENGTH.findall(text)]
    ended = claims(text, r"end[ -]?of[ -]?(?:the )?(?:text|story)|\bend(?:s|ed)?\b|<\|end|\bstop")
    if counts and not ended:
        _expect_enough(max(counts))
    return TEXT


def _expect_enough(count: float) -> None:
    if count < ENOUGH:
        raise Wrong(
            "That is too short.",
            expected=Words(f"{ENOUGH} tokens or more, or a text up to its end token"),
            got=Words(f"{count:g} tokens"),
            mistake="If the model ended the text itself, say so: then it may be shorter.",
        )
