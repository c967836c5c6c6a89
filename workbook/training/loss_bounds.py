"""The bounds of a loss: at least what the text costs any model, at most what blind guessing costs;
and what the course asks for.

A loss in nats per token depends on how much text a token holds. In bits per byte it does not, so
the floor of a corpus has that unit: stated for real text, computed for the stories that we make.
"""

import math
from dataclasses import dataclass
from functools import cache

from workbook.config import Edition
from workbook.corpora import corpora, stories

# What the course asks for, in nats per token of validation text.
TARGET, TARGET_ON_CPU = 1.45, 2.00  # on TinyStories, with the tokens of the scales full and cpu
BOARD_TARGET = 5.0  # on OpenWebText: an entry of the leaderboard has to be below it
BOARD_BEST = 3.08  # the lowest entry of 2025 that was verified; lower claims were corrected
# Seconds of the leaderboard: the course gives 90 minutes or 45, on a faster GPU.
CAPS: dict[Edition, float] = {"2025": 90 * 60.0, "2026": 45 * 60.0}
TOO_HIGH = 1.0  # nats per token above the best run: a learning rate that ends there has failed

# Bytes of text in a token of the corpus' own tokenizer; another tokenizer changes it a little.
BYTES_PER_TOKEN = {"tinystories": 4.1, "owt": 4.5, "stories": 3.4, "docstrings": 3.4}
# Bits per byte that a model as small as the course's does not get below on text it has not seen,
# with a margin: a loss of 1.3 nats per token of 4.1 bytes, good on TinyStories, is 0.46.
STATED_FLOORS = {"tinystories": 0.35, "owt": 0.6, "docstrings": 0.6}
# The share of what the random choices cost. That is only an upper bound on the entropy: a perfect
# model could get below it, nobody knows how far. None of the course's size gets a tenth below.
MARGIN = 0.9
SAMPLED_BYTES = 50_000  # bytes of stories, whose random choices are counted


@dataclass(frozen=True)
class LossBounds:
    """What bounds every loss on a corpus."""

    bytes_per_token: float
    floor: float  # bits per byte that no honest model of the course's size gets below
    reason: str  # for the floor

    @property
    def lowest(self) -> float:
        """The floor in nats per token."""
        return nats_per_token(self.floor, self.bytes_per_token)


def bounds(
    corpus: str, bytes_per_token: float | None = None, entropy: float | None = None
) -> LossBounds:
    """The bounds on a corpus.

    `bytes_per_token` is that of its own tokenizer unless it is given. `entropy` is what the random
    choices behind the stories cost in bits per byte; None: it is estimated from a sample.
    """
    if corpus not in BYTES_PER_TOKEN:
        raise ValueError(f"{corpus!r} is not a corpus; choose from {', '.join(BYTES_PER_TOKEN)}")
    if corpus in STATED_FLOORS:
        floor = STATED_FLOORS[corpus]
        reason = "no model of this size is known to do better"
    else:
        # Of real text nobody knows the entropy; of ours it follows from how it was drawn.
        floor = MARGIN * (_bits_of_stories() if entropy is None else entropy)
        reason = f"{MARGIN:.0%} of the entropy of the random choices behind the text"
    return LossBounds(bytes_per_token or BYTES_PER_TOKEN[corpus], floor, reason)


@cache
def _bits_of_stories() -> float:
    """The entropy of the random choices behind some stories, in bits per byte."""
    bits, size = 0.0, 0
    for text, cost in stories.write_stories(corpora.SEED, "validation", SAMPLED_BYTES):
        bits += cost
        size += len(text.encode()) + len(stories.SEPARATOR)
    return bits / size


def bits_per_byte(nats: float, bytes_per_token: float) -> float:
    """A loss in nats per token as bits per byte.

    >>> round(bits_per_byte(1.45, 4.1), 2)
    0.51
    """
    # 1 bit is ln 2 nats, and a token has `bytes_per_token` bytes.
    return nats / math.log(2) / bytes_per_token


def nats_per_token(bits: float, bytes_per_token: float) -> float:
    """A loss in bits per byte as nats per token."""
    return bits * math.log(2) * bytes_per_token


def uniform_loss(vocab_size: int) -> float:
    """The loss in nats per token of a model that finds all tokens equally likely: ln V.

    >>> round(uniform_loss(10_000), 2)
    9.21
    """
    # -ln(1 / V): where an untrained model should begin, give or take a few tenths.
    return math.log(vocab_size)
