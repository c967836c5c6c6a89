"""Of the records of a study folder nothing is ever lost, whatever their files hold."""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from random import Random
from unittest.mock import Mock

import pytest
from work import PATIENCE

from workbook import calibration, check, harden, predict, recall
from workbook.classroom import cli
from workbook.classroom import study as study_room
from workbook.classroom.mine.hardening import Hunt
from workbook.classroom.study import records
from workbook.classroom.study.guesses import Guess
from workbook.classroom.study.mistakes import OwnMistake
from workbook.classroom.study.progress import Part
from workbook.classroom.study.recall import Topic

for module in iter_modules(study_room.__path__):
    import_module(f"{study_room.__name__}.{module.name}")
# The list of all records; a new one needs an entry below.
KINDS = records.RecordEntry.__subclasses__()

ENTRIES = {  # two of each kind, with every field, under the names "one" and "two"
    Part: [
        Part("correct", True, ["a figure"], ["a fact"], "x = 1\n", "", "2026-09-30"),
        Part("read", False, [], ["schön"], "", None, ""),
    ],
    Guess: [Guess(5, 7.5), Guess(0.25, None)],
    OwnMistake: [OwnMistake(["2026-09-30"]), OwnMistake(["2026-09-30", "2026-10-01"])],
    Topic: [Topic("2026-09-30", 2, 5), Topic("2026-10-01", 0, 1)],
    Hunt: [
        Hunt(source="x\n", what="-", first=3, last=4, rows=[["got", "1"]], step=2, found=["y"]),
        Hunt(claim="It raised.", changed="a", original="b", is_found=True),
    ],
}


@pytest.fixture(autouse=True)
def named(study, monkeypatch):
    """The folder is the one that the command line means, too."""
    monkeypatch.setenv("WORKBOOK_STUDY", str(study.folder))


def keep(study, kind, name, entry):
    """Store an entry as the workbook does."""
    if kind is not Part:
        return study.keep_notes(kind, {name: entry})
    with study.changing(name, None) as part:
        part.__dict__.update(entry.__dict__)


def kept(study, kind):
    """The entries that the workbook finds, by name."""
    if kind is not Part:
        return study.notes(kind)
    return {problem: parts[""] for problem, parts in study.read().items() if "" in parts}


def file_of(study, kind):
    return study.path.with_name(kind.file)


def intact(study, kind):
    """The bytes of a file that holds the two entries; it is removed again."""
    for name, entry in zip(("one", "two"), ENTRIES[kind], strict=True):
        keep(study, kind, name, entry)
    stored = file_of(study, kind).read_bytes()
    file_of(study, kind).unlink()
    return stored


def kept_aside(study, kind):
    file = file_of(study, kind)
    return sorted(file.parent.glob(f"{file.stem}-broken-*{file.suffix}"))


def remove_all(study):
    for path in study.path.parent.iterdir():
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def pairs_of(stored):
    """What JSON holds, as lists of pairs, so that a name which comes twice is seen.

    What the workbook adds is left out: the version, and the entry "next".
    """
    added = ("version", "next")
    hook = lambda pairs: [pair for pair in pairs if pair[0] not in added]  # noqa: E731
    return json.loads(stored, object_pairs_hook=hook)


def what_is_lost(study, kind, damaged, capsys):
    """Go on working where a record has these bytes; return what went wrong, in words, or ""."""
    file = file_of(study, kind)
    file.write_bytes(damaged)
    try:
        before = kept(study, kind)
    except records.LaterVersionError:
        return "" if file.read_bytes() == damaged else "a file of a later version was touched"
    kept(study, kind)
    keep(study, kind, "next", ENTRIES[kind][0])
    after = kept(study, kind)
    asides = kept_aside(study, kind)
    told = capsys.readouterr().err
    if after != before | {"next": ENTRIES[kind][0]}:
        return f"{before} became {after}"
    if not asides:
        is_all_there = pairs_of(damaged) in ([], pairs_of(file.read_bytes()))
        return "" if is_all_there and not told else f"without a copy, told: {told!r}"
    is_told = told.count("cannot be read") == 1 and asides[0].name in told
    is_copy = len(asides) == 1 and asides[0].read_bytes() == damaged
    return "" if is_told and is_copy else f"kept aside: {asides}, told: {told!r}"


