"""How a learner's class is made and called, and how it gets the weights of a case.

Classes differ in their arguments (`calling` finds out which is which), and in how they keep their
weights: under other names, several in one matrix, one for each head, transposed. What a right
class still needs is looked at here too: gradients, first weights, parts that are not torch's.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import islice, permutations, product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from workbook.checks.calling import (
    bind,
    first_of,
    is_switch,
    meaning,
    parameters_of,
    switches_rope,
)
from workbook.checks.engine import Exercise, judge, usual
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.tensors import Case, alike, beside, copied, drawn, kind, tensor_of
from workbook.checks.verdicts import (
    Findings,
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_class,
    is_stub,
    kind_of,
)

QUICK = 5.0  # seconds that a call with a few numbers may take
THETA, LENGTH = ("theta", "rope_theta"), ("max_seq_len", "context_length")
NO_INIT = "Begin `__init__` with `super().__init__()`: torch's Module must be set up first."
IN_INIT = "It happens in `__init__`, before any weight or input is there."

# Making and calling.


class ReadyRope(nn.Module):
    """RoPE for a class that is handed one, called with (x, positions)."""

    def __init__(self, theta: float):
        super().__init__()
        self.theta = theta

    def forward(self, x: Tensor, token_positions: Tensor | None = None) -> Tensor:
        positions = torch.arange(x.shape[-2]) if token_positions is None else token_positions
        if 1 < positions.ndim < x.ndim - 1:
            positions = positions.unsqueeze(-2)  # the same for all heads
        pairs = torch.arange(0, x.shape[-1], 2) / x.shape[-1]
        angles = positions.unsqueeze(-1) * self.theta**-pairs
        even, odd, cos, sin = x[..., 0::2], x[..., 1::2], angles.cos(), angles.sin()
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Learner:
    """A learner's class in the cases of an exercise; each case gets a module of its own."""

    def __init__(self, attempt: Any, exercise: Exercise):
        longest = max(exercise.cases, key=lambda case: len(case.arguments))
        expect_class(attempt, f"class {longest.name} with {longest.signature}")
        if "__init__" in vars(attempt) and is_stub(attempt.__init__):
            raise NotAttempted("`__init__` is still to write.")
        self.attempt, self.exercise = attempt, exercise
        self.forward = getattr(attempt, "forward", None)
        self.module: nn.Module | None = None  # the last one
        self.layout = 0  # which of several ways to fill in weights was the right one last
        self.transposed: bool | None = None  # how weights are stored, once it is known
        self.settled = False  # whether all cases are right, and so is the way
        self.rows = False  # whether positions are wanted as (1, seq), not as (seq,)
        self.in_tuple = False  # whether results come first in a tuple

    def __call__(self, case: Case) -> Tensor:
        """What a module makes of a case, with its weights filled in. Raises: Wrong."""
        self.module = module = self.make(case)
        for parameter in module.parameters():
            parameter.data = parameter.data.to(case.dtype)
        ways, outcomes = self._ways(module, case), []
        if len({way.transposed for way in ways}) == 1:
            self.transposed = ways[0].transposed
        forms = [self.rows]
        if not self.settled and {"num_heads", "theta"} <= set(case.arguments):
            forms += [not self.rows] if self.takes_positions() else []
        tries = [(rows, number) for rows in forms for number in range(max(1, len(ways)))]
        for rows, number in sorted(tries, key=lambda each: each != (self.rows, self.layout)):
            fill(module, ways[number].weights if ways else {})
            before, self.rows = self.rows, rows
            try:
                outcomes.append(self.run(module, case))
            except (Wrong, NotAttempted) as failure:
                outcomes.append(failure)
            else:
                if len(tries) == 1 or alike(outcomes[-1], self.exercise.expected(case)):
                    if ways:
                        self.layout, self.transposed = number, ways[number].transposed
                    return outcomes[-1]
            self.rows = before
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        return outcomes[0]

    def _ways(self, module: nn.Module, case: Case) -> list["Layout"]:
        """The ways to fill in the weights of a case; once one has given all cases, it alone."""
        if not case.weights and not any(True for _ in module.parameters()):
            return []
        try:
            ways = layouts(module, case.weights, case.arguments.get("num_heads", 1))
        except Wrong:
            # A skeleton has no parameters yet, and should not be told so.
            if not any(True for _ in module.parameters()):
                self.run(module, case)  # raises NotAttempted where nothing comes back
            raise
        if self.transposed is not None:
            ways = [way for way in ways if way.transposed == self.transposed] or ways
        return ways[self.layout :][:1] if self.settled and len(ways) > self.layout else ways

    def takes(self, *names: str) -> bool:
        """Whether the class, or its `forward`, has an argument of one of these meanings."""
        return bool(_asked(self.attempt, *names) or _asked(self.forward, *names))

    def turns(self) -> bool:
        """Whether RoPE is there whatever the class is given: no switch, and θ is never None."""
        return not any(map(switches_rope, parameters_of(self.attempt))) and any(
            each.default is each.empty or isinstance(each.default, float | int)
            for each in _asked(self.attempt, *THETA, "rope")
        )

    def takes_positions(self) -> bool:
        """Whether `forward` takes positions."""
        return _takes_positions(self.forward)

    def make(self, case: Case, **further: Any) -> nn.Module:
        """A module of the sizes of a case. Raises: Wrong, NotAttempted."""
        values = dict(case.arguments)
        sizes = ", ".join(f"{name}={value:g}" for name, value in values.items())
        given = Words(f"{case.name}({sizes})")
        theta = next((values[name] for name in THETA if name in values), None)
        if theta is not None and not self.takes(*THETA) and self.takes("rope"):
            values = {name: value for name, value in values.items() if name not in THETA}
            if _asked(self.attempt, "rope"):
                values["rope"] = ReadyRope(theta)
        d_head = values.get("d_model", 0) // values.get("num_heads", 1)
        extras = {"d_k": d_head, "d_v": d_head, "max_seq_len": 16}
        if any(map(switches_rope, parameters_of(self.attempt))):
            extras["theta"] = 10_000.0  # which is switched off, or in `values`
        options = {"extras": extras, "given": given, "rope": theta is not None}
        try:
            args, kwargs, _ = bind(self.attempt, values, **options)
        except Wrong:  # a RoPE without tables has no longest sequence
            fewer = {name: value for name, value in values.items() if name not in LENGTH}
            if fewer == values or self.takes(*LENGTH):
                raise
            args, kwargs, _ = bind(self.attempt, fewer, **options)
        try:
            module = _called(self.attempt, *args, **{**kwargs, **further})
        except Wrong as failure:
            failure.mistake = failure.mistake or usual(failure.error) or IN_INIT
            raise
        if not isinstance(module, nn.Module):
            raise Wrong(
                "It is no module of torch.",
                expected=Words("a class that inherits from `torch.nn.Module`"),
                got=Words(kind_of(self.attempt)),
                mistake="Only what a module holds is trained, saved and moved with the model. "
                + NO_INIT,
            )
        if "_parameters" not in vars(module):
            raise Wrong("It is no complete module of torch.", mistake=NO_INIT)
        devices = {parameter.device.type for parameter in module.parameters()} - {"cpu"}
        if devices:
            raise Wrong(
                "The parameters are not where torch puts tensors by default.",
                expected=Words("on the CPU"),
                got=Words(f"on {devices.pop()}"),
                mistake="Make them on the `device` that the constructor is given; None is fine.",
            )
        return module.eval()

    def run(self, module: nn.Module, case: Case) -> Tensor:
        """What a module makes of copies of the inputs of a case."""
        if is_stub(type(module).forward):
            raise NotAttempted("`forward` is still to write.")
        values = {name: copied(value) for name, value in case.inputs.items()}
        optional, extras, given = (), {}, Words(str(case))
        forward = module if type(module).__call__ is not nn.Module.__call__ else module.forward
        if "num_heads" in case.arguments:
            length = next(iter(values.values())).shape[-1 if "token_ids" in values else -2]
            theta = next((case.arguments[name] for name in THETA if name in case.arguments), None)
            extras = {
                "token_positions": torch.arange(length),
                "mask": torch.ones(length, length, dtype=torch.bool).tril(),
                "rope": None,
            }
            given_anyway = theta is not None and case.inputs.keys() == {"x"}
            if given_anyway and _takes_positions(forward):
                values["token_positions"] = extras["token_positions"]
            if theta is not None and _asked(forward, "rope"):
                values["rope"] = ReadyRope(theta)
            optional = () if _takes_positions(forward) else ("token_positions",)
            positions = values.get("token_positions")
            if self.rows and positions is not None and positions.ndim == 1:
                values["token_positions"] = positions.unsqueeze(0)
        args, kwargs, _ = bind(forward, values, optional=optional, extras=extras, given=given)
        result = _called(module, *args, given=given, **kwargs)
        if isinstance(result, tuple) and "num_heads" in case.arguments:
            shape = self.exercise.expected(case).shape
            first = first_of(result, lambda x: isinstance(x, Tensor) and x.shape == shape)
            self.in_tuple, result = first is not result, first
        return tensor_of(result, given)


