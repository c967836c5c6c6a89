"""A learner's parts through the functions of the course's `tests/adapters.py`, and those written.

These functions take the same arguments everywhere, and only they know how a learner's part is made
and called. So a layer is caught while its adapter runs, and `AdoptedModelRunner` is the whole
model that `run_transformer_lm` makes. In the other direction, `export_repository` makes a
repository of the course of the code that a study folder keeps: its adapters are those of
`course_adapters`, each tried once.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial, wraps
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks
from torch.utils._pytree import tree_leaves, tree_map

from workbook import transformer
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.calling import MODEL_ARGUMENTS
from workbook.classroom.checks.machinery.judging import Report, judge_attempt
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.checks.machinery.modules import (
    ADOPTED,
    ModuleRunner,
    Unseen,
    expect_no_twins,
    expect_registered,
    own_parameters,
    uncompiled,
)
from workbook.classroom.checks.machinery.tensors import (
    ROUNDED,
    Case,
    alike,
    copied,
    tensor_of,
)
from workbook.classroom.checks.machinery.timeout import TimedOut, limited
from workbook.classroom.checks.machinery.verdicts import NotJudged, Wrong, call, failure, lacking
from workbook.classroom.mine import course_adapters
from workbook.classroom.mine.course_parts import PARTS
from workbook.classroom.panels import Status
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import solutions
from workbook.config import ModelConfig
from workbook.files import atomic_write

ADAPTER_SECONDS = 120.0  # for one run of an adapter, on a busy machine
PART_IMPORT_SECONDS = 60.0  # for the import of a part
ALL_SECONDS = 300.0  # without a word from the process that tries the adapters that are written
UNKNOWN = "It cannot be checked"
TOLERANCE = 1e-3
EXACT_STEPS = 256  # multiples of 1 / EXACT_STEPS below 1 are exact in bfloat16, too
LAYERS = {  # our class with the same weights
    "run_linear": transformer.Linear,
    "run_embedding": transformer.Embedding,
    "run_rmsnorm": transformer.RMSNorm,
    "run_swiglu": transformer.SwiGLU,
    "run_multihead_self_attention": transformer.MultiHeadSelfAttention,
    "run_multihead_self_attention_with_rope": transformer.MultiHeadSelfAttention,
    "run_transformer_block": transformer.TransformerBlock,
    "run_transformer_lm": transformer.TransformerLM,
}
OF_TENSORS = {
    *LAYERS,
    "run_rope",
    "run_silu",
    "run_softmax",
    "run_cross_entropy",
    "run_scaled_dot_product_attention",
}
RESIZED = (
    "your adapter changes the shape of `{}`: let the class use the sizes, such as d_ff, that are "
    "passed in."
)
AS_MADE = "As the class makes it, before your adapter changes `{}`, it raised an error."
OTHER_SHAPE = "The class makes `{}` of shape {}, and your adapter makes it {}."
SMALL = {
    "d_in": 8,
    "d_out": 6,
    "vocab_size": 11,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 128,  # some take multiples of 64 only
    "d_k": 8,
    "max_seq_len": 5,
    "context_length": 5,
    "num_layers": 2,
    "theta": 99.0,
    "rope_theta": 99.0,
    "eps": 0.1,
}


def example(name: str, spread: float = 0.0, **sizes: Any) -> dict[str, Any]:
    """Arguments for one of the course's adapters of tensors: initial weights and random inputs.

    Args:
        spread: the standard deviation of the gains, which all start at 1.
        sizes: those that shall not be as in `SMALL`.
    """
    sizes = {**SMALL, **sizes}
    n = min(5, sizes["max_seq_len"], sizes["context_length"])
    x = torch.randn(2, n, sizes["d_in" if name == "run_linear" else "d_model"])
    values: dict[str, Any] = dict.fromkeys(("in_features", "in_query_or_key", "Q"), x)
    values |= {"K": x.flip(-1), "V": -x, "inputs": x[0], "targets": torch.arange(n), "dim": 1}
    values |= dict.fromkeys(("token_ids", "in_indices"), torch.randint(sizes["vocab_size"], (2, n)))
    values["mask"] = torch.ones(n, n, dtype=torch.bool).tril()
    values["token_positions"] = torch.arange(n) if name == "run_rope" else torch.arange(n)[None]
    if name in LAYERS:
        weights = LAYERS[name](*(sizes[size] for size in sizes_of(name))).state_dict()
        for weight in weights.values():
            weight += spread * torch.randn_like(weight) * (weight.ndim == 1)
        values |= handed_in(weights)
    return {asked: {**sizes, **values}[asked] for asked in arguments_of(name)}


def handed_in(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Copies of weights by the names of the adapters' arguments."""
    copies = {name: weight.clone() for name, weight in weights.items()}
    values: dict[str, Any] = {"weights": copies if len(copies) > 1 else copies.get("weight")}
    for name, weight in copies.items():  # `output_proj.weight` is `o_proj_weight`
        values[name.replace("output", "o").replace(".", "_")] = weight
    return values


