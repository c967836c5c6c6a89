"""Live views for the notebooks: each as the last line of a cell shows a function of the package.

Run, they follow what is typed and moved. Stored, they are a picture and words. `workbook.live` says
how they are made.
"""

from workbook.widgets_bpe import merge_stepper, tokenizer_playground
from workbook.widgets_unicode import utf8_explorer

__all__ = ["merge_stepper", "tokenizer_playground", "utf8_explorer"]
