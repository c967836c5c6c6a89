"""The engine of experiments: runs asked for in rounds, made where they have no record yet.

An experiment is a plan: a generator that yields dicts of configs by label and is sent their runs
by the same labels. So a plan can look at a sweep before it decides what to try next:

    results = yield {f"rate {rate:g}": varied(base, max_learning_rate=rate) for rate in RATES}
    best = best_of(results)
    results |= yield {f"seed {seed}": varied(best.config, seed=seed) for seed in SEEDS}
    return results

`Stage.advance` sends it recorded runs, as far as there are any; `run_plans` makes what is missing.
A run is found by the hash of its config, whichever experiment asked for it first, and never made
twice.
"""

import math
import os
import re
import shutil
import time
from collections.abc import Collection, Generator, Iterator, Mapping
from concurrent import futures
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch
from tqdm import tqdm

from workbook.config import TrainConfig
from workbook.corpora import corpora, fluency
from workbook.experiments import records
from workbook.files import progress_bar, say, write_json
from workbook.generation.sampling import write_text
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import devices, log
from workbook.training.data import prepare
from workbook.training.trainer import CHECKPOINTS, DivergedError, Run, run_folder, train

Results = dict[str, Run]
Plan = Generator[dict[str, TrainConfig], Results, Results]

# How the text is drawn that each trained model writes.
DRAWN: dict[str, Any] = {"max_new_tokens": 256, "temperature": 0.8, "top_p": 0.95}
WORTH_COMPILING = 20_000_000  # tokens: compiling takes as long as a GPU does for a few million
LOOK_EVERY = 5  # seconds: how far the runs are
COMPARED = 50_000_000  # characters of the training text, at most, that it is compared with


