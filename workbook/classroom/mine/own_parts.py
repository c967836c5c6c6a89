"""Your own parts in place of ours: found, called as a run calls them, and named when they fail.

A part is looked for in the repository that `workbook adopt` was given, and then among the solved
problems of the study folder. Parts differ in their arguments and in how they hold their weights;
`machinery.calling`, `machinery.modules` and the course's adapters know how to call them.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from workbook.classroom import problems
from workbook.classroom.checks import decoding, transformer
from workbook.classroom.checks import tokenizer as tokenizers
from workbook.classroom.checks.machinery import modules, verdicts
from workbook.classroom.checks.machinery.calling import (
    MODEL_ARGUMENTS,
    bind,
    call_part,
    for_optimizer,
)
from workbook.classroom.checks.machinery.tensors import Case
from workbook.classroom.checks.machinery.verdicts import (
    NotAttempted,
    Prose,
    Wrong,
    failure,
    where,
)
from workbook.classroom.mine import adopt
from workbook.classroom.mine.adapters import AdoptedModelRunner, Unusable, attempt
from workbook.classroom.mine.course_parts import PROBLEM_OF
from workbook.classroom.panels import Panel
from workbook.classroom.study import answers, progress, solutions
from workbook.config import ModelConfig, TrainConfig, data_folder
from workbook.experiments import own_runs, records
from workbook.optimizer.optimizers import clip_gradients
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, devices, log
from workbook.training.parts import Maker, Parts
from workbook.training.trainer import Run
from workbook.transformer.model import TransformerLM

CALL_SECONDS = 120.0  # what takes longer hangs
NOTHING = Prose("")  # for the checks' report of a call, which nobody sees here
OUR_START = (
    "Your model starts from weights that the workbook draws by the handout's rule: your"
    " run_transformer_lm takes weights, so those that your own code draws are not used."
)


class PartError(ValueError):
    """A part of the learner's fails; the message names it, its file and line, and what to do."""


# --- A part ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class PartRunner:
    """A learner's object for a problem, or why it cannot be imported; called with our arguments."""

    name: str  # that messages call it by
    problem: str
    study: Path
    where: str
    thing: Any = None
    hash: str = ""  # of its source and of all that it imports from beside it
    trouble: str = ""  # of its import
    seconds: float = CALL_SECONDS  # for each call

    @cached_property
    def adapters(self) -> dict[str, Callable]:
        """The functions of the repository's `tests/adapters.py` for it, if that was adopted."""
        adopted = adopt.read_adopted(self.study)
        is_found = adopted is not None and self.problem in adopted.found.keys() - adopted.by_hand
        return adopt.adapters(adopted, self.problem, self.thing) if is_found else {}

    @cached_property
    def called(self) -> Any:
        """What is called: the adapter, which knows how, or else the learner's object itself."""
        return attempt(self.adapters, self.problem) if self.adapters else self.thing

    def run(self, values: Mapping[str, Any], **options: Any) -> Any:
        """Call it with these values, by the handout's names. Raises: PartError."""
        how = {"given": NOTHING, "seconds": self.seconds, **options}
        return self.tried(lambda: call_part(self.called, values, **how))

    def made(self, values: Mapping[str, Any]) -> Any:
        """Make an instance with these values, by the handout's names. Raises: PartError."""
        args, kwargs, _ = self.tried(lambda: bind(self.called, values, given=NOTHING))
        return self.call(self.called, *args, **kwargs)

    def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call something of it, such as a method, under the time limit. Raises: PartError."""
        how: Any = {"given": NOTHING, "seconds": self.seconds, **kwargs}
        return self.tried(lambda: verdicts.call(function, *args, **how))

    def tried(self, function: Callable[[], Any]) -> Any:
        """Return what a function returns that runs the learner's code. Raises: PartError."""
        if self.trouble:
            raise self.error(f"cannot be imported: {self.trouble}")
        try:
            with patch.object(os, "_exit", partial(_leave, os.getpid(), os._exit)):
                return function()
        except PartError:
            raise
        except verdicts.NotJudged as error:
            raise self.error(f"cannot be run: {str(error).rstrip('.')}") from error
        except NotAttempted as error:
            raise self.error(f"is not written yet{where(error.__cause__)}") from error
        except Exception as error:
            verdicts.expect_not_ours(error, Wrong, Unusable)
            raise self.error(f"fails: {_in_words(error).rstrip('.')}") from error

    def error(self, what: str) -> PartError:
        """The error for a failure of this part."""
        advice = f'`check("{self.problem}", ...)` or `workbook check --all` says more'
        return PartError(f"your {self.name} ({self.where}) {what}; {advice}")

    def expect(self, holds: bool, what: str) -> None:
        """Raise PartError unless a result is as expected."""
        if not holds:
            raise self.error(what)


