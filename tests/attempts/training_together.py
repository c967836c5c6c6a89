"""Training scripts and functions as learners write them, right and wrong.

They are edits of one text, whose model and optimizer are the workbook's: the script is judged here,
not its parts. A script of its own style is written out.
"""

import inspect

from made_repositories import module

PARTS = """
import argparse
import os

import numpy as np
import torch

from workbook.transformer.model import TransformerLM


def build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
    return TransformerLM(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, 1e4)


@torch.no_grad()
def evaluate(model, data, batch_size, context_length, batches=2):
    model.eval()
    losses = []
    for _ in range(batches):
        x, y = get_batch(data, batch_size, context_length)
        losses.append(cross_entropy(model(x), y).item())
    model.train()
    return sum(losses) / len(losses)


"""
flat = module("flat", "cs336_basics/training.py")
for part in (flat.cross_entropy, flat.get_batch, flat.save_checkpoint, flat.load_checkpoint):
    PARTS += inspect.getsource(part)
PARTS += "save, load = save_checkpoint, load_checkpoint\n"
TRAIN = """
def train(
    train_path, valid_path, checkpoint_path, vocab_size, context_length, d_model, num_layers,
    num_heads, d_ff, batch_size, steps=10_000, lr=3e-4, resume=None, log_every=100,
    eval_every=100, save_every=1_000,
):
    train_data = np.load(train_path, mmap_mode="r")
    valid_data = np.load(valid_path, mmap_mode="r")
    model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    start = load(resume, model, optimizer) if resume else 0
    for step in range(start, steps):
        x, y = get_batch(train_data, batch_size, context_length)
        loss = cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % log_every == 0:
            print(f"step {step + 1} | train loss {loss.item():.4f}")
        if (step + 1) % eval_every == 0:
            valid_loss = evaluate(model, valid_data, batch_size, context_length)
            print(f"step {step + 1} | val loss {valid_loss:.4f}")
        if (step + 1) % save_every == 0:
            save(model, optimizer, step + 1, checkpoint_path)
    save(model, optimizer, steps, checkpoint_path)

"""
MAIN = """
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a language model.")
    parser.add_argument("--train_path", type=str, required=True)
    parser.add_argument("--valid_path", required=True)
    parser.add_argument("--checkpoint_path", default="run.pt")
    for name, default in (
        ("vocab_size", 10_000), ("context_length", 256), ("d_model", 512), ("num_layers", 4),
        ("num_heads", 16), ("d_ff", 1344), ("batch_size", 32), ("steps", 10_000),
        ("log_every", 100), ("eval_every", 100), ("save_every", 1000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--resume", default=None)
    train(**vars(parser.parse_args()))
"""


def function(*edits, name="train", parts=PARTS + TRAIN):
    """The function of this name in the text after some edits of it."""
    return run(edited(parts, *edits))[name]


def script(*edits, parts=PARTS + TRAIN + MAIN):
    """The text of the script after some edits of it."""
    return edited(parts, *edits)


def edited(text, *edits):
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    return text


def run(text):
    names = {"__name__": "handed_in"}
    exec(compile(text, "<handed in>", "exec"), names)
    return names


# --- Right

