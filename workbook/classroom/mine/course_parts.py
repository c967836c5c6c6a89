"""The parts that learners write, in one table: what they are called, and what they belong to."""

import re
from typing import NamedTuple


class CoursePart(NamedTuple):
    """One part. The table has it under the problem that asks for it."""

    names: str  # a pattern that is found in the names which learners give it
    adapters: tuple[str, ...]  # functions in the course's `tests/adapters.py`
    rests_on: tuple[str, ...] = ()  # parts: if one is wrong, a wrong verdict on this says nothing
    field: str = ""  # of `training.Parts`, if a run calls it


# From simple to complex: what a simple one uses belongs to it, and what a complex one uses besides
# belongs to that one.
PARTS = {
    "linear": CoursePart("linear", ("run_linear",)),
    "embedding": CoursePart("embed", ("run_embedding",)),
    "rmsnorm": CoursePart("norm", ("run_rmsnorm",)),
    # Not a problem, but what it uses is not SwiGLU.
    "silu": CoursePart("silu|swish|sigmoid", ("run_silu",)),
    "softmax": CoursePart("softmax", ("run_softmax",)),
    "rope": CoursePart("rope|rotr?ary", ("run_rope",)),
    "positionwise_feedforward": CoursePart("glu|ffn|feedforward|mlp", ("run_swiglu",)),
    "scaled_dot_product_attention": CoursePart(
        "scaled|dotp|sdpa|^att", ("run_scaled_dot_product_attention",), ("softmax",)
    ),
    "multihead_self_attention": CoursePart(
        "head|mhs?a|att",
        ("run_multihead_self_attention_with_rope", "run_multihead_self_attention"),
        ("linear", "rope", "scaled_dot_product_attention"),
    ),
    "transformer_block": CoursePart(
        "block|layer|encoder|transformer",
        ("run_transformer_block",),
        ("rmsnorm", "positionwise_feedforward", "multihead_self_attention"),
    ),
    "transformer_lm": CoursePart(
        "(lm|model|gpt|transformer)$",
        ("run_transformer_lm",),
        ("embedding", "transformer_block"),
        "model",
    ),
    "cross_entropy": CoursePart("entropy|loss", ("run_cross_entropy",), field="loss"),
    "adamw": CoursePart("adam", ("get_adamw_cls",), field="optimizer"),
    "learning_rate_schedule": CoursePart(
        "sched|cos|lr|rate|anneal", ("run_get_lr_cosine_schedule",), field="schedule"
    ),
    "gradient_clipping": CoursePart("clip", ("run_gradient_clipping",), field="clipping"),
    "data_loading": CoursePart("batch|load|sample", ("run_get_batch",), field="get_batch"),
    "checkpointing": CoursePart(
        "save|load|checkpoint|ckpt", ("run_save_checkpoint", "run_load_checkpoint")
    ),
    "tokenizer": CoursePart("tokenizer|bpe", ("get_tokenizer",), field="tokenizer"),
    "train_bpe": CoursePart("train|bpe|learn", ("run_train_bpe",)),
    # The course has no adapters for these two.
    "decoding": CoursePart("decod(e|ing)|generat|sample|complet", (), field="decode"),
    "training_together": CoursePart(
        "^(main|(do|start|run)?(pre)?train(ing)?(lm|model|loop|llm|together|run)?)$", ()
    ),
}
# Of the course's 2024 edition: what is other there, by the parts that cannot be judged as ours are.
OTHER_IN_2024 = {
    "rmsnorm": "its norm need not work in half precision",
    "scaled_dot_product_attention": "a mask is True where it hides a key, not where one may look",
    "positionwise_feedforward": "the feed-forward layer has two matrices and a GELU",
    **dict.fromkeys(
        ("multihead_self_attention", "transformer_block", "transformer_lm"),
        "positions are learned, there is dropout, and the feed-forward layer has a GELU",
    ),
    "train_bpe": "special tokens in the text are like any other string",
}
# In what is said of a part that is as that edition wants it.
SAID_OF_2024 = {
    "rmsnorm": "half precision",
    "scaled_dot_product_attention": "mask is inverted",
    "train_bpe": "like ordinary text",
}
PROBLEM_OF = {part.field: problem for problem, part in PARTS.items() if part.field}


def is_named(name: str, problem: str) -> bool:
    """Whether a name, as `calling.plain` has it, is one that learners give this part."""
    return bool(re.search(PARTS[problem].names, name))
