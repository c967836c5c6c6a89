"""What a right solution takes from torch that the course wants written: modules, functionals.

Only what really runs counts: the modules that are there, and the functions that are called.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from workbook.checks.verdicts import Words, Wrong
from workbook.config import PACKAGE

TORCH = str(Path(torch.__file__).parent)
CHECKS = str(PACKAGE / "checks")  # from where a function of torch's is called that is handed in
MODULES = (
    "Linear LazyLinear Bilinear Embedding EmbeddingBag RMSNorm LayerNorm SiLU Sigmoid GELU GLU "
    "Softmax LogSoftmax MultiheadAttention TransformerEncoderLayer CrossEntropyLoss NLLLoss"
)
# What there is to write. Others, such as `one_hot` and `pad`, are only helpers.
TO_WRITE = (
    "linear bilinear embedding softmax log_softmax silu gelu glu sigmoid rms_norm layer_norm "
    "normalize scaled_dot_product_attention multi_head_attention_forward cross_entropy nll_loss"
)
FUNCTIONS = {getattr(functional, name): name for name in TO_WRITE.split()}
INSTEAD = (
    "From scratch means here: of `torch.nn` only `Module`, `Parameter`, containers and "
    "`nn.init.trunc_normal_`, and nothing that `torch.nn.functional` does for you. "
)
WAYS = {
    "linear": "A product with `@` or an einsum does it.",
    "Linear": "A Parameter and a product with `@` or an einsum do it.",
    "embedding": "Indexing does it: `weight[token_ids]`.",
    "Embedding": "A Parameter and indexing do it: `weight[token_ids]`.",
    "silu": "`x * torch.sigmoid(x)` does it.",
    "SiLU": "`x * torch.sigmoid(x)` does it.",
    "softmax": "Use your own softmax.",
    "Softmax": "Use your own softmax.",
}
READY = {
    torch.softmax: "softmax",
    torch.Tensor.softmax: "softmax",
    torch.log_softmax: "log_softmax",
    torch.Tensor.log_softmax: "log_softmax",
    torch.rms_norm: "rms_norm",
    torch.embedding: "embedding",
}


class _Listener(TorchFunctionMode):
    """Notes the functions of torch that the learner's code calls while it is on."""

    def __init__(self):
        super().__init__()
        self.called = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        frame = sys._getframe(1)
        while frame.f_code.co_filename.startswith(TORCH):
            frame = frame.f_back
        where = frame.f_code.co_filename
        if where.startswith(CHECKS) or not where.startswith(str(PACKAGE)):  # not our fused parts
            self.called.add(function)
        return function(*args, **(kwargs or {}))


def check_from_scratch(run: Callable[[], Any], modules: Iterable[nn.Module] = ()) -> list[str]:
    """Raise `Wrong` for what should be written and is torch's; remarks on what is doubtful."""
    for module in modules:
        for kind in type(module).__mro__:
            if kind.__module__.startswith("torch.nn.modules") and kind.__name__ in MODULES.split():
                _refuse(f"`torch.nn.{kind.__name__}`", kind.__name__)
    listener = _Listener()
    try:
        with listener:
            run()
    except Exception:  # it ran before: whatever this is, it comes from listening
        return []
    for function in listener.called:
        if function in FUNCTIONS:
            _refuse(f"`torch.nn.functional.{FUNCTIONS[function]}`", FUNCTIONS[function])
    ready = sorted({READY[function] for function in listener.called & READY.keys()})
    return [f"It takes torch's ready `{name}`; the course wants your own." for name in ready]


def _refuse(thing: str, name: str) -> None:
    raise Wrong(
        "The values are right, but not from scratch.",
        expected=Words("your own code"),
        got=Words(thing),
        mistake=INSTEAD + WAYS.get(name, "Write that yourself."),
    )
