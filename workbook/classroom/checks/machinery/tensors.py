"""Tensors in checks: drawn small, compared, and put into words."""

import ast
import inspect
import math
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, allclose  # by name: an attempt may replace torch's
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from workbook.classroom.checks.machinery.verdicts import NotAttempted, Prose, Wrong, kind_of

SMALL = 24  # numbers that are shown in full
TOLERANCE = 2e-4  # relative to the largest number: float32 in any order of summing, not one digit
ROUNDED = {torch.float16: 2e-3, torch.bfloat16: 2e-2}  # what half precision leaves


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a part of the model: what it is made of, its inputs and its weights.

    All have the course's names, in its order.
    """

    name: str  # of the function or class, such as "Linear"
    inputs: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the constructor, if any
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    what: str = ""  # why this case is there, in a few words
    seldom: bool = False  # whether ordinary use does without it, so that an error is a corner only

    @property
    def high(self) -> dict[str, Any]:
        """Inputs and weights, float32 turned into float64; half precision stays as it is."""
        return {
            name: value.double() if getattr(value, "dtype", None) == torch.float32 else value
            for name, value in {**self.inputs, **self.weights}.items()
        }

    @property
    def signature(self) -> str:
        """How the class is made, or the function called."""
        return f"{self.name}({', '.join(self.arguments or self.inputs)})"

    def __str__(self) -> str:
        made = ", ".join(f"{value:g}" for value in self.arguments.values())
        values = {**self.inputs, **(self.weights if len(self.weights) == 1 else {})}
        parts = [
            f"{name} = {_described(value) if isinstance(value, Tensor) else value}"
            for name, value in values.items()
        ]
        call = f"{self.name}{f'({made})' if made else ''}({', '.join(self.inputs)})"
        return ", ".join([call, *parts]) + (f" ({self.what})" if self.what else "")


def noise(*shape: int, seed: int, std: float = 1.0, digits: int = 1) -> Tensor:
    """Normal numbers in float32, always the same for a seed, rounded so that they read well."""
    generator = torch.Generator().manual_seed(seed)
    numbers = std * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return (numbers.round(decimals=digits) + 0.0).to(torch.float32)  # + 0.0: no -0


def copied(value: Any) -> Any:
    """A copy of a tensor; one that requires a gradient, and any other value, as it is."""
    return value.clone() if isinstance(value, Tensor) and not value.requires_grad else value


def alike(one: Tensor, other: Tensor, tolerance: float = TOLERANCE) -> bool:
    """True for tensors of one shape that differ by rounding only; NaN equals NaN here."""
    if one.shape != other.shape:
        return False
    limit = tolerance * _scale(other)
    return allclose(one.double(), other.double(), rtol=tolerance, atol=limit, equal_nan=True)


def same_kind(expected: Tensor, result: Tensor) -> bool:
    """Whether a result is as exact as its type can be, and half precision is kept."""
    kept = expected.dtype == result.dtype or expected.dtype not in ROUNDED
    return kept and alike(expected, result, ROUNDED.get(result.dtype, TOLERANCE))


def _scale(tensor: Tensor) -> float:
    """The largest of the finite numbers, without its sign."""
    finite = tensor[tensor.isfinite()]
    return finite.abs().max().item() if finite.numel() else 1.0


def tensor_of(result: Any, given: Any) -> Tensor:
    """A result as a tensor of numbers; raises `Wrong` if it is something else."""
    if result is None:
        raise NotAttempted
    what = kind_of(result)
    mistake = None
    if is_tensor(result):
        if odd := _oddness(result):
            what, mistake = odd
        elif not result.is_complex() and result.device.type == "cpu":
            return result
        else:
            what = f"a tensor of {kind(result.dtype)} on {result.device}"
            mistake = "Make new tensors on the device of the inputs: `device=x.device`."
        if result.is_complex():
            mistake = "The numbers are complex: convert them back with `torch.view_as_real`."
    elif isinstance(result, tuple):
        what = "a tuple"
        mistake = "There is more than one value after `return`, or a comma."
    elif isinstance(result, float | int):
        mistake = "A plain number (`.item()`, `float`) lets no gradient through."
    elif type(result).__module__ == "numpy":
        mistake = "numpy does not track gradients: use torch throughout."
    raise Wrong(
        "It does not return a tensor of numbers.",
        given=given,
        expected=Prose("a tensor of numbers"),
        got=Prose(what),
        mistake=mistake,
    )


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, and does not only claim to be of its class."""
    return issubclass(type(value), Tensor)


