"""The write-up as Markdown beside its pictures, and as one HTML file that needs nothing else."""

import base64
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from workbook.export import pandoc, pdf
from workbook.export.document import Document
from workbook.export.pandoc import PLAIN, Node, node, nodes_in, para, rebuilt, text_of, words

PICTURES = "figures"  # the folder beside the Markdown
DEEPER = "--shift-heading-level-by=1"  # below the title of the page
# Nothing is fetched and nothing runs, whatever a browser finds in the page.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<p class="subtitle">{subtitle}</p>
<h1>{title}</h1>
</header>
<main>
{body}</main>
</body>
</html>
"""


def markdown(document: Document) -> str:
    """Write GitHub's Markdown; it refers to its pictures in the folder `figures`."""
    slugs = {
        item["c"][1][0]: _slug(text_of(item["c"][2]))
        for item in nodes_in(document.blocks)
        if item["t"] == "Header"
    }

    def change(item: Node):
        kind, content = item["t"], item.get("c")
        if kind == "Div":
            return content[1]
        if kind == "Link" and content[2][0].startswith("#"):
            return node("Link", [PLAIN, content[1], [f"#{slugs[content[2][0][1:]]}", ""]])
        if kind == "Table" and "states" in content[0][1]:
            return _of_lines(item)
        if kind == "Image":
            return node("Image", [PLAIN, content[1], [f"{PICTURES}/{content[2][0]}", ""]])
        if kind == "Figure":  # as a paragraph, and its caption as the next
            return [para(*content[2][0]["c"]), para(*content[1][1][0]["c"])]
        return item

    top = [node("Header", [0, PLAIN, words(document.title)]), para(*words(document.subtitle))]
    blocks = rebuilt([*top, *document.lead, *document.blocks], change)
    return pandoc.write(blocks, "gfm+tex_math_dollars", DEEPER)[0]


def _slug(heading: str) -> str:
    """Return the name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _of_lines(table: Node) -> Node:
    """Make a table of one line per row for Markdown, without the rows that group others."""
    attributes, caption, columns, head, [body], foot = table["c"]
    columns = [[alignment, node("ColWidthDefault")] for alignment, _ in columns]
    body = [*body[:3], [row for row in body[3] if len(row[1]) == len(columns)]]
    return node("Table", [attributes, caption, columns, head, [body], foot])


def html(document: Document, missing: Sequence[str] = ()) -> str:
    """Write one page: pictures inside, formulas as MathML, no scripts.

    A letter that is `missing` on this machine has its number beside it: another may show it.
    """

    def change(item: Node):
        kind, content = item["t"], item.get("c")
        if kind == "Image":
            alt, (name, _) = content[1:]
            data = base64.b64encode(document.album.files[name]).decode()
            form = "png" if name.endswith("png") else "jpeg"
            return node("Image", [PLAIN, alt, [f"data:image/{form};base64,{data}", ""]])
        if kind == "Str":
            return node("Str", pdf.numbered(content, missing, "{}"))
        if kind in ("Code", "CodeBlock"):
            return node(kind, [content[0], pdf.numbered(content[1], missing, "{}")])
        if kind == "Table":
            return node("Div", [["", ["table"], []], [item]])
        if kind in ("Para", "Plain") and pdf.reads_from_the_right(content):
            return node("Div", [["", [], [["dir", "rtl"]]], [item]])
        return item

    blocks = rebuilt([*document.lead, *document.blocks], change)
    body, _ = pandoc.write(blocks, "html5", "--mathml", DEEPER)
    style = Path(__file__).with_name("writeup.css").read_text(encoding="utf-8")
    title, subtitle = escape(document.title), escape(document.subtitle)
    return PAGE.format(policy=POLICY, style=style, title=title, subtitle=subtitle, body=body)
