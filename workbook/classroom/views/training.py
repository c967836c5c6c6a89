"""Notebook 06: loss curves, where batches begin and where the time of a step goes, as pictures.

`train_live` shows a run while it trains: a progress bar, and a loss curve that grows. The curve is
a few lines of SVG, so that drawing it costs the training nothing. When the run ends, a picture
takes its place: a stored notebook has no kernel that could move a bar.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pandas as pd
from IPython.display import DisplayHandle
from matplotlib.axes import Axes

from workbook.classroom.views import plots
from workbook.classroom.views.plots import BLUE, DASHED, INK, ORANGE, SKY, axes
from workbook.config import TrainConfig
from workbook.training import log as runlog
from workbook.training.data import TrainData
from workbook.training.parts import Parts
from workbook.training.trainer import Run, progress_line, run_folder, time_left, train

LOSS, BITS = "loss (nats/token)", "validation_bits_per_byte"


def loss_curve(log: pd.DataFrame, x: str = "step", choices: float | None = None) -> Axes:
    """Training and validation loss of a run against "step", "tokens" or "seconds".

    `choices` is what the choices of the text's generator cost, in nats per token, as a dashed line:
    an upper bound on the entropy of the text.
    """
    ax = axes()
    table = log.reset_index()
    train = table.dropna(subset="train_loss")
    held_out = table.dropna(subset="validation_loss")
    ax.plot(train[x], train["train_loss"], color=BLUE, linewidth=1, label="training batch")
    ax.plot(
        held_out[x],
        held_out["validation_loss"],
        color=ORANGE,
        linewidth=2,
        marker="o",
        ms=4,
        label="validation",
    )
    if choices is not None:
        label = "the generator's choices"
        ax.axhline(choices, **DASHED, label=label)
    ax.legend()
    ax.set_ylim(bottom=0)
    ax.set(xlabel=plots.X_AXES[x], ylabel=LOSS)
    if x == "tokens":
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.grid()
    return ax


def start_counts(starts: Sequence[int], possible: int) -> Axes:
    """How often windows began at each place; dashed, the mean if all are equally likely."""
    counts = np.bincount(starts, minlength=possible)
    ax = axes(2.6)
    ax.bar(np.arange(len(counts)), counts, color=BLUE, width=0.8)
    ax.axhline(len(starts) / possible, **DASHED)
    ax.set(xlabel="start of the window (token position)", ylabel="number of windows")
    return ax


def overlaid(logs: Mapping[str, pd.DataFrame]) -> Axes:
    """The training losses of up to three runs, each a thinner line on the one before."""
    ax = axes()
    looks = ((SKY, 9), (ORANGE, 4), (INK, 1))
    for name, (colour, width) in zip(logs, looks, strict=False):
        ax.plot(logs[name]["train_loss"].dropna(), color=colour, linewidth=width, label=name)
    ax.set(xlabel="steps", ylabel=LOSS)
    ax.legend()
    ax.grid()
    return ax


def compared(logs: Mapping[str, pd.DataFrame]) -> Axes:
    """The losses of up to three runs by step: thin in training, thick on held-out text.

    They are in nats per token, or in bits per byte if the runs cut the text into different tokens:
    then no other unit compares them.
    """
    ax = axes()
    bits = {name: _bits_per_nat(log) for name, log in logs.items()}
    in_bits = max(bits.values()) > (1 + 1e-6) * min(bits.values())
    looks = ((SKY, "o", 5), (ORANGE, "s", 2.5), (INK, "^", 1))  # each thinner than the one before
    for name, (colour, marker, width) in zip(logs, looks, strict=False):
        log = logs[name]
        scale = bits[name] if in_bits else 1
        ax.plot(scale * log["train_loss"].dropna(), color=colour, linewidth=1)
        held_out = scale * log["validation_loss"].dropna()
        ax.plot(held_out, color=colour, linewidth=width, marker=marker, ms=width + 3, label=name)
    ax.set(xlabel="steps", ylabel="loss (bits/byte)" if in_bits else LOSS)
    ax.legend(title="thick: validation")
    ax.grid()
    return ax


def _bits_per_nat(log: pd.DataFrame) -> float:
    """Bits per byte for a nat per token of a run's validation text."""
    ratios = (log[BITS] / log["validation_loss"]).dropna()
    return ratios.iloc[-1] if len(ratios) else math.nan


