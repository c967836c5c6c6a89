"""Which of the course's weights a learner's parameter is, told by its name.

The course's names always work. Others are understood where they say the same: `wq` or `query` for
`q_proj`, `norm1` for `ln1`. Several parameters may share one weight, as a list of heads does, and
one may hold several, as a fused `qkv` does.
"""

import re
from collections.abc import Collection
from typing import NamedTuple


class Place(NamedTuple):
    """A weight by the block that it is in (None outside) and the last part of its name."""

    layer: int | None
    leaf: str


_BEFORE = r"(?:(?:w|to|lin|linear|proj|attn|mha)_?)?"
_AFTER = r"(?:_?(?:w|weights?|proj|projection|lin|linear|layer|heads?|matrix))?"
_NORM = r"(?:ln|norm|rms|rms_?norm|layer_?norm)"
_ATTENTION = r"(?:self_)?(?:attn|attention|mha|mhsa|msa|sa|input)"
_FEED_FORWARD = r"(?:ffn?|mlp|feed_?forward|post_attention|swiglu)"
LEAVES = {
    "qkv": rf"{_BEFORE}(?:fused_|combined_)?qkv{_AFTER}|query_key_value|c_attn|in_proj(?:_weight)?",
    "kv": rf"{_BEFORE}kv{_AFTER}",
    "q_proj": rf"{_BEFORE}(?:q|query|queries){_AFTER}",
    "k_proj": rf"{_BEFORE}(?:k|keys?){_AFTER}",
    "v_proj": rf"{_BEFORE}(?:v|values?){_AFTER}",
    "output_proj": rf"{_BEFORE}(?:o|out|output){_AFTER}|(?:c_)?proj|projection|dense",
    "w13": r"w_?13|w_?1_?w_?3|gate_up(?:_proj)?|up_gate(?:_proj)?",
    "w1": r"(?:w|fc|lin|linear|l)_?1|gate(?:_proj)?|w_gate",
    "w2": r"(?:w|fc|lin|linear|l)_?2|down(?:_proj)?|w_down",
    "w3": r"(?:w|fc|lin|linear|l)_?3|up(?:_proj)?|w_up",
    "ln1": rf"{_NORM}_?1|(?:pre_)?{_ATTENTION}_?{_NORM}|{_NORM}_?{_ATTENTION}",
    "ln2": rf"{_NORM}_?2|(?:pre_)?{_FEED_FORWARD}_?{_NORM}|{_NORM}_?{_FEED_FORWARD}",
    "ln_final": rf"{_NORM}_?(?:f|final|out|last)?|(?:f|final|last|out|output)_?{_NORM}",
    "lm_head": rf"(?:lm_?)?head|un_?embed.*|{_BEFORE}(?:out|output|logits|vocab){_AFTER}|linear",
    "token_embeddings": r".*emb.*|wte|tok.*",
}
# What may be in a part of the block that says by its name what it is.
INSIDE = {
    _ATTENTION: {"qkv", "kv", "q_proj", "k_proj", "v_proj", "output_proj", "ln1"},
    _FEED_FORWARD: {"w13", "w1", "w2", "w3", "ln2"},
}
HOLDS = {"qkv": ("q_proj", "k_proj", "v_proj"), "kv": ("k_proj", "v_proj"), "w13": ("w1", "w3")}


def place(name: str) -> Place:
    """Where a name of the course belongs: `layers.0.attn.q_proj.weight` is q_proj in block 0."""
    parts = name.removesuffix(".weight").split(".")
    layer = int(parts[1]) if parts[0] == "layers" else None
    return Place(layer, parts[-1])


def layer_of(name: str, wanted: Collection[Place]) -> int | None:
    """The block that a learner's parameter is in: the first number in its name."""
    numbers = [part for part in name.split(".") if part.isdigit()]
    in_blocks = any(place.layer is not None for place in wanted)
    return int(numbers[0]) if numbers and in_blocks else None


def place_of_learners(name: str, wanted: Collection[Place]) -> Place | None:
    """Where a learner's name belongs among the wanted places; None where it says nothing."""
    parts = name.lower().split(".")
    layer = layer_of(name, wanted)
    there = {other.leaf for other in wanted if other.layer == layer}
    for kind, leaves in INSIDE.items():
        if any(re.fullmatch(kind, part) for part in parts[:-1]):
            there &= leaves
    for part in reversed(parts):
        for leaf, pattern in LEAVES.items():
            if there.issuperset(HOLDS.get(leaf, (leaf,))) and re.fullmatch(pattern, part):
                return Place(layer, leaf)
    return None
