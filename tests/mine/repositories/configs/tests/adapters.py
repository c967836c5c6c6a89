import torch
from cs336_basics.bpe import Tokenizer, Trainer
from cs336_basics.config import BlockConfig, TransformerConfig
from cs336_basics.layers import Embedding, FeedForward, Linear, RMSNorm, Rotary, sdpa, softmax
from cs336_basics.optimizer import AdamW, CosineSchedule, clip_grad_norm
from cs336_basics.train import cross_entropy_loss, get_batch, load_checkpoint, save_checkpoint
from cs336_basics.transformer import SelfAttention, TransformerBlock, TransformerLM

DEVICE = torch.device("cpu")


def run_linear(d_in, d_out, weights, in_features):
    linear = Linear(d_in, d_out, DEVICE)
    linear.load_state_dict({"weight": weights})
    return linear(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    embedding = Embedding(vocab_size, d_model, DEVICE)
    embedding.weight.data = weights
    return embedding(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    ffn = FeedForward(d_ff, d_model, DEVICE)
    ffn.w1.weight.data = w1_weight
    ffn.w2.weight.data = w2_weight
    ffn.w3.weight.data = w3_weight
    return ffn(in_features)


def run_scaled_dot_product_attention(Q, K, V, mask=None):
    return sdpa(Q, K, V, mask)


def _load_attention(attention, q, k, v, o):
    with torch.no_grad():
        attention.q_proj.weight.copy_(q)
        attention.k_proj.weight.copy_(k)
        attention.v_proj.weight.copy_(v)
        attention.output_proj.weight.copy_(o)
    return attention


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    attention = SelfAttention(d_model, num_heads, DEVICE)
    _load_attention(attention, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return attention(in_features)


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
    attention = SelfAttention(d_model, num_heads, DEVICE, max_len=max_seq_len, base=theta)
    _load_attention(attention, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return attention(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    rotary = Rotary(d_k, max_seq_len, theta, DEVICE)
    return rotary(in_query_or_key, token_positions)


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    config = BlockConfig(d_model, num_heads, d_ff, max_seq_len, theta, DEVICE)
    block = TransformerBlock(config)
    block.load_state_dict(weights)
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
    config = TransformerConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        d_ff=d_ff,
        rope_theta=rope_theta,
        device=DEVICE,
    )
    model = TransformerLM(config)
    model.load_state_dict(weights)
    model.eval()
    with torch.no_grad():
        return model(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    norm = RMSNorm(d_model, DEVICE, eps)
    norm.weight.data = weights
    return norm(in_features)


def run_silu(in_features):
    return FeedForward.silu(in_features)


def run_get_batch(dataset, batch_size, context_length, device):
    return get_batch(dataset, batch_size, context_length, device)


def run_softmax(in_features, dim):
    return softmax(in_features, dim)


def run_cross_entropy(inputs, targets):
    return cross_entropy_loss(inputs, targets)


def run_gradient_clipping(parameters, max_l2_norm):
    clip_grad_norm(parameters, max_l2_norm)


def get_adamw_cls():
    return AdamW


def run_get_lr_cosine_schedule(
    it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
):
    schedule = CosineSchedule(
        max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
    )
    return schedule.get_lr(it)


def run_save_checkpoint(model, optimizer, iteration, out):
    return save_checkpoint(model, optimizer, iteration, out)


def run_load_checkpoint(src, model, optimizer):
    return load_checkpoint(src, model, optimizer)


def get_tokenizer(vocab, merges, special_tokens=None):
    return Tokenizer(vocab, merges, special_tokens)


def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    trainer = Trainer(vocab_size, special_tokens)
    return trainer.train(input_path)
