"""Corpora are made, kept, made again, downloaded and refused; their files are counted and read."""

import builtins
import gzip
import json
import os
from collections import Counter
from hashlib import sha256

import pytest
from fake_hub import COMMIT, running_hub
from hypothesis import given
from hypothesis import strategies as st

from workbook import __version__
from workbook.corpora import corpora, docstrings, stories
from workbook.corpora.corpora import CORPORA, END_OF_TEXT, documents, record, sample_documents

TEXT = f"One.\n{END_OF_TEXT}\nTwo.\n{END_OF_TEXT}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    return tmp_path / "corpora"


@pytest.fixture
def tales(monkeypatch):
    """Stories that take no time; the list of the calls for them."""
    calls = []

    def write(seed, stream, size):
        calls.append((seed, stream, size))
        for number in range(6):
            yield f"{stream} {number}", 1.5

    monkeypatch.setattr(stories, "write_stories", write)
    return calls


@pytest.fixture
def prose(monkeypatch):
    """Small libraries; the list of the times they were read."""
    reads = []

    def harvest(folders):
        reads.append("read")
        return {f"lib.{number}": f"Module {number}.\n" for number in range(100)}

    monkeypatch.setattr(docstrings, "harvest", harvest)
    return reads


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch, TEXT.encode()) as hub:
        yield hub


def test_real_stories_are_made_with_the_length_of_their_code():
    path = corpora.path("stories", "validation", 20_000)
    facts = record(path)
    raw = path.read_bytes()
    written = list(stories.write_stories(facts["seed"], facts["split"], facts["size"]))
    assert raw.decode() == "".join(text + stories.SEPARATOR for text, _ in written)
    bits = sum(price for _, price in written)
    assert facts["code_length_bits"] == pytest.approx(bits, abs=0.1)
    assert facts["bits_per_byte"] == pytest.approx(bits / len(raw))


def test_prose_is_split_by_document(prose):
    train, validation = (set(documents(corpora.path("docstrings", s))) for s in corpora.SPLITS)
    assert train | validation == {f"Module {number}." for number in range(100)}
    assert len(train) > 3 * len(validation) > 0 and train.isdisjoint(validation)
    assert record(corpora.path("docstrings"))["versions"] == docstrings.library_versions()


def test_a_second_call_makes_nothing(folder, tales, prose, capsys):
    assert corpora.path("stories") == folder / "stories" / "train-20MB.txt"
    assert corpora.path("stories", "validation") == folder / "stories" / "validation-2MB.txt"
    assert corpora.path("stories", size=1500) == folder / "stories" / "train-1500B.txt"
    assert capsys.readouterr().err == ""  # no bar: nobody watches a file
    assert [corpora.path("stories", size=size) for size in (None, 1500)]
    assert [size for _, _, size in tales] == [20_000_000, 2_000_000, 1500]
    for split in (*corpora.SPLITS, *corpora.SPLITS):
        assert corpora.path("docstrings", split) == folder / "docstrings" / f"{split}.txt"
    assert len(prose) == 1, "one reading of the libraries makes both splits"


def test_stories_of_an_older_generator_are_made_again_once(tales):
    path = corpora.path("stories", size=100)
    whole = path.read_bytes()
    path.write_bytes(whole.swapcase())
    corpora.write_record(path, record(path) | {"generator": "old"})
    for _ in range(2):
        assert corpora.path("stories", size=100).read_bytes() == whole
    assert len(tales) == 2


def test_prose_of_other_versions_is_read_again_and_told(prose, monkeypatch, capsys):
    monkeypatch.setattr(docstrings, "library_versions", docstrings.LIBRARIES.copy)
    corpora.path("docstrings")
    assert "pip install" not in capsys.readouterr().err
    others = docstrings.LIBRARIES | {"numpy": "1.26.4"}
    monkeypatch.setattr(docstrings, "library_versions", others.copy)
    assert record(corpora.path("docstrings"))["versions"] == others
    assert len(prose) == 2
    assert f"`pip install numpy=={docstrings.LIBRARIES['numpy']}`" in capsys.readouterr().err


def test_making_that_is_interrupted_leaves_nothing(folder, tales, monkeypatch):
    def broken(*_):
        yield "One.", 1.0
        raise KeyboardInterrupt

    monkeypatch.setattr(stories, "write_stories", broken)
    with pytest.raises(KeyboardInterrupt):
        corpora.path("stories", size=100)
    assert [path.name for path in folder.rglob("*.*")] == [".lock"]


def test_an_absent_download_is_told_how_to_get_it():
    with pytest.raises(FileNotFoundError, match=r"data get owt` downloads .* GB, and docstrings"):
        corpora.path("owt", "validation")


