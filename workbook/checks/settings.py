"""The settings of a training run, by whatever name a learner's script or function has for them.

`value` says what an option such as `--max-iters` or a parameter such as `ckpt_dir` is given;
`arguments` fills the signature of a function, `options` the command line of a parser.
"""

import inspect
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

from workbook.checks.calling import SYNONYMS, meaning, signature_of

LEAVE = object()  # stands for "its default will do"

_DATA = (
    "(?:set|data|dataset|file|filename|path|paths|tokens?|ids|tokenids|bin|npy|mm|memmap|mmap|arr"
    "|array|np|split|src|source|input|corpus|tokenized|encoded|x)"
)
_EVERY = (
    "(?:interval|every|everyn|every(?:n)?steps|everyiters|freq|frequency|steps?|period|iters?|n)"
)
_STEPS = "(?:steps?|iters?|iterations?|updates|optimizersteps)"
_SAVING = "(?:save|saving|checkpoint|ckpt|chkpt|checkpointing|snapshot|model|modelsave)"
# What the names mean, in lower case without _ and -, in this order.
_NAMES = {
    "resume": "resume.*|(?:load|restore|continue|start|init|restart)(?:from|path|checkpoint|ckpt"
    "|training|run).*|load|(?:from|fromthe)(?:checkpoint|ckpt).*|restore|pretrained(?:path|ckpt)?"
    "|(?:checkpoint|ckpt)to(?:load|resume).*|.*(?:load|resume)(?:path|file|ckpt|checkpoint)",
    "eval_every": f"(?:eval|evaluation|evaluate|val|valid|validation|validate)(?:loss)?{_EVERY}"
    f"|(?:eval|val|valid|validation)(?:num)?batches|n(?:um)?(?:eval|val|valid|validation)"
    f"(?:batches|{_STEPS})|{_STEPS}(?:per|between)(?:eval|val|validation)|everyeval",
    "save_every": f"{_SAVING}{_EVERY}|{_STEPS}(?:per|between)(?:save|checkpoint)",
    "log_every": f"(?:log|logging|print|report|train(?:ing)?log|trainloss|wandblog){_EVERY}",
    "epochs": "(?:n|num|max|total|train)?epochs?",
    "steps": f"(?:n|num|max|total|totaltrain|maxtrain|numtrain|nummax|train|training|maxnum|number"
    f"|numberof|totalnum|numtraining|totaltraining)*{_STEPS}(?:total|max|count|num)?",
    "tokens": "(?:max|total|train|training|num|n)*tokens(?:processed|toprocess|total|budget)"
    "|(?:max|total|totaltrain|totaltraining|training|numtrain)tokens|tokenbudget",
    "batch_size": "(?:train|training|eval|val|valid|validation|micro|mini|device|global|total)?"
    "(?:batch|minibatch)(?:size|sz|sizetrain)?|bs",
    "warmup_iters": "(?:lr|num|n)?warmup(?:steps|iters|iterations|t|it|n)?|(?:twarmup|tw|warmit)",
    "cosine_cycle_iters": "(?:lr)?(?:cosine|cos|anneal|annealing|decay|cosineannealing|lrdecay)"
    f"(?:cycle)?(?:{_STEPS}|t|length)|cosineend|(?:lr)?tc|tmax|tcosine|cyclesteps|cosinecycle(?:t|it|steps)?",
    "min_learning_rate": "min(?:imum)?(?:lr|learningrate|rate)|(?:lr|learningrate|alpha|eta|a)min"
    "|(?:final|end)(?:lr|learningrate)",
    "max_learning_rate": "(?:max|maximum|peak|base|init|initial|start)?(?:lr|learningrate)"
    "(?:max|peak)?|(?:alpha|eta|a)max|alpha|stepsize",
    "max_l2_norm": "(?:max)?(?:grad|gradient|gradients|l2|l2grad|gradl2)?(?:clip|clipping|norm)"
    "(?:norm|value|max|grad|gradnorm|maxnorm|threshold|l2norm)?|maxl2norm|maxgradl2norm|clipgrad"
    "(?:norm)?|gradclipnorm",
    "valid_data": f"(?:x|path|data|dataset|tokens|ids|file|input)?(?:to|of)?"
    f"(?:val|valid|validation|dev|eval|test)(?:ing)?{_DATA}*",
    "train_data": f"(?:x|path|data|dataset|tokens|ids|file|input)?(?:to|of)?(?:train|training)"
    f"{_DATA}+|(?:x|data|dataset|tokens|ids|pathto)train(?:ing)?|{_DATA}+|train",
    "data_folder": "(?:train|input|token|tokens|tokenized|dataset|data)?(?:data|dataset|input|bin)?"
    "s?(?:dir|folder|directory|root)",
    "checkpoint": "(?:save|out|output|checkpoint|ckpt|chkpt|model|run|results?|work|exp|experiment"
    "|snapshot|serialization|artifacts?|weights)+s?(?:save|out|output)?(?:dir|directory|folder|root"
    "|path|file|filename|to|location|prefix)|(?:save|out|output|checkpoint|ckpt)s?"
    "|(?:save|output)(?:checkpoint|model|ckpt)s?",
}
NAMES = {meant: re.compile(pattern) for meant, pattern in _NAMES.items()}
SIZES = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff", "rope_theta")
# Given only where there is no default.
USUAL = {
    "weight_decay": 0.01, "betas": (0.9, 0.95), "beta1": 0.9, "beta2": 0.95, "eps": 1e-8,
    "max_l2_norm": 1.0, "seed": 0, "dtype": "float32", "dropout": 0.0, "rope_theta": 10_000.0,
    "verbose": False, "compile": False, "use_wandb": False, "num_workers": 0,
}  # fmt: skip
NAMED = re.compile(
    "(?:wandb|run|exp|experiment|project|model|job)?(?:wandb)?(?:name|project|entity|group|tags?"
    "|runname|id|runid|projectname)"
)
RAW = re.compile(r"\.(bin|dat|mmap|memmap|raw)\b|memmap|_bin\b|\bbinary", re.I)
CONFIGS = re.compile(
    "(?:train(?:ing)?|model|run|base|exp)?"
    "(?:config|cfg|args|settings|hparams|hyperparameters|options|opt|conf)s?"
)
SECTIONS = re.compile(
    "(?:config|cfg|model|lm|transformer|train|training|trainer|data|dataset|optim|optimizer"
    "|schedule|scheduler|lr|lrschedule|logging|log|checkpoint|checkpointing|ckpt|hyperparams|hparams|eval|evaluation|run"
    "|paths|io|loop)(?:config|cfg|params|args)?"
)


