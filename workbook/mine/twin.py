"""The twin test: your parts train beside ours, and if the runs diverge, the part at fault is named.

Our initial weights go into your model, and both see the same batches. `lockstep` compares them
in a process of its own, so that a crash or a hang in one of your parts is reported, too.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from workbook.checks import worker
from workbook.study import progress
from workbook.training import presets

# The longest silence of a call, and of the process: after it, a part hangs. Its inputs are small.
CALL_SECONDS, SECONDS = 20.0, 50.0
CHECK = "`workbook check --all`"


class Finding(NamedTuple):
    """A part that differs, the step at which it does, and how, in words."""

    part: str
    step: int
    message: str


@dataclass
class Report:
    """What a twin test has found. Printed, it is a table of the parts and a message."""

    preset: str
    steps: int
    theirs: dict[str, str] = field(default_factory=dict)  # where each part is; "": it is ours
    sizes: str = ""  # of the model, in words
    tried: set[str] = field(default_factory=set)
    found: list[Finding] = field(default_factory=list)
    losses: tuple[list[float], list[float]] = (
        (),
        (),
    )  # ours and theirs, before and after each step
    parted: int | None = None  # the step at which these diverge

    @property
    def first(self) -> Finding | None:
        """The part that is named: of those that differ, the first in the order of the run."""
        order = list(self.theirs)
        # Batches come last, because both runs are given ours.
        turns = [(e.part == "batches", e.step, order.index(e.part), e) for e in self.found]
        return min(turns)[-1] if turns else None

    @property
    def first_step(self) -> int | None:
        """The step at which the losses diverge, or else the named part differs; None: neither."""
        return self.first.step if self.parted is None and self.first else self.parted

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        return self.first_step is not None

    @property
    def message(self) -> str:
        """What was found, in a sentence or two."""
        if self.first:
            message, others = self.first.message, [e.part for e in self.found if e != self.first]
            if self.parted not in (None, self.first.step):
                message += f" The losses diverge at step {self.parted}."
            return message + (f" These differ too: {', '.join(others)}." if others else "")
        ours, theirs = self.losses
        if self.parted is not None:
            return (
                f"The losses diverge at step {self.parted}, though each of your parts alone does"
                " what ours does: perhaps two share state, or one keeps some between steps."
            )
        same = ", ".join(part for part in self.theirs if self.outcome(part) == "same")
        return (
            f"Nothing differs in {self.steps} steps: {same}. The loss goes from {ours[0]:.3f} to"
            f" {theirs[-1]:.3f}, as ours does."
        )

    def outcome(self, part: str) -> str:
        """The outcome for one part, in a few words."""
        if differs := [each.step for each in self.found if each.part == part]:
            return f"differs at step {differs[0]}"
        if not self.theirs[part]:
            return "ours"
        if part == "gradients" and {"forward", "loss"} & {each.part for each in self.found}:
            return "not tried"  # they cannot be right
        return "same" if part in self.tried else "not tried"

    def __str__(self) -> str:
        rows = [(part, self.outcome(part), where) for part, where in self.theirs.items()]
        table = [f"  {part:9}  {outcome:18}  {where}".rstrip() for part, outcome, where in rows]
        title = f"{self.steps} steps with your parts and with ours: {self.preset}, scaled down"
        told = not self.differs or CHECK in self.message
        more = "" if told else f"{CHECK} looks at each part more closely."
        return "\n".join(
            [title, f"({self.sizes})", "", *table, "", f"{self.message} {more}".strip()]
        )

    def as_json(self) -> dict:
        """What `workbook twin --json` writes."""
        return {
            "parts_differ": [part for part in self.theirs if part in {e.part for e in self.found}],
            "first_step": self.first_step,
            "part": self.first.part if self.first else None,
            "message": self.message,
        }


def twin(preset: str = "laptop", steps: int = 20, study: Path | None = None) -> Report:
    """Train the learner's parts beside ours, in a process of its own, and compare them.

    Args:
        preset: the settings for RoPE and the optimizer are taken from it; the sizes are small.
        steps: the number that both take.
        study: the study folder whose parts are tried; None: the nearest one.

    Raises: ValueError for an unknown preset, and if there is no part to try; OSError if the
    learner's code ends the process while no part is being tried alone.
    """
    presets.get(preset)
    study = Path(study or progress.nearest()).absolute()
    lines = worker.results(f"{__name__}:serve", str(study), preset, steps, seconds=SECONDS)
    with closing(lines):
        return collected(Report(preset, steps), lines)


def serve(study: str, preset: str, steps: int) -> Iterator[dict]:
    """Yield what `lockstep` finds. Raises: ValueError if there is no part to try."""
    from workbook.mine import lockstep, own_parts

    own_parts.SECONDS = CALL_SECONDS  # in this process, which ends with the test
    theirs = own_parts.expect_some(own_parts.parts(Path(study)))
    if not theirs.made_by.keys() & {name for _, name, _ in lockstep.COMPARED}:
        raise ValueError("none of your parts is used in a training step, so none can be compared")
    yield from lockstep.compared(lockstep.small(preset, steps), theirs)


def collected(report: Report, lines: Iterable[dict]) -> Report:
    """Fill a report with what `serve` yields. Raises: as `twin`."""
    trying = None
    try:
        for line in lines:
            if "trying" in line:
                trying = line.pop("trying")
                report.tried |= {trying[0]} if trying else set()
            elif "found" in line:
                report.found.append(Finding(*line["found"]))
            for name in line.keys() - {"trying", "found"}:
                setattr(report, name, line[name])
    except worker.EndedError as error:
        if trying is None:
            raise
        part, step, whose = trying
        words = f"{whose} did not return at step {step}: {error}."
        report.found.append(Finding(part, step, words))
    return report
