"""The table of `workbook bench tokenizer`: ours beside other libraries, on one core, in turns.

    round 1    workbook 170 MB/s   rustbpe 16 MB/s   tokenizers 5 MB/s   ...
    round 2    workbook 168 MB/s   rustbpe 17 MB/s   tokenizers 5 MB/s   ...
    ratio                          9.9 to 10.6       33 to 34            of each round, not of means

Every run is a process of its own (`rivals`), held to one core where the system can do that. What
is slow gets a part of the text. The record under `data/bench/` names machine, versions and text.

The tokenizer libraries that are timed against each other, one function each.

    python -m workbook.bench.tokenizers "train rustbpe" text.txt 10000 folder   prints its seconds

Each run is a process of its own on one core. Only the work is timed: libraries are imported and
compiled, and those that take strings have the text in memory, before the clock starts. We start
from the file on disk, and our time includes reading it.

More cores and more text: what `workbook bench scaling` measures, and what the Pile would take.

    1 GB, 1 worker     |=================================|
    1 GB, 2 workers    |=================|                      the speed-up
    2 GB, 1 worker     the same peak memory                     nothing grows with the file

The large texts are a smaller one written several times over, so that their words stay the same:
what is measured is the engine, and not how many words a language has.
"""

import json
import os
import platform
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from tqdm import tqdm

from workbook import config
from workbook.bench.measure import measured
from workbook.corpora import corpora
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.tokenization import bpe, spans, token_files
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.spans import cut_points
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training.log import processor

PART = 10_000_000  # bytes that the slow ones get of a larger text
SLOW = ("train python", "encode python", "encode tokenizers")
ONE_CORE = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
LIBRARIES = ("numba", "numpy", "regex", "rustbpe", "tokenizers", "tiktoken")
PROSE = (".md", ".rst", ".txt", ".html", ".py", ".pyi", ".h")


def run(size: int, rounds: int, file: Path | None = None, vocab_size: int | None = None) -> str:
    """The tables for one file, or for the two default texts of `size` bytes; each is recorded."""
    if file is None:
        texts = {f"stories-{size / 1e6:g}MB": (corpora.path("stories", size=size), 10_000)}
        texts[f"prose-{size / 1e6:g}MB"] = prose(size), 32_000
    else:
        texts = {file.stem: (file, 32_000)}
    tables = []
    for name, (path, usual) in texts.items():
        record = compare(path, vocab_size or usual, rounds)
        told = table(record)  # first: what cannot be told is not worth a record
        root = config.data_folder() if file else config.repository() / "data"
        target = root / "bench" / f"tokenizer-{name}.json"
        write_json(target, record)
        tables.append(f"{told}\nrecorded in {target}")
    return "\n\n".join(tables)


def recorded(name: str) -> dict:
    """The record of a text, such as "stories-100MB", as it lies in `data/bench/`."""
    return json.loads((config.repository() / "data/bench" / f"tokenizer-{name}.json").read_text())


def report(name: str) -> str:
    """The table of a record."""
    return table(recorded(name))


def compare(path: Path, vocab_size: int, rounds: int) -> dict:
    """The record of all libraries on one text: the speed of every run, and where it ran."""
    speeds: dict[str, list[float]] = {}
    calls: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        vocab, merges = bpe.train_bpe(path, vocab_size, [END_OF_TEXT])
        Tokenizer(vocab, merges).save(folder / "vocab.json", folder / "merges.txt")
        part = first_part(path, folder / "part.txt")
        turns = [key for _ in range(rounds) for key in RIVALS]
        for key in tqdm(turns, desc=f"bench {path.stem}"):
            text = part if key in SLOW else path
            result = run_alone(key, text, vocab_size, folder)
            if isinstance(result, dict):
                calls[key] = {
                    called: min(seconds, calls.get(key, result)[called])
                    for called, seconds in result.items()
                }
            elif result is not None:
                speeds.setdefault(key, []).append(text.stat().st_size / 1e6 / result)
        return {
            "text": path.name,
            "bytes": path.stat().st_size,
            "part_bytes": part.stat().st_size,
            "sha256": sha256(path.read_bytes()).hexdigest(),
            "vocab_size": len(vocab),
            "megabytes_a_second": speeds,
            "seconds_of_a_call": calls,
            "machine": machine(),
        }


def first_part(path: Path, target: Path) -> Path:
    """A copy of the first `PART` bytes of a text, cut where no pre-token is cut in two."""
    with path.open("rb") as file:
        target.write_bytes(file.read(cut_points(path, [END_OF_TEXT], PART)[1]))
    return target