def judge_class(learner: Learner, gradients: Case) -> tuple[Findings, list[str]]:
    """Findings on a learner's class, and remarks; `gradients` is the case they are asked of."""
    exercise, remarks = learner.exercise, []
    found, case = judge(exercise, learner), exercise.cases[0]
    learner.settled = not found
    if not found:
        with found("use"):
            remarks += check_gradients(
                learner,
                exercise.program.edited(),
                gradients,
                lambda: learner.module.named_parameters(),
            )
    if not found:
        with found("style"):
            learner(case)
            own = [part for part in learner.module.modules() if not isinstance(part, ReadyRope)]
            expect_from_scratch(lambda: learner.run(learner.module, case), own)
        with found("corner"):
            if learner.transposed:
                raise Wrong("The weights are stored transposed.", mistake=TRANSPOSED)
        remarks += _about_types(learner, case)
        if learner.rows:
            remarks.append("Positions of shape (seq,) fail: those of shape (1, seq) were given.")
        if learner.in_tuple:
            remarks.append("It returns a tuple, of which the first was taken as the result.")
    return found, remarks


def _about_types(learner: Learner, case: Case) -> list[str]:
    """A remark where `dtype` is an argument that is not used."""
    if not case.weights or "dtype" not in inspect.signature(learner.attempt).parameters:
        return []
    try:
        made = learner.make(case, dtype=torch.float64)
    except (Wrong, TypeError):
        return ["It fails when `dtype=torch.float64` is given."]
    if {parameter.dtype for parameter in made.parameters()} == {torch.float64}:
        return []
    return ["`dtype` is accepted, but not every parameter gets it."]


