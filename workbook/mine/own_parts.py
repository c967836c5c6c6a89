"""Your own parts in place of ours: found, called as a run calls them, and named when they fail.

A part is looked for in the repository that `workbook adopt` was given, and then among the solved
problems of the study folder. Parts differ in their arguments and in how they hold their weights;
`checks.calling` and `checks.modules` know how to call them.
"""

import importlib
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from workbook.checks import decoding, modules, transformer
from workbook.checks import tokenizer as tokenizers
from workbook.checks.calling import SIZES, bind, call_part, meaning, parameters_of
from workbook.checks.tensors import Case
from workbook.checks.verdicts import NOT_THEIRS, NotAttempted, Words, Wrong, call
from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.mine import repository
from workbook.mine.tracing import TracedModel
from workbook.optimizer.optimizers import clip_gradients
from workbook.study import problems, progress, solutions
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, devices
from workbook.training.parts import Maker, Parts
from workbook.transformer.model import TransformerLM

PROBLEMS = {  # by the part of a run
    "model": "transformer_lm",
    "loss": "cross_entropy",
    "optimizer": "adamw",
    "schedule": "learning_rate_schedule",
    "clipping": "gradient_clipping",
    "get_batch": "data_loading",
    "save_checkpoint": "checkpointing",
    "load_checkpoint": "checkpointing",
    "tokenizer": "tokenizer",
    "decode": "decoding",
}
SECONDS = 120.0  # for one call: what takes longer hangs
NOTHING = Words("")  # for the checks' report of a call, which nobody sees here


class PartError(ValueError):
    """A part of the learner's fails; the message names it, its file and line, and what to do."""


class Found(NamedTuple):
    """A learner's object for a problem, and where it is; or why it could not be imported."""

    where: str
    thing: Any = None
    hash: str = ""  # of its source and of all that it imports from beside it
    trouble: str = ""


# --- What there is ------------------------------------------------------------------------------


def found(problem: str, study: Path) -> Found | None:
    """What the learner has for a code problem: adopted, or kept in a study folder; None: nothing.

    Raises: ValueError if `adopted.toml` is damaged, OSError if the folder that it names is gone.
    """
    adopted, kept = repository.read(study), study / solutions.FOLDER / f"{problem}.py"
    if adopted is None or not (where := adopted.where(problem)):
        return load_kept(kept) if kept.is_file() else None
    repository.enter(adopted)
    try:
        thing = repository.load(adopted, problem)
    except Exception as error:
        return Found(where, trouble=str(error))
    each = thing if isinstance(thing, tuple) else (thing,)
    return Found(where, thing, _hash_of(each, adopted.folder))


def load_kept(path: Path) -> Found:
    """What a file of the study folder defines for its problem, which its `__all__` names."""
    where, name = f"{solutions.FOLDER}.{path.stem}", f"workbook_study_{path.stem}"
    try:
        spec = spec_from_file_location(name, path)
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
        names = getattr(module, "__all__", problems.get(path.stem).names)
        things = tuple(getattr(module, each) for each in names)
    except Exception as error:
        return Found(where, trouble=f"{type(error).__name__}: {error}{_place(error)}")
    where += ":" + ", ".join(names)
    thing = things if len(things) > 1 else things[0]
    return Found(where, thing, sha256(path.read_bytes()).hexdigest())


def _hash_of(things: Iterable[Any], folder: Path) -> str:
    """A hash of the files that objects come from, and of those beside them that these import."""
    modules, todo = set(), [sys.modules.get(getattr(each, "__module__", "")) for each in things]
    while todo:
        module = todo.pop()
        file = getattr(module, "__file__", None)
        if module in modules or not file or not Path(file).is_relative_to(folder):
            continue
        modules.add(module)
        for value in vars(module).values():
            other = value if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            todo.append(sys.modules.get(other) if isinstance(other, str) else other)
    sources = sorted(Path(each.__file__).read_bytes() for each in modules)
    return sha256(b"\0".join(sources)).hexdigest()


# --- The parts of a run -------------------------------------------------------------------------


def parts(study: Path | None = None) -> Parts:
    """The parts of a run: the learner's in place of ours wherever there is one.

    Printed, it is a table that says whose each part is. A part that cannot be imported is there
    too, and raises PartError when it is called.

    Args:
        study: the study folder; None: the nearest one.
    """
    study = study or progress.nearest()
    there = {problem: found(problem, study) for problem in dict.fromkeys(PROBLEMS.values())}
    theirs: dict[str, Callable] = {}
    made_by: dict[str, Maker] = {}
    for name, problem in PROBLEMS.items():
        if each := there[problem]:
            theirs[name] = partial(MAKERS[name], Learners(name, each, study))
            where = f"{each.where} (broken: {each.trouble})" if each.trouble else each.where
            made_by[name] = Maker(where, each.hash)
    return replace(Parts(), **theirs, made_by=made_by)