def words(log: pd.DataFrame) -> str:
    """The curve of a run in a sentence, for those who cannot see it."""
    held_out = log.dropna(subset="validation_loss")["validation_loss"]
    first = held_out.iloc[0]
    last = held_out.iloc[-1]
    goes = "falls" if last < first else "goes"
    return (
        f"The validation loss {goes} from {first:.2f} to {last:.2f} nats per token (perplexity"
        f" {math.exp(first):,.0f} to {math.exp(last):,.1f}) in {log.index[-1]:,} steps,"
        f" {log['tokens'].iloc[-1]:,} tokens and {log['seconds'].iloc[-1]:,.0f} seconds."
    )


CURVE_WIDTH, CURVE_HEIGHT, LEFT, BELOW = (
    520,
    200,
    40,
    24,
)  # pixels of the live curve, and of its margins
LOSSES = {"train_loss": BLUE, "validation_loss": ORANGE}


class LiveCurve:
    """A listener that shows a run's log: call it with each record."""

    def __init__(self, config: TrainConfig):
        self.config = config
        self.records = list[dict[str, Any]]()
        self.bar = ipywidgets.IntProgress(max=config.steps, layout={"width": f"{CURVE_WIDTH}px"})
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
    config: TrainConfig,
    data: TrainData,
    folder=None,
    listeners=(),
    parts: Parts | None = None,
    beside: Run | None = None,
) -> Run:
    """Train as `train` does, with the same arguments, and show a bar and a loss curve meanwhile.

    They give way to a picture when the run ends, finished, interrupted or failed: of this run, or
    of a learner's run `beside` one of ours.
    """
    folder = Path(folder) if folder is not None else run_folder(config, parts)
    curve = LiveCurve(config)
    place = DisplayHandle()
    place.display(curve)
    try:
        return train(config, data, folder, [curve, *listeners], parts)
    finally:
        output, metadata = still(config, folder, beside)
        place.update(output, metadata=metadata, raw=True)


def still(config: TrainConfig, folder: Path, beside: Run | None = None) -> tuple[dict, dict]:
    """The output that shows how far the run in a folder has come, and its metadata."""
    records = runlog.records(folder) if (folder / runlog.LINES).is_file() else []
    if not records:
        return {"text/plain": "The run ended before anything was measured."}, {}
    log = pd.DataFrame(records, columns=["step", *LOSSES, BITS]).set_index("step")
    ax = loss_curve(log) if beside is None else compared({"ours": beside.log, "yours": log})
    ax.set_xlim(right=1.03 * config.steps)  # of a run that was interrupted, the rest stays empty
    alt = f"The losses of the run by step, up to {progress_line(config, records[-1])}."
    if beside is not None:
        alt = f"Your run beside ours. {alt} Ours ended at {beside.loss:.3f}."
    return plots.bundle(ax, alt)


def curve_html(config: TrainConfig, records: Sequence[dict]) -> str:
    """The losses so far as a picture, and the last record as a line of text."""
    width = CURVE_WIDTH - LEFT
    height = CURVE_HEIGHT - BELOW
    curves = {
        name: [(record["step"], record[name]) for record in records if record.get(name) is not None]
        for name in LOSSES
    }
    highest = max((loss for curve in curves.values() for _, loss in curve), default=0) or 1
    lines = ""
    for name, colour in LOSSES.items():
        points = " ".join(
            f"{LEFT + width * step / config.steps:.1f},{height * (1 - loss / highest):.1f}"
            for step, loss in curves[name]
        )
        lines += f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>'
    axis = (
        f'<path d="M{LEFT} 0V{height}H{CURVE_WIDTH}" fill="none" stroke="currentColor"/>'
        f'<text x="0" y="12">{highest:.1f}</text><text x="0" y="{height}">0.0</text>'
        f'<text x="{LEFT}" y="{CURVE_HEIGHT - 6}">0 steps</text>'
        f'<text x="{CURVE_WIDTH}" y="{CURVE_HEIGHT - 6}" text-anchor="end">{config.steps:,}</text>'
    )
    latest = progress_line(config, records[-1]) + time_left(config, records[-1])
    return (
        f'<svg width="{CURVE_WIDTH}" height="{CURVE_HEIGHT}" role="img"'
        f' aria-label="Loss so far: {latest}"'
        ' style="font-size: 12px; fill: currentColor; color: var(--jp-content-font-color1)">'
        f"{axis}{lines}</svg><div>{latest} (blue: training, orange: validation)</div>"
    )
