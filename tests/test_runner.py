"""`make check` has a bit of everything, and its runs end, whatever becomes of a test's process."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from slow import QUICK_OF_SLOW
from work import PATIENCE

ROOT = Path(__file__).parents[1]


def test_make_check_has_a_case_of_every_test_file(request):
    every = set((ROOT / "tests").rglob("test_*.py"))
    found = defaultdict(set)
    quick = set()
    for item in request.session.items:
        found[item.path] |= {item.name, getattr(item, "originalname", None)}
        if item.get_closest_marker("slow") is None:
            quick.add(item.path)
    if not every <= found.keys():
        pytest.skip("this is a run of some files")
    assert every - quick == set()
    for name, tests in QUICK_OF_SLOW.items():
        assert set(tests) <= found[ROOT / "tests" / name]


DIES = """
import os, signal, time
from pathlib import Path

def test_before():
    pass

def test_that_dies():
    copy = os.fork()
    if copy == 0:
        time.sleep(10**6)
        os._exit(0)
    Path("copy").write_text(str(copy))
    os.kill(os.getpid(), signal.SIGKILL)

def test_after():
    pass
"""


def options(target: str) -> list[str]:
    """What `make` hands to pytest for this target, but for what it collects."""
    outside = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    told = subprocess.check_output(["make", "-n", target], cwd=ROOT, env=outside, text=True)
    command = next(line for line in told.replace("\\\n", " ").splitlines() if "-m pytest" in line)
    words = shlex.split(command.partition("-m pytest")[2])
    return [word for word in words if word not in ("workbook", "tests", "notebooks")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the test kills a copy of itself")
@pytest.mark.skipif(not shutil.which("make"), reason="it is make's runs that are tested")
@pytest.mark.parametrize("target", ["check", "test"])
def test_a_process_that_dies_ends_the_run_with_the_name_of_its_test(tmp_path, target):
    (tmp_path / "test_dying.py").write_text(DIES)
    for name in ("one", "two", "three"):
        (tmp_path / f"test_{name}.py").write_text("def test_passes():\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "conftest"]
    command += [*options(target), "-p", "no:cacheprovider", tmp_path]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    printed = tmp_path / "printed"
    with printed.open("w") as output:
        run = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        # Not `run.communicate`: it would wait for the copy that holds the output open. Without the
        # option that is tested, a second process takes the place of the one that died.
        give_up = time.monotonic() + PATIENCE
        while run.poll() is None and "replacing" not in printed.read_text():
            assert time.monotonic() < give_up, printed.read_text()
            time.sleep(0.1)
    finally:
        run.kill()
        run.wait()
        with suppress(FileNotFoundError):
            psutil.Process(int((tmp_path / "copy").read_text())).kill()
    said = printed.read_text()
    assert run.returncode == 1, said
    assert "crashed while running" in said
    assert "test_dying.py::test_that_dies" in said
    # Once by each process at the most: nobody takes the place of either.
    assert re.search(r"\b[12] failed", said), said
