"""Gives a learner's module the weights of a case: by the course's names, else by what fits."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice, permutations, product

import torch
from torch import Tensor, nn

from workbook.checks.transformer_names import HOLDS, Place, layer_of, place, place_of_learners
from workbook.checks.verdicts import Words, Wrong

BY_HEAD = {"qkv", "kv"}  # fused matrices that may be laid out head by head
LAYOUTS = 24  # ways to understand one module that are tried
Weights = Mapping[str, Tensor]


def layouts(module: nn.Module, weights: Weights, heads: int = 1) -> list[dict[str, Tensor]]:
    """The ways to fill the parameters: one where names are clear, several for a fused matrix.

    Raises: Wrong where parameters are missing, too many, of another shape or not to be told apart.
    """
    own = dict(module.named_parameters())
    _expect_some(module, own, weights)
    if set(own) == set(weights):
        _expect_shapes({name: (own[name], weights[name]) for name in own})
        return [dict(weights)]
    if len(own) == len(weights) == 1:
        (name,), (weight,) = own, weights.values()
        _expect_shapes({name: (own[name], weight)})
        return [{name: weight}]
    by_place = {place(name): weight for name, weight in weights.items()}
    groups, guesses = _groups(own, by_place)
    found = [
        {**known, **guess}
        for known in islice(_by_names(own, groups, by_place, heads), LAYOUTS)
        for guess in guesses
    ]
    if found:
        return found[:LAYOUTS]
    if guesses:
        alone = {at: names[0] for at, names in groups.items() if len(names) == 1 and at in by_place}
        _expect_shapes({name: (own[name], by_place[at]) for at, name in alone.items()})
    _refuse_names(own, weights)


def fill(module: nn.Module, layout: dict[str, Tensor]) -> None:
    """Copy the weights of a layout into the parameters."""
    own = dict(module.named_parameters())
    with torch.no_grad():
        for name, weight in layout.items():
            own[name].copy_(weight)


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
    if not own and weights:
        raise Wrong(
            "The module has no parameters.",
            expected=_names(weights),
            got=Words("nothing in `named_parameters()`"),
            mistake="Wrap the tensor into an `nn.Parameter` and set it on `self`, so that torch "
            "knows what to train.",
        )


def _has_parameters(value: object) -> bool:
    return isinstance(value, nn.Module) and any(True for _ in value.parameters())


def _expect_shapes(pairs: dict[str, tuple[Tensor, Tensor]]) -> None:
    for name, (own, weight) in pairs.items():
        if own.shape == weight.shape:
            continue
        mistake = None
        if own.shape == weight.shape[::-1]:
            mistake = (
                "The weight is stored transposed. The course keeps one row for each output: "
                "(d_out, d_in) of a linear layer, (vocabulary, d_model) of an embedding."
            )
        elif own.numel() == weight.numel():
            mistake = "The numbers would fit, but not in this shape."
        raise Wrong(
            f"The parameter `{name}` has another shape.",
            expected=Words(tuple(weight.shape)),
            got=Words(tuple(own.shape)),
            mistake=mistake,
        )


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
    if len(covered) > len(set(covered)) or not fits or number > LAYOUTS:
        return groups, []
    ways = product(
        *(
            [dict(zip(names, order, strict=True)) for order in permutations(empty[key])]
            for key, names in others.items()
        )
    )
    return groups, [dict(item for part in way for item in part.items()) for way in ways]


def _by_names(
    own: Weights, groups: dict[Place, list[str]], by_place: dict[Place, Tensor], heads: int
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
            whole = _joined(parts, heads) if by_head and at.leaf in BY_HEAD else torch.cat(parts)
            pieces = _cut(whole, [own[name].shape for name in names], heads, at.leaf, last)
            if pieces is None:
                break
            layout.update(zip(names, pieces, strict=True))
        else:
            yield layout


def _joined(parts: list[Tensor], heads: int) -> Tensor:
    """All rows of the first head, then those of the second."""
    return torch.stack([part.unflatten(0, (heads, -1)) for part in parts], 1).flatten(0, 2)


def _cut(whole: Tensor, shapes: list, heads: int, leaf: str, last: bool) -> list[Tensor] | None:
    """A weight cut into pieces of these shapes; None where they do not add up to it."""
    if len(shapes) == 1 and len(shapes[0]) == 3:
        by_head = whole.unflatten(int(leaf == "output_proj"), (heads, -1))
        turns = (by_head.permute(turn) for turn in permutations(range(3)))
        fitting = [turned for turned in turns if turned.shape == shapes[0]]
        return (fitting[-1:] if last else fitting[:1]) or None
    for axis in (0, 1):
        sizes = [shape[axis] for shape in shapes if len(shape) == whole.ndim]
        if len(sizes) == len(shapes) and sum(sizes) == whole.shape[axis]:
            pieces = list(whole.split(sizes, axis))
            if [piece.shape for piece in pieces] == shapes:
                return pieces
        if whole.ndim == 1:
            break
    return None


LACKING = {
    "ln1": "the norm before attention",
    "ln2": "the norm before the feed-forward layer",
    "ln_final": "the final norm",
    "w3": "the third matrix of SwiGLU, beside W1",
    "output_proj": "the output projection of attention",
}


def _refuse_names(own: Weights, weights: Weights) -> None:
    missing = [name for name in weights if name not in own]
    mistake = "The check, like the course's tests, fills in weights by these names."
    if "lm_head.weight" in missing and len(missing) == 1:
        mistake = "The head shares the matrix of the embedding: the course gives each its own."
    elif set(own) < set(weights):
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


def _names(weights: Weights) -> Words:
    items = [f"{name} {tuple(weight.shape)}" for name, weight in weights.items()]
    return Words(", ".join(items[:12]) + (", ..." if len(items) > 12 else ""))


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:6]) + (", ..." if len(names) > 6 else "")