def _asked(function: Any, *names: str) -> list[inspect.Parameter]:
    """The parameters that mean one of these, and take more than yes or no."""
    return [p for p in parameters_of(function) if meaning(p.name, names) and not is_switch(p)]


def _takes_positions(forward: Any) -> bool:
    """Whether a `forward` takes positions: by name, or under a single letter in second place."""
    names = [parameter.name for parameter in parameters_of(forward) if parameter.name != "self"]
    return any(
        ("pos" in name and not meaning(name, ["rope"])) or (len(name) == 1 and place == 1)
        for place, name in enumerate(names)
    ) or any(p.kind is p.VAR_POSITIONAL for p in parameters_of(forward))


def _called(function: Any, *args: Any, given: Any = None, **kwargs: Any) -> Any:
    """Call a learner's class or module, with what is compiled as it is written."""
    try:
        with _uncompiled():
            return call(function, *args, seconds=QUICK, given=given, **kwargs)
    except Wrong as failure:
        if "before Module.__init__" in str(failure.error):
            failure.mistake = NO_INIT
        raise


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Let `torch.compile` do nothing: it takes many times as long as any case of a check.

    Its code is exchanged, because an attempt may have it under another name; to stop it in the
    middle would leave torch's compiler half imported.
    """
    code, COMPILE.__code__ = COMPILE.__code__, _as_it_is.__code__
    loaded = "torch._dynamo" in sys.modules  # otherwise nothing is compiled yet
    try:
        with torch.compiler.set_stance("force_eager") if loaded else nullcontext():
            yield
    finally:
        COMPILE.__code__ = code


COMPILE = torch.compile


def _as_it_is(model: Callable | None = None, **options: Any) -> Callable:
    return model or (lambda model: model)


# Weights by name. The course's names always work; others are understood where they say the same:
# `wq` or `query` for `q_proj`, `norm1` for `ln1`. Several parameters may share one weight, as a
# list of heads does, and one may hold several, as a fused `qkv` does.


class Place(NamedTuple):
    """A weight by the block that it is in (None outside) and the last part of its name."""

    layer: int | None
    leaf: str


_BEFORE = r"(?:(?:w|to|fc|lin|linear|proj|attn|mha)_?)?"
_AFTER = r"(?:_?(?:w|weights?|proj|projection|lin|linear|layer|heads?|matrix))?"
_NORM = r"(?:ln|norm|rms|rms_?norm|layer_?norm)"
_ATTENTION = r"(?:self_)?(?:attn|attention|mha|mhsa|msa|sa|input)"
_FEED_FORWARD = r"(?:ffn?|mlp|feed_?forward|post_attention|swi_?glu)"
LEAVES = {
    "qkv": rf"{_BEFORE}(?:fused_|combined_)?qkv{_AFTER}|query_key_value|c_attn|in_proj(?:_weight)?",
    "kv": rf"{_BEFORE}kv{_AFTER}",
    "q_proj": rf"{_BEFORE}(?:q|query|queries){_AFTER}",
    "k_proj": rf"{_BEFORE}(?:k|keys?){_AFTER}",
    "v_proj": rf"{_BEFORE}(?:v|values?){_AFTER}",
    "output_proj": rf"{_BEFORE}(?:o|out|output){_AFTER}|(?:c_)?proj|projection|dense",
    "w13": r"w_?13|w_?1_?w_?3|gate_up(?:_proj)?|up_gate(?:_proj)?",
    "w1": r"(?:w|fc|lin|linear|l)_?1|gate(?:_proj)?|w_gate",
    "w2": r"(?:w|fc|lin|linear|l)_?2|down(?:_proj)?|w_down",
    "w3": r"(?:w|fc|lin|linear|l)_?3|up(?:_proj)?|w_up",
    "ln1": rf"{_NORM}_?1|(?:pre_)?{_ATTENTION}_?{_NORM}|{_NORM}_?{_ATTENTION}",
    "ln2": rf"{_NORM}_?2|(?:pre_)?{_FEED_FORWARD}_?{_NORM}|{_NORM}_?{_FEED_FORWARD}",
    "ln_final": rf"{_NORM}_?(?:f|final|out|last)?|(?:f|final|last|out|output)_?{_NORM}",
    "lm_head": rf"(?:lm_?)?head|(?:un|de|out|output|final)_?embed.*|"
    rf"{_BEFORE}(?:out|output|logits|vocab){_AFTER}|linear",
    "token_embeddings": r".*emb.*|wte|tok.*",
}
# What may be in a part of the block that says by its name what it is, misspelt or not.
_NOT_NORM = rf"(?!.*{_NORM})"
INSIDE = {
    rf"{_ATTENTION}|{_NOT_NORM}(?:.*att.*|mu.*head.*)": {
        *("qkv", "kv", "q_proj", "k_proj", "v_proj", "output_proj", "ln1")
    },
    rf"{_FEED_FORWARD}|{_NOT_NORM}(?:.*ffn?|.*feed.*|swi.*)": {"w13", "w1", "w2", "w3", "ln2"},
}
HOLDS = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj"), "w13": ("w1", "w3")}
BY_HEAD = {"qkv", "kv"}  # fused matrices that may be laid out head by head


def place(name: str) -> Place:
    """Where a name of the course belongs: `layers.0.attn.q_proj.weight` is q_proj in block 0."""
    parts = name.removesuffix(".weight").split(".")
    layer = int(parts[1]) if parts[0] == "layers" else None
    return Place(layer, parts[-1])


def layer_of(name: str, wanted: Collection[Place]) -> int | None:
    """The block that a learner's parameter is in: the first number in its name, or of `block_0`."""
    numbers = re.findall(r"(?:^|\.)(?:\w*(?:layer|block)_?)?(\d+)(?=\.)", name.lower())
    in_blocks = any(place.layer is not None for place in wanted)
    return int(numbers[0]) if numbers and in_blocks else None


