"""Work that is counted where a clock would tell how fast and how busy the machine is.

Where a test has to wait, it waits for what shall happen, and gives up after `PATIENCE`.
"""

import sys
from collections.abc import Callable

# Seconds, which only what hangs takes. The longest wait takes 15 s on an idle machine, and 20 times
# as long on two cores that 40 other processes want.
PATIENCE = 3_600


def calls(act: Callable[[], object]) -> int:
    """How many Python functions are called while `act()` runs, in this thread."""
    count = 0
    before = sys.getprofile()

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count
