"""Tensors in checks: drawn small, compared, and put in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor, allclose  # by name: an attempt may replace torch's

from workbook.checks.verdicts import NotAttempted, Words, Wrong, kind_of

SMALL = 24  # numbers that are shown in full
TOLERANCE = 2e-4  # relative to the largest number: float32 in any order of summing, not one digit
ROUNDED = {torch.float16: 2e-3, torch.bfloat16: 2e-2}  # what half precision leaves


@dataclass(frozen=True, eq=False)
class Case:
    """One call of a part of the model: what it is made of, its inputs and its weights.

    All go by the names of the course and in its order.
    """

    name: str  # of the function or class, such as "Linear"
    inputs: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the constructor, if any
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    what: str = ""  # why this case is there, in a few words

    @property
    def high(self) -> dict[str, Any]:
        """Inputs and weights, what is float32 in float64; half precision stays as it is."""
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
            f"{name} = {described(value) if isinstance(value, Tensor) else value}"
            for name, value in values.items()
        ]
        call = f"{self.name}{f'({made})' if made else ''}({', '.join(self.inputs)})"
        return ", ".join([call, *parts]) + (f" ({self.what})" if self.what else "")


def drawn(*shape: int, seed: int, std: float = 1.0, digits: int = 1) -> Tensor:
    """Normal numbers in float32, always the same for a seed, rounded so that they read well."""
    generator = torch.Generator().manual_seed(seed)
    numbers = std * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return (numbers.round(decimals=digits) + 0.0).to(torch.float32)  # + 0.0: no -0


def copied(value: Any) -> Any:
    """A tensor that may be changed without harm; one that wants a gradient is itself."""
    return value.clone() if isinstance(value, Tensor) and not value.requires_grad else value


def alike(one: Tensor, other: Tensor, tolerance: float = TOLERANCE) -> bool:
    """True for tensors of one shape that differ by rounding only; NaN equals NaN here."""
    if one.shape != other.shape:
        return False
    one, other = one.double(), other.double()
    finite = other[other.isfinite()].abs()
    scale = finite.max().item() if finite.numel() else 1.0
    return allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def tensor_of(result: Any, given: Words) -> Tensor:
    """A result as a tensor of numbers; raises `Wrong` where it is something else."""
    if result is None:
        raise NotAttempted("It returned None: is a `return` still to write?")
    mistake = None
    if isinstance(result, Tensor):
        claim, what = "It returns another kind of tensor.", f"a tensor of {kind(result.dtype)}"
        if result.is_complex():
            mistake = "The numbers are complex: come back to real ones by `torch.view_as_real`."
        elif result.device.type != "cpu":
            what += f" on {result.device}"
            mistake = "Make new tensors where the inputs are, with `device=x.device`."
        elif result.layout == torch.strided:
            return result
    else:
        claim, what = "It does not return a tensor.", kind_of(result)
        if isinstance(result, tuple):
            what = "a tuple"
            mistake = "There is more than one value after `return`, or a comma too many."
        elif isinstance(result, float | int):
            mistake = "A plain number (`.item()`, `float`) lets no gradient through."
        elif type(result).__module__ == "numpy":
            mistake = "numpy keeps no track of gradients: use torch from beginning to end."
    raise Wrong(
        claim,
        given=given,
        expected=Words("a tensor of numbers"),
        got=Words(what),
        mistake=mistake,
    )


def kind(dtype: torch.dtype) -> str:
    """The name of a type, such as "float32"."""
    return str(dtype).removeprefix("torch.")


def numbers(tensor: Tensor) -> str:
    """The numbers of a small tensor in nested brackets, with four digits."""
    if tensor.ndim == 0:
        return _number(tensor.item())
    return f"[{', '.join(map(numbers, tensor))}]"


def _number(value: float | int | bool) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def described(tensor: Tensor) -> str:
    """A small tensor in full, a larger one by its shape; the type where it is not float32."""
    if tensor.numel() <= SMALL:
        usual = tensor.dtype in (torch.float32, torch.int64, torch.bool)
        return numbers(tensor) + ("" if usual else f" in {kind(tensor.dtype)}")
    shape = "x".join(map(str, tensor.shape))
    return f"{shape} {'numbers' if tensor.is_floating_point() else 'ids'}"


def beside(expected: Tensor, got: Tensor) -> tuple[Words, Words]:
    """Both tensors in words: in full, or the first row in which they differ."""
    if expected.shape != got.shape:
        return tuple(Words(f"shape {tuple(t.shape)}: {_beginning(t)}") for t in (expected, got))
    if expected.numel() <= SMALL:
        return Words(numbers(expected.detach())), Words(numbers(got.detach()))
    at = next(
        (at for at in product(*map(range, expected.shape[:-1])) if _differ(expected, got, at)),
        (0,) * (expected.ndim - 1),
    )
    where = f"at [{', '.join(map(str, at))}]: " if at else ""
    return tuple(Words(f"{where}{_beginning(t[at])}") for t in (expected, got))


def compared(case: Case, expected: Tensor, got: Tensor) -> Wrong:
    """What is said of a tensor that is not the expected one."""
    claim = "The result is not the expected one."
    if expected.shape != got.shape:
        claim = "The result has not the expected shape."
    right, shown = beside(expected, got)
    mistake = symptom(expected, got)
    return Wrong(claim, given=str(case), expected=right, got=shown, mistake=mistake)


def _differ(expected: Tensor, got: Tensor, at: tuple[int, ...]) -> bool:
    difference = (expected[at].double() - got[at].double()).abs()
    finite = expected[expected.isfinite()]
    limit = TOLERANCE * (finite.abs().max().item() if finite.numel() else 1.0)
    return bool(difference.isnan().any()) or difference.max().item() > limit


def _beginning(tensor: Tensor) -> str:
    tensor = tensor.detach()
    if tensor.numel() <= SMALL:
        return numbers(tensor)
    return f"[{', '.join(_number(v) for v in tensor.flatten()[:6].tolist())}, ...]"


def symptom(expected: Tensor, got: Tensor) -> str | None:
    """What can be said about a wrong result that no known mistake explains."""
    if got.shape != expected.shape:
        return _about_shape(tuple(expected.shape), tuple(got.shape))
    if got.dtype in ROUNDED and got.dtype != expected.dtype:
        return f"The numbers come in {kind(got.dtype)}, which is too coarse."
    expected, got = expected.detach().double(), got.detach().double()
    if not got.isfinite().all():
        bad = "NaN" if got.isnan().any() else "inf"
        return f"There is {bad} in it: somewhere a number overflows, or 0 is divided by 0."
    if got.eq(0).all():
        return "All of it is 0."
    ratio = got / expected
    if ratio.isfinite().all() and alike(ratio, ratio.flatten()[0].expand_as(ratio)):
        factor = ratio.flatten()[0].item()
        return f"Each number is {factor:.4g} times what it should be."
    shift = got - expected
    if alike(shift, shift.flatten()[0].expand_as(shift)):
        return f"Each number is too large by {shift.flatten()[0].item():.4g}."
    for axis in range(expected.ndim):
        if expected.shape[axis] > 1 and alike(got, expected.flip(axis)):
            return f"The right numbers, backwards along dimension {axis}."
    if expected.ndim > 1 and alike(got, expected.transpose(-1, -2)):
        return "The right numbers, but rows and columns are swapped."
    return _right_places(expected, got)


def _about_shape(expected: tuple[int, ...], got: tuple[int, ...]) -> str | None:
    if got == tuple(size for size in expected if size > 1):
        return "Axes of length 1 are lost: keep them, a batch of one is a batch."
    if got == expected[1:]:
        return "The first axis is lost."
    if sorted(got) == sorted(expected):
        return "The axes come in another order."
    if math.prod(got) == math.prod(expected):
        return "The numbers may all be there, but the axes are joined or split in another way."
    return None


def _right_places(expected: Tensor, got: Tensor) -> str | None:
    """Which positions are right, or which entries of each vector, where it is not none."""
    for axis, what, several in ((-2, "position", "positions"), (-1, "entry", "entries")):
        if expected.ndim >= -axis:
            pairs = zip(expected.unbind(axis), got.unbind(axis), strict=True)
            right, count = [i for i, pair in enumerate(pairs) if alike(*pair)], got.shape[axis]
            if 0 < len(right) < count:
                for which, start in (("even", 0), ("odd", 1)):
                    if right == [*range(start, count, 2)] and count > 3:
                        return f"Only the {which} {several}, counted from 0, are right."
                places = ", ".join(map(str, right))
                return f"Only {what} {places} (counted from 0) of {count} is right."
    if alike(expected.abs(), got.abs()):
        return "The right numbers, but for their signs."
    for axis, what in ((-1, "numbers in each vector"), (-2, "vectors")):
        if expected.ndim >= -axis > 0 and alike(_sorted(expected, axis), _sorted(got, axis)):
            return f"The right {what}, in another order."
    if expected.ndim > 1 and alike(got, got.narrow(-2, 0, 1).expand_as(got)):
        return "Every position has the same result."
    return None


def _sorted(tensor: Tensor, axis: int) -> Tensor:
    """A tensor in whose vectors the numbers are sorted, or whose vectors are, by their sums."""
    if axis == -1:
        return tensor.sort(-1).values
    order = tensor.sum(-1, keepdim=True).argsort(-2)
    return tensor.gather(-2, order.expand_as(tensor))
