"""What the course's adapters return at sizes like those of its own tests.

It also runs where only an exported folder is, without the workbook.
"""

import math
from pathlib import Path

import numpy as np
import torch

V, N, D, L, H, F = 50, 12, 64, 3, 4, 128  # vocabulary, positions, width, layers, heads, inner width
BATCH, HALF = 4, 6


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator) / math.sqrt(shape[-1])


def of_block(seed):
    shapes = {f"attn.{name}_proj": (D, D) for name in ("q", "k", "v", "output")}
    shapes |= {"ln1": (D,), "ffn.w1": (F, D), "ffn.w2": (D, F), "ffn.w3": (F, D), "ln2": (D,)}
    return {
        f"{name}.weight": draw(*shape, seed=seed + i)
        for i, (name, shape) in enumerate(shapes.items())
    }


BLOCK, X = of_block(0), 3 * draw(BATCH, N, D)
MODEL = {
    "token_embeddings.weight": draw(V, D),
    "ln_final.weight": 3 * draw(D),
    "lm_head.weight": draw(V, D, seed=1),
} | {f"layers.{i}.{name}": w for i in range(L) for name, w in of_block(10 * i + 5).items()}
IDS = (torch.arange(BATCH * N) * 7 % V).reshape(BATCH, N)
QKVO = {
    f"{name[0]}_proj_weight": BLOCK[f"attn.{name}_proj.weight"]
    for name in ("q", "k", "v", "output")
}
SIZES = {"d_model": D, "num_heads": H}
LONGEST = {"max_seq_len": N, "theta": 10_000.0}
TEXT = "low low low low low lower lower widest widest widest newest newest newest newest\n"
END = "<|endoftext|>"
SETTINGS = {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.8, 0.95), "eps": 1e-6}
# By adapter, calls that return one tensor or number; what is handed in goes by name.
CALLS = {
    "run_linear": [{"d_in": D, "d_out": F, "weights": BLOCK["ffn.w1.weight"], "in_features": X}],
    "run_embedding": [
        {"vocab_size": V, "d_model": D, "weights": MODEL["lm_head.weight"], "token_ids": IDS}
    ],
    "run_swiglu": [
        {"d_model": D, "d_ff": F, "in_features": X}
        | {f"w{i}_weight": BLOCK[f"ffn.w{i}.weight"] for i in (1, 2, 3)}
    ],
    "run_scaled_dot_product_attention": [
        {"Q": X, "K": X[:, :HALF], "V": draw(BATCH, HALF, D), "mask": X[..., :HALF] > -0.1},
        {"Q": X, "K": X, "V": X},
    ],
    "run_multihead_self_attention": [{**SIZES, **QKVO, "in_features": X}],
    "run_multihead_self_attention_with_rope": [
        {**SIZES, **LONGEST, **QKVO, "in_features": X, **positions}
        for positions in ({}, {"token_positions": torch.arange(N)[None]})
    ],
    "run_rope": [
        {"d_k": D, **LONGEST, "in_query_or_key": X, "token_positions": torch.arange(N)}
    ],
    "run_transformer_block": [
        {**SIZES, "d_ff": F, **LONGEST, "weights": BLOCK, "in_features": X}
    ],
    "run_transformer_lm": [
        {"vocab_size": V, "context_length": N, **SIZES, "num_layers": L, "d_ff": F}
        | {"rope_theta": 500.0, "weights": MODEL, "in_indices": ids}
        for ids in (IDS, IDS[:, :HALF].contiguous())
    ],
    "run_rmsnorm": [
        {"d_model": D, "eps": 0.1, "weights": BLOCK["ln1.weight"], "in_features": X}
    ],
    "run_silu": [{"in_features": X}],
    "run_softmax": [{"in_features": 9 * X, "dim": 1}],
    "run_cross_entropy": [{"inputs": 9 * X[0], "targets": IDS[0]}],
    "run_get_lr_cosine_schedule": [
        {"it": it, "max_learning_rate": 1, "min_learning_rate": 0.1}
        | {"warmup_iters": 7, "cosine_cycle_iters": 21}
        for it in (1, 5, 7, 12, 21, 30)
    ],
}  # fmt: skip


def clipped(adapters, folder):
    parameters = [torch.nn.Parameter(draw(5, seed=i)) for i in range(3)]
    for i, parameter in enumerate(parameters[:2]):
        parameter.grad = 3 * draw(5, seed=10 + i)
    adapters.run_gradient_clipping(parameters, 0.5)
    return [parameter.grad for parameter in parameters[:2]]


def optimized(adapters, steps=3):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    optimizer = adapters.get_adamw_cls()(model.parameters(), **SETTINGS)
    for i in range(steps):
        optimizer.zero_grad()
        model(draw(4, 3, seed=i)).square().sum().backward()
        optimizer.step()
    return model, optimizer


def stepped(adapters, folder):
    return [p.detach() for p in optimized(adapters)[0].parameters()]


def restored(adapters, folder):
    torch.manual_seed(0)
    model, new = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    optimizer, other = (torch.optim.AdamW(net.parameters()) for net in (model, new))
    path = Path(folder, "saved.pt")
    adapters.run_save_checkpoint(model, optimizer, 7, path)
    iteration = adapters.run_load_checkpoint(path, new, other)
    return [iteration, new.weight.detach() - model.weight.detach()]


def batches(adapters, folder):
    options = {"batch_size": 8, "context_length": 5, "device": "cpu"}
    inputs, targets = adapters.run_get_batch(np.arange(50), **options)
    return [inputs.shape, targets.shape, (targets - inputs).float()]


def trained(adapters, folder):
    path = Path(folder, "text.txt")
    path.write_text(TEXT + END + TEXT, encoding="utf-8")
    vocab, merges = adapters.run_train_bpe(path, 256 + 1 + 12, [END])
    return [sorted(vocab.values()), [*map(tuple, merges)]]


def encoded(adapters, folder):
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"th", 257: b"the", 258: END.encode()}
    tokenizer = adapters.get_tokenizer(vocab, [(b"t", b"h"), (b"th", b"e")], [END])
    ids = tokenizer.encode(f"the cat{END}é")
    return [list(ids), tokenizer.decode(ids)]


ACTS = {
    "run_gradient_clipping": clipped,
    "get_adamw_cls": stepped,
    "run_save_checkpoint": restored,
    "run_load_checkpoint": restored,
    "run_get_batch": batches,
    "run_train_bpe": trained,
    "get_tokenizer": encoded,
}


def result(name, adapters, folder):
    """What an adapter returns, in lists and tensors; the error's words where it raises one."""
    try:
        if name in ACTS:
            return ACTS[name](adapters, folder)
        calls = [getattr(adapters, name)(**values) for values in CALLS[name]]
        return [torch.as_tensor(returned).detach() for returned in calls]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def alike(ours, theirs):
    """Whether two results are equal, up to rounding."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        same = ours.shape == theirs.shape
        return same and torch.allclose(ours.double(), theirs.double(), rtol=1e-3, atol=1e-4)
    return ours == theirs


NAMES = [*CALLS, *ACTS]
