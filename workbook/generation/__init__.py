"""Text from a trained model, and how likely the model finds a text (chapter 6).

Open `sampling` first: `decode` is the textbook's loop, with temperature, top-k and top-p in
`candidates`; `generate` and `stream` do the same with a cache of keys and values, and `write_text`
gives text. `fast_step` makes the cached step fast, `likelihood` gives the probability of each token
of a text, and `formats` opens a trained model and writes it for Hugging Face's `transformers`.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for: all of them need torch.
HOMES = {
    "decode": "sampling",
    "generate": "sampling",
    "likelihoods": "likelihood",
    "next_tokens": "likelihood",
    "open_model": "formats",
    "save_model": "formats",
    "stream": "sampling",
    "write_text": "sampling",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