def arguments_of(name: str) -> list[str]:
    """The names of an adapter's arguments."""
    return [*inspect.signature(getattr(course_adapters, name)).parameters]


def sizes_of(name: str) -> list[str]:
    """Those of its arguments that the layer is made with, in the order of ours."""
    return [argument for argument in arguments_of(name) if argument in SMALL]


def differs(adapter: Callable, name: str) -> str | None:
    """Say how an adapter of tensors differs from the reference in one example; "": not at all.

    None if it is not one of tensors, or needs what cannot be imported.
    """
    if name not in OF_TENSORS:
        return None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = getattr(course_adapters, name)(**example(name, spread=0.2)).detach()
        torch.manual_seed(0)
        given = example(name, spread=0.2)
        try:
            with uncompiled():
                got = limited(ADAPTER_SECONDS, lambda: _called(adapter, given))
        except NotJudged:
            return None
        except Exception as error:
            return f"raises {failure(error)}"
    if not isinstance(got, Tensor):
        return f"returns a {type(got).__name__} instead of a tensor"
    tolerance = ROUNDED.get(got.dtype, TOLERANCE)
    return (
        "" if alike(got.detach().cpu(), expected, tolerance) else "returns other numbers than ours"
    )


def _called(adapter: Callable, given: Mapping[str, Any]) -> Any:
    """What an adapter returns; one or two arguments go by place if it has other names for them."""
    try:
        inspect.signature(adapter).bind(**given)
    except TypeError:
        if len(given) < 3:  # as the course's tests do
            return adapter(*given.values())
    return adapter(**given)


# A part that is caught while its adapter runs.


class Unusable(ValueError):  # noqa: N818 - read as a fact
    """Something of the learner's cannot be used; the message says why."""


def caught(
    adapter: Callable, arguments: Mapping[str, Any], part: Any = None, kind: type | None = None
) -> SimpleNamespace:
    """Run an adapter; return its `result`, the `module` that it made, and how that was called.

    The module is the one with the most parameters, of all that register a parameter or another
    module meanwhile. `args` and `kwargs` are those of its call; None if it was not called.
    `resized` has the names of the parameters that the class has made in other shapes.

    Args:
        part: the learner's class, if that is known.
        kind: that of the module, for a second run that is to note the calls of its `forward`.

    Raises: Unusable if there is none; what the adapter raises.
    """
    if inspect.isclass(part) and not issubclass(part, nn.Module):
        raise Unusable(f"{part.__name__} is no nn.Module, so torch finds no parameters in it")
    try:
        inspect.signature(adapter).bind(**arguments)
    except TypeError as error:
        others = "takes other arguments than in the editions of 2025 and 2026"
        raise Unusable(f"{adapter.__name__} {others}: {error}") from error
    # It may rename weights in place, and run again.
    own_copy = {n: dict(v) if isinstance(v, dict) else v for n, v in arguments.items()}
    made: dict[int, nn.Module] = {}
    calls: dict[int, tuple] = {}
    shapes: dict[int, torch.Size] = {}
    with uncompiled(), _noting(made, calls, shapes, kind):
        result = limited(ADAPTER_SECONDS, lambda: adapter(**own_copy))
    # One that was made to be replaced is not used.
    used = [module for module in made.values() if calls.keys() & {*map(id, module.modules())}]
    module = max(used or made.values(), key=_size, default=None)
    if module is None or not _size(module)[0]:
        raise Unusable("the adapter makes no torch module that has parameters")
    if id(module) not in calls and kind is None:  # no hook sees `module.forward(x)`
        return caught(adapter, arguments, part, type(module))
    own = set(module.parameters())
    for child in (made[key] for key in calls):
        if not own.issuperset(child.parameters()):
            raise Unusable(_why_apart(child, made.values(), module, adapter, part))
    args, kwargs = calls.get(id(module), (None, {}))
    named = module.named_parameters()
    resized = [name for name, p in named if shapes.get(id(p), p.shape) != p.shape]
    return SimpleNamespace(result=result, module=module, args=args, kwargs=kwargs, resized=resized)


