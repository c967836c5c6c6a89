"""The write-up as one syntax tree: the first page, the table of states, then every problem."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from itertools import groupby

from workbook.classroom.export import pandoc, status
from workbook.classroom.export.clean import MOST_CHARACTERS, Cleaner, plain_text, printed
from workbook.classroom.export.pandoc import (
    UNNAMED,
    Node,
    box,
    grid,
    legible,
    node,
    para,
    prose,
    row,
)
from workbook.classroom.export.saved_notebooks import Answer, Output, Place
from workbook.classroom.export.status import UNANSWERED, WRONG, Entry, WriteUp
from workbook.classroom.panels import sign
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study.answers import on_what
from workbook.corpora.corpora import CORPORA

CHAPTERS = {
    2: "The tokenizer",
    3: "The model",
    4: "What training needs",
    5: "The training loop",
    6: "Generating text",
    7: "Experiments",
}
MOST_OUTPUTS = 30  # outputs beside one answer
SUBTITLE = "CS336 Assignment 1: basics"
REFERENCE = (
    "This is the reference write-up: the workbook's own answers, exported from its worked "
    "notebooks. It is nobody's coursework. If you are enrolled in the course, follow its policy."
)


@dataclass
class Document:
    """A write-up, ready to be written in any format."""

    title: str
    lead: list[Node]  # blocks for the first page
    blocks: list[Node]  # everything after it
    cleaner: Cleaner  # with the pictures, and notes on what had to be left out


def compose(write_up: WriteUp, as_typed: Collection[Place] = ()) -> Document:
    """Compose the whole write-up.

    The answers to the places `as_typed` are shown as printed output, with no markup read.
    """
    cleaner = Cleaner()
    composer = _Composer(write_up, cleaner, as_typed)
    blocks = [_header(1, prose("The state of every problem")), _states(write_up)]
    for chapter, entries in groupby(write_up.entries, key=lambda entry: entry.problem.chapter):
        blocks.append(_header(1, prose(f"Chapter {chapter} · {CHAPTERS[chapter]}")))
        for entry in entries:
            blocks += composer.entry(entry)
    title = "Reference write-up" if write_up.is_reference else "Write-up"
    return Document(title, _lead(write_up), blocks, cleaner)


def _lead(write_up: WriteUp) -> list[Node]:
    """Compose what the first page says."""
    blocks = [para(*prose(REFERENCE))] if write_up.is_reference else []
    entries = write_up.entries
    answers = [answer for entry in entries for answer in entry.answers.values()]
    used = dict.fromkeys(name for answer in answers for name in answer.corpora)
    others = ", ".join(sorted({answer.edition for answer in answers} - {write_up.edition}))
    devices = sorted({answer.device for answer in answers if answer.device})
    done = [entry for entry in entries if entry.is_done]
    most = _points(entries)
    replaced = _points(entry for entry in done if entry.state == status.STAND_IN)
    counted = f"{len(done)} of {len(entries)} problems, worth {_points(done)} of {most} points"
    if len(done) < len(entries):
        counted += " (of whole problems; the progress table counts each part that is solved)"
    rest = f"; {replaced} of these points rest on stand-in texts, with no required loss reached"
    facts = {
        "Name": write_up.name,
        # The reference must be the same every day.
        "Date": "" if write_up.is_reference else date.today().isoformat(),
        "Handout": f"edition {write_up.edition}",
        "Written under": _written_under(others, write_up) if others else "",
        "Profile": ", ".join(sorted({answer.profile for answer in answers})),
        "Corpora": "; ".join(_corpus(name) for name in used),
        "Measured on": "; ".join(devices),
        "Done": counted + rest if replaced else counted,
    }
    lines = [para(*_labelled(name, value)) for name, value in facts.items() if value]
    return [*blocks, box("facts", lines)]


def _written_under(others: str, write_up: WriteUp) -> str:
    """Say of which edition the answers are that both ask for, and where the two differ."""
    differing = [entry.id for entry in write_up.entries if entry.problem.differs]
    return f"edition {others}, which asks the same, except in {', '.join(differing)}"


def _corpus(name: str) -> str:
    asked = CORPORA[name].stands_in_for
    return f"{name}, in place of {CORPORA[asked].title}" if asked else CORPORA[name].title


def _points(entries: Iterable[Entry]) -> int:
    return sum(entry.points or 0 for entry in entries)


def _states(write_up: WriteUp) -> Node:
    """Make the first table: every problem, its points and its state."""
    rows = []
    for entry in write_up.entries:
        link = pandoc.link([pandoc.code(entry.id)], f"#{entry.id}")
        points = "—" if entry.points is None else str(entry.points)
        texts = (entry.problem.title, points, entry.sign_and_words)
        rows.append(row(prose(str(entry.problem.chapter)), [link], *map(prose, texts)))
    heads = row(*map(prose, ("Chapter", "Problem", "What it is about", "Points", "State")))
    widths = (0.08, 0.26, 0.3, 0.07, 0.29)
    columns = [[node("AlignLeft"), node("ColWidth", width)] for width in widths]
    return grid(columns, [heads], rows, name="states")


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
        title = [pandoc.code(entry.id), node("Space"), *prose(problem.title)]
        short = f" ({'; '.join(entry.short)})".replace(f"{problem.id} ", "") if entry.short else ""
        state = prose(f"{worth} · {entry.sign_and_words}{short}")
        blocks = [_header(2, title, entry.id), box("state", [para(*state)])]
        if not (entry.answers or entry.listings):
            return [box("open", blocks)]
        for part in ("", *problem.parts):
            blocks += self.prompt(entry, part)
            if part in entry.answers:
                blocks += self.answer(entry.answers[part])
            elif part and entry.answers:
                remark = f"{WRONG}, and {UNANSWERED}" if part in entry.wrong else UNANSWERED
                blocks.append(para(*_labelled(f"({part})", remark)))
        if problem.parts and self.write_up.is_reference:  # what concerns all its parts
            for output in self.write_up.saved.evidence.get((problem.id, ""), []):
                blocks += self.picture(output, problem.id)
        for name, source in entry.listings:
            blocks.append(box("file", [para(pandoc.code(name))]))
            if len(source) > MOST_CHARACTERS:
                cut = f"its code is cut after {MOST_CHARACTERS:,} characters"
                self.cleaner.notes.append(f"{entry.id}: {cut}; code.zip has all of it")
                source = f"{source[:MOST_CHARACTERS]} ..."
            blocks.append(node("CodeBlock", [["", ["python"], []], legible(source)]))
        return blocks

    def prompt(self, entry: Entry, part: str) -> list[Node]:
        """Quote what is asked, in the notebook's words; only the reference write-up does that."""
        text = self.write_up.saved.prompts.get(entry.problem.id, {}).get(part)
        if text is None or not self.write_up.is_reference:
            return []
        return [box("prompt", _led(part, self.cleaner.blocks("markdown", text, entry.problem.id)))]

    def answer(self, answer: Answer) -> list[Node]:
        """Compose the text of an answer, what it rests on, and what its cell showed."""
        if answer.place in self.as_typed:
            self.cleaner.notes.append(f"{answer} cannot be typeset, and is shown as it was typed")
            blocks = [node("CodeBlock", [UNNAMED, plain_text(answer.text)])]
        else:
            blocks = self.cleaner.blocks("markdown", answer.text, str(answer))
        if not self.write_up.is_reference:  # there the part comes before what is asked
            blocks = _led(answer.place[1], blocks)
        blocks += _basis(answer)  # after the figures, it might stand alone on the next page
        for output in answer.outputs[:MOST_OUTPUTS]:
            blocks += self.output(output, answer)
        if len(answer.outputs) > MOST_OUTPUTS:
            self.cleaner.notes.append(f"of {answer}, only {MOST_OUTPUTS} outputs are shown")
        if answer.verdict == "wrong":
            remark = f"{sign('wrong')} Its check found it wrong."
            blocks.append(box("state", [para(*prose(remark))]))
        return blocks

    def output(self, output: Output, answer: Answer) -> list[Node]:
        """Compose one output of the cell that answers."""
        if output.kind == "picture":
            return self.picture(output, str(answer))
        if output.kind == "text" or answer.place in self.as_typed:
            return printed(output.text)
        # A "Plain" block would run into the paragraph that follows.
        blocks = self.cleaner.blocks(output.kind, output.text, str(answer))
        return [para(*block["c"]) if block["t"] == "Plain" else block for block in blocks]

    def picture(self, output: Output, place: str) -> list[Node]:
        """Show a picture with its number and its description below it."""
        name = self.cleaner.keep(output.picture)
        if name is None:
            self.cleaner.notes.append(f"{place} shows a picture that cannot be read")
            return []
        self.figures += 1
        alt = legible(output.text.strip()) or f"Figure for {place}, without a description"
        caption = _labelled(f"Figure {self.figures}.", alt)
        image = node("Plain", [pandoc.image(prose(alt), name)])
        return [node("Figure", [UNNAMED, [None, [node("Plain", caption)]], [image]])]


def _bold(text: str) -> Node:
    return node("Strong", prose(text))


def _labelled(label: str, text: str) -> list[Node]:
    """Make inline nodes of a label in bold and a text."""
    return [_bold(label), node("Space"), *prose(text)]


def _led(part: str, blocks: list[Node]) -> list[Node]:
    """Put the name of the part before the first word."""
    if not part:
        return blocks
    lead = _bold(f"({part})")
    if blocks and blocks[0]["t"] in ("Para", "Plain"):
        return [para(lead, node("Space"), *blocks[0]["c"]), *blocks[1:]]
    return [para(lead), *blocks]


def _basis(answer: Answer) -> list[Node]:
    """Name the corpora, the profile and the machine that the numbers in an answer rest on."""
    if not answer.corpora:
        return []
    used = zip(answer.corpora, answer.sizes, strict=True)
    corpora = on_what(PROBLEMS[answer.place[0]], used)
    device = f" {answer.device}." if answer.device else ""
    return [box("basis", [para(*prose(f"{corpora} Profile {answer.profile}.{device}"))])]
