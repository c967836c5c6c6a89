"""What runs need of this machine before they can begin: texts, room on the disk, and memory.

Nothing is made, downloaded or written here: it is looked at what there is, and reckoned what there
has to be.
"""

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from workbook import accounting
from workbook import config as settings
from workbook.config import TrainConfig
from workbook.corpora import corpora
from workbook.corpora.download import UNPACKED
from workbook.tokenization import token_files
from workbook.training import devices

FLOAT = 4  # bytes
STATES = 3  # numbers that a checkpoint has for each parameter: itself, and AdamW's two moments
LINE = 300  # bytes of the log, about
PROCESS = 500_000_000  # bytes that Python and torch take for themselves, about
# Bytes of each score that attention keeps in half precision where no kernel spares them: a weight
# in float32, and once more as it meets the values.
SCORE = 6


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: whether it is as it has to be, and what to do if not."""

    about: str  # corpora, disk, memory or hours
    text: str
    todo: str = ""  # empty where all is ready

    @property
    def ready(self) -> bool:
        """Whether nothing is left to do."""
        return not self.todo


@dataclass(frozen=True)
class Text:
    """A corpus as a run wants it: of this size, in ids of this many kinds."""

    name: str
    size: int | None  # bytes of the train split, where any will do
    vocab_size: int

    @property
    def missing(self) -> list[str]:
        """The splits that are not on this disk."""
        return [split for split in corpora.SPLITS if not corpora.is_here(*self.split(split))]

    def split(self, split: str) -> tuple[str, str, int | None]:
        """What `corpora.path` takes for one of its splits."""
        return self.name, split, self.size if split == "train" else None

    @property
    def has_tokenizer(self) -> bool:
        """Whether the tokenizer has been trained."""
        return (self._folder("tokenizers") / "vocab.json").is_file()

    @property
    def has_ids(self) -> bool:
        """Whether both splits have been encoded."""
        if self.missing:
            return False
        stems = [corpora.path(*self.split(split)).stem for split in corpora.SPLITS]
        return all((self._folder("tokens") / f"{stem}.npy").is_file() for stem in stems)

    def _folder(self, kind: str) -> Path:
        return settings.data_folder() / kind / f"{self.name}-{self.vocab_size}"

    @property
    def bytes(self) -> int:
        """The size of both splits as text; about, before they are on this disk."""
        if not self.missing:
            paths = (corpora.path(*self.split(split)) for split in corpora.SPLITS)
            return sum(path.stat().st_size for path in paths)
        corpus = corpora.CORPORA[self.name]
        if corpus.offline:
            usual = corpus.sizes
            return (self.size or usual.get("train", 0)) + usual.get("validation", 0)
        return round(corpora.parse_size(corpus.volume) * (UNPACKED if self.packed else 1))

    @property
    def packed(self) -> bool:
        """Whether it is downloaded in a packed form, which lies beside the text for a while."""
        files = corpora.CORPORA[self.name].files.values()
        return any(file.name.endswith(".gz") for file in files)

    @property
    def bytes_to_come(self) -> int:
        """What will be written before the first step: text, and ids of two bytes, four to a word.

        Ids take half as much as the text, and for a moment twice that: shards, and all in a row.
        """
        found = 0 if self.has_ids else self.bytes
        if self.missing:
            volume = corpora.CORPORA[self.name].volume
            found += self.bytes + (corpora.parse_size(volume) if self.packed else 0)
        return found


def texts(configs: Iterable[TrainConfig]) -> list[Text]:
    """The texts that these runs read, each once."""
    wanted = (Text(c.corpus, c.corpus_bytes, c.model.vocab_size) for c in configs)
    return list(dict.fromkeys(wanted))


def look_at_text(text: Text) -> Finding:
    """Whether a corpus is here, or can be made here when it is asked for.

    Raises: ValueError for a name that no corpus has.
    """
    missing, name = text.missing, text.name
    usual = token_files.DEFAULTS[name][1]
    if text.vocab_size != usual:
        return Finding(
            "corpora",
            f"the tokenizer of {name} has {usual:,} ids, the model vocab_size={text.vocab_size:,}",
            f"give the model vocab_size={usual}",
        )
    corpus = corpora.CORPORA[name]
    if missing and not corpus.offline:
        return Finding(
            "corpora",
            f"{name}: no {' and no '.join(missing)} text on this disk",
            f"`workbook data get {name}` downloads {corpus.volume}",
        )
    first = ["its text is made"] * bool(missing)
    first += [f"a tokenizer of {usual:,} ids is trained"] * (not text.has_tokenizer)
    first += ["its ids are written"] * (not text.has_ids)
    if first:
        size = f" --size {text.size}" if text.size else ""
        now = f"`workbook data tokenize {name}{size}` does so now, on all cores"
        return Finding("corpora", f"{name}: first {', then '.join(first)}; {now}")
    return Finding("corpora", f"{name}: text, tokenizer and ids are on this disk")


def look_at_disk(configs: Sequence[TrainConfig], workers: int = 1) -> Finding:
    """Whether the checkpoints, logs, texts and ids of all these runs find room in the data folder.

    A checkpoint is written whole before an old one is removed: so each worker needs one more.
    """
    each = [checkpoint_bytes(config) for config in configs]
    kept = sum(size * checkpoints(config) for size, config in zip(each, configs, strict=True))
    needed = {
        "checkpoints": kept + workers * max(each, default=0),
        "texts and ids": sum(text.bytes_to_come for text in texts(configs)),
        "logs": sum(2 * LINE * lines(config) for config in configs),  # of the run, and its record
    }
    folder = settings.data_folder().absolute()
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    free, total = shutil.disk_usage(there).free, sum(needed.values())
    parts = ", ".join(f"{name} {in_gb(size)}" for name, size in needed.items())
    return Finding(
        "disk",
        f"{in_gb(total)} needed ({parts}), {in_gb(free)} free in {folder}",
        "" if total <= free else "make room, or set WORKBOOK_DATA to a folder on a larger disk",
    )


def checkpoint_bytes(config: TrainConfig) -> int:
    """The bytes of one checkpoint: weights, and two numbers of the optimizer for each."""
    return STATES * FLOAT * accounting.parameters(config.model).total


def checkpoints(config: TrainConfig) -> int:
    """How many checkpoints a run leaves behind."""
    return min(config.keep_checkpoints, math.ceil(config.steps / config.checkpoint_every))


def lines(config: TrainConfig) -> int:
    """How many lines the log of a run has, about."""
    return config.steps // config.log_every + config.steps // config.eval_every + 1


def look_at_memory(configs: Sequence[TrainConfig], workers: int = 1) -> list[Finding]:
    """Whether a step of each of these runs finds room in memory beside those of other workers."""
    device = devices.pick_device(configs[0].device)
    room = free_memory(device)
    where = f"{in_gb(room)} free on {device}"
    if workers > 1:
        where += f", for {workers} workers"
    largest = max(configs, key=memory_bytes)
    found = [
        Finding(
            "memory",
            f"{step_name(config)} needs {in_gb(memory_bytes(config))}; {where}",
            what_would_fit(config, room, workers),
        )
        for config in {step_name(config): config for config in configs}.values()
        if workers * memory_bytes(config) > room
    ]
    fits = f"a step needs {in_gb(memory_bytes(largest))} at most ({step_name(largest)}); {where}"
    return found or [Finding("memory", fits)]


def memory_bytes(config: TrainConfig, accumulation: int | None = None) -> int:
    """The bytes of a process that takes steps of this config: an upper bound in half precision.

    The accounting is that of float32 and of the kernel that keeps no scores. A CPU in half
    precision computes attention without it (`fused.causal_attention`), and so does an Apple GPU.
    """
    sequences = math.ceil(config.batch_size / (accumulation or config.accumulation))
    model = config.model
    needed = accounting.peak_bytes(model, sequences).total + PROCESS
    device = devices.pick_device(config.device)
    half = devices.pick_precision(device, config.precision) != torch.float32
    if model.kernels == "fused" and (device.type == "mps" or (device.type == "cpu" and half)):
        scores = sequences * model.num_heads * model.context_length**2
        needed += SCORE * scores * model.num_layers
    return needed


def free_memory(device: torch.device) -> int:
    """The bytes that are free on a GPU of NVIDIA's or AMD's; elsewhere, those of the machine."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def what_would_fit(config: TrainConfig, room: int, workers: int) -> str:
    """What to change so that a step finds room."""
    if memory_bytes(config) <= room:
        return f"take --workers {room // memory_bytes(config)}"
    parts = [
        n for n in range(config.accumulation, config.batch_size + 1) if config.batch_size % n == 0
    ]
    for accumulation in parts:
        if workers * memory_bytes(config, accumulation) <= room:
            return (
                f"compute a batch of {config.batch_size} with accumulation={accumulation}:"
                f" `--accumulation {accumulation}` of `workbook train`; or do without it, in"
                " `batch_sizes` of workbook/experiments/studies.py"
            )
    return "take a machine with more memory: not even one sequence fits"


def step_name(config: TrainConfig) -> str:
    """What decides how much a step costs, in words: "tinystories, batch 128"."""
    words = f"{config.corpus}, batch {config.batch_size}"
    return words if config.accumulation == 1 else f"{words} in {config.accumulation} parts"


def in_gb(size: float) -> str:
    """Bytes as GB, to a tenth: "2.3 GB"."""
    return f"{size / 1e9:,.1f} GB"
