"""A learner's parts as plain code: the functions of the course's `tests/adapters.py`.

Each is written down by watching the calls that a check makes: with which arguments a class is made
and called, and which of the course's weights goes where. All values are marked, so that they tell
what the adapter calls them. What was written is run on every case of the check beside the
reference, and counts only if it agrees; so nobody gets an adapter that the course's tests refuse.
"""

import ast
import importlib
import inspect
import math
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.checks import calling, modules, transformer, verdicts
from workbook.checks.calling import bind, call_part, meaning, parameters_of
from workbook.checks.checkpointing import SmallRun
from workbook.checks.guard import limited
from workbook.checks.modules import Learner, own_parameters, place
from workbook.checks.tensors import Case, alike, copied
from workbook.checks.transformer import Part, ReadyRope, call_function, is_plain
from workbook.checks.verdicts import NotAttempted, Wrong

PACKAGE = "cs336_basics"
NO_RULE = "The names of its parameters follow no rule."
WIDTH, INDENTED = 100, {"initial_indent": "    ", "subsequent_indent": "    "}
SECONDS = 60  # for an adapter on one case
SILU = re.compile("silu|swish", re.I)
BLOCK_NUMBER = re.compile(r"\w*(?:layer|block)_?(?=\d+$)", re.I)


# Numbers that tell what they are called.


class _Marked:
    """A number that knows its name in the adapter."""

    code: str

    def __floordiv__(self, other: Any) -> Any:
        right = other.code if isinstance(other, _Marked) else repr(other)
        return marked(_plain(self) // _plain(other), f"{self.code} // {right}")


class _Int(_Marked, int): ...


class _Float(_Marked, float): ...


def marked(value: Any, code: str) -> Any:
    """A number with a name; what is no number stays as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    made = (_Int if isinstance(value, int) else _Float)(value)
    made.code = code
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, _Marked):
        return int(value) if isinstance(value, int) else float(value)
    return value


# Calls, and the code of them.


class Call(NamedTuple):
    """A call of the learner's code."""

    function: Any
    args: tuple
    kwargs: dict[str, Any]
    result: Any


class _Settings(calling._Config):
    """Settings that note under which names they are asked."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self._asked: dict[str, Any] = {}
        self._by_key = False

    def __getattr__(self, name: str) -> Any:
        value = self._asked[name] = super().__getattr__(name)
        return _plain(value)

    def __getitem__(self, name: str) -> Any:
        self._by_key = True
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        self._by_key = True
        return super().get(name, default)


@contextmanager
def watched() -> Iterator[list[Call]]:
    """Note all calls of the learner's code that a check makes, with plain numbers."""
    calls: list[Call] = []

    def call(function: Any, *args: Any, seconds: float = 5.0, given: Any = None, **kwargs) -> Any:
        plain = {name: _plain(value) for name, value in kwargs.items()}
        # Before the call, which may change a tensor in place; others are told by what they are.
        noted = tuple(map(copied, args)), {name: copied(each) for name, each in kwargs.items()}
        options = {"seconds": seconds, "given": given}
        result = verdicts.call(function, *map(_plain, args), **options, **plain)
        calls.append(Call(function, *noted, result))
        return result

    before = calling.call, modules.call, calling._Config
    calling.call = modules.call = call
    calling._Config = _Settings
    try:
        yield calls
    finally:
        calling.call, modules.call, calling._Config = before


@dataclass
class Writer:
    """Code for what was called, and the imports that it needs."""

    parts: "Parts"
    taken: frozenset[str]  # names that the adapter gives to something else
    length: str = ""  # code for the number of positions
    known: list[tuple[Any, str]] = field(default_factory=list)  # what the adapter calls a value
    calls: list[Call] = field(default_factory=list)
    imports: dict[str, dict[str, None]] = field(default_factory=dict)  # names by module

    def code(self, value: Any) -> str:
        """Write an expression for a value. Raises: Wrong where nothing tells what it is."""
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, _Marked):
            return value.code
        if (known := next((code for each, code in self.known if each is value), None)) is not None:
            return known
        if isinstance(value, Tensor):
            return self._tensor(value)
        for each in self.calls:
            if each.result is value:
                return self.call(each)
        if isinstance(value, _Settings):
            return self._settings(value)
        if isinstance(value, ReadyRope):
            raise Wrong("It is handed a RoPE, and no class of yours for that is kept.")
        if type(value) in (int, float, str):
            return repr(value)
        if imported := self._imported(value):
            return imported
        if isinstance(value, MethodType):
            owner = self.code(value.__self__)
            return owner if value.__name__ in verdicts.CALLED else f"{owner}.{value.__name__}"
        raise Wrong(f"Nothing tells how to write {verdicts.kind_of(value)}.")

    def call(self, call: Call) -> str:
        """Write a call; a single argument by its place, others by their names, in their order."""
        made = inspect.isclass(call.function)
        function = call.function if made else getattr(call.function, "forward", call.function)
        asked = [parameter.name for parameter in parameters_of(function)]
        arguments = [self.code(value) for value in call.args]
        names = sorted(
            call.kwargs, key=lambda name: (name not in asked, [*asked, name].index(name))
        )
        named = {name: self._argument(name, call.kwargs[name]) for name in names}
        if not arguments and names == asked[:1]:
            arguments, named = list(named.values()), {}
        arguments += [f"{name}={code}" for name, code in named.items()]
        return f"{self.code(call.function)}({', '.join(arguments)})"

    def _argument(self, name: str, value: Any) -> str:
        if type(value) is int and self.length and meaning(name, ["max_seq_len"]):
            return self.length  # where the adapter is told no longest sequence
        return self.code(value)

    def _settings(self, value: _Settings) -> str:
        items = {name: self.code(each) for name, each in value._asked.items()}
        if value._by_key:
            return "{" + ", ".join(f'"{name}": {code}' for name, code in items.items()) + "}"
        self._import("types", "SimpleNamespace")
        return f"SimpleNamespace({', '.join(f'{name}={code}' for name, code in items.items())})"

    def _tensor(self, value: Tensor) -> str:
        """An input, by its numbers: a check hands out copies; or what a check makes itself."""
        tensors = [(each, code) for each, code in self.known if isinstance(each, Tensor)]
        n = self.length
        if value.dtype == torch.bool and value.ndim == 2:
            seen = torch.ones(value.shape, dtype=torch.bool).tril()
            tensors.append((seen, f"torch.ones({n}, {n}, dtype=torch.bool).tril()"))
        tensors.append((torch.arange(value.shape[-1]), f"torch.arange({n})"))
        for each, code in tensors:
            if torch.equal(each, value):
                return code
            if value.shape == (1, *each.shape) and torch.equal(each, value[0]):
                return f"{code}.unsqueeze(0)"
        raise Wrong("It is handed a tensor that the adapter does not have.")

    def _imported(self, value: Any) -> str | None:
        """The name of an object of the learner's modules, which is imported."""
        path = getattr(value, "__qualname__", "").split(".")  # of a static method
        for module, home in self.parts.homes.items():
            for name, each in vars(home).items():
                inside = path[1:] if inspect.isclass(each) and name == path[0] else []
                if each is value or (inside and _attribute(each, inside) is value):
                    own = f"{name}_" if name in self.taken else name
                    renamed = "" if own == name else f" as {own}"
                    self._import(module, f"{name}{renamed}")
                    return ".".join([own, *(inside if each is not value else [])])
        return None

    def _import(self, module: str, name: str) -> None:
        self.imports.setdefault(module, {})[name] = None

    @property
    def import_lines(self) -> list[str]:
        """The imports that stand first in the adapter."""
        return [f"from {home} import {', '.join(names)}" for home, names in self.imports.items()]


