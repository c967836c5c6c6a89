"""The tensors a forward pass keeps for the backward pass: in our code and in the handout's list.

Autograd keeps a tensor where the derivative of a step needs it. The same tensor is kept once,
however many steps need it, and parameters are there anyway. `saved_activations` follows our two
sets of parts, `nn` and `fused`, to the byte; `handout_activations` is the list that the problem
gives.
"""

from workbook.accounting.sizes import ATTENTION, FFN, NORM, CostTable, Term, computed
from workbook.config import ModelConfig

STREAM, LOSS = "residual stream", "loss"


def saved_activations(config: ModelConfig, batch_size: int) -> CostTable:
    """The bytes that a forward pass and its loss keep, in float32, by tensor.

    `config.kernels` says which parts are meant. Fused attention is one kernel, as on a CPU or an
    NVIDIA GPU: instead of keeping the attention weights it computes them again.
    """
    L = config.num_layers
    # The vectors that a block reads or normalises, two per block, and the last ones; with post-norm
    # these are outputs of norms, but the input of the first block is not.
    # A float32 takes 4 bytes, hence the 4 in each formula; an id is an int64 and takes 8.
    terms = [("token ids", STREAM, "8·B·T", 1)]
    if config.norm == "post":
        terms += [("residual stream", STREAM, "4·B·T·d", 2 * L)]
        terms += [("embedded ids", STREAM, "4·B·T·d", 1)]
    else:
        terms += [("residual stream", STREAM, "4·B·T·d", 2 * L + 1)]
    terms += _norm("ln1", config, L) + _attention(config)
    terms += _norm("ln2", config, L) + _feed_forward(config)
    terms += _norm("ln_final", config, 1) + _loss(config)
    return computed(terms, config, batch_size)


def _norm(name: str, config: ModelConfig, times: int) -> list[Term]:
    """1 / root mean square, scaled vectors and the result; the input is the residual stream."""
    if name not in config.norms:
        return []
    formulas = {"1 / rms": "4·B·T", "scaled": "4·B·T·d", "result": "4·B·T·d"}
    return [(f"{name}: {tensor}", NORM, formula, times) for tensor, formula in formulas.items()]


def _attention(config: ModelConfig) -> list[Term]:
    """Queries, keys and values, what the softmax keeps, and the joined outputs of the heads.

    The textbook's softmax keeps its input (to find the maximum), the maximum, the powers and their
    sum, and the result. The kernel keeps one number per row and computes the rest again.
    """
    softmax = {"log of the sum of powers": "4·B·h·T"}
    if config.kernels == "textbook":
        softmax = {"mask": "T·T"}  # bools, a byte each
        # One maximum and one sum per row of the T × T scores of a head.
        softmax |= dict.fromkeys(("largest score", "sum of powers"), "4·B·h·T")
        softmax |= dict.fromkeys(("masked scores", "powers", "weights"), "4·B·h·T·T")
    # h heads of width d/h have d values per token, as many as the residual stream.
    formulas = dict.fromkeys("QKV", "4·B·T·d") | softmax | {"heads, joined": "4·B·T·d"}
    return [(name, ATTENTION, formula, config.num_layers) for name, formula in formulas.items()]


def _feed_forward(config: ModelConfig) -> list[Term]:
    """The inner values; the textbook's SiLU keeps the sigmoid too, the kernel does not."""
    names = ["W1 x", "SiLU"]
    if config.kernels == "textbook":
        names.insert(1, "sigmoid")
    if config.ffn == "swiglu":  # a product needs both factors for its derivative, W2 the product
        names += ["W3 x", "SiLU · W3 x"]
    return [(name, FFN, "4·B·T·d_ff", config.num_layers) for name in names]


def _loss(config: ModelConfig) -> list[Term]:
    """Logits, logits less their maximum, and powers in the textbook; log p in the kernel."""
    formulas = {"target ids": "8·B·T"}  # int64
    if config.kernels == "fused":  # the derivative of the loss is p - 1 at the target, else p
        formulas |= {"log probabilities": "4·B·T·V", "sum of the targets' weights": "4"}
    else:
        names = ("logits", "shifted logits", "powers of the loss")
        formulas |= dict.fromkeys(names, "4·B·T·V")
        formulas |= dict.fromkeys(("largest logit", "sum of powers of the loss"), "4·B·T")
    return [(name, LOSS, formula, 1) for name, formula in formulas.items()]


def handout_activations(
    config: ModelConfig,
    *,
    maps: int = 2,
    residual_copies: int = 0,
    embedding_output: bool = False,
    value_bytes: int = 4,
) -> CostTable:
    """The bytes of the activations that `adamwAccounting` lists, by tensor: a result for each step.

    The list is shorter than what our code keeps (no sigmoid, two maps, two tensors of logits).
    People read it differently, and each difference is an argument: how many T × T `maps` a head
    keeps, how many `residual_copies` each half of a block keeps in addition, and whether the
    `embedding_output` is kept. Edition 2025 means a feed-forward layer of two matrices
    (`ffn="silu"`).
    """
    L = config.num_layers
    vectors, inner, logits = (f"{value_bytes}·B·T·{width}" for width in ("d", "d_ff", "V"))
    scores = f"{value_bytes}·B·h·T·T"

    terms: list[Term] = []
    if embedding_output:
        terms += [("embedded ids", STREAM, vectors, 1)]
    if residual_copies:
        terms += [("residual copies", STREAM, vectors, 2 * L * residual_copies)]
    # Per block: 8 vectors of width d (two norms, Q, K, V, weighted sum, two projections' outputs),
    # the maps of each head, and the inner values of the feed-forward layer.
    terms += [("ln1", NORM, vectors, L)]
    terms += [(name, ATTENTION, vectors, L) for name in ("Q", "K", "V")]
    terms += [(name, ATTENTION, scores, L) for name in ("scores", "softmax", "a third map")[:maps]]
    terms += [(name, ATTENTION, vectors, L) for name in ("weighted sum", "output projection")]
    terms += [("ln2", NORM, vectors, L)]
    products = ("W1 x", "SiLU", "W3 x", "SiLU · W3 x")
    terms += [(name, FFN, inner, L) for name in products[: 4 if config.ffn == "swiglu" else 2]]
    terms += [("W2 x", FFN, vectors, L), ("ln_final", NORM, vectors, 1)]
    terms += [(name, LOSS, logits, 1) for name in ("logits", "cross-entropy of the logits")]
    return computed(terms, config)