def _oddness(tensor: Tensor) -> tuple[str, str] | None:
    """What a tensor is that does not hold its numbers one beside another, and how to change it."""
    if tensor.is_nested:
        return "a nested tensor", "`torch.nested.to_padded_tensor` makes a plain one of it."
    if tensor.is_quantized:
        return "a quantized tensor", "`dequantize()` makes a plain one of it."
    if tensor.layout != torch.strided:
        return "a sparse tensor", "`to_dense()` makes a plain one of it."
    return None


def kind(dtype: torch.dtype) -> str:
    """The name of a type, such as "float32"."""
    return str(dtype).removeprefix("torch.")


def _numbers(values: Any) -> str:
    """The numbers of nested lists, with four digits."""
    if isinstance(values, list):
        return f"[{', '.join(map(_numbers, values))}]"
    return f"{values:.4g}" if isinstance(values, float) else str(values)


def _described(tensor: Tensor) -> str:
    """A small tensor in full, a larger one by its shape; the type where it is not float32."""
    if tensor.numel() <= SMALL and not tensor.is_meta:
        usual = tensor.dtype in (torch.float32, torch.int64, torch.bool)
        return _numbers(tensor.tolist()) + ("" if usual else f" in {kind(tensor.dtype)}")
    shape = "x".join(map(str, tensor.shape))
    return f"{shape} {'numbers' if tensor.is_floating_point() else 'ids'}"


def dropped(attempt: Any) -> str:
    """Say so where a line of a part converts a tensor and drops the result; "" if none does."""
    with suppress(OSError, TypeError, SyntaxError):  # there is no source
        source = textwrap.dedent(inspect.getsource(attempt))
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "to" | "float" | "type"))):
                    line = ast.unparse(node)
                    return f" `{line}` changes nothing in place: write `{name} = {line}`."
    return ""


def mismatch(case: Case, expected: Tensor, got: Tensor) -> Wrong:
    """What to say about a tensor that is not the expected one."""
    claim = "The result is not the expected one."
    if expected.shape != got.shape:
        claim = "The result does not have the expected shape."
    right, shown = beside(expected, got)
    return Wrong(claim, given=str(case), expected=right, got=shown, mistake=symptom(expected, got))


def beside(expected: Tensor, got: Tensor) -> tuple[Prose, ...]:
    """Both tensors in words: in full, or the first row in which they differ."""
    expected = expected.detach()
    got = got.detach()
    where = ""
    if expected.shape != got.shape:
        return tuple(Prose(f"shape {tuple(t.shape)}: {_beginning(t)}") for t in (expected, got))
    if expected.numel() > SMALL and expected.ndim > 1:
        limit = TOLERANCE * _scale(expected)
        far = ~torch.isclose(got.double(), expected.double(), TOLERANCE, limit).all(-1)
        at = tuple(next(iter(far.nonzero().tolist()), [0] * far.ndim))
        where = f"at [{', '.join(map(str, at))}]: "
        expected = expected[at]
        got = got[at]
    return Prose(where + _beginning(expected)), Prose(where + _beginning(got))


def _beginning(tensor: Tensor) -> str:
    if tensor.numel() <= SMALL:
        return _numbers(tensor.tolist())
    return _numbers([*tensor.flatten()[:6].tolist(), Prose("...")])


