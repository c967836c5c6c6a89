"""Which check belongs to which problem.

A check has the id of its problem for a name. It is called with an attempt, and one of a written
problem also with the part that this is for.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from workbook.classroom.checks import (
    accounting,
    bpe,
    checkpointing,
    data_loading,
    decoding,
    optimizer,
    runs,
    steps,
    tokenizer,
    training_together,
    transformer,
    written,
)

BY_MODULE: dict[ModuleType, tuple[str, ...]] = {
    written: (
        "unicode1",
        "unicode2",
        "train_bpe_tinystories",
        "train_bpe_expts_owt",
        "tokenizer_experiments",
        "learning_rate_tuning",
        "generate",
    ),
    bpe: ("train_bpe",),
    tokenizer: ("tokenizer",),
    transformer: (
        "linear",
        "embedding",
        "rmsnorm",
        "positionwise_feedforward",
        "rope",
        "softmax",
        "scaled_dot_product_attention",
        "multihead_self_attention",
        "transformer_block",
        "transformer_lm",
        "cross_entropy",
    ),
    accounting: ("transformer_accounting", "adamwAccounting"),
    optimizer: ("adamw", "learning_rate_schedule", "gradient_clipping"),
    data_loading: ("data_loading",),
    checkpointing: ("checkpointing",),
    training_together: ("training_together",),
    decoding: ("decoding",),
    runs: (
        "experiment_log",
        "learning_rate",
        "batch_size_experiment",
        "layer_norm_ablation",
        "pre_norm_ablation",
        "no_pos_emb",
        "swiglu_ablation",
        "main_experiment",
        "leaderboard",
    ),
    steps: (
        "encode_utf8",
        "count_pretokens",
        "count_pairs",
        "merge_pair",
        "train_naive",
        "decode_ids",
        "encode_word",
        "split_special",
        "stream_pretokens",
        "momentum",
        "training_loop",
        "accumulate",
    ),
}
CHECKS: dict[str, Callable[..., Any]] = {
    id: getattr(module, id) for module, ids in BY_MODULE.items() for id in ids
}
