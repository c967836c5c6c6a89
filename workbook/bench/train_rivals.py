"""The training loops that are timed against each other: naive, Hugging Face's, nanoGPT's, and ours.

All train a model of about one size on batches of one size with AdamW, and are called a step at a
time. What belongs to a loop is inside its step: loading the batch, for nanoGPT's and ours clipping,
and for ours the log. "Our settings" are what `workbook train` chooses: the precision of products,
torch's fused AdamW, and how memory is kept, which holds for the whole process.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from workbook.bench import nanogpt
from workbook.config import ModelConfig, TrainConfig
from workbook.optimizer.optimizers import AdamW
from workbook.training import devices
from workbook.training.batches import get_batch
from workbook.training.processes import Team
from workbook.training.train_data import TrainData
from workbook.training.trainer import Trainer
from workbook.transformer.model import PARTS, TransformerLM

Step = Callable[[], object]
CPU = torch.device("cpu")


def random_data(config: TrainConfig) -> TrainData:
    """Random ids: what a step costs does not depend on what they say."""
    size = config.model.vocab_size
    ids = np.random.default_rng(0).integers(size, size=100_000, dtype=np.uint16)
    lengths = np.ones(size, np.int64)
    return TrainData(train=ids, validation=ids[:5_000].copy(), token_bytes=lengths)


def naive(config: TrainConfig, data: TrainData, stack: ExitStack) -> Step:
    """The textbook's model and optimizer in float32, one product after the other."""
    model = TransformerLM.from_config(replace(config.model, kernels="textbook"))
    optimizer = AdamW(model.parameters(), config.optimizer.max_learning_rate)
    cross_entropy = PARTS["textbook"].cross_entropy

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(model(inputs), targets)

    return plain_loop(config, data, optimizer, loss_of, torch.float32)


def llama(config: TrainConfig, data: TrainData, stack: ExitStack, *, equal: bool) -> Step:
    """Hugging Face's Llama: at its defaults, or with our settings (`equal`)."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama_config(config.model)).train()
    rate = config.optimizer.max_learning_rate
    optimizer = torch.optim.AdamW(model.parameters(), rate, fused=equal or None)
    precision = our_settings(config) if equal else torch.float32

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


def nanogpt_loop(config: TrainConfig, data: TrainData, stack: ExitStack) -> Step:
    """A GPT-2 in nanoGPT's manner with our settings; like nanoGPT's, its loop clips gradients."""
    model = nanogpt.GPT(config.model)
    weights = list(model.parameters())
    choices = config.optimizer
    groups = [  # matrices decay, gains do not
        {"params": [w for w in weights if w.ndim == 2], "weight_decay": choices.weight_decay},
        {"params": [w for w in weights if w.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, choices.max_learning_rate, choices.betas, fused=True)

    def loss_of(inputs: Tensor, targets: Tensor) -> Tensor:
        return PARTS["fused"].cross_entropy(model(inputs), targets)

    def clip() -> None:
        clip_grad_norm_(weights, choices.max_l2_norm)

    return plain_loop(config, data, optimizer, loss_of, our_settings(config), clip)


def our_settings(config: TrainConfig) -> torch.dtype:
    """The precision of products that we choose; tunes this process as our trainer does."""
    devices.tune(CPU)
    return devices.pick_precision(CPU, config.precision)


def plain_loop(
    config: TrainConfig,
    data: TrainData,
    optimizer: torch.optim.Optimizer,
    loss_of: Callable[[Tensor, Tensor], Tensor],
    precision: torch.dtype,
    before_update: Step = lambda: None,
) -> Step:
    """One step after another: batch, loss, gradients, update."""

    def step() -> None:
        batch = get_batch(data.train, config.batch_size, config.model.context_length)
        with devices.autocast(CPU, precision):
            loss = loss_of(*batch)
        loss.backward()
        before_update()
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
    "nanogpt, our settings": nanogpt_loop,
    "workbook": ours,
}
