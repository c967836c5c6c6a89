"""Notebooks by strangers: nothing in them acts, reaches out, or reads a file."""

import html.parser
import json
import re
import socket

import pytest
from export_folders import answered, cell, learner, notebook, png, printed, shown
from pypdf import PdfReader

from workbook.export import clean, document, export, pdf, states, typesetting
from workbook.study.answers import MIME

SECRET = "the-secret-in-a-file"
HOSTILE = r"""
A <script>alert("inline")</script> <b onclick="alert(1)">bold</b> [run](javascript:alert(1))
[file](file:///etc/passwd) <a href="javascript:alert(2)">two</a> <unk> and <s> stay.
![up](../../etc/passwd) ![there](SECRET_FILE) ![far](https://evil.example/a.png)
<img src="https://evil.example/b.png" onerror="alert(3)"> <img src=SECRET_FILE>

<script>alert("block")</script>
<style>body { background: url(https://evil.example/c.png) }</style>
<iframe src="https://evil.example/"></iframe>
<svg onload="alert(4)"><image href="SECRET_FILE"/></svg>
<meta http-equiv="refresh" content="0; url=https://evil.example/">

#read("SECRET_FILE") #include "SECRET_FILE" #import "@preview/evil:1.0.0": * #panic("x")
"; #read("SECRET_FILE") \"; #panic("y") $ #read("z") $ $\text{"); \#read("w")}$ // no comment /*

```{=typst}
#read("SECRET_FILE")
```

```{=html}
<script>alert(5)</script>
```

.. include:: SECRET_FILE

{{< include SECRET_FILE >}}

\input{SECRET_FILE} $$\input{SECRET_FILE}$$

# unicode2 {#unicode2 onclick="alert(6)"}

[ref]: SECRET_FILE "title"

<details><summary>open</summary> <!-- open comment
"""


class Page(html.parser.HTMLParser):
    """Everything in a page that could act or reach out."""

    def __init__(self):
        super().__init__()
        self.tags, self.targets, self.handlers = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.targets += [value for key, value in attrs if key in ("src", "href", "action")]
        self.handlers += [key for key, _ in attrs if key.startswith("on")]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The write-up of a folder by a stranger, made while no network could be used."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "secret.txt").write_text(SECRET)
    text = HOSTILE.replace("SECRET_FILE", str(root / "secret.txt"))
    as_html = "<table onclick='alert(7)'><tr><td><script>alert(8)</script>cell</td></tr></table>"
    learner(
        root / "study",
        answered("unicode1", "a", text),
        answered("unicode1", "b", "After it.", shown(html=f"{as_html}<img src='/etc/passwd'>")),
        answered("unicode2", "a", "Pictures.", shown(png="bm8gcGljdHVyZQ=="), shown(png="?")),
        answered("unicode2", "b", "`b'x'`", shown(html=text), shown(markdown=text)),
        answered("unicode2", "c", "`b'x'`", printed("\x1b]0;title\x07\x1b[31mred\x1b[0m \x00\x08")),
        passed={"softmax": 'def softmax():\n    """ ``` """\n#</code><script>alert(9)</script>\n'},
    )

    def no_network(*_):
        raise AssertionError("the export opened a connection")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", no_network)
        said = export(root / "study", to=root / "build")
    return root / "build", said


