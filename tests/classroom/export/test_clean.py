"""What people write: markup is kept, and nothing acts, reaches out, or reads a file."""

import base64
import html.parser
import re
from io import BytesIO
from itertools import pairwise

import pandas as pd
import pytest
from export_folders import answered, cell, cleaned, learner, png, printed, shown
from PIL import Image
from pypdf import PdfReader

from workbook.classroom.export import clean, export, pandoc, pdf
from workbook.classroom.export.document import Document

CHECK = "application/vnd.workbook.check+json"
SECRET = "the-secret-in-a-file"
HOSTILE = r"""
A <script>alert("inline")</script> <b onclick="alert(1)">bold</b> [run](javascript:alert(1))
<a href="javascript:alert(2)">two</a> <unk> and <s> stay. ![far](https://evil.example/a.png)
![up](../../etc/passwd) ![there](SECRET_FILE) <img src=SECRET_FILE onerror="alert(3)">

<script>alert("block")</script> <iframe src="https://evil.example/"></iframe>
<style>body { background: url(https://evil.example/c.png) }</style>
<svg onload="alert(4)"><image href="SECRET_FILE"/></svg>
<meta http-equiv="refresh" content="0; url=https://evil.example/">

#read("SECRET_FILE") #include "SECRET_FILE" #import "@preview/evil:1.0.0": * #panic("x")
"; #read("SECRET_FILE") \"; #panic("y") $ #read("z") $ $\text{"); \#read("w")}$ // no comment /*

```{=typst}
#read("SECRET_FILE")
```

\input{SECRET_FILE} $$\input{SECRET_FILE}$$ `<script>alert(5)</script>`{=html}

# unicode2 {#unicode2 onclick="alert(6)"}

<details><summary>open</summary> <!-- open comment
"""


class Page(html.parser.HTMLParser):
    """Everything in a page that could act or reach out."""

    def __init__(self):
        super().__init__()
        self.tags = set()
        self.attributes = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The write-up of a folder by a stranger, and what the export said of it."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "secret.txt").write_text(SECRET)
    text = HOSTILE.replace("SECRET_FILE", str(root / "secret.txt"))
    table = "<table onclick='alert(7)'><tr><td><script>alert(8)</script>cell</td></tr></table>"
    learner(
        root / "study",
        answered("unicode1", "a", text),
        answered("unicode1", "b", "After it.", shown(html=f"{table}<img src='/etc/passwd'>")),
        answered("unicode2", "a", "Pictures.", shown(png="bm8gcGljdHVyZQ=="), shown(png="?")),
        answered("unicode2", "b", "`b'x'`", shown(html=text), shown(markdown=text)),
        answered("unicode2", "c", "`b'x'`", printed("\x1b]0;title\x07\x1b[31mred\x1b[0m \x00\x08")),
        passed={"softmax": 'def softmax():\n    """ ``` """\n#</code><script>alert(9)</script>\n'},
    )
    said = "\n".join(export(root / "study", to=root / "build"))
    assert "unicode1 (a) has a picture in its text" in said
    assert "unicode2 (a) shows a picture that cannot be read" in said
    return root / "build"


@pytest.mark.slow
def test_the_page_holds_nothing_that_acts_or_reaches_out(hostile):
    page = Page()
    text = (hostile / "writeup.html").read_text("utf-8")
    page.feed(text)
    assert not page.tags & {"script", "iframe", "object", "embed", "svg", "link", "base", "form"}
    targets = [value for key, value in page.attributes if key in ("src", "href", "action")]
    assert all(re.match(r"#|data:image/(png|jpeg);base64,", target) for target in targets)
    assert not [key for key, _ in page.attributes if key.startswith("on")]
    policies = [value for key, value in page.attributes if key == "http-equiv"]
    assert policies == ["Content-Security-Policy"] and "default-src 'none'" in text
    assert "&lt;unk&gt;" in text and "&lt;s&gt;" in text, "what is only text stays"
    assert "After it." in text, "what one answer leaves open does not swallow the next"
    assert r"red \x00\x08" in text and "\x1b" not in text


def test_no_file_was_read(hostile):
    for name in ("writeup.html", "writeup.md", "code.zip"):
        assert SECRET not in (hostile / name).read_bytes().decode(errors="replace")
    text = "".join(page.extract_text() for page in PdfReader(hostile / "writeup.pdf").pages)
    assert SECRET not in text and "root:" not in text
    assert '#read("' in text, "what looks like typst is text"


