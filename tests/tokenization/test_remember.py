"""What is remembered is right, bounded in number and in length, and asked for once."""

from hypothesis import given
from hypothesis import strategies as st

from workbook.tokenization.tokenizer import LONGEST_REMEMBERED as LONGEST
from workbook.tokenization.tokenizer import _Memory as Memory


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_a_memory_gives_what_the_function_gives_and_stays_small(strings, most):
    memory = Memory(str.upper, most)
    for string in strings:
        assert memory[string] == string.upper()
        assert len(memory) <= most


def test_what_is_remembered_is_not_asked_for_again():
    asked = []
    memory = Memory(lambda string: asked.append(string) or len(string), 10)
    assert [memory["one"], memory["one"], memory["three"]] == [3, 3, 5]
    assert asked == ["one", "three"]


def test_long_strings_are_not_kept():
    memory = Memory(len, 10)
    assert memory["x" * LONGEST] == LONGEST
    assert memory["x" * 10_000] == 10_000
    assert list(memory) == ["x" * LONGEST]