class Learners:
    """A learner's object for a part, to be called with our arguments."""

    def __init__(self, part: str, found: Found, study: Path):
        self.part, self.where, self.study = part, found.where, study
        self.problem = PROBLEMS.get(part, part)
        self.thing, self.trouble, self.adapted = found.thing, found.trouble, False
        if isinstance(self.thing, tuple):
            self.thing = self.thing[part == "load_checkpoint"]

    def takes_adapter(self) -> bool:
        """Call the checkout's adapter from now on, which knows how; False if there is none."""
        done = self.adapted or self.part == "model"  # whose recipe has tried the adapter already
        adopted = None if done else repository.read(self.study)
        if adopted is None or not adopted.parts.get(self.problem):
            return False
        self.adapted = True
        adapter = repository.adapter(adopted, self.problem)
        if self.part == "optimizer" and adapter is not None:
            adapter = adapter()  # it returns the class
        if isinstance(adapter, tuple):
            adapter = adapter[self.part == "load_checkpoint"]
        self.thing = adapter or self.thing
        return adapter is not None

    def __call__(self, values: Mapping[str, Any], **options: Any) -> Any:
        """Call it with these values, by the handout's names. Raises: PartError."""
        return self.tried(
            lambda: call_part(self.thing, values, given=NOTHING, seconds=SECONDS, **options)
        )

    def tried(self, function: Callable[[], Any]) -> Any:
        """Return what a function that runs the learner's code returns. Raises: PartError."""
        if self.trouble:
            raise self.error(f"cannot be imported: {self.trouble}")
        try:
            return function()
        except PartError:
            raise
        except NotAttempted as error:
            raise self.error(f"is not written yet{_place(error.__cause__)}") from error
        except Exception as error:
            of_call = isinstance(error, Wrong)
            cause = (error.error or error.__cause__) if of_call else error
            # If it cannot be called as the problem says, their adapter knows how.
            if not (of_call and cause) and self.takes_adapter():
                return self.tried(function)
            if of_call and not error.error:
                said = " ".join(filter(None, (error.claim, error.mistake)))
            else:
                said = f"{type(cause).__name__}: {cause}"
            raise self.error(f"fails: {said.rstrip('.')}{_place(cause or error)}") from error

    def error(self, what: str) -> PartError:
        """The error for a failure of this part."""
        advice = f'`check("{self.problem}", ...)` or `workbook check --all` says more'
        return PartError(f"your {self.part} ({self.where}) {what}; {advice}")

    def expect(self, holds: bool, what: str) -> None:
        """Raise PartError unless a result is as expected."""
        if not holds:
            raise self.error(what)


def _place(error: BaseException | None) -> str:
    """The learner's file and line that an error comes from, such as ", in model.py, line 31"."""
    while error is not None:
        for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
            code = frame.f_code
            if not code.co_filename.startswith(NOT_THEIRS):
                return f", in {code.co_filename}, line {line}, `{code.co_name}`"
        error = error.__cause__
    return ""


