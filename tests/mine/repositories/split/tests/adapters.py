from __future__ import annotations

import torch


def run_linear(d_in, d_out, weights, in_features):
    from cs336_basics.layers import Linear

    layer = Linear(d_in, d_out)
    layer.load_state_dict({"W": weights})
    return layer(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    from cs336_basics.layers import Embedding

    layer = Embedding(vocab_size, d_model)
    layer.load_state_dict({"table": weights})
    return layer(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    from cs336_basics.layers import SwiGLU

    layer = SwiGLU(d_model, d_ff)
    layer.load_state_dict({"w1.W": w1_weight, "w2.W": w2_weight, "w3.W": w3_weight})
    return layer(in_features)


def run_scaled_dot_product_attention(Q, K, V, mask=None):
    from cs336_basics.attention import attention

    return attention(Q, K, V, mask)


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    from cs336_basics.attention import CausalMultiHeadAttention as Attention

    layer = Attention(d_model, num_heads)
    weights = {"q": q_proj_weight, "k": k_proj_weight, "v": v_proj_weight, "o": o_proj_weight}
    layer.load_state_dict({f"{name}.W": weight for name, weight in weights.items()})
    return layer(in_features)


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
    from cs336_basics.attention import CausalMultiHeadAttention as Attention

    layer = Attention(d_model, num_heads, max_seq_len=max_seq_len, theta=theta)
    weights = {"q": q_proj_weight, "k": k_proj_weight, "v": v_proj_weight, "o": o_proj_weight}
    layer.load_state_dict({f"{name}.W": weight for name, weight in weights.items()})
    return layer(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    from cs336_basics.layers import RoPE

    return RoPE(d_k, theta, max_seq_len)(in_query_or_key, token_positions)


NAMES = {
    "token_embeddings.weight": "embed.table",
    "layers.": "blocks.",
    "q_proj.weight": "q.W",
    "k_proj.weight": "k.W",
    "v_proj.weight": "v.W",
    "output_proj.weight": "o.W",
    "ln1.weight": "norm1.gain",
    "ln2.weight": "norm2.gain",
    "w1.weight": "w1.W",
    "w2.weight": "w2.W",
    "w3.weight": "w3.W",
    "ln_final.weight": "norm.gain",
    "lm_head.weight": "head.W",
}


def _translated(weights):
    result = {}
    for name, weight in weights.items():
        for theirs, mine in NAMES.items():
            name = name.replace(theirs, mine)
        result[name] = weight
    return result


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    from cs336_basics.transformer import Block

    block = Block(d_model, num_heads, d_ff, max_seq_len=max_seq_len, theta=theta)
    block.load_state_dict(_translated(weights))
    return block(in_features)


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
    from cs336_basics.transformer.lm import LanguageModel

    lm = LanguageModel(
        d_model, num_heads, d_ff, vocab_size, context_length, num_layers, theta=rope_theta
    )
    lm.load_state_dict(_translated(weights))
    return lm(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    from cs336_basics.layers.norm import RMSNorm

    norm = RMSNorm(d_model, eps)
    norm.load_state_dict({"gain": weights})
    return norm(in_features)


def run_silu(in_features: torch.Tensor) -> torch.Tensor:
    from cs336_basics.layers.swiglu import silu

    return silu(in_features)


def run_get_batch(dataset, batch_size, context_length, device):
    from cs336_basics.training.loader import random_batch

    return random_batch(dataset, batch_size, context_length, device)


def run_softmax(in_features, dim):
    from cs336_basics import attention

    return attention.softmax(in_features, dim)


def run_cross_entropy(inputs, targets):
    from cs336_basics.optim import CrossEntropy

    return CrossEntropy()(inputs, targets)


def run_gradient_clipping(parameters, max_l2_norm):
    from cs336_basics.optim import clip_gradients

    clip_gradients(parameters, max_l2_norm)


def get_adamw_cls():
    from cs336_basics import optim

    return optim.AdamW


def run_get_lr_cosine_schedule(
    it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
):
    from cs336_basics.optim.schedule import cosine_lr

    return cosine_lr(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters)


def run_save_checkpoint(model, optimizer, iteration, out):
    from cs336_basics.training.saving import save

    save(model, optimizer, iteration, out)


def run_load_checkpoint(src, model, optimizer):
    from cs336_basics.training.saving import restore

    return restore(src, model, optimizer)


def get_tokenizer(vocab, merges, special_tokens=None):
    from cs336_basics.tokenization import BPETokenizer

    return BPETokenizer(vocab, merges, special_tokens)


def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    from cs336_basics.tokenization import train as train_tokenizer

    return train_tokenizer(input_path, vocab_size, special_tokens, **kwargs)
