"""What a stranger wrote, as a syntax tree with nothing in it that could act or reach out.

Markup is kept: text, lists, tables, formulas, code, links to the web, pictures that are stored in
the notebook itself. Everything else goes: scripts, styles, frames, attributes, pictures that lie
elsewhere, links that are no web addresses, passages meant for one output format.
"""

import base64
import re
from bisect import bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from workbook.export import pandoc
from workbook.export.nodes import (
    PLAIN,
    Node,
    code,
    depth,
    listing,
    node,
    nodes_in,
    rebuilt,
    text_of,
    words,
)
from workbook.export.tables import tidy

MOST = 100_000  # characters of one text, some forty pages
DEEPEST = 30  # nodes inside each other, which typst bears; a list in a quote in a list needs 20
DEEPEST_FORMULA = 12  # braces inside each other; pandoc takes twice as long for each one more
LINES, LONGEST = 60, 2_000  # of a print-out: lines, and characters in one
OPENING, CLOSING = ("{", r"\left", r"\begin"), ("}", r"\right", r"\end")
WEB = re.compile(r"(?:https?://|mailto:)[^\s\\\"<>]+", re.IGNORECASE)
LANGUAGE = re.compile(r"[a-z][a-z0-9+#-]{0,15}")
EMBEDDED = re.compile(r"data:image/(?:png|jpeg);base64,(.*)", re.DOTALL)
ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
# Control codes, and the signs that make a line read otherwise than it is stored.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufeff]")
PAIRED = {
    "b": "Strong", "strong": "Strong", "i": "Emph", "em": "Emph", "s": "Strikeout",
    "del": "Strikeout", "sub": "Subscript", "sup": "Superscript", "u": "Underline",
}  # fmt: skip
FARTHEST = 400  # nodes between two tags in which further tags are looked for
TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)[^>]*>")
SILENT = {"script", "style", "iframe", "object", "template"}  # what they hold is not for readers
ENCLOSING = {*PAIRED, *SILENT, "code", "kbd"}
KNOWN = re.compile(
    "a|abbr|article|aside|audio|base|body|br|button|center|cite|dd|details|dfn|div|dl|dt|embed"
    "|figcaption|figure|font|footer|form|frame|h[1-6]|head|header|hr|html|img|input|label|li|link"
    "|main|mark|math|meta|nav|noscript|ol|option|p|picture|pre|q|section|select|small|source|span"
    "|summary|svg|table|tbody|td|textarea|tfoot|th|thead|title|tr|tt|ul|var|video"
)
SOURCE = re.compile(r"""\bsrc\s*=\s*(["']?)(.*?)\1(?=[\s/>])""", re.IGNORECASE | re.DOTALL)
ALT = re.compile(r"""\balt\s*=\s*(["'])(.*?)\1""", re.IGNORECASE | re.DOTALL)
KEPT = {
    "Str", "Emph", "Underline", "Strong", "Strikeout", "Superscript", "Subscript", "SmallCaps",
    "Quoted", "Code", "Space", "SoftBreak", "LineBreak", "Math", "Link", "Image", "Note", "Span",
    "Plain", "Para", "LineBlock", "CodeBlock", "BlockQuote", "OrderedList", "BulletList",
    "DefinitionList", "Header", "HorizontalRule", "Table", "Figure", "Div",
    "SingleQuote", "DoubleQuote", "InlineMath", "DisplayMath", "Decimal", "Period", "OneParen",
    "DefaultStyle", "DefaultDelim", "LowerAlpha", "UpperAlpha", "LowerRoman", "UpperRoman",
    "TwoParens", "Example", "AlignLeft", "AlignRight", "AlignCenter", "AlignDefault",
    "ColWidth", "ColWidthDefault",
}  # fmt: skip


