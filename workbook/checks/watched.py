"""A training run that is watched: its steps, losses, batches and sizes, whatever it prints.

`Settings` says what the run is told, by whatever names its script or function has for that.
`watching` observes it from inside its process: each call of a model, of `backward` and of an
optimizer's `step`. `Seen` is what was seen, in values that JSON can hold.
"""

import csv
import io
import logging
import math
import os
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from workbook.checks.calling import is_config, is_config_class, meaning, signature_of
from workbook.checks.timeout import Stopped, TimedOut, limited
from workbook.checks.verdicts import failure

# The text repeats itself, so 20 steps learn much of it. One id occurs only in the training data,
# and another only in the validation data, so every window of a batch shows where it comes from.
PATTERN = (3, 17, 42, 8, 29, 55, 11, 36, 20)
TRAIN_ID, VALID_ID = 50, 51
PATIENCE = 3  # times the steps that were asked for; then the run is stopped
MOST_PARAMETERS = 1_000_000  # the settings ask for thirty thousand or so
MOST_PARTS = 8  # of a batch, where gradients are accumulated
KEPT = 200_000  # characters of print-out, and bytes of a log file
LOGS = (".csv", ".jsonl", ".json", ".log", ".txt")
SERVICES = ("wandb", "tensorboardX", "torch.utils.tensorboard")

TINY = {
    "vocab_size": 61, "context_length": 16, "d_model": 32, "num_layers": 2, "num_heads": 4,
    "d_ff": 64, "batch_size": 8,
}  # fmt: skip
# In this order, as some names have two meanings: `total_steps` is the cosine's too.
MEANT = (
    "resume", "eval_every", "save_every", "log_every", "epochs", "steps", "total_tokens",
    "warmup_iters", "min_learning_rate", "max_learning_rate", "cosine_cycle_iters", "valid_path",
    "train_path", "data_dir", "checkpoint_path", "device", *TINY,
)  # fmt: skip
# Given only if there is no default.
USUAL = {
    "weight_decay": 0.01, "betas": (0.9, 0.95), "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
    "max_l2_norm": 1.0, "seed": 0, "dtype": "float32", "dropout": 0.0, "rope_theta": 10_000.0,
}  # fmt: skip
NAMED = re.compile("((wandb|run|exp|experiment|project)_?)*(name|project|entity|group|id)")
SECTIONS = {"model", "training", "optim", "optimizer", "data", "logging", "checkpointing"}
ID_TYPES = (torch.int64, torch.int32, torch.int16, torch.uint8)
LEAVE = object()  # stands for "its default will do"


class Enough(Stopped):
    """No more of the run is needed, such as when it takes many more steps than it was told to."""


class Unmet(BaseException):
    """An argument without a default matches no setting; its name is the message."""


