"""A token's family tree holds the merges that made it, and nothing else."""

import pytest

from workbook.tokenization.bpe import train_incremental
from workbook.tokenization.watch import Ancestor, merges_behind, outline

COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3, "----------": 2}
MERGES = train_incremental(COUNTS, 20)


def nodes(tree):
    yield tree
    for part in tree.parts:
        yield from nodes(part)


@pytest.mark.parametrize("token", [left + right for left, right in MERGES])
def test_parts_join_to_the_token_and_are_older_than_it(token):
    for node in nodes(merges_behind(token, MERGES)):
        if len(node.token) == 1:
            assert node == Ancestor(node.token)
        else:
            assert tuple(part.token for part in node.parts) == MERGES[node.merge - 1]
            assert all(part.merge < node.merge for part in node.parts)


def test_the_first_of_two_merges_that_make_the_same_bytes_counts():
    merges = [(b"a", b"b"), (b"b", b"c"), (b"ab", b"c"), (b"a", b"bc")]
    assert merges_behind(b"abc", merges).merge == 3


def test_a_token_that_no_merge_makes_is_a_clear_error():
    with pytest.raises(ValueError, match=r"no merge makes b'<.end.>'"):
        merges_behind(b"<|end|>", MERGES)


def test_twins_are_told_once():
    merges = [(b"-", b"-"), (b"--", b"--"), (b"----", b"--")]
    assert outline(merges_behind(b"------", merges)).split("\n") == [
        "b'------'  merge 3",
        "  b'----'  merge 2, of two alike",
        "    b'--'  merge 1",
        "  b'--'  merge 1",
    ]
