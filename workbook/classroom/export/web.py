"""The write-up as Markdown beside its pictures, and as one HTML file that needs nothing else."""

import base64
import re
from pathlib import Path

from workbook.classroom.export import pandoc
from workbook.classroom.export.document import SUBTITLE, Document
from workbook.classroom.export.pandoc import UNNAMED, Node, box, node, para, prose, rebuilt, text_of

BACKSLASH_AND_BRACKET = re.compile(r"\\(?=[(\[\])])")  # a backslash, and behind it a bracket
FIGURES_FOLDER = "figures"  # the folder beside the Markdown
DEEPER = "--shift-heading-level-by=1"  # below the title of the page


def as_markdown(document: Document) -> str:
    """Write GitHub's Markdown; it refers to its pictures in the folder `figures`."""
    headers = (item["c"] for item in pandoc.nodes_in(document.blocks) if item["t"] == "Header")
    slugs = {name: _slug(text_of(inlines)) for _, (name, *_), inlines in headers}

    def change(item: Node):
        kind = item["t"]
        content = item.get("c")
        if kind == "Div":
            return content[1]
        if kind == "Str":  # of a backslash and a bracket, pandoc would write the first alone
            words = BACKSLASH_AND_BRACKET.split(content)
            backslash = node("RawInline", ["markdown", "\\\\"])
            return [part for word in words for part in (backslash, node("Str", word))][1:]
        if kind == "Link" and content[2][0].startswith("#"):
            return pandoc.link(content[1], f"#{slugs[content[2][0][1:]]}")
        if kind == "Image":
            return pandoc.image(content[1], f"{FIGURES_FOLDER}/{content[2][0]}")
        if kind == "Figure":  # as a paragraph, and its caption as the next
            return [para(*content[2][0]["c"]), para(*content[1][1][0]["c"])]
        return item

    top = [node("Header", [0, UNNAMED, prose(document.title)]), para(*prose(SUBTITLE))]
    blocks = rebuilt([*top, *document.lead, *document.blocks], change)
    return pandoc.render(blocks, "gfm+tex_math_dollars", DEEPER)[0]


def _slug(heading: str) -> str:
    """Return the name that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def html(document: Document) -> str:
    """Write one page: pictures inside, formulas as MathML, no scripts.

    By its own policy, in `writeup.html`, a browser fetches nothing and runs nothing.
    """

    def change(item: Node):
        kind = item["t"]
        content = item.get("c")
        if kind == "Image":
            alt, (name, _) = content[1:]
            data = base64.b64encode(document.cleaner.pictures[name]).decode()
            return pandoc.image(alt, f"data:image/{name.rpartition('.')[2]};base64,{data}")
        if kind == "Table":
            return box("table", [item])
        return item

    blocks = rebuilt([*document.lead, *document.blocks], change)
    page = [f"--template={Path(__file__).with_name('writeup.html')}"]
    page += [f"--variable=title:{document.title}", f"--variable=subtitle:{SUBTITLE}"]
    return pandoc.render(blocks, "html5-task_lists", "--mathml", DEEPER, *page)[0]
