"""Files cut into spans, and pre-tokens counted span by span.

    file    |------ span ------|------ span ------|--- span ---|
    task    |------ for one worker ---------------|

No cut ever splits a pre-token or a special token. So the spans can be read one after another or in
parallel, and together hold exactly the pre-tokens of the whole file.
"""

import codecs
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import regex

from workbook import config
from workbook.files import changed, unchanged
from workbook.tokenization.pretokens import check_special_tokens, pretokenize

AnyPath = str | os.PathLike[str]
Result = TypeVar("Result")

SPAN = 1 << 22  # bytes of a file held in memory at a time
SPANS_PER_TASK = 32  # a second or less of compiled work for one of several workers
PER_THREAD = 1 << 23  # bytes of a file that are worth a thread
BLOCK = 1 << 16  # bytes decoded at a time
WINDOW = 1 << 16  # bytes in which a place to cut is looked for

# A place where a file may be cut: between a visible character and a space or a line end. These
# three kinds of UTF-8 sequences are never white space (outside ASCII, that starts with C2, E1 or
# E2, or is E3 80 80), so a pre-token always ends there.
_cut = regex.compile(
    rb"(?:[!-~]|[\xc3-\xdf][\x80-\xbf]|[\xe3-\xed][\x80-\xbf][\x81-\xbf])(?=[ \n])"
)


def count_pretokens(
    input_path: AnyPath, special_tokens: Sequence[str] = (), executor: Executor | None = None
) -> Counter[str]:
    """How often each pre-token occurs in a UTF-8 file; special tokens are boundaries, not counted.

    With an executor (processes, or a cluster whose workers see the file), spans of the file are
    counted in parallel, with the same result. Memory use depends on the number of different
    pre-tokens, not on the size of the file.
    Raises: FileNotFoundError; ValueError where the file is not UTF-8, or changes meanwhile.
    """
    special_tokens = check_special_tokens(special_tokens)
    path = text_file(input_path)
    with unchanged(path):
        if executor is None:
            return _count_span(path, special_tokens, 0, path.stat().st_size)
        # Cuts where no pre-token is split: so the counts of the parts add up to those of the file.
        starts, ends = zip(*pairwise(cut_points(path, special_tokens)), strict=True)
        total: Counter[str] = Counter()
        # Workers get a path and two numbers, not text: each reads its own part of the file.
        for counts in executor.map(partial(_count_span, path, special_tokens), starts, ends):
            total.update(counts)
        return total


def text_file(path: AnyPath) -> Path:
    """The path of an existing file. Raises: FileNotFoundError."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; expected a UTF-8 text file")
    return path


def cut_points(
    path: Path, special_tokens: Sequence[str] = (), span: int | None = None
) -> list[int]:
    """The byte offsets between which a file may be read part by part, from 0 to its size.

    They are about `span` bytes apart (by default `SPAN`), and none splits a pre-token or a special
    token. If a `WINDOW` holds no such place, the part is longer.
    """
    with path.open("rb") as file:

        def read(start: int, length: int) -> bytes:
            file.seek(start)
            return file.read(length)

        return cuts_between(read, path.stat().st_size, special_tokens, span)


def cuts_between(
    read: Callable[[int, int], bytes],
    size: int,
    special_tokens: Sequence[str] = (),
    span: int | None = None,
) -> list[int]:
    """The `cut_points` of `size` bytes; `read(start, length)` returns some of them."""
    # In bytes, since a file is cut at byte offsets.
    specials = [token.encode() for token in check_special_tokens(special_tokens)]
    margin = max(map(len, specials), default=0)
    points = [0]
    for target in range(span or SPAN, size, span or SPAN):
        # Somewhat earlier, because a special token may begin before the target and end after it.
        start = target - min(margin, target)
        # Only a window around each target is read: a small part of the file.
        place = place_to_cut(read(start, WINDOW + 2 * margin), specials)
        if place is not None:
            points.append(start + place)
    # Without a place in a window, this part simply reaches to the next cut.
    return [*points, size]


def place_to_cut(window: bytes, specials: Sequence[bytes]) -> int | None:
    """The first place to cut in a part of a text; None if it has none.

    A margin at both ends, as long as the longest special token, is no place to cut: one that goes
    on outside would not be seen.
    """
    margin = max(map(len, specials), default=0)
    # What follows is white space, and it begins a new pre-token: by itself, or as the first
    # character of the next word.
    for match in _cut.finditer(window, margin, len(window) - margin):
        # The lookahead (?=...) is not part of the match: the space belongs to the next part.
        at = match.end()
        # A special token may hold a space; cut here only if that splits none.
        around = (window[max(at - len(token) + 1, 0) : at + len(token) - 1] for token in specials)
        if not any(token in part for token, part in zip(specials, around, strict=True)):
            return at
    return None


def task_cuts(cuts: Sequence[int], spans: int | None = None) -> list[Sequence[int]]:
    """The cuts divided among tasks: each gets consecutive spans and starts where the last ended."""
    # More spans in a task mean fewer results to send; fewer keep the workers equally busy.
    spans = spans or SPANS_PER_TASK
    return [cuts[at : at + spans + 1] for at in range(0, len(cuts) - 1, spans)]


def share(
    task: Callable[[Sequence[int]], Result], cuts: Sequence[int], executor: Executor | None
) -> Iterator[Result]:
    """The results of a task for the parts of a file, in order.

    The workers of the executor share them. Without one, threads of this process do, if the file is
    large: one for each core that the process may use, each with a part of its own. That suits
    compiled code, while which other threads run.
    """
    # A thread for a small file would cost more than it saves.
    threads = min(config.cores(), cuts[-1] // PER_THREAD)
    if executor is not None:
        yield from executor.map(task, task_cuts(cuts))
    elif threads < 2:
        yield task(cuts)
    else:
        with ThreadPoolExecutor(threads) as own:
            yield from own.map(task, task_cuts(cuts, -(-(len(cuts) - 1) // threads)))


def _count_span(path: Path, special_tokens: Sequence[str], start: int, end: int) -> Counter[str]:
    """The pre-token counts of the bytes [start, end) of a file."""
    # `Counter` takes the pre-tokens one by one, so the span is never in memory as a list of them.
    counts = Counter(pretokenize(read_span(path, start, end), special_tokens))
    for token in special_tokens:
        counts.pop(token, None)
    return counts


def read_span(path: Path, start: int, end: int) -> Iterator[str]:
    """The text of the bytes [start, end) of a file, in blocks, with its line ends unchanged."""
    # Blocks end anywhere, also within a character: the decoder keeps its first bytes for the next.
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        file.seek(start)
        while (at := file.tell()) < end:
            data = file.read(min(BLOCK, end - at))
            if not data:  # the file has become shorter: this loop would never end
                raise changed(path)
            try:
                yield decoder.decode(data, final=at + len(data) == end)
            except UnicodeDecodeError as error:
                # `error.object` begins with the bytes that were kept from the block before.
                held = len(error.object) - len(data)
                raise not_utf8(path, at - held, error) from error


def not_utf8(path: Path, start: int, error: UnicodeDecodeError) -> ValueError:
    """The error for bytes that are not UTF-8, in a part of a file that begins at `start`."""
    return ValueError(
        f"{path} is not UTF-8: byte {error.object[error.start]:#04x} at offset "
        f"{start + error.start:,} ({error.reason}); convert the file or remove the byte"
    )
