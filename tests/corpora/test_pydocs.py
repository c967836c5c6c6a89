"""What `pydocs` reads from a small library made here, and from the one that runs this."""

import sys
import sysconfig
import zipfile

import pytest

from workbook.corpora import pydocs

PROSE = "This paragraph is long enough to count as one, and it says nothing about {}."
MANY = " ".join(PROSE.format(word) for word in ("apples", "pears", "plums", "quinces"))


@pytest.fixture(scope="module")
def harvest():
    """The documents of the running Python, and the modules that were imported to get them."""
    before = set(sys.modules)
    return pydocs.harvest(), set(sys.modules) - before


@pytest.fixture
def harvested(harvest):
    return harvest[0]


def library(folder, files):
    """A standard library of these files: path below the folder -> text."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


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
    documents = pydocs.harvest(library(tmp_path, {"json/__init__.py": source}))
    assert documents == {
        "module:json": f"json\n\n{MANY}\n\n"
        "class Decoder\n\nTurns text into objects.\n\n"
        "Decoder.decode(text, *rest, strict, **options)\n\nReturn what the text stands for.\n\n"
        "loads(s, cls)\n\nShort for Decoder().decode(s).\n"
    }


def test_a_module_that_says_nothing_itself_keeps_its_title(tmp_path):
    source = f'def dumps():\n    """{MANY}"""'
    documents = pydocs.harvest(library(tmp_path, {"json.py": source}))
    assert documents == {"module:json": f"json\n\ndumps()\n\n{MANY}\n"}


def test_what_comes_twice_stays_with_the_longest_document(tmp_path):
    shared = PROSE.format("what both share")
    long, short = (
        f"{MANY}\n\n{shared}\n\nExample:\n\n{MANY[:250]}",
        f"{MANY[90:]}\n\n{shared}\n\nExample:",
    )
    files = {"abc.py": f'"""{short}"""', "json.py": f'"""{long}"""', "zipapp.py": f'"""{long}"""'}
    documents = pydocs.harvest(library(tmp_path, files))
    assert list(documents) == ["module:abc", "module:json"]
    assert shared in documents["module:json"]
    assert shared not in documents["module:abc"]
    assert "Example:" in documents["module:abc"], "short paragraphs are nobody's property"


@pytest.mark.slow
def test_nothing_that_is_harvested_is_imported_or_run(tmp_path, harvest):
    files = {"json.py": f'"""{MANY}"""\nraise SystemExit("this module was run")'}
    assert pydocs.harvest(library(tmp_path, files))
    assert not {"antigravity", "pydoc_data.topics", "this", "tkinter", "turtle"} & harvest[1]


def test_tests_strangers_and_broken_files_are_left_out(tmp_path):
    text = f'"""{MANY}"""'
    files = {
        "json/test/test_json.py": text.replace("apples", "tests"),
        "test/support.py": text.replace("apples", "support"),
        "idlelib/run.py": text.replace("apples", "idle"),
        "numpy/__init__.py": text.replace("apples", "arrays"),
        "lib-dynload/json.py": text.replace("apples", "binaries"),
        "abc.py": "print 'Python 2'",
        "ast.py": b"# coding: no-such-coding\n",
        "bdb.py": b'"""\xff\xfe"""',
        "cmd.py": text,
    }
    assert list(pydocs.harvest(library(tmp_path, files))) == ["module:cmd"]


def test_odd_characters_are_cleaned_away(tmp_path):
    source = (
        rf'"""{MANY}  '
        + "\r\n\r\n\tTab, \\0 nul, \\f feed, \\ud800 surrogate, \\d escape  \r\n"
        + '"""'
    )
    text = pydocs.harvest(library(tmp_path, {"json.py": source}))["module:json"]
    assert text == f"json\n\n{MANY}\n\nTab,  nul,  feed,  surrogate, \\d escape\n"
    latin = b"# coding: latin-1\n" + f'"""{MANY} \xfcber"""'.encode("latin-1")
    text = pydocs.harvest(library(tmp_path, {"json.py": latin}))["module:json"]
    assert text.endswith(" über\n")


def test_drawings_are_left_out_and_doctests_stay(tmp_path):
    table = "+--------------------+-------+\n| one                | 1     |\n" * 4
    doctest = ">>> loads('[1, 2]')\n[1, 2]"
    source = f'"""{MANY}\n\n{table}\n\n{doctest}\n"""'
    text = pydocs.harvest(library(tmp_path, {"json.py": source}))["module:json"]
    assert "+---" not in text
    assert doctest in text


@pytest.mark.parametrize("form", ["one dict", "text files"])
def test_help_topics_are_read_in_both_forms(tmp_path, form):
    one_dict = {
        "pydoc_data/topics.py": f"# made by Sphinx\ntopics = {{'if': {MANY!r}, 'for': 'for'}}",
        "pydoc_data/module_docs.py": "module_docs = {'abc': 'abc#module-abc'}",
    }
    texts = {"pydoc_data/if.rst": MANY, "pydoc_data/for.txt": "for", "pydoc_data/_pydoc.css": MANY}
    files = one_dict if form == "one dict" else texts
    assert pydocs.harvest(library(tmp_path, files)) == {"topic:if": f"{MANY}\n"}


def test_a_library_in_a_zip_file_gives_the_same_documents(tmp_path, monkeypatch):
    files = {
        "json/decoder.py": f'"""{MANY}"""',
        "json/__init__.py": f'"""{MANY.upper()}"""',
        "pydoc_data/topics.py": f"topics = {{'if': {MANY.lower()!r}}}",
    }
    folder = library(tmp_path / "lib", files)
    with zipfile.ZipFile(tmp_path / "python3.zip", "w") as archive:
        for path in files:
            archive.write(folder / path, path)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "nowhere"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "python3.zip")])
    assert len(pydocs.harvest(folder)) == 3
    assert pydocs.harvest() == pydocs.harvest(folder)


def test_a_python_without_sources_is_told_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(FileNotFoundError, match="no sources of its standard library"):
        pydocs.harvest()


def test_the_running_python_gives_about_two_megabytes(harvested):
    size = sum(len(text.encode()) for text in harvested.values())
    assert 1_400_000 < size < 3_500_000
    assert list(harvested) == sorted(harvested)
    assert any(name.startswith("topic:") for name in harvested)
    validation = [text for name, text in harvested.items() if pydocs.split_of(name) == "validation"]
    assert 0.05 < sum(len(text.encode()) for text in validation) / size < 0.15


def test_no_long_paragraph_of_the_running_python_comes_twice(harvested):
    paragraphs = [" ".join(p.split()) for text in harvested.values() for p in text.split("\n\n")]
    long = [p for p in paragraphs if len(p) > 2 * pydocs.LONG_PARAGRAPH]
    assert len(long) == len(set(long))


def test_the_split_depends_on_the_name_alone():
    names = [f"module:{number}" for number in range(1000)]
    validation = sum(pydocs.split_of(name) == "validation" for name in names)
    assert 70 < validation < 130
    assert pydocs.split_of("topic:if") == "train"
    assert pydocs.split_of("module:bisect") == pydocs.split_of("module:bisect")
