"""A file written by `atomic_write` is whole or not there."""

import os
import stat

import pytest

from workbook.files import alone, atomic_write


def test_text_is_utf8_with_unix_line_ends(tmp_path):
    with atomic_write(tmp_path / "new" / "a.txt") as file:
        file.write("ağaç\n木\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "ağaç\n木\n".encode()


def test_bytes_are_written_as_they_are(tmp_path):
    with atomic_write(tmp_path / "a.bin", "wb") as file:
        file.write(b"\x00\r\n\xff")
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\r\n\xff"


def test_nothing_is_seen_before_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write("half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


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
            alone(folder).__enter__()


def test_a_folder_where_a_file_is_wanted_is_named_at_once(tmp_path):
    with pytest.raises(OSError, match=f"{tmp_path} is a folder where a file is to be written"):
        atomic_write(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []
