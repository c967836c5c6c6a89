"""How a learner's class is made and called, and how it gets the weights of a case.

Classes differ in their arguments (`calling` finds out which is which), and in how they keep their
weights: under other names, several in one matrix, one for each head, transposed. What else
a right class needs is checked here too: gradients and initial weights.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
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
from workbook.checks.engine import Exercise, usual
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


class Learner:
    """A learner's class in the cases of an exercise; each case gets a module of its own."""

    def __init__(self, attempt: Any, exercise: Exercise, rope: type[nn.Module]):
        longest = max(exercise.cases, key=lambda case: len(case.arguments))
        expect_class(attempt, f"class {longest.name} with {longest.signature}")
        if "__init__" in vars(attempt) and is_stub(attempt.__init__):
            raise NotAttempted("`__init__` is still missing.")
        self.attempt, self.exercise, self.rope = attempt, exercise, rope
        self.forward = getattr(attempt, "forward", None)
        self.module: nn.Module | None = None  # the last one
        # Whether positions are wanted as (1, seq), and which of several ways to fill in weights
        # was the right one last.
        self.form = (False, 0)
        self.transposed: bool | None = None  # how weights are stored, once it is known
        self.own_rope: type | None = None  # to be handed in instead of ours
        self.in_tuple = False  # whether results come first in a tuple

    def __call__(self, case: Case) -> Tensor:
        """What a module makes of a case, with its weights filled in. Raises: Wrong."""
        self.module = module = self.make(case)
        for parameter in module.parameters():
            parameter.data = parameter.data.to(case.dtype)
        ways = self.ways(case)
        if len({way.transposed for way in ways}) == 1:
            self.transposed = ways[0].transposed
        both = self.takes_positions() and {"num_heads", "theta"} <= case.arguments.keys()
        forms = product((False, True) if both else (False,), range(len(ways)))
        last, outcomes, expected = self.form, [], self.exercise.expected
        for form in sorted(forms, key=lambda form: form != last):
            self.form, way = form, ways[form[1]]
            fill(module, way.weights)
            try:
                outcomes.append(self.run(case))
                if (len(ways) == 1 and not both) or alike(outcomes[-1], expected(case)):
                    self.transposed = way.transposed
                    return outcomes[-1]
            except (Wrong, NotAttempted) as failure:
                outcomes.append(failure)
        self.form = last
        results = [each for each in outcomes if isinstance(each, Tensor)]
        if not results:
            raise outcomes[0]
        return results[0]  # a result says more than the refusal of another form of positions

    def ways(self, case: Case) -> list["Layout"]:
        """The ways to fill the last module with the weights of a case."""
        try:
            ways = layouts(self.module, case.weights, case.arguments.get("num_heads", 1))
        except Wrong:
            if not any(True for _ in self.module.parameters()):
                self.run(case)  # a skeleton that returns nothing: raises NotAttempted
            raise
        return [way for way in ways if way.transposed == self.transposed] or ways

    def gradients(self, case: Case) -> Iterator[tuple[str, Tensor | None, Tensor]]:
        """By name, the gradients of the last module, and those expected, as weights of a case."""
        way = self.ways(case)[self.form[1]]
        for name, parameter in own_parameters(self.module).items():
            yield name, parameter.grad, way.weights[name]

    def ready(self, case: Case) -> Any:
        """RoPE of the sizes of a case, for a class that is handed one."""
        theta, length = (_first(case.arguments, names) for names in (THETA, LENGTH))
        d_k = case.arguments["d_model"] // case.arguments["num_heads"]
        with suppress(Wrong, NotAttempted):
            if self.own_rope:
                values = {"theta": theta, "d_k": d_k, "max_seq_len": length or d_k}
                args, kwargs, _ = bind(self.own_rope, values)
                return call(self.own_rope, *args, **kwargs)
        return self.rope(theta, d_k, length)

    def takes_own_rope(self) -> bool:
        """Hand in the learner's own RoPE from now on; False if none is beside the class.

        Only their classes know what it is called with, and what it returns.
        """
        beside = vars(sys.modules.get(self.attempt.__module__, self.attempt)).values()
        ropes = [each for each in beside if inspect.isclass(each) and _is_rope(each)]
        self.own_rope = ropes[-1] if ropes and self.takes("rope") else None
        return bool(self.own_rope)

    def takes(self, *names: str) -> bool:
        """Whether the class, or its `forward`, has an argument of one of these meanings."""
        return bool(_asked(self.attempt, *names) or _asked(self.forward, *names))

    def turns(self) -> bool:
        """Whether RoPE is always applied: there is no switch, and θ is never None."""
        return not any(map(switches_rope, parameters_of(self.attempt))) and any(
            each.default is each.empty or isinstance(each.default, float | int)
            for each in _asked(self.attempt, *THETA, "rope")
        )

    def takes_positions(self) -> bool:
        """Whether `forward` takes positions."""
        return _takes_positions(self.forward)

    def make(self, case: Case, **further: Any) -> nn.Module:
        """A module of the sizes of a case. Raises: Wrong, NotAttempted."""
        values, maker = dict(case.arguments), self.attempt
        given = Words(f"{case.name}({', '.join(f'{name}={v:g}' for name, v in values.items())})")
        d_head = values.get("d_model", 0) // values.get("num_heads", 1)
        theta = _first(values, THETA)
        if theta is not None and not self.takes(*THETA):
            if self.takes("rope"):
                values = {name: value for name, value in values.items() if name not in THETA}
                if _asked(maker, "rope"):
                    values["rope"] = self.ready(case)
            else:  # the class may have a constructor for RoPE, such as `with_rope`
                ways = [getattr(maker, n) for n, v in vars(maker).items() if type(v) is classmethod]
                maker = next((way for way in ways if _asked(way, *THETA)), maker)
        if theta is not None and any(each.default is None for each in _asked(maker, "d_k")):
            values = {"d_k": d_head, **values}  # without it, some leave RoPE out
        extras = {"d_k": d_head, "d_v": d_head, "max_seq_len": 16}
        if any(map(switches_rope, parameters_of(maker))):
            extras["theta"] = 10_000.0  # which is switched off, or in `values`
        options = {"extras": extras, "given": given, "rope": theta is not None}
        try:
            args, kwargs, _ = bind(maker, values, **options)
        except Wrong:  # a RoPE without tables has no longest sequence
            fewer = {name: value for name, value in values.items() if name not in LENGTH}
            if fewer == values or self.takes(*LENGTH):
                raise
            args, kwargs, _ = bind(maker, fewer, **options)
        try:
            module = _called(maker, *args, **{**kwargs, **further})
        except Wrong as failure:
            failure.mistake = failure.mistake or usual(failure.error) or IN_INIT
            raise
        if not isinstance(module, nn.Module) or "_parameters" not in vars(module):
            raise Wrong(
                "It is not a torch module.",
                expected=Words("a class that inherits from `torch.nn.Module`"),
                got=Words(kind_of(self.attempt)),
                mistake="Only what a module holds is trained, saved and moved with the model. "
                + NO_INIT,
            )
        return module.cpu().eval()

    def run(self, case: Case) -> Tensor:
        """What the last module makes of copies of the inputs of a case."""
        module, given = self.module, Words(str(case))
        if is_stub(type(module).forward):
            raise NotAttempted("`forward` is still missing.")
        values = {name: copied(value) for name, value in case.inputs.items()}
        optional, extras = (), {}
        forward = module if type(module).__call__ is not nn.Module.__call__ else module.forward
        if "num_heads" in case.arguments:
            length = next(iter(values.values())).shape[-1 if "token_ids" in values else -2]
            theta = _first(case.arguments, THETA)
            extras = {
                "token_positions": torch.arange(length),
                "mask": torch.ones(length, length, dtype=torch.bool).tril(),
                "rope": None,
            }
            if theta is not None and _asked(forward, "rope"):
                values["rope"] = self.ready(case)
            if not _takes_positions(forward):
                optional = ("token_positions",)
            elif theta is not None and "token_positions" not in values:
                values["token_positions"] = extras["token_positions"]
            positions = values.get("token_positions")
            if self.form[0] and positions is not None and positions.ndim == 1:
                values["token_positions"] = positions.unsqueeze(0)
        args, kwargs, _ = bind(forward, values, optional=optional, extras=extras, given=given)
        result = _called(module, *args, given=given, **kwargs)
        if isinstance(result, tuple) and "num_heads" in case.arguments:
            shape = self.exercise.expected(case).shape
            first = first_of(result, lambda x: isinstance(x, Tensor) and x.shape == shape)
            self.in_tuple, result = first is not result, first
        return tensor_of(result, given)

    def remarks(self, case: Case) -> list[str]:
        """Remarks on a right class."""
        found = []
        if case.weights and "dtype" in inspect.signature(self.attempt).parameters:
            try:
                made = self.make(case, dtype=torch.float64)
                if {parameter.dtype for parameter in made.parameters()} != {torch.float64}:
                    found.append("`dtype` is accepted, but not every parameter gets it.")
            except (Wrong, TypeError):
                found.append("It fails when `dtype=torch.float64` is given.")
        if self.form[0]:
            found.append("Positions of shape (seq,) fail: those of shape (1, seq) were given.")
        if self.in_tuple:
            found.append("It returns a tuple, whose first item was taken as the result.")
        if not case.weights and self.module.state_dict():
            found.append("Its tables are saved with the model: `persistent=False` keeps them out.")
        return found


