"""How far each problem has come: what is answered, on which corpus, and what is missing."""

import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from workbook import config
from workbook.export.stored import Answer, Found, Place, named, read_folder
from workbook.study.answers import complaints
from workbook.study.problems import PROBLEMS, Problem
from workbook.study.progress import MARK, Progress

CORRECT = "code correct"
ALMOST = "code almost correct"
ANSWERED = "answered"
STAND_IN = "answered on a stand-in corpus"
UNANSWERED = "unanswered"
SIGNS = {CORRECT: "✓", ALMOST: "≈", ANSWERED: "✓", STAND_IN: "≈", UNANSWERED: "○"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One problem of the write-up."""

    problem: Problem
    edition: str
    answers: dict[str, Answer]  # by part
    listings: list[tuple[str, str]]  # of code: a name and its source
    short: list[tuple[str, str]] = field(default_factory=list)  # a part, and what it falls short of
    almost: bool = False  # the check of the code leaves something open

    @property
    def id(self) -> str:
        """The problem's id, as this edition spells it."""
        return self.problem.ids[self.edition]

    @property
    def points(self) -> int | None:
        """What the problem is worth; None where this edition does not say."""
        return self.problem.points[self.edition]

    @property
    def missing(self) -> list[str]:
        """The parts without an answer; "" stands for the problem itself."""
        if self.problem.kind == "code":
            return [] if self.listings or self.answers else [""]
        return [part for part in self.problem.parts or ("",) if part not in self.answers]

    @property
    def state(self) -> str:
        """The one state of the whole problem."""
        if self.missing:
            return UNANSWERED
        if not self.listings:
            return self._answered
        return ALMOST if self.almost else CORRECT

    @property
    def _answered(self) -> str:
        return STAND_IN if any(each.stand_in for each in self.answers.values()) else ANSWERED

    @property
    def in_words(self) -> str:
        """The state, with the parts that are missing where others are there."""
        parts = [part for part in self.problem.parts if part in self.answers]
        said = self.state
        if self.missing and parts:
            missing = ", ".join(self.missing)
            said = f"{self._answered}: {', '.join(parts)}; {UNANSWERED}: {missing}"
        return f"{said}; short of what is asked" if self.short and not self.almost else said


@dataclass(frozen=True, kw_only=True)
class WriteUp:
    """What goes into the write-up, problem by problem in the order of the handout."""

    found: Found
    edition: str
    is_reference: bool
    entries: list[Entry]
    notes: list[str]  # what the writer should know; none of it is an error

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
        """What a complete write-up would have and this one has not."""
        return [
            f"{named((entry.id, part))}: {UNANSWERED}"
            for entry in self.entries
            for part in entry.missing
        ] + self.short

    @property
    def summary(self) -> str:
        """How many problems there are in each state, in one line."""
        kind = "Reference write-up" if self.is_reference else "Write-up"
        counts = Counter(entry.state for entry in self.entries)
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        return f"{kind}, edition {self.edition}: {len(self.entries)} problems, {states}."


def assess(folder: Path, edition: str) -> WriteUp:
    """Find the state of everything in a folder of notebooks, for one edition of the handout."""
    found = read_folder(folder)
    worked = config.shipped() / "notebooks"
    ours = read_folder(worked).answers if any(worked.glob("*.ipynb")) else []
    is_reference = _is_reference(folder, found.answers, ours, worked)
    notes = list(found.notes)
    answers = found.answers if is_reference else _without_ours(found.answers, ours, notes)
    _refuse_mixtures(answers)
    chosen = _chosen(answers, edition, notes)
    code, almost = (found.revealed, set()) if is_reference else _attempts(folder, notes)
    if is_reference:
        for answer in chosen.values():
            answer.shown.extend(found.evidence.get(answer.place, []))
    entries = []
    for problem in PROBLEMS.values():
        listings = code.get(problem.id, []) if problem.kind == "code" else []
        parts = [part for part in (*problem.parts, "") if (problem.id, part) in chosen]
        own = {part: chosen[problem.id, part] for part in parts}
        short = [
            (part, line)
            for part, answer in own.items()
            for line in complaints(problem.id, part, answer.text, answer.figures)
        ]
        if problem.id in almost:
            short.append(("", "its code is almost correct: `check` says which corner is open"))
        entries.append(
            Entry(
                problem=problem,
                edition=edition,
                answers=own,
                listings=listings,
                short=short,
                almost=problem.id in almost,
            )
        )
    return WriteUp(
        found=found, edition=edition, is_reference=is_reference, entries=entries, notes=notes
    )


def _is_reference(folder: Path, answers: list[Answer], ours: list[Answer], worked: Path) -> bool:
    """Whether these are the worked notebooks, or a copy of them, and not a learner's."""
    if (folder / MARK).is_dir():
        return False
    cells = {answer.source for answer in ours}
    return folder.resolve() == worked.resolve() or any(each.source in cells for each in answers)


def _without_ours(answers: list[Answer], ours: list[Answer], notes: list[str]) -> list[Answer]:
    """Keep the learner's own answers, none that stands word for word in the worked notebooks."""

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
    """Raise ValueError where answers were written under different editions or profiles.

    A place that is answered for each edition, side by side, is no mixture.
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
    """Choose the answer to each place: the last one, of `edition` where there is a choice."""
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
                f"{answer} is answered for edition {answer.edition} only, and differs by {why}"
            )
            del chosen[place]
    return chosen


def _attempts(folder: Path, notes: list[str]) -> tuple[dict, set[str]]:
    """Read the learner's last attempts at code that passed, by problem; which are almost right."""
    if not (folder / MARK).is_dir():
        return {}, set()
    files = sorted(config.PACKAGE.rglob("*.py"))
    package = "\n".join(_lines(path.read_text(encoding="utf-8")) for path in files)
    attempts, almost = {}, set()
    for problem, entry in Progress(folder).read().items():
        passed = "" in entry["correct"] + entry["almost"]
        source = entry["source"].get("") if passed else None
        is_code = problem in PROBLEMS and PROBLEMS[problem].kind == "code"
        if not is_code or not isinstance(source, str) or not source.strip():
            continue
        if _lines(source) in package:
            notes.append(f"what passed as {problem} is the package's own code: it is left out")
            continue
        if "" in entry["almost"]:
            almost.add(problem)
        attempts[problem] = [(f"{problem}.py", textwrap.dedent(source).strip("\n"))]
    return attempts, almost


def _lines(source: str) -> str:
    """Return code without its indents and empty lines, for telling copies."""
    return "\n".join(filter(None, (line.strip() for line in source.splitlines())))
