"""Short texts, and many in one call, beside other tokenizer libraries.

`python -m benchmarks short` takes texts that each library has seen, as a server or a chat does; so
its words are remembered, and what counts is the price of a call. A batch is of 10,000 texts of 100
to 2,000 characters: on one core, and on all of them, where each library starts its own threads.
There are no special tokens in them. Results are compared before anything is timed.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import measure
from benchmarks import tokenizers as rivals
from workbook.bench import own_process
from workbook.corpora import corpora

TEXT = 20_000_000  # bytes
SIZES = {f"{size} kB to an array of ids": 1_000 * size for size in (1, 10, 100)}
BATCH_TITLE = "10,000 short texts to ids in one call"
BATCH = 10_000
AT_ONCE = 2_000_000  # characters between two looks at the clock


class Library(NamedTuple):
    """How a library is loaded, and what it is asked: as few steps of ours between as can be."""

    load: Callable[[rivals.Job], Any]
    array: Callable[[Any, str], Callable[[], Sequence]]
    batch: Callable[[Any, list[str], int], Callable[[], Sequence]]


def fastokens_batch(one: Any, texts: list[str], threads: int = 1) -> Callable[[], np.ndarray]:
    """Its fastest form: one array for all texts."""
    encode = one.encode_batch_flat
    return lambda: np.frombuffer(encode(texts)[0], np.uint32)


LIBRARIES = {
    "workbook": Library(
        rivals.load_ours,
        lambda one, text: partial(one.encode_array, text),
        lambda one, texts, threads: lambda: one.encode_batch(texts)[0],
    ),
    "gigatoken": Library(
        rivals.load_gigatoken,
        lambda one, text: partial(one.encode, text),
        lambda one, texts, threads: partial(one.encode_batch, texts),
    ),
    "fastokens": Library(
        rivals.load_fastokens,
        lambda one, text: fastokens_batch(one, [text]),
        fastokens_batch,
    ),
    "tiktoken": Library(
        rivals.load_tiktoken,
        lambda one, text: partial(one.encode_to_numpy, text),
        lambda one, texts, threads: partial(one.encode_batch, texts, num_threads=threads),
    ),
}


def run(rounds: int, folder: Path) -> str:
    """Time them all; return the table. The record is kept in `folder`."""
    path = corpora.path("stories", size=TEXT)
    with tempfile.TemporaryDirectory() as temporary:
        job = rivals.Job(path, rivals.VOCAB_SIZE, Path(temporary))
        rivals.train_and_save(path, job.vocab_size, job.folder)
        with own_process(rivals.hold_to_one_core) as process:
            speeds = process.submit(time_all, job, rounds, time.process_time).result()
        with own_process() as process:
            speeds |= process.submit(time_batch, job, rounds, time.perf_counter).result()
    record = {
        "text": path.name,
        "vocab_size": job.vocab_size,
        "megabytes_a_second": speeds,
        "machine": measure.machine(rivals.LIBRARIES),
    }
    tables = (
        measure.table(by_name, "MB/s", lambda name: "workbook") for by_name in speeds.values()
    )
    titled = (f"{title}\n{table}" for title, table in zip(speeds, tables, strict=True))
    shown = "\n\n".join([measure.place(record, "one core, where it says nothing else"), *titled])
    return measure.keep(folder / "short.json", record, shown)


def time_all(job: rivals.Job, rounds: int, clock: Callable[[], float]) -> dict:
    """The speeds on each size, and on a batch."""
    loaded = load_all(job)
    whole = plain_text(job)
    speeds = {}
    for title, size in SIZES.items():
        text = whole[:size]
        works = {name: LIBRARIES[name].array(one, text) for name, one in loaded.items()}
        speeds[title] = megabytes_a_second(works, size, rounds, clock)
    return speeds | {BATCH_TITLE: batch_speeds(loaded, whole, rounds, clock, threads=1)}


def time_batch(job: rivals.Job, rounds: int, clock: Callable[[], float]) -> dict:
    """The speeds on a batch by all cores."""
    loaded = load_all(job)
    threads = os.cpu_count() or 1
    whole = plain_text(job)
    return {f"{BATCH_TITLE}, all cores": batch_speeds(loaded, whole, rounds, clock, threads)}


def plain_text(job: rivals.Job) -> str:
    """The text without its special tokens."""
    return rivals.text_of(job.text).replace(corpora.END_OF_TEXT, "")


def load_all(job: rivals.Job) -> dict:
    """The tokenizer of each library that is installed."""
    present = [name for name in LIBRARIES if name == "workbook" or measure.installed(name)]
    return {name: LIBRARIES[name].load(job) for name in present}


def batch_speeds(
    loaded: dict, whole: str, rounds: int, clock: Callable[[], float], threads: int
) -> dict:
    """The speeds of each library on many texts of different lengths."""
    draw = random.Random(336)
    texts = []
    at = 0
    for size in (draw.randint(100, 2_000) for _ in range(BATCH)):
        texts.append(whole[at : at + size])
        at += size
    works = {name: LIBRARIES[name].batch(one, texts, threads) for name, one in loaded.items()}
    return megabytes_a_second(works, at, rounds, clock)


def megabytes_a_second(
    works: dict[str, Callable], size: int, rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """The speed of each in every round. Raises: ValueError if their results differ."""
    ours = flat(works["workbook"]())
    for library, work in works.items():
        difference = measure.first_difference(flat(work()), ours)
        if difference:
            raise ValueError(f"{library} encodes {size:,} characters otherwise: {difference}")
    calls = max(1, AT_ONCE // size)

    def speed(work: Callable) -> float:
        start = clock()
        for _ in range(calls):
            work()
        return calls * size / 1e6 / (clock() - start)

    timed = {library: partial(speed, work) for library, work in works.items()}
    return measure.in_turns(timed, rounds, f"bench {size:,} characters")


def flat(result: Sequence) -> list[int]:
    """All ids of one text, or of several."""
    if isinstance(result, np.ndarray):
        return result.tolist()
    return [int(token_id) for token_id in chain.from_iterable(result)]