def _first(values: Mapping[str, Any], names: Collection[str]) -> Any:
    """The value under one of these names; None where there is none."""
    return next((values[name] for name in names if name in values), None)


def _is_rope(kind: type) -> bool:
    named = re.search("rope|rotary|pos", kind.__name__, re.I)
    return bool(named and _asked(kind, *THETA) and not _asked(kind, "num_heads"))


def _asked(function: Any, *names: str) -> list[inspect.Parameter]:
    """The parameters that mean one of these, and are more than yes/no switches."""
    return [p for p in parameters_of(function) if meaning(p.name, names) and not is_switch(p)]


def _takes_positions(forward: Any) -> bool:
    """Whether a `forward` takes positions: by name, or under a single letter in second place."""
    names = [parameter.name for parameter in parameters_of(forward) if parameter.name != "self"]
    return any(
        ("pos" in name and not meaning(name, ["rope"])) or (len(name) == 1 and place == 1)
        for place, name in enumerate(names)
    ) or any(p.kind is p.VAR_POSITIONAL for p in parameters_of(forward))


def _called(function: Any, *args: Any, given: Any = None, **kwargs: Any) -> Any:
    """Call a learner's class or module, without `torch.compile`."""
    try:
        with uncompiled():
            return call(function, *args, seconds=QUICK, given=given, **kwargs)
    except Wrong as failure:
        if "before Module.__init__" in str(failure.error):
            failure.mistake = NO_INIT
        raise


