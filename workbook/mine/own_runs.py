"""Runs of your own parts, and your parts in the cells of the notebooks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from workbook.config import data_folder
from workbook.experiments import records
from workbook.mine import repository
from workbook.mine.own_parts import PROBLEMS, parts
from workbook.study import answers, progress, verbs
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import log
from workbook.training.parts import Parts
from workbook.training.train import Run


def runs() -> dict[str, Run]:
    """The runs of your own parts that `workbook train --mine` made, by name, the oldest first.

    Only those made by your current code can give their model back.
    """
    logs = (data_folder() / "trained").glob(f"*-mine-*/{log.LINES}")
    folders = [file.parent for file in sorted(logs, key=lambda file: file.stat().st_mtime)]
    own = parts() if folders else None
    return {folder.name: _made_by(own, folder) for folder in folders}


def of_folder(folder: Path) -> Run:
    """The run in a folder, with your parts if they are the ones that made it."""
    return _made_by(parts(), folder)


def _made_by(own: Parts, folder: Path) -> Run:
    made_of = log.config(folder).get("parts", {})
    return replace(records.load(folder), parts=own if own.key == made_of.get("key") else None)


def open_run(folder: Path) -> tuple[nn.Module, Tokenizer, Callable]:
    """The model, the tokenizer and `decode` of a run that your parts made.

    Raises: ValueError if your code has changed since.
    """
    run = of_folder(folder)
    if run.parts is None:
        raise ValueError(
            f"{folder} was made by a different version of your code, so its weights may not fit"
            " your model; restore that version, or train again"
        )
    return run.model(), run.parts.train_data(run.config).tokenizer, run.parts.decode


def now_yours(*names: str) -> Callable:
    """Run the function below with your parts, if you have all those named.

        @mine.now_yours("optimizer")
        def _(parts):
            ...

    Without them, or outside a study folder, nothing happens and nothing is shown. An error in your
    code is shown in a panel, and the notebook goes on.

    Args:
        names: those of parts, such as "model", or of code problems, such as "train_bpe".
    """

    def run(function: Callable[[Parts], Any]) -> None:
        study = progress.current()
        if study is None:
            return
        try:
            there = repository.places(study.folder)
            if not all(PROBLEMS.get(name, name) in there for name in names):
                return
            shown = function(parts(study.folder))
        except Exception as error:
            shown = verbs.Panel("wrong", f"Your part does not run here: {error}")
        if shown is not None:
            answers.display_or_print(shown)

    return run
