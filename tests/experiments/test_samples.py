"""What a model wrote is shown as it is, and counted against the text it was trained on."""

import json

import pytest
from made_records import config, record

from workbook.corpora import corpora, fluency
from workbook.experiments import results
from workbook.experiments.records import SAMPLE

STORY = "\nA fox ran to the hill. " + "The fox sang a song. " * 8 + "\n\nHe flombered.<|endoftext|>"


@pytest.fixture
def result(tmp_path):
    source = "There a fox ran to the river. The fox sang a song on a hill. He left."
    counts = fluency.counts(STORY.replace(corpora.END_OF_TEXT, ""), source)
    made = record(tmp_path, config(), [4.0, 3.0])
    (made.folder / SAMPLE).write_text(json.dumps({"text": STORY, "counts": counts}))
    return made


def test_lines_are_short_and_its_own_line_ends_stay(result):
    lines = results.sample_text(result).split("\n")
    assert max(map(len, lines)) <= results.WIDTH
    assert lines[0].startswith("A fox ran to the hill.")
    assert lines[-2:] == ["", "He flombered."]


def test_what_is_known_repeated_and_copied_is_counted(result):
    counted = results.fluency_facts(result)
    assert counted["words"] == "48"
    assert counted["known words"] == "98%"
    assert counted["longest copy (words)"] == "4"  # "The fox sang a", since "song." is another word
    assert int(counted["repeated"].rstrip("%")) > 50


def test_a_run_that_diverged_wrote_nothing(tmp_path):
    with pytest.raises(ValueError, match="wrote nothing: it diverged"):
        results.text_of(record(tmp_path, config(), [4.0], diverged=True))
