"""JupyterLab as people see it, for tests: a server of its own and a headless Chromium in front."""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from workbook.classroom.study import lab

ROOT = Path(__file__).parents[1]
PATIENCE = 300  # seconds, which only what hangs takes
LONGEST = 3_600  # of one cell, which may train a model
SETTINGS = {  # nobody asks for news
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


def chromium() -> str | None:
    """The path of a Chromium or Chrome on this machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def what_is_missing() -> str | None:
    """Why no browser can be driven here; None if it can."""
    if sys.platform == "win32":
        return "Windows has no Chromium at a known place; WSL has"
    if importlib.util.find_spec("playwright") is None:
        return 'playwright is not installed; pip install -e ".[test]" brings it'
    if chromium() is None:
        return "there is no Chromium; Debian and Ubuntu have it: sudo apt install chromium"
    return None


def require_browser() -> None:
    """Skip the test where no browser can be driven; fail it with WORKBOOK_REQUIRE_BROWSER set."""
    reason = what_is_missing()
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
    """A running JupyterLab: where it answers, and the folder of the notebooks it serves."""

    def __init__(self, root: Path, trap: socket.socket):
        self.root, self.trap = root, trap
        self.address = self.token = ""  # told by the server when it is there

    def listen(self, line: str) -> bool:
        """Whether a line that the server printed says where it answers."""
        told = re.search(r"(http://\S+/)lab\?token=(\w+)", line)
        if told:
            self.address, self.token = told.groups()
        return bool(told)

    def api(self, path: str):
        """What the server's REST API says."""
        url = f"{self.address}api/{path}?token={self.token}"
        with urllib.request.urlopen(url, timeout=PATIENCE) as response:
            return json.load(response)

    def called_out(self) -> bool:
        """Whether the server or a kernel has tried to reach the web, all of which is one trap."""
        try:
            self.trap.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def page(self, name: str) -> str:
        """The address that opens a notebook in an empty workspace."""
        return f"{self.address}lab/tree/{name}?reset&token={self.token}"

    def is_ready(self, name: str) -> bool:
        """Whether the notebook has a kernel that waits for work, and a page connected to it."""
        kernels = [s["kernel"] for s in self.api("sessions") if s["path"] == name]
        return any(k["execution_state"] == "idle" and k["connections"] > 0 for k in kernels)

    def wait_until_ready(self, name: str, seconds: float) -> None:
        wait_for(lambda: self.is_ready(name), seconds, f"the kernel of {name} is not idle")


def wait_for(condition, seconds: float, complaint: str) -> None:
    """Return as soon as `condition` holds; TimeoutError with the complaint if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {seconds:.0f} s, {complaint}")
        time.sleep(0.1)


@contextmanager
def serve(root: Path, windowing: str = "none"):
    """`workbook lab` on a folder, with settings of its own and a trap where the web should be.

    With `windowing` "full" only the cells in sight are in the page. The kernels' data folder is
    that of all tests: what one of them has trained, no other trains.
    """
    private = root / "private"
    tracker = {"notebook-extension/tracker": {"windowingMode": windowing}}
    for name, values in (SETTINGS | tracker).items():
        file = private / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    trap = socket.create_server((lab.HOST, 0))
    trap.setblocking(False)
    web = f"http://{lab.HOST}:{trap.getsockname()[1]}"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(private / "settings"),
        "IPYTHONDIR": str(private / "ipython"),
        "HTTP_PROXY": web,
        "HTTPS_PROXY": web,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    server = Server(root, trap)
    with trap, (private / "server.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", START, str(root)],
            env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            wait_for(
                lambda: is_up(server, process), PATIENCE, "JupyterLab has not told its address"
            )
            yield server
        finally:
            process.terminate()  # its kernels go with it
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_up(server: Server, process: subprocess.Popen) -> bool:
    """Whether the server has told where it answers; RuntimeError where it has died."""
    said = (server.root / "private" / "server.log").read_text(encoding="utf-8")
    if process.poll() is not None:
        raise RuntimeError(f"JupyterLab ended with status {process.returncode}:\n{said[-2000:]}")
    return server.listen(said)


@contextmanager
def browse():
    """A headless Chromium, and the list of its requests that tried to leave the machine.

    Such requests are refused, and so are the browser's own: it knows no other host.
    """
    from playwright.sync_api import sync_playwright

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


def menu(page, *titles: str) -> None:
    """Click through the menu bar, such as menu(page, "Run", "Run All Cells")."""
    first, *others = titles
    page.get_by_role("menuitem", name=first, exact=True).click()
    for title in others:
        entries = page.locator(".lm-Menu:not(#jp-MainMenu) .lm-Menu-itemLabel")
        entries.get_by_text(title, exact=True).last.click()


def run_cells(page, server: Server, name: str, places: list[int]) -> None:
    """Run the cells at these places from the keyboard, one after the other.

    They may not have a number yet: their first one says that they have run.
    """
    from playwright.sync_api import expect

    server.wait_until_ready(name, PATIENCE)
    for place in places:
        prompt = page.locator(".jp-Notebook .jp-Cell").nth(place).locator(".jp-InputPrompt")
        prompt.click()  # the cell is selected, and no text in it
        page.keyboard.press("Control+Enter")
        expect(prompt).to_have_text(re.compile(r"\d"), timeout=1000 * LONGEST)
    server.wait_until_ready(name, PATIENCE)
    page.wait_for_timeout(500)  # the last outputs are on their way to the page


def save(page, server: Server, name: str) -> NotebookNode:
    """Save the notebook as a person does; what the file holds then."""
    path = server.root / name
    before = path.stat().st_mtime_ns
    menu(page, "File", "Save Notebook")

    def is_written() -> bool:
        if path.stat().st_mtime_ns == before:  # asked first: what is read is then the new text
            return False
        try:
            json.loads(path.read_text(encoding="utf-8"))
        except ValueError:  # half of it
            return False
        return True

    wait_for(is_written, PATIENCE, f"{name} was not saved")
    return nbformat.read(path, as_version=4)


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
