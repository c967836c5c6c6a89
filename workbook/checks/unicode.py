"""The check of unicode1: the character NUL, its repr, its print, its place in a text."""

import re
import sys
from typing import Any

from workbook.checks.figures import claims, is_prose, text_of
from workbook.checks.verdicts import Facts, Words, Wrong

NUL = chr(0)
NUL_NAMES = re.compile(
    r"\bnul(?:l|-|\b)|(?:ascii|code ?point|unicode) (?:code )?(?:0|zero)\b|\bzero char"
    r"|U\+0000|\\x00|\\u0000|\\0|␀|\^@|\x00",
    re.I,
)
BYTES_REPR = r"\bb['\"]*(?:\\x00|\\0|\x00)"
# The text of our own prompt, and the one in the handout.
TEXTS_WITH_NUL = (f"before{NUL}after", f"this is a test{NUL}string")


def unicode1(attempt: Any, part: str | None) -> str | Facts:
    """What holds of an attempt at a part of unicode1."""
    return {"a": _which_character, "b": _repr_and_print, "c": _inside_text}[part](attempt)


def _which_character(attempt: Any) -> str | Facts:
    right = "U+0000: a control character, called NUL. It is a str of length 1."
    if type(attempt) is int:
        if attempt == 0:
            return right
        raise Wrong("That is another code point.", **_ords(attempt), mistake=_digit(attempt == 48))
    _refuse_bytes(attempt)
    if attempt == "":
        raise Wrong("The empty string has no character at all.", **_lengths(0))
    if attempt == " ":
        raise Wrong("A space is another character.", **_ords(32))
    text = text_of(attempt, "the character itself, its name or its number")
    if len(text) == 1 and text != "␀":
        if text == NUL:
            return right
        raise Wrong("That is another character.", **_ords(ord(text)), mistake=_digit(text == "0"))
    _refuse_bytes_repr(text)
    _refuse_empty(text)
    as_digit = r"character ['\"]?(?:0|zero)['\"]?\b"
    if claims(text, r"\\x30|chr\(48\)|\bdigit") or (
        claims(text, as_digit) and not NUL_NAMES.search(text)
    ):
        raise Wrong("That is the digit 0.", **_ords(48), mistake=_digit(True))
    if claims(text, r"\b(?:is|returns?|gives?|as)\b.{0,20}\bspace\b|^\W*(?:a )?space\W*$"):
        raise Wrong("A space is another character.", **_ords(32))
    if claims(text, r"\breturns? none\b|^\W*none\W*$"):
        raise Wrong("It returns a str, not None.", given="chr(0)", got=text, expected=NUL)
    if number := re.fullmatch(r"\s*(?:U\+|0x)([0-9a-f]{1,6})\W*", text, re.I):
        code = int(number[1], 16)
        if code and code <= sys.maxunicode:
            named = _digit(code == 48) or f"That number is the character {chr(code)!r}."
            raise Wrong("That is another code point.", **_ords(code), mistake=named)
        if code == 0:
            return right
    if set(text) == {NUL}:
        raise Wrong("It is one character only.", given="len(chr(0))", expected=1, got=len(text))
    if NUL_NAMES.search(text):
        return right
    if is_prose(text):
        return Facts(
            (
                "the character has a name, or a number in the form U+....",
                "it is one character long, although nothing is seen",
            )
        )
    raise Wrong(
        "That does not name the character.",
        got=text,
        mistake="Ask `unicodedata.lookup` for the character of a name, and compare it with chr(0).",
    )


def _digit(mistaken: bool) -> str | None:
    """The likely mistake of whoever took the number 0 for the digit."""
    return (
        'The digit "0" has the code point 48 (hexadecimal 30). The argument of `chr` is a code'
        " point: chr(48) is the digit."
        if mistaken
        else None
    )


def _ords(got: int) -> dict:
    return {"given": "ord(chr(0))", "expected": 0, "got": got}


def _lengths(got: int) -> dict:
    return {
        "given": "len(chr(0))",
        "expected": 1,
        "got": got,
        "mistake": "NUL cannot be seen, but it is there: one character, of length 1. That is not"
        " the empty string.",
    }


def _refuse_bytes(attempt: Any) -> None:
    if isinstance(attempt, bytes | bytearray):
        raise Wrong(
            "Those are bytes, and `chr` gives a character.",
            given="chr(0)",
            expected=NUL,
            got=bytes(attempt),
            mistake="A str holds code points, bytes hold numbers below 256. The b before the"
            " quotes is part of the repr of bytes only: encode the character to get b'\\x00'.",
        )


def _refuse_bytes_repr(text: str) -> None:
    if claims(text, BYTES_REPR):
        raise Wrong(
            "That is how bytes are shown, and `chr` gives a str.",
            given="repr(chr(0))",
            expected=Words(repr(NUL)),
            got=Words(text if len(text) < 60 else repr(NUL.encode())),
            mistake="You took the repr of bytes for the repr of a str: without encoding there is"
            " no b before the quotes.",
        )


