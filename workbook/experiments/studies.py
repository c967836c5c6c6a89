"""How large the experiments of chapter 7 are: on a laptop, and with the course's own sizes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbook.config import Edition, TrainConfig
from workbook.training import presets
from workbook.training.presets import varied

# Seconds of the leaderboard: the course gives 90 minutes or 45, on a faster GPU.
CAPS: dict[Edition, float] = {"2025": 90 * 60.0, "2026": 45 * 60.0}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the experiments are."""

    base: TrainConfig  # on the simple corpus
    web: TrainConfig  # the same on the web corpus
    rates: tuple[float, ...]  # of the first sweep, from small ones to those that diverge
    bisections: int  # of the edge of stability
    seeds: tuple[int, ...]  # besides the base's
    batch_sizes: tuple[int, ...]  # the last is what the accounting gives half of the memory to
    memory: float  # bytes, for which that is so
    parts: int  # a batch of one sees one in so many of the tokens
    cap: float  # seconds of the leaderboard
    cap_steps: int  # more than anybody takes in that time
    cap_evaluations: int  # at most


def laptop_scale() -> Scale:
    """Under a hundred runs of some 400,000 tokens: about an hour on two cores.

    On the CPU in float32, so that any machine can repeat them.
    """
    base = varied(
        presets.laptop(),
        name="base",
        steps=384,
        warmup_iters=19,
        log_every=8,
        eval_every=48,
        checkpoint_every=192,
        keep_checkpoints=1,
        device="cpu",
        precision="float32",
    )
    return Scale(
        base=base,
        web=varied(base, corpus="pydocs", corpus_bytes=None, vocab_size=8_192),
        rates=(3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0),
        bisections=2,
        seeds=(1, 2, 3, 4),
        batch_sizes=(1, 8, 16, 32, 64, 128, 384),
        memory=8e9,
        parts=4,
        cap=60.0,
        cap_steps=1_900,
        cap_evaluations=15,
    )


def full_scale(edition: Edition = "2025") -> Scale:
    """The course's own sizes, for a GPU of 80 GB: 327,680,000 tokens a run."""
    base = presets.tinystories()
    return Scale(
        base=base,
        web=varied(base, corpus="owt", vocab_size=32_000),
        rates=(1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0),
        bisections=3,
        seeds=(1, 2, 3, 4),
        batch_sizes=(1, 8, 16, 32, 64, 128, 256, 512),
        memory=80e9,
        parts=64,
        cap=CAPS[edition],
        cap_steps=400_000,
        cap_evaluations=100,
    )


def full_cpu_scale(edition: Edition = "2025") -> Scale:
    """The same with the course's budget for those without a GPU: 40,960,000 tokens a run."""
    base = presets.tinystories_cpu()
    return replace(
        full_scale(edition),
        base=base,
        web=varied(base, corpus="owt", vocab_size=32_000),
        batch_sizes=(1, 8, 16, 32, 64, 128),
        memory=32e9,
    )


SCALES: dict[str, Callable[[Edition], Scale]] = {
    "laptop": lambda edition: laptop_scale(),
    "full": full_scale,
    "full-cpu": full_cpu_scale,
}


def scale_named(name: str, edition: Edition) -> Scale:
    """The scale of that name, such as "laptop"; the editions differ in the leaderboard's time.

    Raises: ValueError for an unknown name.
    """
    if name not in SCALES:
        raise ValueError(f"{name!r} is no scale; there are {', '.join(SCALES)}")
    return SCALES[name](edition)
