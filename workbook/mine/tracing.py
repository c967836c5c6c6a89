"""A learner's whole model, taken from a run of the adapter that makes it and loads its weights.

`run_transformer_lm` knows what no rule can: which class is made, with which arguments, under which
names its parameters take the course's weights, and how it is called. So it is watched while it
runs. It cannot serve as the model itself, because it returns no parameters that could be trained.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import permutations
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from workbook.checks.calling import SIZES
from workbook.checks.modules import uncompiled
from workbook.checks.timeout import TimedOut, limited
from workbook.config import ModelConfig
from workbook.transformer.model import TransformerLM

SECONDS = 120.0  # for one run of the adapter, on a busy machine
TOLERANCE = 1e-3
# What `forward` may be given besides the ids, for some length: positions, and masks.
FORMS: list[Callable[[int], Tensor]] = [
    torch.arange,
    lambda n: torch.ones(n, n, dtype=torch.bool).tril(),
    lambda n: torch.ones(n, n, dtype=torch.bool).triu(1),
    lambda n: torch.full((n, n), -torch.inf).triu(1),
]
# Where the logits are in what it returns.
PLACES: list[Callable[[Any], Any]] = [
    lambda output: output,
    lambda output: output[0],
    lambda output: output.logits,
    lambda output: output["logits"],
]


def course_weights(sizes: Mapping[str, Any], seed: int) -> dict[str, Tensor]:
    """Random weights of a model, including gains, under the names in the course's tests."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        weights = TransformerLM(**sizes).state_dict()
        return {n: w if w.ndim > 1 else w + torch.randn_like(w) / 5 for n, w in weights.items()}


