"""What notebooks say, as a syntax tree in which nothing can run or load anything.

A notebook may come from anybody. Text, lists, tables, formulas, code, inline markup and links to
the web are kept, from Markdown and from HTML that a cell displays. HTML amid Markdown is shown as
it was typed. Scripts, styles, frames, attributes, other links, and pictures that are not outputs of
their own are left out.
"""

import base64
import re
import secrets
from io import BytesIO
from itertools import accumulate

from workbook.classroom.export import pandoc
from workbook.classroom.export.pandoc import (
    UNNAMED,
    Node,
    legible,
    node,
    para,
    prose,
    rebuilt,
    text_of,
)
from workbook.classroom.panels import lines_on_screen

PANDOC_FORMATS = {
    "markdown": "gfm-yaml_metadata_block-emoji-alerts-gfm_auto_identifiers-tex_math_dollars",
    "html": "html-raw_html-raw_tex",
}
MOST_CHARACTERS = 100_000  # of one text, some forty pages
MOST_NESTED = 30  # nested nodes, which typst can take; a list in a quote in a list needs 20
DEEPEST_FORMULA = 12  # nested braces; each further one doubles the time that pandoc takes
MACRO = re.compile(r"\\(?:(?:re)?new|provide|Declare)[a-zA-Z]")  # ten lines can make a book of x's
PRINTED_LINES = 60  # of printed output
PRINTED_COLUMNS = 2_000  # characters of a printed line
TABLE_ROWS = 40  # a page has room for them
TABLE_COLUMNS = 30
LARGEST_PICTURE = 40_000_000  # pixels: a larger picture is a trap, or a mistake
# Formulas, after what may hold dollars and is none: a fence of code up to its end, code in a line,
# addresses, escapes. They end where JupyterLab ends them (`removeMath` in its latex.ts): space may
# stand inside the dollars, dollars in braces are part of them, and neither a blank line nor a fence
# is crossed. A dollar with no partner takes all up to there, so that nothing is read twice.
FORMULA = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[^`\n]*\n(?:.*?^(?P=fence)`*$|.*)"
    r"|(?<![`\\])(?P<ticks>`++)[^\n]*?[^`\n](?P=ticks)(?!`)|https?://[^\s)>]+|\\[{}$]"
    r"|(?P<sign>\$\$?+)(?:\\[{}$]|(?!\n(?:\s*\n|```|~~~))"
    r"(?:`[^`\n]+`|\{(?:\\[{}$]|\{[^{}]*\}|[^{}])*+\}|[^$]))*+(?P<end>(?P=sign))?"
    r"|\\begin\{(?P<name>[a-zA-Z]+\*?)\}(?:(?!\n\s*\n).){,2000}?\\end\{(?P=name)\}"
    r"|\\\\\((?P<inline>(?:(?!\n\s*\n).){,2000}?)\\\\\)"
    r"|\\\\\[(?P<display>(?:(?!\n\s*\n).){,2000}?)\\\\\]",
    re.DOTALL | re.MULTILINE,
)
PRICES = re.compile(r"\d\$\s.*|\D?\$\d.*\$\d", re.DOTALL)  # a formula with both its neighbours
ESCAPED = re.compile(r"\r[a-z]|[\a\x08\f\v]")  # of "\rho", "\beta" or "\frac" in a Python string
RAW_STRING = r"if it was to hold \rho, \beta or \frac, write r before its quotes, as in r'''...'''"
BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
WEB_ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s\\\"<>]+", re.IGNORECASE)
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
NUMERIC = re.compile(
    r"\s*(?:[-+±≈~<>−]?\s*[$€£]?\d[\d,._ ]*(?:e[-+]?\d+)?\s*(?:%|[a-zA-Zµ/]{1,5})?"  # noqa: RUF001
    r"|NaN|nan|inf|None|NaT|<NA>|[-–—])?\s*"  # noqa: RUF001
)


