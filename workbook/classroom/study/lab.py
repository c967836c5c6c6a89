"""JupyterLab with the learner's copy open and, in a checkout, the worked notebooks beside it."""

import os
import secrets
import signal
import sys
import webbrowser
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

import nbformat
import zmq

from workbook import config
from workbook.classroom.study import copy, recall, update
from workbook.classroom.study.notebooks import WIDGET_VIEW, normalise
from workbook.classroom.study.progress import MARK, nearest
from workbook.files import notebooks_in

HOST = "127.0.0.1"  # this machine only
FIRST_PORT = 8888
NEWS = "@jupyterlab/apputils-extension:announcements"  # asks other hosts, and asks to do so


def start_lab(port: int | None = None) -> None:
    """Make or complete the study folder, and serve JupyterLab until Ctrl-C or a termination signal.

    The folder is the one around us, or else the usual one. Without a `port`, the next free one is
    taken.
    """
    folder = nearest()
    for path in (folder, *notebooks_in(folder)):
        try:
            str(path).encode()
        except UnicodeEncodeError:  # in a locale of ASCII alone, Python cannot read the name
            raise ValueError(
                f"the name of {str(path)!a} has letters that this locale cannot express: set"
                " PYTHONUTF8=1 or rename it, and start again"
            ) from None
    copy.make_copies(folder)  # or add to it what an update brought
    for notice in (*update.notices(folder), *recall.notices(folder)):
        print(notice)
    search_path = os.environ.get("PATH", os.defpath)
    here = str(Path(sys.executable).parent)
    # Its import would run Node.js for a setting that only a build needs, which takes seconds.
    os.environ["PATH"] = here
    import_module("jupyterlab.labapp")
    # A terminal in JupyterLab then finds `workbook` and the right `python`.
    os.environ["PATH"] = os.pathsep.join([here, search_path])
    first = notebooks_in(folder)[0]  # by number
    # Quoted: a terminal ends an address at a space, and a browser its path at "#" or "?".
    place = quote(first.relative_to(root_around(folder)).as_posix())
    serve_lab(folder, f"lab/tree/{place}", port)


def root_around(study: Path) -> Path:
    """Find what is served: the checkout that the study folder lies in, or else its parent."""
    root = config.checkout()
    return root if root and study.is_relative_to(root) else study.parent


def serve_lab(study: Path, page: str, port: int | None) -> None:
    """Run the server in this process, so that a signal meant for it reaches it."""
    from jupyterlab.labapp import LabApp

    token = secrets.token_hex(16)
    server = LabApp.initialize_server(argv=arguments(study, page, port, token))
    server.web_app.settings["page_config_hook"] = without_news
    if root_around(study) == config.checkout():
        server.contents_manager.register_pre_save_hook(keep_in_normal_form)
    server.contents_manager.register_pre_save_hook(drop_live_views)
    # At once, without a question, and even if this was started in the background.
    signal.signal(signal.SIGINT, lambda *_: server.stop(from_signal=True))
    address = f"http://{HOST}:{server.port}/{page}?token={token}"
    # The server has already put its own first step, which is to listen, into this queue.
    server.io_loop.add_callback(print, f"JupyterLab: {address}\nCtrl-C stops it.", flush=True)
    server.start()


def arguments(study: Path, page: str, port: int | None, token: str) -> list[str]:
    """Make JupyterLab's arguments; the learner's own settings (theme, keys) stay in force."""
    options = [
        f"--ServerApp.root_dir={root_around(study)}",
        f"--ServerApp.ip={HOST}",
        f"--ServerApp.port={FIRST_PORT if port is None else port}",
        f"--ServerApp.port_retries={50 if port is None else 0}",
        f"--ServerApp.open_browser={has_browser()}",
        "--Application.log_level=ERROR",  # no messages that a learner can do nothing about
        f"--IdentityProvider.token={token}",
        f"--LabApp.default_url=/{page}",
        f"--LabApp.workspaces_dir={study / MARK / 'workspaces'}",
    ]
    if zmq.has("curve"):  # what a notebook and its kernel say stays between them
        options.append("--KernelManager.transport_encryption=auto")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # in a container; JupyterLab refuses root otherwise
    return options


def without_news(handler, page: dict) -> dict:
    """Switch one more extension off in JupyterLab's settings for a page."""
    return page | {"disabledExtensions": [*page["disabledExtensions"], NEWS]}


def keep_in_normal_form(model: dict, path: str, **_) -> None:
    """Keep a worked notebook in normal form when JupyterLab saves it.

    JupyterLab saves even what was only looked at, with notes on the machine: to git, a change.
    """
    if model["type"] == "notebook" and path.startswith("notebooks/"):
        model["content"] = normalise(nbformat.from_dict(model["content"]))


def drop_live_views(model: dict, **_) -> None:
    """Take live views out of a notebook that is about to be stored; their pictures and words stay.

    A stored view needs the very kernel that made it; without that, it shows an error.
    """
    if model["type"] == "notebook":
        for cell in model["content"]["cells"]:
            for output in cell.get("outputs", []):
                if "image/png" in output.get("data", {}):
                    output["data"].pop(WIDGET_VIEW, None)


def has_browser() -> bool:
    """Tell whether a page opens in a window; a browser inside this terminal would block it."""
    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser
    except webbrowser.Error:
        return False
