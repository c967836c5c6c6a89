"""Pre-tokens: the pieces of text, about a word each, that BPE merges never reach across.

Text -> special tokens cut it into documents -> GPT-2's pattern cuts each document into pre-tokens:

    "Hi, you.<|end|>It's"  ->  "Hi" "," " you" "."   <|end|>   "It" "'s"

The text may come in pieces and the pre-tokens leave as soon as no later text can change them, so
that a file larger than memory, or a stream without end, is cut exactly like one long string.
"""

import codecs
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor
from functools import partial
from itertools import pairwise
from pathlib import Path

import regex

from workbook.files import changed, unchanged

# Radford et al. 2019 (GPT-2), `encoder.py`. The alternatives, in the order in which they are tried:
# contractions | letters | digits | anything else that is visible | white space, where the last
# space of a run is left to the word behind it | white space.
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LONGEST_CONTRACTION = len("'re")

PIECE = 1 << 16  # characters cut at a time
SPAN = 1 << 21  # bytes of a file that are held at a time
SPANS_A_TASK = 64  # of one worker among several: a second or two of compiled work
COMPILED_FROM = 5 << 20  # bytes of a file, from which on the compiled engine of `fastbpe` is used

_pattern = regex.compile(PATTERN)
# The same pattern where all text is ASCII: there Python's own `re` can say it, in half the time.
_ascii_pattern = re.compile(
    PATTERN.replace(r"[^\s\p{L}\p{N}]", r"[^\sA-Za-z0-9]")
    .replace(r"\p{L}", "[A-Za-z]")
    .replace(r"\p{N}", "[0-9]"),
    re.ASCII,
)

# A place where a file may be cut: between a visible character and a space or a line end. These
# three kinds of UTF-8 sequences hold no white space (what Unicode has of it outside ASCII starts
# with C2, E1 or E2, or is E3 80 80), and a boundary of pre-tokens always lies behind them.
_cut = regex.compile(
    rb"(?:[!-~]|[\xc3-\xdf][\x80-\xbf]|[\xe3-\xed][\x80-\xbf][\x81-\xbf])(?=[ \n])"
)


def pretokenize(pieces: Iterable[str], special_tokens: Sequence[str] = ()) -> Iterator[str]:
    """The pre-tokens and special tokens of the joined `pieces`, in order.

    Where two special tokens could match, the earlier wins, then the longer. An ordinary pre-token
    never equals a special token. Reads no further ahead than it must, and holds back only the
    unfinished end of what it read.

    >>> list(pretokenize(["Hello, wor", "ld!<|e", "nd|>It's"], ["<|end|>"]))
    ['Hello', ',', ' world', '!', '<|end|>', 'It', "'s"]
    """
    special_tokens = check_special_tokens(special_tokens)
    special = special_pattern(special_tokens)
    reach = max(map(len, special_tokens), default=1)
    text, enough = "", 0
    for piece in _bounded(pieces):
        text += piece
        if len(text) < enough:
            continue
        tokens = _settled(text, special, len(text) - reach + 1)
        yield from tokens
        text = text[sum(map(len, tokens)) :]
        enough = 2 * len(text)  # a long word that comes in crumbs is not looked at for each of them
    yield from _settled(text, special, len(text), finished=True)


def whole_pretokens(text: str, special: re.Pattern) -> list[str]:
    """The pre-tokens and special tokens of a text that is all there, at once.

    `special` is a `special_pattern`.
    """
    return _settled(text, special, len(text), finished=True)


def special_pattern(special_tokens: Sequence[str]) -> re.Pattern:
    """What finds special tokens, and of those that begin together the longest.

    By Python's own `re`: `regex` takes cubic time for a token such as 4,000 equal letters.
    """
    return re.compile("|".join(map(re.escape, longest_first(special_tokens))) or "(?!)")


def longest_first(special_tokens: Iterable[str] | None) -> list[str]:
    """The special tokens in the order in which to try them, so that the longer match wins."""
    return sorted(check_special_tokens(special_tokens), key=len, reverse=True)


def check_special_tokens(special_tokens: Iterable[str] | None) -> list[str]:
    """The special tokens, each once, in the order given; none for None, a set's sorted.

    Raises: TypeError where it is no list of strings, ValueError where one is empty or has no UTF-8.
    """
    if isinstance(special_tokens, str):
        raise TypeError(
            f"special_tokens is a list of strings, got the string {special_tokens!r}; "
            f"write [{special_tokens!r}]"
        )
    tokens = [] if special_tokens is None else list(dict.fromkeys(special_tokens))
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"a special token is a string, got {token!r}; decode it first")
        if not token:
            raise ValueError("a special token may not be empty: it would match everywhere")
        try:
            token.encode()
        except UnicodeEncodeError as error:
            raise lone_surrogate(f"the special token {token!r}") from error
    # The order of a set differs from run to run, and ids follow the order.
    return sorted(tokens) if isinstance(special_tokens, Set) else tokens


