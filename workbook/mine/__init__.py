"""The learner's own code in place of ours, from their notebooks or from their own repository.

`repository` is the mapping that `workbook adopt` writes; `checkout` makes a repository importable,
`finding` looks for the parts in it, `tracing` and `by_adapter` make them as its adapters do.
`own_parts` calls what was found the way a run calls its parts; `own_runs` has their runs, and their
cells in the notebooks. `check_all`, `twin` and `timing` are for `workbook check --all`,
`workbook twin` and `workbook bench mine`.
`course_adapters` writes the course's adapters for `workbook export --adapters`.
"""

from workbook import lazy

HOMES = {
    "PartError": "own_parts",
    "bench": "timing",
    "expect_some": "own_parts",
    "now_yours": "own_runs",
    "of_folder": "own_runs",
    "open_run": "own_runs",
    "own": "own_parts",
    "parts": "own_parts",
    "rehearsed": "own_parts",
    "runs": "own_runs",
}
__all__ = list(HOMES)
__getattr__ = lazy(__name__, HOMES)
