"""A right and a wrong attempt for each check of the notebooks, for tests/test_notebooks.py.

A check that takes prose has none: it is tried with our own stored answer.
"""

import torch

from attempts import bpe_right, runs, tokenizer_right, training_together
from attempts.ours import copied
from workbook import accounting, config
from workbook.optimizer.toys import run_toy
from workbook.tokenization import simple

generate, optimizers = copied("generation.generate"), copied("optimizer.optimizers")
checkpoints, data = copied("training.checkpoints"), copied("training.data")
model, nn = copied("transformer.model"), copied("transformer.nn")

# Chapter 3 and the loss.


def doubled(part):
    """A part that gives twice what it should."""

    class Doubled(part):
        def forward(self, *inputs):
            return 2 * super().forward(*inputs)

    return part, Doubled


TRANSFORMER = {
    "linear": doubled(nn.Linear),
    "embedding": doubled(nn.Embedding),
    "rmsnorm": doubled(nn.RMSNorm),
    "positionwise_feedforward": (nn.SwiGLU, nn.SiLUFeedForward),
    "rope": doubled(nn.RotaryPositionalEmbedding),
    "softmax": (nn.softmax, lambda x, dim: nn.softmax(x, 0)),
    "scaled_dot_product_attention": (
        nn.scaled_dot_product_attention,
        lambda Q, K, V, mask=None: nn.scaled_dot_product_attention(Q, K, Q, mask),
    ),
    "multihead_self_attention": doubled(model.MultiHeadSelfAttention),
    "transformer_block": doubled(model.TransformerBlock),
    "transformer_lm": doubled(model.TransformerLM),
    "cross_entropy": (nn.cross_entropy, lambda logits, targets: logits.mean()),
}

# What models and training cost, in either edition.

EDITION = config.edition()
XL = config.gpt2("xl", EDITION)
LONG = config.gpt2("xl", EDITION, context_length=16_384)
ASKED = accounting.asked_model(EDITION)
DEVICE = accounting.asked_device(EDITION)
SECONDS = accounting.training_seconds(
    accounting.step_flops(ASKED, 1_024), 400_000, DEVICE.flops_per_second
)
TIME = SECONDS / {"2025": 86_400, "2026": 3_600}[EDITION]  # in days, in hours

COUNT = accounting.parameters(XL).total
FLOPS = accounting.forward_flops(XL).total
LONG_FLOPS = accounting.forward_flops(LONG).total

ACCOUNTING = {
    ("transformer_accounting", "a"): (COUNT, COUNT - XL.d_model),
    ("transformer_accounting", "b"): (FLOPS, FLOPS // 2),
    ("transformer_accounting", "c"): ("ffn", "head"),
    ("transformer_accounting", "e"): (LONG_FLOPS, 16 * FLOPS),
    ("adamwAccounting", "b"): (3, 5),
    ("adamwAccounting", "c"): (14, 3),
    ("adamwAccounting", "d"): (TIME, TIME / 1_000),
}

ATTEMPTS = {
    ("unicode2", "b"): ("ü".encode(), b"hello"),
    ("unicode2", "c"): (b"\xc3\x28", b"hi"),
    ("train_bpe", None): (
        bpe_right.recount,
        lambda input_path, vocab_size, special_tokens: ({}, []),
    ),
    ("train_bpe_tinystories", "a"): ({"longest": b" accomplishment"}, {"longest": b"a"}),
    ("train_bpe_expts_owt", "a"): ({"longest": b"-" * 64}, {"longest": b"a"}),
    ("tokenizer", None): (tokenizer_right.Ranked, simple.CharacterTokenizer),
    ("tokenizer_experiments", "a"): (4.2, 0.24),
    ("tokenizer_experiments", "c"): ((5e6, 825e9 / 5e6 / 3600), (5e6, 825e9 / 5e6)),
    ("learning_rate_tuning", None): (
        {rate: run_toy(rate, 10) for rate in (10.0, 100.0, 1_000.0)},
        {rate: run_toy(rate / 2, 10) for rate in (10.0, 100.0, 1_000.0)},
    ),
    ("adamw", None): (optimizers.AdamW, torch.optim.Adam),
    ("learning_rate_schedule", None): (optimizers.cosine_schedule, lambda it, a, b, w, c: a),
    ("gradient_clipping", None): (
        optimizers.clip_gradients,
        lambda parameters, limit: [*parameters],
    ),
    ("data_loading", None): (data.get_batch, lambda dataset, batch, length, device: dataset),
    **ACCOUNTING,
    # Chapter 7, in either edition and profile.
    **{place: (right[0], runs.WRONG[place][0][0]) for place, right in runs.RIGHT.items()},
    **{(problem, None): pair for problem, pair in TRANSFORMER.items()},
    ("training_together", None): (
        training_together.RIGHT["keyword arguments"],
        training_together.function(("lr=lr)", "lr=0.0)")),
    ),
    ("checkpointing", None): (
        (checkpoints.save_checkpoint, checkpoints.load_checkpoint),
        (lambda model, optimizer, it, out: it, checkpoints.load_checkpoint),
    ),
    ("decoding", None): (
        generate.decode,
        lambda model, ids, many, temperature=1.0, top_p=1.0, end_id=None: [*ids],
    ),
}
