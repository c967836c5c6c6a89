"""Optimizers, the learning-rate schedule, gradient clipping, and low precision (chapter 4).

Open `optimizers` first: SGD to AdamW, each as its paper writes it, and at the end the schedule and
clipping. `toys` tries them on losses that can be drawn or solved on paper. `floats` shows how a
number is stored in float32, float16 and bfloat16, and `mixed_precision` what training loses with
fewer bits.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for: all of them need torch.
HOMES = {
    "AdaGrad": "optimizers",
    "AdamW": "optimizers",
    "Momentum": "optimizers",
    "RMSProp": "optimizers",
    "SGD": "optimizers",
    "clip_gradients": "optimizers",
    "cosine_schedule": "optimizers",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