def place_of_learners(name: str, wanted: Collection[Place]) -> Place | None:
    """Where a learner's name belongs among the wanted places; None where it says nothing."""
    parts = name.lower().split(".")
    layer = layer_of(name, wanted)
    there = {other.leaf for other in wanted if other.layer == layer}
    for kind_of_part, leaves in INSIDE.items():
        if any(re.fullmatch(kind_of_part, part) for part in parts[:-1]):
            there &= leaves
    for part in reversed(parts):
        for leaf, pattern in LEAVES.items():
            if there.issuperset(HOLDS.get(leaf, (leaf,))) and re.fullmatch(pattern, part):
                return Place(layer, leaf)
    return None


# Weights by shape.

TRIED = 24  # ways to understand one module that are tried
TRANSPOSED = (
    "The weight is stored transposed. The course keeps one row for each output: (d_out, d_in) of a "
    "linear layer, (vocabulary, d_model) of an embedding."
)
Weights = Mapping[str, Tensor]


class Layout(NamedTuple):
    """A way to fill in the weights, by the learner's names."""

    weights: dict[str, Tensor]
    transposed: bool | None  # None where nothing tells, because all are vectors


def layouts(module: nn.Module, weights: Weights, heads: int = 1) -> list[Layout]:
    """The ways to fill the parameters: one where names are clear, several for a fused matrix.

    Where shapes do not tell whether matrices are transposed, both ways are among them.
    Raises: Wrong where parameters are missing, too many, of another shape or not to be told apart.
    """
    own = own_parameters(module)
    _expect_some(module, own, weights)
    turned = {
        name: weight.T if weight.ndim == 2 and not name.startswith("token_emb") else weight
        for name, weight in weights.items()
    }
    vectors = all(weight.ndim < 2 for weight in weights.values())
    found = [Layout(way, None if vectors else False) for way in _ways(own, weights, heads)]
    if not vectors:
        found += [Layout(way, True) for way in _ways(own, turned, heads, axis=1)]
    if not found:
        _expect_apart(module)
    return found or _refuse(own, weights)


