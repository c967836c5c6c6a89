"""Compiled code finds pre-tokens like `regex`, counts like `Counter`, merges like `train_naive`."""

import random
import subprocess
import sys
import weakref
from collections import Counter
from itertools import chain, islice, product
from unittest.mock import Mock

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from pretoken_helpers import ODD, STRESS, TEXTS, as_counter, counted, merges_of, random_strings

from workbook.tokenization import compiled, engine
from workbook.tokenization.bpe import (
    count_pairs,
    merge_pair,
    train_bpe,
    train_incremental,
    train_naive,
)
from workbook.tokenization.compiled import count, merge, scan, table
from workbook.tokenization.compiled.encode import (
    FEW_BYTES,
    FEW_CHARACTERS,
    MOST_SYMBOLS,
    CompiledEncoder,
)
from workbook.tokenization.compiled.machine import PADDING, padded, text_address
from workbook.tokenization.compiled.text import (
    SpecialTokens,
    first_not_utf8,
    read_spans,
    utf8_of,
)
from workbook.tokenization.pretokens import PATTERN, whole_pretokens
from workbook.tokenization.tokenizer import Tokenizer

WHOLE = regex.compile(PATTERN)
WORDS = st.lists(st.text(st.sampled_from("abc"), max_size=12) | st.text(max_size=6), max_size=40)

# --- Scanning ------------------------------------------------------------------------------------


@pytest.mark.stress
@settings(max_examples=300 * STRESS)
@given(TEXTS)
def test_pretokens_equal_those_of_regex(string):
    assert as_counter(counted(string)) == Counter(regex.findall(PATTERN, string))


@given(st.text(st.sampled_from(ODD.encode("ascii", "ignore").decode())))
def test_pretokens_of_ascii_equal_those_of_regex(string):
    """In the readable tokenizer too, which has a pattern of its own for ASCII."""
    expected = regex.findall(PATTERN, string)
    assert as_counter(counted(string)) == Counter(expected)
    assert whole_pretokens(string, regex.compile("(?!)")) == expected


@pytest.mark.slow
def test_pretokens_equal_those_of_regex_on_every_character():
    """Each that is assigned between letters, spaces and digits, in one long text of them all."""
    draw = random.Random(0)
    codes = [*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE0200), sys.maxunicode]
    draw.shuffle(codes)
    between = draw.choices(["", " ", "  ", "\n", "a", "1", "'s", "\u3000", "!"], k=len(codes))
    string = "".join(chr(code) + after for code, after in zip(codes, between, strict=True))
    assert as_counter(counted(string)) == Counter(regex.findall(PATTERN, string))


def test_the_planes_that_are_not_asked_for_have_no_letters():
    text = "".join(map(chr, range(scan.LETTERS_END, sys.maxunicode + 1)))
    assert regex.search(r"[\p{L}\p{N}\s]", text) is None


