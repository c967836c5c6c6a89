"""How a learner's objects reach the process that judges them: those of one notebook."""

import functools
import importlib
import inspect
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from inspect import getsource

import pytest
import torch
from attempts import (  # noqa: F401 - they fill the list
    checkpointing,
    data_loading,
    lists,
    optimizer_adamw,
    optimizer_schedule_and_clipping,
    transformer_wrong,
)
from beartype import beartype
from jaxtyping import jaxtyped
from made_repositories import module
from work import PATIENCE

from workbook.classroom.checks.machinery import transfer
from workbook.classroom.study.verbs import judge_attempt

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
WRAPPED = """
import functools, sys, weakref
from typing import NewType
import beartype, jaxtyping

Axis = NewType("Axis", int)

@functools.lru_cache(maxsize=7, typed=True)
def doubled(n):
    return 2 * n

@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

class Counts:
    @functools.lru_cache
    def same(self, n):
        return n

    @staticmethod
    @functools.cache
    def two():
        return 2

    @classmethod
    @functools.cache
    def name(cls):
        return cls.__name__

    @functools.singledispatchmethod
    def kind(self, value):
        return "any"

    @kind.register
    def _(self, value: int):
        return "whole"

class CountsMore(Counts):
    @functools.lru_cache
    def same(self, n):
        return super().same(n) + 1

@functools.singledispatch
def kind(value):
    return "any"

@kind.register
def _(value: int):
    return "whole"

@torch.compile
def compiled(x):
    return x + 1

class Module(torch.nn.Module):
    @torch.compile
    def forward(self, x):
        return x

layer = torch.compile(Module())
# From 3.12 on, no setting lets the pickler written in C go deeper.
deep = []
for _ in range(5_000 if sys.version_info < (3, 12) else 300):
    deep = [deep]
reference = weakref.ref(doubled)
doubled(1)

@functools.cache
def cached(x, dim: Axis):
    assert doubled.cache_info() == (0, 0, 7, 0)  # its parameters have come along, its values not
    assert doubled.cache_parameters()["typed"] and doubled(2) == 4 and reference() is doubled
    doubled.cache_clear()
    assert fibonacci(80) > 10**16  # without the cache it would take for ever
    assert CountsMore().same(1) == Counts.two() == 2 and CountsMore.name() == "CountsMore"
    assert kind(1) == Counts().kind(1) == "whole" and kind("") == Counts().kind("") == "any"
    assert compiled(layer(torch.ones(1))) == 2 and deep
    return softmax(x, dim)

@jaxtyping.jaxtyped(typechecker=beartype.beartype)
def typed(x: jaxtyping.Float[torch.Tensor, "..."], dim: int):
    return softmax(x, dim)
"""
UNLOADABLE = """
class Shy:
    def __setstate__(self, state):
        raise RuntimeError("not here")

SHY = Shy()
SHY.left = 1

def with_shy(x, dim):
    SHY
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
cell({WRAPPED!r})
judge(cached, typed, torch.compile(softmax))
judge(module.cached)
cell({UNLOADABLE!r})
judge(with_shy)
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
    cached = "import functools\n@functools.cache\ndef cached(x, dim):\n    return softmax(x, dim)\n"
    (folder / "homework 7.py").write_text(SOFTMAX + cached)
    (folder / "kernel.py").write_text(NOTEBOOK)
    run = [sys.executable, "kernel.py"]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("=====\n")[1:]


def test_a_cells_line_is_quoted(said):
    assert "in wrong: `return x.no_such()`" in said[0]


def test_what_cannot_be_copied_is_named(said):
    not_checked = "○ softmax: not attempted\nNothing was checked: `NUMBERS` is a generator"
    assert said[1].startswith(not_checked) and "hand in a file" in said[1]


def test_what_wraps_a_function_travels_with_it_and_a_cache_starts_empty(said):
    assert said[3].count("✓ softmax: correct\n") == 3, said[3]
    assert said[4].startswith("✓ softmax: correct\n"), said[4]


def test_what_cannot_be_loaded_has_the_same_remedy(said):
    assert said[5].startswith(
        "○ softmax: not attempted\nNothing was checked: your code cannot be lo"
    )
    assert "RuntimeError: not here" in said[5] and "hand in a file" in said[5]


def test_a_file_that_was_loaded_by_its_path_needs_no_import(said):
    assert said[2].startswith("✓ softmax: correct\n") and "✗ softmax: wrong\n" in said[2]
    assert "in wrong: `return x.no_such()`" in said[2]


@pytest.mark.skipif(not FORKS, reason="a pool that forks")
def test_a_pool_finds_the_notebooks_functions_and_one_that_it_keeps_is_made_again(said):
    assert said[6].startswith("✓ softmax: correct\n")
    assert said[7].count("✓ softmax: correct\n") == 3


def test_workers_that_cannot_import_the_notebooks_functions_are_told_where_these_belong(said):
    assert "cannot find a function of your notebook" in said[-1] and "`.py` file" in said[-1]


def test_threads_that_copy_at_the_same_time_do_not_disturb_one_another():
    theirs = module("flat", "cs336_basics/model.py")  # loaded by its path: no import would find it
    limit = sys.getrecursionlimit()
    with ThreadPoolExecutor(4) as pool:
        packed = list(pool.map(lambda _: transfer.pack((theirs.softmax,)), range(40)))
    assert all(len(each["pickled"]) == len(packed[0]["pickled"]) for each in packed)
    assert sys.getrecursionlimit() == limit


def handing_on(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


WRAPPERS = {
    "lru_cache": functools.lru_cache(maxsize=3, typed=True),
    "a cache of what is wrapped": lambda function: functools.cache(handing_on(function)),
    "what wraps a cache": lambda function: handing_on(functools.cache(function)),
    "singledispatch": functools.singledispatch,
    "partial": functools.partial,
    "torch.compile": torch.compile,
    "what wraps a compiled function": lambda function: handing_on(torch.compile(function)),
    "a torch context": torch.enable_grad(),
    "beartype": beartype,
    "jaxtyped": jaxtyped(typechecker=beartype),
}
# A cache holds what came of equal arguments, and refuses lists and arrays.
CACHED = {"softmax", "cross_entropy", "learning_rate_schedule", "linear", "rmsnorm", "embedding"}
TRIED = (*CACHED, "checkpointing", "data_loading", "gradient_clipping", "adamw", "rope")


def wrapped(wrapper, attempt):
    """An attempt whose functions are wrapped: itself, those of a pair, or a class's method."""
    if inspect.isclass(attempt):
        own = {name: vars(attempt).get(name) for name in ("forward", "step")}
        methods = {name: wrapper(method) for name, method in own.items() if method}
        return type("Wrapped", (attempt,), methods)
    if isinstance(attempt, list | tuple):
        return tuple(map(wrapper, attempt))
    return wrapper(attempt)


