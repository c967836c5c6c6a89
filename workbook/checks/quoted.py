"""Numbers as people write them: with units, powers of ten and few digits."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbook.accounting.explain import GAINED, LOST, Amount
from workbook.accounting.training import DAY, GB, HOUR, GiB

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_PREFIXES = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15, "e": 1e18, "z": 1e21}
_WORDS = {"kilo": "k", "mega": "m", "giga": "g", "tera": "t", "peta": "p", "exa": "e", "zetta": "z"}
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 7 * 86_400}
_SECONDS |= {"month": 365.25 / 12 * 86_400, "year": 365 * 86_400}
_SHORT_TIMES = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour"}
_SHORT_TIMES |= {"d": "day", "wk": "week", "mo": "month", "yr": "year", "y": "year"}
_LARGE = {"thousand": 1e3, "million": 1e6, "mio": 1e6, "mn": 1e6, "billion": 1e9, "bn": 1e9}
_LARGE |= {"trillion": 1e12, "tn": 1e12, "quadrillion": 1e15}
_LARGE |= {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}

_SEPARATOR = r"[,_'\u2009\u00a0\u202f]"
_MANTISSA = rf"\d{{1,3}}(?:{_SEPARATOR}\d{{3}})+(?:\.\d+)?|\d{{1,3}}(?: \d{{3}}){{2,}}(?!\d)"
_MANTISSA += r"|\d+(?:\.\d+)?|\.\d+"
_TIMES = r"(?:\*|×|x|·|⋅|\\times|\\cdot)"
_POWER = r"(?:\^|\*\*)?\s*\{?\s*([-+]?\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)\s*\}?"
_NUMBER = re.compile(
    r"(?<![\d.^])(?<![A-Za-wyz_])(?:10\s?(?:\^|\*\*)\s?\{?(\d+)\}?"
    rf"|({_MANTISSA})(?:[eE]([-+]?\d+)(?!\w)|\s*{_TIMES}\s*10\s*{_POWER})?)(?!\.?\d)"
)


# By what a number without a unit may have to be multiplied to be in the unit of a figure.
_PLAIN = {
    "count": (1, 1e6, 1e9),
    "bytes": (1, GB, GiB),
    "bytes per sequence": (1, GB, GiB),
    "flops": (1, 1e9, 1e12, 1e15),
    "share": (1, 0.01),
    "seconds": (1, HOUR, DAY, 365 * DAY),
    "factor": (1,),
    "batch": (1,),
    "per parameter": (1,),
}


@dataclass(frozen=True)
class Quoted(Amount):
    """A number in a text; its `kind` is "" where no unit stands behind it."""

    start: int
    end: int

    def readings(self) -> Iterator[tuple[str, float, str]]:
        """The units that it may be in; without one of its own, all that its size allows."""
        if self.kind:
            yield from super().readings()
            return
        for unit, scales in _PLAIN.items():
            coarse = self.digits < 2 and unit not in ("batch", "per parameter")
            for scale in () if coarse else scales:
                yield unit, scale, ""
        if self.digits > 1:
            for scale in _PLAIN["seconds"][1:]:
                yield "seconds", scale * 1_000, LOST
        if self.digits > 1 and self.value >= 1e6:
            for unit in ("count", "bytes", "flops"):
                yield unit, 1_000, LOST
                yield unit, 1 / 1_000, GAINED


def numbers(text: str) -> list[Quoted]:
    """Every number of a text with its unit, in order; rates such as TFLOP/s are passed over.

    >>> [(q.value, q.kind) for q in numbers("8.51 GB, 4.51 · 10^12 FLOPs, 19.5 TFLOP/s")]
    [(8510000000.0, 'bytes'), (4510000000000.0, 'flops')]
    """
    found = []
    for match in _NUMBER.finditer(text):
        mantissa = match[2] or "1"
        exponent = match[1] or match[3] or (match[4] or "").translate(_SUPERSCRIPTS) or "0"
        # Python shows 350000000000.0 for 3.5e11: in a large number that last zero says nothing.
        digits = re.sub(r"(?<=\d{6})\.0$", "", re.sub(r"[^\d.]", "", mantissa))
        if len(exponent) > 4 or abs(int(exponent)) > 60 or len(digits) > 60:
            continue
        power = 10.0 ** int(exponent)
        after = text[match.end() : match.end() + 60]  # more than any unit takes
        kind, scale, unit = _unit(after, float(digits) * power)
        if kind == "rate":
            continue
        if not kind and re.search(
            r"(?:^|[^\w])[x×]$", text[max(match.start() - 2, 0) : match.start()]
        ):
            kind = "factor"
        decimals = len(digits.partition(".")[2])
        bare = digits.replace(".", "").lstrip("0")
        half = 0.5 * 10.0**-decimals
        if not decimals:  # the zeros of 3,590,000 may only hold the place
            zeros = len(bare) - len(bare.rstrip("0"))
            if zeros >= 2 and len(bare) - zeros < 6:
                half *= 10.0**zeros
                bare = bare.rstrip("0")
        end = match.end() + len(unit)
        found.append(
            Quoted(
                value=float(f"{digits}e{exponent}") * scale,
                half=half * power * scale,
                kind=kind,
                unit=unit.strip(),
                text=text[match.start() : end].strip(),
                start=match.start(),
                end=end,
                digits=max(len(bare), 1),
            )
        )
    return found


def quoted_in(value: Any) -> list[Quoted]:
    """The numbers of an attempt: a number, a text, or several of them in a tuple, list or dict."""
    if isinstance(value, str):
        return numbers(value)
    if isinstance(value, dict):
        return numbers(", ".join(f"{key}: {each}" for key, each in value.items()))
    if isinstance(value, tuple | list):
        return [each for item in value for each in quoted_in(item)]
    if isinstance(value, int | float):
        return [number(value)]
    raise TypeError(f"expected a number or a text, got a {type(value).__name__}")


def number(value: float) -> Quoted:
    """A Python number as if it were written out; what counts are the digits that it has."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"expected a finite number, got {value!r}")
    if abs(value) > 1e60:
        raise ValueError("expected a number below 1e60")
    whole = float(value).is_integer() and abs(value) < 1e18
    written = numbers(str(int(value)) if whole else repr(float(value)))
    if not written or value < 0:
        raise ValueError(f"expected a positive number, got {value!r}")
    return written[0]