def own_parameters(module: nn.Module) -> dict[str, Tensor]:
    """A learner's parameters by their names, without what `torch.compile` adds to these."""
    return {name.replace("_orig_mod.", ""): each for name, each in module.named_parameters()}


def fill(module: nn.Module, weights: Weights) -> None:
    """Copy weights into the parameters of these names."""
    own = own_parameters(module)
    with torch.no_grad():
        for name, weight in weights.items():
            own[name].copy_(weight)


def _ways(own: Weights, weights: Weights, heads: int, axis: int = 0) -> list[dict[str, Tensor]]:
    """The ways to fill in weights that are all stored in one orientation."""
    if set(own) == set(weights) or len(own) == len(weights) == 1:
        way = dict(zip(sorted(own), (weights[name] for name in sorted(weights)), strict=True))
        return [way] if all(own[name].shape == way[name].shape for name in own) else []
    by_place = {place(name): weight for name, weight in weights.items()}
    groups, guesses = _groups(own, by_place)
    found = (
        {**known, **guess}
        for known in islice(_by_names(own, groups, by_place, heads, axis), TRIED)
        for guess in guesses
    )
    fitting = (way for way in found if all(own[n].shape == w.shape for n, w in way.items()))
    return list(islice(fitting, TRIED))


def _expect_some(module: nn.Module, own: Weights, weights: Weights) -> None:
    """Raise `Wrong` where parameters are not registered, or there are some that should not be."""
    if not weights:
        raise Wrong(
            "There is nothing to learn here, but the module has parameters.",
            expected=Words("no parameters"),
            got=_names(own),
            mistake="Keep what is only computed with `register_buffer`, not as an `nn.Parameter`.",
        )
    hidden = [
        name
        for part in module.modules()
        for name, value in vars(part).items()
        if isinstance(value, list | tuple) and any(map(_has_parameters, value))
    ]
    if hidden:
        raise Wrong(
            "Some parameters are hidden from torch.",
            got=Words(f"`{hidden[0]}`, a plain list of modules"),
            mistake="Modules in a plain list are not found by `parameters()`, and would never be "
            "trained: put them into an `nn.ModuleList`.",
        )
    biases = [name for name in own if "bias" in name or name.endswith("beta")]
    if biases:
        raise Wrong(
            "There is a bias.",
            expected=_names(weights),
            got=_names(own),
            mistake=f"The course's layers have no bias: leave out {_listed(biases)}.",
        )
    if not own:
        raise Wrong(
            "The module has no parameters.",
            expected=_names(weights),
            got=Words("nothing in `named_parameters()`"),
            mistake="Wrap the tensor into an `nn.Parameter` and set it on `self`, so that torch "
            "knows what to train.",
        )


def _expect_apart(module: nn.Module) -> None:
    """Raise `Wrong` where two parameters are one and the same."""
    seen: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        twin = seen.setdefault(id(parameter), name)
        if twin != name:
            layers = [re.findall(r"\d+", each) for each in (name, twin)]
            raise Wrong(
                f"`{twin}` and `{name}` are one and the same parameter.",
                mistake=REPEATED if layers[0] != layers[1] else TIED,
            )


REPEATED = (
    "`[Block(...)] * n` repeats one block: make each anew, as "
    "`[Block(...) for _ in range(n)]` does."
)
TIED = "One shares the matrix of the other: the course gives each its own."


def _has_parameters(value: object) -> bool:
    return isinstance(value, nn.Module) and any(True for _ in value.parameters())