def test_the_page_holds_nothing_that_acts_or_reaches_out(hostile):
    text = (hostile[0] / "writeup.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert not page.tags & {"script", "iframe", "object", "embed", "svg", "link", "base", "form"}
    assert not page.handlers
    assert all(re.match(r"#|data:image/(png|jpeg);base64,", target) for target in page.targets)
    assert text.count("http-equiv") == 1 and "default-src 'none'" in text


def test_no_file_was_read(hostile):
    for name in ("writeup.html", "writeup.md", "code.zip"):
        assert SECRET not in (hostile[0] / name).read_bytes().decode(errors="replace")
    text = "".join(page.extract_text() for page in PdfReader(hostile[0] / "writeup.pdf").pages)
    assert SECRET not in text and "root:" not in text
    assert '#read("' in text, "what looks like typst is text"


def test_markdown_points_to_nothing_but_its_own_pictures(hostile):
    text = (hostile[0] / "writeup.md").read_text(encoding="utf-8")
    assert all(
        re.match(r"figures/figure-\d\d\.png", t) for t in re.findall(r"!\[.*?\]\((.*?)\)", text)
    )
    no_indented = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    outside_code = re.sub(r"(`+).*?\1(?!`)", "", no_indented, flags=re.DOTALL)
    assert not re.search(r"<(script|iframe|img|svg|meta|style)\b", outside_code)


def test_what_is_only_text_stays(hostile):
    text = (hostile[0] / "writeup.html").read_text(encoding="utf-8")
    assert "&lt;unk&gt;" in text and "&lt;s&gt;" in text and "<strong>bold</strong>" in text
    assert "After it." in text, "what one answer leaves open does not swallow the next"
    assert r"red \x00\x08" in text and "\x1b" not in text


def test_what_is_left_out_is_named(hostile):
    said = "\n".join(hostile[1])
    assert "unicode1 (a) points to a picture that is not in the notebook" in said
    assert "unicode2 (a) shows a picture that cannot be read" in said
    assert "unicode1 (a) holds <script>" in said


@pytest.mark.parametrize(
    "text",
    [
        "> " * 1500 + "deep",
        "<b>" * 5000 + "open",
        "*a **b " * 2000,
        "- " * 500 + "list",
        "\n".join("  " * i + "- a" for i in range(50)),
        "[" * 3000,
        "$" + "{" * 2000 + "x" + "}" * 2000 + "$",
        "$\\frac{a}{$ $\\left($ $#x$ $x_$ $\\text{$",
        "\ud800 lone \u202e backwards",
        "---\ntitle: taken\n---\n",
        "\\newcommand{\\x}{y} $\\x$",
    ],
)
def test_a_text_that_is_a_maze_is_still_set(text):
    cleaner = clean.Cleaner([("markdown", text)], lambda line: None)
    blocks = cleaner.blocks("markdown", text, "here")
    assert pdf.pdf(document.Document("t", "s", [], blocks, clean.Album()))[0].startswith(b"%PDF")


@pytest.mark.parametrize(
    "formula",
    [
        r"\frac{1}{" * 160 + "x" + "}" * 160,  # these end typst
        r"\sqrt{" * 200 + "x" + "}" * 200,
        "x^{" * 25 + "x" + "}" * 25,  # for these pandoc takes twice as long with each one more
        r"x^\left(" * 25 + "x" + r"\right)" * 25,
        r"x^\begin{matrix}" * 25 + "x" + r"\end{matrix}" * 25,
    ],
)
def test_a_formula_that_is_nested_too_deeply_stands_as_typed_and_is_named(tmp_path, formula):
    learner(
        tmp_path / "study",
        answered("unicode1", "a", f"Before ${formula}$ and after, with $y^2$."),
        answered("unicode1", "b", "Another answer."),
    )
    said = export(tmp_path / "study", to=tmp_path / "build")
    (note,) = [line for line in said if "as it was typed" in line]
    assert "a formula of unicode1 (a) is nested too deeply" in note
    text = text_in(tmp_path / "build" / "writeup.pdf")
    assert "Before" in text and "and after" in text and "Another answer." in text
    assert formula[:7] in text


def text_in(path):
    return "".join(page.extract_text() for page in PdfReader(path).pages).replace("\u200b", "")


def test_a_formula_that_ends_typst_is_found_among_others(tmp_path):
    deep = r"\hat" * 5_000 + " x"  # in no braces, so that only typst can tell
    learner(
        tmp_path / "study",
        answered("unicode1", "a", "First $x^2$, then $y^2$."),
        answered("unicode1", "b", f"Before ${deep}$ and after, with $z^2$."),
    )
    said = export(tmp_path / "study", to=tmp_path / "build")
    text = text_in(tmp_path / "build" / "writeup.pdf")
    assert "First" in text and "Before" in text and "and after" in text
    # With a stack of another size it may be set, after all.
    if r"\hat\hat" in text:
        (note,) = [line for line in said if "as it was typed" in line]
        assert "a formula of unicode1 (b) cannot be set" in note


def test_an_answer_that_cannot_be_set_stands_as_typed_and_is_named(tmp_path, monkeypatch):
    compiled = typesetting.compiled

    def fragile(source, *job):
        if "#strike[" in source:
            raise ValueError("typst could not set the write-up")
        return compiled(source, *job)

    monkeypatch.setattr(typesetting, "compiled", fragile)
    learner(
        tmp_path / "study",
        answered("unicode1", "a", "**Bold** is fine."),
        answered("unicode1", "b", "This is ~~struck~~ out."),
        answered("unicode1", "c", "**Bold** here too."),
    )
    said = export(tmp_path / "study", to=tmp_path / "build")
    notes = [line for line in said if "as it was typed" in line]
    assert notes == ["  note: unicode1 (b) cannot be set, and stands as it was typed"]
    text = (tmp_path / "build" / "writeup.md").read_text(encoding="utf-8")
    assert text.count("**Bold**") == 2 and "    This is ~~struck~~ out." in text


def test_what_fails_without_any_answer_is_told(tmp_path, monkeypatch):
    def broken(*job):
        raise ValueError("typst could not set the write-up: no font")

    monkeypatch.setattr(typesetting, "compiled", broken)
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    with pytest.raises(ValueError, match="no font"):
        export(tmp_path / "study", to=tmp_path / "build")


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        {"problem": ["unicode1"]},
        {"problem": "no_such"},
        {"problem": "unicode1", "part": {}},
        {"problem": "unicode1", "part": "a", "text": 3},
        {"problem": "unicode1", "part": "a", "text": "x", "edition": "1999", "profile": "laptop"},
        {"problem": "unicode1", "part": None, "text": "x", "edition": "2025", "profile": "laptop"},
    ],
)
def test_a_record_that_is_none_of_ours_is_left_out_and_named(tmp_path, record):
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: record or "\x1b[2J"}}
    learner(tmp_path, cell("x", output))
    write_up = states.assess(tmp_path, "2025")
    assert not any(entry.answers for entry in write_up.entries)
    assert len(write_up.notes) == 1 and "cannot be read" in write_up.notes[0]
    assert write_up.notes[0].isprintable()


