"""Count the tokens of code of each room, and hold each room, the whole, and each file to a cap.

Tokens, because a line can be joined with the next one and a token cannot: nothing is won by
density, and nothing is lost by a plain line. Comments, docstrings and layout are free. The caps are
in round thousands, so that a fix is free and a feature is not; a commit that raises one says what
for. Beside the tokens stand lines, tokens a line, and what makes code dense: places that are exempt
from the formatter, and assignments that join statements which have nothing to do with each other.
Too many of these fail as well.

Idea: tinygrad's sz.py, which holds a deep learning framework to a size in its CI.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE_CAP = 273_000  # of all rooms below workbook/ together
CAPS = {
    "workbook/config, files, lazy": 4_000,
    "workbook/corpora": 10_000,
    "workbook/tokenization": 24_000,
    "workbook/transformer": 6_000,
    "workbook/optimizer": 5_000,
    "workbook/accounting": 10_000,
    "workbook/training": 13_000,
    "workbook/generation": 5_000,
    "workbook/experiments": 14_000,
    "workbook/bench": 2_000,
    "workbook/classroom/problems": 4_000,
    "workbook/classroom/panels": 1_000,
    "workbook/classroom/checks": 92_000,
    "workbook/classroom/study": 24_000,
    "workbook/classroom/mine": 29_000,
    "workbook/classroom/views": 20_000,
    "workbook/classroom/export": 12_000,
    "workbook/classroom/cli": 6_000,
    "workbook/classroom/doctor": 1_000,
    "workbook/classroom/jupyter": 1_000,
    "workbook/classroom/__init__": 1_000,
    "tests": 228_000,
    "tests/benchmarks": 14_000,
    "docs and .ci": 4_000,
    "stranger.txt": 1_000,  # Python under another ending: a learner's model, to practise on
}
EXEMPT_CAP = 5  # `# fmt: skip` and `# fmt: off`
JOINED_CAP = 0  # `a, b = x, y`
FILE_CAP = 600_000  # bytes, of each file in git: what one notebook with its figures takes
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(tree: ast.Module) -> set[int]:
    """The numbers of the lines that docstrings take, of a module and all that it defines."""
    lines = set()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def is_joined(node: ast.AST) -> bool:
    """Whether this is `a, b = x, y`, which can be written in as many statements.

    A swap cannot, as a value is used after its name has got a new one; nor need literal constants.
    """
    if not isinstance(node, ast.Assign) or len(node.targets) > 1:
        return False
    left = node.targets[0]
    right = node.value
    if not isinstance(left, ast.Tuple) or not isinstance(right, ast.Tuple):
        return False
    if any(isinstance(part, ast.Starred) for part in (*left.elts, *right.elts)):
        return False
    if all(isinstance(part, ast.Constant) for part in right.elts):
        return False
    assigned = set()
    for target, value in zip(left.elts, right.elts, strict=True):
        if assigned & expressions_in(value):
            return False
        assigned |= {ast.unparse(part) for part in targets_of(target)}
    return True


def targets_of(target: ast.expr) -> list[ast.expr]:
    """The names, attributes and items that an assignment to this target sets."""
    if isinstance(target, ast.Tuple | ast.List):
        return [one for part in target.elts for one in targets_of(part)]
    return [target]


def expressions_in(tree: ast.expr) -> set[str]:
    """What an expression names, as source: variables, attributes and items, but not constants."""
    named = (ast.Name, ast.Attribute, ast.Subscript)
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, named)}


def measure(source: str) -> Counter[str]:
    """Tokens and lines of code, exemptions from the formatter, and joined assignments."""
    tree = ast.parse(source)
    free = docstring_lines(tree)
    sizes = Counter()
    lines = set()
    depth = 0  # of f-strings, which are one token each: from Python 3.12 on, they come in parts
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            sizes["exempt"] += "fmt: skip" in token.string or "fmt: off" in token.string
        if token.type not in LAYOUT and token.start[0] not in free:
            sizes["tokens"] += depth == 0
            lines.update(range(token.start[0], token.end[0] + 1))
        kind = tokenize.tok_name[token.type]
        depth += kind.endswith("STRING_START") - kind.endswith("STRING_END")
    sizes["lines"] = len(lines)
    sizes["joined"] = sum(is_joined(node) for node in ast.walk(tree))
    return sizes


def room(path: Path) -> str:
    """The room that a file of the repository is in, by its path from the root."""
    top, *below = path.parts
    if path.suffix == ".txt":
        return path.name
    if top == "tests":
        return "tests/benchmarks" if below[0] == "benchmarks" else top
    if top != "workbook":
        return "docs and .ci"
    if below[0] == "classroom":
        return "/".join((top, "classroom", path.stem if len(below) == 2 else below[1]))
    if len(below) > 1:
        return f"{top}/{below[0]}"
    return f"{top}/bench" if path.stem == "bench" else f"{top}/config, files, lazy"


def measured(root: Path) -> dict[str, Counter[str]]:
    """The sizes of each room, of the repository that lies in this folder."""
    rooms: dict[str, Counter[str]] = {}
    files = [
        path for top in ("workbook", "tests", "docs", ".ci") for path in root.glob(f"{top}/**/*.py")
    ]
    files += root.glob("workbook/**/stranger.txt")
    for path in files:
        name = room(path.relative_to(root))
        rooms.setdefault(name, Counter()).update(measure(path.read_text("utf-8")))
    return rooms


def package_of(rooms: dict[str, Counter[str]]) -> Counter[str]:
    """The sizes of all rooms of the package together."""
    inside = (sizes for name, sizes in rooms.items() if name.startswith("workbook/"))
    return sum(inside, Counter())


def faults(rooms: dict[str, Counter[str]]) -> list[str]:
    """A sentence for each cap that something is above, and for each room that has none."""
    found = []
    for name, sizes in sorted(rooms.items()):
        if name not in CAPS:
            found.append(f"{name} has no cap: give it one in {Path(__file__).name}")
        else:
            found += above(name, sizes["tokens"], CAPS[name])
    found += above("the package", package_of(rooms)["tokens"], PACKAGE_CAP)
    everything = sum(rooms.values(), Counter())
    if everything["exempt"] > EXEMPT_CAP:
        found.append(
            f"{everything['exempt']} places are exempt from the formatter, and {EXEMPT_CAP} may be:"
            " let it decide how they look"
        )
    if everything["joined"] > JOINED_CAP:
        found.append(
            f"{everything['joined']} assignments are joined, as in `a, b = x, y`, and {JOINED_CAP}"
            " may be: give each a line of its own"
        )
    return found


def large_files(root: Path) -> list[str]:
    """A sentence for each file in git that is larger than one may be."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    return [
        f"{path.relative_to(root)} has {path.stat().st_size:,} bytes, and {FILE_CAP:,} may be"
        for path in paths
        if path.is_file() and path.stat().st_size > FILE_CAP
    ]


def above(name: str, tokens: int, cap: int) -> list[str]:
    """A sentence if there are more tokens than the cap allows."""
    if tokens <= cap:
        return []
    return [
        f"{name} has {tokens:,} tokens, {tokens - cap:,} above its cap: take something out, or"
        " raise the cap and say in the commit what for"
    ]


def main() -> int:
    """Print the table, then what is wrong with it; 1 if anything is."""
    root = Path(__file__).parents[1]
    rooms = measured(root)
    rows = sorted(rooms.items(), key=lambda item: -item[1]["tokens"])
    headings = ("tokens", "cap", "lines", "a line", "exempt", "joined")
    print(f"{'room':<24}", *(f"{heading:>8}" for heading in headings))
    for name, sizes in [*rows, ("workbook, all of it", package_of(rooms))]:
        cap = CAPS.get(name, PACKAGE_CAP)
        dense = sizes["tokens"] / max(1, sizes["lines"])
        counts = (f"{sizes['tokens']:,}", f"{cap:,}", f"{sizes['lines']:,}", f"{dense:.1f}")
        values = (*counts, sizes["exempt"], sizes["joined"])
        print(f"{name:<24}", *(f"{value:>8}" for value in values))
    found = faults(rooms) + large_files(root)
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
