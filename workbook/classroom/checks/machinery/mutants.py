"""First-order mutants: a program with one small change that a machine made.

`engine` tries those of a reference where no mistake in a catalogue fits; the tests make those of
right attempts, to see how many a check refuses. `mine.hardening` plants one into a learner's own
code: those are made in the source itself, so that all other lines stay as they were written.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any, NamedTuple

OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# What nobody writes, such as `softmax(x, -0)` or `p -= p`, and what gives itself away.
ODD = re.compile(r"-0\b(?!\.)|^\s*(\S+) \S?= \1$", re.M)
SWAPPED = {"sin": "cos", "cos": "sin", "max": "min", "min": "max", "sum": "mean", "mean": "sum"}


def mutated(tree: ast.Module) -> Iterator[tuple[str, int, ast.Module]]:
    """Each program that differs by one small change: what differs, in which line, its tree."""
    for number, node in enumerate(ast.walk(tree)):
        for what, line, fields in _changes(node):
            mutant = copy.deepcopy(tree)
            target = next(islice(ast.walk(mutant), number, None))  # the copy of this node
            for name, value in fields.items():
                setattr(target, name, value)
            yield what, line, ast.fix_missing_locations(mutant)


def _changes(node: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The small changes of one node: what a learner is told, the line, the fields that change."""
    for what, fields in _fields(node):
        yield what, node.end_lineno, fields
    body = getattr(node, "body", None)
    if not isinstance(body, list):  # of a lambda, it is an expression
        return
    for place, statement in enumerate(body):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            without = [*body[:place], ast.Pass(), *body[place + 1 :]]
            yield "a step is missing there", statement.end_lineno, {"body": without}


def _fields(node: ast.AST) -> Iterator[tuple[str, dict[str, Any]]]:
    """What differs, and the fields of the node that change."""
    match node:
        case ast.UnaryOp(op=ast.USub()):
            yield "a sign differs there", {"op": ast.UAdd()}
        case ast.BinOp(op=op) | ast.BoolOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield "an operator or a sign differs there", {"op": OPERATORS[type(op)]()}
        case ast.Compare(ops=[first, *rest]) if type(first) in OPERATORS:
            yield "a comparison differs there", {"ops": [OPERATORS[type(first)](), *rest]}
        case ast.Constant(value=bool(value)):
            yield "a condition differs there", {"value": not value}
        case ast.Constant(value=int(value) | float(value)):
            for other in (value + 1, value - 1, 2 * value, value / 2):
                if other != value:
                    yield "a number differs there", {"value": type(value)(other)}
        case ast.Attribute(attr=name) if name in SWAPPED:
            yield "a function differs there", {"attr": SWAPPED[name]}
        case ast.Name(id=name) if name in SWAPPED:
            yield "a function differs there", {"id": SWAPPED[name]}
        case ast.Call(args=args, keywords=keywords):
            if len(args) > 1:
                yield "two arguments are swapped there", {"args": [args[1], args[0], *args[2:]]}
            if keywords:
                yield "an argument is missing there", {"keywords": keywords[1:]}
        case ast.If() | ast.IfExp():
            for value in (True, False):
                yield "a condition differs there", {"test": ast.Constant(value)}


class Planted(NamedTuple):
    """A source with one mistake in it, of the kinds that people make."""

    what: str  # what differs
    first: int  # the first and the last line where it can be seen
    last: int
    source: str


def planted(source: str, chance: Random) -> Iterator[Planted]:
    """Each source that differs by one small change, in a random order that mixes the kinds.

    Beside the changes of `mutated` there are those after which nothing looks odd: a factor, a call
    or a step left out, operands the other way round, another variable or attribute.
    """
    tree = ast.parse(source)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    modules = {alias.asname or alias.name for node in imports for alias in node.names}
    # Python 3.11 does not know where the parts of an f-string are.
    texts = {part for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for part in ast.walk(n)}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and node not in texts]
    changes: list[tuple] = [(node, *slip) for node in nodes for slip in _slips(node, modules)]
    changes += [*_mixed_up(tree), *_steps(tree)]
    many = Counter(what for _, what, _ in changes)
    for node, what, new in sorted(changes, key=lambda change: chance.random() * many[change[1]]):
        mutant = _rewritten(source, node, what, new)
        if mutant and len(ODD.findall(mutant.source)) <= len(ODD.findall(source)):
            yield mutant


