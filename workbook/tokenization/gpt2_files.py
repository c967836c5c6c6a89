"""GPT-2's two tokenizer files, which most other libraries read: `vocab.json` and `merges.txt`.

Both are text, so bytes are written in an alphabet of 256 visible characters:

    vocab.json   {"!": 0, ..., "\u0120low": 300}       token -> id
    merges.txt   \u0120l ow                            one merge per line, the first learnt first
"""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from workbook.files import atomic_write
from workbook.tokenization.spans import AnyPath, text_file


@lru_cache
def byte_alphabet() -> dict[int, str]:
    """GPT-2's visible character for each byte: its own if that prints, else one from U+0100 on.

    A space is written "Ġ", a line end "Ċ". Source: `bytes_to_unicode` in GPT-2's `encoder.py`.
    """
    # Not the space, control characters and the soft hyphen (AD): they would vanish, or cut a line
    # of `merges.txt`, where a space stands between two tokens.
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    spare = iter(range(0x100, 0x200))
    return {byte: chr(byte if byte in printable else next(spare)) for byte in range(256)}


def to_readable(token: bytes) -> str:
    """The bytes in GPT-2's visible alphabet: b" low" is "Ġlow"."""
    # Latin-1 gives byte n the character n, so every byte string can be decoded.
    return token.decode("latin-1").translate(byte_alphabet())


def from_readable(name: str) -> bytes:
    """The bytes of a name in GPT-2's alphabet; ValueError if it holds another character."""
    try:
        return name.translate(_BYTE_OF).encode("latin-1")
    except UnicodeEncodeError as error:
        other = name[error.start]
        raise ValueError(f"{name!r}: {other!r} is not in GPT-2's byte alphabet") from None


# By code point, and the other way: a byte as the character of Latin-1 that has its number. What is
# not in the alphabet becomes a character that Latin-1 lacks.
_BYTE_OF = dict.fromkeys(range(256), 256)
_BYTE_OF |= {ord(letter): byte for byte, letter in byte_alphabet().items()}


def write_vocab(path: AnyPath, ids: Mapping[bytes, int]) -> None:
    """Write `vocab.json`, one token per line, in the order of the ids."""
    # JSON has no bytes, hence the alphabet.
    names = {to_readable(token): ids[token] for token in sorted(ids, key=ids.__getitem__)}
    with atomic_write(path) as file:
        json.dump(names, file, ensure_ascii=False, indent=0)
        file.write("\n")


def write_merges(path: AnyPath, merges: Sequence[tuple[bytes, bytes]]) -> None:
    """Write `merges.txt`, with the version line that other libraries expect."""
    with atomic_write(path) as file:
        # A merge that begins with "#" is no danger: only a first line with this word is skipped.
        file.write("#version: 0.2\n")
        file.writelines(f"{to_readable(left)} {to_readable(right)}\n" for left, right in merges)


def read_vocab(path: AnyPath, special_tokens: Collection[str] = ()) -> dict[int, bytes]:
    """The tokens of a `vocab.json` by id.

    Other libraries write a special token as it is, not in the byte alphabet. So a name that the
    alphabet cannot spell stands for its own UTF-8 bytes, and so does one of `special_tokens` if its
    bytes in the alphabet are not UTF-8: "<|é|>" is itself, but "é" is one of the 256 bytes.
    Raises: FileNotFoundError; ValueError if the file is not such a vocabulary.
    """
    try:
        names = json.loads(_read(path, "vocab.json"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}); expected GPT-2's vocab.json") from error
    # `type(...) is int`, as True would be an int for `isinstance`.
    if not isinstance(names, dict) or not all(type(value) is int for value in names.values()):
        expected = "one JSON object, token -> id, such as stands in a tokenizer.json under `model`"
        raise ValueError(f"{path} is not a vocabulary; expected {expected}")
    vocab: dict[int, bytes] = {}
    for name, token_id in names.items():
        # JSON itself refuses no id that comes twice; one of the two tokens would be gone.
        if token_id in vocab:
            raise ValueError(f"{path} gives the id {token_id} twice, the second time to {name!r}")
        vocab[token_id] = _token(name, name in special_tokens)
    return vocab


def _token(name: str, is_special: bool) -> bytes:
    """The bytes of a token in a vocabulary."""
    try:
        token = from_readable(name)
    except ValueError:
        return name.encode()
    # Its letters are all in the alphabet, but what they spell is no text: so they are themselves.
    if is_special and len(name) > 1 and "\ufffd" in token.decode("utf-8", errors="replace"):
        return name.encode()
    return token


def read_merges(path: AnyPath) -> list[tuple[bytes, bytes]]:
    """The merges of a `merges.txt` in order, with or without its version line.

    Raises: FileNotFoundError; ValueError, naming the line, if one is not two tokens.
    """
    merges = []
    # Split at "\r" as well, as old Macs end lines: no token holds one, which is written "č".
    lines = _read(path, "merges.txt").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line or (number == 1 and line.startswith("#version")):
            continue
        try:
            # No token holds a space, which is "Ġ" here, so there is exactly one.
            left, right = map(from_readable, line.split(" "))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: expected two tokens in GPT-2's byte alphabet with a space "
                f"between them, got {line!r}"
            ) from error
        merges.append((left, right))
    return merges


def _read(path: AnyPath, kind: str) -> str:
    """The text of a file, with its line ends unchanged. Raises: ValueError if it is not UTF-8.

    A byte order mark at its beginning, which Windows' editors write, is not part of the text.
    """
    try:
        return text_file(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error}); expected GPT-2's {kind}") from error
