"""The checks of written answers: numbers, bytes and names are judged, a sentence never is.

What a part takes as a value stands in `study.problems` (`takes`): its form, its unit, its keys. A
text that is nothing but such a value is taken as one, such as "34 GB"; with any other text the
facts that a good answer states are shown, for the learner to tick.
"""

import ast
import inspect
import math
import re
import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from workbook.checks.engine import Program, mistake
from workbook.checks.verdicts import Facts, NotAttempted, Unreadable, Words, Wrong, is_stub
from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.utf8 import flaw

LONGEST = 20_000  # characters of an answer: some pages
HOUR, DAY = 3_600, 86_400


def judged(judges: dict, attempt: Any, part: str | None = None) -> str | Facts:
    """What the judge of a part says of a value; a sentence is read, whatever it says.

    A judge returns None for what is no value.
    """
    if isinstance(attempt, list | tuple | dict | set) and not attempt:
        raise NotAttempted
    if isinstance(attempt, str) and len(attempt) > LONGEST:
        raise Wrong(
            "That is longer than an answer can be.",
            expected=Words(f"at most {LONGEST:,} characters"),
            got=Words(f"{len(attempt):,} characters"),
        )
    judge = judges.get(part or "")
    said = judge(attempt) if judge else None
    if said is not None:
        return said
    if not isinstance(attempt, str):
        raise Unreadable(attempt)
    if not attempt.strip():
        raise NotAttempted
    return Facts()


# --- Numbers with units

