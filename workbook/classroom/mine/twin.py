"""The twin test: your parts train beside ours, and if the runs diverge, the part at fault is named.

    state after k steps   weights -> forward -> loss -> gradients -> clipping
    step k + 1            schedule -> optimizer -> weights

Our initial weights go into your model, and both see the same batches. At every step each of your
parts is given the inputs that ours gets. So a part that differs is found even if the losses hardly
show it, and no fault hides another. The sizes are small, but the same code runs. All of it runs in
a process of its own, so that a crash or a hang in one of your parts is reported, too.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbook.classroom.checks.data_loading import BatchRunner
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.modules import own_parameters
from workbook.classroom.checks.machinery.tensors import ROUNDED, kind
from workbook.classroom.checks.machinery.verdicts import NotJudged, Wrong, expect_not_ours
from workbook.classroom.mine import own_parts
from workbook.classroom.study import progress
from workbook.config import OptimizerConfig, TrainConfig
from workbook.optimizer.optimizers import AdamW
from workbook.training import presets
from workbook.training.parts import Parts
from workbook.transformer.model import TransformerLM

# The longest silence of a call, and of the process: after it, a part hangs. Its inputs are small.
STEP_SECONDS = 50.0  # for a step
SMALL_CALL_SECONDS = 20.0  # for a call in it
# What is compared: the part that is named, the field of `Parts`, and the method of `Lockstep`. The
# batches come last because they cannot make the losses differ: both runs are given ours.
COMPARED = (
    ("forward", "model", "forward"),
    ("loss", "loss", "loss"),
    ("gradients", "loss", "back_from_loss"),
    ("gradients", "model", "back_through_model"),
    ("clipping", "clipping", "clipping"),
    ("schedule", "schedule", "schedule_at_0"),
    ("schedule", "schedule", "schedule"),
    ("optimizer", "optimizer", "optimizer"),
    ("batches", "get_batch", "batches"),
)
AFTER_STEP = ("schedule", "optimizer")  # these methods belong to the step that is being taken

# Of every twin test.
SMALL_SIZES: dict[str, Any] = {
    "vocab_size": 500,
    "context_length": 32,
    "d_model": 64,
    "num_layers": 2,
    "num_heads": 4,
    "d_ff": 192,
}
BATCH = 8
TOKENS = 5_000
SEED = 336
# Before the first step a model reads texts that grow and start short again, as in generation, in
# batches that are neither one sequence nor as many as it has heads; the last is a whole batch.
SHORTER = ((3, 4), (5, 6), (3, 3))

# How far correct parts may differ, as a share of the largest value. Our own two kinds of kernels
# differ by a hundredth of these, and a norm with another small eps by a tenth.
FORWARD = 1e-4
LOSS = 1e-4
GRADIENT = 1e-3
CLIPPING = 1e-4
SCHEDULE = 1e-4
UPDATE = 2e-3  # of the distance that the learning rates let a weight move
ROUNDING = 1e-6  # and of the weight itself, for each step
WHOLE = 2e-3  # of the loss in a whole run, where our two kinds of kernels differ by 2e-7


class Finding(NamedTuple):
    """A part that differs, the step at which it does, and how, in words."""

    part: str
    step: int
    message: str
    fails: bool = False  # it raises an error, so it was not compared


@dataclass
class TwinReport:
    """The outcome of a twin test. Printed, it is a table of the parts and a message."""

    preset: str
    steps: int
    places: dict[str, str] = field(default_factory=dict)  # where each part is; "": it is ours
    findings: list[Finding] = field(default_factory=list)
    losses: list[list[float]] = field(default_factory=list)  # ours and theirs, at each step
    diverged: int | None = None  # the step at which these diverge

    @property
    def first(self) -> Finding | None:
        """The part that is named: the first that differs, or batches, as both runs get ours."""
        others = [finding for finding in self.findings if finding.part != "batches"]
        return next(iter([*others, *self.findings]), None)

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        return bool(self.findings) or self.diverged is not None

    @property
    def message(self) -> str:
        """The outcome in a sentence or two."""
        diverge = f"The losses diverge at step {self.diverged}"
        if self.first:
            others = [finding.part for finding in self.findings if finding != self.first]
            is_told = self.diverged in (None, self.first.step)
            words = [self.first.message, "" if is_told else f"{diverge}."]
            words += [f"These differ or fail too: {', '.join(others)}."] if others else []
            return " ".join(filter(None, words))
        if self.differs:
            return (
                f"{diverge}, though each of your parts alone does what ours does: perhaps two share"
                " state, or one keeps some between steps."
            )
        same = ", ".join(part for part in self.places if self.outcome(part) == "same")
        reference, learners = self.losses
        return (
            f"Nothing differs in {self.steps} steps: {same}. The loss goes from"
            f" {reference[0]:.3f} to {learners[-1]:.3f}, as ours does. Not compared: the"
            " first weights, the tokenizer, decoding, checkpoints, and the position from which RoPE"
            " counts."
        )

    def outcome(self, part: str) -> str:
        """The outcome for one part, in a few words."""
        if found := [finding for finding in self.findings if finding.part == part]:
            return f"{'fails' if found[0].fails else 'differs'} at step {found[0].step}"
        if not self.places[part]:
            return "ours"
        wrong = {finding.part for finding in self.findings}
        cannot_be_right = part == "gradients" and {"forward", "loss"} & wrong
        return "not tried" if cannot_be_right else "same"

    def __str__(self) -> str:
        rows = [(part, self.outcome(part), where) for part, where in self.places.items()]
        table = [f"  {part:9}  {outcome:18}  {where}".rstrip() for part, outcome, where in rows]
        title = f"{self.steps} steps with your parts and with ours: {self.preset}, scaled down"
        sizes = ", ".join(f"{name} {n}" for name, n in {**SMALL_SIZES, "batch_size": BATCH}.items())
        message = self.message
        if self.differs and "check --all" not in message:
            message += " `workbook check --all` looks at each part more closely."
        return "\n".join([title, f"({sizes})", "", *table, "", message])


def twin(preset: str = "laptop", steps: int = 20, study: Path | None = None) -> TwinReport:
    """Train the learner's parts beside ours, in a process of its own, and compare them.

    Args:
        preset: the settings for RoPE and the optimizer are taken from it; the sizes are small.
        steps: the number that both take.
        study: the study folder whose parts are tried; None: the nearest one.

    Raises: ValueError for an unknown preset, and if there is no part to try; OSError if the
    learner's code ends the process.
    """
    presets.preset(preset)
    study = Path(study or progress.nearest()).absolute()
    report = worker.result(_serve, str(study), preset, steps, seconds=STEP_SECONDS)
    report["findings"] = [Finding(*finding) for finding in report["findings"]]
    return TwinReport(**report)


def _serve(study: str, preset: str, steps: int) -> Iterator[dict | None]:
    """Yield the report at last, and None before as a sign of life.

    Raises: ValueError if there is no part to try.
    """
    learners = own_parts.parts(Path(study), SMALL_CALL_SECONDS)
    own_parts.expect_some(learners, Path(study))
    if not learners.made_by.keys() & {name for _, name, _ in COMPARED}:
        raise ValueError("none of your parts is used in a training step, so none can be compared")
    report = TwinReport(preset, steps)
    for _ in compare_steps(report, small(preset, steps), learners):
        yield None
    yield asdict(report)


# --- In that process: each part alone -----------------------------------------------------------


class TorchsEps(AdamW):
    """AdamW with ε where torch has it, beside √v / √(1 - β2ᵗ): right as well."""

    def update(self, theta: Tensor, group: dict, state: dict) -> None:
        share = math.sqrt(1 - group["betas"][1] ** (state.get("t", 0) + 1))
        super().update(theta, {**group, "eps": group["eps"] * share}, state)


def _adamw(kind: type[AdamW], decay: Any, params: Any, config: OptimizerConfig) -> Optimizer:
    rates = config.max_learning_rate, config.betas, config.eps, config.weight_decay
    return kind(params, *rates, decay=decay)


# The handout's two editions decay before and after the step.
RIGHT = [
    partial(_adamw, kind, decay) for kind in (AdamW, TorchsEps) for decay in ("after", "before")
]


def small(preset: str, steps: int) -> TrainConfig:
    """The settings of a preset, made small and short, yet every part shows all that it does.

    The warm-up, the cosine and what comes after fit into the steps. Raises: ValueError for an
    unknown preset.
    """
    base = presets.preset(preset)
    warmup = max(1, steps // 4)
    optimizer = replace(
        base.optimizer,
        warmup_iters=warmup,
        # A cosine of length zero is a corner case, which a correct schedule may refuse.
        cosine_cycle_iters=max(warmup + 1, steps * 4 // 5),
        weight_decay=base.optimizer.weight_decay or 0.1,
        update="textbook",
    )
    model = replace(base.model, **SMALL_SIZES, kernels="textbook")
    sizes: dict[str, Any] = {"steps": steps, "batch_size": BATCH, "accumulation": 1, "seed": SEED}
    return replace(base, model=model, optimizer=optimizer, **sizes)


def compare_steps(report: TwinReport, config: TrainConfig, learners: Parts) -> Iterator[None]:
    """Try each of their parts at every step of our run, then compare the two whole runs.

    Args:
        report: what is found is added to it; it may be looked at after each step.
        config: of `small`.
        learners: a part that is not in its `made_by` is ours. A model has `fill`, `places` and
            `theirs`, like that of `own_parts`.
    """
    reference = Parts.ours(config)
    made_by = learners.made_by
    learners = replace(reference, **{n: getattr(learners, n) for n in made_by}, made_by=made_by)
    # Why one cannot be imported is said below the table.
    wheres = {name: maker.where.partition(" (broken")[0] for name, maker in made_by.items()}
    for part, name, _ in COMPARED:
        its = [report.places.get(part), wheres.get(name)]
        report.places[part] = " and ".join(filter(None, dict.fromkeys(its)))
    torch.manual_seed(config.seed)
    start = {n: p.detach().clone() for n, p in reference.model(config.model).named_parameters()}
    batches = _drawn(config, reference)
    lockstep = Lockstep(config, reference, learners, start)
    is_broken = False
    for step in lockstep.steps(batches[:-1]):
        for part, name, method in COMPARED:
            is_over = part in lockstep.wrong or (part == "batches" and step > 0)
            if is_over or name not in made_by:
                continue
            at = step + (method in AFTER_STEP)
            whose = f"Your {name} ({made_by[name].where})"
            words, fails = _difference(getattr(lockstep, method), whose, at)
            is_broken = is_broken or fails
            if words:
                lockstep.wrong.add(part)
                report.findings.append(Finding(part, at, f"{words.rstrip('.')}.", fails))
        yield
    if is_broken:
        return
    if "optimizer" in made_by:  # whichever correct one theirs agrees with
        reference = replace(reference, optimizer=lockstep.right[0][0])
    report.losses = [list(_losses(config, reference, start, batches)), []]
    for step, loss in enumerate(_losses(config, learners, start, batches)):
        yield
        expected = report.losses[0][step]
        report.losses[1].append(loss)
        if report.diverged is None and not abs(loss - expected) <= WHOLE * abs(expected):
            report.diverged = step


def _difference(method: Callable[[], str], whose: str, at: int) -> tuple[str, bool]:
    """How a part differs from ours at a step, "" if it does not, and whether it fails."""
    try:
        words = method()
    except own_parts.PartError as error:
        words = re.sub(r"; `check\(.* says more", "", str(error))  # as the last line does
        return f"Y{words[1:]}", True  # it begins with "your"
    except Exception as error:
        expect_not_ours(error, RuntimeError)  # torch's own is about their tensors
        return f"{whose} fails at step {at}: {type(error).__name__}: {error}", True
    return words and f"{whose} differs from ours at step {at}: {words}", False


def _drawn(config: TrainConfig, reference: Parts) -> list[tuple[Tensor, Tensor]]:
    """A batch for each step, and one for the loss after the last.

    Some ids are far more frequent than others, so there is something to learn.
    """
    size = config.model.vocab_size
    share = 1 / np.arange(1, size + 1)
    ids = np.random.default_rng(config.seed).choice(size, TOKENS, p=share / share.sum())
    order = torch.Generator().manual_seed(config.seed)
    device = torch.device("cpu")
    context = config.model.context_length
    return [
        reference.get_batch(ids.astype(np.uint16), config.batch_size, context, device, order)
        for _ in range(config.steps + 1)
    ]


def asked_of_schedule(config: TrainConfig, step: int) -> tuple:
    """The arguments of a schedule at a step; steps count from 1, as in `training.trainer`."""
    its = config.optimizer
    rates = its.max_learning_rate, its.min_learning_rate
    return (step, *rates, its.warmup_iters, config.cosine_cycle_iters)


def _losses(config: TrainConfig, parts: Parts, start: Mapping, batches: list) -> Iterator[float]:
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
            group["lr"] = parts.schedule(*asked_of_schedule(config, step))
        optimizer.step()


def filled(model: Any, weights: Mapping[str, Tensor]) -> Any:
    """The model, ours or theirs, with weights by the course's names."""
    fill = model.load_state_dict if isinstance(model, TransformerLM) else model.fill
    fill({name: weight.detach() for name, weight in weights.items()})
    return model


