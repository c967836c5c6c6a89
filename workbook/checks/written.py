"""The checks of written answers: numbers, bytes and names are judged, a sentence never is.

`study.problems` (`takes`) says what value a part takes: its form, its unit, its keys. A text that
is nothing but such a value, such as "34 GB", is taken as one. A text with other words in it gets
the status "read": the facts that a good answer states are shown, for the learner to tick.
"""

import ast
import math
import re
import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

from workbook.checks.verdicts import Facts, NotAttempted, Unreadable, Words, Wrong
from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.utf8 import flaw

HOUR, DAY = 3_600, 86_400


def judged(judges: dict, attempt: Any, part: str | None = None) -> str | Facts:
    """What the judge of a part says about a value; if it says None, the attempt is not one."""
    if hasattr(attempt, "to_dict"):  # of pandas; its rows may have names
        rows = attempt.ndim > 1 and attempt.index.dtype.kind in "iu"
        attempt = attempt.to_dict("list") if rows else attempt.to_dict()
    if isinstance(attempt, list | tuple | dict | set) and not attempt:
        raise NotAttempted
    judge = judges.get(part or "")
    if judge and (said := judge(attempt)) is not None:
        return said
    if isinstance(attempt, str) and not attempt.strip():
        raise NotAttempted
    if not _in_words(attempt):
        raise Unreadable(attempt)
    return Facts()


def _in_words(value: Any) -> bool:
    value = [*value.values()] if isinstance(value, dict) else value
    return isinstance(value, str) or (
        isinstance(value, list | tuple) and any(map(_in_words, value))
    )


# --- Numbers with units

