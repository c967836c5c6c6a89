"""A learner's whole model, taken from one run of the adapter that makes it and fills it in.

`run_transformer_lm` knows what no rule can: which class is made, with which arguments, under which
names its parameters take the course's weights, and how it is called. So it is run once, and
watched. It cannot serve as the model itself, as it hands back no parameters that could be trained.
"""

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from itertools import permutations
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # torch takes seconds, and reading the mapping needs none
    from torch import Tensor, nn

    from workbook.config import ModelConfig

SIZES = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta")
SMALL = dict(zip(SIZES, (37, 12, 16, 2, 2, 24, 5000.0), strict=True))
SECONDS = 120.0  # for one run of the adapter, on a busy machine
TOLERANCE = 1e-3


def course_weights(sizes: Mapping[str, Any], seed: int) -> dict[str, "Tensor"]:
    """Random weights of a model, by the names that the course's tests use."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    d, d_ff, vocab = sizes["d_model"], sizes["d_ff"], sizes["vocab_size"]

    def matrix(d_out: int, d_in: int) -> "Tensor":
        return torch.randn(d_out, d_in, generator=generator) / d_in**0.5

    def gain() -> "Tensor":
        return 1 + torch.randn(d, generator=generator) / 5

    found = {"token_embeddings.weight": matrix(vocab, d) * d**0.5}
    for layer in range(sizes["num_layers"]):
        attention = {f"attn.{name}_proj.weight": matrix(d, d) for name in ("q", "k", "v", "output")}
        block = {
            **attention,
            "ln1.weight": gain(),
            "ffn.w1.weight": matrix(d_ff, d),
            "ffn.w2.weight": matrix(d, d_ff),
            "ffn.w3.weight": matrix(d_ff, d),
            "ln2.weight": gain(),
        }
        found |= {f"layers.{layer}.{name}": weight for name, weight in block.items()}
    return found | {"ln_final.weight": gain(), "lm_head.weight": matrix(vocab, d)}


def arguments_for(adapter: str) -> dict[str, Any]:
    """Small arguments, by the course's names, for a function of `tests/adapters.py`.

    Files that they name are written to the working directory.
    """
    import numpy as np
    import torch
    from torch import nn

    torch.manual_seed(0)
    d, d_ff, heads, vocab, length = 16, 24, 2, 37, 12
    x, ids = torch.randn(3, length, d), torch.randint(0, vocab, (3, length))
    one = course_weights({**SMALL, "num_layers": 1}, seed=0)
    block = {n.removeprefix("layers.0."): w for n, w in one.items() if n.startswith("layers.0.")}
    projections = {
        f"{name[0]}_proj_weight": block[f"attn.{name}_proj.weight"]
        for name in ("q", "k", "v", "output")
    }
    attention = {"d_model": d, "num_heads": heads, **projections, "in_features": x}
    rope = {"theta": 5000.0, "max_seq_len": length}
    positions = torch.arange(length)
    match adapter:
        case "run_linear":
            small = {"d_in": d, "d_out": d_ff, "weights": block["ffn.w1.weight"]}
            return {**small, "in_features": x}
        case "run_embedding":
            table = one["token_embeddings.weight"]
            return {"vocab_size": vocab, "d_model": d, "weights": table, "token_ids": ids}
        case "run_swiglu":
            matrices = {f"w{n}_weight": block[f"ffn.w{n}.weight"] for n in (1, 2, 3)}
            return {"d_model": d, "d_ff": d_ff, **matrices, "in_features": x}
        case "run_scaled_dot_product_attention":
            mask = torch.ones(3, length, length, dtype=torch.bool).tril()
            return {**{name: torch.randn_like(x) for name in "QKV"}, "mask": mask}
        case "run_multihead_self_attention":
            return attention
        case "run_multihead_self_attention_with_rope":
            return {**attention, **rope, "token_positions": positions.unsqueeze(0)}
        case "run_rope":
            return {"d_k": d, **rope, "in_query_or_key": x, "token_positions": positions}
        case "run_transformer_block":
            sizes = {"d_model": d, "num_heads": heads, "d_ff": d_ff}
            return {**sizes, **rope, "weights": block, "in_features": x}
        case "run_transformer_lm":
            return {**SMALL, "weights": course_weights(SMALL, seed=0), "in_indices": ids}
        case "run_rmsnorm":
            gain = block["ln1.weight"]
            return {"d_model": d, "eps": 1e-5, "weights": gain, "in_features": x}
        case "run_silu":
            return {"in_features": x}
        case "run_softmax":
            return {"in_features": x, "dim": -1}
        case "run_get_batch":
            data = np.arange(100)
            return {"dataset": data, "batch_size": 4, "context_length": 7, "device": "cpu"}
        case "run_cross_entropy":
            return {"inputs": torch.randn(8, vocab), "targets": torch.randint(0, vocab, (8,))}
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
            return {
                "vocab": {n: bytes([n]) for n in range(256)} | {256: b"th", 257: b"<|endoftext|>"},
                "merges": [(b"t", b"h")],
                "special_tokens": ["<|endoftext|>"],
            }
        case "run_train_bpe":
            text = Path("text.txt").absolute()
            text.write_text("low low lower the newest widest<|endoftext|>the widest newest\n" * 9)
            specials = {"special_tokens": ["<|endoftext|>"]}
            return {"input_path": str(text), "vocab_size": 262, **specials}
    return {}


class TracedModel:
    """The model of a learner of the sizes of one config, as their `run_transformer_lm` makes it."""

    def __init__(self, adapter: Callable, config: "ModelConfig | Mapping[str, Any]"):
        """Run the adapter twice, and make sure that a model made anew gives the same.

        Arguments:
            adapter: their `run_transformer_lm`.
            config: the sizes; a mapping needs those of `SIZES`.

        Raises: ValueError that says why their model cannot be taken from there; what the adapter
        raises itself is in the message.
        """
        import torch

        if not isinstance(config, Mapping):
            config = {name: getattr(config, name) for name in SIZES}
        self.sizes = {name: config[name] for name in SIZES}
        self._adapter = adapter
        with torch.random.fork_rng(devices=[]):
            self._trace()
            self._prove()

    def _trace(self) -> None:
        weights, context = course_weights(self.sizes, seed=1), self.sizes["context_length"]
        lengths = [each for each in range(5, 13) if each not in self.sizes.values()]
        length = min(lengths[0], context)  # a number that says what it is
        try:
            ids, watcher = self._ids(2, length), _Watcher()
            result = self._run(weights, ids, watcher)
        except ValueError:  # some take positions only where they fit one sequence
            ids, watcher = self._ids(1, length), _Watcher()
            result = self._run(weights, ids, watcher)
        self._made = watcher.made
        self._root = root = watcher.root()
        if (forward := watcher.forwards.get(id(root))) is None:
            raise ValueError(f"{self.name}.forward is never called by run_transformer_lm")
        self._forward, output = forward
        self._pick = _picker(output, result)
        self._plans = _plans(root, weights)
        self._traced_ids = ids
        self._ids_name = self._find_ids(ids)
        self._ready: dict[str, Any] = {}  # modules that `forward` is given

    @property
    def name(self) -> str:
        """The name of their class."""
        return type(self._root).__name__

    @property
    def where(self) -> str:
        """Their class as "module:Class"."""
        return f"{type(self._root).__module__}:{type(self._root).__qualname__}"

    def make(self) -> "nn.Module":
        """Make a new model, with the first weights that their code draws. Raises: ValueError."""
        from workbook.checks.modules import uncompiled

        with uncompiled():
            made = _anew(self._root, self._made, {})
        return made.train(self._root.training)

    def places(self, weights: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
        """What each of their parameters, by its name, holds of weights by the course's names."""
        return {name: plan(weights) for name, plan in self._plans.items()}

    def fill(self, module: "nn.Module", weights: Mapping[str, "Tensor"]) -> None:
        """Copy weights by the course's names into a model that `make` made."""
        import torch

        own = dict(module.named_parameters())
        with torch.no_grad():
            for name, value in self.places(weights).items():
                if name not in own or own[name].shape != value.shape:
                    raise ValueError(
                        f"run_transformer_lm changes the model after making it: a new {self.name}"
                        f" has no `{name}` of shape {tuple(value.shape)}"
                    )
                own[name].copy_(value)

    def call(self, module: "nn.Module", ids: "Tensor") -> "Tensor":
        """The logits that a model which `make` made gives to (batch, seq) ids."""
        arguments, rest, more = self._arguments(ids)
        return self._pick(module(*arguments, *rest, **more))

    def _ids(self, batch: int, length: int) -> "Tensor":
        import torch

        generator = torch.Generator().manual_seed(batch)
        return torch.randint(0, self.sizes["vocab_size"], (batch, length), generator=generator)

    def _run(self, weights, ids, watcher: "_Watcher | None" = None) -> "Tensor":
        from workbook.checks.guard import TimedOut, limited
        from workbook.checks.modules import uncompiled

        given = {name: weight.clone() for name, weight in weights.items()}
        if watcher:
            watcher.given += given.values()
        arguments = {**self.sizes, "weights": given, "in_indices": ids.clone()}

        def run():
            if watcher:
                sys.setprofile(watcher.note)
            try:
                return self._adapter(**arguments)
            finally:
                if watcher:
                    sys.setprofile(None)

        try:
            with uncompiled():
                result = limited(SECONDS, run)
        except KeyboardInterrupt:
            raise
        except TimedOut as error:
            raise ValueError(f"run_transformer_lm was {error}") from error
        except BaseException as error:
            raise ValueError(
                f"run_transformer_lm fails for these sizes: {type(error).__name__}: {error}"
            ) from error
        return result.detach()

    def _find_ids(self, ids: "Tensor") -> str:
        import torch

        for name, value in self._forward.named.items():
            if isinstance(value, torch.Tensor) and value.shape == ids.shape and value.eq(ids).all():
                return name
        raise ValueError(f"{self.name}.forward is not called with the ids by run_transformer_lm")

    def _arguments(self, ids: "Tensor") -> tuple[list, tuple, dict]:
        """What `forward` is called with for these ids, as the adapter called it."""
        import torch
        from torch import nn

        record, seq = self._forward, self._traced_ids.shape[1]
        length, device = ids.shape[1], ids.device

        def renewed(name: str, value: Any) -> Any:
            if name == self._ids_name:
                return ids
            if isinstance(value, nn.Module):
                if name not in self._ready:
                    self._ready[name] = _renewed(value, self._made, {})
                return self._ready[name].to(device)
            if type(value) is int and value == seq:
                return length
            if not isinstance(value, torch.Tensor):
                return value
            for form in _FORMS:  # before it, axes of one, or of the batch
                core, shape = form(seq), list(value.shape)
                before = shape[: max(value.ndim - core.ndim, 0)]
                like = core.expand([*before, *core.shape]).to(value.dtype)
                if like.shape == value.shape and like.eq(value.cpu()).all():
                    batch = self._traced_ids.shape[0]
                    before = [ids.shape[0] if each == batch != 1 else each for each in before]
                    new = form(length)
                    return new.expand([*before, *new.shape]).to(device=device, dtype=value.dtype)
            raise ValueError(
                f"{self.name}.forward is given `{name}` of shape {tuple(value.shape)}, which is"
                " neither positions nor a causal mask"
            )

        return record.split(renewed)

    def _prove(self) -> None:
        """Raise ValueError unless a new model gives what the adapter gives, for other weights."""
        import torch

        weights = course_weights(self.sizes, seed=2)
        ids = self._ids(1, self.sizes["context_length"])
        expected = self._run(weights, ids)
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
        close = {"rtol": TOLERANCE, "atol": TOLERANCE}
        expected = expected.expand(3, -1, -1)
        if got.shape != expected.shape or not torch.allclose(got, expected, **close):
            raise ValueError(
                f"a new {self.name} with the same weights gives other logits than"
                " run_transformer_lm: the adapter does more than make it, fill it in and call it"
            )


