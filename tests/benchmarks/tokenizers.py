"""Training and encoding beside other tokenizer libraries; more cores, and more text.

`python -m benchmarks tokenizer` times the functions in `RIVALS`, each run in a process of its own
that is restricted to one core if the system allows it. Slow ones get only a part of the text.

    cold     the first call in a process, with all that the library loads and makes for it
    warm     the same without that; no tokenizer has seen a word of the text before
    seen     the same text once more, for those that encode: they may remember its words
    array    from a string in memory to an array of tokens         list     to a list of integers

Times are processor seconds, of all threads: a busy neighbour changes them little. The result of the
first call is compared with ours, and only a rival whose results are equal gets a ratio; for another
one, the first difference is named. Those that train choose otherwise among equally frequent pairs:
that they do nothing else is proven on the beginning of the text (`ties`).

Those that take strings have the text in memory before the clock starts. We train on the file on
disk, and our time includes reading it.

`python -m benchmarks sweep` times encoding beside tiktoken from ten characters on, each size twice
the one before, up to 100 MB, and training from 10 kB on.

`python -m benchmarks scaling` times our own engine with one and two workers, and on ever larger
texts:

    1 GB, 1 worker     |=================================|
    1 GB, 2 workers    |=================|                      the speed-up
    50 to 800 MB       processor seconds, and the peak memory: it does not grow with the file
"""

import json
import os
import pickle
import random
import sys
import sysconfig
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from functools import partial
from hashlib import sha256
from itertools import pairwise, repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks import measure, ties
from workbook import config
from workbook.bench import measured, own_process
from workbook.corpora import corpora
from workbook.corpora.corpora import END_OF_TEXT
from workbook.tokenization import bpe, spans, token_files
from workbook.tokenization.gpt2_files import from_readable
from workbook.tokenization.pretokens import PATTERN
from workbook.tokenization.spans import cut_points
from workbook.tokenization.tokenizer import Tokenizer

PART = 10_000_000  # bytes that the slow ones get of a larger text
PROOF = 300_000  # bytes on which those that train are replayed
SLOW = ("train python", "list python", "list tokenizers")
COLD, SEEN = ", cold", ", seen"
ONE_CORE = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
PEERS = ("gigatoken", "fastokens", "gigabpe", "tiktoken", "tokenizers", "rustbpe")
LIBRARIES = ("numba", "numpy", "regex", *PEERS)
PROSE = (".md", ".rst", ".txt", ".html", ".py", ".pyi", ".h")
VOCAB_SIZE = 10_000
PILE_BYTES = 825 * 10**9
GROWING = [size * 10**6 for size in (50, 100, 200, 400, 800)]


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


class Job(NamedTuple):
    """What a rival is to do."""

    text: Path
    vocab_size: int
    folder: Path  # with our tokenizer, as vocab.json and merges.txt and as tokenizer.json


class Outcome(NamedTuple):
    """What a run of a rival gave."""

    warm: float  # processor seconds
    cold: float | None  # the same; None if there is nothing to load
    seen: float | None  # the same; None if it does not encode
    difference: str  # from our result; empty if it is the same


def compare(path: Path, vocab_size: int, rounds: int) -> dict:
    """Time all libraries on one text in turns; return the record, with the speed of every run."""
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty; give a text to measure on")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        train_and_save(path, vocab_size, folder)
        part = first_part(path, folder / "part.txt", PART)
        proof = Job(first_part(path, folder / "proof.txt", PROOF), 1_000, folder)
        jobs = {
            key: Job(part if key in SLOW else path, vocab_size, folder)
            for key in RIVALS
            if installed(key)
        }
        works = {key: partial(run_rival, key, job, expected(key, job)) for key, job in jobs.items()}
        outcomes = measure.in_turns(works, rounds, f"bench {path.stem}")
        speeds = {}
        for key, runs in outcomes.items():
            megabytes = jobs[key].text.stat().st_size / 1e6
            speeds[key] = [megabytes / run.warm for run in runs]
            if runs[0].cold:
                speeds[key + COLD] = [megabytes / run.cold for run in runs]
            if runs[0].seen:
                speeds[key + SEEN] = [megabytes / run.seen for run in runs]
        differences = {
            key: runs[0].difference for key, runs in outcomes.items() if runs[0].difference
        }
        for key in list(differences):
            if key.startswith("train"):
                differences[key] = more_than_ties(key, proof)
        differences = {key: words for key, words in differences.items() if words}
        return {
            "text": path.name,
            "bytes": path.stat().st_size,
            "part_bytes": part.stat().st_size,
            "from_part": list(SLOW),
            "sha256": sha256(path.read_bytes()).hexdigest(),
            "vocab_size": len(saved(folder).vocab),
            "megabytes_a_second": speeds,
            "equal": [key for key in outcomes if key not in differences],
            "differences": differences,
            "machine": measure.machine(LIBRARIES),
        }


