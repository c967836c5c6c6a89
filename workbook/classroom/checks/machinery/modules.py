"""How a learner's class is made and called, and how it gets the weights of a case.

Classes differ in their arguments (`calling` finds out which is which), and in how they keep their
weights: under other names, several in one matrix, one for each head, transposed. What else
a right class needs is checked here too: gradients and initial weights.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from workbook.classroom.checks.machinery.calling import (
    Runner,
    bind,
    call_part,
    is_switch,
    meaning,
    parameters_of,
    signature_of,
    switches_rope,
)
from workbook.classroom.checks.machinery.engine import Exercise, usual
from workbook.classroom.checks.machinery.tensors import (
    ROUNDED,
    Case,
    alike,
    beside,
    copied,
    kind,
    noise,
    tensor_of,
)
from workbook.classroom.checks.machinery.verdicts import (
    RESULT_IS_RIGHT,
    Findings,
    NotAttempted,
    Prose,
    Weight,
    Wrong,
    call,
    expect,
    expect_class,
    is_untouched,
)

THETA = ("theta", "rope_theta")
LENGTH = ("max_seq_len", "context_length")
BESIDE = re.compile("cache|past|target|label|need|return", re.I)
NO_MODULE = "Only what an `nn.Module` holds is trained, saved and moved with the model. "
NO_INIT = "Begin `__init__` with `super().__init__()`: torch's Module must be set up first."
ADOPTED = "_adopted_runner"  # of a layer that is reached through adapters: a kind of `ModuleRunner`
IN_INIT = "It happens in `__init__`, before any weight or input is there."

# Making and calling.


class Unseen(Exception):  # noqa: N818 - a finding, not an error
    """The weights that a class draws cannot be looked at."""


class TensorRunner(Runner):
    """Runs a function of tensors; a case is one of `tensors`."""

    def run(self, case: Case) -> Tensor:
        """What the function makes of copies of the inputs of a case. Raises: Wrong."""
        given = str(case)
        values = {**case.arguments, **{name: copied(value) for name, value in case.inputs.items()}}
        result = call_part(self.attempt, values, optional=("d_k", "max_seq_len"), given=given)
        return tensor_of(result, given)

    rerun = run  # nothing is made for a case that could be used again

    def consists_of(self) -> Iterable[Any]:
        """The attempt, and what it was seen to be made of."""
        return [self.attempt]

    def assumed(self) -> str:
        """How the check has read the parameters, where that may be other than they are meant."""
        return ""


class ModuleRunner(TensorRunner):
    """Runs a class of modules; each case gets a module of its own."""

    def __init__(self, attempt: Any, exercise: Exercise, rope: type[nn.Module]):
        super().__init__(attempt)
        longest = max(exercise.cases, key=lambda case: len(case.arguments))
        expect_class(attempt, f"class {longest.name} with {longest.signature}")
        self.exercise = exercise
        self.rope = rope
        self.forward = getattr(attempt, "forward", None)
        self.module: nn.Module | None = None  # the last one
        self.hands_in_positions = True  # where RoPE needs some, and a case has none
        # Whether a matrix is stored transposed, by the parameter's name, once that is known.
        self.transposed: dict[str, bool] = {}
        self.remarks: list[str] = []  # on what is right

    def run(self, case: Case) -> Tensor:
        """What a module makes of a case, with its weights filled in. Raises: Wrong."""
        self.module = module = self.make(case)
        for parameter in module.parameters():
            parameter.data = parameter.data.to(case.dtype)
        weights = self.layout(case)
        fill(module, weights)
        result = self.rerun(case)
        # The shape of a square matrix does not show how it is stored: the result does.
        square = [n for n, w in weights.items() if n not in self.transposed and not _is_vector(w)]
        if square and alike(result, self.exercise.expected(case)):
            self.transposed |= dict.fromkeys(square, False)
        elif square:
            fill(module, {name: weights[name].T for name in square})
            if alike(other := self.rerun(case), self.exercise.expected(case)):
                self.transposed |= dict.fromkeys(square, True)
                return other
        return result

    def layout(self, case: Case) -> dict[str, Tensor]:
        """The weights of a case by the names of the last module, as it stores them. Raises: Wrong.

        A square matrix counts as stored like the course's, unless it is known to be transposed.
        """
        own = own_parameters(self.module)
        if case.weights and not own:
            self.rerun(case)  # raises NotAttempted for a skeleton that returns nothing
        weights = named_weights(self.module, case.weights)
        for name, weight in weights.items():
            if weight.ndim == 2 and weight.shape != weight.T.shape:
                self.transposed[name] = own[name].shape == weight.T.shape
            if self.transposed.get(name):
                weights[name] = weight.T
            elif _is_vector(own[name]) and own[name].numel() == weight.numel():
                weights[name] = weight.reshape(own[name].shape)  # a gain may be (1, d_model)
            if own[name].shape != weights[name].shape:
                raise _of_shape(name, own[name].shape, weight.shape)
        return weights

    def expect_upright(self) -> None:
        """Raise `Wrong` if a weight is stored transposed."""
        expect(not any(self.transposed.values()), "The weights are stored transposed.", TRANSPOSED)

    def consists_of(self) -> Iterable[nn.Module]:
        """The modules inside the last one, but for RoPE of ours."""
        return [part for part in self.module.modules() if not isinstance(part, self.rope)]

    def assumed(self) -> str:
        # A fused matrix is never square, so its shape shows how it is stored.
        fused = [name for name in self.transposed if re.search(FUSED, name)]
        turned = [name for name, is_turned in self.transposed.items() if is_turned]
        readings = {
            "holds the rows of Q, then those of K, then those of V (of W1, then of W3)": fused,
            "is stored transposed, unless it has another parameter's name": turned,
        }
        words = [f"`{names[0]}` {how}" for how, names in readings.items() if names]
        rule = f" {TRANSPOSED}" if turned else ""
        return f" The check supposes that {' and that '.join(words)}.{rule}" if words else ""

    def ready(self, case: Case) -> nn.Module:
        """RoPE of the sizes of a case, for a class that is handed one."""
        theta, length = (_first(case.arguments, names) for names in (THETA, LENGTH))
        return self.rope(theta, case.arguments["d_model"] // case.arguments["num_heads"], length)

    def takes(self, *names: str) -> bool:
        """Whether the class, or its `forward`, has an argument of one of these meanings."""
        return bool(_asked(self.attempt, *names) or _asked(self.forward, *names))

    def turns(self) -> bool:
        """Whether RoPE is always applied: there is no switch, and θ is never None."""
        return not any(map(switches_rope, parameters_of(self.attempt))) and any(
            parameter.default is parameter.empty or isinstance(parameter.default, float | int)
            for parameter in _asked(self.attempt, *THETA, "rope")
        )

    def takes_positions(self) -> bool:
        """Whether `forward` takes positions."""
        return any(
            parameter.kind is parameter.VAR_POSITIONAL
            or ("pos" in parameter.name and not meaning(parameter.name, ["rope"]))
            for parameter in parameters_of(self.forward)
        )

    def make(self, case: Case) -> nn.Module:
        """A module of the sizes of a case. Raises: Wrong, NotAttempted."""
        values = dict(case.arguments)
        given = f"{case.name}({', '.join(f'{name}={v:g}' for name, v in values.items())})"
        d_head = values.get("d_model", 0) // values.get("num_heads", 1)
        theta = _first(values, THETA)
        # Some are not told θ, but handed the layer that rotates: here, or in each call.
        if theta is not None and not self.takes(*THETA) and self.takes("rope"):
            values = {name: value for name, value in values.items() if name not in THETA}
            if _asked(self.attempt, "rope"):
                values["rope"] = self.ready(case)
        if theta is not None and any(p.default is None for p in _asked(self.attempt, "d_k")):
            values = {"d_k": d_head, **values}  # without it, some leave RoPE out
        # For what a class insists on: with θ, it may have a switch that turns RoPE off.
        extras = {"d_k": d_head, "d_v": d_head, "max_seq_len": 16, "theta": 10_000.0}
        optional = () if self.takes(*LENGTH) else LENGTH  # RoPE without tables has no length
        options: dict[str, Any] = {"extras": extras, "given": given, "rope": theta is not None}
        args, kwargs, _ = bind(self.attempt, values, optional=optional, **options)
        for parameter in signature_of(self.attempt) or ():
            is_half = isinstance(parameter.default, torch.dtype) and parameter.default in ROUNDED
            if is_half and parameter.name not in kwargs:
                kwargs[parameter.name] = torch.float32
                self.remarks = [
                    f"it is right in float32; its default is {kind(parameter.default)}."
                ]
        try:
            module = call(self.attempt, *args, given=None, **kwargs)
        except Wrong as failure:
            is_early = "before Module.__init__" in str(failure.error)
            likely = failure.mistake or usual(failure.error) or IN_INIT
            failure.mistake = NO_INIT if is_early else likely
            raise
        if not isinstance(module, nn.Module) or "_parameters" not in vars(module):
            raise Wrong(
                "It is not a torch module.",
                got=Prose(f"the class `{self.attempt.__name__}`"),
                mistake=NO_MODULE + NO_INIT,
            )
        return module.cpu().eval()

    new = make  # with the weights that the class draws

    def makes_alike(self, *cases: Case) -> bool:
        """Whether the class is handed the same for the inputs of all these cases of one size."""
        return True  # it is not shown them

    def rerun(self, case: Case) -> Tensor:
        """What the last module makes of copies of the inputs of a case."""
        module = self.module
        given = str(case)
        if is_untouched(type(module).forward):
            raise NotAttempted("`forward` is still missing.")
        values = {name: copied(value) for name, value in case.inputs.items()}
        optional = tuple[str, ...]()
        extras = dict[str, Any]()
        if "num_heads" in case.arguments:
            # A mask or positions are the usual ones, for a `forward` that insists on them.
            first = next(iter(values.values()))
            length = first.shape[-1 if "token_ids" in values else -2]
            places = torch.arange(length, device=first.device)
            extras = {
                "token_positions": places[None],
                "mask": places[:, None] >= places,
                "rope": None,
            }
            has_rope = _first(case.arguments, THETA) is not None
            if has_rope and _asked(self.forward, "rope"):
                values["rope"] = self.ready(case)
            if not self.takes_positions():
                optional = ("token_positions",)
            elif has_rope and self.hands_in_positions and "token_positions" not in values:
                values["token_positions"] = extras["token_positions"]
        options: dict[str, Any] = {"optional": optional, "extras": extras}
        args, kwargs, _ = bind(module.forward, values, given=given, **options)
        result = call(module, *args, given=given, **kwargs)
        # Beside the output there may be what `forward` has an argument for, such as a cache.
        asked = [p for p in parameters_of(module.forward) if BESIDE.search(p.name)]
        if asked and isinstance(result, tuple):
            result = result[0]
        return tensor_of(result, given)


def _first(values: Mapping[str, Any], names: Collection[str]) -> Any:
    """The value under one of these names; None where there is none."""
    return next((values[name] for name in names if name in values), None)


def _asked(function: Any, *names: str) -> list[inspect.Parameter]:
    """The parameters that mean one of these, and are more than yes/no switches."""
    return [p for p in parameters_of(function) if meaning(p.name, names) and not is_switch(p)]


@contextmanager
def uncompiled() -> Iterator[None]:
    """Make `torch.compile` do nothing: it takes many times as long as any case of a check.

    Its code is replaced, because an attempt may have it under another name; stopping it midway
    would leave torch's compiler half imported.
    """
    code = COMPILE.__code__
    COMPILE.__code__ = as_it_is.__code__
    loaded = "torch._dynamo" in sys.modules  # otherwise nothing is compiled yet
    try:
        with torch.compiler.set_stance("force_eager") if loaded else nullcontext():
            yield
    finally:
        COMPILE.__code__ = code


COMPILE = torch.compile


def as_it_is(model: Callable | None = None, **options: Any) -> Callable:
    """Stand in for `torch.compile`, which is a decorator, too."""
    # A compiled module has no truth value: it asks for the length of the one inside.
    return (lambda model: model) if model is None else model


# Weights by name. The course's names always work; others are understood if they mean the same:
# `wq` or `query` for `q_proj`, `norm1` for `ln1`. Several parameters may share one weight, as a
# list of heads does, and one may hold several, as a fused `qkv` does.


class Place(NamedTuple):
    """A weight by the block that it is in (None outside) and the last part of its name."""

    layer: int | None
    leaf: str


_BEFORE = r"(?:[a-z]+_|w|to|fc|lin|linear|proj|attn|mha)?"
_AFTER = r"(?:_?(?:w|weights?|proj|projection|lin|linear|layer|heads?|matrix)){0,2}"
_NUMBERED = r"(?:w|weights?|fc|lin|linear|l|proj)_?"
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
    "w13": r"w_?13|w_?1_?w_?3|gate_up(?:_proj)?",
    "w1": rf"{_BEFORE}(?:{_NUMBERED}1|gate){_AFTER}",
    "w2": rf"{_BEFORE}(?:{_NUMBERED}2|down){_AFTER}|out_proj",
    "w3": rf"{_BEFORE}(?:{_NUMBERED}3|up){_AFTER}|in_proj",
    "ln1": rf"{_NORM}_?1|(?:pre_)?{_ATTENTION}_?{_NORM}|{_NORM}_?{_ATTENTION}|pre_{_ATTENTION}",
    "ln2": rf"{_NORM}_?2|(?:pre_)?{_FEED_FORWARD}_?{_NORM}|{_NORM}_?{_FEED_FORWARD}|"
    rf"pre_{_FEED_FORWARD}",
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
FUSED = r"(?i)qkv|\bw?kv|query_key_value|c_attn|w_?1_?3|gate_up"
HOLDS = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj"), "w13": ("w1", "w3")}


def _place(name: str) -> Place:
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


# Weights as a module stores them.

TRANSPOSED = "The course stores a linear layer as (d_out, d_in), an embedding as (vocab, d_model)."
ADAPTER = " Store them as the course does, or let `workbook adopt` read your `tests/adapters.py`."
REPEATED = "`[Block(...)] * n` repeats one block: write `[Block(...) for _ in range(n)]`."
TIED = "They share one weight: in the course each has its own."
LEARNED = r"(?:^|\.)(?:wpe|pos(?:ition(?:al)?)?s?_?(?:emb|enc)\w*)(?:\.|$)"
Weights = Mapping[str, Tensor]


def named_weights(module: nn.Module, weights: Weights) -> dict[str, Tensor]:
    """The weights of the course by the names of a learner's parameters.

    A fused parameter gets several of them, one below the other; each of several heads gets its
    rows of one. Raises: Wrong if a parameter is missing, too many, or has an unknown name.
    """
    own = own_parameters(module)
    expect_registered(module, own, weights)
    expect_no_twins(module)
    if own.keys() == weights.keys():
        return dict(weights)
    if len(own) == len(weights) == 1:  # whatever its name
        return dict(zip(own, weights.values(), strict=True))
    by_place = {_place(name): weight for name, weight in weights.items()}
    groups, unknown = _grouped(own, by_place)
    arranged: dict[str, Tensor] = {}
    for at, names in groups.items():
        whole = torch.cat([by_place[place] for place in _held(at)])
        if len(names) == 1 or sum(own[name].numel() for name in names) == whole.numel():
            arranged |= zip(names, whole.chunk(len(names)), strict=True)
        else:
            unknown += names  # of two names for one weight, neither tells
    missing = _unheld(by_place, groups)
    if missing or unknown:
        raise _of_other_names(own, weights, missing, unknown)
    return arranged


def _grouped(
    own: Weights, by_place: Mapping[Place, Tensor]
) -> tuple[dict[Place, list[str]], list[str]]:
    """The learner's names by the place that each belongs to, and the names that say nothing."""
    groups: dict[Place, list[str]] = {}
    unknown = []
    for name in own:
        at = place_of_learners(name, by_place)
        if at is None:
            unknown.append(name)
        else:
            groups.setdefault(at, []).append(name)
    missing = _unheld(by_place, groups)
    layers = {at.layer for at in missing}  # None: outside the blocks
    for layer in layers:
        left = [at for at in missing if at.layer == layer]
        # A number may count the steps of an `nn.Sequential`: if the blocks are complete, it does.
        is_all = layers == {None}
        names = [name for name in unknown if is_all or layer_of(name, by_place) == layer]
        tensors = [*(own[name] for name in names), *(by_place[at] for at in left)]
        # The one name in a block that says nothing belongs to the one weight there that has no
        # name. Gains without names, as in a list of norms, are used in the order in which they
        # are made.
        is_clear = len(left) == 1 or all(map(_is_vector, tensors))
        # So does one of a size that no other weight there has, such as a gain beside a matrix.
        of_size = {by_place[at].numel(): at for at in left}
        sizes = [own[name].numel() for name in names]
        if len(of_size) == len(left) and sorted(of_size) == sorted(sizes):
            left = [of_size[size] for size in sizes]
            is_clear = True
        if is_clear and len(left) == len(names):
            groups |= {at: [name] for at, name in zip(left, names, strict=True)}
            unknown = [name for name in unknown if name not in names]
    return groups, unknown


