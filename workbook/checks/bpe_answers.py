"""What a learner's `train_bpe` returned, in one form, or in words what is wrong with its form."""

from collections import Counter
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

from workbook.checks.bpe_reference import Input, Pair, expected_vocab
from workbook.checks.verdicts import NotAttempted, Words, Wrong, kind_of, shown

FORM = Words("(vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]])")


class Answer(NamedTuple):
    """A vocabulary and merges, whatever kinds of sequences and integers they came in."""

    vocab: dict[int, bytes]
    merges: list[Pair]


def described(given: Input) -> Words:
    """The call as the learner would make it, and what the file holds."""
    text = given.data.decode()
    call = f"train_bpe(path, {given.vocab_size}, {list(given.special_tokens)})"
    held = shown(text) if text else "nothing"
    room = f"{given.num_merges} merge{'' if given.num_merges == 1 else 's'}"
    return Words(f"{call}, room for {room}; the file holds {held}")


def answer(result: Any, given: Input) -> Answer:
    """The vocabulary and the merges of a result; raises `Wrong` where its form is not the asked."""
    if result is None:
        raise NotAttempted("It returned None: is a `return vocab, merges` still to write?")
    if not isinstance(result, tuple | list) or len(result) != 2:
        mistake = "`train_bpe` returns two things: `return vocab, merges`."
        raise _form("It did not return two things.", given, result, mistake)
    vocab, merges = result
    if isinstance(merges, Mapping) and not isinstance(vocab, Mapping):
        mistake = "The two are swapped: the vocabulary comes first, then the merges."
        raise _form("The result is not in the form asked for.", given, result, mistake)
    return Answer(_vocab(vocab, given), _merges(merges, given))


def _form(claim: str, given: Input, got: Any, mistake: str) -> Wrong:
    return Wrong(
        claim, given=described(given), expected=FORM, got=Words(_cut(got)), mistake=mistake
    )


def _cut(value: Any) -> str:
    """The beginning of a value as a literal, on one line."""
    text = shown(value)
    return text if len(text) < 200 else text[:200] + "..."


def _vocab(vocab: Any, given: Input) -> dict[int, bytes]:
    claim = "The vocabulary is not in the form asked for."
    if not isinstance(vocab, Mapping):
        mistake = "The vocabulary is a dict from id to bytes."
        raise _form(claim, given, Words(f"vocab is {kind_of(vocab)}"), mistake)
    for token_id, token in vocab.items():
        entry = Words(f"vocab has the entry {token_id!r}: {token!r}")
        if isinstance(token_id, bytes | str) and isinstance(token, Integral):
            raise _form(claim, given, entry, "It is the wrong way round: ids are the keys.")
        if not isinstance(token_id, Integral):
            raise _form(claim, given, entry, "The keys of the vocabulary are integers.")
        if isinstance(token, str):
            special = "A special token too is kept as bytes: `token.encode()`."
            plain = "Tokens are bytes, not text: a token may be a part of a character."
            mistake = special if token in given.special_tokens else plain
            raise _form(claim, given, entry, mistake)
        if not isinstance(token, bytes | bytearray):
            raise _form(claim, given, entry, "The values of the vocabulary are bytes objects.")
    return {int(token_id): bytes(token) for token_id, token in vocab.items()}


def _merges(merges: Any, given: Input) -> list[Pair]:
    claim = "The merges are not in the form asked for."
    if isinstance(merges, Mapping):
        mistake = "The merges are a list of pairs in the order in which they were made, not a dict."
        raise _form(claim, given, Words(f"merges is {_cut(merges)}"), mistake)
    if isinstance(merges, str | bytes) or not hasattr(merges, "__iter__"):
        mistake = "The merges are a list of pairs of bytes."
        raise _form(claim, given, Words(f"merges is {kind_of(merges)}"), mistake)
    return [_pair(pair, given) for pair in merges]


def _pair(pair: Any, given: Input) -> Pair:
    claim = "The merges are not in the form asked for."
    got = Words(f"merges has the item {_cut(pair)}")
    if isinstance(pair, bytes | bytearray):
        raise _form(claim, given, got, "A merge is kept as its two parts, not joined.")
    if isinstance(pair, tuple | list) and len(pair) == 2:
        left, right = pair
        if isinstance(left, bytes | bytearray) and isinstance(right, bytes | bytearray):
            return bytes(left), bytes(right)
        if isinstance(left, Integral) and isinstance(right, Integral):
            raise _form(claim, given, got, "Merges hold the bytes of both tokens, not their ids.")
        if isinstance(left, tuple | list):
            raise _form(claim, given, got, "A merge is the pair alone, without id or count.")
        if isinstance(left, str):
            raise _form(claim, given, got, "Merges hold bytes, not text.")
    raise _form(claim, given, got, "Each merge is a tuple of two bytes objects.")


def check_vocab(got: dict[int, bytes], merges: list[Pair], given: Input) -> None:
    """Raise `Wrong` unless the vocabulary is the one of the merges; ids in any order will do."""
    wanted = Counter(expected_vocab(given, merges).values())
    having = Counter(got.values())
    missing, extra = list((wanted - having).elements()), list((having - wanted).elements())
    if missing or extra:
        raise Wrong(
            "The merges are right, but the vocabulary is not.",
            given=described(given),
            expected=Words(f"{wanted.total()} entries{_listed(', among them ', missing)}"),
            got=Words(f"{having.total()} entries{_listed(', among them ', extra)}"),
            mistake=_vocab_mistake(missing, extra, given),
        )
    if len(merges) == given.num_merges and sorted(got) != list(range(len(got))):
        stray = sorted(set(got) - set(range(len(got))))
        raise Wrong(
            "The ids of the vocabulary have gaps.",
            given=described(given),
            expected=Words(f"ids 0 to {len(got) - 1}, in any order"),
            got=Words(f"{len(got)} ids, among them {stray[:4]}"),
            mistake="Give each new token the next free id, such as `len(vocab)`: a model needs a "
            "row for every id up to the largest.",
        )


def _vocab_mistake(missing: list[bytes], extra: list[bytes], given: Input) -> str:
    specials = {token.encode() for token in given.special_tokens}
    if missing and not extra:
        if set(missing) <= specials:
            return "The special tokens belong to the vocabulary, each with an id of its own."
        if all(len(token) == 1 for token in missing):
            return "The vocabulary holds all 256 bytes, whether they occur in the text or not."
        return "Each merge adds a token to the vocabulary: its two parts joined."
    if extra and not missing:
        if set(extra) <= specials | {bytes([byte]) for byte in range(256)}:
            return "A token has two ids: each is in the vocabulary once."
        if extra == [b"<|endoftext|>"]:
            return "Only what `special_tokens` lists is special, and <|endoftext|> is not in it."
        return "There are tokens that no merge made."
    if any(byte.decode("latin-1").encode() in extra for byte in missing if len(byte) == 1):
        return "`chr(b).encode()` is two bytes from 128 on: the byte b is `bytes([b])`."
    return "The token of a merge is its two parts joined, left then right."


def _listed(lead: str, tokens: list[bytes]) -> str:
    rest = f" and {len(tokens) - 4} more" if len(tokens) > 4 else ""
    return f"{lead}{', '.join(map(repr, tokens[:4]))}{rest}" if tokens else ""
