"""The write-up as a PDF: set by typst, without LaTeX, network or clock.

Whatever strangers wrote reaches typst inside string literals, where nothing is markup.
"""

import re
import tempfile
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from workbook.export import pandoc, typesetting
from workbook.export.clean import Album, one_line
from workbook.export.document import Document
from workbook.export.pandoc import Node, node, rebuilt, rows_of, text_of

COLUMNS = 100  # characters in a line of code, as in the package itself
LONG = 45  # letters of a word that fit on any line; in a table's cell, half as many
GOES_ON = "↪ "
POINTS_PER_PIXEL, WIDEST, HIGHEST = 0.6, 376, 540  # of a picture, in points
FAMILY = "Libertinus Serif"  # of the text; it comes with typst
TABLE_SIZE = 9  # points, where a table fits
SMALLEST = 0.7  # of that, before a table is split
WIDE = 96  # letters of normal size that fit side by side in a table
MOST_LETTERS = WIDE / SMALLEST
NOWHERE = "\U0010fffd"  # a place for private use: no font of ours has it
SYMBOL = re.compile(rb'<symbol id="(\w+)"')
BLANK = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me")  # categories that may well show nothing
ADVICE = (
    (("CJK", "HIRAGANA", "KATAKANA", "HANGUL"), "fonts-noto-cjk"),
    (("",), "fonts-noto-core and fonts-noto-color-emoji"),
)


def pdf(document: Document, missing: Sequence[str] = ()) -> tuple[bytes, list[str]]:
    """Typeset a document; also return the formulas that it cannot typeset, which stay as typed.

    The letters that are `missing` from all fonts are shown by their numbers.
    """
    body, refused = _markup(document, missing)
    look = Path(__file__).with_name("writeup.typ").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in document.album.files.items():
            Path(folder, name).write_bytes(data)
        source = f"#let name = {string(document.title)}\n{look}\n{body}"
        done = typesetting.compiled(source, folder, _deja_vu())
    return done, refused


@cache
def _fonts():
    """Find the fonts of typst and of this machine, and those that come with matplotlib."""
    import typst

    return typst.Fonts(font_paths=_deja_vu())


def _deja_vu() -> list[str]:
    matplotlib = Path(find_spec("matplotlib").origin).parent
    return sorted(map(str, (matplotlib / "mpl-data/fonts/ttf").glob("DejaVuSans*.ttf")))


def _markup(document: Document, missing: Sequence[str]) -> tuple[str, list[str]]:
    """Write the body in typst's language; also return formulas that pandoc cannot translate.

    Those formulas become code.
    """
    opening = _inside(f"#opening({string(document.subtitle)})[", document.lead)
    blocks = rebuilt([*opening, *document.blocks], lambda item: _laid_out(item, document.album))

    def written(as_code: Collection[str]) -> tuple[str, list[str]]:
        return pandoc.write(rebuilt(blocks, lambda item: _safe(item, missing, as_code)), "typst")

    text, refused = written(document.as_code)
    if refused:  # pandoc has written these as text, in which typst may find markup
        text, _ = written([*document.as_code, *refused])
    return text, list(dict.fromkeys(refused))


def string(text: str) -> str:
    """Write a text as a string literal of typst."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _raw(source: str) -> Node:
    return node("RawInline", ["typst", source])


def _inside(opening: str, blocks: Sequence[Node]) -> list[Node]:
    """Put blocks into a call in typst's language, which `opening` begins."""
    first, last = (node("RawBlock", ["typst", source]) for source in (opening, "]"))
    return [first, *blocks, last]


def _laid_out(item: Node, album: Album):
    """Give a node its place and size on the page."""
    kind, content = item["t"], item.get("c")
    if kind == "Div":
        return _inside(f"#{content[0][1][0]}[", content[1])
    if kind == "Table":
        return _table(item)
    if kind == "Image":
        return _raw(_image(content, album))
    if kind == "Figure":
        picture = content[2][0]["c"][0]["c"][1]
        return _inside(f"#shown([{picture}])[", content[1][1])
    if kind == "Para" and reads_from_the_right(content):
        return _inside("#[#set text(dir: rtl)", [item])
    return item


def _image(content: list, album: Album) -> str:
    """Write the call that shows a picture, no larger than fits with its caption on a page."""
    _, alt, (name, _) = content
    wide, high = album.size(name)
    scale = min(POINTS_PER_PIXEL, WIDEST / wide, HIGHEST / high)
    size = f"width: {wide * scale:.1f}pt, height: {high * scale:.1f}pt"
    return f"#box(image({string(name)}, {size}, alt: {string(text_of(alt))}));"


def reads_from_the_right(inlines: Sequence[Node]) -> bool:
    """Whether the first letter of a paragraph is Hebrew, Arabic or the like."""
    first = next((c for c in text_of(inlines) if c.isalpha()), "a")
    return unicodedata.bidirectional(first) in ("R", "AL")


def _safe(item: Node, missing: Sequence[str], as_code: Collection[str]) -> Node:
    """Put a node's text where it cannot be taken for typst's language."""

    def literal(text: str) -> str:
        return string(_breakable(numbered(text, missing)))

    kind, content = item["t"], item.get("c")
    if kind == "Str":
        return _raw(f"#{literal(content)};")
    if kind == "Math" and (formula := one_line(content[1])) not in as_code:
        return node("Math", [content[0], formula])
    if kind in ("Code", "Math"):
        return _raw(f"#raw({literal(content[1])});")
    if kind == "CodeBlock":
        (_, classes, _), text = content
        language = f", lang: {string(classes[0])}" if classes else ""
        source = string(wrapped(numbered(text, missing)))
        return node("RawBlock", ["typst", f"#raw(block: true{language}, {source})"])
    return item


