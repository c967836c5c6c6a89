"""What the notebooks show: one file per notebook, its pictures and its live views together.

Open the file of the notebook that you come from, such as `bpe` for 02: its plots take data,
draw one idea and return the axes, which `plots.show` puts on the page with words.
`plots` has what all pictures share.

A live view, as the last line of a cell, shows a function of the package: when run, it follows what
is typed and moved; when stored, it is a picture and words. `live` has what all of them share. The
views are imported from here, as in `from workbook.classroom.views import merge_stepper`.
"""

from workbook.lazy import lazy

# Where each lives, loaded when it is asked for: the views of the first notebooks need no torch.
HOMES = {
    "attention_viewer": "transformer",
    "float_explorer": "accounting",
    "learning_rate_slider": "optimizer",
    "merge_stepper": "bpe",
    "next_token_chances": "generation",
    "rope_arrows": "transformer",
    "switchboard": "accounting",
    "tokenizer_playground": "bpe",
    "train_live": "training",
    "utf8_explorer": "unicode",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
