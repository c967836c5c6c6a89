"""The tensors that a forward pass keeps for the backward pass: in our code, in the handout's list.

Autograd keeps a tensor where the derivative of a step needs it. The same tensor is kept once,
however many steps need it, and parameters are there anyway. `saved_activations` follows our two
sets of parts, `nn` and `fused`, to the byte; `handout_activations` is the list that the problem
gives.
"""

from workbook.accounting.sizes import Row, Table
from workbook.config import ModelConfig

FLOAT, ID, FLAG = 4, 8, 1  # bytes of a float32, an int64 and a bool
STREAM, NORM, ATTENTION, FFN, LOSS = "residual stream", "norms", "attention", "feed-forward", "loss"


def saved_activations(config: ModelConfig, batch_size: int, seq: int | None = None) -> Table:
    """The bytes that a forward pass and its loss keep, in float32, by tensor.

    `config.kernels` says which parts are meant, `seq` is the context length unless given. Fused
    attention is one kernel, as on a CPU or an NVIDIA GPU: instead of keeping the attention weights
    it computes them again.
    """
    kept = _Kept(config, batch_size, seq or config.context_length)
    rows = [Row("token ids", STREAM, "8·B·T", ID * kept.BT)]
    rows += kept.stream()
    for norm, layer in (("ln1", kept.attention()), ("ln2", kept.feed_forward())):
        rows += kept.norm(norm) + layer
    rows += kept.norm("ln_final", final=True) + kept.loss()
    return Table(rows)


class _Kept:
    """The rows of each part of a model. `BT` and the like are how many numbers a tensor has."""

    def __init__(self, config: ModelConfig, batch_size: int, seq: int):
        self.config, self.T = config, seq
        self.fused = config.kernels == "fused"
        self.L = config.num_layers
        self.BT = batch_size * seq
        self.BTd, self.BTf = self.BT * config.d_model, self.BT * config.d_ff
        self.BhT = self.BT * config.num_heads
        self.BhTT = self.BhT * seq

    def row(self, name: str, part: str, formula: str, size: int, times: int | None = None) -> Row:
        return Row(name, part, f"4·{formula}", FLOAT * size, self.L if times is None else times)

    def stream(self) -> list[Row]:
        """The vectors that a block reads or normalises, two per block, and the last ones."""
        count = 2 * self.L + 1 if self.config.norm != "post" else 2 * self.L
        rows = [self.row("residual stream", STREAM, "B·T·d", self.BTd, count)]
        if self.config.norm == "post":  # the input of the first block is no norm's output
            rows.append(self.row("embedded ids", STREAM, "B·T·d", self.BTd, 1))
        return rows

    def norm(self, name: str, final: bool = False) -> list[Row]:
        """1 / root mean square, scaled vectors and the result; the input is the residual stream."""
        if self.config.norm == "none":
            return []
        times = 1 if final else self.L
        wide = [
            self.row(f"{name}: {x}", NORM, "B·T·d", self.BTd, times) for x in ("scaled", "result")
        ]
        return [self.row(f"{name}: 1 / rms", NORM, "B·T", self.BT, times), *wide]

    def attention(self) -> list[Row]:
        """Queries, keys and values, what the softmax keeps, and the joined outputs of the heads.

        The textbook's softmax keeps its input (to find the maximum), the maximum, the powers and
        their sum, and the result. The kernel keeps one number per row and computes the rest again.
        """
        rows = [self.row(name, ATTENTION, "B·T·d", self.BTd) for name in ("Q", "K", "V")]
        if self.fused:
            rows.append(self.row("log of the sum of powers", ATTENTION, "B·h·T", self.BhT))
        else:
            rows.append(Row("mask", ATTENTION, "T·T", FLAG * self.T * self.T, self.L))
            for name in ("largest score", "sum of powers"):
                rows.append(self.row(name, ATTENTION, "B·h·T", self.BhT))
            for name in ("masked scores", "powers", "weights"):
                rows.append(self.row(name, ATTENTION, "B·h·T·T", self.BhTT))
        return [*rows, self.row("heads, joined", ATTENTION, "B·T·d", self.BTd)]

    def feed_forward(self) -> list[Row]:
        """The inner values; the textbook's SiLU keeps the sigmoid too, the kernel does not."""
        names = ["W1 x"] + ["sigmoid"] * (not self.fused) + ["SiLU"]
        if self.config.ffn == "swiglu":
            names += ["W3 x", "SiLU · W3 x"]
        return [self.row(name, FFN, "B·T·d_ff", self.BTf) for name in names]

    def loss(self) -> list[Row]:
        """Logits, logits less their maximum, and powers in the textbook; log p in the kernel."""
        BTV = self.BT * self.config.vocab_size
        maps = ["log probabilities"] if self.fused else ["logits", "shifted logits", "powers"]
        names = {"logits": "logits", "powers": "powers of the loss"}
        rows = [self.row(names.get(name, name), LOSS, "B·T·V", BTV, 1) for name in maps]
        rows.append(Row("target ids", LOSS, "8·B·T", ID * self.BT))
        if self.fused:
            return [*rows, self.row("sum of the targets' weights", LOSS, "1", 1, 1)]
        columns = ("largest logit", "sum of powers of the loss")
        return rows + [self.row(name, LOSS, "B·T", self.BT, 1) for name in columns]


def handout_activations(
    config: ModelConfig,
    batch_size: int = 1,
    *,
    maps: int = 2,
    residual_copies: int = 0,
    embedding_output: bool = False,
    value_bytes: int = FLOAT,
) -> Table:
    """The bytes of the activations that `adamwAccounting` lists, by tensor: a result for each step.

    The list is shorter than what our code keeps (no sigmoid, two maps, two tensors of logits).
    People read it differently, and each difference is an argument: how many T × T `maps` a head
    keeps, how many `residual_copies` each half of a block keeps in addition, and whether the
    `embedding_output` is kept. Edition 2025 means a feed-forward layer of two matrices
    (`ffn="silu"`).
    """
    B, T, h = batch_size, config.context_length, config.num_heads
    d, d_ff, L, V = config.d_model, config.d_ff, config.num_layers, config.vocab_size
    inner = ["W1 x", "SiLU"] + ["W3 x", "SiLU · W3 x"] * (config.ffn == "swiglu")

    def row(name: str, part: str, formula: str, size: int, times: int = L) -> Row:
        return Row(name, part, f"{value_bytes}·{formula}", value_bytes * size, times)

    def wide(name: str, part: str, times: int = L) -> Row:
        return row(name, part, "B·T·d", B * T * d, times)

    rows = [wide("embedded ids", STREAM, 1)] * embedding_output
    rows += [wide("residual copies", STREAM, 2 * L * residual_copies)] * (residual_copies > 0)
    rows += [wide("ln1", NORM), *(wide(name, ATTENTION) for name in ("Q", "K", "V"))]
    rows += [
        row(name, ATTENTION, "B·h·T·T", B * h * T * T)
        for name in ("weights", "scores", "a third map")[:maps]
    ]
    rows += [wide("weighted sum", ATTENTION), wide("output projection", ATTENTION)]
    rows.append(wide("ln2", NORM))
    rows += [row(name, FFN, "B·T·d_ff", B * T * d_ff) for name in inner]
    rows += [wide("W2 x", FFN), wide("ln_final", NORM, 1)]
    rows += [
        row(name, LOSS, "B·T·V", B * T * V, 1) for name in ("logits", "cross-entropy of the logits")
    ]
    return Table(rows)