def _breakable(text: str, longest: int = LONG) -> str:
    """Let each very long word be broken anywhere."""
    return re.sub(rf"[^\s\u200b]{{{longest + 1},}}", lambda word: "\u200b".join(word[0]), text)


def wrapped(text: str) -> str:
    """Cut code or printed output into lines that fit; a continued line begins with an arrow."""
    lines = []
    for line in text.split("\n"):
        indent = line[: min(len(line) - len(line.lstrip()), COLUMNS // 2)]
        while letters(line) > COLUMNS:
            room = next(n for n in range(COLUMNS, 0, -1) if letters(line[:n]) <= COLUMNS)
            space = line.rfind(" ", len(indent) + COLUMNS // 2, room)
            cut = space + 1 if space > 0 else room
            lines.append(line[:cut])
            line = f"{indent}{GOES_ON}{line[cut:]}"
        lines.append(line)
    return "\n".join(lines)


def letters(text: str) -> int:
    """Measure a text in letters: Chinese characters and emoji take the room of two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# Tables


def _table(item: Node) -> list[Node]:
    """Set a table in type small enough to fit; split one that is far too wide."""
    if "states" in item["c"][0][1]:
        return _inside("#states[", [item])
    pieces = split(item, MOST_LETTERS)
    size = max(SMALLEST, min(1, WIDE / max(sum(widths(piece)) for piece in pieces))) * TABLE_SIZE
    return _inside(f"#[#show table: set text(size: {size:.1f}pt)", rebuilt(pieces, _narrow))


def _narrow(item: Node) -> Node:
    """Let shorter words be broken in a cell than in running text."""
    return node("Str", _breakable(item["c"], LONG // 2)) if item["t"] == "Str" else item


def widths(table: Node) -> list[int]:
    """Count the letters that each column needs if no cell is broken, with the space beside it."""
    needed = [1] * len(table["c"][2])
    for _, cells in rows_of(table):
        if sum(cell[3] for cell in cells) == len(cells):
            for place, cell in enumerate(cells[: len(needed)]):
                needed[place] = max(needed[place], min(30, letters(text_of(cell[4]).strip())))
    return [width + 2 for width in needed]


def split(table: Node, most: float) -> list[Node]:
    """Return the table, or several with some columns each, none wider than `most` letters.

    The first column, which names the rows, is repeated in each.
    """
    needed = widths(table)
    is_simple = all(len(cells) == len(needed) for _, cells in rows_of(table))
    if sum(needed) <= most or not is_simple or len(needed) < 3:
        return [table]
    groups, room = [[]], most - needed[0]
    for place in range(1, len(needed)):
        if groups[-1] and sum(needed[i] for i in groups[-1]) + needed[place] > room:
            groups.append([])
        groups[-1].append(place)
    return [_columns(table, [0, *group]) for group in groups]


def _columns(table: Node, places: list[int]) -> Node:
    """Return the table with some of its columns."""
    part = deepcopy(table)
    part["c"][2] = [part["c"][2][i] for i in places]
    for row in rows_of(part):
        row[1] = [row[1][i] for i in places]
    return part


# Letters that no font shows


def unshown(document: Document) -> list[str]:
    """List the letters of a write-up that no font of this machine can show."""
    return without_font(text_of([*document.lead, *document.blocks]), _fonts())


def without_font(text: str, fonts) -> list[str]:
    """List the letters of a text that none of typst's `fonts` shows, in order of their numbers.

    Typst itself is asked: its own fonts are in no file whose table of letters could be read. Each
    letter is set on a page of its own. If no font has it, the box for missing letters is drawn,
    which is known from a letter that no font has.
    """
    import typst

    asked = sorted({c for c in text if c > "\x7f" and unicodedata.category(c) not in BLANK})
    if not asked:
        return []
    pages = "\n#pagebreak()\n".join(f'#"\\u{{{ord(c):x}}}";' for c in [NOWHERE, *asked])
    source = f'#set text(font: "{FAMILY}")\n{pages}\n'
    drawn = typst.compile(source.encode(), format="svg", font_paths=fonts)
    box, *shapes = (set(SYMBOL.findall(page)) for page in drawn)
    return [c for c, shape in zip(asked, shapes, strict=True) if box & shape]


def complaints(missing: Iterable[str]) -> list[str]:
    """Name the missing letters, one line per package of fonts."""
    by_package: dict[str, list[str]] = {}
    for letter in missing:
        name = unicodedata.name(letter, "without a name")
        package = next(package for starts, package in ADVICE if name.startswith(starts))
        by_package.setdefault(package, []).append(f"U+{ord(letter):04X} {name}")
    return [
        f"no installed font has {'; '.join(names[:8])}"
        + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        + f": numbers are shown instead (on Debian: apt install {package})"
        for package, names in by_package.items()
    ]


def numbered(text: str, missing: Iterable[str], before: str = "") -> str:
    """Write each missing letter as its number; `before` may hold a `{}` for the letter itself."""
    return text.translate(
        {ord(letter): f"{before.format(letter)}[U+{ord(letter):04X}]" for letter in missing}
    )
