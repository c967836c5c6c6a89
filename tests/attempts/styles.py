"""At least five right styles of each code problem, as files that a check has kept.

Each is given by its home, a module, and by what is taken from it: the last one, or the last two of
a pair, are the attempt.
"""

import inspect
import re
from importlib import import_module

import torch
from made_repositories import module
from torch import nn

from attempts import training_together
from attempts.ours import copied
from workbook.classroom.study import hardening, problems

FILES = {
    "flat": ("flat", "cs336_basics/model.py"),
    "lm": ("renamed", "src/cs336_basics/lm.py"),
    "tok": ("renamed", "src/cs336_basics/tok.py"),
}
OURS = {"nn": "transformer.nn", "model": "transformer.model", "optimizers": "optimizer.optimizers"}
STYLES = """
linear: flat Linear; nn drawn Linear; lm Proj; styles LinearOfEinsum; styles LinearOfSums
embedding: flat Embedding; nn drawn Embedding; lm TokenTable; styles Rows; styles OneHot
rmsnorm: flat RMSNorm; nn RMSNorm; lm Norm; transformer_right RMSNormAsInLlama; styles Root
positionwise_feedforward: flat silu SwiGLU; nn silu SwiGLU; lm swish GatedMLP
positionwise_feedforward: transformer_right SwiGLUFused; transformer_right_heads OtherNames
rope: flat RotaryPositionalEmbedding; nn RotationTable RotaryPositionalEmbedding; lm RotaryEncoding
rope: transformer_right RopeOfComplexNumbers; styles Halves
softmax: flat softmax; nn softmax; lm stable_softmax; styles by_logs; styles in_steps
scaled_dot_product_attention: flat scaled_dot_product_attention; nn scaled_dot_product_attention
scaled_dot_product_attention: transformer_right_functions attention_with_a_large_number; lm attend
scaled_dot_product_attention: styles attend_by_weights
cross_entropy: transformer_right_functions cross_entropy; nn cross_entropy; styles by_one_hot
cross_entropy: transformer_right_functions cross_entropy_flattened; styles token_by_token
multihead_self_attention: flat MultiHeadSelfAttention; model MultiHeadSelfAttention; lm Attention
multihead_self_attention: transformer_right_heads Steps OwnMatrices
multihead_self_attention: transformer_right_heads Head ListOfHeads
transformer_block: flat TransformerBlock; model TransformerBlock; lm Attention Layer
transformer_block: transformer_right_heads PositionsWanted
transformer_block: transformer_right_heads OtherNames BlockOfNamesAsInAttention
transformer_lm: flat TransformerBlock TransformerLM; model TransformerLM; stranger
transformer_lm: transformer_right_heads RopeInForwardModel
transformer_lm: styles OfOtherParts
adamw: optimizer_adamw Plain; optimizer_adamw Paper; optimizer_adamw Paper OneDecay
adamw: optimizer_adamw Paper StateFromTheStart; optimizer_adamw Plain TwoBetas
learning_rate_schedule: optimizer_schedule_and_clipping handout; optimizers cosine_schedule
learning_rate_schedule: optimizer_schedule_and_clipping with_tensors
learning_rate_schedule: optimizer_schedule_and_clipping Schedule
learning_rate_schedule: optimizer_schedule_and_clipping handout wants_room
gradient_clipping: optimizer_schedule_and_clipping clip_handout; optimizers clip_gradients
gradient_clipping: optimizer_schedule_and_clipping clip_without_eps
gradient_clipping: optimizer_schedule_and_clipping clip_with_clamp
gradient_clipping: optimizer_schedule_and_clipping clip_with_new_tensors
data_loading: data_loading list_of_windows; data_loading sliding; data_loading plain_python
data_loading: data_loading cpu_or_cuda_only; data_loading Batches
checkpointing: checkpointing save load; checkpointing save_tuple load_tuple
checkpointing: checkpointing save_pickled load_pickled; checkpointing save_whole load_whole
checkpointing: checkpointing store restore
decoding: decoding decode; decoding with_numpy; decoding decode from_text; decoding Decoder
decoding: decoding top_p_probs method
train_bpe: bpe_right word_counts recount; bpe_right merged merge_counted indexed
train_bpe: bpe_right merge_counted pool; bpe_right merge_counted with_numpy
train_bpe: bpe_right word_counts recount own_names
tokenizer: tokenizer_right Ranked; tokenizer_right Ranked Arrays; tokenizer_right Ranked OtherNames
tokenizer: tokenizer_right Ranked WholeWords; tok cut join BPE
"""
TRAIN = [
    (),
    (("np.load", "np.memmap"), ('mmap_mode="r"', "dtype=np.uint16")),
    ((training_together.BATCH + training_together.UPDATE, training_together.ACCUMULATED),),
    ((training_together.LAST, ""),),
    (
        ("range(start, steps)", "range(start, start + steps)"),
        ("optimizer, steps, checkpoint", "optimizer, start + steps, checkpoint"),
    ),
]


