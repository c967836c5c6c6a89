"""The `workbook` command does what it says, and says in one line what it cannot do."""

import json
import os
import subprocess
import sys
from inspect import getsource
from unittest.mock import Mock

import pytest
from made_repositories import module

from workbook.classroom import cli, problems
from workbook.classroom.checks.machinery import judging, worker
from workbook.classroom.study import lab, notebooks, verbs
from workbook.classroom.study.progress import Progress
from workbook.corpora import corpora

SOFTMAX = f"import torch\n{getsource(module('flat', 'cs336_basics/model.py').softmax)}"


@pytest.fixture(autouse=True)
def study(tmp_path, monkeypatch, request, path_of_imports):
    """A study folder of these tests, so that nothing counts in one of yours.

    Attempts are judged in this process, those of slow tests in one of their own.
    """
    monkeypatch.setattr(worker, "is_inside", "slow" not in request.keywords)
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    return tmp_path / "study"


@pytest.fixture
def attempt(tmp_path):
    """A learner's file."""
    path = tmp_path / "mine.py"
    path.write_text(f"{SOFTMAX}\ndef train_bpe(*arguments):\n    return 'mine'\n")
    return path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
@pytest.mark.parametrize("redirected", ["| true", ">&-"])
def test_output_that_nobody_reads_is_no_error(redirected):
    command = f"set -o pipefail; {sys.executable} -m workbook data list {redirected}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) in [(0, ""), (141, "")]


