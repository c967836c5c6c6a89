"""The live view of notebook 05: the handout's toy at any learning rate."""

import math

import ipywidgets
import pandas as pd
from matplotlib.axes import Axes

from workbook.optimizer import toys
from workbook.views import optimizer
from workbook.views.live import Live, escape
from workbook.views.plots import BLUE, RED

STEPS = 10
FACTORS_OF_TEN = 16  # that bars and picture reach down, and bars up, from the first loss
HALF = 6.0  # rem, the longest bar


def learning_rate_slider(lr: int = 100) -> Live:
    """A slider from 1 to 1,200, and what the toy's loss does in its first ten steps.

    Arrow keys move it by 1; a number can be typed beside it; three buttons set the handout's rates.
    """
    slider = ipywidgets.IntSlider(
        value=lr, min=1, max=1_200, description="Learning rate", readout_format=",d",
        style={"description_width": "initial"},
        layout={"flex": "1 1 16rem", "width": "auto", "max_width": "32rem"},
    )  # fmt: skip
    buttons = []
    for rate in (10, 100, 1_000):
        button = ipywidgets.Button(
            description=f"{rate:,}", tooltip=f"learning rate {rate:,}", layout={"width": "4rem"}
        )
        button.on_click(lambda _, rate=rate: setattr(slider, "value", rate))
        buttons.append(button)
    row = ipywidgets.HBox([*buttons, slider], layout={"flex_flow": "row wrap"})
    return Live({"lr": slider}, _html, _picture, _words, rows=[row])


def _html(lr: int) -> str:
    losses = toys.relative_losses(lr, STEPS)
    rows = "".join(_row(lr, t, losses[t + 1]) for t in range(STEPS))
    return f"""
<p><b>Learning rate {lr:,}.</b> {escape(toys.story(lr))}</p>
<table aria-label="The first ten steps: how weights and loss are multiplied">
<thead><tr><th scope="col" class="number">step</th>
<th scope="col" class="number">weights times</th><th scope="col" class="number">loss times</th>
<th scope="col" class="number">loss after it, start 1</th>
<th scope="col">on a log scale, | is 1</th>
</tr></thead><tbody>{rows}</tbody></table>
<p>In exact arithmetic, for any weights at the start.</p>"""


def _row(lr: int, t: int, loss: float) -> str:
    factor = toys.factor(lr, t)
    told = (f"{t}", f"{factor:+.3f}", f"{factor**2:.3f}", f"{loss:.3g}")
    cells = "".join(f'<td class="number">{cell}</td>' for cell in told)
    return f"<tr>{cells}<td>{_bar(loss)}</td></tr>"


def _bar(loss: float) -> str:
    """A bar to the left of the middle for a loss below 1, to the right for one above."""
    tens = math.log10(loss) if loss > 0 else -math.inf
    length = min(abs(tens), FACTORS_OF_TEN) / FACTORS_OF_TEN * HALF
    left, right = (length, 0.0) if tens < 0 else (0.0, length)
    style = "display: inline-block; height: 0.7em;"
    return (
        f'<span style="{style} width: {left:.2f}rem; margin-left: {HALF - left:.2f}rem;'
        f' background: {BLUE};"></span>|'
        f'<span style="{style} width: {right:.2f}rem; background: {RED};"></span>'
    )


def _picture(lr: int) -> Axes:
    losses = pd.DataFrame({"loss": toys.relative_losses(lr, STEPS)})
    lowest = 10.0**-FACTORS_OF_TEN
    return optimizer.log_curves(
        losses.rename_axis(f"step, at learning rate {lr:,}"),
        "loss, if it began at 1",
        marks={"start": 1.0},
        lowest=lowest,
    )


def _words(lr: int) -> str:
    told = ", ".join(f"{loss:.3g}" for loss in toys.relative_losses(lr, STEPS))
    return (
        f"Learning-rate slider, live when the cell is run. Learning rate {lr:,}: "
        f"{toys.story(lr)} The loss, if it began at 1, before and after each of {STEPS} steps: "
        f"{told}."
    )
