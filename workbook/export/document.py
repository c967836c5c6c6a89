"""The write-up as one syntax tree: the first page, the table of states, then every problem."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

from workbook.corpora.corpora import CORPORA
from workbook.export.clean import Album, Cleaner, plain, printed, visible
from workbook.export.pandoc import (
    PLAIN,
    Node,
    box,
    code,
    listing,
    node,
    para,
    row,
    strong,
    table,
    words,
)
from workbook.export.states import (
    CORRECT,
    LEFT,
    SIGNS,
    STAND_IN,
    UNANSWERED,
    WRONG,
    Entry,
    WriteUp,
)
from workbook.export.stored import Answer, Place, Shown
from workbook.study import solutions

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
    "notebooks. It is nobody's coursework. If you are enrolled in the course, follow its policy."
)


@dataclass
class Document:
    """A write-up, ready to be written in any format."""

    title: str
    subtitle: str
    lead: list[Node]  # blocks for the first page
    blocks: list[Node]  # everything after it
    album: Album
    notes: list[str] = field(default_factory=list)  # on what had to be left out
    formulas: dict[str, str] = field(default_factory=dict)  # and the place where each is
    as_code: Collection[str] = ()  # formulas that the PDF shows as they were typed


def compose(write_up: WriteUp, as_typed: Collection[Place] = ()) -> Document:
    """Compose the whole write-up.

    The answers to the places `as_typed` are shown as printed output, with no markup read.
    """
    cleaner = Cleaner()
    composer = _Composer(write_up, cleaner, as_typed)
    blocks = [_header(1, words("The state of every problem")), _states(write_up)]
    for chapter, entries in groupby(write_up.entries, key=lambda entry: entry.problem.chapter):
        blocks.append(_header(1, words(f"Chapter {chapter} · {CHAPTERS[chapter]}")))
        for entry in entries:
            blocks += composer.entry(entry)
    return Document(
        title="Reference write-up" if write_up.is_reference else "Write-up",
        subtitle="CS336 Assignment 1: basics",
        lead=_lead(write_up),
        blocks=blocks,
        album=cleaner.album,
        notes=cleaner.notes,
        formulas=cleaner.formulas,
    )


def _lead(write_up: WriteUp) -> list[Node]:
    """Compose what the first page says."""
    blocks = [para(*words(REFERENCE))] if write_up.is_reference else []
    answers = [answer for entry in write_up.entries for answer in entry.answers.values()]
    profiles = sorted({answer.profile for answer in answers})
    used = dict.fromkeys(name for answer in answers for name in answer.corpora)
    facts = [("Name", visible(write_up.name))] if write_up.name else []
    if not write_up.is_reference:  # which must be the same every day
        facts.append(("Date", date.today().isoformat()))
    facts.append(("Handout", f"edition {write_up.edition}"))
    if editions := sorted({answer.edition for answer in answers} - {write_up.edition}):
        facts.append(("Written under", f"edition {', '.join(editions)}, which asks the same"))
    if profiles:
        facts.append(("Profile", visible(", ".join(profiles))))
    if used:
        facts.append(("Corpora", "; ".join(_corpus(name) for name in used)))
    if devices := sorted({visible(answer.device) for answer in answers if answer.device}):
        facts.append(("Measured on", "; ".join(devices)))
    facts.append(("Done", _done(write_up)))
    if replaced := _points(entry for entry in write_up.entries if entry.state == STAND_IN):
        rest = f"{replaced} of {_points(write_up.entries)} points rest on stand-in texts"
        facts.append(("Stand-ins", f"{rest} made offline, not on TinyStories or OpenWebText"))
    lines = [para(strong(words(name)), node("Space"), *words(value)) for name, value in facts]
    return [*blocks, box("facts", lines), para(*_legend())]


def _corpus(name: str) -> str:
    asked = CORPORA[name].stands_in_for
    return f"{name}, in place of {CORPORA[asked].title}" if asked else CORPORA[name].title


def _done(write_up: WriteUp) -> str:
    done = [entry for entry in write_up.entries if entry.is_done]
    most = _points(write_up.entries)
    return (
        f"{len(done)} of {len(write_up.entries)} problems, worth {_points(done)} of {most} points"
    )


def _points(entries: Iterable[Entry]) -> int:
    return sum(entry.points or 0 for entry in entries)


def _legend() -> list[Node]:
    return words(
        f"In the table, {SIGNS[CORRECT]} marks a problem that is answered or whose code passed its "
        f"check; {SIGNS[STAND_IN]} one that is answered on a stand-in for the corpus that the "
        f"handout asks for, or whose code is almost correct; {SIGNS[WRONG]} one that its check "
        f"found wrong; {SIGNS[UNANSWERED]} one that is still open, in whole or in part."
    )


def _states(write_up: WriteUp) -> Node:
    """Make the first table: every problem, its points and its state."""
    rows = []
    for chapter, entries in groupby(write_up.entries, key=lambda entry: entry.problem.chapter):
        rows.append(row([strong(words(f"{chapter} · {CHAPTERS[chapter]}"))], span=4))
        for entry in entries:
            rows.append(
                row(
                    [node("Link", [PLAIN, [code(entry.id)], [f"#{entry.id}", ""]])],
                    words(entry.problem.title),
                    words("—" if entry.points is None else str(entry.points)),
                    words(f"{SIGNS[entry.state]} {entry.in_words}"),
                )
            )
    heads = row(*(words(head) for head in ("Problem", "What it is about", "Points", "State")))
    columns = [[node("AlignLeft"), node("ColWidth", width)] for width in (0.28, 0.32, 0.08, 0.32)]
    return table(columns, [heads], rows, name="states")


def _header(level: int, inlines: list[Node], name: str = "") -> Node:
    """Make a heading that links can point to by `name`."""
    return node("Header", [level, [name, [], []], inlines])


@dataclass
class _Composer:
    """A maker of blocks for each problem, which counts the figures."""

    write_up: WriteUp
    cleaner: Cleaner
    as_typed: Collection[Place]
    figures: int = 0

    def entry(self, entry: Entry) -> list[Node]:
        """Compose one problem: heading, state, answers part by part, figures, code."""
        problem = entry.problem
        worth = {None: "points unknown", 1: "1 point"}.get(entry.points, f"{entry.points} points")
        title = [code(entry.id), node("Space"), *words(problem.title)]
        short = [f"{part}: {line}" if part else line for part, line in entry.short if line != LEFT]
        state = f"{entry.in_words} ({'; '.join(short)})" if short else entry.in_words
        said = words(f"{worth} · {SIGNS[entry.state]} {state}")
        blocks = [_header(2, title, entry.id), box("state", [para(*said)])]
        if not (entry.answers or entry.listings):
            return [box("open", blocks)]
        blocks += self.prompt(entry, "")
        for part in problem.parts or ("",):
            if part:
                blocks += self.prompt(entry, part)
            if part in entry.answers:
                blocks += self.answer(entry.answers[part])
            elif part and entry.answers:
                said = f"{WRONG}, and {UNANSWERED}" if part in entry.wrong else UNANSWERED
                blocks.append(para(strong(words(f"({part})")), node("Space"), *words(said)))
        if problem.parts and self.write_up.is_reference:  # what concerns all its parts
            for shown in self.write_up.found.evidence.get((problem.id, ""), []):
                blocks += self.picture(shown, problem.id)
        for title, source in entry.listings:
            if solutions.status_of(source, problem.id):  # which the state above says already
                source = source.partition("\n")[2]
            blocks += [box("file", [para(code(title))]), listing(visible(source), "python")]
        return blocks

    def prompt(self, entry: Entry, part: str) -> list[Node]:
        """Quote what is asked, in the notebook's words; only the reference write-up does that."""
        text = self.write_up.found.prompts.get(entry.problem.id, {}).get(part)
        if text is None or not self.write_up.is_reference:
            return []
        return [box("prompt", _led(part, self.cleaner.blocks("markdown", text, entry.problem.id)))]

    def answer(self, answer: Answer) -> list[Node]:
        """Compose the text of an answer, what its cell showed, and what it rests on."""
        if answer.place in self.as_typed:
            self.cleaner.notes.append(f"{answer} cannot be typeset, and is shown as it was typed")
            blocks = [listing(plain(answer.text))]
        else:
            blocks = self.cleaner.blocks("markdown", answer.text, str(answer))
        if not self.write_up.is_reference:  # there the part comes before what is asked
            blocks = _led(answer.place[1], blocks)
        for each in answer.shown[:MOST_SHOWN]:
            blocks += self.shown(each, answer)
        if len(answer.shown) > MOST_SHOWN:
            self.cleaner.notes.append(
                f"only the first {MOST_SHOWN} outputs that {answer} shows are exported"
            )
        if answer.verdict == "wrong":
            blocks.append(
                box("state", [para(*words(f"{SIGNS[WRONG]} Its check found this wrong."))])
            )
        return [*blocks, *_basis(answer)]

    def shown(self, shown: Shown, answer: Answer) -> list[Node]:
        """Compose one output of the cell that answers."""
        if shown.kind == "picture":
            return self.picture(shown, str(answer))
        if shown.kind == "text" or answer.place in self.as_typed:
            return printed(shown.text)
        # A "Plain" block would run into the paragraph that follows.
        blocks = self.cleaner.blocks(shown.kind, shown.text, str(answer))
        return [para(*each["c"]) if each["t"] == "Plain" else each for each in blocks]

    def picture(self, shown: Shown, place: str) -> list[Node]:
        """Show a picture with its number and its description below it."""
        name = self.cleaner.album.keep(shown.picture)
        if name is None:
            self.cleaner.notes.append(
                f"{place} shows a picture that cannot be read: it is left out"
            )
            return []
        self.figures += 1
        alt = visible(shown.text.strip()) or f"Figure for {place}, without a description"
        caption = [strong(words(f"Figure {self.figures}.")), node("Space"), *words(alt)]
        image = node("Plain", [node("Image", [PLAIN, words(alt), [name, ""]])])
        return [node("Figure", [PLAIN, [None, [node("Plain", caption)]], [image]])]


def _led(part: str, blocks: list[Node]) -> list[Node]:
    """Put the name of the part before the first word."""
    if not part:
        return blocks
    lead = strong(words(f"({part})"))
    if blocks and blocks[0]["t"] in ("Para", "Plain"):
        return [para(lead, node("Space"), *blocks[0]["c"]), *blocks[1:]]
    return [para(lead), *blocks]


def _basis(answer: Answer) -> list[Node]:
    """Name the corpora, the profile and the machine that the numbers in an answer rest on."""
    if not answer.corpora:
        return []
    corpora = "; ".join(_corpus(name) for name in answer.corpora)
    device = f" {answer.device}." if answer.device else ""
    said = visible(f"On {corpora}. Profile {answer.profile}.{device}")
    return [box("basis", [para(*words(said))])]
