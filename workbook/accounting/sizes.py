"""Parameters by module, and the FLOPs of matmuls forward and backward: from a config.

Symbols as in the handout: B sequences of T tokens, V tokens in the vocabulary, L blocks of width d
with h heads, inner width d_ff. A matmul of (n, k) and (k, m) costs 2·n·k·m FLOPs: a multiplication
and an addition for each of its n·k·m terms. Nothing else is counted: norms, softmax, SiLU and RoPE
need a few operations per value, and a matmul needs hundreds or thousands.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from workbook.config import ModelConfig


@dataclass(frozen=True)
class Row:
    """One thing that is counted. `pandas.DataFrame(table)` shows these fields as columns."""

    name: str  # such as "ffn.w1"
    part: str  # what it belongs to, such as "feed-forward"
    formula: str  # of `each`, in the symbols B T V d d_ff h L
    each: int
    times: int = 1  # a block's rows count once per layer
    total: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.each * self.times)


class CostTable(tuple[Row, ...]):
    """Rows that add up: `.total`, `.by_part()`, `.share(part)`, and `.row(name)`.

    >>> w1, head = Row("w1", "feed-forward", "d·d_ff", 6, times=2), Row("head", "head", "V·d", 4)
    >>> table = CostTable([w1, head])
    >>> table.total, table.row("w1").total, table.by_part(), table.share("head")
    (16, 12, {'feed-forward': 12, 'head': 4}, 0.25)
    """

    def row(self, name: str) -> Row:
        """The row of a name, such as "ffn.w1"."""
        rows = {row.name: row for row in self}
        if name not in rows:
            raise ValueError(f"no row is called {name!r}; the rows are {', '.join(rows)}")
        return rows[name]

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
            raise ValueError(f"no part is called {part!r}; the parts are {', '.join(sums)}")
        return sums[part] / self.total


EMBEDDING, ATTENTION, FFN, NORM, HEAD = "embedding", "attention", "feed-forward", "norms", "head"
PROJECTIONS, SCORES = "projections", "scores + weighted sum"
Term = tuple[str, str, str, int]  # name, part, formula and times of a row still to be computed


def computed(
    terms: Iterable[Term], config: ModelConfig, batch_size: int = 1, seq: int | None = None
) -> CostTable:
    """The table of some terms: the value of each is its formula's, a product such as "4·B·T·d"."""
    symbols = {
        "B": batch_size,
        "T": seq or config.context_length,
        "V": config.vocab_size,
        "d": config.d_model,
        "d_ff": config.d_ff,
        "h": config.num_heads,
        "(d/h)": config.d_head,
    }

    def value(formula: str) -> int:
        # "4·B·T·d" is 4 times three symbols: a factor that is no symbol is a number.
        return math.prod(symbols.get(factor) or int(factor) for factor in formula.split("·"))

    return CostTable(
        Row(name, part, formula, value(formula), times) for name, part, formula, times in terms
    )


def parameters(config: ModelConfig) -> CostTable:
    """The learned numbers by module. Tied embeddings are counted once, at the embedding.

    The names are those of the state dict without the layer's number and ".weight".
    """
    L = config.num_layers
    # One row of width d per entry of the vocabulary.
    terms = [("token_embeddings", EMBEDDING, "V·d", 1), ("ln1", NORM, "d", L)]
    # h heads of width d/h together are as wide as the stream, so each projection is d × d.
    terms += [(f"attn.{name}_proj", ATTENTION, "d·d", L) for name in ("q", "k", "v", "output")]
    terms += [("ln2", NORM, "d", L)]
    terms += [(f"ffn.{name}", FFN, "d·d_ff", L) for name in _matrices(config)]
    terms += [("ln_final", NORM, "d", 1)]
    if not config.tie_embeddings:
        terms += [("lm_head", HEAD, "V·d", 1)]
    terms = [term for term in terms if NORM not in term or term[0] in config.norms]
    return computed(terms, config)


def _matrices(config: ModelConfig) -> tuple[str, ...]:
    """The matrices of the feed-forward layer, in the order of their use."""
    return {"swiglu": ("w1", "w3", "w2"), "silu": ("w1", "w2")}[config.ffn]


def forward_flops(config: ModelConfig, batch_size: int = 1, seq: int | None = None) -> CostTable:
    """The FLOPs of a forward pass by matmul; `seq` is the context length unless given.

    Every score is counted, even those that the causal mask hides: they are all computed.
    """
    L = config.num_layers
    # (B·T × d) times (d × d): 2 FLOPs for each of B·T·d·d terms.
    terms = [(f"attn.{name}_proj", PROJECTIONS, "2·B·T·d·d", L) for name in "qkv"]
    # Per sequence and head (T × d/h)(d/h × T), then (T × T)(T × d/h): the only square of T.
    terms += [(f"attn.{name}", SCORES, "2·B·h·T·T·(d/h)", L) for name in ("scores", "weighted_sum")]
    terms += [("attn.output_proj", PROJECTIONS, "2·B·T·d·d", L)]
    terms += [(f"ffn.{name}", FFN, "2·B·T·d·d_ff", L) for name in _matrices(config)]
    terms += [("lm_head", HEAD, "2·B·T·d·V", 1)]
    return computed(terms, config, batch_size, seq)


def flops_per_token(config: ModelConfig) -> int:
    """The FLOPs of training on one token, forward and backward: 6·N + 12·L·T·d.

    N is the number of parameters that matmuls use: neither the embedding, which is looked up, nor
    the norms. A tied embedding is used in one, at the head.
    Source: Chowdhery et al. 2022 (PaLM), appendix B.
    """
    # 2 FLOPs per parameter and 4·L·T·d for the scores forward; twice that backward.
    return 3 * forward_flops(config).total // config.context_length
