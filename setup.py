"""What pyproject.toml cannot say: a wheel also holds the notebooks, and the records that they read.

They lie outside the package in a checkout, and below `workbook/shipped` once installed: code finds
them by `config.shipped()`, and asks `config.checkout()` before it writes to a checkout. An editable
install has the data files of `classroom/jupyter/` too: after a change there, install again. A new
text file of a corpus needs a pattern in pyproject.toml.
"""

import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

SHIPPED = (
    "LICENSE",
    "constraints.txt",
    "pyproject.toml",
    "data/bench/*.json",
    "data/reported/*.csv",
    "data/runs/*.jsonl",
    "notebooks/*.ipynb",
)


def shipped() -> list[str]:
    """List the files beside the package that belong to it: those in git, where there is git.

    A checkout that was used also has notebooks, runs and measurements of its user.
    """
    here = sorted(path.as_posix() for pattern in SHIPPED for path in Path().glob(pattern))
    if not Path(".git").exists():  # an unpacked source distribution
        return here
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):  # there is no git, or it refuses this user
        return here
    return sorted(set(here) & set(listed.decode().split("\0")))


class BuildWithShipped(build_py):
    def run(self):
        if not self.editable_mode:  # what an earlier build left behind is not shipped
            shutil.rmtree(Path(self.build_lib, "workbook"), ignore_errors=True)
        super().run()

    def _get_data_files(self):  # for a wheel
        return [*super()._get_data_files(), self.data_files_beside()]

    def get_data_files_without_manifest(self):  # for a source distribution
        return [*super().get_data_files_without_manifest(), self.data_files_beside()]

    def data_files_beside(self) -> tuple[str, str, str, list[str]]:
        """The package, the folder of its sources, where they go, and their names."""
        return "workbook", "", str(Path(self.build_lib, "workbook", "shipped")), shipped()


class WithDataFiles(Distribution):
    # An editable install asks for `has_data`, which setuptools lacks, and leaves the files out.
    has_data = Distribution.has_data_files


setup(distclass=WithDataFiles, cmdclass={"build_py": BuildWithShipped})