def _in_words(error: Exception) -> str:
    """What went wrong in a learner's code."""
    if isinstance(error, Unusable):
        return str(error)
    if not isinstance(error, Wrong):
        return failure(error)
    if error.error is not None:
        return failure(error.error)
    got = f"Got {dict(error.rows).get('got', 'nothing')}."
    return " ".join(filter(None, (error.claim, got, error.mistake)))


def _leave(pid: int, leave: Callable, status: int) -> None:
    """Stand for `os._exit` while a part runs: it would end a run without a word.

    A process that the part has forked may end as it likes.
    """
    if os.getpid() != pid:
        leave(status)
    sys.exit(f"os._exit({status})")


# --- What there is ------------------------------------------------------------------------------


def find_part(problem: str, study: Path) -> PartRunner | None:
    """What the learner has for a code problem: adopted, or kept in a study folder; None: nothing.

    Raises: ValueError if `adopted.toml` is damaged, OSError if the folder that it names is gone.
    """
    place = adopt.places(study).get(problem)
    if place is None:
        return None
    try:
        return load_part(problem, study)
    except Exception as error:  # that of `adopt` begins with the name of the module
        trouble = str(error).partition(" cannot be imported: ")[2] or failure(error)
        return PartRunner(problem, problem, study, place, trouble=trouble)


def load_part(problem: str, study: Path) -> PartRunner:
    """Import what the learner has for a code problem. Raises: what the import raises."""
    adopted = adopt.read_adopted(study)
    folder = study.absolute()
    if adopted is not None and adopted.where(problem):
        thing = adopt.load_adopted(adopted, problem)
        folder = adopted.folder
        place = adopted.where(problem)
    else:
        path = study / solutions.FOLDER / f"{problem}.py"
        names, thing = solutions.imported(path, problems.with_id(problem))
        place = f"{solutions.FOLDER}.{problem}:{', '.join(names)}"
    hash = _hash_of(thing if isinstance(thing, tuple) else (thing,), folder)
    return PartRunner(problem, problem, study, place, thing, hash)


def _hash_of(things: Iterable[Any], folder: Path) -> str:
    """A hash of the files that objects come from, and of those beside them that these import."""
    files = set()
    todo = [getattr(thing, "__module__", None) for thing in things]
    while todo:
        module = sys.modules.get(todo.pop())
        file = getattr(module, "__file__", None)
        if file and file not in files and Path(file).is_relative_to(folder):
            files.add(file)
            for value in vars(module).values():
                is_module = isinstance(value, ModuleType)
                name = value.__name__ if is_module else getattr(value, "__module__", None)
                todo += [name] if isinstance(name, str) else []
    sources = sorted(Path(file).read_bytes() for file in files)
    return sha256(b"\0".join(sources)).hexdigest()


def parts(study: Path | None = None, seconds: float = CALL_SECONDS) -> Parts:
    """The parts of a run: the learner's in place of ours wherever there is one.

    Printed, it is a table that says whose each part is. A part that cannot be imported is there
    too, and raises PartError when it is called.

    Args:
        study: the study folder; None: the nearest one.
        seconds: that each call of a learner's part may take.
    """
    study = study or progress.nearest()
    own: dict[str, Callable] = {}
    made_by: dict[str, Maker] = {}
    for name, make in MAKERS.items():
        if part := find_part(PROBLEM_OF[name], study):
            own[name] = partial(make, replace(part, name=name, seconds=seconds))
            broken = f" (broken: {part.trouble})" if part.trouble else ""
            made_by[name] = Maker(part.where + broken, part.hash)
    return replace(Parts(), **own, made_by=made_by)


