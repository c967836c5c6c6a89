"""What a text says of runs: losses, with their corpus and what stands beside them, and rates."""

import math
import re
from dataclasses import dataclass

from workbook.checks.verdicts import Words, Wrong

CORPORA = {
    "tinystories": r"\btiny\s?-?stories\b",
    "owt": r"\bowt\b|\bopen\s?-?web\s?-?text\b",
    "pydocs": r"\bpydocs\b",
    "stories": r"\bstories\b",
}
_DECIMAL = r"(?<![\w.,×*^-])(\d{1,2}\.\d+)(?![\d.]*\s*(?:%|x\b|×|times\b|per\s?cent|e-?\d))"
_NO_NATS = r"(?!\s*-?(?:bits?\b|bpb\b|bytes?\b|s\b|sec|min|hours?|h\b|million|M\b|[kMG]i?B\b))"
_NATS = r"\s*nats?(?:\s*(?:/|per|an?)\s*token)?"
_CORPUS = r"tiny\W?stories|stories|owt|openwebtext|pydocs"
_BETWEEN = (
    r"of|is|was|at|to|on|reach\w*|about|around|roughly|approximately|only|just|a|the|it|value|best"
    rf"|final|lowest|comes?|came|become|down|f[ae]ll\w*|ends?|ended|here|nats?|{_CORPUS}"
)
_LINK = rf"(?:\W+(?:{_BETWEEN})\b){{0,6}}\W{{0,4}}?"
_LOSS = [
    re.compile(rf"\bloss\b{_LINK}{_DECIMAL}{_NO_NATS}", re.I),
    re.compile(
        rf"{_DECIMAL}(?:{_NATS})?[\s*(]{{1,3}}(?:(?:as|is|was|the|of|best|final|lowest)\W+)*"
        r"(?:val(?:idation)?\W+|test\W+)?loss\b",
        re.I,
    ),
    re.compile(
        rf"\b(?:reach\w*|achiev\w*|attain\w*|obtain\w*|ends?|ended|gets?|got|{_CORPUS})\b"
        rf"\W+(?:\w+\W+){{0,3}}?{_DECIMAL}{_NATS}",
        re.I,
    ),
    re.compile(rf"^\W*{_DECIMAL}{_NATS}", re.I),
]
LEAST = 0.15  # nats per token: less than that is rather a difference, whatever is said
# A number in such a clause may be a difference, a limit, or a loss on what was learnt by heart.
_NO_LOSS = re.compile(
    r"\b(?:gap|differ\w*|between|within|spread|deviation|std|noise|margin|delta|changed?|changes"
    r"|lower(?:s|ed)?|higher|more|less|better|worse|apart|away|above|below|under|over|by|extra"
    r"|costs?|worth|saves?|saved|penalty|advantage|gain\w*|improve\w*|hurts?|same|equal"
    r"|floor|entropy|bound|limit|impossible"
    r"|train(?:ing)? (?:batch )?loss|overfit\w*|memori[sz]\w*|by heart|(?:one|single|small) batch"
    r")\b|[±<≤]|\+/?-|(?<![\w(])[+-]\d",
    re.I,
)
_CLAUSE = re.compile(r"(?<=[.;!?])\s|\n|;|, (?=and |but |while |whereas |with )| whereas | while ")
_PERPLEXITY = re.compile(
    rf"\b(?:perplexity|ppl)\b{_LINK}(\d[\d,]*(?:\.\d+)?)(?!\s*(?:%|x\b|times))", re.I
)
_BITS = re.compile(rf"{_DECIMAL}\s*(?:bits?\s*(?:/|per|an?)\s*byte|bpb)\b", re.I)
_BYTES = re.compile(rf"{_DECIMAL}\s*bytes?\s*(?:/|per|an?)\s*token", re.I)
_COUNT = r"(\d[\d,_]*(?:\.\d+)?)"
_PRODUCT = re.compile(
    rf"(?<![\w.,^]){_COUNT}\s*[×x*·]\s*{_COUNT}\s*[×x*·]\s*{_COUNT}(?:\s*(?:tokens|ids))?"
    rf"\s*(?:=|is|are|makes?|gives?)\s*{_COUNT}(?!\s*[×x*·^e]|\d)\s*(million|M\b|k\b|billion)?",
    re.I,
)
_RATE = re.compile(
    r"(?<![\w.,^-])(?:(\d+(?:\.\d+)?)\s?[×x*·]\s?10\s?\^?\s?\{?(-?\d+)\}?"
    r"|10\s?(?:\^|\*\*)\s?\{?(-?\d+)\}?|(\d+(?:\.\d+)?e[-+]?\d+)|(0\.0\d+))(?![\w%]|\.\d)",
    re.I,
)
# Exponents as they are printed: superscripts, and the dashes that stand for a minus sign.
_PLAIN = {ord(sign): digit for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
_PLAIN = {sign: str(digit) for sign, digit in _PLAIN.items()} | {0x207B: "-", 0x2212: "-"}


@dataclass(frozen=True)
class Said:
    """A loss that a text claims, and what is said in the same clause."""

    loss: float
    corpora: tuple[str, ...]
    clause: str


def clauses(text: str) -> list[str]:
    """A text in pieces that say one thing each, more or less."""
    return [piece.strip() for piece in _CLAUSE.split(text) if piece and piece.strip()]


def corpora_in(text: str) -> tuple[str, ...]:
    """The corpora that a text names; Tiny-Stories are not `stories`."""
    found = []
    for name, look in CORPORA.items():
        if re.search(look, text, re.I):
            found.append(name)
            text = re.sub(look, " ", text, flags=re.I)
    return tuple(found)


def losses(text: str) -> list[Said]:
    """The losses on held-out text that a text claims; what may be a difference is left out.

    >>> [said.loss for said in losses("A validation loss of 1.43; the training loss was 0.9.")]
    [1.43]
    """
    found = []
    for clause in clauses(text):
        if _NO_LOSS.search(clause):
            continue
        matches = [match for look in _LOSS for match in look.finditer(clause)]
        numbers = {match.start(1): float(match[1]) for match in matches if float(match[1]) > LEAST}
        found += [Said(loss, corpora_in(clause), clause) for _, loss in sorted(numbers.items())]
    return found


def decimals(text: str) -> list[float]:
    """All numbers of a text that are written with a decimal point."""
    return [float(found) for found in re.findall(_DECIMAL, text)]


def perplexities(text: str) -> list[float]:
    """The perplexities that a text names."""
    return [float(found.replace(",", "")) for found in _PERPLEXITY.findall(text)]


def bits_a_byte(text: str) -> list[float]:
    """The losses in bits per byte that a text claims; what may be a difference is left out."""
    return [] if _NO_LOSS.search(text) else [float(found) for found in _BITS.findall(text)]


def bytes_a_token(text: str) -> float | None:
    """How many bytes a token holds, if a text says so once."""
    found = set(_BYTES.findall(text))
    return float(found.pop()) if len(found) == 1 else None


def rates(text: str) -> list[tuple[float, int]]:
    """The learning rates that a text names, or what looks like some, and where.

    >>> [rate for rate, _ in rates("Of 3e-4, 0.003 and 3 × 10^-2 ...")]
    [0.0003, 0.003, 0.03]
    """
    found = []
    for match in _RATE.finditer(text.translate(_PLAIN)):
        factor, power = match[1] or 1, match[2] or match[3]
        rate = float(f"{factor}e{power}" if power else match[4] or match[5])
        found.append((rate, match.start()))
    return [(rate, start) for rate, start in found if 0 < rate < math.inf]


def refuse_products(text: str) -> None:
    """Raise where a text multiplies three numbers, such as batch, steps and context, and slips."""
    size = {"k": 1e3, "m": 1e6, "million": 1e6, "billion": 1e9}
    for match in _PRODUCT.finditer(text):
        *factors, given = (float(re.sub(r"[,_]", "", match[i])) for i in (1, 2, 3, 4))
        given *= size.get((match[5] or "").lower(), 1)
        product = math.prod(factors)
        if abs(given - product) > 0.02 * product:
            raise Wrong(
                "That product is another number.",
                given=Words(match[0]),
                expected=Words(f"{product:,.0f}"),
                got=Words(f"{given:,.0f}"),
                mistake="Tokens are batch × steps × context.",
            )
