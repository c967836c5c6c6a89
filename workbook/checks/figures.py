"""What can be checked in a learner's text: figures with their units, examples, claims."""

import ast
import re
from dataclasses import dataclass
from typing import Any

from workbook.checks.verdicts import NotAttempted, Words, Wrong, kind_of

LONGEST = 20_000  # characters of an answer: some pages
NUMBER = (
    r"(?<![\w.+*^-])(?:\d+\s?(?:\*\*|\^)\s?\d+|\d{1,3}(?:[,_ \u00a0\u202f]\d{3})+(?:\.\d+)?(?!\d)"
    r"|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
)
# Unit: (what it measures, its size in bytes, seconds or bytes per second).
UNITS = {
    **dict.fromkeys(("b", "byte", "bytes"), ("bytes", 1)),
    **{f"{prefix}b": ("bytes", 1000**i) for i, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": ("bytes", 1024**i) for i, prefix in enumerate("kmgt", 1)},
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), ("seconds", 1)),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), ("seconds", 0.001)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("seconds", 60)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), ("seconds", 3600)),
    **dict.fromkeys(("d", "day", "days"), ("seconds", 86_400)),
    **dict.fromkeys(("week", "weeks"), ("seconds", 7 * 86_400)),
    **dict.fromkeys(("year", "years"), ("seconds", 365 * 86_400)),
}
_PER_SECOND = r"\s?(?:/\s?s(?:ec(?:ond)?)?\b|per second|a second)"
_QUANTITY = re.compile(
    rf"({NUMBER})(?:\s?-?({'|'.join(sorted(UNITS, key=len, reverse=True))})\b({_PER_SECOND})?)?",
    re.IGNORECASE,
)
_HEX_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?:\\x[0-9a-f]{2})+",
        r"0x[0-9a-f]{2}(?:[\s,]*(?:and\s+)?0x[0-9a-f]{2})*\b",
        r"\b[0-9a-f]{2}(?:[\s,]+[0-9a-f]{2})+\b",
    )
]
_NOT = re.compile(
    r"\b(?:not|no|never|neither|nor|rather|instead|without|unlike|than)\b|n't\b", re.I
)


@dataclass(frozen=True)
class Quantity:
    """A number in a text, and what it measures: "bytes", "seconds", "rate" or, without unit, ""."""

    value: float  # as written
    kind: str
    scaled: float  # in bytes, seconds or bytes per second
    unit: str  # as written
    start: int  # where in the text it begins
    end: int


def quantities(text: str) -> list[Quantity]:
    """Every number in a text with its unit, in order.

    >>> [(q.scaled, q.kind) for q in quantities("0.5 MB/s, so 2 days")]
    [(500000.0, 'rate'), (172800.0, 'seconds')]
    """
    found = []
    for match in _QUANTITY.finditer(text):
        kind, size = UNITS.get((match[2] or "").lower(), ("", 1))
        if match[3]:
            kind = "rate" if kind == "bytes" else kind
        value = _number(match[1])
        unit = (match[2] or "") + ("/s" if kind == "rate" else "")
        found.append(Quantity(value, kind, value * size, unit, match.start(), match.end()))
    return found


def _number(text: str) -> float:
    power = re.fullmatch(r"(\d+)\s?(?:\*\*|\^)\s?(\d+)", text)
    if power:
        base, exponent = int(power[1]), int(power[2])
        return float(base**exponent) if base <= 1000 and exponent <= 100 else float("inf")
    return float(re.sub(r"[,_ \u00a0\u202f]", "", text))


def claims(text: str, pattern: str) -> bool:
    """True where a clause of the text matches the pattern and denies nothing."""
    clauses = re.split(r"(?<=[.;!?])\s|\n|,? but ", text)
    return any(re.search(pattern, each, re.I) and not _NOT.search(each) for each in clauses)


def is_prose(text: str) -> bool:
    """True for a text of four words or more, hexadecimal digits apart: more than an example."""
    return _words(text) >= 4


def is_explained(text: str) -> bool:
    """True for a text that is long enough to give reasons, and not only a figure with its name."""
    return _words(text) > 12


def _words(text: str) -> int:
    return len(re.findall(r"(?!\b[0-9a-fA-F]{2}\b)[^\W\d_]{2,}", text))


def bytes_in(text: str) -> list[bytes]:
    """The bytes that a text spells out: literals, then escapes, then pairs of hex digits.

    >>> bytes_in("the pair 0xC3, 0xA9"), bytes_in("41 c3"), bytes_in("12 and 24")
    ([b'\\xc3\\xa9'], [b'A\\xc3'], [])
    """
    literals = re.findall(r"\bb'(?:[^'\\]|\\.)*'|\bb\"(?:[^\"\\]|\\.)*\"", text)
    found = []
    for literal in literals:
        try:
            found.append(ast.literal_eval(literal))
        except (SyntaxError, ValueError):
            continue
    if found:
        return found
    for form in _HEX_FORMS:
        for run in form.findall(text):
            digits = "".join(re.findall(r"(?:\\x|0x|\b)([0-9a-f]{2})", run, re.IGNORECASE))
            data = bytes.fromhex(digits)
            if "x" in run.lower() or max(data) > 0x99 or re.search("[a-f]", run, re.I):
                found.append(data)  # else plain numbers, such as "12 24"
        if found:
            return found
    compact = re.fullmatch(r"\s*(?:0x)?((?:[0-9a-fA-F]{2}){2,})\s*", text)
    return [bytes.fromhex(compact[1])] if compact else []


def quoted(text: str) -> list[str]:
    """What stands between quotes or backticks, each once, in order."""
    marks = r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`\n]+)`|\u201c([^\u201d\n]+)\u201d"
    marks += r"|\u2018([^\u2019\n]+)\u2019"
    found = ["".join(match) for match in re.findall(rf"(?<!\w)b?(?:{marks})(?!\w)", text)]
    return list(dict.fromkeys(found))


_UNIT_OF_KEY = {
    r"gib": "GiB",
    r"mib": "MiB",
    r"gb|giga": "GB",
    r"mb|mega": "MB",
    r"kb|kilo": "kB",
    r"byte|memory|rate|throughput|speed": "bytes",
    r"hour": "hours",
    r"day": "days",
    r"minute": "minutes",
    r"second|time": "seconds",
}


def sentence(entries: dict) -> str:
    """A dict as a text, with the units that its keys name.

    >>> sentence({"bytes_per_second": 5, "pile_hours": 3})
    'bytes per second 5 bytes per second, pile hours 3 hours'
    """
    pieces = []
    for key, value in entries.items():
        key = str(key).replace("_", " ")
        unit = next((u for k, u in _UNIT_OF_KEY.items() if re.search(k, key, re.I)), "")
        if unit.endswith(("B", "bytes")) and re.search(
            r"per s|/s|rate|throughput|speed", key, re.I
        ):
            unit += " per second"
        pieces.append(f"{key} {value}" if isinstance(value, str) else f"{key} {value} {unit}")
    return ", ".join(piece.strip() for piece in pieces)


def text_of(attempt: Any, expected: str) -> str:
    """The attempt if it is a text; `expected` says in words what else may be handed in."""
    if not isinstance(attempt, str):
        raise Wrong("That cannot be read.", expected=Words(expected), got=Words(kind_of(attempt)))
    if not attempt.strip():
        raise NotAttempted
    if len(attempt) > LONGEST:
        raise Wrong(
            "That is longer than an answer can be.",
            expected=Words(f"at most {LONGEST:,} characters: {expected}"),
            got=Words(f"{len(attempt):,} characters"),
        )
    return str(attempt)
