"""The engine of experiments: runs asked for in rounds, made where they have no record yet.

An experiment is a plan: a generator that yields dicts of configs by label and is sent their runs
by the same labels. So a plan can look at a sweep before it decides what to try next:

    results = yield {f"rate {rate:g}": varied(base, max_learning_rate=rate) for rate in RATES}
    best = best_of(results)
    results |= yield {f"seed {seed}": varied(best.config, seed=seed) for seed in SEEDS}
    return results

`Stage.advance` sends it recorded runs, as far as there are any; `run` makes what is missing. A run
is found by the hash of its config, whichever experiment asked for it first, and never made twice.
"""

import math
import os
import re
import shutil
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from multiprocessing import get_context
from threading import Event, Thread

import torch
from tqdm import tqdm

from workbook.config import TrainConfig
from workbook.corpora import corpora, fluency
from workbook.experiments import records
from workbook.experiments.records import Run
from workbook.files import write_json
from workbook.generation.generate import write_text
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import devices, log
from workbook.training.data import prepare
from workbook.training.train import CHECKPOINTS, DivergedError, run_folder, train

Results = dict[str, Run]
Plan = Generator[dict[str, TrainConfig], Results, Results]

SAMPLE_TOKENS, TEMPERATURE, TOP_P = 256, 0.8, 0.95  # of the text that each trained model writes
WORTH_COMPILING = 20_000_000  # tokens: compiling takes as long as a GPU does for a few million
COMPARED = 50_000_000  # characters of the training text, at most, that it is compared with


def run(
    plans: Mapping[str, Plan],
    executor: Executor | None = None,
    until: float = math.inf,
    accumulation: int = 1,
) -> dict[str, Results]:
    """Make the runs of these plans that have no record; return each plan's results by its name.

    With an executor the runs of all plans are made side by side, by workers that must see the data
    folder; without one they are made here, one after another. It may be stopped at any moment; the
    same call then goes on: finished runs are found, and one that was cut off goes on from its
    checkpoint. A run that diverges is a result like any other. A run with `max_seconds` is made
    alone, because another one beside it would take some of its time.

    At the time `until`, in seconds of `time.time()`, it stops as if by Ctrl-C. Batches are computed
    in `accumulation` parts, or in the largest number of parts that divides both that and the batch:
    this takes less memory, and the runs are the same.
    Raises: KeyboardInterrupt when it was stopped, with every run saved; OSError.
    """
    stages = {name: Stage(plan) for name, plan in plans.items()}
    made: dict[str, TrainConfig] = {}  # by their keys: plans share runs
    underway: dict[str, Future] = {}
    with progress_bar(made):
        try:
            while any(not stage.over for stage in stages.values()):
                for stage in stages.values():
                    stage.advance()
                    for config in stage.missing():
                        if may_begin(config, underway, made):
                            made[config.key] = config
                            prepare(config)  # made once here, and not by every worker
                            config = as_computed(config, accumulation)
                            underway[config.key] = submit(executor, config, until)
                # As soon as one run ends its plan may ask for the next round.
                wait(underway.values(), return_when=FIRST_COMPLETED)
                for key in [key for key, future in underway.items() if future.done()]:
                    underway.pop(key).result()  # raises what went wrong, the earliest run's first
        except BrokenExecutor as error:
            raise OSError(
                "a worker was killed, often because memory ran out; make the same call to go on,"
                " perhaps with fewer workers"
            ) from error
        finally:
            for future in underway.values():
                future.cancel()
    return {name: stage.returned for name, stage in stages.items()}


def may_begin(
    config: TrainConfig, underway: Collection[str], made: Mapping[str, TrainConfig]
) -> bool:
    """Whether a run may begin beside those under way: one with a time limit is made alone."""
    if config.key in underway:
        return False
    timed = [each for each in (config, *(made[key] for key in underway)) if each.max_seconds]
    return not (underway and timed)


class Stage:
    """A plan and the round that it waits for: what it `asked`, until it is `over`."""

    def __init__(self, plan: Plan):
        self.plan, self.over = plan, False
        self.asked: dict[str, TrainConfig] = {}
        self.seen: Results = {}  # in the rounds before
        self.returned: Results = {}  # once it is over
        self._send(None)

    def missing(self) -> list[TrainConfig]:
        """The configs of this round that have no record, named after their labels."""
        return [
            replace(config, name=re.sub(r"[^a-z0-9.]+", "-", label.lower()))
            for label, config in self.asked.items()
            if records.find(config) is None
        ]

    def advance(self) -> None:
        """Take the plan as far as the records lead."""
        while not self.over and not self.missing():
            self._send({label: records.find(config) for label, config in self.asked.items()})

    def so_far(self) -> Results:
        """The runs with a record, of this round and those before."""
        found = {label: records.find(config) for label, config in self.asked.items()}
        return self.seen | {label: result for label, result in found.items() if result}

    def _send(self, results: Results | None) -> None:
        self.seen |= results or {}
        try:
            self.asked = self.plan.send(results)
        except StopIteration as end:
            self.asked, self.over, self.returned = {}, True, end.value