def run_plans(
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
    underway: dict[TrainConfig, Future[None]] = {}
    bar = progress_bar(unit=" tokens", unit_scale=True)
    show = partial(show_progress, bar, stages.values(), {})
    try:
        while any(not stage.over for stage in stages.values()):
            for name, stage in stages.items():
                stage.advance()
                for config in stage.missing():
                    if may_begin(config, underway):
                        prepare(config)  # made once here, and not by every worker
                        config = as_computed(config, accumulation)
                        show()
                        underway[config] = submit(executor, name, config, until)
            # As soon as one run ends its plan may ask for the next round.
            while underway and not any(future.done() for future in underway.values()):
                show()
                futures.wait(underway.values(), LOOK_EVERY, futures.FIRST_COMPLETED)
            for config in [config for config, future in underway.items() if future.done()]:
                underway.pop(config).result()  # raises what went wrong, the earliest run's first
    except futures.BrokenExecutor as error:
        raise OSError(
            "a worker was killed, often because memory ran out; make the same call to go on,"
            " perhaps with fewer workers"
        ) from error
    finally:
        bar.close()
        for future in underway.values():
            future.cancel()
    return {name: stage.returned for name, stage in stages.items()}


def show_progress(bar: tqdm, stages: Collection["Stage"], asked: dict[str, int]) -> None:
    """Move the bar of the tokens of all runs that were asked for so far, which it adds to `asked`.

    What a run saw in an earlier session does not count, or the time left would look too short.
    """
    if bar.disable:  # nobody watches: do not read what every run has saved
        return
    missing = [config for stage in stages for config in stage.missing()]
    left = {config.key: tokens_left(config) for config in missing}
    asked |= left | asked
    bar.total = sum(asked.values())
    bar.n = bar.total - sum(left.values())
    bar.refresh()


def tokens_left(config: TrainConfig) -> int:
    """The tokens that a run has not seen yet, by what it last saved."""
    run = Run(config, run_folder(config))
    steps = 0 if run.status == "new" else run.outcome["step"]
    return config.tokens - steps * config.batch_size * config.model.context_length


def may_begin(config: TrainConfig, underway: Collection[TrainConfig]) -> bool:
    """Whether a run may begin beside those under way: one with a time limit is made alone."""
    timed = any(other.max_seconds is not None for other in (config, *underway))
    begun = config.key in {other.key for other in underway}  # plans share runs
    return not begun and not (timed and underway)


class Stage:
    """A plan and the round that it waits for: what it `asked`, until it is `over`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.over = False
        self.asked: dict[str, TrainConfig] = {}
        self.seen: Results = {}  # in the rounds before
        self.returned: Results = {}  # once it is over
        self._send(None)

    def missing(self) -> list[TrainConfig]:
        """The configs of this round that have no record, named after their labels."""
        return [
            replace(config, name=re.sub(r"[^a-z0-9.]+", "-", label.lower()))
            for label, config in self.asked.items()
            if records.find_record(config) is None
        ]

    def advance(self) -> None:
        """Take the plan as far as the records lead."""
        while not self.over and not self.missing():
            self._send(self._recorded())

    def so_far(self) -> Results:
        """The runs with a record, of this round and those before."""
        return self.seen | self._recorded()

    def _recorded(self) -> Results:
        """The runs of this round that have a record."""
        runs = {label: records.find_record(config) for label, config in self.asked.items()}
        return {label: run for label, run in runs.items() if run is not None}

    def _send(self, results: Results | None) -> None:
        self.seen |= results or {}
        try:
            # None begins a generator, which no type can say.
            self.asked = self.plan.send(results)  # type: ignore[arg-type]
        except StopIteration as end:
            self.asked = {}
            self.over = True
            self.returned = end.value


def as_computed(config: TrainConfig, accumulation: int) -> TrainConfig:
    """The same run with its batches computed in `accumulation` parts, or as many as divide them.

    A short run is not compiled, even if the base of its experiment is.
    """
    parts = math.gcd(accumulation, config.batch_size)  # a batch is cut into equal parts
    pays = config.compile and config.tokens >= WORTH_COMPILING
    return replace(config, accumulation=parts, compile=pays)


def submit(
    executor: Executor | None, study: str, config: TrainConfig, until: float
) -> Future[None]:
    """Have a run made; without an executor it is made before this returns."""
    if executor is not None:
        return executor.submit(make_run, study, config, until)
    future: Future[None] = Future()  # one that is done, so that the caller need not care
    make_run(study, config, until)
    future.set_result(None)
    return future


def make_run(study: str, config: TrainConfig, until: float = math.inf) -> None:
    """Train the run of this config to its end; keep its record in `study`, but no checkpoints."""
    if time.time() >= until:
        raise KeyboardInterrupt("the time is up")
    say(f"{study}: {config.name}, {config.tokens:,} tokens")
    run = Run(config, run_folder(config))
    data = prepare(config)
    if run.status != "diverged":  # which it would do again
        try:
            finished = train(config, data, until=until)
        except DivergedError:
            pass  # the log and the reason are on the disk
        else:
            write_json(run.folder / log.SAMPLE, sample(finished, data.tokenizer))
    records.keep_record(study, run, data)
    # Those of all runs together would fill a disk, and nobody needs them: there is a record.
    shutil.rmtree(run.folder / CHECKPOINTS, ignore_errors=True)


def sample(finished: Run, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """A document that the model of a run writes, how it was drawn, and counts of its words.

    They are counted now, while the training text is at hand: `docstrings` is another text with
    other libraries. The text is compared with the first `COMPARED` characters of it.
    """
    assert tokenizer is not None, "`prepare` gives one"
    config = finished.config
    generator = torch.Generator().manual_seed(config.seed)
    pieces = write_text(finished.model(), tokenizer, "", **DRAWN, generator=generator)
    text = "".join(pieces)
    with corpora.path(config.corpus, "train", config.corpus_bytes).open(encoding="utf-8") as file:
        counts = fluency.counts(text.replace(corpora.END_OF_TEXT, ""), file.read(COMPARED))
    return DRAWN | {"seed": config.seed, "text": text, "counts": counts}


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
    with futures.ProcessPoolExecutor(workers, context, _take_place, (places,)) as executor:
        yield executor


def _take_place(places: "SimpleQueue[str]") -> None:
    """Prepare a worker: one thread, and the next GPU of the queue."""
    torch.set_num_threads(1)
    if gpu := places.get():
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # before anything has asked CUDA for a device