@pytest.mark.parametrize("filler", ["a", " ", "1", "!", "é", "\u3000"])
def test_what_lies_across_the_end_of_a_block_is_found(filler):
    """64 bytes are looked at together: contractions, white space and characters that begin in one
    block and end in the next, alone and before a special token."""
    pieces = ["'s", "'ll", "''ve", "'s'd", " ", "\n x", " \u3000 b", "\xa0\xa0", "é", "中", "🙂"]
    for piece, before in product(pieces, range(57, 66)):
        size = len(filler.encode())
        text = "x" * (before % size) + filler * (before // size) + piece
        for string in (text + "t", text + " é", text + filler * 70):
            found = as_counter(counted(string))
            assert found == Counter(regex.findall(PATTERN, string))
            assert as_counter(counted(string + "<s>s", ["<s>"])) == found + Counter(["s"])


ODD_BYTES = b"A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff"


@settings(max_examples=500)
@given(st.lists(st.sampled_from(ODD_BYTES), max_size=8).map(bytes) | TEXTS.map(str.encode))
def test_bytes_are_utf8_as_far_as_python_says(data):
    for before in (b"", b"a" * 61, "é".encode() * 40):
        text = before + data
        expected = len(before + data)
        try:
            text.decode()
        except UnicodeDecodeError as error:
            expected = error.start
        memory = padded(text)
        start = memory.ctypes.data
        assert first_not_utf8(start, start + len(text)) - start == expected


# --- Counting ------------------------------------------------------------------------------------


@given(st.lists(TEXTS, max_size=4))
def test_tables_add_up(strings):
    total = table.PretokenTable(capacity=2)
    for string in strings:
        count.add_counts(total, counted(string))
    expected = Counter(pretoken for s in strings for pretoken in regex.findall(PATTERN, s))
    assert as_counter(count.Counts(*total.contents())) == expected


TRAIN_ON_FEW_BYTES = """
import sys
from pathlib import Path
from workbook.tokenization import compiled
from workbook.tokenization.bpe import train_bpe, train_naive

compiled.load_kernels()
path = Path(sys.argv[1])
for size in range(10):
    word = "abababcab"[:size]
    path.write_text(word)
    assert train_bpe(path, 300, [])[1] == train_naive({word: 1}, 44)
"""


def test_a_file_of_a_few_bytes_does_not_end_python(tmp_path):
    """In a process of its own, because there it once did."""
    command = [sys.executable, "-c", TRAIN_ON_FEW_BYTES, str(tmp_path / "text.txt")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("capacity", [-2, 0, 1, 3, 6, 1_000])
def test_a_table_has_a_power_of_two_of_slots(capacity):
    with pytest.raises(ValueError, match=f"power of two, got {capacity}"):
        table.PretokenTable(capacity)


@pytest.mark.parametrize("capacity", [2, 4, 8, 512, 1 << 14])
def test_a_table_that_takes_no_more_says_that_it_is_full_and_grows(capacity):
    """Else to make room and to try again would never end."""
    words = [f"{number:05}".encode() for number in range(9_000)]
    text = padded(b"".join(words))
    lengths = np.full(9_000, 5)
    ones = np.ones(9_000, np.int64)
    entries = table.PretokenTable(capacity)
    progress = np.array([0, text.ctypes.data])
    while longest := count.add_words(lengths, ones, entries.address, progress):
        assert entries.is_full()
        assert progress[0] == len(entries) == len(entries.slots) // 2
        entries.grow(longest)
        assert not entries.is_full()
    assert as_counter(count.Counts(*entries.contents())) == dict.fromkeys(
        map(bytes.decode, words), 1
    )


def test_long_pretokens_are_told_apart_by_their_bytes():
    words = [f"{'x' * length}{end}" for length in range(1, 60) for end in ("", "y", "z")]
    text = " ".join(words * 2)
    assert as_counter(counted(text)) == Counter(regex.findall(PATTERN, text))


def test_equal_keys_of_long_pretokens_are_no_proof():
    """Two words made so that their keys are equal are counted apart."""
    one = np.frombuffer(b"twenty-four bytes it has", np.uint64)
    other = one.copy()
    other[0] = int.from_bytes(b"Twenty-f", "little")
    other[1] ^= mixed(24 ^ int(one[0])) ^ mixed(24 ^ int(other[0]))
    entries = table.PretokenTable()
    text = padded(one.tobytes() + other.tobytes())
    count.add_counts(entries, count.Counts(text, np.array([24, 24]), np.array([1, 2])))
    slots = entries.slots[entries.slots[:, 1] > 0]
    assert slots[0, :2].tolist() == slots[1, :2].tolist(), "the keys are not equal any more"
    assert sorted(slots[:, 3].tolist()) == [1, 2]


def mixed(value: int) -> int:
    """A step of the hash in `keys_of`, in Python's own numbers."""
    value = value * int(table.MIX_A) % 2**64
    return value ^ value >> 32


def test_the_kinds_of_characters_are_held_while_they_are_used(monkeypatch):
    """Of two threads that ask for them first, one gets an array that nobody else holds."""
    kinds = scan.character_kinds()
    monkeypatch.setattr(scan, "character_kinds", kinds.copy)
    assert as_counter(counted("é天 " * 9)) == {"é天": 1, " é天": 8, " ": 1}


def test_what_follows_a_document_is_never_read():
    """Else each document of this text would take as long as all that follow it: minutes."""
    text = "ab" * 200_000
    assert as_counter(counted(text, ["b"])) == {"a": 200_000}
    assert as_counter(counted(text, ["bab"])) == {"a": 100_000}


# --- Merging -------------------------------------------------------------------------------------


@given(WORDS, st.integers(0, 60))
def test_merges_equal_naive(words, number):
    counts = counted(" ".join(words))
    assert merges_of(counts, number) == train_naive(as_counter(counts), number)


@pytest.mark.stress
def test_random_strings_give_the_merges_of_the_naive_trainer():
    """Each is a document of its own."""
    strings = random_strings()
    while chunk := list(islice(strings, 1_000)):
        expected = Counter(chain.from_iterable(map(WHOLE.findall, chunk)))
        counts = counted("<s>".join(chunk), ["<s>"])
        assert as_counter(counts) == expected
        assert merges_of(counts, 12) == train_naive(expected, 12)


def test_more_bytes_than_32_bit_places_reach_are_refused(monkeypatch):
    assert np.iinfo(np.int32).max == merge.MOST_CELLS + 1
    words = counted("ab " * 500 + "cd")  # "ab", " ab" and " cd": 8 bytes, and an edge for each
    monkeypatch.setattr(merge, "MOST_CELLS", 11)
    assert merges_of(words, 1) == [(b"a", b"b")]
    monkeypatch.setattr(merge, "MOST_CELLS", 10)
    with pytest.raises(ValueError, match="11 bytes of different pre-tokens are too many"):
        merge.learn_merges(words, 1)


@pytest.mark.slow
def test_memory_that_runs_short_is_enlarged(monkeypatch):
    """The merges stay the same where the array of pairs begins too small."""
    draw = random.Random(2)
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 2_000)]
    words = [draw.choices(letters, k=9) for _ in range(3_000)]
    words += [draw.choices("etaoin shrdlué", k=draw.randint(1, 14)) for _ in range(1_000)]
    counts = counted(" ".join(map("".join, words)))
    enlarged = []
    doubled = merge.doubled
    monkeypatch.setattr(merge, "doubled", lambda array: enlarged.append(1) or doubled(array))
    merges = merges_of(counts, 12_000)
    assert enlarged
    assert merges == train_incremental(as_counter(counts), 12_000)