def as_computed(config: TrainConfig, accumulation: int) -> TrainConfig:
    """The same run with its batches computed in `accumulation` parts, or as many as divide them.

    A short run is not compiled, even if the base of its experiment is.
    """
    parts = math.gcd(accumulation, config.batch_size)
    pays = config.compile and config.tokens >= WORTH_COMPILING
    return replace(config, accumulation=parts, compile=pays)


def submit(executor: Executor | None, config: TrainConfig, until: float) -> Future:
    """Have a run made; without an executor it is made before this returns."""
    if executor is not None:
        return executor.submit(make, config, until)
    future: Future = Future()
    make(config, until)
    future.set_result(None)
    return future


def make(config: TrainConfig, until: float = math.inf) -> None:
    """Train the run of this config to its end, and keep its record, but no checkpoints."""
    if time.time() >= until:
        raise KeyboardInterrupt("the time is up")
    folder = run_folder(config)
    if Run(config, folder).status != "diverged":
        try:
            data = prepare(config)
            finished = train(config, data, until=until)
        except DivergedError:
            pass  # the log and the reason are on the disk
        else:
            write_json(folder / log.SAMPLE, sample(finished, data.tokenizer))
    records.keep(config, folder)
    # Those of all runs together would fill a disk, and nobody needs them: there is a record.
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)


def sample(finished: Run, tokenizer: Tokenizer) -> dict:
    """A document that the model of a run writes, how it was drawn, and counts of its words.

    They are counted now, while the training text is at hand: `docstrings` is another text with
    other libraries. The text is compared with the first `COMPARED` characters of it.
    """
    config = finished.config
    generator = torch.Generator().manual_seed(config.seed)
    pieces = write_text(
        finished.model(), tokenizer, "", SAMPLE_TOKENS, TEMPERATURE, TOP_P, generator=generator
    )
    text = "".join(pieces)
    with corpora.path(config.corpus, "train", config.corpus_bytes).open(encoding="utf-8") as file:
        counts = fluency.counts(text.replace(corpora.END_OF_TEXT, ""), file.read(COMPARED))
    return {
        "max_new_tokens": SAMPLE_TOKENS,
        "temperature": TEMPERATURE,
        "top_p": TOP_P,
        "seed": config.seed,
        "text": text,
        "counts": counts,
    }


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """Processes of one thread each: on a CPU two of them get more done than one with two threads.

    One thread also adds up in the same order on any number of cores. Where there are GPUs, each
    process sees one of them, in turn.
    """
    context = get_context("spawn")  # a fork would copy torch's locks, but not its threads
    places = context.SimpleQueue()
    for _, gpu in zip(range(workers), cycle(devices.gpus() or [""]), strict=False):
        places.put(gpu)
    with ProcessPoolExecutor(workers, context, _take_place, (places,)) as executor:
        yield executor


def _take_place(places) -> None:
    """Prepare a worker: one thread, and the next GPU of the queue."""
    torch.set_num_threads(1)
    if gpu := places.get():
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # before anything has asked CUDA for a device


def tokens_so_far(config: TrainConfig) -> int:
    """The tokens of a run so far; all that were asked for once it has ended, even early."""
    if records.find(config) is not None:
        return config.tokens
    try:
        lines = log.records(run_folder(config))
    except (OSError, ValueError):
        return 0
    return lines[-1]["tokens"] if lines else 0


@contextmanager
def progress_bar(configs: Mapping[str, TrainConfig], every: float = 1.0) -> Iterator[None]:
    """Show how far the runs of `configs` are, in tokens, as a thread reads it from their logs.

    More may be added meanwhile, by their keys; as long as there are none, there is no bar.
    """
    over, bar = Event(), None

    def update() -> None:
        nonlocal bar
        known = list(configs.values())
        if not known:
            return
        if bar is None:
            bar = tqdm(unit="token", unit_scale=True)
        bar.total = sum(config.tokens for config in known)
        ended = sum(records.find(config) is not None for config in known)
        bar.set_description(f"{ended} of {len(known)} runs", refresh=False)
        bar.update(sum(map(tokens_so_far, known)) - bar.n)

    def watch() -> None:
        while not over.wait(every):
            update()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        update()
        if bar is not None:
            bar.close()