def test_markdown_points_to_nothing_but_its_own_pictures(hostile):
    text = (hostile / "writeup.md").read_text("utf-8")
    assert not re.search(r"!\[.*?\]\((?!figures/figure-\d\d\.png)", text)
    no_indented = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    outside_code = re.sub(r"(`+).*?\1(?!`)", "", no_indented, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<(script|iframe|img|svg|meta|style)\b", outside_code)


def as_html(text, kind="markdown"):
    return pandoc.render(cleaned(text, kind), "html")[0].strip()


TYPED = [
    ("&alpha; &lt;b&gt; &amp;", "<p>α &lt;b&gt; &amp;</p>"),
    ("<unk>, </s>, <s> and <b", "<p>&lt;unk&gt;, &lt;/s&gt;, &lt;s&gt; and &lt;b</p>"),
    ("2<sup>3</sup><!-- note --><br>*b*", "<p>2&lt;sup&gt;3&lt;/sup&gt;<br />\n<em>b</em></p>"),
    ("<think>\n*so*\n</think>", "<pre><code>&lt;think&gt;\n*so*\n&lt;/think&gt;</code></pre>"),
    ("[x](https://x.org) [y](x.org)", '<p><a href="https://x.org">x</a> y</p>'),
    ("! ![b](a)", "<p>! <em>[A picture: b]</em></p>"),
]


@pytest.mark.parametrize(("text", "page"), TYPED)
def test_html_in_markdown_is_shown_as_typed(text, page):
    assert as_html(text) == page


def formulas(text, cleaner=None):
    blocks = (cleaner or clean.Cleaner()).blocks("markdown", text, "here")
    return [item["c"][1] for item in pandoc.nodes_in(blocks) if item["t"] == "Math"]


FORMULAS = [
    (r"Spaces: $ \Delta + x $ and $z $.", [r"\Delta + x", "z"]),
    ("It is \\$ 5 and $ y\n$, $$ z $$", ["y", "z"]),
    (r"$a*b$ and *$c_d$*, $\text{if $x_{i_j}$}$", ["a*b", "c_d", r"\text{if $x_{i_j}$}"]),
    (r"\begin{align}a &= b\end{align}", [r"\begin{align}a &= b\end{align}"]),
    ("`$ x $`, `$` and [$y$](https://x.org/$a$)", ["y"]),
    ("```\n$ x $\n```\n\n- a\n\n      $ y $\n\n```\n$ z $", []),
    ("$ a\n\nb $", []),
]


@pytest.mark.parametrize(("text", "found"), FORMULAS)
def test_a_formula_is_what_jupyterlab_shows_as_one(text, found):
    assert formulas(text) == found
    shown = pandoc.text_of(cleaned(text))
    assert found or [shown.count(sign) for sign in "$xyz"] == [text.count(sign) for sign in "$xyz"]


@pytest.mark.parametrize("prices", ["5$ to 6$.", "$5, $6", "$5-$6", "It is $5 and $6"])
def test_a_formula_between_two_prices_is_shown_as_jupyterlab_does_and_named(prices):
    cleaner = clean.Cleaner()
    assert len(formulas(prices, cleaner)) == 1
    (note,) = cleaner.notes
    assert "if those are prices, write \\$ for a dollar" in note
    assert formulas(prices.replace("$", r"\$"), cleaner) == [] and cleaner.notes == [note]
    assert formulas(r"2$\times$3, $5 \%$ and $1$", cleaner) and cleaner.notes == [note]


BOMB = [("a", "x"), *((new, f"\\{old}") for old, new in pairwise("abcdefgh"))]


@pytest.mark.slow
def test_a_text_that_is_a_maze_is_still_set():
    mazes = [
        "> " * 1500 + "deep",
        "<div>\n\n" * 300 + "deep",
        "*a **b " * 1000,
        "- " * 500 + "list",
        "\n".join("  " * i + "- a" for i in range(50)),
        "[" * 3000,
        "`" * 50_000,
        "$ " * 2_000,
        "$" + "{" * 2000 + "x" + "}" * 2000 + "$",
        "$\\frac{a}{$ $\\left($ $#x$ $x_$ $\\text{$",
        "\ud800 lone \u202e backwards",
        "---\ntitle: taken\n---\n",
        "\\newcommand{\\x}{y} $\\x$",
        "{$}" * 30_000,
        "~~~\n" * 20_000,
        "$" + "".join(f"\\newcommand{{\\{a}}}{{{b * 10}}}" for a, b in BOMB) + "\\h$",
    ]
    cleaner = clean.Cleaner()
    blocks = [block for text in mazes for block in cleaner.blocks("markdown", text, "here")]
    blocks += cleaner.blocks("html", "<b>" * 5000 + "<table><tr>" * 50, "here")
    assert "lone" in pandoc.text_of(blocks) and "title: taken" in pandoc.text_of(blocks)
    assert pdf.pdf(Document("t", [], blocks, cleaner))[0].startswith(b"%PDF")


def test_a_table_of_pandas_has_its_cells_in_their_columns_and_no_style():
    index = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["k", "n"])
    text = as_html(pd.DataFrame({"v": [3, 4, 5, 6]}, index=index)._repr_html_(), "html")
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    cells = [re.findall(r"<t.[^>]*>(.*?)</t.>", row) for row in rows]
    assert cells[2:4] == [["a", "1", "3"], ["", "2", "4"]]
    assert "dataframe" not in text


def test_a_long_table_is_cut_and_says_so():
    rows = "".join(f"<tr><td>{i}</td></tr>" for i in range(100))
    table, more = cleaned(f"<table>{rows}</table>", "html")
    assert len(table["c"][4][0][3]) == clean.TABLE_ROWS and "60 more rows" in pandoc.text_of(more)
    (left_out,) = cleaned(f"<table><tr>{'<td>1</td>' * 2000}</tr></table>", "html")
    assert "2,000 columns" in pandoc.text_of(left_out)


