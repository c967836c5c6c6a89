"""Byte-level BPE: text to token ids and back.

    "the cat"  ->  "the" " cat"        pre-tokens
               ->  t h e | _ c a t     bytes
               ->  the | _c at         merges, the earliest learnt first
               ->  [257, 300, 279]     ids

`PlainTokenizer` is all that a tokenizer needs. `Tokenizer` gives the same ids many times as fast,
and is what everything here uses. `Encoder` is their interface, which they share with the tokenizers
in `simple`.
"""

import heapq
import math
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import lru_cache, partial
from itertools import chain, pairwise
from numbers import Integral
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import regex

from workbook import config
from workbook.files import unchanged
from workbook.tokenization import engine, gpt2_files, pretokens
from workbook.tokenization.bpe import Pair, merge_pair, split_bytes
from workbook.tokenization.spans import (
    AnyPath,
    cut_points,
    read_span,
    share,
    text_file,
)

if TYPE_CHECKING:
    from workbook.tokenization.compiled.encode import CompiledEncoder

BATCH_AT_ONCE = 1 << 19  # characters of a batch that are encoded at once
BATCH_PER_THREAD = 1 << 20  # characters of a batch that are worth a thread
REMEMBERED = 1 << 16  # words whose ids a tokenizer keeps from call to call: about 20 MB
REMEMBERED_IN_A_STREAM = 1 << 10  # the same within a stream, which then needs less than 1 MB
LONGEST_REMEMBERED = 64  # characters of a pre-token that is worth keeping

_surrogates = re.compile("[\ud800-\udfff]+")
REPAIR = 'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
PIECE = 1 << 12  # ids made integers at a time
MOST_INTEGERS = 1 << 20  # of a vocabulary, which are kept: about 40 MB

Specials = Sequence[str] | None  # special tokens, if there are any


def naming_surrogates(text: str) -> UnicodeEncodeError:
    """The error for a text with lone surrogates, which says where they are, and what to do.

    Text from JSON or Java may hold a character as two surrogates, which belong to UTF-16.
    """
    # Looked for in the whole text: the error before may be about a single word of it.
    where = next(_surrogates.finditer(text)).span()
    reason = f"surrogates not allowed: {REPAIR} joins pairs, and replaces halves by U+FFFD"
    return UnicodeEncodeError("utf-8", text, *where, reason)


class Encoder:
    """The interface of all tokenizers: text to ids, from a string or from a stream, and back.

    Subclasses implement `_ids`, for text that comes in pieces, and have a vocabulary.
    """

    vocab: Mapping[int, bytes]
    vocab_size: int

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        raise NotImplementedError

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises: TypeError if it is not a string; UnicodeEncodeError if the
        tokenizer needs its UTF-8 and it holds a lone surrogate, which UTF-8 cannot encode."""
        return list(self._ids([require_text(text)]))

    def encode_iterable(self, iterable: Iterable[str]) -> Iterator[int]:
        """The ids of the joined strings, one by one, in constant memory.

        They equal those of `encode` on the whole text, wherever the strings are cut, and each is
        yielded as soon as no later text can change it.
        """
        # A generator all the way down: nothing waits for the end of a text that may have none.
        return self._ids(iterable)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids; bytes that are not UTF-8 become U+FFFD.

        Raises: ValueError if an id is not in the vocabulary, TypeError if it is not an int.
        """
        # A token may be part of a character, so all bytes are joined before they are decoded.
        return b"".join(look_up_tokens(self.vocab, ids)).decode("utf-8", errors="replace")

    def tokens(self, text: str) -> list[tuple[int, bytes]]:
        """Each token of a text: its id and its bytes, which may be only part of a character."""
        # Bytes, because a token may be half a character, which no string can show.
        return [(token_id, self.vocab[token_id]) for token_id in self.encode(text)]


