"""Tables of numbers as people read them."""

from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table as text: 2127057600 is 2,127,057,600, 0.6691 keeps four digits, True is yes.

    >>> readable(pd.DataFrame({"count": [6400], "size": [1234.5678], "equal": [True]}))
       count   size equal
    0  6,400  1,235   yes
    """
    return table.map(_written)


def _written(value: Any) -> Any:
    """One cell; text stays as it is, and what is missing is empty."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}"
    if isinstance(value, Real):
        if np.isnan(value):
            return ""
        small = value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e15)
        return f"{value:.4g}" if small else f"{value:,.{_decimals(value)}f}"
    return value


def _decimals(value: float) -> int:
    """How many decimals give four digits, for numbers from a thousandth up."""
    return max(3 - int(np.floor(np.log10(abs(value)))), 0) if value else 0
