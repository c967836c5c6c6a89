"""The table of `workbook bench tokenizer`: ours beside other libraries, on one core, in turns.

    round 1    workbook 170 MB/s   rustbpe 16 MB/s   tokenizers 5 MB/s   ...
    round 2    workbook 168 MB/s   rustbpe 17 MB/s   tokenizers 5 MB/s   ...
    ratio                          9.9 to 10.6       33 to 34            of each round, not of means

Every run is a process of its own (`rivals`), held to one core where the system can do that. What
is slow gets a part of the text. The record under `data/bench/` names machine, versions and text.
"""

import json
import os
import platform
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

from tqdm import tqdm

from workbook import config
from workbook.bench import rivals
from workbook.corpora import corpora
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import write_json
from workbook.tokenization import bpe
from workbook.tokenization.pretokens import cut_points
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
        turns = [key for _ in range(rounds) for key in rivals.RIVALS]
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
    command = [sys.executable, "-m", "workbook.bench.rivals", key, text, str(vocab_size), folder]
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
    for key, measured in speeds.items():
        ours = speeds.get(f"{key.split()[0]} workbook", [])
        note = f" on {record['part_bytes'] / 1e6:,.0f} MB" if key in SLOW else ""
        lines.append(
            f"{key:20}{max(measured):11.1f}{min(measured):9.1f}{len(measured):6}   "
            + (spread(ratios(ours, measured)) + note if ours and ours is not measured else "")
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
