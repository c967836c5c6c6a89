"""Training scripts and functions as learners write them, right and wrong.

They are edits of one text, whose model and optimizer are the workbook's: the script is judged here,
not its parts. A script of its own style is written out.
"""

PARTS = """
import argparse
import os

import numpy as np
import torch

from workbook.transformer.model import TransformerLM


def get_batch(data, batch_size, context_length):
    starts = np.random.randint(0, len(data) - context_length, batch_size)
    x = np.stack([data[i : i + context_length] for i in starts]).astype(np.int64)
    y = np.stack([data[i + 1 : i + 1 + context_length] for i in starts]).astype(np.int64)
    return torch.from_numpy(x), torch.from_numpy(y)


def cross_entropy(logits, targets):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


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


def save(model, optimizer, iteration, out):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "it": iteration}
    torch.save(state, out)


def load(src, model, optimizer):
    state = torch.load(src)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["it"]

"""
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
    "bare numbers, by logging": function(
        ("np.load", "np.memmap"), ('mmap_mode="r"', 'dtype=np.uint16'),
        (PRINTED, 'logging.info("Iter %d loss=%.3f", step, loss)'),
        (PRINTED_VALID, 'logging.info("[Eval] Iter=%d Val_loss=%.3f", step, valid_loss)'),
        ("import argparse\n", "import argparse, logging\nlogging.getLogger().setLevel(20)\n"),
    ),
    "lines of JSON on disk": function(
        (PRINTED, 'log.write(json.dumps({"step": step, "train/loss": loss.item()}) + "\\n")'),
        (PRINTED_VALID, 'log.write(json.dumps({"step": step, "valid/loss": valid_loss}) + "\\n")'),
        (LOOP, f'log = open("log.jsonl", "a", buffering=1)\n    {LOOP}'),
        ("import argparse\n", "import argparse, json\n"),
    ),
    "both losses in one line, gradients accumulated": function(
        (PRINTED, "pass"),
        (PRINTED_VALID, 'print(f"{step}: loss {loss.item():7.3f}, val loss {valid_loss:.3f}")'),
        (BATCH + UPDATE, ACCUMULATED),
    ),
    "a loader with workers": function(
        ("\ndef train(", WINDOWS), (LOOP, LOADER + LOOP),
        ("get_batch(train_data, batch_size, context_length)", "next(batches)"),
    ),
    "compiled, with a progress bar": function(
        ("    optimizer =", "    model = torch.compile(model)\n    optimizer ="),
        (PRINTED, "bar.set_postfix(loss=loss.item())"), (LOOP, "for step in bar:"),
        ("    for step in bar", "    from tqdm import tqdm\n"
         "    bar = tqdm(range(start, steps))\n    for step in bar"),
    ),
    "two optimizers": function(
        ("optimizer = torch.optim.AdamW(model.parameters(), lr=lr)",
         "first, *others = model.parameters()\n"
         "    two = torch.optim.SGD([first], lr=lr)\n"
         "    optimizer = torch.optim.AdamW(others, lr=lr)"),
        ("optimizer.step()", "optimizer.step()\n        two.step()\n        two.zero_grad()"),
    ),
    "a main that reads the command line": function(
        ('if __name__ == "__main__":', "def main():"), name="main", parts=PARTS + TRAIN + MAIN
    ),
    "steps on top of the old ones": function(
        ("range(start, steps)", "range(start, start + steps)"),
        ("optimizer, steps, checkpoint", "optimizer, start + steps, checkpoint"),
    ),
    "the last save is not the last step": function((LAST, "")),
}  # fmt: skip

