"""Text to tokens and back: byte-pair encoding, trained and applied (chapter 2).

Open `bpe` first, which learns the merges, then `tokenizer`, which applies them. Both build on
`pretokens` (GPT-2's pattern, which cuts text into pieces about as long as words) and `spans` (large
files, part by part). `simple` has the tokenizers that BPE is compared with, `watch` shows training
step by step, `token_files` turns a whole corpus into token ids on disk, `gpt2_files` reads and
writes GPT-2's two files, and `utf8` explains the encoding underneath. `compiled` is the fast engine
for large texts: the same results, in code that is harder to read.
"""

from workbook.lazy import lazy

# Where each public name lives, loaded when it is asked for.
HOMES = {
    "ByteTokenizer": "simple",
    "CharacterTokenizer": "simple",
    "Tokenizer": "tokenizer",
    "WordTokenizer": "simple",
    "train_bpe": "bpe",
}
__all__ = list(HOMES)
__getattr__, __dir__ = lazy(__name__, HOMES)