_LARGE = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_LARGE |= {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "g": 1e9, "t": 1e12}
_LARGE |= {"kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12}
_BYTES = dict.fromkeys(("b", "byte", "bytes"), 1)
for _power, _name in enumerate(("kilo", "mega", "giga", "tera"), 1):
    _BYTES |= dict.fromkeys((f"{_name[0]}b", f"{_name}byte", f"{_name}bytes"), 1000**_power)
    _BYTES[f"{_name[0]}ib"] = 1024**_power
_SECONDS = {"s|sec|second": 1, "min|minute": 60, "h|hr|hour": HOUR, "d|day": DAY, "week": 7 * DAY}
_SECONDS |= {"month": 365.25 / 12 * DAY, "yr|year": 365 * DAY}
_PER = r"\s?(?:/|per|an?|for each)\s?"
_MANY = rf"({'|'.join(_LARGE)})?\s?"
# Forms of a unit in lower case: what it measures, and its size.
_UNITS = {
    r"ms|milliseconds?": ("seconds", 1e-3),
    **{rf"{_MANY}(?:{names})s?": ("seconds", size) for names, size in _SECONDS.items()},
    rf"{_MANY}(?:flops?|operations)": ("flops", 1),
    rf"(?:flops?|operations)?{_PER}(?:param|parameter|weight)": ("per parameter", 1),
    r"[*·×]?\s?p(?: flops)?|times the number of parameters": ("per parameter", 1),
    rf"{_MANY}(?:params|parameters)?": ("count", 1),
    rf"(?:bytes?|b){_PER}(?:token|id)": ("bytes per token", 1),
    rf"tokens?{_PER}byte": ("tokens per byte", 1),
    r"tokens?": ("tokens", 1),
    r"sequences?": ("batch", 1),
    r"%|percent|per cent": ("share", 0.01),
    r"x|×|times|fold": ("factor", 1),
}
_NUMBER = re.compile(
    r"(?:about|around|roughly|~|≈|batch|[x×](?=\s?\d))?\s*"
    r"(-?(?:\d{1,3}(?:[,_'\s\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))"
    r"(?:(?:e|\s?(?:[*×x·⋅]|\\times|\\cdot)\s?10\s?(?:\^|\*\*)?\s?\{?)([-+]?\d+)\}?)?[\s\\-]*(.*)",
    re.I,
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


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

    >>> number("8.51 GB").value, number("about 4.51 · 10¹² FLOPs").value, number("34 GB or so")
    (8510000000.0, 4510000000000.0, None)
    """
    if type(value) in (int, float):
        digits, name = repr(value), ""
    elif isinstance(value, str) and len(value) < 80:
        match = _NUMBER.fullmatch(value.strip(" \n.$").translate(_SUPERSCRIPTS))
        if not match:
            return None
        digits = re.sub(r"[,_'\s\u2009\u202f]", "", match[1]) + f"e{match[2]}" * bool(match[2])
        name = match[3].strip() or ("x" if value.strip()[0] in "x×" else "")
    else:
        return None
    found = Number(digits, *unit(name, float(digits)), name)
    return found if math.isfinite(found.value) and (found.kind or not name) else None


def unit(name: str, value: float = 1e9) -> tuple[str, float]:
    """What a unit measures, and its size; "" where it is none. `value` tells 2.1 B from bytes."""
    name = name.lower()
    of_bytes, per_second = re.subn(rf"{_PER}s(?:ec(?:ond)?)?$", "", name)
    if of_bytes in _BYTES and (per_second or name != "b" or value >= 1e6):
        return "rate" if per_second else "bytes", _BYTES[of_bytes]
    for form, (kind, size) in _UNITS.items():
        match = re.fullmatch(form, name) if name else None
        if match:
            return kind, size * _LARGE.get(match[1] if match.re.groups else "", 1)
    return "", 1


def entry(key: Any, value: Any) -> Number | None:
    """The number of an entry of a dict: in its own unit, or in the one that its key ends with.

    >>> entry("memory_gb", 1.9).value, entry("bytes_per_second", 5).kind, entry("hours", "3 d").unit
    (1900000000.0, 'rate', 'd')
    """
    found = number(value)
    words = re.findall(r"[^\W_]+", str(key).lower())
    for start in range(len(words) if found and not found.kind else 0):
        name = " ".join(words[start:])
        if len(name) > 1 and (kind := unit(name))[0]:
            return Number(found.digits, *kind, name)
    return found


# --- The character with number 0


def _looked_up(attempt: Any, claim: str, right: dict, slips: dict, **rows: Any) -> str | None:
    """Praise for a value of `right`; any other number, bytes and what is in `slips` are wrong.

    Both are by value, and `slips` also by type, for any other of that type.
    """
    if not isinstance(attempt, int | float | str | bytes | bytearray | memoryview):
        return None
    attempt = bytes(attempt) if _is_bytes(attempt) else attempt
    figure, literal = number(attempt), _literal(attempt)
    plain = figure.value if figure and figure.unit in ("", "bytes", "tokens") else None
    values = [value for value in (attempt, literal, plain) if value is not None]
    for value in values:
        if value in right:
            return right[value]
    known = [slips[key] for value in values for key in (value, type(value)) if key in slips]
    if not known and plain is None:
        return None
    raise Wrong(claim, got=attempt, mistake=known[0] if known else None, **rows)


def _literal(text: Any) -> Any:
    """The str or bytes that a text spells as Python does, quotes or not: r"b'\\x00'", r"\\x00"."""
    text = text.strip(" `.") if isinstance(text, str) else bytes(text) if _is_bytes(text) else ""
    if isinstance(text, bytes):
        return text
    quoted = re.fullmatch(r"b?'.*'|b?\".*\"", text)
    if not quoted and not re.fullmatch(r"(?:\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|0))+", text, re.I):
        return None
    try:
        return ast.literal_eval(text if quoted else f"'{text}'")
    except (SyntaxError, ValueError):
        return None


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


NUL = chr(0)
# The text of our own prompt, and the one in the handout.
TEXTS_WITH_NUL = (f"before{NUL}after", f"this is a test{NUL}string")
BYTES = "You took the repr of bytes for the repr of a str: `chr` gives a str, without a b in front."
EMPTY = "NUL cannot be seen, but it is one character, of length 1: that is not the empty string."
MISSING = "NUL was not counted: it cannot be seen, but it stays in the text, as one character."
DIGIT = 'The digit "0" has the code point 48 (hexadecimal 30): chr(48) is the digit.'


def _character(attempt: Any) -> str | None:
    if isinstance(attempt, str) and (attempt == " " or attempt.strip()):
        attempt = _code_point(attempt)
    praise = "U+0000: a control character, called NUL. It is a str of length 1."
    slips = {48: DIGIT, "": EMPTY, NUL * 2: EMPTY, bytes: BYTES}
    if type(attempt) is int and 0 < attempt <= sys.maxunicode:
        slips = {attempt: f"That is {chr(attempt)!r}."} | slips
    claim = "That is another character."
    return _looked_up(attempt, claim, {0: praise}, slips, given="ord(chr(0))", expected=0)


def _code_point(text: str) -> Any:
    """The code point that a text names: by itself, an escape, a number or a name."""
    if len(text) == 1:
        return 0 if text == "␀" else ord(text)
    if (value := _literal(text)) is not None:
        return _code_point(value) if isinstance(value, str) and len(value) == 1 else value
    name = re.sub(r"^(?:the|a) |\W*(?:char|character|byte)?\W*$", "", text, flags=re.I)
    if match := re.fullmatch(r"(?:U\+|0x)([0-9a-f]{1,6})", name, re.I):
        return int(match[1], 16)
    if match := re.fullmatch(r"(?:character with )?(?:code point )?(\d{1,7}|zero)", name, re.I):
        return 0 if match[1].lower() == "zero" else int(match[1])
    try:
        return ord(unicodedata.lookup(name))
    except (KeyError, TypeError):  # no name, or one of a sequence
        return text


def _repr_and_print(attempt: Any) -> str | None:
    if type(attempt) in (tuple, list) and len(attempt) == 2:
        both = [_repr_and_print(each) for each in attempt]
        return " ".join(both) if all(both) else None
    printed = "`print` writes the character itself: one character that cannot be seen."
    spelled = "The repr spells the character out as an escape in quotes: 6 characters."
    right = {NUL: printed, 1: printed, 6: spelled, r"\x00": spelled, repr(NUL): spelled}
    slips = {"": EMPTY, int: EMPTY, bytes: BYTES}
    return _looked_up(attempt, "Something is there, even if nothing is seen.", right, slips)


def _inside_text(attempt: Any) -> str | None:
    praise = "NUL counts like any other character; printed, it takes no room."
    right = dict.fromkeys([*TEXTS_WITH_NUL, *map(len, TEXTS_WITH_NUL)], praise)
    if isinstance(attempt, str) and NUL in attempt.strip(NUL):
        return praise
    without = [text.replace(NUL, "") for text in TEXTS_WITH_NUL]
    slips = dict.fromkeys([*without, *map(len, without)], MISSING) | {bytes: BYTES}
    return _looked_up(attempt, "That is not the whole text.", right, slips)


# --- From characters to bytes

ENCODINGS = ("utf-8", "utf-16", "utf-32")
RANGE = (
    "You took the range of a 32-bit integer for that of the values, which end at 0x10FFFF. And a"
    " tokenizer of bytes starts from 256 values in any encoding."
)


def _size(text: str, encoding: str, mark: bool = True) -> int:
    """The bytes that a text takes, with or without its byte order mark."""
    bare = not mark and encoding in ENCODINGS[1:]
    return len(text.encode(encoding + "-le" * bare, errors="surrogatepass"))


def _sizes(attempt: Any) -> str | None:
    if (alone := number(attempt)) and alone.kind in ("", "bytes"):
        return _one_size(alone.value)
    if type(attempt) in (list, tuple) and len(attempt) == len(ENCODINGS):
        attempt = dict(zip(ENCODINGS, attempt, strict=True))
    if type(attempt) is not dict:
        return None
    nested = all(type(each) is dict for each in attempt.values())
    for text, named in attempt.items() if nested else [("hello", attempt)]:
        sizes = {_encoding(key): entry(key, size) for key, size in named.items()}
        if type(text) is not str or None in sizes or None in sizes.values():
            return None
        _expect_sizes(text, {encoding: size.value for encoding, size in sizes.items()})
    return "The sizes are right."


def _encoding(key: Any) -> str | None:
    found = re.match(r"utf[-_ ]?(8|16|32)(?:[-_ ]?([lb]e))?(?![a-z\d])", str(key), re.I)
    return f"utf-{found[1]}" + (f"-{found[2].lower()}" if found[2] else "") if found else None


def _one_size(size: float) -> str:
    sizes = {_size("hello", each, mark): each for each in ENCODINGS for mark in (False, True)}
    right = {size: f'"hello" takes {size} bytes in {each.upper()}.' for size, each in sizes.items()}
    right[256] = "256: the values of a byte."
    if size < 1e9 and size not in right:
        raise NotAttempted(
            'A number alone does not say what was measured. Hand in a dict such as {"UTF-8": 5}, or'
            ' {"日本": {"UTF-8": 6}} for another text than "hello".'
        )
    return _looked_up(size, "There are not so many values.", right, {float: RANGE})


def _expect_sizes(text: str, sizes: dict[str, float]) -> None:
    """Raise for a wrong size. With byte order marks and without, both are right, but not mixed."""
    right, bare = ({each: _size(text, each, mark) for each in sizes} for mark in (True, False))
    if sizes in (right, bare):
        return
    neither = [each for each in sizes if sizes[each] not in (right[each], bare[each])]
    encoding = next(each for each in neither or sizes if sizes[each] != right[each])
    mistake = "Characters were counted, not bytes." if sizes[encoding] == len(text) else None
    if sizes[encoding] == bare[encoding]:
        mistake = (
            "The byte order mark (BOM) was forgotten here, and counted elsewhere: Python's"
            f" {encoding!r} writes {right[encoding] - bare[encoding]} bytes in front."
        )
    raise Wrong(
        f"That is not the size in {encoding.upper()}.",
        given=f"len({text!r}.encode({encoding!r}))",
        expected=right[encoding],
        got=Words(f"{sizes[encoding]:g}"),
        mistake=mistake,
    )


def _bytes(attempt: Any) -> bytes | None:
    """Bytes that were handed in, also as numbers, or as a text that only spells bytes out."""
    if _is_bytes(attempt):
        return bytes(attempt)
    if isinstance(attempt, list | tuple) and all(type(item) is int for item in attempt):
        if not all(0 <= item < 256 for item in attempt):
            raise Wrong("A byte is a number from 0 to 255.", got=attempt)
        return bytes(attempt)
    if isinstance(attempt, list | tuple):
        alike = {*map(type, attempt)} == {bytes}
        return b"".join(attempt) if alike else _bytes(attempt[0])
    if not isinstance(attempt, str):
        return None
    text = attempt.strip(" `.")
    if encoded := re.fullmatch(r"(.*)\.encode\((?:['\"]utf-?8['\"])?\)", text):
        spelled = _literal(encoded[1])
        return spelled.encode() if isinstance(spelled, str) else None
    if isinstance(spelled := _literal(text), bytes):
        return spelled
    digits = (
        r"(?:\\x[0-9a-f]{2})+|(?:0x)?[0-9a-f]{2}(?:[\s,]+(?:0x)?[0-9a-f]{2})+|(?:0x)?[0-9a-f]{4}"
    )
    if not re.fullmatch(digits, text, re.I):
        return None
    return bytes.fromhex(re.sub(r"0x|\\x|[\s,]", "", text, flags=re.I))


def _fails_byte_by_byte(attempt: Any) -> str | None:
    """Praise for bytes that are UTF-8 and that byte-by-byte decoding gets wrong."""
    if isinstance(attempt, tuple | list) and isinstance(attempt[0], bytes | str):
        attempt = attempt[0]
    data = _bytes(attempt)
    if data is None and isinstance(attempt, str):  # a word stands for its bytes
        words = len(attempt.split())
        if words == 1 or (words < 4 and not attempt.isascii()):
            data = attempt.encode("utf-8", errors="surrogatepass")
    if data is None:
        return None
    if found := flaw(data):
        raise Wrong(
            "Those bytes are no UTF-8, so that a right decoder refuses them as well.",
            got=data,
            mistake=f"{found.sentence} Encode a text to get bytes that are valid.",
        )
    if data.isascii():
        raise Wrong(
            "On this input, decoding byte by byte goes well.",
            given=f"{data!r}, one byte at a time",
            expected=Words("an error, or another text"),
            got=data.decode(),
            mistake="All of it is ASCII, where a character is one byte. Take one that needs more.",
        )
    wide = next(character for character in data.decode() if not character.isascii())
    spelled = wide.encode().hex(" ").upper()
    return (
        f"{wide!r} takes {len(wide.encode())} bytes ({spelled}), and none of them is a character"
        " by itself."
    )


def _two_bytes(attempt: Any) -> str | None:
    """Praise for two bytes that are no UTF-8, with the rule that they break."""
    data = _bytes(attempt)
    if data is None and isinstance(attempt, str) and len(attempt.split()) == 1:
        raise Wrong(
            "That is a str, and bytes were asked for.",
            expected=Words("two bytes, with b before the quotes"),
            got=attempt,
            mistake="A str is decoded already: each of its characters is a code point, not a byte.",
        )
    if data is None:
        return None
    if len(data) != 2:
        raise Wrong("Exactly two bytes were asked for.", expected=2, got=len(data))
    if found := flaw(data):
        return found.sentence
    names = " and ".join(f"U+{ord(character):04X}" for character in data.decode())
    rule = (
        f"{data[0]:02X} begins a character of two bytes, and {data[1]:02X} continues it"
        if len(data.decode()) == 1
        else "bytes below 80 are ASCII, each a character of its own"
    )
    raise Wrong(
        "Those two bytes are valid.",
        given=f"{data!r}.decode('utf-8')",
        expected=Words("UnicodeDecodeError"),
        got=data.decode(),
        mistake=f"They decode to {names}: {rule}.",
    )


# --- Trained tokenizers. What depends on corpus and machine is judged by wide ranges.

LENGTHS = {"TinyStories with 10,000 tokens": 15, "OpenWebText with 32,000 tokens": 64}
STORIES, WEB = LENGTHS
WORDS_OF_STORIES = (b" accomplishment", b" disappointment", b" responsibility")
SPACE = "The leading space was dropped: it is part of the token, and one byte."
PLAUSIBLE = "plausible, which is all that can be said without your corpus and machine"


def _training(attempt: Any) -> str | None:
    """Praise for the longest token, the time and the memory of a training, or some of them."""
    if isinstance(attempt, float):
        raise NotAttempted('Name the unit, as in {"seconds": 62, "gigabytes": 1.9}.')
    figures, said = {}, []
    for key, value in (attempt if type(attempt) is dict else {"": attempt}).items():
        found = entry(key, value)
        if found and (found.kind == "seconds" or (found.kind == "bytes" and found.value > 1e5)):
            figures[found.kind] = found
        else:
            said.append(_longest(value, STORIES))
    if figures:
        _refuse_resources(**figures)
        said.append(f"{PLAUSIBLE.capitalize()}.")
    return " ".join(said) if all(said) else None


def _refuse_resources(seconds: Number | None = None, bytes: Number | None = None) -> None:
    long = seconds.value if seconds else 0
    if bytes and bytes.value < 100e6 and long > 60:  # less than a few Python processes take
        raise Wrong(
            "That is doubtful: so little memory for so much text.",
            expected=Words("the peak of all processes together"),
            got=Words(str(bytes)),
            mistake="The memory of the parent alone: RUSAGE_SELF does not see the children of a"
            " pool, who hold the text and the counts.",
        )
    if long > 30 * 60:
        raise Wrong(
            "That is longer than the problem allows.",
            expected=Words("30 minutes at most"),
            got=Words(f"{long / 60:,.0f} minutes"),
            mistake="After each merge, all pairs are probably counted anew: change only the counts"
            " of the pre-tokens that contain the merged pair.",
        )


def _longest(attempt: Any, corpus: str) -> str | None:
    """Praise for a token that may be the longest, or for its length, or for a pair of both."""
    right = {LENGTHS[corpus]: f"{LENGTHS[corpus]} bytes, as {corpus} gives."}
    slips = {14: SPACE} if corpus == STORIES else {32: "These 32 characters take 2 bytes each."}
    slips |= dict.fromkeys((int, float), "From other text, hand in the token itself.")
    if number(attempt):
        return _looked_up(attempt, f"{corpus} gives another length.", right, slips)
    stated = None
    if isinstance(attempt, tuple | list) and len(attempt) == 2 and type(attempt[1]) is int:
        attempt, stated = attempt
    if isinstance(attempt, str):  # which a token may be, but not a sentence
        plain = re.fullmatch(r"[ Ġ]?[^\W\d_]{6,}|([-=_*])\1{6,}", attempt)
        attempt = attempt.replace("Ġ", " ").encode() if plain else _literal(attempt)
    if not _is_bytes(attempt):
        return None
    token = bytes(attempt)
    if stated not in (None, len(token)):
        raise Wrong(
            "Token and length do not fit together.",
            given=f"len({token!r})",
            expected=len(token),
            got=stated,
            mistake=SPACE if stated == len(token) + 1 else None,
        )
    return _judged_token(token, corpus)


def _judged_token(token: bytes, corpus: str) -> str:
    if b" " + token in WORDS_OF_STORIES:
        raise Wrong("A byte is missing.", expected=b" " + token, got=token, mistake=SPACE)
    nature = " It is a ruler: one character over and over." if len(set(token)) == 1 else ""
    if b"\xc3\x83\xc3\x82" in token:
        nature = " It is UTF-8 that was read as Latin-1 and encoded again."
    if len(token) == LENGTHS[corpus]:
        return f"{len(token)} bytes, as {corpus} gives.{nature}"
    if len(token) < 8:
        raise Wrong(
            "That is short for the longest token.",
            expected=Words("more than a short word: sort the vocabulary by length in bytes"),
            got=token,
        )
    pieces = [] if flaw(token) else list(pretokenize([token.decode()]))
    if len(pieces) > 1:
        raise Wrong(
            "No merge can have made this token.",
            expected=Words("a piece of one pre-token"),
            got=Words(f"{len(pieces)} pre-tokens: {' | '.join(map(repr, pieces[:6]))}"),
            mistake="Merges reached across pre-tokens, or this is no token of your vocabulary.",
        )
    return (
        f"{len(token)} bytes.{nature} {corpus} gives {LENGTHS[corpus]}; another corpus or size"
        " gives another token, which cannot be checked here."
    )


# --- Tokenizers at work

PILE = 825e9  # bytes
EXACT = 0.01  # relative: what is left of two rounded numbers
# What the time is multiplied by when somebody slips, and the slip.
SLIPS = {
    1024**3 / 1000**3: "825 GiB were divided: a GB is 10**9 bytes, a GiB 2**30.",
    1000**3 / 1024**3: "The rate and the Pile do not count in the same units: a GB is 10**9 bytes.",
    1000**2 / 1024**2: "The rate was taken in MiB, 2**20 bytes: an MB is 10**6.",
    8: "Bits were divided by bytes: that is 8 times too much.",
    1 / 8: "Bytes were divided by bits: that is 8 times too little.",
    24: "Hours were taken for days.",
    1 / 24: "Days were taken for hours.",
    3600: "Seconds were taken for hours.",
    1 / 3600: "Hours were taken for seconds.",
    86_400: "Seconds were taken for days.",
}
for _by in (60, 1_000, 1_000_000):
    SLIPS[_by] = f"A factor of {_by:,} too much: mind GB, MB and minutes."
    SLIPS[1 / _by] = f"A factor of {_by:,} was lost: mind GB, MB and minutes."


NO_TOKENS = (
    "English words have 5 to 6 bytes. Were documents or words counted in place of tokens, or bits"
    " of bytes?"
)
NOT_MERGED = (
    "BPE reaches about 4 on the text it was trained for. The merges are not fully applied: is every"
    " merge tried, again and again, until none is left in the pre-token? (With a vocabulary of some"
    " hundred tokens, fewer bytes are right.)"
)
OWN_TOKENIZER = (
    "That is as good as a tokenizer trained on that very text. Was the sample encoded with its own"
    " tokenizer, or the other corpus sampled?"
)


def _ratios(attempt: Any, own: bool) -> str | None:
    """Praise for bytes per token that may be right; `own`: on the text of the training."""
    items = enumerate(attempt) if isinstance(attempt, list | tuple) else [("", attempt)]
    found = [entry(*item) for item in (attempt.items() if type(attempt) is dict else items)]
    if not all(each and each.kind in ("", "bytes per token", "tokens per byte") for each in found):
        return None
    for ratio in (each.value for each in found):
        if not 0 < ratio <= 1_000:
            raise NotAttempted("That is no ratio. Hand in bytes per token, such as 4.1.")
        upside_down = (
            f"The ratio is upside down: those are tokens per byte, here {1 / ratio:.2f} bytes per"
            " token. A token stands for one byte at least."
        )
        foreign = not own and len(found) == 1
        slips = ((ratio < 1, upside_down), (ratio > 10, NO_TOKENS))
        slips += ((own and ratio < 3, NOT_MERGED), (foreign and ratio > 4.3, OWN_TOKENIZER))
        if mistake := next((slip for wrong, slip in slips if wrong), None):
            raise Wrong("Those bytes per token are doubtful.", got=ratio, mistake=mistake)
    return f"{', '.join(f'{each.value:.2f}' for each in found)} bytes per token: {PLAUSIBLE}."


def _pile(attempt: Any) -> str | None:
    """Praise for a speed and the time that the Pile takes at it."""
    if number(attempt):
        raise NotAttempted("Hand in a pair: bytes per second, and the hours that the Pile takes.")
    rate = time = None
    if type(attempt) is dict:
        kinds = {n.kind: n for key, value in attempt.items() if (n := entry(key, value))}
        rate, time = kinds.get("rate"), kinds.get("seconds")
    elif type(attempt) in (tuple, list) and len(attempt) == 2:
        rate, time = map(number, attempt)
    if not rate or not time:
        return None
    if rate.value <= 0 or time.value <= 0:
        raise Wrong("Speed and time are more than nothing.", got=attempt)
    size, name = (time.scale, time.unit) if time.unit else (HOUR, "hours")
    said, exact = float(time.digits), PILE / rate.value / size
    rounded = said.is_integer() and said >= 5 and abs(said - exact) < 1
    if not rounded and abs(said / exact - 1) > EXACT:
        by = next((by for by in SLIPS if abs(said / exact / by - 1) <= EXACT), None)
        raise Wrong(
            "Speed and time do not fit together.",
            given=f"825e9 bytes / {rate.value:,.0f} bytes per second",
            expected=Words(f"{exact:,.5g} {name}"),
            got=Words(f"{said:,.5g} {name}"),
            mistake=SLIPS.get(by),
        )
    hours = PILE / rate.value / HOUR
    slow = " But that is very slow: do you search all the merges anew for each pre-token?"
    praise = f"The division is right: {hours:,.1f} hours, or {hours / 24:,.2f} days."
    return praise + slow * (rate.value < 20_000)


def _uint16(attempt: Any) -> str | None:
    right = {2: "Two bytes per token.", 65_535: "65,535 is the largest token ID that fits."}
    right[65_536] = "65,536 values fit, and the largest of them is 65,535."
    signed = "That is the reach of int16, which spends one bit on the sign. uint16 has none."
    vocabulary = "That is the size of one vocabulary, and it fits. Asked is where uint16 ends."
    slips = dict.fromkeys((2**15, 2**15 - 1), signed)
    slips |= dict.fromkeys((255, 256), "That is uint8: one byte.")
    slips |= dict.fromkeys((2**32 - 1, 2**32), "That is uint32: four bytes.")
    slips |= dict.fromkeys((10_000, 32_000), vocabulary)
    slips |= dict.fromkeys((int, float), "16 bits have 2 ** 16 values, beginning at 0.")
    rows = {"given": "numpy.iinfo('uint16').max", "expected": 65_535}
    return _looked_up(attempt, "That is not where uint16 ends.", right, slips, **rows)


# --- Three learning rates. The loss is the mean of the squares of 100 weights, drawn from N(0, 5²):
# 25 ± 3.5, or surely between these two.

RATES = (10, 100, 1000)
LOWEST, HIGHEST = 4.0, 46.0
ROUNDED = 0.006  # absolute: people write two decimals, and zero is not quite zero


def factor(rate: float, t: int) -> float:
    """What step t multiplies all weights by: the gradient is 2/100 of them."""
    return 1 - 0.02 * rate / math.sqrt(t + 1)


MISTAKES = (
    mistake("The loss is a mean: yours seems to be a sum, 100 times as large.", "0.02", "2"),
    mistake("α is divided by √(t + 1): yours does not shrink.", " / math.sqrt(t + 1)", ""),
    mistake("α is divided by √(t + 1): the root is missing.", "math.sqrt", ""),
    mistake("The step goes up the hill: subtract the gradient.", "1 - ", "1 + "),
)
STEPS = {"": factor} | {each.words: Program(factor).edited((each,)) for each in MISTAKES}
NOT_FRESH = (
    "The weights were not drawn anew: the run goes on where the one before ended, or they lack the"
    " factor 5."
)


def _tuning(attempt: Any) -> str | Facts | None:
    """Praise for the losses of a run, or of several by learning rate."""
    losses = _floats(attempt)
    if type(losses) is float:
        raise NotAttempted("Which run is that number from? Hand in a dict by learning rate.")
    if type(losses) is list and losses and all(type(each) is float for each in losses):
        return _run(losses, None)
    if type(losses) is list and len(losses) == len(RATES):
        losses = dict(zip(RATES, losses, strict=True))
    if type(losses) is not dict:
        return None
    said = []
    for key, run in losses.items():
        rate = number(str(key).rpartition("=")[2])
        if rate and 0 < rate.value <= 1e6 and type(run) in (float, list):
            said.append((_last if type(run) is float else _run)(run, rate.value))
    if not said and not any(isinstance(run, str) for run in losses.values()):
        raise NotAttempted("Name the learning rates: {10: [...], 100: [...], 1000: [...]}.")
    return " ".join(said) or Facts()


def _floats(value: Any) -> Any:
    """Arrays and sequences as lists, numbers in them as floats; all else stays as it is."""
    if isinstance(value, dict):
        return {key: _floats(each) for key, each in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        return [_floats(item) for item in value]
    return float(value) if type(value) is int and abs(value) < 1e300 else value


def _follows(losses: list[float], rate: float, step: Callable, first: int) -> bool:
    """True where each loss follows from the one before, the step of the second being `first`."""
    return all(
        abs(after - before * step(rate, t) ** 2) <= max(ROUNDED, EXACT * after)
        for t, (before, after) in enumerate(pairwise(losses), first)
        if math.isfinite(before) and math.isfinite(after)
    )


def _run(losses: list[float], rate: float | None) -> str:
    """Praise for the losses of a run, before each step or after; `rate` is known if it was said."""
    if len(losses) < 3 or any(type(loss) is not float for loss in losses):
        raise NotAttempted("Hand in the losses of all ten steps, as numbers.")
    made = [
        (words, r, first)
        for words, step in STEPS.items()
        for r in sorted({1, *RATES, rate or 1})
        for first in (0, 1)
        if _follows(losses, r, step, first) and (not words or rate in (None, r))
    ]
    right = [(r, first) for words, r, first in made if not words and rate in (None, r)]
    for r, first in right:
        if LOWEST < losses[0] / (factor(r, 0) ** (2 * first) or 1) < HIGHEST:
            return f"The losses with {r:,g} follow (1 - 0.02 α / √(t + 1))² from step to step."
    likely = None
    if right:
        late = right[0][1] == 1 and LOWEST < losses[0] < HIGHEST
        likely = "t begins at 0: yours begins at 1." if late else NOT_FRESH
    elif made:
        likely = made[0][0] or f"These are the losses with {made[0][1]:,}."
    raise Wrong(
        f"These are not the losses {f'with {rate:,g}' if rate else 'of any of the three runs'}.",
        expected=Words("about 25 at first; each step multiplies it by (1 - 0.02 α / √(t + 1))²"),
        got=losses,
        mistake=likely,
    )


def _last(loss: float, rate: float) -> str:
    """Praise for the last loss of a run of ten steps."""
    shares = [math.prod(factor(rate, t) ** 2 for t in range(steps)) for steps in (9, 10)]
    low, high = LOWEST * min(shares), max(HIGHEST * max(shares), ROUNDED)
    if not low <= loss <= high and not (rate == 1000 and loss == math.inf):
        raise Wrong(
            f"That is not the loss after ten steps with {rate:,g}.",
            expected=Words(f"{25 * shares[1]:.2g}, give or take the luck of the draw"),
            got=loss,
            mistake="Each step multiplies the loss by (1 - 0.02 α / √(t + 1))².",
        )
    return f"{loss:.2g} is what ten steps with {rate:,g} leave."


# --- The training script, and a generated text

ENOUGH = 256  # tokens of a generated text


class Script(Facts):
    """Facts about a script, which was not judged."""

    claim = (
        "No check can judge a training script: only a run of yours can. Does it do these things?"
    )


def _script(attempt: Any) -> Script | None:
    """The facts, for a script or a function of it that is written: nothing is run."""
    code = attempt.__code__ if type(attempt) is FunctionType else None
    blank = isinstance(attempt, str) and not attempt.strip()
    if blank or is_stub(attempt) or (code and code.co_names == ("NotImplementedError",)):
        raise NotAttempted
    written = callable(attempt) or inspect.ismodule(attempt) or isinstance(attempt, str | Path)
    return Script() if written else None


def _generated(attempt: Any) -> str | None:
    """Praise for a number of tokens that is enough, or for as many tokens."""
    found = number(attempt)
    if type(attempt) in (list, tuple) and all(type(each) is int for each in attempt):
        found = Number(str(len(attempt)))
    if not found or found.kind not in ("", "tokens"):
        return None
    if found.value < ENOUGH:
        raise Wrong(
            "That is too short.",
            expected=Words(f"{ENOUGH} tokens or more, or a text up to its end token"),
            got=Words(f"{found.digits} tokens"),
            mistake="If the model ended the text itself, hand in the text: then it may be shorter.",
        )
    return f"{found.digits} tokens are long enough."


# --- The checks, by what they judge of each part

unicode1 = partial(judged, {"a": _character, "b": _repr_and_print, "c": _inside_text})
unicode2 = partial(judged, {"a": _sizes, "b": _fails_byte_by_byte, "c": _two_bytes})
train_bpe_tinystories = partial(judged, {"a": _training})
train_bpe_expts_owt = partial(judged, {"a": partial(_longest, corpus=WEB)})
tokenizer_experiments = partial(
    judged,
    {"a": partial(_ratios, own=True), "b": partial(_ratios, own=False), "c": _pile, "d": _uint16},
)
learning_rate_tuning = partial(judged, {"": _tuning})
training_together = partial(judged, {"": _script})
generate = partial(judged, {"": _generated})
