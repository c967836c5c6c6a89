"""Build read-only pages of the worked notebooks from their stored outputs: `make site`.

Nothing is run, and nothing is loaded from a network, neither here nor by a reader: pictures lie
inside the pages, formulas become MathML, which browsers draw themselves, and the fonts are those of
the reader's system. `layout.html` is around every page, `front.html` is the first one.
"""

import base64
import re
import secrets
import shutil
import sys
import tomllib
from hashlib import sha256
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

import jinja2
import nbformat
import pypandoc
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.formatters import HtmlFormatter

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TEMPLATES = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), trim_blocks=True)
# A browser runs the one script of ours and loads nothing, whatever a notebook holds.
POLICY = "default-src 'none'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
OPEN_CONTENTS = 'document.querySelector(".contents").open = innerWidth >= 1024;'
HEADING = re.compile(r'<h([23]) id="([^"]*)">(.*?)(?:<a class="anchor-link".*?</a>)?</h\1>')
# Chromium draws no root sign where the reader's system has no mathematical font.
ROOT_SIGN = (
    '<mrow><mo form="prefix" stretchy="false" lspace="0" rspace="0">√</mo>'
    r'<mrow class="radicand">\1</mrow></mrow>'
)


class Page(NamedTuple):
    """A notebook as a page."""

    name: str  # of the file, such as "02_bpe"
    title: str
    lead: str  # its first paragraph, in HTML
    minutes: str  # how long it takes, in HTML
    body: str
    contents: list[tuple[str, str, str]]  # level, id and text of each heading


class WithFormulas(IPythonRenderer):
    """Render Markdown, and leave a mark where a formula goes: pandoc gets all of them at once."""

    def __init__(self) -> None:
        super().__init__(escape=False)
        self.formulas: list[str] = []
        self.nonce = secrets.token_hex(8)  # no text holds a mark that is not ours

    def inline_math(self, body: str) -> str:
        return self.mark(f"${body.strip()}$")

    def block_math(self, body: str) -> str:
        return self.mark(f"$${body.strip()}$$")

    def mark(self, formula: str) -> str:
        """Keep a formula; return what stands in its place."""
        self.formulas.append(formula)
        return f"@@{self.nonce} {len(self.formulas) - 1}@@"

    def drawn(self, html: str) -> str:
        """Put the formulas where their marks are."""
        text = "\n\n".join(self.formulas)
        found = pypandoc.convert_text(text, "html", "markdown", extra_args=["--mathml"])
        drawn = re.findall(r"<p>(.*?)</p>", found, re.S)
        if len(drawn) != len(self.formulas):
            raise ValueError(f"pandoc drew {len(drawn)} of {len(self.formulas)} formulas")
        html = re.sub(rf"-?@@{self.nonce}-\d+@@", "", html)  # in the id of a heading
        html = re.sub(rf"@@{self.nonce} (\d+)@@", lambda mark: drawn[int(mark[1])], html)
        return re.sub(r"<msqrt>(.*?)</msqrt>", ROOT_SIGN, html)


def page(path: Path, address: str) -> Page:
    """Turn a stored notebook into a page. Raises: ValueError, which names it."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat and jsonschema raise many kinds
        raise ValueError(f"{path} cannot be read as a notebook ({error})") from error
    for cell in notebook.cells:
        cell.metadata["tags"] = [cell.metadata.get("workbook", {}).get("role", "prose")]
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):  # the words that stand for the picture
                output.metadata["image/png"] = {"alt": output.data.get("text/plain", "")}
    markdown = WithFormulas()
    exporter = HTMLExporter(
        template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True
    )
    exporter.register_filter(
        "markdown2html", lambda source: MarkdownWithMath(renderer=markdown).render(source)
    )
    body, _ = exporter.from_notebook_node(notebook)
    body = with_links(markdown.drawn(body), address).replace("\0", "")  # HTML has no NUL
    paragraphs = re.findall(r"<p>(.*?)</p>", body, re.S)
    minutes = next((text for text in paragraphs if "<strong>Time:</strong>" in text), None)
    if minutes is None:
        raise ValueError(f"{path}: expected a paragraph with **Time:** in its first cell")
    minutes = re.split(r"\s*<strong>Modules", minutes.split("</strong>", 1)[1])[0].strip()
    contents = [(level, name, unescape(text)) for level, name, text in HEADING.findall(body)]
    title = notebook.cells[0].source.partition("\n")[0].removeprefix("# ")
    return Page(path.stem, title, paragraphs[0], minutes, body, contents)


def with_links(html: str, address: str) -> str:
    """Lead links to other notebooks to their pages, and links to the code to the public address.

    Without an address, what was a link to the code is plain text.
    """
    html = re.sub(r'href="(\w+)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', html)
    if address:
        return html.replace('href="../', f'href="{escape(address)}/blob/HEAD/')
    return re.sub(r'<a href="\.\./[^"]*">(.*?)</a>', r"\1", html, flags=re.S)


def build(folder: Path, names: list[str]) -> None:
    """Write the front page, a page for each of these notebooks (none: all) and the style sheet."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    address = project["tool"]["workbook"]["address"]
    paths = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    pages = [page(path, address) for path in paths if not names or path.stem in names]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    layout = TEMPLATES.get_template("layout.html")
    front = TEMPLATES.get_template("front.html")
    known = {"pages": pages, "address": address, "about": project["project"]["description"]}
    hashed = base64.b64encode(sha256(OPEN_CONTENTS.encode()).digest()).decode()
    known |= {"script": OPEN_CONTENTS, "policy": f"{POLICY}; script-src 'sha256-{hashed}'"}
    for number, one in enumerate(pages):
        around = {"before": pages[number - 1 : number], "after": pages[number + 1 : number + 2]}
        html = layout.render(page=one, body=one.body, **around, **known)
        (folder / f"{one.name}.html").write_text(html, "utf-8")
    html = layout.render(page=None, body=front.render(**known), **known)
    (folder / "index.html").write_text(html, "utf-8")
    shutil.copy(ROOT / "docs" / "lab.png", folder)
    code = {style: HtmlFormatter(style=style) for style in ("default", "github-dark")}
    light, dark = (kind.get_style_defs(".highlight") for kind in code.values())
    style = (HERE / "style.css").read_text("utf-8")
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{dark}\n}}"
    (folder / "style.css").write_text(f"{light}\n{dark}\n{style}", "utf-8")


if __name__ == "__main__":
    try:
        build(ROOT / "build" / "site", sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f"make site: {error}")
    print(ROOT / "build" / "site" / "index.html")
