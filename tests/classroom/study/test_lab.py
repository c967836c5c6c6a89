"""`workbook lab` serves this machine alone, on a free port, and stops when it is told to."""

import json
import os
import signal
import urllib.error
import urllib.request
import webbrowser
from unittest.mock import Mock

import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from real_lab import serve
from work import PATIENCE

from workbook import config
from workbook.classroom.study import lab, notebooks
from workbook.classroom.study.notebooks import normalise
from workbook.classroom.study.progress import MARK

# The command, which says at its end what it has loaded.
START = """
import atexit
import sys
from pathlib import Path
from workbook import config
from workbook.classroom import cli

config.checkout = lambda: Path(sys.argv[1])
atexit.register(lambda: print("loaded:", *(name for name, module in sys.modules.items() if module)))
cli.main(["lab"])
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder like the repository, with two worked notebooks."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "notebooks").mkdir()
    notebook = normalise(new_notebook(cells=[new_code_cell("print(1)")]))
    for name in ("02_bpe", "01_unicode"):
        notebooks.write_notebook(folder / "notebooks" / f"{name}.ipynb", notebook)
    return folder


@pytest.fixture(scope="module")
def server(checkout):
    """A running `workbook lab`, which the last test that uses it stops.

    Node.js, if it is called, notes what it is asked.
    """
    if os.name != "posix":
        pytest.skip("a process is sent signals on POSIX")
    private = {name: str(checkout / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    private["BROWSER"] = "none %s"  # a browser of the terminal is not opened
    node = checkout / "bin" / "node"
    node.parent.mkdir()
    node.write_text(f"#!/bin/sh\necho \"$*\" >> '{checkout}/node-asked'\n")
    node.chmod(0o755)
    private["PATH"] = os.pathsep.join([str(node.parent), os.environ.get("PATH", os.defpath)])
    with serve(checkout, os.environ | private, START) as running:
        yield running


def test_the_printed_address_opens_the_first_notebook_on_this_machine_only(server, checkout):
    assert server.first == "study/01_unicode.ipynb" and (checkout / server.first).exists()
    for path in (f"lab/tree/{server.first}", "api/contents/notebooks/01_unicode.ipynb"):
        server.open(path).close()  # any status but 200 would be an error
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:  # without the token
        urllib.request.urlopen(f"{server.base}api/contents", timeout=PATIENCE)
    refused.value.close()
    connections = psutil.Process(server.process.pid).net_connections()
    assert {c.laddr.ip for c in connections if c.status == "LISTEN"} == {"127.0.0.1"}


def test_a_worked_notebook_stays_as_it_is(server, checkout):
    """JupyterLab saves by itself what it added about the machine's Python."""
    for folder, stays in (("notebooks", True), ("study", False)):
        path = checkout / folder / "01_unicode.ipynb"
        before = path.read_bytes()
        with server.open(f"api/contents/{folder}/01_unicode.ipynb") as response:
            model = json.load(response)
        model["content"]["metadata"]["language_info"] = {"name": "python", "version": "3.99"}
        url = f"{server.base}api/contents/{folder}/01_unicode.ipynb?token={server.token}"
        save = urllib.request.Request(url, json.dumps(model).encode(), method="PUT")
        urllib.request.urlopen(save, timeout=PATIENCE).close()
        assert (path.read_bytes() == before) is stays


def test_ctrl_c_stops_it_and_it_has_loaded_nothing_slow(server, checkout):
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(PATIENCE) == 0
    printed = server.log.read_text("utf-8")
    assert "Traceback" not in printed
    loaded = set(printed.partition("loaded:")[2].split())
    assert "jupyterlab.labapp" in loaded
    heavy = {"torch", "numpy", "pandas", "matplotlib", "scipy", "sympy", "numba", "transformers"}
    assert not loaded & {*heavy, "rfc3987_syntax", "lark"}
    asked = checkout / "node-asked"  # language servers, where there is npm, ask too: later
    assert "yarn" not in (asked.read_text() if asked.exists() else "")


def test_what_is_served_holds_the_study_folder(tmp_path, monkeypatch):
    checkout = tmp_path / "checkout"
    monkeypatch.setattr(config, "checkout", lambda: checkout)
    assert lab.root_around(checkout / "study") == checkout
    assert lab.root_around(tmp_path / "elsewhere" / "mine") == tmp_path / "elsewhere"
    monkeypatch.setattr(config, "checkout", lambda: None)
    assert lab.root_around(checkout / "study") == checkout


def test_the_study_folder_that_we_are_in_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    opened = Mock()
    monkeypatch.setattr(lab, "serve_lab", opened)
    monkeypatch.setattr(notebooks, "find_worked", lambda: [])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    for name, here in (("study", tmp_path), ("a #1", tmp_path / "a #1")):
        (tmp_path / name / MARK).mkdir(parents=True)
        for file in ("01_unicode.ipynb", "02_bpe.ipynb", "._01_unicode.ipynb"):
            (tmp_path / name / file).touch()  # the last as macOS writes it beside the first
        monkeypatch.chdir(here)
        lab.start_lab()
        place = name.replace(" #", "%20%23")  # what ends an address is quoted
        opened.assert_called_with(tmp_path / name, f"lab/tree/{place}/01_unicode.ipynb", None)
    monkeypatch.setattr(lab, "notebooks_in", lambda folder: [folder / "sch\udcc3\udcb6n.ipynb"])
    with pytest.raises(ValueError, match="cannot express: set PYTHONUTF8=1 or rename it"):
        lab.start_lab()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no root")
@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_root_is_allowed_only_where_it_is_root(tmp_path, monkeypatch, user, allowed):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--allow-root" in lab.arguments(tmp_path, "lab", None, "t")) is allowed
    assert "--ServerApp.port_retries=0" in lab.arguments(tmp_path, "lab", 8890, "t")


def test_a_browser_is_opened_only_where_there_is_one_with_a_window(monkeypatch):
    window = webbrowser.BackgroundBrowser("xdg-open")
    found = [webbrowser.Error, webbrowser.GenericBrowser("w3m"), window]
    monkeypatch.setattr(webbrowser, "get", Mock(side_effect=found))
    assert [lab.has_browser() for _ in found] == [False, False, True]
