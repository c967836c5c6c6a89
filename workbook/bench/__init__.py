"""Benches: our code timed beside other libraries, and what a function costs.

Open `measure` first: `measured` runs a function in a process of its own and reports its time and
peak memory; notebook 02 uses it. `tokenizers`, `training` and `generation` are the three benches of
`workbook bench`. The speeds that the notebooks quote come from the records in `data/bench/`, which
only `--record` writes. Nothing else in the package depends on this folder.
"""

from workbook import lazy

HOMES = {
    "Measured": "measure",
    "STEP_PARTS": "training",
    "measured": "measure",
    "profile": "measure",
    "killed_run": "training",
    "step_times": "training",
}
__all__ = list(HOMES)
__getattr__ = lazy(__name__, HOMES)