def _attribute(value: Any, path: list[str]) -> Any:
    for name in path:
        value = getattr(value, name, None)
    return value


# Weights.


def filling(learner: Learner, case: Case, names: Mapping[str, str]) -> list[str]:
    """Lines that fill `module` with the course's weights, under the learner's names.

    Args:
        learner: has made a module for the case, and was right with it.
        names: what the adapter calls each weight; one that is not there is in its `weights`.

    Raises: Wrong where the names follow no rule.
    """
    begin, marks, namespace = 1, {}, {"torch": torch, **case.arguments, "weights": {}}
    for name, weight in case.weights.items():  # no two numbers are equal, so each tells its weight
        numbers = torch.arange(begin, begin + weight.numel(), dtype=torch.float32)
        marks[name] = numbers.reshape(weight.shape)
        begin += weight.numel()
        (namespace if name in names else namespace["weights"])[names.get(name, name)] = marks[name]
    layout = learner.ways(replace(case, weights=marks))[learner.form[1]].weights
    rules: dict[tuple[str, str], set] = {}  # by the learner's name and the code of what it holds
    for own in own_parameters(learner.module):
        held = layout[own]
        sources = [name for name, mark in marks.items() if torch.isin(held, mark).any()]
        layer = place(sources[0]).layer
        codes = [names.get(name) or _item(name) for name in sources]
        code, head = _expression(codes, held, {**namespace, "layer": layer})
        rules.setdefault((_rule(own, layer, head), code), set()).add((layer, head))
    if sum(map(len, rules.values())) != len(layout):
        raise Wrong(NO_RULE)
    by_loops: dict[tuple[str, ...], dict[str, str]] = {}
    for (name, code), places in rules.items():
        by_loops.setdefault(_loops(places, case), {})[name] = code
    is_whole = set(learner.module.state_dict()) == set(layout)  # no buffers beside
    strict = "" if is_whole else ", strict=False"
    if all(code == _item(name) for name, code in rules):
        return [f"module.load_state_dict(weights{strict})"]
    if by_loops.keys() == {()}:
        return _dict("module.load_state_dict(", by_loops[()], f"{strict})")
    loop = {each: f"for {each} in range(num_{each}s):" for each in ("layer", "head")}
    lines = _dict("state = ", by_loops.pop((), {}))
    for variables, items in sorted(by_loops.items()):
        inner = _dict("state |= ", items)
        for variable in reversed(variables):
            inner = [loop[variable], *_indented(inner)]
        lines += inner
    return [*lines, f"module.load_state_dict(state{strict})"]