def installed(key: str) -> bool:
    """Whether the library of a rival is there; if it is not, a line says so."""
    library = key.split()[1]
    if library in PEERS and not measure.installed(library):
        print(f"{key}: left out, since {library} is not installed")
        return False
    return True


def first_part(path: Path, target: Path, size: int) -> Path:
    """Copy the first `size` bytes of a text to `target`, cut between two pre-tokens."""
    with path.open("rb") as file:
        target.write_bytes(file.read(cut_points(path, [END_OF_TEXT], size)[1]))
    return target


def more_than_ties(key: str, job: Job) -> str:
    """What else than ties a rival's training differs in, in words; empty if nothing else."""
    with own_process(hold_to_one_core) as process:
        learnt, text = process.submit(learn, key, job).result()
    special = [] if text != job.text else [END_OF_TEXT]
    return ties.first_not_most_frequent(learnt, spans.count_pretokens(text, special))


def learn(key: str, job: Job) -> tuple[list[bytes], Path]:
    """The tokens that a rival learns, in order, and the text that it was given."""
    rival = RIVALS[key](job)
    text = without_separators(job) if key == "train gigabpe" else job.text
    return list(rival.read(rival.work(rival.load()))), text


def without_separators(job: Job) -> Path:
    """The text for a library that would learn from the letters of special tokens too."""
    target = job.folder / f"{job.text.stem}-plain.txt"
    if not target.exists():
        target.write_bytes(job.text.read_bytes().replace(END_OF_TEXT.encode(), b""))
    return target


def expected(key: str, job: Job) -> Path | None:
    """A file with our result: the tokens learnt from the text, in order, or the ids of the text."""
    task = key.split()[0]
    if task == "read":
        return None
    target = job.folder / f"{'train' if task == 'train' else 'ids'}-{job.text.stem}.pickle"
    if not target.exists():
        if task == "train":
            result = joined(bpe.train_bpe(job.text, job.vocab_size, [END_OF_TEXT])[1])
        else:
            result = saved(job.folder).encode_array(text_of(job.text))
        target.write_bytes(pickle.dumps(result))
    return target


def run_rival(key: str, job: Job, ours: Path | None) -> Outcome:
    """Run one of `RIVALS` in a process of its own."""
    with own_process(hold_to_one_core) as process:
        try:
            return process.submit(time_rival, key, job, ours).result()
        except Exception as error:
            raise ValueError(f"{key} failed on {job.text}: {error}") from error


def time_rival(key: str, job: Job, ours: Path | None) -> Outcome:
    """In that process: the first call, whose result is compared with ours, and later ones."""

    def timed(work: Callable[[], Any]) -> tuple[float, Any]:
        start = time.process_time()
        result = work()
        return time.process_time() - start, result

    rival = RIVALS[key](job)
    cold, result = timed(lambda: rival.work(rival.load()))
    difference = ""
    if ours is not None:
        difference = measure.first_difference(rival.read(result), pickle.loads(ours.read_bytes()))
    del result
    loaded = rival.load()
    # A result is freed before the next call: memory that is new to the process is slow.
    warm = timed(lambda: rival.work(loaded))[0]
    encodes = key.split()[0] in ("file", "array", "list") and rival.load is not nothing
    seen = timed(lambda: rival.work(loaded))[0] if encodes else None
    return Outcome(warm, None if rival.load is nothing else cold, seen, difference)


def hold_to_one_core() -> None:
    """Keep this process to one core and one thread, and silence libraries that print."""
    os.environ.update(ONE_CORE)
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)


