"""The write-up as a PDF: set by typst, without LaTeX, network or clock.

Whatever strangers wrote reaches typst inside string literals, where nothing is markup.
"""

import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any
from unicodedata import category

from workbook.classroom.export import pandoc
from workbook.classroom.export.clean import one_line
from workbook.classroom.export.document import SUBTITLE, Document
from workbook.classroom.export.pandoc import Node, node, rebuilt, text_of

BLANK_CATEGORIES = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me")  # may well show nothing
UNBROKEN = 24  # characters of code that stay on one line
# What typst's own fonts, which are in no file, have: Devanagari, signs of technology and of
# mathematics, letters in circles and in mathematical styles.
IN_TYPST = re.compile("[\u0900-\u097f\u2300-\u23ff\u2460-\u24ff\u2900-\u2bff\U0001d400-\U0001d7ff]")
ADVICE = "on Debian: apt install fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji"


def pdf(document: Document) -> tuple[bytes, list[str]]:
    """Typeset a document; also name what cannot be shown in it.

    That is formulas, which stay as they were typed, and letters, which are shown by their numbers.
    Raises ValueError if typst refuses the whole.
    """
    missing = missing_letters(text_of([*document.lead, *document.blocks]))
    body, refused = _markup(document, missing)
    notes = []
    for formula in refused:
        place = document.cleaner.formulas.get(formula, "the write-up")
        notes.append(f"a formula in {place} is shown as it was typed: {formula[:60]}")
    if missing:
        numbers = ", ".join(f"U+{ord(letter):04X}" for letter in missing)
        notes.append(f"no font here has {shorten(numbers, 60)}: the PDF shows numbers ({ADVICE})")
    look = Path(__file__).with_name("writeup.typ").read_text(encoding="utf-8")
    source = f"#let name = {string(document.title)}\n{look}\n{body}"
    return _compiled(source, document.cleaner.pictures), notes


def _compiled(source: str, pictures: dict[str, bytes]) -> bytes:
    """Run typst on a source in its language, which may read its pictures and no other file.

    Raises ValueError if typst refuses it; what is nested too deeply, typst refuses.
    """
    import typst

    with tempfile.TemporaryDirectory() as folder:
        for name, data in pictures.items():
            Path(folder, name).write_bytes(data)
        paths: Any = dict.fromkeys(("root", "package_path", "package_cache_path"), folder)
        fonts = typst.Fonts(font_paths=_deja_vu())
        try:
            return typst.compile(source.encode(), font_paths=fonts, timestamp=0, **paths)
        except typst.TypstError as error:
            raise ValueError(f"typst refuses it: {' '.join(str(error).split())}") from None


def _deja_vu() -> list[str]:
    """List the files of the fonts that come with matplotlib."""
    matplotlib = Path(find_spec("matplotlib").origin).parent
    return sorted(map(str, (matplotlib / "mpl-data/fonts/ttf").glob("DejaVuSans*.ttf")))


def missing_letters(text: str) -> list[str]:
    """List the letters of a text that no font of this machine has, in order of their numbers."""
    import typst
    from fontTools.ttLib import TTFont

    asked = IN_TYPST.sub("", text)
    missing = {
        letter for letter in asked if letter > "\x7f" and category(letter) not in BLANK_CATEGORIES
    }
    for path in [*_deja_vu(), *(font.path for font in typst.Fonts().fonts())]:
        if missing and path:
            # Of a collection of fonts, the first: they have the same letters.
            with TTFont(path, fontNumber=0, lazy=True) as font:
                missing -= set(map(chr, font.getBestCmap() or ()))
    return sorted(missing)


def _markup(document: Document, missing: Iterable[str]) -> tuple[str, list[str]]:
    """Write the body in typst's language; also return formulas that pandoc cannot translate.

    Those formulas become code.
    """
    opening = _inside(f"#opening({string(SUBTITLE)})[", document.lead)
    blocks = rebuilt([*opening, *document.blocks], _laid_out)

    def written(as_code: Collection[str]) -> tuple[str, list[str]]:
        return pandoc.render(rebuilt(blocks, lambda item: _safe(item, missing, as_code)), "typst")

    text, refused = written([])
    if refused:  # pandoc has written these as text, in which typst may find markup
        text, _ = written(refused)
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


def _laid_out(item: Node):
    """Give a node its place and size on the page."""
    kind = item["t"]
    content = item.get("c")
    if kind == "Div":
        return _inside(f"#{content[0][1][0]}[", content[1])
    if kind == "Table":
        return _inside("#states[" if "states" in content[0][1] else "#fitted[", [item])
    if kind == "Image":
        _, alt, (name, _) = content
        return _raw(f"#picture({string(name)}, {string(text_of(alt))});")
    if kind == "Figure":
        picture = content[2][0]["c"][0]["c"][1]
        return _inside(f"#shown([{picture}])[", content[1][1])
    return item


def _safe(item: Node, missing: Iterable[str], as_code: Collection[str]) -> Node:
    """Put a node's text where it cannot be taken for typst's language."""
    numbers = {ord(letter): f"[U+{ord(letter):04X}]" for letter in missing}

    def literal(text: str) -> str:
        return string(text.translate(numbers))

    kind = item["t"]
    content = item.get("c")
    if kind == "Str":
        return _raw(f"#{literal(content)};")
    if kind == "Math" and (formula := one_line(content[1])) not in as_code:
        return node("Math", [content[0], formula])
    if kind in ("Code", "Math"):
        code = f"raw({literal(content[1])})"
        # A line that ends inside swallows a space, which is the point of the token `b' the'`.
        short = " " in content[1] and len(content[1]) <= UNBROKEN
        return _raw(f"#box({code});" if short else f"#{code};")
    if kind == "CodeBlock":
        (_, classes, _), text = content
        language = f", lang: {string(classes[0])}" if classes else ""
        source = f"#raw(block: true{language}, {literal(text)})"
        return node("RawBlock", ["typst", source])
    return item
