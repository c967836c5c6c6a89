"""A right and a wrong attempt for each check of the notebooks, for tests/test_notebooks.py.

A check that takes prose has none: it is tried with our own stored answer.
"""

import torch

from attempts import accounting as costs
from attempts import bpe_right, runs, steps, tokenizer_right, training_together, written
from attempts.ours import copied
from workbook.tokenization import simple

sampling = copied("generation.sampling")
optimizers = copied("optimizer.optimizers")
checkpoints = copied("training.checkpoints")
data = copied("training.data")
model = copied("transformer.model")
nn = copied("transformer.nn")

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
    "scaled_dot_product_attention": (nn.scaled_dot_product_attention, lambda Q, K, V, mask=None: V),
    "multihead_self_attention": doubled(model.MultiHeadSelfAttention),
    "transformer_block": doubled(model.TransformerBlock),
    "transformer_lm": doubled(model.TransformerLM),
    "cross_entropy": (nn.cross_entropy, lambda logits, targets: logits.mean()),
}

ATTEMPTS = {
    # Of written answers the first ones.
    **{place: (right[0], runs.WRONG[place][0][0]) for place, right in runs.RIGHT.items()},
    **{place: (right[0], costs.WRONG[place][0][0]) for place, right in costs.RIGHT.items()},
    **{place: (written.RIGHT[place][1][0], wrong[0][0]) for place, wrong in written.WRONG.items()},
    ("train_bpe", None): (bpe_right.recount, lambda path, vocab_size, special_tokens: ({}, [])),
    ("tokenizer", None): (tokenizer_right.Ranked, simple.CharacterTokenizer),
    ("adamw", None): (optimizers.AdamW, torch.optim.Adam),
    ("learning_rate_schedule", None): (optimizers.cosine_schedule, lambda it, a, b, w, c: a),
    ("gradient_clipping", None): (optimizers.clip_gradients, lambda params, limit: [*params]),
    ("data_loading", None): (data.get_batch, lambda dataset, batch, length, device: dataset),
    **{(problem, None): pair for problem, pair in TRANSFORMER.items()},
    **{(slip[0], None): (steps.RIGHT[slip[0]], steps.changed(*slip[:3])) for slip in steps.WRONG},
    ("training_together", None): (
        training_together.RIGHT["keyword arguments"],
        training_together.function(("lr=lr)", "lr=0.0)")),
    ),
    ("checkpointing", None): (
        (checkpoints.save_checkpoint, checkpoints.load_checkpoint),
        (lambda model, optimizer, it, out: it, checkpoints.load_checkpoint),
    ),
    ("decoding", None): (
        sampling.decode,
        lambda model, ids, many, temperature=1.0, top_p=1.0, end_id=None: [*ids],
    ),
}