def _why_apart(
    child: nn.Module, made: Collection[nn.Module], module: nn.Module, adapter: Callable, part: Any
) -> str:
    """Why a module that is called is no part of the largest one."""
    for owner in made:
        registered = set(owner.parameters())
        for value in vars(owner).values():
            for held in value if type(value) in (list, tuple) else ():
                if isinstance(held, nn.Module) and not registered.issuperset(held.parameters()):
                    return (
                        f"{type(held).__name__} is called, but is no part of"
                        f" {type(owner).__name__}: torch neither trains nor saves what is in a"
                        " plain list; use nn.ModuleList"
                    )
    loose = (
        f"{adapter.__name__} puts loose layers together ({type(child).__name__} is no part of"
        f" {type(module).__name__}), but one module is needed that holds them all"
    )
    is_module = inspect.isclass(part)
    return (
        f"{loose}: let it make your {part.__module__}:{part.__qualname__}" if is_module else loose
    )


def as_unusable(run: Callable[[], Any]) -> Any:
    """What a function returns that runs an adapter. Raises: Unusable, NotJudged."""
    try:
        return run()
    except (NotJudged, Unusable):
        raise
    except Exception as error:
        if needed := lacking(error):
            raise NotJudged(f"{needed[0].lower()}{needed[1:]}") from error  # within a sentence
        raise Unusable(f"the adapter fails: {failure(error)}") from error