@dataclass
class Settings:
    """What a run is asked to do. Paths are texts, so that it can go to another process."""

    folder: str  # holds the data, and the checkpoints
    steps: int
    stop_at: int | None = None  # the step after which the run is interrupted
    resume: str | None = None  # the checkpoint to go on from
    asked: dict[str, str] = field(default_factory=dict)  # by meaning: the learner's name

    def values(self) -> dict[str, Any]:
        """All settings, by the names that the problem documents."""
        data, tokens = Path(self.folder, "data"), TINY["batch_size"] * TINY["context_length"]
        return TINY | {
            "train_path": str(data / "train.bin"), "valid_path": str(data / "valid.bin"),
            "data_dir": str(data), "resume": self.resume, "device": "cpu",
            # Not there yet, so it may be made as a folder as well.
            "checkpoint_path": str(Path(self.folder, "checkpoints", "run.pt")),
            "steps": self.steps, "epochs": self.steps, "total_tokens": self.steps * tokens,
            "max_learning_rate": 1e-2, "min_learning_rate": 1e-3, "warmup_iters": 2,
            "cosine_cycle_iters": self.steps, "log_every": 1, "eval_every": 5, "save_every": 10,
        }  # fmt: skip

    def value(
        self, name: str, default: Any = None, *, required: bool = False, kind: Any = None
    ) -> Any:
        """The value for a setting of this name; LEAVE for none.

        Args:
            kind: its type, or a list of the words that it may be; None: any, even data as an array.

        Raises: Unmet if it is required and matches no setting.
        """
        meant, is_switch = meaning(name, MEANT), isinstance(default, bool) or kind is bool
        found = self.values().get(meant, LEAVE)
        if meant == "resume":
            self.asked.setdefault(meant, name)
        if is_switch:
            found = True if meant == "resume" and found else LEAVE
        elif found is None or (isinstance(kind, list) and found not in kind):
            found = LEAVE
        elif meant in ("resume", "checkpoint_path"):
            is_folder = re.search("dir|folder|root|checkpoints|ckpts", name, re.I)
            found = str(Path(found).parent) if is_folder else found
        elif meant in ("train_path", "valid_path"):
            is_path = kind in (str, Path) or re.search("path|file|bin|npy", name, re.I)
            if default and re.fullmatch(r"[^./\\]+", str(default)):
                found = LEAVE  # it says which data set, such as "owt", not where it is
            elif not is_path and not default:
                found = np.load(found, mmap_mode="r")
        if meant and found is not LEAVE:
            self.asked.setdefault(meant, name)
        if found is not LEAVE or not required:
            return found
        if is_switch or meant == "resume":
            return False if is_switch else None
        if isinstance(kind, list):
            return kind[0]
        if usual := meaning(name, USUAL):
            return USUAL[usual]
        if NAMED.fullmatch(name.lower()):
            return "check"
        raise Unmet(name)

    def arguments(self, function: Callable) -> dict[str, Any]:
        """Values for the parameters of a function, by its own names. Raises: Unmet."""
        given: dict[str, Any] = {}
        for each in signature_of(function) or ():
            required = each.default is each.empty
            kind = None if each.annotation is each.empty else each.annotation
            default = None if required else each.default
            if each.kind is each.VAR_KEYWORD:
                known = set(self.asked)
                given |= {name: v for name, v in Answers(self).items() if name not in known}
            elif each.kind is each.VAR_POSITIONAL:
                continue
            elif is_config_class(each):
                given[each.name] = kind(**self.arguments(kind))
            elif is_config(each) and not default and kind is not str:
                given[each.name] = Answers(self)
            else:
                found = self.value(each.name, default, required=required, kind=kind)
                if found is not LEAVE:
                    given[each.name] = found
        return given

    def options(self, words: str) -> Iterator[str]:
        """Yield the command line that a script needs, going by its --help. Raises: Unmet.

        argparse, click, typer and tyro print the same way: the usage, then one option per line.
        """
        usage, _, rest = words.partition("sage:")[2].partition("\n\n")
        while usage != (usage := re.sub(r"\[[^][]*\]", "", usage)):
            pass  # what is in brackets is optional, and brackets may be nested
        needed = re.findall(r"--[\w-]+", usage)
        places = re.sub(r"--?[\w-]+(\s+([A-Z][A-Z_\d]*|\{\S*\}))*", "", usage).partition(".py")[2]
        for name in places.split():
            yield str(self.value(name.lower(), required=True, kind=str))
        for line in rest.splitlines():
            found = OPTION.match(line)
            if not found or found["name"] in ("--help", "--version"):
                continue
            name, choices = found["name"], re.split(r"[,|]", found["choices"] or "")
            if name == "--dataset" and re.search("--train|--data.?dir", rest):
                continue  # which one, not where it is
            kind = choices if any(choices) else str if found["takes"] else bool
            needs = name in needed or bool(re.search(r"(\[|\()required", line))
            plain, needs = name.lstrip("-").replace("-", "_"), needs and kind is not bool
            given = self.value(plain, required=needs, kind=kind)
            if given is not LEAVE and given is not None:
                yield name
                if given is not True:
                    yield from map(str, given if isinstance(given, tuple) else [given])