class Model(nn.Module):
    """A learner's model as a run needs it: token ids in, logits out, nothing else."""

    def __init__(self, learners: Learners, config: ModelConfig):
        super().__init__()
        self.learners, self.config = learners, config
        self.recipe = learners.tried(lambda: recipe(learners, config))
        self.theirs = learners.tried(self.recipe.make).train()

    def forward(self, token_ids: Tensor) -> Tensor:
        if token_ids.ndim == 1:  # as a learner's `decode` may call it
            return self(token_ids.unsqueeze(0)).squeeze(0)
        logits = self.learners.tried(partial(_called, self.recipe.call, self.theirs, token_ids))
        asked = (*token_ids.shape, self.config.vocab_size)
        is_tensor = isinstance(logits, Tensor)
        got = tuple(logits.shape) if is_tensor else type(logits).__name__
        self.learners.expect(
            is_tensor and got == asked, f"returns {got} instead of logits of shape {asked}"
        )
        return logits

    def fill(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights, by the course's names, into the learner's parameters. Raises: PartError."""
        modules.fill(self.theirs, self.places(weights))

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the course's names, as the learner's parameters hold them, by theirs."""
        return self.learners.tried(lambda: self.recipe.places(weights))

    def named_learners(self) -> dict[str, Tensor]:
        """The learner's parameters by the names that `places` gives."""
        return modules.own_parameters(self.theirs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:  # their own names, and sizes, which a learner's `decode` may use
            theirs = super().__getattr__("theirs")
            if hasattr(theirs, name):
                return getattr(theirs, name)
            if name in ("model", "lm"):  # of a method's `self`
                return self
            if name == "device":
                return next(theirs.parameters()).device
            if size := meaning(name, SIZES):
                return getattr(self.config, size)
            raise


def _called(function: Callable, *args: Any) -> Any:
    """Call the learner's code: what goes wrong becomes `Wrong`."""
    return call(function, *args, given=NOTHING, seconds=SECONDS)


def recipe(learners: Learners, config: ModelConfig) -> "TracedModel | NamedModel":
    """How the learner's model is made, filled and called: as their adapter does it, or by names.

    Raises: Wrong, ValueError.
    """
    usual = ModelConfig(**{name: getattr(config, name) for name in SIZES})
    for name in ("norm", "position", "ffn", "tie_embeddings"):
        if getattr(config, name) != getattr(usual, name):
            raise learners.error(
                f"cannot switch to {name}={getattr(config, name)!r}: build that into your code and"
                f" train it with {name}={getattr(usual, name)!r}; changed code makes a new run"
            )
    adopted = repository.read(learners.study)
    if adopted is not None and adopted.parts.get("transformer_lm"):
        try:
            if (adapter := repository.adapter(adopted, "transformer_lm")) is not None:
                return TracedModel(adapter, config)
        except ValueError as trouble:
            try:
                return NamedModel(learners.thing, config)
            except Wrong:
                raise learners.error(f"cannot be trained: {trouble}") from trouble
    return NamedModel(learners.thing, config)


class NamedModel:
    """A learner's model whose arguments and weights are recognised by their names.

    If names leave several ways open, the one whose logits equal ours, or come nearest, is taken.
    """

    def __init__(self, attempt: Any, config: ModelConfig):
        self.learner = modules.Learner(attempt, transformer.MODEL, transformer.ReadyRope)
        arguments = {name: getattr(config, name) for name in SIZES}
        ours = TransformerLM.from_config(config).eval()
        ids = torch.arange(2 * min(5, config.context_length)).reshape(2, -1) % config.vocab_size
        weights = {name: each.detach() for name, each in ours.named_parameters()}
        self.case = Case("TransformerLM", {"token_ids": ids}, arguments, weights)
        self.heads, self.way = config.num_heads, 0
        self.learner.module = module = self.make().eval()
        self.trouble: Wrong | None = None  # why it cannot be filled; training does not need that
        try:
            ways = self._ways(module, weights)
        except Wrong as trouble:
            self.trouble = trouble
            return
        with torch.no_grad():
            expected, distances = ours(ids), [math.inf] * len(ways)
            for number, way in enumerate(ways):
                modules.fill(module, way.weights)
                with suppress(Exception):  # reported when it is trained
                    distances[number] = (self.call(module, ids) - expected).abs().max().item()
        self.way = distances.index(min(distances))

    def _ways(self, module: nn.Module, weights: Mapping[str, Tensor]) -> list[modules.Layout]:
        return modules.layouts(module, weights, self.heads)

    def make(self) -> nn.Module:
        """A new model, with the learner's own initial weights. Raises: Wrong."""
        return self.learner.make(self.case).train()

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the course's names as the learner's parameters hold them. Raises: Wrong."""
        if self.trouble:
            raise self.trouble
        return self._ways(self.learner.module, weights)[self.way].weights

    def call(self, module: nn.Module, ids: Tensor) -> Tensor:
        """The logits. Raises: Wrong, and what the model raises."""
        positions = torch.arange(ids.shape[-1], device=ids.device)
        length = ids.shape[-1]
        extras = {
            "token_positions": positions,
            "mask": torch.ones(length, length, dtype=torch.bool, device=ids.device).tril(),
            "rope": None,
        }
        values = {"token_ids": ids}
        if self.learner.takes_positions():
            values["token_positions"] = positions
        args, kwargs, _ = bind(module.forward, values, extras=extras, given=NOTHING)
        result = module(*args, **kwargs)
        return result[0] if isinstance(result, tuple) else result


def _loss(learners: Learners, logits: Tensor, targets: Tensor) -> Tensor:
    """Their loss, of tokens in one row, because some take no other shape."""
    loss = learners({"logits": logits.flatten(0, -2), "targets": targets.flatten()})
    is_one = isinstance(loss, Tensor) and loss.numel() == 1
    got = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
    learners.expect(is_one, f"returns {got} instead of one number")
    loss = loss.reshape(())
    # Not checked on a GPU, which would have to be waited for at every step.
    if loss.device.type == "cpu" and not loss.isfinite() and logits.isfinite().all():
        raise learners.error(f"is {loss.item()}, though all logits are finite")
    return loss


def _optimizer(
    learners: Learners, params: Iterable[Tensor], config: OptimizerConfig
) -> torch.optim.Optimizer:
    values = {
        "params": list(params),
        "lr": config.max_learning_rate,
        "betas": config.betas,
        "eps": config.eps,
        "weight_decay": config.weight_decay,
    }
    if not learners.trouble and {"beta1", "beta2"} <= {
        each.name for each in parameters_of(learners.thing)
    }:
        values["beta1"], values["beta2"] = values.pop("betas")

    # The first optimizer of a process loads torch's compiler, which takes seconds. Stopped halfway,
    # it would stay half imported, so it is loaded before the clock of the learner's code starts.
    importlib.import_module("torch._dynamo")

    def made() -> torch.optim.Optimizer:
        args, kwargs, _ = bind(learners.thing, values, given=NOTHING)
        return call(learners.thing, *args, given=NOTHING, seconds=SECONDS, **kwargs)

    optimizer = learners.tried(made)
    groups = getattr(optimizer, "param_groups", None)
    learners.expect(
        bool(groups) and "lr" in groups[0],
        'has no param_groups with "lr", which a schedule sets: inherit from torch.optim.Optimizer',
    )
    step = optimizer.step

    def named(*args: Any, **kwargs: Any) -> Any:
        return learners.tried(partial(_called, partial(step, *args, **kwargs)))

    optimizer.step = named
    return optimizer


def _schedule(
    learners: Learners, it: int, highest: float, lowest: float, warmup: int, end: int
) -> float:
    names = ("it", "max_learning_rate", "min_learning_rate", "warmup_iters", "cosine_cycle_iters")
    rate = learners(dict(zip(names, (it, highest, lowest, warmup, end), strict=True)))
    try:
        rate = float(rate)
    except (TypeError, ValueError) as error:
        raise learners.error(f"returns {rate!r} for step {it} instead of a number") from error
    learners.expect(
        0 <= rate < float("inf"), f"returns {rate} for step {it}: it is negative or not finite"
    )
    return rate


def _clipping(learners: Learners, parameters: Iterable[Tensor], limit: float) -> Tensor:
    parameters = list(parameters)
    norm = clip_gradients(parameters, float("inf"))  # which scales nothing
    learners({"parameters": parameters, "max_l2_norm": limit})
    return norm


def _get_batch(
    learners: Learners,
    dataset: Any,
    batch_size: int,
    context_length: int,
    device: torch.device,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Their batch, drawn from the global random generators, which a checkpoint keeps too."""
    values = {
        "dataset": dataset,
        "batch_size": batch_size,
        "context_length": context_length,
        "device": str(device),
    }
    batch = learners(values, optional=["device"])
    pair = isinstance(batch, tuple | list) and [type(each) for each in batch] == [Tensor, Tensor]
    learners.expect(bool(pair), "does not return a pair of tensors")
    for each in batch:
        learners.expect(
            each.shape == (batch_size, context_length) and not each.is_floating_point(),
            f"returns {tuple(each.shape)} of {each.dtype} instead of ids of shape"
            f" {(batch_size, context_length)}",
        )
    return tuple(each.to(device, torch.int64) for each in batch)


def _save_checkpoint(learners: Learners, model, optimizer, iteration: int, out: Path) -> None:
    values = {"model": model, "optimizer": optimizer, "iteration": iteration, "out": out}
    learners(values)


def _load_checkpoint(learners: Learners, src: Path, model, optimizer) -> Any:
    return learners({"src": src, "model": model, "optimizer": optimizer})


class LearnersTokenizer(Tokenizer):
    """Our tokenizer, with the learner's doing the encoding and decoding."""

    def __init__(self, learners: Learners, vocab, merges, special_tokens):
        super().__init__(vocab, merges, special_tokens)
        self.learners = learners
        specials = list(special_tokens)
        values = {"vocab": dict(vocab), "merges": list(merges), "special_tokens": specials}

        def made() -> Any:
            args, kwargs, _ = bind(learners.thing, values, given=NOTHING)
            return call(learners.thing, *args, given=NOTHING, seconds=SECONDS, **kwargs)

        self.theirs = learners.tried(made)

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: PartError."""
        return self._in_one_form("encode", text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Raises: PartError."""
        return self._in_one_form("decode", list(ids))

    def _in_one_form(self, method: str, value: Any) -> Any:
        def run() -> Any:
            result = _called(getattr(self.theirs, method), value)
            return tokenizers.in_one_form(result, method, NOTHING)

        return self.learners.tried(run)


def _decode(
    learners: Learners,
    model: nn.Module,
    prompt_ids: list[int],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_p: float = 1.0,
    end_id: int | None = None,
    tokenizer: Tokenizer | None = None,
) -> list[int]:
    """The new ids from their function, called in the form that it takes."""

    def run() -> list[int]:
        learner = decoding.Learner(learners.thing)
        learner.find_form()
        length = model.config.context_length
        case = decoding.Case(tuple(prompt_ids), max_new_tokens, end_id, length, temperature, top_p)
        theirs = model.tokenizer = getattr(tokenizer, "theirs", tokenizer)
        new, *_ = learner.asked(model, theirs, case, end_id or 0, SECONDS)
        return new[: new.index(end_id)] if end_id in new else new

    return learners.tried(run)


MAKERS: dict[str, Callable] = {
    "model": Model,
    "loss": _loss,
    "optimizer": _optimizer,
    "schedule": _schedule,
    "clipping": _clipping,
    "get_batch": _get_batch,
    "save_checkpoint": _save_checkpoint,
    "load_checkpoint": _load_checkpoint,
    "tokenizer": LearnersTokenizer,
    "decode": _decode,
}


def expect_some(parts: Parts) -> Parts:
    """The same parts. Raises: ValueError if none of them is the learner's."""
    if not parts.made_by:
        raise ValueError(
            "you have no parts yet: solve a code problem in a study folder, or run `workbook adopt"
            " PATH` with the path of your repository"
        )
    return parts


def rehearsed(config: TrainConfig, parts: Parts) -> TrainConfig:
    """The config, in float32 if the learner's parts work only in that.

    One step with two short sequences is tried before a long run begins.
    Raises: PartError or RuntimeError if it does not work in float32 either.
    """
    device = devices.pick_device(config.device)
    precision = devices.pick_precision(device, config.precision)
    state = checkpoints.random_state()
    try:
        _one_step(config, parts, device, precision)
    except (PartError, RuntimeError):
        if precision == torch.float32:
            raise
        _one_step(config, parts, device, torch.float32)
        config = replace(config, precision="float32")
        print(f"your parts do not work in {devices.name_of(precision)}: float32 is used instead")
    finally:
        checkpoints.restore_random_state(state)
    return config


def _one_step(config: TrainConfig, parts: Parts, device, precision: torch.dtype) -> None:
    model = parts.model(config.model).to(device)
    optimizer = parts.optimizer(model.parameters(), config.optimizer)
    length = min(16, config.model.context_length)
    ids = torch.arange(2 * length + 1, device=device) % config.model.vocab_size
    inputs, targets = (ids[start:][: 2 * length].reshape(2, length) for start in (0, 1))
    with devices.autocast(device, precision):
        loss = parts.loss(model(inputs), targets)
    if not loss.isfinite():
        whose = parts.made_by.get("model")
        raise PartError(
            f"the first loss of your model ({whose.where if whose else 'ours'}) is {loss.item()}:"
            " its logits are probably not finite; often a mask hides every position, or a softmax"
            ' does not subtract the largest value; `check("transformer_lm", ...)` says more'
        )
    try:
        loss.backward()
    except RuntimeError as error:
        raise PartError(
            f"no gradient gets through your parts: {error}; `workbook twin` says which part fails"
        ) from error
    parts.clipping(model.parameters(), config.optimizer.max_l2_norm)
    optimizer.step()


def own(problem: str) -> Callable:
    """Your function for a code problem, to be called with the handout's arguments by their names.

        attend = mine.own("scaled_dot_product_attention")
        attend(Q=Q, K=K, V=V, mask=mask)

    Yours may use other names and another order. It is stopped after two minutes.

    Raises: PartError if it is missing; later, whenever a call of it fails.
    """
    study = progress.nearest()
    if (each := found(problems.get(problem).id, study)) is None:
        raise PartError(f"you have no part for {problem} yet")
    learners = Learners(problems.get(problem).id, each, study)
    return lambda **values: learners(values)
