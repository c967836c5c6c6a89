"""What the checks of `train_bpe` and the tokenizer share: how a text is cut, and long texts.

`decode`, `cut_specials` and `pretokens` are part of both references; `READING`, `SPECIALS` and
`CUTTING` are edits of them.
"""

import re
import unicodedata  # noqa: F401 - in an edit below
from collections.abc import Callable, Sequence
from typing import Any

import regex

from workbook.classroom.checks.machinery.engine import Exercise, instead_of, mistake
from workbook.classroom.checks.machinery.timeout import processor_seconds
from workbook.classroom.checks.machinery.verdicts import Wrong, difference_at, slow
from workbook.tokenization.pretokens import PATTERN

QUICK = 5.0  # seconds of processor time that a short text may take
LONG_SECONDS = 20.0  # seconds of processor time that a long text may take
STOPPED = 2.0  # times these: a right result that comes until then is *almost*


def decode(data: bytes) -> str:
    """The text of a UTF-8 file, line endings as they are."""
    return data.decode("utf-8")


def cut_specials(text: str, tokens: Sequence[str]) -> list[tuple[str, bool]]:
    """The text cut at its special tokens: each part, and whether it is one; the longest wins."""
    if not tokens:
        return [(text, False)]
    pattern = "|".join(map(regex.escape, sorted(tokens, key=len, reverse=True)))
    parts = regex.split(f"({pattern})", text)
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def in_turn(tokens: Sequence[str], text: str) -> list[str]:
    """The parts of a text that is cut at each token only behind the last of those before it."""
    parts = [text]
    for token in tokens:
        parts += regex.split(f"({regex.escape(token)})", parts.pop())
    return parts


def pretokens(document: str) -> list[str]:
    """The pieces that GPT-2's pattern cuts a document into."""
    return regex.findall(PATTERN, document)


UTF8, FOUND = 'data.decode("utf-8")', "regex.findall(PATTERN, document)"
PLACES = {
    UTF8: "how the file is decoded",
    FOUND: "how a document is cut into pre-tokens",
    "pattern =": "how special tokens are found",
    "enumerate(parts)": "what becomes of the parts between special tokens",
}
LINE_ENDS = mistake(
    r"The line endings \r\n were read as \n: a file opened in text mode translates them. "
    'Open it with `newline=""`, or in binary mode and decode.',
    UTF8,
    UTF8 + r'.replace("\r\n", "\n").replace("\r", "\n")',
)
READING = instead_of(
    UTF8,
    {
        "The file was decoded as Latin-1, or byte by byte: it is UTF-8, in which a character may "
        "take several bytes.": 'data.decode("latin-1")',
        "Characters outside ASCII were dropped: decode as UTF-8.": 'data.decode("ascii", "ignore")',
        "Newlines were lost, or became spaces: they are text like any other.": (
            UTF8 + r'.replace("\n", " ")',
            f'"".join({UTF8}.splitlines())',
            f'"".join(line.strip() for line in {UTF8}.splitlines())',
        ),
        "White space at the ends of the text or of its lines was stripped: it is text like any"
        " other.": (UTF8 + ".strip()", rf'"\n".join(line.strip() for line in {UTF8}.split("\n"))'),
        "The text was changed, as by `lower()` or `unicodedata.normalize`: keep every byte as it"
        " is.": (
            UTF8 + ".lower()",
            UTF8 + ".upper()",
            *(f"unicodedata.normalize({form!r}, {UTF8})" for form in ("NFC", "NFD", "NFKC")),
        ),
    },
)


