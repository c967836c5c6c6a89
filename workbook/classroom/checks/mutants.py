"""First-order mutants: a program with one small change that a machine made.

`engine` tries those of a reference where no mistake in a catalogue fits; the tests make those of
right attempts, to see how many a check refuses.
"""

import ast
import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

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
    for place, statement in enumerate(body if isinstance(body, list) else ()):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr):
            without = [*body[:place], ast.Pass(), *body[place + 1 :]]
            yield "a step is missing there", statement.end_lineno, {"body": without}


def _fields(node: ast.AST) -> Iterator[tuple[str, dict[str, Any]]]:
    """What differs, and the fields of the node that change."""
    operator = getattr(node, "op", None)
    if type(operator) in OPERATORS:
        yield "an operator or a sign differs there", dict(op=OPERATORS[type(operator)]())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "a sign differs there", dict(op=ast.UAdd())
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        first = OPERATORS[type(node.ops[0])]()
        yield "a comparison differs there", dict(ops=[first, *node.ops[1:]])
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "a condition differs there", dict(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for value in (node.value + 1, node.value - 1, 2 * node.value, node.value / 2):
            if value != node.value:
                yield "a number differs there", dict(value=type(node.value)(value))
    if isinstance(node, ast.Attribute) and node.attr in SWAPPED:
        yield "a function differs there", dict(attr=SWAPPED[node.attr])
    if isinstance(node, ast.Name) and node.id in SWAPPED:
        yield "a function differs there", dict(id=SWAPPED[node.id])
    if isinstance(node, ast.Call) and len(node.args) > 1:
        first, second, *rest = node.args
        yield "two arguments are swapped there", dict(args=[second, first, *rest])
    if isinstance(node, ast.Call) and node.keywords:
        yield "an argument is missing there", dict(keywords=node.keywords[1:])
    if isinstance(node, ast.If | ast.IfExp):
        for value in (True, False):
            yield "a condition differs there", dict(test=ast.Constant(value))
