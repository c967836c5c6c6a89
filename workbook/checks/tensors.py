"""Tensors in checks: drawn small, compared, and put in words."""

import math
from itertools import product
from typing import Any

import torch
from torch import Tensor

from workbook.checks.base import NotAttempted, Words, Wrong, kind_of

SMALL = 24  # numbers that are shown in full
TOLERANCE = 2e-4  # relative to the largest number: float32 in any order of summing, not one digit
ROUNDED = {torch.float16: 2e-3, torch.bfloat16: 2e-2}  # what half precision leaves


def drawn(*shape: int, seed: int, std: float = 1.0, digits: int = 1) -> Tensor:
    """Normal numbers in float32, always the same for a seed, rounded so that they read well."""
    generator = torch.Generator().manual_seed(seed)
    numbers = std * torch.randn(*shape, generator=generator, dtype=torch.float64)
    return (numbers.round(decimals=digits) + 0.0).to(torch.float32)  # + 0.0: no -0


def alike(one: Tensor, other: Tensor, tolerance: float = TOLERANCE) -> bool:
    """True for tensors of one shape that differ by rounding only; NaN equals NaN here."""
    if one.shape != other.shape:
        return False
    one, other = one.double(), other.double()
    finite = other[other.isfinite()].abs()
    scale = finite.max().item() if finite.numel() else 1.0
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def tensor_of(result: Any, given: Words, asked: Tensor, name: str = "It") -> Tensor:
    """A result as a tensor; raises `Wrong` where it is something else, such as a tuple."""
    if result is None:
        raise NotAttempted(f"{name} returned None: is a `return` still to write?")
    if isinstance(result, Tensor):
        return result
    mistake = None
    if isinstance(result, tuple):
        mistake = "There is more than one value after `return`, or a comma too many."
    elif isinstance(result, float | int):
        mistake = "`.item()` or `float` makes a plain number, and no gradient can flow through it."
    elif type(result).__module__ == "numpy":
        mistake = "numpy keeps no track of gradients: use torch from beginning to end."
    what = "a tuple" if isinstance(result, tuple) else kind_of(result)
    raise Wrong(
        f"{name} does not return a tensor.",
        given=given,
        expected=Words(f"a tensor of shape {tuple(asked.shape)}"),
        got=Words(what),
        mistake=mistake,
    )


def numbers(tensor: Tensor) -> str:
    """The numbers of a small tensor in nested brackets, with four digits."""
    if tensor.ndim == 0:
        return _number(tensor.item())
    return f"[{', '.join(map(numbers, tensor))}]"


def _number(value: float | int | bool) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def described(tensor: Tensor) -> str:
    """A small tensor in full, a larger one by its shape; the type where it is not float32."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() <= SMALL:
        return numbers(tensor) + ("" if kind in ("float32", "int64", "bool") else f" in {kind}")
    shape = "x".join(map(str, tensor.shape))
    return f"{shape} {'ids' if kind == 'int64' else 'numbers'}"


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
        return None
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
    if expected.ndim < 2 or expected.shape[-2] == 1:
        return None
    if alike(got, expected.transpose(-1, -2)):
        return "The right numbers, but rows and columns are swapped."
    return _right_places(expected, got)


def _right_places(expected: Tensor, got: Tensor) -> str | None:
    """Which positions (the last axis but one) are right, where it is not none."""
    right = [alike(got[..., i, :], expected[..., i, :]) for i in range(expected.shape[-2])]
    if not any(right) or math.isclose(sum(right), len(right)):
        return None
    places = ", ".join(str(i) for i, good in enumerate(right) if good)
    return f"Only position {places} (counted from 0) of {len(right)} is right."
