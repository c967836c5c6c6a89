"""The loss of a model that has learnt next to nothing: a level to hold a training run against.

A model that finds every id equally likely has ln V. One that only knows how frequent each id is,
whatever stands before it, has less, and is the least that training should beat.
"""

import numpy as np


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
