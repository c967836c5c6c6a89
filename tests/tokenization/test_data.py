"""Token files give back the ids, in the smallest type that holds them, without being loaded."""

import os

import numpy as np
import pytest

from workbook.tokenization import token_files
from workbook.tokenization.token_files import read_text, read_tokens, token_dtype, write_tokens


def test_a_text_comes_back_in_blocks_with_its_line_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(token_files, "BLOCK", 4)
    text = "Eins\r\nzwei\ndreißig 🐉\r"
    (tmp_path / "text.txt").write_bytes(text.encode())
    blocks = list(read_text(tmp_path / "text.txt"))
    assert "".join(blocks) == text
    assert max(map(len, blocks)) == 4


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [(1, "uint16"), (257, "uint16"), (65_536, "uint16"), (65_537, "uint32"), (100_000, "uint32")],
)
def test_the_type_is_the_smallest_that_holds_every_id(vocab_size, dtype):
    assert token_dtype(vocab_size) == dtype


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 123])
@pytest.mark.parametrize("vocab_size", [1_000, 100_000])
def test_ids_come_back_from_a_memory_map(tmp_path, monkeypatch, count, vocab_size):
    monkeypatch.setattr(token_files, "BLOCK", 10)
    ids = list(np.random.default_rng(count).integers(vocab_size, size=count))
    assert write_tokens(tmp_path / "ids.npy", iter(ids), vocab_size) == count
    stored = read_tokens(tmp_path / "ids.npy")
    assert isinstance(stored, np.memmap) or not count
    assert stored.tolist() == ids
    assert stored.dtype == token_dtype(vocab_size)


@pytest.mark.parametrize("bad", [-1, 500, 70_000])
def test_an_id_outside_the_vocabulary_is_refused_and_leaves_no_file(tmp_path, bad):
    with pytest.raises(ValueError, match="do not fit a vocabulary of 500"):
        write_tokens(tmp_path / "ids.npy", [1, bad], 500)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [0, 5, 50, 128, 1000])
def test_a_file_that_was_cut_short_is_a_clear_error(tmp_path, left):
    write_tokens(tmp_path / "ids.npy", range(500), 500)
    os.truncate(tmp_path / "ids.npy", left)
    with pytest.raises(ValueError, match=r"ids\.npy is not a whole token file .*remove it"):
        read_tokens(tmp_path / "ids.npy")


def test_a_missing_file_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="encode the corpus first"):
        read_tokens(tmp_path / "none.npy")