class Unmet(BaseException):
    """It needs something without a default that no setting means; its name is the message."""


@dataclass
class Settings:
    """What a run is asked to do. Paths are texts, so that it can go to another process."""

    folder: str  # holds the data, and the checkpoints
    steps: int
    raw: bool | None = None  # data as bare numbers (.bin) or as .npy; None: as its names suggest
    stop_at: int | None = None  # the step after which the run is interrupted
    resume: str | None = None  # the checkpoint to go on from
    arrays: bool = False  # data as arrays, where a name does not say that it means a path
    vocab_size: int = 61
    context_length: int = 16
    d_model: int = 32
    num_layers: int = 2
    num_heads: int = 4
    d_ff: int = 64
    batch_size: int = 8
    asked: dict[str, str] = field(default_factory=dict)  # by meaning: the learner's name

    def value(
        self,
        name: str,
        *,
        default: Any = None,
        required: bool = False,
        kind: Any = None,
        choices: Any = None,
    ) -> Any:
        """What a setting of this name is given; LEAVE: nothing.

        Args:
            default: that it has.
            required: whether it has none.
            kind: its type, or the text of an annotation.
            choices: the only values that it takes.

        Raises: Unmet where it is required and means nothing here.
        """
        plain = _plain(name)
        if "dtype" in plain and re.search(r"int\d+$", str(default)):
            return "uint16"  # of the ids
        is_switch = isinstance(default, bool) or kind in (bool, "bool")
        meant = self.meant_by(name)
        if is_switch and meant != "resume":
            return False if required else LEAVE
        found = self._found(meant, name, default, kind, choices)
        if choices and found is not LEAVE and found not in choices:
            found = LEAVE
        if found is not LEAVE:
            self.asked.setdefault(meant, name)
            return found
        if not required:
            return LEAVE
        usual = next((USUAL[each] for each in USUAL if plain == each.replace("_", "")), LEAVE)
        usual = USUAL.get(meant, usual)
        if usual is LEAVE and meant == "resume":
            usual = None
        if usual is LEAVE and NAMED.fullmatch(plain):
            usual = "check"
        if choices and usual not in choices:
            usual = next(iter(choices))
        if usual is LEAVE:
            raise Unmet(name)
        return usual

    def meant_by(self, name: str) -> str:
        """What a name means; "" for nothing known."""
        plain = _plain(name)
        if plain in ("device", "dev"):
            return "device"
        if found := meaning(plain, SIZES):
            return found
        if found := next((each for each in NAMES if NAMES[each].fullmatch(plain)), ""):
            return found
        others = ("weight_decay", "betas", *SIZES)
        return next((each for each in others if plain in SYNONYMS.get(each, ())), "")

    def _found(self, meant: str, name: str, default: Any, kind: Any, choices: Any) -> Any:
        if meant in ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff"):
            return getattr(self, meant)
        match meant:
            case "steps" | "epochs" | "cosine_cycle_iters":
                return self.steps
            case "tokens":
                return self.steps * self.batch_size * self.context_length
            case "batch_size":
                return self.batch_size
            case "warmup_iters":
                return 2
            case "max_learning_rate":
                return 1e-2
            case "min_learning_rate":
                return 1e-3
            case "log_every":
                return 1
            case "eval_every":
                return 5
            case "save_every":
                return 10
            case "device":
                return "cpu"
            case "train_data" if _is_a_name(default):
                return LEAVE
            case "train_data" | "valid_data":
                return self._data(meant.partition("_")[0], name, kind)
            case "data_folder":
                return str(Path(self.folder, "data"))
            case "checkpoint":
                return self._checkpoint(name, default)
            case "resume":
                return self._resume(name, default, kind, choices)
        return LEAVE

    def look_at(self, words: str) -> None:
        """Take from what is said of all settings in what form the data are read."""
        if self.raw is None and (RAW.search(words) or ".npy" in words):
            self.raw = ".npy" not in words

    def _data(self, split: str, name: str, kind: Any) -> Any:
        annotated = getattr(kind, "__name__", str(kind))
        is_array = re.search("array|tensor", annotated, re.I)
        says_path = re.search("path|file|dir|bin|npy", name, re.I) or kind in (str, Path)
        if is_array or (self.arrays and not says_path):
            import numpy as np

            self.asked["arrays"] = name
            return np.load(Path(self.folder, "data", f"{split}.npy"), mmap_mode="r")
        return str(Path(self.folder, "data", split + (".bin" if self.raw else ".npy")))

    def _checkpoint(self, name: str, default: Any) -> str:
        text = str(default) if isinstance(default, str | Path) else ""
        is_folder = re.search("dir|folder|root|checkpoints|ckpts", name, re.I)
        if is_folder or (text and not Path(text).suffix):
            return str(Path(self.folder, "checkpoints"))
        # Not there yet, so it may be made as a folder as well.
        return str(Path(self.folder, "checkpoints", "run.pt"))

    def _resume(self, name: str, default: Any, kind: Any, choices: Any) -> Any:
        self.asked["resume"] = name
        words = [each for each in choices or () if re.search("resume|latest|auto|last", str(each))]
        if self.resume is None:
            return LEAVE
        if words:
            return words[0]
        if default in ("scratch", "new"):  # as the others of its words are called
            return "resume" if default == "scratch" else "latest"
        if isinstance(default, bool) or kind in (bool, "bool"):
            return True
        if re.search("step|iter", name, re.I):
            return LEAVE
        is_folder = re.search("dir|folder", name, re.I)
        return str(Path(self.resume).parent) if is_folder else self.resume

    # --- A function

    def arguments(self, function: Callable, extras: Mapping[str, Callable] | None = None) -> dict:
        """Values for the parameters of a function, by its own names. Raises: Unmet.

        Args:
            extras: what makes a value, by the name of a parameter that has no default.
        """
        given: dict[str, Any] = {}
        for each in signature_of(function) or ():
            if each.kind is each.VAR_POSITIONAL:
                continue
            if each.kind is each.VAR_KEYWORD:
                before, names = set(self.asked), self.documented()
                given |= {n: v for n, v in names.items() if self.meant_by(n) not in before}
                continue
            required = each.default is each.empty
            if (config := self._config(each)) is not LEAVE:
                given[each.name] = config
            elif required and each.name.lower() in (extras or {}):
                self.asked["model"] = each.name
                given[each.name] = extras[each.name.lower()]()
            else:
                default = None if required else each.default
                kind = None if each.annotation is each.empty else each.annotation
                found = self.value(each.name, default=default, required=required, kind=kind)
                if found is not LEAVE:
                    given[each.name] = found
        return given

    def _config(self, parameter: inspect.Parameter) -> Any:
        """All settings as one object, where the parameter takes such a one; else LEAVE."""
        kind, plain = parameter.annotation, re.sub("[^a-z]", "", parameter.name.lower())
        if inspect.isclass(kind) and (is_dataclass(kind) or hasattr(kind, "model_fields")):
            return kind(**self.arguments(kind))
        is_config = CONFIGS.fullmatch(plain)
        is_named = is_config or (SECTIONS.fullmatch(plain) and isinstance(parameter.default, dict))
        no_object = kind in (parameter.empty, Any) or "dict" in str(kind) or "Names" in str(kind)
        is_bare = parameter.default in (parameter.empty, None) or isinstance(
            parameter.default, dict
        )
        return Answers(self) if is_named and no_object and is_bare else LEAVE

    def documented(self) -> dict[str, Any]:
        """All settings by the names that the problem documents."""
        names = (
            *("train_path", "valid_path", "checkpoint_path", "resume", "steps", "batch_size"),
            *(*SIZES[:-1], "max_learning_rate", "min_learning_rate", "warmup_iters"),
            *("cosine_cycle_iters", "log_every", "eval_every", "save_every", "device"),
        )
        found = {name: self.value(name) for name in names}
        found["resume"] = None if found["resume"] is LEAVE else found["resume"]
        return found

    # --- A command line

    def options(self, parser: Any) -> Iterator[str]:
        """Yield the command line that a parser of argparse asks for. Raises: Unmet."""
        self.look_at(" ".join(f"{a.dest} {a.default} {a.help}" for a in parser._actions))
        for each in parser._actions:
            if type(each).__name__ in ("_HelpAction", "_VersionAction"):
                continue
            flag = each.nargs == 0
            dashed = each.option_strings
            found = self.value(
                each.dest if not dashed else max(dashed, key=len).lstrip("-").replace("-", "_"),
                default=False if flag or isinstance(each.default, bool) else each.default,
                required=each.required and not flag,
                kind=bool if flag else each.type,
                choices=None if flag else each.choices,
            )
            if found is LEAVE or (flag and found is not True):
                continue
            if dashed:
                yield max(dashed, key=len)
            if not flag:
                yield from map(str, found if isinstance(found, tuple) else [found])

    def click_options(self, parameters: list[Any]) -> Iterator[str]:
        """Yield the command line that a command of click asks for. Raises: Unmet."""
        self.look_at(" ".join(f"{a.name} {a.default} {vars(a).get('help')}" for a in parameters))
        for each in parameters:
            flag = getattr(each, "is_flag", False)
            default = False if flag else each.default
            default = None if type(default).__name__ == "Sentinel" else default
            found = self.value(
                each.name,
                default=default,
                required=each.required,
                kind=bool if flag else None,
                choices=getattr(getattr(each, "type", None), "choices", None),
            )
            if found is LEAVE or (flag and found is not True):
                continue
            if each.param_type_name == "option":
                yield max(each.opts, key=len)
            if not flag:
                yield from map(str, found if isinstance(found, tuple) else [found])


