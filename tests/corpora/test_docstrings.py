"""What `docstrings` reads from small libraries made here, and from those that are installed."""

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from workbook import config
from workbook.corpora import corpora, docstrings
from workbook.corpora.corpora import END_OF_TEXT, SPLITS
from workbook.corpora.docstrings import harvest

PROSE = "This paragraph is long enough to count as one, and it says nothing about {}."
MANY = " ".join(PROSE.format(word) for word in ("apples", "pears", "plums", "quinces"))
HEADING = re.compile(r"(class )?[\w.]+(\(.*\))?").fullmatch


@pytest.fixture(scope="module")
def documents():
    """The documents of the corpus, by split: it is made of what is installed, once."""
    texts = {split: corpora.path("docstrings", split).read_text("utf-8") for split in SPLITS}
    return {split: text.split(END_OF_TEXT)[:-1] for split, text in texts.items()}


def library(folder, files):
    """A library of these files: path below the folder -> text."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


@pytest.fixture
def document(tmp_path):
    """The text of a module with this source."""

    def read(source):
        return harvest([library(tmp_path / "lib", {"json.py": source})])["lib.json"]

    return read


def test_a_module_becomes_one_document_with_its_names_as_headings(tmp_path):
    source = f'''"""{MANY}"""
class Decoder(object):
    """Turns text into objects."""
    def decode(self, text: str, *rest, strict=True, **options):
        """Return what the text stands for."""
    def undocumented(self): ...
if True:
    def loads(s, /, *, cls=None):
        """Short for Decoder().decode(s)."""
        def inner():
            """Nobody can call this one."""
'''
    files = {"__init__.py": source, "plain/__init__.py": f'"""{MANY.upper()}"""'}
    assert harvest([library(tmp_path / "json", files)]) == {
        "json": f"json\n\n{MANY}\n\n"
        "class Decoder\n\nTurns text into objects.\n\n"
        "Decoder.decode(text, *rest, strict, **options)\n\nReturn what the text stands for.\n\n"
        "loads(s, cls)\n\nShort for Decoder().decode(s).\n",
        "json.plain": f"json.plain\n\n{MANY.upper()}\n",
    }


def test_what_comes_twice_stays_with_the_longest_document(tmp_path):
    shared = PROSE.format("what both share")
    long, short = (
        f"{MANY}\n\n{shared}\n\nExample:\n\n{MANY[:250]}",
        f"{MANY[90:]}\n\n{shared}\n\nExample:",
    )
    first = library(tmp_path / "a", {"b.py": f'"""{short}"""', "c.py": f'"""{long}"""'})
    second = library(tmp_path / "b", {"c.py": f'"""{long}"""'})
    documents = harvest([first, second])
    assert documents.keys() == {"a.b", "a.c"}
    assert shared in documents["a.c"]
    assert shared not in documents["a.b"]
    assert "Example:" in documents["a.b"], "short paragraphs are nobody's property"
    assert harvest([second, first]) == documents, "whatever the order of the libraries"


def test_tests_copies_and_broken_files_are_left_out(tmp_path):
    text = f'"""{MANY}"""'
    files = {
        "tests/test_json.py": text.replace("apples", "tests"),
        "sub/test/support.py": text.replace("apples", "support"),
        "_vendor/six.py": text.replace("apples", "sixes"),
        "not-a-module/json.py": text.replace("apples", "binaries"),
        "json.pyi": text.replace("apples", "stubs"),
        "abc.py": "print 'Python 2'",
        "ast.py": b"# coding: no-such-coding\n",
        "bdb.py": b'"""\xff\xfe"""',
        "cmd.py": text,
    }
    assert harvest([library(tmp_path / "lib", files)]).keys() == {"lib.cmd"}


def test_odd_characters_are_cleaned_away(document):
    source = (
        rf'"""{MANY}  '
        + "\r\n\r\n\tTab, \\0 nul, \\f feed, \\ud800 surrogate, \\d escape  \r\n"
        + '"""'
    )
    assert document(source) == f"lib.json\n\n{MANY}\n\nTab,  nul,  feed,  surrogate, \\d escape\n"
    latin = b"# coding: latin-1\n" + f'"""{MANY} \xfcber"""'.encode("latin-1")
    assert document(latin).endswith(" über\n")


def test_every_kind_of_blank_indents_alike(document):
    """Where Python 3.13 and older ones read `inspect.cleandoc` differently."""
    text = document(f'"""{MANY}\n\n\u00a0   One.\n\n    \u2003 Two\u00a0words.\u00a0\n"""')
    assert text == f"lib.json\n\n{MANY}\n\nOne.\n\n  Two words.\n"


def test_drawings_are_left_out_and_doctests_stay(document):
    table = "+--------------------+-------+\n| one                | 1     |\n" * 4
    doctest = ">>> loads('[1, 2]')\n[1, 2]"
    text = document(f'"""{MANY}\n\n{table}\n\n{doctest}\n"""')
    assert "+---" not in text
    assert doctest in text


def test_the_versions_are_those_of_constraints_txt():
    lines = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {line.lower() for line in lines}
    assert {f"{name}=={v}".lower() for name, v in docstrings.LIBRARIES.items()} <= pins


def test_every_install_has_these_libraries():
    """They are dependencies of the workbook, and theirs in turn, without any extra."""
    needed, todo = set(), [config.DISTRIBUTION]
    while todo:
        name = todo.pop().lower().replace("-", "_")
        if name not in needed:
            needed.add(name)
            found = [Requirement(line) for line in metadata.requires(name) or ()]
            todo += [each.name for each in found if not each.marker or each.marker.evaluate()]
    assert {name.lower() for name in docstrings.LIBRARIES} <= needed


def test_a_missing_library_is_left_out(monkeypatch):
    monkeypatch.setitem(docstrings.LIBRARIES, "no_such_library", "1.0")
    assert docstrings.library_versions().keys() == docstrings.LIBRARIES.keys() - {"no_such_library"}
    local = {"torch": "2.13.0+cu130", "numpy": "2.4.6"}
    monkeypatch.setattr(docstrings, "LIBRARIES", local)
    monkeypatch.setattr(metadata, "version", local.get)
    assert docstrings.library_versions() == {"torch": "2.13.0", "numpy": "2.4.6"}


def test_the_libraries_give_about_twenty_megabytes(documents):
    size = {split: sum(map(len, found)) for split, found in documents.items()}
    assert 15e6 < sum(size.values()) < 30e6
    assert 0.05 < size["validation"] / sum(size.values()) < 0.15
    libraries = {text.split()[0].partition(".")[0] for text in documents["train"][:200]}
    assert len(libraries) > 10, "a part of the documents is a mixture, too"


def test_no_long_paragraph_comes_twice(documents):
    texts = [*documents["train"], *documents["validation"]]
    paragraphs = [" ".join(p.split()) for text in texts for p in text.split("\n\n")]
    long = [p for p in paragraphs if len(p) > docstrings.LONG_PARAGRAPH and not HEADING(p)]
    assert len(long) == len(set(long))


def test_the_split_depends_on_the_name_alone():
    splits = [docstrings.split_of(f"lib.module{number}") for number in range(1000)]
    assert 70 < splits.count("validation") < 130
    assert (docstrings.split_of("torch.nn"), docstrings.split_of("numpy.fft")) == ("train", "train")