@contextmanager
def uncompiled() -> Iterator[None]:
    """Make `torch.compile` do nothing: it takes many times as long as any case of a check.

    Its code is replaced, because an attempt may have it under another name; stopping it midway
    would leave torch's compiler half imported.
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


# Weights by name. The course's names always work; others are understood if they mean the same:
# `wq` or `query` for `q_proj`, `norm1` for `ln1`. Several parameters may share one weight, as a
# list of heads does, and one may hold several, as a fused `qkv` does.


class Place(NamedTuple):
    """A weight by the block that it is in (None outside) and the last part of its name."""

    layer: int | None
    leaf: str


_BEFORE = r"(?:[a-z]+_|w|to|fc|lin|linear|proj|attn|mha)?"
_AFTER = r"(?:_?(?:w|weights?|proj|projection|lin|linear|layer|heads?|matrix)){0,2}"
_NORM = r"(?:ln|norm|rms|rms_?norm|layer_?norm)"
_ATTENTION = r"(?:self_)?(?:att[a-z]*|mha|mhsa|msa|sa|input)"
_FEED_FORWARD = r"(?:ffn?|mlp|feed_?forward|post_attention|swi_?glu)"
LEAVES = {
    "qkv": rf"{_BEFORE}(?:fused_|combined_)?qkv{_AFTER}|query_key_value|c_attn|in_proj(?:_weight)?",
    "kv": rf"{_BEFORE}kv{_AFTER}",
    "q_proj": rf"{_BEFORE}(?:q|query|queries){_AFTER}",
    "k_proj": rf"{_BEFORE}(?:k|keys?){_AFTER}",
    "v_proj": rf"{_BEFORE}(?:v|values?){_AFTER}",
    "output_proj": rf"{_BEFORE}(?:o|out|output){_AFTER}|(?:c_)?proj|projection|dense|w_?0",
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
# What a part of the block may hold if its name says what it is, misspelt or not.
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
    """Where a learner's name belongs among the wanted places; None if it says nothing."""
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

