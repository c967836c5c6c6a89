"""The state of each problem: what is answered, on which corpus, and what is missing."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from workbook import config
from workbook.classroom.export.saved_notebooks import Answer, Place, SavedNotebooks, read_folder
from workbook.classroom.problems import PROBLEMS, Problem, label
from workbook.classroom.study import solutions
from workbook.classroom.study.answers import complaints
from workbook.classroom.study.progress import MARK, Part, Progress

CORRECT = "code correct"
ALMOST = "code almost correct"
ANSWERED = "answered"
STAND_IN = "answered on a stand-in corpus"
WRONG = "wrong"
UNANSWERED = "unanswered"
UNSOLVED = "not solved"  # of code
SIGNS = {CORRECT: "✓", ALMOST: "≈", ANSWERED: "✓", STAND_IN: "≈", WRONG: "✗", UNANSWERED: "○"}
SIGNS[UNSOLVED] = SIGNS[UNANSWERED]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One problem of the write-up."""

    problem: Problem
    id: str  # as this edition spells it
    points: int | None  # None if this edition does not say
    answers: dict[str, Answer]  # by part
    listings: list[tuple[str, str]]  # of code: a name and its source
    short: list[str]  # how it falls short of what is asked
    almost: bool  # the check found the code almost correct
    wrong: list[str]  # parts whose check said so, of the answer or of an attempt

    @property
    def open(self) -> list[str]:
        """The parts with no answer and no attempt; "" stands for the problem itself."""
        if self.problem.kind == "code":
            return [] if self.listings or self.answers or self.wrong else [""]
        parts = self.problem.parts or ("",)
        return [part for part in parts if part not in self.answers and part not in self.wrong]

    @property
    def is_done(self) -> bool:
        """Whether every part is answered, and none is wrong or only almost correct.

        What rests on training runs, which no check can see, also has all that is asked for.
        """
        lacks = self.problem.needs_runs and self.short
        return not (self.open or self.wrong or self.almost or lacks)

    @property
    def state(self) -> str:
        """The one state of the whole problem."""
        if self.open:
            return UNSOLVED if self.problem.kind == "code" else UNANSWERED
        if self.wrong:
            return WRONG
        if self.listings:
            return ALMOST if self.almost else CORRECT
        return self._answered

    @property
    def _answered(self) -> str:
        return STAND_IN if any(answer.stand_in for answer in self.answers.values()) else ANSWERED

    @property
    def in_words(self) -> str:
        """The state, with the parts named if they are in different states."""
        words = self.state
        if self.problem.parts and not self.is_done:
            right = [part for part in self.answers if part not in self.wrong]
            kinds = ((self._answered, right), (WRONG, self.wrong), (UNANSWERED, self.open))
            told = [f"{kind}: {', '.join(parts)}" for kind, parts in kinds if parts]
            words = "; ".join(told) if len(told) > 1 else words
        return f"{words}; falls short of what is asked" if self.short else words


@dataclass(frozen=True, kw_only=True)
class WriteUp:
    """What goes into the write-up, problem by problem in the order of the handout."""

    saved: SavedNotebooks
    edition: str
    is_reference: bool
    entries: list[Entry]
    name: str  # whose it is; "" where nobody said
    notes: list[str]  # what the writer should know; none of it is an error

    @property
    def short(self) -> list[str]:
        """Where answers fall short of what is asked."""
        return [line for entry in self.entries for line in entry.short]

    @property
    def missing(self) -> list[str]:
        """What keeps the write-up from being complete."""
        missing = list(self.saved.left_aside)
        for entry in self.entries:
            missing += [f"{label(entry.id, part)}: {entry.state}" for part in entry.open]
            missing += [f"{label(entry.id, part)}: {WRONG}" for part in entry.wrong]
            if entry.almost:
                missing.append(f"{entry.id}: {ALMOST}")
        return missing + self.short

    @property
    def summary(self) -> str:
        """How many problems there are in each state, in one line."""
        kind = "Reference write-up" if self.is_reference else "Write-up"
        counts = Counter(entry.state for entry in self.entries)
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        return f"{kind}, edition {self.edition}: {len(self.entries)} problems, {states}."