class TracedModel:
    """A learner's model with the sizes of one config, as their `run_transformer_lm` makes it."""

    def __init__(self, adapter: Callable, config: ModelConfig):
        """Run the adapter, and make sure that a model made anew gives the same.

        Arguments:
            adapter: their `run_transformer_lm`.
            config: the sizes.

        Raises: ValueError that says why their model cannot be taken from it; what the adapter
        itself raises is in the message.
        """
        self.sizes = {name: getattr(config, name) for name in SIZES}
        self._adapter = adapter
        with torch.random.fork_rng(devices=[]):
            self._trace()
            self._prove()

    def _trace(self) -> None:
        weights = course_weights(self.sizes, seed=1)
        length = next(n for n in range(5, 13) if n not in self.sizes.values())  # unique to it
        length = min(length, self.sizes["context_length"])
        try:
            self._ids = self._some_ids(2, length)
            result, self._watched = self._run(weights, self._ids)
        except ValueError:  # some take positions for a single sequence only
            self._ids = self._some_ids(1, length)
            result, self._watched = self._run(weights, self._ids)
        self._root = root = self._watched.root()
        self.name = type(root).__name__  # of their class
        if id(root) not in self._watched.forwards:
            raise ValueError(f"{self.name}.forward is never called by run_transformer_lm")
        self._forward, output = self._watched.forwards[id(root)]
        given = [*self._forward.args, *self._forward.kwargs.values()]
        if not any(_is_same(each, self._ids) for each in given):
            raise ValueError(
                f"{self.name}.forward is not called with the ids by run_transformer_lm"
            )
        self._pick = _picker(output, result)
        self._rows = _rows(root, weights)
        self._ready: dict[int, nn.Module] = {}  # the modules given to `forward`

    def make(self) -> nn.Module:
        """Make a new model, with the initial weights that their code draws. Raises: ValueError."""
        with uncompiled():
            made = self._watched.anew(self._root, {})
        return made.train(self._root.training)

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The value of each of their parameters, by name, given weights by the course's names."""
        known = {(n, is_turned): m.unbind() for n, is_turned, m in _matrices(weights)}
        found = {}
        for name, (turn, shape, rows) in self._rows.items():
            turned = torch.stack([known[weight, is_turned][row] for weight, is_turned, row in rows])
            back = sorted(range(len(turn)), key=turn.__getitem__)
            found[name] = turned.reshape(shape).permute(back).contiguous()
        return found

    def fill(self, module: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Copy weights by the course's names into a model that `make` made."""
        own = dict(module.named_parameters())
        with torch.no_grad():
            for name, value in self.places(weights).items():
                if name not in own or own[name].shape != value.shape:
                    raise ValueError(
                        f"run_transformer_lm changes the model after making it: a new {self.name}"
                        f" has no `{name}` of shape {tuple(value.shape)}"
                    )
                own[name].copy_(value)

    def call(self, module: nn.Module, ids: Tensor) -> Tensor:
        """The logits of a model that `make` made, for (batch, seq) ids."""
        args = [self._for_ids(ids, each) for each in self._forward.args]
        kwargs = {name: self._for_ids(ids, each) for name, each in self._forward.kwargs.items()}
        return self._pick(module(*args, **kwargs))

    def _for_ids(self, ids: Tensor, value: Any) -> Any:
        """What `forward` takes for these ids in place of what the adapter gave it."""
        (old_batch, old), (batch, length) = self._ids.shape, ids.shape
        if _is_same(value, self._ids):
            return ids
        if isinstance(value, nn.Module):
            if id(value) not in self._ready:
                self._ready[id(value)] = self._watched.anew(value, {})
            return self._ready[id(value)].to(ids.device)
        if type(value) is int and value == old:
            return length
        if not isinstance(value, Tensor):
            return value
        for form in FORMS:  # the axes before it have size 1, or the batch's
            core = form(old)
            before = value.shape[: max(value.ndim - core.ndim, 0)]
            if _is_same(value, core.expand(*before, *core.shape).to(value.dtype)):
                before = [batch if each == old_batch != 1 else each for each in before]
                new = form(length)
                return new.expand(*before, *new.shape).to(device=ids.device, dtype=value.dtype)
        raise ValueError(
            f"{self.name}.forward is given a tensor of shape {tuple(value.shape)}, which is neither"
            " positions nor a causal mask"
        )

    def _some_ids(self, batch: int, length: int) -> Tensor:
        generator = torch.Generator().manual_seed(batch)
        return torch.randint(0, self.sizes["vocab_size"], (batch, length), generator=generator)

    def _run(self, weights: Mapping[str, Tensor], ids: Tensor) -> tuple[Tensor, "_Watcher"]:
        """Run the adapter, and note what it does."""
        given = {name: weight.clone() for name, weight in weights.items()}
        arguments = {**self.sizes, "weights": given, "in_indices": ids.clone()}
        watcher = _Watcher(given.values())
        try:
            with uncompiled():
                run = lambda: watcher.run(self._adapter, **arguments)  # noqa: E731
                return limited(SECONDS, run).detach(), watcher
        except KeyboardInterrupt:
            raise
        except TimedOut as error:
            raise ValueError(f"run_transformer_lm was {error}") from error
        except BaseException as error:
            raise ValueError(
                f"run_transformer_lm fails for these sizes: {type(error).__name__}: {error}"
            ) from error

    def _prove(self) -> None:
        """Raise ValueError unless a new model gives what the adapter gives, for other weights."""
        weights = course_weights(self.sizes, seed=2)
        ids = self._some_ids(1, self.sizes["context_length"])
        expected, _ = self._run(weights, ids)
        try:
            module = self.make()
            self.fill(module, weights)
            with torch.no_grad():
                got = self.call(module, ids.expand(3, -1))
        except (KeyboardInterrupt, ValueError):
            raise
        except Exception as error:
            raise ValueError(
                f"{self.name} cannot be made and called as run_transformer_lm does it:"
                f" {type(error).__name__}: {error}"
            ) from error
        expected = expected.expand(3, -1, -1)
        close = {"rtol": TOLERANCE, "atol": TOLERANCE}
        if got.shape != expected.shape or not torch.allclose(got, expected, **close):
            raise ValueError(
                f"a new {self.name} with the same weights gives different logits from"
                " run_transformer_lm: the adapter does more than make it, load its weights and"
                " call it"
            )


def made_anew(adapter: Callable, *arguments: Any) -> nn.Module:
    """The module that any adapter makes for such arguments, with weights that their code draws.

    Raises: ValueError if it makes none with parameters, and whatever the adapter itself raises.
    """
    given = [e for a in arguments for e in (a.values() if isinstance(a, dict) else [a])]
    watcher = _Watcher(given)
    watcher.run(adapter, *arguments)
    return watcher.anew(watcher.root(), {})


def _is_same(value: Any, expected: Tensor) -> bool:
    same_shape = isinstance(value, Tensor) and value.shape == expected.shape
    return same_shape and bool(value.eq(expected.to(value.device)).all())


def _picker(output: Any, result: Tensor) -> Callable[[Any], Tensor]:
    """Find how the logits are taken out of what `forward` returns."""
    for pick in PLACES:
        try:
            found = pick(output)
            if found.shape == result.shape and torch.allclose(found.to(result.dtype), result):
                return pick
        except Exception:  # it is not of this kind
            continue
    raise ValueError("run_transformer_lm returns something other than the result of model.forward")


# What an adapter makes.


class _Call:
    """The arguments of a call, as its frame has them when it begins."""

    def __init__(self, frame: FrameType):
        names, rest, more, values = inspect.getargvalues(frame)
        self.kwargs = {name: values[name] for name in names[1:]}  # without self
        self.args: list[Any] = []
        if rest and values[rest]:  # then the arguments before these are positional, too
            before = names[1 : frame.f_code.co_argcount]
            self.args = [*(self.kwargs.pop(name) for name in before), *values[rest]]
        self.kwargs |= values[more] if more else {}
        self.filled = ""  # the argument, without a default, that holds weights


class _Watcher:
    """Notes each module that is made, with the arguments and the result of its first call."""

    def __init__(self, given: Iterable[Any]):
        """Watch for what an adapter is given: weights, among others."""
        self.given = {_memory(each) for each in given} - {None}
        self.made: dict[int, _Call] = {}
        self.modules: dict[int, nn.Module] = {}  # kept alive, so that no id is reused
        self.forwards: dict[int, tuple[_Call, Any]] = {}
        self._open: dict[int, tuple[int, _Call]] = {}  # calls of `forward` by frame

    def run(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function, and watch it."""
        sys.setprofile(self._note)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if code.co_name not in ("__init__", "forward", "__call__") or not code.co_argcount:
            return
        if event == "return" and id(frame) in self._open:
            key, call = self._open.pop(id(frame))
            self.forwards.setdefault(key, (call, value))
        if event != "call":
            return
        module = frame.f_locals.get(code.co_varnames[0])
        if not isinstance(module, nn.Module) or type(module).__module__.startswith("torch."):
            return
        key = id(module)
        if code.co_name == "__init__":
            if key not in self.made:
                self.made[key], self.modules[key] = _Call(frame), module
                self._leave_out_weights(type(module), self.made[key])
        elif key in self.made and key not in self.forwards:
            self._open[id(frame)] = key, _Call(frame)

    def _leave_out_weights(self, kind: type, call: _Call) -> None:
        """Drop weights from a constructor's arguments, so that a new model draws its own."""
        for name, value in [*call.kwargs.items(), ("*args", call.args)]:
            values = value.values() if isinstance(value, Mapping) else [value]
            values = value if isinstance(value, list) else values
            if not self.given.isdisjoint(map(_memory, values)):
                parameter = inspect.signature(kind).parameters.get(name)
                if parameter is not None and parameter.default is not parameter.empty:
                    del call.kwargs[name]
                else:
                    call.filled = name

    def root(self) -> nn.Module:
        """The largest module that was made. Raises: ValueError where there is none."""

        def size(module: nn.Module) -> tuple[int, int]:
            inside = {*module.modules(), *(each for _, each in _in_lists(module))}
            return sum(p.numel() for e in inside for p in e.parameters(recurse=False)), len(inside)

        root = max(self.modules.values(), key=size, default=None)
        if root is None or not size(root)[0]:
            raise ValueError("the adapter makes no torch module that has parameters")
        if filled := self.made[id(root)].filled:
            raise ValueError(
                f"{type(root).__name__} is given its weights when it is made (`{filled}`), so it"
                " has no initial weights of its own"
            )
        return root

    def anew(self, value: Any, memo: dict[int, nn.Module]) -> Any:
        """A module made again as it was made; likewise the modules inside any other value."""
        if type(value) in (list, tuple):
            return type(value)(self.anew(each, memo) for each in value)
        if type(value) is dict:
            return {name: self.anew(each, memo) for name, each in value.items()}
        if not isinstance(value, nn.Module):
            return value
        if id(value) not in memo:
            if call := self.made.get(id(value)):
                args, kwargs = self.anew(call.args, memo), self.anew(call.kwargs, memo)
                memo[id(value)] = type(value)(*args, **kwargs)
            else:
                memo[id(value)] = copy.deepcopy(value)
        return memo[id(value)]


def _memory(value: Any) -> int | None:
    """Where in memory a tensor has its numbers; None for anything else."""
    return value.data_ptr() or None if isinstance(value, Tensor) else None


def _in_lists(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules in a module's plain lists and dicts, by attribute: torch misses them."""
    return [
        (name, deep)
        for name, value in vars(module).items()
        if isinstance(value, list | tuple | dict) and name not in ("_modules", "_buffers")
        for each in (value.values() if isinstance(value, dict) else value)
        if isinstance(each, nn.Module)
        for deep in each.modules()
    ]


# Which weight went where. Rows of random numbers are unique, so each shows where it is from.


Rows = tuple[tuple[int, ...], tuple[int, ...], list[tuple[str, bool, int]]]


def _rows(root: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Rows]:
    """The rows, or columns, of the weights that make up each parameter of a model.

    With them come the order of the parameter's axes that ends in such a row, and its shape in that
    order. Raises: ValueError that names gaps.
    """
    lists = [f"{p}.{n}".lstrip(".") for p, each in root.named_modules() for n, _ in _in_lists(each)]
    if lists:
        raise ValueError(
            f"the blocks of {type(root).__name__} are in a plain list (`{min(lists)}`),"
            " where torch neither trains nor saves them: use nn.ModuleList"
        )
    known: dict[int, tuple[str, bool, int]] = {}
    for name, is_turned, matrix in _matrices(weights):
        for place, row in enumerate(_hashes(matrix)):
            known.setdefault(row, (name, is_turned, place))
    found, gaps = {}, []
    for name, parameter in root.named_parameters():
        for turn in permutations(range(parameter.ndim)):
            value = parameter.detach().cpu().permute(turn)
            rows = [known.get(row) for row in _hashes(value.reshape(-1, (value.shape or [1])[-1]))]
            if None not in rows:
                found[name] = (turn, tuple(value.shape), rows)
                break
        else:
            gaps.append(f"`{name}`")
    if gaps:
        names = ", ".join(gaps[:4]) + (", ..." if len(gaps) > 4 else "")
        raise ValueError(f"run_transformer_lm gives no weight to {names} of {type(root).__name__}")
    return found


def _matrices(weights: Mapping[str, Tensor]) -> Iterable[tuple[str, bool, Tensor]]:
    """Each weight as a matrix, and also transposed if it has more than one axis."""
    for name, weight in weights.items():
        yield name, False, weight if weight.ndim > 1 else weight.unsqueeze(0)
        if weight.ndim > 1:
            yield name, True, weight.T


def _hashes(matrix: Tensor) -> list[int]:
    return [hash(row.tobytes()) for row in matrix.float().contiguous().numpy()]
