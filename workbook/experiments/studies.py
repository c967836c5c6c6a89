"""The experiments of the course's chapter 7: which runs, in which order, and why.

Every learning rate is a power of two times the same number, so that settings are compared at equal
rates. The first sweep is short and wide; each comparison then tunes its rate again, in factors of
two, for every setting and every budget of tokens. What is small on a laptop and large on a GPU is
in a `Scale`; the plans are the same.

The runs are recorded in `data/runs/` and found by a hash of their settings, so a changed plan calls
for other runs: `make experiments` makes those that are missing, and a test names those that no plan
asks for any more. Then notebook 08 has to run again. A new version of a corpus makes every record
stale.
"""

import math
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

from workbook import accounting
from workbook.config import LAPTOP, PROFILES, Edition, TrainConfig
from workbook.experiments.plans import Plan, Results
from workbook.training import presets
from workbook.training.loss_bounds import CAPS, TOO_HIGH
from workbook.training.presets import varied
from workbook.training.trainer import Run

LAST_RATE = 0.1  # the smallest learning rate of a schedule, relative to its largest
MOST_RATES = 7  # that are tried for one setting
PLATEAU = 0.01  # nats per token: losses that differ by less are alike

# What the leaderboard tries, each by itself, at one context: all entries are evaluated alike.
CHANGES: dict[str, dict[str, Any]] = {
    "rate to zero": {"min_learning_rate": 0.0},
    "half the batch": {"batch_size": 1 / 2},
    "twice the batch": {"batch_size": 2},
    "half the layers": {"num_layers": 1 / 2},
    "SiLU": {"ffn": "silu"},
    "no weight decay": {"weight_decay": 0.0},
    "tied weights": {"tie_embeddings": True},
    "Muon": {"update": "muon"},
    "tied weights, half the layers": {"tie_embeddings": True, "num_layers": 1 / 2},
    "Muon, half the layers": {"update": "muon", "num_layers": 1 / 2},
    "Muon, tied weights, half the layers": {
        "update": "muon",
        "tie_embeddings": True,
        "num_layers": 1 / 2,
    },
}
MUONS_RATE = 2  # times AdamW's: its best rate in `ideas`, at both budgets

