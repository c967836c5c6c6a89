import sys

import numpy as np
import torch
import wandb

from cs336_basics.config import TrainingConfig, TransformerConfig
from cs336_basics.optimizer import AdamW, CosineSchedule, clip_grad_norm
from cs336_basics.transformer import TransformerLM


def cross_entropy_loss(preds, labels):
    preds = preds.reshape(-1, preds.shape[-1])
    labels = labels.reshape(-1)
    preds = preds - preds.max(dim=1, keepdim=True)[0]
    correct = preds[torch.arange(len(labels)), labels]
    return torch.mean(torch.log(torch.exp(preds).sum(dim=1)) - correct)


def get_batch(x, batch_size, context_length, device):
    x = np.asarray(x) if not isinstance(x, np.ndarray) else x
    starts = torch.randint(0, x.shape[0] - context_length, (batch_size, 1)).numpy()
    index = starts + np.arange(context_length + 1)
    rows = torch.from_numpy(x[index].astype("int64")).to(device)
    return rows[:, :-1], rows[:, 1:]


class Checkpoint:
    @staticmethod
    def save(model, optimizer, iteration, out):
        state = dict(model=model.state_dict(), optim=optimizer.state_dict(), it=iteration)
        torch.save(state, out)

    @staticmethod
    def load(src, model, optimizer):
        state = torch.load(src)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optim"])
        return state["it"]


save_checkpoint, load_checkpoint = Checkpoint.save, Checkpoint.load


def train(**settings):
    names = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff")
    model = TransformerConfig(**{name: settings[name] for name in names}, rope_theta=10_000.0)
    names = ("train_path", "valid_path", "checkpoint_path", "steps", "eval_every", "batch_size")
    others = {name: settings[name] for name in names}
    run(TrainingConfig(model, resume_from=settings["resume"], lr=settings["lr"], **others))


def run(config: TrainingConfig):
    wandb.init(project=config.project, mode=config.wandb_mode)
    data = np.memmap(config.train_path, dtype=np.uint16, mode="r")
    valid = np.memmap(config.valid_path, dtype=np.uint16, mode="r")
    model = TransformerLM(config.model)
    optimizer = AdamW(model.parameters(), config.lr, config.betas, weight_decay=0.1)
    schedule = CosineSchedule(config.lr, config.lr / 10, config.steps // 20, config.steps)
    step = 0
    if config.resume_from:
        step = load_checkpoint(config.resume_from, model, optimizer)
    sizes = (config.batch_size, config.model.context_length, config.model.device)
    while step < config.steps:
        optimizer.param_groups[0]["lr"] = schedule.get_lr(step)
        inputs, labels = get_batch(data, *sizes)
        loss = cross_entropy_loss(model(inputs), labels)
        loss.backward()
        clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        wandb.log({"train/loss": loss.item()})
        step += 1
        if step % config.eval_every == 0 or step == config.steps:
            with torch.no_grad():
                inputs, labels = get_batch(valid, *sizes)
                wandb.log({"valid/loss": cross_entropy_loss(model(inputs), labels).item()})
            save_checkpoint(model, optimizer, step, config.checkpoint_path)


if __name__ == "__main__":
    sizes = TransformerConfig(10_000, 256, 512, 4, 16, 1344, 10_000.0)
    run(TrainingConfig(sizes, train_path=sys.argv[1], valid_path=sys.argv[2]))
