"""The switches of the workbook (profile, edition, precision), its folders, models and runs.

Only this module reads the switches from the environment; other code calls it or takes arguments.
"""

import json
import math
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import platformdirs

Edition = Literal["2025", "2026"]
Choice = TypeVar("Choice", bound=str)
# On any system; a name is followed by a hash, and 255 bytes is what most file systems take.
FOLDER_NAME = re.compile(r'[^\x00-\x1f/\\:*?"<>|]+')


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a Transformer language model, and what an ablation changes about it."""

    vocab_size: int  # tokens of the tokenizer
    context_length: int  # tokens that it sees at most
    d_model: int  # width of the residual stream
    num_layers: int  # blocks
    num_heads: int  # per block, each d_model / num_heads wide
    d_ff: int  # inner width of the feed-forward layer
    rope_theta: float = 10_000.0  # the base of the angles that RoPE turns by
    norm: Literal["pre", "post", "none", "final"] = "pre"  # where; "final": only before the head
    position: Literal["rope", "none"] = "rope"  # how a block knows positions
    ffn: Literal["swiglu", "silu"] = "swiglu"  # three matrices with a gate, or two
    tie_embeddings: bool = False  # one matrix for the embedding and the head
    kernels: Literal["fused", "textbook"] = "fused"  # the same values: torch's, or written out

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.rope_theta > 0:
            raise ValueError(f"rope_theta={self.rope_theta!r} is not positive; 10,000 is usual")
        check_heads(self.d_model, self.num_heads, rope=self.position == "rope")

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.num_heads

    @property
    def norms(self) -> tuple[str, ...]:
        """The norms that it has: two in each block, and one before the head."""
        fewer: dict[str, tuple[str, ...]] = {"none": (), "final": ("ln_final",)}
        return fewer.get(self.norm, ("ln1", "ln2", "ln_final"))


def as_python(value: Any) -> Any:
    """A number of NumPy's, or a tensor of one number, as Python's own; so are those of a pair.

    Anything else comes back as it is; a list of numbers becomes a tuple.
    """
    if isinstance(value, tuple | list):
        return tuple(map(as_python, value))
    return value.item() if getattr(value, "shape", None) == () else value


def check_fields(config: Any) -> None:
    """Raise ValueError unless ints are in range, texts are texts, and each `Literal` is a choice.

    Ints count something, so they are positive; a seed may be 0, and torch reads it in 64 bits.
    Numbers of NumPy's become Python's, which JSON can hold.
    """
    for field in fields(config):
        value = as_python(getattr(config, field.name))
        object.__setattr__(config, field.name, value)
        kinds = get_args(field.type) or (field.type,)
        if value is None and type(None) in kinds:
            continue
        if field.name == "seed":
            if type(value) is not int or not 0 <= value < 2**63:
                raise ValueError(f"seed={value!r} is not a whole number from 0 to 2**63 - 1")
        elif int in kinds and (type(value) is not int or value < 1):
            raise ValueError(f"{field.name}={value!r} is not a positive whole number")
        if field.type is str and not isinstance(value, str):
            raise ValueError(f"{field.name}={value!r} is not a text")
        if get_origin(field.type) is Literal and value not in get_args(field.type):
            known = ", ".join(map(repr, get_args(field.type)))
            raise ValueError(f"{field.name}={value!r} is not one of {known}")


def check_heads(d_model: int, num_heads: int, *, rope: bool) -> None:
    """Raise ValueError unless the heads share d_model evenly, for RoPE in pairs of values."""
    if d_model % num_heads:
        lower = d_model // num_heads * num_heads
        near = " or ".join(f"{width:,}" for width in (lower, lower + num_heads) if width)
        raise ValueError(
            f"d_model={d_model} is not a multiple of num_heads={num_heads}; try {near}"
        )
    if rope and d_model // num_heads % 2:
        raise ValueError(
            f"d_model={d_model} gives each of {num_heads} heads {d_model // num_heads} values, and"
            f" RoPE rotates them in pairs; try d_model={d_model + num_heads}"
        )


GPT2_SHAPES = {  # num_layers, d_model, num_heads
    "small": (12, 768, 12),
    "medium": (24, 1_024, 16),
    "large": (36, 1_280, 20),
    "xl": (48, 1_600, 25),
}


def gpt2(size: str, edition: Edition, context_length: int = 1_024) -> ModelConfig:
    """The course's model in the shape of a GPT-2: "small", "medium", "large" or "xl".

    The handouts give d_ff for "xl" alone; the rule behind it is applied to the others too.
    """
    if size not in GPT2_SHAPES:
        raise ValueError(f"size {size!r} is not one of {', '.join(GPT2_SHAPES)}")
    num_layers, d_model, num_heads = GPT2_SHAPES[size]
    d_ff = {"2025": 4 * d_model, "2026": near_eight_thirds(d_model)}[edition]
    return ModelConfig(
        vocab_size=50_257,
        context_length=context_length,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        d_ff=d_ff,
    )


def near_eight_thirds(d_model: int) -> int:
    """The multiple of 64 nearest to 8/3 d_model: SwiGLU then costs what two matrices of 4 d do.

    >>> near_eight_thirds(512)
    1344
    """
    return max(round(8 / 3 * d_model / 64), 1) * 64


def tinystories() -> ModelConfig:
    """The model that the course trains on TinyStories."""
    return ModelConfig(
        vocab_size=10_000,
        context_length=256,
        d_model=512,
        num_layers=4,
        num_heads=16,
        d_ff=near_eight_thirds(512),
    )


def laptop() -> ModelConfig:
    """A smaller model of the same kind, which two cores train in about a minute."""
    return ModelConfig(
        vocab_size=2_048,
        context_length=128,
        d_model=128,
        num_layers=4,
        num_heads=4,
        d_ff=384,
    )


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """AdamW, its learning rate from step to step, and the limit for gradients."""

    max_learning_rate: float = 1e-3  # reached at the end of the warm-up
    min_learning_rate: float = 1e-4  # from the end of the cosine on
    warmup_iters: int = 1  # steps until the learning rate is at its largest
    cosine_cycle_iters: int | None = None  # the step at which the cosine ends; None: the last
    betas: tuple[float, float] = (0.9, 0.95)  # how slowly the two moments forget
    eps: float = 1e-8  # added to the root of the second moment
    weight_decay: float = 0.1  # times the learning rate: the share that a step takes off
    decay: Literal["before", "after"] = "before"  # the weights decay before or after the update
    max_l2_norm: float = 1.0  # of all gradients together; inf: no limit
    update: Literal["fused", "textbook", "muon"] = "fused"  # torch's AdamW, ours, or our Muon

    def __post_init__(self) -> None:
        object.__setattr__(self, "betas", tuple(self.betas))  # a list when it comes from JSON
        check_fields(self)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(
                f"betas={self.betas!r} are not two numbers, each at least 0 and below 1"
            )
        for name in ("eps", "weight_decay"):
            if not 0 <= getattr(self, name) < math.inf:
                value = getattr(self, name)
                raise ValueError(f"{name}={value!r} is not a finite number of at least 0")
        if not self.max_l2_norm > 0:
            raise ValueError(f"max_l2_norm={self.max_l2_norm!r} is not positive; inf: no limit")
        if not 0 <= self.min_learning_rate <= self.max_learning_rate < math.inf:
            raise ValueError(
                "expected 0 <= min_learning_rate <= max_learning_rate < inf, got"
                f" {self.min_learning_rate!r} and {self.max_learning_rate!r}; lower the minimum or"
                " raise the maximum (on the command line --min-learning-rate and"
                " --max-learning-rate)"
            )
        if self.update != "textbook" and self.decay == "after":
            raise ValueError(
                f"update={self.update!r} decays the weights before the update; choose"
                " decay='before', or update='textbook'"
            )


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """All settings that decide how a training run goes; `name` is a label for people."""

    name: str  # a label
    model: ModelConfig
    optimizer: OptimizerConfig
    corpus: str = "stories"  # or docstrings, tinystories, owt
    corpus_bytes: int | None = None  # of the train split, if it can have any size; None: the usual
    steps: int  # updates of the weights
    batch_size: int  # sequences per step, over all processes
    accumulation: int = 1  # parts that a batch is computed in: less memory, the same gradients
    seed: int = 336  # of the first weights and of the order of the data
    device: Literal["auto", "cuda", "mps", "cpu"] = "auto"  # auto: the fastest
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of the matmuls
    compile: bool = False  # by torch.compile: pays for itself after some minutes
    max_seconds: float | None = None  # for all sessions; the learning rate then follows the clock
    divergence: float = 1.0  # nats that the loss may climb back up before the run is given up
    log_every: int = 10  # steps between two lines of the log
    eval_every: int = 100  # steps between two evaluations
    eval_tokens: int = 100_000  # of the validation split, the same ones each time
    checkpoint_every: int = 100  # steps between two checkpoints
    keep_checkpoints: int = 2  # the last ones; older ones are removed

    def __post_init__(self) -> None:
        check_fields(self)
        if not FOLDER_NAME.fullmatch(self.name) or len(os.fsencode(self.name)) > 180:
            raise ValueError(
                f"name={self.name[:60]!r} cannot begin the name of a folder; give up to 180 bytes"
                ' of letters, digits and signs, but none of / \\ : * ? " < > |'
            )
        if self.batch_size % self.accumulation:
            raise ValueError(
                f"batch_size={self.batch_size} cannot be divided into"
                f" accumulation={self.accumulation} equal parts"
            )
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise ValueError(f"max_seconds={self.max_seconds!r} is not positive; None: no limit")
        if not self.divergence > 0:
            raise ValueError(f"divergence={self.divergence!r} is not positive; inf: never give up")
        if self.optimizer.warmup_iters > self.cosine_cycle_iters:
            raise ValueError(
                f"the warm-up of {self.optimizer.warmup_iters:,} steps is longer than the"
                f" schedule of {self.cosine_cycle_iters:,}; choose a smaller warmup_iters"
            )

    @property
    def cosine_cycle_iters(self) -> int:
        """The step at which the learning rate reaches its minimum."""
        return self.optimizer.cosine_cycle_iters or self.steps

    @property
    def tokens(self) -> int:
        """The number of tokens that the run sees."""
        return self.steps * self.batch_size * self.model.context_length

    @property
    def key(self) -> str:
        """A hash of every setting except those in `SAME_RUN`: the same on any machine."""
        settings = json.dumps(asdict(self) | SAME_RUN, sort_keys=True)
        return sha256(settings.encode()).hexdigest()[:12]


def config_from(settings: dict[str, Any]) -> TrainConfig:
    """The config with these settings by name, as JSON has them. Raises: ValueError."""
    plain_ones = {name: value for name, value in settings.items() if name != "parts"}
    try:
        model = ModelConfig(**settings["model"])
        optimizer = OptimizerConfig(**settings["optimizer"])
        return TrainConfig(**plain_ones | {"model": model, "optimizer": optimizer})
    except (TypeError, LookupError) as error:  # a name that is missing or unknown, another type
        raise ValueError(f"these are not the settings of a run ({error})") from error


# A label, and how the same numbers are computed. A key is hashed with these values in their place.
SAME_RUN = {"name": "", "accumulation": 1, "compile": False}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The sizes of one pass through the workbook; the preset of this name is its training run."""

    name: str
    simple_corpus: str  # plays TinyStories
    web_corpus: str  # plays OpenWebText
    simple_vocab_size: int  # ids, special tokens included
    web_vocab_size: int  # ids, special tokens included
    simple_bytes: int | None  # of the simple corpus, to train tokenizers on; None: all of it
    model: ModelConfig  # that is trained on the simple corpus


