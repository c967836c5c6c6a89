"""Experiments with training runs: sweeps, ablations and a leaderboard (chapter 7).

Open `studies` first: the plan of each experiment, and how large they are on a laptop and on a GPU.
`plans` is the engine that carries out a plan, `records` finds the runs that are done. `results`
reads tables, ablations and batch sizes from them, `significance` says what may be luck, and
`published` has what others claim. `own_runs` lists the learner's own runs, and `dry_run` estimates
how long missing ones take.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for: most need torch.
HOMES = {
    "Recorded": "results",
    "at_hand": "dry_run",
    "claims": "published",
    "compare_runs": "results",
    "my_runs": "own_runs",
    "run_plans": "plans",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
