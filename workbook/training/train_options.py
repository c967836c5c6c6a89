"""`workbook train PRESET --field value`: every setting of a run on the command line, by its name.

The options are made from the fields of the three configs, so none can be forgotten.
"""

import argparse
from collections.abc import Callable
from dataclasses import Field, fields
from types import NoneType
from typing import Literal, get_args, get_origin

from workbook.config import TrainConfig
from workbook.training import presets
from workbook.training.presets import PARTS

MOST_WORKERS = 1_000  # all are started at once, and far too many bring the machine down


def add_options(parser: argparse.ArgumentParser) -> None:
    """Nothing; the parser knows the presets and every setting."""
    parser.add_argument("preset", metavar="PRESET", help=" | ".join(presets.PRESETS))
    parser.add_argument("--folder", metavar="FOLDER", help="of the run; default: by its settings")
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what is needed; status 1: not all is here"
    )
    for title, config in {"run": TrainConfig, **PARTS}.items():
        group = parser.add_argument_group(title)
        for field in fields(config):
            if field.name not in PARTS:
                group.add_argument(
                    f"--{field.name.replace('_', '-')}",
                    dest=field.name,
                    default=argparse.SUPPRESS,
                    **option(field),
                )


def option(field: Field) -> dict:
    """How argparse is to read one field."""
    kinds = [kind for kind in get_args(field.type) or (field.type,) if kind is not NoneType]
    if get_origin(field.type) is Literal:
        return {"choices": kinds}
    if field.type is bool:
        return {"action": argparse.BooleanOptionalAction}
    if get_origin(field.type) is tuple:
        return {"nargs": len(kinds), "type": kinds[0], "metavar": "X"}
    metavar = {int: "N", float: "X"}.get(kinds[0], "NAME")
    optional = NoneType in get_args(field.type)
    return {"type": or_none(kinds[0]) if optional else kinds[0], "metavar": metavar}


def or_none(kind: Callable) -> Callable:
    """A reader of values of that kind, and of the word "none"."""

    def read(text: str):
        return None if text.lower() == "none" else kind(text)

    read.__name__ = kind.__name__  # which argparse names where a value does not fit
    return read


def between(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not (text.isdecimal() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {least} to {most}")
        return int(text)

    return read


def chosen(options: argparse.Namespace) -> TrainConfig:
    """The preset with the settings that were given on the command line."""
    known = {field.name for kind in (TrainConfig, *PARTS.values()) for field in fields(kind)}
    given = {name: value for name, value in vars(options).items() if name in known}
    return presets.varied(presets.get(options.preset), **given)
