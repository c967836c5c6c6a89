"""One reader of numbers: of values, for `predict` and `recall`, and of what somebody typed."""

import math
import re
from decimal import Decimal
from numbers import Real
from typing import Any

# Perhaps "about", a number with its thousands and its exponent, and perhaps a unit.
TYPED = re.compile(r"(?:≈|~|about|roughly)?\s*([-+]?[\d,_]*\.?\d+(?:e[-+]?\d+)?)\s*(\S.*)?", re.I)
ASKED_FOR = re.compile(r"how many (\w+)", re.IGNORECASE)  # the unit that a question asks for
MINUS = "−"  # noqa: RUF001 - as our pages print it


def number_of(value: Any) -> float | None:
    """The number that a value is: one of NumPy's or torch's, too, or a fraction; else None."""
    if hasattr(value, "item"):
        try:
            value = value.item()
        except (TypeError, ValueError, RuntimeError):  # it holds several numbers, or none
            return None
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:  # of Decimal's two kinds of NaN, one cannot be converted
        return math.nan


def typed_number(text: str, question: str) -> float | None:
    """The number in a typed answer to a question; None: it is none, or in another unit.

    >>> typed_number("≈ 2.29 h", "How many hours do they take?")
    2.29
    """
    found = TYPED.fullmatch(text.strip().replace(MINUS, "-"))
    if found is None:
        return None
    unit = (found[2] or "").rstrip(".").lower()
    asked = ASKED_FOR.search(question)
    if unit and not (asked and asked[1].lower().startswith(unit)):
        return None
    return float(found[1].replace(",", "").replace("_", ""))
