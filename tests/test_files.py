"""A file written by `atomic_write` is whole or not there."""

import os
import stat

import pytest

from workbook.files import atomic_write


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


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_others_may_read_what_was_written(tmp_path):
    with atomic_write(tmp_path / "a.txt") as file:
        file.write("shared")
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o644
