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
TRACKERS = (
    *("wandb", "torch.utils.tensorboard", "tensorboard", "tensorboardX", "swanlab", "mlflow"),
    *("comet_ml", "neptune", "clearml", "trackio"),
)
STARTERS = ("init", "init_run", "SummaryWriter", "Experiment")  # calls that begin a run
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


class _SubmodulesOfStandIns:
    """A finder of imports, which has every module below a stand-in: `wandb.sdk.data_types`."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """A module is found if the one above it is a stand-in."""
        above = sys.modules.get(name.rpartition(".")[0])
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if isinstance(above, MagicMock) else None

    def create_module(self, spec: ModuleSpec) -> Any:
        """Make another stand-in."""
        return _stand_in(spec.name)

    def exec_module(self, module: Any) -> None:
        """A stand-in has no code to run."""


_SUBMODULES = _SubmodulesOfStandIns()


def _stand_in(name: str) -> Any:
    """A module of a tracker, in which everything can be called, and what is logged is printed."""
    tracker = MagicMock(name=name, **dict.fromkeys(LOGGING, lambda *values, **_: print(*values)))
    tracker.__spec__ = ModuleSpec(name, None)
    tracker.__path__ = []
    tracker.__enter__.return_value = tracker
    for run in STARTERS:
        getattr(tracker, run).return_value = tracker
    return tracker


def replace_trackers(also_installed: bool) -> None:
    """Let code run without a tracker: in its place comes a stand-in, which prints what is logged.

    Args:
        also_installed: whether one that is installed may start nothing either. That is for a
            process that ends with the code: other code may need it.
    """
    if _SUBMODULES not in sys.meta_path:
        sys.meta_path.append(_SUBMODULES)
    for name in TRACKERS:
        # The one in torch only wraps another package.
        if also_installed or not is_installed(name.rpartition(".")[2]):
            tracker = _stand_in(name)
            loaded: Any = sys.modules.setdefault(name, tracker)
            loaded.init = tracker.init
            loaded.log = tracker.log