class Cleaner:
    """A reader of texts with markup, which keeps their pictures and notes what it leaves out."""

    def __init__(self) -> None:
        self.pictures: dict[str, bytes] = {}  # by the name of their file
        self.notes: list[str] = []
        self.formulas: dict[str, str] = {}  # and the place where each is

    def blocks(self, kind: str, text: str, place: str) -> list[Node]:
        """Read a text, which is "markdown" or "html", into clean blocks; notes call it `place`."""
        beginning = text[:MOST_CHARACTERS]
        if kind == "markdown":  # in which "\r" ends a line, and overwrites nothing
            if ESCAPED.search(beginning):
                self.notes.append(f"{place} has control characters: " + RAW_STRING)
            beginning = re.sub("\r\n?", "\n", beginning)
        try:
            tree = self._parsed(kind, plain_text(beginning), place)
            blocks = rebuilt(tree, lambda item: self._clean(kind, item, place), MOST_NESTED)
        except (ValueError, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            why = "its lists, quotes or emphasis are nested too deeply" if is_deep else error
            self.notes.append(f"{place} is shown as it was typed: {why}")
            blocks = as_typed(beginning) if kind == "markdown" else printed(beginning)
        if len(text) > MOST_CHARACTERS:
            cut = f"it is cut after {MOST_CHARACTERS:,}"
            self.notes.append(f"{place} has {len(text):,} characters: {cut}")
            blocks.append(para(*prose("...")))
        return blocks

    def _parsed(self, kind: str, text: str, place: str) -> list[Node]:
        """Read a text; Markdown with marks in the places of its formulas, put back afterwards.

        So nothing in a formula is taken for markup; in code it stands as it was typed.
        """
        formulas: list[tuple[str, Node]] = []  # the source and the node of each
        nonce = secrets.token_hex(8)  # nobody can write a mark that is not ours
        formula_mark = re.compile(f"@\x1a{nonce}-(\\d+)@")

        def mark(match: re.Match) -> str:
            source = match[0]
            sign = match["sign"]
            body = match["inline"] or match["display"]
            if not (match["end"] or match["name"] or body):
                return source
            if PRICES.fullmatch(text[max(match.start() - 1, 0) : match.end() + 1]):
                words = f"{place} has the formula {one_line(source)[:60]}"
                self.notes.append(f"{words}: if those are prices, write \\$ for a dollar")
            inside = body or (source[len(sign) : -len(sign)] if sign else source)
            is_inline = sign == "$" or match["inline"]
            shape = node("InlineMath" if is_inline else "DisplayMath")
            formulas.append((source, node("Math", [shape, inside.strip()])))
            return f"@\x1a{nonce}-{len(formulas) - 1}@"

        def put_back(item: Node):
            kind = item["t"]
            content = item.get("c")
            if kind == "Str":
                words = formula_mark.split(content)  # every other one is the number of a formula
                words[::2] = [node("Str", word) for word in words[::2]]
                words[1::2] = [formulas[int(number)][1] for number in words[1::2]]
                return words
            if kind in ("Code", "CodeBlock", "RawInline", "RawBlock"):
                content[1] = formula_mark.sub(lambda match: formulas[int(match[1])][0], content[1])
            return item

        marked = FORMULA.sub(mark, text) if kind == "markdown" else text
        return rebuilt(pandoc.parse(marked, PANDOC_FORMATS[kind]), put_back)

    def _clean(self, read: str, item: Node, place: str):
        """Make a node safe whose children already are; it was `read` as "markdown" or "html"."""
        kind = item["t"]
        content = item.get("c")
        if kind.startswith("Raw") and (read == "html" or content[1].startswith("<!--")):
            return []
        if kind == "RawInline":
            return node("LineBreak") if BREAK.fullmatch(content[1]) else prose(content[1])
        if kind == "RawBlock":
            return as_typed(content[1])
        if kind == "Str":
            return node("Str", legible(content))
        if kind in ("Code", "CodeBlock"):
            (_, classes, _), text = content
            language = classes[:1] if kind == "CodeBlock" else []
            return node(kind, [["", language, []], legible(text.expandtabs(4)).strip("\n")])
        if kind == "Header":  # the write-up has headings of its own
            return para(node("Strong", content[2]))
        if kind == "Link":
            _, inlines, (address, _) = content
            return pandoc.link(inlines, address) if WEB_ADDRESS.fullmatch(address) else inlines
        if kind == "Image":
            self.notes.append(f"{place} has a picture in its text: only those beside it are shown")
            return node("Emph", [*prose("[A picture:"), node("Space"), *content[1], *prose("]")])
        if kind == "Math":
            depths = accumulate({"{": 1, "}": -1}.get(letter, 0) for letter in content[1])
            if MACRO.search(content[1]) or max(depths, default=0) > DEEPEST_FORMULA:
                raise ValueError("a formula is nested too deeply, or defines commands of its own")
            self.formulas.setdefault(one_line(content[1]), place)
        if kind == "OrderedList":  # which typst begins at 0 or later
            content[0][0] = max(content[0][0], 0)
        if kind in ("Div", "Span", "Cite"):
            return content[1]
        if kind == "Figure":
            return content[2]
        if kind == "Table":
            return _tidy(content)
        return item

    def keep(self, picture: str) -> str | None:
        """Keep a picture in base64; return its name, None if it is huge or cannot be drawn.

        It is drawn anew, rotated as the camera recorded. Whatever else a file holds, such as where
        a photo was taken or what follows the picture's end, is not for readers.
        """
        from PIL import Image, ImageOps

        data = BytesIO()
        try:
            file = BytesIO(base64.b64decode(picture))
            with Image.open(file, formats=("PNG", "JPEG")) as opened:
                if opened.width * opened.height > LARGEST_PICTURE:
                    return None
                drawn = ImageOps.exif_transpose(opened)
                drawn.info = {k: v for k, v in drawn.info.items() if k == "transparency"}
                drawn.save(data, opened.format, quality=95, optimize=True)
        except Exception:  # Pillow raises many kinds for what is not a picture
            return None
        name = f"figure-{len(self.pictures) + 1:02}.{opened.format.lower()}"
        self.pictures[name] = data.getvalue()
        return name


def plain_text(text: str) -> str:
    """Return a text as a terminal shows it: no colours, and nothing that `\\r` overwrote."""
    text = ANSI.sub("", text).replace("\r\n", "\n")
    return legible("\n".join(lines_on_screen(text)))


def one_line(formula: str) -> str:
    """Write a formula on one line, without TeX's comments."""
    return " ".join(re.sub(r"(\\.)|%.*", r"\1", formula).split())


def printed(text: str) -> list[Node]:
    """Make a block of printed output, cut if it is long, with the number of lines left out."""
    beginning = plain_text(text[: PRINTED_LINES * PRINTED_COLUMNS * 4])
    lines = beginning.expandtabs(8).strip("\n").split("\n")[:PRINTED_LINES]
    shown = [
        line if len(line) <= PRINTED_COLUMNS else f"{line[:PRINTED_COLUMNS]} ..." for line in lines
    ]
    more = text.rstrip("\n").count("\n") + 1 - PRINTED_LINES
    if more > 0:
        shown.append(f"... {more:,} more lines")
    return [node("CodeBlock", [UNNAMED, "\n".join(shown)])]


def as_typed(text: str) -> list[Node]:
    """Make a block of somebody's own words, which are never cut like an output."""
    return [node("CodeBlock", [UNNAMED, plain_text(text).expandtabs(8).strip("\n")])]


def _tidy(content: list) -> list[Node]:
    """Make a table without attributes, not too long, and with numbers aligned to the right."""
    _, caption, columns, head, bodies, foot = content
    rows = []
    for _, _, heads_inside, lines in bodies:
        rows += heads_inside + lines
    rows += foot[1]
    more = len(rows) - TABLE_ROWS
    has_row_spans = any(down > 1 for row in rows for _, _, down, *_ in row[1])
    rows = [_bare(row) for row in rows[:TABLE_ROWS]]
    heads = [_bare(row) for row in head[1]]
    wide = max([len(columns), *(_width(row) for row in heads + rows)])
    if wide > TABLE_COLUMNS:
        return [para(node("Emph", prose(f"A table of {wide:,} columns is left out.")))]
    if has_row_spans:  # these cells stand first, as pandas writes them
        for row in rows:
            row[1][:0] = [pandoc.table_cell([])] * (wide - _width(row))
    columns = [
        [node("AlignRight" if _is_numeric(rows, place) else "AlignLeft"), node("ColWidthDefault")]
        for place in range(wide)
    ]
    blocks = [pandoc.grid(columns, heads, rows, caption=caption[1])]
    if more > 0:
        blocks.append(para(node("Emph", prose(f"{more:,} more rows are left out."))))
    return blocks


def _bare(row: list) -> list:
    """Make a row whose cells have no attributes."""
    return [UNNAMED, [pandoc.table_cell(blocks, span) for *_, span, blocks in row[1]]]


def _width(row: list) -> int:
    return sum(span for *_, span, _ in row[1])


def _is_numeric(rows: list, place: int) -> bool:
    """Whether a column holds numbers, leaving aside rows with cells that span columns."""
    cells = [row[1][place] for row in rows if len(row[1]) > place and _width(row) == len(row[1])]
    texts = [text_of(blocks) for *_, blocks in cells]
    return any(text.strip() for text in texts) and all(map(NUMERIC.fullmatch, texts))