def table(record: dict) -> str:
    """The figures of a record as text."""
    speeds = record["megabytes_a_second"]
    sizes = {
        key: record["part_bytes" if key.split(",")[0] in SLOW else "bytes"] / 1e6 for key in speeds
    }

    def baseline(key: str) -> str:
        """Ours at the same work, for those whose results are equal to ours."""
        work, comma, which = key.partition(",")
        if work not in record["equal"]:
            return "none"
        return f"{work.split()[0]} workbook{comma}{which}"

    columns = {key: {"MB": f"{size:,.0f}"} for key, size in sizes.items()}
    shown = measure.table(speeds, "MB/s", baseline, columns)
    differences = "".join(
        f"\n{key} differs from ours, so it gets no ratio: {difference}"
        for key, difference in record["differences"].items()
    )
    where = measure.place(record, "one core")
    return (
        f"{record['text']}: {record['bytes'] / 1e6:,.1f} MB, a vocabulary of"
        f" {record['vocab_size']:,}, {where}\n\n{shown}\n{differences}"
    )


def prose(size: int) -> Path:
    """Make a file of technical prose from this Python's packages, unless it is there.

    It has the sources and documents of the standard library and of the installed packages, each
    once, in random order, but for those that hold characters newer than this Python: libraries know
    different versions of Unicode, and take such letters for something else. It differs from machine
    to machine; the record has its hash.
    """
    target = config.data_folder() / "corpora" / "prose" / f"train-{size / 1e6:g}MB.txt"
    unicode = unicodedata.unidata_version
    origin = {"corpus": "prose", "size": size, "python": sys.version, "unicode": unicode}
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
        known = all(unicodedata.category(letter) != "Cn" for letter in set(text))  # "not assigned"
        if text and known and END_OF_TEXT not in text and hash(text) not in seen:
            seen.add(hash(text))
            yield text
            size -= len(text.encode())
            if size <= 0:
                return


# --- The rivals: each is given a job, and says what it loads, what is timed, and what came out ---


def nothing() -> None:
    """What those load that have nothing to load."""


class Rival(NamedTuple):
    """`work(load())` is timed cold, `work(loaded)` warm; `read` makes our form of its result."""

    load: Callable[[], Any]  # imports a library, and makes what it works with
    work: Callable[[Any], Any]
    read: Callable[[Any], Sequence] = list


def documents(path: Path) -> list[str]:
    """The documents of a text, in memory."""
    return text_of(path).split(END_OF_TEXT)


def text_of(path: Path) -> str:
    """A text in memory."""
    return path.read_bytes().decode()


def train_and_save(path: Path, vocab_size: int, folder: Path) -> None:
    """Train the tokenizer that all of them encode with, in the form that each of them reads."""
    from workbook.generation.formats import save_tokenizer_json  # needs torch; the rivals do not

    vocab, merges = bpe.train_bpe(path, vocab_size, [END_OF_TEXT])
    Tokenizer(vocab, merges).save(folder / "vocab.json", folder / "merges.txt")
    save_tokenizer_json(saved(folder), folder / "tokenizer.json")


def saved(folder: Path) -> Tokenizer:
    """The tokenizer that all of them encode with."""
    return Tokenizer.from_files(folder / "vocab.json", folder / "merges.txt", [END_OF_TEXT])