@pytest.mark.slow
def test_all_pairs_of_bytes_leave_no_room_for_the_first_merge():
    """The array of pairs is enlarged, and then no pair may enter the heap a second time."""
    draw = random.Random(0)
    words = [bytes(pair) for pair in product(range(256), repeat=2)]
    words += [bytes(draw.choices(b"abcdefgh", k=6)) for _ in range(400)]
    numbers = [draw.randint(1, 5) for _ in words]
    lengths = np.array([len(word) for word in words])
    counts = count.Counts(padded(b"".join(words)), lengths, np.array(numbers))
    symbols = [[bytes([byte]) for byte in word] for word in words]
    expected = []
    for _ in range(3):
        pairs = count_pairs(list(zip(symbols, numbers, strict=True)))
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        expected.append(best)
        symbols = [merge_pair(word, best) for word in symbols]
    assert merges_of(counts, 3) == expected
    assert len(set(merges_of(counts, 400))) == 400


def test_counts_need_64_bits():
    counts = counted("ab ab cd")
    huge = count.Counts(counts.text, counts.lengths, counts.counts * (1 << 60))
    assert merges_of(huge, 9) == merges_of(counts, 9)


def test_more_merges_than_there_are_pairs_may_be_asked_for():
    assert merges_of(counted("ab"), 1 << 40) == [(b"a", b"b")]