TRIED = 24  # at most so many ways to read one module are tried
TRANSPOSED = (
    "The weight is stored transposed. The course keeps one row for each output: (d_out, d_in) in a "
    "linear layer, (vocabulary, d_model) in an embedding."
)
Weights = Mapping[str, Tensor]


class Layout(NamedTuple):
    """A way to fill in the weights, by the learner's names."""

    weights: dict[str, Tensor]
    transposed: bool | None  # None if nothing shows it, because all are vectors


def layouts(module: nn.Module, weights: Weights, heads: int = 1) -> list[Layout]:
    """The ways to fill the parameters: one if names are clear, several for a fused matrix.

    If shapes do not show whether matrices are transposed, both ways are included.
    Raises: Wrong if parameters are missing, too many, of another shape or indistinguishable.
    """
    parameters = own_parameters(module)
    _expect_some(module, parameters, weights)
    # A gain may have axes of length 1 besides its own, such as (1, d_model).
    own = {n: each.flatten() if _is_vector(each) else each for n, each in parameters.items()}
    vectors = all(weight.ndim < 2 for weight in weights.values())
    found = [Layout(way, None if vectors else False) for way in _ways(own, weights, heads)]
    matrices = [n for n, w in weights.items() if w.ndim == 2 and not n.startswith("token_emb")]
    last = [name for name in matrices if name.endswith("w2.weight")]  # alone: (d_ff, d_model) too
    for names, axis in ((matrices, 1), (last, 0)):
        turned = {n: weight.T if n in names else weight for n, weight in weights.items()}
        if names:
            found += [Layout(way, True) for way in _ways(own, turned, heads, axis)]
    return [
        Layout({n: w.reshape(parameters[n].shape) for n, w in way.weights.items()}, way.transposed)
        for way in found or _refuse(module, own, weights)
    ]


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
        known = zip(sorted(own), (weights[name] for name in sorted(weights)), strict=True)
        found: Iterator[dict] = iter([dict(known)])
    else:
        by_place = {place(name): weight for name, weight in weights.items()}
        groups, guesses = _groups(own, by_place)
        found = (
            {**known, **guess}
            for known in islice(_by_names(own, groups, by_place, heads, axis), TRIED)
            for guess in guesses
        )
    fitting = (way for way in found if all(own[n].shape == w.shape for n, w in way.items()))
    return list(islice(fitting, TRIED))


def _is_vector(tensor: Tensor) -> bool:
    """Whether no axis but one is longer than 1."""
    return tensor.numel() == max(tensor.shape, default=1)


