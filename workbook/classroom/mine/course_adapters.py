"""The functions of the course's `tests/adapters.py`: each is a few lines that call a part.

Here the parts are ours, so these functions are what a learner's adapters are compared with. The
text of the same functions is what `workbook export --adapters` writes: there each one begins with
an import of the learner's part, under the name that it has here.
"""

from workbook.optimizer import AdamW
from workbook.optimizer import clip_gradients as clip
from workbook.optimizer import cosine_schedule as schedule
from workbook.tokenization import Tokenizer, train_bpe
from workbook.training import get_batch, load_checkpoint, save_checkpoint
from workbook.transformer import Embedding, Linear, RMSNorm, RotaryPositionalEmbedding, SwiGLU
from workbook.transformer.model import MultiHeadSelfAttention, TransformerBlock, TransformerLM
from workbook.transformer.nn import cross_entropy, scaled_dot_product_attention, silu, softmax


def loaded(module, weights):
    """The module with weights by the course's names; a lone weight may have any name."""
    own = module.state_dict()
    if len(own) == len(weights) == 1:
        weights = dict(zip(own, weights.values(), strict=True))
    # A name that the module lacks is an error. What the course has no name for, such as a saved
    # table of RoPE, stays as it is.
    module.load_state_dict({**own, **weights})
    return module


def projections(*weights):
    """The weights of an attention by the course's names: of q, k, v and the output."""
    names = ("q_proj", "k_proj", "v_proj", "output_proj")
    return {f"{name}.weight": weight for name, weight in zip(names, weights, strict=True)}


def run_linear(d_in, d_out, weights, in_features):
    return loaded(Linear(d_in, d_out), {"weight": weights})(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    return loaded(Embedding(vocab_size, d_model), {"weight": weights})(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    weights = {"w1.weight": w1_weight, "w2.weight": w2_weight, "w3.weight": w3_weight}
    return loaded(SwiGLU(d_model, d_ff), weights)(in_features)


def run_scaled_dot_product_attention(Q, K, V, mask=None):
    return scaled_dot_product_attention(Q, K, V, mask)


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    weights = projections(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return loaded(MultiHeadSelfAttention(d_model, num_heads), weights)(in_features)


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
    weights = projections(q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    attention = MultiHeadSelfAttention(d_model, num_heads, max_seq_len, theta)
    return loaded(attention, weights)(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    return RotaryPositionalEmbedding(theta, d_k, max_seq_len)(in_query_or_key, token_positions)


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    block = TransformerBlock(d_model, num_heads, d_ff, max_seq_len, theta)
    return loaded(block, weights)(in_features)


def run_transformer_lm(
    vocab_size,
    context_length,
    d_model,
    num_layers,
    num_heads,
    d_ff,
    rope_theta,
    weights,
    in_indices,
):
    sizes = vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta
    return loaded(TransformerLM(*sizes), weights)(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    return loaded(RMSNorm(d_model, eps), {"weight": weights})(in_features)


def run_silu(in_features):
    return silu(in_features)


def run_get_batch(dataset, batch_size, context_length, device):
    return get_batch(dataset, batch_size, context_length, device)


def run_softmax(in_features, dim):
    return softmax(in_features, dim)


def run_cross_entropy(inputs, targets):
    return cross_entropy(inputs, targets)


def run_gradient_clipping(parameters, max_l2_norm):
    clip(parameters, max_l2_norm)


def get_adamw_cls():
    return AdamW


def run_get_lr_cosine_schedule(
    it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
):
    return schedule(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters)


def run_save_checkpoint(model, optimizer, iteration, out):
    save_checkpoint(model, optimizer, iteration, out)


def run_load_checkpoint(src, model, optimizer):
    return load_checkpoint(src, model, optimizer)


def get_tokenizer(vocab, merges, special_tokens=None):
    return Tokenizer(vocab, merges, special_tokens)


def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    return train_bpe(input_path, vocab_size, special_tokens)