class PlainTokenizer(Encoder):
    """Byte-level BPE from a vocabulary and merges, such as `train_bpe` returns, as in the textbook.

    Special tokens that the vocabulary lacks get the next free ids; of overlapping ones the longest
    wins. Text that holds a special token always yields its id.
    Raises: ValueError if a merge is not a pair or needs a token that the vocabulary lacks, or an id
    is negative; TypeError if the vocabulary does not map ids to bytes.
    """

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Specials = None
    ) -> None:
        self.vocab = {}
        # A vocabulary often comes from JSON, where ids and tokens are easily swapped: so each is
        # checked.
        for token_id, token in vocab.items():
            if not (isinstance(token_id, Integral) and isinstance(token, bytes)):
                raise TypeError(f"vocab maps ids to bytes, got {token_id!r}: {token!r}")
            if token_id < 0:
                raise ValueError(f"an id is 0 or more, got {token_id} for {token!r}")
            self.vocab[int(token_id)] = token  # numpy's integers would overflow
        self.special_tokens = pretokens.check_special_tokens(special_tokens)
        # A special token has one id, whether or not the vocabulary had it before.
        known = set(self.vocab.values())
        for special in self.special_tokens:
            if special.encode() not in known:
                self.vocab[max(self.vocab, default=-1) + 1] = special.encode()
        # Not the number of tokens, if some ids are free: an embedding needs a row for each id.
        self.vocab_size = max(self.vocab, default=-1) + 1
        # Backwards, so that of two ids for the same bytes the lower one stays.
        self.id_of = {self.vocab[token_id]: token_id for token_id in sorted(self.vocab)[::-1]}
        self.special_ids = {token: self.id_of[token.encode()] for token in self.special_tokens}
        self._special = pretokens.special_pattern(self.special_tokens)
        self.merges: list[Pair] = []
        self.ranks: dict[Pair, int] = {}  # the lower, the earlier the merge was learnt
        for rank, merge in enumerate(merges):
            if len(merge) != 2 or not all(isinstance(token, bytes) for token in merge):
                raise ValueError(f"merge {rank} is two tokens, both bytes, got {merge!r}")
            # All three are needed: the two to be found, and the one that they become.
            left, right = merge
            for token in (left, right, left + right):
                if token not in self.id_of:
                    raise ValueError(
                        f"merge {rank}, {left!r} + {right!r}, needs the token {token!r}, which "
                        f"is not in the vocabulary; pass the vocabulary that belongs to the merges"
                    )
            self.merges.append((left, right))
            # The first of two equal merges counts, as the second never finds anything left to do.
            self.ranks.setdefault((left, right), rank)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocab_size:,} ids, special: {self.special_tokens})"

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        # The pattern is a group, so `split` returns the special tokens as well.
        for part in self._special.split(require_text(text)):
            # What lies between two special tokens cannot equal one: it would have been split.
            if part in self.special_ids:
                ids.append(self.special_ids[part])
                continue
            # A merge never reaches across pre-tokens, so each is encoded by itself.
            for pretoken in regex.findall(pretokens.PATTERN, part):
                ids += self.merge(pretoken)
        return ids

    def merge(self, pretoken: str) -> list[int]:
        """The ids of one pre-token, whose pairs are merged in the order in which they were learnt.

        With the merges e+s and es+t: n e w e s t -> n e w es t -> n e w est.
        """
        symbols = split_bytes(pretoken)
        while True:
            # Looking at all pairs again after each merge takes n² steps for n bytes: enough for a
            # word.
            pairs = [pair for pair in pairwise(symbols) if pair in self.ranks]
            if not pairs:
                return self._ids_of(symbols)
            # The earliest learnt, not the first in the text: later merges are made of its result.
            symbols = merge_pair(symbols, min(pairs, key=self.ranks.__getitem__))

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        for pretoken in pretokens.pretokenize(pieces, self.special_tokens):
            # Encoding cuts a pre-token no further; it may be a special token.
            yield from self.encode(pretoken)

    def _ids_of(self, symbols: Sequence[bytes]) -> list[int]:
        try:
            # Only now numbers: the merges work on bytes, which a reader can look at.
            return [self.id_of[symbol] for symbol in symbols]
        except KeyError as error:
            raise ValueError(
                f"the vocabulary lacks the byte {error}; a byte-level vocabulary holds all 256"
            ) from None

    @classmethod
    def from_files(
        cls, vocab_filepath: AnyPath, merges_filepath: AnyPath, special_tokens: Specials = None
    ) -> Self:
        """A tokenizer from GPT-2's two files: `vocab.json` (token -> id) and `merges.txt`."""
        # The special tokens are needed here, since they are written in another alphabet than the
        # rest.
        vocab = gpt2_files.read_vocab(vocab_filepath, special_tokens or ())
        return cls(vocab, gpt2_files.read_merges(merges_filepath), special_tokens)

    def save(self, vocab_filepath: AnyPath, merges_filepath: AnyPath) -> None:
        """Write the vocabulary and the merges as GPT-2's `vocab.json` and `merges.txt`."""
        gpt2_files.write_vocab(vocab_filepath, self.id_of)
        gpt2_files.write_merges(merges_filepath, self.merges)


