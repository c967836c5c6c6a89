"""The benches run every library, compare round by round, and their tables say what was measured."""

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbook import cli, config
from workbook.bench import generation, measure, tokenizers, training
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
    if isinstance(result, dict):  # short calls
        assert all(value > 0 for value in result.values())
    else:
        assert result.warm > 0
        # Reading loads nothing, and nor does plain Python.
        assert (result.cold is None) == (key.split()[0] == "read" or key.endswith("python"))


def missing(*_):
    raise ModuleNotFoundError("No module named 'rustbpe'")


def test_a_library_that_is_not_installed_is_left_out(folder, monkeypatch):
    monkeypatch.setitem(tokenizers.RIVALS, "train rustbpe", missing)
    assert tokenizers.run_rival("train rustbpe", folder / "text.txt", 300, folder) is None


def who(*_):
    return {"process": os.getpid(), "cores": len(os.sched_getaffinity(0))}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot do that")
def test_a_run_is_a_process_of_its_own_on_one_core(folder, monkeypatch):
    monkeypatch.setitem(tokenizers.RIVALS, "read bytes", who)
    found = tokenizers.run_rival("read bytes", folder / "text.txt", 300, folder)
    assert found["process"] != os.getpid() and found["cores"] == 1


def test_the_failure_of_a_run_is_told(folder, tmp_path):
    with pytest.raises(ValueError, match=r"array tiktoken failed on .*"):
        (tmp_path / "vocab.json").write_text("{")
        (tmp_path / "merges.txt").touch()
        tokenizers.run_rival("array tiktoken", folder / "text.txt", 300, tmp_path)


def test_a_comparison_is_recorded_with_machine_and_text(folder, monkeypatch):
    timed = tokenizers.Seconds
    took = {
        "train workbook": [timed(1, 4), timed(2, 5)],
        "train rustbpe": [timed(8, 9), timed(12, 13)],
        "train python": [timed(20), timed(30)],
        "train tokenizers": [None, None],
    }
    took |= {"short workbook": [{"Hi": 2e-6}, {"Hi": 1e-6}]}
    took |= {"short tiktoken": [{"Hi": 3e-6}, {"Hi": 4e-6}]}
    monkeypatch.setattr(tokenizers, "RIVALS", dict.fromkeys(took))
    monkeypatch.setattr(tokenizers, "run_rival", lambda key, *_: took[key].pop(0))
    record = tokenizers.compare(folder / "text.txt", 300, rounds=2)
    speeds = record["megabytes_a_second"]
    size = (folder / "text.txt").stat().st_size
    assert speeds == {
        "train workbook": [size / 1e6, size / 2e6],
        "train workbook, cold": [size / 4e6, size / 5e6],
        "train rustbpe": [size / 8e6, size / 12e6],
        "train rustbpe, cold": [size / 9e6, size / 13e6],
        "train python": [size / 20e6, size / 30e6],
    }
    shown = tokenizers.table(json.loads(json.dumps(record)))
    assert "7.0x as fast (6.0 to 8.0)" in shown
    assert "2.4x as fast (2.2 to 2.6)" in shown  # both cold: 9 / 4 and 13 / 5
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
    texts = {"a.py": "import b", "b.md": "# B", "c.png": "no text", "d.py": "# B"}
    for name, text in texts.items():
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
    "peak_bytes": {
        "once": {"train": 300e6, "encode": 200e6},
        "twice": {"train": 310e6, "encode": 210e6},
    },
    "machine": {"cores": 2, "processor": "abacus", "system": "Linux", "load": 0.1, "versions": {}},
}


def test_the_table_of_scaling_says_what_was_measured():
    lines = tokenizers.scaling_table(RECORD).splitlines()
    train = next(line for line in lines if line.startswith("train, workers: 1"))
    assert "100.0" in train and "2.0x as fast (2.0 to 2.0)" in train
    assert ["encode", "2", "GB", "210.0"] in [line.split() for line in lines]


def test_minutes_for_the_pile_follow_from_the_record():
    # 5.5 s per GB by two workers: 11 core-seconds, and for 825 GB of them 151 core-minutes.
    rows = [line.split()[1:] for line in tokenizers.pile_table(RECORD).splitlines()]
    assert rows[1][:2] == ["1", "151.2"]
    assert rows[2][:2] == ["16", "9.5"]