_LARGE = {"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "bn": 1e9, "t": 1e12}
_LARGE |= {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_LARGE |= {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12}
_LARGE |= {f"{letter}i": 1024**power for power, letter in enumerate("kmgt", 1)}
_PER = r"\s?(?:/|per|an?)\s?"
_UNITS = {  # forms of a unit in lower case, after a power of a thousand: what it measures, its size
    "ms": ("seconds", 1e-3),
    "bytes?|b": ("bytes", 1),
    rf"(?:bytes?|b)(?:{_PER}|\s)s(?:ec(?:ond)?)?": ("rate", 1),
    "s|sec|seconds?": ("seconds", 1),
    "min|minutes?": ("seconds", 60),
    "h|hours?": ("seconds", HOUR),
    "d|days?": ("seconds", DAY),
    "years?": ("seconds", 365 * DAY),
    "flops?": ("flops", 1),
    "p(?:eta)?flops?": ("flops", 1e15),
    r"[*·×]?\s?p(?: flops| bytes)?|times the number of parameters": ("per parameter", 1),
    rf"(?:flops?|bytes)?{_PER}param(?:eter)?": ("per parameter", 1),
    "|params|parameters": ("count", 1),
    rf"(?:bytes?|b){_PER}token": ("bytes per token", 1),
    rf"tokens?{_PER}byte": ("tokens per byte", 1),
    "tokens?": ("tokens", 1),
    "sequences?": ("batch", 1),
    "%|percent": ("share", 0.01),
    "x|×|times": ("factor", 1),
}
_NUMBER = re.compile(
    r"(?:about|roughly|~|≈|batch|[x×](?=\s?\d))?\s*"
    r"(-?(?:\d{1,3}(?:[,_'\s]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
    r"(?:(?:e|\s?(?:[*×x·]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)\{?)([-+]?\d+)\}?)?[\s\\-]*(.*)",
    re.I,
)


class Number(NamedTuple):
    """A number that was handed in. Without a unit `kind` is "" and `scale` is 1."""

    digits: str  # as written, such as "5.80" or "4.51e12"
    kind: str = ""  # what is measured: "bytes", "seconds", ...
    scale: float = 1  # the size of the unit in bytes, seconds, ...
    unit: str = ""  # as written

    @property
    def value(self) -> float:
        return float(self.digits) * self.scale

    def __str__(self) -> str:
        return f"{self.digits} {self.unit}".strip()


def number(value: Any) -> Number | None:
    """A finite number, also as a text that is nothing but one number and its unit; else None.

    >>> number("8.51 GB").value, number("about 4.51 · 10^12 FLOPs").value, number("34 GB or so")
    (8510000000.0, 4510000000000.0, None)
    """
    text = repr(value) if type(value) in (int, float) else value
    if type(value) is float:  # 39.8 / 100 shows the rounding of the last bit
        text = min(text, f"{value:.15g}", key=len)
    match = _NUMBER.fullmatch(text.strip(" \n.$")) if isinstance(text, str) else None
    if not match:
        return None
    digits = re.sub(r"[,_'\s]", "", match[1]) + f"e{match[2]}" * bool(match[2])
    name = match[3].strip() or ("x" if text[0] in "x×" else "")
    found = Number(digits, *unit(name, float(digits)), name)
    return found if math.isfinite(found.value) and (found.kind or not name) else None


def unit(name: str, value: float = 1e9) -> tuple[str, float]:
    """What a unit measures, and its size; "" where it is none. `value` tells 2.1 B from bytes."""
    for form, (kind, size) in _UNITS.items() if name else ():
        match = re.fullmatch(rf"({'|'.join(_LARGE)})?\s?(?:{form})", name.lower())
        if match and not (kind == "bytes" and name in "Bb" and value < 1e6):
            return kind, size * _LARGE.get(match[1], 1)
    return "", 1


def entry(key: Any, value: Any) -> Number | None:
    """The number of an entry of a dict: in its own unit, or in the one that its key ends with.

    >>> entry("memory_gb", 1.9).value, entry("bytes_per_second", 5).kind, entry("hours", "3 d").unit
    (1900000000.0, 'rate', 'd')
    """
    found, label = number(value), re.sub(r"[_()\s]+", " ", str(key)).strip()
    for word in re.finditer(r"(?<!\S)\S", label) if found and not found.kind else ():
        name = label[word.start() :]
        known = name != "ts" and (len(name) > 1 or label.endswith(" s"))  # that is TinyStories
        if known and (kind := unit(name, found.value))[0]:
            return Number(found.digits, *kind, name)
    return found


def entries(attempt: Any) -> list[Number | None]:
    """The numbers of a dict, of a sequence, or of one value."""
    if not isinstance(attempt, dict):
        attempt = dict(enumerate(attempt if isinstance(attempt, list | tuple) else [attempt]))
    return [entry(key, value) for key, value in attempt.items()]


# --- The character with number 0

NUL = chr(0)
# The text of our own prompt, and the one in the handout.
TEXTS_WITH_NUL = (f"before{NUL}after", f"this is a test{NUL}string")
BYTES = "That is the repr of bytes, not of a str: `chr` returns a str, which has no b in front."
EMPTY = "NUL is invisible, but it is one character, of length 1: this is not the empty string."
MISSING = "NUL was not counted: it is invisible, but it stays in the text as one character."
CUT = "In C, a string ends at NUL. In Python it goes on, and NUL counts as one character."


def _spelled(value: Any) -> Any:
    """What a text spells out in Python, such as r"\\x00" or "'é'.encode()"; None for any other."""
    text = re.sub(r"^U\+", "0x", value.strip(" `."), flags=re.I) if isinstance(value, str) else ""
    spelled, encoded, arguments = text.partition(".encode(")
    try:
        bare = re.fullmatch(r"(\\\w+)+", spelled)
        found = ast.literal_eval(f"'{spelled}'" if bare else spelled)
        return found.encode(*ast.literal_eval(f"[{arguments[:-1]}]")) if encoded else found
    except Exception:  # of many kinds: it is not Python
        return None


def _bytes(attempt: Any) -> bytes | None:
    """Bytes that were handed in, also as numbers, or as a text that only spells bytes out."""
    attempt = _first(attempt)
    if isinstance(attempt, list | tuple):
        if {*map(type, attempt)} == {bytes}:
            return b"".join(attempt)
        if {*map(type, attempt)} != {int}:
            return _bytes(attempt[0])  # the reason may come after it
        if not all(0 <= each < 256 for each in attempt):
            raise Wrong("A byte is a number from 0 to 255.", got=attempt)
    if not isinstance(attempt, str):
        known = isinstance(attempt, bytes | bytearray | memoryview | list | tuple)
        return bytes(attempt) if known else None
    if isinstance(spelled := _spelled(attempt), bytes):
        return spelled
    digits = re.sub(r"\b0x|\\x|,", " ", attempt.strip(" `."), flags=re.I).strip()
    known = re.fullmatch(r"[\da-f]{2}(\s+[\da-f]{2})+|[\da-f]{4}", digits, re.I)
    return bytes.fromhex(digits) if known else None


def _first(attempt: Any) -> Any:
    """The first value of a dict; the reason may come after it."""
    return next(iter(attempt.values())) if isinstance(attempt, dict) else attempt


def _character(attempt: Any) -> str | None:
    code = attempt = _first(attempt)
    if isinstance(attempt, str) and len(attempt) > 1:
        fillers = r"\b(?:the|an?|character|char|byte|with|code point)\b"
        name = re.sub(fillers, "", attempt, flags=re.I).strip(" .`")
        code = 0 if name.lower() == "zero" else _spelled(name)
        if code is None:
            try:
                code = unicodedata.lookup(name)
            except KeyError:
                code = attempt
    if isinstance(code, str) and len(code) == 1:
        code = 0 if code == "␀" else ord(code)
    if code == 0:
        return "U+0000: a control character, called NUL. It is a str of length 1."
    if not isinstance(code, int | str | bytes) or (type(code) is str and code.strip(NUL)):
        return None
    said = BYTES if isinstance(code, bytes) else EMPTY
    if isinstance(code, int):
        said = f"That is {chr(code)!r}: chr({code})." if 0 < code <= sys.maxunicode else None
    raise Wrong("That is a different character.", given="ord(chr(0))", got=attempt, mistake=said)


def _repr_and_print(attempt: Any) -> str | None:
    spelled, printed = (6, repr(NUL), r"\x00"), (1, NUL)
    if isinstance(attempt, dict):
        attempt = [attempt[key] for key in sorted(attempt, key=lambda key: "repr" not in str(key))]
    if isinstance(attempt, list | tuple) and len(attempt) == 2:
        if attempt[0] in printed and attempt[1] in spelled:
            raise Wrong("It is the other way round: the repr comes first.", got=attempt)
        if all(each in spelled for each in attempt) or all(each in printed for each in attempt):
            said = "The repr spells the character out; `print` writes the character itself."
            raise Wrong("The two are not the same.", got=attempt, mistake=said)
        both = [_repr_and_print(each) for each in attempt]
        return " ".join(both) if all(both) else None
    if attempt in spelled:
        return "The repr spells the character out as an escape in quotes: 6 characters."
    if attempt in printed:
        return "`print` writes the character itself: one invisible character."
    said = EMPTY if attempt in ("", 0) else "The repr has 6 characters, two quotes among them."
    said = BYTES if isinstance(_spelled(attempt), bytes) else said
    if said in (BYTES, EMPTY) or isinstance(attempt, int):
        raise Wrong("Something is there, even if you cannot see it.", got=attempt, mistake=said)
    return None


def _inside_text(attempt: Any) -> str | None:
    if isinstance(attempt, dict):
        ((text, size), *_) = attempt.items()
        if isinstance(text, str) and NUL in text and size != len(text):
            raise Wrong("That is not the length of the text.", got=attempt, mistake=MISSING)
        attempt = text if isinstance(text, str) and NUL in text else size
    spelled = _spelled(attempt)
    found = spelled if spelled is not None else attempt
    praise = "NUL counts like any other character, though it is usually invisible when printed."
    if isinstance(found, str) and NUL in found.strip(NUL):
        return praise
    for text in TEXTS_WITH_NUL:
        if found == len(text):
            return praise
        for other, slip in ((text.replace(NUL, ""), MISSING), (text.split(NUL)[0], CUT)):
            if found in (other, len(other)):
                raise Wrong("That is not the whole text.", got=attempt, mistake=slip)
    if isinstance(found, int):
        raise NotAttempted("Which text has that length? Hand in the text itself.")
    return None


# --- From characters to bytes

ENCODINGS = ("utf-8", "utf-16", "utf-32")
RANGE = "Code points end at 0x10FFFF, not at 2**32, and a byte has 256 values in any encoding."
MARK = (
    "Byte order marks (BOMs) were counted for one encoding but not for the other: they take "
    "2 bytes in UTF-16, 4 in UTF-32."
)
ALONE = 'A number alone does not say what was measured. Hand in a dict such as {"UTF-8": 5}.'


def _size(text: str, encoding: str, mark: bool) -> int:
    """The bytes that a text takes, with or without its byte order mark."""
    bare = "-le" if encoding in ENCODINGS[1:] and not mark else ""
    return len(text.encode(encoding + bare, errors="surrogatepass"))


def _sizes(attempt: Any, text: str = "hello") -> str | None:
    if isinstance(attempt, list | tuple) and len(attempt) == len(ENCODINGS):
        attempt = dict(zip(ENCODINGS, attempt, strict=True))
    if found := number(attempt):
        right = {_size(text, each, mark) for each in ENCODINGS for mark in (True, False)}
        if found.value in right | {256}:
            return f"{found.value:g} is right."
        if found.value >= 1e9:
            raise Wrong("There are not that many values.", got=attempt, mistake=RANGE)
        raise NotAttempted(ALONE)
    if not isinstance(attempt, dict) or any(type(key) is not str for key in attempt):
        return None
    if {*map(type, attempt.values())} == {dict} and all(re.match("utf", k, re.I) for k in attempt):
        texts = {each: None for values in attempt.values() for each in values}
        attempt = {t: {k: v[t] for k, v in attempt.items() if t in v} for t in texts}
    sizes = {}
    for key, value in attempt.items():
        name = re.fullmatch(r"utf[-_ ]?(8|16|32)[-_ ]?([lb]e)?\b.*", key, re.I)
        found = entry(key, len(value) if isinstance(value, bytes) else value)
        if not (name and found):
            if name or not _sizes(value, key):
                return None
        else:
            sizes["utf-" + "-".join(filter(None, name.groups())).lower()] = found.value
    # With byte order marks and without, both are right, but not mixed.
    marked, bare = ({each: _size(text, each, mark) for each in sizes} for mark in (True, False))
    if sizes in (marked, bare):
        return "The sizes are right."
    mistake = "Characters were counted, not bytes." if len(text) in sizes.values() else None
    if all(size in (marked[each], bare[each]) for each, size in sizes.items()):
        mistake = MARK
    near = max(marked, bare, key=lambda right: len(right.items() & sizes.items()))
    claim = f"Those are not the sizes of {text!r}."
    raise Wrong(claim, expected=near, got=attempt, mistake=mistake)


def _fails_byte_by_byte(attempt: Any) -> str | None:
    """Praise for bytes that are UTF-8 and that byte-by-byte decoding gets wrong."""
    attempt = _first(attempt)
    first = attempt[0] if isinstance(attempt, tuple | list) else attempt
    data = None if isinstance(first, str) and first.isalpha() else _bytes(attempt)
    if data is None and isinstance(first, str):  # a word stands for its bytes
        words = len(first.split())
        if words == 1 or (words < 4 and not first.isascii()):
            data = first.encode("utf-8", errors="surrogatepass")
    if data is None:
        return None
    if found := flaw(data):
        claim = "Those bytes are not UTF-8, so a correct decoder refuses them too."
        raise Wrong(claim, got=data, mistake=f"{found.sentence} Encode some text instead.")
    if data.isascii():
        said = "It is all ASCII, where a character is one byte. Take a character that needs more."
        raise Wrong("Decoding it byte by byte works.", got=data, mistake=said)
    wide = next(character for character in data.decode() if not character.isascii())
    return f"{wide!r} takes {len(wide.encode())} bytes, none of them a character by itself."


def _two_bytes(attempt: Any) -> str | None:
    """Praise for two bytes that are not UTF-8, with the rule that they break."""
    data = _bytes(attempt)
    if data is None and isinstance(attempt, str) and len(attempt.split()) == 1:
        said = "A str is decoded already: put b before the quotes."
        raise Wrong("That is a str, and bytes were asked for.", got=attempt, mistake=said)
    if data is None:
        return None
    if len(data) != 2:
        raise Wrong("Exactly two bytes were asked for.", got=data)
    if found := flaw(data):
        return found.sentence
    said = "In hex: below 80 is ASCII, C2 to DF begins a character of two bytes, 80 to BF ends it."
    got = Words(" and ".join(f"U+{ord(character):04X}" for character in data.decode()))
    raise Wrong("Those two bytes can be decoded.", given=repr(data), got=got, mistake=said)


# --- Trained tokenizers. What depends on corpus and machine is judged by wide ranges.

LENGTHS = {
    "TinyStories with a vocabulary of 10,000": 15,
    "OpenWebText with a vocabulary of 32,000": 64,
}
STORIES, WEB = LENGTHS
LIMITS = {STORIES: (HOUR / 2, 30e9, "30 minutes and 30 GB")}  # of time and of memory
LIMITS[WEB] = 12 * HOUR, 100e9, "12 hours and 100 GB"
WORDS_OF_STORIES = (b" accomplishment", b" disappointment", b" responsibility")
SPACE = "The leading space was dropped: it is part of the token, and one byte."
WIDE = "These 32 characters take 2 bytes each."
OTHER = "If it comes from another corpus, hand in the token itself."
PLAUSIBLE = "plausible, which is all that can be said without your corpus and machine"
PARENT = "RUSAGE_SELF leaves out the workers of a pool, which hold the text and the counts."
LARGE_PEAK = "Read the corpus in pieces, and keep each pre-token once, with its count."
ANEW = "After a merge, update only the counts from pre-tokens that contain the pair."
UNITS = 'Name the unit, as in {"seconds": 62, "gigabytes": 1.9}.'


def _training(attempt: Any, corpus: str) -> str | None:
    """Praise for the longest token, the time and the memory of a training, or some of them."""
    figures, said = {}, []
    for key, value in (attempt if isinstance(attempt, dict) else {"token": attempt}).items():
        found = entry(key, value)
        if found and (found.kind == "seconds" or (found.kind == "bytes" and found.value > 1e5)):
            figures[found.kind] = found.value
        elif re.search("long|token|length", str(key), re.I):
            said.append(_longest(value, corpus))
        elif found and re.search("time|memory|peak", str(key), re.I):
            raise NotAttempted(UNITS)
    seconds, peak = figures.get("seconds", 0), figures.get("bytes", math.inf)
    if seconds > 60 and peak < 100e6:  # less than a few Python processes take
        raise Wrong("That is too little memory for so much text.", got=attempt, mistake=PARENT)
    *most, allowed = LIMITS[corpus]
    if seconds < 0 or seconds > most[0] or (peak > 1.1 * most[1] and "bytes" in figures):
        mistake = ANEW if seconds > most[0] else LARGE_PEAK if seconds >= 0 else None
        raise Wrong(f"The problem allows {allowed}.", got=attempt, mistake=mistake)
    said += [f"{PLAUSIBLE.capitalize()}."] if figures else []
    return " ".join(dict.fromkeys(said)) if said and all(said) else None


def _longest(attempt: Any, corpus: str) -> str | None:
    """Praise for a token that may be the longest, or for its length, or for a pair of both."""
    attempt, stated = [*attempt.values()] if isinstance(attempt, dict) else attempt, None
    if isinstance(attempt, tuple | list) and len(attempt) == 2 and type(attempt[1]) is int:
        attempt, stated = attempt
    elif isinstance(attempt, list) and (len(attempt) == 1 or {*map(type, attempt)} == {bytes}):
        attempt = attempt[0]
    as_known = f"{LENGTHS[corpus]} bytes, as {corpus} gives."
    if found := number(attempt):
        slip = {(14, STORIES): SPACE, (32, WEB): WIDE}.get((found.value, corpus))
        if found.value == LENGTHS[corpus]:
            return as_known
        if slip or (found.value < 8 and found.value.is_integer()):
            raise Wrong(f"{corpus} gives another length.", got=attempt, mistake=slip or OTHER)
        raise NotAttempted(OTHER)
    if isinstance(attempt, str):  # which a token may be, but not a sentence
        plain = re.fullmatch(r"[ Ġ]?[^\W\d_]{6,}|([-=_*])\1{6,}", attempt)
        attempt = attempt.replace("Ġ", " ").encode() if plain else _spelled(attempt)
    if not isinstance(attempt, bytes):
        return None
    if b" " + attempt in WORDS_OF_STORIES:
        raise Wrong("A byte is missing.", expected=b" " + attempt, got=attempt, mistake=SPACE)
    if stated not in (None, len(attempt)):
        given = f"len({attempt!r})"
        raise Wrong("That is not its length.", given=given, expected=len(attempt), got=stated)
    if len(attempt) < 8:
        hint = "Sort the vocabulary by length in bytes."
        raise Wrong("That is short for the longest token.", got=attempt, mistake=hint)
    pieces = [] if flaw(attempt) else list(pretokenize([attempt.decode()]))
    if len(pieces) > 1:
        got = Words(" | ".join(map(repr, pieces[:6])))
        said = "Merges crossed pre-token boundaries, or this is not a token of your vocabulary."
        raise Wrong("No merge crosses pre-tokens, but this spans several.", got=got, mistake=said)
    nature = " It is one character, repeated." if len({*attempt}) == 1 else ""
    if b"\xc3\x83\xc3\x82" in attempt:
        nature = " It is UTF-8 that was read as Latin-1 and encoded again."
    other = f"{len(attempt)} bytes; {corpus} gives {LENGTHS[corpus]}. "
    other += "A token from another corpus cannot be checked here."
    return (as_known if len(attempt) == LENGTHS[corpus] else other) + nature


# --- Tokenizers at work

PILE = 825e9  # bytes
EXACT = 0.01  # relative: what is left of two rounded numbers
# What a time is multiplied or divided by where two units are mixed up.
SLIPS = {1.024**3: "GB and GiB", 1.024**2: "MB and MiB", 8: "bits and bytes", 24: "hours and days"}
SLIPS |= {60: "minutes and hours", 3_600: "hours and seconds", 86_400: "days and seconds"}
SLIPS |= {1e3: "GB, MB and kB", 1e6: "MB and bytes"}
UPSIDE_DOWN = "The ratio is upside down: a token stands for at least one byte."
NO_TOKENS = "A word has 5 or 6 bytes: did you count words, not tokens, or bits, not bytes?"
NOT_MERGED = "BPE reaches about 4 on text like its training text: is every merge applied?"
ENOUGH_ON_THE_WEB = 2.5  # bytes per token: ten documents of `docstrings` may have 2.8
OWN_TOKENIZER = "Only text like the training text needs so few tokens: which text is it?"


def _ratios(attempt: Any, own: bool) -> str | None:
    """Praise for bytes per token that may be right; `own`: on the text of the training."""
    if isinstance(attempt, dict):  # several documents of a corpus, or its figures by name
        nested = {
            k: v
            if isinstance(v, dict)
            else dict(enumerate(v))
            if isinstance(v, list | tuple)
            else {"": v}
            for k, v in attempt.items()
        }
        attempt = {f"{k} {name}": v for k, values in nested.items() for name, v in values.items()}
    found = entries(attempt)
    if not all(each and each.kind in ("", "bytes per token", "tokens per byte") for each in found):
        return None
    keys = [*attempt] if isinstance(attempt, dict) else [""] * len(found)
    for each, key in zip(found, keys, strict=True):
        ratio, kind = each.value, each.kind
        if not 0 < ratio <= 1_000:
            raise NotAttempted("That is not a ratio. Hand in bytes per token, such as 4.1.")
        mistake = NO_TOKENS if ratio > 10 else None
        if ratio < 1 or kind == "tokens per byte":
            mistake = UPSIDE_DOWN
        if own and 1 <= ratio < (ENOUGH_ON_THE_WEB if re.search("doc|owt|web", key, re.I) else 3):
            mistake = NOT_MERGED
        if not own and len(found) == 1 and 4.3 < ratio <= 10:
            mistake = OWN_TOKENIZER
        if mistake:
            got = Words(f"{ratio:.4g}, or {1 / ratio:.2f} upside down")
            raise Wrong("That number of bytes per token is implausible.", got=got, mistake=mistake)
    if not own and isinstance(attempt, dict) and len(found) == 2:
        of_stories = [bool(re.match("tin|ts|stor", key, re.I)) for key in attempt]
        if sum(of_stories) == 1 and found[of_stories.index(True)].value > max(
            each.value for each, its in zip(found, of_stories, strict=True) if not its
        ):
            said = "It knows fewer of the words on the web: are the two swapped?"
            claim = "On web text, the stories tokenizer should have the shorter tokens."
            raise Wrong(claim, mistake=said)
    return f"{', '.join(f'{each.value:.2f}' for each in found)} bytes per token: {PLAUSIBLE}."


def _pile(attempt: Any) -> str | None:
    """Praise for a speed and the time that the Pile takes at it."""
    if number(attempt):
        raise NotAttempted("Hand in a pair: bytes per second, and the hours that the Pile takes.")
    found = entries(attempt)
    if len(found) < 2 or not all(found):
        return None
    rate, *times = sorted(found, key=lambda each: each.kind == "seconds")
    if rate.kind not in ("", "rate") or any(each.kind not in ("", "seconds") for each in times):
        return None
    if min(each.value for each in found) <= 0:
        raise Wrong("Speed and time must be positive.", got=attempt)
    for time in times:
        size, name = (time.scale, time.unit) if time.unit else (HOUR, "hours")
        said, exact = float(time.digits), PILE / rate.value / size
        rounded = said.is_integer() and said >= 5 and abs(said - exact) < 1
        if not rounded and abs(said / exact - 1) > EXACT:
            much = max(said / exact, exact / said)
            slip = next((SLIPS[by] for by in SLIPS if abs(much / by - 1) <= EXACT), "two units")
            way = f"{float(f'{much:.3g}'):,g} times too {'much' if said > exact else 'little'}"
            raise Wrong(
                f"Speed and time do not match: 825e9 bytes / {rate.value:,.10g} bytes per second.",
                expected=Words(f"{exact:,.5g} {name}"),
                got=Words(f"{said:,.5g} {name}"),
                mistake=f"{way}: are {slip} mixed up?",
            )
    hours = PILE / rate.value / HOUR
    slow = " That is slow: do you search all merges for each pre-token?" * (rate.value < 20_000)
    return f"The division is right: {hours:,.1f} hours, or {hours / 24:,.2f} days.{slow}"


def _uint16(attempt: Any) -> str | None:
    attempt = [*attempt.values()] if isinstance(attempt, dict) else attempt
    if isinstance(attempt, list | tuple) and all(map(number, attempt)):
        attempt = max(attempt, key=lambda each: number(each).value)  # of a range
    found, mistake = number(attempt), "16 bits have 2 ** 16 values, beginning at 0."
    if not found or found.kind not in ("", "bytes", "tokens"):
        return None
    if found.value in (2, 2**16 - 1, 2**16):
        return "Two bytes per token: 65,536 values fit, and the largest of them is 65,535."
    for values, name in ((2**15, "int16, with a sign"), (2**8, "uint8"), (2**32, "uint32")):
        mistake = f"That is {name}." if values - 1 <= found.value <= values else mistake
    if found.value in (9_999, 31_999):
        raise NotAttempted("That id fits, as they all do. The question is where uint16 ends.")
    if found.value in (10_000, 32_000):
        mistake = "That is the size of one vocabulary, and it fits. But where does uint16 end?"
    raise Wrong("That is not where uint16 ends.", expected=65_535, got=attempt, mistake=mistake)


# --- Three learning rates. The loss is the mean of the squares of 100 weights, drawn from N(0, 5²):
# 25 ± 3.5, or surely between these two.

RATES = (10, 100, 1000)
LOWEST, HIGHEST = 4.0, 46.0
SELDOM = 37.0  # above it a loss "after the first step" is likelier the first, with t from 1
ROUNDED = 0.006  # absolute: people write two decimals, and zero is not quite zero
RULE = "each step multiplies the loss by (1 - 0.02 α / √(t + 1))²"
# What step t multiplies all weights by: the gradient is 2/100 of them. First the right way.
STEPS: dict[str, Callable[[float, int], float]] = {
    "": lambda rate, t: 1 - 0.02 * rate / math.sqrt(t + 1),
    "The loss is a mean: is yours a sum?": lambda rate, t: 1 - 2 * rate / math.sqrt(t + 1),
    "α is divided by √(t + 1): yours does not shrink.": lambda rate, t: 1 - 0.02 * rate,
    "α is divided by √(t + 1): the root is missing.": lambda rate, t: 1 - 0.02 * rate / (t + 1),
    "The step goes uphill: subtract the gradient.": (
        lambda rate, t: 1 + 0.02 * rate / math.sqrt(t + 1)
    ),
}
factor = STEPS[""]
LATE = "t begins at 0: yours begins at 1."
NOT_FRESH = "The weights were not drawn afresh for this run, or they lack the factor 5."


def _tuning(attempt: Any) -> str | None:
    """Praise for the losses of a run, or of several by learning rate."""
    if number(attempt):
        raise NotAttempted("Which run is that number from? Hand in a dict by learning rate.")
    if isinstance(attempt, list | tuple):
        three = len(attempt) == len(RATES) and not any(map(number, attempt))
        attempt = dict(zip(RATES, attempt, strict=True)) if three else {None: attempt}
    if not isinstance(attempt, dict):
        return None
    said = []
    for key, run in attempt.items():
        rate = number(re.sub(r"^\D+(?=\d)", "", str(key)))
        if isinstance(run, list | tuple) and all(type(each) is str for each in run):
            run = [found.value for each in run if (found := number(each))]
        if type(run) in (int, float) and rate:
            said.append(_last(run, rate.value))
        elif isinstance(run, list | tuple) and (key is None or rate):
            said.append(_run(run, rate and rate.value))
    if not said and not _in_words(attempt):
        raise NotAttempted("Name the learning rates: {10: [...], 100: [...], 1000: [...]}.")
    return " ".join(said) or None


def _follows(losses: list[float], step: Callable, rate: float, late: bool) -> bool:
    """True where each loss follows from the one before; `late`: the first is after a step."""
    return all(
        abs(after - before * step(rate, t) ** 2) <= max(ROUNDED, EXACT * after)
        for t, (before, after) in enumerate(pairwise(losses), late)
        if math.isfinite(before) and math.isfinite(after)
    )


def _run(losses: list[float], rate: float | None) -> str:
    """Praise for the losses of a run, before each step or after; `rate` is known if it was said."""
    if len(losses) < 3 or {*map(type, losses)} - {int, float}:
        raise NotAttempted("Hand in the losses of all ten steps, as numbers.")
    likely = None
    for (words, step), late, tried in product(STEPS.items(), (0, 1), (rate, *RATES, 1)):
        other = rate not in (None, tried)
        if likely or not tried or (words and other) or not _follows(losses, step, tried, late):
            continue
        if words or other:
            likely = words or f"These are the losses for a learning rate of {tried:,}."
        elif LOWEST < losses[0] / (factor(tried, 0) ** (2 * late) or 1) < (HIGHEST, SELDOM)[late]:
            return f"The losses with {tried:,g} follow the rule: {RULE}."
        else:
            likely = LATE if late and LOWEST < losses[0] < HIGHEST else NOT_FRESH
    raise Wrong(
        f"These are not the losses {f'with {rate:,g}' if rate else 'of any of the three runs'}.",
        expected=Words(f"about 25 at first; {RULE}"),
        got=losses,
        mistake=likely,
    )


def _last(loss: float, rate: float) -> str:
    """Praise for the last loss of a run of ten steps."""
    shares = [math.prod(factor(rate, t) ** 2 for t in range(steps)) for steps in (9, 10)]
    low, high = LOWEST * min(shares), max(HIGHEST * max(shares), ROUNDED)
    if not low <= loss <= high and not (rate == 1000 and loss == math.inf):
        claim = f"That is not the loss after ten steps with {rate:,g}: {RULE}."
        raise Wrong(claim, expected=Words(f"about {25 * shares[1]:.2g}"), got=loss)
    return f"{loss:.2g} is what ten steps with {rate:,g} leave."


# --- A generated text

ENOUGH = 256  # tokens of a generated text
SHORT = "If the model ended the text itself, hand in the text: then it may be shorter."


def _generated(attempt: Any) -> str | None:
    """Praise for a number of tokens that is enough, or for as many tokens."""
    if isinstance(attempt, dict) and not _in_words(attempt):
        attempt = next((each for key, each in attempt.items() if "token" in str(key).lower()), None)
    tokens = isinstance(attempt, list | tuple) and all(type(each) is int for each in attempt)
    if isinstance(attempt, tuple) and not tokens:
        attempt = attempt[0]  # comments may come after it
    found = number(len(attempt) if tokens else attempt)
    if not found or found.kind not in ("", "tokens"):
        return None
    if found.value < ENOUGH:
        raise Wrong(f"That is too short: {ENOUGH} tokens are needed.", got=attempt, mistake=SHORT)
    return f"A text of {found.digits} tokens is long enough."


# --- The checks, by what they judge of each part

unicode1 = partial(judged, {"a": _character, "b": _repr_and_print, "c": _inside_text})
unicode2 = partial(judged, {"a": _sizes, "b": _fails_byte_by_byte, "c": _two_bytes})
train_bpe_tinystories = partial(judged, {"a": partial(_training, corpus=STORIES)})
train_bpe_expts_owt = partial(judged, {"a": partial(_training, corpus=WEB)})
tokenizer_experiments = partial(
    judged,
    {"a": partial(_ratios, own=True), "b": partial(_ratios, own=False), "c": _pile, "d": _uint16},
)
learning_rate_tuning = partial(judged, {"": _tuning})
generate = partial(judged, {"": _generated})
