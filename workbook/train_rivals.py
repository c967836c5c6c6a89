"""The training loops that are timed against each other: naive, Hugging Face's Llama, and ours.

All train a model of one shape on the same batches with AdamW, and are called a step at a time.
What belongs to a loop is inside its step: loading the batch, and for ours clipping and the log.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from workbook import devices
from workbook.batches import get_batch
from workbook.config import ModelConfig, TrainConfig
from workbook.model import PARTS, TransformerLM
from workbook.optim import AdamW
from workbook.processes import Team
from workbook.train_data import TrainData
from workbook.trainer import Trainer

Step = Callable[[], object]


def naive(config: TrainConfig, data: TrainData, stack: ExitStack) -> Step:
    """The textbook's model and optimizer in float32, one product after the other."""
    model = TransformerLM.from_config(replace(config.model, kernels="textbook"))
    optimizer = AdamW(model.parameters(), config.optimizer.max_learning_rate)
    cross_entropy = PARTS["textbook"].cross_entropy

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(model(inputs), targets)

    return plain_loop(config, data, optimizer, loss_of, torch.float32)


def llama(config: TrainConfig, data: TrainData, stack: ExitStack, *, equal: bool) -> Step:
    """Hugging Face's Llama: at its defaults, or with what we choose as well (`equal`).

    Equal are the precision of products and torch's fused AdamW; its attention is its own.
    """
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama_config(config.model)).train()
    rate = config.optimizer.max_learning_rate
    optimizer = torch.optim.AdamW(model.parameters(), rate, fused=equal or None)
    precision = torch.float32
    if equal:
        precision = devices.pick_precision(torch.device("cpu"), config.precision)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return PARTS["fused"].cross_entropy(model(input_ids=inputs).logits, targets)

    return plain_loop(config, data, optimizer, loss_of, precision)


def llama_config(config: ModelConfig):
    """The same shape in Hugging Face's words."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=config.d_ff,
        num_hidden_layers=config.num_layers,
        num_attention_heads=config.num_heads,
        max_position_embeddings=config.context_length,
        tie_word_embeddings=config.tie_embeddings,
        use_cache=False,
    )


def plain_loop(config: TrainConfig, data: TrainData, optimizer, loss_of, precision) -> Step:
    """One step after another: batch, loss, gradients, update."""

    def step() -> None:
        batch = get_batch(data.train, config.batch_size, config.model.context_length, "cpu")
        with devices.autocast(torch.device("cpu"), precision):
            loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def ours(config: TrainConfig, data: TrainData, stack: ExitStack) -> Step:
    """`workbook train`, its log included; `stack` closes it."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    trainer = Trainer(replace(config, eval_tokens=2_048), folder, data, Team())
    stack.enter_context(trainer.open_log(()))
    trainer.begin(None)

    def step() -> None:
        loss, norm = trainer.update()
        trainer.check_finite(loss, norm)
        if trainer.step % config.log_every == 0:
            trainer.record(loss, norm, 1.0, evaluates=False)

    return step


RIVALS: dict[str, Callable[[TrainConfig, TrainData, ExitStack], Step]] = {
    "naive": naive,
    "llama": partial(llama, equal=False),
    "llama, our settings": partial(llama, equal=True),
    "workbook": ours,
}
