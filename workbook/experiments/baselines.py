"""What a loss is worth: beside blind guessing, beside counting, and beside what the text costs.

A model that finds every id equally likely has ln V. One that only knows how frequent each id is,
whatever stands before it, has less, and is the least that training should beat.
"""

from dataclasses import dataclass

import numpy as np

from workbook.accounting import parameters
from workbook.config import TrainConfig
from workbook.experiments.records import Result
from workbook.training.data import train_data
from workbook.training.loss_bounds import bits_a_byte, guessing, nats_a_token

LAST = 5  # logged training losses: one alone is that of a single batch


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Levels for the losses of a run, in nats a token, on the very ids that it is evaluated on."""

    guessing: float  # every id equally likely
    counting: float  # every id as likely as it is frequent in the training text
    text: float  # what the text itself costs, or what no small model is known to do better than
    known: bool  # whether that is known, and not just stated
    bytes_a_token: float
    train_tokens: int  # of the training text

    @property
    def text_bits(self) -> float:
        """What the text costs in bits a byte."""
        return bits_a_byte(self.text, self.bytes_a_token)

    @property
    def named(self) -> dict[str, float]:
        """Those that belong into a plot."""
        text = "what the text itself costs" if self.known else "nobody does better (stated)"
        return {"knows only how frequent tokens are": self.counting, text: self.text}


def levels(config: TrainConfig) -> Levels:
    """The levels for runs of this config."""
    data, size = train_data(config), config.model.vocab_size
    held_out = data.validation[: config.eval_tokens]
    bytes_a_token = float(data.token_bytes[held_out].mean())
    return Levels(
        guessing=guessing(size),
        counting=unigram_loss(data.train, held_out, size),
        text=nats_a_token(data.entropy or data.floor, bytes_a_token),
        known=data.entropy is not None,
        bytes_a_token=bytes_a_token,
        train_tokens=len(data.train),
    )


def loss_facts(result: Result) -> dict[str, str]:
    """A run's loss in both units, and what helps to judge it, as a column of a table."""
    found = levels(result.config)
    return {
        "ids": f"{result.config.model.vocab_size:,}",
        "parameters": f"{parameters(result.config.model).total:,}",
        "bytes a token": f"{found.bytes_a_token:.2f}",
        "tokens in the training text": f"{found.train_tokens:,}",
        "tokens seen, as a part of it": f"{result.tokens / found.train_tokens:.2f}",
        "guessing (nats/token)": f"{found.guessing:.2f}",
        "counting (nats/token)": f"{found.counting:.2f}",
        f"last {LAST} logged training losses (nats/token)": f"{last_training_loss(result):.2f}",
        "validation loss (nats/token)": f"{result.loss:.3f}",
        "validation loss (bits/byte)": f"{result.bits_per_byte:.3f}",
        "the text itself (bits/byte)": f"{found.text_bits:.3f}" if found.known else "unknown",
    }


def last_training_loss(result: Result) -> float:
    """The mean of the last `LAST` logged training losses of a run, in nats a token."""
    return float(result.log["train_loss"].dropna().iloc[-LAST:].mean())


def unigram_loss(train: np.ndarray, held_out: np.ndarray, vocab_size: int) -> float:
    """The loss in nats a token of a model that has only counted the ids of the training text.

    Each id counts once more than it occurred, so that none is impossible.

    >>> round(unigram_loss(np.array([0, 0, 1]), np.array([0, 1]), 2), 3)  # 3/5 and 2/5
    0.714
    """
    counts = np.bincount(train, minlength=vocab_size) + 1
    if len(counts) > vocab_size:
        raise ValueError(
            f"the training text has the id {len(counts) - 1:,}, and there are {vocab_size:,} ids;"
            " give the vocab_size of its tokenizer"
        )
    nats = -np.log(counts / counts.sum())
    return float(nats[held_out].mean())
