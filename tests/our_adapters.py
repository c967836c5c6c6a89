"""The course's adapters of our own parts: what those of a learner are compared with."""

from transformer import test_adapters as ours
from transformer.test_adapters import (  # noqa: F401 - they are adapters
    run_cross_entropy,
    run_embedding,
    run_linear,
    run_rmsnorm,
    run_rope,
    run_scaled_dot_product_attention,
    run_silu,
    run_softmax,
    run_swiglu,
    run_transformer_block,
    run_transformer_lm,
)

from workbook.optimizer import optimizers
from workbook.tokenization.bpe import train_bpe as run_train_bpe  # noqa: F401
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training.checkpoints import load_checkpoint as run_load_checkpoint  # noqa: F401
from workbook.training.checkpoints import save_checkpoint as run_save_checkpoint  # noqa: F401
from workbook.training.data import get_batch as run_get_batch  # noqa: F401

get_tokenizer = Tokenizer
run_gradient_clipping = optimizers.clip_gradients
run_get_lr_cosine_schedule = optimizers.cosine_schedule


def get_adamw_cls():
    return optimizers.AdamW


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    four = q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight
    return ours.run_multihead_self_attention(d_model, num_heads, *four, in_features)


def run_multihead_self_attention_with_rope(
    d_model,
    num_heads,
    max_seq_len,
    theta,
    q_proj_weight,
    k_proj_weight,
    v_proj_weight,
    o_proj_weight,
    in_features,
    token_positions=None,
):
    sizes = d_model, num_heads, max_seq_len, theta
    four = q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight
    run = ours.run_multihead_self_attention_with_rope
    return run(*sizes, *four, in_features, token_positions)
