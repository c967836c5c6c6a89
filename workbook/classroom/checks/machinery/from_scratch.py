"""What a right solution takes ready-made from torch or this package, but should write itself.

Only what really runs counts. One call is made under a profiler, which sees every Python function
that the learner's own lines call, and in a mode of torch, which sees its functions in C, whoever
calls them: the learner's lines, `map` or a `partial`.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from workbook.classroom.checks.machinery.verdicts import Findings, Prose, Wrong, is_learners
from workbook.config import PACKAGE

TORCH = str(Path(torch.__file__).parent)
OPS = str(Path(TORCH, "_ops.py"))  # where `torch.ops.aten.softmax` is called
OPTIMIZERS = str(Path(TORCH, "optim"))
BASES = ("optimizer.py", "lr_scheduler.py", "sgd.py")
# Code that calls an attempt or watches it, and contains nothing that learners are to write.
CALLERS = str(PACKAGE / "classroom"), str(PACKAGE / "bench")
# What learners are to write, as patterns of names. Others, such as `one_hot` and `pad`, are only
# helpers.
MODULES = (
    "(Lazy)?Linear|Bilinear|Embedding(Bag)?|RMSNorm|LayerNorm|SiLU|Sigmoid|GELU|GLU|(Log)?Softmax|"
    "MultiheadAttention|TransformerEncoderLayer|CrossEntropyLoss|NLLLoss"
)
# Without the underscores that torch puts around some of them.
ANYWHERE = (
    "linear|bilinear|embedding|((gumbel|log)_)?softmax|softmin|silu|gelu|glu|rms_norm|layer_norm|"
    "normalize|scaled_dot_product_attention|flex_attention|multi_head_attention_forward|"
    "cross_entropy|nll_loss|clip_grad_norm|get_total_norm|clip_grads_with_norm|log_prob"
)
FUNCTIONS = f"{ANYWHERE}|sigmoid"
# In C, and as methods of tensors: but `torch.sigmoid` is allowed.
BUILTINS = f"{ANYWHERE}|cross_entropy_loss|fused_adamw?"
INSTEAD = (
    "Here, from scratch means: from `torch.nn` only `Module`, `Parameter`, containers and "
    "`nn.init.trunc_normal_`, from `torch.optim` only `Optimizer`, no function that does it all."
)
NOT_YOURS = (
    "Hand in what you wrote yourself: the workbook's own code is there only to compare with."
)
WAYS = {
    "linear": "A Parameter and a matmul with `@` or an einsum do it.",
    "embedding": "A Parameter and indexing do it: `weight[token_ids]`.",
    "silu": "`x * torch.sigmoid(x)` does it.",
    "softmax": "A softmax of your own, made of `exp` and a sum, does it.",
}


def expect_from_scratch(
    run: Callable[[], Any], made: Iterable[Any], allowed: Collection[str] = ()
) -> None:
    """Raise `Wrong` for what is ready-made and should have been written.

    Args:
        run: makes one call of the attempt, which is right.
        made: what the attempt consists of: itself, and the modules inside it.
        allowed: names of what belongs to an earlier problem, and may be used in this one.
    """
    for part in made:
        kind_of_part = part if isinstance(part, type) else type(part)
        for kind in (part, *kind_of_part.__mro__):
            module = str(getattr(kind, "__module__", None) or "")
            name = getattr(kind, "__name__", "")
            is_module = module.startswith("torch.nn.modules") and re.fullmatch(MODULES, name)
            if is_module or (module.startswith("torch.optim.") and name != "Optimizer"):
                _refuse(f"`{'.'.join(module.split('.')[:2])}.{name}`", name)
            if module.startswith("workbook.") and not module.startswith("workbook.classroom.mine."):
                _refuse(f"`{module}.{name}`, the workbook's own", name)
    for thing, name in _ready_made(run).items():
        if name not in allowed:
            _refuse(thing, name)


def check_style(
    findings: Findings, run: Callable[[], Any], made: Iterable[Any], allowed: Collection[str] = ()
) -> None:
    """Find what is ready-made in an attempt that is right otherwise: see `expect_from_scratch`."""
    if not findings:
        with findings("style"):
            expect_from_scratch(run, made, allowed)


def _ready_made(run: Callable[[], Any]) -> dict[str, str]:
    """What the learner's lines call that is ready-made: its bare name, by what is said of it."""
    seen: dict[str, str] = {}

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event != "call" or not _is_theirs(_caller(frame)):
            return
        code = frame.f_code
        path = code.co_filename
        name = code.co_name.strip("_")
        if path == OPS and name == "call":
            name = vars(frame.f_locals["self"]).get("__name__", "").partition(".")[0].strip("_")
        known = BUILTINS if path == OPS else FUNCTIONS
        if path.startswith(TORCH) and re.fullmatch(known, name):
            seen[f"`torch`'s ready `{name}`"] = name
        elif path.startswith(OPTIMIZERS) and not path.endswith(BASES):
            seen[f"`torch.optim`'s ready `{code.co_qualname}`"] = name
        elif path.startswith(str(PACKAGE)) and not path.startswith(CALLERS):
            seen[f"`{code.co_qualname}`, the workbook's own"] = name

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        with _InC(seen):
            run()
    except Exception:  # it ran before: whatever this is, it comes from the profiler or the mode
        return {}
    finally:
        sys.setprofile(before)
    return seen


class _InC(TorchFunctionMode):
    """Notes which of torch's functions in C are called while a learner's line runs."""

    def __init__(self, seen: dict[str, str]):
        super().__init__()
        self.seen = seen

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "").removeprefix("special_").strip("_")
        if re.fullmatch(BUILTINS, name) and _is_theirs(sys._getframe(1)):
            self.seen[f"`torch`'s ready `{name}`"] = name
        return function(*args, **(kwargs or {}))


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
        return path != __file__
    return is_learners(path) and not path.startswith(TORCH)


def _refuse(thing: str, name: str) -> None:
    way = WAYS.get(name.lower(), "Write that yourself.")
    raise Wrong(
        "The values are right, but the code is not from scratch yet.",
        expected=Prose("your own code"),
        got=Prose(thing),
        mistake=f"{INSTEAD} {way}" if "torch" in thing else NOT_YOURS,
    )
