from .embedding import Embedding
from .linear import Linear
from .norm import RMSNorm
from .rotary import RoPE
from .swiglu import SwiGLU

__all__ = ["Embedding", "Linear", "RMSNorm", "RoPE", "SwiGLU"]