def _positions(length: int) -> "Tensor":
    import torch

    return torch.arange(length)


def _causal(length: int) -> "Tensor":
    import torch

    return torch.ones(length, length, dtype=torch.bool).tril()


def _not_causal(length: int) -> "Tensor":
    return ~_causal(length)


def _minus_infinity(length: int) -> "Tensor":
    import torch

    return torch.zeros(length, length).masked_fill(_not_causal(length), -torch.inf)


_FORMS = (_positions, _causal, _not_causal, _minus_infinity)  # what `forward` may be given


class _Call:
    """The arguments of a call, as its frame has them when it begins."""

    def __init__(self, frame: FrameType):
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames
        plain = code.co_argcount
        self.by_place = names[1:plain]  # without self
        self.by_name = names[plain : plain + code.co_kwonlyargcount]
        after = plain + code.co_kwonlyargcount
        self.rest: tuple = ()
        self.more: dict = {}
        self.only_by_place = max(code.co_posonlyargcount - 1, 0)
        if code.co_flags & inspect.CO_VARARGS:
            self.rest = values.get(names[after], ())
            after += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            self.more = dict(values.get(names[after], {}))
        self.named = {n: values[n] for n in (*self.by_place, *self.by_name) if n in values}
        self.named |= {f"*{n}": value for n, value in enumerate(self.rest)} | self.more
        self.without: set[str] = set()  # to be left to their defaults
        self.filled = ""  # the argument, without a default, that holds weights

    def split(self, renewed: Callable[[str, Any], Any]) -> tuple[list, tuple, dict]:
        """The arguments by place, the rest of these, and those by name."""
        values = {n: renewed(n, each) for n, each in self.named.items() if n not in self.without}
        rest = tuple(values.pop(f"*{n}") for n in range(len(self.rest)) if f"*{n}" in values)
        by_place = self.by_place if rest else self.by_place[: self.only_by_place]
        return [values.pop(name) for name in by_place if name in values], rest, values

    def arguments(self, renewed: Callable[[Any], Any]) -> tuple[list, dict]:
        """The arguments by place and by name."""
        by_place, rest, by_name = self.split(lambda _, value: renewed(value))
        return [*by_place, *rest], by_name


