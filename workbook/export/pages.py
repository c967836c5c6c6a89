"""The write-up as one syntax tree: the first page, the table of states, then every problem."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from workbook.corpora.corpora import CORPORA
from workbook.export.clean import Cleaner, printed, visible
from workbook.export.nodes import (
    Node,
    box,
    code,
    figure,
    header,
    link,
    listing,
    node,
    para,
    strong,
    table,
    words,
)
from workbook.export.pictures import Album
from workbook.export.states import (
    CORRECT,
    SIGNS,
    STAND_IN,
    UNANSWERED,
    Entry,
    WriteUp,
)
from workbook.export.stored import Answer, Place, Shown

CHAPTERS = {
    2: "The tokenizer",
    3: "The model",
    4: "What training needs",
    5: "The training loop",
    6: "Generating text",
    7: "Experiments",
}
MOST_SHOWN = 30  # outputs beside one answer
REFERENCE = (
    "This is the reference write-up: the workbook's own answers, exported from its worked "
    "notebooks. It is nobody's coursework. Enrolled students follow their course's policy."
)


@dataclass
class Document:
    """A write-up, ready to be written in any format."""

    title: str
    subtitle: str
    lead: list[Node]  # blocks for the first page
    blocks: list[Node]  # everything after it
    album: Album
    notes: list[str] = field(default_factory=list)
    formulas: dict[str, str] = field(default_factory=dict)  # and the place where each stands


def compose(write_up: WriteUp, as_typed: Collection[Place] = ()) -> Document:
    """The whole write-up, with notes on what had to be left out.

    The answers to the places `as_typed` stand in it as print-outs, with no markup read.
    """
    album, notes = Album(), []
    cleaner = Cleaner(album.keep, notes.append)
    composer = _Composer(write_up, cleaner, album, notes, as_typed)
    composer.read()
    blocks = [header(1, words("The state of every problem")), _states(write_up)]
    for chapter, entries in groupby(write_up.entries, key=lambda entry: entry.problem.chapter):
        blocks.append(header(1, words(f"Chapter {chapter} · {CHAPTERS[chapter]}")))
        for entry in entries:
            blocks += composer.entry(entry)
    return Document(
        title="Reference write-up" if write_up.is_reference else "Write-up",
        subtitle="CS336 Assignment 1: basics",
        lead=_lead(write_up),
        blocks=blocks,
        album=album,
        notes=notes,
        formulas=cleaner.formulas,
    )


def _lead(write_up: WriteUp) -> list[Node]:
    """What the first page says."""
    blocks = [para(*words(REFERENCE))] if write_up.is_reference else []
    answers = [answer for entry in write_up.entries for answer in entry.answers.values()]
    profiles = sorted({answer.profile for answer in answers})
    used = dict.fromkeys(name for answer in answers for name in answer.corpora)
    facts = [("Handout", f"edition {write_up.edition}")]
    if editions := sorted({answer.edition for answer in answers} - {write_up.edition}):
        facts.append(("Written under", f"edition {', '.join(editions)}; the same is asked there"))
    if profiles:
        facts.append(("Profile", visible(", ".join(profiles))))
    if used:
        facts.append(("Corpora", "; ".join(_corpus(name) for name in used)))
    if devices := sorted({visible(answer.device) for answer in answers if answer.device}):
        facts.append(("Measured on", "; ".join(devices)))
    facts.append(("Done", _done(write_up)))
    rows = [[[strong(words(name))], words(value)] for name, value in facts]
    lines = [para(*name, node("Space"), *value) for name, value in rows]
    return [*blocks, box("facts", lines), para(*_legend())]


def _corpus(name: str) -> str:
    asked = CORPORA[name].stands_in_for
    return f"{name}, in place of {CORPORA[asked].title}" if asked else CORPORA[name].title


def _done(write_up: WriteUp) -> str:
    done = [entry for entry in write_up.entries if not entry.missing]
    points = [
        sum(entry.problem.points[write_up.edition] or 0 for entry in entries)
        for entries in (done, write_up.entries)
    ]
    return (
        f"{len(done)} of {len(write_up.entries)} problems, {points[0]} of {points[1]} points' worth"
    )


def _legend() -> list[Node]:
    return words(
        f"In the table, {SIGNS[CORRECT]} says that a problem is answered, or its code passed every "
        f"case of its check; {SIGNS[STAND_IN]} that it is answered on a stand-in for the corpus "
        f"that was asked for; {SIGNS[UNANSWERED]} that it, or a part of it, is open."
    )


def _states(write_up: WriteUp) -> Node:
    """The first table: every problem, its points and its state."""

    def row(entry: Entry) -> list[list[Node]]:
        id = entry.problem.ids[write_up.edition]
        state = f"{SIGNS[entry.state]} {entry.in_words}"
        return [
            [link([code(id)], f"#{id}")],
            words(entry.problem.title),
            words(_points(entry, write_up.edition)),
            words(state),
        ]

    groups = [
        ([strong(words(f"{chapter} · {CHAPTERS[chapter]}"))], [row(entry) for entry in entries])
        for chapter, entries in groupby(write_up.entries, key=lambda entry: entry.problem.chapter)
    ]
    heads = [words(head) for head in ("Problem", "What it is about", "Points", "State")]
    return table(heads, groups, (0.28, 0.32, 0.08, 0.32), "states")


def _points(entry: Entry, edition: str) -> str:
    points = entry.problem.points[edition]
    return "—" if points is None else str(points)


class _Composer:
    """Problems as blocks. What strangers wrote is read in one go, before anything is composed."""

    def __init__(
        self,
        write_up: WriteUp,
        cleaner: Cleaner,
        album: Album,
        notes: list[str],
        as_typed: Collection[Place],
    ):
        self.write_up, self.cleaner, self.album, self.notes = write_up, cleaner, album, notes
        self.as_typed = as_typed
        self.numbers: dict[int, int] = {}  # by the object that holds the text
        self.prompts: dict[tuple[str, str], int] = {}
        self.figures = 0

    def read(self) -> None:
        """Hand every text to the cleaner, and let it read them."""
        for entry in self.write_up.entries:
            if self.write_up.is_reference:
                for part, text in entry.problem.prompt.items():
                    number = self.cleaner.add("markdown", text)
                    self.prompts[entry.problem.id, part] = number
            for answer in entry.answers.values():
                self.numbers[id(answer)] = self.cleaner.add("markdown", answer.text)
                for shown in answer.shown:
                    if shown.kind in ("markdown", "html"):
                        self.numbers[id(shown)] = self.cleaner.add(shown.kind, shown.text)
        self.cleaner.parse()

    def entry(self, entry: Entry) -> list[Node]:
        """One problem: heading, state, answers part by part, figures, code."""
        problem, edition = entry.problem, self.write_up.edition
        name = problem.ids[edition]
        points = problem.points[edition]
        worth = {None: "no points printed", 1: "1 point"}.get(points, f"{points} points")
        title = [code(name), node("Space"), *words(problem.title)]
        short = "; ".join(f"{part}: {line}" if part else line for part, line in entry.short)
        state = f"{entry.in_words} ({short})" if short else entry.in_words
        said = words(f"{worth} · {SIGNS[entry.state]} {state}")
        head = [header(2, title, name), box("state", [para(*said)])]
        if not (entry.answers or entry.listings):
            return [box("open", head)]
        blocks = head
        blocks += self.prompt(entry, "")
        for part in problem.parts or ("",):
            if part:
                blocks += self.prompt(entry, part)
            if part in entry.answers:
                blocks += self.answer(entry.answers[part])
            elif part and entry.answers:
                blocks.append(para(strong(words(f"({part})")), node("Space"), *words(UNANSWERED)))
        if problem.parts and self.write_up.is_reference:  # what concerns all its parts
            blocks += self.evidence((problem.id, ""))
        for title, source in entry.listings:
            blocks += [box("file", [para(code(title))]), listing(visible(source), "python")]
        return blocks

    def prompt(self, entry: Entry, part: str) -> list[Node]:
        """What is asked, in the workbook's words; only the reference quotes it."""
        number = self.prompts.get((entry.problem.id, part))
        if number is None:
            return []
        blocks = self.cleaner.blocks("markdown", number, entry.problem.id)
        return [box("prompt", _led(part, blocks))]

    def answer(self, answer: Answer) -> list[Node]:
        """The text of an answer, what its cell showed, and what it rests on."""
        if answer.place in self.as_typed:
            self.notes.append(f"{answer} cannot be set, and stands as it was typed")
            blocks = printed(answer.text)
        else:
            blocks = self.cleaner.blocks("markdown", self.numbers[id(answer)], str(answer))
        if not self.write_up.is_reference:  # there the part stands before what is asked
            blocks = _led(answer.place[1], blocks)
        shown = list(answer.shown)
        for each in shown[:MOST_SHOWN]:
            blocks += self.shown(each, answer)
        if len(shown) > MOST_SHOWN:
            self.notes.append(f"of what {answer} shows, only the first {MOST_SHOWN} are exported")
        if self.write_up.is_reference:
            blocks += self.evidence(answer.place)
        return [*blocks, *_basis(answer)]

    def evidence(self, place: tuple[str, str]) -> Iterator[Node]:
        """The pictures that the worked notebook shows for one place."""
        for shown in self.write_up.found.evidence.get(place, []):
            yield from self.picture(shown, str(place[0]))

    def shown(self, shown: Shown, answer: Answer) -> list[Node]:
        """One output of the cell that answers."""
        if shown.kind == "picture":
            return list(self.picture(shown, str(answer)))
        if shown.kind == "text" or answer.place in self.as_typed:
            return printed(shown.text)
        return self.cleaner.blocks(shown.kind, self.numbers[id(shown)], str(answer))

    def picture(self, shown: Shown, place: str) -> Iterator[Node]:
        """A picture with its number and its description below it."""
        name = self.album.keep(shown.picture)
        if name is None:
            self.notes.append(f"{place} shows a picture that cannot be read: it is left out")
            return
        self.figures += 1
        alt = visible(shown.text.strip()) or f"Figure of {place}, not described"
        yield figure(name, alt, [strong(words(f"Figure {self.figures}.")), node("Space"),
                                 *words(alt)])  # fmt: skip


def _led(part: str, blocks: list[Node]) -> list[Node]:
    """The blocks with the name of the part before the first word."""
    if not part:
        return blocks
    lead = strong(words(f"({part})"))
    if blocks and blocks[0]["t"] in ("Para", "Plain"):
        return [para(lead, node("Space"), *blocks[0]["c"]), *blocks[1:]]
    return [para(lead), *blocks]


def _basis(answer: Answer) -> list[Node]:
    """The corpora, the profile and the machine that the figures of an answer rest on."""
    if not answer.corpora:
        return []
    corpora = "; ".join(_corpus(name) for name in answer.corpora)
    device = f" {answer.device}." if answer.device else ""
    said = visible(f"On {corpora}. Profile {answer.profile}.{device}")
    return [box("basis", [para(*words(said))])]