def _groups(
    own: Weights, by_place: dict[Place, Tensor]
) -> tuple[dict[Place, list[str]], list[dict[str, Tensor]]]:
    """The parameters at each place that names tell, and the ways to match the others by shape."""
    groups: dict[Place, list[str]] = {}
    others: dict[tuple, list[str]] = {}
    for name in own:
        if at := place_of_learners(name, by_place):
            groups.setdefault(at, []).append(name)
        else:
            others.setdefault((layer_of(name, by_place), own[name].shape), []).append(name)
    covered = [Place(at.layer, leaf) for at in groups for leaf in HOLDS.get(at.leaf, (at.leaf,))]
    empty: dict[tuple, list[Tensor]] = {}
    for at, weight in by_place.items():
        if at not in covered:
            empty.setdefault((at.layer, weight.shape), []).append(weight)
    fits = {key: len(names) for key, names in others.items()} == {
        key: len(weights) for key, weights in empty.items()
    }
    number = math.prod(math.factorial(len(names)) for names in others.values())
    if len(covered) > len(set(covered)) or not fits or number > TRIED:
        return groups, []
    ways = product(
        *(
            [dict(zip(names, order, strict=True)) for order in permutations(empty[key])]
            for key, names in others.items()
        )
    )
    return groups, [dict(item for part in way for item in part.items()) for way in ways]


def _by_names(
    own: Weights,
    groups: dict[Place, list[str]],
    by_place: dict[Place, Tensor],
    heads: int,
    axis: int,
) -> Iterator[dict[str, Tensor]]:
    """A fused matrix may hold its parts in any order, one after the other or head by head.

    A weight of three axes may have them in any order, which its shape does not always tell.
    """
    fused = sorted({at.leaf for at in groups} & HOLDS.keys())
    orders = [list(permutations(HOLDS[leaf])) for leaf in fused]
    heads_apart = (False, True) if BY_HEAD.intersection(fused) else (False,)
    last_fit = (False, True) if any(weight.ndim == 3 for weight in own.values()) else (False,)
    for *chosen, by_head, last in product(*orders, heads_apart, last_fit):
        order = dict(zip(fused, chosen, strict=True))
        layout: dict[str, Tensor] = {}
        for at, names in groups.items():
            parts = [by_place[Place(at.layer, leaf)] for leaf in order.get(at.leaf, (at.leaf,))]
            if by_head and at.leaf in BY_HEAD:  # all rows of the first head, then of the second
                parts = [part.unflatten(axis, (heads, -1)) for part in parts]
                whole = torch.stack(parts, axis + 1).flatten(axis, axis + 2)
            else:
                whole = torch.cat(parts, axis if parts[0].ndim > 1 else 0)
            pieces = _cut(whole, [own[name].shape for name in names], heads, at.leaf, last)
            if pieces is None:
                break
            layout.update(zip(names, pieces, strict=True))
        else:
            yield layout


def _cut(whole: Tensor, shapes: list, heads: int, leaf: str, last: bool) -> list[Tensor] | None:
    """A weight cut into pieces of these shapes; None where they do not add up to it."""
    if len(shapes) == 1 and len(shapes[0]) == 3:
        by_head = whole.unflatten(int(leaf == "output_proj"), (heads, -1))
        turns = (by_head.permute(turn) for turn in permutations(range(3)))
        fitting = [turned for turned in turns if turned.shape == shapes[0]]
        return (fitting[-1:] if last else fitting[:1]) or None
    for axis in range(whole.ndim):
        sizes = [shape[axis] for shape in shapes if len(shape) == whole.ndim]
        if len(sizes) == len(shapes) and sum(sizes) == whole.shape[axis]:
            pieces = list(whole.split(sizes, axis))
            if [piece.shape for piece in pieces] == shapes:
                return pieces
    return None


LACKING = {
    "ln1": "the norm before attention",
    "ln2": "the norm before the feed-forward layer",
    "ln_final": "the final norm",
    "w3": "the third matrix of SwiGLU, beside W1",
    "output_proj": "the output projection of attention",
}


def _refuse(own: Weights, weights: Weights) -> list[Layout]:
    """Say why the weights find no place: another shape, or another name."""
    if len(own) == len(weights) == 1:
        alone = list(zip(own, weights.values(), strict=True))
    else:
        by_place = {place(name): weight for name, weight in weights.items()}
        groups, _ = _groups(own, by_place)
        alone = [(names[0], by_place.get(at)) for at, names in groups.items() if len(names) == 1]
    for name, weight in alone if len(own) == len(weights) else ():
        if weight is not None and own[name].shape not in (weight.shape, weight.shape[::-1]):
            raise Wrong(
                f"The parameter `{name}` has another shape.",
                expected=Words(tuple(weight.shape)),
                got=Words(tuple(own[name].shape)),
                mistake=_about_shape(own[name].shape, weight.shape),
            )
    missing = [name for name in weights if name not in own]
    mistake = "The check, like the course's tests, fills in weights by these names."
    if set(own) < set(weights):
        mistake += f" Missing: {_listed(missing)}."
        parts = {LACKING.get(place(name).leaf) for name in missing}
        if None not in parts:
            mistake = f"It has not {' and '.join(sorted(parts))}. {mistake}"
    elif set(weights) < set(own):
        mistake += f" Too many: {_listed([name for name in own if name not in weights])}."
    raise Wrong(
        "The parameters have other names, or shapes, than those of the course.",
        expected=_names(weights),
        got=_names(own),
        mistake=mistake,
    )