def joined(merges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """The token that each merge makes, in order."""
    return [left + right for left, right in merges]


def train_workbook(job: Job) -> Rival:
    def work(loaded: None):
        return bpe.train_bpe(job.text, job.vocab_size, [END_OF_TEXT])

    return Rival(load_compiled, work, lambda result: joined(result[1]))


def train_python(job: Job) -> Rival:
    def work(loaded: None):
        counts = spans.count_pretokens(job.text, [END_OF_TEXT])
        return bpe.train_incremental(counts, job.vocab_size - 257)

    return Rival(nothing, work, joined)


def train_gigabpe(job: Job) -> Rival:
    """It would learn from the letters of special tokens, so it gets the text without them."""
    text = without_separators(job)

    def load():
        import gigabpe

        return gigabpe

    def work(gigabpe):
        return gigabpe.train_bpe(
            [str(text)],
            job.vocab_size,
            special_tokens=[END_OF_TEXT],
            pretokenizer="bytelevel",
            threads=1,
        )

    return Rival(load, work, lambda result: joined_names(result[1]))


def train_gigatoken(job: Job) -> Rival:
    """In its default way, the fastest; no rule that it has for ties is the course's."""

    def load():
        import gigatoken

        return gigatoken

    def work(gigatoken):
        return gigatoken.train_bpe(
            str(job.text),
            job.vocab_size,
            [END_OF_TEXT],
            separator=END_OF_TEXT.encode(),
        )

    return Rival(load, work, lambda result: joined(result[1]))


def train_rustbpe(job: Job) -> Rival:
    texts = documents(job.text)

    def load():
        import rustbpe

        return rustbpe.Tokenizer()

    def work(tokenizer):
        tokenizer.train_from_iterator(iter(texts), job.vocab_size - 1, pattern=PATTERN)
        return tokenizer

    def read(tokenizer) -> list[bytes]:
        return [bytes(token) for token, rank in tokenizer.get_mergeable_ranks() if rank > 255]

    return Rival(load, work, read)


def train_tokenizers(job: Job) -> Rival:
    texts = documents(job.text)

    def load():
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        return tokenizer, trainers.BpeTrainer(
            vocab_size=job.vocab_size,
            special_tokens=[END_OF_TEXT],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )

    def work(loaded):
        tokenizer, trainer = loaded
        tokenizer.train_from_iterator(texts, trainer)
        return tokenizer

    def read(tokenizer) -> list[bytes]:
        return joined_names(json.loads(tokenizer.to_str())["model"]["merges"])

    return Rival(load, work, read)


def joined_names(merges: Sequence[Sequence[str]]) -> list[bytes]:
    """The token that each merge makes, where the merges are written in GPT-2's alphabet."""
    return [from_readable(left) + from_readable(right) for left, right in merges]


def load_ours(job: Job) -> Tokenizer:
    """Our tokenizer with its compiled encoder, which has seen a single word."""
    tokenizer = saved(job.folder)
    tokenizer.encode("\n" * 200_000)
    return tokenizer


def file_workbook(job: Job) -> Rival:
    """From a file to an array, as `workbook data tokenize` does it."""
    return Rival(partial(load_ours, job), lambda tokenizer: tokenizer.encode_file(job.text))


def file_gigatoken(job: Job) -> Rival:
    """From a file to an array of its own kind."""

    def work(tokenizer):
        import gigatoken

        return tokenizer.encode_files(gigatoken.TextFileSource([str(job.text)]))

    def read(ids) -> np.ndarray:
        import awkward

        return np.asarray(awkward.flatten(ids))

    return Rival(partial(load_gigatoken, job), work, read)


def array_workbook(job: Job) -> Rival:
    text = text_of(job.text)
    return Rival(partial(load_ours, job), lambda tokenizer: tokenizer.encode_array(text))


def array_gigatoken(job: Job) -> Rival:
    text = text_of(job.text)
    return Rival(partial(load_gigatoken, job), lambda tokenizer: tokenizer.encode(text))


def array_fastokens(job: Job) -> Rival:
    text = text_of(job.text)

    def work(tokenizer):
        return np.frombuffer(tokenizer.encode_batch_flat([text])[0], np.uint32)

    return Rival(partial(load_fastokens, job), work)


def array_tiktoken(job: Job) -> Rival:
    text = text_of(job.text)

    def work(tokenizer):
        return tokenizer.encode_to_numpy(text, allowed_special="all")

    return Rival(partial(load_tiktoken, job), work)


def list_workbook(job: Job) -> Rival:
    text = text_of(job.text)
    return Rival(partial(load_ours, job), lambda tokenizer: tokenizer.encode(text))


def list_gigatoken(job: Job) -> Rival:
    text = text_of(job.text)
    return Rival(partial(load_gigatoken, job), lambda tokenizer: tokenizer.encode(text).tolist())


def list_fastokens(job: Job) -> Rival:
    text = text_of(job.text)
    return Rival(partial(load_fastokens, job), lambda tokenizer: tokenizer.encode(text).ids)


def list_tiktoken(job: Job) -> Rival:
    text = text_of(job.text)

    def work(tokenizer):
        return tokenizer.encode(text, allowed_special="all")

    return Rival(partial(load_tiktoken, job), work)


def list_tokenizers(job: Job) -> Rival:
    """Document by document, which is faster, with the id of the end after each but the last."""
    texts = documents(job.text)
    end = saved(job.folder).encode(END_OF_TEXT)

    def load():
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(job.folder / "tokenizer.json"))

    def work(tokenizer):
        return [one.ids for one in tokenizer.encode_batch_fast(texts)]

    def read(ids: list[list[int]]) -> list[int]:
        return [token for one in ids for token in one + end][: -len(end)]

    return Rival(load, work, read)


