"""What is counted about a text is what it says it is."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from workbook.corpora import fluency

letters = st.text(alphabet="ab ", max_size=30)


@given(letters, letters)
def test_the_longest_copy_is_the_longest_run_of_words_found_elsewhere(text, source):
    parts = text.split(" ")
    places = range(len(parts) + 1)
    runs = [" ".join(parts[start:end]) for start, end in combinations(places, 2)]
    whole = [run for run in runs if run.strip() and run == run.strip() and run in source]
    assert len(fluency.longest_copy(text, source)) == max(map(len, whole), default=0)
