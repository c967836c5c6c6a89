"""A file that changes while it is read is an error that names it, and never half a result."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbook.corpora import corpora
from workbook.tokenization import spans, token_files, tokenizer
from workbook.tokenization.compiled import count
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"
TEXT = f"It's the  ünï 天 owl.\r\n{END}\n".encode() * 300
ONE = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], [END])


def shrink(path):
    os.truncate(path, len(TEXT) // 2)


def grow(path):
    path.write_bytes(TEXT * 2)


def replace(path):
    """Another file of the same size."""
    path.with_name("other").write_bytes(TEXT.swapcase())
    path.with_name("other").replace(path)


def remove(path):
    path.unlink()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file that is cut into many spans."""
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 3)
    monkeypatch.setattr(spans, "SPAN", 512)
    return written(tmp_path / "text.txt")


def written(path):
    path.write_bytes(TEXT)
    os.utime(path, (0, 0))  # long ago, so that no clock is too coarse for what comes
    return path


@pytest.fixture(params=[shrink, grow, replace, remove])
def change(request, path, monkeypatch):
    """What becomes of the file as soon as it is known where to cut it."""
    find = spans.cut_points

    def cut_points(*arguments):
        cuts = find(*arguments)
        request.param(path)
        return cuts

    for module in (spans, count, tokenizer, token_files):
        monkeypatch.setattr(module, "cut_points", cut_points)
    return request.param


@pytest.fixture(params=["alone", "side by side"])
def executor(request):
    with ThreadPoolExecutor(2) as pool:
        yield pool if request.param == "side by side" else None


def refused(path):
    return pytest.raises(ValueError, match=rf"{path} changed while it was read.* call again")


def test_the_compiled_engine_does_not_take_what_it_held_before(path, change, executor, monkeypatch):
    monkeypatch.setattr(tokenizer, "COMPILED_FROM", 0)
    with refused(path):
        ONE.encode_file(path, executor)
    with refused(path):
        count.count_file(written(path), [END], executor)


@pytest.mark.parametrize("change", [grow, replace, remove], indirect=True)
def test_the_readable_one_does_not_mix_two_texts(path, change, executor):
    with refused(path):
        ONE.encode_file(path, executor)
    with ThreadPoolExecutor(2) as pool, refused(path):
        spans.count_pretokens(written(path), [END], pool)


SHRINKING = """
import os, sys
from workbook.tokenization import bpe, spans, tokenizer
from workbook.tokenization.tokenizer import Tokenizer

open_file = spans.Path.open

def cut_short(path, *mode):
    os.truncate(path, 1000)
    return open_file(path, *mode)

spans.Path.open = cut_short
one = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [])
for read in (one.encode_file, lambda path: bpe.train_bpe(path, 260, None)):
    with open(sys.argv[1], "wb") as file:
        file.write(b"It's the owl. " * 300)
    try:
        read(sys.argv[1])
    except ValueError as error:
        print(error)
"""


def test_a_file_that_shrinks_is_not_read_for_ever(tmp_path):
    command = [sys.executable, "-c", SHRINKING, str(tmp_path / "text.txt")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    first, second = done.stdout.splitlines()
    assert first == second
    assert first.startswith(f"{tmp_path / 'text.txt'} changed while it was read")


def test_no_token_file_is_made_and_no_shard_kept(path, change, executor, monkeypatch):
    monkeypatch.setattr(tokenizer, "COMPILED_FROM", 0)
    target = path.with_name("ids.npy")
    with refused(path):
        token_files.tokenize_file(ONE, path, target, executor)
    assert not target.exists() and not list(path.parent.glob(".ids.npy.*/*.npy"))


@pytest.mark.parametrize("change", [shrink, grow, replace, remove])
@pytest.mark.parametrize("read", [token_files.read_text, corpora.documents])
def test_streams_do_not_end_as_if_all_were_well(path, change, read, monkeypatch):
    for module in (token_files, corpora):
        monkeypatch.setattr(module, "BLOCK", 1000)
    stream = read(path)
    next(stream)
    change(path)
    with refused(path):
        list(stream)
