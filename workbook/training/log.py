"""One run is one folder: what was asked for, where it ran, and one line of JSON per logged step.

    config.json         every setting of the run
    environment.json    machine, versions, device
    log.jsonl           {"step": 10, "tokens": 40960, "seconds": 2.1, "train_loss": 6.82, ...}
    outcome.json        how far it has come, and the reasons not to believe its curve

A line is written when its step is done, so a crash costs half a line at most. `records` skips such
a line, and a run that is resumed cuts off what was written after its checkpoint.
"""

import json
import math
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbook import config as settings
from workbook.files import write_json
from workbook.lazy import __version__

if TYPE_CHECKING:
    import pandas as pd

CONFIG, ENVIRONMENT, LINES = "config.json", "environment.json", "log.jsonl"
OUTCOME = "outcome.json"
TOKENIZER = "tokenizer"  # a folder: what the run's tokens mean, wherever the run is taken
HOW_IT_ENDED = {"status": str, "step": int, "flags": list}  # what an outcome has to say
SAMPLE = "sample.json"  # beside them in the runs of experiments: a text that the model wrote
VERSIONED = ("numpy", "torch")

Record = dict[str, Any]  # a line of the log
Listener = Callable[[Record], object]  # called with each record


class RunLog:
    """The log of a run in `folder`, open for writing.

    Each of `listeners` is called with every record after it is written: any callable will do, such
    as `wandb.log` or the `append` of a list.
    """

    def __init__(self, folder: str | os.PathLike[str], listeners: Sequence[Listener] = ()) -> None:
        self.listeners = list(listeners)
        path = Path(folder) / LINES
        # A line ends with a line end, so what follows the last one was never finished.
        whole = path.read_bytes().rfind(b"\n") + 1 if path.is_file() else 0
        # Bytes, so that a position in the file is a number that a checkpoint can keep.
        self._file = path.open("ab")
        self._file.truncate(whole)  # drop the half line that a crash may have left

    def append(self, record: Record) -> None:
        """Write one line, then call the listeners. JSON has no NaN: what is not finite is null."""
        line = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in record.items()
        }
        self._file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
        self._file.flush()  # to the system: from here on a killed process loses nothing
        for listener in self.listeners:
            listener(record.copy())

    def position(self) -> int:
        """Force the log to disk; return its length in bytes, which a checkpoint remembers."""
        # Without it, a power cut could lose lines that the checkpoint counts on.
        os.fsync(self._file.fileno())
        return self._file.tell()

    def truncate(self, position: int) -> None:
        """Cut off what was written after `position`: those steps will be done again."""
        self._file.truncate(min(position, self._file.seek(0, os.SEEK_END)))
        # `truncate` leaves the position where it was, perhaps behind the new end.
        self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def claim_folder(folder: str | os.PathLike[str], config: Mapping[str, Any]) -> None:
    """Write the config of a run into its folder, or check that it is there already.

    What `config.SAME_RUN` names, such as the `name`, may differ. With more steps than there, the
    run becomes longer.
    Raises: ValueError if the folder holds another run, and what differs; or files that no run of
    ours wrote.
    """
    folder = Path(folder)
    asked: Record = json.loads(json.dumps(config))  # tuples become lists, as in the file
    # The config tells a run from all others: a folder with another one is never written to.
    if (folder / CONFIG).is_file():
        there = load_json(folder / CONFIG) | settings.SAME_RUN
        here = asked | settings.SAME_RUN
        # A hash of all the learner's parts decides, and the version of each says which one differs.
        theirs = inner(there, "parts")
        there.pop("parts", None)
        now = here.pop("parts", {})
        if theirs.get("key") != now.get("key"):
            there = there | inner(theirs, "versions")
            here = here | inner(now, "versions")
        # More steps make the same run longer; fewer would contradict what was done.
        done = there.get("steps")
        done = done if type(done) is int else math.inf  # an edited file may say anything
        is_longer = here.get("steps", 0) > done
        if math.inf > done > here.get("steps", done) and there == here | {"steps": done}:
            raise ValueError(
                f"{folder} holds this run, made longer: it is of {done:,} steps now, not"
                f" {here['steps']:,}. Ask for as many (--steps {done}), or give another folder"
            )
        if unlike := differences(there | {"steps": here["steps"]} if is_longer else there, here):
            raise ValueError(
                f"{folder} holds a run of another config ({'; '.join(unlike)}); give another folder"
            )
        if is_longer:
            write_json(folder / CONFIG, asked)
        return
    if taken := [name for name in (ENVIRONMENT, LINES, OUTCOME) if (folder / name).exists()]:
        raise ValueError(
            f"{folder} holds {', '.join(taken)} and no {CONFIG}, so it is not the folder of a run;"
            " nothing was overwritten. Give another folder"
        )
    write_json(folder / CONFIG, asked)