def expect_some(parts: Parts, study: Path | None = None) -> Parts:
    """The same parts. Raises: ValueError if none of them is the learner's."""
    if parts.made_by:
        return parts
    study = study or progress.nearest()
    if there := adopt.places(study):
        raise ValueError(f"none of your parts ({', '.join(there)}) is used in a run")
    raise ValueError(adopt.why_nothing(study))


def own(problem: str) -> Callable:
    """Your function for a code problem, to be called with the handout's arguments by their names.

        attend = mine.own("scaled_dot_product_attention")
        attend(Q=Q, K=K, V=V, mask=mask)

    Yours may use other names and another order. It is stopped after two minutes.

    Raises: PartError if it is missing; later, whenever a call of it fails.
    """
    problem = problems.with_id(problem).id
    part = find_part(problem, progress.nearest())
    if part is None:
        raise PartError(f"you have no part for {problem} yet")
    return lambda **values: part.run(values)


# --- Called as a run calls them -------------------------------------------------------------------


class LearnerModel(nn.Module):
    """A learner's model as a run needs it: token ids in, logits out, nothing else."""

    def __init__(self, part: PartRunner, config: ModelConfig):
        super().__init__()
        usual = vars(ModelConfig(**{name: getattr(config, name) for name in MODEL_ARGUMENTS}))
        for name in ("norm", "position", "ffn", "tie_embeddings"):
            if getattr(config, name) != usual[name]:
                raise part.error(
                    f"cannot switch to {name}={getattr(config, name)!r}: change your own code, and"
                    f" train it with {name}={usual[name]!r}; it is another run then"
                )
        self.part = part
        self.config = config
        self.runner, self.theirs = part.tried(self._made)

    def _made(self) -> tuple["AdoptedModelRunner | NamedModelRunner", nn.Module]:
        """The model as their adapter makes it, or else by the handout's names."""
        runner: AdoptedModelRunner | NamedModelRunner
        if adapter := next(iter(self.part.adapters.values()), None):
            runner = AdoptedModelRunner(adapter, self.config, self.part.thing)
        else:
            runner = NamedModelRunner(self.part.thing, self.config)
        return runner, runner.make()

    def forward(self, token_ids: Tensor) -> Tensor:
        logits = self.part.call(self.runner.run, self.theirs, token_ids)
        asked = (*token_ids.shape, self.config.vocab_size)
        got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        self.part.expect(got == asked, f"returns {got} instead of logits of shape {asked}")
        return logits

    def fill(self, weights: Mapping[str, Tensor]) -> None:
        """Copy weights, by the course's names, into the learner's parameters. Raises: PartError."""
        modules.fill(self.theirs, self.places(weights))

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the course's names, as the learner's parameters hold them, by theirs."""
        return self.part.tried(lambda: self.runner.places(weights))


class NamedModelRunner:
    """A learner's model that is made with the handout's arguments, its weights known by names."""

    def __init__(self, attempt: Any, config: ModelConfig):
        """Make no model yet. Raises: Wrong if it is no class."""
        self.learner = modules.ModuleRunner(
            attempt, transformer.transformer_lm, transformer.ReadyRope
        )
        arguments = {name: getattr(config, name) for name in MODEL_ARGUMENTS}
        ids = torch.arange(2 * min(5, config.context_length)).reshape(2, -1) % config.vocab_size
        weights = TransformerLM.from_config(config).state_dict()
        self.case = Case("TransformerLM", {"token_ids": ids}, arguments, weights)

    def make(self) -> nn.Module:
        """A new model, with the learner's own initial weights. Raises: Wrong."""
        return self.learner.make(self.case).train()

    def places(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights by the course's names as the learner's parameters hold them. Raises: Wrong."""
        if self.learner.module is None:
            self.learner.run(self.case)  # finds out whether square matrices are stored transposed
        return self.learner.layout(replace(self.case, weights=weights))

    def run(self, module: nn.Module, ids: Tensor) -> Tensor:
        """The logits. Raises: Wrong, and what the model raises."""
        n = ids.shape[-1]
        device = ids.device
        mask = torch.ones(n, n, dtype=torch.bool, device=device).tril()
        values = {"token_ids": ids}
        extras = {"mask": mask, "rope": None}
        if self.learner.takes_positions():
            values["token_positions"] = torch.arange(n, device=device)
        args, kwargs, _ = bind(module.forward, values, extras=extras, given=NOTHING)
        result = module(*args, **kwargs)
        return result[0] if isinstance(result, tuple) else result


# What makes each part of a run: with the arguments of its field in `Parts`, which has their types.


def _loss(part, logits, targets):
    """Their loss, of tokens in one row, because some take no other shape."""
    loss = part.run({"logits": logits.flatten(0, -2), "targets": targets.flatten()})
    got = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
    part.expect(got in ((), (1,)), f"returns {got} instead of one number")
    return loss.reshape(())


def _optimizer(part, params, config):
    values = {"params": list(params), "lr": config.max_learning_rate}
    values |= {name: getattr(config, name) for name in ("betas", "eps", "weight_decay")}
    values = for_optimizer(part.tried(lambda: part.called), values)
    # The first optimizer of a process loads torch's compiler, which takes seconds. Stopped halfway,
    # it would stay half imported, so it is loaded before the clock of the learner's code starts.
    importlib.import_module("torch._dynamo")
    optimizer = part.made(values)
    groups = getattr(optimizer, "param_groups", None)
    part.expect(
        bool(groups) and "lr" in groups[0],
        'has no param_groups with "lr", which a schedule sets: inherit from torch.optim.Optimizer,'
        ' and call the learning rate "lr" in its defaults',
    )
    step = optimizer.step
    optimizer.step = lambda *args: part.call(step, *args)
    return optimizer


def _schedule(part, it, highest, lowest, warmup, end):
    names = ("it", "max_learning_rate", "min_learning_rate", "warmup_iters", "cosine_cycle_iters")
    rate = part.run(dict(zip(names, (it, highest, lowest, warmup, end), strict=True)))
    is_rate = isinstance(rate, int | float | Tensor) and 0 <= float(rate) < float("inf")
    part.expect(is_rate, f"returns {rate!r} for step {it} instead of a finite number from 0 on")
    return float(rate)


def _clipping(part, parameters, limit):
    parameters = list(parameters)
    norm = clip_gradients(parameters, float("inf"))  # which scales nothing
    # As `model.parameters()` is handed in: a generator, which can be gone over only once.
    part.run({"parameters": (p for p in parameters), "max_l2_norm": limit})
    return norm


def _get_batch(part, dataset, batch_size, context_length, device, generator):
    """Their batch, drawn from the global random generators, which a checkpoint keeps too."""
    sizes = {"batch_size": batch_size, "context_length": context_length}
    batch = part.run({"dataset": dataset, **sizes, "device": str(device)}, optional=["device"])
    pair = batch if isinstance(batch, tuple | list | Tensor) else [batch]  # such as None
    got = [tuple(getattr(tensor, "shape", ())) for tensor in pair]
    asked = (batch_size, context_length)
    part.expect(got == [asked, asked], f"returns {got} instead of two tensors of shape {asked}")
    return tuple(tensor.to(device, torch.int64) for tensor in batch)


class LearnerTokenizer(Tokenizer):
    """Our tokenizer, with the learner's doing the encoding and decoding."""

    def __init__(self, part: PartRunner, vocab, merges, special_tokens):
        super().__init__(vocab, merges, special_tokens)
        values = {"vocab": dict(vocab), "merges": list(merges)}
        self.part = part
        self.theirs = part.made({**values, "special_tokens": [*special_tokens]})

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: PartError."""
        return self._called("encode", text)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids. Raises: PartError."""
        return self._called("decode", list(ids))

    def _called(self, method: str, value: Any) -> Any:
        result = self.part.call(getattr(self.theirs, method), value)
        return self.part.tried(lambda: tokenizers.in_one_form(result, method, NOTHING))


def _decode(
    part, model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None, tokenizer=None
):
    """The new ids from their function, called in the form that it takes."""
    config = model.config
    own = getattr(model, "theirs", model)
    device = next(own.parameters()).device
    for name in (*MODEL_ARGUMENTS, "device"):  # which the function may ask for
        if not hasattr(own, name):
            setattr(own, name, getattr(config, name, device))

    def run() -> list[int]:
        learner = decoding.DecodingRunner(part.called)
        learner.find_form()
        length = config.context_length
        prompt = learner.as_prompt(list(prompt_ids))
        prompt = tokenizer.decode(prompt_ids) if isinstance(prompt, str) else prompt
        ids = tuple(prompt_ids)
        case = decoding.Request(ids, max_new_tokens, end_id, length, temperature, top_p)
        new = learner.new_ids(own, prompt, case, end_id or 0, tokenizer, part.seconds)
        return new[: new.index(end_id)] if end_id in new else new

    return part.tried(run)


MAKERS: dict[str, Callable] = {  # by the fields of `Parts`
    "model": LearnerModel,
    "loss": _loss,
    "optimizer": _optimizer,
    "schedule": _schedule,
    "clipping": _clipping,
    "get_batch": _get_batch,
    "tokenizer": LearnerTokenizer,
    "decode": _decode,
}


# --- Runs, and the cells of the notebooks -------------------------------------------------------


def rehearsed(config: TrainConfig, parts: Parts) -> TrainConfig:
    """The config, in float32 if the learner's parts work only in that.

    One step with two short sequences is tried before a long run begins.
    Raises: PartError if it does not work in float32 either.
    """
    device = devices.pick_device(config.device)
    precision = devices.pick_precision(device, config.precision)
    state = checkpoints.random_state()
    for tried in dict.fromkeys((precision, torch.float32)):
        try:
            _one_step(config, parts, device, tried)
            break
        except (PartError, RuntimeError) as error:
            if tried == torch.float32:
                raise PartError(f"{error}; `workbook twin` says which part fails") from error
        finally:
            checkpoints.restore_random_state(state)
    if tried != precision:
        print(f"your parts do not work in {devices.name_of(precision)}: float32 is used instead")
        return replace(config, precision="float32")
    return config


def _one_step(config: TrainConfig, parts: Parts, device, precision: torch.dtype) -> None:
    model = parts.model(config.model).to(device)
    optimizer = parts.optimizer(model.parameters(), config.optimizer)
    length = min(16, config.model.context_length)
    ids = torch.arange(2 * length + 1, device=device) % config.model.vocab_size
    inputs, targets = (ids[start:][: 2 * length].reshape(2, length) for start in (0, 1))
    with devices.autocast(device, precision):
        loss = parts.loss(model(inputs), targets)
    if not loss.isfinite():  # no learning rate is to blame yet
        raise PartError(f"the first loss is {loss:.4g}: is each weight filled, as `empty` is not?")
    loss.backward()
    parts.clipping(model.parameters(), config.optimizer.max_l2_norm)
    optimizer.step()
    if isinstance(getattr(model, "runner", None), AdoptedModelRunner):
        print(OUR_START)


def runs() -> dict[str, Run]:
    """The runs of your own parts that `workbook train --mine` made, by name, the oldest first.

    Only those made by your current code can give their model back.
    """
    folders = own_runs.folders_of_runs(data_folder() / "trained", "*-mine-*")
    current = parts() if folders else None
    return {folder.name: _made_by(current, folder) for folder in folders}


def _made_by(current: Parts, folder: Path) -> Run:
    key = log.inner(log.load_json(folder / log.CONFIG), "parts").get("key")
    return replace(records.load_run(folder), parts=current if current.key == key else None)


def open_run(folder: Path) -> tuple[nn.Module, Tokenizer, Callable]:
    """The model, the tokenizer and `decode` of a run that your parts made.

    Raises: ValueError if your code has changed since.
    """
    run = _made_by(parts(), folder)
    if run.parts is None:
        raise ValueError(
            f"{folder} was made by another version of your code, so its weights may not fit your"
            " model; restore that version, or train again"
        )
    return run.model(), run.parts.prepare(run.config).tokenizer, run.parts.decode


def now_yours(*names: str) -> Callable:
    """Run the function below with your parts, if you have all those named.

        @mine.now_yours("optimizer")
        def _(parts):
            ...

    Without them, or outside a study folder, nothing happens and nothing is shown. An error in your
    code is shown in a panel, and the notebook goes on.

    Args:
        names: those of parts, such as "model", or of code problems, such as "train_bpe".
    """

    def run(function: Callable[[Parts], Any]) -> None:
        study = progress.current()
        if study is None:
            return
        try:
            there = adopt.places(study.folder)
            if not all(PROBLEM_OF.get(name, name) in there for name in names):
                return
            shown = function(parts(study.folder))
        except Exception as error:
            shown = Panel("wrong", f"Your part does not run here: {error}")
        if shown is not None:
            answers.display_or_print(shown)

    return run