# What others published for the course's board, each by itself: settings as `varied` takes them.
IDEAS: dict[str, dict[str, Any]] = {
    "tied weights": {"tie_embeddings": True},
    "Muon": {"update": "muon"},
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes of all experiments; each plan takes one of them."""

    base: TrainConfig  # on the simple corpus
    web: TrainConfig  # the same on the web corpus
    long: TrainConfig  # the last budget of `longer`, on text enough for it
    rates: tuple[float, ...]  # of the first sweep, from small ones to those that fail
    parts: tuple[int, ...] = (9, 3, 1)  # the budgets: the base's tokens, divided by each
    deeper: int = 3  # times as many layers, on half of the second budget
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)  # not the base's, which the rates are tuned with
    memory: float  # bytes: the accounting says how large a batch they hold
    cap: float  # seconds of the leaderboard
    cap_steps: int  # more than any machine takes in that time
    cap_evaluations: int  # at most

    def budget(self, part: int, base: TrainConfig | None = None) -> TrainConfig:
        """The base, or another config of its length, with 1/`part` of its tokens."""
        base = base or self.base
        return at_batch(base, base.batch_size, part)


def doublings(first: float, count: int) -> tuple[float, ...]:
    """Learning rates from the first one on, each twice the one before."""
    return tuple(first * 2**power for power in range(count))


def laptop_scale() -> Scale:
    """Over three hundred runs of 0.4 to 3.5 million tokens: some six hours on two cores.

    On the CPU in bfloat16: all records are in one precision, whatever the machine prefers.
    """
    base = varied(
        presets.laptop(),
        name="base",
        corpus_bytes=None,
        steps=3_456,
        warmup_iters=171,
        log_every=72,
        eval_every=432,
        checkpoint_every=1_728,
        keep_checkpoints=1,
        divergence=math.inf,  # a run that misbehaves goes on to its end
        device="cpu",
        precision="bfloat16",
    )
    # On a GPU, if there is one: a core takes some twenty minutes for each of these runs.
    long = varied(at_batch(base, base.batch_size, 1 / 4), corpus_bytes=80_000_000, device="auto")
    return Scale(
        base=base,
        web=varied(base, corpus=LAPTOP.web_corpus, vocab_size=LAPTOP.web_vocab_size),
        long=long,
        rates=doublings(0.01 / 32, 16),
        memory=4e9,
        cap=60.0,
        cap_steps=1_900,
        cap_evaluations=15,
    )


def large_scale(name: str, edition: Edition = "2025") -> Scale:
    """The course's own model: "gpu", "gpu-offline" or "cpu" (41 M tokens per run), or "full".

    "gpu" is an evening on one GPU, "full" days: 327,680,000 tokens per run.
    """
    profile = PROFILES[name]
    base = varied(presets.preset(name), divergence=math.inf)
    text = {"corpus": profile.web_corpus, "corpus_bytes": None}
    return Scale(
        base=base,
        web=varied(base, **text, vocab_size=profile.web_vocab_size),
        long=base,  # it is long enough, and has most of these runs already
        rates=doublings(0.01 / 128, 16),
        memory=32e9 if name == "cpu" else 80e9,
        cap=10 * 60.0 if name.startswith("gpu") else CAPS[edition],
        cap_steps=400_000,
        cap_evaluations=100,
    )


def scale_named(name: str, edition: Edition) -> Scale:
    """The scale of that profile, such as "laptop"; the editions differ in the leaderboard's time.

    Raises: ValueError for an unknown name.
    """
    if name not in PROFILES:
        raise ValueError(f"{name!r} is not a scale; choose from {', '.join(PROFILES)}")
    return laptop_scale() if name == LAPTOP.name else large_scale(name, edition)


@dataclass(frozen=True)
class Study:
    """An experiment: what it asks, and its plan."""

    question: str
    plan: Callable[[Scale], Plan]


def learning_rate(scale: Scale) -> Plan:
    """A short sweep, seeds at the edge of stability, high rates without decay, longer runs."""
    short = scale.budget(scale.parts[0])
    results = yield from sweep(short, scale.rates)
    top = rate_of(best(results))
    for rate in edge_of_stability(results) or ():
        config = at_rate(short, rate)
        results |= yield seeds_of(config, scale.seeds[:3], f"rate {rate:.3g}, ")
    high = [rate for rate in scale.rates if rate >= top]
    results |= yield from sweep(varied(short, weight_decay=0.0), high, "no decay")
    for part in scale.parts:
        tuning = yield from settled(scale.budget(part), top, "unchanged", scale.seeds)
        top = rate_of(best(tuning))
        results |= tuning
    return results


def batch_size(scale: Scale) -> Plan:
    """Batches from one sequence to the limit of memory at equal tokens, each at its own rate."""
    top = best((yield from sweep(scale.budget(scale.parts[0]), scale.rates)))
    base = scale.budget(scale.parts[1])
    results: Results = {}
    for size in batch_sizes(scale):
        # The best rate is expected to grow with the root of the batch: the search starts there.
        power = round(math.log2(size / base.batch_size) / 2)
        config = at_batch(base, size)
        start = rate_of(top) * 2**power
        results |= yield from tuned(config, start, f"batch {size}")
    return results


def batch_sizes(scale: Scale) -> list[int]:
    """One, two, four, ... sequences, and finally as many as the memory holds."""

    def fits(size: int) -> bool:
        return accounting.peak_bytes(scale.base.model, size).total <= scale.memory

    powers = [1]
    while fits(2 * powers[-1]):
        powers.append(2 * powers[-1])
    # The limit lies between the largest power of two that fits and its double: bisect.
    between = range(powers[-1] + 1, 2 * powers[-1])
    limit = powers[-1] + bisect(between, False, key=lambda size: not fits(size))
    return [*(size for size in powers if size <= limit / 1.5), limit]


def ablation(scale: Scale, label: str, parts: Sequence[int] | None = None, **changes: Any) -> Plan:
    """A change beside the unchanged model at every budget, each at its own best rate with seeds.

    The changed model is also tried at the best rate of the unchanged one. `changes` are settings by
    name, as `varied` takes them; `label` begins the labels of the runs; `parts` are the budgets.
    """
    results: Results = {}
    # Both sides start from the best rate of the short sweep, and then from their own of the budget
    # before.
    old = own = rate_of(best((yield from sweep(scale.budget(scale.parts[0]), scale.rates))))
    for part in parts or scale.parts:
        config = scale.budget(part)
        usual = yield from settled(config, old, "unchanged", scale.seeds)
        old = rate_of(best(usual))
        other = yield from settled(varied(config, **changes), own, label, scale.seeds, also=[old])
        own = rate_of(best(other))
        results |= usual | other
    return results


def layer_norm(scale: Scale) -> Plan:
    """No norms at all, and all but the last one: without that, a run begins with huge logits."""
    bare = yield from ablation(scale, "no norm", norm="none")
    kept = yield from ablation(scale, "only the final norm", scale.parts[:2], norm="final")
    return bare | kept


def depth(scale: Scale) -> Plan:
    """The place of the norm in a deeper model, where the gradient has further to go."""
    old = best((yield from sweep(scale.budget(scale.parts[0]), scale.rates)))
    base = scale.budget(2 * scale.parts[1])
    deep = varied(base, num_layers=scale.deeper * base.model.num_layers)
    results: Results = {}
    for label, norm in {"deep": "pre", "deep, no norm": "none", "deep, post-norm": "post"}.items():
        config = varied(deep, norm=norm)
        results |= yield from settled(config, rate_of(old) / 2, label, scale.seeds[:3])
    return results


def swiglu(scale: Scale) -> Plan:
    """SiLU with two matrices: at the width with as many parameters, and 4 d_model wide."""
    model = scale.base.model
    matched = yield from ablation(scale, "SiLU", ffn="silu", d_ff=matched_d_ff(model.d_ff))
    label = "SiLU, 4 d_model"
    width = 4 * model.d_model
    wide = yield from ablation(scale, label, scale.parts[:2], ffn="silu", d_ff=width)
    return matched | wide


def longer(scale: Scale) -> Plan:
    """One more budget: each change once, at the rate that was best for it so far.

    Beside them the unchanged model, tuned with the same seed at all these rates and around the
    best: so that a better change can be told from a better rate. At that it has two more seeds. One
    run of the budget before sees this longer text, as a bridge between the two.
    """
    shorter: Results = {}
    for study in ABLATIONS:
        shorter |= yield from STUDIES[study].plan(scale)
    before = best_at_last(scale, shorter, "unchanged")
    long = scale.long
    asked = {
        "longer, bridge": varied(before.config, corpus_bytes=long.corpus_bytes, device=long.device)
    }
    first, *others = scale.seeds[:3]
    rates = {rate_of(before)}
    for label in ABLATIONS.values():
        top = best_at_last(scale, shorter, label)
        rate = rate_of(top)
        rates.add(rate)
        config = at_rate(replace(long, model=top.config.model), rate)
        asked |= seeds_of(config, [first], f"longer, {label}, ")
    results = yield asked
    usual = varied(long, seed=first)
    return results | (
        yield from settled(usual, min(rates), "longer, unchanged", others, sorted(rates))
    )


def ideas(scale: Scale) -> Plan:
    """Each of `IDEAS` beside the unchanged model at two budgets, as the ablations are compared."""
    results: Results = {}
    for label, changes in IDEAS.items():
        results |= yield from ablation(scale, label, scale.parts[:2], **changes)
    return results


def best_at_last(scale: Scale, results: Results, label: str) -> Run:
    """The best run of a setting at the last budget that it was tuned for."""
    tried = f"{label}, {scale.base.tokens:,} tokens, "
    return best({name: run for name, run in results.items() if name.startswith(tried)})


def main_experiment(scale: Scale) -> Plan:
    """The same model and as many tokens of the web corpus: tuned at two budgets, seeds at the last.

    Beside it the unchanged model on the simple corpus, at the last budget.
    """
    middle, last = scale.parts[-2:]
    old = rate_of(best((yield from sweep(scale.budget(scale.parts[0]), scale.rates))))
    shorter = yield from tuned(scale.budget(middle, scale.web), old, "web, shorter")
    own = rate_of(best(shorter))
    web = yield from settled(scale.budget(last, scale.web), own, "web", scale.seeds[:3])
    for part in scale.parts:
        simple = yield from settled(scale.budget(part), old, "unchanged", scale.seeds)
        old = rate_of(best(simple))
    return shorter | web | simple


def leaderboard(scale: Scale) -> Plan:
    """The lowest loss on the web corpus within the time: each change by itself, then together.

    A change that helps by itself is added to those kept so far, the best first, and is kept if it
    helps again. The seeds of the final entry and of the start beside it were not used to choose.
    """
    old = best((yield from sweep(scale.budget(scale.parts[0]), scale.rates)))
    timed = varied(
        scale.web,
        max_seconds=scale.cap,
        steps=scale.cap_steps,
        warmup_iters=scale.cap_steps // 20,  # of the schedule, which follows the clock
        log_every=scale.cap_steps // 100,
        eval_every=scale.cap_steps // scale.cap_evaluations,
    )
    results = yield from tuned(timed, rate_of(old), "start")
    start = best(results).config
    entries = {"start": start} | {
        label: with_change(start, **changes) for label, changes in CHANGES.items()
    }
    # The config's own seed and two more choose; the seeds of the final comparison are new.
    chosen_by = scale.seeds[:2]
    fresh = scale.seeds[2:5]
    for label, config in entries.items():
        results |= yield {label: config} | seeds_of(config, chosen_by, f"{label}, ")
    helpful = [label for label in CHANGES if better(results, label, "start")]
    # Greedy: changes that help alone may not help together.
    kept = "start"
    final = start
    changed: set[str] = set()  # the settings that differ from the start
    for label in sorted(helpful, key=lambda label: fmean(final_losses(by_seed(results, label)))):
        if changed & CHANGES[label].keys():
            continue  # such as Muon, once a change with Muon in it was kept
        config = with_change(final, **CHANGES[label])
        name = label if kept == "start" else f"{kept} + {label}"
        results |= yield {name: config} | seeds_of(config, chosen_by, f"{name}, ")
        if better(results, name, kept):
            kept = name
            final = config
            changed |= CHANGES[label].keys()
    # Several seeds choose: one alone may be lucky with a rate that others cannot train with.
    rate = final.optimizer.max_learning_rate
    rates = doublings(rate / 2, 3)
    tried = {f"together, rate {rate:.3g}": at_rate(final, rate) for rate in rates}
    for label, config in tried.items():
        results |= yield {label: config} | seeds_of(config, chosen_by, f"{label}, ")
    final = tried[min(tried, key=lambda label: fmean(final_losses(by_seed(results, label))))]
    again = {"start again, ": start, "final, ": final}
    rounds = [seeds_of(config, fresh, label) for label, config in again.items()]
    return results | (yield rounds[0] | rounds[1])


ABLATIONS = {  # the experiments that compare one change with the unchanged model, and its label
    "layer_norm": "no norm",
    "pre_norm": "post-norm",
    "no_position": "no RoPE",
    "swiglu": "SiLU",
}
STUDIES = {
    "learning_rate": Study("Which learning rate, and where does training break?", learning_rate),
    "batch_size": Study("How large a batch, at equal tokens?", batch_size),
    "layer_norm": Study("What does RMSNorm do?", layer_norm),
    "pre_norm": Study(
        "Normalise before each part, or after it?",
        partial(ablation, label="post-norm", norm="post"),
    ),
    "depth": Study("Does the place of the norm matter more in a deep model?", depth),
    "no_position": Study(
        "Does the model need RoPE?", partial(ablation, label="no RoPE", position="none")
    ),
    "swiglu": Study("Is a gate worth a third matrix?", swiglu),
    "longer": Study("What is left of these effects with four times the tokens?", longer),
    "ideas": Study("Do ideas from the course's board help here?", ideas),
    "main_experiment": Study("What does web text change?", main_experiment),
    "leaderboard": Study("How low can the loss get before the time is up?", leaderboard),
}


def sweep(config: TrainConfig, rates: Iterable[float], label: str = "") -> Plan:
    """Run a config at several learning rates, by labels such as "rate 0.01"."""
    prefix = f"{label}, " if label else ""
    return (yield {f"{prefix}rate {rate:.3g}": at_rate(config, rate) for rate in rates})


def tuned(config: TrainConfig, start: float, label: str, also: Sequence[float] = ()) -> Plan:
    """Try learning rates around `start` in factors of two, until the best has both neighbours.

    If all end alike, as models do that learn nothing but frequencies, it goes on downwards. At most
    `MOST_RATES` are tried, including those in `also`.
    """
    results = yield from sweep(config, sorted({start / 2, start, start * 2, *also}), label)
    while len(results) < MOST_RATES:
        tried = {rate_of(run) for run in results.values()}
        top = rate_of(best(results))
        further = {top / 2, top * 2} - tried  # empty once both neighbours are known to be worse
        losses = [run.loss for run in results.values()]
        if not further and max(losses) - min(losses) < PLATEAU:
            further = {min(tried) / 2}  # no rate is better than another: perhaps all are too high
        if not further:
            break
        results |= yield from sweep(config, sorted(further), label)
    return results


def settled(
    config: TrainConfig,
    start: float,
    label: str,
    seeds: Sequence[int],
    also: Sequence[float] = (),
) -> Plan:
    """Tune a config's learning rate, then run it at the best one with seeds that did not choose it.

    The labels give the tokens: "no norm, 393,216 tokens, rate 0.01" and "..., seed 1".
    """
    label = f"{label}, {config.tokens:,} tokens"
    results = yield from tuned(config, start, label, also)
    return results | (yield seeds_of(best(results).config, seeds, f"{label}, "))


def seeds_of(config: TrainConfig, others: Sequence[int], label: str = "") -> dict[str, TrainConfig]:
    """The config with other seeds, by labels such as "seed 1"."""
    return {f"{label}seed {seed}": varied(config, seed=seed) for seed in others}


def at_rate(config: TrainConfig, rate: float) -> TrainConfig:
    """The config with another largest learning rate, and the smallest in proportion, or still 0."""
    lowest = LAST_RATE * rate if config.optimizer.min_learning_rate else 0.0
    return varied(config, max_learning_rate=rate, min_learning_rate=lowest)


def at_batch(config: TrainConfig, batch_size: int, parts: float = 1) -> TrainConfig:
    """The config with another batch size and as many tokens, or one of `parts` equal parts of them.

    The warm-up is the same share of the run, and the log has about as many lines.
    """
    steps = max(1, round(config.steps * config.batch_size / batch_size / parts))
    names = ("log_every", "eval_every", "checkpoint_every")
    intervals = {name: getattr(config, name) for name in names}
    intervals["warmup_iters"] = config.optimizer.warmup_iters
    # Every interval is the same share of the run as before, and at least one step.
    scaled = {name: max(1, round(n * steps / config.steps)) for name, n in intervals.items()}
    return varied(config, batch_size=batch_size, steps=steps, **scaled)


def matched_d_ff(d_ff: int) -> int:
    """The inner width at which two matrices have as many parameters as three of width d_ff.

    >>> matched_d_ff(384)
    576
    """
    return 3 * d_ff // 2


def with_change(config: TrainConfig, **changes: Any) -> TrainConfig:
    """The config with one of `CHANGES`, whose sizes are factors."""
    if len(changes) > 1:
        for name, value in changes.items():
            config = with_change(config, **{name: value})
        return config
    model = config.model
    match changes:
        case {"batch_size": factor}:
            return varied(config, batch_size=max(1, round(factor * config.batch_size)))
        case {"num_layers": factor}:
            return varied(config, num_layers=max(1, round(factor * model.num_layers)))
        case {"ffn": "silu"}:
            return varied(config, ffn="silu", d_ff=matched_d_ff(model.d_ff))
        case {"update": "muon"}:
            faster = at_rate(config, MUONS_RATE * config.optimizer.max_learning_rate)
            return varied(faster, update="muon")
    return varied(config, **changes)


def best(results: Mapping[Any, Run]) -> Run:
    """The run with the lowest validation loss; if all diverged, with the lowest rate.

    `results` are by label, or by learning rate.
    """
    return min(results.values(), key=lambda run: (run.loss, rate_of(run)))


def rate_of(run: Run) -> float:
    """The peak learning rate of a run."""
    return run.config.optimizer.max_learning_rate


def failed(run: Run, top: Run) -> bool:
    """Whether a run shows that its learning rate is too high, beside the best run of its sweep.

    Its loss became infinite or NaN, or it ended more than `TOO_HIGH` nats per token above the best.
    """
    return run.diverged or run.loss > top.loss + TOO_HIGH


def edge_of_stability(results: Mapping[Any, Run]) -> tuple[float, float] | None:
    """The two learning rates between which the edge of stability lies, above the best one.

    They are the smallest that `failed` and the largest below it; None if none failed.
    """
    top = best(results)
    # Below the best rate a run may fail too, but because it learns too slowly.
    high = {rate_of(run): run for run in results.values() if rate_of(run) >= rate_of(top)}
    broken = [rate for rate, run in high.items() if failed(run, top)]
    if not broken:
        return None
    return max(rate for rate in high if rate < min(broken)), min(broken)


def by_seed(results: Mapping[str, Run], label: str) -> dict[int, Run]:
    """The runs of a setting by their seeds."""
    return {
        run.config.seed: run
        for name, run in results.items()
        if name == label or name.startswith(f"{label}, seed ")
    }


def final_losses(runs: Mapping[int, Run]) -> list[float]:
    """The final validation losses of some runs."""
    return [run.loss for run in runs.values()]


def better(results: Mapping[str, Run], label: str, than: str) -> bool:
    """Whether a setting was better with every seed than another one with any."""
    return max(final_losses(by_seed(results, label))) < min(final_losses(by_seed(results, than)))
