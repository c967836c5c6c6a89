"""Live views for the notebooks: each as the last line of a cell shows a function of the package.

Run, they follow what is typed and moved. Stored, they are a picture and words. How they are made is
in `live`.
"""

from importlib import import_module

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
    "utf8_explorer": "unicode",
}
__all__ = list(HOMES)


def __getattr__(name: str):
    """The view of that name."""
    if name not in HOMES:
        raise AttributeError(f"no live view is called {name!r}; there are {', '.join(HOMES)}")
    return getattr(import_module(f"workbook.views.{HOMES[name]}"), name)
