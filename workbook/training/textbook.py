"""The training loop of chapter 5 with the parts of chapters 3 to 5, and nothing else.

    batch -> loss -> gradients -> clip -> AdamW -> now and then: evaluate, save

It runs in one process, in float32 on the CPU. `trainer.py` does the same with all that long runs
need: half precision, several processes, a log, resuming to the bit. In float32 its losses are
this loop's, bit for bit with the textbook kernels and update, and otherwise up to rounding.
"""

import os

import torch

from workbook.config import TrainConfig
from workbook.optimizer.optimizers import AdamW, clip_gradients, cosine_schedule
from workbook.training import checkpoints
from workbook.training.data import TrainData, get_batch
from workbook.training.evaluate import evaluate
from workbook.transformer.model import TransformerLM
from workbook.transformer.nn import cross_entropy


def train_plainly(config: TrainConfig, data: TrainData, out: str | os.PathLike[str]) -> list[float]:
    """Train a model of this config on these tokens; return the training loss of each step.

    `out` is the path of the checkpoint, written after each evaluation.
    """
    asked = config.optimizer
    context = config.model.context_length
    rates = asked.max_learning_rate, asked.min_learning_rate
    torch.manual_seed(config.seed)  # fixes the first weights
    model = TransformerLM.from_config(config.model)
    optimizer = AdamW(
        model.parameters(), rates[0], asked.betas, asked.eps, asked.weight_decay, asked.decay
    )
    # The order of the data has a generator of its own: nothing else that draws can change it.
    order = torch.Generator().manual_seed(config.seed)
    losses = []
    for step in range(1, config.steps + 1):
        # Random windows of the text, and the same windows one token later.
        inputs, targets = get_batch(data.train, config.batch_size, context, generator=order)
        # (batch, seq, vocab) against (batch, seq): each position predicts the token after it.
        loss = cross_entropy(model(inputs), targets)
        optimizer.zero_grad()  # or the gradients of all steps would add up
        loss.backward()
        # One bad batch must not move the weights far.
        clip_gradients(model.parameters(), asked.max_l2_norm)
        # Before the step, whose rate it is; from step 1 on, as the rate of step 0 is 0.
        optimizer.param_groups[0]["lr"] = cosine_schedule(
            step, *rates, asked.warmup_iters, config.cosine_cycle_iters
        )
        optimizer.step()
        # `item` waits for the value: nothing on a CPU, but a GPU would stand still at each step.
        losses.append(loss.item())
        if step % config.eval_every == 0 or step == config.steps:
            # On text that no step sees: a model that learns by heart gets better in training alone.
            held_out = evaluate(model, data, context, config.eval_tokens)
            print(f"step {step:,}: training {losses[-1]:.3f}, validation {held_out.loss:.3f}")
            checkpoints.save_checkpoint(model, optimizer, step, out)
    return losses
