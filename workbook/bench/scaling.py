"""More cores and more text: what `workbook bench scaling` measures, and what the Pile would take.

    1 GB, 1 worker     |=================================|
    1 GB, 2 workers    |=================|                      the speed-up
    2 GB, 1 worker     the same peak memory                     nothing grows with the file

The large texts are a smaller one written several times over, so that their words stay the same:
what is measured is the engine, and not how many words a language has.
"""

import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from tqdm import tqdm

from workbook import config
from workbook.bench import tokenizers
from workbook.bench.measure import measured
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.tokenization import bpe, token_files
from workbook.tokenization.tokenizer import Tokenizer

RECORD = Path("data") / "bench" / "scaling.json"
PAGE = Path("docs") / "cluster.md"  # shows the last table
PILE_BYTES = 825 * 10**9
CORES = (1, 16, 64, 256, 1024)
VOCAB_SIZE = 10_000


def run(size: int, rounds: int) -> str:
    """The table of speed-ups and peaks on `size` bytes of prose and twice as many; recorded."""
    text = tokenizers.prose(size // 10)
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
            "machine": tokenizers.machine(),
        }
    target = config.repository() / RECORD
    write_json(target, record)
    page = config.repository() / PAGE
    with atomic_write(page) as file:
        file.write(with_table(page.read_text(encoding="utf-8"), record))
    return f"{table(record)}\nrecorded in {target}"


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
    from workbook.tokenization.compiled import engine

    engine.compile_all()


def speeds(record: dict, task: str) -> dict[int, float]:
    """Megabytes a second by number of workers, in the middle one of the runs."""
    return {
        int(workers): record["bytes"] / 1e6 / median(taken)
        for workers, taken in record["seconds"][task].items()
    }


def table(record: dict) -> str:
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
            f"{task:7} 1 worker {one:6.0f} MB/s, 2 workers {two:6.0f} MB/s:"
            f" {tokenizers.spread(ratios)};"
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
