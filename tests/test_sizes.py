"""The count of lines of code, and what holds each room to its cap."""

import runpy
from collections import Counter
from pathlib import Path

SIZES = runpy.run_path(str(Path(__file__).parents[1] / ".ci" / "sizes.py"))

SOURCE = '''"""A module's docstring
of two lines."""

# A comment.
TEXT = """a value
of two lines"""  # and a comment beside it
def double(x):
    """Its docstring."""
    return (
        2 * x
    )
'''


def test_comments_docstrings_and_blank_lines_are_free():
    assert SIZES["lines_of_code"](SOURCE) == 6


def test_a_room_is_held_to_its_cap_from_both_sides():
    caps = {"workbook/classroom/checks": 1_000}
    for allowed, not_allowed, words in (
        (1_000, 1_001, "1 above its cap"),
        (851, 850, "lower its cap of 1,000"),
    ):
        assert SIZES["faults"](Counter({"workbook/classroom/checks": allowed}), caps) == []
        [fault] = SIZES["faults"](Counter({"workbook/classroom/checks": not_allowed}), caps)
        assert words in fault
    assert "no cap" in SIZES["faults"](Counter({"workbook/attic": 5}), {})[0]
