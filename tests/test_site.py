"""`make site`: pages that need no network, whose links lead somewhere, and that fit on a phone."""

import base64
import re
import runpy
from hashlib import sha256
from html import unescape
from urllib.parse import unquote

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from real_lab import ROOT, chromium, require_browser

from workbook.classroom.study import notebooks


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The front page, and the page of a notebook that is full of formulas."""
    folder = tmp_path_factory.mktemp("build") / "site"
    build = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["build"]
    build(folder, ["03_transformer"])
    return folder


def test_a_page_shows_what_is_stored_and_needs_nothing_else(site):
    html = (site / "03_transformer.html").read_text("utf-8")
    notebook = notebooks.read_notebook(ROOT / "notebooks" / "03_transformer.ipynb")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert html.count('<img alt="') == sum("image/png" in o.get("data", {}) for o in outputs) > 9
    assert html.count("<math") > 80 and "@@" not in html and "$$" not in html
    needed = re.findall(r'(?:src|srcset)="([^"]+)"|<link[^>]* href="([^"]+)"|@import', html)
    others = {one or other for one, other in needed if not one.startswith("data:image/")}
    assert others == {"style.css"} and "url(" not in (site / "style.css").read_text()


def test_every_link_leads_to_a_page_and_a_heading(site):
    known = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} | {"index"}
    for name in ("index.html", "03_transformer.html"):
        html = (site / name).read_text("utf-8")
        headings = set(map(unescape, re.findall(r' id="([^"]+)"', html)))
        for link in map(unescape, re.findall(r'<a [^>]*href="([^"]+)"', html)):
            page, _, heading = link.partition("#")
            if heading and page in ("", name):
                assert unquote(heading) in map(unquote, headings), link
            elif not link.startswith("https://"):
                assert page.removesuffix(".html") in known, link


@pytest.mark.slow
def test_nothing_is_wider_than_a_phone(site):
    """The narrowest of phones too: how wide a word is depends on the fonts that there are."""
    require_browser()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play, play.chromium.launch(executable_path=chromium()) as browser:
        for width in (320, 390):
            page = browser.new_page(viewport={"width": width, "height": 800})
            for path in site.glob("*.html"):
                page.goto(path.as_uri())
                needed = page.evaluate("document.documentElement.scrollWidth")
                assert needed == width, path.name


def test_a_browser_runs_our_script_alone_whatever_a_notebook_holds(site):
    html = (site / "03_transformer.html").read_text("utf-8")
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    hashed = base64.b64encode(sha256(script.encode()).digest()).decode()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1])
    assert policy.startswith("default-src 'none'; ") and f"script-src 'sha256-{hashed}'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


@pytest.mark.parametrize("cells", [[], [new_markdown_cell("# Title")]])
def test_a_notebook_that_is_no_page_is_named(tmp_path, cells):
    page = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["page"]
    nbformat.write(new_notebook(cells=cells), tmp_path / "10_mine.ipynb")
    with pytest.raises(ValueError, match=r"10_mine.ipynb: expected a paragraph with \*\*Time"):
        page(tmp_path / "10_mine.ipynb", "")


def test_the_words_of_a_mark_in_a_cell_are_words(tmp_path):
    page = runpy.run_path(str(ROOT / "docs" / "site" / "build.py"))["page"]
    cells = [new_markdown_cell("# Title\n\n**Time:** 1 minute\n\n@@formula 7@@ and $x$")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "10_mine.ipynb")
    body = page(tmp_path / "10_mine.ipynb", "").body
    assert "@@formula 7@@" in body and body.count("<math") == 1
