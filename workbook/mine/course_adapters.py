"""A learner's parts as plain code: the functions of the course's `tests/adapters.py`.

Each is written by watching the calls that a check makes: with which arguments a class is made and
called, and which of the course's weights goes where. All values are marked, so that each knows what
the adapter calls it. An adapter of tensors is then run beside the reference on the usual cases of
the check: it is refused if it is right on none, and the export says so if it is wrong on some.
Rare forms, such as weights with an axis for the heads, are left to be written by hand.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from textwrap import indent, wrap
from types import MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from workbook.checks import calling, modules, transformer, verdicts
from workbook.checks.calling import bind, call_part, meaning, parameters_of
from workbook.checks.modules import Learner, own_parameters, place
from workbook.checks.tensors import Case, alike, copied
from workbook.checks.timeout import limited
from workbook.checks.transformer import ReadyRope, call_function, is_plain
from workbook.checks.verdicts import NotAttempted, Wrong

PACKAGE = "cs336_basics"
WIDTH = 96  # of a line in the body of an adapter, before it is indented
SECONDS = 60  # for an adapter on one case
MISSING = {
    ReadyRope: "a RoPE: no RoPE class of yours is kept",
    calling._Config: "its settings: no annotation names their class",
}
SILU = re.compile("_*(silu|swish)_*", re.I)


# Numbers that know what they are called.


class _Marked:
    """A number that knows its name in the adapter."""

    code: str

    def __floordiv__(self, other: Any) -> Any:
        right = getattr(other, "code", other)
        return marked(_plain(self) // _plain(other), f"{self.code} // {right}")


class _Int(_Marked, int): ...


class _Float(_Marked, float): ...


def marked(value: Any, code: str) -> Any:
    """A number with a name; anything else is returned as it is."""
    if type(value) not in (int, float):
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
    result: Any = None


@contextmanager
def watched() -> Iterator[list[Call]]:
    """Note all calls of the learner's code that a check makes, with plain numbers."""
    calls: list[Call] = []

    def call(function: Any, *args: Any, seconds: float = 5.0, given: Any = None, **kwargs) -> Any:
        plain = {name: _plain(value) for name, value in kwargs.items()}
        # Before the call, which may change a tensor in place.
        noted = tuple(map(copied, args)), {name: copied(each) for name, each in kwargs.items()}
        options = {"seconds": seconds, "given": given}
        result = verdicts.call(function, *map(_plain, args), **options, **plain)
        calls.append(Call(function, *noted, result))
        return result

    before = calling.call, modules.call
    calling.call = modules.call = call
    try:
        yield calls
    finally:
        calling.call, modules.call = before


@dataclass
class Writer:
    """Code for what was called, and the imports that it needs."""

    parts: "Parts"
    adapter: "Adapter"
    known: list[tuple[Any, str]] = field(default_factory=list)  # what the adapter calls a value
    calls: list[Call] = field(default_factory=list)
    imports: dict[str, None] = field(default_factory=dict)  # lines

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Note values by the handout's names: from now on, code can be written for them."""
        names = self.adapter.names
        self.known += [(value, names[name]) for name, value in values.items() if name in names]
        return {n: marked(each, names[n]) if n in names else each for n, each in values.items()}

    def code(self, value: Any) -> str:
        """Write an expression for a value. Raises: Wrong if none is known."""
        if isinstance(value, _Marked):
            return value.code
        if value is None or type(value) in (bool, int, float):
            return repr(value)
        for each, code in self.known:
            if each is value:
                return code
        if isinstance(value, Tensor):
            return self._tensor(value)
        for call in self.calls:
            if call.result is value:
                return self.call(call)
        for module, home in self.parts.homes.items():
            for name, each in vars(home).items():
                if each is value:
                    self.imports[f"from {module} import {name}"] = None
                    return name
        if isinstance(value, MethodType):
            owner = self.code(value.__self__)
            return owner if value.__name__ in verdicts.CALLED else f"{owner}.{value.__name__}"
        kind = MISSING.get(type(value)) or verdicts.kind_of(value)
        raise Wrong(f"The adapter has no way to get {kind}.")

    def call(self, call: Call) -> str:
        """Write a call, with a single argument by position and others by name."""
        is_class = inspect.isclass(call.function)
        function = call.function if is_class else getattr(call.function, "forward", call.function)
        asked = [each.name for each in parameters_of(function)]
        arguments, named = [self.code(value) for value in call.args], {}
        for name in [each for each in dict.fromkeys([*asked, *call.kwargs]) if each in call.kwargs]:
            named[name] = self.code(call.kwargs[name])
            if type(call.kwargs[name]) is int and meaning(name, ["max_seq_len"]):
                named[name] = self.adapter.length  # the adapter is not told the longest sequence
        if not arguments and [*named] == asked[:1]:
            arguments, named = list(named.values()), {}
        arguments += [f"{name}={code}" for name, code in named.items()]
        return f"{self.code(call.function)}({', '.join(arguments)})"

    def _tensor(self, value: Tensor) -> str:
        """Name an input, found by its numbers (checks hand out copies), or a check's own tensor."""
        n, last = self.adapter.length, value.shape[-1]
        tensors = [(each, code) for each, code in self.known if isinstance(each, Tensor)]
        tensors += [
            (torch.ones(last, last).tril().bool(), f"torch.ones({n}, {n}).tril().bool()"),
            (torch.arange(last), f"torch.arange({n})"),
        ]
        for each, code in tensors:
            if torch.equal(each, value):
                return code
            if torch.equal(each[None], value):
                return f"{code}.unsqueeze(0)"
        raise Wrong("It is given a tensor that the adapter does not have.")