# A line of --help: "-l, --lr LR", "--norm {pre,post}", "--compile / --no-compile", in a box or not.
OPTION = re.compile(
    r"[\s│*]*(?:-\w(?: [A-Z]\S*)?,\s*)?(?P<name>--[\w.-]+)(?:\s+-\w\b)?(?P<takes>"
    r" (?:[{[](?P<choices>[^\]} ]*)[}\]]|[^\s/-])|\s+(?:TEXT|INTEGER|FLOAT|PATH|FILE|DIRECTORY)\b)?"
)


class Answers(dict):
    """A config that answers to any usual name, as a key or an attribute, in sections as well."""

    def __init__(self, settings: Settings):
        others = ("epochs", "total_tokens", "data_dir")  # they would repeat the others
        super().__init__({k: v for k, v in settings.values().items() if k not in others})
        self.__dict__["_settings"] = settings
        settings.asked |= {name: name for name in self if name not in settings.asked}

    def __missing__(self, name: Any) -> Any:
        if str(name).lower() in SECTIONS:
            return self
        try:
            return self.__dict__["_settings"].value(str(name), required=True, kind=str)
        except Unmet:
            raise KeyError(f"the settings of the check have no {name}") from None

    def __reduce__(self):
        return dict, ([*self.items()],)  # from a checkpoint, torch loads no class of ours

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def get(self, name: Any, default: Any = None) -> Any:
        """The value of a setting; the default for one that is not known, or has none."""
        try:
            return default if self[name] is None else self[name]
        except KeyError:
            return default


@dataclass
class Seen:
    """What was seen of one run."""

    asked: dict[str, str]
    steps: int = 0
    backward: int = 0
    rates: list[float] = field(default_factory=list)
    trained: list[dict | None] = field(default_factory=list)  # what each step learned from
    evaluated: list[dict] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)  # of the parameters
    layers: int = 0
    no_gradient: bool = False
    uncleared: bool = False  # gradients were left over when the next ones came
    too_many: bool = False  # steps
    memory_map: bool = False
    foreign: bool = False  # ids that the data do not contain
    error: str = ""  # that a script ended with
    timed_out: bool = False
    lacks: str = ""  # what the check cannot give it, in words
    printed: str = ""
    texts: str = ""  # all that it printed, logged and returned

    @property
    def parameters(self) -> int:
        """How many numbers it trains."""
        return sum(map(math.prod, self.shapes))

    @property
    def losses(self) -> list[float]:
        """The loss of each step, as it was seen."""
        return [each["loss"] for each in self.trained if each]

    @property
    def validations(self) -> list[float]:
        """Losses on validation data, as they were seen."""
        own = not {"valid_path", "data_dir"} & self.asked.keys()  # split off by the script
        return [each["loss"] for each in self.evaluated if each["valid"] or own]


def write_data(folder: Path) -> None:
    """Write the token files of both splits, as .npy and as bare numbers (.bin), in uint16."""
    (folder / "data").mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    valid = ("valid", "val", "validation")
    for name, mark, size in (
        ("train", TRAIN_ID, 2_000),
        *((each, VALID_ID, 400) for each in valid),
    ):
        text = np.resize(np.array([*PATTERN, mark], dtype=np.uint16), size)
        np.save(folder / "data" / f"{name}.npy", text)
        text.tofile(folder / "data" / f"{name}.bin")


