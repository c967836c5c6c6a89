"""A learner's file as a module, and stand-ins for packages that it only reports to."""

import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from workbook.classroom.checks.machinery.timeout import limited

LOAD_SECONDS = 120.0  # for a file that does not end by itself
# They only record what a run does: where one is missing, a stand-in will do.
TRACKERS = ("wandb", "torch.utils.tensorboard", "tensorboard", "tensorboardX", "swanlab", "mlflow")
LOGGING = ("log", "log_metric", "log_metrics", "add_scalar")  # their methods that take values


def module_of(path: Path, name: str) -> ModuleType:
    """The module that a file is to be, where imports of this name find it; none of it has run."""
    module = sys.modules[name] = module_from_spec(spec_from_file_location(name, path))
    return module


def load_file(path: Path, name: str, seconds: float = LOAD_SECONDS) -> ModuleType:
    """Run a file as an import of this name would, and return the module.

    `seconds` are of processor time. Raises: TimedOut, and what the file raises.
    """
    module = module_of(path, name)
    limited(seconds, lambda: module.__spec__.loader.exec_module(module))
    return module


def is_installed(name: str) -> bool:
    """Whether a module of this name can be imported, or has been."""
    with suppress(ModuleNotFoundError, ValueError):  # of a package above it; it was made by hand
        return find_spec(name) is not None
    return name in sys.modules


def replace_trackers(also_installed: bool) -> None:
    """Let code run without a tracker: in its place comes a stand-in, which prints what is logged.

    Args:
        also_installed: whether one that is installed may start nothing either. That is for a
            process that ends with the code: other code may need it.
    """
    for name in TRACKERS:
        # The one in torch only wraps another package.
        if also_installed or not is_installed(name.rpartition(".")[2]):
            tracker = MagicMock(
                name=name, **dict.fromkeys(LOGGING, lambda *values, **_: print(*values))
            )
            tracker.__spec__ = ModuleSpec(name, None)
            tracker.__path__ = []
            tracker.__enter__.return_value = tracker
            tracker.init.return_value = tracker
            tracker.SummaryWriter.return_value = tracker
            loaded: Any = sys.modules.setdefault(name, tracker)
            loaded.init = tracker.init
            loaded.log = tracker.log
