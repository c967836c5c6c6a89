"""`make` sets the environment up once, redoes what was left half done, and says what it needs.

Nothing is installed here: a stand-in plays pip and the tools, and writes down what it was asked.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HAS_MAKE = os.name == "posix" and shutil.which("make")
pytestmark = pytest.mark.skipif(not HAS_MAKE, reason="make on POSIX is what is tested")

# A Python that differs from the running one in what PATCH changes.
PATCHED = """#!/bin/sh
exec "{python}" -c "
import os, runpy, shutil, sys
{patch}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')" "$@"
"""
OLD = "sys.version_info = (3, 9, 2, 'final', 0)"
NO_VENV = "sys.modules['ensurepip'] = None"
FULL_DISK = "shutil.disk_usage = lambda path: shutil._ntuple_diskusage(10**9, 8 * 10**8, 2 * 10**8)"

# `-m venv` makes an environment whose Python writes down what it is asked to run by `-m`, and
# compiles no kernels. Its pip fails while there is a file `no-network`.
INSTALLER = f"""#!/bin/sh
test "$1" = -m || exec "{sys.executable}" "$@"
echo "venv" >> log
rm -rf .venv && mkdir -p .venv/bin
cat > .venv/bin/python << 'END'
#!/bin/sh
case "$*" in *load_kernels*) exit;; esac
test "$1" = -m && shift || exec "{sys.executable}" "$@"
echo "$@" >> log
test "$1" != pip || test ! -e no-network
END
chmod +x .venv/bin/python
"""


def patched(patch: str) -> str:
    return PATCHED.format(python=sys.executable, patch=patch)


@pytest.fixture
def clone(tmp_path):
    """A clone, in a folder with a space in its name, on a machine that has only what make needs."""
    folder = tmp_path / "my clone"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / ".ci", folder / ".ci")
    (folder / ".ci" / "sizes.py").write_text("")  # here is no package to count
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("make", "sh", "rm", "mkdir", "cat", "chmod"):
        (tools / name).symlink_to(shutil.which(name))
    return folder


def install(clone: Path, script: str, name: str = "python3") -> Path:
    """Put a script on the machine's PATH."""
    path = clone.parent / "bin" / name
    path.write_text(script)
    path.chmod(0o755)
    return path


def run(clone: Path, *command: str) -> subprocess.CompletedProcess:
    path = {"PATH": str(clone.parent / "bin")}
    return subprocess.run(command, cwd=clone, env=path, capture_output=True, text=True)


def make(clone: Path, *arguments: str) -> subprocess.CompletedProcess:
    return run(clone, "make", *arguments)


def log(clone: Path) -> list[str]:
    """Which modules were run since the last look."""
    path = clone / "log"
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [line.split()[0] for line in lines]


STUB = "#!/bin/sh\nexit 127\n"

NEEDED = 7 if sys.platform.startswith("linux") else 3  # there pip takes the build with CUDA

LACKING = [
    (None, "Python 3.11 or newer, and python3 is not."),
    (STUB, "Python 3.11 or newer, and python3 is not."),
    (patched(OLD), "is Python 3.9. Install a newer one"),
    (patched(NO_VENV), "venv module, which"),
    (patched(FULL_DISK), f"needs {NEEDED} GB of free disk, and here are 0.2."),
]


@pytest.mark.parametrize(("script", "message"), LACKING)
def test_what_set_up_needs_is_said_in_one_line(clone, script, message):
    if script:
        install(clone, script)
    for target in ("lab", "test"):
        done = make(clone, target)
        assert done.returncode == 2
        assert "Set-up needs" in done.stderr and message in done.stderr
        assert (done.stderr.count("\n"), done.stdout) == (1, "")
        assert not (clone / ".venv").exists()


def test_the_newest_python_that_works_is_taken(clone):
    install(clone, STUB, "python3.13")  # a stub that is no Python
    install(clone, patched(NO_VENV), "python3.12")
    install(clone, INSTALLER, "python3.11")
    install(clone, patched(OLD), "python3")
    done = make(clone, "lint")
    assert (done.returncode, done.stderr) == (0, "")
    assert "with python3.11" in done.stdout