class Answers(dict):
    """A config that answers by any usual name, by key and by attribute, in sections as well."""

    def __init__(self, settings: Settings):
        super().__init__(settings.documented())
        self.__dict__["_settings"] = settings

    def __missing__(self, name: Any) -> Any:
        settings, is_section = self.__dict__["_settings"], SECTIONS.fullmatch(_plain(name))
        if is_section and not settings.meant_by(str(name)):
            return self
        try:
            found = settings.value(str(name), required=True)
            is_place = isinstance(found, str) and found.startswith(settings.folder)
            return _Both(found, self) if is_place else found
        except Unmet:
            raise KeyError(f"the settings of the check have no {name}") from None

    def __reduce__(self):
        return OrderedDict, ([*self.items()],)  # in a checkpoint, torch loads nothing of ours

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def get(self, name: Any, default: Any = None) -> Any:
        """The value of a setting; the default for one that is not known, or has none."""
        if name in self:
            return default if self[name] is None else self[name]
        if not self.__dict__["_settings"].meant_by(str(name)):
            return self if SECTIONS.fullmatch(_plain(name)) and default == {} else default
        found = self.__dict__["_settings"].value(str(name), default=default)
        return default if found is LEAVE else found


class _Both(str):
    """A text that is a section of a config too: "data" may be a path, or hold those of splits."""

    def __new__(cls, text: str, answers: Answers):
        made = super().__new__(cls, text)
        made.answers = answers
        return made

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if re.fullmatch("path|file|filename|src|source", key):
            return str(self)
        if re.fullmatch("dir|directory|folder|root", key):
            return str(Path(self).parent)
        return self.answers[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "answers":
            raise AttributeError(name)
        return getattr(self.answers, name)

    def get(self, name: str, default: Any = None) -> Any:
        return self.answers.get(name, default)


def _is_a_name(default: Any) -> bool:
    """Whether a default says which data set, such as "owt", and not where it is."""
    return isinstance(default, str) and default != "" and not re.search(r"[./\\]", default)


def _plain(name: Any) -> str:
    return re.sub("[^a-z0-9]", "", str(name).rpartition(".")[2].lower())
