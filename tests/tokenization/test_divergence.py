"""The first difference of two lists of merges is found, counted and explained."""

from workbook.tokenization.bpe import train_naive
from workbook.tokenization.watch import first_difference

TOY = {"low": 5, "lower": 2, "widest": 3, "newest": 6}


def test_equal_lists_do_not_diverge():
    merges = train_naive(TOY, 6)
    assert first_difference(merges, list(merges), TOY) is None


def test_a_tie_is_named_with_its_winner():
    smaller = [(b"e", b"s"), (b"es", b"t")]
    found = first_difference(smaller, train_naive(TOY, 2), TOY)
    assert (found.step, found.mine_count, found.other_count) == (1, 9, 9)
    assert "a tie, and the greater pair is the second" in str(found)


def test_counts_are_those_just_before_the_step():
    right = train_naive(TOY, 4)
    found = first_difference([*right[:3], (b"w", b"est")], right, TOY)
    assert (found.step, found.mine_count, found.other_count) == (4, 6, 7)
    assert "b'w' + b'est' (6 times) against b'l' + b'ow' (7 times)" in found.reason()


def test_a_list_that_ends_early_diverges_there():
    right = train_naive(TOY, 4)
    found = first_difference(right[:2], right, TOY)
    assert (found.step, found.mine, found.mine_count) == (3, None, 0)
    assert "one list ends" in str(found)


def test_a_pair_that_does_not_occur_counts_nothing():
    found = first_difference([(b"x", b"y")], train_naive(TOY, 1), TOY)
    assert found.mine_count == 0
