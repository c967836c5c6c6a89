"""What a right solution takes ready-made from torch or this package, but should write itself.

Only what really runs counts: one call is made under a profiler, which sees every function that the
learner's own lines call, in Python and in C.
"""

import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn

from workbook.classroom.checks.verdicts import Prose, Wrong
from workbook.config import PACKAGE

TORCH = str(Path(torch.__file__).parent)
OPS = str(Path(TORCH, "_ops.py"))  # where `torch.ops.aten.softmax` is called
OPTIMIZERS, BASES = str(Path(TORCH, "optim")), ("optimizer.py", "lr_scheduler.py", "sgd.py")
# Code that calls an attempt, and contains nothing that learners are to write.
CALLERS = str(PACKAGE / "classroom")
LIBRARY = sysconfig.get_path("stdlib")
# What learners are to write. Others, such as `one_hot` and `pad`, are only helpers.
MODULES = (
    "Linear LazyLinear Bilinear Embedding EmbeddingBag RMSNorm LayerNorm SiLU Sigmoid GELU GLU "
    "Softmax LogSoftmax MultiheadAttention TransformerEncoderLayer CrossEntropyLoss NLLLoss"
)
FUNCTIONS = (
    "linear bilinear embedding softmax log_softmax silu gelu glu sigmoid rms_norm layer_norm "
    "normalize scaled_dot_product_attention multi_head_attention_forward cross_entropy nll_loss "
    "clip_grad_norm_ clip_grad_norm"
)
# In C, and as methods of tensors: but `torch.sigmoid` is allowed.
BUILTINS = {*FUNCTIONS.split(), "_softmax", "_log_softmax", "cross_entropy_loss"} - {"sigmoid"}
INSTEAD = (
    "Here, from scratch means: from `torch.nn` only `Module`, `Parameter`, containers and "
    "`nn.init.trunc_normal_`, and nothing from `torch.nn.functional` that does the work for you."
)
OURS = "Hand in what you wrote yourself: the workbook's own code is there only to compare with."
WAYS = {
    "linear": "A Parameter and a matmul with `@` or an einsum do it.",
    "embedding": "A Parameter and indexing do it: `weight[token_ids]`.",
    "silu": "`x * torch.sigmoid(x)` does it.",
    "softmax": "Use your own softmax.",
}


def expect_from_scratch(
    run: Callable[[], Any], made: Iterable[Any] = (), allowed: Collection[str] = ()
) -> None:
    """Raise `Wrong` for what is ready-made and should have been written.

    Args:
        run: makes one call of the attempt, which is right.
        made: what the attempt consists of: itself, and the modules inside it.
        allowed: names of what belongs to an earlier problem, and may be used in this one.
    """
    for part in made:
        for kind in (part, *getattr(part if isinstance(part, type) else type(part), "__mro__", ())):
            module, name = getattr(kind, "__module__", None) or "", getattr(kind, "__name__", "")
            is_module = module.startswith("torch.nn.modules") and name in MODULES.split()
            if is_module or (module.startswith("torch.optim.") and name != "Optimizer"):
                _refuse(f"`{'.'.join(module.split('.')[:2])}.{name}`", name)
            if module.startswith("workbook.") and not module.startswith("workbook.classroom.mine."):
                _refuse(f"`{module}.{name}`, the workbook's own", name)
            if name in FUNCTIONS.split() and _is_torchs(kind):
                _refuse(f"`torch`'s ready `{name}`", name)
    for thing, name in _ready_made(run).items():
        if name not in allowed:
            _refuse(thing, name)


def _ready_made(run: Callable[[], Any]) -> dict[str, str]:
    """What the learner's lines call that is ready-made: its bare name, by what is said of it."""
    seen: dict[str, str] = {}

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call":
            name = getattr(arg, "__name__", "").removeprefix("special_")
            if name in BUILTINS and _is_theirs(frame) and _is_torchs(arg):
                seen[f"`torch`'s ready `{name}`"] = name.strip("_")
        elif event == "call" and _is_theirs(_caller(frame)):
            code = frame.f_code
            path, name = code.co_filename, code.co_name
            if path == OPS and name == "__call__":
                name = vars(frame.f_locals["self"]).get("__name__", "").partition(".")[0]
            if path.startswith(TORCH) and name in (BUILTINS if path == OPS else FUNCTIONS.split()):
                seen[f"`torch`'s ready `{name}`"] = name.strip("_")
            elif path.startswith(OPTIMIZERS) and name == "step" and not path.endswith(BASES):
                seen[f"an optimizer of `torch.optim`, `{code.co_qualname}`"] = name
            elif path.startswith(str(PACKAGE)) and not path.startswith(CALLERS):
                seen[f"`{code.co_qualname}`, the workbook's own"] = name

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    except Exception:  # it ran before: whatever this is, it comes from the profiler
        return {}
    finally:
        sys.setprofile(before)
    return seen


def _caller(frame: FrameType) -> FrameType:
    """The frame that called, past the wrappers that torch puts around its own functions."""
    frame = frame.f_back or frame
    while frame.f_back and frame.f_code.co_filename.startswith(TORCH):
        frame = frame.f_back
    return frame


def _is_theirs(frame: FrameType) -> bool:
    """Whether a frame runs a learner's line; a check that calls torch's function itself counts."""
    path = frame.f_code.co_filename
    if path.startswith(CALLERS):
        return frame.f_code.co_name != "note"
    return not path.startswith((TORCH, str(PACKAGE), LIBRARY, "<frozen"))


def _is_torchs(function: Any) -> bool:
    """Whether a function is torch's; numpy's `softmax` would be somebody else's."""
    if code := getattr(function, "__code__", None):  # a learner's file may be called torch.py
        return code.co_filename.startswith(TORCH)
    owner = getattr(function, "__self__", None)
    return isinstance(owner, torch.Tensor | nn.Module) or "torch" in (
        getattr(function, "__module__", None) or str(owner)
    )


def _refuse(thing: str, name: str) -> None:
    way = WAYS.get(name.lower(), "Write that yourself.")
    claim, expected = "The values are right, but the code is not from scratch yet.", "your own code"
    mistake = f"{INSTEAD} {way}" if "torch" in thing else OURS
    raise Wrong(claim, expected=Prose(expected), got=Prose(thing), mistake=mistake)