@dataclass
class Cleaner:
    """Reads many texts at once: pandoc starts twice, however many there are."""

    keep_picture: Callable[[bytes], str | None]  # gives the name to show it by, None: no picture
    note: Callable[[str], None]  # told what was left out
    texts: dict[str, list[str]] = field(default_factory=lambda: {"markdown": [], "html": []})
    read: dict[str, list[list[Node] | None]] = field(default_factory=dict)
    formulas: dict[str, str] = field(default_factory=dict)  # and the place where each stands

    def add(self, kind: str, text: str) -> int:
        """A number for a text, by which `blocks` gives what it became."""
        if len(text) > MOST:
            self.note(f"a text of {len(text):,} characters is cut after {MOST:,}: {text[:40]!a}")
            text = f"{text[:MOST]} ..."
        self.texts[kind].append(plain(text))
        return len(self.texts[kind]) - 1

    def parse(self) -> None:
        """Read everything that was added."""
        self.read["markdown"] = _read(self.texts["markdown"], pandoc.MARKDOWN)
        raw = [
            item["c"][1]
            for item in nodes_in(self.read["markdown"])
            if item["t"] == "RawBlock" and item["c"][0] == "html"
        ]
        first = len(self.texts["html"])
        html = _read([*self.texts["html"], *raw], pandoc.HTML)
        self.read["html"], self._raw = html[:first], iter(html[first:])
        # In the order in which they were found, which is the order of `rebuilt`.
        with_html = rebuilt(self.read["markdown"], self._with_html)
        self.read["markdown"] = _without_tags(with_html)

    def blocks(self, kind: str, number: int, place: str) -> list[Node]:
        """The clean blocks of one text; `place` names it where something is left out."""
        found = self.read[kind][number]
        if found is None:
            self.note(f"{place} is nested too deeply to be read: it stands as it was typed")
            return printed(self.texts[kind][number])
        blocks = rebuilt(found, lambda item: self._clean(item, place))
        if kind == "markdown":  # the HTML that pandas shows has styles of its own
            before, after = self.texts[kind][number].lower(), text_of(blocks).lower()
            for tag in sorted(SILENT):
                if before.count(f"<{tag}") > after.count(f"<{tag}"):
                    self.note(f"{place} holds <{tag}>, which is left out with all that is in it")
        return blocks

    def _with_html(self, item: Node):
        """HTML among Markdown, read as what it is."""
        if item["t"] != "RawBlock" or item["c"][0] != "html":
            return [] if item["t"] == "RawBlock" else item
        blocks, tag = next(self._raw), TAG.fullmatch(item["c"][1].strip())
        if blocks is None:
            return printed(item["c"][1])
        is_text = tag and not KNOWN.fullmatch(tag[2].lower()) and tag[2].lower() not in ENCLOSING
        return [node("Para", [node("Str", tag[0])])] if is_text else blocks

    def _clean(self, item: Node, place: str):
        kind, content = item["t"], item.get("c")
        if kind not in KEPT:
            return []
        if kind == "Str":
            return node("Str", visible(content))
        if kind in ("Code", "CodeBlock"):
            (_, classes, _), text = content
            language = [name for name in classes[:1] if LANGUAGE.fullmatch(name)]
            text = visible(text.expandtabs(4)).strip("\n")
            return node(kind, [["", language if kind == "CodeBlock" else [], []], text])
        if kind == "Header":  # the headings of the write-up are its problems
            return node("Para", [node("Strong", content[2])])
        if kind == "Link":
            target = content[2][0]
            is_web = WEB.fullmatch(target)
            return node("Link", [PLAIN, content[1], [target, ""]]) if is_web else content[1]
        if kind == "Image":
            return self._image(content, place)
        if kind == "Math":
            if nesting(content[1]) > DEEPEST_FORMULA:
                self.note(
                    f"a formula of {place} is nested too deeply to be set, and stands as it was"
                    f" typed: {content[1][:40]!a}"
                )
                return code(visible(content[1]))
            self.formulas.setdefault(content[1], place)
        if kind == "Figure":
            return content[2]
        if kind in ("Div", "Span"):
            return content[1]
        if kind == "Table":
            return tidy(content)
        return item

    def _image(self, content: list, place: str) -> list[Node]:
        embedded = EMBEDDED.fullmatch(content[2][0])
        name = None
        if embedded:
            with suppress(ValueError):  # of base64 that is none
                name = self.keep_picture(base64.b64decode(embedded[1]))
        if name is None:
            self.note(f"{place} points to a picture that is not in the notebook: it is left out")
            named = [*words(":"), node("Space"), *content[1]] if content[1] else []
            said = [*words("[A picture that is not in the notebook"), *named, *words("]")]
            return [node("Emph", said)]
        return [node("Image", [PLAIN, content[1], [name, ""]])]