# Weights.


def filling(learner: Learner, case: Case, names: Mapping[str, str]) -> list[str]:
    """Lines that fill `module` with the course's weights, under the learner's names.

    The first block and the first head stand for all of them; if they differ, the cases show it.

    Args:
        learner: has made a module for the case, and was right with it.
        names: what the adapter calls each weight; one that is not listed is in its `weights`.
    """
    begin, marks, namespace = 1, {}, {"torch": torch, "layer": 0, "head": 0, "weights": {}}
    for name, weight in case.weights.items():  # no two numbers are equal, so each shows its weight
        numbers = torch.arange(begin, begin + weight.numel(), dtype=torch.float32)
        marks[name] = numbers.reshape(weight.shape)
        begin += weight.numel()
        (namespace if name in names else namespace["weights"])[names.get(name, name)] = marks[name]
    layout = learner.ways(replace(case, weights=marks))[learner.form[1]].weights
    groups: dict[tuple[str, ...], list[str]] = {(): []}  # items of the dict, by the loops they need
    has_its_names = True
    for own in own_parameters(learner.module):
        sources = [name for name, mark in marks.items() if torch.isin(layout[own], mark).any()]
        in_block = place(sources[0]).layer is not None
        general = [re.sub(r"^layers\.\d+", "layers.{layer}", name) for name in sources]
        codes = [names.get(name) or f"weights[{_quoted(name)}]" for name in general]
        code = _expression(codes, layout[own], {**namespace, **case.arguments})
        loops = ("layer",) * in_block + ("head",) * ("[head]" in code)
        name = own
        for variable in loops:
            name = re.sub(r"(?<!\d)0(?=\.)", f"{{{variable}}}", name, count=1)
        if code:  # otherwise of another block or head
            has_its_names &= code == f"weights[{_quoted(name)}]"
            groups.setdefault(loops, []).append(f"{_quoted(name)}: {code}")
    is_whole = learner.module.state_dict().keys() == layout.keys()  # no buffers besides
    strict = "" if is_whole else ", strict=False"
    if has_its_names:
        return [f"module.load_state_dict(weights{strict})"]
    outside = groups.pop(())
    if not groups and len(outside) == 1:
        return [f"module.load_state_dict({{{outside[0]}}}{strict})"]
    lines = ["state = {", *(f"    {item}," for item in outside), "}"]
    for loops, items in groups.items():
        for depth, variable in enumerate(loops):
            lines.append(f"{'    ' * depth}for {variable} in range(num_{variable}s):")
        inside = "    " * len(loops)
        lines += [f"{inside}state |= {{", *(f"{inside}    {i}," for i in items), f"{inside}}}"]
    return [*lines, f"module.load_state_dict(state{strict})"]


