"""Live views for the notebooks: each as the last line of a cell shows a function of the package.

Run, they follow what is typed and moved. Stored, they are a picture and words. `workbook.live` says
how they are made.
"""

from workbook.widgets_accounting import switchboard
from workbook.widgets_bpe import merge_stepper, tokenizer_playground
from workbook.widgets_floats import float_explorer
from workbook.widgets_generate import next_token_chances
from workbook.widgets_model import attention_viewer, rope_arrows
from workbook.widgets_optim import learning_rate_slider
from workbook.widgets_unicode import utf8_explorer

__all__ = [
    "attention_viewer",
    "float_explorer",
    "learning_rate_slider",
    "merge_stepper",
    "next_token_chances",
    "rope_arrows",
    "switchboard",
    "tokenizer_playground",
    "utf8_explorer",
]
