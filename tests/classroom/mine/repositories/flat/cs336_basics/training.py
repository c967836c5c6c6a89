import argparse
import math

import numpy as np
import torch


def cross_entropy(logits, targets):
    logits = logits - logits.max(dim=-1, keepdim=True).values
    log_probs = logits - logits.exp().sum(dim=-1, keepdim=True).log()
    return -log_probs.gather(-1, targets.unsqueeze(-1)).mean()


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            lr = group["lr"]
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state |= {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                state["t"] += 1
                t = state["t"]
                g = p.grad.data
                state["m"] = beta1 * state["m"] + (1 - beta1) * g
                state["v"] = beta2 * state["v"] + (1 - beta2) * g**2
                lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
                p.data -= lr_t * state["m"] / (torch.sqrt(state["v"]) + group["eps"])
                p.data -= lr * group["weight_decay"] * p.data
        return loss


def get_lr_cosine_schedule(
    it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
):
    if it < warmup_iters:
        return it / warmup_iters * max_learning_rate
    if it > cosine_cycle_iters:
        return min_learning_rate
    progress = (it - warmup_iters) / (cosine_cycle_iters - warmup_iters)
    coefficient = 0.5 * (1 + math.cos(math.pi * progress))
    return min_learning_rate + coefficient * (max_learning_rate - min_learning_rate)


def gradient_clipping(parameters, max_l2_norm, eps=1e-6):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum((g**2).sum() for g in grads))
    if norm > max_l2_norm:
        for g in grads:
            g.mul_(max_l2_norm / (norm + eps))


def get_batch(dataset, batch_size, context_length, device="cpu"):
    starts = np.random.randint(0, len(dataset) - context_length, size=batch_size)
    x = np.stack([dataset[s : s + context_length] for s in starts]).astype(np.int64)
    y = np.stack([dataset[s + 1 : s + 1 + context_length] for s in starts]).astype(np.int64)
    return torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)


def save_checkpoint(model, optimizer, iteration, out):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "it": iteration}
    torch.save(state, out)


def load_checkpoint(src, model, optimizer):
    state = torch.load(src)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["it"]


@torch.no_grad()
def decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
    ids = [int(i) for i in prompt_ids]
    context_length = getattr(model, "context_length", None) or len(ids) + max_new_tokens
    for _ in range(max_new_tokens):
        logits = model(torch.tensor([ids[-context_length:]]))[0, -1]
        probs = torch.softmax(logits / temperature, dim=-1)
        if top_p < 1.0:
            sorted_probs, order = torch.sort(probs, descending=True)
            before = torch.cumsum(sorted_probs, dim=-1) - sorted_probs
            probs[order[before >= top_p]] = 0.0
        next_id = int(torch.multinomial(probs, 1))
        if next_id == end_id:
            break
        ids.append(next_id)
    return ids[len(prompt_ids) :]


@torch.no_grad()
def validation_loss(model, data, args):
    batches = [get_batch(data, args.batch_size, args.context_length, "cpu") for _ in range(4)]
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def main():
    from cs336_basics.model import TransformerLM

    parser = argparse.ArgumentParser()
    paths = {"train_path": None, "valid_path": None, "checkpoint_path": "checkpoint.pt"}
    for name, default in (paths | {"resume": None}).items():
        parser.add_argument(f"--{name}", default=default)
    sizes = {"vocab_size": 10_000, "context_length": 256, "d_model": 512}
    sizes |= {"num_layers": 4, "num_heads": 16, "d_ff": 1344}
    for name, default in (sizes | {"batch_size": 32, "steps": 1000, "eval_every": 100}).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rope_theta", type=float, default=10_000.0)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    train_data = np.load(args.train_path, mmap_mode="r")
    valid_data = np.load(args.valid_path, mmap_mode="r")
    model = TransformerLM(**{name: vars(args)[name] for name in sizes}, rope_theta=args.rope_theta)
    optimizer = AdamW(model.parameters(), lr=args.lr)
    start = load_checkpoint(args.resume, model, optimizer) if args.resume else 0
    for it in range(start, args.steps):
        for group in optimizer.param_groups:
            group["lr"] = get_lr_cosine_schedule(it, args.lr, args.lr / 10, 0, args.steps)
        x, y = get_batch(train_data, args.batch_size, args.context_length, "cpu")
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        gradient_clipping(model.parameters(), 1.0)
        optimizer.step()
        print(f"step {it} train loss {loss.item():.4f}")
        if (it + 1) % args.eval_every == 0 or it + 1 == args.steps:
            print(f"step {it} valid loss {validation_loss(model, valid_data, args):.4f}")
            save_checkpoint(model, optimizer, it + 1, args.checkpoint_path)


if __name__ == "__main__":
    main()