def symptom(expected: Tensor, got: Tensor) -> str | None:
    """What can be said about a wrong result that no known mistake explains."""
    if got.shape != expected.shape:
        return _about_shape(tuple(expected.shape), tuple(got.shape))
    if got.dtype in ROUNDED and got.dtype != expected.dtype:
        return f"The numbers are in {kind(got.dtype)}, which is too coarse."
    expected = expected.detach().double()
    got = got.detach().double()
    if not got.isfinite().all():
        bad = "NaN" if got.isnan().any() else "inf"
        return f"It contains {bad}: somewhere a number overflows, or 0 is divided by 0."
    if got.eq(0).all():
        return "All of it is 0."
    if alike(got, expected.relu()):
        return "Where the numbers should be negative they are 0, as after a ReLU."
    for difference, words in (
        (got / expected, "Each number is {:.4g} times what it should be."),
        (got - expected, "Each number is too large by {:.4g}."),
    ):
        first = difference.flatten()[0]
        is_even = difference.isfinite().all() and alike(difference, first.expand_as(difference))
        if is_even and difference.numel() > 1:
            return words.format(first.item())
    if alike(got, expected, 0.01):
        return "Nearly right: is it rounding (half precision), an ε, or the number used for -inf?"
    for axis, what in ((-2, "position"), (-1, "entry")):
        if expected.ndim >= -axis:
            pairs = zip(expected.unbind(axis), got.unbind(axis), strict=True)
            right = ", ".join(str(i) for i, pair in enumerate(pairs) if alike(*pair))
            if right:
                return f"Right only at {what} {right} (counted from 0) of {got.shape[axis]}."
    for words, view in SEEN_AS.items():
        if alike(view(expected), view(got)):
            return words
    return None


SEEN_AS = {  # what to say if a right and a wrong tensor are the same in this view
    "The right numbers, apart from their signs.": torch.abs,
    "The right numbers in each vector, but in another order.": lambda x: x.sort(-1).values,
    "The right numbers, but in other places.": lambda x: x.flatten().sort().values,
}


def _about_shape(expected: tuple[int, ...], got: tuple[int, ...]) -> str | None:
    if got == tuple(size for size in expected if size > 1):
        return "Axes of length 1 are lost: keep them; a batch of one is still a batch."
    if got == (1, *expected):
        return "An axis of length 1 is added in front: leave it out."
    if any(got == expected[:axis] + expected[axis + 1 :] for axis in range(len(expected))):
        return "An axis is lost."
    if sorted(got) == sorted(expected):
        return "The axes are in a different order."
    if math.prod(got) == math.prod(expected):
        return "The numbers may all be there, but the axes are joined or split in another way."
    return None


# Other devices: what is on "meta" stands for what is on a GPU, and has no numbers.


COPIES = {torch.ops.aten.copy_, torch.ops.aten._to_copy}
OTHER_DEVICES = {"cpu", "cuda", "mps"}
BY_INDEX = {torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_}


class TwoDevicesError(RuntimeError):
    """An operation was given tensors on two devices."""


class OneDevice(TorchDispatchMode):
    """Raise where an operation takes tensors on two devices, as torch does on a GPU.

    The kernels of "meta" let some of them pass, such as those that work in place.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        # A single number may come from the CPU, and so may indices.
        counted = [t for t in tensors if t.is_meta or t.ndim]
        if func.overloadpacket in BY_INDEX:
            counted = [*tensors[:1], *(t for t in tensors if t.is_meta)]
        on_two = len({t.is_meta for t in counted}) == 2
        if on_two and func.overloadpacket not in COPIES:
            raise TwoDevicesError(f"{func} takes tensors on two devices")
        return func(*args, **(kwargs or {}))


class NamedDevices(TorchFunctionMode):
    """Notes whether any call names a device other than "meta", as `x.to(device)` may."""

    any_named = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = [x for x in (*args, *(kwargs or {}).values()) if isinstance(x, str | torch.device)]
        self.any_named |= any(str(x).split(":")[0] in OTHER_DEVICES for x in named)
        return func(*args, **(kwargs or {}))