def home(name):
    """The module of this name; a copy of ours must have been made before."""
    if name in FILES:
        return module(*FILES[name])
    return import_module(f"copied_workbook.{OURS[name]}" if name in OURS else f"attempts.{name}")


def kept():
    """The sources of the styles, by problem."""
    copied("transformer.nn")
    sources = {}
    for line in STYLES.strip().splitlines():
        problem, styles = line.split(": ")
        for style in styles.split("; "):
            sources.setdefault(problem, []).append(source(problem, *style.split(" ")))
    base = training_together.PARTS + training_together.TRAIN
    scripts = [training_together.edited(base, *edits) for edits in TRAIN]
    return sources | {"training_together": [f'{text}\n__all__ = ["train"]\n' for text in scripts]}


def source(problem, place, *names):
    """What a file of one style would hold; what is not in question is imported."""
    if not names:
        return hardening.STRANGERS_CODE.read_text("utf-8")
    pieces = [inspect.getsource(getattr(home(place), name)) for name in names]
    pieces = [re.sub(r"^@(right|almost|mistake)\(.*\n", "", piece, flags=re.M) for piece in pieces]
    wanted = problems.with_id(problem).names
    return "\n\n".join(
        [
            f"from attempts.styles import home\nglobals().update(vars(home({place!r})))",
            *pieces,
            f"__all__ = {list(names[-len(wanted) :])}\n",
        ]
    )


# --- Styles that are nowhere else


def drawn(*shape, std):
    return nn.Parameter(nn.init.trunc_normal_(torch.empty(*shape), 0, std, -3 * std, 3 * std))


class LinearOfEinsum(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.w = drawn(out_features, in_features, std=(2 / (in_features + out_features)) ** 0.5)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.w)


class LinearOfSums(LinearOfEinsum):
    def forward(self, x):
        return (x.unsqueeze(-2) * self.w).sum(-1)


class Rows(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = drawn(vocab_size, d_model, std=1.0)

    def forward(self, token_ids):
        rows = self.weight.index_select(0, token_ids.reshape(-1))
        return rows.reshape(*token_ids.shape, self.weight.shape[1])


class OneHot(Rows):
    def forward(self, token_ids):
        numbers = torch.arange(self.weight.shape[0])
        return (token_ids.unsqueeze(-1) == numbers).to(self.weight.dtype) @ self.weight


class Root(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps, self.weight = d_model, eps, nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = x.to(torch.float32)
        total = (wide * wide).sum(dim=-1, keepdim=True)
        return (wide * self.weight / (total / self.d_model + self.eps) ** 0.5).to(x.dtype)


class Halves(nn.Module):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        self.speeds = [theta ** (-2 * k / d_k) for k in range(d_k // 2)]

    def forward(self, x, token_positions):
        turned = []
        for k, speed in enumerate(self.speeds):
            angle = token_positions * speed
            first, second = x[..., 2 * k], x[..., 2 * k + 1]
            turned.append(first * angle.cos() - second * angle.sin())
            turned.append(first * angle.sin() + second * angle.cos())
        return torch.stack(turned, dim=-1)


def by_logs(x, dim):
    largest = x.amax(dim, keepdim=True)
    log_of_sum = (x - largest).exp().sum(dim, keepdim=True).log() + largest
    return (x - log_of_sum).exp()


def in_steps(x, dim):
    largest = x.max(dim=dim, keepdim=True).values
    shifted = x - largest
    weights = shifted.exp()
    total = weights.sum(dim=dim, keepdim=True)
    return weights / total


def attend_by_weights(Q, K, V, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", Q, K) / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(float("-inf")))
    weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.einsum("...qk,...kd->...qd", weights, V)


def by_one_hot(logits, targets):
    chosen = (torch.arange(logits.shape[-1]) == targets.unsqueeze(-1)).to(logits.dtype)
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    return (shifted.exp().sum(dim=-1).log() - (shifted * chosen).sum(dim=-1)).mean()


def token_by_token(logits, targets):
    rows = logits.reshape(-1, logits.shape[-1])
    losses = []
    for row, target in zip(rows, targets.reshape(-1), strict=True):
        shifted = row - row.max()
        losses.append(shifted.exp().sum().log() - shifted[target])
    return torch.stack(losses).mean()


class OfOtherParts(nn.Module):
    def __init__(
        self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta
    ):
        super().__init__()
        parts = home("lm")
        self.tok_emb = parts.TokenTable(vocab_size, d_model)
        rope = parts.RotaryEncoding(rope_theta, d_model // num_heads, context_length)
        layers = [parts.Layer(d_model, num_heads, d_ff, rope) for _ in range(num_layers)]
        self.blocks, self.final_norm = nn.Sequential(*layers), parts.Norm(d_model)
        self.unembed = parts.Proj(d_model, vocab_size)

    def forward(self, ids):
        return self.unembed(self.final_norm(self.blocks(self.tok_emb(ids))))
