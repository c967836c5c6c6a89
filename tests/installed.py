"""The workbook as a user has it, for tests: a wheel in an environment and a home of its own."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from jupyterlab.commands import get_app_dir

ROOT = Path(__file__).parents[1]
PATIENCE = 300  # seconds, which only what hangs takes


def run(command: list, folder: Path, environment: dict | None = None, status: int = 0) -> str:
    """Run a command that must end with this status; return what it said."""
    command = [str(word) for word in command]
    ended = subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding="utf-8", timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == status, f"{command}: {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def tracked() -> list[str]:
    """List the files of this checkout that git knows; skip the test where it is none."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def copy_checkout(folder: Path) -> Path:
    """Copy this checkout, as git knows it, into a new folder."""
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    run(["git", "init", "--quiet"], folder)
    run(["git", "add", "--all"], folder)
    return folder


def build_wheel(source: Path) -> Path:
    """Build a wheel from a folder of sources."""
    made = source / "dist"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    run([*pip, "--no-deps", "--no-build-isolation", "--no-index", "-w", made, "."], source)
    [wheel] = made.glob("*.whl")
    return wheel


class Installed:
    """The workbook in an environment of its own, and a user with an empty home and folder."""

    def __init__(self, wheel: Path, folder: Path):
        self.home, self.work = folder / "home", folder / "work"
        self.work.mkdir()
        run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], folder)
        paths = {"base": folder / "environment", "platbase": folder / "environment"}
        self.python = Path(sysconfig.get_path("scripts", "venv", paths), "python")
        self.packages = Path(sysconfig.get_path("purelib", "venv", paths))
        # The *.pth files of a folder named here are not read: no editable install comes along.
        (self.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
        switches = ("WORKBOOK_", "JUPYTER", "IPYTHON", "PYTHON", "XDG_")
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(switches)
        } | {
            "HOME": str(self.home),
            "USERPROFILE": str(self.home),
            "JUPYTERLAB_DIR": get_app_dir(),
            "PYTHONUTF8": "1",
            "OMP_NUM_THREADS": "1",
        }
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", self.python]
        run(
            [*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], folder, self.environment
        )
        self.at_first = self.files()

    def files(self) -> set[tuple[str, int]]:
        """The names and sizes of all installed files."""
        found = (path for path in self.packages.rglob("*") if path.is_file())
        return {(str(path), path.stat().st_size) for path in found}

    def ask(self, code: str) -> str:
        """Run code; return the line that it printed."""
        return run([self.python, "-c", code], self.work, self.environment).strip()

    def workbook(self, *arguments, status: int = 0) -> str:
        """Run the command `workbook`; return what it said."""
        program = self.python.with_name("workbook")
        return run([program, *arguments], self.work, self.environment, status)

    @contextmanager
    def lab(self) -> Iterator[tuple[str, str, str]]:
        """Run `workbook lab` in the user's folder: its address, the first page, the token."""
        start = "lab.has_browser = lambda: False; lab.start_lab()"
        code = f"from workbook.classroom.study import lab; {start}"
        with subprocess.Popen(
            [self.python, "-u", "-c", code], cwd=self.work, env=self.environment, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                said = ""
                while "Ctrl-C" not in said and (line := process.stdout.readline()):
                    said += line
                address = re.search(r"(http://[^/]+/)lab/tree/(\S+)\?token=(\w+)", said)
                assert address, said
                yield address.groups()
            finally:
                process.terminate()
