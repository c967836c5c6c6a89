"""A learner's parts beside ours: on the same inputs at every step of a run, and in whole runs.

    state after k steps   weights -> forward -> loss -> gradients -> clipping
    step k + 1            schedule -> optimizer -> weights

Each of their parts is given the inputs that ours gets. So a part that differs is found even if the
losses hardly show it, and no fault hides another. The sizes are small, but the same code runs.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbook.checks.data_loading import Loader
from workbook.checks.verdicts import NotAttempted, Wrong
from workbook.config import OptimizerConfig, TrainConfig
from workbook.optimizer.optimizers import AdamW
from workbook.training import presets
from workbook.training.parts import Maker, Parts
from workbook.transformer.model import TransformerLM

# What is compared: the part that is named, the field of `Parts`, and the method of `Lockstep`. The
# batches come last because they cannot make the losses differ: both runs are given ours.
COMPARED = (
    ("forward", "model", "forward"),
    ("loss", "loss", "loss"),
    ("gradients", "loss", "back_from_loss"),
    ("gradients", "model", "back_through_model"),
    ("clipping", "clipping", "clipping"),
    ("schedule", "schedule", "schedule"),
    ("optimizer", "optimizer", "optimizer"),
    ("batches", "get_batch", "batches"),
)
AFTER_STEP = ("schedule", "optimizer")  # these belong to the step that is being taken

# Of every twin test.
SIZES = {
    "vocab_size": 500, "context_length": 32, "d_model": 64, "num_layers": 2, "num_heads": 4,
    "d_ff": 192,
}  # fmt: skip
BATCH, TOKENS, SEED = 8, 5_000, 336
# Before the first step a model reads texts that grow and start short again, as in generation, in
# batches that are neither one sequence nor as many as it has heads; the last is a whole batch.
SHORTER = ((3, 4), (5, 6), (3, 3))

# How far correct parts may differ, as a share of the largest value. Our own two kinds of kernels
# differ by a hundredth of these, and a norm with another small eps by a tenth.
FORWARD, LOSS, GRADIENT, CLIPPING, SCHEDULE = 1e-4, 1e-4, 1e-3, 1e-4, 1e-4
UPDATE = 2e-3  # of the distance that the learning rates let a weight move
ROUNDING = 1e-6  # and of the weight itself, for each step
# In whole runs, as a share of the loss: if a part was found to differ, and if none was. Rounding
# grows there from step to step, so it may be many times what our two kinds of kernels differ by.
SHOWS, WHOLE, NOISE = 1e-5, 2e-3, 20


class TorchsEps(AdamW):
    """AdamW with ε where torch has it, beside √v / √(1 - β2ᵗ): right as well."""

    def update(self, theta: Tensor, group: dict, state: dict) -> None:
        share = math.sqrt(1 - group["betas"][1] ** (state.get("t", 0) + 1))
        super().update(theta, {**group, "eps": group["eps"] * share}, state)


def _adamw(kind: type[AdamW], decay: str, params: Any, config: OptimizerConfig) -> Optimizer:
    return kind(
        params,
        lr=config.max_learning_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        decay=decay,
    )


# The handout's two editions decay before and after the step.
RIGHT = [
    partial(_adamw, kind, decay) for kind in (AdamW, TorchsEps) for decay in ("after", "before")
]


def small(preset: str, steps: int) -> TrainConfig:
    """The settings of a preset, made small and short, yet every part shows all that it does.

    The warm-up, the cosine and what comes after fit into the steps. Raises: ValueError for an
    unknown preset.
    """
    base = presets.get(preset)
    warmup = max(1, steps // 4)
    optimizer = replace(
        base.optimizer,
        warmup_iters=warmup,
        # A cosine of length zero is a corner case, which a correct schedule may refuse.
        cosine_cycle_iters=max(warmup + 1, steps * 4 // 5),
        weight_decay=base.optimizer.weight_decay or 0.1,
        update="textbook",
    )
    return replace(
        base,
        model=replace(base.model, **SIZES, kernels="textbook"),
        optimizer=optimizer,
        steps=steps,
        batch_size=BATCH,
        accumulation=1,
        seed=SEED,
    )


def compared(config: TrainConfig, theirs: Parts) -> Iterator[dict]:
    """Try each of their parts at every step of our run, then compare the two whole runs.

    Yields first {"theirs": {part: where it is}, "sizes": words}; {"trying": [part, step, whose]}
    before theirs run; {"found": [part, step, words]} for each that differs; and at the end the
    "losses" of the two runs, before and after each step, and the step at which they "parted".

    Args:
        config: of `small`.
        theirs: a part that is not in its `made_by` is ours. A model has `fill`, `places` and
            `named_learners`, like that of `own_parts`.
    """
    ours = Parts.ours(config)
    made_by = theirs.made_by
    theirs = replace(ours, **{name: getattr(theirs, name) for name in made_by}, made_by=made_by)
    where: dict[str, str] = {}
    for part, name, _ in COMPARED:
        its = [where.get(part), made_by[name].where if name in made_by else ""]
        where[part] = " and ".join(filter(None, its))
    sizes = {**SIZES, "batch_size": BATCH}
    yield {"theirs": where, "sizes": ", ".join(f"{name} {size}" for name, size in sizes.items())}
    torch.manual_seed(config.seed)
    start = {n: p.detach().clone() for n, p in ours.model(config.model).named_parameters()}
    batches = drawn(config, ours)
    config = with_a_limit(config, ours, start, batches)
    lockstep, broken = Lockstep(config, ours, theirs, start), False
    found = lockstep.found
    for step in lockstep.steps(batches[:-1]):
        for part, name, method in COMPARED:
            if name not in made_by or part in found or (part == "batches" and step):
                continue
            at = step + (part in AFTER_STEP)
            whose = yours(name, made_by[name])
            yield {"trying": [part, at, whose]}
            try:
                words = getattr(lockstep, method)()
                words = words and f"{whose} differs from ours at step {at}: {words}"
            except Exception as error:
                words, broken = failure(error, whose, at), True
            if words:
                found[part] = words
                yield {"found": [part, at, words]}
    if not broken:
        if "optimizer" in made_by:
            ours = replace(ours, optimizer=lockstep.kinds[0])
        yield from whole(config, ours, theirs, start, batches, found)


def yours(name: str, maker: Maker) -> str:
    """One of their parts, as the beginning of a sentence."""
    return f"Your {name} ({maker.where})"


def failure(error: Exception, whose: str, step: int) -> str:
    """The message when theirs raises an error; one from `own_parts` begins like this already."""
    said = str(error)
    if said.startswith(whose[0].lower() + whose[1:]):
        return f"{whose[0]}{said[1:].rstrip('.')}."
    return f"{whose} fails at step {step}: {type(error).__name__}: {said}".rstrip(".") + "."


def drawn(config: TrainConfig, ours: Parts) -> list[tuple[Tensor, Tensor]]:
    """A batch for each step, and one for the loss after the last.

    Some ids are far more frequent than others, so there is something to learn.
    """
    size = config.model.vocab_size
    share = 1 / np.arange(1, size + 1)
    ids = np.random.default_rng(config.seed).choice(size, TOKENS, p=share / share.sum())
    order, device = torch.Generator().manual_seed(config.seed), torch.device("cpu")
    context = config.model.context_length
    return [
        ours.get_batch(ids.astype(np.uint16), config.batch_size, context, device, order)
        for _ in range(config.steps + 1)
    ]


def with_a_limit(
    config: TrainConfig, ours: Parts, start: Mapping[str, Tensor], batches: Sequence
) -> TrainConfig:
    """The config with a limit that the gradients of most steps exceed, but not of all."""
    norms = []

    def note(params, limit):
        norms.append(ours.clipping(params, math.inf).item())

    list(losses(config, replace(ours, clipping=note), start, batches))
    limit = float(f"{0.95 * sorted(norms)[len(norms) // 3]:.3g}")
    return replace(config, optimizer=replace(config.optimizer, max_l2_norm=limit))


def rate(config: TrainConfig, parts: Parts, step: int) -> float:
    """The learning rate of a step; steps count from 1, as in `training.train`."""
    its = config.optimizer
    return parts.schedule(
        step,
        its.max_learning_rate,
        its.min_learning_rate,
        its.warmup_iters,
        config.cosine_cycle_iters,
    )


def losses(
    config: TrainConfig, parts: Parts, start: Mapping[str, Tensor], batches: Sequence
) -> Iterator[float]:
    """Train with these parts from given weights; yield the loss of each batch."""
    model = filled(parts.model(config.model), start)
    optimizer = parts.optimizer(model.parameters(), config.optimizer)
    for step, (inputs, targets) in enumerate(batches, 1):
        loss = parts.loss(model(inputs), targets)
        yield loss.item()
        if step == len(batches):
            return
        optimizer.zero_grad()
        loss.backward()
        parts.clipping(model.parameters(), config.optimizer.max_l2_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate(config, parts, step)
        optimizer.step()


def filled(model: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """The model, ours or theirs, with weights by the course's names."""
    if isinstance(model, TransformerLM):
        model.load_state_dict(weights)
    else:
        model.fill(weights)
    return model