def _unheld(by_place: Mapping[Place, Tensor], groups: Iterable[Place]) -> list[Place]:
    """The places of weights that no parameter of the learner's holds."""
    held = {place for at in groups for place in _held(at)}
    return [place for place in by_place if place not in held]


def _of_other_names(
    own: Weights, weights: Weights, missing: list[Place], unknown: list[str]
) -> Wrong:
    """What to say about parameters that their names do not tell apart."""
    absent = [name for name in weights if _place(name) in missing]
    mistake = "The check fills in weights by these names."
    mistake += f" Missing: {_listed(absent)}." if absent else ""
    mistake += f" Not understood: {_listed(unknown)}." if unknown else ""
    return Wrong(
        "The parameters have names or shapes other than those of the course.",
        expected=_names(weights),
        got=_names(own),
        mistake=mistake + ADAPTER,
    )


def _held(at: Place) -> list[Place]:
    """The weights that a parameter holds: itself, or those that are fused in it."""
    return [Place(at.layer, leaf) for leaf in HOLDS.get(at.leaf, (at.leaf,))]


def own_parameters(module: nn.Module) -> dict[str, Tensor]:
    """A learner's parameters by their names, without what `torch.compile` adds to these."""
    return {name.replace("_orig_mod.", ""): p for name, p in module.named_parameters()}