@contextmanager
def _noting(
    made: dict[int, nn.Module], calls: dict[int, tuple], shapes: dict[int, torch.Size], kind: Any
) -> Iterator[None]:
    """Note, by their ids, the modules that are made or called meanwhile, and the last call.

    And the shapes in which parameters are made, and the calls of the `forward` of a class, if any.
    """
    forward = getattr(kind, "forward", None)

    def noting(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        output = forward(module, *args, **kwargs)
        note_call(module, args, kwargs, output)
        return output

    def note(module: nn.Module, name: str, registered: Any) -> None:
        made[id(module)] = module
        if type(registered) is nn.Parameter:  # a lazy one has no shape yet
            shapes[id(registered)] = registered.shape

    def note_call(module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        made[id(module)] = module
        calls[id(module)] = (args, kwargs)

    called = hooks.register_module_forward_hook(note_call, with_kwargs=True)
    handles = (
        called,
        hooks.register_module_module_registration_hook(note),
        hooks.register_module_parameter_registration_hook(note),
    )
    try:
        with patch.object(kind, "forward", wraps(forward)(noting)) if kind else nullcontext():
            yield
    finally:
        for handle in handles:
            handle.remove()
        # torch's `remove` leaves this behind, and then warns of a hook whenever it compiles.
        hooks._global_forward_hooks_with_kwargs.pop(called.id, None)


def _size(module: nn.Module) -> tuple[int, int]:
    """The number of a module's parameters, and of the modules in it."""
    return sum(p.numel() for p in module.parameters()), len([*module.modules()])


def attempt(adapters: Mapping[str, Callable], problem: str, part: Any = None) -> Any:
    """What a check takes, made and called as the adapters for a problem do it.

    A layer has our initial weights, because its adapter hands weights in.

    Args:
        part: the learner's own object, if that is known.
    """
    first = next(iter(adapters.values()))
    if problem == "adamw":
        return first()  # which returns the class
    if problem == "tokenizer":
        end = "<|endoftext|>"
        vocab = dict(enumerate([*(bytes([n]) for n in range(256)), b"th", end.encode()]))
        kind = type(first(vocab, [(b"t", b"h")], [end]))
        return _class(kind, first, inspect.signature(first))
    if problem == "checkpointing":
        return tuple(adapters.values())
    names = PARTS[problem].adapters
    return _layer(adapters, names, part) if names[0] in LAYERS else first


def _layer(adapters: Mapping[str, Callable], names: tuple[str, ...], part: Any) -> type:
    """The class of a layer, as one of the adapters of these names makes it."""
    first = next(iter(adapters.values()))
    made_with = sizes_of(names[0])
    signature = inspect.signature(LAYERS[names[0]])
    parameters = [*signature.parameters.values()][: len(made_with)]
    signature = signature.replace(parameters=parameters)

    def run(inputs: Mapping[str, Any], *args: Any, **kwargs: Any) -> SimpleNamespace:
        """Run an adapter for a layer of these sizes: on inputs and weights, or else on ours."""
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = zip(made_with, bound.arguments.values(), strict=True)
        sizes = {name: value for name, value in values if value is not None}
        # Without theta, it is the second function, for an attention without RoPE.
        name = names[-1] if sizes.keys() == {*sizes_of(names[-1])} else names[0]
        given = {**sizes, **inputs} if inputs else example(name, **sizes)
        asked = {argument: given[argument] for argument in arguments_of(name)}
        return caught(adapters.get(name, first), asked, part)

    def make(*args: Any, **kwargs: Any) -> nn.Module:
        return as_unusable(lambda: run({}, *args, **kwargs)).module

    made = as_unusable(lambda: run({}, *(SMALL[size] for size in made_with)))
    if made.args is not None:
        with uncompiled():
            again = as_unusable(lambda: made.module(*made.args, **made.kwargs))
        expect_result(made, again, names[0])
    kind = _class(type(made.module), make, signature)
    takes_positions = "token_positions" in arguments_of(names[0])
    options = {"takes_positions": takes_positions, "turns": names[-1] not in adapters}
    setattr(kind, ADOPTED, partial(AdoptedRunner, run=run, **options))
    return kind


def _class(kind: type, make: Callable, signature: inspect.Signature) -> type:
    """A subclass that a function makes the instances of: they are of the class itself."""
    names: dict[str, Any] = {"__signature__": signature, "__module__": kind.__module__}
    names["__new__"] = lambda cls, *args, **kwargs: make(*args, **kwargs)
    return type(kind)(kind.__name__, (kind,), names)


def expect_result(made: SimpleNamespace, output: Any, name: str) -> None:
    """Raise Unusable unless an adapter has returned what the module that it made returns."""
    again = bare(output)
    results = isinstance(again, Tensor) and isinstance(made.result, Tensor)
    if not (results and alike(again.detach(), made.result.detach(), TOLERANCE)):
        kind = type(made.module).__name__
        raise Unusable(f"{name} returns something other than the result of {kind}.forward")


def bare(output: Any) -> Any:
    """The result itself, of what a module may return beside it or around it."""
    if isinstance(output, Mapping):
        return output.get("logits")
    output = output[0] if isinstance(output, tuple | list) else output
    return getattr(output, "logits", output)


def held_by(make: Callable[[dict[str, Tensor]], nn.Module], weights: Mapping) -> dict[str, Tensor]:
    """For each parameter of a module that an adapter fills, which of all the numbers it holds.

    The adapter is given numbers that are the digits of their own places, so it does not matter how
    it turns, joins or cuts the weights, nor whether it rounds them to half precision. A parameter
    that holds anything else is left out.
    """
    names = sorted(weights)
    sizes = [weights[name].numel() for name in names]
    total = sum(sizes)
    places = torch.arange(total)
    held: dict[str, Tensor] = {}
    unit = 1
    while unit < total:
        digits = (places // unit % EXACT_STEPS / EXACT_STEPS).split(sizes)
        marks = dict(zip(names, digits, strict=True))
        module = make({name: marks[name].reshape(weights[name].shape) for name in weights})
        for name, parameter in own_parameters(module).items():
            digit = parameter.detach().double().cpu().nan_to_num() * EXACT_STEPS
            is_digit = digit.eq(digit.round()) & (digit >= 0) & (digit < EXACT_STEPS)
            # What is no digit makes the place too large for ever.
            held[name] = held.get(name, 0) + unit * digit.where(is_digit, total).long()
        unit *= EXACT_STEPS
    return {
        name: place
        for name, place in held.items()
        if place.max() < total and place.unique().numel() == place.numel()
    }


def laid_out(held: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by the course's names as the parameters that `held_by` found hold them, by theirs."""
    flat = torch.cat([weights[name].flatten() for name in sorted(weights)])
    return {name: flat[place] for name, place in held.items()}


class AdoptedRunner(ModuleRunner):
    """Runs a layer as the learner's adapters make, fill and call it; a case is one of `tensors`."""

    def __init__(self, *arguments: Any, run: Callable, takes_positions: bool, turns: bool):
        super().__init__(*arguments)
        self.run_adapter = run
        self.are_positions_taken = takes_positions
        self.has_always_rope = turns
        self.held: dict[tuple, dict[str, Tensor]] = {}  # by the sizes of a layer

    def turns(self) -> bool:
        """Whether there is no adapter for an attention without RoPE."""
        return self.has_always_rope

    def takes_positions(self) -> bool:
        """Whether the adapter takes positions."""
        return self.are_positions_taken

    def assumed(self) -> str:
        return ""  # the adapter knows

    def make(self, case: Case) -> nn.Module:
        """The module that the adapter makes of a case, with its weights."""
        self.made = self._caught(case)
        for name in self.made.resized[:1]:  # in the innermost layer, whose fault it is
            self.remarks = [RESIZED.format(".".join(name.split(".")[-2:]))]
        return self.made.module.cpu().eval()

    def new(self, case: Case) -> nn.Module:
        """The same with the weights that its class has drawn.

        Raises: Unseen; Wrong if it cannot be called with these, as in training.
        """
        drawn = {}

        def note(module: nn.Module, handed: Any) -> None:
            drawn[id(module)] = {n: p.detach().clone() for n, p in own_parameters(module).items()}

        with self._noting(note):
            module = self.make(case)
        first = drawn.get(id(module), {})
        own = own_parameters(module)
        # One that is as the adapter gave it was handed to the class.
        if first.keys() != own.keys() or any(first[name].equal(own[name]) for name in own):
            raise Unseen
        shapes = {n: (tuple(first[n].shape), tuple(p.shape)) for n, p in own.items()}
        resized = [name for name, (made, filled) in shapes.items() if made != filled]
        for name, parameter in own.items():
            parameter.data = first[name]
        if resized and self.made.args is not None:
            try:
                call(module, *self.made.args, given=str(case), **self.made.kwargs)
            except Wrong as wrong:
                wrong.claim = AS_MADE.format(resized[0])
                wrong.mistake = OTHER_SHAPE.format(resized[0], *shapes[resized[0]])
                raise
        return module

    def makes_alike(self, *cases: Case) -> bool:
        made: list[list] = []

        def note(module: nn.Module, handed: Any) -> None:
            values = [value for value in tree_leaves(handed) if not isinstance(value, nn.Module)]
            made.append([x.tolist() if isinstance(x, Tensor) else x for x in values])

        for case in cases:
            with self._noting(note):
                self._caught(case)
        return all(handed == made[0] for handed in made)

    @contextmanager
    def _noting(self, note: Callable[[nn.Module, Any], None]) -> Iterator[None]:
        """Call `note` with each new module of the class of the last, and what it is handed."""
        kind: Any = type(self.module)
        init = kind.__init__

        @wraps(init)
        def noting(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            init(module, *args, **kwargs)
            note(module, (args, kwargs))

        with patch.object(kind, "__init__", noting):
            yield

    def rerun(self, case: Case) -> Tensor:
        """What the last module makes of a case, called with what the adapter hands it for that."""
        device = next(iter(case.inputs.values())).device
        if device.type == "cpu":  # elsewhere it is called as it was here
            self.made = self._caught(case)
        if self.made.args is None:
            return super().rerun(case)
        args, kwargs = on_device((self.made.args, self.made.kwargs), device)
        given = str(case)
        return tensor_of(bare(call(self.module, *args, given=given, **kwargs)), given)

    def layout(self, case: Case) -> dict[str, Tensor]:
        """The weights of a case by the names of the last module, as the adapter lays them out."""
        own = own_parameters(self.module)
        expect_registered(self.module, own, case.weights)
        expect_no_twins(self.module)
        sizes = tuple(case.arguments.items())
        if sizes not in self.held:
            self.held[sizes] = held_by(
                lambda marks: self._caught(replace(case, weights=marks)).module, case.weights
            )
        held = self.held[sizes]
        if missing := [name for name in own if name not in held]:
            raise Wrong(
                f"The adapter gives no weight to `{missing[0]}`.",
                mistake="Load it there, or leave it out of the class.",
            )
        for name, place in held.items():
            is_matrix = place.ndim == 2 and place.shape[1] > 1
            self.transposed[name] = is_matrix and bool(place[0, 1] - place[0, 0] != 1)
        return laid_out(held, case.weights)

    def _caught(self, case: Case) -> SimpleNamespace:
        """Run the adapter on a case. Raises: Wrong, NotAttempted."""
        inputs = {name: copied(value) for name, value in case.inputs.items()}
        x = inputs.get("x", inputs.get("token_ids"))
        if "num_heads" in case.arguments and self.hands_in_positions:
            length = x.shape[-2 if "x" in inputs else -1]
            inputs.setdefault("token_positions", torch.arange(length)[None])
        inputs = {"token_positions": None, "in_features": x, "in_indices": x, **inputs}
        dtype = x.dtype if x.is_floating_point() else case.dtype
        weights = {name: weight.to(dtype) for name, weight in case.weights.items()}
        values = {**handed_in(weights), **inputs}
        return call(self.run_adapter, values, *case.arguments.values(), given=str(case))


def on_device(value: Any, device: torch.device) -> Any:
    """What a module was given, on a device."""
    movable = (Tensor, nn.Module)
    return tree_map(lambda each: each.to(device) if isinstance(each, movable) else each, value)


def report_on(name: str, load: Callable[[], Any]) -> Report:
    """The report on what `load` returns; what cannot be imported or made is not attempted."""
    try:
        return judge_attempt(name, limited(PART_IMPORT_SECONDS, load))
    except TimedOut as error:
        return Report("not attempted", name, None, f"{UNKNOWN}: its import was {error}.")
    except Exception as error:
        status: Status = "wrong" if isinstance(error, Unusable) else "not attempted"
        return Report(status, name, None, f"{UNKNOWN}: {str(error).rstrip('.')}.")


class AdoptedModelRunner:
    """A learner's model with the sizes of one config, as their `run_transformer_lm` makes it.

    The adapter hands weights in, so its initial weights are ours, drawn by the handout's rule.

    Args:
        adapter: their `run_transformer_lm`.
        part: their class, if it is one.
    """

    def __init__(self, adapter: Callable, config: ModelConfig, part: Any):
        self.adapter = adapter
        self.config = config
        self.part = part
        # The longest text, so that positions and masks can be cut; one, so that they fit any batch.
        self.ids = torch.arange(config.context_length)[None] * 7 % config.vocab_size
        self._held: dict[str, Tensor] = {}

    def make(self) -> nn.Module:
        """Make a new model. Raises: Unusable, and what the model itself raises."""
        made = self._made_with(transformer.TransformerLM.from_config(self.config).state_dict())
        self.args = (self.ids,) if made.args is None else made.args
        self.kwargs = made.kwargs
        with torch.no_grad():
            logits = self.run(made.module, self.ids.to(next(made.module.parameters()).device))
        expect_result(made, logits, "run_transformer_lm")
        return made.module.train()

    def _made_with(self, weights: Mapping[str, Tensor]) -> SimpleNamespace:
        arguments = {name: getattr(self.config, name) for name in MODEL_ARGUMENTS}
        arguments |= {"weights": weights, "in_indices": self.ids.clone()}
        with torch.random.fork_rng(devices=[]):  # what the adapter draws is drawn for nothing
            return as_unusable(lambda: caught(self.adapter, arguments, self.part))

    def run(self, module: nn.Module, ids: Tensor) -> Tensor:
        """The logits of a model that `make` made, for (batch, seq) ids."""
        kwargs = {name: self._fitted(value, ids) for name, value in self.kwargs.items()}
        return bare(module(*(self._fitted(value, ids) for value in self.args), **kwargs))

    def _fitted(self, value: Any, ids: Tensor) -> Any:
        """What `forward` was given, for other ids: positions and masks are cut to their length."""
        if isinstance(value, Tensor):
            if value.cpu().equal(self.ids):
                return ids
            for axis in range(max(value.ndim - 2, 0), value.ndim):
                if value.shape[axis] == self.ids.shape[1]:
                    value = value.narrow(axis, 0, ids.shape[1])
        return on_device(value, ids.device)

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The value of each of their parameters, by name, given weights by the course's names.

        Raises: Unusable if the adapter gives no weight to one of them.
        """
        if not self._held:
            module = self._made_with(weights).module
            self._held = held_by(lambda marks: self._made_with(marks).module, weights)
            if missing := [name for name in own_parameters(module) if name not in self._held]:
                kind = type(module).__name__
                raise Unusable(f"run_transformer_lm gives no weight to `{missing[0]}` of {kind}")
        return laid_out(self._held, weights)


# Adapters that are written.

PACKAGE = "cs336_basics"
ADAPTERS_FILE = "tests/adapters.py"
OF_WORKBOOK = re.compile("(?m)^ *(from|import) workbook")
COURSE_URL = "https://github.com/stanford-cs336/assignment1-basics"
ADAPTERS_HEAD = f'''"""The course's adapters for the parts in `{PACKAGE}`.

`workbook export --adapters` wrote them: each makes a part with the handout's arguments, loads the
course's weights under the course's names, and calls it. One that did not work so is left to you.
"""
'''


def export_repository(study: Path, to: Path) -> list[str]:
    """Write what a study folder keeps as a course repository into the folder `to`.

    Nothing that is in `to` is lost: a file in the way, such as the course's blank adapters, is kept
    under another name. Returns what was written, what was not and how to run the course's tests,
    line by line. Raises: ValueError if nothing is kept; OSError.
    """
    from workbook.classroom.study.copy import TUTOR  # not in each check: it loads nbformat
    from workbook.classroom.study.examples import kept_tests

    sources = solutions.stored(study)
    if not sources:
        raise ValueError(
            f"nothing that passed its check is kept in {study / solutions.FOLDER}; check a solution"
            " in a notebook of your study folder first, or name that folder:"
            " `workbook export study --adapters ...`"
        )
    kept = {problem: source for problem, (source, _) in sources.items()}
    files = {f"{PACKAGE}/{problem}.py": source for problem, source in kept.items()}
    problem_of = {name: problem for problem, part in PARTS.items() for name in part.adapters}
    problem_of["run_silu"] = "positionwise_feedforward"  # where it is most often a helper
    codes = {n: _code(n, p, kept[p]) if p in kept else _stub(n, "") for n, p in problem_of.items()}
    solved = {name: problem for name, problem in problem_of.items() if problem in kept}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _save(Path(folder), {**files, f"{PACKAGE}/__init__.py": "", ADAPTERS_FILE: _module(codes)})
        why_not = _why_not(folder, solved)
    codes |= {name: _stub(name, why) for name, why in why_not.items()}
    files[ADAPTERS_FILE] = _module(codes)
    if not (to / PACKAGE / "__init__.py").exists():
        files[f"{PACKAGE}/__init__.py"] = ""
    tests = kept_tests(study, PACKAGE).items()
    files |= {f"tests/test_own_{problem}.py": text for problem, text in tests}
    files |= {name: text for name, text in TUTOR.items() if not (to / name).exists()}
    saved = _save(to, files)
    works = f"{len(solved) - len(why_not)} of {len(codes)} adapters"
    number = "1 solved problem" if len(kept) == 1 else f"{len(kept)} solved problems"
    return [
        f"{to}: {number} in {PACKAGE}, and {works} in {ADAPTERS_FILE}",
        *(f"  {name} is left to you: {why}" for name, why in why_not.items()),
        *_remarks(sources, [name for name in codes if name not in solved]),
        *saved,
        f"The course's tests: `uv run pytest` in {to}, a clone of {COURSE_URL}",
    ]


def _remarks(sources: Mapping[str, tuple[str, str]], missing: list[str]) -> list[str]:
    """A line each on the kept sources that need a second look, and on the adapters without one."""
    lists = {
        "almost right when checked": [
            problem for problem, (_, status) in sources.items() if status == "almost"
        ],
        "import the workbook, which the course does not install": [
            problem for problem, (source, _) in sources.items() if OF_WORKBOOK.search(source)
        ],
        "not solved yet": missing,
    }
    return [f"  {title}: {', '.join(names)}" for title, names in lists.items() if names]


def _split(name: str) -> tuple[str, str]:
    """An adapter of `course_adapters`: its head, up to the colon, and its body."""
    source = inspect.getsource(getattr(course_adapters, name))
    head, body = re.split(r"\):.*\n", source, maxsplit=1)
    return f"{head}):\n", body


def _code(name: str, problem: str, source: str) -> str:
    """An adapter with the import of the learner's part that it calls."""
    head, body = _split(name)
    asked = PROBLEMS[problem].names
    listed = re.findall(r"(?ms)^__all__ = \[(.*?)\]", source)
    exported = re.findall(r"[^\W\d]\w*", "".join(listed[-1:])) or asked  # one may have edited it
    pairs = [*zip(asked, exported, strict=False), ("silu", "silu")]
    own = {called: real for called, real in pairs if re.search(rf"\b{called}\b", body)}
    names = [called if called == real else f"{real} as {called}" for called, real in own.items()]
    return f"{head}    from {PACKAGE}.{problem} import {', '.join(names)}\n\n{body}"


def _stub(name: str, why: str) -> str:
    """An adapter that is left to the learner, with the reason in a comment."""
    lines = [f"    # {line}\n" for line in wrap(f"Not exported: {why}", 90)[:4] if why]
    return f"{_split(name)[0]}{''.join(lines)}    raise NotImplementedError\n"


def _module(codes: Mapping[str, str]) -> str:
    """The text of `tests/adapters.py`."""
    helpers = (course_adapters.loaded, course_adapters.projections)
    return "\n\n".join([ADAPTERS_HEAD, *map(inspect.getsource, helpers), *codes.values()])


def _why_not(folder: str, names: Mapping[str, str]) -> dict[str, str]:
    """Why adapters do not work, by name, given their problems; a crash costs only one."""
    why: dict[str, str] = {}
    while left := [name for name in names if name not in why]:
        asked = _tried, folder, {name: names[name] for name in left}
        try:
            why.update(worker.results(*asked, seconds=ALL_SECONDS))
        except worker.EndedError as error:
            why[next(name for name in left if name not in why)] = str(error)
    return {name: words for name, words in why.items() if words}


def _tried(folder: str, names: dict[str, str]) -> Iterator[list[str]]:
    """Try the adapters in a folder; yield each one's name and why it does not work, or ""."""
    sys.path.insert(0, folder)
    module = load_file(Path(folder, ADAPTERS_FILE), "adapters")
    for name, problem in names.items():
        used = [adapter for adapter in PARTS[problem].adapters if adapter in names]
        functions = {adapter: getattr(module, adapter) for adapter in used}
        words = differs(getattr(module, name), name)
        if words is None:  # not one of tensors
            report = report_on(problem, partial(attempt, functions, problem))
            got = dict(report.rows).get("got", "")
            is_right = report.status in ("correct", "almost")
            words = "" if is_right else f"{report.claim} {got}"
        yield [name, words]


def _save(to: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files; say which old ones are kept, and as what."""
    renamed = []
    for name, text in files.items():
        path = to / name
        if path.is_dir() or (path.exists() and path.read_bytes() != text.encode()):
            places = (path.with_name(f"{path.name}.bak{n or ''}") for n in count())
            backup = path.rename(next(place for place in places if not place.exists()))
            renamed.append(f"  the old {name} is kept as {backup.relative_to(to)}")
        with atomic_write(path) as file:
            file.write(text)
    return renamed
