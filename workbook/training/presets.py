"""Training runs by name, and every setting of them as an option of `workbook train`.

>>> from dataclasses import replace
>>> replace(laptop(), steps=100).tokens  # in batches of 8 windows of 128 tokens
102400

`workbook train PRESET --field value` has an option for each field of the three configs: they are
made from the fields, so none can be forgotten.
"""

import argparse
import inspect
import re
from collections.abc import Callable
from dataclasses import Field, fields, replace
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from workbook import config
from workbook.config import ModelConfig, OptimizerConfig, TrainConfig, as_python


def laptop() -> TrainConfig:
    """A run of about a minute on two cores, after which the small model writes readable stories."""
    return TrainConfig(
        name="laptop",
        model=config.laptop(),
        # The small model wants a rate ten times as high as the course's, as notebook 08 finds.
        optimizer=OptimizerConfig(max_learning_rate=1e-2, min_learning_rate=1e-3, warmup_iters=20),
        corpus_bytes=5_000_000,  # 1.5 million tokens, of which the run draws 0.8
        steps=800,
        batch_size=8,
        eval_every=100,
        eval_tokens=32_768,
        checkpoint_every=100,
    )


def full() -> TrainConfig:
    """The course's run: 327,680,000 tokens of TinyStories, meant for a GPU."""
    return TrainConfig(
        name="full",
        model=config.tinystories(),
        optimizer=OptimizerConfig(warmup_iters=500),
        corpus="tinystories",
        steps=10_000,
        batch_size=128,
        log_every=50,
        eval_every=500,
        eval_tokens=1_048_576,
        checkpoint_every=500,
        compile=True,
    )


def gpu() -> TrainConfig:
    """The course's model on an eighth of its tokens, 40,960,000: minutes on a GPU."""
    return replace(
        full(),
        name="gpu",
        optimizer=OptimizerConfig(warmup_iters=125),
        steps=2_500,
        batch_size=64,
        log_every=25,
        eval_every=250,
        eval_tokens=262_144,
    )


def gpu_offline() -> TrainConfig:
    """The same for a machine without a network: on stories, with their smaller vocabulary."""
    profile = config.PROFILES["gpu-offline"]
    return replace(
        gpu(),
        name=profile.name,
        model=profile.model,
        corpus=profile.simple_corpus,
        corpus_bytes=200_000_000,  # more tokens than the run sees
    )


def cpu() -> TrainConfig:
    """The course's budget for those without a GPU: also 40,960,000 tokens, in small batches."""
    return replace(
        full(),
        name="cpu",
        optimizer=OptimizerConfig(warmup_iters=250),
        steps=5_000,
        batch_size=32,
        log_every=25,
        eval_tokens=131_072,
        compile=False,
    )


PRESETS = {make().name: make for make in (laptop, gpu, gpu_offline, full, cpu)}


def preset(name: str, **changes: Any) -> TrainConfig:
    """The config of a preset, such as "laptop", with other settings as in `varied`."""
    if name not in PRESETS:
        raise ValueError(f"{name!r} is not a preset; the presets are {', '.join(PRESETS)}")
    return varied(PRESETS[name](), **changes)


INNER_CONFIGS = {"model": ModelConfig, "optimizer": OptimizerConfig}  # fields of a TrainConfig


def varied(base: TrainConfig, **changes: Any) -> TrainConfig:
    """The config with other settings, each given by its name, in whichever config it is.

    A largest learning rate without a smallest one scales both: their ratio stays as it is. Another
    corpus is taken whole unless its bytes are given.

    >>> varied(laptop(), norm="post", seed=1).model.norm
    'post'
    >>> low = varied(laptop(), max_learning_rate=5e-4).optimizer
    >>> low.max_learning_rate, low.min_learning_rate  # at first 1e-2 and 1e-3
    (0.0005, 5e-05)

    Raises: ValueError for a name that no setting has.
    """
    changes = {name: as_python(value) for name, value in changes.items()}
    if "max_learning_rate" in changes:
        usual = base.optimizer
        # Otherwise a smaller maximum could lie below the minimum, and be refused.
        share = usual.min_learning_rate / (usual.max_learning_rate or 1)
        changes.setdefault("min_learning_rate", share * changes["max_learning_rate"])
    if changes.get("corpus", base.corpus) != base.corpus:
        # A number of bytes belongs to the corpus that it was chosen for.
        changes.setdefault("corpus_bytes", None)
    inner = {}
    for name in INNER_CONFIGS:
        part = getattr(base, name)
        # The three configs share no names, so a name alone says where a setting belongs.
        own = {setting: changes.pop(setting) for setting in vars(part) if setting in changes}
        inner[name] = replace(part, **own)
    if unknown := ", ".join(sorted(changes.keys() - vars(base).keys())):
        raise ValueError(f"no setting is called {unknown}; `workbook train --help` lists them all")
    return replace(base, **inner | changes)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the presets and an option for every setting to a parser."""
    parser.add_argument("preset", metavar="PRESET", nargs="?", help=" | ".join(PRESETS))
    for title, kind in {"run": TrainConfig, **INNER_CONFIGS}.items():
        group = parser.add_argument_group(title)
        usual = laptop() if kind is TrainConfig else getattr(laptop(), title)
        # In the source, a comment behind each field says what it is.
        # They are the help of the command line: written once, beside what they describe.
        comments = dict(re.findall(r"(?m)^    (\w+): .*  # (.*)$", inspect.getsource(kind)))
        for field in fields(kind):
            if field.name not in INNER_CONFIGS:
                words = f"{comments.get(field.name, '')} (laptop: {getattr(usual, field.name)})"
                group.add_argument(
                    f"--{field.name.replace('_', '-')}",
                    dest=field.name,
                    default=argparse.SUPPRESS,
                    help=words.replace("%", "%%"),
                    **option(field),
                )


def option(field: Field[Any]) -> dict[str, Any]:
    """The arguments of `add_argument` for one field."""
    # `int | None` has two kinds, of which one is no value to type.
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


def or_none(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser of values of that kind, and of the word "none"."""

    def parse(text: str) -> Any:
        return None if text.lower() == "none" else kind(text)

    parse.__name__ = kind.__name__  # argparse names it when a value does not fit
    return parse


def chosen(options: argparse.Namespace) -> TrainConfig:
    """The preset with the settings that were given on the command line."""
    base = preset(options.preset)
    # An option that was not given is not in `options` at all (`argparse.SUPPRESS`).
    known = vars(base) | vars(base.model) | vars(base.optimizer)
    return varied(base, **{name: value for name, value in vars(options).items() if name in known})
