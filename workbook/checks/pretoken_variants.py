"""The ways in which text is cut into pre-tokens wrongly, each with its name."""

import re
from collections.abc import Callable

import regex

from workbook.checks.text_variants import Variant, pretokens
from workbook.tokenization.pretokens import PATTERN

_ASCII = (
    PATTERN.replace(r"^\s\p{L}\p{N}", r"^\sa-zA-Z0-9")
    .replace(r"\p{L}", "[a-zA-Z]")
    .replace(r"\p{N}", "[0-9]")
)
_STAND_INS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
_GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def _between(pattern: str) -> Callable[[str], list[str]]:
    return lambda document: regex.findall(pattern, document)


def _lines(document: str) -> list[str]:
    return [token for line in document.splitlines(keepends=True) for token in pretokens(line)]


def _stripped(document: str) -> list[str]:
    return [token.strip() for token in pretokens(document) if token.strip()]


PRETOKENS = (
    Variant(
        "pretokens",
        lambda document: [document] if document else [],
        "There is no pre-tokenisation: pairs were counted across the whole text, and merges reach "
        "across words. Cut it with GPT-2's pattern first.",
    ),
    Variant(
        "pretokens",
        str.split,
        "The text was split at white space, so the spaces are lost: GPT-2's pattern keeps the "
        "space at the front of the word, as in b' the'.",
    ),
    Variant(
        "pretokens",
        lambda document: document.split(" "),
        "The text was split at spaces, so they are lost: GPT-2's pattern keeps the space at the "
        "front of the word, as in b' the'.",
    ),
    Variant(
        "pretokens",
        _between(r"\S+|\s+"),
        "White space was cut off as a pre-token of its own: in GPT-2's pattern the space belongs "
        "to the word behind it, as in b' the'.",
    ),
    Variant(
        "pretokens",
        _between(r"\s*\S+|\s+"),
        "Pre-tokens are words with the white space before them: GPT-2's pattern also cuts between "
        "letters, digits and punctuation.",
    ),
    Variant(
        "pretokens",
        _between(r" ?\S+|\s+(?!\S)|\s+"),
        "Pre-tokens are words with the space before them: GPT-2's pattern also cuts between "
        "letters, digits and punctuation.",
    ),
    Variant(
        "pretokens",
        lambda document: regex.split(r"(?= )", document),
        "The text was cut only before spaces: GPT-2's pattern also cuts between letters, digits, "
        "punctuation and other white space.",
    ),
    Variant(
        "pretokens",
        _between(r"\w+|[^\w\s]+"),
        r"Pre-tokens came from a pattern of `\w+`, which loses the white space: use GPT-2's.",
    ),
    Variant(
        "pretokens",
        _between(r"\w+|[^\w\s]+|\s+"),
        r"Pre-tokens came from a pattern of `\w+`: use GPT-2's, where a space belongs to the word "
        "behind it, and letters and digits are apart.",
    ),
    Variant(
        "pretokens",
        _between(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"),
        r"Pre-tokens came from a pattern of `\w+`, which takes letters, digits and `_` together: "
        "use GPT-2's.",
    ),
    Variant(
        "pretokens",
        _between(r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"),
        r"`\p{L}` and `\p{N}` were replaced by `\w`, which takes letters, digits and `_` together.",
    ),
    Variant(
        "pretokens",
        _between(_GPT4),
        "This is GPT-4's pre-tokenisation pattern: the problem asks for GPT-2's.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace(r"\p{N}+", r"\p{N}{1,3}")),
        "Digits were cut into groups of three, as GPT-4 does it: GPT-2's pattern has ` ?\\p{N}+`.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace(r" ?\p{N}+", r"\p{N}")),
        "Each digit became a pre-token: GPT-2's pattern has ` ?\\p{N}+`.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace(r"\s+(?!\S)|", "")),
        r"The part `\s+(?!\S)` of the pattern is missing: of several spaces, the last one belongs "
        "to the word behind them.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace("'(?:[sdmt]|ll|ve|re)|", "")),
        "The contractions ('s, 't, 're ...) are missing from the pattern.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace("'(?:", "'(?i:")),
        "Contractions in capitals ('S, 'LL) were cut off too: GPT-2's pattern knows small letters "
        "only.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace(" ?", "")),
        "The optional space at the front (` ?`) is missing from the pattern: a space belongs to "
        "the word behind it.",
    ),
    Variant(
        "pretokens",
        _between(PATTERN.replace(" ?", r"\s?")),
        r"The pattern has `\s?` in place of ` ?`: only a space joins the word behind it, a line "
        "end does not.",
    ),
    Variant(
        "pretokens",
        _between(_ASCII),
        "`[a-zA-Z]` and `[0-9]` stand for letters and digits: `\\p{L}` and `\\p{N}` (of the "
        "package `regex`) hold those of all scripts.",
    ),
    Variant(
        "pretokens",
        _STAND_INS.findall,
        "Python's `re` was used with stand-ins for `\\p{L}` and `\\p{N}`, which differ beyond "
        "ASCII: the package `regex` knows them.",
    ),
    Variant(
        "pretokens",
        _stripped,
        "The pre-tokens were stripped, so their spaces are lost: keep them as they are.",
    ),
    Variant(
        "pretokens",
        lambda document: [token for line in document.splitlines() for token in pretokens(line)],
        "The text was cut into lines without their ends: line ends are text like any other, and "
        "several in a row are one run of white space.",
    ),
    Variant(
        "pretokens",
        lambda document: [f"{word} " for word in document.split()],
        "Words were given a space behind them: in GPT-2's pattern the space stands before the "
        "word, where the text has one.",
    ),
    Variant(
        "pretokens",
        lambda document: [f" {word}" for word in document.split()],
        "Words were split at white space and given a space: use GPT-2's pattern, which keeps the "
        "text as it is.",
    ),
    Variant(
        "pretokens",
        lambda document: [f"{word}</w>" for word in document.split()],
        "Words were given the end mark </w> of the first BPE paper: byte-level BPE has none, and "
        "keeps the space before the word.",
    ),
    Variant(
        "pretokens",
        lambda document: [token.replace(" ", "Ġ") for token in pretokens(document)],
        "Spaces became Ġ: that is only how GPT-2 writes them in its files. Train on the bytes.",
    ),
    Variant(
        "pretokens",
        _lines,
        "The text was cut at line ends before the pattern saw it: several line ends in a row are "
        "one run of white space, and it spans lines.",
    ),
    Variant(
        "pretokens",
        list,
        "Each character became a pre-token of its own, so that no pair is left but inside one "
        "character: look at what your split or pattern returns.",
    ),
)
