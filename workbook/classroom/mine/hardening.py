"""`harden`: find the mistake that was planted into a copy of your own solved code.

The code that a check kept (`solutions`) is changed in one place (`machinery.mutants`), and only a
change that the check calls wrong is taken; first one that it calls by a name which the learner has
been told before. The learner sees what a researcher would see: an output
beside the expected one, and for a part of training the loss curves of the twin test. They name the
line, or mend the copy; each call offers the next step of a procedure for debugging. The copies are
in `study/broken/`; what was planted and found is in `.workbook/harden.json`, and worth no points.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar

from workbook.classroom import problems
from workbook.classroom.checks.machinery import engine, judging
from workbook.classroom.checks.machinery.mutants import planted
from workbook.classroom.checks.machinery.timeout import time_is_up
from workbook.classroom.problems import Problem
from workbook.classroom.study import mistakes, progress, solutions
from workbook.classroom.study.records import RecordEntry
from workbook.classroom.study.verbs import NotNow, Report
from workbook.files import atomic_write

FOLDER = "broken"
HEADER = "# {}, with one mistake in it: harden says more\n"
# A small model by somebody else, for the same game in code that is not the learner's own.
STRANGER = "stranger"
STRANGERS_CODE = Path(__file__).with_name("stranger.txt")
TRAINED = (  # the problems whose parts change the losses of a run
    "transformer_lm",
    "cross_entropy",
    "adamw",
    "learning_rate_schedule",
    "gradient_clipping",
)
OWN_KIND_SECONDS = 10.0  # of processor time, in which one of the learner's own kinds is looked for
TOP_SECONDS = 10.0  # of processor time, for the statements at the top of the learner's file
# Claims that show a reader nothing to reason from: mistakes that end so are not planted.
MUTE = re.compile("It (was stopped|did not|ended|cannot be)|The check itself|.*not understood")
# Others show little; they come where no more values differ.
LATER = re.compile("It raised|It does not return|The parameters? (`|have)|.*(module|still missing)")
AT_LINE = re.compile(r"at line (\d+), in ")
THEIRS = re.compile(r"Your \w+ \(mine\.\w+:(.*?)\)")  # where the copy played the learner's part
BARS = "▁▂▃▄▅▆▇█"
# A call of `harden` offers the next one.
PROCEDURE = (
    "Reproduce: in a new cell, import the copy (`from broken import {name} as copy`; after a change"
    " `importlib.reload(copy)`), run the input above on it, and see the same result.",
    "Shrink: make the input smaller for as long as the result stays wrong, down to two numbers, one"
    " head or one token, which you can work out by hand.",
    "Compare with a twin that is right, part by part: print what each line of the copy makes, and"
    " the same by hand or from the workbook's own function. The mistake is just before the first"
    " value that differs.",
    "Explain: say in one sentence how that line leads to what you saw. If the sentence explains"
    " only half of it, look further.",
    "Mend: change that line in `broken/{name}.py` and nothing else, or name it:"
    ' `harden("{name}", line=...)`. If a line is missing, name the one above or below the gap.',
    'Test: `harden("{name}")` checks the copy again. Keep the small input as a test of your own.',
)


@dataclass(kw_only=True)
class Hunt(RecordEntry):
    """One planted mistake, as it is stored, and what was found in the same code before."""

    file: ClassVar[str] = "harden.json"

    source: str = ""  # of the copy, as it was planted
    what: str = ""  # differs
    first: int = 0  # the lines in which it can be seen
    last: int = 0
    claim: str = ""  # of the check
    rows: list[list[str]] = field(default_factory=list)  # what it shows: label and text
    changed: str = ""  # these lines
    original: str = ""  # the same lines without the mistake
    step: int = 0  # of the procedure, that was offered last
    is_found: bool = False
    found: list[str] = field(default_factory=list)  # `changed` of all that were found

    def __post_init__(self) -> None:
        if self.step not in range(len(PROCEDURE)):
            raise ValueError(f"the procedure has no step {self.step}")
        if any(len(row) != 2 for row in self.rows):
            raise ValueError("expected a label and a text in each row")

    def is_at(self, line: int, source: str) -> bool:
        """Whether it is in this line of the copy, to which lines may have been added since."""
        if source == self.source:
            return self.first <= line <= self.last
        named = source.splitlines()[line - 1 : line] if line > 0 else []
        return any(text.strip() in self.changed for text in named if text.strip())


def harden(problem: str, line: int | None = None) -> Report:
    """Plant one mistake into a copy of your solved code, for you to find; called again, help.

    Once your code has passed its check, this writes `broken/PROBLEM.py` into your study folder, and
    shows what goes wrong in it. Name the line, or mend it there and call this again. It is counted,
    but worth no points.
    Example: harden("rope", line=12)

    Arguments:
        problem: a code problem that you solved, or "stranger": a model that somebody else wrote.
        line: the number of the line in the copy that you think is wrong.
    """
    study = progress.current()
    if study is None:
        raise NotNow("not in a study folder; `workbook lab` creates one")
    if not isinstance(line, int | None):
        raise ValueError(f"expected the number of a line, not {type(line).__name__}")
    name = STRANGER if problem == STRANGER else problems.with_id(problem).id
    details = problems.with_id("transformer_lm" if name == STRANGER else name)
    whole = problems.with_id(details.step_of) if details.step_of else details
    if not whole.form:
        raise ValueError(f"{name} has no code to harden: name a code problem, such as rope")
    if details.step_of:
        raise ValueError(f"{name} is a step on the way: solve {whole.id}, and harden that")
    path = study.folder / FOLDER / f"{name}.py"
    hunts = study.notes(Hunt)
    hunt = hunts.get(name, Hunt(is_found=True))
    if hunt.is_found or not path.exists():
        if line is not None:
            raise NotNow(f'no mistake is planted there now; `harden("{name}")` plants one')
        hunt = _plant(study, path, details, hunt.found)
        claim = (
            f"One mistake is in `{FOLDER}/{path.name}`, a copy of code that passed. {hunt.claim}"
        )
        return _seen(name, claim, hunt.rows, [0] if hunts else range(len(PROCEDURE)))
    source = path.read_text("utf-8", errors="replace")
    claim = hunt.claim
    rows = hunt.rows
    is_found = False
    if line is not None:
        claim = f"The mistake is not in line {line}. {claim}"
        is_found = hunt.is_at(line, source)
    elif source != hunt.source:
        report = _checked(details, source)
        claim = report.claim
        rows = [list(row) for row in report.rows]
        is_found = report.status in ("correct", "almost")
    hunt.step = min(hunt.step + 1, len(PROCEDURE) - 1)
    if is_found:
        hunt.is_found = True
        hunt.found = [*hunt.found, hunt.changed]
    study.keep_notes(Hunt, {name: hunt})
    return _found(name, hunt) if is_found else _seen(name, claim, rows, [hunt.step])


def _plant(study: progress.Progress, path: Path, details: Problem, found: list[str]) -> Hunt:
    """Write a copy with a mistake in it that was not found before."""
    source = STRANGERS_CODE.read_text("utf-8") if path.stem == STRANGER else ""
    source = source or solutions.stored(study.folder).get(details.id, [""])[0]
    if not source:
        raise NotNow(f"no code of yours is kept for {details.id}: solve it, and run its check")
    source = HEADER.format(path.stem) + source.partition("\n")[2]  # in place of its first line
    kinds = mistakes.kinds_of(study, details.id)
    hunt = _of_a_kind(kinds, details, source, found) if kinds else None
    hunt = hunt or next(mistakes_in(details, source, found), None)
    if hunt is None:
        raise NotNow(f"{len(found)} mistakes were found here, and there are no more")
    hunt.rows += map(list, _curves(details, hunt.source, f"{FOLDER}/{path.name}"))
    solutions.make_way(path, set())
    with atomic_write(path) as file:
        file.write(hunt.source)
    study.keep_notes(Hunt, {path.stem: hunt})
    return hunt


def _seen(name: str, claim: str, rows: Iterable[Any], steps: Iterable[int]) -> Report:
    """The symptom, and these steps of the procedure."""
    then = tuple(f"{step + 1}. {PROCEDURE[step].format(name=name)}" for step in steps)
    return Report(
        "wrong",
        f"harden {name}",
        None,
        claim,
        tuple(map(tuple, rows)),
        then=then,
        state="a mistake is in the copy",
    )


def _found(name: str, hunt: Hunt) -> Report:
    is_gap = hunt.what.startswith("a step is missing")
    where = f"between lines {hunt.first} and {hunt.last}" if is_gap else f"in line {hunt.first}"
    claim = f"You found it, {where}: {hunt.what.removesuffix(' there')}."
    rows = ("it is", hunt.changed), ("it was", hunt.original)
    then = f'Say why it led to what you saw. `harden("{name}")` plants another one.'
    return Report("correct", f"harden {name}", None, claim, rows, then=(then,), state="found")


def found_mistakes(study: Path) -> list[str]:
    """A line on how many mistakes were found in each problem's code; none if none was."""
    with suppress(OSError):  # a record that a later version wrote: the rest is shown all the same
        hunts = progress.Progress(study).notes(Hunt).items()
        names = ", ".join(f"{name} {len(hunt.found)}" for name, hunt in hunts if hunt.found)
        return [f"Planted mistakes that you found (`harden`): {names}."] if names else []
    return []