def differences(there: Record, here: Record) -> list[str]:
    """In words, which settings of two configs differ, such as "steps: 60 there, 70 here"."""
    # All settings side by side, whichever config they are in.
    one, other = (run | inner(run, "model") | inner(run, "optimizer") for run in (there, here))
    return [
        f"{name}: {one.get(name, 'none')} there, {other.get(name, 'none')} here"
        for name in one | other
        if name not in ("model", "optimizer") and one.get(name) != other.get(name)
    ]


def load_json(path: Path, **fields: type) -> Record:
    """The object in a JSON file, which must have these fields, each of its type.

    Raises: FileNotFoundError; ValueError if the file is damaged.
    """
    # A run cannot be read without these two; the others are written anew.
    remedy = "Restore a copy of" if path.name in (CONFIG, ENVIRONMENT) else "Remove"
    asked = f"was it edited, or was the disk full? {remedy} it"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON ({error}); {asked}") from error
    if wrong := misfit(content, fields):
        raise ValueError(f"{path} {wrong}; {asked}")
    return dict(content)


def misfit(content: Any, fields: Mapping[str, type]) -> str:
    """What keeps the content of a JSON file from being an object with these fields; "": nothing."""
    if not isinstance(content, dict):
        return f"holds {json.dumps(content)[:40]}, not an object"
    unfit = (name for name, kind in fields.items() if not isinstance(content.get(name), kind))
    return next((f"has no {name!r} of the right type" for name in unfit), "")


def inner(config: Record, name: str) -> Record:
    """An object in the stored config of a run, such as its "parts"; {} if none is there."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}  # an edited file may say anything


def load_config(folder: Path) -> settings.TrainConfig:
    """The config of the run in a folder. Raises: FileNotFoundError; ValueError."""
    content = load_json(folder / CONFIG)
    try:
        return settings.config_from(content)
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG}: {error}; restore it") from error


def records(folder: str | os.PathLike[str]) -> list[Record]:
    """The records of a run in order. A last line that a crash cut short is skipped.

    Raises: FileNotFoundError; ValueError if a line before the last is not valid JSON.
    """
    path = Path(folder) / LINES
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no {LINES}; give the folder of a run")
    # Behind the last line end there is nothing, or what a crash cut short.
    *lines, _half = path.read_bytes().split(b"\n")
    try:
        found = [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a line of {path} is not valid JSON ({error}); was it edited?") from error
    if wrong := next(filter(None, (misfit(line, {"step": int}) for line in found)), ""):
        raise ValueError(f"a line of {path} {wrong}; was it edited?")
    return found


def read_log(folder: str | os.PathLike[str]) -> "pd.DataFrame":
    """The log of a run as a table with one row per logged step; empty if nothing was logged.

    The columns are what the run wrote: tokens, seconds, learning_rate and more.
    """
    return as_table(records(folder), Path(folder) / LINES)


def as_table(logged: list[Record] | dict[str, list[Any]], source: Path) -> "pd.DataFrame":
    """Logged steps as a table. Both losses and gradient_norm are always there.

    A run that diverged before its first step has no column for what steps measure.
    Raises: ValueError that names the `source` of what is no number.
    """
    import pandas as pd  # here: a process that only trains need not load it

    name: Any = "lines"
    try:
        # A line without a value has NaN there: validation losses are measured now and then.
        frame = pd.DataFrame(logged)
        if not len(frame):
            return frame
        for name, column in frame.items():
            column.astype(float).astype(int if name in ("step", "tokens") else float)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"{source} holds what is no number ({name}: {error}); was it edited?"
        ) from error
    always = ("train_loss", "validation_loss", "gradient_norm")
    missing = {name: math.nan for name in always if name not in frame}
    return frame.assign(**missing).set_index("step")


def environment(**more: Any) -> Record:
    """The machine and the versions of this process; `more` is what the caller adds."""
    versions = {"workbook": __version__} | settings.versions(VERSIONED)
    # Enough to say later why two machines gave different numbers.
    return {**settings.machine(), "versions": versions, "commit": commit(), **more}


def commit() -> str | None:
    """The commit of the checkout that this package runs from; None if git knows none.

    An installed package may lie inside a checkout too, but in one of another project.
    """
    root = settings.checkout()
    if root is None:
        return None
    try:
        asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
