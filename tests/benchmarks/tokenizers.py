"""Training and encoding beside other tokenizer libraries; more cores, and more text.

`python -m benchmarks tokenizer` times the functions in `RIVALS`, each run in a process of its own
that is restricted to one core if the system allows it. Slow ones get only a part of the text.

    cold     the first call in a process, with all that the library loads and makes for it
    warm     the same without that; no tokenizer has seen a word of the text before
    array    from a string in memory to an array of tokens         list     to a list of integers

Those that take strings have the text in memory before the clock starts. We train on the file on
disk, and our time includes reading it.

`python -m benchmarks scaling` times our own engine with one and two workers:

    1 GB, 1 worker     |=================================|
    1 GB, 2 workers    |=================|                      the speed-up
    2 GB, 1 worker     the same peak memory                     nothing grows with the file
"""

import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from functools import partial
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks import measure
from workbook import config
from workbook.bench import measured, own_process, result_of, seconds
from workbook.corpora import corpora
from workbook.corpora.corpora import END_OF_TEXT
from workbook.tokenization import bpe, spans, token_files
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.spans import cut_points
from workbook.tokenization.tokenizer import Tokenizer

PART = 10_000_000  # bytes that the slow ones get of a larger text
SLOW = ("train python", "list python", "list tokenizers")
COLD = ", cold"
ONE_CORE = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
LIBRARIES = ("numba", "numpy", "regex", "rustbpe", "tokenizers", "tiktoken")
PROSE = (".md", ".rst", ".txt", ".html", ".py", ".pyi", ".h")
VOCAB_SIZE, PILE_BYTES = 10_000, 825 * 10**9  # of the bench for more cores


# --- The comparison -----------------------------------------------------------------------------


def run(
    size: int, rounds: int, folder: Path, file: Path | None = None, vocab_size: int | None = None
) -> str:
    """Time all libraries on `file`, or on the two default texts of `size` bytes; return the tables.

    The records are kept in `folder`. `vocab_size` is by default 10,000 for stories and 32,000 for
    other texts.
    """
    if file is None:
        texts = {f"stories-{size / 1e6:g}MB": (corpora.path("stories", size=size), 10_000)}
        texts[f"prose-{size / 1e6:g}MB"] = prose(size), 32_000
    else:
        texts = {file.stem: (file, 32_000)}
    tables = []
    for name, (path, usual) in texts.items():
        record = compare(path, vocab_size or usual, rounds)
        tables.append(measure.keep(folder / f"tokenizer-{name}.json", record, table(record)))
    return "\n\n".join(tables)