def test_large_texts_go_through_the_engine_if_it_is_ready(tmp_path, monkeypatch):
    """An encoder of None, as this one returns, leaves the text to Python."""
    text = tmp_path / "text.txt"
    calls = []
    text.write_bytes(b"an owl " * 16_000)
    monkeypatch.setattr(compiled, "train_on_file", lambda *_: calls.append("train_on_file") or [])
    monkeypatch.setattr(compiled, "make_encoder", lambda *_: calls.append("make_encoder"))
    monkeypatch.setattr(engine, "is_on_disk", lambda: False)
    for loaded in (False, True):  # only a ready engine is quicker than Python on 112 kB
        monkeypatch.setattr(engine, "loaded", loaded)
        train_bpe(text, 300, [])
        Tokenizer({byte: bytes([byte]) for byte in range(256)}, []).encode_file(text)
        assert calls == (["train_on_file", "make_encoder"] if loaded else [])


def test_short_texts_are_worth_an_encoder_together(monkeypatch):
    monkeypatch.setattr(engine, "loaded", True)
    made = Mock(side_effect=compiled.make_encoder)
    monkeypatch.setattr(compiled, "make_encoder", made)
    one = Tokenizer({byte: bytes([byte]) for byte in range(256)}, [])
    encoders = []
    for words in (9_000, 5_000, 3_000, 1):
        text = "an owl " * words
        assert one.encode(text) == list(text.encode())
        encoders.append(made.call_count)
    assert encoders == [0, 0, 1, 1]


# --- What compiled code assumes ------------------------------------------------------------------


def test_a_text_that_nothing_follows_is_refused():
    """Compiled code reads past its end, where there may be no memory."""
    data = np.full(200, ord("a"), np.uint8)
    total = table.PretokenTable()
    count.count_text(total, data[: 200 - PADDING], SpecialTokens({}))
    assert len(total) == 1
    for unpadded, behind in ((data, 0), (data[: 201 - PADDING], PADDING - 1), (data[190:], 0)):
        with pytest.raises(ValueError, match=f"64 bytes are read behind a text, .* has {behind}"):
            count.count_text(total, unpadded, SpecialTokens({}))
        with pytest.raises(ValueError, match=f"64 bytes are read behind a text, .* has {behind}"):
            encoder_of().encode_spans([unpadded], len(unpadded))
    for odd in (data.view(np.int8), data[::2], data.reshape(2, 100)):
        with pytest.raises(ValueError, match="a text is bytes in a row"):
            text_address(odd)


def test_the_bytes_of_a_string_hold_it():
    class Text(str):
        """A string to which there are weak references."""

    string = Text("naïve owls " * 40)
    held = weakref.ref(string)
    part = utf8_of(string)[100:200]
    expected = string.encode()[100:200]
    del string
    assert held() is not None and part.tobytes() == expected
    del part
    assert held() is None
    assert utf8_of("").tolist() == []


def test_counts_that_do_not_fit_each_other_are_refused():
    text = padded(b"abc")
    ones = np.ones(2, np.int64)
    assert as_counter(count.Counts(text, np.array([1, 2]), ones)) == {"a": 1, "bc": 1}
    for lengths, words in (
        (np.array([3]), "a length of at least one byte, and a count"),
        (np.array([3, 0]), "a length of at least one byte, and a count"),
        (np.array([2, 2]), "64 bytes are read behind a text, and this one has 63"),
        (np.array([40, 40]), "64 bytes are read behind a text, and this one has 0"),
    ):
        with pytest.raises(ValueError, match=words):
            count.Counts(text, lengths, ones)


@pytest.mark.parametrize("cuts", [[], [0], [0, 9, 5]])
def test_parts_of_a_file_lie_between_ascending_cuts(tmp_path, cuts):
    path = tmp_path / "text.txt"
    path.write_text("an owl flew by")
    with pytest.raises(ValueError, match="between ascending cuts, got"):
        list(read_spans(path, cuts))


NO_MERGES = np.empty((0, 2), np.int64)
BYTES = np.arange(256)