def fill(module: nn.Module, weights: Weights) -> None:
    """Copy weights into the parameters of these names."""
    own = own_parameters(module)
    with torch.no_grad():
        for name, weight in weights.items():
            own[name].copy_(weight)


def _is_vector(tensor: Tensor) -> bool:
    """Whether no axis but one is longer than 1."""
    return tensor.numel() == max(tensor.shape, default=1)


def expect_registered(module: nn.Module, own: Weights, weights: Weights) -> None:
    """Raise `Wrong` if parameters are not registered, or some should not be there."""
    hidden = [
        name
        for part in module.modules()
        for name, values in vars(part).items()
        if isinstance(values, list | tuple)
        and any(isinstance(value, nn.Module) and own_parameters(value) for value in values)
    ]
    biases = [name for name in own if "bias" in name or name.endswith("beta")]
    learned = [name for name in own if re.search(LEARNED, name)]
    claim = mistake = None
    if own and not weights:
        claim = "There is nothing to learn here, but the module has parameters."
        mistake = "Store computed tables with `register_buffer`, not as an `nn.Parameter`."
    elif hidden:
        claim = f"Some parameters are hidden from torch: {_listed(hidden)} is a plain list."
        mistake = "Put the modules into an `nn.ModuleList`, so that `parameters()` finds them."
    elif biases:
        claim = "There is a bias."
        mistake = f"The course's layers have no bias: leave out {_listed(biases)}."
    elif learned:
        claim = "Position embeddings are learned."
        mistake = f"The course uses RoPE instead: leave out {_listed(learned)}."
    elif weights and not own:
        claim = "The module has no parameters."
        mistake = "Wrap the tensor in an `nn.Parameter`, and make it an attribute of `self`."
    if claim:
        raise Wrong(claim, expected=_names(weights), got=_names(own), mistake=mistake)


