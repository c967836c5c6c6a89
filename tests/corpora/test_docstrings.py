"""What `docstrings` reads from small libraries made here, and from those that are installed."""

from itertools import islice
from pathlib import Path

import pytest

from workbook import config
from workbook.corpora import corpora, docstrings
from workbook.corpora.docstrings import harvest

PROSE = "This paragraph is long enough to count as one, and it says nothing about {}."
MANY = " ".join(PROSE.format(word) for word in ("apples", "pears", "plums", "quinces"))


def library(folder, files):
    """A library of these files: path below the folder -> text."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return folder


@pytest.fixture
def document(tmp_path):
    """The text of a module with this source."""

    def read(source):
        return harvest([library(tmp_path / "lib", {"json.py": source})])["lib.json"]

    return read


def test_a_module_becomes_one_document_with_its_names_as_headings(document):
    source = f'''"""{MANY}"""
class Decoder(object):
    def decode(self, text: str, *rest, strict=True, **options):
        """Return what the text stands for."""
    def undocumented(self): ...
if True:
    def loads(s, /, *, cls=None):
        """Short for Decoder().decode(s)."""
        def inner():
            """Nobody can call this one."""
'''
    assert document(source) == (
        f"lib.json\n\n{MANY}\n\n"
        "Decoder.decode(text, *rest, strict, **options)\n\nReturn what the text stands for.\n\n"
        "loads(s, cls)\n\nShort for Decoder().decode(s).\n"
    )


def test_what_comes_twice_stays_with_the_longest_document(tmp_path):
    shared = PROSE.format("what both share")
    long = f"{MANY}\n\n{shared}\n\nExample:\n\n{MANY[:250]}"
    short = f"{MANY[90:]}\n\n{shared}\n\nExample:"
    first = library(tmp_path / "a", {"b.py": f'"""{short}"""', "c.py": f'"""{long}"""'})
    second = library(tmp_path / "b", {"c.py": f'"""{long}"""'})
    documents = harvest([first, second])
    assert documents.keys() == {"a.b", "a.c"}
    assert shared in documents["a.c"]
    assert shared not in documents["a.b"]
    assert "Example:" in documents["a.b"], "short paragraphs are nobody's property"
    assert harvest([second, first]) == documents, "whatever the order of the libraries"


def test_tests_and_broken_files_are_left_out(tmp_path):
    text = f'"""{MANY}"""'
    files = {"tests/test_a.py": text.upper(), "no-module/a.py": text.swapcase(), "a.py": text}
    files |= {"b.py": "print 'Python 2'", "c.py": "# coding: no-such-coding\n", "d.py": "\0"}
    assert harvest([library(tmp_path / "lib", files)]).keys() == {"lib.a"}


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        (r"\tTab, \0 nul, \f feed, \ud800 half, \d  ", r"Tab,  nul,  feed,  half, \d"),
        # Python 3.13 and older ones take different blanks for an indentation.
        ("\u00a0   One.\n\n    \u2003 Two\u00a0words.\u00a0", "One.\n\n  Two words."),
        (f"{'+-------+-----+ ' * 4}\n\n>>> loads('[1]')\n[1]", ">>> loads('[1]')\n[1]"),
    ],
    ids=["odd characters", "all kinds of blanks", "a drawing, and a doctest"],
)
def test_a_docstring_is_cleaned(document, written, cleaned):
    assert document(f'"""{MANY}\n\n{written}\n"""') == f"lib.json\n\n{MANY}\n\n{cleaned}\n"


def test_the_versions_are_those_of_constraints_txt():
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text("utf-8").splitlines()
    pins = {line.lower() for line in lines}
    assert {f"{name}=={v}".lower() for name, v in docstrings.LIBRARIES.items()} <= pins


def test_a_missing_library_is_left_out(monkeypatch):
    monkeypatch.setitem(docstrings.LIBRARIES, "no_such_library", "1.0")
    assert docstrings.library_versions().keys() == docstrings.LIBRARIES.keys() - {"no_such_library"}
    local = {"torch": "1.2.3+cu130"}
    monkeypatch.setattr(docstrings, "LIBRARIES", local)
    monkeypatch.setattr(config, "version", local.get)
    assert docstrings.library_versions() == {"torch": "1.2.3"}


@pytest.mark.slow
def test_the_libraries_give_about_twenty_megabytes_in_which_they_are_mixed():
    """The corpus is made of what is installed, once."""
    train, validation = (corpora.path("docstrings", split) for split in corpora.SPLITS)
    size = train.stat().st_size + validation.stat().st_size
    assert 15e6 < size < 30e6
    assert 0.05 < validation.stat().st_size / size < 0.15
    some = islice(corpora.documents(train), 200)
    assert len({text.split()[0].partition(".")[0] for text in some}) > 10
