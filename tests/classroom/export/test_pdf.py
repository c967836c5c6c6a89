"""The pages themselves: the same bytes each time, every letter shown or named, text that fits."""

import re
from io import BytesIO
from unittest.mock import Mock

import matplotlib
import pytest
import typst
from export_folders import answered, cleaned, learner, png, shown
from pypdf import PdfReader

from workbook.classroom.export import clean, export, pandoc, pdf
from workbook.classroom.export.document import Document

SCRIPTS = "naÃ¯ve, ığüşöç, λόγος, слово; $x^2$"
FORMULA = r"$$\frac{QK^\top}{\sqrt{d_k}}$$"
CODE = "```python\ndef f(x):\n    return x\n```"


def test_two_exports_are_equal_to_the_byte_and_have_all_that_was_written(tmp_path):
    folder = learner(
        tmp_path / "study",
        answered("unicode1", "a", f"{SCRIPTS}\n\n{FORMULA}\n\n{CODE}"),
        answered("unicode1", "b", "A figure.", shown(png=png(), alt="A blue field.")),
        passed={"softmax": "def softmax(x, dim):\n    return x\n"},
    )
    exports = []
    for to in (tmp_path / "one", tmp_path / "two"):
        export(folder, to=to)
        exports.append({path.name: path.read_bytes() for path in to.rglob("*.*")})
    one, two = exports
    assert {"writeup.md", "writeup.html", "writeup.pdf", "code.zip", "figure-01.png"} == set(one)
    assert [name for name in one if one[name] != two[name]] == []
    reader = PdfReader(BytesIO(one["writeup.pdf"]))
    text = "\n".join(page.extract_text() for page in reader.pages)
    assert reader.metadata.title == "Write-up" and len(reader.pages) < 12
    for words in ("naÃ¯ve", "ığüşöç", "λόγος", "слово", "def f(x):", "A blue field."):
        assert words in text
    assert "Write-up" in reader.pages[0].extract_text()
    states = [re.findall(r"^\d \w+ .*○", page.extract_text(), re.M) for page in reader.pages[:3]]
    assert len(states[0]) > 10 and sum(map(len, states)) > 30, "the table begins on the first page"
    assert reader.outline and "/StructTreeRoot" in reader.root_object, "for screen readers"
    page = one["writeup.html"].decode()
    assert "<mfrac>" in page and page.count("<img") == 1 and 'alt="A blue field."' in page


def document(*blocks):
    return Document("Title", [], list(blocks), clean.Cleaner())


def text_in(done):
    return "\n".join(page.extract_text() for page in PdfReader(BytesIO(done)).pages)


def test_letters_without_a_font_are_named_and_never_boxes():
    private = "\U000f0000"  # a letter for private use
    done, (note,) = pdf.pdf(document(*cleaned(f"ü{private} שלום مرحبا `{private}`")))
    assert text_in(done).count("[U+F0000]") == 2 and private not in text_in(done)
    assert "no font here has U+F0000: the PDF shows numbers" in note and "fonts-noto-cjk" in note


def test_the_fonts_of_matplotlib_and_of_the_system_are_asked_for_letters(monkeypatch, tmp_path):
    class Found:
        path = None

    monkeypatch.setattr(typst.Fonts, "fonts", lambda self: [Found])
    asked = "a\u200d\ufe0f\u0301\x85é שלום مرحبا λόγος नमस्ते ⑳ 数🦊"
    assert pdf.missing_letters(asked) == ["数", "🦊"]
    Found.path = f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    monkeypatch.setattr(pdf, "find_spec", lambda name: Mock(origin=tmp_path / name))
    assert pdf.missing_letters("λ 数") == ["数"]


def test_a_formula_that_cannot_be_set_stands_as_it_was_typed():
    done, (note,) = pdf.pdf(document(*cleaned(r"Here: $\nosuch{x}$ and $x^2$.")))
    assert note.endswith(r"is shown as it was typed: \nosuch{x}") and r"\nosuch{x}" in text_in(done)
    blocks = cleaned("A $$\\nosuch{x} % why\n= // 3$$ b.\n\nA $$2 % why\n= 3$$ b.")
    done, (note,) = pdf.pdf(document(*blocks))
    assert note.endswith(r"typed: \nosuch{x} = // 3") and "= // 3" in text_in(done)
    assert PdfReader(BytesIO(done)).outline == [], "no line of a formula is taken for a heading"


def test_what_pandoc_names_unlike_typst_is_set_all_the_same():
    formula = r"$\dot a \odot \ddot b \cdot c \bigodot \boxdot \ominus - \otimes \bigotimes \times$"
    done, notes = pdf.pdf(document(*cleaned(rf"{formula} $\cap \bigcap \sqcap \Cap$")))
    assert notes == [] and all(sign in text_in(done) for sign in "⊙⊡⊖−⊗×∩⊓⋒")  # noqa: RUF001


def test_very_long_words_may_be_broken():
    done = text_in(pdf.pdf(document(pandoc.para(*pandoc.prose("x" * 300))))[0])
    assert max(len(line.replace("\u200b", "")) for line in done.splitlines()) < 120


def test_an_answer_that_cannot_be_set_stands_as_typed_among_others_and_is_named(tmp_path):
    formulas = {
        "a": r"\frac{1}{" * 160 + "x" + "}" * 160,  # these end typst
        "b": "x^{" * 25 + "x" + "}" * 25,  # for these pandoc takes twice as long with each one more
        "c": r"\hat" * 5_000 + " x",  # in no braces, so that only typst can tell
    }
    said = {part: f"Before ${deep}$ and after {part}, $y^2$." for part, deep in formulas.items()}
    cells = [answered("unicode1", part, text) for part, text in said.items()]
    folder = learner(tmp_path / "study", *cells, answered("unicode2", "a", "Then **bold**."))
    notes = "\n".join(export(folder, to=tmp_path / "build"))
    text = text_in((tmp_path / "build" / "writeup.pdf").read_bytes()).replace("\u200b", "")
    assert text.count("Before") == 3 and "Then bold." in text
    for part, formula in formulas.items():
        assert f"and after {part}" in text
        # With a stack of another size typst may set the last one, after all.
        if part != "c" or formula[:8] in text:
            assert formula[:7] in text
            assert re.search(rf"unicode1 \({part}\) .*is shown as it was typed", notes)


def test_what_fails_without_any_answer_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(typst, "compile", Mock(side_effect=typst.TypstError("no font")))
    learner(tmp_path / "study", answered("unicode1", "a", "It is NUL."))
    with pytest.raises(ValueError, match="no font"):
        export(tmp_path / "study", to=tmp_path / "build")
    assert not (tmp_path / "build").exists()
