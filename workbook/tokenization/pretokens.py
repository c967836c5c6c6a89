"""Pre-tokens: pieces of text, about as long as words, across which BPE never merges.

Special tokens cut a text into documents, and GPT-2's pattern cuts each document into pre-tokens:

    "Hi, you.<|end|>It's"  ->  "Hi" "," " you" "."   <|end|>   "It" "'s"

The text may come in pieces, and a pre-token is returned as soon as no later text can change it. So
a file larger than memory, or an endless stream, is cut exactly like one long string.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

import regex

# Radford et al. 2019 (GPT-2), `encoder.py`. The alternatives, in the order in which they are tried:
# contractions | letters | digits | anything else that is visible | white space, except the last
# space of a run, which is left to the word after it | white space.
PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LONGEST_CONTRACTION = len("'re")

PIECE = 1 << 16  # characters cut at a time

# `regex`, as Python's own `re` does not know \p{L}, a letter of any script.
_pattern = regex.compile(PATTERN)
# The same pattern for ASCII text, where Python's own `re` can express it and takes half the time.
ASCII = r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
_ascii_pattern = re.compile(ASCII, re.ASCII)


def pretokenize(pieces: Iterable[str], special_tokens: Sequence[str] = ()) -> Iterator[str]:
    """The pre-tokens and special tokens of the joined `pieces`, in order.

    If two special tokens could match, the earlier wins, then the longer. An ordinary pre-token
    never equals a special token. The function reads no further ahead than it must, and holds back
    only the unfinished end of what it has read.

    >>> list(pretokenize(["Hello, wor", "ld!<|e", "nd|>It's"], ["<|end|>"]))
    ['Hello', ',', ' world', '!', '<|end|>', 'It', "'s"]
    """
    special = special_pattern(check_special_tokens(special_tokens))
    for text in settled_texts(pieces, special_tokens):
        yield from whole_pretokens(text, special)


def settled_texts(pieces: Iterable[str], special_tokens: Sequence[str] = ()) -> Iterator[str]:
    """The joined `pieces` in parts that end between two tokens, whatever text follows.

    Each is returned as soon as that is certain: its tokens are those of a whole text.
    """
    special_tokens = check_special_tokens(special_tokens)
    special = special_pattern(special_tokens)
    reach = max(map(len, special_tokens), default=1)
    text, enough = "", 0
    for piece in _bounded(pieces):
        text += piece
        if len(text) < enough:
            continue
        # The last characters of the text may be the beginning of a special token that goes on in
        # the next piece, so none that starts in the last `reach` - 1 is certain yet.
        # All but the end is settled, and goes out at once: memory holds one piece, not the text.
        end = _settled_length(text, special, len(text) - reach + 1)
        yield text[:end]
        text = text[end:]
        enough = 2 * len(text)  # so a long word in tiny pieces is not matched again for each piece
    yield text


def whole_pretokens(text: str, special: re.Pattern[str]) -> list[str]:
    """The pre-tokens and special tokens of a whole text; `special` is a `special_pattern`."""
    find = _find_in(text)
    tokens: list[str] = []
    start = 0
    for match in special.finditer(text):
        # The pattern sees no further than the special token: each document ends like a text.
        tokens += find(text, start, match.start())
        tokens.append(match[0])
        start = match.end()
    return tokens + find(text, start)


def special_pattern(special_tokens: Sequence[str]) -> re.Pattern[str]:
    """A pattern that finds special tokens: of those that begin at one place, the longest.

    It is one of Python's own `re`: `regex` takes cubic time for a token such as 4,000 equal
    letters. As it is a group, its `split` returns the special tokens too, each in its place.
    """
    # `escape`, because "|" and other marks of patterns are usual in special tokens. An alternation
    # takes the first that matches, so the longest stand first.
    alternatives = "|".join(map(re.escape, longest_first(special_tokens)))
    return re.compile(f"({alternatives or '(?!)'})")  # (?!) never matches


def longest_first(special_tokens: Iterable[str] | None) -> list[str]:
    """The special tokens in the order in which to try them, so that the longer match wins."""
    return sorted(check_special_tokens(special_tokens), key=len, reverse=True)


def check_special_tokens(special_tokens: Iterable[str] | None) -> list[str]:
    """The special tokens, each once, in the order given (a set's sorted); an empty list for None.

    Raises: TypeError if they are not a list of strings, ValueError if one is empty.
    """
    if isinstance(special_tokens, str):
        raise TypeError(f"special_tokens is a list of strings; write [{special_tokens!r}]")
    tokens = [] if special_tokens is None else list(dict.fromkeys(special_tokens))
    for token in tokens:
        if not isinstance(token, str):
            raise TypeError(f"a special token is a string, got {token!r}; decode it first")
        if not token:
            raise ValueError("a special token may not be empty: it would match everywhere")
    # The order of a set differs from run to run, and ids follow the order.
    return sorted(tokens) if isinstance(special_tokens, Set) else tokens


def _bounded(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in pieces of at most `PIECE` characters."""
    for piece in pieces:
        if not isinstance(piece, str):
            raise TypeError(f"expected str pieces, got {type(piece).__name__}; decode bytes first")
        for start in range(0, len(piece), PIECE):
            yield piece[start : start + PIECE]


def _settled_length(text: str, special: re.Pattern[str], certain: int) -> int:
    """The length of the beginning of `text` whose tokens stay the same whatever text follows.

    A special token that starts before index `certain` lies wholly in `text`; after that index, the
    text may be the beginning of one.
    """
    start = 0
    for match in special.finditer(text):
        if match.start() < certain:
            start = match.end()
    end = max(start, certain)
    # Before a space behind something visible, a pre-token ends: from the last one on, there are
    # few. What touches the end may grow: only two more characters rule out a contraction after a
    # "'".
    space = text.rfind(" ", start, max(start, end - LONGEST_CONTRACTION))
    if space > start and not text[space - 1].isspace():
        start = space
    tail = _find_in(text)(text, start, end)
    held = 0
    while tail and held < LONGEST_CONTRACTION:
        held += len(tail.pop())
    # White space is cut in two before what is visible; by itself it would not be. It is what the
    # pattern takes for it: `isspace` says so of U+001C too.
    if len(tail) > 1 and regex.fullmatch(r"\s+", tail[-2] + tail[-1]):
        tail.pop()
    return start + sum(map(len, tail))


def _find_in(text: str) -> Callable[..., list[str]]:
    """The search for pre-tokens that is right for this text, and the faster one if both are."""
    return (_ascii_pattern if text.isascii() else _pattern).findall