def damages_of(stored):
    """What may become of a file, by name."""
    text = stored.decode()
    middle = len(stored) // 2
    yield "none", stored
    yield "byte order mark", b"\xef\xbb\xbf" + stored
    yield "CRLF", stored.replace(b"\n", b"\r\n")
    yield "UTF-16", text.encode("utf-16")
    yield "Latin-1", text.encode("latin-1") + b"\xff"
    yield "zeros", bytes(len(stored))
    yield "zeros at the end", stored[:middle] + bytes(len(stored) - middle)
    yield "twice", stored + stored
    yield "a conflict", b"<<<<<<< HEAD\n" + stored + b"=======\n" + stored + b">>>>>>> theirs\n"
    for other in (
        "",
        "null",
        "3",
        "[]",
        '"x"',
        "NaN",
        "true",
        "{}",
        "[[]]",
        '{"one": 1}',
        "9" * 400,
    ):
        yield f"the type of {other[:9]}", other.encode()
    yield "deep lists", b"[" * 100_000
    yield "deep objects", b'{"one": ' * 100_000
    yield "a deep entry", b'{"problems": {"one": ' + b"[" * 900 + b"]" * 900 + b"}}"
    for end in range(0, len(stored), 9):
        yield f"cut at {end}", stored[:end]
    random = Random(0)
    for place in range(len(stored)):
        flipped = bytearray(stored)
        flipped[place] ^= 1 << random.randrange(8)
        yield f"a flipped bit at {place}", bytes(flipped)


