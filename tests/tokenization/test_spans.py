"""Files are cut between pre-tokens, counted alike by both engines, and read whole or not at all."""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain, pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretoken_helpers import MARKED, SPECIALS, as_counter, pretokens_of

from workbook.corpora import corpora
from workbook.tokenization import engine, spans, token_files, tokenizer
from workbook.tokenization.compiled import count
from workbook.tokenization.compiled import text as compiled_text
from workbook.tokenization.spans import count_pretokens, cut_points
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"
TEXT = f"It's {END}the  ünï 天 owl 1,000.\r\n{END}\n".encode() * 150
ONE = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [], [END])


def compiled_count(path, special_tokens, executor=None):
    return as_counter(count.count_file(path, special_tokens, executor))


COUNTERS = [count_pretokens, compiled_count]


@pytest.mark.slow
@given(
    text=MARKED.map(lambda text: text * 40),
    special_tokens=SPECIALS,
    window=st.sampled_from([4, 16, 100]),
)
def test_no_pretoken_lies_across_a_cut(tmp_path_factory, text, special_tokens, window):
    path = tmp_path_factory.mktemp("cut") / "text.txt"
    path.write_bytes(text.encode("utf-8", errors="replace"))
    data = path.read_bytes()
    cuts = cut_points(path, special_tokens, span=16)
    of_file = [data[start:end] for start, end in pairwise(cuts)]
    with (
        mock.patch.object(spans, "SPAN", 16),
        mock.patch.object(spans, "WINDOW", window),
        mock.patch.object(compiled_text, "COPIED", window),
    ):
        parts = compiled_text.spans_of(np.frombuffer(data, np.uint8), special_tokens)
        in_memory = [part.tobytes() for part in parts]
    for parts in (of_file, in_memory):
        found = (pretokens_of(part.decode(), special_tokens) for part in parts)
        assert list(chain.from_iterable(found)) == pretokens_of(data.decode(), special_tokens)


def test_long_texts_of_many_scripts_are_cut(tmp_path):
    path = tmp_path / "text.txt"
    for line in ("one two, it's 3\r\n", "天气很好。\n", "Привет мир\n", "x<|e|> y"):
        path.write_bytes((line * 200).encode())
        assert len(cut_points(path, ["<|e|>"], span=256)) > 5


def written(path):
    path.write_bytes(TEXT)
    os.utime(path, (0, 0))  # long ago, so that no clock is too coarse for what comes
    return path


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file that is cut into many spans, a few to a task, and shared by threads."""
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 3)
    monkeypatch.setattr(spans, "PER_THREAD", 1)
    monkeypatch.setattr(spans, "SPAN", 512)
    monkeypatch.setattr(spans, "BLOCK", 100)
    return written(tmp_path / "text.txt")


@pytest.mark.slow
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_file_is_counted_alike_in_one_piece_and_in_many(path, counter):
    expected = Counter(pretokens_of(TEXT.decode(), [END]))
    del expected[END]
    assert counter(path, [END]) == expected
    for pool in (ThreadPoolExecutor(2), ProcessPoolExecutor(2)):
        with pool as executor:
            assert counter(path, [END], executor) == expected


def test_a_bar_moves_by_all_that_is_counted(path):
    with mock.patch.object(count, "progress_bar") as bar:
        compiled_count(path, [END])
    moves = bar.return_value.update.call_args_list
    assert len(moves) > 3 and sum(move.args[0] for move in moves) == len(TEXT)


@pytest.mark.parametrize("counter", COUNTERS)
def test_odd_files_are_counted_and_missing_ones_named(tmp_path, counter):
    path = tmp_path / "text.txt"
    for data, expected in (
        (b"", {}),
        (bytes(300_000), {"\0" * 300_000: 1}),
        (END.encode() * 10_000 + b"a", {"a": 1}),
    ):
        path.write_bytes(data)
        assert counter(path, [END]) == expected
        with ThreadPoolExecutor(2) as executor:
            assert counter(path, [END], executor) == expected


@pytest.mark.parametrize("counter", COUNTERS)
def test_invalid_utf8_is_refused_with_its_place(path, counter, monkeypatch):
    path.write_bytes(TEXT[:5010] + b"\xff" + TEXT[5010:])
    for block in (5, 6, 100):  # characters lie across the blocks that are decoded
        monkeypatch.setattr(spans, "BLOCK", block)
        with pytest.raises(ValueError, match=r"not UTF-8: byte 0xff at offset 5,010"):
            counter(path, [END])
    path.write_bytes(TEXT + "é".encode()[:-1])
    with pytest.raises(ValueError, match=rf"byte 0xc3 at offset {len(TEXT):,}"):
        counter(path, [END])


# --- A file that changes while it is read --------------------------------------------------------


def shrink(path):
    os.truncate(path, len(TEXT) // 2)


def grow(path):
    path.write_bytes(TEXT * 2)


def replace(path):
    """Another file of the same size."""
    path.with_name("other").write_bytes(TEXT.swapcase())
    path.with_name("other").replace(path)


CHANGES = [shrink, grow, replace, lambda path: path.unlink()]


@pytest.fixture(params=CHANGES)
def change(request, path, monkeypatch):
    """What becomes of the file as soon as it is known where to cut it."""
    find = spans.cut_points

    def cut_points(*arguments):
        cuts = find(*arguments)
        request.param(path)
        return cuts

    for module in (spans, count, tokenizer, token_files):
        monkeypatch.setattr(module, "cut_points", cut_points)


def refused(path):
    return pytest.raises(ValueError, match=rf"{path} changed while it was read.* try again")


@pytest.mark.slow
@pytest.mark.parametrize("is_compiled", [True, False])
def test_no_engine_mixes_two_texts(path, change, monkeypatch, is_compiled):
    """And there is no token file of them, nor any shard."""
    monkeypatch.setattr(engine, "pays_off", lambda size: is_compiled)
    target = path.with_name("ids.npy")
    with ThreadPoolExecutor(2) as pool:
        with refused(path):
            COUNTERS[is_compiled](path, [END], pool)
        for executor in (None, pool):
            with refused(written(path)):
                ONE.encode_file(path, executor)
            with refused(written(path)):
                token_files.tokenize_file(ONE, path, target, executor)
            assert not target.exists() and not list(path.parent.glob(".ids.npy.*/*.npy"))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("read", [token_files.read_text, corpora.documents])
def test_streams_do_not_end_as_if_all_were_well(path, change, read, monkeypatch):
    for module in (spans, corpora):
        monkeypatch.setattr(module, "BLOCK", 1000)
    stream = read(path)
    next(stream)
    change(path)
    with refused(path):
        list(stream)
