"""Training: from a config to a trained model, a log and checkpoints (chapter 5).

Open `textbook` first: the loop in 40 lines. Then read `trainer` beside it: the same loop is in
`Trainer.take_steps`, and one step in `Trainer.update`, with what long runs need. A step gets its
batch from `data`, and a run is saved by `checkpoints`, logged by `log` and evaluated by `evaluate`.
`guards` stops a run that diverges and flags a curve that is too good to be true; `loss_bounds` says
which losses are possible. `devices` picks the device and the precision and connects processes;
`presets` has the runs by name, and their options on the command line.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for: all of them need torch.
HOMES = {
    "DivergedError": "trainer",
    "Parts": "parts",
    "Run": "trainer",
    "TrainData": "data",
    "Trainer": "trainer",
    "get_batch": "data",
    "load_checkpoint": "checkpoints",
    "prepare": "data",
    "preset": "presets",
    "save_checkpoint": "checkpoints",
    "train": "trainer",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
