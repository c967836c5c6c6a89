"""A learner's file is loaded as Python would load it, and trackers are replaced by stand-ins."""

import sys
from types import ModuleType
from unittest.mock import patch

import pytest

from workbook.classroom.checks.machinery import loading
from workbook.classroom.checks.machinery.timeout import TimedOut
from workbook.classroom.checks.machinery.watched import Seen

REPORTS = """
import mlflow.tracking
import wandb
from comet_ml import Experiment
from torch.utils.tensorboard.writer import SummaryWriter
from wandb.sdk.data_types import Table

with wandb.init(project="course") as run:
    run.log({"train_loss": 3.5})
wandb.log({"train_loss": 3.25}, step=1)
SummaryWriter("runs").add_scalar("train/loss", 3.0, 2)
mlflow.log_metric("train_loss", 2.75, step=3)
Experiment().log_metric("train_loss", 2.5)
"""


@pytest.mark.parametrize("also_installed", [False, True])
def test_what_a_script_reports_to_a_missing_tracker_is_printed(also_installed, monkeypatch, capsys):
    """Whether it is imported, as by `check --all`, or run as a training script."""
    monkeypatch.setattr(loading, "is_installed", lambda name: False)
    with patch.dict(sys.modules):
        for name in loading.TRACKERS:
            sys.modules.pop(name, None)
        loading.replace_trackers(also_installed)
        exec(REPORTS, {})
    assert Seen(log=capsys.readouterr().out).losses() == [3.5, 3.25, 3.0, 2.75, 2.5]


def test_an_installed_tracker_is_replaced_only_where_the_process_ends_with_the_code():
    installed = ModuleType("wandb")
    installed.__spec__ = loading.ModuleSpec("wandb", None)
    installed.init = begin = object()
    with patch.dict(sys.modules, wandb=installed):
        loading.replace_trackers(also_installed=False)
        assert installed.init is begin
        loading.replace_trackers(also_installed=True)
        assert sys.modules["wandb"] is installed and installed.init is not begin


def test_a_file_is_found_by_its_name_while_it_runs_and_is_stopped_in_time(tmp_path):
    file = tmp_path / "endless.py"
    with patch.dict(sys.modules):
        file.write_text("import sys\nself = sys.modules[__name__]\n")
        module = loading.load_file(file, "made.up")
        assert module.self is module and module.__package__ == "made"
        file.write_text("while True:\n    pass\n# another length\n")
        with pytest.raises(TimedOut):
            loading.load_file(file, "made.up", seconds=0.2)
