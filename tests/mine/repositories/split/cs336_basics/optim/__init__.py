from .adamw import AdamW
from .clip import clip_gradients
from .loss import CrossEntropy
from .schedule import cosine_lr

__all__ = ["AdamW", "CrossEntropy", "clip_gradients", "cosine_lr"]
