"""The benches run every library, compare round by round, and their tables say what was measured."""

import json
import subprocess
import sys

import pytest

from workbook import config
from workbook.bench import tokenizers
from workbook.tokenization import bpe
from workbook.tokenization.tokenizer import Tokenizer

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    (folder / "text.txt").write_text(f"Once upon a time the owl was 3.\n{END}\n" * 500)
    vocab, merges = bpe.train_bpe(folder / "text.txt", 300, [END])
    Tokenizer(vocab, merges).save(folder / "vocab.json", folder / "merges.txt")
    return folder


@pytest.mark.parametrize("key", tokenizers.RIVALS)
def test_every_rival_can_be_timed(folder, key, monkeypatch):
    monkeypatch.setattr(tokenizers.timeit, "repeat", lambda work, **_: [work() and 1.0])
    try:
        result = tokenizers.RIVALS[key](folder / "text.txt", 300, folder)
    except (ModuleNotFoundError, FileNotFoundError) as error:
        pytest.skip(f"not installed: {error}")
    values = result.values() if isinstance(result, dict) else [result]
    assert all(value > 0 for value in values)


def test_a_library_that_is_not_installed_is_left_out(folder, monkeypatch, capsys):
    def missing(*_):
        raise ModuleNotFoundError("No module named 'rustbpe'")

    monkeypatch.setitem(tokenizers.RIVALS, "train rustbpe", missing)
    tokenizers.main("train rustbpe", str(folder / "text.txt"), "300", str(folder))
    assert json.loads(capsys.readouterr().out) is None


def test_a_run_is_a_process_of_its_own_and_its_failure_is_told(folder, tmp_path):
    assert tokenizers.run_alone("read bytes", folder / "text.txt", 300, folder) > 0
    with pytest.raises(ValueError, match=r"encode tiktoken failed on .*"):
        (tmp_path / "vocab.json").write_text("{")
        (tmp_path / "merges.txt").touch()
        tokenizers.run_alone("encode tiktoken", folder / "text.txt", 300, tmp_path)


def test_a_comparison_is_recorded_with_machine_and_text(folder, monkeypatch):
    took = {"train workbook": [1, 2], "train rustbpe": [8, 12], "train tokenizers": [None, None]}
    took |= {"short workbook": [{"Hi": 2e-6}, {"Hi": 1e-6}]}
    took |= {"short tiktoken": [{"Hi": 3e-6}, {"Hi": 4e-6}]}
    monkeypatch.setattr(tokenizers, "RIVALS", dict.fromkeys(took))
    monkeypatch.setattr(tokenizers, "run_alone", lambda key, *_: took[key].pop(0))
    record = tokenizers.compare(folder / "text.txt", 300, rounds=2)
    speeds = record["megabytes_a_second"]
    size = (folder / "text.txt").stat().st_size
    assert speeds == {
        "train workbook": [size / 1e6, size / 2e6],
        "train rustbpe": [size / 8e6, size / 12e6],
    }
    shown = tokenizers.table(json.loads(json.dumps(record)))
    assert "7.0x as fast (6.0 to 8.0)" in shown
    assert [line.split()[1:] for line in shown.splitlines() if "'Hi'" in line] == [["1.0", "3.0"]]
    assert record["machine"]["versions"]["tiktoken"] in shown
    assert record["machine"]["processor"] in shown


def test_the_part_for_slow_ones_is_cut_between_pretokens(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tokenizers, "PART", 1_000)
    part = tokenizers.first_part(folder / "text.txt", tmp_path / "part.txt").read_bytes()
    whole = (folder / "text.txt").read_bytes()
    assert 1_000 <= len(part) < 1_100
    assert whole.startswith(part) and whole[len(part) : len(part) + 1] in b" \n"


def test_prose_is_made_of_what_is_installed(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    (tmp_path / "library").mkdir()
    for name, text in {
        "a.py": "import b",
        "b.md": "# B",
        "c.png": "no text",
        "d.py": "# B",
    }.items():
        (tmp_path / "library" / name).write_text(text)
    monkeypatch.setattr(tokenizers.sysconfig, "get_path", lambda name: str(tmp_path / "library"))
    path = tokenizers.prose(1_000)
    found = path.read_text(encoding="utf-8").split(END)
    assert sorted(text.strip() for text in found) == ["", "# B", "import b"]
    assert tokenizers.prose(1_000) == path


RECORD = {
    "text": "prose.txt",
    "bytes": 10**9,
    "seconds": {"train": {"1": [10, 12], "2": [5, 6]}, "encode": {"1": [8, 8], "2": [4, 5]}},
    "peak_bytes": {"once": 300e6, "twice": 310e6},
    "machine": {"cores": 2, "processor": "abacus", "load": 0.1},
}


def test_the_table_of_scaling_says_what_was_measured():
    shown = tokenizers.scaling_table(RECORD)
    assert "train   1 worker     91 MB/s, 2 workers    182 MB/s: 2.0x as fast" in shown
    assert "300 MB; on twice the text: 310 MB" in shown


def test_hours_for_the_pile_follow_from_the_record():
    # 5.5 s a GB by two workers: 11 core-seconds, and 825 GB of them are 2.5 core-hours.
    rows = tokenizers.pile_table(RECORD).splitlines()
    assert rows[2].split(" | ")[:2] == ["| 1", "2.5 h"]
    assert rows[3].split(" | ")[1] == "9.5 min"


def test_scaling_measures_training_and_encoding(folder):
    took = tokenizers.work(folder / "text.txt", folder, workers=1)
    assert took["train"] > 0 and took["encode"] > 0
    text = tokenizers.repeated(folder / "text.txt", 50_000, folder / "more.txt")
    assert abs(text.stat().st_size - 50_000) < 25_000


def test_the_page_shows_the_recorded_table():
    page = (config.repository() / tokenizers.PAGE).read_text(encoding="utf-8")
    record = json.loads(
        (config.repository() / tokenizers.SCALING_RECORD).read_text(encoding="utf-8")
    )
    assert tokenizers.with_table(page, record) == page


def test_the_command_tells_what_it_can_time():
    command = [sys.executable, "-m", "workbook", "bench", "tokenizer", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--rounds" in done.stdout
