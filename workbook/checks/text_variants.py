"""How a file becomes pre-tokens: the right way of each stage, and the usual wrong ones by name.

A check runs the variants on an input that a learner's code gets wrong. The one that gives what the
learner's code gives names the mistake.
"""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import regex

from workbook.tokenization.pretokens import PATTERN


@dataclass(frozen=True)
class Variant:
    """One stage of an algorithm, done in a way that is not the right one."""

    stage: str  # the function of the reference that it takes the place of
    function: Callable
    mistake: str  # what to tell a learner whose code does the same

    def __repr__(self) -> str:
        return f"<{self.stage}: {self.mistake}>"


def stages(right: dict[str, Callable], variants: tuple[Variant, ...] = ()) -> dict[str, Callable]:
    """The functions of all stages, the variants in place of the right ones."""
    return right | {variant.stage: variant.function for variant in variants}


def decode(data: bytes) -> str:
    """The text of a UTF-8 file, line ends as they are."""
    return data.decode("utf-8")


def documents(text: str, special_tokens: tuple[str, ...]) -> list[str]:
    """What stands between the special tokens; of overlapping ones the longest counts."""
    return _cut(text, sorted(special_tokens, key=len, reverse=True))


def pretokens(document: str) -> list[str]:
    """The pieces that GPT-2's pattern cuts a document into."""
    return regex.findall(PATTERN, document)


def _cut(text: str, tokens: list[str]) -> list[str]:
    """`text` without the tokens; where two start at one place, the earlier in the list wins."""
    return regex.split("|".join(map(regex.escape, tokens)), text) if tokens else [text]


def _unescaped(text: str, special_tokens: tuple[str, ...]) -> list[str]:
    if not special_tokens:
        return [text]
    return [piece or "" for piece in regex.split("|".join(special_tokens), text)]


def _one_after_another(text: str, special_tokens: tuple[str, ...]) -> list[str]:
    parts = [text]
    for token in special_tokens:
        parts = [piece for part in parts for piece in part.split(token)]
    return parts


def _empty_pattern(text: str, special_tokens: tuple[str, ...]) -> list[str]:
    return documents(text, special_tokens) if special_tokens else list(text)


READ = (
    Variant(
        "read",
        lambda data: decode(data).replace("\r\n", "\n").replace("\r", "\n"),
        r"The line ends \r\n were read as \n: a file opened in text mode translates them. "
        'Open it with `newline=""`, or in binary mode and decode.',
    ),
    Variant(
        "read",
        lambda data: data.decode("latin-1"),
        "The file was decoded as Latin-1, or byte by byte: it is UTF-8, where a character may "
        "take several bytes.",
    ),
    Variant(
        "read",
        lambda data: data.decode("ascii", "ignore"),
        "Characters outside ASCII were dropped: decode the file as UTF-8.",
    ),
    Variant(
        "read",
        lambda data: decode(data).lower(),
        "The text was turned into lower case: BPE keeps every byte as it is.",
    ),
    *(
        Variant(
            "read",
            lambda data, form=form: unicodedata.normalize(form, decode(data)),
            f"The text was normalised ({form}): BPE keeps every byte as it is.",
        )
        for form in ("NFC", "NFKC", "NFD")
    ),
    Variant(
        "read",
        lambda data: decode(data).replace("\n", " "),
        "Line ends were replaced by spaces: they are text like any other.",
    ),
    Variant(
        "read",
        lambda data: regex.sub(r"\s+", " ", decode(data)),
        "Runs of white space were replaced by one space: they are text like any other.",
    ),
    Variant(
        "read",
        lambda data: "\n".join(line.strip() for line in decode(data).split("\n")),
        "White space at the ends of lines was stripped: it is text like any other.",
    ),
    Variant(
        "read",
        lambda data: "".join(decode(data).splitlines()),
        "The line ends are lost: they are text like any other.",
    ),
    Variant(
        "read",
        lambda data: "".join(line.strip() for line in decode(data).splitlines()),
        "The lines were stripped, and their ends are lost: they are text like any other.",
    ),
    Variant(
        "read",
        lambda data: decode(data).strip(),
        "White space at the ends of the text was stripped: it is text like any other.",
    ),
)

