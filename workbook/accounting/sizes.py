"""Parameters by module, and the FLOPs of matmuls forward and backward: from a config.

Symbols as in the handout: B sequences of T tokens, V tokens in the vocabulary, L blocks of width d
with h heads, inner width d_ff. A matmul of (n, k) and (k, m) costs 2·n·k·m FLOPs: a multiplication
and an addition for each of its n·k·m terms. Nothing else is counted: norms, softmax, SiLU and RoPE
need a few operations per value, and a matmul needs hundreds or thousands.
"""

from dataclasses import dataclass, field

from workbook.config import ModelConfig


@dataclass(frozen=True)
class Row:
    """One thing that is counted. `pandas.DataFrame(table)` shows these fields as columns."""

    name: str  # such as "ffn.w1"
    part: str  # what it belongs to, such as "feed-forward"
    formula: str  # of `each`, in the symbols B T V d d_ff h L
    each: int
    times: int = 1  # a block's rows are there once for each layer
    total: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", self.each * self.times)


class Table(tuple):
    """Rows that add up: `.total`, `.by_part()`, `.share(part)`, and a row by its name.

    >>> table = Table([Row("w1", "feed-forward", "d·d_ff", 6, 2), Row("head", "head", "V·d", 4)])
    >>> table.total, table["w1"].total, table.by_part(), table.share("head")
    (16, 12, {'feed-forward': 12, 'head': 4}, 0.25)
    """

    def __getitem__(self, key):
        if not isinstance(key, str):
            return super().__getitem__(key)
        for row in self:
            if row.name == key:
                return row
        raise ValueError(f"no row is called {key!r}; there are {', '.join(r.name for r in self)}")

    @property
    def total(self) -> int:
        """The sum over all rows."""
        return sum(row.total for row in self)

    def by_part(self) -> dict[str, int]:
        """The sum over the rows of each part, in the order of the table."""
        sums: dict[str, int] = {}
        for row in self:
            sums[row.part] = sums.get(row.part, 0) + row.total
        return sums

    def share(self, part: str) -> float:
        """What fraction of the total belongs to a part."""
        sums = self.by_part()
        if part not in sums:
            raise ValueError(f"no part is called {part!r}; there are {', '.join(sums)}")
        return sums[part] / self.total


EMBEDDING, ATTENTION, FFN, NORM, HEAD = "embedding", "attention", "feed-forward", "norms", "head"
PROJECTIONS, SCORES = "projections", "scores"


def parameters(config: ModelConfig) -> Table:
    """The learned numbers by module. Tied embeddings are counted once, at the embedding.

    The names are those of the state dict without the layer's number and ".weight".
    """
    V, d, d_ff, L = config.vocab_size, config.d_model, config.d_ff, config.num_layers
    norms = config.norm != "none"
    rows = [Row("token_embeddings", EMBEDDING, "V·d", V * d)]
    rows += [Row("ln1", NORM, "d", d, L)] * norms
    rows += [
        Row(f"attn.{name}_proj", ATTENTION, "d·d", d * d, L) for name in ("q", "k", "v", "output")
    ]
    rows += [Row("ln2", NORM, "d", d, L)] * norms
    rows += [Row(f"ffn.{name}", FFN, "d·d_ff", d * d_ff, L) for name in _matrices(config)]
    rows += [Row("ln_final", NORM, "d", d)] * norms
    rows += [Row("lm_head", HEAD, "V·d", V * d)] * (not config.tie_embeddings)
    return Table(rows)


def _matrices(config: ModelConfig) -> tuple[str, ...]:
    """The matrices of the feed-forward layer, in the order of their use."""
    return {"swiglu": ("w1", "w3", "w2"), "silu": ("w1", "w2")}[config.ffn]


def forward_flops(config: ModelConfig, batch_size: int = 1, seq: int | None = None) -> Table:
    """The FLOPs of a forward pass by matmul; `seq` is the context length unless given.

    Every score is counted, those that the causal mask hides too: that is how they are computed.
    """
    B, T, h = batch_size, seq or config.context_length, config.num_heads
    V, d, d_ff, L = config.vocab_size, config.d_model, config.d_ff, config.num_layers
    projection = ("2·B·T·d·d", 2 * B * T * d * d, L)
    scores = ("2·B·h·T·T·(d/h)", 2 * B * h * T * T * config.d_head, L)
    feed_forward = ("2·B·T·d·d_ff", 2 * B * T * d * d_ff, L)
    return Table(
        [
            *(Row(f"attn.{name}_proj", PROJECTIONS, *projection) for name in "qkv"),
            Row("attn.scores", SCORES, *scores),
            Row("attn.weighted_sum", SCORES, *scores),
            Row("attn.output_proj", PROJECTIONS, *projection),
            *(Row(f"ffn.{name}", FFN, *feed_forward) for name in _matrices(config)),
            Row("lm_head", HEAD, "2·B·T·d·V", 2 * B * T * d * V),
        ]
    )


def backward_flops(config: ModelConfig, batch_size: int = 1, seq: int | None = None) -> Table:
    """The FLOPs of a backward pass by matmul: exactly twice those of the forward pass.

    For C = A·B it takes two matmuls of the same cost: dA = dC·Bᵀ and dB = Aᵀ·dC.
    """
    forward = forward_flops(config, batch_size, seq)
    return Table(
        Row(row.name, row.part, f"2 × {row.formula}", 2 * row.each, row.times) for row in forward
    )


def flops_per_token(config: ModelConfig, seq: int | None = None) -> int:
    """The FLOPs of training on one token, forward and backward: 6·N + 12·L·T·d.

    N are the parameters that a matmul uses: neither the embedding, which is looked up, nor the
    norms. A tied embedding is used in one, at the head.
    Source: Chowdhery et al. 2022 (PaLM), appendix B.
    """
    T = seq or config.context_length
    return 3 * forward_flops(config, seq=T).total // T
