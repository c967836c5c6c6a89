"""The state of each problem: what is answered, on which corpus, and what is missing."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from workbook import config
from workbook.classroom.export.saved_notebooks import (
    Answer,
    Listing,
    Place,
    SavedNotebooks,
    read_folder,
)
from workbook.classroom.panels import sign
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
# What a part has reached that has the same sign.
LIKE_PART = {
    CORRECT: "correct",
    ALMOST: "almost",
    ANSWERED: "complete",
    STAND_IN: "almost",
    WRONG: "wrong",
    UNANSWERED: "open",
    UNSOLVED: "open",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One problem of the write-up."""

    problem: Problem
    id: str  # as this edition spells it
    points: int | None  # None if this edition does not say
    answers: dict[str, Answer]  # by part
    listings: list[Listing]  # of code
    short: list[str]  # how it falls short of what is asked
    almost: bool  # the check found the code almost correct
    wrong: list[str]  # parts whose check said so, of the answer or of an attempt

    @property
    def open(self) -> list[str]:
        """The parts with no answer and no attempt; "" stands for the problem itself."""
        if self.problem.kind == "code":
            return [] if self.listings or self.answers or self.wrong else [""]
        done = {*self.answers, *self.wrong}
        return [part for part in self.problem.part_keys if part not in done]

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

    @property
    def sign_and_words(self) -> str:
        """Such as "✓ code correct"."""
        return f"{sign(LIKE_PART[self.state])} {self.in_words}"


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
    if is_reference:
        chosen = _chosen(saved.answers, edition, notes)
        for answer in chosen.values():  # whose figures are in cells of their own
            answer.outputs.extend(saved.evidence.get(answer.place, []))
        attempts = {}
        code = {
            id: _each_once(listings)
            for id, listings in saved.revealed.items()
            if PROBLEMS[id].kind == "code"
        }
    else:
        chosen = _chosen(_own(saved.answers, worked.answers, notes), edition, notes)
        attempts = _attempts(folder, saved)
        code = _own_code(attempts, worked.revealed, notes, prove)
    return WriteUp(
        saved=saved,
        edition=edition,
        is_reference=is_reference,
        entries=[
            _entry(problem, edition, chosen, attempts, code.get(id, []))
            for id, problem in PROBLEMS.items()
        ],
        name=Progress(folder).name,
        notes=notes,
    )


def _each_once(listings: list[Listing]) -> list[Listing]:
    """Leave out the methods of classes that are listed whole."""
    whole = tuple(f"{name}." for name, _ in listings)
    return [listing for listing in listings if not listing[0].startswith(whole)]


def _own_code(
    attempts: dict[Place, Part], revealed: dict[str, list[Listing]], notes: list[str], prove: bool
) -> dict[str, list[Listing]]:
    """List the code that passed, by problem, unless most of it is what `reveal` shows of ours."""
    code = {}
    for id, problem in PROBLEMS.items():
        if problem.kind == "written":
            continue
        kept = attempts.get((id, ""), Part())
        # A helper of ours in their code is fine.
        ours = [source for _, source in revealed.get(id, []) if source.strip() in kept.source]
        if sum(map(len, ours)) > len(kept.source) / 2:
            notes.append(f"what passed as {id} is the package's own code: it is left out")
        elif kept.source:
            code[id] = [(f"{id}.py", kept.source.strip("\n"))]
            if prove and kept.trouble is None:
                kept.trouble = solutions.why_not_alone(kept.source, id)
    return code


def _entry(
    problem: Problem,
    edition: str,
    chosen: dict[Place, Answer],
    attempts: dict[Place, Part],
    listings: list[Listing],
) -> Entry:
    """Find the state of one problem."""
    id = problem.id
    answers = {}
    wrong = []
    for part in problem.part_keys:
        verdict = attempts.get((id, part), Part()).best
        if answer := chosen.get((id, part)):
            answers[part] = answer
            verdict = answer.verdict
        if verdict == "wrong":
            wrong.append(part)
    short = [f"{answer}: {line}" for answer in answers.values() for line in _complaints(answer)]
    kept = attempts.get((id, ""), Part())
    if listings and kept.trouble:
        short.append(f"{id}: its code does not import by itself: {kept.trouble}")
    return Entry(
        problem=problem,
        id=problem.ids[edition],
        points=problem.points[edition],
        answers=answers,
        listings=listings,
        short=short,
        almost=bool(listings) and kept.best == "almost",
        wrong=wrong,
    )


def _complaints(answer: Answer) -> list[str]:
    """List how an answer falls short of what is asked."""
    figures = sum(output.kind == "picture" for output in answer.outputs)
    return complaints(*answer.place, answer.text, figures, answer.loss, answer.corpora)


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
