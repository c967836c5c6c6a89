"""What notebooks say, as a syntax tree in which nothing can run or load anything.

A notebook may come from anybody. Text, lists, tables, formulas, code and inline markup are kept,
whether they are Markdown or HTML; HTML that pandoc leaves raw is dropped. Links to the web stay,
and so do pictures that are stored in the notebook itself. Scripts, styles, frames, attributes,
other pictures and other links are left out.
"""

import base64
import re
import warnings
from contextlib import suppress
from io import BytesIO

from workbook.export import pandoc
from workbook.export.pandoc import (
    PLAIN,
    Node,
    cell,
    code,
    depth,
    listing,
    node,
    nodes_in,
    para,
    rebuilt,
    strong,
    table,
    text_of,
    words,
)

FORMATS = {
    "markdown": "gfm-yaml_metadata_block-emoji-alerts-gfm_auto_identifiers+tex_math_dollars",
    "html": "html-raw_html-raw_tex",
}
MOST = 100_000  # characters of one text, some forty pages
DEEPEST = 30  # nested nodes, which typst can take; a list in a quote in a list needs 20
DEEPEST_FORMULA = 12  # nested braces; each further one doubles the time that pandoc takes
LINES, LONGEST = 60, 2_000  # of printed output: lines, and characters in one
ROWS = 40  # of a table; a page has room for them
WIDEST_PICTURE = 2_000  # pixels; more than paper shows at the width of a page
LARGEST_PICTURE = 40_000_000  # pixels: a larger picture is a trap, or a mistake
OPENING, CLOSING = ("{", r"\left", r"\begin"), ("}", r"\right", r"\end")
WEB = re.compile(r"(?:https?://|mailto:)[^\s\\\"<>]+", re.IGNORECASE)
LANGUAGE = re.compile(r"[a-z][a-z0-9+#-]{0,15}")
EMBEDDED = re.compile(r"data:image/(?:png|jpeg);base64,(.*)", re.DOTALL)
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control codes, and characters that make a line look different from what is stored.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufeff]")
NUMERIC = re.compile(r"\s*(?:[-+±≈~<>−]?\s*[$€£]?\d[\d,._ ]*(?:e[-+]?\d+)?\s*(?:%|[a-zA-Zµ/]{1,5})?"  # noqa: RUF001
                     r"|NaN|nan|inf|None|NaT|<NA>|[-–—])?\s*")  # fmt: skip  # noqa: RUF001

# What looks like a tag may be a token: <unk> and an <s> that nothing closes are text.
TAG = re.compile(r"</?([a-zA-Z][\w-]*)")
SILENT = {"script", "style", "iframe", "object", "template"}  # what they hold is not for readers
PAIRED = {"b", "strong", "i", "em", "s", "del", "sub", "sup", "u", "code", "kbd"}
PAIRED |= SILENT | {"head", "svg", "title"}  # unclosed, these would swallow what follows
ELEMENT = re.compile(
    "a|abbr|article|aside|audio|base|body|br|button|center|cite|dd|details|dfn|div|dl|dt|embed"
    "|figcaption|figure|font|footer|form|frame|h[1-6]|head|header|hr|html|img|input|label|li|link"
    "|main|mark|math|meta|nav|noscript|ol|option|p|picture|pre|q|section|select|small|source|span"
    "|summary|svg|table|tbody|td|textarea|tfoot|th|thead|title|tr|tt|ul|var|video"
)