def assess(folder: Path, edition: str, prove: bool = False) -> WriteUp:
    """Find the state of everything in a folder of notebooks, for one edition of the handout.

    `prove` imports kept code of which it is not yet known whether it imports by itself.
    """
    saved = read_folder(folder)
    worked = read_folder(config.shipped() / "notebooks")
    # The worked notebooks, or a copy of them, and not a learner's.
    is_reference = not ((folder / MARK).is_dir() or saved.checks) and any(
        answer.source == our.source for answer in saved.answers for our in worked.answers
    )
    notes = list(saved.notes)
    answers = saved.answers if is_reference else _own(saved.answers, worked.answers, notes)
    chosen = _chosen(answers, edition, notes)
    if is_reference:  # whose figures are in cells of their own
        for answer in chosen.values():
            answer.outputs.extend(saved.evidence.get(answer.place, []))
    attempts = {} if is_reference else _attempts(folder, saved)
    verdicts = {place: part.best for place, part in attempts.items()}
    verdicts |= {place: answer.verdict for place, answer in chosen.items()}
    entries = []
    for id, problem in PROBLEMS.items():
        own = {part: chosen[id, part] for part in (*problem.parts, "") if (id, part) in chosen}
        listings = []
        kept = attempts.get((id, ""), Part())
        # What `reveal` shows in the worked notebooks; a helper of ours in their code is fine.
        copied = [code for _, code in worked.revealed.get(id, []) if code.strip() in kept.source]
        if problem.kind == "code" and is_reference:
            listings = saved.revealed.get(id, [])
        elif problem.kind == "code" and sum(map(len, copied)) > len(kept.source) / 2:
            notes.append(f"what passed as {id} is the package's own code: it is left out")
        elif problem.kind == "code" and kept.source:
            listings = [(f"{id}.py", kept.source.strip("\n"))]
            if prove and kept.trouble is None:
                kept.trouble = solutions.why_not_alone(kept.source, id)
        short = [f"{answer}: {line}" for answer in own.values() for line in _complaints(answer)]
        if listings and kept.trouble:
            short.append(f"{id}: its code does not import by itself: {kept.trouble}")
        entry = Entry(
            problem=problem,
            id=problem.ids[edition],
            points=problem.points[edition],
            answers=own,
            listings=listings,
            short=short,
            almost=kept.best == "almost" and bool(listings),
            wrong=[part for part in problem.parts or ("",) if verdicts.get((id, part)) == "wrong"],
        )
        entries.append(entry)
    return WriteUp(
        saved=saved,
        edition=edition,
        is_reference=is_reference,
        entries=entries,
        name=Progress(folder).name,
        notes=notes,
    )


def _complaints(answer: Answer) -> list[str]:
    """List how an answer falls short of what is asked."""
    figures = sum(output.kind == "picture" for output in answer.outputs)
    return complaints(*answer.place, answer.text, figures, answer.loss, answer.stand_in)


def _own(answers: list[Answer], worked: list[Answer], notes: list[str]) -> list[Answer]:
    """Keep a learner's own answers, without any that copies or quotes the worked notebooks."""
    own = []
    for answer in answers:
        if any(answer.source == our.source or our.text in answer.text for our in worked):
            notes.append(f"{answer} is the workbook's own answer, not yours: it is left out")
        else:
            own.append(answer)
    return own


def _chosen(answers: list[Answer], edition: str, notes: list[str]) -> dict[Place, Answer]:
    """Choose the answer for each place: the last one, of `edition` if there is a choice."""
    chosen: dict[Place, Answer] = {}
    for answer in sorted(answers, key=lambda answer: answer.edition == edition):
        before = chosen.get(answer.place)
        if before and before.edition == answer.edition:
            files = f"in {before.notebook} and again in {answer.notebook}"
            notes.append(f"{answer} is answered {files}: the last one counts")
        chosen[answer.place] = answer
    for place, answer in list(chosen.items()):
        differs = PROBLEMS[place[0]].differs
        if answer.edition != edition and differs:
            why = f"edition {answer.edition}, for which it is answered, differs in {differs}"
            notes.append(f"{answer} is left out: {why}")
            del chosen[place]
    return chosen


def _attempts(folder: Path, saved: SavedNotebooks) -> dict[Place, Part]:
    """Bring together what a study folder says about each part: record, outputs and kept files.

    A folder that was copied may have lost any of them.
    """
    recorded = Progress(folder).read()
    attempts = {(id, name): part for id, parts in recorded.items() for name, part in parts.items()}
    attempts = {**saved.checks, **attempts}
    for id, (source, status) in solutions.stored(folder).items():
        part = attempts.setdefault((id, ""), Part(best=status))
        if source != part.source:
            part.source = source
            part.trouble = None
    return attempts
