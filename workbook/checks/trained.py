"""What a write-up says about a trained tokenizer: longest token, time, memory."""

import re
from itertools import pairwise
from typing import Any

from workbook.checks.figures import Quantity, bytes_in, is_explained, quantities, quoted, text_of
from workbook.checks.verdicts import Words, Wrong
from workbook.tokenization.pretokens import pretokenize

LONGEST = {"tinystories": 15, "owt": 64}  # bytes of the longest token on the course's corpora
TITLES = {"tinystories": "TinyStories with 10,000 ids", "owt": "OpenWebText with 32,000 ids"}
_ITS_LENGTH = re.compile(
    r"['\"`\u2019\u201d]*[\s,;:(=-]*(?:(?:and|which|that|it|has|is|of|with|takes|length)\s+)*"
    r"(\d+)\s*bytes?\b"
)
WORDS_OF_STORIES = (b" accomplishment", b" disappointment", b" responsibility")
PARENT_ONLY = 100e6  # bytes: less than a handful of Python processes take together
LONG_RUN = 60  # seconds
_STAND_IN = r"\bstories\b|stands? in|instead|offline|profile"


def longest_token(attempt: Any, corpus: str) -> str | None:
    """Praise for a longest token or its length, None where the attempt is neither; may raise."""
    length = LONGEST[corpus]
    if isinstance(attempt, bytes | bytearray):
        return _token(bytes(attempt), corpus)
    if type(attempt) is int:
        if attempt == length:
            return f"{length} bytes, as {TITLES[corpus]} gives."
        raise Wrong(
            f"That is not the longest token of {TITLES[corpus]}.",
            expected=length,
            got=attempt,
            mistake=_length_mistake(attempt, corpus),
        )
    if type(attempt) is tuple and len(attempt) == 2 and type(attempt[1]) is int:
        token = attempt[0].encode() if isinstance(attempt[0], str) else attempt[0]
        if isinstance(token, bytes):
            _refuse_length(token, attempt[1])
            return _token(token, corpus)
    if isinstance(attempt, str):
        return _token_in_text(text_of(attempt, "the longest token, or a sentence"), corpus)
    return None


def _length_mistake(length: int, corpus: str) -> str:
    if corpus == "tinystories" and length == 14:
        return "The leading space was dropped: it is part of the token, and one byte."
    if corpus == "owt" and length == 32:
        return "Characters were counted: these 32 characters take 2 bytes each."
    return (
        "If you trained on another corpus or to another size, hand in the token itself, or a"
        " sentence that names it."
    )


def _token(token: bytes, corpus: str) -> str:
    """Praise for a token that may well be the longest."""
    if b" " + token in WORDS_OF_STORIES:
        raise Wrong(
            "A byte is missing in front.",
            expected=b" " + token,
            got=token,
            mistake="The leading space was dropped: GPT-2's pattern keeps it with the word, so that"
            f" the token has {len(token) + 1} bytes.",
        )
    if len(token) == LONGEST[corpus]:
        return f"{len(token)} bytes, as {TITLES[corpus]} gives.{_nature(token)}"
    if len(token) < 8:
        raise Wrong(
            "That is short for the longest token.",
            expected=Words("more than a short word: sort the vocabulary by length in bytes"),
            got=token,
        )
    _refuse_several_pretokens(token)
    return (
        f"{len(token)} bytes.{_nature(token)} {TITLES[corpus]} gives {LONGEST[corpus]}; another"
        " corpus or size gives another token, which cannot be checked here."
    )


def _refuse_several_pretokens(token: bytes) -> None:
    """Raise where a token could not have been learnt: it reaches across two pre-tokens."""
    try:
        pieces = list(pretokenize([token.decode("utf-8")]))
    except UnicodeDecodeError:  # a part of a character says nothing about what follows it
        return
    if len(pieces) > 1:
        raise Wrong(
            "No merge can have made this token.",
            expected=Words("a piece of one pre-token"),
            got=Words(f"{len(pieces)} pre-tokens: {' | '.join(map(repr, pieces[:6]))}"),
            mistake="Merges reached across pre-tokens, or this is no token of your vocabulary.",
        )


def _nature(token: bytes) -> str:
    """What kind of text a token is, where that can be seen."""
    try:
        text = token.decode("utf-8")
        text.encode("latin-1").decode("utf-8")
        encoded_twice = not text.isascii()
    except UnicodeError:
        encoded_twice = False
    if encoded_twice or b"\xc3\x83\xc3\x82" in token:
        return " It is UTF-8 that was read as Latin-1 and encoded again."
    if len(set(token)) == 1:
        return " It is a ruler: one character over and over."
    return ""


