"""The write-up as a PDF: set by typst, without LaTeX, network or clock.

Whatever strangers wrote reaches typst inside string literals, where nothing is markup.
"""

import re
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from workbook.export import glyphs, pandoc, tables, typesetting
from workbook.export.nodes import Node, joined, node, nodes_in, rebuilt, text_of
from workbook.export.pages import Document
from workbook.export.pictures import Album

COLUMNS = 100  # letters of code in one line: as many as the package's own lines have
LONG = 45  # letters of a word that fit on any line; in a table's cell half of them
GOES_ON = "↪ "
POINTS_A_PIXEL, WIDEST, HIGHEST = 0.6, 376, 540  # of a picture, in points
FAMILY = "Libertinus Serif"  # of the text; it comes with typst
TABLE_SIZE = 9  # points, where a table fits
SMALLEST = 0.7  # of that, before a table is split
MOST_LETTERS = tables.WIDE / SMALLEST
T = TypeVar("T")


def unshown(document: Document) -> list[str]:
    """The letters of a write-up that no font of this machine can show."""
    return glyphs.unshown(text_of([*document.lead, *document.blocks]), _fonts(), FAMILY)


def pdf(document: Document, missing: Sequence[str] = ()) -> tuple[bytes, list[str]]:
    """The PDF, with the numbers of letters that are `missing`, and formulas that it could not set.

    Those stand in it as they were typed.
    """
    fonts = _fonts()
    body, refused = _markup(document, missing)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in document.album.files.items():
            Path(folder, name).write_bytes(data)
        try:
            done = _compiled(body, document, folder, fonts)
        except ValueError:
            bad = _bad_formulas(document, folder, fonts)
            if not bad:
                raise
            refused += [formula for formula in bad if formula not in refused]
            done = _compiled(_markup(document, missing, bad)[0], document, folder, fonts)
    return done, list(dict.fromkeys(refused))


@cache
def _fonts():
    """The fonts of typst and of this machine, and the DejaVu fonts that come with matplotlib."""
    import typst

    return typst.Fonts(font_paths=_deja_vu())


def _deja_vu() -> list[str]:
    import importlib.util

    matplotlib = Path(importlib.util.find_spec("matplotlib").origin).parent
    files = (matplotlib / "mpl-data" / "fonts" / "ttf").glob("DejaVuSans*.ttf")
    return sorted(map(str, files))


def _compiled(body: str, document: Document, folder: str, fonts) -> bytes:
    look = Path(__file__).with_name("writeup.typ").read_text(encoding="utf-8")
    inputs = {"title": document.title, "families": "|".join(fonts.families())}
    return typesetting.compiled(f"{look}\n{body}", folder, inputs, _deja_vu())