class Tokenizer(PlainTokenizer):
    """`PlainTokenizer` made fast: the same ids by the engine in `compiled`, once that pays off.

    Until then, words are encoded once and remembered.
    """

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Specials = None
    ) -> None:
        super().__init__(vocab, merges, special_tokens)
        # The textbook's way is still how each word is encoded, but only the first time.
        self._remembered = remembering(super().encode, REMEMBERED)
        self._read = 0.0  # bytes, of all texts that Python has encoded
        # Several, as an encoder serves one thread at a time: each thread takes one out, and puts it
        # back when it is done.
        self._idle_encoders: list[CompiledEncoder] = []
        self._dtype = token_dtype(self.vocab_size)
        self._made: np.ndarray | None = None  # an integer for each id, once lists are long

    def encode(self, text: str) -> list[int]:
        ids = self._compiled_ids(text)
        return self._readable_ids(text) if ids is None else self._integers(ids)

    def encode_array(self, text: str) -> np.ndarray:
        """The ids of a text, as uint16, or as uint32 if the vocabulary has more than 65,536.

        It takes about half the time of `encode`, and the array a quarter of the memory of the list.
        It raises the same errors.
        """
        ids = self._compiled_ids(text)
        return np.array(self._readable_ids(text), self._dtype) if ids is None else ids

    def _compiled_ids(self, text: str) -> np.ndarray | None:
        """The ids by the compiled engine; None if that does not pay off, or does not fit."""
        encoder = self._take_encoder(len(require_text(text)))
        if encoder is None:
            return None
        try:
            ids = encoder.encode(text)
        except UnicodeEncodeError:
            raise naming_surrogates(text) from None
        # After an error the encoder is not put back: it may have stopped halfway.
        self._idle_encoders.append(encoder)
        return ids

    def _readable_ids(self, text: str) -> list[int]:
        """The ids by Python, which remembers the words."""
        self._read += len(text)
        try:
            return list(_ids(self._remembered, pretokens.whole_pretokens(text, self._special)))
        except UnicodeEncodeError:
            raise naming_surrogates(text) from None

    def encode_batch(self, texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of all texts in a row, as `encode_array` gives them; and where each begins.

        Text n has `ids[starts[n] : starts[n + 1]]`: there is one more start than there are texts.
        Cores share a large batch. It raises the same errors.
        """
        if isinstance(texts, str):
            raise TypeError(f"encode_batch takes a list of texts; write [{texts[:9]!r}]")
        texts = list(texts)
        if {*map(type, texts)} - {str}:  # a question that takes no time
            texts = list(map(require_text, texts))
        size = sum(map(len, texts))
        # As many texts in each part, and so few that the processor's cache holds them.
        several = len(texts) // (size // BATCH_AT_ONCE + 1) + 1
        parts = [texts[start : start + several] for start in range(0, len(texts), several)]
        encode = partial(self._encode_each, size)
        threads = min(config.cores(), size // BATCH_PER_THREAD)
        if threads < 2:
            found = list(map(encode, parts))
        else:
            with ThreadPoolExecutor(threads) as own:
                found = list(own.map(encode, parts))
        nothing = np.empty(0, self._dtype), [0]
        ids, numbers = zip(nothing, *found, strict=True)
        return np.concatenate(ids), np.concatenate(numbers).cumsum()

    def _encode_each(self, size: int, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of some texts of a batch of this size, in a row; and how many each has."""
        encoder = self._take_encoder(size)
        found = None
        if encoder is not None:
            try:
                found = encoder.encode_each(texts)
            except UnicodeEncodeError as error:
                raise naming_surrogates(error.object) from None
            self._idle_encoders.append(encoder)
        if found is None:
            each = list(map(self.encode_array, texts))
            found = np.concatenate(each), np.array(list(map(len, each)))
        return found

    def _integers(self, ids: np.ndarray) -> list[int]:
        """The ids of an array as a list of Python's integers."""
        if len(ids) < PIECE or self.vocab_size > MOST_INTEGERS:
            return ids.tolist()
        # To look an integer up takes half the time of making one, in pieces that stay in the cache.
        if self._made is None:
            self._made = np.array(range(self.vocab_size), object)
        room = np.empty(PIECE, object)
        numbers: list[int] = []
        for start in range(0, len(ids), PIECE):
            piece = ids[start : start + PIECE]
            # By default, NumPy would take them into memory of its own first.
            numbers += self._made.take(piece, out=room[: len(piece)], mode="wrap").tolist()
        return numbers

    def _pays_off(self, size: int) -> bool:
        """Whether so many bytes more are worth an encoder.

        All texts together must be, as many short ones are worth one too: twice what the engine
        alone is worth.
        """
        return engine.pays_off((self._read + size) / 2)

    def encode_file(self, path: AnyPath, executor: Executor | None = None) -> np.ndarray:
        """The ids of a UTF-8 file, as uint16, or as uint32 if there are more than 65,536.

        Parts of a large file are encoded in parallel: by the executor (processes, threads, or a
        cluster whose workers see the file), or else by one thread for each core.
        `ThreadPoolExecutor(1)` keeps to one.
        Raises: FileNotFoundError; ValueError if the file is not UTF-8, or changes meanwhile.
        """
        path = text_file(path)
        # Pickled once, not once for each task; each worker unpickles it once, too. Our own threads
        # share this tokenizer; an executor's workers get a copy each.
        task = partial(encode_task, pickle.dumps(self)) if executor else self.encode_spans
        with unchanged(path):
            cuts = cut_points(path, self.special_tokens)
            parts = share(partial(task, path), cuts, executor)
            ids = np.require(next(parts), requirements=["O", "W"])  # its own memory, which may grow
            for part in parts:  # each is freed before the next comes: no second copy of them all
                start = len(ids)
                # The array grows where it lies if the system lets it, without a copy.
                ids.resize(start + len(part), refcheck=False)
                ids[start:] = part
            return ids

    def encode_spans(self, path: Path, cuts: Sequence[int]) -> np.ndarray:
        """The ids of a file between the first of the cuts, which come from `cut_points`, and the
        last."""
        size = cuts[-1] - cuts[0]
        encoder = self._take_encoder(size)
        if encoder is not None:
            ids = encoder.encode_file(path, cuts)
            self._idle_encoders.append(encoder)
            return ids
        self._read += size
        # The cuts split no pre-token, so a part has the ids that it has in the whole.
        words = pretokens.pretokenize(read_span(path, cuts[0], cuts[-1]), self.special_tokens)
        return np.fromiter(_ids(self._remembered, words), self._dtype)

    def merge(self, pretoken: str) -> list[int]:
        """The same ids in n log n steps for n bytes, so that no word is too long.

        The symbols are a linked list, and the possible merges wait in a heap, the earliest learnt
        first and of equal ones the leftmost.
        """
        symbols = split_bytes(pretoken)
        end = len(symbols)
        # Which places are the neighbours of each: of "n e w est", "est" has only "w" before it.
        before = list(range(-1, end - 1))
        # A linked list in two arrays of numbers: to take a symbol out of it costs the same
        # anywhere, where `del symbols[at]` would move all that follow.
        behind = list(range(1, end + 1))
        waiting: list[tuple[int, int, Pair]] = []

        def consider(at: int) -> None:
            """Let the symbol at this place wait to be merged with the next, if they are a pair."""
            if at >= 0 and behind[at] < end:
                pair = symbols[at], symbols[behind[at]]
                if pair in self.ranks:
                    heapq.heappush(waiting, (self.ranks[pair], at, pair))

        for at in range(end - 1):
            consider(at)
        while waiting:
            _, at, pair = heapq.heappop(waiting)
            gone = behind[at]
            # The heap may hold entries that are out of date: it is cheaper to look when one comes
            # to the top than to find and remove it before.
            if gone >= end or (symbols[at], symbols[gone]) != pair:
                continue  # one of the two was merged with its other neighbour meanwhile
            # The new symbol takes the place of the left one, and the right one leaves the list.
            symbols[at] = b"".join(pair)
            # No token is empty, so this marks a place that is no longer in the list.
            symbols[gone] = b""
            behind[at] = behind[gone]
            if behind[at] < end:
                before[behind[at]] = at
            # Only two pairs are new: the symbol with the one before it, and with the one behind.
            consider(before[at])
            consider(at)
        return self._ids_of([symbol for symbol in symbols if symbol])

    def _ids(self, pieces: Iterable[str]) -> Iterator[int]:
        # In lists, as a generator that hands on each id would take longer than to encode it.
        return chain.from_iterable(self._ids_of_texts(pieces))

    def _ids_of_texts(self, pieces: Iterable[str]) -> Iterator[Iterable[int]]:
        # A memory of its own, which is small: a stream may be endless.
        memory = remembering(super().encode, REMEMBERED_IN_A_STREAM)
        may_compile = not engine.memory_is_limited()
        for text in pretokens.settled_texts(pieces, self.special_tokens):
            ids = self._compiled_ids(text) if may_compile else None
            if ids is None:
                self._read += len(text)
                yield _ids(memory, pretokens.whole_pretokens(text, self._special))
            else:
                yield self._integers(ids)

    def _take_encoder(self, size: int) -> "CompiledEncoder | None":
        """An encoder for this thread, which puts it back among the idle ones when it is done.

        None if so much text more is not worth one, or the compiled engine does not fit this
        vocabulary.
        """
        try:
            # `pop` of a list is atomic: two threads never get the same encoder.
            return self._idle_encoders.pop()
        except IndexError:
            if not self._pays_off(size):
                return None
        from workbook.tokenization import compiled  # loads LLVM

        encoder = compiled.make_encoder(self.id_of, self.merges, self.special_ids, self._dtype)
        if encoder is None:
            # It never will fit, and -∞ bytes are never worth another try.
            self._read = -math.inf
        return encoder

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the tokenizer is built from, but nothing that it remembers."""
        return type(self), (self.vocab, self.merges, self.special_tokens)


def remembering(encode: Callable[[str], list[int]], most: int) -> Callable[[str], Sequence[int]]:
    """The same function, which remembers its results for the last `most` strings.

    But not for strings longer than `LONGEST_REMEMBERED`: they hardly ever recur, and a few thousand
    of them could fill the computer's memory.
    """
    # A tuple, because whoever gets a remembered list could change it for all others.
    remembered = lru_cache(most)(lambda word: tuple(encode(word)))
    return lambda word: (remembered if len(word) <= LONGEST_REMEMBERED else encode)(word)


def _ids(encode: Callable[[str], Sequence[int]], tokens: Iterable[str]) -> Iterator[int]:
    """The ids of all tokens, in one sequence."""
    return chain.from_iterable(map(encode, tokens))


def require_text(text: str) -> str:
    """Return the text. Raises: TypeError if it is not a string."""
    if not isinstance(text, str):
        raise TypeError(f"encode takes a string, got {type(text).__name__}; decode bytes first")
    return text


def look_up_tokens(vocab: Mapping[int, bytes], ids: Iterable[int]) -> Iterator[bytes]:
    """The tokens of the ids, with errors that name the id."""
    if not isinstance(ids, Iterable):
        raise TypeError(f"decode takes a list of ids, got {ids!r}; write [{ids!r}]")
    for token_id in ids:
        try:
            # `index` takes integers of NumPy and torch, but no floats, which would be ids by
            # mistake.
            yield vocab[index(token_id)]
        except KeyError:
            raise ValueError(f"id {token_id} is not in the vocabulary (of {len(vocab)})") from None
        except TypeError:
            raise TypeError(f"an id is an integer, got {token_id!r}; pass a list of ids") from None


def encode_task(tokenizer: bytes, path: Path, cuts: Sequence[int]) -> np.ndarray:
    """Encode a part of a file with a pickled tokenizer: the task of one worker."""
    return unpickled(tokenizer).encode_spans(path, cuts)


@lru_cache(1)
def unpickled(tokenizer: bytes) -> Tokenizer:
    """The pickled tokenizer; one for all tasks of a process, so that its memory is kept."""
    # Compared by its bytes, so that the next task of the same tokenizer finds it ready.
    return pickle.loads(tokenizer)


def token_dtype(vocab_size: int) -> np.dtype:
    """uint16 up to 65,536 ids, else uint32. Never uint8: all files of tokens look alike."""
    # The largest id decides, one less than their number; 256 itself needs two bytes.
    return np.min_scalar_type(max(vocab_size - 1, 256))


def compression_ratio(text: str, ids: Sequence[int]) -> float:
    """Bytes of UTF-8 text per token. Raises: ValueError if there are no tokens."""
    if not len(ids):
        raise ValueError("there are no tokens to divide by; measure on a text that is not empty")
    return len(text.encode()) / len(ids)
