"""Numbers in tables have commas, and as many digits as one reads."""

import doctest
import math

import numpy as np
import pandas as pd
import pytest

from workbook.views import plots


def test_the_example_holds():
    assert doctest.testmod(plots).failed == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_127_057_600, "2,127,057,600"),
        (np.int64(6_400), "6,400"),
        (-3, "-3"),
        (0.0, "0"),
        (15.517753344, "15.52"),
        (0.669123, "0.6691"),
        (5115.19, "5,115"),
        (123_456.7, "123,457"),
        (1.17e-38, "1.17e-38"),
        (3.4e38, "3.4e+38"),
        (True, "yes"),
        (np.bool_(False), "no"),
        (math.nan, ""),
        ("V·d", "V·d"),
        ((3, 2), (3, 2)),
    ],
)
def test_a_number_is_written_as_one_reads_it(value, text):
    assert plots.readable(pd.DataFrame({"x": [value]}, dtype=object)).iloc[0, 0] == text


def test_names_of_rows_and_columns_stay():
    table = pd.DataFrame({"FLOPs": [1, 2]}, index=pd.Index(["a", "b"], name="part"))
    shown = plots.readable(table)
    assert list(shown.columns) == ["FLOPs"] and shown.index.equals(table.index)
