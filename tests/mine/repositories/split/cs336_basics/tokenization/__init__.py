from .bpe_tokenizer import BPETokenizer
from .bpe_training import train

__all__ = ["BPETokenizer", "train"]