def test_a_text_of_many_pages_is_cut_and_says_so():
    cleaner = clean.Cleaner()
    text = "word " * 30_000
    block, more = cleaner.blocks("markdown", text, "u")
    assert pandoc.text_of(block).count("word") == 20_000 and pandoc.text_of(more).strip() == "..."
    assert cleaner.notes == ["u has 150,000 characters: it is cut after 100,000"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            r"$\newcommand{\x}{y}$ " + "word " * 900 + "\n" * 90 + "last",
            "as it was typed: a formula",
        ),
        ("> " * 500 + "last", "nested too deeply"),
        ("last: the $\rho$ of a \frac", "write r before its quotes"),
    ],
)
def test_no_word_of_an_answer_is_lost(text, why):
    cleaner = clean.Cleaner()
    assert "last" in pandoc.text_of(cleaner.blocks("markdown", text, "here"))
    assert why in cleaner.notes[0]


def test_printed_output_loses_colours_and_overwritten_bars():
    (block,) = clean.printed("\x1b[1;31mred\x1b[0m\n 10%|#\r100%|####\ndone\x1b[K\n")
    assert block["c"][1] == "red\n100%|####\ndone"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_of_a_picture_only_what_is_seen_is_kept(kind):
    shades = Image.new("RGB", (4, 2), "navy")
    shades.putpixel((0, 0), (255, 255, 255))
    exif = Image.Exif()
    data = BytesIO()
    exif[0x0112], exif[0x010E] = 6, "SECRET"  # to be turned by 90 degrees; a description
    shades.save(data, kind, exif=exif, icc_profile=b"SECRET")
    stored = data.getvalue() + b"<script>SECRET</script>"
    assert stored.count(b"SECRET") > 1
    cleaner = clean.Cleaner()
    kept = cleaner.pictures[cleaner.keep(base64.b64encode(stored).decode())]
    with Image.open(BytesIO(kept)) as picture:
        shade = picture.convert("L").getpixel
        assert picture.size == (2, 4) and shade((1, 0)) > shade((0, 3)) + 50
    assert b"SECRET" not in kept
    assert cleaner.keep(png(8_000, 6_000)) is None, "it is too large"


def test_the_words_of_a_mark_are_words(tmp_path):
    """`&#26;` is the character that a mark begins with: it once ended the whole export."""
    text = "Look @&#26;7@ and $x^2$ and @&#x1a;0@ here"
    cells = [answered("unicode1", "a", text), answered("unicode1", "b", "", shown(html=text))]
    learner(tmp_path / "study", *cells)
    export(tmp_path / "study", to=tmp_path)
    page = (tmp_path / "writeup.md").read_text("utf-8")
    assert "Look" in page and "here" in page and page.count("x^2") == 1


FORMS = [r"$e^{iy}$", r"$$e^{iy}$$", r"\\(e^{iy}\\)", r"\\[e^{iy}\\]"]
FORMS += [r"\begin{equation}e^{iy}\end{equation}"]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_that_jupyterlab_sets_is_set_in_all_three(tmp_path, form):
    learner(tmp_path / "study", answered("unicode1", "a", f"It is {form} here."))
    said = export(tmp_path / "study", to=tmp_path)
    assert not any("cannot be" in line for line in said)
    page = (tmp_path / "writeup.md").read_text("utf-8")
    assert ("$" in page or "``` math" in page) and "e^{iy}" in page and r"\\" not in page
    assert "<math" in (tmp_path / "writeup.html").read_text("utf-8")
    pages = "".join(page.extract_text() for page in PdfReader(tmp_path / "writeup.pdf").pages)
    assert "iy}" not in pages


@pytest.mark.slow
@pytest.mark.parametrize("typed", [r"\\(group", r"\\[a-z]", r"C:\\(x86)", r"\\) and \\]"])
def test_brackets_after_a_backslash_stay(tmp_path, typed):
    learner(tmp_path / "study", answered("unicode1", "a", f"The pattern {typed} matches."))
    export(tmp_path / "study", to=tmp_path)
    page = (tmp_path / "writeup.md").read_text("utf-8")
    line = page.partition("The pattern")[2].partition("\n")[0]
    assert [line.count(each) for each in "()[]"] == [typed.count(each) for each in "()[]"], line


def test_what_cannot_be_encoded_ends_no_export(tmp_path):
    lone = "\udce9"
    passed = {"problem": "softmax", "part": None, "status": "correct", "source": "softmax = 1"}
    output = {"output_type": "display_data", "data": {CHECK: passed | {"trouble": lone}}}
    cells = [
        answered("unicode1", "a", f"Text {lone}", device=f"cpu {lone}"),
        cell("check", output, role="check", problem="softmax"),
    ]
    learner(tmp_path / "study", *cells)
    said = export(tmp_path / "study", to=tmp_path)
    assert not any(lone in line for line in said)


def test_a_list_that_begins_below_zero_is_set():
    assert cleaned('<ol start="-5"><li>one</li></ol>', "html")[0]["c"][0][0] == 0