def compare(path: Path, vocab_size: int, rounds: int) -> dict:
    """Time all libraries on one text in turns; return the record, with the speed of every run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        vocab, merges = bpe.train_bpe(path, vocab_size, [END_OF_TEXT])
        Tokenizer(vocab, merges).save(folder / "vocab.json", folder / "merges.txt")
        part = first_part(path, folder / "part.txt")
        texts = {key: part if key in SLOW else path for key in RIVALS}
        works = {
            key: partial(run_rival, key, text, vocab_size, folder) for key, text in texts.items()
        }
        took = measure.in_turns(works, rounds, f"bench {path.stem}")
        took = {key: runs for key, runs in took.items() if None not in runs}
        speeds = {}
        for key, runs in took.items():
            if not key.startswith("short"):
                megabytes = texts[key].stat().st_size / 1e6
                speeds[key] = [megabytes / run.warm for run in runs]
                if runs[0].cold:
                    speeds[key + COLD] = [megabytes / run.cold for run in runs]
        return {
            "text": path.name,
            "bytes": path.stat().st_size,
            "part_bytes": part.stat().st_size,
            "from_part": list(SLOW),
            "sha256": sha256(path.read_bytes()).hexdigest(),
            "vocab_size": len(vocab),
            "megabytes_a_second": speeds,
            "seconds_of_a_call": {  # the quickest of each short call
                key: {text: min(run[text] for run in runs) for text in runs[0]}
                for key, runs in took.items()
                if key.startswith("short")
            },
            "machine": measure.machine(LIBRARIES),
        }


def first_part(path: Path, target: Path) -> Path:
    """Copy the first `PART` bytes of a text to `target`, cut between two pre-tokens."""
    with path.open("rb") as file:
        target.write_bytes(file.read(cut_points(path, [END_OF_TEXT], PART)[1]))
    return target


def run_rival(key: str, text: Path, vocab_size: int, folder: Path) -> "Seconds | dict | None":
    """Run one of `RIVALS` in a process of its own; None if its library is not installed."""
    with own_process(hold_to_one_core) as process:
        call = process.submit(RIVALS[key], text, vocab_size, folder)
        try:
            return result_of(call, key)
        except (ModuleNotFoundError, FileNotFoundError):
            return None
        except Exception as error:
            raise ValueError(f"{key} failed on {text}: {error}") from error


def hold_to_one_core() -> None:
    """Keep this process to one core, and libraries that would start threads to one thread."""
    os.environ.update(ONE_CORE)
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])


def table(record: dict) -> str:
    """The figures of a record as text."""
    speeds, calls = record["megabytes_a_second"], record["seconds_of_a_call"]
    sizes = {
        key: record["part_bytes" if key.removesuffix(COLD) in SLOW else "bytes"] / 1e6
        for key in speeds
    }
    shown = measure.table(
        speeds,
        "MB/s",
        baseline=lambda key: f"{key.split()[0]} workbook{COLD if key.endswith(COLD) else ''}",
        columns={key: {"MB": f"{size:,.0f}"} for key, size in sizes.items()},
    )
    microseconds = {
        repr(text if len(text) < 34 else f"{text[:24]}... {len(text)}"): {
            f"{key.removeprefix('short ')}, µs": seconds[text] * 1e6
            for key, seconds in calls.items()
        }
        for text in calls["short workbook"]
    }
    where = measure.place(record, "one core")
    return (
        f"{record['text']}: {record['bytes'] / 1e6:,.1f} MB, a vocabulary of"
        f" {record['vocab_size']:,}, {where}\n\n{shown}\n\n"
        f"One call of encode:\n{measure.as_text(microseconds)}"
    )


def prose(size: int) -> Path:
    """Make a file of technical prose from this Python's packages, unless it is there.

    It has the sources and documents of the standard library and of the installed packages, each
    once, in random order. It differs from machine to machine; the record has its hash.
    """
    target = config.data_folder() / "corpora" / "prose" / f"train-{size / 1e6:g}MB.txt"
    origin = {"corpus": "prose", "size": size, "python": sys.version}
    if not corpora.is_intact(target, origin):
        facts = corpora.write_documents(target, prose_documents(size), size)
        corpora.write_record(target, origin | facts)
    return target


def prose_documents(size: int) -> Iterator[str]:
    """Documents of about `size` bytes together."""
    folders = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    files = sorted({file for folder in folders for file in Path(folder).rglob("*")})
    random.Random(336).shuffle(files)
    seen = set()
    for file in files:
        if file.suffix not in PROSE or not file.is_file() or file.stat().st_size > 400_000:
            continue
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (UnicodeDecodeError, OSError):
            continue
        if text and END_OF_TEXT not in text and hash(text) not in seen:
            seen.add(hash(text))
            yield text
            size -= len(text.encode())
            if size <= 0:
                return


# --- The rivals: each takes a text, the size of the vocabulary, and a folder with the tokenizer --


class Seconds(NamedTuple):
    """How long a run took."""

    warm: float
    cold: float | None = None  # None if the function has nothing to load


def timed(load: Callable, work: Callable) -> Seconds:
    """The seconds of `work(load())`: cold with `load`, which runs for the first time, warm without.

    Loading imports a library and makes what it works with, such as its tokenizer.
    """
    loading = time.perf_counter()
    loaded = load()
    start = time.perf_counter()
    work(loaded)
    end = time.perf_counter()
    return Seconds(end - start, end - loading)


def encoding(folder: Path, encode: Callable[[Tokenizer], object]) -> Seconds:
    """The seconds of encoding with our tokenizer: its first call, and the first of another one."""
    cold = seconds(partial(encode, saved(folder)))
    tokenizer = saved(folder)
    with tokenizer.compiled_encoder():
        pass  # it is made now, and its table empty
    return Seconds(seconds(partial(encode, tokenizer)), cold)


def documents(path: Path) -> list[str]:
    """The documents of a text, in memory."""
    return text_of(path).split(END_OF_TEXT)


def text_of(path: Path) -> str:
    """A text in memory."""
    return path.read_bytes().decode()


def saved(folder: Path) -> Tokenizer:
    """The tokenizer that all of them encode with."""
    return Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt", [END_OF_TEXT])


def train_workbook(path: Path, vocab_size: int, folder: Path) -> Seconds:
    train = partial(bpe.train_bpe, path, vocab_size, [END_OF_TEXT])
    cold = seconds(train)
    return Seconds(seconds(train), cold)


def train_python(path: Path, vocab_size: int, folder: Path) -> Seconds:
    counts = partial(spans.count_pretokens, path, [END_OF_TEXT])
    return Seconds(seconds(lambda: bpe.train_incremental(counts(), vocab_size - 257)))


def train_rustbpe(path: Path, vocab_size: int, folder: Path) -> Seconds:
    texts = documents(path)

    def load():
        import rustbpe

        return rustbpe.Tokenizer()

    return timed(
        load, lambda made: made.train_from_iterator(iter(texts), vocab_size - 1, pattern=PATTERN)
    )


def train_tokenizers(path: Path, vocab_size: int, folder: Path) -> Seconds:
    texts = documents(path)

    def load():
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return tokenizer, trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=[END_OF_TEXT],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )

    return timed(load, lambda made: made[0].train_from_iterator(texts, made[1]))


def file_workbook(path: Path, vocab_size: int, folder: Path) -> Seconds:
    """From a file to an array, as `workbook tokenize` does it."""
    return encoding(folder, lambda tokenizer: tokenizer.encode_file(path))


def array_workbook(path: Path, vocab_size: int, folder: Path) -> Seconds:
    text = text_of(path)
    return encoding(folder, lambda tokenizer: tokenizer.encode_array(text))


def array_tiktoken(path: Path, vocab_size: int, folder: Path) -> Seconds:
    tokenizer, text = saved(folder), text_of(path)
    return timed(
        lambda: tiktoken_of(tokenizer),
        lambda made: made.encode_to_numpy(text, allowed_special="all"),
    )


def list_workbook(path: Path, vocab_size: int, folder: Path) -> Seconds:
    text = text_of(path)
    return encoding(folder, lambda tokenizer: tokenizer.encode(text))


def list_tiktoken(path: Path, vocab_size: int, folder: Path) -> Seconds:
    """The faster of its two best calls: the whole text at once, or its documents one by one."""
    tokenizer, text, texts = saved(folder), text_of(path), documents(path)
    load = partial(tiktoken_of, tokenizer)
    whole = timed(load, lambda made: made.encode(text, allowed_special="all"))
    parts = timed(load, lambda made: made.encode_ordinary_batch(texts, num_threads=1))
    return min(whole, Seconds(parts.warm, whole.cold - whole.warm + parts.warm))


def list_tokenizers(path: Path, vocab_size: int, folder: Path) -> Seconds:
    from workbook.generation.formats import save_tokenizer_json

    save_tokenizer_json(saved(folder), folder / "tokenizer.json")
    texts = documents(path)

    def load():
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(folder / "tokenizer.json"))

    return timed(load, lambda made: [one.ids for one in made.encode_batch_fast(texts)])


def list_python(path: Path, vocab_size: int, folder: Path) -> Seconds:
    tokenizer = saved(folder)
    with path.open(encoding="utf-8", newline="") as file:
        return Seconds(seconds(lambda: list(tokenizer.encode_iterable(file))))


def tiktoken_of(tokenizer: Tokenizer):
    """tiktoken's encoding with the same vocabulary."""
    import tiktoken

    ranks = {token: token_id for token_id, token in tokenizer.vocab.items()}
    special = {END_OF_TEXT: ranks.pop(END_OF_TEXT.encode())}
    return tiktoken.Encoding("same", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def read_bytes(path: Path, vocab_size: int, folder: Path) -> Seconds:
    """Read the bytes, and look at each of them once: what no tokenizer can beat."""
    return Seconds(seconds(lambda: np.fromfile(path, np.uint8).max()))


def read_wc(path: Path, vocab_size: int, folder: Path) -> Seconds:
    """Count words with the system's `wc -w`."""
    command = ["wc", "-w", str(path)]
    return Seconds(seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True)))


