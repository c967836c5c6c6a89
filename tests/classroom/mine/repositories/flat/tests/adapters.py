# ruff: noqa: F401 some adapters are imported under their names
from cs336_basics import model as m
from cs336_basics.model import scaled_dot_product_attention as run_scaled_dot_product_attention
from cs336_basics.tokenizer import Tokenizer
from cs336_basics.tokenizer import train_bpe as run_train_bpe
from cs336_basics.training import AdamW, cross_entropy
from cs336_basics.training import get_batch as run_get_batch
from cs336_basics.training import get_lr_cosine_schedule as run_get_lr_cosine_schedule
from cs336_basics.training import gradient_clipping as run_gradient_clipping
from cs336_basics.training import load_checkpoint as run_load_checkpoint
from cs336_basics.training import save_checkpoint as run_save_checkpoint


def run_linear(d_in, d_out, weights, in_features):
    linear = m.Linear(d_in, d_out)
    linear.load_state_dict({"weight": weights})
    return linear(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    embedding = m.Embedding(vocab_size, d_model)
    embedding.load_state_dict({"weight": weights})
    return embedding(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    swiglu = m.SwiGLU(d_model, d_ff)
    swiglu.load_state_dict({"w1.weight": w1_weight, "w2.weight": w2_weight, "w3.weight": w3_weight})
    return swiglu(in_features)


def load_projections(attn, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight):
    attn.q_proj.weight.data.copy_(q_proj_weight)
    attn.k_proj.weight.data.copy_(k_proj_weight)
    attn.v_proj.weight.data.copy_(v_proj_weight)
    attn.output_proj.weight.data.copy_(o_proj_weight)
    return attn


def run_multihead_self_attention(d_model, num_heads, in_features, **weights):
    attn = m.MultiHeadSelfAttention(d_model, num_heads)
    return load_projections(attn, **weights)(in_features)


def run_multihead_self_attention_with_rope(
    d_model, num_heads, max_seq_len, theta, in_features, token_positions=None, **weights
):
    attn = m.MultiHeadSelfAttention(d_model, num_heads, max_seq_len, theta)
    return load_projections(attn, **weights)(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    return m.RotaryPositionalEmbedding(theta, d_k, max_seq_len)(in_query_or_key, token_positions)


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    block = m.TransformerBlock(d_model, num_heads, d_ff, max_seq_len, theta)
    block.load_state_dict(weights)
    return block(in_features)


def run_transformer_lm(weights, in_indices, **sizes):
    lm = m.TransformerLM(**sizes)
    lm.load_state_dict(weights)
    return lm(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    norm = m.RMSNorm(d_model, eps)
    norm.load_state_dict({"weight": weights})
    return norm(in_features)


def run_silu(in_features):
    return m.silu(in_features)


def run_cross_entropy(inputs, targets):
    return cross_entropy(inputs, targets)


def run_softmax(x, dim):
    return m.softmax(x, dim)


def get_adamw_cls():
    return AdamW


def get_tokenizer(vocab, merges, special_tokens=None):
    return Tokenizer(vocab, merges, special_tokens)