def _about_shape(own: torch.Size, asked: torch.Size) -> str:
    rounded = tuple(64 * math.ceil(size / 64) for size in asked)
    if len(own) == 2 == sum(o in (a, r) for o, a, r in zip(own, asked, rounded, strict=True)):
        return (
            "d_ff is rounded up to a multiple of 64: take the d_ff that is handed in, and round "
            "where you choose it."
        )
    if math.prod(own) == math.prod(asked):
        return "The numbers would fit, but not in this shape."
    return "Which sizes is this part made of? Another one stands where this one belongs."


def _names(weights: Weights) -> Words:
    items = [f"{name} {tuple(weight.shape)}" for name, weight in weights.items()]
    return Words(", ".join(items[:12]) + (", ..." if len(items) > 12 else ""))


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:6]) + (", ..." if len(names) > 6 else "")


# Gradients.

CUT = (
    "Something cuts the way back: `.detach()`, `.data`, `.item()`, `torch.no_grad`, or a new "
    "tensor made of numbers. (A tensor that is not an `nn.Parameter` gets no gradient either.)"
)
CHANGED = (
    "`x -= ...`, `x[...] = ...` and methods whose name ends in _ write into the caller's tensor, "
    "which may be needed again. Make a new one."
)
IN_PLACE = (
    "A tensor that is needed later is changed in place (`x -= ...`, `x[...] = ...`, a method "
    "whose name ends in _). Make a new one."
)


def check_gradients(
    run: Callable[[Case], Tensor],
    reference: Callable[[Case], Tensor],
    case: Case,
    parameters: Callable[[], Iterable[tuple[str, Tensor]]] = list,
) -> list[str]:
    """Raise `Wrong` unless the gradients that a right result sends back are the right ones.

    Those of the inputs are compared with the reference's; of the `parameters` of what ran, it is
    asked that there are any. Returns remarks on what is allowed, but no good habit.
    """
    wanted, leaves = _wanting(case)
    try:
        result = run(wanted)
    except Wrong as failure:
        if "in-place" in str(failure.error):
            failure.mistake = IN_PLACE
        failure.claim = "It raised an error when gradients are asked for."
        raise
    given = Words(str(case))
    if not result.requires_grad:
        raise Wrong("No gradient can flow through the result.", given=given, mistake=CUT)
    # Weighted differently, because the sum of a row of softmax has no gradient at all.
    weights = drawn(*result.shape, seed=99) if result.ndim else torch.tensor(1.0)
    try:
        (result * weights).sum().backward()
    except RuntimeError as error:
        got = Words(str(error).partition(". ")[0])
        claim = "The result is right, but it cannot be trained: the way back fails."
        raise Wrong(claim, given=given, got=got, mistake=IN_PLACE) from error
    expected = _expected(reference, case, weights)
    for name, leaf in leaves.items():
        if leaf.grad is None:
            raise Wrong(f"No gradient comes back to {name}.", given=given, mistake=CUT)
        if not alike(leaf.grad, expected[name], 1e-3):
            right, got = beside(expected[name], leaf.grad)
            claim = f"The result is right, but the gradient that comes back to {name} is not."
            raise Wrong(claim, given=given, expected=right, got=got, mistake=CUT)
    for name, parameter in parameters():
        if parameter.grad is None:
            claim = f"No gradient comes back to the parameter `{name}`."
            raise Wrong(claim, given=given, mistake=CUT)
    if any(not wanted.inputs[name].eq(leaf).all() for name, leaf in leaves.items()):
        claim = "The result is right, but the tensor that came in is changed."
        raise Wrong(claim, given=given, mistake=CHANGED)
    if result.dtype == case.dtype:
        return []
    return [f"The type changes: {kind(case.dtype)} goes in, {kind(result.dtype)} comes out."]


