"""Training runs by name: each a function, whose config `replace` can change.

>>> from dataclasses import replace
>>> replace(laptop(), steps=100).tokens  # in batches of 8 windows of 128 ids
102400
"""

from dataclasses import replace

from workbook import config
from workbook.config import OptimizerConfig, TrainConfig


def laptop() -> TrainConfig:
    """A run of about a minute on two cores, after which the small model writes readable stories."""
    return TrainConfig(
        name="laptop",
        model=config.laptop(),
        optimizer=OptimizerConfig(max_learning_rate=1e-2, min_learning_rate=1e-3, warmup_iters=20),
        corpus_bytes=5_000_000,  # 1.4 million tokens: nearly all of them are seen once
        steps=800,
        batch_size=8,
        eval_every=100,
        eval_tokens=32_768,
        checkpoint_every=400,
    )


def tinystories() -> TrainConfig:
    """The course's run: 327,680,000 tokens of TinyStories, meant for a GPU."""
    return TrainConfig(
        name="tinystories",
        model=config.tinystories(),
        optimizer=OptimizerConfig(warmup_iters=500),
        corpus="tinystories",
        steps=10_000,
        batch_size=128,
        eval_every=500,
        eval_tokens=1_048_576,
        checkpoint_every=500,
    )


def tinystories_cpu() -> TrainConfig:
    """The course's smaller budget for those without a GPU: 40,960,000 tokens."""
    return replace(
        tinystories(),
        name="tinystories-cpu",
        optimizer=OptimizerConfig(warmup_iters=250),
        steps=5_000,
        batch_size=32,
        eval_tokens=131_072,
    )


PRESETS = {preset().name: preset for preset in (laptop, tinystories, tinystories_cpu)}


def get(name: str) -> TrainConfig:
    """The config of a preset, such as "laptop"."""
    if name not in PRESETS:
        raise ValueError(f"{name!r} is no preset; there are {', '.join(PRESETS)}")
    return PRESETS[name]()