def _markup(
    document: Document, missing: Sequence[str], bad: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The body in typst's language, and the formulas that pandoc could not put into it."""
    album, parts, refused = document.album, [], []
    for blocks in (document.lead, document.blocks):
        laid_out = rebuilt(list(blocks), lambda item: _laid_out(item, album))
        safe = rebuilt(joined(laid_out), lambda item: _safe(item, album, missing, bad))
        text, said = pandoc.write(safe, "typst")
        parts.append(text)
        refused += said
    return f"#opening({string(document.subtitle)})[\n{parts[0]}\n]\n{parts[1]}", refused


def string(text: str) -> str:
    """A text as a string literal of typst."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _raw(source: str) -> Node:
    return node("RawInline", ["typst", source])


def _inside(opening: str, blocks: Sequence[Node], closing: str = "]") -> list[Node]:
    """Blocks between two pieces of typst's language."""
    first, last = (node("RawBlock", ["typst", source]) for source in (opening, closing))
    return [first, *blocks, last]


def _laid_out(item: Node, album: Album):
    """A node in the place and size that the page gives it."""
    kind, content = item["t"], item.get("c")
    if kind == "Div":
        return _inside(f"#{content[0][1][0]}[", content[1])
    if kind == "Table":
        return _table(item)
    if kind == "Figure":
        image = content[2][0]["c"][0]
        return _inside(f"#shown({_image(image, album)})[", content[1][1])
    if kind == "Para" and reads_from_the_right(content):
        return _inside("#[#set text(dir: rtl)", [item])
    return item


def _image(item: Node, album: Album) -> str:
    """The call that shows a picture, no larger than fits with its caption on a page."""
    _, alt, (name, _) = item["c"]
    wide, high = album.size(name)
    scale = min(POINTS_A_PIXEL, WIDEST / wide, HIGHEST / high)
    size = f"width: {wide * scale:.1f}pt, height: {high * scale:.1f}pt"
    return f"image({string(name)}, {size}, alt: {string(text_of(alt))})"


def _table(item: Node) -> list[Node]:
    """The table in letters that let it fit; one far too wide in several pieces."""
    if "states" in item["c"][0][1]:
        return _inside("#states[", [item])
    pieces = tables.split(item, MOST_LETTERS)
    widest = max(sum(width + 2 for width in tables.widths(piece)) for piece in pieces)
    pieces = rebuilt(pieces, _narrow)
    size = max(SMALLEST, min(1, tables.WIDE / widest)) * TABLE_SIZE
    return _inside(f"#[#show table: set text(size: {size:.1f}pt)", pieces)


def _narrow(item: Node) -> Node:
    """A word in a cell, where it may be broken sooner than in a line."""
    return node("Str", _breakable(item["c"], LONG // 2)) if item["t"] == "Str" else item


def reads_from_the_right(inlines: Sequence[Node]) -> bool:
    """Whether the first letter of a paragraph is Hebrew, Arabic or the like."""
    first = next((c for c in text_of(inlines) if c.isalpha()), "a")
    return unicodedata.bidirectional(first) in ("R", "AL")


def _safe(item: Node, album: Album, missing: Sequence[str], bad: Sequence[str]) -> Node:
    """A node whose text cannot be taken for typst's language."""
    kind, content = item["t"], item.get("c")
    if kind == "Str":
        return _raw(f"#{string(_breakable(glyphs.replaced(content, missing)))};")
    if kind == "Code" or (kind == "Math" and content[1] in bad):
        return _raw(f"#raw({string(_breakable(glyphs.replaced(content[1], missing)))});")
    if kind == "CodeBlock":
        (_, classes, _), text = content
        language = f", lang: {string(classes[0])}" if classes else ""
        source = string(wrapped(glyphs.replaced(text, missing)))
        return node("RawBlock", ["typst", f"#raw(block: true{language}, {source})"])
    if kind == "Image":
        return _raw(f"#box({_image(item, album)});")
    return item


def _breakable(text: str, longest: int = LONG) -> str:
    """A text in which each very long word may be broken at any place."""
    return re.sub(rf"[^\s\u200b]{{{longest + 1},}}", lambda word: "\u200b".join(word[0]), text)


def wrapped(text: str) -> str:
    """Code or print-out in lines that fit on the page; a line that goes on begins with an arrow."""
    lines = []
    for line in text.split("\n"):
        indent = line[: min(len(line) - len(line.lstrip()), COLUMNS // 2)]
        while tables.letters(line) > COLUMNS:
            room = next(n for n in range(COLUMNS, 0, -1) if tables.letters(line[:n]) <= COLUMNS)
            space = line.rfind(" ", len(indent) + COLUMNS // 2, room)
            cut = space + 1 if space > 0 else room
            lines.append(line[:cut])
            line = f"{indent}{GOES_ON}{line[cut:]}"
        lines.append(line)
    return "\n".join(lines)


def _bad_formulas(document: Document, folder: str, fonts) -> list[str]:
    """The formulas that pandoc takes and typst does not."""
    blocks = [*document.lead, *document.blocks]
    formulas = {item["c"][1]: item for item in nodes_in(blocks) if item["t"] == "Math"}

    def is_set(some: Sequence[str]) -> bool:
        lines = [node("Para", [formulas[formula]]) for formula in some]
        for _ in range(3):  # deeper than in the document: it should not fail there by a hair
            lines = [node("BlockQuote", lines)]
        try:
            _compiled(_markup(replace(document, blocks=lines), ())[0], document, folder, fonts)
        except ValueError:
            return False
        return True

    return at_fault(list(formulas), is_set)


def at_fault(items: Sequence[T], works: Callable[[Sequence[T]], bool]) -> list[T]:
    """Those of the items with which it does not work, found by halves."""
    if not items or works(items):
        return []
    if len(items) == 1:
        return list(items)
    middle = len(items) // 2
    return at_fault(items[:middle], works) + at_fault(items[middle:], works)
