"""Whether a tokenizer keeps up: lazily, in constant memory and in a reasonable time."""

import tracemalloc
from collections.abc import Iterator
from itertools import islice
from typing import Any

from workbook.checks import tokenizer_cases as cases
from workbook.checks.bpe_symptoms import first_difference
from workbook.checks.tokenizer_answers import Learner, ids_of
from workbook.checks.tokenizer_reference import Setup, Text, predicted
from workbook.checks.verdicts import Words, Wrong, call

LONG = 20.0  # seconds that a long text may take
READ_AHEAD = 1_500_000  # characters that may be read before the first id comes
BUFFER = 32_000  # who reads further ahead than this is not measured: a buffer is no leak
LINES = cases.LEARNT_FROM.splitlines(keepends=True)


class Drained(Exception):  # noqa: N818 - a fact about the reader, not an error
    """Raised when more was read than a lazy reader needs."""


class Source:
    """An endless stream of lines, which counts what is read and stops at a limit."""

    def __init__(self, most: int):
        self.most = most
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        while True:
            for line in LINES:
                if self.read > self.most:
                    raise Drained
                self.read += len(line)
                yield line


def check_lazy(learner: Learner) -> None:
    """Raise `Wrong` where the stream is read to its end first, or what was read is kept."""
    setup = cases.setup()
    given = Words("the first id of `encode_iterable(lines)`, where the lines never end")
    source = Source(READ_AHEAD)
    try:
        first = call(
            lambda: next(iter(learner.make(setup).encode_iterable(iter(source)))),
            seconds=LONG,
            given=given,
        )
    except Wrong as failure:
        if source.read <= READ_AHEAD and not failure.timed_out:
            raise
        first = None
    if first is None:
        raise Wrong(
            "`encode_iterable` is not lazy.",
            given=given,
            expected=Words("an id after a line or two"),
            got=Words(f"no id after {source.read:,} characters"),
            mistake="It reads the whole stream before it yields anything: yield the ids of what is "
            "certain while you read on. Joining the pieces, or making a list, needs memory for all "
            "of the text.",
        )
    ids_of([first], given, "encode_iterable")
    if source.read < BUFFER:
        _check_memory(learner, setup)


def _check_memory(learner: Learner, setup: Setup) -> None:
    """Raise `Wrong` where the memory in use grows with what was read."""
    few, many = 8_000, 40_000  # characters
    given = Words(f"`encode_iterable(lines)`, with {many:,} characters of lines")
    try:
        held = call(lambda: _memory_after(learner, setup, few, many), seconds=LONG, given=given)
    except Wrong as failure:
        if failure.timed_out:
            return  # memory is counted at the price of time: that is no fault of the tokenizer
        raise
    grown = held[1] - held[0]
    if grown > (many - few) // 2:
        raise Wrong(
            "`encode_iterable` needs more memory the more it reads.",
            given=given,
            expected=Words("about as much memory as after the first lines"),
            got=Words(f"{grown:,} bytes more for {many - few:,} characters more"),
            mistake="What was read, or the ids of it, is kept: forget it once its ids are out.",
        )


def _memory_after(learner: Learner, setup: Setup, *read: int) -> list[int]:
    """The bytes in use when so many characters were read, and their ids dropped."""
    source, held = Source(READ_AHEAD), []
    ids = iter(learner.make(setup).encode_iterable(iter(source)))
    tracemalloc.start(1)
    try:
        for characters in read:
            while source.read < characters:
                for _ in islice(ids, 50):
                    pass
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return held


def check_speed(learner: Learner, method: str) -> None:
    """Raise `Wrong` where a text of 80 kB, or a long word, takes much longer than it needs."""
    lines = LINES * (80_000 // len("".join(LINES)))
    for pieces, what in ((lines, "of lines"), (["gathered" * 6] * 40, "without any space")):
        text = "".join(pieces)
        given = Words(f"{method}(text), where the text is {len(text):,} characters {what}")
        tokenizer = learner.make(cases.setup())
        try:
            result = call(_encoded, tokenizer, method, text, pieces, seconds=LONG, given=given)
        except Wrong as failure:
            if failure.timed_out:
                failure.claim = f"`{method}` is hopelessly slow: stopped after {LONG:g} s."
                failure.mistake = SLOW[method]
            raise
        ids, right = ids_of(result, given, method), predicted(Text(cases.setup(), text))
        if ids != right:
            at = first_difference(right, ids)
            raise Wrong(
                f"`{method}` of a long text differs, though short texts are right.",
                given=given,
                expected=right[at : at + 8],
                got=Words(f"{ids[at : at + 8]}, from id {at:,} on"),
            )


SLOW = {
    "encode": "Probably the work grows with the square of the text: look up ids in a dict and not "
    "in a list, merge inside pre-tokens only, and do not copy the rest of the text for each token.",
    "encode_iterable": "Probably what was read before is encoded again with each piece: keep only "
    "the end that is not certain yet.",
}


def _encoded(tokenizer: Any, method: str, text: str, pieces: list[str]) -> Any:
    if method == "encode":
        return tokenizer.encode(text)
    return list(tokenizer.encode_iterable(iter(pieces)))