class Watch:
    """An observer of one run."""

    def __init__(self, settings: Settings):
        self.settings, self.seen = settings, Seen(settings.asked)
        self.depth = 0  # of calls of modules inside one another
        self.ids: Tensor | None = None  # that the model was called with last
        self.model, self.size = nn.Module(), -1  # the largest that was called
        self.waiting: dict | None = None  # a result of the model, before any `backward`
        self.learned: dict | None = None  # the first result that the current step has trained on
        self.moved: list[Tensor] = []  # parameters, by the last step
        self.first: torch.optim.Optimizer | None = None
        self.is_asking = False  # for its --help: no step should be taken then
        self.printed, self.logged = _Printed(), []

    def call_module(self, original: Callable, module: nn.Module, *args, **kwargs) -> Any:
        """Stand for `nn.Module.__call__`."""
        if self.depth == 0:
            ids = next((each for each in (*args, *kwargs.values()) if _are_ids(each)), None)
            if ids is not None:
                self.ids = ids
                self.seen.foreign |= bool(((ids < 0) | (ids >= TINY["vocab_size"])).any())
            if (size := len(list(module.parameters()))) > self.size:
                self.model, self.size = module, size
        self.depth += 1
        try:
            out = original(module, *args, **kwargs)
        finally:
            self.depth -= 1
        if self.depth == 0:
            self.look_at(out)
        return out

    def look_at(self, out: Any) -> None:
        """Note the loss that the logits give."""
        if isinstance(out, tuple | list):
            out = next((each for each in out if _is_3d(each)), None)
        out, ids = getattr(out, "logits", out), self.ids
        if ids is None or not _is_3d(out) or [*out.shape] != [*ids.shape, TINY["vocab_size"]]:
            return
        self.evaluate()  # what came before, without `no_grad`, was never trained on
        with torch.no_grad():
            logits, next_ids = out[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten().long()
            valid, train = ((ids == each).any().item() for each in (VALID_ID, TRAIN_ID))
            loss = nn.functional.cross_entropy(logits, next_ids).item()
        self.waiting = {"loss": loss, "shape": [*ids.shape], "valid": valid and not train}
        if out.requires_grad:
            self.seen.foreign |= bool((ids == 0).any())  # as every other byte of the file is
        else:
            self.evaluate()

    def evaluate(self) -> None:
        """Keep the model's loss on a batch that it was not trained on."""
        if self.waiting:
            self.seen.evaluated.append(self.waiting)
            self.waiting = None

    def backward(self, original: Callable, loss: Tensor, *args, **kwargs) -> Any:
        """Stand for `Tensor.backward`."""
        left = (p.grad for p in self.moved)  # at the first call after a step, none may be left
        self.seen.uncleared |= any(g is not None and g.count_nonzero() > 0 for g in left)
        self.moved = []
        self.learned, self.waiting = self.learned or self.waiting, None
        self.seen.backward += 1
        if self.seen.backward > MOST_PARTS * PATIENCE * self.settings.steps:
            self.seen.too_many = True
            raise Enough
        return original(loss, *args, **kwargs)

    def after_step(self, optimizer: torch.optim.Optimizer, *_) -> None:
        """Count an optimizer step; if two optimizers share out the parameters, only the first's."""
        if self.is_asking:
            raise Enough
        seen = self.seen
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.first, self.moved = self.first or optimizer, self.moved + parameters
        is_first = optimizer is self.first
        if seen.steps == 1 - is_first:
            seen.shapes += [[*p.shape] for p in parameters]
        if not is_first:
            return
        if not seen.steps:
            if self.size >= len(parameters):  # else parts of the model were called
                seen.layers = _layers([name for name, _ in self.model.named_parameters()])
            seen.no_gradient = all(p.grad is None for p in parameters)
        seen.steps += 1
        seen.rates.append(float(optimizer.param_groups[0].get("lr", "nan")))
        seen.trained.append(self.learned)
        self.learned = None
        seen.too_many = seen.steps >= PATIENCE * self.settings.steps
        is_large = seen.parameters > MOST_PARAMETERS  # its steps would take minutes
        if seen.too_many or is_large or seen.steps == self.settings.stop_at:
            raise Enough

    def log(self, *args, **kwargs) -> None:
        """Take what is reported to a service: a dict, or a name and a value."""
        named = dict([args[:2]]) if args and isinstance(args[0], str) else args
        self.logged += _lines([named, kwargs])

    def finish(self, returned: Any = None) -> Seen:
        """All that was seen, with what the run printed, wrote and returned."""
        self.evaluate()
        printed = self.printed.getvalue()
        texts = [printed, *self.logged, *_lines(returned)]
        for path in sorted(Path(self.settings.folder).rglob("*")):
            if path.suffix in LOGS and path.is_file() and path.stat().st_size < KEPT:
                lines = path.read_text("utf-8", errors="replace").splitlines()
                if path.suffix == ".csv":  # each number with the name of its column
                    rows = csv.DictReader(lines)
                    lines = [", ".join(f"{k}: {v}" for k, v in row.items()) for row in rows]
                texts += lines
        self.seen.printed, self.seen.texts = printed[-2_000:], "\n".join(texts)[-KEPT:]
        return self.seen


class _Printed(io.StringIO):
    """The beginning of what is printed; all of it also goes where it went before."""

    def __init__(self):
        super().__init__()
        self.before = sys.stdout

    def write(self, text: str) -> int:
        if self.tell() < KEPT:
            super().write(text)
        written = self.before.write(text)
        self.before.flush()
        return written

    def reconfigure(self, **options: Any) -> None:
        """Do nothing: scripts that ask for line buffering have it already."""


@contextmanager
def watching(settings: Settings, is_script: bool = False) -> Iterator[Watch]:
    """A block in which a run is watched; afterwards everything is as before."""
    watch = Watch(settings)
    with ExitStack() as stack:

        def replace(holder: Any, name: str, new: Any) -> None:
            stack.enter_context(patch.object(holder, name, new))

        def around(holder: Any, name: str, take: Callable) -> None:
            old = getattr(holder, name)
            replace(holder, name, lambda *args, **kwargs: take(old, *args, **kwargs))

        def load(original: Callable, file: Any, *args, **kwargs) -> Any:
            if isinstance(file, np.ndarray):  # it was given the data themselves
                return file
            path = Path(str(file))  # the data are there in both forms
            ours = path.suffix == ".bin" and path.parent == Path(settings.folder, "data")
            return original(path.with_suffix(".npy") if ours else file, *args, **kwargs)

        def memory_map(original: Callable, *args, **kwargs) -> Any:
            watch.seen.memory_map = True
            if len(args) > 1 and isinstance(args[1], np.ndarray):
                return args[1]
            return original(*args, **kwargs)

        around(nn.Module, "__call__", watch.call_module)
        around(torch.Tensor, "backward", watch.backward)
        around(np, "load", load)
        around(np.memmap, "__new__", memory_map)
        # Compiling would take longer than the run, and hide the calls.
        replace(torch, "compile", lambda model=None, **_: model or (lambda it: it))
        replace(nn.Module, "compile", lambda *args, **kwargs: None)
        stack.callback(register_optimizer_step_post_hook(watch.after_step).remove)
        service = MagicMock(log=watch.log, add_scalar=watch.log, add_scalars=watch.log)
        service.init.return_value = service.SummaryWriter.return_value = service
        service.__enter__.return_value = service
        for name in SERVICES:
            if is_script:
                stack.enter_context(patch.dict(sys.modules, {name: service}))
            elif name in sys.modules:  # the learner's own module has bound it already
                for each in ("init", "log", "finish", "watch", "save", "login"):
                    if hasattr(sys.modules[name], each):
                        replace(sys.modules[name], each, getattr(service, each))
        replace(sys, "stdout", watch.printed)
        replace(sys, "stderr", watch.printed)
        if not is_script:  # handlers that were set up before write elsewhere
            handler = logging.StreamHandler(watch.printed)
            logging.getLogger().addHandler(handler)
            stack.callback(logging.getLogger().removeHandler, handler)
        yield watch


def of_script(command: list[str], settings: dict, seconds: float) -> Iterator[dict[str, Any]]:
    """Run a script as `python script.py` would, in this process, and yield what was seen of it.

    It is run twice: with --help, to learn its options, and with the values for them.
    After `seconds` it is stopped, if it can be stopped.
    """
    asks = Settings(**settings)
    os.chdir(asks.folder)
    os.environ["MPLBACKEND"] = "Agg"
    metadata.version = _version
    torch.set_num_threads(1)
    with watching(asks, is_script=True) as watch:
        seen = watch.seen
        try:
            limited(seconds, lambda: _ask_and_run(command, watch))
        except Enough:
            seen.lacks = NO_OPTIONS if watch.is_asking else ""
        except TimedOut as error:
            seen.error, seen.timed_out = f"it was {error}", True
        except Unmet as error:
            seen.lacks = UNMET.format(error)
        except SystemExit as ended:
            if ended.code not in (None, 0):
                said = watch.printed.getvalue().strip()[-300:]
                seen.error = f"it ended with status {ended.code}; its last output: {said}"
        except BaseException as error:
            seen.error = failure(error)
            if watch.is_asking and re.search(r"FileNotFound|No such file|sys\.argv", seen.error):
                seen.lacks = NO_OPTIONS  # a path of its own is not there
        yield asdict(watch.finish())


NO_OPTIONS = "It takes no options, so nothing can be set from outside."
UNMET = "It asks for `{}`, which the check does not have."


def words_of_help(play: Callable[[list[str]], Any], watch: Watch) -> str:
    """What a program prints when run with --help. Raises: Enough if it ignores that."""
    watch.is_asking = True
    wide = {"COLUMNS": "400", "NO_COLOR": "1", "TYPER_USE_RICH": "0"}  # so that no line is wrapped
    said = io.StringIO()
    with patch.dict(os.environ, wide), redirect_stdout(said), suppress(SystemExit):
        play(["--help"])
        raise Enough
    watch.is_asking = False
    return said.getvalue()


def _ask_and_run(command: list[str], watch: Watch) -> None:
    script, *extra = command
    options = list(watch.settings.options(words_of_help(partial(_run, script), watch)))
    torch.manual_seed(0)
    _run(script, [*options, *extra])  # if an option comes twice, the last one counts


def _run(script: str, arguments: list[str]) -> None:
    path = Path(script)
    root, name = path.parent, path.stem
    while (root / "__init__.py").is_file():  # it may import `from .neighbour`
        root, name = root.parent, f"{root.name}.{name}"
    sys.argv = [script, *arguments]
    sys.path[:0] = [each for each in map(str, (path.parent, root)) if each not in sys.path]
    if root == path.parent:
        runpy.run_path(script, run_name="__main__")
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def _version(name: str) -> str:
    """The version of a package, or "0": the course's package asks for its own, installed or not."""
    try:
        return metadata.distribution(name).version
    except metadata.PackageNotFoundError:
        return "0"


def _lines(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the numbers in what a run returns or logs, each after the names that lead to it."""
    if isinstance(value, np.generic | np.ndarray | Tensor):
        value = value.tolist()
    if isinstance(value, float):
        yield f"{name}: {value:f}"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _lines(each, f"{name} {key}", depth + 1)
    elif isinstance(value, list | tuple):
        for each in value[:1_000]:
            yield from _lines(each, name, depth + 1)
    elif depth < 3 and hasattr(value, "__dict__") and not isinstance(value, nn.Module | type):
        results = re.compile("loss|history|log|record|metric|val|result", re.I)
        kept = {key: each for key, each in vars(value).items() if results.search(key)}
        yield from _lines(kept, name, depth + 1)


def _are_ids(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 2 and value.dtype in ID_TYPES


def _is_3d(value: Any) -> bool:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()


def _layers(names: list[str]) -> int:
    """How many blocks a model has, by the names of its parameters; 0 if they do not show it."""
    # A name that every block contains occurs once per block.
    without = (re.subn(r"(^|\.)\d+\.", ".", name, count=1) for name in names)
    numbered = Counter(name for name, found in without if found)
    return Counter(numbered.values()).most_common(1)[0][0] if numbered else 0
