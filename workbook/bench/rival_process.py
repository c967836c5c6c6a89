"""A training loop in a process of its own, which takes steps when it is asked to.

    bench     5 ->            5 ->
    naive        0.41                     how many steps ->  the seconds of the shortest
    workbook                     0.15

What a loop tunes (how memory is kept, say) holds for its whole process. So loops that are tuned
and loops that run as they would anywhere need processes of their own, even where they take turns.
"""

import multiprocessing
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection

from workbook.bench.train_rivals import RIVALS, random_data
from workbook.config import TrainConfig


class RivalProcess:
    """One of the `RIVALS`, by its name, in a process of its own; `with` ends it."""

    def __init__(self, name: str, config: TrainConfig):
        self.name = name
        context = multiprocessing.get_context("spawn")  # a copy of this process would be tuned
        self.line, far_end = context.Pipe()
        self.process = context.Process(target=serve, args=(name, config, far_end), daemon=True)
        self.process.start()
        far_end.close()  # it is the other process' now: where that ends, so does the line

    def seconds(self, steps: int) -> float:
        """The shortest of some steps.

        Raises: RuntimeError where the process has ended.
        """
        try:
            self.line.send(steps)
            return self.line.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            code = self.process.exitcode
            why = "it was killed; was memory enough?" if code < 0 else "its error stands above"
            raise RuntimeError(
                f"the process of the loop {self.name!r} ended with exit code {code}: {why}"
            ) from error

    def __enter__(self) -> "RivalProcess":
        return self

    def __exit__(self, *_) -> None:
        self.line.close()
        self.process.join()
        self.process.close()


def serve(name: str, config: TrainConfig, line: Connection) -> None:
    """Nothing; answers on the line until its other end is closed."""
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt), ExitStack() as stack:
        step = RIVALS[name](config, random_data(config), stack)
        while True:
            line.send(best_seconds(step, line.recv()))


def best_seconds(step: Callable[[], object], steps: int) -> float:
    """The shortest of some steps."""
    taken = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)