_SPACE = r"(?:\\,|[\s~\u00a0\u2009\u202f]){0,3}-?"
_FLOPS = re.compile(
    rf"({_SPACE}(?:\s*(thousand|million|billion|trillion|quadrillion|[kKMGTPEZ])?\s?-?"
    r"(kilo|mega|giga|tera|peta|exa|zetta)?\s?"
    r"(?:FLOPs?|FLOPS|flops?|Flops?|operations|FMAs?)))(?P<rate>\s?(?:/\s?s\b|per second))?",
    re.I,
)
_BYTES = re.compile(
    rf"({_SPACE}(?:([kKMGTP])(i?)B(?:ytes?)?|([kmgtp])(i)?b"
    r"|(kilo|mega|giga|tera|peta|kibi|mebi|gibi|tebi)?(?:bytes?))\b)(?P<rate>\s?/\s?s\b)?",
)
_SHARE = re.compile(rf"({_SPACE}\\?%|{_SPACE}per\s?cent\b)", re.I)
_TIME = re.compile(
    rf"({_SPACE}(?:(thousand|million|billion|k|M)\s?)?(?:GPU[\s-]?)?"
    r"(second|sec|s|minute|min|hour|hr|h|day|d|week|wk|month|mo|year|yr|y)s?\b)",
)
_LARGE_UNIT = re.compile(
    rf"({_SPACE}(thousand|million|mio|mn|billion|bn|trillion|tn|quadrillion|[kmbgt])\b)",
    re.I,
)
_PARAMETERS = re.compile(rf"({_SPACE}(?:trainable |learnable )?param(?:eter)?s?\b)", re.I)
_FACTOR = re.compile(rf"({_SPACE}(?:[x×]|times|fold|-fold)(?!\w))", re.I)
_PER_PARAMETER = re.compile(
    rf"({_SPACE}(?:FLOPs?\s*)?(?:(?:\*|×|x|·|⋅|\\times|\\cdot|times)\s*)?"
    r"(?:P|N|n_params|num_params|num_parameters|n_parameters|(?:the )?number of parameters"
    r"|#\s?(?:params|parameters)|\|?θ\|?|params|parameters)\b"
    rf"|{_SPACE}(?:FLOPs?|operations|ops)?\s*(?:per|/|a|for each)\s?(?:param(?:eter)?s?|weight)\b)",
    re.I,
)


def _unit(after: str, value: float) -> tuple[str, float, str]:
    """What stands after a number: what it measures, the size of its unit, and as written."""
    if value < 1000 and (match := _PER_PARAMETER.match(after)):
        return "per parameter", 1, match[1]
    if match := _FLOPS.match(after):
        large = {"thousand": "k", "million": "m", "billion": "g", "trillion": "t"}
        large["quadrillion"] = "p"
        prefix = (match[2] or "").lower()
        scale = (
            _PREFIXES[large.get(prefix, prefix)]
            * _PREFIXES[_WORDS.get((match[3] or "").lower(), "")]
        )
        return "rate" if match["rate"] else "flops", scale, match[1]
    if match := _BYTES.match(after):
        word = (match[6] or "").lower()
        prefix = (match[2] or match[4] or word[:1]).lower()
        binary = match[3] or match[5] or word[2:] == "bi"
        scale = 1024 ** " kmgtp".index(prefix) if binary and prefix else _PREFIXES[prefix]
        return "rate" if match["rate"] else "bytes", float(scale), match[1]
    if match := _SHARE.match(after):
        return "share", 0.01, match[1]
    if match := _TIME.match(after):
        many = _LARGE[match[2].lower()] if match[2] else 1
        return "seconds", many * _SECONDS[_SHORT_TIMES.get(match[3], match[3])], match[1]
    if match := _PARAMETERS.match(after):
        return "count", 1, match[1]
    if match := _FACTOR.match(after):
        return "factor", 1, match[1]
    if match := re.match(r"\s?B\b", after) if value >= 1e6 else None:
        return "bytes", 1, match[0]
    match = _LARGE_UNIT.match(after)
    if match and not re.match(r"\s?[bB]\s*[+(]", after):  # the B of 10.49 B + 26.17 is the batch
        return "count", _LARGE[match[2].lower()], match[1]
    return "", 1, ""
