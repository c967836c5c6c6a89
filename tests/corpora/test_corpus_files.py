"""What `workbook.corpora.corpora` writes, counts, splits and samples."""

import json
import os
from collections import Counter
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbook.corpora import corpora
from workbook.corpora.corpora import END_OF_TEXT, Tally, documents, record, sample_documents

# Short pieces, so that separators, parts of separators and blank documents meet in every way.
PIECES = st.lists(st.sampled_from([END_OF_TEXT, "<|", "endoftext", "|>", "é", "One.", " \n", "<"]))


@pytest.fixture
def ten(tmp_path):
    file = tmp_path / "ten.txt"
    corpora.write_documents(file, (f"Story {number}." for number in range(10)))
    return file


def test_documents_come_back_as_they_were_written(tmp_path):
    texts = ["One.\n\nTwo lines.", "Straße ☃ 🙂", "<|endoftext"]
    facts = corpora.write_documents(tmp_path / "file.txt", texts)
    assert list(documents(tmp_path / "file.txt")) == texts
    raw = (tmp_path / "file.txt").read_bytes()
    assert raw.decode() == "".join(f"{text}\n{END_OF_TEXT}\n" for text in texts)
    assert facts == {"bytes": len(raw), "documents": 3, "sha256": sha256(raw).hexdigest()}


def test_what_a_killed_writer_left_is_removed_after_a_while(tmp_path):
    fresh, old = tmp_path / ".file.txt.a.tmp", tmp_path / ".file.txt.b.tmp"
    for left in (fresh, old):
        left.write_text("half")
    os.utime(old, (0, 0))
    corpora.write_documents(tmp_path / "file.txt", ["One."])
    assert sorted(tmp_path.iterdir()) == [fresh, tmp_path / "file.txt"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n \n", []),
        ("One.", ["One."]),
        (f"One.{END_OF_TEXT}Two.", ["One.", "Two."]),
        (f"One.\n{END_OF_TEXT}\nTwo.\n{END_OF_TEXT}\n", ["One.", "Two."]),
        (f"{END_OF_TEXT}{END_OF_TEXT} {END_OF_TEXT}One.", ["One."]),
        ("One.\r\nTwo.", ["One.\r\nTwo."]),
    ],
)
def test_any_text_file_has_documents(tmp_path, text, expected):
    (tmp_path / "file.txt").write_bytes(text.encode())
    assert list(documents(tmp_path / "file.txt")) == expected


@given(pieces=PIECES, block=st.integers(1, 20))
def test_documents_and_tally_do_not_depend_on_the_blocks(tmp_path_factory, pieces, block):
    text = "".join(pieces)
    expected = [part.strip() for part in text.split(END_OF_TEXT) if part.strip()]
    file = tmp_path_factory.mktemp("blocks") / "file.txt"
    file.write_bytes(text.encode())
    tally = Tally()
    for start in range(0, len(text.encode()), block):
        tally.update(text.encode()[start : start + block])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "BLOCK", block)
        assert list(documents(file)) == expected
    assert tally.facts()["documents"] == len(expected)
    assert tally.facts()["bytes"] == len(text.encode())


def test_documents_are_read_one_block_at_a_time(tmp_path):
    file = tmp_path / "endless.txt"
    file.write_bytes((b"One.\n" + END_OF_TEXT.encode()) * 200_000)
    stream = documents(file)
    assert next(stream) == "One."
    file.write_bytes(b"")  # what has not been read yet is gone
    seen = 0
    with pytest.raises(ValueError, match="changed while it was read"):
        for _ in stream:
            seen += 1
    assert seen < 100_000


def test_a_document_larger_than_many_blocks_is_read_in_linear_time(tmp_path):
    file = tmp_path / "long.txt"
    file.write_bytes(b"word " * 10_000_000)
    (document,) = documents(file)
    assert len(document) == 49_999_999


def test_a_sample_is_without_repetition_in_order_and_repeatable(ten):
    sample = sample_documents(ten, 4, seed=1)
    assert sample == sorted(set(sample))
    assert len(sample) == 4
    assert sample == sample_documents(str(ten), 4, seed=1)
    assert any(sample != sample_documents(ten, 4, seed) for seed in range(2, 9))
    assert sample_documents(ten, 10, seed=0) == list(documents(ten))


def test_every_document_is_sampled_equally_often(ten):
    counts = Counter(text for seed in range(1000) for text in sample_documents(ten, 3, seed))
    assert len(counts) == 10
    assert all(240 < times < 360 for times in counts.values())  # 300 ± 4 standard deviations


@pytest.mark.parametrize(("n", "match"), [(11, "has 10 documents, 11 were"), (0, "one at least")])
def test_a_sample_of_too_many_or_none_is_an_error(ten, n, match):
    with pytest.raises(ValueError, match=match):
        sample_documents(ten, n, seed=0)


def test_a_record_says_what_it_was_told_and_who_made_it(ten):
    with pytest.raises(FileNotFoundError, match=r"no record ten\.json"):
        record(ten)
    corpora.write_record(ten, {"bytes": 5})
    modified = ten.stat().st_mtime_ns
    assert record(str(ten)) == {"bytes": 5, "workbook": "0.1.0", "modified_ns": modified}


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"seed": 2}, False),
        ({"seed": None}, False),
        ({"bytes": 231}, False),
        ({"bytes": None}, False),
        ({"modified_ns": 0}, True),
        ({"modified_ns": 0, "sha256": "0" * 64}, False),
    ],
)
def test_a_file_is_good_if_its_record_fits(ten, change, good):
    digest = sha256(ten.read_bytes()).hexdigest()
    corpora.write_record(ten, {"bytes": 230, "seed": 1, "sha256": digest})
    facts = {key: value for key, value in (record(ten) | change).items() if value is not None}
    ten.with_suffix(".json").write_text(json.dumps(facts))
    assert corpora.is_intact(ten, {"seed": 1}) is good


@pytest.mark.parametrize("text", ["", '{"bytes": 230, "see', "[]", "3", "null", '"bytes"'])
def test_a_file_with_a_broken_record_is_not_good(ten, text):
    ten.with_suffix(".json").write_text(text)
    assert not corpora.is_intact(ten, {})


def test_a_file_is_read_to_be_verified_once_only(ten, monkeypatch):
    corpora.write_record(ten, {"bytes": 230, "sha256": sha256(ten.read_bytes()).hexdigest()})
    os.utime(ten, (0, 0))
    assert corpora.is_intact(ten, {})
    monkeypatch.setattr(corpora, "Tally", None)
    assert corpora.is_intact(ten, {})


def test_a_record_without_a_file_is_not_good(ten):
    ten.with_suffix(".json").write_text(json.dumps({"bytes": 0}))
    ten.unlink()
    assert not corpora.is_intact(ten, {})