def list_python(job: Job) -> Rival:
    tokenizer = saved(job.folder)

    def work(loaded: None):
        with job.text.open(encoding="utf-8", newline="") as file:
            return list(tokenizer.encode_iterable(file))

    return Rival(nothing, work)


def load_gigatoken(job: Job):
    import gigatoken

    return gigatoken.Tokenizer(str(job.folder / "tokenizer.json"))


def load_fastokens(job: Job):
    import fastokens

    return fastokens.Tokenizer.from_file(str(job.folder / "tokenizer.json"))


def load_tiktoken(job: Job):
    import tiktoken

    ranks = {token: token_id for token_id, token in saved(job.folder).vocab.items()}
    special = {END_OF_TEXT: ranks.pop(END_OF_TEXT.encode())}
    return tiktoken.Encoding("same", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special)


def read_bytes(job: Job) -> Rival:
    """Read the bytes, and look at each of them once: what no tokenizer can beat."""
    return Rival(nothing, lambda loaded: np.fromfile(job.text, np.uint8).max())


RIVALS: dict[str, Callable[[Job], Rival]] = {
    "train workbook": train_workbook,
    "train gigabpe": train_gigabpe,
    "train gigatoken": train_gigatoken,
    "train rustbpe": train_rustbpe,
    "train tokenizers": train_tokenizers,
    "train python": train_python,
    "file workbook": file_workbook,
    "file gigatoken": file_gigatoken,
    "array workbook": array_workbook,
    "array gigatoken": array_gigatoken,
    "array fastokens": array_fastokens,
    "array tiktoken": array_tiktoken,
    "list workbook": list_workbook,
    "list gigatoken": list_gigatoken,
    "list fastokens": list_fastokens,
    "list tiktoken": list_tiktoken,
    "list tokenizers": list_tokenizers,
    "list python": list_python,
    "read bytes": read_bytes,
}


# --- From ten bytes to all of a text ------------------------------------------------------------


def run_sweep(size: int, rounds: int, folder: Path) -> str:
    """Time encoding to a list beside tiktoken, and training beside all, at ever larger sizes.

    Returns the tables, with the worst ratio and the steepest step; keeps the record in `folder`.
    """
    path = prose(size)
    with tempfile.TemporaryDirectory() as temporary:
        whole = Job(path, 32_000, Path(temporary))
        train_and_save(path, whole.vocab_size, whole.folder)
        with own_process(hold_to_one_core) as process:
            encode = process.submit(sweep_encoding, whole, rounds).result()
        train: dict[str, dict[str, float]] = {}
        keys = [key for key in RIVALS if key.startswith("train") and installed(key)]
        for bytes_ in (10**power for power in range(4, len(str(size)))):
            text = (
                first_part(path, whole.folder / f"{bytes_}.txt", bytes_) if bytes_ < size else path
            )
            for key in keys:
                if key not in SLOW and (bytes_ <= PART or key != "train tokenizers"):
                    job = whole._replace(text=text, vocab_size=10_000)
                    runs = [run_rival(key, job, None).warm for _ in range(rounds)]
                    train.setdefault(f"{bytes_:,} bytes", {})[key] = 1e3 * median(runs)
    ours = [times["workbook"] for times in encode.values()]
    steps = [after / before for before, after in pairwise(ours)]
    record = {
        "text": path.name,
        "bytes": size,
        "encode": encode,
        "train": train,
        "machine": measure.machine(LIBRARIES),
    }
    ratios = {size: times["tiktoken"] / times["workbook"] for size, times in encode.items()}
    faster = [
        f"{key.removeprefix('train ')} at {size_of_text}"
        for size_of_text, times in train.items()
        for key, taken in times.items()
        if taken < times["train workbook"]
    ]
    worst = min(ratios, key=ratios.get)
    shown = (
        f"{measure.place(record, 'one core')}\n\n"
        f"Encoding to a list, microseconds a text:\n{measure.as_text(encode)}\n"
        f"The worst ratio to tiktoken: {ratios[worst]:.2f}x as fast, at {worst};"
        f" twice the text takes at most {max(steps):.1f} times as long.\n\n"
        f"Training, milliseconds:\n{measure.as_text(train)}\n"
        f"Faster than ours: {', '.join(faster) or 'none'}."
    )
    return measure.keep(folder / "sweep.json", record, shown)


