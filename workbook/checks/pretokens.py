"""How a file becomes pre-tokens, for the checks of `train_bpe` and the tokenizer.

`decode` and `pretokens` are part of both references; `READING` and `CUTTING` are edits of them.
"""

import re
import unicodedata  # noqa: F401 - for an edit

import regex

from workbook.checks.engine import mistake
from workbook.tokenization.pretokens import PATTERN


def decode(data: bytes) -> str:
    """The text of a UTF-8 file, line ends as they are."""
    return data.decode("utf-8")


def pretokens(document: str) -> list[str]:
    """The pieces that GPT-2's pattern cuts a document into."""
    return regex.findall(PATTERN, document)


UTF8, FOUND = 'data.decode("utf-8")', "regex.findall(PATTERN, document)"
PLACES = {UTF8: "how the file is decoded", FOUND: "how a document is cut into pre-tokens"}
EVERY_BYTE = ": BPE keeps every byte as it is."
LIKE_ANY = ": they are text like any other."
LINE_ENDS = mistake(
    r"The line ends \r\n were read as \n: a file opened in text mode translates them. "
    'Open it with `newline=""`, or in binary mode and decode.',
    UTF8, UTF8 + r'.replace("\r\n", "\n").replace("\r", "\n")',
)  # fmt: skip
READING = (
    mistake("The file was decoded as Latin-1, or byte by byte: it is UTF-8, where a character may "
            "take several bytes.",
            UTF8, 'data.decode("latin-1")'),
    mistake("Characters outside ASCII were dropped: decode the file as UTF-8.",
            UTF8, 'data.decode("ascii", "ignore")'),
    mistake("The text was turned into lower case" + EVERY_BYTE, UTF8, UTF8 + ".lower()"),
    *(mistake(f"The text was normalised ({form}){EVERY_BYTE}",
              UTF8, f'unicodedata.normalize("{form}", {UTF8})')
      for form in ("NFC", "NFKC", "NFD")),
    mistake("Line ends were replaced by spaces" + LIKE_ANY, UTF8, UTF8 + r'.replace("\n", " ")'),
    mistake("Runs of white space were replaced by one space" + LIKE_ANY,
            UTF8, rf'regex.sub(r"\s+", " ", {UTF8})'),
    mistake("White space at the ends of lines was stripped: it is text like any other.",
            UTF8, rf'"\n".join(line.strip() for line in {UTF8}.split("\n"))'),
    mistake("The line ends are lost" + LIKE_ANY, UTF8, f'"".join({UTF8}.splitlines())'),
    mistake("The lines were stripped, and their ends are lost" + LIKE_ANY,
            UTF8, f'"".join(line.strip() for line in {UTF8}.splitlines())'),
    mistake("White space at the ends of the text was stripped: it is text like any other.",
            UTF8, UTF8 + ".strip()"),
)  # fmt: skip

GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
ASCII = (
    PATTERN.replace(r"^\s\p{L}\p{N}", r"^\sa-zA-Z0-9")
    .replace(r"\p{L}", "[a-zA-Z]")
    .replace(r"\p{N}", "[0-9]")
)
STAND_INS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
IN_FRONT = "GPT-2's pattern keeps the space at the front of the word, as in b' the'."
ALSO_CUTS = "GPT-2's pattern also cuts between letters, digits and punctuation."
TOGETHER = r"`\w`, which takes letters, digits and `_` together"


def _pattern(words: str, pattern: str) -> tuple[str, str, str]:
    """A mistake by another pattern, given as an expression."""
    return words, FOUND, f"regex.findall({pattern}, document)"


def _changed(words: str, old: str, new: str) -> tuple[str, str, str]:
    """A mistake by a change of GPT-2's pattern."""
    return _pattern(words, f"PATTERN.replace({old!r}, {new!r})")


