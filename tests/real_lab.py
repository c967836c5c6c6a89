"""JupyterLab as people see it, for tests: a server of its own and a headless Chromium in front."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_notebook
from work import PATIENCE

from workbook.classroom.study import lab, notebooks

ROOT = Path(__file__).parents[1]
SCREENSHOTS = ROOT / "build" / "screenshots"


def chromium() -> str | None:
    """The path of a Chromium or Chrome on this machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def require_browser() -> None:
    """Skip the test where no browser can be driven; fail it with WORKBOOK_REQUIRE_BROWSER set."""
    reason = None
    if sys.platform == "win32":
        reason = "Windows has no Chromium at a known place; WSL has"
    elif importlib.util.find_spec("playwright") is None:
        reason = 'playwright is not installed; pip install -e ".[test]" brings it'
    elif chromium() is None:
        reason = "there is no Chromium; Debian and Ubuntu have it: sudo apt install chromium"
    if reason and os.environ.get("WORKBOOK_REQUIRE_BROWSER"):
        pytest.fail(f"WORKBOOK_REQUIRE_BROWSER is set, but {reason}")
    if reason:
        pytest.skip(reason)


# What `workbook lab` does, on a folder that plays the checkout. The kernels see the real one.
START = """
import sys
from pathlib import Path
from workbook import config
from workbook.classroom.study import lab

config.checkout = lambda: Path(sys.argv[1])
lab.has_browser = lambda: False
lab.serve_lab(config.study_folder(), "lab", None)
"""


class Server:
    """A running JupyterLab: its process, where it answers, and what it has printed."""

    def __init__(self, process: subprocess.Popen, root: Path, log: Path, address: re.Match):
        self.process = process
        self.root = root
        self.log = log
        self.base, self.first, self.token = address.groups()

    def open(self, path: str):
        """Ask the server for a path, with its token."""
        return urllib.request.urlopen(f"{self.base}{path}?token={self.token}", timeout=PATIENCE)

    def page(self, name: str) -> str:
        """The address that opens a notebook in an empty workspace."""
        return f"{self.base}lab/tree/{name}?reset&token={self.token}"

    def wait_until_ready(self, name: str, patience: float = PATIENCE) -> None:
        """Wait until a notebook has a kernel with nothing to do, and a page connected to it."""

        def is_ready() -> bool:
            with self.open("api/sessions") as response:
                kernels = [s["kernel"] for s in json.load(response) if s["path"] == name]
            return any(k["execution_state"] == "idle" and k["connections"] > 0 for k in kernels)

        wait_for(is_ready, f"the kernel of {name} is not idle", patience)


def write_notebook(path: Path, cells: list[NotebookNode]) -> None:
    """Write a notebook that JupyterLab opens with our kernel."""
    metadata = {"kernelspec": notebooks.METADATA["kernelspec"]}
    notebooks.write_notebook(path, new_notebook(cells=cells, metadata=metadata))


def wait_for(condition, complaint: str, patience: float = PATIENCE) -> None:
    """Return as soon as `condition` holds; TimeoutError with the complaint if it never does."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {patience} s, {complaint}")
        time.sleep(0.1)


def settings(folder: Path, windowing: str = "none") -> dict[str, str]:
    """An environment in which JupyterLab's settings are made for tests.

    With `windowing` "full" only the cells in sight are in the page.
    """
    file = folder / "settings" / "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"windowingMode": windowing}), "utf-8")
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    private = {name: str(folder / name.lower()) for name in names}
    return private | {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}


@contextmanager
def serve(root: Path, environment: dict[str, str], start: str = START, python=sys.executable):
    """Run a server in a folder, by code that prints its address; stop it at the end.

    The kernels' data folder is that of all tests: what one of them has trained, no other trains.
    """
    log = root / "server.log"  # a pipe that nobody reads would hold up what writes much
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [python, "-u", "-c", start, str(root)],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    told = []

    def is_up() -> bool:
        printed = log.read_text("utf-8")
        assert process.poll() is None, printed
        told[:] = re.finditer(r"(http://\S+/)lab(?:/tree/)?(\S*)\?token=(\w+)", printed)
        return bool(told)

    try:
        wait_for(is_up, "JupyterLab has not told its address")
        yield Server(process, root, log, told[0])
    finally:
        process.terminate()  # its kernels go with it
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def browse():
    """A headless Chromium, and the list of its requests that tried to leave the machine.

    Such requests are refused, and so are the browser's own: it knows no other host.
    """
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=1000 * PATIENCE)
    arguments = [f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {lab.HOST}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        size = {"width": 1366, "height": 900}
        context = browser.new_context(viewport=size, locale="en-US")
        context.set_default_timeout(1000 * PATIENCE)
        left: list[str] = []

        def note(url: str) -> None:
            scheme, _, rest = url.partition("://")
            if scheme in ("http", "https", "ws", "wss") and not rest.startswith(f"{lab.HOST}:"):
                left.append(url)

        context.on("request", lambda request: note(request.url))
        context.on("page", lambda page: page.on("websocket", lambda socket: note(socket.url)))
        try:
            yield context, left
        finally:
            browser.close()


def expect(element):
    """Playwright's `expect`, imported where there is a playwright."""
    from playwright.sync_api import expect

    return expect(element)


