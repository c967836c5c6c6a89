"""What holds for every test: the workbook's switches are as on a machine that never set them."""

import os

from hypothesis import settings

# A first call may compile or fill a cache; how long a machine takes says nothing about the claim.
settings.register_profile("workbook", deadline=None)
settings.load_profile("workbook")


def pytest_configure():
    """Before anything is collected, so that it holds for the kernels of notebooks too."""
    for switch in ("WORKBOOK_PROFILE", "WORKBOOK_EDITION"):
        os.environ.pop(switch, None)