def test_a_python_may_be_named_and_once_it_is_set_up_no_other_is_asked_for(clone):
    install(clone, patched(OLD))
    named = install(clone, INSTALLER, "my python")
    for python in (named, "/no/such/python"):
        done = make(clone, "lint", f"PYTHON={python}")
        assert (done.returncode, done.stderr) == (0, "")


INSTALL = ["pip", "compileall"]
LINT = ["ruff", "ruff", "mypy"]
SET_UP = ["venv", *INSTALL]


@pytest.fixture
def ready(clone):
    """A clone whose environment was set up."""
    install(clone, INSTALLER)
    assert make(clone, "lint").returncode == 0
    assert log(clone) == [*SET_UP, *LINT]
    return clone


def touch(clone: Path, name: str) -> None:
    """Change a file after the environment was set up."""
    later = (clone / ".venv/complete").stat().st_mtime + 5
    (clone / name).parent.mkdir(parents=True, exist_ok=True)
    (clone / name).touch()
    os.utime(clone / name, (later, later))


def test_it_is_set_up_once_and_again_where_what_is_installed_changed(ready):
    done = make(ready, "lint")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert log(ready) == LINT
    files = "workbook_startup.py overrides.d/a.json labextension/a.js labextension/schemas/a/b.json"
    copied = [f"workbook/classroom/jupyter/{file}" for file in files.split()]
    for name in ("constraints.txt", "pyproject.toml", *copied):
        touch(ready, name)
        assert make(ready, "lint").returncode == 0
        # pip says which package it is at
        assert " -q" not in (ready / "log").read_text().splitlines()[0]
        assert log(ready) == [*INSTALL, *LINT]
        os.utime(ready / name, (0, 0))


def test_what_was_installed_by_an_earlier_name_is_removed(ready):
    (ready / ".venv/lib/python3.12/site-packages/workbook-0.1.0.dist-info").mkdir(parents=True)
    touch(ready, "pyproject.toml")
    assert make(ready, "lint").returncode == 0
    assert log(ready) == ["pip", *INSTALL, *LINT]


@pytest.mark.parametrize("is_update", [False, True])
def test_a_set_up_or_an_update_that_broke_off_is_redone_from_the_start(clone, is_update):
    install(clone, INSTALLER)
    if is_update:
        assert make(clone, "lint").returncode == 0
        touch(clone, "constraints.txt")
    (clone / "no-network").touch()
    done = make(clone, "lint")
    assert done.returncode == 2 and "Set-up did not finish" in done.stderr
    (clone / "no-network").unlink()
    log(clone)
    assert make(clone, "lint").returncode == 0
    assert log(clone) == [*SET_UP, *LINT]


def test_an_environment_that_was_moved_is_made_anew(ready):
    moved = ready.rename(ready.with_name("elsewhere"))
    assert make(moved, "lint").returncode == 0
    assert log(moved)[0] == "venv"


def test_the_port_is_handed_on(ready):
    for port in ([], ["PORT=8890"]):
        assert make(ready, "lab", *port).returncode == 0
    assert (ready / "log").read_text() == "workbook lab\nworkbook lab --port 8890\n"


def test_what_a_gpu_is_tested_and_timed_with_is_done_once(ready):
    (ready.parent / "bin" / "touch").symlink_to(shutil.which("touch"))
    for said in (["pytest", "benchmarks", "workbook"], ["workbook"]):  # the runs, which continue
        assert make(ready, "gpu").returncode == 0
        assert log(ready) == said


@pytest.mark.parametrize(("user", "installs"), [(0, True), (1000, False)])
def test_ci_run_installs_what_a_bare_machine_lacks_where_it_may(clone, user, installs):
    python = install(clone, "#!/bin/sh\nexit 9\n")  # a Python without its venv module, say
    better = install(clone, INSTALLER, "better")
    got = f'echo "$1" >> log\ntest "$1" = update || cat {better} > {python}\n'
    install(clone, f"#!/bin/sh\n{got}", "apt-get")
    install(clone, f"#!/bin/sh\necho {user}\n", "id")
    for name in ("bash", "dirname"):
        (clone.parent / "bin" / name).symlink_to(shutil.which(name))
    done = run(clone, "bash", ".ci/run")
    assert done.returncode == (0 if installs else 2), done.stderr
    assert installs or "Set-up needs Python" in done.stderr
    asked = ["update", "install", *SET_UP, *LINT, "pytest"]
    assert log(clone) == (asked if installs else [])