def _expect_some(module: nn.Module, own: Weights, weights: Weights) -> None:
    """Raise `Wrong` if parameters are not registered, or some should not be there."""
    hidden = [
        name
        for part in module.modules()
        for name, value in vars(part).items()
        if isinstance(value, list | tuple)
        and any(isinstance(each, nn.Module) and own_parameters(each) for each in value)
    ]
    biases = [name for name in own if "bias" in name or name.endswith("beta")]
    learned = [name for name in own if re.search(LEARNED, name)]
    claim = None
    if own and not weights:
        claim = "There is nothing to learn here, but the module has parameters."
        mistake = "Store computed tables with `register_buffer`, not as an `nn.Parameter`."
    elif hidden:
        claim = f"Some parameters are hidden from torch: `{hidden[0]}` is a plain list of modules."
        mistake = (
            "Modules in a plain list are not found by `parameters()`, and would never be trained: "
            "put them into an `nn.ModuleList`."
        )
    elif biases:
        claim = "There is a bias."
        mistake = f"The course's layers have no bias: leave out {_listed(biases)}."
    elif learned:
        claim = "Position embeddings are learned."
        mistake = f"The course uses RoPE instead: leave out {_listed(learned)}."
    elif weights and not own:
        claim = "The module has no parameters."
        mistake = (
            "Wrap the tensor in an `nn.Parameter` and set it on `self`, so that torch knows what "
            "to train."
        )
    if claim:
        raise Wrong(claim, expected=_names(weights), got=_names(own), mistake=mistake)


REPEATED = (
    "`[Block(...)] * n` repeats one block: make each one separately, as "
    "`[Block(...) for _ in range(n)]` does."
)
TIED = "They share one weight: in the course each has its own."
LEARNED = r"(?:^|\.)(?:wpe|pos(?:ition(?:al)?)?s?_?(?:emb|enc)\w*)(?:\.|$)"


def _groups(
    own: Weights, by_place: dict[Place, Tensor]
) -> tuple[dict[Place, list[str]], list[dict[str, Tensor]]]:
    """The parameters at each place that names show, and the ways to match the others by shape."""
    groups: dict[Place | None, list[str]] = {}
    for name in own:
        groups.setdefault(place_of_learners(name, by_place), []).append(name)
    unclear = groups.pop(None, [])
    for at, names in [*groups.items()]:  # of two names for one whole weight, neither tells
        if len(names) > 1 and at in by_place and own[names[0]].shape == by_place[at].shape:
            unclear += groups.pop(at)
    held = [Place(at.layer, leaf) for at in groups for leaf in HOLDS.get(at.leaf, (at.leaf,))]
    # By shape, in or outside the layers, and by layer: names, and the weights that have none.
    open_: dict[tuple, dict[int | None, tuple[list[str], list[Tensor]]]] = {}
    for side, layer, shape, each in (
        *((0, layer_of(name, by_place), own[name].shape, name) for name in unclear),
        *((1, at.layer, w.shape, w) for at, w in by_place.items() if at not in held),
    ):
        layers = open_.setdefault((layer is None, shape), {})
        layers.setdefault(layer, ([], []))[side].append(each)
    ways: list[dict[str, Tensor]] = [{}]
    for layers in open_.values():  # the layers are alike: one order holds for them all
        number, *others = {len(side) for sides in layers.values() for side in sides}
        if others or len(ways) * math.factorial(number) > TRIED:
            return groups, []
        ways = [
            way
            | {
                n: weights[i]
                for names, weights in layers.values()
                for n, i in zip(names, order, strict=True)
            }
            for way, order in product(ways, permutations(range(number)))
        ]
    return groups, [] if len(held) > len(set(held)) else ways


