"""The two switches of the workbook, profile and edition, the folder its data lives in, and models.

Only this module reads the environment. Everything else takes arguments.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

Edition = Literal["2025", "2026"]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a Transformer language model, and what an ablation changes about it."""

    vocab_size: int  # ids
    context_length: int  # positions
    d_model: int  # width of the residual stream
    num_layers: int  # blocks
    num_heads: int  # a block, each d_model / num_heads wide
    d_ff: int  # inner width of the feed-forward layer
    rope_theta: float = 10_000.0
    norm: Literal["pre", "post", "none"] = "pre"  # where each block normalises
    position: Literal["rope", "none"] = "rope"
    ffn: Literal["swiglu", "silu"] = "swiglu"  # three matrices with a gate, or two
    tie_embeddings: bool = False  # one matrix for the embedding and the head
    kernels: Literal["fused", "textbook"] = "fused"  # the same values: torch's, or written out

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type is int and (type(value) is not int or value < 1):
                raise ValueError(f"{field.name}={value!r} is no positive whole number")
            choices = get_args(field.type)
            if choices and value not in choices:
                raise ValueError(
                    f"{field.name}={value!r} is none of {', '.join(map(repr, choices))}"
                )
        if not self.rope_theta > 0:
            raise ValueError(f"rope_theta={self.rope_theta!r} is not positive; 10,000 is usual")
        check_heads(self.d_model, self.num_heads, rope=self.position == "rope")

    @property
    def d_head(self) -> int:
        """The width of one head."""
        return self.d_model // self.num_heads


def check_heads(d_model: int, num_heads: int, *, rope: bool) -> None:
    """Raise ValueError unless the heads share d_model evenly, for RoPE in pairs of values."""
    if d_model % num_heads:
        lower = d_model // num_heads * num_heads
        near = " or ".join(f"{width:,}" for width in (lower, lower + num_heads) if width)
        raise ValueError(
            f"d_model={d_model} is not a multiple of num_heads={num_heads}; try {near}"
        )
    if rope and d_model // num_heads % 2:
        raise ValueError(
            f"d_model={d_model} gives each of {num_heads} heads {d_model // num_heads} values, and"
            f" RoPE turns them in pairs; try d_model={d_model + num_heads}"
        )


GPT2_SHAPES = {  # num_layers, d_model, num_heads
    "small": (12, 768, 12),
    "medium": (24, 1_024, 16),
    "large": (36, 1_280, 20),
    "xl": (48, 1_600, 25),
}


def gpt2(size: str, edition: Edition, context_length: int = 1_024) -> ModelConfig:
    """The course's model in the shape of a GPT-2: "small", "medium", "large" or "xl".

    The handouts give d_ff for "xl" alone; the rule behind it is taken for the others too.
    """
    if size not in GPT2_SHAPES:
        raise ValueError(f"size {size!r} is none of {', '.join(GPT2_SHAPES)}")
    num_layers, d_model, num_heads = GPT2_SHAPES[size]
    d_ff = {"2025": 4 * d_model, "2026": near_eight_thirds(d_model)}[edition]
    return ModelConfig(
        vocab_size=50_257,
        context_length=context_length,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        d_ff=d_ff,
    )


def near_eight_thirds(d_model: int) -> int:
    """The multiple of 64 nearest to 8/3 d_model: SwiGLU then costs what two matrices of 4 d do.

    >>> near_eight_thirds(512)
    1344
    """
    return max(round(8 / 3 * d_model / 64), 1) * 64


def tinystories() -> ModelConfig:
    """The model that the course trains on TinyStories."""
    return ModelConfig(
        vocab_size=10_000,
        context_length=256,
        d_model=512,
        num_layers=4,
        num_heads=16,
        d_ff=near_eight_thirds(512),
    )


def laptop() -> ModelConfig:
    """A small sister of it, which two cores train in about a minute."""
    return ModelConfig(
        vocab_size=2_048,
        context_length=128,
        d_model=128,
        num_layers=4,
        num_heads=4,
        d_ff=384,
    )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The sizes of one pass through the workbook."""

    name: str
    simple_corpus: str  # plays TinyStories
    web_corpus: str  # plays OpenWebText
    simple_vocab_size: int  # ids, special tokens included
    web_vocab_size: int  # ids, special tokens included
    simple_bytes: int | None  # of the simple corpus, to train tokenizers on; None: all of it
    model: ModelConfig  # that is trained on the simple corpus


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="laptop",
            simple_corpus="stories",
            web_corpus="pydocs",
            simple_vocab_size=2_048,
            web_vocab_size=8_192,
            simple_bytes=5_000_000,
            model=laptop(),
        ),
        Profile(
            name="full",
            simple_corpus="tinystories",
            web_corpus="owt",
            simple_vocab_size=10_000,
            web_vocab_size=32_000,
            simple_bytes=None,
            model=tinystories(),
        ),
    )
}
EDITIONS: tuple[Edition, ...] = ("2025", "2026")


def _choice(variable: str, choices: tuple[str, ...]) -> str:
    """The value of an environment variable, its first choice where it is unset or empty."""
    value = os.environ.get(variable) or choices[0]
    if value not in choices:
        known = ", ".join(choices)
        raise ValueError(f"{variable}={value!r} is none of {known}; unset it or pick one")
    return value


def profile() -> Profile:
    """The profile that `WORKBOOK_PROFILE` names; `laptop` where it is unset."""
    return PROFILES[_choice("WORKBOOK_PROFILE", tuple(PROFILES))]


def edition() -> Edition:
    """The edition of the handout that `WORKBOOK_EDITION` names; `2025` where it is unset."""
    return _choice("WORKBOOK_EDITION", EDITIONS)


def repository() -> Path:
    """The checkout that this package was installed from: it holds `notebooks/` and `data/`."""
    return Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """Where corpora, tokenizers and records live: `WORKBOOK_DATA`, or `data/` in the checkout."""
    return Path(os.environ.get("WORKBOOK_DATA") or repository() / "data")
