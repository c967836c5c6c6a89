"""How a learner's objects reach the process that judges them: those of one notebook."""

import subprocess
import sys
from inspect import getsource

import pytest
from made_repositories import module

FORKS = sys.platform not in ("win32", "darwin")  # what a pool does
softmax = getsource(module("flat", "cs336_basics/model.py").softmax)
SOFTMAX = f"import torch\n{softmax}\ndef wrong(x, dim):\n    return x.no_such()\n"
POOLS = """
import multiprocessing, queue, threading
from concurrent.futures import ThreadPoolExecutor

def double(n):
    return 2 * n

def with_a_pool(x, dim):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    return softmax(x, dim)

POOL, BATCHES, LOCK = ThreadPoolExecutor(2), queue.Queue(1), threading.Lock()
PROCESSES = multiprocessing.get_context("fork").Pool(2)

def shares(x, dim):
    threading.Thread(target=lambda: [BATCHES.put(n) for n in range(10**6)]).start()
    with LOCK:
        list(POOL.map(abs, [1, BATCHES.get()]))
        PROCESSES.map(abs, [1, 2])
    return softmax(x, dim)
"""
KEPT = """
NUMBERS = (n for n in range(9))

def with_numbers(x, dim):
    next(NUMBERS)
    return softmax(x, dim)
"""
SPAWNS = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def triple(n):
    return 3 * n

def spawns(x, dim):
    with ProcessPoolExecutor(1) as pool:
        list(pool.map(triple, [1]))
    return softmax(x, dim)

multiprocessing.set_start_method("spawn", force=True)  # as on macOS and Windows
"""
NOTEBOOK = f'''
import importlib.util, linecache, sys
from workbook.classroom.study.verbs import judge_attempt

del __file__  # a notebook has none

def cell(source):
    """Run a cell as a notebook does: in `__main__`, its source in memory only."""
    name = f"/tmp/kernel/{{abs(hash(source))}}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), globals())

def judge(*attempts):
    print("=====")
    for attempt in attempts:
        print(judge_attempt("softmax", attempt))

cell({SOFTMAX!r})
judge(wrong)
cell({KEPT!r})
judge(with_numbers)
spec = importlib.util.spec_from_file_location("handed_in_7", "homework 7.py")
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
judge(module.softmax, module.wrong)
if {FORKS}:
    cell({POOLS!r})
    judge(with_a_pool)
    judge(shares, softmax, shares)
    POOL.shutdown()
    PROCESSES.terminate()
cell({SPAWNS!r})
judge(spawns)
'''


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What the check says of the notebook's attempts, one group after the other."""
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "homework 7.py").write_text(SOFTMAX)
    (folder / "kernel.py").write_text(NOTEBOOK)
    run = [sys.executable, "kernel.py"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("=====\n")[1:]


def test_a_cells_line_is_quoted(said):
    assert "in wrong: `return x.no_such()`" in said[0]


def test_what_cannot_be_copied_is_named(said):
    not_checked = "○ softmax: not attempted\nNothing was checked: `NUMBERS` is a generator"
    assert said[1].startswith(not_checked) and "hand in a file" in said[1]


def test_a_file_that_was_loaded_by_its_path_needs_no_import(said):
    assert said[2].startswith("✓ softmax: correct\n") and "✗ softmax: wrong\n" in said[2]
    assert "in wrong: `return x.no_such()`" in said[2]


@pytest.mark.skipif(not FORKS, reason="a pool that forks")
def test_a_pool_finds_the_notebooks_functions_and_one_that_it_keeps_is_made_again(said):
    assert said[3].startswith("✓ softmax: correct\n")
    assert said[4].count("✓ softmax: correct\n") == 3


def test_workers_that_cannot_import_the_notebooks_functions_are_told_where_these_belong(said):
    assert "cannot find a function of your notebook" in said[-1] and "`.py` file" in said[-1]
