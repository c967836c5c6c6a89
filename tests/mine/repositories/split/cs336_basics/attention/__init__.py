from .functional import attention, softmax
from .multihead import CausalMultiHeadAttention

__all__ = ["CausalMultiHeadAttention", "attention", "softmax"]