class Lockstep:
    """Our run, step by step, with their parts given the same inputs.

    Each of the methods that `COMPARED` names returns words if its part differs, or else "", and may
    raise whatever a learner's code raises.
    """

    def __init__(self, config: TrainConfig, reference: Parts, learners: Parts, start: Mapping):
        self.config = config
        self.reference = reference
        self.learners = learners
        self.wrong: set[str] = set()  # the parts that differ, as they are found
        self.model = filled(reference.model(config.model), start)
        self.weights = dict(self.model.named_parameters())
        self.learner_model: nn.Module | None = None
        self.learner_update: tuple[Callable, dict[str, Tensor], Optimizer] | None = None
        self.right = [self.updated(make, start) for make in RIGHT]  # theirs may be one of these
        self.way = 0.0  # the distance that the learning rates let a weight move so far

    def updated(self, make: Callable, start: Mapping[str, Tensor]) -> tuple:
        """What makes an optimizer, its own copies of the weights, by name, and the optimizer."""
        weights = {name: nn.Parameter(weight.detach().clone()) for name, weight in start.items()}
        return make, weights, make(list(weights.values()), self.config.optimizer)

    def steps(self, batches: Sequence[tuple[Tensor, Tensor]]) -> Iterator[int]:
        """Train; yield the number of steps taken, whenever all is ready for the next one."""
        optimizer = self.reference.optimizer(self.model.parameters(), self.config.optimizer)
        for self.step, (self.inputs, self.targets) in enumerate(batches):
            optimizer.zero_grad()
            self.logits = self.model(self.inputs)
            self.logits.retain_grad()
            self.loss_value = self.reference.loss(self.logits, self.targets)
            self.loss_value.backward()
            self.gradients_before = {n: weight.grad.clone() for n, weight in self.weights.items()}
            self.norm = self.reference.clipping(self.weights.values(), math.inf).item()
            self.limit = float(f"{self.norm * (2 if self.step % 2 else 0.5):.3g}")  # by turns
            self.reference.clipping(self.weights.values(), self.limit)
            self.gradients_after = {n: weight.grad.clone() for n, weight in self.weights.items()}
            self.rate = self.reference.schedule(*asked_of_schedule(self.config, self.step + 1))
            yield self.step
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()

    def forward(self) -> str:
        """Their logits, from our weights."""
        if self.learner_model is None:
            self.learner_model = self.learners.model(self.config.model)
        model = filled(self.learner_model, self.weights)
        whole = tuple(self.inputs.shape)
        for batch, length in (whole,) if self.step else (*SHORTER, whole):
            sizes = f"{batch} sequences of {length} tokens"
            try:
                got = model(self.inputs[:batch, :length]).detach()
            except Exception as error:
                error.args = (f"{error} (for {sizes})",)
                raise
            # Ours need not be called again: no position sees what comes after it.
            if words := of_logits(got, self.logits[:batch, :length].detach()):
                types = {weight.dtype for weight in own_parameters(model.theirs).values()}
                rounded = [
                    f" Its weights are in {kind(t)}, ours in float32."
                    for t in types & ROUNDED.keys()
                ]
                return f"for {sizes} and equal weights, {words}{''.join(rounded)}"
        return ""

    def loss(self) -> str:
        """Their loss for our logits."""
        got = self.learners.loss(self.logits.detach().clone(), self.targets).detach()
        expected = self.loss_value.detach()
        differs = distances(got, expected) > LOSS * expected.abs()
        return f"for the same logits, it is {two(got, expected)}." if differs else ""

    def back_from_loss(self) -> str:
        """The gradient of their loss, if its value is right."""
        if "loss" in self.wrong:
            return ""
        logits = self.logits.detach().clone().requires_grad_()
        self.learners.loss(logits, self.targets).backward()
        words = of_gradients({"logits": logits.grad}, {"logits": self.logits.grad}, GRADIENT)
        return words and f"its value is right, but in its backward pass {words}."

    def back_through_model(self) -> str:
        """The gradients of our loss through their model, if its logits are right."""
        if "forward" in self.wrong:
            return ""
        model = filled(self.learner_model, self.weights)
        own = own_parameters(model.theirs)
        for weight in own.values():
            weight.grad = None
        self.reference.loss(model(self.inputs), self.targets).backward()
        expected = model.places(self.gradients_before)
        words = of_gradients({name: own[name].grad for name in expected}, expected, GRADIENT)
        return words and f"its logits are right, but in its backward pass {words}."

    def clipping(self) -> str:
        """What their clipping leaves of our gradients."""
        weights = {n: nn.Parameter(weight.detach().clone()) for n, weight in self.weights.items()}
        for name, gradient in self.gradients_before.items():
            weights[name].grad = gradient.clone()
        self.learners.clipping(weights.values(), self.limit)
        got = {name: weight.grad for name, weight in weights.items()}
        words = of_gradients(got, self.gradients_after, CLIPPING)
        limit = f"gradients of norm {self.norm:.4g} are clipped to at most {self.limit:g}"
        return words and f"{limit}; afterwards {words}."

    def schedule_at_0(self) -> str:
        """Their learning rate at 0, where the loop of the handout begins; tried once."""
        return "" if self.step else self._rate_at(0)

    def schedule(self) -> str:
        """Their learning rate of the step."""
        return self._rate_at(self.step + 1)

    def _rate_at(self, it: int) -> str:
        asked = asked_of_schedule(self.config, it)
        got = self.learners.schedule(*asked)
        expected = self.reference.schedule(*asked)
        if abs(got - expected) <= SCHEDULE * self.config.optimizer.max_learning_rate:
            return ""
        return f"with the arguments {asked} it returns {two(got, expected)}."

    def optimizer(self) -> str:
        """The weights after their step along our gradients, at our learning rate."""
        if self.learner_update is None:
            self.learner_update = self.updated(self.learners.optimizer, self.right[0][1])
        _, weights, _ = self.learner_update
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        for _, weights_of, optimizer in (self.learner_update, *self.right):
            for name, gradient in self.gradients_after.items():
                weights_of[name].grad = gradient.clone()
            for group in optimizer.param_groups:
                group["lr"] = self.rate
            optimizer.step()
        self.way += self.rate

        def allowed(weight: Tensor) -> Tensor:
            return UPDATE * self.way + ROUNDING * (self.step + 1) * (1 + weight.detach().abs())

        gaps = [(largest_gap(weights, right[1], allowed), right) for right in self.right]
        gaps.sort(key=lambda pair: pair[0].share)
        gap, _ = gaps[0]
        if gap.share > 1:
            old = before[gap.name].flatten()[gap.place]
            numbers = two(gap.got, gap.expected)
            return f"after it, a weight of `{gap.name}` that was {old:.4g} is {numbers}."
        # Of the correct ones, those that theirs has agreed with so far, the nearest first.
        self.right = [right for gap, right in gaps if gap.share <= 1]
        return ""

    def batches(self) -> str:
        """Whether their batches are windows and targets, drawn from everywhere; tried once."""
        order = torch.Generator().manual_seed(SEED)

        def get_batch(dataset, batch_size, context_length, device):
            device = torch.device(device)
            return self.learners.get_batch(dataset, batch_size, context_length, device, order)

        try:
            loader = BatchRunner(get_batch)
            loader.expect_fair(loader.starts())
            loader.expect_ids()
        except NotJudged as lacking:  # their import has said what
            raise lacking.__cause__ or lacking from None
        except Wrong as wrong:
            if wrong.error:
                raise wrong.error from wrong
            rows = "".join(f" {name}: {text}." for name, text in wrong.rows)
            return f"{wrong.claim}{rows} {wrong.mistake or ''}".rstrip()
        return ""


