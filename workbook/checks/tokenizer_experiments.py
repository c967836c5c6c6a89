"""The checks of the written tokenizer problems: times, sizes, ratios, longest tokens, the Pile.

Most figures depend on the corpus and the machine, so they are judged by what they must be
consistent with, and by wide ranges. What is said about them says so.
"""

import re
from collections.abc import Iterable
from typing import Any

from workbook.checks.figures import claims, is_explained, quantities, sentence, text_of
from workbook.checks.pile import pile
from workbook.checks.trained import longest_token, resources
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong

PLAUSIBLE = "plausible, which is all that can be said without your corpus"
TOO_FEW, TOO_MANY = 3.0, 10.0  # bytes per token of a tokenizer on the text it was trained for
MOST = 1000  # of a ratio; larger numbers are counts
UINT16_VALUES = 2**16


def train_bpe_tinystories(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of train_bpe_tinystories."""
    return {"a": _tinystories, "b": _profile}[part](attempt)


def train_bpe_expts_owt(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of train_bpe_expts_owt."""
    return {"a": _owt, "b": _comparison}[part](attempt)


def tokenizer_experiments(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of tokenizer_experiments."""
    return {"a": _own_ratio, "b": _foreign_ratio, "c": pile, "d": _uint16}[part](attempt)


def _tinystories(attempt: Any) -> str | Facts:
    if type(attempt) is dict:
        for value in attempt.values():
            if isinstance(value, bytes):
                longest_token(value, "tinystories")
        attempt = sentence(attempt)
    if isinstance(attempt, float):
        raise NotAttempted('Say what was measured, with its unit, as in "62 s, 1.9 GB".')
    if token := longest_token(attempt, "tinystories"):
        return token
    text = text_of(attempt, "the longest token as bytes, or time, memory and token in a sentence")
    said = resources(text)
    if said and not is_explained(text):
        return said
    return Facts(
        (
            "time and peak memory, child processes included, with units",
            "the longest token, its leading space included, and its length in bytes",
            "whether it makes sense: is it a word of the stories?",
        )
    )


def _owt(attempt: Any) -> str | Facts:
    if token := longest_token(attempt, "owt"):
        return token
    text_of(attempt, "the longest token as bytes, its length, or a sentence")
    return Facts(
        (
            "the longest token and its length in bytes",
            "what it is: text, a ruler, or text that was encoded twice",
            "why the corpus contains it often",
        )
    )


def _profile(attempt: Any) -> Facts:
    text = text_of(attempt, "the step that takes most time, in a sentence")
    slow = r"slow|most (?:of the )?time|dominat|bottleneck|takes?\b|spent|spends"
    waiting = r"\bwait|\block\b|acquire|\bpoll\b|\bselect\b|semaphore|\.join\b|\bsleep"
    known = r"mislead|hid(?:es|ing|den)|only the parent|parent(?:'s|-only)|single process|in fact"
    about_waiting = claims(text, rf"(?:{slow}).*(?:{waiting})|(?:{waiting}).*(?:{slow})")
    work = r"token|regex|find|match|count|merg|pair|split|encod|heap|read|decod"
    only_waiting = re.search(waiting, text, re.I) and not re.search(work, text, re.I)
    if (about_waiting or only_waiting) and not re.search(known, text, re.I):
        raise Wrong(
            "Waiting is not work.",
            expected=Words("the step that computes"),
            got=Words(text if len(text) < 100 else text[:100] + "..."),
            mistake="The parent was profiled, not the workers: a profiler sees one process, and the"
            " parent of a pool waits. Profile a run that counts in one process.",
        )
    return Facts(
        (
            "which step takes most: cutting the text into pre-tokens, counting, or merging",
            "its share or its seconds, and how it was measured",
        )
    )


def _comparison(attempt: Any) -> Facts:
    text_of(attempt, "the two tokenizers compared, in a sentence or two")
    return Facts(
        (
            "what they share: short, frequent English words",
            "what differs: words of children's stories against names, markup and rarer words",
            "the differing vocabulary sizes are kept in mind",
        )
    )


def ratios_in(attempt: Any) -> list[float]:
    """Every figure of an attempt that may be a ratio: numbers, also inside a tuple or a dict."""
    if type(attempt) in (int, float):
        return [float(attempt)]
    if type(attempt) is dict:
        attempt = list(attempt.values())
    if type(attempt) in (tuple, list):
        return [ratio for item in attempt for ratio in ratios_in(item)]
    text = text_of(attempt, "bytes per token: a number, several, or a sentence")
    numbers = [*_PER_TOKEN.findall(text), *_AFTER_CORPUS.findall(text)]
    if numbers or is_explained(text):
        return [float(number) for number in numbers]
    plain = [q for q in quantities(text) if q.kind in ("", "bytes")]
    found = [q.value for q in plain if not _OTHER.match(text, q.end)]
    return [value for value in found if value <= MOST] or found


_PER_TOKEN = re.compile(r"(\d+(?:\.\d+)?)\s*(?:bytes?|B)?\s*(?:per|/|an?)\s*(?:token|id)\b", re.I)
_AFTER_CORPUS = re.compile(
    r"(?:stories|owt|openwebtext|pydocs)\s*(?:is|has|gets|at|[:=])?\s*(\d+\.\d+)"
    r"(?!\d|\s*(?:[kMG]i?B|B/|s\b|x\b|%|times))",
    re.I,
)
# What stands behind a number that counts something else.
_OTHER = re.compile(r"\s?(?:%|[kK]\b|tokens?\b(?!\s?(?:per|/|a))|ids\b|doc|sampl)")


def _refuse_upside_down(ratios: Iterable[float]) -> None:
    for ratio in ratios:
        if ratio > MOST:
            raise NotAttempted("That is no ratio. Hand in bytes per token, such as 4.1.")
        if not ratio > 0:
            raise Wrong("A token stands for more than nothing.", got=ratio)
        if ratio < 1:
            raise Wrong(
                "A token of a byte-level tokenizer stands for one byte at least.",
                expected=Words(f"bytes per token, here {1 / ratio:.2f}"),
                got=ratio,
                mistake="The ratio is upside down: those are tokens per byte.",
            )
        if ratio > TOO_MANY:
            raise Wrong(
                "No word-sized tokenizer gets that far: an English word has 5 to 6 bytes.",
                expected=Words("about 3 to 5 bytes per token"),
                got=ratio,
                mistake="Were documents or words counted in place of tokens, or bits of bytes?",
            )


def _own_ratio(attempt: Any) -> str | Facts:
    ratios = ratios_in(attempt)
    _refuse_upside_down(ratios)
    for ratio in ratios:
        if ratio < TOO_FEW:
            raise Wrong(
                "That is doubtful: far below what BPE reaches on the text it was trained for.",
                expected=Words("about 4 bytes per token with the vocabulary sizes asked for"),
                got=ratio,
                mistake="The merges are not fully applied: is every merge tried, again and again,"
                " until none is left in the pre-token? (With a vocabulary of some hundred ids,"
                " fewer bytes are right.)",
            )
    return _ratios_said(attempt, ratios, "each tokenizer is measured on its own corpus")


def _foreign_ratio(attempt: Any) -> str | Facts:
    ratios = ratios_in(attempt)
    _refuse_upside_down(ratios)
    if len(ratios) == 1 and ratios[0] > 4.3:
        raise Wrong(
            "That is doubtful: as good as a tokenizer trained on that very corpus.",
            expected=Words("fewer bytes per token than with its own tokenizer"),
            got=ratios[0],
            mistake="Was the sample encoded with its own tokenizer, or the other corpus sampled?",
        )
    return _ratios_said(attempt, ratios, "more, shorter tokens: rare words are spelled out")


def _ratios_said(attempt: Any, ratios: list[float], fact: str) -> str | Facts:
    if isinstance(attempt, str) and (is_explained(attempt) or not ratios):
        return Facts(("bytes per token, not tokens per byte", fact, "how many documents, which"))
    if not ratios:
        raise NotAttempted
    return f"{', '.join(f'{ratio:.2f}' for ratio in ratios)} bytes per token: {PLAUSIBLE}."


def _uint16(attempt: Any) -> str | Facts:
    if type(attempt) in (int, float):
        return _uint16_figure(int(attempt))
    text = text_of(attempt, "the range of uint16, or your reason in words")
    figures = [int(q.value) for q in quantities(text) if q.value.is_integer()]
    largest = r"up to|max|largest|biggest|greatest|highest|reach|through|last"
    values = r"(?: (?:different|distinct))? (?:values|ids|tokens|entries|numbers)"
    if claims(text, rf"(?:{largest})\D{{0,30}}65[, _]?536\b(?!{values})"):
        _refuse_limit(UINT16_VALUES)
    limits = {UINT16_VALUES, UINT16_VALUES - 1}
    for figure in figures:
        if figure in (2**15, 2**15 - 1, 65_534, 65_537) and not limits & set(figures):
            _refuse_limit(figure)
    if not is_explained(text) and limits & set(figures):
        return _uint16_figure(next(figure for figure in figures if figure in limits))
    return Facts(
        (
            "the largest id is below 65,536, so that two bytes hold it",
            "half the space of int32, a quarter of int64",
            "no negative number is needed",
        )
    )


def _uint16_figure(figure: int) -> str:
    if figure == UINT16_VALUES - 1:
        return "65,535 is the largest id that fits."
    if figure == UINT16_VALUES:
        return "65,536 values fit, and the largest of them is 65,535."
    if figure == 2:
        return "Two bytes an id."
    _refuse_limit(figure)


def _refuse_limit(figure: int) -> None:
    mistakes = {
        2**15: "That is the reach of int16, which spends one bit on the sign. uint16 has none.",
        UINT16_VALUES: "65,536 is how many values there are. They begin at 0, so the last is one"
        " less.",
        2**8: "That is uint8: one byte.",
        2**32: "That is uint32: four bytes.",
        10_000: "That is the size of one vocabulary, and it fits. Asked is where uint16 ends.",
        32_000: "That is the size of one vocabulary, and it fits. Asked is where uint16 ends.",
    }
    mistakes |= {power - 1: mistakes[power] for power in (2**15, 2**8, 2**32)}
    raise Wrong(
        "That is not where uint16 ends.",
        given="numpy.iinfo('uint16').max",
        expected=UINT16_VALUES - 1,
        got=figure,
        mistake=mistakes.get(figure, "16 bits have 2 ** 16 values, beginning at 0."),
    )