def _quoted(name: str) -> str:
    return f'f"{name}"' if "{" in name else f'"{name}"'


def _expression(codes: list[str], held: Tensor, namespace: dict) -> str:
    """Code that makes the value of a parameter from the course's weights; "" if none is found."""
    for order in permutations(codes):
        listed = ", ".join(order)
        whole = listed if len(order) == 1 else f"torch.cat([{listed}])"
        of_head = f"torch.cat([w.chunk(num_heads)[head] for w in ({listed})])"
        by_head = f"[w.unflatten(0, (num_heads, -1)) for w in ({listed})]"
        for code in (
            whole,
            f"{whole}.mT",
            f"{listed}.chunk(num_heads)[head]" if len(order) == 1 else of_head,
            f"torch.stack({by_head}, 1).flatten(0, 2)",
        ):
            with suppress(RuntimeError, NameError):  # sizes do not fit, or there are no heads
                if torch.equal(eval(code, dict(namespace)), held):
                    return code
    return ""


# The learner's parts.


class Parts:
    """A learner's parts: modules of a package, one for each problem, imported when asked for."""

    def __init__(self, problems: Collection[str]):
        self.problems = problems
        self.homes: dict[str, ModuleType] = {}  # by the name that imports them

    def of(self, problem: str) -> tuple:
        """The objects that were handed in for a problem. Raises: Wrong, NotAttempted."""
        if problem not in self.problems:
            raise NotAttempted
        name = f"{PACKAGE}.{problem}"
        try:
            home = self.homes[name] = limited(SECONDS, lambda: importlib.import_module(name))
        except (Exception, SystemExit) as error:
            raise Wrong(f"It does not import by itself: {type(error).__name__}: {error}") from error
        return tuple(getattr(home, each) for each in home.__all__)


# The adapters.


class Adapter:
    """One function of the course's `tests/adapters.py`, as a line of `COURSE` says."""

    def __init__(self, name: str, problem: str, parameters: str):
        self.name, self.problem, self.part = name, problem, EXERCISES.get(problem)
        self.head = f"def {name}({re.sub(r': [^,]+', '', parameters)}):"
        pairs = re.findall(r"(\w+)(?:=None)?(?:: ([^,]+))?", parameters)
        self.names = {meant or own: own for own, meant in pairs}  # by the handout's names
        x, ids = self.names.get("x"), self.names.get("token_ids")
        self.length = f"{ids}.shape[-1]" if ids else f"{x}.shape[-2]"  # code for the length

    @property
    def cases(self) -> list[Case]:
        """The cases of the check that the adapter can run, without corner cases."""
        cases = [
            case
            for case in ([self.part.gradients, *self.part.cases] if self.part else [])
            if case.dtype == torch.float32 and not case.seldom
            if case.inputs.keys() | case.arguments.keys() <= self.names.keys()
        ]
        most = max((len(case.arguments) for case in cases), default=0)
        return [case for case in cases if len(case.arguments) == most]


def written(name: str, parts: Parts) -> tuple[str, str]:
    """Write an adapter that calls the learner's part; return it and any remark on it.

    Raises: Wrong with the reason why there is none, NotAttempted if the part is missing.
    """
    adapter = ADAPTERS[name]
    objects = parts.of(adapter.problem) if adapter.problem != "silu" else ()
    writer = Writer(parts, adapter)
    write = WRITERS.get(adapter.problem, of_tensors if adapter.part else of_values)
    lines = write(writer, *objects)
    cases = adapter.cases
    if "token_positions" not in " ".join(lines):
        cases = filter(_are_counted, cases)
    elif "token_positions=None" in adapter.head:  # the course's are (1, seq)
        lines = [
            "if token_positions is None:",
            f"    token_positions = torch.arange({adapter.length})",
            "token_positions = token_positions.squeeze(0)",
            *lines,
        ]
    body = [part for line in [*writer.imports, "", *lines] for part in _wrapped(line)]
    text = "\n".join([*_wrapped(adapter.head), indent("\n".join(body), "    "), ""])
    right = [_agrees(adapter, text, case) for case in cases]
    if right and not any(right):
        raise Wrong("No way of loading its weights and calling it gave the expected results.")
    missed = right.count(False)
    return text, f"{missed} of {len(right)} results are not the expected ones" if missed else ""


