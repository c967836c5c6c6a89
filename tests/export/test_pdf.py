"""The pages themselves: the same bytes each time, every letter shown or named, text that fits."""

import re
from io import BytesIO

import pytest
import typst
from export_folders import answered, cleaned, learner, png, shown
from pypdf import PdfReader

from workbook.export import clean, export, pandoc, pdf, typesetting
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


def test_two_exports_are_equal_to_the_byte(twice):
    one, two = ({path.name: path.read_bytes() for path in folder.rglob("*.*")} for folder in twice)
    assert {"writeup.md", "writeup.html", "writeup.pdf", "code.zip", "figure-01.png"} == set(one)
    assert [name for name in one if one[name] != two[name]] == []


def test_the_pdf_has_text_title_bookmarks_and_described_figures(twice):
    reader = PdfReader(twice[0] / "writeup.pdf")
    text = "\n".join(page.extract_text() for page in reader.pages)
    assert reader.metadata.title == "Write-up" and len(reader.pages) < 12
    for words in ("naÃ¯ve", "ığüşöç", "λόγος", "слово", "def f(x):", "A blue field."):
        assert words in text
    assert "Write-up" in reader.pages[0].extract_text()
    assert len(re.findall(r"^\w+ .*unanswered", reader.pages[1].extract_text(), re.M)) > 30
    assert reader.outline and "/StructTreeRoot" in reader.root_object, "for screen readers"


def test_formulas_are_mathml_in_the_page(twice):
    text = (twice[0] / "writeup.html").read_text(encoding="utf-8")
    assert "<mfrac>" in text and "<msqrt>" in text
    assert text.count("<img") == 1 and 'alt="A blue field."' in text


def test_letters_without_a_font_are_named_and_never_boxes(monkeypatch):
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


def test_marks_are_not_asked_for_and_hebrew_and_arabic_need_no_font_of_the_system():
    here = {font.path for font in pdf._fonts().fonts() if font.path and "mpl-data" in font.path}
    fonts = typst.Fonts(include_system_fonts=False, font_paths=sorted(here))
    text = "a\U000f0000\u200d\ufe0f\u0301\x85é שלום مرحبا λόγος"
    assert pdf.without_font(text, fonts) == ["\U000f0000"], "a letter for private use"


def test_a_paragraph_that_begins_in_hebrew_reads_from_the_right():
    assert pdf.reads_from_the_right(pandoc.words("12 שלום"))
    assert not pdf.reads_from_the_right(pandoc.words("the word שלום"))
    markup, _ = pdf._markup(document(*cleaned("שלום עולם")), ())
    assert "dir: rtl" in markup


def test_a_formula_that_cannot_be_set_stands_as_it_was_typed():
    done, refused = pdf.pdf(document(*cleaned(r"Here: $\nosuch{x}$ and $x^2$.")))
    assert refused == [r"\nosuch{x}"] and r"\nosuch{x}" in text_in(done)
    blocks = cleaned("A $$\\nosuch{x} % why\n= // 3$$ b.\n\nA $$2 % why\n= 3$$ b.")
    markup, refused = pdf._markup(document(*blocks), ())
    assert refused == [r"\nosuch{x} = // 3"] and "#raw(" in markup and "\n=" not in markup


def test_what_pandoc_names_unlike_typst_is_set_all_the_same():
    formula = r"$\dot a \odot \ddot b \cdot c \bigodot \boxdot \ominus - \otimes \bigotimes \times$"
    done, refused = pdf.pdf(document(*cleaned(rf"{formula} $\cap \bigcap \sqcap \Cap$")))
    assert refused == [] and all(sign in text_in(done) for sign in "⊙⊡⊖−⊗×∩⊓⋒")  # noqa: RUF001


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


def test_a_formula_that_is_nested_too_deeply_stands_as_typed_and_is_named(tmp_path):
    formulas = [
        r"\frac{1}{" * 160 + "x" + "}" * 160,  # these end typst
        r"\sqrt{" * 200 + "x" + "}" * 200,
        "x^{" * 25 + "x" + "}" * 25,  # for these pandoc takes twice as long with each one more
        r"x^\left(" * 25 + "x" + r"\right)" * 25,
        r"x^\begin{matrix}" * 25 + "x" + r"\end{matrix}" * 25,
    ]
    places = [("unicode1", "a"), ("unicode1", "b"), ("unicode1", "c"), ("unicode2", "a")]
    places.append(("unicode2", "b"))
    said = [f"Before{n} ${formula}$ and after{n}, $y^2$." for n, formula in enumerate(formulas)]
    cells = [answered(*place, text) for place, text in zip(places, said, strict=True)]
    notes = "\n".join(export(learner(tmp_path / "study", *cells), to=tmp_path / "build"))
    assert notes.count("as it was typed") == len(formulas)
    text = text_in((tmp_path / "build" / "writeup.pdf").read_bytes()).replace("\u200b", "")
    for n, (place, formula) in enumerate(zip(places, formulas, strict=True)):
        assert f"a formula in {place[0]} ({place[1]}) is nested too deeply" in notes
        assert f"Before{n}" in text and f"after{n}" in text and formula[:7] in text


def test_a_formula_that_ends_typst_is_found_among_others(tmp_path):
    deep = r"\hat" * 5_000 + " x"  # in no braces, so that only typst can tell
    learner(
        tmp_path / "study",
        answered("unicode1", "a", "First $x^2$, then $y^2$."),
        answered("unicode1", "b", f"Before ${deep}$ and after, with $z^2$."),
    )
    said = export(tmp_path / "study", to=tmp_path / "build")
    text = text_in((tmp_path / "build" / "writeup.pdf").read_bytes())
    assert "First" in text and "Before" in text and "and after" in text
    # With a stack of another size it may be set, after all.
    if r"\hat\hat" in text:
        (note,) = [line for line in said if "as it was typed" in line]
        assert "a formula in unicode1 (b) cannot be typeset" in note


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
    assert notes == ["  note: unicode1 (b) cannot be typeset, and is shown as it was typed"]
    text = (tmp_path / "build" / "writeup.md").read_text(encoding="utf-8")
    assert text.count("**Bold**") == 2 and "    This is ~~struck~~ out." in text


def test_what_fails_without_any_answer_is_told(tmp_path, monkeypatch):
    def broken(*job):
        raise ValueError("typst could not set the write-up: no font")

    monkeypatch.setattr(typesetting, "compiled", broken)
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    with pytest.raises(ValueError, match="no font"):
        export(tmp_path / "study", to=tmp_path / "build")