class Lockstep:
    """Our run, step by step, with their parts given the same inputs.

    Each of the methods that `COMPARED` names returns words if its part differs, or else "", and may
    raise whatever a learner's code raises.
    """

    def __init__(
        self, config: TrainConfig, ours: Parts, theirs: Parts, start: Mapping[str, Tensor]
    ):
        self.config, self.ours, self.theirs = config, ours, theirs
        self.found: dict[str, str] = {}  # words on the parts that differ, as they are found
        self.limit = config.optimizer.max_l2_norm
        self.model = filled(ours.model(config.model), start)
        self.weights = dict(self.model.named_parameters())
        self.their_model: nn.Module | None = None
        self.their_update: tuple[dict[str, Tensor], Optimizer] | None = None
        self.right = [self.updated(make, start) for make in RIGHT]  # theirs may be one of these
        self.kinds = list(RIGHT)
        self.way = 0.0  # the distance that the learning rates let a weight move so far

    def updated(self, make: Callable, start: Mapping[str, Tensor]) -> tuple[dict, Optimizer]:
        """An optimizer's own copies of the weights, by name, and the optimizer."""
        weights = {name: nn.Parameter(each.clone()) for name, each in start.items()}
        return weights, make(list(weights.values()), self.config.optimizer)

    def steps(self, batches: Sequence[tuple[Tensor, Tensor]]) -> Iterator[int]:
        """Train; yield the number of steps taken, whenever all is ready for the next one."""
        optimizer = self.ours.optimizer(self.model.parameters(), self.config.optimizer)
        for self.step, (self.inputs, self.targets) in enumerate(batches):
            optimizer.zero_grad()
            self.logits = self.model(self.inputs)
            self.logits.retain_grad()
            self.loss_value = self.ours.loss(self.logits, self.targets)
            self.loss_value.backward()
            self.gradients_before = copies(self.weights)
            self.norm = self.ours.clipping(self.weights.values(), self.limit).item()
            self.gradients_after = copies(self.weights)
            self.rate = rate(self.config, self.ours, self.step + 1)
            yield self.step
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()

    def forward(self) -> str:
        """Their logits, from our weights."""
        if self.their_model is None:
            self.their_model = self.theirs.model(self.config.model)
        model = filled(self.their_model, self.state())
        whole = tuple(self.inputs.shape)
        for batch, length in (whole,) if self.step else (*SHORTER, whole):
            sizes = f"{batch} sequences of {length} tokens"
            try:
                got = model(self.inputs[:batch, :length]).detach()
            except Exception as error:
                raise ValueError(f"{error} (for {sizes})") from error
            # Ours need not be called again: no position sees what comes after it.
            if words := differing(got, self.logits[:batch, :length].detach()):
                return f"for {sizes} and equal weights, {words}"
        return ""

    def loss(self) -> str:
        """Their loss for our logits."""
        got = self.theirs.loss(self.logits.detach().clone(), self.targets).detach()
        ours = self.loss_value.detach()
        if apart(got, ours) <= LOSS * ours.abs():
            return ""
        return f"for the same logits, it is {two(got, ours)}."

    def back_from_loss(self) -> str:
        """The gradient of their loss, if its value is right."""
        if "loss" in self.found:
            return ""
        logits = self.logits.detach().clone().requires_grad_()
        self.theirs.loss(logits, self.targets).backward()
        words = furthest({"logits": logits.grad}, {"logits": self.logits.grad}, GRADIENT)
        return words and f"its value is right, but in its backward pass {words}."

    def back_through_model(self) -> str:
        """The gradients of our loss through their model, if its logits are right."""
        if "forward" in self.found:
            return ""
        model = filled(self.their_model, self.state())
        own = model.named_learners()
        for each in own.values():
            each.grad = None
        self.ours.loss(model(self.inputs), self.targets).backward()
        expected = model.places(self.gradients_before)
        words = furthest({name: own[name].grad for name in expected}, expected, GRADIENT)
        return words and f"its logits are right, but in its backward pass {words}."

    def clipping(self) -> str:
        """What their clipping leaves of our gradients."""
        weights = {name: nn.Parameter(each) for name, each in self.state().items()}
        for name, gradient in self.gradients_before.items():
            weights[name].grad = gradient.clone()
        self.theirs.clipping(list(weights.values()), self.limit)
        got = {name: each.grad for name, each in weights.items()}
        words = furthest(got, self.gradients_after, CLIPPING)
        if words and None not in got.values():
            norm = math.hypot(*(each.norm().item() for each in got.values()))
            ours = min(self.norm, self.limit)
            if not abs(norm - ours) <= CLIPPING * ours:
                words = f"the norm is {two(norm, ours)}"
        limit = f"gradients of norm {self.norm:.4g} are clipped to at most {self.limit:g}"
        return words and f"{limit}; afterwards {words}."

    def schedule(self) -> str:
        """Their learning rate of the step."""
        its, step = self.config.optimizer, self.step + 1
        got = rate(self.config, self.theirs, step)
        if abs(got - self.rate) <= SCHEDULE * its.max_learning_rate:
            return ""
        highest, lowest = its.max_learning_rate, its.min_learning_rate
        asked = (step, highest, lowest, its.warmup_iters, self.config.cosine_cycle_iters)
        return f"with the arguments {asked} it returns {two(got, self.rate)}."

    def optimizer(self) -> str:
        """The weights after their step along our gradients, at our learning rate."""
        if self.their_update is None:
            first = {name: each.detach() for name, each in self.right[0][0].items()}
            self.their_update = self.updated(self.theirs.optimizer, first)
        weights, _ = self.their_update
        before = {name: each.detach().clone() for name, each in weights.items()}
        for each, optimizer in (self.their_update, *self.right):
            for name, gradient in self.gradients_after.items():
                each[name].grad = gradient.clone()
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()
        self.way += self.rate
        # Of the correct ones, those that theirs has agreed with so far, the nearest first.
        rests = [self.missed(weights, right) for right, _ in self.right]
        order = sorted(range(len(rests)), key=lambda number: rests[number][0])
        over, name, place, ours = rests[order[0]]
        if over > 1:
            got, old = weights[name].detach().flatten()[place], before[name].flatten()[place]
            return f"after it, a weight of `{name}` that was {old:.4g} is {two(got, ours)}."
        agree = [number for number in order if rests[number][0] <= 1]
        self.right = [self.right[number] for number in agree]
        self.kinds = [self.kinds[number] for number in agree]
        return ""

    def missed(self, got: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> tuple:
        """The largest difference, as a share of what is allowed; where it is, and our value."""
        found = []
        for name, ours in expected.items():
            ours = ours.detach()
            may = UPDATE * self.way + ROUNDING * (self.step + 1) * (1 + ours.abs())
            over = apart(got[name].detach(), ours) / may
            place = over.argmax().item()
            found.append((over.flatten()[place].item(), name, place, ours.flatten()[place]))
        return max(found, key=lambda each: each[0])

    def batches(self) -> str:
        """Whether their batches are windows and targets, drawn from everywhere; tried once."""
        order = torch.Generator().manual_seed(SEED)

        def get_batch(dataset, batch_size, context_length, device):
            device = torch.device(device)
            return self.theirs.get_batch(dataset, batch_size, context_length, device, order)

        try:
            loader = Loader(get_batch)
            loader.expect_fair(loader.starts())
            loader.expect_ids()
        except NotAttempted as error:
            raise ValueError("it is not written yet") from error
        except Wrong as wrong:
            if wrong.error:
                raise wrong.error from wrong
            rows = "".join(f" {name}: {text}." for name, text in wrong.rows)
            return f"{wrong.claim}{rows} {wrong.mistake or ''}".rstrip()
        return ""

    def state(self) -> dict[str, Tensor]:
        """Copies of our weights, which theirs may change."""
        return {name: each.detach().clone() for name, each in self.weights.items()}


def copies(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of the gradients, by name."""
    return {name: each.grad.clone() for name, each in weights.items()}


def differing(got: Tensor, expected: Tensor) -> str:
    """In words, the first position at which logits differ; "" if none does."""
    gap = apart(got, expected)
    far = (gap > FORWARD * expected.abs().max()).nonzero()
    if not len(far):
        return ""
    position = far[:, 1].min().item()
    row, token = divmod(gap[:, position].argmax().item(), gap.shape[-1])
    numbers = two(got[row, position, token], expected[row, position, token])
    agree = f" The logits before position {position} agree." if position else ""
    return f"a logit at position {position} is {numbers}.{agree}"


def apart(got: Tensor, expected: Tensor) -> Tensor:
    """The distance of numbers; infinite if one is NaN. Raises: ValueError if shapes differ."""
    if got.shape != expected.shape:
        raise ValueError(f"the shape is {tuple(got.shape)}, but ours is {tuple(expected.shape)}")
    return (got - expected).abs().nan_to_num(nan=math.inf, posinf=math.inf)


def furthest(got: Mapping[str, Tensor | None], expected: Mapping[str, Tensor], share: float) -> str:
    """In words, where gradients differ most, if by more than a share of the tensor's largest."""
    if missing := [name for name in expected if got[name] is None]:
        others = {1: "", 2: f" and `{missing[-1]}`"}.get(
            len(missing), f" and {len(missing) - 1} others"
        )
        return f"no gradient reaches `{missing[0]}`{others}"
    largest = max(each.abs().max().item() for each in expected.values())
    found = []
    for name, ours in expected.items():
        # What is tiny beside the others is rounding.
        may = share * max(ours.abs().max().item(), share * largest)
        gap = apart(got[name], ours)
        place = gap.argmax().item()
        found.append((gap.flatten()[place].item() / may, name, place))
    over, name, place = max(found)
    if over <= 1:
        return ""
    numbers = two(got[name].flatten()[place], expected[name].flatten()[place])
    return f"a gradient of `{name}` is {numbers}"


def two(theirs: Tensor | float, ours: Tensor | float) -> str:
    """Two numbers with as many digits as it takes to tell them apart."""
    theirs, ours = float(theirs), float(ours)
    digits = next((n for n in range(4, 9) if f"{theirs:.{n}g}" != f"{ours:.{n}g}"), 9)
    return f"{theirs:.{digits}g}, but ours is {ours:.{digits}g}"


# --- Whole runs ---------------------------------------------------------------------------------


def whole(
    config: TrainConfig,
    ours: Parts,
    theirs: Parts,
    start: Mapping[str, Tensor],
    batches: Sequence,
    found: Mapping[str, str],
) -> Iterator[dict]:
    """Yield the losses of a run with all of their parts and of ours, and where they diverge.

    If they do although no part alone differs, the parts are swapped one at a time.

    Args:
        ours: has whichever correct optimizer theirs agrees with.
    """
    yield {"trying": None}  # a word before each run: it may take long, and no part hung alone
    expected = list(losses(config, ours, start, batches))
    yield {"trying": None}
    fused = replace(config, model=replace(config.model, kernels="fused"))
    others = list(losses(fused, ours, start, batches))
    noise = np.maximum.accumulate(np.abs(np.subtract(expected, others)))
    may = (SHOWS if found else WHOLE) * np.abs(expected) + NOISE * noise

    def run(parts: Parts) -> tuple[list[float], int | None, str]:
        """The losses, and where and how they diverge from ours."""
        got: list[float] = []
        try:
            for at, loss in enumerate(losses(config, parts, start, batches)):
                got.append(loss)
                if not abs(loss - expected[at]) <= may[at]:
                    return got, at, f"the loss is {two(loss, expected[at])}."
        except Exception as error:
            return got, len(got), f"{type(error).__name__}: {error}"
        return got, None, ""

    yield {"trying": None}
    got, parted, _ = run(theirs)
    yield {"losses": [expected, got], "parted": parted}
    if parted is None or found:
        return
    for part, name, _ in COMPARED:
        if name in theirs.made_by and part not in ("gradients", "batches"):
            yield {"trying": None}
            _, step, words = run(replace(ours, **{name: getattr(theirs, name)}))
            if step is not None:
                whose = yours(name, theirs.made_by[name])
                alone = "does what ours does on our weights, but a run with it diverges from ours"
                yield {"found": [part, step, f"{whose} {alone} at step {step}: {words}"]}
                return