def _wanting(case: Case) -> tuple[Case, dict[str, Tensor]]:
    """The case with inputs that want a gradient, as if computed from the leaves beside them."""
    leaves = {
        name: value.clone().requires_grad_()
        for name, value in case.inputs.items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    computed = {name: leaf.clone() for name, leaf in leaves.items()}
    return replace(case, inputs={**case.inputs, **computed}), leaves


def _expected(
    reference: Callable[[Case], Tensor], case: Case, weights: Tensor
) -> dict[str, Tensor]:
    case, leaves = _wanting(case)
    if not leaves:
        return {}
    with torch.enable_grad():
        (reference(case) * weights).sum().backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


# First weights.

CUT_AT = 3  # standard deviations
CUT_STD = 0.98658  # of N(0, 1) without what lies beyond 3


def check_first_weights(learner: Learner, case: Case) -> None:
    """Raise `Wrong` for the first of a large module's weights that is not drawn as its kind is."""
    torch.manual_seed(0)
    module = learner.make(case)
    new = {name: each.detach().clone() for name, each in own_parameters(module).items()}
    # Weights that are numbers of their own tell which of them a parameter holds.
    marked = {name: torch.full_like(w, i) for i, (name, w) in enumerate(case.weights.items())}
    way, *_ = layouts(module, marked, case.arguments.get("num_heads", 1))
    for name, weight in new.items():
        made = f"{case.name}: its `{name}`"
        holds = [list(case.weights.items())[int(i)] for i in way.weights[name].unique()]
        if weight.ndim == 1:
            if not weight.eq(1).all():
                raise Wrong(f"The gain `{name}` does not start at 1.", given=Words(f"a new {made}"))
        elif holds[0][0] == "token_embeddings.weight":
            check_drawn(weight, 1.0, {}, made)
        else:
            # A fused matrix may be drawn as one or as what it holds; one for each head, likewise.
            shapes = [*(each.shape for _, each in holds), weight.shape[-2:], weight.shape]
            stds = [math.sqrt(2 / sum(shape)) for shape in shapes if len(shape) == 2]
            spread = weight.double().std().item()
            std = min(stds, key=lambda std: abs(std * CUT_STD - spread))
            check_drawn(weight, std, {2 / sum(shapes[0]): VARIANCE, 1.0: PLAIN, 0.02: GPT2}, made)


VARIANCE = "The variance was taken for the standard deviation: √ is missing."
PLAIN = "The standard deviation is 1: these are plain `randn`, not scaled at all."
GPT2 = "The standard deviation is GPT-2's 0.02: the course asks for √(2 / (d_in + d_out))."


def check_drawn(weight: Tensor, std: float, others: Mapping[float, str], made: str) -> None:
    """Raise `Wrong` unless a large matrix looks like N(0, std²) cut at three deviations.

    `others` are standard deviations that come of usual mistakes, each with its words.
    """
    weight = weight.detach().double().flatten()
    spread, largest = weight.std().item(), weight.abs().max().item()
    if not spread < 1e6:
        mistake = "`torch.empty` holds whatever was in memory: fill it."
    elif spread < 1e-12 or weight.unique().numel() < 10:
        mistake = (
            "All numbers are (nearly) the same: rows that start equal stay equal. Draw them here, "
            "in the layer itself, even where a model draws the weights of all its layers anew."
        )
    elif abs(weight.mean().item()) > 0.1 * spread:
        mistake = "The mean is not 0." + (
            " `torch.rand` gives 0 to 1." if weight.min() >= 0 else ""
        )
    elif largest < 1.9 * spread:
        mistake = "The numbers are uniform, not normal."
    elif not math.isclose(spread, std * CUT_STD, rel_tol=0.04):
        mistake = next(
            (
                words
                for other, words in others.items()
                if any(math.isclose(spread, f * other, rel_tol=0.02) for f in (1, CUT_STD))
            ),
            _too_narrow(spread, largest, std),
        )
    elif largest > CUT_AT * std * 1.001:
        mistake = (
            "The distribution is not cut at 3 standard deviations. The limits of `trunc_normal_` "
            f"are numbers, not multiples: a=-{CUT_AT * std:.4g}, b={CUT_AT * std:.4g}."
        )
    else:
        return
    raise Wrong(
        "The weight is not drawn as the course asks.",
        given=Words(f"a new {made}"),
        expected=Words(f"numbers from N(0, {std:.4g}²), cut at ±{CUT_AT * std:.4g}"),
        got=Words(
            f"standard deviation {spread:.4g}, mean {weight.mean().item():.2g}, "
            f"largest {largest:.4g}"
        ),
        mistake=mistake,
    )


def _too_narrow(spread: float, largest: float, std: float) -> str | None:
    if spread < std and 0.9 * std < largest <= 2.001 * std:
        return "The distribution is cut too early: the limits are ±3 standard deviations."
    return f"The standard deviation is about {spread / std:.2g} times what it should be."