def mistakes_in(details: Problem, source: str, found: Iterable[str] = ()) -> Iterator[Hunt]:
    """Each mistake that the check of a problem calls wrong and shows something of.

    They come in an order that mixes the kinds, and is the same for the same code. Those that show
    no value come last, and not at all if an error names their line.

    Arguments:
        found: the changed lines of mistakes that are not to come again.
    """
    seen = {*found}
    later = []
    for mutant in planted(source, Random(len(seen))):
        lines = slice(mutant.first - 1, mutant.last)
        changed = "\n".join(mutant.source.splitlines()[lines]).strip()
        if changed in seen:
            continue
        report = _checked(details, mutant.source)
        got = dict(report.rows).get("got", "")
        at_it = any(mutant.first <= int(n) <= mutant.last for n in AT_LINE.findall(got))
        if report.status == "wrong" and not MUTE.match(report.claim) and not at_it:
            seen.add(changed)
            original = "\n".join(source.splitlines()[lines]).strip()
            hunt = Hunt(**mutant._asdict(), changed=changed, original=original, found=[*found])
            hunt.claim = report.claim
            hunt.rows = [list(row) for row in report.rows if row[0] != "printed"]
            if LATER.match(report.claim):
                later.append(hunt)
            else:
                yield hunt
    yield from later