def _by_names(
    own: Weights,
    groups: dict[Place, list[str]],
    by_place: dict[Place, Tensor],
    heads: int,
    axis: int,
) -> Iterator[dict[str, Tensor]]:
    """The ways to fill the parameters whose names are clear.

    A fused matrix may hold its parts in any order, one after the other or head by head. A weight
    of three axes may have them in any order, which its shape does not always show.
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
    """A weight cut into pieces of these shapes; None if they do not add up to it."""
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


def _refuse(module: nn.Module, own: Weights, weights: Weights) -> list[Layout]:
    """Say why the weights do not fit: one is shared, or has another shape or name."""
    seen: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        twin = seen.setdefault(id(parameter), name)
        if twin != name:
            layers = [re.findall(r"\.(\d+)\.", each) for each in (name, twin)]
            claim = f"`{twin}` and `{name}` are one and the same parameter."
            raise Wrong(claim, mistake=REPEATED if layers[0] != layers[1] else TIED)
    by_place = {place(name): weight for name, weight in weights.items()}
    groups, _ = _groups(own, by_place)
    alone = {n: by_place[at] for at, (n, *more) in groups.items() if at in by_place and not more}
    if len(own) == len(weights) == 1:
        alone = dict(zip(own, weights.values(), strict=True))
    for name, weight in alone.items():
        if own[name].shape not in (weight.shape, weight.shape[::-1]):
            raise _of_shape(name, own[name], weight)
    for name, weight in alone.items():  # some are transposed, or all would have been understood
        if len(alone) == len(own) == len(weights) and own[name].shape != weight.shape:
            raise _of_shape(name, own[name], weight)
    held = {Place(at.layer, leaf) for at in groups for leaf in HOLDS.get(at.leaf, (at.leaf,))}
    missing = [name for name in weights if place(name) not in held]
    unknown = [name for name in own if not any(name in names for names in groups.values())]
    mistake = "The check, like the course's tests, fills in weights by these names."
    mistake += f" Missing: {_listed(missing)}." if missing else ""
    mistake += f" Not understood: {_listed(unknown)}." if unknown else ""
    raise Wrong(
        "The parameters have names or shapes other than those of the course.",
        expected=_names(weights),
        got=_names(own),
        mistake=mistake,
    )


def _of_shape(name: str, own: Tensor, asked: Tensor) -> Wrong:
    return Wrong(
        f"The parameter `{name}` has the wrong shape.",
        expected=Words(tuple(asked.shape)),
        got=Words(tuple(own.shape)),
        mistake=_about_shape(own.shape, asked.shape),
    )


def _about_shape(own: torch.Size, asked: torch.Size) -> str:
    sizes = zip(own, asked, strict=False)
    if len(own) == len(asked) == 2 == sum(o == a or o % 64 == 0 for o, a in sizes):
        return (
            "d_ff is rounded to a multiple of 64: use the d_ff that is passed in, and round "
            "where you choose it."
        )
    if own == asked[::-1]:
        return (
            "Its axes are swapped, but not those of all the others: it is stored transposed, or "
            "has another parameter's name."
        )
    if math.prod(own) == math.prod(asked):
        return "The numbers would fit, but not in this shape."
    return "Check the sizes that this part is made with: one is used where another belongs."


def _names(weights: Weights) -> Words:
    items = [f"{name} {tuple(weight.shape)}" for name, weight in weights.items()]
    return Words(", ".join(items[:12]) + (", ..." if len(items) > 12 else "") or "no parameters")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:6]) + (", ..." if len(names) > 6 else "")


# Gradients.

CUT = (
    "Something cuts off the gradient: `.detach()`, `.data`, `.item()`, `torch.no_grad`, or a new "
    "tensor made from numbers. (A tensor that is not an `nn.Parameter` gets no gradient either.)"
)
PADDING = "Row 0 learns nothing: it is not padding, but a vector like any other."
IN_PLACE = (
    "A tensor that is needed later is changed in place (`x -= ...`, `x[...] = ...`, a method "
    "whose name ends in _). Make a new one."
)


def check_gradients(
    run: Callable[[Case], Tensor], exercise: Exercise, case: Case, learner: Learner | None = None
) -> list[str]:
    """Raise `Wrong` unless the gradients that a right result sends back are the right ones.

    Those of the inputs, and of the parameters of a learner's module, are compared with the
    reference's. Returns remarks on what is allowed, but not good practice.
    """
    leaves, given = _leaves(case.inputs), Words(str(case))
    # Inputs are handed in as if they had been computed from the leaves.
    inputs = {**case.inputs, **{name: leaf.clone() for name, leaf in leaves.items()}}
    try:
        result = run(replace(case, inputs=inputs))
    except Wrong as failure:
        if "in-place" in str(failure.error):
            failure.mistake = IN_PLACE
        failure.claim = "It raised an error when its inputs required gradients."
        raise
    if not result.requires_grad:
        raise Wrong("No gradient can flow through the result.", given=given, mistake=CUT)
    # Weighted differently, because the sum of a row of softmax has no gradient at all.
    factors = drawn(*result.shape, seed=99) if result.ndim else torch.tensor(1.0)
    try:
        (result * factors).sum().backward()
    except RuntimeError as error:
        got = Words(str(error).partition(". ")[0])
        claim = "The result is right, but it cannot be trained: the backward pass fails."
        raise Wrong(claim, given=given, got=got, mistake=IN_PLACE) from error
    values, weights = _leaves(case.inputs), _leaves(case.weights)
    again = replace(case, inputs={**case.inputs, **values}, weights=weights)
    with torch.enable_grad():
        (exercise.program.edited()(again) * factors).sum().backward()
    pairs = [(name, leaf.grad, values[name].grad) for name, leaf in leaves.items()]
    if learner:
        right = replace(case, weights={name: leaf.grad for name, leaf in weights.items()})
        pairs += learner.gradients(right)
    for name, got, expected in pairs:
        if got is None:
            raise Wrong(f"No gradient reaches `{name}`.", given=given, mistake=CUT)
        if not alike(got, expected, 1e-3):
            claim = f"The result is right, but the gradient that reaches `{name}` is not."
            padded = not got[:1].any() and expected[:1].any()
            right, shown = beside(expected, got)
            mistake = PADDING if padded else CUT
            raise Wrong(claim, given=given, expected=right, got=shown, mistake=mistake)
    if any(not inputs[name].eq(leaf).all() for name, leaf in leaves.items()):
        claim = "The result is right, but the input tensor is changed."
        raise Wrong(claim, given=given, mistake=IN_PLACE)
    if result.dtype == case.dtype:
        return []
    return [f"The type changes: {kind(case.dtype)} goes in, {kind(result.dtype)} comes out."]


def _leaves(values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Copies, which require gradients, of all tensors that can have one."""
    tensors = {name: each for name, each in values.items() if isinstance(each, Tensor)}
    return {n: t.clone().requires_grad_() for n, t in tensors.items() if t.is_floating_point()}


