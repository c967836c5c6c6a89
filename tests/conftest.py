"""What holds for every test: no switch of the workbook is set, and there is no web."""

import gc
import os
import signal
import stat
import sys
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings
from slow import QUICK_OF_SLOW

# A first call may compile or fill a cache; how long a machine takes says nothing about the claim.
settings.register_profile("workbook", deadline=None)
settings.load_profile("workbook")


def pytest_configure(config):
    """Before anything is collected, so that it holds for the kernels of notebooks too."""
    for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION", "WORKBOOK_STUDY"):
        os.environ.pop(switch, None)
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        os.environ[proxy] = "http://127.0.0.1:9"  # where nobody listens
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    if "gpu" not in config.option.markexpr:  # everything else says the same on every machine
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    # A shell starts what runs in its background with Ctrl-C ignored, which children inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput") and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_close, _pipes()))


def _pipes() -> list[int]:
    """The pipes of this process, beside standard input and output.

    In a process of xdist they lead to the one that it reports to, which learns of its death when
    nobody holds them any more. A copy of it would hold them too, and may live on.
    """
    found = []
    for number in range(3, 64):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                found.append(number)
    return found


def _close(numbers: list[int]) -> None:
    for number in numbers:
        with suppress(OSError):
            os.close(number)


@pytest.fixture
def path_of_imports(monkeypatch):
    """Loading a learner's file leaves its folder there, where a later test's process would look."""
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(autouse=True)
def no_switch_is_left_set():
    """What a test leaves set would lead those after it into another study folder."""
    before = _switches()
    yield
    left = _switches()
    for name in left.keys() - before.keys():
        del os.environ[name]
    assert left == before


def _switches() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("WORKBOOK_")}


@pytest.fixture
def judged_here(monkeypatch, tmp_path):
    """Attempts are judged in the process of the tests, where a test may have shortened a limit."""
    from workbook.classroom.checks.machinery import worker

    monkeypatch.setattr(worker, "is_inside", True)
    monkeypatch.chdir(tmp_path)  # in a worker, too, it is an empty folder


# What takes longest begins first, so that no worker is left alone at the end. 07 trains the model
# that 06 shows too: by the time that 06 begins, nobody has to wait for it.
FIRST = [
    "07_generation",
    "test_wheel",
    "02_bpe",
    "test_labextension",
    "08_experiments",
    "06_training",
    "test_check_all",
    "05_optimizer",
    "test_browser",
    "03_transformer",
    "04_accounting",
]
SLOW_PATHS = {Path(__file__).parent / name: quick for name, quick in QUICK_OF_SLOW.items()}


def pytest_collection_modifyitems(items):
    """Mark what is slow, and begin with what takes longest."""
    for item in items:
        names = {item.name, getattr(item, "originalname", None)}
        if item.path in SLOW_PATHS and names.isdisjoint(SLOW_PATHS[item.path]):
            item.add_marker("slow")
        if "judged_here" in getattr(item, "fixturenames", ()):
            # A stop may strike in the callback of a weak reference, which Python tells and forgets.
            ignored = "ignore::pytest.PytestUnraisableExceptionWarning"
            item.add_marker(pytest.mark.filterwarnings(ignored))
    place = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))  # a file's keep their order
    gc.freeze()  # what is loaded by now stays: the collector need not look at it again and again


def pytest_terminal_summary(terminalreporter):
    """Say where the time of a long run went: the seconds of each room, of all workers together."""
    seconds = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "duration"):
                *folders, file = report.nodeid.split("::")[0].split("/")
                room = folders[:3] if len(folders) > 1 else [*folders, file]
                seconds["/".join(room)] += report.duration
    if seconds.total() > 60:
        terminalreporter.section("seconds by room")
        for room, spent in seconds.most_common():
            if spent >= 1:
                terminalreporter.write_line(f"{spent:8.0f}  {room}")
