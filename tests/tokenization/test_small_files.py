"""Small files, and files whose last part is small, give the merges and ids of plain Python.

They are shared by one to five threads, however many cores this machine has, or by an executor.
"""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pretoken_helpers import ODD, PIECES, STRESS, pretokens_of

from workbook import config
from workbook.tokenization import engine, spans
from workbook.tokenization.bpe import train_bpe, train_naive
from workbook.tokenization.spans import cut_points
from workbook.tokenization.token_files import read_tokens, tokenize_file
from workbook.tokenization.tokenizer import PlainTokenizer, Tokenizer

END = "<|e|>"
LINE = "It's the 天 owl's tea, they said:  all the é and I'll be there 1,000 times\n"
SPAN = 80  # bytes: more than the longest of the last parts
SPANS_PER_TASK = 2
MERGES = 12
BY_EXECUTOR = 0  # instead of a number of threads
THREADS = [1, 2, 3, 4, 5, BY_EXECUTOR]

# `make stress` tries 21,000 random files, and 210 whose last part has 1 to 7 bytes.
FILES, LAST_PARTS = (700 * STRESS, 7 * STRESS) if STRESS > 1 else (200, 42)


@pytest.fixture(scope="module", autouse=True)
def small_spans():
    """Files of a few bytes are cut, shared, and worth the compiled engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "SPAN", SPAN)
        patch.setattr(spans, "SPANS_PER_TASK", SPANS_PER_TASK)
        patch.setattr(spans, "PER_THREAD", 1)
        patch.setattr(engine, "pays_off", lambda size: True)
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("small") / "text.txt"


@pytest.fixture(scope="module")
def tokenizer(path):
    path.write_bytes(LINE.encode())
    return Tokenizer(*train_bpe(path, 300, []))


@pytest.fixture(scope="module")
def marked(tokenizer):
    """The same tokenizer, with a special token."""
    return Tokenizer(tokenizer.vocab, tokenizer.merges, [END])


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as executor:
        yield executor


def train_and_encode(path: Path, one: Tokenizer, pool: ThreadPoolExecutor, threads: int):
    """The merges of a file, and its ids."""
    executor = pool if threads == BY_EXECUTOR else None
    vocab_size = 256 + len(one.special_tokens) + MERGES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "cores", lambda: threads)
        _, merges = train_bpe(path, vocab_size, one.special_tokens, executor=executor)
        return merges, one.encode_file(path, executor).tolist()


def train_and_encode_plainly(text: str, one: Tokenizer):
    """The same by the textbook's algorithms."""
    counts = Counter(pretokens_of(text, one.special_tokens))
    for token in one.special_tokens:
        del counts[token]
    plain = PlainTokenizer(one.vocab, one.merges, one.special_tokens)
    return train_naive(counts, MERGES), plain.encode(text)


def text_with_last_part(last: str, threads: int) -> str:
    """A text that is cut before `last`, which begins with a space and is a task of its own.

    Every other task gets two spans, those of the executor and those of 2 to 5 threads.
    """
    size = SPAN * SPANS_PER_TASK * max(threads - 1, 1)
    before = (LINE * size).encode()[:size].decode(errors="ignore")
    # From `size` on, the first place to cut is behind the last "x".
    return before + "x" * (size + 1 - len(before.encode())) + last


def length_of_last_part(path: Path) -> int:
    *_, start, end = cut_points(path)
    return end - start


def shortened(text: str, size: int) -> str:
    """The characters of a text that lie in its first `size` bytes."""
    return text.encode()[:size].decode(errors="ignore")


@given(st.text(st.sampled_from(ODD)), st.integers(0, 70), st.sampled_from(THREADS))
@example("", 0, 5)
@example("", 1, 3)
@example("ab", 3, BY_EXECUTOR)
def test_a_last_part_of_few_bytes_is_counted_and_encoded(
    path, tokenizer, pool, text, size, threads
):
    last = shortened(f" {text}", size)
    whole = text_with_last_part(last, threads)
    path.write_bytes(whole.encode())
    assert length_of_last_part(path) == len(last.encode()) or not last
    done = train_and_encode(path, tokenizer, pool, threads)
    assert done == train_and_encode_plainly(whole, tokenizer)


def random_text(draw: random.Random, most: int) -> str:
    """A text of at most so many bytes, with special tokens in it."""
    return shortened("".join(draw.choices([*PIECES, END], k=most)), draw.randint(0, most))


@pytest.mark.slow
@pytest.mark.stress
def test_random_small_files_are_like_plain_python(path, marked, pool):
    draw = random.Random(STRESS)
    for _ in range(FILES):
        text = random_text(draw, 300)
        path.write_bytes(text.encode())
        threads = draw.choice(THREADS)
        done = train_and_encode(path, marked, pool, threads)
        assert done == train_and_encode_plainly(text, marked), (text, threads)


@pytest.mark.slow
@pytest.mark.stress
def test_files_with_a_last_part_of_1_to_7_bytes_are_like_plain_python(path, tokenizer, pool):
    """Their token files, too."""
    draw = random.Random(STRESS)
    target = path.with_suffix(".npy")
    for number in range(LAST_PARTS):
        last = shortened(" " + "".join(draw.choices(PIECES, k=7)), 1 + number % 7)
        threads = draw.choice(THREADS)
        text = text_with_last_part(last, threads)
        path.write_bytes(text.encode())
        assert length_of_last_part(path) == len(last.encode())
        merges, ids = train_and_encode(path, tokenizer, pool, threads)
        assert (merges, ids) == train_and_encode_plainly(text, tokenizer), (text, threads)
        executor = pool if threads == BY_EXECUTOR else None
        target.unlink(missing_ok=True)  # a coarse clock may not tell this file from the last one
        assert tokenize_file(tokenizer, path, target, executor) == len(ids)
        assert read_tokens(target).tolist() == ids
