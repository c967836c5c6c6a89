"""Training watched in a notebook: a progress bar, and a loss curve that grows.

The curve is a few lines of SVG, so that drawing it costs the training nothing. When the run ends, a
picture takes its place: a stored notebook has no kernel that could move a bar.
"""

from collections.abc import Sequence
from pathlib import Path

import ipywidgets
import pandas as pd
from IPython.display import DisplayHandle

from workbook.config import TrainConfig
from workbook.training import log as runlog
from workbook.training.data import TrainData
from workbook.training.train import Run, run_folder, told, train
from workbook.views import plots, training

WIDTH, HEIGHT, LEFT, BELOW = 520, 200, 40, 24  # pixels


class LiveCurve:
    """A listener for a run's log that shows it: call it with each record."""

    def __init__(self, config: TrainConfig):
        self.config, self.records = config, []
        self.bar = ipywidgets.IntProgress(max=config.steps, layout={"width": f"{WIDTH}px"})
        self.curve = ipywidgets.HTML()
        self.box = ipywidgets.VBox([self.bar, self.curve])

    def __call__(self, record: dict) -> None:
        self.records.append(record)
        self.bar.value = record["step"]
        self.curve.value = curve_html(self.config, self.records)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        words = f"A progress bar, and the loss curve of {self.config.steps:,} steps as it grows."
        return {**self.box._repr_mimebundle_(), "text/plain": words}


def train_live(
    config: TrainConfig, folder=None, data: TrainData | None = None, listeners=()
) -> Run:
    """What `train` returns; in a notebook its bar and its curve are shown meanwhile.

    They give way to a picture when the run ends, be it done, interrupted or broken.
    """
    folder = Path(folder) if folder is not None else run_folder(config)
    curve, place = LiveCurve(config), DisplayHandle()
    place.display(curve)
    try:
        return train(config, folder, data, [curve, *listeners])
    finally:
        output, metadata = still(config, folder)
        place.update(output, metadata=metadata, raw=True)


def still(config: TrainConfig, folder: Path) -> tuple[dict, dict]:
    """The output that shows how far the run in a folder has come, and its metadata."""
    records = runlog.records(folder) if (folder / runlog.LINES).is_file() else []
    if not records:
        return {"text/plain": "The run ended before anything was measured."}, {}
    log = pd.DataFrame(records, columns=["step", "train_loss", "validation_loss"])
    ax = training.loss_curve(log.set_index("step"))
    ax.set_xlim(right=1.03 * config.steps)  # of a run that was interrupted, the rest stays empty
    return plots.bundle(ax, f"The losses of the run by step, up to {told(config, records[-1])}.")


def curve_html(config: TrainConfig, records: Sequence[dict]) -> str:
    """The losses so far as a picture, and the last record as a line of text."""
    names = ("train_loss", "validation_loss")
    known = [record[name] for record in records for name in names if record.get(name) is not None]
    highest = max(known, default=0) or 1
    lines = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="'
        + " ".join(
            f"{LEFT + (WIDTH - LEFT) * record['step'] / config.steps:.1f},"
            f"{(HEIGHT - BELOW) * (1 - record[name] / highest):.1f}"
            for record in records
            if record.get(name) is not None
        )
        + '"/>'
        for name, colour in zip(names, (plots.BLUE, plots.ORANGE), strict=True)
    )
    axis = (
        f'<path d="M{LEFT} 0V{HEIGHT - BELOW}H{WIDTH}" fill="none" stroke="currentColor"/>'
        f'<text x="0" y="12">{highest:.1f}</text><text x="0" y="{HEIGHT - BELOW}">0.0</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 6}">0 steps</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 6}" text-anchor="end">{config.steps:,}</text>'
    )
    latest = told(config, records[-1])
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="Loss so far: {latest}"'
        ' style="font-size: 12px; fill: currentColor; color: var(--jp-content-font-color1)">'
        f"{axis}{lines}</svg><div>{latest} (blue: training, orange: validation)</div>"
    )