def expect_no_twins(module: nn.Module) -> None:
    """Raise `Wrong` if two parameters are one and the same."""
    seen: dict[int, str] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        twin = seen.setdefault(id(parameter), name)
        if twin != name:
            layers = [re.findall(r"\.(\d+)\.", path) for path in (name, twin)]
            raise Wrong(
                f"`{twin}` and `{name}` are one and the same parameter.",
                mistake=REPEATED if layers[0] != layers[1] else TIED,
            )


def _of_shape(name: str, own: torch.Size, asked: torch.Size) -> Wrong:
    """What to say about a parameter of another shape than is asked."""
    mistake = "Check the sizes that this part is made with: one is used where another belongs."
    sizes = zip(own, asked, strict=False)
    is_right = [o == a or o % 64 == 0 or o not in asked for o, a in sizes]
    if len(own) == len(asked) == 2 == sum(is_right) and re.search(r"w\d|ff|mlp|gate|up|down", name):
        mistake = "Use the d_ff that is passed in: compute or round it only where you choose it."
    elif math.prod(own) == math.prod(asked):
        mistake = "The numbers would fit, but not in this shape." + ADAPTER
    return Wrong(
        f"The parameter `{name}` has the wrong shape.",
        expected=Prose(tuple(asked)),
        got=Prose(tuple(own)),
        mistake=mistake,
    )


