"""JupyterLab as people see it, for tests: a server of its own and a headless Chromium in front."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
HOST = "127.0.0.1"
# All cells are drawn, not only those in sight, and nobody asks for news.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


def chromium() -> str | None:
    """The path of a Chromium or Chrome on this machine."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


class Server:
    """A running JupyterLab on a folder; its kernels import this checkout."""

    def __init__(self, folder: Path, port: int, token: str, trap: socket.socket):
        self.folder, self.token, self.trap = folder, token, trap
        self.address = f"http://{HOST}:{port}/"

    def api(self, path: str):
        """What the server's REST API says."""
        url = f"{self.address}api/{path}?token={self.token}"
        with urllib.request.urlopen(url, timeout=20) as response:
            return json.load(response)

    def called_out(self) -> bool:
        """Whether the server or a kernel has tried to reach the web, all of which is one trap."""
        try:
            self.trap.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def page(self, name: str) -> str:
        """The address that opens a notebook of the folder in an empty workspace."""
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
def serve(folder: Path):
    """A `Server` on `folder`, private in everything, with a trap where the web should be."""
    private = folder.parent / "private"
    for name, values in SETTINGS.items():
        file = private / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    trap = socket.create_server((HOST, 0))
    trap.setblocking(False)
    proxy = f"http://{HOST}:{trap.getsockname()[1]}"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(private / "config"),
        "JUPYTER_DATA_DIR": str(private / "data"),
        "JUPYTER_RUNTIME_DIR": str(private / "runtime"),
        "IPYTHONDIR": str(private / "ipython"),
        "WORKBOOK_DATA": str(private / "corpora"),
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        f"--ServerApp.root_dir={folder}", f"--ServerApp.ip={HOST}", f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
        f"--LabApp.user_settings_dir={private / 'settings'}",
        f"--LabApp.workspaces_dir={private / 'workspaces'}",
        "--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    ]  # fmt: skip
    log = private / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    server = Server(folder, port, token, trap)
    try:
        wait_for(lambda: answers(server, process), 60, f"no answer:\n{log.read_text()[-2000:]}")
        yield server
    finally:
        process.terminate()  # its kernels go with it
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        trap.close()


def answers(server: Server, process: subprocess.Popen) -> bool:
    """Whether the server is up; RuntimeError where it has died."""
    if process.poll() is not None:
        raise RuntimeError(f"JupyterLab ended with status {process.returncode}")
    try:
        return bool(server.api("status"))
    except OSError:
        return False


@contextmanager
def browse(width: int = 1366, height: int = 900):
    """A page in a headless Chromium, and the list of the requests that tried to leave the machine.

    Such requests are refused, and so are the browser's own: it knows no other host.
    """
    from playwright.sync_api import sync_playwright

    arguments = [f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium's sandbox refuses root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        page = browser.new_page(viewport={"width": width, "height": height}, locale="en-US")
        page.set_default_timeout(30_000)
        left: list[str] = []

        def note(url: str) -> None:
            scheme, _, rest = url.partition("://")
            if scheme in ("http", "https", "ws", "wss") and not rest.startswith(f"{HOST}:"):
                left.append(url)

        page.context.on("request", lambda request: note(request.url))
        page.on("websocket", lambda websocket: note(websocket.url))
        try:
            yield page, left
        finally:
            browser.close()


def menu(page, *titles: str) -> None:
    """Click through the menu bar, such as menu(page, "Run", "Run All Cells")."""
    first, *others = titles
    page.get_by_role("menuitem", name=first, exact=True).click()
    for title in others:
        entries = page.locator(".lm-Menu:not(#jp-MainMenu) .lm-Menu-itemLabel")
        entries.get_by_text(title, exact=True).last.click()


def run_all(page, server: Server, name: str, seconds: float) -> None:
    """Run every cell by the menu, and wait until the kernel has nothing left to do."""
    server.wait_until_ready(name, 60)
    menu(page, "Run", "Run All Cells")
    waiting = (
        "[...document.querySelectorAll('.jp-InputArea-prompt')].some(p => /\\*/.test(p.innerText))"
    )
    page.wait_for_function(waiting, timeout=20_000)
    page.wait_for_function(f"!{waiting}", timeout=1000 * seconds, polling=200)
    server.wait_until_ready(name, 60)
    page.wait_for_timeout(500)  # the last outputs are on their way to the page


def save(page, server: Server, name: str) -> NotebookNode:
    """Save the notebook as a person does; what the file holds then."""
    path = server.folder / name
    before = path.read_text(encoding="utf-8")
    menu(page, "File", "Save Notebook")

    def is_written() -> bool:
        text = path.read_text(encoding="utf-8")
        return text != before and text.endswith("}\n")  # and not halfway through

    wait_for(is_written, 20, f"{name} was not saved")
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
