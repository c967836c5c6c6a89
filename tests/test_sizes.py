"""The count of tokens, and what holds each room to its cap."""

import runpy
import subprocess
from collections import Counter
from pathlib import Path

import pytest

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


def test_comments_docstrings_and_layout_are_free():
    sizes = SIZES["measure"](SOURCE)
    # TEXT = "..." | def double ( x ) : | return ( 2 * x )
    assert (sizes["tokens"], sizes["lines"]) == (3 + 6 + 6, 6)


@pytest.mark.parametrize(
    "text", ["f'{a!r:>{width}} {b}'", "f'a'", "rf'{a}{{'", "f'''{a\n}\n'''", """f'{f"{a}"}'"""]
)
def test_an_f_string_is_one_token_in_every_python(text):
    assert SIZES["measure"](f"x = {text} + 1\n")["tokens"] == 5


def test_a_joined_line_has_the_tokens_of_two_and_more():
    joined = SIZES["measure"]("first, second = one(), other()\n")
    apart = SIZES["measure"]("first = one()\nsecond = other()\n")
    assert (joined["joined"], apart["joined"]) == (1, 0)
    assert joined["tokens"] >= apart["tokens"]


@pytest.mark.parametrize(
    "source",
    [
        "a, b = b, a",
        "a, b = b, a + b",
        "x[0], x[1] = x[1], x[0]",
        "(a, b), c = pair, a",
        "a, b = 0, 1",
        "a, b = pair",
        "a, *b = x, y, z",
        "a = x, y",
    ],
)
def test_what_cannot_be_written_apart_is_not_called_joined(source):
    assert SIZES["measure"](source)["joined"] == 0


@pytest.mark.parametrize("source", ["a, b = x, y", "a.x, a.y = 1, a.z", "a, b = b, 0"])
def test_what_means_the_same_line_by_line_is_called_joined(source):
    assert SIZES["measure"](source)["joined"] == 1


def test_exemptions_from_the_formatter_are_counted_in_comments_alone():
    source = "# fmt: off\nx = {\n}  # fmt: skip\ntext = '# fmt: skip'\n"
    assert SIZES["measure"](source)["exempt"] == 2


def test_a_large_file_in_git_is_told(tmp_path):
    for name in ("large.bin", "small.bin", "unknown.bin"):
        (tmp_path / name).write_bytes(bytes(SIZES["FILE_CAP"] + (name != "small.bin")))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "large.bin", "small.bin"], cwd=tmp_path, check=True)
    (told,) = SIZES["large_files"](tmp_path)
    assert told.startswith("large.bin has 600,001 bytes")


def found(**sizes: int) -> list[str]:
    return SIZES["faults"]({"workbook/optimizer": Counter(sizes)})


def test_whatever_is_above_its_cap_is_told():
    cap = SIZES["CAPS"]["workbook/optimizer"]
    assert found(tokens=cap, exempt=SIZES["EXEMPT_CAP"], joined=SIZES["JOINED_CAP"]) == []
    assert "1 above its cap" in found(tokens=cap + 1)[0]
    assert "exempt from the formatter" in found(exempt=SIZES["EXEMPT_CAP"] + 1)[0]
    assert "are joined" in found(joined=SIZES["JOINED_CAP"] + 1)[0]
    assert "the package has" in found(tokens=SIZES["PACKAGE_CAP"] + 1)[1]
    assert "no cap" in SIZES["faults"]({"workbook/attic": Counter(tokens=5)})[0]