def _of_a_kind(kinds: set[str], details: Problem, source: str, found: list[str]) -> Hunt | None:
    """A mistake that a check calls by one of these names, if one is found in time."""
    is_up = time_is_up(OWN_KIND_SECONDS)
    for hunt in mistakes_in(details, source, found):
        asked = solutions.judge_source, details, None, hunt.source, TOP_SECONDS
        if judging.from_worker(*asked).likely in kinds:
            return hunt
        if is_up():
            break
    return None


def _checked(details: Problem, source: str) -> Report:
    """What the check says of the code in a source: in a process of its own, like every check."""
    return judging.from_worker(judge_copy, details, None, source)


def judge_copy(problem: str, source: str) -> Iterator[dict]:
    """Yield what the check says of the code in a source, as values for JSON. For a worker."""
    engine.hurry()
    yield from solutions.judge_source(problem, source, TOP_SECONDS)


def _curves(details: Problem, source: str, copy: str) -> Iterator[tuple[str, str]]:
    """The losses of a short run with our parts and with the copy in the place of one of them."""
    if details.id not in TRAINED:
        return
    from workbook.classroom.mine import twin

    with tempfile.TemporaryDirectory() as folder, suppress(ValueError, OSError):
        path = Path(folder, solutions.FOLDER, f"{details.id}.py")
        path.parent.mkdir()
        path.write_text(source, "utf-8")
        report = twin.twin(study=Path(folder))
        if report.losses and report.differs:
            yield "twin", THEIRS.sub(rf"The copy ({copy}: \1)", report.message)
        if not report.losses:  # a part fails before there are any
            return
        least = min(report.losses[0])
        most = max(report.losses[0])
        for whose, losses in zip(("ours", "the copy's"), report.losses, strict=True):
            heights = [(min(most, loss) - least) / (most - least) for loss in losses]
            bars = "".join(BARS[round(7 * max(0, height))] for height in heights)
            yield f"loss, {whose}", f"`{bars}` from {losses[0]:.3f} to {losses[-1]:.3f}"
