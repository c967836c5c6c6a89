"""The checker of every problem that has one, by id: a file a topic, on top of `verdicts`."""

from collections.abc import Callable
from importlib import import_module

from workbook.checks.accounting import adamwAccounting, transformer_accounting
from workbook.checks.encodings import unicode2
from workbook.checks.optimizer_tuning import learning_rate_tuning
from workbook.checks.tokenizer import tokenizer
from workbook.checks.tokenizer_experiments import (
    tokenizer_experiments,
    train_bpe_expts_owt,
    train_bpe_tinystories,
)
from workbook.checks.train_bpe import train_bpe
from workbook.checks.training_words import generate, training_together
from workbook.checks.unicode import unicode1

# Their modules load torch, which takes seconds: only the first check of one does.
WITH_TORCH = {
    "linear": "transformer_linear",
    "embedding": "transformer_embedding",
    "rmsnorm": "transformer_rmsnorm",
    "positionwise_feedforward": "transformer_feedforward",
    "rope": "transformer_rope",
    "softmax": "transformer_softmax",
    "scaled_dot_product_attention": "transformer_attention",
    "multihead_self_attention": "transformer_multihead",
    "transformer_block": "transformer_block",
    "transformer_lm": "transformer_lm",
    "cross_entropy": "transformer_cross_entropy",
    "adamw": "optimizer_adamw",
    "learning_rate_schedule": "optimizer_schedule",
    "gradient_clipping": "optimizer_clipping",
    "data_loading": "data_loading",
    "checkpointing": "checkpointing",
    "decoding": "decoding",
}
# Theirs load numpy and the corpora.
OF_RUNS = {
    "experiment_log": "experiments_log",
    "learning_rate": "experiments_rates",
    "batch_size_experiment": "experiments_batches",
    "layer_norm_ablation": "experiments_ablations",
    "pre_norm_ablation": "experiments_ablations",
    "no_pos_emb": "experiments_ablations",
    "swiglu_ablation": "experiments_ablations",
    "main_experiment": "experiments_web",
    "leaderboard": "experiments_web",
}


def load(problem: str) -> None:
    """Import what the check of a problem needs, before an attempt can be in its way."""
    if module := (WITH_TORCH | OF_RUNS).get(problem):
        import_module(f"workbook.checks.{module}")


def _loaded_when_called(name: str, module: str, with_torch: bool) -> Callable:
    def checker(attempt, part=None):
        check = getattr(import_module(f"workbook.checks.{module}"), name)
        if not with_torch:
            return check(attempt, part)
        torch = import_module("torch")
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the tensors are tiny: more threads only wait for each other
        try:
            return check(attempt, part)
        finally:
            torch.set_num_threads(threads)

    checker.__name__ = name
    return checker


CHECKS: dict[str, Callable] = {
    checker.__name__: checker
    for checker in (
        unicode1,
        unicode2,
        train_bpe,
        train_bpe_tinystories,
        train_bpe_expts_owt,
        tokenizer,
        tokenizer_experiments,
        transformer_accounting,
        adamwAccounting,
        learning_rate_tuning,
        training_together,
        generate,
        *(_loaded_when_called(name, module, True) for name, module in WITH_TORCH.items()),
        *(_loaded_when_called(name, module, False) for name, module in OF_RUNS.items()),
    )
}
