"""The write-up as a PDF: set by typst, without LaTeX, network or clock.

Whatever strangers wrote reaches typst inside string literals, where nothing is markup.
"""

import re
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from workbook.export import glyphs, pandoc, tables
from workbook.export.nodes import Node, node, nodes_in, rebuilt, text_of
from workbook.export.pages import Document

COLUMNS = 100  # letters of code in one line: as many as the package's own lines have
LONG = re.compile(r"\S{25,}")  # a word that may be broken at any place
GOES_ON = "↪ "
FAMILY = "Libertinus Serif"  # of the text; it comes with typst
TABLE_SIZE = 9  # points, where a table fits
SMALLEST = 0.7  # of that, before a table is split
MOST_LETTERS = tables.WIDE / SMALLEST


def pdf(document: Document) -> tuple[bytes, list[str]]:
    """The PDF, and notes on the letters and formulas that could not be set."""
    fonts = _fonts()
    blocks = [*document.lead, *document.blocks]
    texts = "".join([document.title, document.subtitle, text_of(blocks)])
    missing = glyphs.unshown(texts, fonts, FAMILY)
    body, refused = _markup(document, missing)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in document.album.files.items():
            Path(folder, name).write_bytes(data)
        try:
            done = _compiled(body, document, folder, fonts)
        except Exception as error:
            bad = _bad_formulas(document, folder, fonts)
            if not bad:
                raise ValueError(f"typst could not set the write-up: {error}") from None
            refused += [formula for formula in bad if formula not in refused]
            done = _compiled(_markup(document, missing, bad)[0], document, folder, fonts)
    said = [f"a formula cannot be set and stands as it was typed: {f[:60]}" for f in refused]
    return done, [*glyphs.complaints(missing), *said]


def _fonts():
    """The fonts of typst and of this machine, and the DejaVu fonts that come with matplotlib."""
    import importlib.util

    import typst

    matplotlib = Path(importlib.util.find_spec("matplotlib").origin).parent
    ours = sorted((matplotlib / "mpl-data" / "fonts" / "ttf").glob("DejaVuSans*.ttf"))
    return typst.Fonts(font_paths=ours)


def _compiled(body: str, document: Document, folder: str, fonts) -> bytes:
    import typst

    look = Path(__file__).with_name("writeup.typ").read_text(encoding="utf-8")
    return typst.compile(
        f"{look}\n{body}".encode(),
        root=folder,
        font_paths=fonts,
        sys_inputs={"title": document.title, "families": "|".join(fonts.families())},
        package_path=folder,
        package_cache_path=folder,
        timestamp=0,
    )


def _markup(
    document: Document, missing: Sequence[str], bad: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The body in typst's language, and the formulas that pandoc could not put into it."""
    parts, refused = [], []
    for blocks in (document.lead, document.blocks):
        laid_out = rebuilt(list(blocks), _laid_out)
        safe = rebuilt(laid_out, lambda item: _safe(item, missing, bad))
        text, said = pandoc.write(safe, "typst")
        parts.append(text)
        refused += said
    subtitle = string(glyphs.replaced(document.subtitle, missing))
    return f"#opening({subtitle})[\n{parts[0]}\n]\n{parts[1]}", refused


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


def _laid_out(item: Node):
    """A node in the place and size that the page gives it."""
    kind, content = item["t"], item.get("c")
    if kind == "Div":
        return _inside(f"#{content[0][1][0]}[", content[1])
    if kind == "Table":
        return _table(item)
    if kind == "Figure":
        image = content[2][0]["c"][0]
        return _inside(f"#shown({_image(image)})[", content[1][1])
    if kind == "Image":  # of a figure too: that one is taken apart afterwards
        return item
    if kind == "Para" and reads_from_the_right(content):
        return _inside("#[#set text(dir: rtl)", [item])
    return item


def _image(item: Node) -> str:
    """The call that shows a picture of the album."""
    _, alt, (name, _) = item["c"]
    return f"image({string(name)}, alt: {string(text_of(alt))})"


def _table(item: Node) -> list[Node]:
    """The table in letters that let it fit; one far too wide in several pieces."""
    if "states" in item["c"][0][1]:
        return _inside("#states[", [item])
    pieces = tables.split(item, MOST_LETTERS)
    widest = max(sum(width + 2 for width in tables.widths(piece)) for piece in pieces)
    size = max(SMALLEST, min(1, tables.WIDE / widest)) * TABLE_SIZE
    return _inside(f"#[#show table: set text(size: {size:.1f}pt)", pieces)


def reads_from_the_right(inlines: Sequence[Node]) -> bool:
    """Whether the first letter of a paragraph is Hebrew, Arabic or the like."""
    first = next((c for c in text_of(inlines) if c.isalpha()), "a")
    return unicodedata.bidirectional(first) in ("R", "AL")


def _safe(item: Node, missing: Sequence[str], bad: Sequence[str]) -> Node:
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
        return _raw(f"#box({_image(item)});")
    return item


def _breakable(text: str) -> str:
    """A text in which each very long word may be broken at any place."""
    return LONG.sub(lambda word: "\u200b".join(word[0]), text)


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
    """The formulas that pandoc takes and typst does not, each tried alone."""
    blocks = [*document.lead, *document.blocks]
    formulas = {item["c"][1]: item for item in nodes_in(blocks) if item["t"] == "Math"}
    bad = []
    for formula, item in formulas.items():
        source, _ = pandoc.write([node("Para", [item])], "typst")
        try:
            _compiled(source, document, folder, fonts)
        except Exception:
            bad.append(formula)
    return bad
