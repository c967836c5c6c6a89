"""The experiments of the course's chapter 7: which runs, in which order, and why.

Every plan starts from the sweep of learning rates and goes on from its best run. What is small on a
laptop and large on a GPU is in a `Scale`; the plans are the same.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean

from workbook.config import PROFILES, Edition, TrainConfig
from workbook.experiments.plans import Plan, Results
from workbook.experiments.records import Run
from workbook.training import presets
from workbook.training.presets import varied

# What the course asks for, in nats per token of validation text.
TARGET, TARGET_ON_CPU = 1.45, 2.00  # on TinyStories, with the tokens of the two full scales
BOARD_TARGET = 5.0  # on OpenWebText: an entry has to be below it
BOARD_BEST = 3.02  # the lowest public entry under the rules of 2025
# Seconds of the leaderboard: the course gives 90 minutes or 45, on a faster GPU.
CAPS: dict[Edition, float] = {"2025": 90 * 60.0, "2026": 45 * 60.0}

HALF_DECADE = 10**0.5
LAST_RATE = 0.1  # the smallest learning rate of a schedule, relative to its largest
MOST_RATES = 6  # that are tried for one setting
LONGER = 2  # times as many tokens, for the text that is read

# What the leaderboard tries, each by itself.
CHANGES = {
    "tied embeddings": {"tie_embeddings": True},
    "rate to zero": {"min_learning_rate": 0.0},
    "half the batch": {"batch_size": 1 / 2},
    "half the context": {"context_length": 1 / 2},
    "two layers fewer": {"num_layers": -2},
    "SiLU": {"ffn": "silu"},
    "no RoPE": {"position": "none"},
    "no weight decay": {"weight_decay": 0.0},
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes of all experiments; each plan takes one of them."""

    base: TrainConfig  # on the simple corpus
    web: TrainConfig  # the same on the web corpus
    rates: tuple[float, ...]  # of the first sweep, from small ones to those that diverge
    bisections: int  # of the edge of stability
    seeds: tuple[int, ...]  # besides the base's
    batch_sizes: tuple[int, ...]  # up to the one that needs half of `memory` by the accounting
    memory: float  # bytes
    parts: int  # a batch of one is trained on one part of this many of the tokens
    cap: float  # seconds of the leaderboard
    cap_steps: int  # more than any machine takes in that time
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
    """The course's own sizes, for a GPU of 80 GB: 327,680,000 tokens per run."""
    base = presets.full()
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


def resized(name: str, edition: Edition) -> Scale:
    """The course's model in the sizes of another profile: "gpu", "gpu-offline" or "cpu"."""
    base, profile, scale = presets.get(name), PROFILES[name], full_scale(edition)
    text = {"corpus": profile.web_corpus, "corpus_bytes": None}
    web = varied(base, **text, vocab_size=profile.web_vocab_size)
    if name == "cpu":
        return replace(scale, base=base, web=web, batch_sizes=scale.batch_sizes[:-2], memory=32e9)
    return replace(scale, base=base, web=web, cap=10 * 60.0)


SCALES: dict[str, Callable[[Edition], Scale]] = {
    "laptop": lambda edition: laptop_scale(),
    "full": full_scale,
    **{name: partial(resized, name) for name in ("gpu", "gpu-offline", "cpu")},
}


def scale_named(name: str, edition: Edition) -> Scale:
    """The scale of that name, such as "laptop"; the editions differ in the leaderboard's time.

    Raises: ValueError for an unknown name.
    """
    if name not in SCALES:
        raise ValueError(f"{name!r} is no scale; there are {', '.join(SCALES)}")
    return SCALES[name](edition)


@dataclass(frozen=True)
class Study:
    """An experiment: what it asks, and its plan."""

    question: str
    plan: Callable[[Scale], Plan]


def learning_rate(scale: Scale) -> Plan:
    """A sweep in half decades, the edge of stability between two of them, seeds of the best."""
    results = yield from sweep(scale.base, scale.rates)
    top = best(results)
    for _ in range(scale.bisections):
        if (edge := edge_of_stability(results)) is None:
            break
        middle = (edge[0] * edge[1]) ** 0.5  # on a logarithmic scale
        results |= yield from sweep(scale.base, [middle])
    results |= yield from seeds(top, scale.seeds)
    return results