def _slips(node: Any, modules: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """What differs, and the expression that people write by mistake in place of this one."""
    for what, fields in _fields(node):
        if not isinstance(node, ast.IfExp | ast.UnaryOp):  # `if True` and `+x` would look odd
            yield what, _but(node, **fields)
    if isinstance(node, ast.BinOp):
        yield "a term or a factor is missing there", node.left
        if isinstance(node.op, ast.Add | ast.Mult):
            yield "a term or a factor is missing there", node.right
        else:
            yield "two operands are swapped there", _but(node, left=node.right, right=node.left)
    if isinstance(node, ast.UnaryOp):
        yield "a sign or a `not` is missing there", node.operand
    if isinstance(node, ast.Call):
        method = node.func.value if isinstance(node.func, ast.Attribute) else None
        if method is not None and not (isinstance(method, ast.Name) and method.id in modules):
            yield "a call is missing there", method  # such as `.float()` or `.contiguous()`
        elif node.args:
            yield "a call is missing there", node.args[0]


def _mixed_up(tree: ast.Module) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """A name, what differs, and the name that comes before or after it in its function or class."""
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.ClassDef):
            # In a function its variables, in a class the attributes of `self`.
            is_class = isinstance(scope, ast.ClassDef)
            kind, key = (ast.Attribute, "attr") if is_class else (ast.Name, "id")
            known = [node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)]
            known = [] if is_class else [name for name in known if name != "self"]
            uses = [node for node in ast.walk(scope) if isinstance(node, kind)]
            known += [getattr(node, key) for node in uses if isinstance(node.ctx, ast.Store)]
            names = list(dict.fromkeys(known))
            for node in uses:
                if isinstance(node.ctx, ast.Load) and getattr(node, key) in names:
                    place = names.index(getattr(node, key))
                    for other in (*names[max(0, place - 1) : place], *names[place + 1 : place + 2]):
                        yield node, "another name belongs there", _but(node, **{key: other})


def _but(node: ast.expr, **fields: Any) -> ast.expr:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def _rewritten(source: str, node: Any, what: str, new: ast.expr | None) -> Planted | None:
    """The source with an expression in the place of another, or without a statement.

    None if it cannot be.
    """
    lines = source.encode().splitlines(keepends=True)  # columns are counted in bytes
    start = node.lineno - 1
    end = node.end_lineno - 1
    before = b"".join([*lines[:start], lines[start][: node.col_offset]]).decode()
    after = b"".join([lines[end][node.end_col_offset :], *lines[end + 1 :]]).decode()
    text = ast.unparse(new) if new else ""
    if source.count('"') > source.count("'"):
        text = text.replace("'", '"')  # as the learner writes strings
    with suppress(SyntaxError):
        if new is None:  # the gap is seen in the lines before and after it
            gone = b"".join([*lines[:start], *lines[end + 1 :]]).decode()
            ast.parse(gone)
            return Planted(what, start, start + 1, gone)
        wanted = ast.dump(ast.parse(f"{before}({text}){after}"))
        ways = [f"{before}{text}{after}", f"{before}({text}){after}"]
        if before.endswith("(") and after.startswith(")"):  # these may not be needed any more
            ways.insert(0, before[:-1] + text + after[1:])
        for changed in ways:
            with suppress(SyntaxError):
                if ast.dump(ast.parse(changed)) == wanted:
                    return Planted(what, node.lineno, node.lineno + text.count("\n"), changed)
    return None


def _steps(tree: ast.Module) -> Iterator[tuple[ast.stmt, str, None]]:
    """The statements that can be left out, and what differs then."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.FunctionDef | ast.For | ast.If) or len(scope.body) == 1:
            continue
        for step in scope.body:
            is_text = isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
            if isinstance(step, ast.Assign | ast.AugAssign | ast.Expr | ast.If) and not is_text:
                yield step, "a step is missing there", None