class Cleaner:
    """A reader of texts with markup, which keeps their pictures and notes what it leaves out."""

    def __init__(self) -> None:
        self.album = Album()
        self.notes: list[str] = []
        self.formulas: dict[str, str] = {}  # and the place where each is

    def blocks(self, kind: str, text: str, place: str) -> list[Node]:
        """Read a text, which is "markdown" or "html", into clean blocks; notes call it `place`."""
        try:
            found = _read(kind, text[:MOST])
        except (ValueError, RecursionError):
            self.notes.append(
                f"{place} is nested too deeply to be read: it is shown as it was typed"
            )
            return printed(text[:MOST])
        blocks = rebuilt(found, lambda item: self._clean(item, place))
        if len(text) > MOST:
            self.notes.append(
                f"{place} has a text of {len(text):,} characters: it is cut after {MOST:,}"
            )
            blocks.append(para(*words("...")))
        if kind == "markdown":  # the HTML that pandas shows has styles of its own
            before, after = text.lower(), text_of(blocks).lower()
            for tag in sorted(SILENT):
                if before.count(f"<{tag}") > after.count(f"<{tag}"):
                    self.notes.append(
                        f"{place} contains <{tag}>, which is left out with all its content"
                    )
        return blocks

    def _clean(self, item: Node, place: str):
        """Make a node safe whose children already are."""
        kind, content = item["t"], item.get("c")
        if kind in ("RawInline", "RawBlock"):
            return []
        if kind == "Str":
            return node("Str", visible(content))
        if kind in ("Code", "CodeBlock"):
            (_, classes, _), text = content
            language = [name for name in classes[:1] if LANGUAGE.fullmatch(name)]
            text = visible(text.expandtabs(4)).strip("\n")
            return node(kind, [["", language if kind == "CodeBlock" else [], []], text])
        if kind == "Header":  # the write-up has headings of its own
            return para(strong(content[2]))
        if kind == "Link":
            target = content[2][0]
            is_web = WEB.fullmatch(target)
            return node("Link", [PLAIN, content[1], [target, ""]]) if is_web else content[1]
        if kind == "Image":
            return self._image(content, place)
        if kind == "Math":
            if nesting(content[1]) > DEEPEST_FORMULA:
                self.notes.append(
                    f"a formula in {place} is nested too deeply to be typeset, and is shown as it"
                    f" was typed: {content[1][:40]!a}"
                )
                return code(visible(content[1]))
            self.formulas.setdefault(one_line(content[1]), place)
        if kind == "Span" and "kbd" in content[0][1]:
            return code(text_of(content[1]))
        if kind in ("Div", "Span", "Cite"):
            return content[1]
        if kind == "Figure":
            return content[2]
        if kind == "Table":
            return _tidy(content)
        return item

    def _image(self, content: list, place: str) -> Node:
        name = None
        if embedded := EMBEDDED.fullmatch(content[2][0]):
            with suppress(ValueError):  # invalid base64
                name = self.album.keep(base64.b64decode(embedded[1]))
        if name:
            return node("Image", [PLAIN, content[1], [name, ""]])
        self.notes.append(
            f"{place} points to a picture that is not in the notebook: it is left out"
        )
        named = [*words(":"), node("Space"), *content[1]] if content[1] else []
        return node("Emph", [*words("[A picture that is not in the notebook"), *named, *words("]")])


def plain(text: str) -> str:
    """Return a text as a terminal shows it: no colours, and nothing that `\\r` overwrote."""
    text = ANSI.sub("", text).replace("\r\n", "\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return visible("\n".join(lines))


def visible(text: str) -> str:
    """Write invisible characters as Python escapes them: `\\x00`."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def nesting(formula: str) -> int:
    """Count how many braces, \\left and \\right, or \\begin and \\end, enclose each other."""
    level = deepest = 0
    for sign in re.findall(r"\\(?:left|right|begin|end)\b|\\.|[{}]", formula, re.DOTALL):
        level += (sign in OPENING) - (sign in CLOSING)
        deepest = max(deepest, level)
    return deepest


def one_line(formula: str) -> str:
    """Write a formula on one line, without TeX's comments."""
    return " ".join(re.sub(r"(\\.)|%.*", r"\1", formula).split())


def printed(text: str) -> list[Node]:
    """Make a block of printed output, cut if it is long, with the number of lines left out."""
    lines = plain(text[: LINES * LONGEST * 4]).expandtabs(8).strip("\n").split("\n")
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]} ..." for line in lines[:LINES]]
    more = text.rstrip("\n").count("\n") + 1 - LINES
    if more > 0:
        shown.append(f"... {more:,} more lines")
    return [listing("\n".join(shown))]


def _read(kind: str, text: str) -> list[Node]:
    """Read a text; raise ValueError or RecursionError if it is nested too deeply."""
    blocks = pandoc.read(plain(text), FORMATS[kind])
    if kind == "markdown" and _tags(blocks):
        blocks = _with_html(blocks)
    if depth(blocks) > DEEPEST:
        raise ValueError(f"the text is nested more than {DEEPEST} deep")
    return blocks


def _with_html(blocks: list[Node]) -> list[Node]:
    """Read the HTML in blocks of Markdown, where each tag is a node of its own.

    The blocks are written as HTML, which is read again. Code, formulas and pictures would not
    survive that unchanged: spans with numbers take their places, and they are put back afterwards.
    """
    taken: dict[str, Node] = {}

    def take(item: Node):
        if item["t"] not in ("Code", "Math", "Image"):
            return _without_tokens(item)
        number = str(len(taken))
        taken[number] = item
        return node("Span", [["", [], [["taken", number]]], words(text_of(item))])

    def put_back(item: Node) -> Node:
        attributes = dict(item["c"][0][2]) if item["t"] == "Span" else {}
        return taken.get(attributes.get("taken"), item)

    html, _ = pandoc.write(rebuilt(blocks, take), "html", "--syntax-highlighting=none")
    return rebuilt(pandoc.read(html, FORMATS["html"]), put_back)


def _tags(tree) -> list[str]:
    """List the pieces of HTML in a tree."""
    return [item["c"][1] for item in nodes_in(tree) if item["t"] in ("RawInline", "RawBlock")]