def _wrapped(line: str) -> list[str]:
    """A line; a long one wrapped at the spaces between the arguments of a call."""
    inside = " " * (len(line) - len(line.lstrip()) + 8)
    return wrap(
        line, WIDTH, subsequent_indent=inside, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _are_counted(case: Case) -> bool:
    """Whether the positions of a case are 0, 1, ..., as for a part that is given none."""
    positions = case.inputs.get("token_positions", torch.arange(0))
    return torch.equal(positions, torch.arange(positions.shape[-1]))


def _agrees(adapter: Adapter, text: str, case: Case) -> bool:
    """Whether an adapter gives what the reference gives."""
    values: dict[str, Any] = {"weights": {}} if "weights" in adapter.names else {}
    for name, value in {**case.arguments, **case.inputs, **case.weights}.items():
        where = values if name in adapter.names else values["weights"]
        where[adapter.names.get(name, name)] = copied(value)
    namespace: dict[str, Any] = {"torch": torch}
    try:
        exec(text, namespace)
        result = limited(SECONDS, lambda: namespace[adapter.name](**values))
        return alike(result, adapter.part.expected(case))
    except Exception:
        return False


def of_tensors(writer: Writer, attempt: Any) -> list[str]:
    """Write the body for a layer, or for a function of tensors."""
    adapter = writer.adapter
    case = max(adapter.cases, key=lambda case: len(case.inputs))  # with a mask or positions
    if not case.weights and (not case.arguments or is_plain(attempt)):
        with watched() as writer.calls:
            call_function(attempt, _named(case, writer))
        return [_return(writer)]
    learner = Learner(attempt, adapter.part, ReadyRope)
    if learner.turns() and {"d_model", "num_heads"} == case.arguments.keys():
        case = _without_turning(case, learner, writer)
    _make_right(learner, case, writer.parts)
    named = _named(case, writer)
    with watched() as writer.calls:
        module = learner.module = learner.make(named)
        learner.run(named)
    lines = [f"module = {writer.code(module)}"]
    if case.weights:
        lines += filling(learner, case, adapter.names)
    writer.known.append((module, "module"))
    return [*lines, _return(writer)]


def _return(writer: Writer) -> str:
    """The line of the last call; of a tuple of tensors, the first is the result."""
    last = writer.calls[-1]
    return f"return {writer.call(last)}" + ("[0]" if isinstance(last.result, tuple) else "")


def _named(case: Case, writer: Writer) -> Case:
    """A case whose numbers know what the adapter calls them."""
    return replace(case, arguments=writer.named(case.arguments), inputs=writer.named(case.inputs))


def _make_right(learner: Learner, case: Case, parts: Parts) -> None:
    """Let a learner find the way of calling its class that is right in a case. Raises: Wrong.

    A class that is handed a RoPE gets the learner's own: the one checked, or one beside it.
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
        raise Wrong("It cannot be called without RoPE.")
    zeros = torch.zeros(case.inputs["x"].shape[-2], dtype=torch.int64)
    writer.known.append((zeros, f"torch.zeros({writer.adapter.length}, dtype=torch.int64)"))
    arguments = {**case.arguments, "max_seq_len": 16, "theta": 10_000.0}
    return replace(case, arguments=arguments, inputs={**case.inputs, "token_positions": zeros})


def of_values(writer: Writer, *objects: Any) -> list[str]:
    """Write the body for a function of other values, by calling it with small examples."""
    name, names = writer.adapter.name, writer.adapter.names
    pair = sorted(objects, key=lambda each: "load" in getattr(each, "__name__", ""))
    *before, attempt = pair if name == "run_load_checkpoint" else pair[:1]
    options = {"optional": ["device"], "extras": {"num_processes": 1}, "seconds": SECONDS}
    if True:
        for save in before:
            call_part(save, arguments_for("run_save_checkpoint"))
        given = arguments_for(name)
        values = {meant: given[each] for meant, each in names.items() if each in given}
        with watched() as writer.calls:
            call_part(attempt, writer.named(values), **options)
    code, result = writer.call(writer.calls[-1]), writer.calls[-1].result
    if name == "run_train_bpe" and not isinstance(result, tuple | list):
        raise Wrong("It does not return a pair of vocabulary and merges.")
    if "device" in names and "=device" not in code:
        code = f"tuple(each.to(device) for each in {code})"
    return [f"return {code}"]


def arguments_for(adapter: str) -> dict[str, Any]:
    """Small arguments, by the course's names, for an adapter of other values.

    A file that they name is written into the working directory.
    """
    torch.manual_seed(0)
    special = {"special_tokens": ["<|endoftext|>"]}
    match adapter:
        case "run_silu":
            return {"in_features": torch.randn(3, 12, 16)}
        case "run_get_batch":
            data = np.arange(100)
            return {"dataset": data, "batch_size": 4, "context_length": 7, "device": "cpu"}
        case "run_gradient_clipping":
            parameters = [nn.Parameter(torch.randn(5)) for _ in range(3)]
            for each in parameters:
                each.grad = torch.randn(5)
            return {"parameters": parameters, "max_l2_norm": 0.01}
        case "run_get_lr_cosine_schedule":
            rates = {"max_learning_rate": 1.0, "min_learning_rate": 0.1}
            return {"it": 9, **rates, "warmup_iters": 7, "cosine_cycle_iters": 21}
        case "run_save_checkpoint" | "run_load_checkpoint":
            model = nn.Linear(3, 2)
            trained = {"model": model, "optimizer": torch.optim.AdamW(model.parameters())}
            file = str(Path("checkpoint.pt").absolute())
            if adapter == "run_load_checkpoint":
                return {"src": file, **trained}
            return {**trained, "iteration": 3, "out": file}
        case "get_tokenizer":
            vocab = {n: bytes([n]) for n in range(256)} | {256: b"th", 257: b"<|endoftext|>"}
            return {"vocab": vocab, "merges": [(b"t", b"h")], **special}
        case "run_train_bpe":
            text = Path("text.txt").absolute()
            text.write_text("low low lower the newest widest<|endoftext|>the widest newest\n" * 9)
            return {"input_path": str(text), "vocab_size": 262, **special}
    raise ValueError(f"{adapter} is called with tensors")


def silu(writer: Writer) -> list[str]:
    """Write the body for a SiLU, function or class, that the learner wrote for another problem."""
    x = arguments_for("run_silu")["in_features"]
    for problem in writer.parts.problems:
        with suppress(Wrong, NotAttempted):
            writer.parts.of(problem)
    for module, home in writer.parts.homes.items():
        for name, each in vars(home).items():
            if SILU.fullmatch(name) and getattr(each, "__module__", "") == module:
                with suppress(Wrong, NotAttempted):
                    lines, result = of_values(writer, each), writer.calls[-1].result
                    if isinstance(result, Tensor) and alike(result, x * torch.sigmoid(x)):
                        return lines
    raise Wrong("None of your files has a working `silu` or `swish`.")


def adamw(writer: Writer, attempt: Any) -> list[str]:
    """Write the body that returns the class, or a function if its arguments are different."""
    betas = marked(0.9, "betas[0]"), marked(0.999, "betas[1]")
    values = {"params": [], "lr": 1e-3, "betas": betas, "eps": 1e-8, "weight_decay": 0.01}
    values = {name: marked(value, name) for name, value in values.items()}
    writer.known += [(values["params"], "params"), (betas, "betas")]
    parameters = [each.name for each in parameters_of(attempt)]
    if {"beta1", "beta2"} <= {*parameters}:
        del values["betas"]
        values["beta1"], values["beta2"] = betas
    args, kwargs, _ = bind(attempt, values)
    codes = {name: writer.code(value) for name, value in kwargs.items()}
    own = {name for name, code in codes.items() if name != code}
    if not args and codes.get(parameters[0]) == "params" and own <= {parameters[0]}:
        return [f"return {writer.code(attempt)}"]
    return [
        "def make(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):",
        f"    return {writer.call(Call(attempt, args, kwargs))}",
        "",
        "return make",
    ]


def tokenizer(writer: Writer, attempt: Any) -> list[str]:
    """Write the body for a tokenizer."""
    args, kwargs, _ = bind(attempt, writer.named(arguments_for("get_tokenizer")))
    return [f"return {writer.call(Call(attempt, args, kwargs))}"]


# The functions of the course, each after its problem; a name after a parameter's colon is what the
# handout calls it, if that is different.
COURSE = """
linear: run_linear(d_in: in_features, d_out: out_features, weights: weight, in_features: x)
embedding: run_embedding(vocab_size: num_embeddings, d_model: embedding_dim, weights: weight,
    token_ids)
positionwise_feedforward: run_swiglu(d_model, d_ff, w1_weight: w1.weight, w2_weight: w2.weight,
    w3_weight: w3.weight, in_features: x)
scaled_dot_product_attention: run_scaled_dot_product_attention(Q, K, V, mask=None)
multihead_self_attention: run_multihead_self_attention(d_model, num_heads,
    q_proj_weight: q_proj.weight, k_proj_weight: k_proj.weight, v_proj_weight: v_proj.weight,
    o_proj_weight: output_proj.weight, in_features: x)
multihead_self_attention: run_multihead_self_attention_with_rope(d_model, num_heads, max_seq_len,
    theta, q_proj_weight: q_proj.weight, k_proj_weight: k_proj.weight,
    v_proj_weight: v_proj.weight, o_proj_weight: output_proj.weight, in_features: x,
    token_positions=None)
rope: run_rope(d_k, theta, max_seq_len, in_query_or_key: x, token_positions)
transformer_block: run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights,
    in_features: x)
