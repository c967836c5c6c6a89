"""How a learner's objects reach the process that judges them."""

import subprocess
import sys

import pytest

NOTEBOOK = '''
import linecache
from multiprocessing import get_context

def cell(source):
    """Run a cell as a notebook does: in `__main__`, its source in memory only."""
    name = f"/tmp/kernel/{abs(hash(source))}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), globals())

import torch
from workbook.classroom.study.verbs import judge_attempt
'''
SOFTMAX = """
def softmax(x, dim):
    y = torch.exp(x - x.max(dim, keepdim=True).values)
    return y / y.sum(dim, keepdim=True)
"""


def printed_by(tmp_path, program: str) -> str:
    """What a notebook's cells print, given as the lines of one program."""
    path = tmp_path / "kernel.py"
    path.write_text(NOTEBOOK + program)
    run = [sys.executable, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_cells_line_is_quoted(tmp_path):
    said = printed_by(
        tmp_path,
        'cell("def softmax(x, dim):\\n    return x.no_such()")\n'
        'print(judge_attempt("softmax", softmax))',
    )
    assert "at line 2, in softmax: `return x.no_such()`" in said


POOL = f'''
cell("""{SOFTMAX}

def double(n):
    return 2 * n

def with_a_pool(x, dim):
    with get_context("fork").Pool(2) as pool:
        assert pool.map(double, [1, 2]) == [2, 4]
    return softmax(x, dim)
""")
print(judge_attempt("softmax", with_a_pool).heading)
'''


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="a pool that forks")
def test_a_pool_finds_the_functions_of_the_notebook(tmp_path):
    assert printed_by(tmp_path, POOL) == "✓ softmax: correct\n"


SHARED = f'''
import multiprocessing, queue, threading
from concurrent.futures import ThreadPoolExecutor
cell("""{SOFTMAX}

POOL, BATCHES, LOCK = ThreadPoolExecutor(2), queue.Queue(1), threading.Lock()
PROCESSES = multiprocessing.get_context("fork").Pool(2)

def shares(x, dim):
    threading.Thread(target=lambda: [BATCHES.put(n) for n in range(10**6)]).start()
    with LOCK:
        list(POOL.map(abs, [1, BATCHES.get()]))
        PROCESSES.map(abs, [1, 2])
    return softmax(x, dim)
""")
for attempt in (shares, softmax, shares):
    print(judge_attempt("softmax", attempt).heading)
POOL.shutdown()
PROCESSES.terminate()
'''


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="a pool that forks")
def test_a_pool_a_queue_and_a_lock_that_the_notebook_keeps_are_made_again(tmp_path):
    assert printed_by(tmp_path, SHARED) == "✓ softmax: correct\n" * 3


KEPT = f'''
cell("""{SOFTMAX}

NUMBERS = (n for n in range(9))

def with_numbers(x, dim):
    next(NUMBERS)
    return softmax(x, dim)
""")
print(judge_attempt("softmax", with_numbers))
'''


def test_what_cannot_be_copied_is_named(tmp_path):
    said = printed_by(tmp_path, KEPT)
    assert said.startswith(
        "○ softmax: not attempted\nNothing was checked: `NUMBERS` is a generator"
    )
    assert "hand in a file" in said


BY_PATH = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("handed_in_7", {path!r})
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(judge_attempt("softmax", module.softmax).heading)
print(judge_attempt("softmax", module.wrong))
"""


def test_a_file_that_was_loaded_by_its_path_needs_no_import(tmp_path):
    file = tmp_path / "elsewhere" / "homework 7.py"
    file.parent.mkdir()
    file.write_text(f"import torch\n{SOFTMAX}\ndef wrong(x, dim):\n    return x.no_such()\n")
    said = printed_by(tmp_path, BY_PATH.format(path=str(file)))
    assert said.startswith("✓ softmax: correct\n✗ softmax: wrong\n")
    assert "in wrong: `return x.no_such()`" in said
