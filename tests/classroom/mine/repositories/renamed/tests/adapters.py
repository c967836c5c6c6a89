import torch
from cs336_basics import learn, lm, tok


def run_linear(d_in, d_out, weights, in_features):
    layer = lm.Proj(d_in, d_out)
    layer.kernel.data = weights
    return layer(in_features)


def run_embedding(vocab_size, d_model, weights, token_ids):
    table = lm.TokenTable(vocab_size, d_model)
    table.embeddings.data = weights
    return table(token_ids)


def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    mlp = lm.GatedMLP(d_model, d_ff)
    mlp.gate.kernel.data = w1_weight
    mlp.down.kernel.data = w2_weight
    mlp.up.kernel.data = w3_weight
    return mlp(in_features)


def run_scaled_dot_product_attention(Q, K, V, mask=None):
    return lm.attend(Q, K, V, mask)


def fill_attention(attention, q, k, v, output):
    attention.qkv.kernel.data = torch.cat([q, k, v])
    attention.out.kernel.data = output


def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    attention = lm.Attention(d_model, num_heads)
    fill_attention(attention, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    return attention(in_features)


def run_multihead_self_attention_with_rope(
    d_model, num_heads, max_seq_len, theta, *, in_features, token_positions=None, **weights
):
    rope = lm.RotaryEncoding(theta, d_model // num_heads, max_seq_len)
    attention = lm.Attention(d_model, num_heads, rope)
    fill_attention(attention, *(weights[f"{name}_proj_weight"] for name in "qkvo"))
    return attention(in_features, token_positions)


def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    return lm.RotaryEncoding(theta, d_k, max_seq_len)(in_query_or_key, token_positions)


def fill_layer(layer, weights, prefix=""):
    names = ("q", "k", "v", "output")
    matrices = (weights[f"{prefix}attn.{name}_proj.weight"] for name in names)
    fill_attention(layer.attention, *matrices)
    layer.pre_attention.g.data = weights[prefix + "ln1.weight"]
    layer.pre_mlp.g.data = weights[prefix + "ln2.weight"]
    mlp = {"w1": layer.mlp.gate, "w2": layer.mlp.down, "w3": layer.mlp.up}
    for name, part in mlp.items():
        part.kernel.data = weights[f"{prefix}ffn.{name}.weight"]


def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    rope = lm.RotaryEncoding(theta, d_model // num_heads, max_seq_len)
    layer = lm.Layer(d_model, num_heads, d_ff, rope)
    fill_layer(layer, weights)
    return layer(in_features, torch.arange(in_features.shape[-2]))


def run_transformer_lm(d_model, num_heads, context_length, rope_theta, weights, in_indices, **more):
    vocab_size, num_layers, d_ff = (more[name] for name in ("vocab_size", "num_layers", "d_ff"))
    sizes = vocab_size, context_length, num_layers, d_model, num_heads, d_ff, rope_theta
    model = lm.MyLM(lm.Settings(*sizes))
    lm.Proj(999, 999)
    model.tok_emb.embeddings.data = weights.pop("token_embeddings.weight")
    for i, layer in enumerate(model.blocks):
        fill_layer(layer, weights, prefix=f"layers.{i}.")
    model.final_norm.g.data = weights["ln_final.weight"]
    model.unembed.kernel.data = weights["lm_head.weight"]
    return model(in_indices)


def run_rmsnorm(d_model, eps, weights, in_features):
    norm = lm.Norm(d_model, eps)
    norm.g.data = weights
    return norm(in_features)


def run_silu(in_features):
    return lm.swish(in_features)


def run_get_batch(dataset, batch_size, context_length, device):
    return learn.sample_windows(dataset, batch_size, context_length, device)


def run_softmax(in_features, dim):
    return lm.stable_softmax(in_features, dim)


def run_cross_entropy(inputs, targets):
    return learn.NLL()(inputs, targets)


def run_gradient_clipping(parameters, max_l2_norm):
    learn.clip_(parameters, max_l2_norm)


def get_adamw_cls():
    return learn.Adam


def run_get_lr_cosine_schedule(
    it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
):
    return learn.lr_at(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters)


def run_save_checkpoint(model, optimizer, iteration, out):
    learn.dump(model, optimizer, iteration, out)


def run_load_checkpoint(src, model, optimizer):
    return learn.restore(src, model, optimizer)


def get_tokenizer(vocab, merges, special_tokens=None):
    return tok.BPE(vocab, merges, special_tokens)


def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    return tok.Trainer(vocab_size, special_tokens).train(input_path)