transformer_lm: run_transformer_lm(vocab_size, context_length, d_model, num_layers, num_heads,
    d_ff, rope_theta, weights, in_indices: token_ids)
rmsnorm: run_rmsnorm(d_model, eps, weights: weight, in_features: x)
silu: run_silu(in_features: x)
data_loading: run_get_batch(dataset, batch_size, context_length, device)
softmax: run_softmax(in_features: x, dim)
cross_entropy: run_cross_entropy(inputs: logits, targets)
gradient_clipping: run_gradient_clipping(parameters, max_l2_norm)
adamw: get_adamw_cls()
learning_rate_schedule: run_get_lr_cosine_schedule(it, max_learning_rate, min_learning_rate,
    warmup_iters, cosine_cycle_iters)
checkpointing: run_save_checkpoint(model, optimizer, iteration, out)
checkpointing: run_load_checkpoint(src, model, optimizer)
tokenizer: get_tokenizer(vocab, merges, special_tokens=None)
train_bpe: run_train_bpe(input_path, vocab_size, special_tokens, **kwargs)
"""
EXERCISES = {
    "linear": transformer.LINEAR,
    "embedding": transformer.EMBEDDING,
    "positionwise_feedforward": transformer.FEED_FORWARD,
    "scaled_dot_product_attention": transformer.ATTENTION,
    "multihead_self_attention": transformer.MULTIHEAD,
    "rope": transformer.ROPE,
    "transformer_block": transformer.BLOCK,
    "transformer_lm": transformer.MODEL,
    "rmsnorm": transformer.NORM,
    "softmax": transformer.SOFTMAX,
    "cross_entropy": transformer.LOSS,
}
WRITERS = {"silu": silu, "adamw": adamw, "tokenizer": tokenizer}
ADAPTERS = {
    name: Adapter(name, problem, " ".join(parameters.split()))
    for problem, name, parameters in re.findall(r"^(\w+): (\w+)\((.*?)\)$", COURSE, re.M | re.S)
}


def write_all(folder: str, problems: list[str], done: list[str]) -> Iterator[dict[str, str]]:
    """Yield the heads of all adapters, and then each with its code.

    If there is no code, it comes with the reason, which is "" if nothing is solved yet.

    Args:
        folder: holds the package of the learner's parts, one module for each of `problems`.
        done: the names of adapters to leave out.
    """
    sys.path.insert(0, folder)
    parts = Parts(problems)
    yield {name: "\n".join(_wrapped(each.head)) for name, each in ADAPTERS.items()}
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