def run_alone(key: str, text: Path, vocab_size: int, folder: Path):
    """What a rival measured in a process of its own; None where it is not installed."""
    command = [
        sys.executable,
        "-m",
        "workbook.bench.tokenizers",
        key,
        text,
        str(vocab_size),
        folder,
    ]
    done = subprocess.run(
        command, env=os.environ | ONE_CORE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"{key} failed on {text}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def machine(libraries: Sequence[str] = LIBRARIES) -> dict:
    """The machine and the versions that the figures belong to."""
    versions = {"python": platform.python_version()}
    for library in libraries:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def table(record: dict) -> str:
    """The figures in a record as text: the best speed of each, and ours as a multiple of it."""
    speeds, where = record["megabytes_a_second"], record["machine"]
    lines = [
        f"{record['text']}: {record['bytes'] / 1e6:,.1f} MB, {record['vocab_size']:,} ids, one core"
        f" of {where['processor']} ({where['system']}, load {where['load']})",
        ", ".join(f"{name} {number}" for name, number in where["versions"].items()),
        "",
        f"{'':20}{'best MB/s':>11}{'lowest':>9}{'runs':>6}   workbook is",
    ]
    for key, runs in speeds.items():
        ours = speeds.get(f"{key.split()[0]} workbook", [])
        note = f" on {record['part_bytes'] / 1e6:,.0f} MB" if key in SLOW else ""
        lines.append(
            f"{key:20}{max(runs):11.1f}{min(runs):9.1f}{len(runs):6}   "
            + (spread(ratios(ours, runs)) + note if ours and ours is not runs else "")
        )
    lines += ["", f"{'one encode call of':38}{'workbook':>10}{'tiktoken':>10}   microseconds"]
    calls = record["seconds_of_a_call"]
    for text, seconds in calls["short workbook"].items():
        other = calls.get("short tiktoken", {}).get(text, float("nan"))
        shown = repr(text if len(text) < 34 else f"{text[:24]}... {len(text)}")
        lines.append(f"{shown:38}{seconds * 1e6:10.1f}{other * 1e6:10.1f}")
    return "\n".join(line.rstrip() for line in lines)


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """How many times as fast we are, round by round."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def spread(values: list[float]) -> str:
    """The middle of some ratios, and how far they reach."""
    return f"{median(values):.1f}x as fast ({min(values):.1f} to {max(values):.1f})"


def prose(size: int) -> Path:
    """A file of technical prose: what the Python on this machine and its packages say and document.

    Sources and documents of the standard library and of the installed packages, each once, in a
    random order. It differs from machine to machine; the record has its hash.
    """
    target = config.data_folder() / "corpora" / "prose" / f"train-{size / 1e6:g}MB.txt"
    origin = {"corpus": "prose", "size": size, "python": sys.version}
    if not corpora.is_good(target, origin):
        with tqdm(desc=f"make {target.stem}", total=size, unit="B", unit_scale=True) as bar:
            facts = corpora.write(target, prose_documents(size), bar.update)
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


def seconds(work: Callable) -> float:
    """How long the call took."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def documents(path: Path) -> list[str]:
    return path.read_bytes().decode().split(END_OF_TEXT)


def saved(folder: Path) -> Tokenizer:
    """The tokenizer that all of them encode with."""
    return Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt", [END_OF_TEXT])


# --- Training -----------------------------------------------------------------------------------


def train_workbook(path: Path, vocab_size: int, folder: Path) -> float:
    from workbook.tokenization import compiled

    compiled.compile_all()
    return seconds(lambda: compiled.train(path, [END_OF_TEXT], vocab_size - 257))


def train_python(path: Path, vocab_size: int, folder: Path) -> float:
    def work():
        counts = spans.count_pretokens(path, [END_OF_TEXT])
        bpe.train_incremental(counts, vocab_size - 257)

    return seconds(work)


def train_rustbpe(path: Path, vocab_size: int, folder: Path) -> float:
    import rustbpe

    texts, tokenizer = documents(path), rustbpe.Tokenizer()
    return seconds(
        lambda: tokenizer.train_from_iterator(iter(texts), vocab_size - 1, pattern=PATTERN)
    )


def train_tokenizers(path: Path, vocab_size: int, folder: Path) -> float:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    texts, tokenizer = documents(path), Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return seconds(lambda: tokenizer.train_from_iterator(texts, trainer))


# --- Encoding a file ----------------------------------------------------------------------------


def encode_workbook(path: Path, vocab_size: int, folder: Path) -> float:
    tokenizer = saved(folder)
    with tokenizer.compiled_encoder():
        pass  # it is compiled now, and its table empty
    return seconds(lambda: tokenizer.encode_file(path))


def encode_python(path: Path, vocab_size: int, folder: Path) -> float:
    tokenizer = saved(folder)

    def work():
        with path.open(encoding="utf-8", newline="") as file:
            return sum(1 for _ in tokenizer.encode_iterable(file))

    return seconds(work)


def encode_tiktoken(path: Path, vocab_size: int, folder: Path) -> float:
    """The faster of its two best calls: the whole text at once, or its documents one by one."""
    tokenizer = tiktoken_of(saved(folder))
    text, texts = path.read_bytes().decode(), documents(path)
    return min(
        seconds(lambda: tokenizer.encode_to_numpy(text, allowed_special="all")),
        seconds(lambda: tokenizer.encode_ordinary_batch(texts, num_threads=1)),
    )


def tiktoken_of(tokenizer: Tokenizer):
    """tiktoken's encoding with the same tokens and ids."""
    import tiktoken

    ranks = {token: token_id for token_id, token in tokenizer.vocab.items()}
    special = {END_OF_TEXT: ranks.pop(END_OF_TEXT.encode())}
    return tiktoken.Encoding("same", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def encode_tokenizers(path: Path, vocab_size: int, folder: Path) -> float:
    from tokenizers import Tokenizer

    from workbook.generation.formats import save_tokenizer_json

    save_tokenizer_json(saved(folder), folder / "tokenizer.json")
    tokenizer, texts = Tokenizer.from_file(str(folder / "tokenizer.json")), documents(path)
    return seconds(lambda: tokenizer.encode_batch_fast(texts))


# --- A short call -------------------------------------------------------------------------------

SHORT_TEXTS = ("Hi", "Once upon a time there was a fox.", "It's 12 o'clock, isn't it? " * 20)


def short_workbook(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    return short_calls(saved(folder).encode)


def short_tiktoken(path: Path, vocab_size: int, folder: Path) -> dict[str, float]:
    encode = tiktoken_of(saved(folder)).encode
    return short_calls(lambda text: encode(text, allowed_special="all"))


def short_calls(encode: Callable) -> dict[str, float]:
    """The seconds of one call on each short text, the best of many, its words met before."""
    return {
        text: min(timeit.repeat(lambda text=text: encode(text), number=200, repeat=50)) / 200
        for text in SHORT_TEXTS
    }


# --- What no tokenizer can beat -----------------------------------------------------------------


def read_bytes(path: Path, vocab_size: int, folder: Path) -> float:
    """Reading the bytes, and looking at each of them once."""
    return seconds(lambda: np.fromfile(path, np.uint8).max())


def read_wc(path: Path, vocab_size: int, folder: Path) -> float:
    """Counting words with the system's `wc -w`."""
    command = ["wc", "-w", str(path)]
    return seconds(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))


RIVALS = {
    "train workbook": train_workbook,
    "train rustbpe": train_rustbpe,
    "train tokenizers": train_tokenizers,
    "train python": train_python,
    "encode workbook": encode_workbook,
    "encode tiktoken": encode_tiktoken,
    "encode tokenizers": encode_tokenizers,
    "encode python": encode_python,
    "read bytes": read_bytes,
    "read wc -w": read_wc,
    "short workbook": short_workbook,
    "short tiktoken": short_tiktoken,
}


def main(key: str, path: str, vocab_size: str, folder: str) -> None:
    """Print the result of one rival as JSON: null where it is not installed."""
    if hasattr(os, "sched_setaffinity"):  # elsewhere there is no such call
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    try:
        print(json.dumps(RIVALS[key](Path(path), int(vocab_size), Path(folder))))
    except (ModuleNotFoundError, FileNotFoundError):
        print("null")


if __name__ == "__main__":
    main(*sys.argv[1:])


SCALING_RECORD = Path("data") / "bench" / "scaling.json"
PAGE = Path("docs") / "cluster.md"  # shows the last table
PILE_BYTES = 825 * 10**9
CORES = (1, 16, 64, 256, 1024)
VOCAB_SIZE = 10_000


def run_scaling(size: int, rounds: int) -> str:
    """The table of speed-ups and peaks on `size` bytes of prose and twice as many; recorded."""
    text = prose(size // 10)
    with TemporaryDirectory(dir=config.data_folder()) as temporary:
        folder = Path(temporary)
        once, twice = repeated(text, size, folder / "1"), repeated(text, 2 * size, folder / "2")
        seconds = {"train": {}, "encode": {}}
        for _ in tqdm(range(rounds), desc="bench scaling"):
            for workers in (1, 2):
                for task, took in measured(work, once, folder, workers).result.items():
                    seconds[task].setdefault(str(workers), []).append(took)
        peaks = [measured(train, path).peak_bytes for path in (once, twice)]
        record = {
            "text": text.name,
            "bytes": once.stat().st_size,
            "seconds": seconds,
            "peak_bytes": dict(zip(("once", "twice"), peaks, strict=True)),
            "machine": machine(),
        }
    target = config.repository() / SCALING_RECORD
    write_json(target, record)
    page = config.repository() / PAGE
    with atomic_write(page) as file:
        file.write(with_table(page.read_text(encoding="utf-8"), record))
    return f"{scaling_table(record)}\nrecorded in {target}"


def repeated(text: Path, size: int, target: Path) -> Path:
    """A file of about `size` bytes: the text over and over."""
    data = text.read_bytes()
    with target.open("wb") as file:
        for _ in range(max(round(size / len(data)), 1)):
            file.write(data)
    return target


def train(path: Path, executor: Executor | None = None) -> Tokenizer:
    """A tokenizer trained on the file."""
    vocab, merges = bpe.train_bpe(path, VOCAB_SIZE, [END_OF_TEXT], executor=executor)
    return Tokenizer(vocab, merges, [END_OF_TEXT])


def work(path: Path, folder: Path, workers: int) -> dict[str, float]:
    """The seconds of training and of encoding to a token file, by workers that are warm."""
    target = folder / f"{workers}.npy"
    with ProcessPoolExecutor(workers) as executor:
        list(executor.map(warm_up, range(4 * workers)))
        start = time.perf_counter()
        tokenizer = train(path, executor)
        trained = time.perf_counter()
        token_files.tokenize_file(tokenizer, path, target, executor)
        encoded = time.perf_counter()
    target.unlink()
    target.with_suffix(".json").unlink()
    return {"train": trained - start, "encode": encoded - trained}


def warm_up(_: int) -> None:
    """Load the compiled code in a worker."""
    from workbook.tokenization import compiled

    compiled.compile_all()


def speeds(record: dict, task: str) -> dict[int, float]:
    """Megabytes a second by number of workers, in the middle one of the runs."""
    return {
        int(workers): record["bytes"] / 1e6 / median(taken)
        for workers, taken in record["seconds"][task].items()
    }


def scaling_table(record: dict) -> str:
    """The figures of a record as text."""
    where, lines = record["machine"], []
    lines.append(
        f"{record['text']}, written until it has {record['bytes'] / 1e9:,.2f} GB, on"
        f" {where['cores']} cores of {where['processor']} (load {where['load']})"
    )
    for task, runs in record["seconds"].items():
        ratios = [one / two for one, two in zip(runs["1"], runs["2"], strict=True)]
        one, two = speeds(record, task).values()
        best = min(runs["1"]) / min(runs["2"])  # a busy neighbour only ever adds time
        lines.append(
            f"{task:7} 1 worker {one:6.0f} MB/s, 2 workers {two:6.0f} MB/s: {spread(ratios)};"
            f" best run against best run {best:.1f}x"
        )
    peaks = {name: f"{peak / 1e6:,.0f} MB" for name, peak in record["peak_bytes"].items()}
    lines.append(f"peak memory of training: {peaks['once']}; on twice the text: {peaks['twice']}")
    return "\n".join(lines)


def pile_table(record: dict) -> str:
    """Hours for the Pile on some numbers of cores, in Markdown, at the speed of two workers here.

    Half of what two workers did together is taken for each core: that includes what sharing costs.
    """
    each = {task: speeds(record, task)[2] / 2 for task in record["seconds"]}
    rows = [
        "| cores | count | encode | to read a second | core-hours |",
        "|---:|---:|---:|---:|---:|",
    ]
    for cores in CORES:
        hours = {task: PILE_BYTES / 1e6 / speed / cores / 3600 for task, speed in each.items()}
        total = sum(hours.values())
        rows.append(
            f"| {cores:,} | {_duration(hours['train'])} | {_duration(hours['encode'])} "
            f"| {2 * PILE_BYTES / total / 3600 / 1e9:.2f} GB | {total * cores:.1f} |"
        )
    return "\n".join(rows)


def with_table(page: str, record: dict) -> str:
    """The page with the table of this record between its two marks."""
    before, rest = page.split("<!-- pile -->\n")
    _, behind = rest.split("<!-- /pile -->\n")
    return f"{before}<!-- pile -->\n{pile_table(record)}\n<!-- /pile -->\n{behind}"


def _duration(hours: float) -> str:
    """Hours, minutes or seconds, whichever reads best."""
    for unit, length in (("h", 1), ("min", 1 / 60)):
        if hours >= length:
            return f"{hours / length:.1f} {unit}"
    return f"{hours * 3600:.0f} s"