def test_each_kind_has_a_file_of_its_own_and_is_tried_here():
    assert set(ENTRIES) == set(KINDS), "a new record: put two full entries into ENTRIES"
    assert len({kind.file for kind in KINDS}) == len(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_became_of_a_file_nothing_is_lost(study, capsys, kind):
    wrong = {}
    for name, damaged in damages_of(intact(study, kind)):
        remove_all(study)
        if lost := what_is_lost(study, kind, damaged, capsys):
            wrong[name] = lost
    assert wrong == {}


HARMLESS = ("none", "byte order mark", "CRLF", "UTF-16")


@pytest.mark.parametrize("kind", KINDS)
def test_how_an_editor_writes_a_text_costs_nothing(study, capsys, kind):
    damages = dict(damages_of(intact(study, kind)))
    for name in HARMLESS:
        file_of(study, kind).write_bytes(damages[name])
        assert list(kept(study, kind).values()) == ENTRIES[kind]
        assert not kept_aside(study, kind) and not capsys.readouterr().err


BAD = ["1", "null", "[]", '"due"', "NaN", "-1", "0.5", "true", "1e999", "9" * 400, r'"\ud800"']
BAD += ['{"due": "soon"}', '"2026-W40-3"', '"9999-12-31"', '[["a", "b", "c"]]', '{"guess": 0}']
BAD += ["[" * 500 + "]" * 500]  # deep


def with_bad_entries(stored, kind):
    """The file with something bad in the place of the first entry, or of one of its fields."""
    here = "the place"
    content = json.loads(stored)
    holder = content["problems"]["one"] if kind is Part else content
    name = "" if kind is Part else "one"
    entry = holder[name]
    places = [here, *(entry | {field: here} for field in entry), entry | {"unknown": here}]
    for place in places:
        holder[name] = place
        for bad in BAD:
            yield json.dumps(content, ensure_ascii=False).replace(json.dumps(here), bad).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_entry_costs_itself_alone(study, capsys, kind, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # these files may be lost with the machine
    wrong = {}
    for damaged in with_bad_entries(intact(study, kind), kind):
        remove_all(study)
        lost = what_is_lost(study, kind, damaged, capsys)
        if lost or kept(study, kind).get("two") != ENTRIES[kind][1]:
            wrong[damaged] = lost
    assert wrong == {}


def test_two_entries_of_one_name_are_told_though_one_alone_can_count(study, capsys):
    file_of(study, Guess).write_text('{"loss": {"guess": 1}, "loss": {"guess": 2}}')
    assert study.notes(Guess) == {"loss": Guess(2)}
    assert len(kept_aside(study, Guess)) == 1 and "cannot be read" in capsys.readouterr().err


def in_its_place(path):
    """Put things that are no file in the place of one; yield how to know each again."""
    path.mkdir()
    (path / "mine.txt").write_text("mine")
    yield lambda aside: (aside / "mine.txt").read_text() == "mine"
    path.symlink_to(path.name)
    yield lambda aside: os.readlink(aside) == path.name
    path.symlink_to("nowhere")  # such as a disk that is not there today
    yield lambda aside: os.readlink(aside) == "nowhere"
    os.mkfifo(path)
    yield lambda aside: aside.is_fifo()
    path.symlink_to("/dev/zero")
    yield lambda aside: os.readlink(aside) == "/dev/zero"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no pipes among files, and few links")
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_kept_aside(study, capsys, kind):
    for is_the_same in in_its_place(file_of(study, kind)):
        assert kept(study, kind) == {}
        keep(study, kind, "next", ENTRIES[kind][0])
        assert kept(study, kind) == {"next": ENTRIES[kind][0]}
        (aside,) = kept_aside(study, kind)
        assert is_the_same(aside) and aside.name in capsys.readouterr().err
        for path in (file_of(study, kind), aside):
            path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_may_not_read_is_kept_aside(study, monkeypatch, kind):
    read_bytes = Path.read_bytes

    def refused(path):
        if (content := read_bytes(path)) == b"secret":
            raise PermissionError(13, "Permission denied", str(path))
        return content

    monkeypatch.setattr(Path, "read_bytes", refused)  # as root, the tests may read everything
    file_of(study, kind).write_text("secret")
    keep(study, kind, "next", ENTRIES[kind][0])
    assert kept(study, kind) == {"next": ENTRIES[kind][0]}
    (aside,) = kept_aside(study, kind)
    assert read_bytes(aside) == b"secret"


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_kept_aside_is_used_but_not_written_over(study, monkeypatch, capsys, kind):
    damaged = intact(study, kind).replace(b'"one"', b'"one": 3, "one"')
    file_of(study, kind).write_bytes(damaged)

    def full(path, mode="w"):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "atomic_write", full)
    assert list(kept(study, kind).values()) == ENTRIES[kind]
    assert "stays as it is: no copy of it can be kept aside" in capsys.readouterr().err
    with pytest.raises(OSError, match="No space left"):
        keep(study, kind, "next", ENTRIES[kind][0])
    assert file_of(study, kind).read_bytes() == damaged


def test_a_folder_that_we_may_not_read_is_told(study, monkeypatch, capsys):
    monkeypatch.setattr(Path, "lstat", Mock(side_effect=PermissionError))
    assert kept(study, KINDS[0]) == {}
    assert "cannot be read, or not all of it, and stays as it is" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_a_later_version_is_not_touched(study, kind):
    later = b'{"version": 99, "one": "what we do not know"}'
    file_of(study, kind).write_bytes(later)
    for use in (kept, lambda *place: keep(*place, "next", ENTRIES[kind][0])):
        with pytest.raises(OSError, match="of a later version of the workbook: update this one"):
            use(study, kind)
    assert file_of(study, kind).read_bytes() == later and not kept_aside(study, kind)


KEEP = """
import sys
from workbook.classroom.study.guesses import Guess
from workbook.classroom.study.progress import current
for n in range(25):
    current().keep_notes(Guess, {f"{sys.argv[1]}{n}": Guess(1)})
"""


def test_two_kernels_keep_a_damaged_file_aside_once_and_lose_nothing_of_each_other(study):
    file_of(study, Guess).write_text('{"good": {"guess": 1}, "bad": {"guess": -1}}')
    kernels = [subprocess.Popen([sys.executable, "-c", KEEP, name]) for name in ("one", "two")]
    assert [kernel.wait(PATIENCE) for kernel in kernels] == [0, 0]
    assert len(study.notes(Guess)) == 51 and len(kept_aside(study, Guess)) == 1


USES = [
    lambda: recall(),
    lambda: recall(1, 2, 3),
    lambda: predict("one", 3),
    lambda: predict("one", measured=4),
    calibration,
    lambda: harden("rope"),
    lambda: check("unicode1", "U+0000", "a"),
    lambda: cli.main(["study"]),
]


def test_verbs_and_commands_go_on_with_damaged_records(study, judged_here):
    with_a_float = b'{"one": {"due": "2026-01-01", "asked": 0.5}, "two": {"guess": NaN}}'
    not_soon = b'{"one": {"due": "soon"}}'
    for damaged in (b"", b"1", b"[[]]", not_soon, with_a_float, b'{"version": 99}'):
        for use in USES:
            for kind in KINDS:
                file_of(study, kind).write_bytes(damaged)
            use()
