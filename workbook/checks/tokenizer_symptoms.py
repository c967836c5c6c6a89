"""What is wrong with ids that no known mistake explains."""

from itertools import accumulate

from workbook.checks.bpe_symptoms import first_difference
from workbook.checks.text_variants import pretokens
from workbook.checks.tokenizer_answers import REPLACED
from workbook.checks.tokenizer_reference import Ids, Pieces, Text, cut_specials, predicted

CUTS = (  # what a cut between two pieces goes through, by the pre-token it falls into
    (lambda token: "<|" in token, "a special token"),
    (lambda token: token.startswith("'"), "a contraction"),
    (lambda token: "\n" in token, "a run of line ends"),
    (str.isspace, "a run of white space"),
    (lambda token: any(map(str.isalnum, token)), "a word"),
)


def symptom(given: Text | Pieces | Ids, got: list[int] | str) -> str:
    """What can be seen from a wrong result."""
    if isinstance(given, Ids):
        return _decoded(given, got)
    tokens = {token_id: token for token, token_id in given.setup.ids().items()}
    strange = [token_id for token_id in got if token_id not in tokens]
    if strange:
        return f"{strange[0]} is not an id of the vocabulary, nor of a special token added to it."
    text = given.text if isinstance(given, Text) else "".join(given.pieces)
    spelt = b"".join(tokens[token_id] for token_id in got)
    if spelt != text.encode():
        return f"The ids spell another text: {spelt.decode('utf-8', 'replace')!r}."
    if isinstance(given, Pieces) and (words := _cut_through(given, text)):
        return words
    return _wrong_token([tokens[token_id] for token_id in got], given, text)


def _parts(given: Text | Pieces, text: str) -> list[tuple[str, bool]]:
    """The pre-tokens and special tokens of a text, each with whether it is special."""
    return [
        (token, special)
        for part, special in cut_specials(text, given.setup.specials())
        for token in ([part] if special else pretokens(part))
    ]


def _cut_through(given: Pieces, text: str) -> str:
    """What the cuts between the pieces go through."""
    cuts, start = set(accumulate(map(len, given.pieces))), 0
    for token, _ in _parts(given, text):
        inside = any(start < cut < start + len(token) for cut in cuts)
        kind = next((words for test, words in CUTS if test(token)), "a run of signs")
        if inside:
            return (
                f"The cut goes through {kind}, {token!r}: keep back the end of a piece until it is "
                "certain what follows."
            )
        start += len(token)
    return (
        "The cut lies between two pre-tokens, but the first one needed the text that follows: "
        "keep it back."
    )


def _wrong_token(got: list[bytes], given: Text | Pieces, text: str) -> str:
    """Which pre-token is cut into the wrong tokens."""
    whole = Text(given.setup, text)
    right_ids = predicted(whole)
    names = {token_id: token for token, token_id in given.setup.ids().items()}
    right = [names[token_id] for token_id in right_ids]
    at = first_difference(right, got)
    start = len(b"".join(right[:at]))
    ends = list(accumulate(len(token.encode()) for token, _ in _parts(given, text)))
    part, special = next(
        part for part, end in zip(_parts(given, text), ends, strict=True) if end > start
    )
    if special:
        return f"The special token {part!r} was encoded like ordinary text."
    end = next(end for end in ends if end > start)
    if start + len(got[at]) > end:
        return (
            f"The token {got[at]!r} reaches across the border of two pre-tokens of GPT-2's pattern."
        )
    if (
        at
        and right[at - 1] == got[at - 1]
        and got[at].decode("utf-8", "replace") in given.setup.specials()
    ):
        return f"{got[at]!r} was taken for a special token."
    return (
        f"In {part!r} the token {right[at]!r} should come where {got[at]!r} is: of the merges that "
        "apply, the earliest in the list goes first, again and again until none is left."
    )


def _decoded(given: Ids, got: list[int] | str) -> str:
    right = predicted(given)
    if REPLACED in right and REPLACED not in str(got):
        return (
            "Bytes that are no UTF-8 must become U+FFFD: join all bytes, then decode once with "
            + ('`errors="replace"`.')
        )
    if REPLACED in str(got) and REPLACED not in right:
        return "A whole character was torn apart: join all bytes first, then decode once."
    return "The bytes of all tokens, joined and decoded as UTF-8, are the text."
