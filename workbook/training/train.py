"""Training: a config goes in, a folder with a log, checkpoints and a trained model comes out.

A run that was stopped, by a crash, Ctrl-C or a power cut, is started again with the same config,
and goes on from its last checkpoint; on a CPU with as many threads, to the same bits.
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbook import config as settings
from workbook.config import TrainConfig
from workbook.files import alone
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, devices
from workbook.training import log as runlog
from workbook.training.processes import team
from workbook.training.stop_signals import wish_to_stop
from workbook.training.train_data import TrainData, train_data
from workbook.training.trainer import CHECKPOINTS, KEPT, DivergedError, Trainer
from workbook.transformer.model import TransformerLM

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DivergedError", "Run", "run_folder", "train", "trained"]


@dataclass(frozen=True)
class Run:
    """A run on disk."""

    config: TrainConfig
    folder: Path

    @property
    def log(self) -> "pd.DataFrame":
        """The log: a row a logged step."""
        return runlog.read(self.folder)

    @property
    def status(self) -> str:
        """How far it has come: new, running, stopped, diverged or finished."""
        outcome = self.folder / runlog.OUTCOME
        return runlog.load_json(outcome)["status"] if outcome.is_file() else "new"

    @property
    def precision(self) -> str:
        """What its matmuls are computed in, such as "bfloat16"."""
        return runlog.load_json(self.folder / runlog.ENVIRONMENT)["precision"]

    @property
    def flags(self) -> list[str]:
        """What speaks against believing the curve; empty where every check holds."""
        return runlog.load_json(self.folder / runlog.OUTCOME)["flags"]

    def model(self) -> TransformerLM:
        """The model as it was last saved, on the CPU."""
        state = checkpoints.newest(self.folder / CHECKPOINTS, ["model"])
        model = TransformerLM.from_config(self.config.model)
        checkpoints.restore(state, model)
        return model.eval()


def run_folder(config: TrainConfig) -> Path:
    """Where a run of this config lies in the data folder: each config has one place.

    Forced precisions have theirs beside it, so a model of one never passes for that of another.
    """
    asked = devices.asked_precision(config.precision)
    forced = f"-{asked}" if asked != config.precision else ""
    return settings.data_folder() / "trained" / f"{config.name}-{config.key}{forced}"


def trained(
    config: TrainConfig, listeners: Sequence[runlog.Listener] = ()
) -> tuple[TransformerLM, Tokenizer]:
    """The model of a config, trained first unless it lies in the data folder, and its tokenizer."""
    run = train(config, listeners=listeners)
    return run.model(), train_data(config).tokenizer


def train(
    config: TrainConfig,
    folder: str | os.PathLike | None = None,
    data: TrainData | None = None,
    listeners: Sequence[runlog.Listener] = (),
) -> Run:
    """The finished run of a config; what of it is done already is not done again.

    `folder` is its place unless the data folder's will do, `data` what it trains on unless the
    config's corpus. Each of `listeners` is called with every record of the log.
    Raises: DivergedError; KeyboardInterrupt, after the step in hand has been saved; OSError where a
    checkpoint cannot be written. All of them leave the last checkpoint.
    """
    run = Run(config, Path(folder) if folder is not None else run_folder(config))
    if is_done(run):  # which can be asked for without a lock, on a disk that is read-only too
        return run
    before = checkpoints.random_state()
    try:
        with team(config.device) as members, alone(run.folder, members.leads):
            members.wait()  # for the leader to have the folder to itself
            if members.leads:
                runlog.claim(run.folder, asdict(config))
            state = checkpoints.newest(run.folder / CHECKPOINTS, KEPT)
            data = data or members.in_turn(lambda: train_data(config))
            trainer = Trainer(config, run.folder, data, members)
            with trainer.open_log(listeners), wish_to_stop() as wish:
                trainer.begin(state)
                trainer.run_to_end(wish)
    finally:
        checkpoints.restore_random_state(before)  # whoever called us draws on as if we had not
    return run


def is_done(run: Run) -> bool:
    """Whether the run has finished in a precision that will do, and its model can be loaded."""
    if run.status != "finished":
        return False
    state = checkpoints.newest(run.folder / CHECKPOINTS)
    if state is None or state.get("config") != run.config.key or not state.get("finished"):
        return False
    asked = devices.asked_precision(run.config.precision)
    return asked in ("auto", state.get("precision", asked))  # earlier versions did not store theirs


def train_and_tell(config: TrainConfig, folder: str | os.PathLike | None = None) -> None:
    """Train and print how it goes, as the command line does."""
    place = Path(folder) if folder is not None else run_folder(config)

    def tell(record: dict) -> None:
        if record["step"] == 0:
            found = runlog.load_json(place / runlog.ENVIRONMENT)
            print("matmuls in {precision} on {device}, threads: {threads}".format(**found))
        print(told(config, record), flush=True)

    run = train(config, place, listeners=[tell])
    if os.environ.get("RANK", "0") == "0":  # of several processes one speaks
        print(f"trained: {run.folder}")
        for flag in run.flags:
            print(f"not to be believed yet: {flag}")


def told(config: TrainConfig, record: dict) -> str:
    """A record of the log as a line to read."""
    words = [f"step {record['step']:,} of {config.steps:,}"]
    for name, text in (
        ("train_loss", "loss {:.3f}"),
        ("validation_loss", "validation {:.3f}"),
        ("validation_bits_per_byte", "{:.3f} bits/byte"),
        ("tokens_per_second", "{:,.0f} tokens/s"),
        ("mfu", "MFU {:.0%}"),
    ):
        if record.get(name) is not None:
            words.append(text.format(record[name]))
    return "  ".join(words)