def test_scaling_measures_one_and_two_workers_and_memory(folder, tmp_path, monkeypatch):
    def here(function, *arguments):
        path = next(each for each in arguments if isinstance(each, Path))
        return SimpleNamespace(result=function(*arguments), peak_bytes=path.stat().st_size)

    monkeypatch.setattr(tokenizers, "prose", lambda size: folder / "text.txt")
    monkeypatch.setattr(tokenizers.measure, "measured", here)
    monkeypatch.setattr(config, "data_folder", lambda: tmp_path)
    shown = tokenizers.run_scaling(10_000, rounds=1, folder=tmp_path / "kept")
    record = json.loads((tmp_path / "kept" / "scaling.json").read_text())
    assert shown.startswith(tokenizers.scaling_table(record))
    assert record["bytes"] == 10 * (folder / "text.txt").stat().st_size
    size = record["bytes"]
    assert record["peak_bytes"] == {
        name: {"train": each, "encode": each}
        for name, each in (("once", size), ("twice", 2 * size))
    }
    assert all(s > 0 for runs in record["seconds"].values() for [s] in runs.values())


def test_the_page_shows_the_recorded_table():
    page = (config.checkout() / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert tokenizers.pile_table(measure.recorded("scaling")) in page


@pytest.fixture
def quick_benches(folder, monkeypatch):
    """The benches, with figures that nobody measured."""
    figures = {"workbook": [1.0]}
    monkeypatch.setattr(tokenizers, "prose", lambda size: folder / "text.txt")
    monkeypatch.setattr(tokenizers.corpora, "path", lambda name, size: folder / "text.txt")
    for bench in (tokenizers, training, generation):
        monkeypatch.setattr(bench, "compare", lambda *_: figures)
        monkeypatch.setattr(bench, "table", lambda record: "a table")
    run = SimpleNamespace(result={"train": 1.0, "encode": 1.0}, peak_bytes=1)
    monkeypatch.setattr(measure, "measured", lambda *_: run)


BENCHES = {
    "tokenizer": {"tokenizer-stories-100MB.json", "tokenizer-prose-100MB.json"},
    "train": {"train.json"},
    "generate": {"generate.json"},
    "scaling": {"scaling.json"},
}


@pytest.mark.parametrize("bench", BENCHES)
def test_only_a_bench_that_is_asked_to_record_changes_what_git_tracks(
    bench, quick_benches, tmp_path, monkeypatch, capsys
):
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True, text=True)
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    shutil.copy(config.PACKAGE.parent / ".gitignore", tmp_path)
    for name in BENCHES[bench]:
        (tmp_path / "data" / "bench").mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / "bench" / name).write_text("as recorded")
    git(["git", "init", "--quiet"])
    git(["git", "add", "--all"])
    assert cli.main(["bench", bench]) == 0
    timings = tmp_path / "data" / "timings"
    assert {path.name for path in timings.iterdir()} == BENCHES[bench]
    assert f"kept in {timings}" in capsys.readouterr().out
    changed = ["git", "ls-files", "--modified", "--others", "--exclude-standard"]
    assert git(changed).stdout == ""
    assert cli.main(["bench", bench, "--record"]) == 0
    assert set(git(changed).stdout.split()) == {f"data/bench/{name}" for name in BENCHES[bench]}


@pytest.mark.parametrize("bench", BENCHES)
def test_nothing_is_recorded_outside_a_checkout(
    bench, quick_benches, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setattr(config, "checkout", lambda: None)
    assert cli.main(["bench", bench, "--record"]) == 2
    assert "in a clone, or leave out --record" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "it is said before anything is measured"


def test_a_text_of_the_users_is_never_recorded(folder, quick_benches, capsys):
    assert cli.main(["bench", "tokenizer", str(folder / "text.txt"), "--record"]) == 2
    assert "a text of yours is not part of the repository" in capsys.readouterr().err


def test_the_command_tells_what_it_can_time(capsys):
    with pytest.raises(SystemExit):
        cli.main(["bench", "tokenizer", "--help"])
    assert "--rounds" in capsys.readouterr().out
