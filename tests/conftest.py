"""What holds for every test: no switch of the workbook is set, and there is no web."""

import os

from hypothesis import settings

# A first call may compile or fill a cache; how long a machine takes says nothing about the claim.
settings.register_profile("workbook", deadline=None)
settings.load_profile("workbook")


def pytest_configure():
    """Before anything is collected, so that it holds for the kernels of notebooks too."""
    for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION"):
        os.environ.pop(switch, None)
    for proxy in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        os.environ[proxy] = "http://127.0.0.1:9"  # where nobody listens
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


def pytest_collection_modifyitems(items):
    """What takes minutes is begun first, so that no worker is left alone with it in the end.

    Notebooks run in the browser from the first on, and here from the last on: what has to be made
    or trained once is then hardly ever wanted by both at a time.
    """
    browser = [item for item in items if item.path.name == "test_browser.py"]
    cells = [item for item in items if item.path.suffix == ".ipynb"]
    cells.sort(key=lambda item: item.path, reverse=True)  # those of one notebook keep their order
    items[:] = dict.fromkeys([*browser, *cells, *items])