class Gap(NamedTuple):
    """The place where tensors differ most, and their numbers there."""

    share: float  # of what is allowed
    name: str
    place: int  # in the flattened tensor
    got: float
    expected: float


def largest_gap(got: Mapping, expected: Mapping, allowed: Callable[[Tensor], Any]) -> Gap:
    """Find the number that is furthest from what is expected, for what is `allowed` there."""
    gaps = []
    for name, right in expected.items():
        shares = (distances(got[name].detach(), right.detach()) / allowed(right)).flatten()
        at = shares.argmax().item()
        numbers = (tensor.detach().flatten()[at].item() for tensor in (got[name], right))
        gaps.append(Gap(shares[at].item(), name, at, *numbers))
    return max(gaps)


def distances(got: Tensor, expected: Tensor) -> Tensor:
    """The distance of numbers; infinite if one is NaN. Raises: RuntimeError if shapes differ."""
    if got.shape != expected.shape:
        raise RuntimeError(f"the shape is {tuple(got.shape)}, but ours is {tuple(expected.shape)}")
    return (got - expected).abs().nan_to_num(nan=math.inf, posinf=math.inf)


def of_logits(got: Tensor, expected: Tensor) -> str:
    """In words, the first position at which logits differ; "" if none does."""
    far = (distances(got, expected) > FORWARD * expected.abs().max()).nonzero()
    if not len(far):
        return ""
    first = int(far[:, 1].min())
    one, other = ({"logits": logits[:, first]} for logits in (got, expected))
    gap = largest_gap(one, other, lambda _: 1.0)
    agree = f" The logits before position {first} agree." if first else ""
    return f"a logit at position {first} is {two(gap.got, gap.expected)}.{agree}"


def of_gradients(got: Mapping, expected: Mapping[str, Tensor], share: float) -> str:
    """In words, where gradients differ most, if by more than a share of the tensor's largest."""
    if missing := [f"`{name}`" for name in expected if got[name] is None]:
        shown = missing if len(missing) <= 3 else [*missing[:3], "..."]
        return f"no gradient reaches {', '.join(shown)}"
    largest = max(tensor.abs().max() for tensor in expected.values())
    # What is tiny beside the others is rounding.
    gap = largest_gap(got, expected, lambda g: share * max(g.abs().max(), share * largest))
    numbers = two(gap.got, gap.expected)
    return f"a gradient of `{gap.name}` is {numbers}" if gap.share > 1 else ""


def two(got: Tensor | float, expected: Tensor | float) -> str:
    """Two numbers with as many digits as it takes to tell them apart."""
    got = float(got)
    expected = float(expected)
    digits = next((n for n in range(4, 9) if f"{got:.{n}g}" != f"{expected:.{n}g}"), 9)
    return f"{got:.{digits}g}, but ours is {expected:.{digits}g}"