NEWLINES = "Line ends beside a special token were dropped: they belong to the text."


def _without_newlines(text: str, tokens: tuple[str, ...]) -> list[str]:
    return [document.strip("\n") for document in documents(text, tokens)]


def _without_newline_behind(text: str, tokens: tuple[str, ...]) -> list[str]:
    first, *others = documents(text, tokens)
    return [first, *(document.removeprefix("\n") for document in others)]


SPLIT = (
    Variant(
        "split",
        lambda text, _: [text],
        "The special tokens were counted and merged like text: split the text at them, and drop "
        "them, before anything is counted.",
    ),
    Variant(
        "split",
        lambda text, tokens: ["".join(documents(text, tokens))],
        "The special tokens were cut out, but the texts on both sides were glued together. A "
        "special token is a hard boundary: no pre-token and no pair reaches across it.",
    ),
    Variant(
        "split",
        _unescaped,
        "The special tokens went into the regular expression unescaped, where `|`, `.` or `*` "
        "are operators: use `re.escape`.",
    ),
    Variant(
        "split",
        lambda text, tokens: _cut(text, list(tokens[:1])),
        "Only the first special token was treated as special.",
    ),
    Variant(
        "split",
        lambda text, tokens: _cut(text, list(tokens[-1:])),
        "Only the last special token was treated as special.",
    ),
    Variant(
        "split",
        lambda text, tokens: text.split("|".join(tokens)) if tokens else [text],
        "The special tokens were joined by | before `re.escape`, which escapes the | as well: "
        "escape each one, then join.",
    ),
    Variant(
        "split",
        lambda text, tokens: regex.split(r"<\|.*?\|>", text),
        "Everything of the form <|...|> was treated as special: only what `special_tokens` lists "
        "is.",
    ),
    Variant(
        "split",
        lambda text, tokens: documents(text, tuple(t for t in tokens if t == "<|endoftext|>")),
        "Only <|endoftext|> was treated as special: use the list `special_tokens`.",
    ),
    Variant(
        "split",
        lambda text, tokens: documents(text, (*tokens, "<|endoftext|>")),
        "<|endoftext|> was treated as special though it is not in `special_tokens`.",
    ),
    Variant(
        "split",
        lambda text, tokens: [" ".join(documents(text, tokens))],
        "The special tokens were replaced by a space: they are boundaries, and nothing is counted "
        "in their place.",
    ),
    Variant(
        "split",
        lambda text, tokens: ["\n".join(documents(text, tokens))],
        "The special tokens were replaced by a line end: they are boundaries, and nothing is "
        "counted in their place.",
    ),
    Variant(
        "split",
        lambda text, tokens: [document.strip() for document in documents(text, tokens)],
        "White space beside a special token was stripped: it belongs to the text.",
    ),
    Variant("split", _without_newlines, NEWLINES),
    Variant("split", _without_newline_behind, NEWLINES),
    Variant(
        "split",
        lambda text, tokens: [part for part in documents(text, tokens) if part.strip()],
        "A stretch of white space between special tokens was left out: it is text like any other.",
    ),
    Variant(
        "split",
        lambda text, tokens: documents(text, tokens)[:1],
        "Only the text before the first special token was counted.",
    ),
    Variant(
        "split",
        lambda text, tokens: documents(text, tokens)[1:] or [text],
        "The text before the first special token was left out.",
    ),
    Variant(
        "split",
        lambda text, tokens: documents(text, tokens)[:-1] or [text],
        "The text behind the last special token was left out.",
    ),
    Variant(
        "split",
        _empty_pattern,
        "An empty list of special tokens became an empty pattern, which splits the text at every "
        "character: split only where there are special tokens.",
    ),
)

SPLIT_OPEN = (  # told, but not refused: the course leaves it open for training
    Variant(
        "split",
        lambda text, tokens: _cut(text, list(tokens)),
        "Where one special token begins with another, the longer one was cut apart: sort them by "
        "length, longest first, before you join them to a pattern.",
    ),
    Variant(
        "split",
        _one_after_another,
        "Where one special token contains another, the longer one was cut apart: split at all of "
        "them in one pass, trying the longest first.",
    ),
)