def _item(name: str) -> str:
    """The code of a weight in the dict of the adapter."""
    return f"weights[{_string(re.sub(r'^layers[.][0-9]+[.]', 'layers.{layer}.', name))}]"


def _string(name: str) -> str:
    return f'f"{name}"' if "{" in name else f'"{name}"'


def _rule(own: str, layer: int | None, head: int | None) -> str:
    """A learner's name with `{layer}` and `{head}` in the places of their numbers."""
    parts = own.split(".")
    for number, variable in ((layer, "layer"), (head, "head")):
        for i, part in enumerate(parts):
            before = BLOCK_NUMBER.match(part)
            before = before.group() if before else ""
            if number is not None and part == f"{before}{number}":
                parts[i] = f"{before}{{{variable}}}"
                break
    return ".".join(parts)


def _loops(places: set, case: Case) -> tuple[str, ...]:
    """The variables of a rule. Raises: Wrong where it does not hold for all their values."""
    layers, heads = ({place[i] for place in places} for i in (0, 1))
    variables = tuple(v for v, of in (("layer", layers), ("head", heads)) if of != {None})
    numbers = [case.arguments[f"num_{variable}s"] for variable in variables]
    if len(places) != math.prod(numbers):
        raise Wrong(NO_RULE)
    return variables


def _expression(codes: list[str], held: Tensor, namespace: dict) -> tuple[str, int | None]:
    """Find code that makes what a parameter holds of the course's weights, and which head it is."""
    heads = namespace.get("num_heads", 0)
    for code in _expressions(codes):
        if "num_heads" in code and not heads:  # the adapter has no such name
            continue
        for head in range(heads) if "[head]" in code else (None,):
            try:
                made = eval(code, {**namespace, "head": head})
            except (RuntimeError, IndexError):  # sizes that do not fit
                continue
            if torch.equal(made, held):
                return code, head
    raise Wrong("Nothing tells how a parameter is made of the course's weights.")


def _expressions(codes: list[str]) -> Iterator[str]:
    """What a parameter may be: weights, turned, cut by heads, put together; simple ones first."""
    for turned in ("", ".T"):
        for order in permutations(f"{code}{turned}" for code in codes):
            if len(order) == 1:
                yield order[0]
                for axis in (0, 1):
                    yield f"{order[0]}.chunk(num_heads{_and(axis)})[head]"
                    for turn in permutations(range(3)):
                        permuted = "" if turn == (0, 1, 2) else f".permute{turn}"
                        yield f"{order[0]}.unflatten({axis}, (num_heads, -1)){permuted}"
                continue
            listed = ", ".join(order)
            for axis in (0, 1):
                cut = f"w.chunk(num_heads{_and(axis)})[head] for w in ({listed})"
                by_head = f"w.unflatten({axis}, (num_heads, -1)) for w in ({listed})"
                yield f"torch.cat([{listed}]{_and(axis)})"
                yield f"torch.cat([{cut}]{_and(axis)})"
                yield f"torch.stack([{by_head}], {axis + 1}).flatten({axis}, {axis + 2})"


def _and(axis: int) -> str:
    return f", {axis}" if axis else ""


def _dict(before: str, items: Mapping[str, str], after: str = "") -> list[str]:
    pairs = [_pair(_string(name), code) for name, code in items.items()]
    if len(pairs) < 2 and all(len(pair) == 1 for pair in pairs):
        return [f"{before}{{{''.join(pair[0] for pair in pairs)}}}{after}"]
    for pair in pairs:
        pair[-1] += ","
    return [f"{before}{{", *_indented([line for pair in pairs for line in pair]), f"}}{after}"]


