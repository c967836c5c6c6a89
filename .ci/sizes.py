"""Count the lines of code of each room, and hold each room to its cap.

A line counts if it holds a token that is neither a comment nor part of a docstring: explaining
costs nothing. A room above its cap fails, and so does one that has fallen far below it: lower the
cap in the same commit, so that what was won is kept. A commit that raises a cap says what for.

Idea: tinygrad's sz.py, which holds a deep learning framework to a number of lines in its CI.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SLACK = 150  # lines below its cap at which a room's cap has to be lowered
CAPS = {
    "workbook/config, files": 424,
    "workbook/corpora": 972,
    "workbook/tokenization": 2_118,
    "workbook/transformer": 500,
    "workbook/optimizer": 449,
    "workbook/accounting": 850,
    "workbook/training": 1_321,
    "workbook/generation": 479,
    "workbook/experiments": 1_105,
    "workbook/bench": 137,
    "workbook/classroom/views": 1_780,
    "workbook/classroom/checks": 6_614,
    "workbook/classroom/study": 2_819,
    "workbook/classroom/mine": 1_696,
    "workbook/classroom/export": 999,
    "workbook/classroom/cli": 514,
    "workbook/classroom/jupyter": 16,
    "workbook/classroom/__init__": 0,
    "tests": 17_579,
}
FREE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(source: str) -> set[int]:
    """The numbers of the lines that docstrings take, of a module and all that it defines."""
    lines = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def lines_of_code(source: str) -> int:
    """How many lines hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in FREE:  # a string of several lines counts with all of them
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(source))


def room(path: Path) -> str:
    """The room that a file of the repository is in, by its path from the root."""
    top, *below = path.parts
    if top == "tests":
        return top
    if below[0] == "classroom":
        return "/".join((top, "classroom", path.stem if len(below) == 2 else below[1]))
    if len(below) > 1:
        return f"{top}/{below[0]}"
    return f"{top}/bench" if path.stem == "bench" else f"{top}/config, files"


def counted(root: Path) -> Counter[str]:
    """Lines of code by room, of the repository that lies in this folder."""
    sizes = Counter()
    for path in sorted([*root.glob("workbook/**/*.py"), *root.glob("tests/**/*.py")]):
        place = path.relative_to(root)
        if place.parts[:2] != ("tests", "benchmarks"):  # rivals, which nothing here runs
            sizes[room(place)] += lines_of_code(path.read_text("utf-8"))
    return sizes


def faults(sizes: Counter[str], caps: dict[str, int]) -> list[str]:
    """A sentence for each room that is above its cap, far below it, or has none."""
    found = []
    for name in sizes.keys() | caps.keys():
        lines, cap = sizes[name], caps.get(name)
        if cap is None:
            found.append(f"{name} has no cap: give it one in {Path(__file__).name}")
        elif lines > cap:
            found.append(
                f"{name} has {lines:,} lines of code, {lines - cap:,} above its cap: take something"
                " out, or raise the cap and say in the commit what for"
            )
        elif lines <= cap - SLACK:
            found.append(f"{name} has {lines:,} lines of code: lower its cap of {cap:,} to that")
    return sorted(found)


def main() -> int:
    """Print the table, then what is wrong with it; 1 if anything is."""
    sizes = counted(Path(__file__).parents[1])
    for name, lines in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"{name:<24} {lines:>7,} lines of code, cap {CAPS.get(name, 0):>7,}")
    package = sum(lines for name, lines in sizes.items() if name != "tests")
    print(f"{'workbook, all of it':<24} {package:>7,} lines of code")
    print(*faults(sizes, CAPS), sep="\n", end="")
    return 1 if faults(sizes, CAPS) else 0


if __name__ == "__main__":
    sys.exit(main())