# Initial weights.

CUT_AT = 3  # standard deviations
CUT_STD = 0.98658  # of N(0, 1) without what lies beyond 3


def check_first_weights(learner: Learner, case: Case, found: Findings) -> None:
    """Find the gains of a large module that do not start at 1, and weights not drawn as asked.

    A wrong gain goes wrong in use, and so does a wrong scale in a single layer; in a larger part
    that is a corner. So is a weight that nothing fills, since the model may do so; in the model
    itself it is not.
    """
    torch.manual_seed(0)
    with _marked_where_empty():
        learner.module = module = learner.make(case)
    own = {name: each.detach().double() for name, each in own_parameters(module).items()}
    # Weights filled with distinct numbers show which of them a parameter holds.
    marked = {name: torch.full_like(w, i) for i, (name, w) in enumerate(case.weights.items())}
    (way, *_), weights = learner.ways(replace(case, weights=marked)), [*case.weights.items()]
    is_model = "num_layers" in case.arguments
    with found("use" if is_model else "corner"):
        if empty := next((name for name, weight in own.items() if weight.isnan().any()), None):
            raise Wrong(
                f"Nothing fills `{empty}`.",
                given=Words(f"a new {case.name}"),
                mistake="`torch.empty` holds whatever was in memory. Draw the numbers in the layer "
                "itself, even if the model draws those of all its layers again.",
            )
    if empty:
        return
    with found("use"):
        for name, weight in own.items():
            if _is_vector(weight) and not weight.eq(1).all():
                got = Words(f"numbers from {weight.min():.4g} to {weight.max():.4g}")
                claim = f"The gain `{name}` does not start at 1."
                raise Wrong(claim, given=Words(f"a new {case.name}"), got=got)
    if found and len(own) > 1:
        return
    with found("use" if len(own) == 1 else "corner"):
        for name, weight in own.items():
            numbers = way.weights[name].flatten().long().bincount().nonzero().flatten().tolist()
            if not _is_vector(weight):
                # A fused matrix may be drawn as one or as what it holds; one for each head, too.
                shapes = [*(weights[i][1].shape for i in numbers), weight.shape[-2:], weight.shape]
                shapes = [shape for shape in shapes if len(shape) == 2]
                is_table = case.name == "Embedding" or "token_emb" in weights[numbers[0]][0]
                check_drawn(weight, shapes, is_table, f"a new {case.name}: its `{name}`")


