"""A file written by `atomic_write` is whole or not there; one at a time works in a folder."""

import io
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from unittest import mock

import pytest
from work import PATIENCE

from workbook import files
from workbook.files import atomic_write, locked

LOCKS_AND_FORKS = """
import os, sys
from pathlib import Path
from workbook.files import locked

with locked(Path(sys.argv[1])):
    os.write(1, b"%d\\n" % os.fork())
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
    with named, atomic_write(tmp_path / "a.txt") as file:  # not by its name for the moment
        raise OSError(28, "No space left on device", file.name)
    with pytest.raises(OSError, match=r"^our own words$"), atomic_write(tmp_path / "a.txt"):
        raise OSError("our own words")


def test_what_a_killed_process_left_long_ago_is_removed(tmp_path):
    ours = f".a.txt.{'0' * 16}.tmp"
    theirs = ".a.txt.1.tmp"
    for name in (ours, theirs):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    just_now = tmp_path / f".b.txt.{'1' * 16}.tmp"
    just_now.touch()
    with atomic_write(tmp_path / "c.txt") as file:
        file.write("new")
    assert sorted(os.listdir(tmp_path)) == [theirs, just_now.name, "c.txt"]


@pytest.fixture
def umask():
    """Sets the umask, and puts it back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_the_umask_says_who_may_read_a_new_file_and_one_written_again_keeps_that(tmp_path, umask):
    for mask, mode in ((0o022, 0o644), (0o077, 0o600)):
        umask(mask)
        with atomic_write(tmp_path / f"{mode}.txt") as file:
            file.write("new")
        assert permissions(tmp_path / f"{mode}.txt") == mode
    path = tmp_path / f"{0o644}.txt"
    for mode in (0o640, 0o444):
        path.chmod(mode)
        with atomic_write(path) as file:
            (temporary,) = tmp_path.glob("*.tmp")
            assert permissions(temporary) == mode  # in the meantime too
            file.write("again")
        assert (path.read_text(), permissions(path)) == ("again", mode)


def test_a_file_where_a_folder_is_wanted_is_named_and_a_folder_where_a_file_is(tmp_path):
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "deep"):
        for context in (atomic_write(folder / "a.txt"), locked(folder)):
            with pytest.raises(OSError, match=f"{tmp_path / 'taken'} is a file; rename it"):
                context.__enter__()
    with pytest.raises(OSError, match=f"{tmp_path} is a folder, but a file is to be written there"):
        atomic_write(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Starts a thread that says that it waits for the lock of the folder, and then works in it."""
    waits = threading.Event()
    monkeypatch.setattr(files, "say", lambda words: waits.set())

    def start(work):
        def wait():
            with locked(tmp_path):
                work()

        thread = threading.Thread(target=wait)
        thread.start()
        assert waits.wait(PATIENCE)
        return thread

    return start


def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, mock.Mock(side_effect=PermissionError))
    with pytest.raises(PermissionError):
        files.notebooks_in(tmp_path)


@pytest.mark.slow
def test_two_threads_take_turns_in_a_folder(tmp_path, waiting):
    order = []
    with locked(tmp_path):
        thread = waiting(lambda: order.append("other"))
        order.append("this")
    thread.join(PATIENCE)
    assert order == ["this", "other"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_process_that_is_killed_leaves_no_lock_to_those_that_it_forked(tmp_path, waiting):
    command = [sys.executable, "-c", LOCKS_AND_FORKS, str(tmp_path)]
    order = []
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as first:
        forked = max(int(first.stdout.readline()), int(first.stdout.readline()))
        thread = waiting(lambda: order.append("other"))
        order.append("killed")
        first.kill()
        first.wait()
        thread.join(PATIENCE)
        os.kill(forked, signal.SIGKILL)  # it was still there
    assert order == ["killed", "other"]


def test_a_folder_that_we_may_only_read_needs_no_lock(tmp_path, monkeypatch):
    (tmp_path / "all" / ".lock").mkdir(parents=True)  # which makes locking fail for root, too
    with pytest.raises(OSError, match=r"\.lock"), locked(tmp_path / "all"):
        pass
    monkeypatch.setattr(os, "access", lambda *_: False)
    with locked(tmp_path / "all"):
        pass


def test_where_nobody_listens_nothing_is_said(monkeypatch, capsys):
    broken = mock.Mock(**{"write.side_effect": BrokenPipeError})
    closed = io.StringIO()
    closed.close()
    for stream in (None, broken, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        files.say("waiting")
    monkeypatch.undo()
    assert capsys.readouterr() == ("", "")
    files.say("waiting")
    assert capsys.readouterr() == ("", "waiting\n")


def test_what_is_said_at_a_terminal_takes_the_place_of_a_progress_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with files.progress_bar(total=2, file=terminal):
        files.say("waiting")
    assert re.search(r"0/2 .*\r\x1b\[Kwaiting\n\r", terminal.getvalue())
