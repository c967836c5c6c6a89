"""The switches are read from the environment, and a misspelt one is told apart from none."""

from pathlib import Path

import platformdirs
import pytest

from workbook import config


def test_unset_and_empty_switches_give_the_first_choice(monkeypatch):
    for value in (None, ""):
        for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION", "WORKBOOK_PRECISION"):
            monkeypatch.delenv(switch, raising=False)
            if value is not None:
                monkeypatch.setenv(switch, value)
        assert (config.profile().name, config.edition()) == ("laptop", "2025")
        assert config.precision() == "auto"


def test_switches_choose(monkeypatch):
    monkeypatch.setenv("WORKBOOK_PROFILE", "full")
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    full = config.profile()
    assert (full.simple_corpus, full.simple_vocab_size) == ("tinystories", 10_000)
    assert (full.web_corpus, full.web_vocab_size) == ("owt", 32_000)
    assert config.edition() == "2026"
    monkeypatch.setenv("WORKBOOK_PRECISION", "bfloat16")
    assert config.precision() == "bfloat16"


@pytest.mark.parametrize(
    ("switch", "read", "message"),
    [
        ("WORKBOOK_PROFILE", config.profile, "'Laptop' is not one of laptop, gpu, gpu-offline"),
        ("WORKBOOK_EDITION", config.edition, "'Laptop' is not one of 2025, 2026"),
        ("WORKBOOK_PRECISION", config.precision, "'Laptop' is not one of auto, float32, bfloat16"),
    ],
)
def test_a_misspelt_switch_is_told_what_it_may_be(monkeypatch, switch, read, message):
    monkeypatch.setenv(switch, "Laptop")
    with pytest.raises(ValueError, match=f"{switch}={message}"):
        read()


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The package as it lies in site-packages, and a working directory elsewhere."""
    monkeypatch.setattr(config, "PACKAGE", tmp_path / "site-packages" / "workbook")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)


def test_data_and_study_lie_in_the_checkout_or_where_they_were_put(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)
    assert config.data_folder() == Path(__file__).parents[1] / "data"
    assert config.study_folder() == config.checkout() / "study"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setenv("WORKBOOK_STUDY", "mine")
    assert (config.data_folder(), config.study_folder()) == (tmp_path, tmp_path / "mine")


def test_an_installed_package_keeps_data_with_the_user_and_studies_where_one_is(
    installed, monkeypatch, tmp_path
):
    monkeypatch.delenv("WORKBOOK_DATA", raising=False)
    assert config.checkout() is None
    assert config.shipped() == tmp_path / "site-packages" / "workbook" / "shipped"
    assert config.data_folder() == platformdirs.user_data_path("cs336-workbook", appauthor=False)
    assert config.study_folder() == tmp_path / "study"


CPUINFO = "processor\t: 0\nmodel name\t: A 9000\nflags\t\t: fpu avx2\nprocessor\t: 1\n"


@pytest.mark.parametrize(
    ("text", "name", "flags"),
    [(CPUINFO, "A 9000", {"fpu", "avx2"}), ("Features\t: bf16", "", {"bf16"}), (None, "", set())],
)
def test_the_machine_is_described_where_linux_tells_and_elsewhere(monkeypatch, text, name, flags):
    def read(*_, **__):
        if text is None:
            raise FileNotFoundError
        return text

    monkeypatch.setattr(Path, "read_text", read)
    config.processor_facts.cache_clear()
    try:
        facts = config.machine()
        assert facts["processor"] == (name or facts["processor"]) != ""
        assert facts["cores"] >= 1 and facts["system"]
        assert config.processor_flags() == flags
    finally:
        config.processor_facts.cache_clear()


def test_versions_are_those_of_what_is_installed():
    assert config.versions(["numpy", "no-such-library"]).keys() == {"python", "numpy"}
