"""What an answer takes for granted, as fields with names, and what else is often assumed.

`asked` returns the assumptions that a problem states. A `Switch` changes one of them: flip it, and
`answers` has the number that comes out. `explain` tries each switch, and those in `COMBINED`, until
someone's number comes out.
"""

from dataclasses import dataclass
from typing import Any

from workbook.accounting.training import ASKED_DEVICES, DEVICES
from workbook.config import GPT2_SHAPES, Edition


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Everything that the numbers of the two accounting problems depend on."""

    # The model
    size: str = "xl"  # of GPT-2
    context_length: int = 1_024
    matrices: int = 3  # of the feed-forward layer: SwiGLU has three
    d_ff: str = "4"  # the inner width: "4", "64" or "8/3", as in `SWITCHES`, or "6400"
    embeddings: str = "separate"  # or "tied", or "none" of the two counted
    positions: bool = False  # a learned table of positions
    biases: bool = False  # of the linear layers and norms, as in GPT-2 itself
    norms: str = "all"  # that are counted: "all", "no final", "none"
    # Matmuls
    scores: str = "both"  # matmuls of T × T counted: "both", "one", "half", "none"
    head: bool = True  # the matmul with the head is counted
    projections: int = 4  # of Q, K, V and the output
    multiply_add: int = 2  # FLOPs of a multiplication with its addition
    every_block: bool = True  # or only one
    by_parameters: bool = False  # 2·P FLOPs per token instead of the matmuls
    # Memory
    number_bytes: int = 4
    copies: int = 4  # of the parameters' size: parameters, gradients, two moments
    maps: int = 2  # of T × T that a head keeps
    residual_copies: int = 0  # kept in addition to the results, for each half of a block
    embedding_output: bool = False  # kept
    logits: int = 2  # tensors of B × T × V that are kept
    rounding: str = "down"  # of the batch
    # AdamW
    moments: tuple[int, int] = (3, 4)  # FLOPs of the two moments, for a parameter
    bias_corrections: int = 0  # FLOPs more than with both folded into the step size
    epsilon: bool = True  # its addition is counted
    decay: int = 2  # FLOPs of the weight decay
    # Time
    backward: int = 2  # forward passes that a backward pass costs
    device: str = "A100 float32"
    utilisation: float = 0.5
    batch: int = 1_024


@dataclass(frozen=True)
class Switch:
    """Another value of one assumption, and its meaning in words: "the final norm is left out"."""

    field: str
    value: Any
    words: str


SWITCHES = (
    Switch("matrices", 2, "the feed-forward layer has two matrices (no W3)"),
    Switch("matrices", 3, "the feed-forward layer has three matrices (SwiGLU)"),
    Switch("d_ff", "4", "d_ff is 4·d_model"),
    Switch("d_ff", "64", "d_ff is the multiple of 64 nearest to 8/3·d_model"),
    Switch("d_ff", "8/3", "d_ff is 8/3·d_model (not a multiple of 64)"),
    Switch("d_ff", "6400", "d_ff is left at 6,400 (XL's)"),
    Switch("embeddings", "tied", "embedding and head share one matrix (or only one counts)"),
    Switch("embeddings", "none", "embedding and head are both left out"),
    Switch("positions", True, "a learned table of positions is counted in"),
    Switch("biases", True, "biases are counted in (GPT-2 has them)"),
    Switch("norms", "no final", "the final norm is left out"),
    Switch("norms", "none", "the norms are left out"),
    Switch("scores", "none", "the scores and weighted sums (T × T) are left out"),
    Switch("scores", "one", "one of the two matmuls of T × T is left out"),
    Switch("scores", "half", "only the half of the scores that the mask lets through is counted"),
    Switch("head", False, "the head is left out"),
    Switch("projections", 3, "the output projection is left out"),
    Switch("projections", 2, "Q, K and V are counted as one matmul"),
    Switch("multiply_add", 1, "a multiplication and its addition are counted as one FLOP"),
    Switch("every_block", False, "only one block is counted"),
    Switch("by_parameters", True, "each parameter counts 2 FLOPs per token (6·P in training)"),
    Switch("number_bytes", 2, "a number takes 2 bytes (half precision)"),
    Switch("copies", 4, "gradients and optimizer state are counted in"),
    Switch("copies", 1, "gradients and optimizer state are left out"),
    Switch("copies", 2, "the optimizer state is left out"),
    Switch("copies", 3, "the gradients (or one of the two moments) are left out"),
    Switch("maps", 1, "only one map of T × T is kept per head"),
    Switch("maps", 3, "three maps of T × T are kept per head"),
    Switch("residual_copies", 1, "copies for the residual additions are kept too"),
    Switch("embedding_output", True, "the embedding's output is kept too"),
    Switch("logits", 1, "one tensor of B × T × V is kept (not both logits and cross-entropy)"),
    Switch("rounding", "up", "the batch is rounded up"),
    Switch("moments", (2, 3), "a multiplication with its addition counts once in the moments"),
    Switch("bias_corrections", 1, "both bias corrections are counted (α folded into one)"),
    Switch("bias_corrections", 2, "both bias corrections are counted (and α separately)"),
    Switch("epsilon", False, "the addition of ε is not counted"),
    Switch("decay", 0, "the weight decay is left out"),
    Switch("decay", 3, "α·λ is multiplied again for each parameter"),
    Switch("backward", 2, "the backward pass is counted in"),
    Switch("backward", 1, "the backward pass costs only one forward pass"),
    Switch("backward", 0, "the backward pass is left out"),
    Switch("context_length", 1_024, "the context is left at 1,024"),
    Switch("utilisation", 1.0, "the device reaches its whole peak"),
    Switch("batch", 1, "only one sequence per step is counted"),
    *(Switch("device", name, f"the peak FLOP/s are those of {name}") for name in DEVICES),
    *(Switch("size", size, f"the size is that of GPT-2 {size}") for size in GPT2_SHAPES),
)

# What people change together; each is a choice of one view of the model, and any part of it counts.
COMBINED: tuple[dict[str, Any], ...] = (
    # GPT-2 as it was published
    {"matrices": 2, "embeddings": "tied", "positions": True, "biases": True},
    # The matrices of the blocks alone, with the width of XL for every size
    {"matrices": 2, "d_ff": "6400", "scores": "none", "head": False},
    {"by_parameters": True, "embeddings": "tied"},
    # What the course leaves open: the activations that are kept, and AdamW's operations
    {"matrices": 3, "maps": 1, "residual_copies": 1, "embedding_output": True},
    {"moments": (2, 3), "bias_corrections": 1, "epsilon": False, "decay": 3},
    {"moments": (2, 3), "bias_corrections": 2, "epsilon": False, "decay": 3},
)

# The assumptions that each part depends on, in the order in which they are tried.
_WIDTHS = ("matrices", "d_ff")
_PARAMETERS = (*_WIDTHS, "embeddings", "positions", "biases", "norms")
_BYTES = (*_PARAMETERS, "number_bytes", "copies")
_COUNTED = ("scores", "head", "projections", "multiply_add", "every_block", "by_parameters")
_MATMULS = (*_WIDTHS, *_COUNTED)
_PASSES = (*_MATMULS, "embeddings", "backward")
_KEPT = ("maps", "residual_copies", "embedding_output", "logits")
_ADAMW = ("moments", "bias_corrections", "epsilon", "decay")
FIELDS = {
    ("transformer_accounting", "a"): (*_BYTES, "size"),
    ("transformer_accounting", "b"): (*_PASSES, "size"),
    ("transformer_accounting", "c"): _MATMULS,
    ("transformer_accounting", "d"): _MATMULS,
    ("transformer_accounting", "e"): (*_PASSES, "context_length"),
    ("adamwAccounting", "a"): _BYTES,
    ("adamwAccounting", "b"): ("rounding", *_KEPT, *_BYTES),
    ("adamwAccounting", "c"): (*_ADAMW, *_WIDTHS, "embeddings"),
    ("adamwAccounting", "d"): (*_PASSES, "utilisation", "device", "batch"),
}


def asked(problem: str, part: str, edition: Edition, size: str = "xl") -> Assumptions:
    """The assumptions that a part of a problem states; `size` is one of GPT-2's.

    For sizes other than XL the problem gives no d_ff: they follow the rule behind XL's.
    """
    training = problem == "adamwAccounting"
    return Assumptions(
        size=size,
        context_length=16_384 if (problem, part) == ("transformer_accounting", "e") else 1_024,
        matrices=2 if training and edition == "2025" else 3,
        d_ff={"2025": "4", "2026": "64"}[edition],
        device=ASKED_DEVICES[edition],
        # One problem asks about a forward pass and what is loaded, the other about training.
        backward=2 if training else 0,
        copies=4 if training else 1,
    )


def switches(problem: str, part: str, base: Assumptions) -> list[Switch]:
    """The other values of every assumption that a part depends on."""
    fields = FIELDS[problem, part]
    chosen = [switch for field in fields for switch in SWITCHES if switch.field == field]
    return [switch for switch in chosen if _means_something(switch, base)]


def _means_something(switch: Switch, base: Assumptions) -> bool:
    """Whether a switch differs from all others, given what the problem states."""
    if switch.value == getattr(base, switch.field):
        return False
    if switch.value == "6400":  # for XL it is 4·d_model, and another switch
        return base.size != "xl"
    # If nothing is trained, one may count as if it were, but nothing in between.
    in_training = switch.field in ("backward", "copies") and base.backward == 0
    return not in_training or (switch.field, switch.value) in (("backward", 2), ("copies", 4))