IF_NO_TOKENS, KEPT = "if not tokens:", "enumerate(parts) if part"
SORTED, SPLIT = "sorted(tokens, key=len, reverse=True)", 'regex.split(f"({pattern})", text)'
LIKE_TEXT = "Special tokens were treated like ordinary text: cut the text at them first."
UNSORTED = instead_of(
    SORTED,
    {
        "When special tokens overlap, the longest wins: sort them by length, longest first, and "
        "cut at all of them in one pass, by one pattern.": (
            "tokens",
            "sorted(tokens)",
            "sorted(tokens, key=len)",
            "sorted(tokens, key=len, reverse=len(tokens) < 9)",  # as a set may have it
        )
    },
)
BESIDE = "White space, or a newline, next to a special token was dropped: it belongs to the text."
SPECIALS = (
    mistake(LIKE_TEXT, IF_NO_TOKENS, "if True:"),
    *(
        mistake(
            "The special tokens went into the regular expression unescaped, where `|`, `.` or "
            "`*` are operators: use `re.escape`.",
            f"map(regex.escape, {SORTED})",
            SORTED,
            "at % 2 == 1",
            told,
        )
        for told in ("part in tokens", "at % 2 == 1")
    ),
    *(
        mistake(
            f"Only {which} was treated as special: use the list `special_tokens`.",
            IF_NO_TOKENS,
            f"tokens = {code}\n{IF_NO_TOKENS}",
        )
        for which, code in (
            ("the first of the special tokens", "tokens[:1]"),
            ("the last of the special tokens", "tokens[-1:]"),
            ("<|endoftext|>", '[t for t in tokens if t == "<|endoftext|>"]'),
        )
    ),
    mistake(
        "An empty list of special tokens became an empty pattern, which splits the text at "
        "every character: split only if there are special tokens.",
        "return [(text, False)]",
        "return [(character, False) for character in text]",
    ),
    *instead_of(
        "(part, at % 2 == 1)",
        {
            BESIDE: [
                f"(part if at % 2 else part.{strip}, at % 2 == 1)"
                for strip in ("strip()", r'strip("\n")', r'lstrip("\n")')
            ]
        },
    ),
    *instead_of(
        SPLIT,
        {
            BESIDE: [
                f'regex.split(rf"{pattern}", text)'
                for pattern in (r"\s*({pattern})\s*", r"({pattern})\n?")
            ],
            "`[...]` matches single characters: the tokens need a group, `(...)`.": (
                'regex.split(f"([{pattern}])", text)'
            ),
            "Each special token was sought only behind those found before: cut at all of them in "
            "one pass, by one pattern.": [f"in_turn({how}, text)" for how in (SORTED, "tokens")],
            "The `|` between the special tokens was escaped, too: escape each, then join them.": (
                "regex.split('(' + regex.escape('|'.join(tokens)) + ')', text)"
            ),
        },
    ),
    *instead_of(
        KEPT,
        {
            "A stretch of white space between special tokens was left out: it is text "
            "like any other.": f"{KEPT}.strip()"
        },
    ),
)

GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
ASCII = PATTERN.replace(r"\p{L}\p{N}", "a-zA-Z0-9")
ASCII = ASCII.replace(r"\p{L}", "[a-zA-Z]").replace(r"\p{N}", "[0-9]")
STAND_INS = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def _by(pattern: str) -> str:
    """Code that finds the pre-tokens with another pattern, given as an expression."""
    return f"regex.findall({pattern}, document)"


def _but(old: str, new: str) -> str:
    """Code that finds the pre-tokens with a change to GPT-2's pattern."""
    return _by(f"PATTERN.replace({old!r}, {new!r})")


CUTTING = instead_of(
    FOUND,
    {
        "The pattern has a group, `(...)`, and of that `findall` returns the group, not the match: "
        "write `(?:...)`, or take `match.group()` of `finditer`.": _but("(?:", "("),
        "There is no pre-tokenisation: merges cross word boundaries. Cut the text with GPT-2's "
        "pattern first.": "[document] if document else []",
        "The white space between words is lost: GPT-2's pattern keeps it, as in b' the'.": (
            "document.split()",
            'document.split(" ")',
            _by(r'r"\w+|[^\w\s]+"'),
            f"[token.strip() for token in {FOUND} if token.strip()]",
        ),
        "White space was cut off as a pre-token of its own: in GPT-2's pattern the space belongs "
        "to the word after it, as in b' the'.": (_by(r'r"\S+|\s+"'), _by(r'r"\w+|[^\w\s]+|\s+"')),
        "These are whole words: GPT-2's pattern also cuts between "
        "letters, digits and punctuation.": (
            _by(r'r"\s*\S+|\s+"'),
            _by(r'r" ?\S+|\s+(?!\S)|\s+"'),
            'regex.split(r"(?= )", document)',
        ),
        r"`\w` matches letters, digits and `_` alike: the pattern has `\p{L}` and `\p{N}`.": (
            _by(r'r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"'),
            _by(r'''r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"'''),
        ),
        "The pattern ignores case: GPT-2's cuts off 's, 'll and the like in small letters "
        "only.": _by('"(?i)" + PATTERN'),
        "This is GPT-4's pre-tokenisation pattern: the problem asks for GPT-2's.": _by("GPT4"),
        r"Numbers were cut into groups of three, or into digits: GPT-2's pattern has ` ?\p{N}+`.": (
            _but(r"\p{N}+", r"\p{N}{1,3}"),
            _but(r" ?\p{N}+", r"\p{N}"),
        ),
        r"The part `\s+(?!\S)` of the pattern is missing: of several spaces, the last one belongs "
        "to the word after them.": _but(r"\s+(?!\S)|", ""),
        r"The parts of the pattern that match white space, `\s+(?!\S)|\s+`, or the last of them, "
        "are missing: what no part matches is lost.": (
            _but(r"|\s+(?!\S)|\s+", ""),
            _but(r"(?!\S)|\s+", r"(?!\S)"),
        ),
        "The contractions ('s, 't, 're ...), or some of them, are missing from the pattern, or "
        "come too late in it: the first part that matches wins.": (
            _but("|ll|ve|re", ""),
            _but("'(?:[sdmt]|ll|ve|re)|", ""),
        ),
        "The optional space at the front (` ?`) is missing from the pattern, or from one of its "
        "parts: a space belongs to the word after it.": (
            _but(" ?", ""),
            *(_but(f" ?{part}", part) for part in (r"\p{L}", r"\p{N}", r"[^\s")),
        ),
        "`[a-zA-Z]`, stand-ins in Python's `re`, or a pattern over bytes miss letters beyond "
        r"ASCII: use `\p{L}` and `\p{N}`, which the `regex` package has, on the text, and encode "
        "afterwards.": (_by("ASCII"), "STAND_INS.findall(document)"),
        "The text was cut into lines before the pattern saw it: several newlines in a row are one "
        "run of white space, which spans lines.": [
            f"[t for line in document.splitlines({keep}) for t in regex.findall(PATTERN, line)]"
            for keep in ("", "True")
        ],
        "Each character became a pre-token of its own, so that no pair is left except inside a "
        "character: look at what your split or pattern returns.": "list(document)",
    },
)
MISTAKES = (*SPECIALS, *CUTTING, *READING)  # of both