def _token_in_text(text: str, corpus: str) -> str | None:
    """Praise for a text that says little but a token; else None; raises for a wrong length."""
    praise = _check_repeats(text)
    for name in quoted(text):
        after = _ITS_LENGTH.match(text, text.find(name) + len(name))
        if after:
            token = re.sub(r"^b?(['\"])(.*)\1$", r"\2", name).replace("Ġ", " ").encode()
            _refuse_length(token, int(after[1]))
            praise = praise or _token(token, corpus)
            break  # others may be named as tied with the first
    if _is_a_token(text):
        return _token(text.replace("Ġ", " ").encode(), corpus)
    return None if is_explained(text) else praise


def _is_a_token(text: str) -> bool:
    return bool(re.fullmatch(r"[ Ġ]?[^\W\d_]{6,}|([-=_*])\1{6,}", text))


def _refuse_length(token: bytes, length: int) -> None:
    if length == len(token):
        return
    mistake = None
    if length == len(token) + 1 and not token.startswith(b" "):
        mistake = (
            "The leading space was dropped from the token, but counted: with it the token has"
            f" {length} bytes, without it {len(token)}."
        )
    elif length == len(token.decode("utf-8", errors="replace")):
        mistake = "Characters were counted, not bytes."
    raise Wrong(
        "Token and length do not fit together.",
        given=f"len({token!r})",
        expected=len(token),
        got=length,
        mistake=mistake,
    )


def _check_repeats(text: str) -> str | None:
    """Praise where "C3 83 repeated 16 times, 64 bytes" adds up; raises where it does not."""
    said = re.search(r"(\d+)\s*(?:times|x|\u00d7)\D{0,30}?(\d+)\s*bytes", text)
    spelled = bytes_in(text)
    if not (said and spelled):
        return None
    length = len(spelled[0]) * int(said[1])
    if length != int(said[2]):
        raise Wrong(
            "Token and length do not fit together.",
            given=f"len({spelled[0]!r} * {said[1]})",
            expected=length,
            got=int(said[2]),
        )
    return f"{length} bytes.{_nature(spelled[0])}"


def resources(text: str) -> str | None:
    """Praise for a plausible time and memory, None where a text names neither; may raise."""
    found = quantities(text)
    times = [q for q in found if q.kind == "seconds"]
    sizes = [q for q in found if q.kind == "bytes" and q.scaled >= 1e6]
    _refuse_two_sizes(text, found)
    seconds = sum(q.scaled for q in times[:1])
    course = re.search(r"tiny ?stories", text, re.I) and not re.search(_STAND_IN, text, re.I)
    if sizes and sizes[0].scaled < PARENT_ONLY and (seconds > LONG_RUN or course):
        raise Wrong(
            "That is doubtful: so little memory for so much text.",
            expected=Words("the peak of all processes together"),
            got=Words(f"{sizes[0].value:g} {sizes[0].unit}"),
            mistake="The memory of the parent alone: RUSAGE_SELF does not see the children of a"
            " pool, who hold the text and the counts.",
        )
    if seconds > 30 * 60:
        raise Wrong(
            "That is longer than the problem allows.",
            expected=Words("30 minutes at most"),
            got=Words(f"{seconds / 60:,.0f} minutes"),
            mistake="After each merge, all pairs are probably counted anew: change only the counts"
            " of the pre-tokens that contain the merged pair.",
        )
    if not times and not sizes:
        return None
    return "Plausible, which is all that can be said of figures that depend on corpus and machine."


def _refuse_two_sizes(text: str, found: list[Quantity]) -> None:
    """Raise where a size and the same size in parentheses differ: "0.1084 GB (184 MB)"."""
    for one, other in pairwise(found):
        same_kind = one.kind == other.kind == "bytes"
        if not same_kind or text[one.end : other.start].strip() not in ("(", "(=", "="):
            continue
        if text[other.end : other.end + 1] != ")" and "(" in text[one.end : other.start]:
            continue
        if not 0.92 < one.scaled / other.scaled < 1.09:  # GB against GiB is forgiven
            raise Wrong(
                "The two memory figures disagree.",
                expected=Words(f"one amount in two units: {one.value:g} {one.unit}"),
                got=Words(f"{other.value:g} {other.unit}"),
                mistake="One of them comes from another measurement, perhaps of one process.",
            )
