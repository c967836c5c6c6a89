"""Files, and last parts of files, of a few bytes: the engine equals the plain path on each."""

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pretoken_helpers import PIECES, STRESS

from workbook.tokenization import compiled, spans
from workbook.tokenization.bpe import train_bpe, train_naive
from workbook.tokenization.spans import count_pretokens, cut_points
from workbook.tokenization.tokenizer import PlainTokenizer, Tokenizer

pytestmark = pytest.mark.slow

SPECIALS = ["<|endoftext|>"]
NUM_MERGES = 12
SPAN = 64  # bytes, in place of four million
THREADS = (1, 2, 3, 4, 5)
SMALL_FILES = 667 * STRESS if STRESS > 1 else 300  # 20,000 under `make stress`
LAST_PARTS = 200 if STRESS > 1 else 40
WHOLE_SPANS = range(1, 9) if STRESS > 1 else (1, 4)  # before the last part


@pytest.fixture(autouse=True)
def small_spans(monkeypatch):
    """Files of some hundred bytes are cut and shared as those of many millions are."""
    compiled.load_kernels()
    monkeypatch.setattr(spans, "SPAN", SPAN)
    monkeypatch.setattr(spans, "PER_THREAD", SPAN)
    monkeypatch.setattr(spans, "SPANS_PER_TASK", 2)


def expect_equal(
    path: Path, text: str, executor: ThreadPoolExecutor | None = None, special_tokens=()
) -> None:
    """Train and encode by the engine, and compare with the plain functions."""
    path.write_bytes(text.encode())
    vocab_size = 256 + len(special_tokens) + NUM_MERGES
    vocab, merges = train_bpe(path, vocab_size, special_tokens, executor=executor)
    assert merges == train_naive(count_pretokens(path, special_tokens), NUM_MERGES), text
    ids = Tokenizer(vocab, merges, special_tokens).encode_file(path, executor)
    assert ids.tolist() == PlainTokenizer(vocab, merges, special_tokens).encode(text), text


def use_threads(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let this process have so many cores, and so, on a large file, as many threads."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(number), raising=False)


def random_texts(number: int, most: int) -> Iterator[str]:
    """Odd texts of at most so many bytes."""
    draw = random.Random(STRESS)
    pieces = [*PIECES, *SPECIALS]
    for _ in range(number):
        text = "".join(draw.choices(pieces, k=draw.randint(0, 120))).encode()
        yield text[: draw.randint(0, most)].decode(errors="ignore")


def texts_with_a_last_part(length: int) -> Iterator[str]:
    """Texts of some spans, after the last of which come so many bytes.

    There are no special tokens: within the length of one from the end, nothing is cut.
    """
    for whole in WHOLE_SPANS:
        # The first place to cut at or after the span's end is behind this "y".
        body = ("one day the fox " * SPAN)[: whole * SPAN] + "y"
        yield (
            body
            + " is red, and so is he; the den is deep and the night is long, long, long"[:length]
        )


def test_the_last_parts_are_as_short_as_they_are_meant_to_be(tmp_path):
    path = tmp_path / "text"
    lengths = set()
    for length in range(1, 8):
        for text in texts_with_a_last_part(length):
            path.write_text(text)
            cuts = cut_points(path)
            lengths.add(cuts[-1] - cuts[-2])
    assert set(range(1, 8)) <= lengths


@pytest.mark.parametrize("threads", THREADS)
def test_a_last_part_of_any_length_is_trained_on_and_encoded(tmp_path, monkeypatch, threads):
    use_threads(monkeypatch, threads)
    for length in range(71):
        for text in texts_with_a_last_part(length):
            expect_equal(tmp_path / "text", text)


@pytest.mark.parametrize("spans_per_task", [1, 2, 32])
def test_a_last_part_of_any_length_is_no_worse_with_an_executor(
    tmp_path, monkeypatch, spans_per_task
):
    monkeypatch.setattr(spans, "SPANS_PER_TASK", spans_per_task)
    with ThreadPoolExecutor(2) as executor:
        for length in range(71):
            for text in texts_with_a_last_part(length):
                expect_equal(tmp_path / "text", text, executor)


@pytest.mark.stress
@pytest.mark.parametrize("threads", THREADS)
def test_random_small_files_are_trained_on_and_encoded(tmp_path, monkeypatch, threads):
    use_threads(monkeypatch, threads)
    for text in random_texts(SMALL_FILES // len(THREADS), 300):
        expect_equal(tmp_path / "text", text, special_tokens=SPECIALS)


@pytest.mark.stress
@pytest.mark.parametrize("threads", THREADS)
def test_random_files_with_a_last_part_of_a_few_bytes(tmp_path, monkeypatch, threads):
    use_threads(monkeypatch, threads)
    draw = random.Random(STRESS)
    for text in random_texts(LAST_PARTS // len(THREADS), 5 * SPAN):
        until_the_cut = -len(text.encode()) % SPAN + 1
        last = " is red"[: draw.randint(1, 7)]
        expect_equal(tmp_path / "text", text + "y" * until_the_cut + last)
