"""The switches are read from the environment, and a misspelt one is told apart from none."""

import math
import os
import re
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from workbook import config
from workbook.training import presets
from workbook.training.presets import varied


def test_unset_and_empty_switches_give_the_first_choice(monkeypatch):
    for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION", "WORKBOOK_PRECISION"):
        monkeypatch.delenv(switch, raising=False)
    for _ in range(2):
        assert (config.profile().name, config.edition()) == ("laptop", "2025")
        assert config.precision() == "auto"
        for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION", "WORKBOOK_PRECISION"):
            monkeypatch.setenv(switch, "")


SWITCHES = [
    ("WORKBOOK_PROFILE", lambda: config.profile().name, "full", "laptop, gpu, gpu-offline"),
    ("WORKBOOK_EDITION", config.edition, "2026", "2025, 2026"),
    ("WORKBOOK_PRECISION", config.precision, "bfloat16", "auto, float32, bfloat16"),
]


@pytest.mark.parametrize(("switch", "read", "choice", "choices"), SWITCHES)
def test_a_misspelt_switch_is_told_its_choices(monkeypatch, switch, read, choice, choices):
    monkeypatch.setenv(switch, choice)
    assert read() == choice
    monkeypatch.setenv(switch, "Laptop")
    with pytest.raises(ValueError, match=f"{switch}='Laptop' is not one of {choices}"):
        read()


def test_data_and_study_lie_in_the_checkout_or_where_they_were_put(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)
    assert config.data_folder() == Path(__file__).parents[1] / "data"
    assert config.study_folder() == config.checkout() / "study"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setenv("WORKBOOK_STUDY", "mine")
    assert (config.data_folder(), config.study_folder()) == (tmp_path, tmp_path / "mine")


def test_an_installed_package_keeps_data_with_the_user(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "PACKAGE", tmp_path / "site-packages" / "workbook")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)
    assert config.checkout() is None
    assert config.shipped() == tmp_path / "site-packages" / "workbook" / "shipped"
    assert config.data_folder() == platformdirs.user_data_path("cs336-workbook", appauthor=False)
    assert config.study_folder() == tmp_path / "study"


CPUINFO = "processor\t: 0\nmodel name\t: A 9000\nflags\t\t: fpu avx2\nprocessor\t: 1\n"


TOLD = [(CPUINFO, "A 9000", {"fpu", "avx2"}), ("Features\t: bf16", "", {"bf16"}), (None, "", set())]


@pytest.mark.parametrize(("text", "name", "flags"), TOLD)
def test_the_machine_is_described_where_linux_tells_and_elsewhere(monkeypatch, text, name, flags):
    def read(*_, **__):
        if text is None:
            raise FileNotFoundError
        return text

    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(config, "processor_facts", config.processor_facts.__wrapped__)  # no cache
    facts = config.machine()
    assert facts["processor"] == (name or facts["processor"]) != ""
    assert facts["cores"] >= 1 and facts["system"]
    assert config.processor_flags() == flags


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 3}, raising=False)
    assert config.cores() == config.machine()["cores"] == 2
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS and Windows
    assert config.cores() == 64


def test_only_one_place_asks_the_system_for_its_cores():
    asks = [
        path.relative_to(config.PACKAGE).as_posix()
        for path in config.PACKAGE.rglob("*.py")
        if re.search(r"cpu_count|sched_getaffinity", path.read_text("utf-8"))
    ]
    assert asks == ["config.py"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("betas", (math.nan, 0)),
        ("betas", (1, 1)),
        ("betas", (0.9,)),
        ("eps", -1),
        ("eps", math.inf),
        ("weight_decay", math.nan),
        ("max_l2_norm", 0),
        ("max_l2_norm", math.nan),
        ("corpus_bytes", -1),
        ("cosine_cycle_iters", 0),
        ("name", "a\0b"),
        ("name", "../../escaped"),
        ("name", "n" * 300),
        ("name", ""),
        ("corpus", {}),
    ],
)
def test_a_setting_that_no_run_can_have_is_refused_by_its_name(setting, value):
    with pytest.raises(ValueError, match=f"^{setting}="):
        varied(presets.laptop(), **{setting: value})


def test_numbers_of_numpy_are_numbers():
    asked = {"steps": np.int64(40), "max_learning_rate": np.float32(0.5), "seed": np.uint8(3)}
    config = varied(presets.laptop(), betas=(np.float32(0.5), np.float64(0.25)), **asked)
    plain = varied(presets.laptop(), steps=40, max_learning_rate=0.5, seed=3, betas=(0.5, 0.25))
    assert config == plain and config.key == plain.key
