"""The check of unicode2: sizes in three encodings, and bytes that do not decode."""

import re
from typing import Any

from workbook.checks.figures import bytes_in, claims, is_explained, is_prose, quoted, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong
from workbook.tokenization.utf8 import flaw

WIDTHS = {"8": "utf-8", "16": "utf-16", "32": "utf-32"}
BOM = "byte order mark"
UNMARKED = f"without the {BOM} (BOM) that Python's 'utf-16' and 'utf-32' write in front"
WHY_UTF8 = (
    "sizes of more than one text, English and other, are compared",
    "most text is shorter in UTF-8, and UTF-16 and UTF-32 are full of zero bytes",
    "256 byte values are enough for every text, so that nothing is ever unknown",
    "UTF-8 has no byte order, and so no byte order mark",
)
WHY_BYTE_BY_BYTE = "it says that a character outside ASCII takes several bytes, none of them whole"
WHY_NOTHING = "it says which rule of UTF-8 they break"


def unicode2(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of unicode2."""
    return {"a": _why_utf8, "b": _fails_byte_by_byte, "c": _two_bytes}[part](attempt)


def _why_utf8(attempt: Any) -> str | Facts:
    if type(attempt) in (int, float):
        return _about_one_figure(int(attempt))
    if type(attempt) in (list, tuple, set, frozenset, dict) and not attempt:
        raise NotAttempted
    if type(attempt) in (list, tuple, set, frozenset):
        for mark, said in (("", "with the byte order marks"), ("-le", UNMARKED)):
            sizes = {_size("hello", encoding, mark) for encoding in WIDTHS.values()}
            if all(item in sizes for item in attempt):
                return f'Those are the sizes of "hello", {said}.'
        return Facts(WHY_UTF8)
    if type(attempt) is dict:
        lines = [f"'hello' in {key} is {value} bytes" for key, value in attempt.items()]
        praise = _check_sizes("\n".join(lines))
        return praise if praise and all(map(_sizes_in, lines)) else Facts(WHY_UTF8)
    text = text_of(attempt, "sizes in bytes, or your reasons in words")
    praise = _check_sizes(text)
    if claims(text, r"\b4(?:\.[23]\d*)? (?:billion|bn)|\b4[, ]?294[, ]?967|2\s?(?:\*\*|\^)\s?32"):
        _refuse_range_of_integer(2**32)
    if claims(
        text,
        r"utf-?16\b(?!.*\bat least\b).*\b(?:always|fixed|constant|exactly|every)\b.*\b(?:2|two)\b",
    ):
        raise Wrong(
            "UTF-16 has no fixed width.",
            given='len("🙂".encode("utf-16-le"))',
            expected=4,
            got=2,
            mistake="A code point above U+FFFF takes a pair of 16-bit units: 2 or 4 bytes.",
        )
    alone = r"\W*utf-?8 {}\W*"  # the whole text: in a longer one it may be denied
    if re.fullmatch(alone.format("(?:has|uses) (?:a )?fixed[ -](?:width|length)"), text, re.I):
        raise Wrong(
            "UTF-8 has no fixed width.",
            given='[len(each.encode("utf-8")) for each in "aé日🙂"]',
            expected=[1, 2, 3, 4],
        )
    if re.fullmatch(alone.format("is always (?:shorter|smaller) than utf-?16"), text, re.I):
        raise Wrong(
            "Not for every text.",
            given="'日', in UTF-8 and in UTF-16",
            expected=Words("3 bytes and 2, without a byte order mark"),
            mistake="Characters from U+0800 to U+FFFF take 3 bytes in UTF-8, and 2 in UTF-16.",
        )
    if claims(text, r"utf-?8\b.*\b(?:up to|1 to|1-|maximum of) ?(?:5|6|five|six)\b"):
        raise Wrong(
            "UTF-8 stops at 4 bytes a character.",
            given='len(chr(0x10FFFF).encode("utf-8"))',
            expected=4,
            got=6,
            mistake="Forms of 5 and 6 bytes were given up in 2003: Unicode ends at U+10FFFF.",
        )
    return praise if praise and not is_explained(text) else Facts(WHY_UTF8)


def _about_one_figure(figure: int) -> str | Facts:
    for encoding in WIDTHS.values():
        for mark, said in (("", ""), ("-le", f", {UNMARKED}")):
            if figure == _size("hello", encoding, mark):
                return f'"hello" takes {figure} bytes in {encoding.upper()}{said}.'
    if abs(figure - 2**32) <= 0.07 * 2**32:
        _refuse_range_of_integer(figure)
    known = {256: "values of a byte", 0x10FFFF: "the last code point", 0x110000: "code points"}
    if figure in known:
        return f"{figure:,}: {known[figure]}."
    raise NotAttempted(
        "A figure alone does not say what was measured. Hand in a sentence such as"
        " \"'hello' is 5 bytes in UTF-8\"."
    )


def _size(text: str, encoding: str, mark: str = "") -> int:
    """The bytes that a text takes; with `mark` "-le" those of its byte order mark are left out."""
    return len(text.encode(encoding if encoding == "utf-8" else encoding + mark))


def _refuse_size(text: str, encoding: str, got: int) -> None:
    """Raise for a size in bytes that is not what Python gives."""
    right = _size(text, encoding)
    mark = right - _size(text, encoding, "-le")
    mistake = None
    if mark and got == right - mark:
        mistake = (
            f"The {BOM} (BOM) was forgotten: Python's {encoding!r} writes {mark} bytes in front to"
            f" say in which order the others come. Only {encoding + '-le'!r} and"
            f" {encoding + '-be'!r} leave it out."
        )
    elif got == len(text) != right:
        mistake = "Characters were counted, not bytes."
    raise Wrong(
        f"That is not the size in {encoding.upper()}.",
        given=f"len({text!r}.encode({encoding!r}))",
        expected=right,
        got=got,
        mistake=mistake,
    )


def _refuse_range_of_integer(figure: int) -> None:
    raise Wrong(
        "UTF-32 does not use 4 billion values.",
        given="sys.maxunicode + 1",
        expected=0x110000,
        got=figure,
        mistake="You took the range of a 32-bit integer for the range of the values: code units go"
        " up to 0x10FFFF only. And a tokenizer that works on bytes starts from 256 values in any"
        " encoding.",
    )


def _check_sizes(text: str) -> str:
    """Praise if the text gives sizes in bytes, all of them right; raises for a wrong one.

    With the byte order mark or without, both are right, but not one of each without a word.
    """
    found, marked, bare = False, False, []
    for sentence in re.split(r"(?<=[a-z).;])[.;]\s|\n", text):
        named = [each for each in quoted(sentence) if not re.match(r"utf", each, re.I)]
        if not named and re.search(r"\bhello\b", sentence):
            named = ["hello"]
        if len(named) != 1:
            continue
        told = re.search(rf"-le\b|-be\b|BOM|{BOM}", sentence, re.I)
        for encoding, size in _sizes_in(sentence):
            with_mark, without = (_size(named[0], encoding, mark) for mark in ("", "-le"))
            if size == without != with_mark and not told:
                bare.append((named[0], encoding, size))
            elif size not in (with_mark, without):
                _refuse_size(named[0], encoding, size)
            else:
                marked = marked or (with_mark != without and not told)
            found = True
    if bare and (marked or re.search(r"encode\(['\"]utf-?(?:16|32)['\"]\)", text, re.I)):
        _refuse_size(*bare[0])
    return f"The sizes are right{', ' + UNMARKED if bare else ''}." if found else ""


def _sizes_in(sentence: str) -> list[tuple[str, int]]:
    """Encoding and size for each size in a sentence."""
    if re.search(r"at least|per |each|a character|every|code point|up to", sentence, re.I):
        return []
    before = r"(\d+)\s*(?:bytes?)?\s*(?:in|with|as|for|under|using)\s*utf-?(8|16|32)\b"
    after = r"utf-?(8|16|32)\b[^\d.;,]{0,25}(\d+)"
    found = [(width, size) for size, width in re.findall(before, sentence, re.I)]
    found = found or re.findall(after, re.sub(r"-[lb]e\b", "", sentence, flags=re.I), re.I)
    return [(WIDTHS[width], int(size)) for width, size in found]


def _fails_byte_by_byte(attempt: Any) -> str | Facts:
    if type(attempt) in (tuple, list) and attempt and type(attempt[0]) in (bytes, str):
        attempt = attempt[0]
    if isinstance(attempt, bytes | bytearray):
        return _judge_example(bytes(attempt))
    text = text_of(attempt, "bytes, such as a text's .encode()")
    found = bytes_in(text)
    if found:
        praise = _judge_example(found[0])
        return praise if not is_explained(text) else _with_fact(praise)
    if not is_prose(text):
        return _judge_example(text.encode("utf-8", errors="surrogatepass"))
    examples = [each for each in quoted(text) if not each.isascii()]
    if examples:
        praise = _judge_example(examples[0].encode())
        return _with_fact(praise) if is_explained(text) else praise
    return Facts(("it gives an input as bytes, or a character outside ASCII", WHY_BYTE_BY_BYTE))


def _with_fact(praise: str) -> Facts:
    return Facts((f"the example is right: {praise[0].lower()}{praise[1:]}", WHY_BYTE_BY_BYTE))


def _judge_example(data: bytes) -> str:
    """Praise for bytes that are UTF-8 and that byte-by-byte decoding gets wrong."""
    if not data:
        raise Wrong("On no bytes at all, both ways give the empty text.", got=data)
    found = flaw(data)
    if found:
        raise Wrong(
            "Those bytes are no UTF-8, so that a right decoder refuses them as well.",
            got=data,
            expected=Words("bytes that decode as a whole, and not one by one"),
            mistake=f"{found.sentence} Encode a text to get bytes that are valid.",
        )
    if data.isascii():
        raise Wrong(
            "On this input, decoding byte by byte goes well.",
            given=f"{data!r}, one byte at a time",
            expected=Words("an error, or another text"),
            got=data.decode(),
            mistake="All of it is ASCII, where a character is one byte. Take one that needs more.",
        )
    wide = next(character for character in data.decode() if not character.isascii())
    return (
        f"{wide!r} takes {len(wide.encode())} bytes ({wide.encode().hex(' ').upper()}), and none of"
        " them is a character by itself."
    )


def _two_bytes(attempt: Any) -> str | Facts:
    if type(attempt) in (tuple, list) and all(type(item) is int for item in attempt):
        if not all(0 <= item < 256 for item in attempt):
            raise Wrong("A byte is a number from 0 to 255.", got=attempt)
        return _judge_pair(bytes(attempt))
    if type(attempt) in (tuple, list) and attempt and type(attempt[0]) in (bytes, str):
        attempt = b"".join(attempt) if {*map(type, attempt)} == {bytes} else attempt[0]
    if isinstance(attempt, bytes | bytearray | memoryview):
        return _judge_pair(bytes(attempt))
    text = text_of(attempt, r"two bytes, such as b'\x41\x42'")
    found = [data for data in bytes_in(text) if len(data) == 2] or bytes_in(text)
    if found:
        praise = _judge_pair(found[0])
        if is_explained(text):
            return Facts((f"the bytes are right: {praise}", WHY_NOTHING))
        return praise
    if is_prose(text):
        return Facts(("it names two bytes, such as C3 A9 in hexadecimal", WHY_NOTHING))
    raise Wrong(
        "That is a str, and bytes were asked for.",
        expected=Words("two bytes, with b before the quotes"),
        got=text,
        mistake="A str is decoded already: each of its characters is a code point, not a byte.",
    )


def _judge_pair(data: bytes) -> str:
    """Praise for two bytes that are no UTF-8, with the rule that they break."""
    if len(data) != 2:
        raise Wrong("Exactly two bytes were asked for.", expected=2, got=len(data))
    found = flaw(data)
    if found:
        return found.sentence
    text = data.decode()
    names = " and ".join(f"U+{ord(character):04X}" for character in text)
    rule = (
        f"{data[0]:02X} begins a character of two bytes, and {data[1]:02X} continues it"
        if len(text) == 1
        else "bytes below 80 are ASCII, each a character of its own"
    )
    raise Wrong(
        "Those two bytes are valid.",
        given=f"{data!r}.decode('utf-8')",
        expected=Words("UnicodeDecodeError"),
        got=text,
        mistake=f"They decode to {names}: {rule}.",
    )
