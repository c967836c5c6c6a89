"""What is compiled is compiled once, kept where it can be, announced, and never at an import."""

import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import workbook
from workbook.tokenization import compiled
from workbook.tokenization.compiled import count, encode, merge, table

COMPILE_LITTLE = """
from workbook.tokenization.compiled import machine
print(machine.leading_letters(0), machine.cache_folder())
"""


@pytest.fixture
def run(tmp_path):
    """Runs code in a checkout that was never compiled in, by a user without a home."""
    shutil.copytree(
        Path(workbook.__file__).parent,
        tmp_path / "workbook",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "home").write_text("a file, in which no folder can be made")

    def run(code: str) -> subprocess.CompletedProcess:
        environment = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "home")}
        command = [sys.executable, "-B", "-c", code]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done

    return run


def test_compiled_code_is_kept_and_compiling_is_announced_once(run, tmp_path):
    first, second = run(COMPILE_LITTLE), run(COMPILE_LITTLE)
    assert first.stdout == second.stdout
    assert str(tmp_path / "workbook" / "tokenization" / "compiled" / "__pycache__") in first.stdout
    assert first.stderr.count("compiling the fast engine, once") == 1
    assert second.stderr == ""


def test_a_change_in_any_file_compiles_anew(run, tmp_path):
    first = run(COMPILE_LITTLE)
    with (tmp_path / "workbook" / "tokenization" / "compiled" / "scan.py").open("a") as file:
        file.write("\n")
    second = run(COMPILE_LITTLE)
    assert first.stdout != second.stdout
    assert "compiling" in second.stderr


def test_where_nothing_can_be_written_beside_the_sources_the_users_own_folder_is_taken(
    run, tmp_path
):
    sources = tmp_path / "workbook" / "tokenization" / "compiled"
    (sources / "__pycache__").write_text("a file, not a folder")
    for _ in range(2):  # the user has no folder: every process compiles
        done = run(COMPILE_LITTLE)
        assert done.stdout == "0 None\n"
        assert "compiling" in done.stderr
    (tmp_path / "home").unlink()
    done = run(COMPILE_LITTLE)
    assert str(tmp_path / "home" / ".cache" / "cs336-workbook") in done.stdout
    assert run(COMPILE_LITTLE).stderr == ""


def test_an_installed_package_is_not_written_to(run, tmp_path):
    (tmp_path / "pyproject.toml").unlink()
    (tmp_path / "home").unlink()
    assert str(tmp_path / "home" / ".cache" / "cs336-workbook") in run(COMPILE_LITTLE).stdout
    assert not list((tmp_path / "workbook").rglob("__pycache__"))


def test_importing_compiles_nothing_and_loads_no_numba(run):
    public = "from workbook.tokenization import bpe, token_files, tokenizer"
    code = f"{public}; import workbook.generation.formats, sys; print('numba' in sys.modules)"
    assert run(code).stdout == "False\n"
    everything = (
        "from workbook.tokenization.compiled import count, encode, merge, scan, table, text"
    )
    assert run(everything).stderr == ""


def test_what_python_calls_is_compiled_beforehand_and_only_once(tmp_path):
    called = count.count_documents, count.add_words, count.gather, table.rehash
    called += merge.learn, encode.encode_on
    compiled.compile_all()
    assert [len(function.signatures) for function in called] == [1] * len(called)
    (tmp_path / "text.txt").write_text("One day<|e|> the owl said: it's mine! 天气")
    with ThreadPoolExecutor(2) as executor:
        compiled.train(tmp_path / "text.txt", ["<|e|>"], 9, executor)
    ids = {bytes([value]): value for value in range(256)} | {b"ow": 300}
    encode.make_encoder(ids, [(b"o", b"w")], {"<|e|>": 256}).encode("owl<|e|>" * 99)
    assert [len(function.signatures) for function in called] == [1] * len(called)