def _names(weights: Weights) -> Prose:
    items = [f"{name} {tuple(weight.shape)}" for name, weight in weights.items()]
    return Prose(", ".join(items[:12]) + (", ..." if len(items) > 12 else "") or "no parameters")


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:6]) + (", ..." if len(names) > 6 else "")


# Gradients.

CUT_OFF = (
    "Something cuts off the gradient: `.detach()`, `.data`, `.item()`, `torch.no_grad` or "
    "`requires_grad=False`."
)
PADDING = "Row 0 learns nothing: it is not padding, but a vector like any other."
IN_PLACE = "A tensor that is needed later is changed in place (`x -= ...`): make a new one."


def check_gradients(runner: TensorRunner, exercise: Exercise, case: Case) -> None:
    """Raise `Wrong` unless the gradients that a right result sends back are the right ones.

    Those of the inputs, and of the parameters of a learner's module, are compared with the
    reference's.
    """
    leaves = _leaves(case.inputs)
    given = str(case)
    # Inputs are handed in as if they had been computed from the leaves.
    inputs = {**case.inputs, **{name: leaf.clone() for name, leaf in leaves.items()}}
    result = runner.run(replace(case, inputs=inputs))
    expect(result.requires_grad, "No gradient can flow through the result.", CUT_OFF, given=given)
    # Weighted differently, because the sum of a row of softmax has no gradient at all.
    factors = noise(*result.shape, seed=99) if result.ndim else torch.tensor(1.0)
    try:
        (result * factors).sum().backward()
    except RuntimeError as error:
        raise Wrong(
            f"{RESULT_IS_RIGHT} it cannot be trained: the backward pass fails.",
            given=given,
            got=Prose(str(error).partition(". ")[0]),
            mistake=IN_PLACE,
        ) from error
    # The same for the reference, whose weights go by the names of the course.
    values = _leaves(case.inputs)
    weights = _leaves(case.weights)
    again = replace(case, inputs={**case.inputs, **values}, weights=weights)
    with torch.enable_grad():
        (exercise.program.edited()(again) * factors).sum().backward()
    pairs = [(name, leaf.grad, values[name].grad) for name, leaf in leaves.items()]
    if isinstance(runner, ModuleRunner):
        gradients = {name: leaf.grad for name, leaf in weights.items()}
        laid_out = runner.layout(replace(case, weights=gradients))
        own = own_parameters(runner.module)
        pairs += [(name, parameter.grad, laid_out[name]) for name, parameter in own.items()]
    for name, grad, expected in pairs:
        expect(grad is not None, f"No gradient reaches `{name}`.", CUT_OFF, given=given)
        if not alike(grad, expected, 1e-3):
            claim = f"{RESULT_IS_RIGHT} the gradient that reaches `{name}` is not."
            mistake = PADDING if not grad[:1].any() and expected[:1].any() else CUT_OFF
            right, shown = beside(expected, grad)
            raise Wrong(claim, given=given, expected=right, got=shown, mistake=mistake)
    expect(
        all(inputs[name].eq(leaf).all() for name, leaf in leaves.items()),
        f"{RESULT_IS_RIGHT} the input tensor is changed.",
        IN_PLACE,
        given=given,
    )