LOAD = "load(resume, model, optimizer) if resume else 0"
LOOP = "for step in range(start, steps):"
PRINTED = 'print(f"step {step + 1} | train loss {loss.item():.4f}")'
PRINTED_VALID = 'print(f"step {step + 1} | val loss {valid_loss:.4f}")'
LAST = "    save(model, optimizer, steps, checkpoint_path)\n"
EVERY = "            save(model, optimizer, step + 1, checkpoint_path)"
BATCH = """        x, y = get_batch(train_data, batch_size, context_length)
        loss = cross_entropy(model(x), y)
"""
UPDATE = """        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

ACCUMULATED = """        optimizer.zero_grad()
        for part in range(4):
            x, y = get_batch(train_data, batch_size // 4, context_length)
            loss = cross_entropy(model(x), y) / 4
            loss.backward()
        loss = loss * 4
        optimizer.step()
"""
MINE = "def mine(**settings):\n    train(**settings)\n"
WINDOWS = """
class Windows(torch.utils.data.IterableDataset):
    def __init__(self, *arguments):
        self.arguments = arguments

    def __iter__(self):
        while True:
            yield get_batch(*self.arguments)


def train("""
LOADER = """windows = Windows(train_data, batch_size, context_length)
    batches = iter(torch.utils.data.DataLoader(windows, batch_size=None, num_workers=2))
    """

RIGHT = {
    "keyword arguments": function(name="mine", parts=PARTS + TRAIN + MINE),
    "bare numbers, by logging, both losses in one line, gradients accumulated": function(
        ("np.load", "np.memmap"),
        ('mmap_mode="r"', "dtype=np.uint16"),
        (PRINTED, "pass"),
        (PRINTED_VALID, 'logging.info("%d: loss %7.3f, val loss %.3f", step, loss, valid_loss)'),
        ("import argparse\n", "import argparse, logging\nlogging.getLogger().setLevel(20)\n"),
        (BATCH + UPDATE, ACCUMULATED),
    ),
    "lines of JSON on disk, two optimizers": function(
        (PRINTED, 'log.write(json.dumps({"step": step, "train/loss": loss.item()}) + "\\n")'),
        (PRINTED_VALID, 'log.write(json.dumps({"step": step, "valid/loss": valid_loss}) + "\\n")'),
        (LOOP, f'log = open("log.jsonl", "a", buffering=1)\n    {LOOP}'),
        ("import argparse\n", "import argparse, json\n"),
        (
            "optimizer = torch.optim.AdamW(model.parameters(), lr=lr)",
            "first, *others = model.parameters()\n"
            "    two = torch.optim.SGD([first], lr=lr)\n"
            "    optimizer = torch.optim.AdamW(others, lr=lr)",
        ),
        ("optimizer.step()", "optimizer.step()\n        two.step()\n        two.zero_grad()"),
    ),
    "the step under a name of its own": function(
        ('"it": iteration', '"updates_done": iteration'), ('["it"]', '["updates_done"]')
    ),
    "a loader with workers, compiled, a progress bar, no save after the last step": function(
        ("\ndef train(", WINDOWS),
        (LOOP, LOADER + LOOP),
        (LAST, ""),
        ("get_batch(train_data, batch_size, context_length)", "next(batches)"),
        ("    optimizer =", "    model = torch.compile(model)\n    optimizer ="),
        (PRINTED, "bar.set_postfix(loss=loss.item())"),
        (LOOP, "for step in bar:"),
        (
            "    for step in bar",
            "    from tqdm import tqdm\n    bar = tqdm(range(start, steps))\n    for step in bar",
        ),
    ),
}

CLICKED = """
import click


def main(**settings):
    train(**settings)


for name in ("train-path", "valid-path", "checkpoint-path", "resume"):
    main = click.option(f"--{name}", default=None)(main)
for name in (
    "vocab-size", "context-length", "d-model", "num-layers", "num-heads", "d-ff", "batch-size",
    "steps", "log-every", "eval-every", "save-every",
):
    main = click.option(f"--{name}", default=10)(main)
main = click.option("--lr", default=3e-4)(main)
main = click.option("--compile/--no-compile", default=False)(main)
click.command()(main)()
"""
RIGHT_SCRIPTS = {
    "wandb, dashes": script(
        ('f"--{name}"', '"--" + name.replace("_", "-")'),
        ("import os\n", "import wandb\n"),
        (PRINTED, 'wandb.log({"train/loss": loss}, step=step)'),
        (PRINTED_VALID, 'wandb.log({"val/loss": valid_loss})'),
        (LAST, LAST + "    wandb.finish()\n"),
    ),
    "click": script(
        ("save_every=1_000", "save_every=1_000, compile=False"), parts=PARTS + TRAIN + CLICKED
    ),
}


REMARKED = [
    (
        "takes `steps` further ones",
        ("range(start, steps)", "range(start, start + steps)"),
        ("optimizer, steps, checkpoint", "optimizer, start + steps, checkpoint"),
    )
]

# --- Not right: a piece of what is said, and the edits

FIXED = "model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)"
WRONG = [
    ("It took 60 steps, but was told to take 20", ("range(start, steps)", "range(start, 10_000)")),
    ("`vocab_size` is not applied", (FIXED, FIXED.replace("vocab_size", "99"))),
    ("never above 1e-05", ("lr=lr)", "lr=lr * 1e-3)")),
    ("`loss.backward()` is never called", ("        loss.backward()\n", "")),
    ("one position later", ("dataset[s + 1 : s + 1 +", "dataset[s : s +")),
    ("the settings: train_path", ("        optimizer.zero_grad()\n", "        {}['max_lr']\n")),
    ("zero_grad", ("        optimizer.zero_grad()\n", "")),
    ("No validation loss is reported", ("if (step + 1) % eval_every == 0:", "if False:")),
    ("too low for the validation data", ("np.load(valid_path", "np.load(train_path")),
    ("trains on the validation data", ("np.load(train_path", "np.load(valid_path")),
    ("report the mean", ("sum(losses) / len(losses)", "sum(losses) * 10")),
    ("No training loss is reported", (PRINTED, "pass"), (PRINTED_VALID, "pass")),
    ("leaves no checkpoint", (LAST, ""), (EVERY, "            pass")),
    (
        "saved at step 1 only: save at the end, too",
        (LAST, ""),
        ("(step + 1) % save_every", "step % 500"),
    ),
    (
        "does not hold the optimizer's state",
        ('"optimizer": optimizer.state_dict(), ', ""),
        ('    optimizer.load_state_dict(state["optimizer"])\n', ""),
    ),
    ("does not hold the model's weights", ('"model": model.state_dict(), ', "")),
    (
        "begins with a new optimizer: load its state",
        ('    optimizer.load_state_dict(state["optimizer"])\n', ""),
    ),
    ("starts over", (LOAD, "20 if resume else 0")),
    ("nan or infinite", ("return -log_probs", "return float('nan') * log_probs")),
    ("uint16", ('np.load(train_path, mmap_mode="r")', "np.memmap(train_path, np.uint8, 'r')")),
]
ALMOST = [
    ("cannot be set from outside: resume", (LOAD, "0"), ("resume=None, ", "")),
    ("counts its steps from 0", (LOAD, "load(resume, model, optimizer) * 0 if resume else 0")),
    (
        "begins its learning rates again",
        (LOOP, f"{LOOP}\n        optimizer.param_groups[0]['lr'] = lr / (1 + step - start)"),
    ),
    ("takes no further steps", (LOOP, LOOP.replace("steps", "20"))),
    (
        "number of the step",
        ('"it": iteration', '"it": str(iteration)'),
        ('return state["it"]', 'return int(state["it"])'),
    ),
    (
        "took 11 steps. From step 20 up to step 30 there are 10",
        (LOAD, "load(resume, model, optimizer) - 1 if resume else 0"),
    ),
    ("took 9 steps", (LOAD, "load(resume, model, optimizer) + 1 if resume else 0")),
    ("took 11 steps", (LAST, LAST.replace("steps", "steps - 1"))),
    (
        "No validation loss is reported",
        ("    eval_every=100, save", "    save"),
        ("% eval_every", "% 100"),
    ),
]
NO_OPTIONS = """
import torch
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight])
while True:
    weight.sum().backward()
    optimizer.step()
"""
REFUSED_SCRIPTS = [
    (
        "wrong",
        "in train: `np.load(checkpoint_path + '.npy')`",
        script(
            (
                LAST,
                LAST + "    sys.stdout.reconfigure(line_buffering=True)\n"
                "    np.load(checkpoint_path + '.npy')\n",
            ),
            ("import argparse\n", "import argparse, sys\n"),
        ),
    ),
    (
        "wrong",
        "status 3; its last output: on disk",
        script((LOOP, "print('on disk', flush=True)\n    os._exit(3)\n    " + LOOP)),
    ),
    ("not attempted", "signal 9 (Killed)", script((LOOP, "os.kill(os.getpid(), 9)\n    " + LOOP))),
    ("not attempted", "It lacks the settings checkpoint_path", NO_OPTIONS),
    ("not attempted", "It takes no settings, and ends with FileNotFound", "open('m4.yaml')\n"),
    (
        "not attempted",
        "vocab_json",
        script(('"--lr"', '"--vocab_json", required=True)\n    parser.add_argument("--lr"')),
    ),
    ("not attempted", "No module named 'no_such_package'", "import no_such_package\n"),
]
