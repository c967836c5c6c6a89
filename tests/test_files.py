"""A file written by `atomic_write` is whole or not there; one at a time works in a folder."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from workbook import files
from workbook.files import atomic_write, locked

WORKS = """
import sys
from pathlib import Path
from workbook.files import locked

with locked(Path(sys.argv[1])):
    print("in", flush=True)
    input()
"""


def test_text_is_utf8_with_unix_line_ends_and_bytes_are_as_they_are(tmp_path):
    with atomic_write(tmp_path / "new" / "a.txt") as file:
        file.write("ağaç\n木\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "ağaç\n木\n".encode()
    with atomic_write(tmp_path / "a.bin", "wb") as file:
        file.write(b"\x00\r\n\xff")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n\xff"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_seen_before_the_end_and_a_failure_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "a.txt"
    with atomic_write(path) as file:
        file.write("old")
        file.flush()
        assert not path.exists()
    with pytest.raises(error), locked(tmp_path / "run"), atomic_write(path) as file:
        file.write("half")
        file.flush()
        assert path.read_text() == "old"
        raise error
    with locked(tmp_path / "run"):  # is free again
        assert path.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "run"]


def test_a_full_disk_names_the_file(tmp_path):
    named = pytest.raises(OSError, match=r"No space left on device: '.*a\.txt'")
    with named, atomic_write(tmp_path / "a.txt"):
        raise OSError(28, "No space left on device")


def test_what_a_killed_process_left_long_ago_is_removed(tmp_path):
    for name in (".[a].txt.1.tmp", ".[a].txt.2.tmp", ".b.txt.1.tmp"):
        (tmp_path / name).touch()
        if "2" not in name:
            os.utime(tmp_path / name, (0, 0))
    with atomic_write(tmp_path / "[a].txt") as file:
        file.write("new")
    assert sorted(os.listdir(tmp_path)) == [".[a].txt.2.tmp", ".b.txt.1.tmp", "[a].txt"]


@pytest.fixture
def umask():
    """Sets the umask, and puts it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_says_who_may_read_a_new_file(tmp_path, umask, mask, mode):
    umask(mask)
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("new")
    assert permissions(tmp_path / "a.txt") == mode


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_written_again_keeps_its_permissions(tmp_path, umask, mode):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    with atomic_write(path) as file:
        (temporary,) = tmp_path.glob("*.tmp")
        assert permissions(temporary) == mode  # in the meantime too
        file.write("new")
    assert (path.read_text(), permissions(path)) == ("new", mode)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_where_a_folder_is_wanted_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "deep"):
        with pytest.raises(OSError, match=f"{tmp_path / 'taken'} is a file; rename it"):
            atomic_write(folder / "a.txt").__enter__()
        with pytest.raises(OSError, match=f"{tmp_path / 'taken'} is a file; rename it"):
            locked(folder).__enter__()


def test_a_folder_where_a_file_is_wanted_is_named_at_once(tmp_path):
    with pytest.raises(OSError, match=f"{tmp_path} is a folder, but a file is to be written there"):
        atomic_write(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_two_threads_take_turns_in_a_folder(tmp_path, monkeypatch):
    order, waits = [], threading.Event()
    monkeypatch.setattr(files, "say", lambda words: waits.set())

    def other():
        with locked(tmp_path / "run"):
            order.append("other")

    thread = threading.Thread(target=other)
    with locked(tmp_path / "run"):
        thread.start()
        assert waits.wait(300)
        order.append("this")
    thread.join(300)
    assert order == ["this", "other"]


def test_two_processes_take_turns_and_the_second_says_that_it_waits(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    work = [sys.executable, "-c", WORKS, str(tmp_path)]
    first = subprocess.Popen(work, text=True, **pipes)
    assert first.stdout.readline() == "in\n"
    second = subprocess.Popen(work, text=True, **pipes)
    assert second.stderr.readline().startswith(f"waiting until {tmp_path.resolve()} is free")
    first.communicate("\n")
    assert second.stdout.readline() == "in\n"
    second.communicate("\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_that_is_killed_leaves_no_lock_to_those_that_it_forked(tmp_path):
    # Both write their line at once: two calls of print may mix theirs.
    forks = "os.write(1, b'%d\\n' % os.fork()), input()"
    works = WORKS.replace("input()", forks).replace("sys", "os, sys", 1)
    work = [sys.executable, "-c", works, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(work, text=True, **pipes) as first:
        assert first.stdout.readline() == "in\n"
        forked = max(int(first.stdout.readline()), int(first.stdout.readline()))
        first.kill()
        first.wait()
        try:
            with locked(tmp_path):
                os.kill(forked, 0)  # it is still there
        finally:
            os.kill(forked, signal.SIGKILL)


class Broken:
    """A stream that nobody reads any more."""

    def write(self, _):
        raise BrokenPipeError

    def flush(self):
        raise BrokenPipeError


def test_where_nobody_listens_nothing_is_said(monkeypatch, capsys):
    for stream in (None, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        files.say("waiting")
    monkeypatch.undo()
    assert capsys.readouterr() == ("", "")
    files.say("waiting")
    assert capsys.readouterr() == ("", "waiting\n")
