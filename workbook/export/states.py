"""How far each problem has come: what is answered, on which corpus, and what is missing."""

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from workbook import config
from workbook.export.stored import Answer, Found, Place, named, read_folder
from workbook.study.answers import complaints
from workbook.study.problems import PROBLEMS, Problem
from workbook.study.progress import MARK, Progress

CORRECT, ANSWERED, STAND_IN, UNANSWERED = (
    "code correct",
    "answered",
    "answered on a stand-in corpus",
    "unanswered",
)
SIGNS = {CORRECT: "✓", ANSWERED: "✓", STAND_IN: "≈", UNANSWERED: "○"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One problem of the write-up."""

    problem: Problem
    answers: dict[str, Answer]  # by part
    listings: list[tuple[str, str]]  # of code: a name and its source
    short: list[tuple[str, str]] = field(default_factory=list)  # a part, and what it falls short of

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
        if self.listings:
            return CORRECT
        return STAND_IN if any(each.stand_in for each in self.answers.values()) else ANSWERED

    @property
    def in_words(self) -> str:
        """The state, with the parts that are missing where others are there."""
        parts = [part for part in self.problem.parts if part in self.answers]
        said = self.state
        if self.missing and parts:
            is_stand_in = any(each.stand_in for each in self.answers.values())
            done = STAND_IN if is_stand_in else ANSWERED
            said = f"{done}: {', '.join(parts)}; {UNANSWERED}: {', '.join(self.missing)}"
        return f"{said}; short of what is asked" if self.short else said


@dataclass(frozen=True, kw_only=True)
class WriteUp:
    """What goes into the write-up, problem by problem in the order of the handout."""

    found: Found
    edition: str
    is_reference: bool
    entries: list[Entry]
    notes: list[str]  # what the writer should know; none of it is an error

    @property
    def missing(self) -> list[str]:
        """What a complete write-up would have and this one has not."""
        ids = [entry.problem.ids[self.edition] for entry in self.entries]
        lines = []
        for id, entry in zip(ids, self.entries, strict=True):
            lines += [f"{named((id, part))}: {UNANSWERED}" for part in entry.missing]
            lines += [f"{named((id, part))}: {said}" for part, said in entry.short]
        return lines


def assess(folder: Path, edition: str) -> WriteUp:
    """The state of everything in a folder of notebooks, for one edition of the handout."""
    found = read_folder(folder)
    is_reference = _is_reference(found)
    notes = list(found.notes)
    answers = found.answers if is_reference else _without_ours(found, notes)
    _refuse_mixtures(answers)
    chosen = _chosen(answers, edition, notes)
    code = found.revealed if is_reference else _attempts(folder, notes)
    entries = []
    for problem in PROBLEMS.values():
        listings = code.get(problem.id, []) if problem.kind == "code" else []
        own = {place[1]: each for place, each in chosen.items() if place[0] == problem.id}
        own = {part: own[part] for part in (*problem.parts, "") if part in own}
        short = [each for answer in own.values() for each in _short(answer, found, is_reference)]
        entries.append(Entry(problem=problem, answers=own, listings=listings, short=short))
    return WriteUp(
        found=found, edition=edition, is_reference=is_reference, entries=entries, notes=notes
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_reference(found: Found) -> bool:
    """Whether these are the worked notebooks, or a copy of them, and not a learner's."""
    worked = config.repository() / "notebooks"
    if (found.folder / MARK).is_dir():
        return False
    if found.folder.resolve() == worked.resolve():
        return True
    cells = {answer.source for answer in _ours()}
    return any(answer.source in cells for answer in found.answers)


def _ours() -> list[Answer]:
    """The answers of the worked notebooks."""
    worked = config.repository() / "notebooks"
    return read_folder(worked).answers if any(worked.glob("*.ipynb")) else []


def _without_ours(found: Found, notes: list[str]) -> list[Answer]:
    """The learner's own answers: what stands word for word in the worked notebooks is left out."""
    ours = _ours()
    texts = {_line(answer.text) for answer in ours}
    cells = {answer.source for answer in ours}
    kept = []
    for answer in found.answers:
        mine = _line(answer.text)
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
    by_place: dict[Place, set[str]] = {}
    for answer in written:
        by_place.setdefault(answer.place, set()).add(answer.edition)
    alone = [answer for answer in written if len(by_place[answer.place]) == 1]
    for what, group in (("edition", alone), ("profile", written)):
        kinds: dict[str, list[str]] = {}
        for answer in group:
            names = kinds.setdefault(getattr(answer, what), [])
            if str(answer) not in names:
                names.append(str(answer))
        if len(kinds) > 1:
            lists = "; ".join(f"{kind[:20]!a}: {', '.join(kinds[kind])}" for kind in kinds)
            raise ValueError(
                f"the answers mix {what}s ({lists}); run their notebooks under one WORKBOOK_"
                f"{what.upper()} and save them"
            )


def _chosen(answers: list[Answer], edition: str, notes: list[str]) -> dict[Place, Answer]:
    """The answer to each place: the last one, of the edition asked for where there is a choice."""
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


def _attempts(folder: Path, notes: list[str]) -> dict[str, list[tuple[str, str]]]:
    """The learner's last attempts at code that passed, by problem."""
    if not (folder / MARK).is_dir():
        return {}
    package = _package_source()
    attempts = {}
    for problem, entry in Progress(folder).read().items():
        source = entry["source"].get("") if "" in entry["correct"] else None
        if problem not in PROBLEMS or not isinstance(source, str) or not source.strip():
            continue
        source = textwrap.dedent(source).strip("\n")
        if PROBLEMS[problem].kind == "code" and _normal(source) in package:
            notes.append(f"what passed as {problem} is the package's own code: it is left out")
        elif PROBLEMS[problem].kind == "code":
            attempts[problem] = [(f"{problem}.py", source)]
    return attempts


def _package_source() -> str:
    package = Path(__file__).parents[1]
    files = sorted(package.rglob("*.py"))
    return "\n".join(_normal(path.read_text(encoding="utf-8")) for path in files)


def _normal(source: str) -> str:
    """Code without its indents and empty lines, for telling copies."""
    return "\n".join(filter(None, (line.strip() for line in source.splitlines())))


def _short(answer: Answer, found: Found, is_reference: bool) -> list[tuple[str, str]]:
    """Where an answer falls short of what is asked, each with its part."""
    shown = [*answer.shown, *(found.evidence.get(answer.place, []) if is_reference else [])]
    figures = sum(each.kind == "picture" for each in shown) + answer.text.count("(data:image/")
    said = complaints(*answer.place, answer.text, figures)
    return [(answer.place[1], line) for line in said]