def _pair(name: str, code: str) -> list[str]:
    """An item of a dict; where it is too long, the list in it has a line for each of its items."""
    line = f"{name}: {code}"
    before, _, rest = line.partition("([")
    if len(line) <= WIDTH - 16 or not rest:
        return [line]
    inner, _, after = rest.rpartition("]")
    made, each_of, listed = inner.partition(" for w in ")
    items = [made, f"for w in {listed}"] if each_of else [f"{i}," for i in inner.split(", ")]
    return [f"{before}([", *_indented(items), f"]{after}"]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


# The learner's parts.


class Parts:
    """A learner's parts: modules of a package, one for each problem, imported when asked for."""

    def __init__(self, problems: Collection[str], package: str = PACKAGE):
        self.problems, self.package = problems, package
        self.homes: dict[str, ModuleType] = {}  # by the name that imports them

    def of(self, problem: str) -> tuple:
        """The objects that were handed in for a problem. Raises: Wrong, NotAttempted."""
        if problem not in self.problems:
            raise NotAttempted
        name = f"{self.package}.{problem}"
        try:
            home = self.homes[name] = limited(SECONDS, lambda: importlib.import_module(name))
        except (Exception, SystemExit) as error:
            raise Wrong(f"It does not import by itself: {type(error).__name__}: {error}") from error
        asked = getattr(home, "__all__", ())
        if not asked or any(not hasattr(home, each) for each in asked):
            raise Wrong("Its file does not say what was handed in.")
        return tuple(getattr(home, each) for each in asked)

    def silus(self) -> Iterator[Any]:
        """The learner's own functions or classes of that name; those of the SwiGLU first."""
        for problem in dict.fromkeys(["positionwise_feedforward", *self.problems]):
            with suppress(Wrong, NotAttempted):
                self.of(problem)
        for home in self.homes.values():
            own = [each for each in vars(home).values() if _module_of(each) == home.__name__]
            methods = [
                getattr(kind, name)
                for kind in own
                if inspect.isclass(kind)
                for name, each in vars(kind).items()
                if isinstance(each, staticmethod)
            ]
            for each in (*own, *methods):
                works = verdicts.work_of(each) if inspect.isclass(each) else callable(each)
                if SILU.fullmatch(getattr(each, "__name__", "").strip("_")) and works:
                    yield each


def _module_of(value: Any) -> str | None:
    return getattr(value, "__module__", None)


# The adapters.


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """One function of the course's `tests/adapters.py`."""

    parameters: str
    problem: str  # "" where no problem asks for it
    write: Callable[[Writer, "Adapter", tuple], list[str]]  # the lines of its body
    names: Mapping[str, str]  # its parameters by the handout's names
    part: Part | None = None  # of tensors: the exercise of its problem
    made: tuple[str, ...] = ()  # with what a class is made, by the handout's names
    length: str = ""  # code for the number of positions

    @property
    def cases(self) -> list[Case]:
        """The cases of the check that the adapter can run, none of them a corner."""
        cases = [self.part.gradients, *self.part.cases] if self.part else []
        return [
            case
            for case in cases
            if {*case.arguments} == {*self.made}
            and case.dtype == torch.float32
            and not case.seldom
            and not (case.inputs.keys() - self.names.keys())
        ]


def written(name: str, parts: Parts) -> tuple[str, str]:
    """Write an adapter that calls the learner's part; return it and what is to be said of it.

    Raises: Wrong with the reason why there is none, NotAttempted where the part is not there.
    """
    adapter = ADAPTERS[name]
    objects = parts.of(adapter.problem) if adapter.problem else ()
    inputs = re.findall(r"\w+(?=[,=]|$)", adapter.parameters)
    writer = Writer(parts, frozenset([*inputs, "torch", "module", "state"]), adapter.length)
    lines = adapter.write(writer, adapter, objects)
    tried = [
        _function(name, [*writer.import_lines, "", *prelude, *lines])
        for prelude in _preludes(adapter, lines)
    ]
    if not adapter.part:
        return tried[0], ""
    agreeing = [[_agrees(name, text, case) for case in adapter.cases] for text in tried]
    right, text = max(zip(agreeing, tried, strict=True), key=lambda pair: sum(pair[0]))
    if not any(right):
        raise Wrong("No way to call it gave the expected results.")
    missed = right.count(False)
    return text, f"{missed} of {len(right)} results are not the expected ones" if missed else ""


def _function(name: str, lines: list[str]) -> str:
    body = "\n".join(_indented([part for line in lines for part in _wrapped(line)]))
    return f"{_head(name)}\n{body.strip(chr(10))}\n"