FILES = [
    ("file.py", "from my_neighbour import ANSWER"),
    ("src/my_package_of_parts/part.py", "from .neighbour import ANSWER"),
    ("a\nb.py", "ANSWER = b'\\xc3\\x28'"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("file", "source"), FILES)
def test_a_file_may_have_neighbours_and_any_name(tmp_path, file, source):
    package = tmp_path / "src" / "my_package_of_parts"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    for neighbour in (tmp_path / "my_neighbour.py", package / "neighbour.py"):
        neighbour.write_text("ANSWER = b'\\xc3\\x28'")
    (tmp_path / file).write_text(source)
    assert cli.main(["check", "unicode2", f"{tmp_path / file}:ANSWER", "--part", "c"]) == 0


@pytest.mark.slow
def test_a_file_alone_is_checked_for_all_that_it_defines(attempt, tmp_path, capsys):
    attempt.write_text(f"{attempt.read_text()}\ndef helper(): ...\n")
    assert cli.main(["check", str(attempt), "--json", str(tmp_path / "said.json")]) == 1
    said = capsys.readouterr().out
    assert said.index("train_bpe: wrong") < said.index("softmax: correct")  # the handout's order
    found = json.loads((tmp_path / "said.json").read_text())
    assert [entry["status"] for entry in found] == ["wrong", "correct"]
    assert all(entry["message"] in said and entry["found"] == str(attempt) for entry in found)
    assert [entry["problem"] for entry in found] == ["train_bpe", "softmax"]
    attempt.write_text(SOFTMAX)
    assert cli.main(["check", str(attempt)]) == 0


def test_a_function_may_have_the_id_of_its_problem_for_a_name(attempt, capsys):
    attempt.write_text("def gradient_clipping(parameters, max_l2_norm):\n    return 1 / 0\n")
    for arguments in (["gradient_clipping", str(attempt)], [str(attempt)]):
        assert cli.main(["check", *arguments]) == 1
        assert "gradient_clipping: wrong" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_may_be_named_like_a_module(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("random.py", "torch.py"):
        (tmp_path / name).write_text(f"import random, torch\n{SOFTMAX}")
        assert cli.main(["check", "softmax", name]) == 0, capsys.readouterr()


@pytest.mark.slow
def test_a_file_that_ends_the_process_is_wrong(attempt, study, capsys):
    attempt.write_text("import os\nos._exit(0)")
    assert cli.main(["check", "train_bpe", str(attempt)]) == 1
    said = capsys.readouterr().out
    assert "It ended the Python process" in said and "ended with status 0" in said
    assert Progress(study).of("train_bpe", None).best == "wrong"


@pytest.mark.slow
def test_only_a_kept_file_says_by_all_what_is_meant(attempt, study, capsys):
    attempt.write_text(f'{SOFTMAX}\ndef other(x, dim):\n    return x\n\n__all__ = ["other"]\n')
    assert cli.main(["check", "softmax", str(attempt)]) == 0, capsys.readouterr()
    attempt.write_text(
        f"{SOFTMAX.replace('softmax', 'stable')}\ndef softmax(x):\n    return x\n\n"
        "def last(x, dim):\n    return softmax(stable(x, dim))\n"
    )
    assert cli.main(["check", "softmax", f"{attempt}:last"]) == 0, capsys.readouterr()
    kept = study / "mine" / "softmax.py"
    assert '__all__ = ["last"]' in kept.read_text()
    assert cli.main(["check", "softmax", str(kept)]) == 0, capsys.readouterr()


def test_a_verdict_speaks_of_commands_and_not_of_cells(attempt, capsys):
    attempt.write_text("TEXT = 'It shows nothing.'\ndef softmax(x, dim):\n    ...\n")
    for arguments, said in (
        (["softmax", attempt], "Write the function softmax(x, dim).\nThen check again."),
        (["unicode1", f"{attempt}:TEXT", "--part", "b"], "run `workbook study --tick unicode1 b`."),
    ):
        assert cli.main(["check", *map(str, arguments)]) == 1
        assert said in capsys.readouterr().out


UNKNOWN = [
    (["train", "laptop", "--lr", "0.01"], "--lr 0.01; is --max-learning-rate meant?"),
    (["train", "laptop", "--learning-rate=3"], "is --max-learning-rate meant?"),
    (["train", "laptop", "--batchsize", "3"], "is --batch-size meant?"),
    (["train", "laptop", "twice"], "unrecognized arguments: twice\n"),
    (["generate", "here", "--lr", "1"], "unrecognized arguments: --lr 1\n"),
]


@pytest.mark.parametrize(("arguments", "said"), UNKNOWN)
def test_what_a_command_does_not_know_is_told_under_its_own_usage(arguments, said, capsys):
    with pytest.raises(SystemExit):
        cli.main(arguments)
    error = capsys.readouterr().err
    assert said in error and error.startswith(f"usage: workbook {arguments[0]} ")


def test_a_pair_is_found_by_its_two_names(attempt, monkeypatch):
    monkeypatch.syspath_prepend("")  # puts the import path back afterwards
    attempt.write_text("def load_checkpoint():\n    1\ndef save_checkpoint():\n    1\n")
    pair = cli.load_attempt(attempt, "", problems.with_id("checkpointing"))
    assert [function.__name__ for function in pair] == ["save_checkpoint", "load_checkpoint"]


WORKERS = """
import multiprocessing

def double(n):
    return 2 * n

def train_bpe(*arguments):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        raise ValueError(f"the workers say {pool.map(double, [1, 2])}")
"""


@pytest.mark.slow
def test_worker_processes_find_the_functions_of_the_file(attempt, capsys):
    attempt.write_text(WORKERS)
    cli.main(["check", "train_bpe", str(attempt)])
    assert "the workers say [2, 4]" in capsys.readouterr().out


@pytest.mark.slow
def test_a_file_that_never_ends_is_stopped(attempt, monkeypatch):
    monkeypatch.setattr(judging, "TOTAL_SECONDS", 0.3)
    monkeypatch.syspath_prepend("")
    attempt.write_text("while True: pass")
    with pytest.raises(ValueError, match=r"mine.py does not run: it was stopped after 0.3 s"):
        cli.load_module(attempt)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the folder that one is in")
def test_a_folder_that_was_deleted_is_said_so(attempt, tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for command in (["check", "train_bpe", str(attempt)], ["study"], ["adopt", str(tmp_path)]):
        assert cli.main(command) == 2
        assert "this folder was deleted" in capsys.readouterr().err


IMPOSSIBLE = [
    (["check", "train_bep", "x.py"], "no problem is called 'train_bep'"),
    (["check", "train_bpe", "no/file.py"], "there is no file"),
    (["check", "tokenizer", "{file}"], "does not define Tokenizer"),
    (["check", "unicode1", "{file}"], "unicode1 asks for no particular name"),
    (["check", "softmax"], "expected a problem and a file"),
    (["check", "{folder}/ends.py"], "defines nothing that a problem asks for"),
    (["check", "softmax", "--all"], "leave out the problem, the file and the part"),
    (["check", "--all"], "run `workbook adopt PATH` with the path of your repository"),
    (["check", "train_bpe", "{folder}/notes.txt"], "must end in .py"),
    (["check", "train_bpe", "{folder}/ends.py"], "does not run: SystemExit: 3"),
    (["check", "train_bpe", "{folder}/stops.py"], "does not run: KeyboardInterrupt"),
    (["export", "--edition", "2027"], "no edition '2027'; pick 2025 or 2026"),
    (["study", "--reset", ""], "no problem is called ''"),
    (["data", "tokenize", "docstrings", "--size", "1MB"], "comes in one size; leave size out"),
    (["train", "laptop", "--mine", "--dry-run"], "no code of yours yet"),
    (["train", "laptop", "--steps=10", "--warmup-iters=20"], "choose a smaller --warmup-iters"),
    (["train", "laptop", "--d-model", "100"], "--d-model=100 gives each of 4 heads 25 values"),
    (["train", "laptop", "--betas", "nan", "0", "--dry-run"], "--betas=(nan, 0.0) are not two"),
    (["train", "laptop", "--max-l2-norm", "0", "--dry-run"], "--max-l2-norm=0.0 is not positive"),
    (["train", "laptop", "--name", "../../escaped", "--dry-run"], "cannot begin the name"),
    (["adopt", ""], "the path is empty: give the folder of your checkout"),
    (["adopt", "{folder}/loop"], "loop"),
    (["notebooks", "99_nothing"], "there is no notebook '99_nothing'; pick from 0"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "message"), IMPOSSIBLE)
def test_what_cannot_be_done_is_said_in_one_line(arguments, message, attempt, tmp_path, capsys):
    (tmp_path / "notes.txt").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "ends.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "stops.py").write_text("raise KeyboardInterrupt")
    places = {"file": attempt, "folder": tmp_path}
    assert cli.main([argument.format(**places) for argument in arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("workbook: ") and message in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")


def test_fewer_steps_than_the_warm_up_shorten_that_too():
    for preset in ("laptop", "full"):
        asked = ["train", preset, "--steps"]
        options = cli.parser().parse_args([*asked, "10"])
        assert cli.chosen_config(options).optimizer.warmup_iters == 1
    options = cli.parser().parse_args([*asked, "400"])
    assert cli.chosen_config(options).optimizer.warmup_iters == 20  # of 500 for 10,000 steps


SENSELESS = [
    (["lab", "--port", "0"], "--port"),
    (["lab", "--port", "٣"], "--port"),
    (["data", "tokenize", "stories", "--workers", "1001"], "'1001' is not a number from 1 to"),
    (["generate", "run", "--seed", str(2**70)], "is not a number from 0 to"),
    (["generate", "run", "hi", "--temperature", "nan"], "--temperature: 'nan' is not a number"),
    (["generate", "run", "hi", "--top-p", "0"], "--top-p: '0' is not a number from 1e-06 to 1"),
]


@pytest.mark.parametrize(("arguments", "said"), SENSELESS)
def test_a_command_line_that_makes_no_sense_has_exit_status_2(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert said in shown.err and shown.out == ""


def test_the_command_alone_shows_the_help(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert not stop.value.code and "open JupyterLab" in capsys.readouterr().out


@pytest.mark.parametrize("switch", ["PROFILE", "EDITION", "PRECISION"])
def test_a_wrong_switch_is_refused_by_every_command(monkeypatch, capsys, switch):
    monkeypatch.setenv(f"WORKBOOK_{switch}", "zz")
    assert cli.main(["data", "list"]) == 2  # which uses none of them
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"workbook: WORKBOOK_{switch}='zz' is not one of ")


def test_lab_is_told_the_port_and_left_by_ctrl_c_without_a_traceback(monkeypatch, capsys):
    start = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(lab, "start_lab", start)
    assert cli.main(["lab", "--port", "9000"]) == 130
    start.assert_called_once_with(9000)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(os.name != "posix", reason="Windows has no HOME")
def test_a_home_that_is_not_writable_names_the_variables(monkeypatch, tmp_path, capsys):
    for home, words in (("none", "set JUPYTER_CONFIG_DIR, JUPYTER_DATA_DIR, "), ("", "no port")):
        monkeypatch.setenv("HOME", str(tmp_path / home))
        monkeypatch.setattr(lab, "start_lab", Mock(side_effect=OSError("no port")))
        assert cli.main(["lab"]) == 2
        assert words in capsys.readouterr().err


def test_data_make_makes_what_was_asked(monkeypatch):
    made = []
    monkeypatch.setattr(corpora, "path", lambda name, split, size: made.append((split, size)))
    for options in ([], ["--size", "3MB", "--split", "validation"]):
        assert cli.main(["data", "make", "stories", *options]) == 0
    assert made == [("train", None), ("validation", None), ("validation", 3_000_000)]


@pytest.mark.slow
def test_study_makes_the_notebooks_for_other_programs_than_ours(study, capsys):
    assert cli.main(["study"]) == 0
    said = capsys.readouterr().out
    assert "not made yet" in said and "Next: unicode1 (a), open" in said and not study.exists()
    assert cli.main(["study", "--make"]) == 0
    assert "not made yet" not in capsys.readouterr().out
    worked = {path.stem for path in notebooks.find_worked()}
    assert {path.stem for path in study.glob("*.ipynb")} == worked


def test_study_ticks_off_what_a_text_says(study, capsys):
    verbs.answer("unicode1", "b", "The one shows what the other hides.")
    for words, status, said in (
        (["b", "1", "2"], 0, "2 of 3 ticked off"),
        (["b"], 0, "✓ unicode1 (b): ticked"),
        (["b"], 0, "Solved: 0.3 of"),
        (["c"], 2, "no text for unicode1 (c) was handed in yet"),
        (["b", "1", "x"], 2, "no fact 'x'; the facts are numbered 1 to 3"),
        (["b", "²"], 2, "no fact '²'"),
    ):
        assert cli.main(["study", "--tick", "unicode1", *words]) == status
        assert said in "".join(capsys.readouterr())