def plain(text: str) -> str:
    """A text without terminal colours, and with what `\\r` overwrote gone, as a terminal shows."""
    text = ANSI.sub("", text).replace("\r\n", "\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return visible("\n".join(lines))


def visible(text: str) -> str:
    """A text with the codes that show nothing written as Python writes them: `\\x00`."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def nesting(formula: str) -> int:
    """How many braces, or pairs of \\left and \\right, or \\begin and \\end, enclose each other."""
    level = deepest = 0
    for sign in re.findall(r"\\(?:left|right|begin|end)\b|\\.|[{}]", formula, re.DOTALL):
        level += (sign in OPENING) - (sign in CLOSING)
        deepest = max(deepest, level)
    return deepest


def printed(text: str) -> list[Node]:
    """A print-out as a block; of a very long one the beginning, and how much more there is."""
    lines = plain(text[: LINES * LONGEST * 4]).expandtabs(8).strip("\n").split("\n")
    shown = [line if len(line) <= LONGEST else f"{line[:LONGEST]} ..." for line in lines[:LINES]]
    more = text.rstrip("\n").count("\n") + 1 - LINES
    if more > 0:
        shown.append(f"... {more:,} more lines")
    return [listing("\n".join(shown))]


def _read(texts: Sequence[str], source: str) -> list[list[Node] | None]:
    """The blocks of each text, None for one that cannot be read, or is a maze."""
    try:
        found = pandoc.read(texts, source)
    except (ValueError, RecursionError):
        if len(texts) == 1:
            return [None]
        return [_read([text], source)[0] for text in texts]
    return [None if depth(blocks) > DEEPEST else blocks for blocks in found]


def _without_tags(tree):
    """The tree with HTML's tags inside lines taken for what they mean."""
    if isinstance(tree, list):
        return _paired([_without_tags(item) for item in tree])
    if isinstance(tree, dict) and "c" in tree:
        return {**tree, "c": _without_tags(tree["c"])}
    return tree


def _paired(items: list) -> list:
    """A line in which HTML's tags became what they mean: bold, a break, a picture, or nothing.

    What only looks like a tag, such as `<unk>`, is text.
    """
    found, here = [], 0
    closing: dict[str, list[int]] = {}  # where each name is closed, in order
    for place, item in enumerate(items):
        if (tag := _tag(item)) and tag[1]:
            closing.setdefault(tag[2].lower(), []).append(place)
    while here < len(items):
        item, here = items[here], here + 1
        if not _is_raw(item):
            found.append(item)
            continue
        tag = _tag(item)
        name = tag[2].lower() if tag else ""
        ends = closing.get(name, ())
        end = next(iter(ends[bisect(ends, here - 1) :][:1]), None)
        if name == "br":
            found.append(node("LineBreak"))
        elif name == "img":
            found.append(_picture(item["c"][1]))
        elif tag and not tag[1] and name in ENCLOSING and end is not None:
            inside, here = items[here:end], end + 1
            found += _enclosed(name, inside)
        elif tag and not KNOWN.fullmatch(name):
            found.append(node("Str", item["c"][1]))
    return found


def _picture(tag: str) -> Node:
    """What an `<img>` points to, as a picture that is yet to be looked into."""
    source, alt = SOURCE.search(tag), ALT.search(tag)
    described = words(alt[2]) if alt else []
    return node("Image", [PLAIN, described, [source[2] if source else "", ""]])


def _enclosed(name: str, inside: list[Node]) -> list[Node]:
    """What stands between two tags, as what they make of it."""
    if name in PAIRED:
        # A few levels deep markup is meant; a thousand levels are a trap.
        return [node(PAIRED[name], _paired(inside) if len(inside) < FARTHEST else inside)]
    return [] if name in SILENT else [code(text_of(inside))]


def _is_raw(item) -> bool:
    return isinstance(item, dict) and item.get("t") == "RawInline"


def _tag(item) -> re.Match | None:
    """The tag that an item of a line is, if it is one."""
    return TAG.match(item["c"][1]) if _is_raw(item) else None
