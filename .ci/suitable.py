"""Prints "suitable" if this Python can set up the workbook, else one line with what that needs.

The exit status is 1 where another Python might do. The Makefile runs this under whatever Python
the machine has, so it must read well to an old one too.
"""

import os
import shutil
import sys

# The environment, and room for pip to unpack it. On Linux pip takes the build of torch with CUDA,
# unless it is told another index.
FREE_BYTES = (7 if sys.platform.startswith("linux") else 3) * 10**9
VERSION = ".".join(str(number) for number in sys.version_info[:2])


def fault():
    """Why this Python cannot set up the workbook, with the remedy; None if it can."""
    another = "name another with PYTHON=/path/to/python3.12"
    if sys.version_info < (3, 11):  # noqa: UP036  an old Python is what this line is for
        return (
            f"Set-up needs Python 3.11 or newer, and {sys.executable} is Python {VERSION}. "
            f"Install a newer one, or {another}"
        )
    try:
        import ensurepip  # noqa: F401  Debian and Ubuntu leave it out of their plain python3
        import venv  # noqa: F401
    except ImportError:
        return (
            f"Set-up needs Python's venv module, which {sys.executable} lacks. "
            f"Install it (Debian, Ubuntu: sudo apt install python{VERSION}-venv), or {another}"
        )
    return None


def shortage():
    """What the disk lacks, with the remedy; None if there is room."""
    free = shutil.disk_usage(os.curdir).free
    if free < FREE_BYTES:
        return (
            f"Set-up needs {FREE_BYTES / 1e9:.0f} GB of free disk, and here are {free / 1e9:.1f}. "
            "Free some, or clone the workbook onto another disk"
        )
    return None


if __name__ == "__main__":
    print(fault() or shortage() or "suitable")
    sys.exit(1 if fault() else 0)
