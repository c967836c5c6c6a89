"""The learner's own code in place of ours, from their notebooks or from their own repository.

`course_parts` is the table of all parts. `adopt` finds them in a repository, writes down where they
are, and imports them. `adapters` calls them through the course's `tests/adapters.py`, and writes
such a file (`course_adapters`). `own_parts` calls what was found the way a run calls its parts.
`check_all` is for `workbook check --all`, and `twin` for `workbook twin`.
"""

from workbook.lazy import lazy

NAMES = ("PartError", "expect_some", "now_yours", "open_run", "own", "parts", "rehearsed", "runs")
HOMES = dict.fromkeys(NAMES, "own_parts")
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