@contextmanager
def _marked_where_empty() -> Iterator[None]:
    """Make `torch.empty` and the like hold NaN, as torch does in its deterministic mode."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def check_drawn(weight: Tensor, shapes: Sequence[tuple], is_table: bool, made: str) -> None:
    """Raise `Wrong` unless a large matrix looks like N(0, std²) truncated at three deviations.

    The std is 1 for an embedding, and √(2 / (d_in + d_out)) for a matrix of one of these shapes.
    Another form of the distribution, of about that std, is no more than a corner.
    """
    flat = weight.flatten()
    spread, mean, largest = flat.std().item(), flat.mean().item(), flat.abs().max().item()
    stds = [1.0] if is_table else [math.sqrt(2 / sum(shape)) for shape in shapes]
    std = min(stds, key=lambda std: abs(std * CUT_STD - spread))
    about, cut = math.isclose(spread, std, rel_tol=0.15), f"{CUT_AT * std:.4g}"
    if spread < 1e-12 or flat[:999].unique().numel() < 10:
        about = False
        mistake = (
            "All numbers are (nearly) the same: rows that start equal stay equal. Draw them here, "
            "in the layer itself, even if a model draws the weights of all its layers again."
        )
    elif abs(mean) > 0.1 * spread:
        about = False
        mistake = "The mean is not 0." + (" `torch.rand` gives 0 to 1." if flat.min() >= 0 else "")
    elif largest < 1.9 * spread:
        mistake = "The numbers are uniform, not normal."
    elif about and largest <= 2.001 * std:
        mistake = "The distribution is truncated too early: its limits are ±3 standard deviations."
    elif not math.isclose(spread, std * CUT_STD, rel_tol=0.04):
        asked = "1" if is_table else "√(2 / (d_in + d_out))"
        mistake = f"The standard deviation should be {asked}, but is {_formula(spread, shapes)}."
        about = False
    elif largest > CUT_AT * std * 1.001:
        mistake = (
            "The distribution is not truncated at 3 standard deviations. The limits of "
            f"`trunc_normal_` are values, not multiples of the std: a=-{cut}, b={cut}."
        )
    elif is_table and not weight.any(-1).all():
        about, mistake = False, "A row of a new embedding is 0: no id is padding."
    else:
        return
    wrong = Wrong(
        "The weight is not drawn as the course asks.",
        given=Words(made),
        expected=Words(f"numbers from N(0, {std:.4g}²), truncated at ±{cut}"),
        got=Words(f"standard deviation {spread:.4g}, mean {mean:.2g}, largest {largest:.4g}"),
        mistake=mistake,
    )
    wrong.weight = "corner" if about else "use"
    raise wrong


def _formula(spread: float, shapes: Sequence[tuple]) -> str:
    """The usual formula that gives a standard deviation; the number if none does."""
    formulas = [("1 (plain `randn`)", 1.0), ("GPT-2's 0.02", 0.02)]
    formulas.append(("that of a bare `trunc_normal_`, 1 truncated at ±2", 0.8796))
    for d_out, d_in in shapes:
        sizes = {"d_in": d_in, "d_out": d_out, "(d_in + d_out)": d_in + d_out}
        formulas.append(("2 / (d_in + d_out): the root is missing", 2 / (d_in + d_out)))
        formulas += [(f"√({n} / {d})", (n / sizes[d]) ** 0.5) for n in (1, 2) for d in sizes]
    for formula, std in formulas:
        if any(math.isclose(spread, cut * std, rel_tol=0.02) for cut in (1, CUT_STD)):
            return formula
    return f"{spread:.2g}"
