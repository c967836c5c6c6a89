"""The pages themselves: the same bytes each time, every letter shown or named, text that fits."""

import re
import zipfile
from io import BytesIO

import pytest
from export_folders import answered, learner, png, printed, shown
from pypdf import PdfReader

from workbook import config
from workbook.export import clean, codezip, export, pandoc, pdf, states
from workbook.export.document import Document

SCRIPTS = "naÃ¯ve, ığüşöç, λόγος, слово; $x^2$"
FORMULA = r"$$\frac{QK^\top}{\sqrt{d_k}}$$"
CODE = "```python\ndef f(x):\n    return x\n```"


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """The write-up of one folder, made twice in different places."""
    root = tmp_path_factory.mktemp("twice")
    folder = learner(
        root / "study",
        answered("unicode1", "a", f"{SCRIPTS}\n\n{FORMULA}\n\n{CODE}"),
        answered("unicode1", "b", "A figure.", shown(png=png(), alt="A blue field.")),
        passed={"softmax": "def softmax(x, dim):\n    return x\n"},
    )
    for name in ("one", "two"):
        export(folder, to=root / name)
    return root / "one", root / "two"


def document(*blocks):
    return Document("Title", "Subtitle", [], list(blocks), clean.Album())


def text_in(done):
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(done)).pages)


def cleaned(text, kind="markdown"):
    return clean.Cleaner([(kind, text)], lambda line: None).blocks(kind, text, "here")


@pytest.mark.parametrize("name", ["writeup.md", "writeup.html", "writeup.pdf", "code.zip"])
def test_two_exports_are_equal_to_the_byte(twice, name):
    one, two = (folder / name for folder in twice)
    assert one.read_bytes() == two.read_bytes()


def test_the_pdf_has_text_title_bookmarks_and_described_figures(twice):
    reader = PdfReader(twice[0] / "writeup.pdf")
    text = "\n".join(page.extract_text() for page in reader.pages)
    assert reader.metadata.title == "Write-up" and len(reader.pages) < 12
    for words in ("naÃ¯ve", "ığüşöç", "λόγος", "слово", "def f(x):", "A blue field."):
        assert words in text
    assert "Write-up" in reader.pages[0].extract_text()
    assert len(re.findall(r"^\w+ .*unanswered", reader.pages[1].extract_text(), re.M)) > 30
    assert reader.outline


def test_formulas_are_mathml_in_the_page(twice):
    text = (twice[0] / "writeup.html").read_text(encoding="utf-8")
    assert "<mfrac>" in text and "<msqrt>" in text
    assert text.count("<img") == 1 and 'alt="A blue field."' in text


def test_the_archive_of_the_reference_is_the_package():
    write_up = states.assess(config.repository() / "notebooks", "2025")
    with zipfile.ZipFile(BytesIO(codezip.code_zip(write_up))) as archive:
        names = archive.namelist()
        assert (
            names == sorted(names)
            and "workbook/tokenization/bpe.py" in names
            and "LICENSE" in names
        )
        assert not any("__pycache__" in name or "notebooks" in name.split("/") for name in names)
        assert {entry.date_time for entry in archive.infolist()} == {codezip.LONG_AGO}
        source = (config.repository() / "workbook" / "tokenization" / "bpe.py").read_text(
            encoding="utf-8"
        )
        assert archive.read("workbook/tokenization/bpe.py").decode() == source


def test_letters_without_a_font_are_named_and_never_boxes(monkeypatch):
    import typst

    bare = typst.Fonts(include_system_fonts=False)
    monkeypatch.setattr(pdf, "_fonts", lambda: bare)
    what = document(pandoc.para(*pandoc.words("ü 数 😀 שלום"), pandoc.code("数")))
    missing = pdf.unshown(what)
    assert {"数", "😀"} <= set(missing) and "ü" not in missing
    text = text_in(pdf.pdf(what, missing)[0])
    assert "[U+6570]" in text and "[U+1F600]" in text and "数" not in text
    said = "\n".join(pdf.complaints(missing))
    assert "U+6570 CJK UNIFIED IDEOGRAPH-6570" in said and "fonts-noto-cjk" in said
    assert "U+1F600 GRINNING FACE" in said


def test_a_private_letter_is_missing_everywhere_and_marks_are_not_asked_for():
    assert pdf.without_font("a\U000f0000\u200d\ufe0f\u0301\x85é", pdf._fonts()) == ["\U000f0000"]


def test_hebrew_and_arabic_need_no_font_of_the_system(monkeypatch):
    import typst

    here = {font.path for font in pdf._fonts().fonts() if font.path and "mpl-data" in font.path}
    fonts = typst.Fonts(include_system_fonts=False, font_paths=sorted(here))
    assert pdf.without_font("שלום مرحبا λόγος", fonts) == []


def test_a_paragraph_that_begins_in_hebrew_reads_from_the_right():
    assert pdf.reads_from_the_right(pandoc.words("12 שלום"))
    assert not pdf.reads_from_the_right(pandoc.words("the word שלום"))
    markup, _ = pdf._markup(document(*cleaned("שלום עולם")), ())
    assert "dir: rtl" in markup


def test_a_formula_that_cannot_be_set_stands_as_it_was_typed():
    done, refused = pdf.pdf(document(*cleaned(r"Here: $\nosuch{x}$ and $x^2$.")))
    assert refused == [r"\nosuch{x}"] and r"\nosuch{x}" in text_in(done)


def test_long_lines_of_code_go_on_below_with_an_arrow():
    text = "    value = " + " ".join(f"word{i}" for i in range(40))
    lines = pdf.wrapped(text).split("\n")
    assert all(pdf.letters(line) <= pdf.COLUMNS for line in lines) and len(lines) > 2
    assert all(line.startswith(f"    {pdf.GOES_ON}") for line in lines[1:])
    assert "".join(line.replace(f"    {pdf.GOES_ON}", "") for line in lines) == text
    assert pdf.wrapped("数" * 80).count("\n") == 1, "a Chinese sign is two letters wide"


def test_very_long_words_may_be_broken():
    done = text_in(pdf.pdf(document(pandoc.para(*pandoc.words("x" * 300))))[0])
    assert max(len(line.replace("\u200b", "")) for line in done.splitlines()) < 120


def test_a_wide_table_is_set_in_pieces_that_repeat_its_first_column():
    head = "".join(f"<th>column {i}</th>" for i in range(30))
    rows = "".join(f"<tr><th>row {r}</th>{'<td>0.12345</td>' * 29}</tr>" for r in range(3))
    (table,) = cleaned(f"<table><thead><tr>{head}</tr></thead>{rows}</table>", "html")
    pieces = pdf.split(table, pdf.MOST_LETTERS)
    assert len(pieces) > 1
    for piece in pieces:
        assert sum(pdf.widths(piece)) <= pdf.MOST_LETTERS
        assert "row 2" in pandoc.text_of(piece)


def test_a_long_table_is_cut_and_says_so():
    rows = "".join(f"<tr><td>{i}</td></tr>" for i in range(100))
    table, more = cleaned(f"<table>{rows}</table>", "html")
    assert len(table["c"][4][0][3]) == clean.ROWS and "60 more rows" in pandoc.text_of(more)


def test_print_outs_lose_colours_and_overwritten_bars():
    (block,) = clean.printed("\x1b[1;31mred\x1b[0m\n 10%|#\r100%|####\ndone\x1b[K\n")
    assert block["c"][1] == "red\n100%|####\ndone"
    assert printed("x")["output_type"] == "stream"