def _without_tokens(item: Node) -> Node:
    """Turn what only looks like a tag into text, in a paragraph or as a block of HTML."""
    kind, content = item["t"], item.get("c")
    if kind == "RawBlock":
        return para(*words(content[1])) if _is_token(content[1], _unpaired(content[1])) else item
    if kind not in ("Para", "Plain", "Header"):
        return item
    unpaired = _unpaired("".join(_tags(item)))

    def change(inline: Node) -> Node:
        is_token = inline["t"] == "RawInline" and _is_token(inline["c"][1], unpaired)
        return node("Str", inline["c"][1]) if is_token else inline

    return node(kind, rebuilt(content, change))


def _is_token(tag: str, unpaired: set[str]) -> bool:
    """Whether HTML has no such tag, or it is of an element that is `unpaired`."""
    found = TAG.match(tag)
    if not found:
        return False  # a comment
    name = found[1].lower()
    return name in unpaired if name in PAIRED else not ELEMENT.fullmatch(name)


def _unpaired(html: str) -> set[str]:
    """Name the elements that are closed before they open, or not as often as they open."""
    slashes = {name: re.findall(rf"<(/?){name}\b", html, re.IGNORECASE) for name in PAIRED}
    return {
        name
        for name, found in slashes.items()
        if found and (found[0] == "/" or found.count("/") != found.count(""))
    }


def _tidy(content: list) -> list[Node]:
    """Make a table without attributes, not too long, and with numbers aligned to the right."""
    _, caption, columns, head, bodies, foot = content
    rows = [row for body in bodies for part in body[2:] for row in part] + foot[1]
    more = len(rows) - ROWS
    rows, heads = [_bare(row) for row in rows[:ROWS]], [_bare(row) for row in head[1]]
    wide = max([len(columns), *(_width(row) for row in heads + rows)])
    columns = [
        [node("AlignRight" if _is_numeric(rows, place) else "AlignLeft"), node("ColWidthDefault")]
        for place in range(wide)
    ]
    tidied = [table(columns, heads, rows, caption=caption[1])]
    if more > 0:
        tidied.append(para(node("Emph", words(f"{more:,} more rows are left out."))))
    return tidied


def _bare(row: list) -> list:
    """Make a row whose cells have no attributes."""
    return [PLAIN, [cell(blocks, span) for *_, span, blocks in row[1]]]


def _width(row: list) -> int:
    return sum(span for *_, span, _ in row[1])


def _is_numeric(rows: list, place: int) -> bool:
    """Whether a column holds numbers, leaving aside rows with cells that span columns."""
    cells = [row[1][place] for row in rows if len(row[1]) > place and _width(row) == len(row[1])]
    texts = [text_of(blocks) for *_, blocks in cells]
    return any(text.strip() for text in texts) and all(map(NUMERIC.fullmatch, texts))


class Album:
    """Pictures by the name of their file, in the order in which they were kept."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def keep(self, data: bytes) -> str | None:
        """Return the name for a picture, None if the bytes are not a complete picture."""
        data = _drawn_anew(data)
        if data is None:
            return None
        for name, other in self.files.items():
            if data == other:
                return name
        kind = "png" if data.startswith(b"\x89PNG") else "jpg"
        name = f"figure-{len(self.files) + 1:02}.{kind}"
        self.files[name] = data
        return name

    def size(self, name: str) -> tuple[int, int]:
        """Return the width and height of a picture in pixels."""
        from PIL import Image

        with Image.open(BytesIO(self.files[name])) as picture:
            return picture.size


def _drawn_anew(data: bytes) -> bytes | None:
    """Redraw a picture, smaller if it is very wide; return None if it is huge or cannot be drawn.

    Only the pixels stay, rotated as the camera recorded. Whatever else a file holds, such as where
    a photo was taken or what follows the picture's end, is not for readers.
    """
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings(), Image.open(BytesIO(data), formats=("PNG", "JPEG")) as found:
            warnings.simplefilter("ignore")  # of metadata that is odd; only the pixels are used
            if found.width * found.height > LARGEST_PICTURE:
                return None
            found.load()
            kind, drawn = "png" if found.format == "PNG" else "jpeg", found
            with suppress(Exception):  # of metadata that cannot be read
                drawn = ImageOps.exif_transpose(found)
            if drawn.width > WIDEST_PICTURE:
                kind, drawn = "png", drawn.convert("RGBA" if "A" in drawn.getbands() else "RGB")
                drawn.thumbnail((WIDEST_PICTURE, 4 * WIDEST_PICTURE))
            drawn.info = {k: v for k, v in drawn.info.items() if k == "transparency"}
            done = BytesIO()
            drawn.save(done, kind, quality=95, optimize=True)
    except Exception:  # Pillow raises many kinds for what is not a picture
        return None
    return done.getvalue()