def _refuse_empty(text: str) -> None:
    nothing = r"empty (?:str|string|character|char|line|text)|length (?:is |of )?(?:0|zero)\b"
    if claims(text, rf"{nothing}|^\W*(?:empty|nothing)\W*$"):
        raise Wrong("Something is there, even if nothing is seen.", **_lengths(0))


def _repr_and_print(attempt: Any) -> str | Facts:
    if type(attempt) in (tuple, list) and len(attempt) == 2:
        _repr_and_print(attempt[0])
        return _repr_and_print(attempt[1])
    if type(attempt) is int:
        if attempt in (1, 6):
            return "The repr has 6 characters, quotes included; what is printed has 1."
        raise Wrong("Neither has that length.", **_lengths(attempt))
    _refuse_bytes(attempt)
    if attempt == "":
        raise Wrong("What is printed is not empty.", **_lengths(0))
    text = text_of(attempt, "the repr, what is printed, or a sentence about both")
    if text == NUL:
        return "`print` writes the character itself: one character that cannot be seen."
    if text.strip("'\"") in (r"\x00", r"\u0000", r"\0"):
        return "The repr spells the character out as an escape, in quotes."
    _refuse_bytes_repr(text)
    _refuse_empty(text)
    if claims(text, r"prints? nothing(?! visible| that)|nothing is printed|\bno output\b"):
        raise Wrong("One character is printed.", **_lengths(0))
    if claims(text, r"\b(?:prints?|printed|shows?|displays?)\b.{0,30}\b(?:white)?space\b"):
        raise Wrong("A space is another character.", **_ords(32))
    same = r"\W*(?:they|both)(?: are| look| show)? (?:the same|equal|identical)\W*"
    if re.fullmatch(same, text, re.I) or claims(text, r"\brepr\b.{0,20}\bshows? nothing\W*$"):
        raise Wrong(
            "They differ.",
            given="len(repr(chr(0)))",
            expected=6,
            got=0 if "nothing" in text else 1,
            mistake="`repr` gives what you would type, an escape in quotes; `print` writes the"
            " character itself.",
        )
    return Facts(
        (
            r"the repr shows an escape, '\x00', in quotes",
            "print writes the character itself",
            "it cannot be seen, but has length 1",
        )
    )


def _inside_text(attempt: Any) -> str | Facts:
    lengths = [len(text) for text in TEXTS_WITH_NUL]
    if type(attempt) is int:
        if attempt in lengths:
            return "NUL counts like any other character."
        right = lengths[0] if abs(attempt - lengths[0]) < 4 else lengths[1]
        without = attempt == right - 1
        mistake = "NUL was not counted: it cannot be seen, but it is one character." * without
        raise Wrong("The text is not that long.", expected=right, got=attempt, mistake=mistake)
    _refuse_bytes(attempt)
    text = text_of(attempt, "the text with chr(0) in it, its length, or a sentence")
    if text in TEXTS_WITH_NUL or (NUL in text.strip(NUL) and not is_prose(text)):
        return "NUL is one of the characters of the text; printed, it takes no room."
    if text in [full.replace(NUL, "") for full in TEXTS_WITH_NUL]:
        full = next(full for full in TEXTS_WITH_NUL if full.replace(NUL, "") == text)
        raise Wrong(
            "That is what it looks like when printed, and one character is missing.",
            expected=full,
            got=text,
            mistake="NUL cannot be seen on the screen, but it stays in the text.",
        )
    _refuse_bytes_repr(text)
    in_c = re.search(r"\bC\b", text)  # where it is true
    if not in_c and claims(
        text,
        r"\b(?:terminates?|truncates?|cuts?|ends?|stops?)\b.{0,40}\b(?:str|text|it)"
        r"|\b(?:is|gets?) (?:terminated|truncated|cut|ended)\b"
        r"|^\W*(?:the )?(?:text|string|line|it) (?:just |simply )?(?:ends|stops)"
        r"(?: there| here| at \w+)?\W*$",
    ):
        raise Wrong(
            "The text goes on after it.",
            given=f"len({TEXTS_WITH_NUL[0]!r})",
            expected=lengths[0],
            got=TEXTS_WITH_NUL[0].index(NUL),
            mistake="NUL ends a string in C. In Python it is a character like any other.",
        )
    if claims(text, r"\b(?:is|gets?) (?:removed|deleted|dropped|stripped|lost|empty)\b"):
        raise Wrong(
            "It is still there.",
            given=f"len({TEXTS_WITH_NUL[0]!r})",
            expected=lengths[0],
            got=lengths[0] - 1,
            mistake="Nothing is seen of it in print, but the length counts it.",
        )
    return Facts(
        (
            r"the text's repr shows the escape \x00 in its place",
            "printed, the text looks as if nothing were there",
            "the length counts it: the character stays in the text",
        )
    )
