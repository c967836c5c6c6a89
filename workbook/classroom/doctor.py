"""`workbook doctor`: what a bug report needs, on one screen, and the remedy for what is wrong."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import NamedTuple

from workbook import config
from workbook.files import free_space
from workbook.lazy import __version__

FREE_BYTES = 2 * 10**9  # for corpora, tokens and checkpoints of the laptop's runs
KERNEL_SECONDS = 60
ASK_KERNEL = "import workbook; print(workbook.__file__)"


class Examined(NamedTuple):
    """What was found out about one thing, and what to do if it is wrong."""

    words: str
    remedy: str = ""


def doctor() -> tuple[str, bool]:
    """What was found, a line each, and whether all is well."""
    lines = []
    is_well = True
    for name, examine in THINGS.items():
        try:
            found = examine()
        except Exception as error:  # whatever it is, the other lines help to find it
            found = Examined(f"{type(error).__name__}: {error}", "report this line")
        sign = "✗" if found.remedy else " "
        lines.append(f"{sign} {name:9} {found.words}")
        if found.remedy:
            is_well = False
            lines.append(f"  {'':9} → {found.remedy}")
    return "\n".join(lines), is_well


def _workbook() -> Examined:
    place = f"a clone in {config.checkout()}" if config.checkout() else "installed as a wheel"
    return Examined(f"{__version__}, {place}")


def _python() -> Examined:
    machine = "{system}, {processor}, {cores} cores".format(**config.machine())
    return Examined(f"{sys.version.split()[0]} in {sys.prefix}; {machine}")


def _libraries() -> Examined:
    """All versions, and those that are missing or older than what the workbook needs."""
    found = []
    wrong = []
    for line in requires(config.DISTRIBUTION) or []:
        needed = re.fullmatch(r"([\w.-]+)(?:>=([\d.]+))?", line)
        if needed is None:  # of an extra
            continue
        name, least = needed.groups()
        try:
            here = version(name)
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        found.append(f"{name} {here}")
        if least and _numbers(here) < _numbers(least):
            wrong.append(f"{name} {here} is older than {least}")
    remedy = f"{'; '.join(wrong)}: pip install --upgrade {config.DISTRIBUTION}" if wrong else ""
    return Examined(", ".join(found), remedy)


def _numbers(of_version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", of_version)[:3]]


def _torch() -> Examined:
    from workbook.training import devices

    device = devices.pick_device()
    precision = devices.pick_precision(device, "auto")
    described = devices.describe(device, precision)
    return Examined("{device}, matmuls in {precision}, {threads} threads".format(**described))


def _data() -> Examined:
    folder = config.data_folder().absolute()
    parent, free = free_space(folder)
    remedy = "" if free >= FREE_BYTES else "make room, or set WORKBOOK_DATA to another disk"
    if not os.access(parent, os.W_OK):
        remedy = "it cannot be written to: set WORKBOOK_DATA to another folder"
    return Examined(f"{free / 1e9:,.1f} GB free for {folder}", remedy)


def _engine() -> Examined:
    from workbook.tokenization import compiled

    start = time.perf_counter()
    compiled.load_kernels()
    seconds = time.perf_counter() - start
    return Examined(f"the compiled tokenizer was ready after {seconds:.1f} s")


def _kernel() -> Examined:
    """Whether the kernel that JupyterLab starts sees this package, and not another or none."""
    from jupyter_client.kernelspec import KernelSpecManager

    python = KernelSpecManager().get_kernel_spec("python3").argv[0]
    if not os.path.isabs(python):
        python = sys.executable
    asked = [python, "-P", "-c", ASK_KERNEL]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=KERNEL_SECONDS)
    seen = done.stdout.strip()
    here = str(config.PACKAGE / "__init__.py")
    remedy = f"{sys.executable} -m ipykernel install --sys-prefix makes one that does"
    if done.returncode:
        return Examined(f"{python} does not see the workbook", remedy)
    return Examined(f"{python} sees {Path(seen).parent}", "" if seen == here else remedy)


def _study() -> Examined:
    from workbook.classroom.study import progress

    folder = progress.nearest()
    if not folder.is_dir():
        return Examined(f"none yet: `workbook lab` makes {folder}")
    solved = progress.points_in(progress.Progress(folder).parts())
    return Examined(
        f"{folder}, edition {config.edition()}, profile {config.profile().name}, {solved}"
    )


def _browser() -> Examined:
    from workbook.classroom.study.lab import has_browser

    opens = "JupyterLab opens in it" if has_browser() else "none here: open the printed address"
    return Examined(opens)


def _export() -> Examined:
    from workbook.classroom.export import pandoc

    try:
        pandoc.require()
    except ValueError as error:
        return Examined(str(error), pandoc.INSTALL)
    import typst

    return Examined(f"pandoc and typst are here, and {len(typst.Fonts().fonts())} fonts")


THINGS: dict[str, Callable[[], Examined]] = {
    "workbook": _workbook,
    "Python": _python,
    "libraries": _libraries,
    "torch": _torch,
    "data": _data,
    "engine": _engine,
    "kernel": _kernel,
    "study": _study,
    "browser": _browser,
    "export": _export,
}
