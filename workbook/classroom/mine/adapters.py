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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from workbook import transformer
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.calling import MODEL_ARGUMENTS
from workbook.classroom.checks.machinery.judging import Report, judge_attempt
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.checks.machinery.modules import own_parameters, uncompiled
from workbook.classroom.checks.machinery.tensors import alike
from workbook.classroom.checks.machinery.timeout import TimedOut, limited
from workbook.classroom.checks.machinery.verdicts import NotJudged
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
EXACT_STEPS = 2**24  # multiples of 1 / EXACT_STEPS below 1 are exact in float32
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
SMALL = {
    "d_in": 8,
    "d_out": 6,
    "vocab_size": 11,
    "d_model": 8,
    "num_heads": 2,
    "d_ff": 12,
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
        values["weights"] = weights if len(weights) > 1 else weights["weight"]
        for own, weight in weights.items():  # `output_proj.weight` is `o_proj_weight`
            values[own.replace("output", "o").replace(".", "_")] = weight
    return {asked: {**sizes, **values}[asked] for asked in arguments_of(name)}


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
        try:
            with uncompiled():
                got = limited(ADAPTER_SECONDS, lambda: adapter(**example(name, spread=0.2)))
        except NotJudged:
            return None
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"
    if not isinstance(got, Tensor):
        return f"returns a {type(got).__name__} instead of a tensor"
    return "" if alike(got.detach().cpu(), expected) else "returns other numbers than ours"


# A part that is caught while its adapter runs.


class Unusable(ValueError):  # noqa: N818 - read as a fact
    """Something of the learner's cannot be used; the message says why."""


def caught(adapter: Callable, arguments: Mapping[str, Any], part: Any = None) -> SimpleNamespace:
    """Run an adapter; return its `result`, the `module` that it made, and how that was called.

    The module is the one with the most parameters, of all that register a parameter or another
    module meanwhile. `args` and `kwargs` are those of its call; None if only its `forward` was
    called, which no hook sees.

    Args:
        part: the learner's class, if that is known.

    Raises: Unusable if there is none, or the adapter fails; NotJudged if it needs what is lost.
    """
    if inspect.isclass(part) and not issubclass(part, nn.Module):
        raise Unusable(f"{part.__name__} is no nn.Module, so torch finds no parameters in it")
    made: dict[int, nn.Module] = {}
    calls: dict[int, tuple] = {}
    with uncompiled(), _noting(made, calls):
        try:
            result = limited(ADAPTER_SECONDS, lambda: adapter(**arguments))
        except NotJudged:
            raise
        except Exception as error:
            raise Unusable(f"the adapter fails: {type(error).__name__}: {error}") from error
    module = max(made.values(), key=_size, default=None)
    if module is None or not _size(module)[0]:
        raise Unusable("the adapter makes no torch module that has parameters")
    own = set(module.parameters())
    for child in (made[key] for key in calls):
        if not own.issuperset(child.parameters()):
            raise Unusable(
                f"{type(child).__name__} is called, but is no part of {type(module).__name__}:"
                " torch neither trains nor saves what is in a plain list; use nn.ModuleList"
            )
    args, kwargs = calls.get(id(module), (None, {}))
    return SimpleNamespace(result=result, module=module, args=args, kwargs=kwargs)


@contextmanager
def _noting(made: dict[int, nn.Module], calls: dict[int, tuple]) -> Iterator[None]:
    """Note, by their ids, the modules that are made or called meanwhile, and the last call."""

    def note(module: nn.Module, *registered: Any) -> None:
        made[id(module)] = module

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
        kind = type(first({n: bytes([n]) for n in range(256)}, [], []))
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

    def make(*args: Any, **kwargs: Any) -> nn.Module:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        values = zip(made_with, bound.arguments.values(), strict=True)
        sizes = {name: value for name, value in values if value is not None}
        # Without theta, it is the second function, for an attention without RoPE.
        name = names[-1] if sizes.keys() == {*sizes_of(names[-1])} else names[0]
        return caught(adapters.get(name, first), example(name, **sizes), part).module

    return _class(type(make(*(SMALL[size] for size in made_with))), make, signature)


def _class(kind: type, make: Callable, signature: inspect.Signature) -> type:
    """A subclass that a function makes the instances of: they are of the class itself."""
    names: dict[str, Any] = {"__signature__": signature, "__module__": kind.__module__}
    names["__new__"] = lambda cls, *args, **kwargs: make(*args, **kwargs)
    return type(kind)(kind.__name__, (kind,), names)


def report_on(name: str, load: Callable[[], Any]) -> Report:
    """The report on what `load` returns; what cannot be imported or made is not attempted."""
    try:
        return judge_attempt(name, limited(PART_IMPORT_SECONDS, load))
    except TimedOut as error:
        return Report("not attempted", name, None, f"{UNKNOWN}: its import was {error}.")
    except Exception as error:
        status: Status = "wrong" if isinstance(error, Unusable) else "not attempted"
        return Report(status, name, None, f"{UNKNOWN}: {error}.")


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
        self._indices: dict[str, Tensor] = {}

    def make(self) -> nn.Module:
        """Make a new model. Raises: Unusable, and what the model itself raises."""
        made = self._made_with(transformer.TransformerLM.from_config(self.config).state_dict())
        self.args = (self.ids,) if made.args is None else made.args
        self.kwargs = made.kwargs
        with torch.no_grad():
            logits = self.run(made.module, self.ids.to(next(made.module.parameters()).device))
        if isinstance(made.result, Tensor) and alike(logits, made.result.detach(), TOLERANCE):
            return made.module.train()
        name = f"{type(made.module).__name__}.forward"
        raise Unusable(f"run_transformer_lm returns something other than the result of {name}")

    def _made_with(self, weights: Mapping[str, Tensor]) -> SimpleNamespace:
        if "attn_pdrop" in inspect.signature(self.adapter).parameters:
            raise Unusable("run_transformer_lm is that of the course's 2024 edition, without RoPE")
        arguments = {name: getattr(self.config, name) for name in MODEL_ARGUMENTS}
        arguments |= {"weights": weights, "in_indices": self.ids.clone()}
        with torch.random.fork_rng(devices=[]):  # what the adapter draws is drawn for nothing
            return caught(self.adapter, arguments, self.part)

    def run(self, module: nn.Module, ids: Tensor) -> Tensor:
        """The logits of a model that `make` made, for (batch, seq) ids."""
        kwargs = {name: self._fitted(value, ids) for name, value in self.kwargs.items()}
        output = module(*(self._fitted(value, ids) for value in self.args), **kwargs)
        if isinstance(output, Mapping):
            return output["logits"]
        output = output[0] if isinstance(output, tuple | list) else output
        return getattr(output, "logits", output)

    def _fitted(self, value: Any, ids: Tensor) -> Any:
        """What `forward` was given, for other ids: positions and masks are cut to their length."""
        if isinstance(value, Tensor):
            if value.cpu().equal(self.ids):
                return ids
            for axis in range(max(value.ndim - 2, 0), value.ndim):
                if value.shape[axis] == self.ids.shape[1]:
                    value = value.narrow(axis, 0, ids.shape[1])
        return value.to(ids.device) if isinstance(value, Tensor | nn.Module) else value

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The value of each of their parameters, by name, given weights by the course's names.

        Raises: Unusable if the adapter gives no weight to one of them.
        """
        if not self._indices:
            self._indices = self._find_indices(weights)
        flat = torch.cat([weights[name].flatten() for name in sorted(weights)])
        return {name: flat[index] for name, index in self._indices.items()}

    def _find_indices(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """For each of their parameters, which of all the course's numbers it holds.

        The adapter is given weights without two equal numbers, so it does not matter how it turns,
        joins or cuts them.
        """
        marks = {}
        begin = 0
        for name in sorted(weights):
            numbers = torch.arange(begin, begin + weights[name].numel())
            marks[name] = numbers.reshape(weights[name].shape) / EXACT_STEPS
            begin += len(numbers)
        indices = {}
        module = self._made_with(marks).module
        for name, parameter in own_parameters(module).items():
            number = parameter.detach().double().cpu() * EXACT_STEPS
            indices[name] = index = number.round().long().clamp(0, begin - 1)
            if not number.equal(index.double()) or index.unique().numel() < index.numel():
                kind = type(module).__name__
                raise Unusable(f"run_transformer_lm gives no weight to `{name}` of {kind}")
        return indices


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