def batch_size(scale: Scale) -> Plan:
    """Batches from one sequence to half of memory at equal tokens, each at its own best rate."""
    top = best((yield from sweep(scale.base, scale.rates)))
    usual, results = scale.base.batch_size, {}
    for size in scale.batch_sizes:
        if size == 1:
            # It takes very many steps, so it sees a part of the tokens; beside it the usual batch
            # on the same part, without which the two could not be compared.
            small = at_batch(top.config, 1, scale.parts)
            results |= yield from tuned(small, rate_of(top) / 2, f"batch 1 on 1/{scale.parts}", 2)
            few = at_batch(top.config, usual, scale.parts)
            label = f"batch {usual} on 1/{scale.parts}"
            results |= yield from tuned(few, rate_of(top), label, 2)
        else:
            config = at_batch(top.config, size)
            results |= yield from tuned(config, rate_of(top), f"batch {size}", 2)
    return results


def ablation(scale: Scale, label: str, **changes) -> Plan:
    """A change at the old best rate and, with seeds, at its own best, beside the unchanged model.

    `changes` are settings by name, as `varied` takes them; `label` begins the labels of the runs.
    """
    top = best((yield from sweep(scale.base, scale.rates)))
    results = yield from seeds(top, scale.seeds, "unchanged, ")
    found = yield from tuned(varied(top.config, **changes), rate_of(top), label)
    own = best(found)
    return results | found | (yield from seeds(own, scale.seeds[:2], f"{label}, "))


def swiglu(scale: Scale) -> Plan:
    """SiLU with two matrices, at the width with as many parameters, and 4 d_model wide."""
    model = scale.base.model
    matched = yield from ablation(scale, "SiLU", ffn="silu", d_ff=matched_d_ff(model.d_ff))
    own = best({label: run for label, run in matched.items() if label.startswith("SiLU, rate")})
    narrow = yield {"SiLU, 4 d_model": varied(own.config, d_ff=4 * model.d_model)}
    (first,) = narrow.values()
    return matched | narrow | (yield from seeds(first, scale.seeds[:2], "SiLU, 4 d_model, "))


def main_experiment(scale: Scale) -> Plan:
    """The same model and tokens on the web corpus; and both trained longer, for texts to read."""
    top = best((yield from sweep(scale.base, scale.rates)))
    results = yield from seeds(top, scale.seeds, "simple, ")
    found = yield from tuned(scale.web, rate_of(top), "web")
    own = best(found)
    results |= found | (yield from seeds(own, scale.seeds[:2], "web, "))
    return results | (
        yield {
            "simple, longer": at_batch(top.config, top.config.batch_size, 1 / LONGER),
            "web, longer": at_batch(own.config, own.config.batch_size, 1 / LONGER),
        }
    )


def leaderboard(scale: Scale) -> Plan:
    """The lowest loss on the web corpus within the time: each change by itself, then together.

    A change that helps by itself is added to those kept so far, the best first, and is kept if it
    helps again.
    """
    top = best((yield from sweep(scale.base, scale.rates)))
    own = best((yield from tuned(scale.web, rate_of(top), "web")))
    start = varied(
        own.config,
        max_seconds=scale.cap,
        steps=scale.cap_steps,
        eval_every=scale.cap_steps // scale.cap_evaluations,
    )
    entries = {"start": start} | {
        label: changed(start, **changes) for label, changes in CHANGES.items()
    }
    results: Results = {}
    for label, config in entries.items():
        count = 2 if label == "start" else 1
        results |= yield {label: config} | seeds_of(config, scale.seeds[:count], f"{label}, ")
    helpful = [label for label in CHANGES if better(results, label, "start")]
    kept, final = "start", start
    for label in sorted(helpful, key=lambda label: fmean(losses(by_seed(results, label)))):
        config = changed(final, **CHANGES[label])
        name = label if kept == "start" else f"{kept} + {label}"
        results |= yield {name: config} | seeds_of(config, scale.seeds[:1], f"{name}, ")
        if better(results, name, kept):
            kept, final = name, config
    together = {"together": final} | seeds_of(final, scale.seeds[:2], "together, ")
    return results | (yield together)


STUDIES = {
    "learning_rate": Study("Which learning rate, and where does training break?", learning_rate),
    "batch_size": Study("How large a batch, at equal tokens?", batch_size),
    "layer_norm": Study("What does RMSNorm do?", partial(ablation, label="no norm", norm="none")),
    "pre_norm": Study(
        "Normalise before each part, or behind it?",
        partial(ablation, label="post-norm", norm="post"),
    ),
    "no_position": Study(
        "Does the model need RoPE?", partial(ablation, label="no RoPE", position="none")
    ),
    "swiglu": Study("Is a gate worth a third matrix?", swiglu),
    "main_experiment": Study("What does web text change?", main_experiment),
    "leaderboard": Study("How low can the loss be when the time is up?", leaderboard),
}


def sweep(config: TrainConfig, rates: Sequence[float], label: str = "") -> Plan:
    """Run a config at several learning rates, by labels such as "rate 0.01"."""
    prefix = f"{label}, " if label else ""
    return (yield {f"{prefix}rate {rate:.3g}": at_rate(config, rate) for rate in rates})