def _wrapped(line: str) -> list[str]:
    """A line, or where it is a call that is too long, a line for each argument."""
    code = line.lstrip()
    if len(line) <= WIDTH - 8 or code[-1] != ")":
        return [line]
    try:
        call = getattr(ast.parse(code).body[0], "value", None)
    except SyntaxError:  # a piece of a larger expression
        return [line]
    if not isinstance(call, ast.Call):
        return [line]
    lines = [f"{code[: call.func.end_col_offset]}("]
    for each in (*call.args, *call.keywords):
        # An argument with a name reads like an assignment, so it can be wrapped like one.
        lines += _indented(_wrapped(ast.get_source_segment(code, each)))
        lines[-1] += ","
    return [line[: len(line) - len(code)] + each for each in [*lines, ")"]]


def _head(name: str) -> str:
    """The first line of an adapter, or lines where one is too long."""
    parameters = ADAPTERS[name].parameters
    line = f"def {name}({parameters}):"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"def {name}(", *textwrap.wrap(parameters, WIDTH - 4, **INDENTED), "):"])


def _preludes(adapter: Adapter, lines: list[str]) -> list[list[str]]:
    """Ways to bring positions, which the course gives as (seq,), (1, seq) or None, into one form.

    Which of them a class takes is tried.
    """
    if "token_positions" not in " ".join(lines):
        return [[]]
    default = []
    if "token_positions=None" in adapter.parameters:
        default = ["if token_positions is None:", f"    token_positions = torch.arange({X_LENGTH})"]
    return [default, [*default, SQUEEZED], [*default, ROWS]]


def _agrees(name: str, text: str, case: Case) -> bool:
    """Whether an adapter gives what the reference gives, however positions are handed in."""
    adapter = ADAPTERS[name]
    values = {
        adapter.names[each]: value for each, value in {**case.arguments, **case.inputs}.items()
    }
    for each, weight in case.weights.items():
        where = values if each in adapter.names else values.setdefault("weights", {})
        where[adapter.names.get(each, each)] = weight
    expected, tried = adapter.part.expected(case), [values]
    positions, takes_positions = values.get("token_positions"), text.count("token_positions") > 1
    if isinstance(positions, Tensor) and positions.ndim == 1:
        are_counted = positions.tolist() == [*range(len(positions))]
        if not are_counted and not takes_positions:
            return True  # it takes none, so it is not asked
        tried.append({**values, "token_positions": positions.unsqueeze(0)})
        if are_counted and "token_positions=None" in adapter.parameters:
            tried.append({**values, "token_positions": None})
    namespace: dict[str, Any] = {"torch": torch}
    exec(text, namespace)

    def is_right(values: dict) -> bool:
        given = {each: copied(value) for each, value in values.items()}
        result = limited(SECONDS, lambda: namespace[name](**given))
        return isinstance(result, Tensor) and alike(result, expected)

    try:
        return all(map(is_right, tried))
    except Exception:
        return False


