"""What a loss can be: no less than the text costs any model, no more than blind guessing costs.

A loss in nats a token depends on how much text a token holds. In bits a byte it does not, so that
is where the floor of a corpus is: stated for real text, known for the stories that we make.
"""

import math
from dataclasses import dataclass
from functools import cache

from workbook.corpora import corpora, stories
from workbook.training.train_data import MARGIN, STATED_FLOORS

# Bytes of text that a token of the corpus' own tokenizer holds; another tokenizer moves it a bit.
BYTES_A_TOKEN = {"tinystories": 4.1, "owt": 4.5, "stories": 3.6, "pydocs": 3.6}
SAMPLE = 50_000  # bytes of stories, whose random choices are counted


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What holds of every loss on a corpus."""

    corpus: str
    bytes_a_token: float
    floor: float  # bits a byte
    reason: str  # for the floor

    @property
    def lowest(self) -> float:
        """The floor in nats a token."""
        return nats_a_token(self.floor, self.bytes_a_token)


def limits(corpus: str, bytes_a_token: float | None = None) -> Limits:
    """What holds of a loss on a corpus; `bytes_a_token` where another tokenizer is meant."""
    if corpus not in BYTES_A_TOKEN:
        raise ValueError(f"{corpus!r} is no corpus; there are {', '.join(BYTES_A_TOKEN)}")
    if corpus in STATED_FLOORS:
        floor, reason = STATED_FLOORS[corpus], "no model of this size is known to do better"
    else:
        floor, reason = MARGIN * _bits_of_stories(), "the random choices behind the text cost more"
    return Limits(
        corpus=corpus,
        bytes_a_token=bytes_a_token or BYTES_A_TOKEN[corpus],
        floor=floor,
        reason=reason,
    )


@cache
def _bits_of_stories() -> float:
    """The bits a byte that the random choices behind some stories cost."""
    bits = size = 0
    for text, cost in stories.write(corpora.SEED, "validation", SAMPLE):
        bits += cost
        size += len(text.encode()) + len(stories.SEPARATOR)
    return bits / size


def bits_a_byte(nats: float, bytes_a_token: float) -> float:
    """What a loss in nats a token is in bits a byte.

    >>> round(bits_a_byte(1.45, 4.1), 2)
    0.51
    """
    return nats / math.log(2) / bytes_a_token


def nats_a_token(bits: float, bytes_a_token: float) -> float:
    """What a loss in bits a byte is in nats a token."""
    return bits * math.log(2) * bytes_a_token


def guessing(vocab_size: int) -> float:
    """The loss in nats a token of a model that finds every id equally likely: ln V.

    >>> round(guessing(10_000), 2)
    9.21
    """
    return math.log(vocab_size)