def encoder_of(merges=NO_MERGES, ids=BYTES, specials=None, dtype=np.uint16):
    return CompiledEncoder(merges, ids, specials or {}, np.dtype(dtype))


def test_an_encoder_takes_only_what_fits_together():
    """A symbol, an id or a text beyond what there is room for would be written elsewhere."""
    pair = np.array([[97, 98]])
    ids = np.arange(257)
    assert encoder_of(pair, ids, {"<s>": 65_535}).encode("ab<s>a").tolist() == [256, 65_535, 97]
    assert encoder_of(pair, ids[::-1]).encode("aba").tolist() == [0, 256 - 97]
    many = np.zeros((MOST_SYMBOLS, 2), np.int64)
    for arguments, words in (
        ((pair, ids[:256]), "256 bytes and 1 merges need an id each, got 256"),
        ((many, np.zeros(256 + len(many), np.int64)), "room for 2,097,151 symbols"),
        ((np.array([[97, 257]]), ids), "pairs of the symbols 0 to 256"),
        ((np.array([[-1, 97]]), ids), "pairs of the symbols 0 to 256"),
        ((pair, ids, {}, np.uint64), "ids are uint16 or uint32, got uint64"),
        ((pair, ids + 65_280), "ids from 65280 to 65536 do not fit into uint16"),
        ((pair, ids - 1), "ids from -1 to 255 do not fit into uint16"),
        ((pair, ids, {"<s>": -1}), "ids from -1 to 256 do not fit into uint16"),
        ((pair, ids, {"<s>": 65_536}), "ids from 0 to 65536 do not fit into uint16"),
    ):
        with pytest.raises(ValueError, match=words):
            encoder_of(*arguments)
    with pytest.raises(TypeError, match=r"add_pairs takes int64\[:, ::1\], got an array of int32"):
        encoder_of(pair.astype(np.int32), ids)


def test_an_encoder_refuses_more_text_than_it_has_room_for():
    one = encoder_of()
    spans = [padded(b"owl ")[:4]] * 3
    assert one.encode_spans(spans, 12).tolist() == list(b"owl owl owl ")
    with pytest.raises(ValueError, match="spans are 1 bytes longer than the room for their ids"):
        one.encode_spans(spans, 11)


@pytest.mark.parametrize("letter", "aé天🙂")
def test_short_and_long_texts_have_room(letter):
    """However many bytes each character of the longest text has that counts as short."""
    one = encoder_of()
    for size in (FEW_CHARACTERS, FEW_CHARACTERS + 1):
        assert one.encode(letter * size).tolist() == list((letter * size).encode())


@pytest.mark.slow
@pytest.mark.parametrize("between", ["", "\0", "\0\0"])
def test_texts_are_encoded_together_up_to_a_length(between):
    """Whatever stands in them; longer ones are the caller's."""
    one = encoder_of()
    texts = ["", f"é{between}ê", *["b"] * 9, between]
    room = FEW_BYTES - len("".join(texts).encode())
    for some in (texts, [*texts, "a" * room], ["b"] * FEW_BYTES, ["", ""], [between], []):
        ids, numbers = one.encode_each(some)
        assert numbers.tolist() == [len(string.encode()) for string in some]
        assert ids.tolist() == list("".join(some).encode())
    assert one.encode_each([*texts, "a" * (room + 1)]) is None
    assert one.encode_each(["天" * FEW_CHARACTERS, "天" * FEW_CHARACTERS]) is None


def test_what_is_left_of_a_longer_text_does_not_matter():
    """The memory of short texts is used again, and what lies behind one is the one before."""
    one = encoder_of()
    for string in ("é天'll x ", "天'l", "天'", "é ", "é", " ", ""):
        assert one.encode(string).tolist() == list(string.encode())


def test_a_tokenizer_without_a_vocabulary_says_so(monkeypatch):
    monkeypatch.setattr(engine, "pays_off", lambda size: True)
    with pytest.raises(ValueError, match="the vocabulary lacks the byte b'a'"):
        Tokenizer({}, []).encode("a")