def tuned(config: TrainConfig, start: float, label: str, factor: float = HALF_DECADE) -> Plan:
    """Try learning rates around `start`, and further until the best one has worse neighbours.

    Neighbours are `factor` apart; at most `MOST_RATES` are tried.
    """
    results = yield from sweep(config, [start / factor, start, start * factor], label)
    while len(results) < MOST_RATES:
        tried = sorted(rate_of(result) for result in results.values())
        top = rate_of(best(results))
        if tried[0] < top < tried[-1]:
            break
        further = top / factor if top == tried[0] else top * factor
        results |= yield from sweep(config, [further], label)
    return results


def seeds(result: Run, others: Sequence[int], label: str = "") -> Plan:
    """Run a config with other seeds, beside the run that there is."""
    config = result.config
    return (yield {f"{label}seed {config.seed}": config} | seeds_of(config, others, label))


def seeds_of(config: TrainConfig, others: Sequence[int], label: str = "") -> dict[str, TrainConfig]:
    """The config with other seeds, by labels such as "seed 1"."""
    return {f"{label}seed {seed}": varied(config, seed=seed) for seed in others}


def at_rate(config: TrainConfig, rate: float) -> TrainConfig:
    """The config with another largest learning rate, and the smallest in proportion."""
    return varied(config, max_learning_rate=rate, min_learning_rate=LAST_RATE * rate)


def at_batch(config: TrainConfig, batch_size: int, parts: float = 1) -> TrainConfig:
    """The config with another batch size and as many tokens, or one of `parts` equal parts of them.

    The warm-up is the same share of the run, and the log has about as many lines.
    """
    optimizer = config.optimizer
    steps = max(1, round(config.steps * config.batch_size / batch_size / parts))

    def as_often(every: int) -> int:
        return max(1, round(every * steps / config.steps))

    return varied(
        config,
        batch_size=batch_size,
        steps=steps,
        warmup_iters=as_often(optimizer.warmup_iters),
        log_every=as_often(config.log_every),
        eval_every=as_often(config.eval_every),
        checkpoint_every=as_often(config.checkpoint_every),
    )


def matched_d_ff(d_ff: int) -> int:
    """The inner width at which two matrices have as many parameters as three of width d_ff.

    >>> matched_d_ff(384)
    576
    """
    return 3 * d_ff // 2


def changed(config: TrainConfig, **changes) -> TrainConfig:
    """The config with one of `CHANGES`, whose sizes are factors or differences."""
    model = config.model
    match changes:
        case {"batch_size": factor}:
            return varied(config, batch_size=max(1, round(factor * config.batch_size)))
        case {"context_length": factor}:
            return varied(config, context_length=round(factor * model.context_length))
        case {"num_layers": more}:
            return varied(config, num_layers=model.num_layers + more)
        case {"ffn": "silu"}:
            return varied(config, ffn="silu", d_ff=matched_d_ff(model.d_ff))
    return varied(config, **changes)


def best(results: Mapping[str, Run]) -> Run:
    """The result with the lowest validation loss; where all diverged, with the lowest rate."""
    return min(results.values(), key=lambda result: (result.loss, rate_of(result)))


def rate_of(result: Run) -> float:
    """The peak learning rate of a run."""
    return result.config.optimizer.max_learning_rate


def next_best(results: Mapping[str, Run], top: Run) -> float:
    """The lowest loss of the runs that differ from `top` only in their learning rate."""
    found = [
        result.loss
        for result in results.values()
        if result.config.key != top.config.key
        and at_rate(result.config, rate_of(top)).key == top.config.key
    ]
    return min(found, default=math.inf)


def edge_of_stability(results: Mapping[str, Run]) -> tuple[float, float] | None:
    """The two learning rates that the edge of stability is between; None if no run diverged.

    They are the smallest that diverged, and the largest below it.
    """
    diverged = [rate_of(result) for result in results.values() if result.diverged]
    if not diverged:
        return None
    lower = [rate_of(result) for result in results.values() if rate_of(result) < min(diverged)]
    return (max(lower), min(diverged)) if lower else None


def by_seed(results: Mapping[str, Run], label: str) -> dict[int, Run]:
    """The runs of a setting by their seeds."""
    return {
        each.config.seed: each
        for name, each in results.items()
        if name == label or name.startswith(f"{label}, seed ")
    }


def losses(runs: Mapping[int, Run]) -> list[float]:
    """The final validation losses of some runs."""
    return [each.loss for each in runs.values()]


def better(results: Mapping[str, Run], label: str, than: str) -> bool:
    """Whether a setting was better with every seed than another one with any."""
    return max(losses(by_seed(results, label))) < min(losses(by_seed(results, than)))