def _leaves(values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Copies, which require gradients, of all tensors that can have one."""
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    return {n: t.clone().requires_grad_() for n, t in tensors.items() if t.is_floating_point()}


# Initial weights.

CUT_AT = 3  # standard deviations
SAME = "All numbers are (nearly) the same, and rows that start equal stay equal: draw them here."
UNFILLED = "`torch.empty` holds whatever was in memory: "
ONES = "a gain is all ones."
DRAW = "draw numbers in the layer itself."
CUT_STD = 0.98658  # of N(0, 1) without what lies beyond 3


def check_first_weights(runner: ModuleRunner, case: Case, findings: Findings) -> None:
    """Find the gains of a large module that do not start at 1, and weights not drawn as asked.

    A wrong gain goes wrong in use, and so does a wrong scale in a single layer; in a larger part
    that is a corner. So is a weight or a gain that nothing fills, since the model may do so; in the
    model itself it is not.
    """
    runner.module = _made_visibly_empty(runner, case)
    own = {name: p.detach().double() for name, p in own_parameters(runner.module).items()}
    gains = {name: weight for name, weight in own.items() if _is_vector(weight)}
    given = f"a new {case.name}"
    if empty := [name for name, weight in own.items() if weight.isnan().any()]:
        is_gain = any(name in gains for name in empty)
        with findings("use" if "num_layers" in case.arguments else "corner"):
            mistake = UNFILLED + (ONES if is_gain else DRAW)
            raise Wrong(f"Nothing fills {_listed(empty)}.", given=given, mistake=mistake)
        return
    with findings("use"):
        for name, gain in gains.items():
            if not gain.eq(1).all():
                raise Wrong(
                    f"The gain `{name}` does not start at 1.",
                    given=given,
                    got=Prose(f"numbers from {gain.min():.4g} to {gain.max():.4g}"),
                )
    if findings and len(own) > 1:
        return
    # Ones in place of the embedding's numbers show which parameter holds it.
    marks = {n: torch.full_like(w, float("emb" in n)) for n, w in case.weights.items()}
    held = runner.layout(replace(case, weights=marks))
    # A fused matrix may be drawn as a whole, or like any of the matrices that are fused in it.
    shapes = [tuple(weight.shape) for weight in case.weights.values() if weight.ndim == 2]
    odd: dict[str, Wrong] = {}
    for name in [name for name in own if name not in gains]:
        is_table = case.name == "Embedding" or bool(held[name].any())
        all_shapes = [tuple(own[name].shape), *shapes]
        try:
            check_drawn(own[name], all_shapes, is_table, f"{given}: its `{name}`")
        except Wrong as wrong:
            odd[name] = wrong
    if odd:
        first, *others = odd
        if others:
            odd[first].mistake += f" Nor are these drawn as asked: {_listed(others)}."
        with findings("use" if len(own) == 1 else "corner"):
            raise odd[first]


def _made_visibly_empty(runner: ModuleRunner, case: Case) -> nn.Module:
    """A module in which what `torch.empty` and the like leave unfilled is NaN."""
    torch.manual_seed(0)
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        return runner.new(case)
    finally:
        torch.set_deterministic_debug_mode(before)


def check_drawn(weight: Tensor, shapes: Sequence[tuple], is_table: bool, made: str) -> None:
    """Raise `Wrong` unless a large matrix looks like N(0, std²) truncated at three deviations.

    The std is 1 for an embedding, and √(2 / (d_in + d_out)) for a matrix of one of these shapes.
    """
    flat = weight.flatten()
    spread = flat.std().item()
    mean = flat.mean().item()
    largest = flat.abs().max().item()
    stds = [1.0] if is_table else [math.sqrt(2 / sum(shape)) for shape in shapes]
    # Cutting off at three deviations leaves a little less than the std that was asked for.
    std = min(stds, key=lambda std: abs(std * CUT_STD - spread))
    cut = f"{CUT_AT * std:.4g}"
    asked = "1" if is_table else "√(2 / (d_in + d_out))"
    # Another form of the distribution, of about that std, is no more than a corner.
    form: Weight = "corner" if math.isclose(spread, std, rel_tol=0.15) else "use"
    all_alike = spread < 1e-12 or flat[:999].unique().numel() < 10
    uniform = "The numbers are uniform, not normal."
    if any(math.isclose(largest, CUT_AT * one, rel_tol=0.02) for one in stds):
        uniform += f" Without `std=`, `trunc_normal_` takes 1: cut at ±{largest:.4g} that is flat."
    oddities: list[tuple[bool, Weight, str]] = [
        (all_alike, "use", SAME),
        (abs(mean) > 0.1 * spread, "use", "The mean is not 0."),
        (largest < 1.78 * spread, form, uniform),  # √3 times; 1.85 if cut at one deviation
        (
            largest <= 2.001 * std
            and (form == "corner" or math.isclose(largest, std, rel_tol=0.02)),
            form,
            "The distribution is truncated too early: its limits are ±3 standard deviations.",
        ),
        (
            not math.isclose(spread, std * CUT_STD, rel_tol=0.04),
            "use",
            f"The standard deviation should be {asked}, but is {_formula(spread, shapes)}.",
        ),
        (
            largest > CUT_AT * std * 1.001,
            form,
            f"It is not truncated at 3 standard deviations, here {cut}, as `trunc_normal_` does: "
            "its `a` and `b` are values, not multiples of the std.",
        ),
        (
            is_table and not weight.any(-1).all(),
            "use",
            "A row of a new embedding is 0: no id is padding.",
        ),
    ]
    for is_odd, serious, mistake in oddities:
        if is_odd:
            raise Wrong(
                "The weight is not drawn as the course asks.",
                given=made,
                expected=Prose(f"numbers from N(0, {std:.4g}²), truncated at ±{cut}"),
                got=Prose(
                    f"standard deviation {spread:.4g}, mean {mean:.2g}, largest {largest:.4g}"
                ),
                mistake=mistake,
                weight=serious,
            )


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