def of_tensors(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for a layer, or for a function of tensors."""
    (attempt,) = objects
    case = max(adapter.cases, key=lambda case: len(case.inputs))  # with a mask or positions
    if not case.weights and (not case.arguments or is_plain(attempt)):
        with watched() as writer.calls:
            call_function(attempt, named_case(case, writer, adapter))
        return [f"return {_result(writer)}"]
    learner = Learner(attempt, adapter.part, ReadyRope)
    if learner.turns() and {"d_model", "num_heads"} == {*adapter.made}:
        case = _without_turning(case, learner, writer)
    _make_right(learner, case, writer.parts)
    named = named_case(case, writer, adapter)
    with watched() as writer.calls:
        module = learner.module = learner.make(named)
        learner.run(named)
    made = writer.code(module)  # after the call: settings may be asked for there too
    lines = []
    if case.weights:
        lines = [f"module = {made}", *filling(learner, case, adapter.names)]
    writer.known.append((module, "module" if lines else made))
    return [*lines, f"return {_result(writer)}"]


def _make_right(learner: Learner, case: Case, parts: Parts) -> None:
    """Let a learner find the way in which its class is right in a case. Raises: Wrong.

    A class that is handed a RoPE gets the learner's own: the one that was checked, or one beside.
    """
    ropes: list[Any] = []
    if learner.takes("rope"):
        with suppress(Wrong, NotAttempted):
            ropes = [each for each in parts.of("rope") if inspect.isclass(each)]
        if learner.takes_own_rope():
            ropes.append(learner.own_rope)
    failure = Wrong("It does not give the expected results.")
    for learner.own_rope in ropes or [None]:
        try:
            learner(case)  # now it is known how weights are stored, which leaves fewer ways
            if alike(learner(case), learner.exercise.expected(case)):
                return
        except Wrong as wrong:
            failure = wrong
    raise failure


def _without_turning(case: Case, learner: Learner, writer: Writer) -> Case:
    """A case for a class that always has RoPE: at equal positions it changes no score."""
    if not learner.takes_positions():
        raise Wrong("It cannot do without RoPE.")
    zeros = torch.zeros(case.inputs["x"].shape[-2], dtype=torch.int64)
    writer.known.append((zeros, f"torch.zeros({writer.length}, dtype=torch.int64)"))
    arguments = {**case.arguments, "max_seq_len": 16, "theta": 10_000.0}
    return replace(case, arguments=arguments, inputs={**case.inputs, "token_positions": zeros})


def named_case(case: Case, writer: Writer, adapter: Adapter) -> Case:
    """A case whose numbers know what the adapter calls them, as the writer knows its tensors."""
    names = adapter.names
    writer.known += [
        (value, names[name])
        for name, value in case.inputs.items()
        if isinstance(value, Tensor) and name in names
    ]
    arguments, inputs = (
        {name: marked(v, names[name]) if name in names else v for name, v in values.items()}
        for values in (case.arguments, case.inputs)
    )
    return replace(case, arguments=arguments, inputs=inputs)


def _result(writer: Writer) -> str:
    """The code of the last call; of a tuple of tensors, of which the first is the result."""
    last = writer.calls[-1]
    return writer.call(last) + ("[0]" if isinstance(last.result, tuple) else "")


def _called(writer: Writer, adapter: Adapter, function: Any, values: Mapping, **options) -> Call:
    """Call a learner's function with values of the handout's names, and return its last call."""
    named = {name: marked(value, adapter.names[name]) for name, value in values.items()}
    writer.known += [(value, adapter.names[name]) for name, value in named.items()]
    with watched() as writer.calls:
        call_part(function, named, **options)
    return writer.calls[-1]


def silu(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for a SiLU that the learner wrote for another problem."""
    x = torch.tensor([-2.0, 0.0, 3.0])
    for each in writer.parts.silus():
        writer.known.clear()
        with suppress(Wrong, NotAttempted):
            call = _called(writer, adapter, each, {"x": x})
            if isinstance(call.result, Tensor) and alike(call.result, x * torch.sigmoid(x)):
                return [f"return {writer.call(call)}"]
    raise Wrong("None of your files has a function `silu`.")


def get_batch(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for batches, which are moved where the function takes no device."""
    values = {"dataset": np.arange(50), "batch_size": 3, "context_length": 4, "device": "cpu"}
    code = writer.call(_called(writer, adapter, objects[0], values, optional=["device"]))
    if re.search(r"\bdevice\b", code.partition("(")[2]):
        return [f"return {code}"]
    return [f"inputs, targets = {code}", "return inputs.to(device), targets.to(device)"]


def clipping(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for the clipping of gradients."""
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    values = {"parameters": [parameter], "max_l2_norm": 1.0}
    return [writer.call(_called(writer, adapter, objects[0], values))]


def schedule(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for the learning rate."""
    values = {"it": 3, "max_learning_rate": 1.0, "min_learning_rate": 0.1, "warmup_iters": 2}
    values["cosine_cycle_iters"] = 9
    return [f"return {writer.call(_called(writer, adapter, objects[0], values))}"]


def checkpoint(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for saving or for loading."""
    save, load = sorted(objects, key=lambda each: "load" in getattr(each, "__name__", ""))
    run = SmallRun(0).steps(1)
    values = {"model": run.model, "optimizer": run.optimizer}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = str(Path(folder, "run.pt"))
        if "out" in adapter.names:
            saved = {**values, "iteration": 7, "out": path}
            return [writer.call(_called(writer, adapter, save, saved))]
        call_part(save, {**values, "iteration": 7, "out": path})
        loaded = _called(writer, adapter, load, {"src": path, **values})
    return [f"return {writer.call(loaded)}"]


def adamw(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body that returns the class, or a function where its arguments are others."""
    (attempt,), values = objects, {"params": [], "lr": 1e-3, "eps": 1e-8, "weight_decay": 0.01}
    betas = marked(0.9, "betas[0]"), marked(0.999, "betas[1]")
    writer.known += [(values["params"], "params"), (betas, "betas")]
    named = {name: marked(value, name) for name, value in values.items()}
    if {"beta1", "beta2"} <= {each.name for each in parameters_of(attempt)}:
        named["beta1"], named["beta2"] = betas
    else:
        named["betas"] = betas
    args, kwargs, _ = bind(attempt, named)
    codes = {name: writer.code(value) for name, value in kwargs.items()}
    first = parameters_of(attempt)[0].name
    is_torchs = len(codes) == 5 and all(n in (code, first) for n, code in codes.items())
    if is_torchs and not args and codes.get(first) == "params":
        return [f"return {writer.code(attempt)}"]
    return [
        "def make(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):",
        f"    return {writer.call(Call(attempt, args, kwargs, None))}",
        "",
        "return make",
    ]


def tokenizer(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for a tokenizer."""
    values = {"vocab": {}, "merges": [], "special_tokens": []}
    writer.known += [(value, name) for name, value in values.items()]
    args, kwargs, _ = bind(objects[0], values)
    return [f"return {writer.call(Call(objects[0], args, kwargs, None))}"]


def train_bpe(writer: Writer, adapter: Adapter, objects: tuple) -> list[str]:
    """Write the body for the training of a tokenizer, by a function or by a trainer."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, "text.txt")
        path.write_text("the cat ate the hat\n" * 3, encoding="utf-8")
        values = {"input_path": path, "vocab_size": 259, "special_tokens": ["<|end|>"]}
        options = {"extras": {"num_processes": 1}, "seconds": SECONDS}
        call = _called(writer, adapter, objects[0], values, **options)
    trainer, lines = call.result, []
    if trainer is None:  # it keeps what it has learnt
        trainer = getattr(call.function, "__self__", None)
        lines = [f"trainer = {writer.code(trainer)}"]
        writer.known.append((trainer, "trainer"))
        lines.append(writer.call(call))
    found = {meaning(each, ("vocab", "merges")): each for each in getattr(trainer, "__dict__", ())}
    if {"vocab", "merges"} <= found.keys():
        lines = lines or [f"trainer = {writer.call(call)}"]
        return [*lines, f"return trainer.{found['vocab']}, trainer.{found['merges']}"]
    return [f"return {writer.call(call)}"]


X_LENGTH, IDS_LENGTH = "in_features.shape[-2]", "in_indices.shape[-1]"
SQUEEZED = "token_positions = token_positions.squeeze(0)"
ROWS = "token_positions = token_positions.reshape(-1, token_positions.shape[-1])"
HEADS = {"d_model": "d_model", "num_heads": "num_heads", "x": "in_features"}
ROPE = {"theta": "theta", "max_seq_len": "max_seq_len"}
QKVO = {f"{name}_proj.weight": f"{name[0]}_proj_weight" for name in ("q", "k", "v", "output")}
BLOCK = {**HEADS, **ROPE, "d_ff": "d_ff"}
SIZES = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta")


def _same(*names: str) -> dict[str, str]:
    """Parameters that are called as the handout calls them."""
    return {name: name for name in names}


ADAPTERS = {
    "run_linear": Adapter(
        parameters="d_in, d_out, weights, in_features",
        problem="linear",
        write=of_tensors,
        part=transformer.LINEAR,
        made=("in_features", "out_features"),
        names={"in_features": "d_in", "out_features": "d_out", "weight": "weights"}
        | {"x": "in_features"},
    ),
    "run_embedding": Adapter(
        parameters="vocab_size, d_model, weights, token_ids",
        problem="embedding",
        write=of_tensors,
        part=transformer.EMBEDDING,
        made=("num_embeddings", "embedding_dim"),
        names={"num_embeddings": "vocab_size", "embedding_dim": "d_model", "weight": "weights"}
        | _same("token_ids"),
    ),
    "run_swiglu": Adapter(
        parameters="d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features",
        problem="positionwise_feedforward",
        write=of_tensors,
        part=transformer.FEED_FORWARD,
        made=("d_model", "d_ff"),
        names={f"w{n}.weight": f"w{n}_weight" for n in (1, 2, 3)}
        | _same("d_model", "d_ff")
        | {"x": "in_features"},
    ),
    "run_scaled_dot_product_attention": Adapter(
        parameters="Q, K, V, mask=None",
        problem="scaled_dot_product_attention",
        write=of_tensors,
        part=transformer.ATTENTION,
        names=_same("Q", "K", "V", "mask"),
    ),
    "run_multihead_self_attention": Adapter(
        parameters="d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, "
        "o_proj_weight, in_features",
        problem="multihead_self_attention",
        write=of_tensors,
        part=transformer.MULTIHEAD,
        made=("d_model", "num_heads"),
        names=HEADS | QKVO,
        length=X_LENGTH,
    ),
    "run_multihead_self_attention_with_rope": Adapter(
        parameters="d_model, num_heads, max_seq_len, theta, q_proj_weight, k_proj_weight, "
        "v_proj_weight, o_proj_weight, in_features, token_positions=None",
        problem="multihead_self_attention",
        write=of_tensors,
        part=transformer.MULTIHEAD,
        made=("d_model", "num_heads", "max_seq_len", "theta"),
        names=HEADS | ROPE | QKVO | _same("token_positions"),
        length=X_LENGTH,
    ),
    "run_rope": Adapter(
        parameters="d_k, theta, max_seq_len, in_query_or_key, token_positions",
        problem="rope",
        write=of_tensors,
        part=transformer.ROPE,
        made=("theta", "d_k", "max_seq_len"),
        names=ROPE | _same("d_k", "token_positions") | {"x": "in_query_or_key"},
        length="in_query_or_key.shape[-2]",
    ),
    "run_transformer_block": Adapter(
        parameters="d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features",
        problem="transformer_block",
        write=of_tensors,
        part=transformer.BLOCK,
        made=("d_model", "num_heads", "d_ff", "max_seq_len", "theta"),
        names=BLOCK,
        length=X_LENGTH,
    ),
    "run_transformer_lm": Adapter(
        parameters=f"{', '.join(SIZES)}, weights, in_indices",
        problem="transformer_lm",
        write=of_tensors,
        part=transformer.MODEL,
        made=SIZES,
        names=_same(*SIZES) | {"token_ids": "in_indices"},
        length=IDS_LENGTH,
    ),
    "run_rmsnorm": Adapter(
        parameters="d_model, eps, weights, in_features",
        problem="rmsnorm",
        write=of_tensors,
        part=transformer.NORM,
        made=("d_model", "eps"),
        names=_same("d_model", "eps") | {"weight": "weights", "x": "in_features"},
    ),
    "run_silu": Adapter(
        parameters="in_features", problem="", write=silu, names={"x": "in_features"}
    ),
    "run_get_batch": Adapter(
        parameters="dataset, batch_size, context_length, device",
        problem="data_loading",
        write=get_batch,
        names=_same("dataset", "batch_size", "context_length", "device"),
    ),
    "run_softmax": Adapter(
        parameters="in_features, dim",
        problem="softmax",
        write=of_tensors,
        part=transformer.SOFTMAX,
        names={"x": "in_features", "dim": "dim"},
    ),
    "run_cross_entropy": Adapter(
        parameters="inputs, targets",
        problem="cross_entropy",
        write=of_tensors,
        part=transformer.LOSS,
        names={"logits": "inputs", "targets": "targets"},
    ),
    "run_gradient_clipping": Adapter(
        parameters="parameters, max_l2_norm",
        problem="gradient_clipping",
        write=clipping,
        names=_same("parameters", "max_l2_norm"),
    ),
    "get_adamw_cls": Adapter(parameters="", problem="adamw", write=adamw, names={}),
    "run_get_lr_cosine_schedule": Adapter(
        parameters="it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters",
        problem="learning_rate_schedule",
        write=schedule,
        names=_same("it", "max_learning_rate", "min_learning_rate")
        | _same("warmup_iters", "cosine_cycle_iters"),
    ),
    "run_save_checkpoint": Adapter(
        parameters="model, optimizer, iteration, out",
        problem="checkpointing",
        write=checkpoint,
        names=_same("model", "optimizer", "iteration", "out"),
    ),
    "run_load_checkpoint": Adapter(
        parameters="src, model, optimizer",
        problem="checkpointing",
        write=checkpoint,
        names=_same("src", "model", "optimizer"),
    ),
    "get_tokenizer": Adapter(
        parameters="vocab, merges, special_tokens=None",
        problem="tokenizer",
        write=tokenizer,
        names={},
    ),
    "run_train_bpe": Adapter(
        parameters="input_path, vocab_size, special_tokens, **kwargs",
        problem="train_bpe",
        write=train_bpe,
        names=_same("input_path", "vocab_size", "special_tokens"),
    ),
}


def write_all(folder: str, problems: list[str], done: list[str]) -> Iterator[dict[str, str]]:
    """Yield all adapters without their bodies, and then each with its code.

    Where there is no code, it comes with the reason, or with "" where nothing is solved yet.

    Args:
        folder: that the package of the learner's parts is in, one module for each of `problems`.
        done: the names of adapters that are not asked for again.
    """
    sys.path.insert(0, folder)
    parts = Parts(problems)
    yield {name: _head(name) for name in ADAPTERS}
    for name in [each for each in ADAPTERS if each not in done]:
        found = {"name": name, "code": "", "why": ""}
        try:
            found["code"], found["why"] = written(name, parts)
        except NotAttempted:
            pass
        except Wrong as wrong:
            found["why"] = " ".join(filter(None, [wrong.claim, dict(wrong.rows).get("got")]))
        except Exception as error:  # of a class that does what no check has asked for
            found["why"] = f"{type(error).__name__}: {error}"
        yield found