CUTTING = tuple(mistake(*each) for each in (
    ("There is no pre-tokenisation: pairs were counted across the whole text, and merges reach "
     "across words. Cut it with GPT-2's pattern first.",
     FOUND, "[document] if document else []"),
    ("The text was split at white space, so the spaces are lost: " + IN_FRONT,
     FOUND, "document.split()"),
    ("The text was split at spaces, so they are lost: " + IN_FRONT, FOUND, 'document.split(" ")'),
    _pattern("White space was cut off as a pre-token of its own: in GPT-2's pattern the space "
             "belongs to the word behind it, as in b' the'.", r'r"\S+|\s+"'),
    _pattern("Pre-tokens are words with the white space before them: " + ALSO_CUTS,
             r'r"\s*\S+|\s+"'),
    _pattern("Pre-tokens are words with the space before them: " + ALSO_CUTS,
             r'r" ?\S+|\s+(?!\S)|\s+"'),
    ("The text was cut only before spaces: GPT-2's pattern also cuts between letters, digits, "
     "punctuation and other white space.",
     FOUND, 'regex.split(r"(?= )", document)'),
    _pattern(r"Pre-tokens came from a pattern of `\w+`, which loses the white space: use GPT-2's.",
             r'r"\w+|[^\w\s]+"'),
    _pattern(r"Pre-tokens came from a pattern of `\w+`: use GPT-2's, where a space belongs to the "
             "word behind it, and letters and digits are apart.", r'r"\w+|[^\w\s]+|\s+"'),
    _pattern(rf"Pre-tokens came from a pattern of {TOGETHER}: use GPT-2's.",
             r'r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"'),
    _pattern(rf"`\p{{L}}` and `\p{{N}}` were replaced by {TOGETHER}.",
             r'''r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"'''),
    _pattern("This is GPT-4's pre-tokenisation pattern: the problem asks for GPT-2's.", "GPT4"),
    _changed("Digits were cut into groups of three, as GPT-4 does it: GPT-2's pattern has "
             r"` ?\p{N}+`.", r"\p{N}+", r"\p{N}{1,3}"),
    _changed(r"Each digit became a pre-token: GPT-2's pattern has ` ?\p{N}+`.",
             r" ?\p{N}+", r"\p{N}"),
    _changed(r"The part `\s+(?!\S)` of the pattern is missing: of several spaces, the last one "
             "belongs to the word behind them.", r"\s+(?!\S)|", ""),
    _changed("The contractions ('s, 't, 're ...) are missing from the pattern.",
             "'(?:[sdmt]|ll|ve|re)|", ""),
    _changed("Contractions in capitals ('S, 'LL) were cut off too: GPT-2's pattern knows small "
             "letters only.", "'(?:", "'(?i:"),
    _changed("The optional space at the front (` ?`) is missing from the pattern: a space belongs "
             "to the word behind it.", " ?", ""),
    _changed(r"The pattern has `\s?` in place of ` ?`: only a space joins the word behind it, a "
             "line end does not.", " ?", r"\s?"),
    _pattern(r"`[a-zA-Z]` and `[0-9]` stand for letters and digits: `\p{L}` and `\p{N}` (of the "
             "package `regex`) hold those of all scripts.", "ASCII"),
    (r"Python's `re` was used with stand-ins for `\p{L}` and `\p{N}`, which differ beyond ASCII: "
     "the package `regex` knows them.",
     FOUND, "STAND_INS.findall(document)"),
    ("The pre-tokens were stripped, so their spaces are lost: keep them as they are.",
     FOUND, f"[token.strip() for token in {FOUND} if token.strip()]"),
    ("The text was cut into lines without their ends: line ends are text like any other, and "
     "several in a row are one run of white space.",
     FOUND, "[t for line in document.splitlines() for t in regex.findall(PATTERN, line)]"),
    ("Words were given a space behind them: in GPT-2's pattern the space stands before the word, "
     "where the text has one.",
     FOUND, '[f"{word} " for word in document.split()]'),
    ("Words were split at white space and given a space: use GPT-2's pattern, which keeps the "
     "text as it is.",
     FOUND, '[f" {word}" for word in document.split()]'),
    ("Words were given the end mark </w> of the first BPE paper: byte-level BPE has none, and "
     "keeps the space before the word.",
     FOUND, '[f"{word}</w>" for word in document.split()]'),
    ("Spaces became Ġ: that is only how GPT-2 writes them in its files. Train on the bytes.",
     FOUND, f'[token.replace(" ", "Ġ") for token in {FOUND}]'),
    ("The text was cut at line ends before the pattern saw it: several line ends in a row are one "
     "run of white space, and it spans lines.",
     FOUND, "[t for line in document.splitlines(True) for t in regex.findall(PATTERN, line)]"),
    ("Each character became a pre-token of its own, so that no pair is left but inside one "
     "character: look at what your split or pattern returns.",
     FOUND, "list(document)"),
))  # fmt: skip