SHORT_TEXTS = ("Hi", "Once upon a time there was a fox.", "It's 12 o'clock, isn't it? " * 20)


def short_workbook(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    return short_calls(saved(folder).encode)


def short_tiktoken(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    encode = tiktoken_of(saved(folder)).encode
    return short_calls(lambda text: encode(text, allowed_special="all"))


def short_calls(encode: Callable) -> dict[str, float]:
    """The seconds of one call on each short text, the best of many, its words already seen."""
    return {
        text: min(timeit.repeat(lambda text=text: encode(text), number=200, repeat=50)) / 200
        for text in SHORT_TEXTS
    }


RIVALS = {
    "train workbook": train_workbook,
    "train rustbpe": train_rustbpe,
    "train tokenizers": train_tokenizers,
    "train python": train_python,
    "file workbook": file_workbook,
    "array workbook": array_workbook,
    "array tiktoken": array_tiktoken,
    "list workbook": list_workbook,
    "list tiktoken": list_tiktoken,
    "list tokenizers": list_tokenizers,
    "list python": list_python,
    "read bytes": read_bytes,
    "read wc -w": read_wc,
    "short workbook": short_workbook,
    "short tiktoken": short_tiktoken,
}


# --- More cores, and more text ------------------------------------------------------------------


def run_scaling(size: int, rounds: int, folder: Path) -> str:
    """Time one and two workers on `size` bytes of prose, and measure memory on twice as many.

    Returns the tables; keeps the record in `folder`. The text is a smaller one ten times over, so
    that its words stay the same: this measures the engine, not how many words a language has.
    """
    text = prose(size // 10)
    with tempfile.TemporaryDirectory(dir=config.data_folder()) as temporary:
        once, twice = Path(temporary, "once"), Path(temporary, "twice")
        for path, times in ((once, 10), (twice, 20)):
            with path.open("wb") as file:
                file.writelines(repeat(text.read_bytes(), times))
        works = {str(n): partial(measured, train_and_encode, once, n) for n in (1, 2)}
        by_workers = measure.in_turns(works, rounds, "bench scaling")
        vocab, merges = bpe.train_bpe(once, VOCAB_SIZE, [END_OF_TEXT])
        tokenizer = Tokenizer(vocab, merges, [END_OF_TEXT])
        record = {
            "text": text.name,
            "bytes": once.stat().st_size,
            "seconds": {
                task: {n: [run.result[task] for run in runs] for n, runs in by_workers.items()}
                for task in ("train", "encode")
            },
            "peak_bytes": {  # of a single process that does it alone
                path.name: {
                    "train": measured(bpe.train_bpe, path, VOCAB_SIZE, [END_OF_TEXT]).peak_bytes,
                    "encode": measured(encode_to_file, tokenizer, path).peak_bytes,
                }
                for path in (once, twice)
            },
            "machine": measure.machine(LIBRARIES),
        }
    return measure.keep(folder / "scaling.json", record, scaling_table(record))


def train_and_encode(path: Path, workers: int) -> dict[str, float]:
    """The seconds of training and of encoding to a token file, by workers that have loaded all."""
    with ProcessPoolExecutor(workers) as executor:
        wait([executor.submit(load_compiled) for _ in range(4 * workers)])
        start = time.perf_counter()
        vocab, merges = bpe.train_bpe(path, VOCAB_SIZE, [END_OF_TEXT], executor=executor)
        trained = time.perf_counter()
        encode_to_file(Tokenizer(vocab, merges, [END_OF_TEXT]), path, executor)
        encoded = time.perf_counter()
    return {"train": trained - start, "encode": encoded - trained}


def load_compiled() -> None:
    """Load the compiled engine."""
    from workbook.tokenization import compiled

    compiled.load_kernels()


def encode_to_file(tokenizer: Tokenizer, path: Path, executor: Executor | None = None) -> None:
    """Encode a text to a token file, and remove that."""
    target = path.with_suffix(".npy")
    token_files.tokenize_file(tokenizer, path, target, executor)
    target.unlink()
    target.with_suffix(".json").unlink()  # or the next run would find the file whole


def scaling_table(record: dict) -> str:
    """The figures of a record of `run_scaling` as text."""
    speeds = {
        f"{task}, workers: {workers}": [record["bytes"] / 1e6 / run for run in runs]
        for task, by_workers in record["seconds"].items()
        for workers, runs in by_workers.items()
    }
    shown = measure.table(
        speeds,
        "MB/s",
        baseline=lambda name: f"{name.split(',')[0]}, workers: 2",
        winner="2 workers are",
    )
    where = measure.place(record, f"{record['machine']['cores']} cores")
    sizes = {"once": record["bytes"], "twice": 2 * record["bytes"]}
    peaks = measure.as_text(
        {
            f"{task} {sizes[path] / 1e9:g} GB": {"MB": peak / 1e6}
            for path, by_task in record["peak_bytes"].items()
            for task, peak in by_task.items()
        }
    )
    return (
        f"{record['text']}, ten times: {record['bytes'] / 1e6:,.0f} MB, {where}\n\n{shown}\n\n"
        f"Peak memory of a process that works alone:\n{peaks}\n\n"
        f"The Pile, {PILE_BYTES / 1e9:.0f} GB, at this speed:\n{pile_table(record)}"
    )


def pile_table(record: dict) -> str:
    """Minutes for the Pile on some numbers of cores, at half the speed of two workers for each.

    Half of what two workers did together includes what sharing a machine costs.
    """
    minutes = {
        task: PILE_BYTES / (record["bytes"] / median(runs["2"]) / 2) / 60
        for task, runs in record["seconds"].items()
    }
    total = sum(minutes.values())
    return measure.as_text(
        {
            f"cores: {cores:,}": {
                "minutes to count": minutes["train"] / cores,
                "to encode": minutes["encode"] / cores,
                "GB/s to read": 2 * PILE_BYTES / 1e9 / (total / cores * 60),  # once for each
                "core-hours": total / 60,
            }
            for cores in (1, 16, 64, 256, 1_024)
        }
    )