@pytest.mark.parametrize("name", ["tinystories", "owt"])
def test_a_downloaded_corpus_is_used_like_any_other(folder, hub, name):
    hub.content = gzip.compress(TEXT.encode()) if name == "owt" else TEXT.encode()
    paths = corpora.fetch(name)
    assert paths == [corpora.path(name, split) for split in corpora.SPLITS]
    assert paths[0] == folder / name / "train.txt"
    assert paths[0].read_text() == TEXT
    assert list(documents(paths[1])) == ["One.", "Two."]
    expected = {"corpus": name, "split": "train", "commit": COMMIT, "documents": 2}
    expected |= {"sha256": sha256(TEXT.encode()).hexdigest(), "workbook": __version__}
    assert record(paths[0]).items() >= expected.items()
    hub.close()
    assert corpora.fetch(name) == paths, "a second call needs no network"


def test_a_damaged_download_is_refused_and_fetched_again(hub):
    train, validation = corpora.fetch("tinystories")
    os.utime(validation, (0, 0))  # copied from elsewhere, and still what it was
    train.write_text(TEXT[:-1])
    with pytest.raises(FileNotFoundError, match="train split of tinystories is missing or damaged"):
        corpora.path("tinystories")
    hub.requests.clear()
    corpora.fetch("tinystories")
    assert corpora.path("tinystories").read_text() == TEXT
    assert len(hub.ranges()) == 1


def test_who_waited_for_a_download_finds_the_file(hub, monkeypatch):
    """Another process fetches all that is missing while this one waits for the lock."""
    locked = corpora.locked

    def waiting(folder):
        monkeypatch.setattr(corpora, "locked", locked)
        corpora.fetch("tinystories")
        return locked(folder)

    monkeypatch.setattr(corpora, "locked", waiting)
    corpora.fetch("tinystories")
    assert len(hub.ranges()) == len(corpora.SPLITS), "each file was fetched once"


NOT_THERE = [
    (corpora.path, ["story"], "there are stories, docstrings, tinystories, owt"),
    (corpora.path, ["docstrings", "test"], "there are train and validation"),
    (corpora.path, ["docstrings", "train", 100], "comes in one size; leave size out"),
    (corpora.path, ["stories", "train", 0], "give at least 1"),
    (corpora.path, ["stories", "train", "100MB"], r"parse_size\('100MB'\)"),
    (corpora.fetch, ["docstrings"], "use `workbook data make docstrings`"),
    *((corpora.parse_size, [text], "give one such as 500kB") for text in ("", "100XB", "0MB")),
]


@pytest.mark.parametrize(("function", "arguments", "words"), NOT_THERE)
def test_what_does_not_exist_is_answered_with_what_does(function, arguments, words):
    with pytest.raises(ValueError, match=words):
        function(*arguments)


def test_a_notebook_shows_a_bar(tales, monkeypatch, capsys):
    monkeypatch.setattr(builtins, "get_ipython", None, raising=False)
    corpora.path("stories", size=1500)
    assert "make train-1500B" in capsys.readouterr().err


def read(name):
    return [[*documents(corpora.path(name, split))] for split in corpora.SPLITS]


def test_a_text_of_ones_own_becomes_a_corpus(tmp_path, folder):
    notes = tmp_path / "my notes"
    for number in range(3):
        (notes / f"{number}").mkdir(parents=True)
        (notes / f"{number}" / "note.md").write_text(f"\ufeff{number}é" * 10, "utf-8")
    (notes / "._1.txt").write_bytes(b"\xff")  # of macOS
    (notes / "folder.md").mkdir()
    poem = tmp_path / "poem.txt"
    poem.write_text("---".join(f"verse {number}\n" for number in range(20)) + "---\n \n")
    name = corpora.add_text([notes, poem])
    train, validation = read(name)
    assert train[0] == "0é" + "\ufeff0é" * 8 and validation[0] == "\ufeff0é"
    assert len(train) == 4 and train[3] + validation[3] == poem.read_text().strip()
    by_verse = corpora.add_text(poem, "---")
    assert read(by_verse)[1] == ["verse 9", "verse 19"] and len(read(by_verse)[0]) == 18
    assert by_verse.startswith("poem-") and len({name, by_verse, corpora.add_text(poem)}) == 3

    before = (folder / by_verse / "train.txt").stat()
    assert corpora.add_text(str(poem), "---") == by_verse
    assert (folder / by_verse / "train.txt").stat() == before
    (folder / by_verse / "train.txt").write_text("damaged")
    with pytest.raises(FileNotFoundError, match="add your text again"):
        corpora.path(by_verse)
    assert corpora.add_text(poem, "---") == by_verse and len(read(by_verse)[0]) == 18


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"caf\xe9", "is not UTF-8 text .* save it as"), (b" \n", "holds no text"), (None, "no file")],
)
def test_a_text_that_is_none_is_refused(tmp_path, folder, content, words):
    if content is not None:
        (tmp_path / "text").write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=f"text.*{words}|text is {words}"):
        corpora.add_text(tmp_path / "text")
    with pytest.raises(ValueError, match="holds no text"):
        corpora.add_text([])
    assert not folder.exists()


