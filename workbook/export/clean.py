"""What notebooks say, as a syntax tree in which nothing can act or reach out.

A notebook may come from anybody. Pandoc reads what it says with raw HTML turned off: text, lists,
tables, formulas, code and the markup of a line are kept, in Markdown and in HTML. Of what pandoc
gives, links to the web stay and pictures that are stored in the notebook itself. Scripts, styles,
frames, attributes, other pictures and other links go.
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
DEEPEST = 30  # nodes inside each other, which typst bears; a list in a quote in a list needs 20
DEEPEST_FORMULA = 12  # braces inside each other; pandoc takes twice as long for each one more
LINES, LONGEST = 60, 2_000  # of printed output: lines, and characters in one
ROWS = 40  # of a table; a page has room for them
WIDEST_PICTURE = 2_000  # pixels; more than paper shows at the width of a page
LARGEST_PICTURE = 40_000_000  # pixels: a larger picture is a trap, or a mistake
OPENING, CLOSING = ("{", r"\left", r"\begin"), ("}", r"\right", r"\end")
WEB = re.compile(r"(?:https?://|mailto:)[^\s\\\"<>]+", re.IGNORECASE)
LANGUAGE = re.compile(r"[a-z][a-z0-9+#-]{0,15}")
EMBEDDED = re.compile(r"data:image/(?:png|jpeg);base64,(.*)", re.DOTALL)
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control codes, and the signs that make a line read otherwise than it is stored.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufeff]")
NUMERIC = re.compile(r"\s*(?:[-+±≈~<>−]?\s*[$€£]?\d[\d,._ ]*(?:e[-+]?\d+)?\s*(?:%|[a-zA-Zµ/]{1,5})?"  # noqa: RUF001
                     r"|NaN|nan|inf|None|NaT|<NA>|[-–—])?\s*")  # fmt: skip  # noqa: RUF001

# What looks like a tag may be a token: <unk> and an <s> that nothing closes are text.
TAG = re.compile(r"</?([a-zA-Z][\w-]*)")
SILENT = {"script", "style", "iframe", "object", "template"}  # what they hold is not for readers
PAIRED = {"b", "strong", "i", "em", "s", "del", "sub", "sup", "u", "code", "kbd"}
PAIRED |= SILENT | {"head", "svg", "title"}  # unclosed these would swallow what follows
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
        self.formulas: dict[str, str] = {}  # and the place where each stands

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
                        f"{place} holds <{tag}>, which is left out with all that is in it"
                    )
        return blocks

    def _clean(self, item: Node, place: str):
        """Make a node safe, its children being so already."""
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
        if kind == "Header":  # the headings of the write-up are its problems
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
                    f"a formula of {place} is nested too deeply to be set, and is shown as it was"
                    f" typed: {content[1][:40]!a}"
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
            with suppress(ValueError):  # of base64 that is none
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
    """Write the codes that show nothing as Python writes them: `\\x00`."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def nesting(formula: str) -> int:
    """Count how many braces, \\left and \\right, or \\begin and \\end, enclose each other."""
    level = deepest = 0
    for sign in re.findall(r"\\(?:left|right|begin|end)\b|\\.|[{}]", formula, re.DOTALL):
        level += (sign in OPENING) - (sign in CLOSING)
        deepest = max(deepest, level)
    return deepest


def one_line(formula: str) -> str:
    """Write a formula in one line, without TeX's comments."""
    return " ".join(re.sub(r"(\\.)|%.*", r"\1", formula).split())


def printed(text: str) -> list[Node]:
    """Make a block of printed output; of a very long one, its beginning and the number of lines."""
    lines = plain(text[: LINES * LONGEST * 4]).expandtabs(8).strip("\n").split("\n")
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]} ..." for line in lines[:LINES]]
    more = text.rstrip("\n").count("\n") + 1 - LINES
    if more > 0:
        shown.append(f"... {more:,} more lines")
    return [listing("\n".join(shown))]


def _read(kind: str, text: str) -> list[Node]:
    """Read a text; raise ValueError or RecursionError where it is nested too deeply."""
    blocks = pandoc.read(plain(text), FORMATS[kind])
    if kind == "markdown" and _tags(blocks):
        blocks = _with_html(blocks)
    if depth(blocks) > DEEPEST:
        raise ValueError(f"the text is nested more than {DEEPEST} deep")
    return blocks


def _with_html(blocks: list[Node]) -> list[Node]:
    """Read the HTML in blocks of Markdown, where each tag is a node of its own.

    The blocks are written as HTML, which is read again. Code, formulas and pictures would not come
    through as they are: in their places go spans, each with the number of what it stands for.
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
    """Make text of what only looks like a tag, in a paragraph or as a block of HTML."""
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
    """Name the elements that are not closed as often as they are opened, or closed first."""
    slashes = {name: re.findall(rf"<(/?){name}\b", html, re.IGNORECASE) for name in PAIRED}
    return {
        name
        for name, found in slashes.items()
        if found and (found[0] == "/" or found.count("/") != found.count(""))
    }


def _tidy(content: list) -> list[Node]:
    """Make a table without attributes, not too long, and with its numbers to the right."""
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
    """Whether a column holds numbers, where each cell stands under its head."""
    cells = [row[1][place] for row in rows if len(row[1]) > place and _width(row) == len(row[1])]
    texts = [text_of(blocks) for *_, blocks in cells]
    return any(text.strip() for text in texts) and all(map(NUMERIC.fullmatch, texts))


class Album:
    """Pictures by the name of their file, in the order in which they were kept."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def keep(self, data: bytes) -> str | None:
        """Return the name for a picture, None where the bytes are no whole picture."""
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
    """Draw a picture anew, smaller where it is huge; None where it cannot be drawn.

    Only the pixels stay, turned as a camera says. What else a file holds, such as where a photo was
    taken or what follows the picture's end, is not for readers.
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
    except Exception:  # Pillow raises many kinds for what is no picture
        return None
    return done.getvalue()