JOIN = "merged.append(left + right)"  # in `merge_pair`
FIRST_ONLY = mistake(
    "Only the first occurrence of the pair in each word was merged.",
    JOIN,
    "return [*merged, left + right, *symbols[at + 2 :]]",
)
SKIPPED_ONE = mistake(
    "After a merge one symbol was skipped: the next pair may begin right after the new token, "
    "which in the shortened list is one place further on, not two.",
    JOIN,
    f"{JOIN}\nmerged += symbols[at + 2 : at + 3]\nat += 1",
)


def expect_right_and_quick(
    name: str, run: Callable[..., Any], right: list, given: str, mistakes: tuple[str, str]
) -> None:
    """Raise `Wrong` unless a call on a long text gives the right list in time.

    Args:
        name: of what is judged.
        run: makes the call, with a limit `seconds` and the words `given` for the report.
        right: the expected result.
        given: the call in words.
        mistakes: the likely one if the result is wrong, and if it takes too long.
    """
    before = processor_seconds()
    try:
        result = run(seconds=STOPPED * LONG_SECONDS, given=given)
    except Wrong as failure:
        if failure.timed_out:
            failure.claim = f"{name} is far too slow. {failure.claim}"
            failure.mistake = mistakes[1]
        raise
    used = processor_seconds() - before
    at = difference_at(right, result)
    if result != right:
        raise Wrong(
            f"{name} goes wrong at index {at:,} of a long text, though short texts are right.",
            given=given,
            expected=right[at : at + 4],
            got=result[at : at + 4],
            mistake=mistakes[0],
        )
    if used > LONG_SECONDS:
        raise slow(f"{name} is right", used, LONG_SECONDS, given, mistakes[1])


def expect_no_memory(exercise: Exercise, attempt: Any, cases: Sequence[Any], likely: str) -> None:
    """Raise `Wrong` if only the last result is wrong, because of what earlier calls left behind.

    `likely` is the mistake that is told.
    """
    try:
        results = [exercise.run(attempt, case) for case in cases]
    except Wrong as failure:
        if failure.timed_out:
            raise
        return  # what is wrong from the start is found by the exercise, with its cause
    rights = [exercise.expected(case) for case in cases]
    last = len(cases) - 1
    if results != rights and difference_at(rights, results) == last:
        wrong = exercise.report(cases[last], rights[last], results[last])
        wrong.claim = "The result depends on earlier calls."
        wrong.mistake = likely
        raise wrong


def one_for_each_cause(findings: Sequence[Wrong]) -> list[Wrong]:
    """The findings without those whose mistake, or kind of case, was told before; worst first."""
    told = set[str | None]()
    kept = []
    for finding in sorted(findings, key=lambda finding: finding.weight != "use"):
        causes = {finding.mistake, getattr(finding.case, "what", None)} - {None, ""}
        if not causes & told:
            kept.append(finding)
        told |= causes
    return kept
