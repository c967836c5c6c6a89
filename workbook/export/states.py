"""The state of each problem: what is answered, on which corpus, and what is missing."""

import ast
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from workbook import config
from workbook.export.stored import Answer, Found, Place, named, read_folder
from workbook.files import notebooks_in
from workbook.study import solutions
from workbook.study.answers import complaints
from workbook.study.problems import PROBLEMS, Problem
from workbook.study.progress import MARK, RISING, Part, Progress

CORRECT = "code correct"
ALMOST = "code almost correct"
ANSWERED = "answered"
STAND_IN = "answered on a stand-in corpus"
WRONG = "wrong"
UNANSWERED = "unanswered"
LEFT = "its code is almost correct; run its check to see what is left"
SIGNS = {CORRECT: "✓", ALMOST: "≈", ANSWERED: "✓", STAND_IN: "≈", WRONG: "✗", UNANSWERED: "○"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One problem of the write-up."""

    problem: Problem
    edition: str
    answers: dict[str, Answer]  # by part
    listings: list[tuple[str, str]]  # of code: a name and its source
    short: list[tuple[str, str]] = field(default_factory=list)  # a part, and how it falls short
    almost: bool = False  # the check found the code almost correct
    wrong: tuple[str, ...] = ()  # parts whose check said so, of the answer or of an attempt

    @property
    def id(self) -> str:
        """The problem's id, as this edition spells it."""
        return self.problem.ids[self.edition]

    @property
    def points(self) -> int | None:
        """What the problem is worth; None if this edition does not say."""
        return self.problem.points[self.edition]

    @property
    def open(self) -> list[str]:
        """The parts with no answer and no attempt; "" stands for the problem itself."""
        if self.problem.kind == "code":
            return [] if self.listings or self.answers or self.wrong else [""]
        parts = self.problem.parts or ("",)
        return [part for part in parts if part not in self.answers and part not in self.wrong]

    @property
    def is_done(self) -> bool:
        """Whether every part is answered, and none is wrong or only almost correct."""
        return not self.open and not self.wrong and not self.almost

    @property
    def state(self) -> str:
        """The one state of the whole problem."""
        if self.open:
            return UNANSWERED
        if self.wrong:
            return WRONG
        if not self.listings:
            return self._answered
        return ALMOST if self.almost else CORRECT

    @property
    def _answered(self) -> str:
        return STAND_IN if any(each.stand_in for each in self.answers.values()) else ANSWERED

    @property
    def in_words(self) -> str:
        """The state, with the parts named if they are in different states."""
        said = self.state
        if self.problem.parts and not self.is_done:
            right = [part for part in self.answers if part not in self.wrong]
            kinds = ((self._answered, right), (WRONG, self.wrong), (UNANSWERED, self.open))
            named = [f"{kind}: {', '.join(parts)}" for kind, parts in kinds if parts]
            said = "; ".join(named) if len(named) > 1 else said
        return f"{said}; falls short of what is asked" if self.short and not self.almost else said


@dataclass(frozen=True, kw_only=True)
class WriteUp:
    """What goes into the write-up, problem by problem in the order of the handout."""

    found: Found
    edition: str
    is_reference: bool
    entries: list[Entry]
    name: str  # whose it is; "" where nobody said
    notes: list[str]  # what the writer should know; none of it is an error
    left_aside: list[str]  # notebooks that cannot be read, and why

    @property
    def short(self) -> list[str]:
        """Where answers fall short of what is asked."""
        return [
            f"{named((entry.id, part))}: {said}"
            for entry in self.entries
            for part, said in entry.short
        ]

    @property
    def missing(self) -> list[str]:
        """What keeps the write-up from being complete: also open, wrong and short answers."""
        answers = [
            f"{named((entry.id, part))}: {state}"
            for entry in self.entries
            for state, parts in ((UNANSWERED, entry.open), (WRONG, entry.wrong))
            for part in parts
        ]
        return self.left_aside + answers + self.short

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
    found = read_folder(folder)
    worked = config.shipped() / "notebooks"
    shipped = read_folder(worked) if notebooks_in(worked) else Found()
    ours = shipped.answers
    is_reference = not found.checks and _is_reference(folder, found.answers, ours, worked)
    notes = list(found.notes)
    answers = found.answers if is_reference else _without_ours(found.answers, ours, notes)
    _refuse_mixtures(answers)
    chosen = _chosen(answers, edition, notes)
    parts = {} if is_reference else _parts(folder, found)
    code = found.revealed if is_reference else {}
    if is_reference:
        for answer in chosen.values():
            answer.shown.extend(found.evidence.get(answer.place, []))
    entries = []
    for problem in PROBLEMS.values():
        own = {
            part: chosen[problem.id, part]
            for part in (*problem.parts, "")
            if (problem.id, part) in chosen
        }
        short = [
            (part, line)
            for part, answer in own.items()
            for line in complaints(
                problem.id,
                part,
                answer.text,
                answer.figures,
                answer.loss,
                stand_in=answer.stand_in,
            )
        ]
        kept = parts.get((problem.id, ""), Part())
        listings = code.get(problem.id, []) if problem.kind == "code" else []
        if problem.kind == "code" and kept.source and not is_reference:
            if _is_ours(kept.source):
                notes.append(
                    f"what passed as {problem.id} is the package's own code: it is left out"
                )
            else:
                listings = [(f"{problem.id}.py", kept.source)]
                if kept.best == "almost":
                    short.append(("", LEFT))
                if prove and kept.trouble is None:
                    kept.trouble = solutions.why_not_alone(kept.source, problem.id)
                if kept.trouble:
                    short.append(("", f"its code does not import by itself: {kept.trouble}"))
        wrong = [
            part
            for part in problem.parts or ("",)
            if _is_wrong(own.get(part), parts.get((problem.id, part), Part()))
        ]
        entries.append(
            Entry(
                problem=problem,
                edition=edition,
                answers=own,
                listings=listings,
                short=short,
                almost=kept.best == "almost" and bool(listings),
                wrong=tuple(wrong),
            )
        )
    return WriteUp(
        found=found,
        edition=edition,
        is_reference=is_reference,
        entries=entries,
        name="" if is_reference or not (folder / MARK).is_dir() else Progress(folder).name,
        notes=notes,
        left_aside=list(dict.fromkeys(found.left_aside + shipped.left_aside)),
    )


def _is_wrong(answer: Answer | None, part: Part) -> bool:
    """Whether the check said so of the answer, or, if there is none, of all attempts."""
    if answer is None:
        return part.best == "wrong"
    return answer.verdict == "wrong"


def _is_reference(folder: Path, answers: list[Answer], ours: list[Answer], worked: Path) -> bool:
    """Whether these are the worked notebooks, or a copy of them, and not a learner's."""
    if (folder / MARK).is_dir():
        return False
    cells = {answer.source for answer in ours}
    return folder.resolve() == worked.resolve() or any(each.source in cells for each in answers)


def _without_ours(answers: list[Answer], ours: list[Answer], notes: list[str]) -> list[Answer]:
    """Keep the learner's own answers, without any copied from the worked notebooks."""

    def one_line(text: str) -> str:
        return " ".join(text.split())

    texts = {one_line(answer.text) for answer in ours}
    cells = {answer.source for answer in ours}
    kept = []
    for answer in answers:
        mine = one_line(answer.text)
        if mine and (answer.source in cells or any(text in mine for text in texts)):
            notes.append(f"{answer} is the workbook's own answer, not yours: it is left out")
        else:
            kept.append(answer)
    return kept


def _refuse_mixtures(answers: list[Answer]) -> None:
    """Raise ValueError if answers were written under different editions or profiles.

    A place that is answered for each edition, side by side, is not a mixture.
    """
    written = [answer for answer in answers if answer.text.strip()]
    editions = Counter(place for place, _ in {(each.place, each.edition) for each in written})
    single = [answer for answer in written if editions[answer.place] == 1]
    for what, group in (("edition", single), ("profile", written)):
        kinds: dict[str, dict[str, None]] = {}
        for answer in group:
            kinds.setdefault(getattr(answer, what), {})[str(answer)] = None
        if len(kinds) > 1:
            lists = "; ".join(f"{kind[:20]!a}: {', '.join(kinds[kind])}" for kind in kinds)
            raise ValueError(
                f"the answers mix {what}s ({lists}); run their notebooks under one WORKBOOK_"
                f"{what.upper()} and save them"
            )


def _chosen(answers: list[Answer], edition: str, notes: list[str]) -> dict[Place, Answer]:
    """Choose the answer for each place: the last one, of `edition` if there is a choice."""
    chosen: dict[Place, Answer] = {}
    for answer in answers:
        before = chosen.get(answer.place)
        if before and before.edition == edition != answer.edition:
            continue
        if before and before.edition == answer.edition and before.text.strip():
            notes.append(f"{answer} is answered more than once: the last one counts")
        chosen[answer.place] = answer
    for place, answer in list(chosen.items()):
        if not answer.text.strip():
            del chosen[place]
        elif answer.edition != edition and (why := PROBLEMS[place[0]].differs):
            notes.append(
                f"{answer} is answered for edition {answer.edition} only: it is left out, because"
                f" the editions differ in {why}"
            )
            del chosen[place]
    return chosen


def _parts(folder: Path, found: Found) -> dict[Place, Part]:
    """Bring together what a study folder says about each part: record, files and outputs.

    A folder that was copied may have lost any of them.
    """
    recorded = Progress(folder).read() if (folder / MARK).is_dir() else {}
    parts = {(id, part): each for id, own in recorded.items() for part, each in own.items()}
    for place, seen in found.checks.items():
        part = parts.setdefault(place, seen)
        part.best = max(part.best, seen.best, key=RISING.index)
        if not part.source:
            part.source, part.trouble = seen.source, seen.trouble
    for path in filter(Path.is_file, sorted((folder / solutions.FOLDER).glob("*.py"))):
        source = path.read_text(encoding="utf-8", errors="replace")
        said = solutions.status_of(source, path.stem)
        if said and path.stem in PROBLEMS:
            parts.setdefault((path.stem, ""), Part(best=said))
        part = parts.get((path.stem, ""))
        if part is None or not (part.source or said):
            continue  # a file of the learner's own
        if source != part.source:
            part.source, part.trouble = source, None
    for part in parts.values():
        part.source = textwrap.dedent(part.source).strip("\n")
    return parts


def _is_ours(source: str) -> bool:
    """Whether every function and class in this code is word for word in the package."""
    package = _package()
    try:
        nodes = ast.parse(source).body
    except SyntaxError:
        return _lines(source) in package
    made = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    segments = [ast.get_source_segment(source, node) for node in made]
    return bool(made) and all(_lines(segment) in package for segment in segments)


@cache
def _package() -> str:
    """Read the package's own code, once for all the problems of a write-up."""
    files = sorted(config.PACKAGE.rglob("*.py"))
    return "\n".join(_lines(path.read_text(encoding="utf-8")) for path in files)


def _lines(source: str) -> str:
    """Return code without its indents and empty lines, to recognise copies."""
    return "\n".join(filter(None, (line.strip() for line in source.splitlines())))