def _bounded(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in pieces of at most `PIECE` characters."""
    for piece in pieces:
        if not isinstance(piece, str):
            raise TypeError(
                f"expected pieces of str, got {type(piece).__name__}; decode bytes first"
            )
        for start in range(0, len(piece), PIECE):
            yield piece[start : start + PIECE]


def _settled(text: str, special: re.Pattern, certain: int, finished: bool = False) -> list[str]:
    """The tokens at the beginning of `text` that stay as they are whatever text follows.

    Special tokens that start before index `certain` are wholly in sight; behind it the text may
    turn out to be the beginning of one.
    """
    find = (_ascii_pattern if text.isascii() else _pattern).findall
    tokens, start = [], 0
    for match in special.finditer(text):
        if match.start() >= certain:
            break
        tokens += find(text, start, match.start())
        tokens.append(match[0])
        start = match.end()
    tail = find(text, start, max(start, certain))
    held = 0
    # What touches the end may grow, and a "'" needs two characters more to be no contraction.
    while tail and not finished and held < LONGEST_CONTRACTION:
        held += len(tail.pop())
    return tokens + tail


def count_pretokens(
    input_path: str | os.PathLike,
    special_tokens: Sequence[str] = (),
    executor: Executor | None = None,
) -> Counter[str]:
    """How often each pre-token occurs in a UTF-8 file; special tokens are boundaries, not counted.

    With an executor (processes, or a cluster whose workers see the file), spans of the file are
    counted side by side; the cuts between them are exact. Memory depends on the number of
    different pre-tokens, not on the size of the file.
    Raises: FileNotFoundError; ValueError where the file is not UTF-8, or changes meanwhile.
    """
    special_tokens, path = check_special_tokens(special_tokens), text_file(input_path)
    with unchanged(path):
        if executor is None:
            return _count_span(path, special_tokens, 0, path.stat().st_size)
        starts, ends = zip(*pairwise(cut_points(path, special_tokens)), strict=True)
        total: Counter[str] = Counter()
        for counts in executor.map(partial(_count_span, path, special_tokens), starts, ends):
            total.update(counts)
        return total


def text_file(path: str | os.PathLike) -> Path:
    """The path of a file that is there. Raises: FileNotFoundError."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; expected a UTF-8 text file")
    return path


def cut_points(path: Path, special_tokens: Sequence[str] = (), span: int = SPAN) -> list[int]:
    """Byte offsets, about `span` apart, at which the file may be cut and counted part by part.

    No pre-token and no special token lies across any of them. Where the next 64 KiB hold no such
    place, there is none, and the part is longer.
    """
    specials = [token.encode() for token in check_special_tokens(special_tokens)]
    margin = max(map(len, specials), default=0)
    size = path.stat().st_size
    points = [0]
    with path.open("rb") as file:
        for target in range(span, size, span):
            file.seek(target - min(margin, target))
            window = file.read((1 << 16) + 2 * margin)
            for match in _cut.finditer(window, margin, len(window) - margin):
                at = match.end()
                if not any(
                    token in window[max(at - len(token) + 1, 0) : at + len(token) - 1]
                    for token in specials
                ):
                    points.append(file.tell() - len(window) + at)
                    break
    return [*points, size]


def task_cuts(cuts: Sequence[int]) -> list[Sequence[int]]:
    """The cuts shared out among tasks: each gets a row of spans, and starts where one ended."""
    return [cuts[at : at + SPANS_A_TASK + 1] for at in range(0, len(cuts) - 1, SPANS_A_TASK)]


def _count_span(path: Path, special_tokens: Sequence[str], start: int, end: int) -> Counter[str]:
    """The counts of the bytes [start, end) of a file."""
    counts = Counter(pretokenize(read_span(path, start, end), special_tokens))
    for token in special_tokens:
        counts.pop(token, None)
    return counts


def read_span(path: Path, start: int, end: int) -> Iterator[str]:
    """The text of the bytes [start, end) of a file, piece by piece; line ends stay as they are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        file.seek(start)
        while (at := file.tell()) < end:
            data = file.read(min(PIECE, end - at))
            if not data:  # it has become shorter, and would be read for ever
                raise changed(path)
            try:
                yield decoder.decode(data, final=at + len(data) == end)
            except UnicodeDecodeError as error:
                held = len(error.object) - len(data)
                raise not_utf8(path, at - held, error) from error


def lone_surrogate(what: str) -> ValueError:
    """The error for text, named by `what`, that no UTF-8 stands for."""
    return ValueError(
        f"{what} holds a lone surrogate, which has no UTF-8; decode the text with "
        f'errors="replace" where it comes from'
    )


def not_utf8(path: Path, start: int, error: UnicodeDecodeError) -> ValueError:
    """The error for bytes that are no UTF-8, in a part of a file that begins at `start`."""
    return ValueError(
        f"{path} is not UTF-8: byte {error.object[error.start]:#04x} at offset "
        f"{start + error.start:,} ({error.reason}); convert the file or remove the byte"
    )