CLICKED = """
import click


def main(**settings):
    train(**settings)


for name in "train-path valid-path checkpoint-path resume".split():
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
    "argparse": script(),
    "wandb, dashes": script(
        ('f"--{name}"', '"--" + name.replace("_", "-")'), ("import os\n", "import wandb\n"),
        (PRINTED, 'wandb.log({"train/loss": loss}, step=step)'),
        (PRINTED_VALID, 'wandb.log({"val/loss": valid_loss})'),
        (LAST, LAST + "    wandb.finish()\n"),
    ),
    "click": script(("save_every=1_000", "save_every=1_000, compile=False"),
                    parts=PARTS + TRAIN + CLICKED),
}  # fmt: skip


# --- Not right, and a piece of what is said

FIXED = "model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)"
WRONG = [
    ("steps are not obeyed", [("range(start, steps)", "range(start, 10_000)")],
     "It took 60 steps, but was told to take 20"),
    ("no step", [("range(start, steps)", "range(start, 0)")], "took no step"),
    ("vocab_size", [(FIXED, FIXED.replace("vocab_size", "99"))], "`vocab_size` is not applied"),
    ("rate too small", [("lr=lr)", "lr=lr * 1e-3)")], "never above 1e-05"),
    ("no backward", [("        loss.backward()\n", "")], "`loss.backward()` is never called"),
    ("another model", [("AdamW(model.parameters()", f"AdamW({FIXED[8:]}.parameters()")],
     "another model's"),
    ("targets not shifted", [("data[i + 1 : i + 1 + context_length]",
                              "data[i : i + context_length]")], "one position later"),
    ("gradients add up", [("        optimizer.zero_grad()\n", "")], "zero_grad"),
    ("no validation", [("if (step + 1) % eval_every == 0:", "if False:")],
     "No validation loss is reported"),
    ("validated on the training data",
     [("valid_data = np.load(valid_path", "valid_data = np.load(train_path")],
     "too low for the validation data"),
    ("trained on the validation data",
     [("train_data = np.load(train_path", "train_data = np.load(valid_path")],
     "trains on the validation data"),
    ("a sum is reported", [("sum(losses) / len(losses)", "sum(losses) * 10")], "report the mean"),
    ("nothing is told", [(PRINTED, "pass"), (PRINTED_VALID, "pass")],
     "No training loss is reported"),
    ("no checkpoint", [(LAST, ""), (EVERY, "            pass")], "leaves no checkpoint"),
    ("saved at the first step only", [(LAST, ""), ("(step + 1) % save_every", "step % 500")],
     "saved at step 1 only: save at the end, too"),
    ("no state of the optimizer",
     [('"optimizer": optimizer.state_dict(), ', ""),
      ('    optimizer.load_state_dict(state["optimizer"])\n', "")],
     "does not hold the optimizer's state"),
    ("no weights", [('"model": model.state_dict(), ', "")], "does not hold the model's weights"),
    ("resumes nothing", [(LOAD, "20 if resume else 0")], "starts over"),
    ("cannot resume", [("    state = torch.load(src)\n", '    state = torch.load(src)["all"]\n')],
     "KeyError: 'all'"),
    ("nan", [("    return torch.nn.functional.cross",
              "    return float('nan') * torch.nn.functional.cross")], "nan or infinite"),
    ("wrong type of numbers", [('np.load(train_path, mmap_mode="r")',
                                "np.memmap(train_path, np.uint8, 'r')")], "uint16"),
]  # fmt: skip
ALMOST = [
    ("cannot resume", [(LOAD, "0"), ("resume=None, ", "")], "cannot be set from outside: resume"),
    ("counts from 0", [(LOAD, "load(resume, model, optimizer) * 0 if resume else 0")],
     "counts its steps from 0"),
    ("begins its learning rates again",
     [("for step in range(start, steps):", "for step in range(start, steps):\n"
       "        optimizer.param_groups[0]['lr'] = lr / (1 + step - start)")],
     "begins its learning rates again"),
    ("takes no further steps", [(LOOP, LOOP.replace("steps", "20"))], "takes no further steps"),
    ("no number of the step",
     [('"it": iteration', '"seen": iteration'), ('["it"]', '["seen"]')], "number of the step"),
    ("a size that cannot be set", [(FIXED, FIXED.replace("d_model", "32")),
                                   ("context_length, d_model, num_layers,\n",
                                    "context_length, num_layers,\n")],
     "cannot be set from outside: d_model"),
    ("reports seldom", [("    eval_every=100, save", "    save"), ("% eval_every", "% 100")],
     "No validation loss is reported"),
]  # fmt: skip
NO_OPTIONS = """
import torch
weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight])
while True:
    weight.sum().backward()
    optimizer.step()
"""
REFUSED_SCRIPTS = [
    ("crashes", script((LAST, LAST + "    sys.stdout.reconfigure(line_buffering=True)\n"
                                     "    np.load(checkpoint_path + '.npy')\n"),
                       ("import argparse\n", "import argparse, sys\n")), "wrong",
     "in train: `np.load(checkpoint_path + '.npy')`"),
    ("asks", script((LOOP, "input('Go on?')\n    " + LOOP)), "wrong", "cannot answer input()"),
    ("ends Python", script((LOOP, "print('on disk', flush=True)\n    os._exit(3)\n    " + LOOP)),
     "wrong", "status 3; its last output: on disk"),
    ("has no options", NO_OPTIONS, "not attempted", "It has no setting checkpoint_path"),
    ("wants a file", script(('parser.add_argument("--lr"',
                             'parser.add_argument("--vocab_json", required=True)\n'
                             '    parser.add_argument("--lr"')), "not attempted", "vocab_json"),
    ("has names of its own", script(("train_path", "data"), ("steps", "max_iters")),
     "not attempted", "It has no setting steps and train_path"),
    ("needs what is not installed", "import no_such_package\n", "not attempted",
     "No module named 'no_such_package'"),
]  # fmt: skip
HANGING = """
import socket, time
socket.create_server(("127.0.0.1", 0))
time.sleep(600)
"""
