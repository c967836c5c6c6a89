"""GPT-2's files are read and written so that other libraries open them, and wrong ones refused."""

import pytest

from workbook.tokenization import gpt2_files
from workbook.tokenization.gpt2_files import from_readable, read_merges, read_vocab, to_readable


def test_the_alphabet_is_gpt2s():
    # As they stand in the published files of GPT-2.
    assert to_readable(b" low\n\t\x00\xad\xff") == "ĠlowĊĉĀŃÿ"


def test_names_and_bytes_are_the_same_thing():
    everything = bytes(range(256))
    assert from_readable(to_readable(everything)) == everything
    with pytest.raises(ValueError, match=r"'天' is not in GPT-2's byte alphabet"):
        from_readable("天")


def test_special_tokens_of_other_libraries_stand_as_they_are(tmp_path):
    path = tmp_path / "vocab.json"
    expected = {0: b" low", 1: b"<|im start|>", 2: "<|é|>".encode()}
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text('{"Ġlow": 0, "<|im start|>": 1, "<|é|>": 2}', encoding=encoding)
        assert read_vocab(path, ["<|é|>"]) == expected


def test_merges_are_read_with_and_without_the_version_line(tmp_path):
    path = tmp_path / "merges.txt"
    merges = [(b"#", b"#"), (b" ", b"t"), (b"\xc3", b"\xa9")]
    gpt2_files.write_merges(path, merges)
    assert path.read_text("utf-8").splitlines() == ["#version: 0.2", "# #", "Ġ t", "Ã ©"]
    assert read_merges(path) == merges
    path.write_bytes("\ufeff#version: 0.2\r\n# #\r\nĠ t\r\n".encode())  # as Notepad saves it
    assert read_merges(path) == merges[:2]


def test_a_file_that_is_no_vocabulary_is_refused(tmp_path):
    path = tmp_path / "vocab.json"
    for text, words in (
        ("[1, 2]", "one JSON object"),
        ('{"a": "b"}', "one JSON object"),
        ('{"version": "1.0", "model": {"vocab": {}}}', "stands in a tokenizer.json under `model`"),
        ('{"a": 1, "b": 1}', "the id 1 twice"),
        ("[" * 100_000, "is not JSON"),
        (f'{{"a": {"9" * 5000}}}', "is not JSON"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"vocab\.json.*{words}"):
            read_vocab(path)


def test_a_file_that_holds_no_merges_is_refused(tmp_path):
    path = tmp_path / "merges.txt"
    for line in ("a b c", "ab", "a 天"):
        path.write_text(f"a b\n{line}\n", "utf-8")
        with pytest.raises(ValueError, match="line 2: expected two tokens"):
            read_merges(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not UTF-8"):
        read_merges(path)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_merges_are_read_whatever_ends_a_line(tmp_path, end):
    (tmp_path / "merges.txt").write_bytes(end.join(["#version: 0.2", "Ġ t", "h e", ""]).encode())
    assert read_merges(tmp_path / "merges.txt") == [(b" ", b"t"), (b"h", b"e")]
