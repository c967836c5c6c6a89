"""A right and a wrong attempt for each check of the notebooks, for tests/test_notebooks.py.

A check that takes prose has none: it is tried with our own stored answer.
"""

import attempts_accounting
import attempts_experiments
import attempts_model
import torch

from workbook.generation import generate
from workbook.optimizer import optimizers
from workbook.optimizer.toys import run_toy
from workbook.tokenization import bpe, simple, tokenizer
from workbook.training import checkpoints
from workbook.training import data as batches

ATTEMPTS = {
    ("unicode2", "b"): ("ü".encode(), b"hello"),
    ("unicode2", "c"): (b"\xc3\x28", b"hi"),
    ("train_bpe", None): (bpe.train_bpe, lambda input_path, vocab_size, special_tokens: ({}, [])),
    ("train_bpe_tinystories", "a"): (b" accomplishment", b"a"),
    ("train_bpe_expts_owt", "a"): (b"-" * 64, b"a"),
    ("tokenizer", None): (tokenizer.Tokenizer, simple.CharacterTokenizer),
    ("tokenizer_experiments", "a"): (4.2, 0.24),
    ("tokenizer_experiments", "c"): ((5e6, 825e9 / 5e6 / 3600), (5e6, 825e9 / 5e6)),
    ("tokenizer_experiments", "d"): ("It holds ids up to 65,535.", "It holds ids up to 32,767."),
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
    ("data_loading", None): (batches.get_batch, lambda data, batch, length, device: data),
    **attempts_accounting.ATTEMPTS,
    **attempts_experiments.ATTEMPTS,
    **{(problem, None): pair for problem, pair in attempts_model.ATTEMPTS.items()},
    ("checkpointing", None): (
        (checkpoints.save_checkpoint, checkpoints.load_checkpoint),
        (lambda model, optimizer, it, out: it, checkpoints.load_checkpoint),
    ),
    ("decoding", None): (
        generate.decode,
        lambda model, ids, many, temperature=1.0, top_p=1.0, end_id=None: [*ids],
    ),
}