@pytest.mark.parametrize("junk", [None, 3, "x", {}, [None], [{"data": 3}], [{"data": {"a": [1]}}]])
def test_cells_of_any_shape_are_survived(tmp_path, junk):
    odd = {"cell_type": "code", "source": junk, "outputs": junk, "metadata": junk}
    mark = {"workbook": {"role": "answer", "problem": junk, "part": junk}}
    notebook(tmp_path / "a.ipynb", odd, {**odd, "metadata": mark}, {"cell_type": "code"})
    assert states.assess(tmp_path, "2025").found.answers == []


def test_a_huge_picture_is_refused_and_a_large_one_made_smaller():
    import base64

    album = clean.Album()
    assert album.keep(base64.b64decode(png(8_000, 6_000))) is None
    name = album.keep(base64.b64decode(png(4_000, 100)))
    assert album.size(name) == (2_000, 50)
    assert album.keep(base64.b64decode(png(4_000, 100))) == name, "one picture is kept once"


def test_of_a_picture_only_what_is_seen_is_kept():
    import base64
    from io import BytesIO

    from PIL import Image, PngImagePlugin

    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "SECRET")
    shades = Image.new("RGB", (4, 2), "navy")
    shades.putpixel((0, 0), (255, 255, 255))
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "SECRET"  # to be turned by 90 degrees; a description
    files = {"png": {"pnginfo": notes, "exif": exif, "icc_profile": b"SECRET"},
             "jpeg": {"comment": b"SECRET", "exif": exif, "icc_profile": b"SECRET"}}  # fmt: skip
    album = clean.Album()
    for kind, more in files.items():
        drawn = BytesIO()
        shades.save(drawn, kind, **more)
        data = drawn.getvalue() + b"<script>SECRET</script>"
        assert data.count(b"SECRET") > 2
        name = album.keep(data)
        assert b"SECRET" not in album.files[name] and album.size(name) == (2, 4)
        with Image.open(BytesIO(album.files[name])) as kept:
            assert kept.convert("L").getpixel((1, 0)) > kept.convert("L").getpixel((0, 3)) + 50
    plain = base64.b64decode(png())
    with Image.open(BytesIO(album.files[album.keep(plain)])) as kept:
        assert kept.tobytes() == Image.open(BytesIO(plain)).tobytes()


def test_a_notebook_of_many_megabytes_is_no_burden(tmp_path):
    noise = printed("a line that nobody needs\n" * 800_000)
    table = "<table>" + "<tr><td>1</td></tr>" * 100_000 + "</table>"
    found = learner(
        tmp_path,
        cell("x", noise),
        answered("unicode1", "a", "Yes.", noise, shown(html=table, plain="1")),
    )
    assert (found / "01_unicode.ipynb").stat().st_size > 40_000_000
    composed = document.compose(states.assess(found, "2025"))
    assert len(json.dumps(composed.blocks)) < 200_000
    assert "799,940 more lines" in json.dumps(composed.blocks)