def made_anew(adapter: Callable, *arguments: Any) -> "nn.Module":
    """The module that any adapter makes for such arguments, with weights that their code draws.

    Raises: ValueError where it makes none that has parameters; what the adapter raises itself.
    """
    watcher = _Watcher()
    for each in arguments:
        watcher.given += each.values() if isinstance(each, dict) else [each]
    sys.setprofile(watcher.note)
    try:
        adapter(*arguments)
    finally:
        sys.setprofile(None)
    return _anew(watcher.root(), watcher.made, {})


def _anew(module: "nn.Module", made: Mapping[int, "_Call"], memo: dict[int, Any]) -> "nn.Module":
    """A module made once more, as it was made when it was watched."""
    if id(module) not in memo:
        record = made.get(id(module))
        if record is None:
            memo[id(module)] = copy.deepcopy(module)
        else:
            args, kwargs = record.arguments(lambda value: _renewed(value, made, memo))
            memo[id(module)] = type(module)(*args, **kwargs)
    return memo[id(module)]


def _renewed(value: Any, made: Mapping[int, "_Call"], memo: dict[int, Any]) -> Any:
    """An argument of a constructor, for a new model: modules in it are made anew."""
    from torch import nn

    if isinstance(value, nn.Module):
        return _anew(value, made, memo)
    if type(value) in (list, tuple):
        return type(value)(_renewed(each, made, memo) for each in value)
    if type(value) is dict:
        return {name: _renewed(each, made, memo) for name, each in value.items()}
    return value


