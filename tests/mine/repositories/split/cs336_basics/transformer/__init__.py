from .block import Block
from .lm import LanguageModel

__all__ = ["Block", "LanguageModel"]