@pytest.mark.filterwarnings("ignore:.*script_method. is deprecated")  # torch's own, by its compiler
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_right_attempt_stays_right_in_a_wrapper(name):
    seen = set()
    refused = []
    for problem, attempt, status, _ in lists.ATTEMPTS:
        can_be = problem in (CACHED if "cache" in name else TRIED)
        # `self` would be missing: a partial is no method.
        is_bare = name == "partial" and inspect.isclass(attempt)
        if status == "correct" and can_be and not is_bare and problem not in seen:
            seen.add(problem)
            report = judge_attempt(problem, wrapped(WRAPPERS[name], attempt))
            refused += [] if report.status == "correct" else [str(report)]
    assert len(seen) >= 3 and not refused, "\n".join(refused)


@pytest.mark.filterwarnings("ignore:.*script_method. is deprecated")
def test_a_file_with_compiled_functions_and_models_is_judged_without_compiling(
    tmp_path, monkeypatch
):
    source = f"""
import torch

{softmax}
class Module(torch.nn.Module):
    def forward(self, x, dim):
        return softmax(x, dim)

model = torch.compile(Module())
compiled = torch.compile(softmax)

def with_a_model(x, dim):
    return torch.compile(model)(x, dim)
"""
    (tmp_path / "compiled_by_a_learner.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    theirs = importlib.import_module("compiled_by_a_learner")
    assert judge_attempt("softmax", theirs.compiled).status == "correct"
    report = judge_attempt("softmax", theirs.with_a_model)
    assert report.status == "correct", report


def test_methods_of_every_kind_are_among_the_functions_of_a_class():
    class Kinds:
        def plain(self): ...

        @staticmethod
        def of_none(): ...

        @classmethod
        def of_class(cls): ...

        @property
        def read(self): ...

        @functools.cached_property
        def read_once(self): ...

    names = {function.__name__ for function in transfer.functions_of(Kinds)}
    assert names >= {"plain", "of_none", "of_class", "read", "read_once"}