class _Watcher:
    """Notes each module that is made, and what the first call of it was given and gave."""

    def __init__(self):
        self.made: dict[int, _Call] = {}
        self.modules: dict[int, Any] = {}  # they live on, so that no id comes twice
        self.forwards: dict[int, tuple[_Call, Any]] = {}
        self._open: dict[int, _Call] = {}  # calls of `forward` by frame
        self.given: list[Any] = []  # weights, and what else an adapter was given

    def note(self, frame: FrameType, event: str, value: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code.co_name not in ("__init__", "forward", "__call__") or not code.co_argcount:
            return
        if event == "return":
            if (call := self._open.pop(id(frame), None)) is not None:
                module = self.modules[call.module]
                self.forwards.setdefault(id(module), (call, value))
            return
        from torch import nn

        module = frame.f_locals.get(code.co_varnames[0])
        if not isinstance(module, nn.Module) or type(module).__module__.startswith("torch."):
            return
        if code.co_name == "__init__":
            if id(module) not in self.made:
                self.made[id(module)] = call = _Call(frame)
                self.modules[id(module)] = module
                self.note_weights(type(module), call)
        elif id(module) in self.made and id(module) not in self.forwards:
            call = self._open[id(frame)] = _Call(frame)
            call.module = id(module)

    def note_weights(self, kind: type, call: _Call) -> None:
        """Note the arguments by which a constructor is given weights: a new model draws its own."""
        given = set(map(_memory, self.given)) - {None}
        for name, value in call.named.items():
            values = value.values() if isinstance(value, Mapping) else [value]
            if not given.isdisjoint(map(_memory, values)):
                parameter = inspect.signature(kind).parameters.get(name)
                if parameter is not None and parameter.default is not parameter.empty:
                    call.without.add(name)
                else:
                    call.filled = name

    def root(self) -> Any:
        """The largest module that is in no other. Raises: ValueError where there is none."""
        inner: set[int] = set()
        for module in self.modules.values():
            inner |= {id(each) for each in module.modules() if each is not module}
            inner |= {id(deep) for each in hidden(module).values() for deep in each}
        outer = [each for key, each in self.modules.items() if key not in inner]
        sizes = [sum(parameter.numel() for parameter in each.parameters()) for each in outer]
        if not any(sizes):
            raise ValueError("run_transformer_lm makes no torch module that has parameters")
        root = outer[sizes.index(max(sizes))]
        if filled := self.made[id(root)].filled:
            raise ValueError(
                f"{type(root).__name__} takes its weights when it is made (`{filled}`), so that it"
                " has none to begin with"
            )
        return root


def _memory(value: Any) -> int | None:
    """Where in memory a tensor has its numbers; None for anything else."""
    import torch

    return value.data_ptr() or None if isinstance(value, torch.Tensor) else None


def hidden(module: "nn.Module") -> dict[str, list["nn.Module"]]:
    """The modules in plain lists and dicts of a module, by its attribute: torch misses them."""
    from torch import nn

    found = {}
    for name, value in vars(module).items():
        if name.startswith("_") and name in ("_modules", "_parameters", "_buffers"):
            continue
        if isinstance(value, list | tuple | dict):
            each = value.values() if isinstance(value, dict) else value
            inside = [deep for m in each if isinstance(m, nn.Module) for deep in m.modules()]
            if inside:
                found[name] = inside
    return found


def _picker(output: Any, result: "Tensor") -> Callable[[Any], "Tensor"]:
    """How the logits are taken out of what `forward` returns."""
    import torch

    ways: list[Callable[[Any], Any]] = [
        lambda out: out,
        lambda out: out[0],
        lambda out: out.logits,
        lambda out: out["logits"],
    ]
    for way in ways:
        try:
            found = way(output)
        except Exception:
            continue
        same = isinstance(found, torch.Tensor) and found.shape == result.shape
        if same and torch.allclose(found.to(result.dtype), result):
            return way
    raise ValueError("run_transformer_lm returns something else than what the model's forward does")


# Which weight went where. Rows of random numbers are unique, so that each tells where it is from.


class _Plan:
    """How one parameter is put together from rows, or columns, of weights."""

    def __init__(self, turn: tuple[int, ...], shape: tuple[int, ...], pieces: list[tuple]):
        self.turn, self.shape, self.pieces = turn, shape, pieces

    def __call__(self, weights: Mapping[str, "Tensor"]) -> "Tensor":
        import torch

        rows = []
        for name, by_column, first, last in self.pieces:
            weight = weights[name] if weights[name].ndim > 1 else weights[name].unsqueeze(0)
            rows.append((weight.T if by_column else weight)[first:last])
        turned = torch.cat(rows).reshape(self.shape)
        back = [self.turn.index(axis) for axis in range(len(self.turn))]
        return turned.permute(back).contiguous()


def _plans(root: "nn.Module", weights: Mapping[str, "Tensor"]) -> dict[str, _Plan]:
    """How each parameter of a model is made of the weights. Raises: ValueError that names gaps."""
    known: dict[int, tuple[str, bool, int]] = {}
    for name, weight in weights.items():
        matrix = weight if weight.ndim > 1 else weight.unsqueeze(0)
        for by_column, form in ((False, matrix), (True, matrix.T)):
            if weight.ndim > 1 or not by_column:
                for place, row in enumerate(_hashes(form)):
                    known.setdefault(row, (name, by_column, place))
    found = {name: _plan(each, known) for name, each in root.named_parameters()}
    in_lists = {
        f"{path}.{name}".lstrip(".")
        for path, module in root.named_modules()
        for name in hidden(module)
    }
    if in_lists:
        raise ValueError(
            f"the blocks of {type(root).__name__} are in a plain list (`{sorted(in_lists)[0]}`),"
            " where torch neither trains nor saves them: use nn.ModuleList"
        )
    if gaps := [name for name, plan in found.items() if plan is None]:
        names = ", ".join(f"`{name}`" for name in gaps[:4]) + (", ..." if len(gaps) > 4 else "")
        raise ValueError(f"run_transformer_lm gives no weight to {names} of {type(root).__name__}")
    return found


def _hashes(matrix: "Tensor") -> list[int]:
    return [hash(row.tobytes()) for row in matrix.float().contiguous().numpy()]


def _plan(parameter: "Tensor", known: Mapping[int, tuple[str, bool, int]]) -> _Plan | None:
    value = parameter.detach().cpu()
    for turn in permutations(range(value.ndim)):
        turned = value.permute(turn)
        matrix = turned.reshape(-1, turned.shape[-1]) if value.ndim else value.reshape(1, 1)
        rows = [known.get(row) for row in _hashes(matrix)]
        if None in rows or not rows:
            continue
        pieces: list[list] = []
        for name, by_column, place in rows:
            if pieces and pieces[-1][:2] == [name, by_column] and pieces[-1][3] == place:
                pieces[-1][3] += 1
            else:
                pieces.append([name, by_column, place, place + 1])
        return _Plan(turn, tuple(turned.shape), [tuple(piece) for piece in pieces])
    return None