LAPTOP = Profile(
    name="laptop",
    simple_corpus="stories",
    web_corpus="docstrings",
    simple_vocab_size=2_048,
    web_vocab_size=8_192,
    simple_bytes=5_000_000,
    model=laptop(),
)
FULL = Profile(
    name="full",
    simple_corpus="tinystories",
    web_corpus="owt",
    simple_vocab_size=10_000,
    web_vocab_size=32_000,
    simple_bytes=None,
    model=tinystories(),
)
PROFILES = {
    profile.name: profile
    for profile in (
        LAPTOP,
        replace(FULL, name="gpu"),
        replace(  # for a machine without a network: the course's model on the laptop's corpora
            LAPTOP,
            name="gpu-offline",
            model=replace(tinystories(), vocab_size=LAPTOP.simple_vocab_size),
        ),
        FULL,
        replace(FULL, name="cpu"),
    )
}
PACKAGE = Path(__file__).resolve().parent
DISTRIBUTION = "cs336-workbook"  # what `pip install` calls this package
EDITIONS: tuple[Edition, ...] = ("2025", "2026")


def _choice(variable: str, choices: Iterable[Choice]) -> Choice:
    """The value of an environment variable, or the first choice if it is unset or empty."""
    by_name = {str(choice): choice for choice in choices}
    value = os.environ.get(variable) or next(iter(by_name))
    if value not in by_name:
        known = ", ".join(by_name)
        raise ValueError(f"{variable}={value!r} is not one of {known}; unset it or pick one")
    return by_name[value]


