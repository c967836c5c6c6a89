"""What is said of a wrong tensor that no mistake explains."""

import pytest
import torch

from workbook.classroom.checks.machinery.tensors import symptom

RIGHT = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
OTHER = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))


def mixed(keep, axis):
    """The right numbers in these places along an axis, and others elsewhere."""
    return RIGHT.clone().copy_(OTHER).index_copy(axis, torch.tensor(keep), RIGHT[..., keep])


SYMPTOMS = [
    (mixed([0, 3], 2), "entry 0, 3 (counted from 0) of 4"),
    (RIGHT.abs(), "apart from their signs"),
    (RIGHT[..., [2, 0, 3, 1]], "numbers in each vector, but in another order"),
    (RIGHT[:, [1, 2, 0]], "in other places"),
    (RIGHT.bfloat16().float(), "(half precision)"),
    (RIGHT + 2, "too large by 2"),
    (RIGHT.mT, "axes are in a different order"),
    (RIGHT * 1.7, "Each number is 1.7 times"),
    (RIGHT * 0, "All of it is 0"),
    (RIGHT.relu(), "as after a ReLU"),
    (RIGHT / 0 * 0, "NaN"),
    (RIGHT.bfloat16(), "bfloat16, which is too coarse"),
]


@pytest.mark.parametrize(("got", "words"), SYMPTOMS)
def test_the_symptom_is_named(got, words):
    assert words in symptom(RIGHT, got)


def test_nothing_is_said_where_nothing_is_seen():
    assert symptom(RIGHT, OTHER) is None
    assert symptom(RIGHT[:, :1], OTHER[:, :1]) is None  # a single position
    assert symptom(RIGHT[0, 0, 0], OTHER[0, 0, 0]) is None  # any number is a multiple of another