def menu(page, *titles: str) -> None:
    """Click through the menu bar, such as menu(page, "Run", "Run All Cells")."""
    first, *others = titles
    page.get_by_role("menuitem", name=first, exact=True).click()
    for title in others:
        entries = page.locator(".lm-Menu:not(#jp-MainMenu) .lm-Menu-itemLabel")
        entries.get_by_text(title, exact=True).last.click()


def set_theme(page, theme: str) -> None:
    """Choose JupyterLab's theme, "light" or "dark", and wait until it is there."""
    menu(page, "Settings", "Theme", f"JupyterLab {theme.title()}")
    is_light = "true" if theme == "light" else "false"
    page.locator(f"body[data-jp-theme-light={is_light}]").wait_for(state="attached")


class Desk:
    """One notebook, open in a page of the browser."""

    def __init__(self, page, server: Server, name: str):
        self.page = page
        self.server = server
        self.name = name
        self.path = server.root / name
        self.open()
        page.locator(".jp-Notebook .jp-Cell.jp-mod-active").wait_for()

    def open(self) -> None:
        """Open the notebook, and once more if a busy server refused the page's connection."""
        patience = 60
        while True:
            self.page.goto(self.server.page(self.name))
            try:
                self.server.wait_until_ready(self.name, patience)
                return self.page.wait_for_timeout(300)
            except TimeoutError:
                if patience > PATIENCE:
                    raise
                patience *= 2

    def wait(self) -> None:
        """Wait until the kernel has nothing to do, and the page shows what it did."""
        self.server.wait_until_ready(self.name)
        self.page.wait_for_timeout(300)

    def select(self, place: int):
        """The cell at a place, selected, with no text in it."""
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(place)
        cell.scroll_into_view_if_needed()
        cell.locator(".jp-InputPrompt").click()
        return cell

    def run(self, cell, *said: str) -> None:
        """Run a cell from the keyboard, to its end; it has to show these words."""
        prompt = cell.locator(".jp-InputPrompt")
        prompt.click()
        self.page.keyboard.press("Control+Enter")
        expect(prompt).to_have_text(re.compile(r"\d"))
        for words in said:
            expect(cell.locator(".jp-Cell-outputArea")).to_contain_text(words)

    def wait_until_stored(self, text: str) -> None:
        """Wait until the file holds a text, although nobody saves the notebook."""
        wait_for(lambda: text in self.path.read_text("utf-8"), f"{text!r} is in no file")

    def save(self) -> NotebookNode:
        """Save the notebook as a person does; return what the file holds then."""
        menu(self.page, "File", "Save Notebook")
        self.page.locator(".jp-mod-dirty").first.wait_for(state="detached")
        self.page.wait_for_timeout(300)
        self.wait_until_stored("\n}")  # a busy server is still writing
        return nbformat.read(self.path, as_version=4)


# What every text inside an element is drawn with: [text, its colour, the colour behind it].
COLOURS = """root => {
    const seen = [];
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const solid = (over, under) => {  // one CSS colour painted on another, as [r, g, b]
        canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
        canvas.fillStyle = over; canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    while (texts.nextNode()) {
        const text = texts.currentNode.textContent.trim(), parent = texts.currentNode.parentElement;
        if (!text || parent.tagName === 'STYLE' || !parent.checkVisibility()) continue;
        const layers = [];
        for (let node = parent; node; node = node.parentElement)
            layers.push(getComputedStyle(node).backgroundColor);
        let behind = 'white';
        for (const layer of layers.reverse()) behind = `rgb(${solid(layer, behind)})`;
        const ink = solid(getComputedStyle(parent).color, behind);
        seen.push([text, ink, behind.match(/\\d+/g).map(Number)]);
    }
    return seen;
}"""
