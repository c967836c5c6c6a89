"""What counting alone can do is what a model with a bias and nothing else would learn."""

import math

import numpy as np
import pytest
import tiny_runs

from workbook.baselines import unigram_loss


def test_it_lies_between_the_entropy_of_the_counts_and_blind_guessing():
    ids = tiny_runs.ids(20_000)
    loss = unigram_loss(ids, ids, tiny_runs.VOCAB_SIZE)
    shares = np.bincount(ids) / len(ids)
    entropy = -(shares * np.log(shares)).sum()
    assert entropy <= loss < entropy + 0.01
    assert loss < math.log(tiny_runs.VOCAB_SIZE)


def test_an_id_that_training_never_saw_is_not_impossible():
    assert unigram_loss(np.zeros(8, int), np.array([1]), 2) == pytest.approx(math.log(10))


def test_a_vocabulary_that_is_too_small_is_named():
    with pytest.raises(ValueError, match="the id 7, and there are 4 ids"):
        unigram_loss(np.array([7]), np.array([0]), 4)
