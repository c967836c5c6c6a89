"""Kernels are compiled once, kept where they can be, announced, and loaded without numba."""

import os
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import workbook
from workbook.tokenization.compiled import count, kernels, table

USE_ONE = """
import sys
from workbook.tokenization.compiled import kernels, table

kernels.KERNELS[:] = [table.rehash]  # one is compiled in a second, all of them take ten
one = table.PretokenTable()
table.rehash(one.address, one.slots.ctypes.data, len(one.slots))
print(kernels.code_file(), "numba" in sys.modules)
"""


@pytest.fixture
def run(tmp_path):
    """Runs code in a checkout that was never compiled in, by a user without a home."""
    package = Path(workbook.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, tmp_path / "workbook", ignore=ignored)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "home").write_text("a file, in which no folder can be made")

    def run(code: str) -> subprocess.CompletedProcess:
        environment = {"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path / "home")}
        command = [sys.executable, "-B", "-c", code]
        options = {"env": environment, "text": True}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, **options)
        assert done.returncode == 0, done.stderr
        return done

    return run


THRESHOLD = """
import sys
from workbook.tokenization import bpe, tokenizer
from workbook.tokenization.engine import pays_off

sizes = 49_999, 50_000, (5 << 20) - 1, 5 << 20
print(*map(pays_off, sizes), "llvmlite" in sys.modules)
"""


def test_code_is_compiled_once_loaded_without_numba_and_lowers_the_threshold(run, tmp_path):
    """LLVM is not loaded to know that."""
    assert run(THRESHOLD).stdout == "False False False True False\n"
    first = run(USE_ONE)
    second = run(USE_ONE)
    file, by_numba = first.stdout.split()
    sources = tmp_path / "workbook" / "tokenization" / "compiled"
    assert Path(file).parent == sources / "__pycache__"
    assert by_numba == "True" and second.stdout.split() == [file, "False"]
    assert first.stderr.count("compiling the fast engine, once") == 1
    assert second.stderr == ""
    assert run(THRESHOLD).stdout == "False True True True False\n"
    scan = sources / "scan.py"
    scan.write_bytes(scan.read_bytes() + b"\n")  # code of other sources does not count
    assert run(THRESHOLD).stdout == "False False False True False\n"


def test_of_two_processes_one_compiles(run):
    with ThreadPoolExecutor(2) as executor:
        done = list(executor.map(run, [USE_ONE] * 2))
    assert sorted("compiling" in each.stderr for each in done) == [False, True]


FORK = """
import os, signal, threading
from workbook.tokenization.compiled import kernels, table

compiling, lowered = threading.Event(), kernels.Kernel.lowered
kernels.Kernel.lowered = lambda kernel: compiling.set() or lowered(kernel)
kernels.KERNELS[:] = [table.rehash]
threading.Thread(target=kernels.load_kernels).start()
compiling.wait()
child = os.fork()
if child == 0:
    signal.alarm(300)
    one = table.PretokenTable()
    table.rehash(one.address, one.slots.ctypes.data, len(one.slots))
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks on Windows")
def test_a_process_forked_while_a_thread_compiles_does_not_hang(run):
    done = run(FORK)
    assert done.stdout == "0\n"
    assert done.stderr.count("compiling") == 1


def test_a_damaged_file_is_compiled_anew(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(kernels, "KERNELS", [table.rehash])
    monkeypatch.setattr(kernels, "code_file", lambda: tmp_path / "code.o")
    assert load_and_listen(capsys)
    whole = (tmp_path / "code.o").read_bytes()
    for damaged in (whole[:-99], b""):
        (tmp_path / "code.o").write_bytes(damaged)
        assert [load_and_listen(capsys) for _ in range(2)] == [True, False]
        assert len((tmp_path / "code.o").read_bytes()) == len(whole)


def load_and_listen(capsys):
    """Load kernels anew, in this process; whether that says that it compiles."""
    assert kernels.load_anew().get_function_address(table.rehash.name)
    return "compiling" in capsys.readouterr().err


def test_where_nothing_can_be_written_beside_the_sources_the_users_own_folder_is_taken(
    run, tmp_path
):
    where = "from workbook.tokenization.compiled import kernels; print(kernels.code_file())"
    beside = tmp_path / "workbook" / "tokenization" / "compiled" / "__pycache__"
    beside.write_text("a file, not a folder")
    assert run(where).stdout == "None\n"  # the user has no folder
    (tmp_path / "home").unlink()
    users_own = str(tmp_path / "home" / ".cache" / "cs336-workbook")
    assert run(where).stdout.startswith(users_own)
    beside.unlink()
    (tmp_path / "pyproject.toml").unlink()  # an installed package is not written to
    assert run(where).stdout.startswith(users_own)
    assert not list((tmp_path / "workbook").rglob("__pycache__"))


def test_importing_compiles_nothing_and_loads_no_numba(run):
    public = "from workbook.tokenization import bpe, compiled, token_files, tokenizer"
    code = f"{public}; import workbook.generation.formats, sys; print('numba' in sys.modules)"
    done = run(code)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_each_kind_of_processor_has_code_of_its_own(monkeypatch):
    here = kernels.code_file.__wrapped__()  # which would be remembered
    monkeypatch.setattr(kernels.llvm, "get_host_cpu_name", lambda: "another")
    there = kernels.code_file.__wrapped__()
    assert there.parent == here.parent and there != here


def test_an_argument_of_another_type_is_refused():
    """Machine code would read other memory than the argument's."""
    right = np.zeros(2, np.int64)
    row = right.reshape(1, 2)
    reversed_ = right[::-1]
    address = table.PretokenTable().address
    for wrong in (right.astype(np.int32), right.astype(">i8"), reversed_, row, address, None):
        with pytest.raises(TypeError, match=r"count\.add_words takes int64\[::1\], got an? "):
            count.add_words(wrong, right, address, right)
    with pytest.raises(
        TypeError, match=r"takes int64, got an array of int64 with the shape \(2,\)"
    ):
        count.add_words(right, right, right, right)


def test_a_kernel_that_is_defined_too_late_is_refused(monkeypatch):
    """Its machine code is nowhere, and a call would end Python."""
    monkeypatch.setattr(kernels, "KERNELS", list(kernels.KERNELS))
    kernels.load_kernels()
    late = kernels.kernel(kernels.INT)(abs)
    with pytest.raises(
        RuntimeError, match=r"builtins\.abs was defined after the kernels were loaded"
    ):
        late(1)


def test_a_call_that_can_be_made_again_holds_its_arrays():
    array = np.zeros(2, np.int64)
    held = weakref.ref(array)
    again, _ = count.add_words.prepared(array, array, table.PretokenTable().address, array)
    del array
    assert held() is not None
    del again
    assert held() is None


def test_a_full_disk_or_none_does_not_stop_the_work(monkeypatch, capsys):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(kernels, "KERNELS", [table.rehash])
    monkeypatch.setattr(kernels, "read_code", lambda file: None)
    monkeypatch.setattr(kernels, "atomic_write", full)
    assert load_and_listen(capsys)
    monkeypatch.setattr(kernels, "code_file", lambda: None)
    assert load_and_listen(capsys)