def sweep_encoding(job: Job, rounds: int) -> dict[str, dict[str, float]]:
    """The microseconds that texts of each size take, by ours and by tiktoken, in turns.

    The ids of the whole text are compared first, by tokenizers that are not timed. Each text comes
    from another place and is new the first time.
    """
    whole = text_of(job.text)
    ids = load_tiktoken(job).encode_to_numpy(whole, allowed_special="all")
    difference = measure.first_difference(ids, load_ours(job).encode_array(whole))
    assert not difference, f"tiktoken's ids of {job.text} differ from ours, {difference}"
    ours = load_ours(job)
    other = load_tiktoken(job)
    rows = {}
    sizes = [10 << n for n in range(40) if 10 << n < len(whole)]
    for size in [*sizes, len(whole)]:
        number = max(1, min(500, 1_000_000 // size))
        parts = [
            whole[at : at + size] for at in range(0, len(whole) - size + 1, len(whole) // number)
        ]
        times: dict[str, list[float]] = {"workbook": [], "tiktoken": []}
        for _ in range(rounds):
            works = ours.encode, partial(other.encode, allowed_special="all")
            results = []
            for taken, work in zip(times.values(), works, strict=True):
                start = time.process_time()
                results.append([work(part) for part in parts])
                taken.append((time.process_time() - start) / len(parts) * 1e6)
            assert results[0] == results[1]
        rows[f"{size:,} characters"] = {name: median(taken) for name, taken in times.items()}
    return rows


# --- More cores, and more text ------------------------------------------------------------------


def run_scaling(size: int, rounds: int, folder: Path) -> str:
    """Time one and two workers on `size` bytes of prose, and one process on ever larger stories.

    Returns the tables; keeps the record in `folder`. The prose is a smaller text ten times over, so
    that its words stay the same: this measures the engine, not how many words a language has.
    """
    text = prose(size // 10)
    with tempfile.TemporaryDirectory(dir=config.data_folder()) as temporary:
        path = Path(temporary, "text")
        with path.open("wb") as file:
            file.writelines(repeat(text.read_bytes(), 10))
        works = {str(n): partial(measured, train_and_encode, path, n) for n in (1, 2)}
        by_workers = measure.in_turns(works, rounds, "bench scaling")
        record = {
            "text": text.name,
            "bytes": path.stat().st_size,
            "seconds": {
                task: {n: [run.result[task] for run in runs] for n, runs in by_workers.items()}
                for task in ("train", "encode")
            },
        }
        stories = corpora.path("stories", size=max(GROWING))
        record["growing"] = {str(part): growth(first_part(stories, path, part)) for part in GROWING}
    record["machine"] = measure.machine(LIBRARIES)
    return measure.keep(folder / "scaling.json", record, scaling_table(record))


def growth(path: Path) -> dict[str, float]:
    """The processor seconds and the peak memory of a process that trains, and of one that encodes.

    The engine loads in both.
    """
    trained = measured(train_once, path)
    encoded = measured(encode_once, path, *trained.result[1])
    runs = {"train_bpe": trained, "tokenize_file": encoded}
    return {f"{name}, s": run.result[0] for name, run in runs.items()} | {
        f"{name}, MB": run.peak_bytes / 1e6 for name, run in runs.items()
    }


def train_once(path: Path) -> tuple[float, tuple]:
    """The processor seconds of training, of all threads together, and what was learnt."""
    start = time.process_time()
    learnt = bpe.train_bpe(path, VOCAB_SIZE, [END_OF_TEXT])
    return time.process_time() - start, learnt


def encode_once(path: Path, vocab: dict, merges: list) -> tuple[float]:
    """The processor seconds of encoding to a token file."""
    start = time.process_time()
    encode_to_file(Tokenizer(vocab, merges, [END_OF_TEXT]), path)
    return (time.process_time() - start,)


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
    growing = measure.as_text(
        {f"{int(size) / 1e6:g} MB": costs for size, costs in record["growing"].items()}
    )
    return (
        f"{record['text']}, ten times: {record['bytes'] / 1e6:,.0f} MB, {where}\n\n{shown}\n\n"
        f"Stories in one process: processor seconds, and peak memory\n{growing}\n\n"
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
                "GB/s to read": PILE_BYTES / 1e9 / (min(minutes.values()) / cores * 60),
                "core-hours": total / 60,
            }
            for cores in (1, 16, 64, 256, 1_024)
        }
    )