def profile() -> Profile:
    """The profile that `WORKBOOK_PROFILE` names; `laptop` if it is unset."""
    return PROFILES[_choice("WORKBOOK_PROFILE", PROFILES)]


def edition() -> Edition:
    """The edition of the handout that `WORKBOOK_EDITION` names; `2025` if it is unset."""
    return _choice("WORKBOOK_EDITION", EDITIONS)


def precision() -> str:
    """The precision that `WORKBOOK_PRECISION` forces on runs that leave it open, or "auto"."""
    return _choice("WORKBOOK_PRECISION", ("auto", "float32", "bfloat16"))


def checkout() -> Path | None:
    """The checkout that this package is in; None if it was installed from a wheel."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "notebooks").is_dir() else None


def shipped() -> Path:
    """The folder of what comes with the package and is only read: `notebooks/` and `data/`.

    In a checkout, `data/` also holds what is made; an installed package is never written to.
    """
    return checkout() or PACKAGE / "shipped"


@contextmanager
def temporary_data() -> Iterator[None]:
    """A context in which the data folder is an empty one, which is deleted afterwards."""
    before = os.environ.get("WORKBOOK_DATA")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WORKBOOK_DATA"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["WORKBOOK_DATA"]
            else:
                os.environ["WORKBOOK_DATA"] = before


def data_folder() -> Path:
    """Where corpora, tokenizers and records live.

    It is what `WORKBOOK_DATA` names, else `data/` in the checkout, else the user's data folder,
    such as `~/.local/share/cs336-workbook`.
    """
    if named := os.environ.get("WORKBOOK_DATA"):
        return Path(named)
    root = checkout()
    return root / "data" if root else platformdirs.user_data_path(DISTRIBUTION, appauthor=False)


def study_folder() -> Path:
    """Where the learner works unless they are in a study folder already.

    It is what `WORKBOOK_STUDY` names, else `study/` in the checkout, else `study/` in the working
    directory.
    """
    if named := os.environ.get("WORKBOOK_STUDY"):
        return Path(named).absolute()
    return (checkout() or Path.cwd()) / "study"


def cores() -> int:
    """How many cores this process may use: where the system tells, not all of the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """The machine that this process runs on: its processor, the cores it may use, its system."""
    names = processor_facts("model name") or {platform.processor() or platform.machine()}
    return {
        "processor": min(names),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """The versions of Python and of those of the libraries that are installed."""
    installed = {"python": platform.python_version()}
    for library in libraries:
        with suppress(PackageNotFoundError):
            installed[library] = version(library)
    return installed


def processor_flags() -> set[str]:
    """The processor's features as Linux names them: "avx2", "bf16"; empty on other systems."""
    lines = processor_facts("flags") | processor_facts("Features")  # of x86, and of ARM
    return {flag for line in lines for flag in line.split()}


@cache
def processor_facts(name: str) -> frozenset[str]:
    """The values of a field of /proc/cpuinfo, each once; empty if there is no such field."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:  # not Linux
        return frozenset()
    return frozenset(re.findall(rf"^{name}\s*: (.*)$", text, re.MULTILINE))