def test_stories_that_the_disk_has_no_room_for_are_not_begun(folder, tales):
    with pytest.raises(OSError, match=r"train-1000000GB.txt needs .* GB free; make room"):
        corpora.path("stories", size=corpora.parse_size("1000TB"))
    assert tales == [] and not folder.exists()


def test_the_overview_shows_what_lies_on_the_disk(tales):
    assert corpora.describe_corpora().count("nothing yet") == len(CORPORA)
    corpora.path("stories", "validation")
    corpora.path("stories").with_suffix(".json").unlink()
    lines = corpora.describe_corpora().splitlines()
    assert lines[0].startswith("stories: ")
    assert "train-20MB" not in lines[3] and "validation-2MB" in lines[3]


LIBRARY = {  # something of all that docstrings tells apart
    "__init__.py": '"""A library.\n\n{shared}\n\n{own}\n\n{shared}"""',
    "json/__init__.py": '''"""Text to objects.  \\r\\n\\r\\n\\tA tab, and \\0 a nul.\n
        {shared}\n\n\u00a0    Example:\n\n>>> loads('[1]')"""
class Decoder(object):
    """{own}"""
    async def decode(self, text: str, *rest, strict=True, **options):
        """Return what the text stands for."""
try:
    def loads(s, /, *, cls=None): "Short for Decoder().decode(s)."
except ImportError:
    def dumps(): ...
''',
    "json/tool.py": '"""{own}\n\nExample:\n\n0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n"""',
    "json/tests/test_json.py": '"""{own}"""',
    "abc.py": 'def abstractmethod(callable): """{own}"""',
    "_vendor/six.py": '"""A stranger. {own}"""',
    "cmd.py": "print 'Python 2'",
}


def made_of_samples(folder) -> dict[str, str]:
    """A hash of what each generator makes, the same on every machine and with every Python."""
    told = [stories.story(0, "fingerprint", index) for index in range(128)]
    tales = "".join(f"{text} {bits:.3f}\n" for text, bits in told)
    library = folder / "lib"
    for name, text in LIBRARY.items():
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        shared = "Words that come twice. " * 9
        own = f"Only {name} says so. " * 9
        (library / name).write_text(text.format(shared=shared, own=own), "utf-8")
    found = docstrings.harvest([library])
    splits = [docstrings.split_of(f"lib.{number}") for number in range(99)]
    made = {"stories": "\n".join(stories.sources()) + tales, "docstrings": repr((found, splits))}
    return {name: sha256(text.encode()).hexdigest()[:16] for name, text in made.items()}


def test_a_generator_that_makes_something_else_has_another_hash(tmp_path):
    """Put the new hash into CORPORA: then no old file is taken for a new one."""
    told = {name: corpus.generator for name, corpus in CORPORA.items() if corpus.offline}
    assert told == made_of_samples(tmp_path)


# --- Files and their records ----------------------------------------------------------------------

# Short pieces, so that separators, parts of separators and blank documents meet in every way.
PIECES = st.lists(st.sampled_from([END_OF_TEXT, "<|", "endoftext", "|>", "é", "One.", " \n", "<"]))


@pytest.fixture
def ten(tmp_path):
    file = tmp_path / "ten.txt"
    corpora.write_documents(file, (f"Story {number}." for number in range(10)))
    return file


def test_documents_come_back_as_they_were_written(tmp_path):
    texts = ["One.\n\nTwo lines.", "Straße ☃ 🙂", "<|endoftext"]
    facts = corpora.write_documents(tmp_path / "file.txt", texts)
    assert list(documents(tmp_path / "file.txt")) == texts
    raw = (tmp_path / "file.txt").read_bytes()
    assert raw.decode() == "".join(f"{text}\n{END_OF_TEXT}\n" for text in texts)
    assert facts == {"bytes": len(raw), "documents": 3, "sha256": sha256(raw).hexdigest()}


@given(pieces=PIECES, block=st.integers(1, 20))
def test_documents_and_counts_do_not_depend_on_the_blocks(tmp_path_factory, pieces, block):
    text = "".join(pieces)
    expected = [part.strip() for part in text.split(END_OF_TEXT) if part.strip()]
    file = tmp_path_factory.mktemp("blocks") / "file.txt"
    file.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "BLOCK", block)
        assert list(documents(file)) == expected
        assert corpora.tally(file)["documents"] == len(expected)


