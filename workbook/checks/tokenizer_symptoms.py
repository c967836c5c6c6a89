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
    text = given.text if isinstance(given, Text) else "".join(given.pieces)
    known = [tokens.get(token_id, b"") for token_id in got]
    if text and len(known) > (place := _place(known, given, text))[0] and place[2]:
        return _wrong_special(place[1], known[place[0]] or b"?", given)
    strange = [token_id for token_id in got if token_id not in tokens]
    if strange:
        return f"{strange[0]} is not an id of the vocabulary, nor of a special token added to it."
    if b"".join(known) != text.encode():
        spelt = b"".join(known).decode("utf-8", "replace")
        return f"The ids spell another text, {spelt!r}: nothing may be lost or added."
    return _wrong_token(known, given, text)


def _parts(given: Text | Pieces, text: str) -> list[tuple[str, bool]]:
    """The pre-tokens and special tokens of a text, each with whether it is special."""
    return [
        (token, special)
        for part, special in cut_specials(text, given.setup.specials())
        for token in ([part] if special else pretokens(part))
    ]


def _place(got: list[bytes], given: Text | Pieces, text: str) -> tuple[int, str, bool, int]:
    """The first wrong token, and the part of the text it stands in: its text, kind and start."""
    names = {token_id: token for token, token_id in given.setup.ids().items()}
    right = [names[token_id] for token_id in predicted(Text(given.setup, text))]
    at = first_difference(right, got)
    start, wrong_from = 0, len(b"".join(right[:at]))
    parts = _parts(given, text)
    while len(parts) > 1 and wrong_from >= start + len(parts[0][0].encode()):
        start += len(parts.pop(0)[0].encode())
    return at, *parts[0], start


def _cut_through(part: str, start: int, given: Pieces, text: str) -> str:
    """What a cut between pieces goes through, where the first wrong token stands."""
    kind = next((words for test, words in CUTS if test(part)), "a run of signs")
    cuts = {len(text[:cut].encode()) for cut in accumulate(map(len, given.pieces))}
    if any(start < cut < start + len(part.encode()) for cut in cuts):
        return (
            f"The cut between two pieces goes through {kind}, {part!r}: keep back the end of a "
            "piece until it is certain what follows."
        )
    return (
        f"{part!r} was cut through, {kind}, though it does not stand where one piece ends: do not "
        "cut the text anywhere but between two pre-tokens."
    )


def _wrong_special(part: str, got: bytes, given: Text | Pieces) -> str:
    right = given.setup.ids()[part.encode()]
    if part.encode().startswith(got):
        return f"The special token {part!r} was encoded like ordinary text."
    if part in given.setup.known:
        return f"The vocabulary holds the special token {part!r}: its id there is {right}."
    return f"The vocabulary lacks the special token {part!r}: it gets the next free id, {right}."


def _wrong_token(got: list[bytes], given: Text | Pieces, text: str) -> str:
    """Which part of the text is encoded wrongly, and in which way."""
    at, part, special, start = _place(got, given, text)
    if special:
        return _wrong_special(part, got[at], given)
    names = {token_id: token for token, token_id in given.setup.ids().items()}
    right = [names[token_id] for token_id in predicted(Text(given.setup, text))]
    if len(b"".join(right[:at])) + len(got[at]) > start + len(part.encode()):
        return (
            f"The token {got[at]!r} reaches across the border of two pre-tokens of GPT-2's pattern."
        )
    if isinstance(given, Pieces):
        return _cut_through(part, start, given, text)
    return (
        f"In {part!r} the token {right[at]!r} should come where {got[at]!r} is: of the merges that "
        "apply, the earliest in the list goes first, again and again until none is left."
    )


def _decoded(given: Ids, got: list[int] | str) -> str:
    right = predicted(given)
    if REPLACED in right and REPLACED not in str(got):
        return 'Bytes that are no UTF-8 must become U+FFFD: decode with `errors="replace"`.'
    if REPLACED in str(got) and REPLACED not in right:
        return "A whole character was torn apart: join all bytes first, then decode once."
    return "The text is all the bytes of the tokens, joined and then decoded as UTF-8."
