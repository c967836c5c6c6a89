"""What holds for every test: the workbook's switches are as on a machine that never set them."""

import os


def pytest_configure():
    """Before anything is collected, so that it holds for the kernels of notebooks too."""
    for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION"):
        os.environ.pop(switch, None)