def test_documents_are_read_one_block_at_a_time(tmp_path):
    file = tmp_path / "endless.txt"
    file.write_bytes((b"One.\n" + END_OF_TEXT.encode()) * 200_000)
    stream = documents(file)
    assert next(stream) == "One."
    file.write_bytes(b"")  # what has not been read yet is gone
    with pytest.raises(ValueError, match="changed while it was read"):
        for seen, _ in enumerate(stream):
            assert seen < 100_000


def test_every_document_is_sampled_equally_often_in_order_and_repeatably(ten):
    samples = [sample_documents(ten, 3, seed) for seed in range(1000)]
    assert all(sample == sorted(set(sample)) and len(sample) == 3 for sample in samples)
    assert samples[7] == sample_documents(str(ten), 3, seed=7)
    counts = Counter(text for sample in samples for text in sample)
    assert len(counts) == 10
    assert all(240 < times < 360 for times in counts.values())  # 300 ± 4 standard deviations
    assert sample_documents(ten, 10, seed=0) == list(documents(ten))
    for n in (0, 11):
        with pytest.raises(ValueError, match=f"n={n}: ask for at least 1"):
            sample_documents(ten, n, seed=0)


def test_a_file_is_intact_if_its_record_fits(ten):
    digest = sha256(ten.read_bytes()).hexdigest()
    for change, intact in (
        ({}, True),
        ({"seed": 2}, False),
        ({"bytes": 231}, False),
        ({"modified_ns": 0}, True),
        ({"modified_ns": 0, "sha256": "0" * 64}, False),
    ):
        corpora.write_record(ten, {"bytes": 230, "seed": 1, "sha256": digest})
        ten.with_suffix(".json").write_text(json.dumps(record(ten) | change))
        assert corpora.is_intact(ten, {"seed": 1}) is intact
    for text in ("", '{"bytes": 230, "see', '{"bytes": 230}', "null"):  # no whole record
        ten.with_suffix(".json").write_text(text)
        assert not corpora.is_intact(ten, {})
    ten.with_suffix(".json").unlink()
    with pytest.raises(FileNotFoundError, match=r"ten\.json"):
        record(ten)


def test_a_file_is_read_to_be_verified_only_once(ten, monkeypatch):
    corpora.write_record(ten, {"bytes": 230, "sha256": sha256(ten.read_bytes()).hexdigest()})
    os.utime(ten, (0, 0))
    assert corpora.is_intact(ten, {})
    monkeypatch.setattr(corpora, "file_sha256", None)
    assert corpora.is_intact(ten, {})


def test_a_folder_is_read_without_what_is_hidden_in_it(tmp_path, folder):
    texts = tmp_path / "texts"
    for name in ("a.md", "B.TXT", ".ipynb_checkpoints/a-checkpoint.md", ".git/secret.txt", "c.py"):
        (texts / name).parent.mkdir(parents=True, exist_ok=True)
        (texts / name).write_text(f"{name} " * 30)
    for name in ("loop.txt", "nowhere.md"):
        (texts / name).symlink_to(name)
    (texts / "again.md").hardlink_to(texts / "a.md")
    if hasattr(os, "mkfifo"):
        os.mkfifo(texts / "pipe.txt")
    assert [path.name for path in corpora.text_files([texts])] == ["B.TXT", "a.md", "again.md"]
    assert "secret" not in str(read(corpora.add_text(texts)))


@pytest.mark.parametrize(("end", "separator"), [("\n", "\r\n\r\n"), ("\r\n", "\n\n")])
def test_a_separator_fits_whatever_ends_a_line(tmp_path, folder, end, separator, capsys):
    text = tmp_path / "text.txt"
    text.write_bytes("".join(f"poem {number}{end}{end}" for number in range(20)).encode())
    assert list(map(len, read(corpora.add_text(text, separator)))) == [18, 2]
    assert capsys.readouterr().err == ""
    corpora.add_text(text, "***")
    assert "the separator '***' does not occur" in capsys.readouterr().err
    with pytest.raises(ValueError, match="the separator is empty"):
        corpora.add_text(text, "")


def test_the_name_of_a_text_is_cut_and_its_hash_is_that_of_its_json(tmp_path, folder):
    path = tmp_path / f"{'x' * 200}.txt"
    path.write_text('To be 🐉, or "not" to be. ' * 9)
    name = corpora.add_text(path)
    texts = [path.read_text().strip()]
    assert name == f"{'x' * 40}-{sha256(json.dumps(texts).encode()).hexdigest()[:8]}"


def test_what_a_killed_making_left_is_gone_after_the_next(folder, tales):
    left = corpora.path("stories", "train", 1000).with_name(f".train-2kB.txt.{'0' * 16}.tmp")
    left.write_bytes(b"half")
    corpora.path("stories", "train", 2000)
    assert not left.exists()
