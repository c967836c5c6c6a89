"""Training scripts and functions as learners write them, right and wrong.

They are edits of one text, whose model and optimizer are the workbook's: the script is judged here,
not its parts. A script of its own style is written out.
"""

import numpy as np

from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.training import train as trainer
from workbook.training.data import TrainData

PARTS = """
import argparse
import os
from pathlib import Path

import numpy as np
import torch

from workbook.config import ModelConfig
from workbook.transformer.model import TransformerLM


def get_batch(data, batch_size, context_length):
    starts = np.random.randint(0, len(data) - context_length, batch_size)
    x = np.stack([data[i : i + context_length] for i in starts]).astype(np.int64)
    y = np.stack([data[i + 1 : i + 1 + context_length] for i in starts]).astype(np.int64)
    return torch.from_numpy(x), torch.from_numpy(y)


def cross_entropy(logits, targets):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
    return TransformerLM.from_config(
        ModelConfig(
            vocab_size=vocab_size, context_length=context_length, d_model=d_model,
            num_layers=num_layers, num_heads=num_heads, d_ff=d_ff,
        )
    )


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
    num_heads, d_ff, batch_size, max_steps=10_000, lr=3e-4, resume=None, log_every=100,
    eval_every=100, checkpoint_every=1_000,
):
    train_data = np.load(train_path, mmap_mode="r")
    valid_data = np.load(valid_path, mmap_mode="r")
    model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    start = load(resume, model, optimizer) if resume else 0
    for step in range(start, max_steps):
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
        if (step + 1) % checkpoint_every == 0:
            save(model, optimizer, step + 1, checkpoint_path)
    save(model, optimizer, max_steps, checkpoint_path)

"""
MAIN = """
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a language model.")
    parser.add_argument("--train_path", type=str, required=True)
    parser.add_argument("--valid_path", required=True)
    parser.add_argument("--checkpoint_path", default="run.pt")
    for name, default in (
        ("vocab_size", 10_000), ("context_length", 256), ("d_model", 512), ("num_layers", 4),
        ("num_heads", 16), ("d_ff", 1344), ("batch_size", 32), ("max_steps", 10_000),
        ("log_every", 100), ("eval_every", 100), ("checkpoint_every", 1000),
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
LOOP = "for step in range(start, max_steps):"
PRINTED = 'print(f"step {step + 1} | train loss {loss.item():.4f}")'
PRINTED_VALID = 'print(f"step {step + 1} | val loss {valid_loss:.4f}")'
LAST = "    save(model, optimizer, max_steps, checkpoint_path)\n"
EVERY = "            save(model, optimizer, step + 1, checkpoint_path)"
BATCH = """        x, y = get_batch(train_data, batch_size, context_length)
        loss = cross_entropy(model(x), y)
"""
UPDATE = """        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

WRAPPED = '''
def my_training(settings: dict) -> None:
    names = ("vocab_size", "context_length", "d_model", "num_layers", "num_heads", "d_ff")
    train(
        settings["train_path"], settings["valid_path"], settings["checkpoint_path"],
        **{name: settings[name] for name in names}, batch_size=settings["batch_size"],
        max_steps=settings["steps"], lr=settings["max_learning_rate"],
        resume=settings["resume"], log_every=settings["log_every"],
        eval_every=settings["eval_every"], checkpoint_every=settings["save_every"],
    )


def by_own_keys(config):
    train(
        config["data"]["train"], config["data"]["val"], config.get("ckpt_path", "run.pt"),
        config["model"]["vocab_size"], config["model"]["seq_len"], config.model.dim,
        config.model.n_layers, config.model.n_heads, config.model.d_ff,
        batch_size=config.training.batch_size, max_steps=config.training.max_iters,
        lr=config["optimizer"].lr, resume=config.get("resume_from"),
        log_every=config.get("log_interval", 100), eval_every=config.eval_interval,
    )


def by_kwargs(**settings):
    my_training(settings)


from dataclasses import asdict, dataclass, field


@dataclass
class Config:
    train_data: str
    val_data: str
    vocab: int = 10_000
    seq_len: int = 256
    d_model: int = 512
    n_layers: int = 4
    n_heads: int = 8
    d_ff: int = 1344
    bs: int = 32
    iters: int = 10_000
    max_lr: float = 3e-4
    ckpt_dir: str = "checkpoints"
    save_interval: int = 1000
    log_interval: int = 100
    val_interval: int = 100
    resume: bool = False


def by_dataclass(config: Config):
    out = os.path.join(config.ckpt_dir, "latest.pt")
    train(
        config.train_data, config.val_data, out, config.vocab, config.seq_len, config.d_model,
        config.n_layers, config.n_heads, config.d_ff, config.bs, config.iters, config.max_lr,
        out if config.resume else None, config.log_interval, config.val_interval,
        config.save_interval,
    )


class Trainer:
    def __init__(self, config: Config | None = None):
        self.config = config

    def train(self):
        by_dataclass(self.config)


@dataclass
class ModelPart:
    vocab_size: int = 10_000
    context_length: int = 256
    d_model: int = 512
    num_layers: int = 4
    num_heads: int = 16
    d_ff: int = 1344


@dataclass
class DataPart:
    train_file: Path = Path("train.npy")
    valid_file: Path = Path("valid.npy")


@dataclass
class Sections:
    model: ModelPart = field(default_factory=ModelPart)
    data: DataPart = field(default_factory=DataPart)
    batch_size: int = 32
    num_steps: int = 5_000
    learning_rate: float = 1e-3
    output_dir: str = "out"
    load_checkpoint: str | None = None
    log_every: int = 10
    eval_every: int = 100


def by_sections(cfg: Sections):
    os.makedirs(cfg.output_dir, exist_ok=True)
    train(
        cfg.data.train_file, cfg.data.valid_file, os.path.join(cfg.output_dir, "last.pt"),
        **asdict(cfg.model), batch_size=cfg.batch_size, max_steps=cfg.num_steps,
        lr=cfg.learning_rate, resume=cfg.load_checkpoint, log_every=cfg.log_every,
        eval_every=cfg.eval_every,
    )


def by_namespace(args):
    train(
        args.train_data_path, args.val_data_path, args.checkpoint_path, args.vocab_size,
        args.context_length, args.d_model, args.num_layers, args.num_heads, args.d_ff,
        args.batch_size, args.max_steps, args.learning_rate, args.resume_from, args.log_interval,
        args.eval_interval, args.checkpoint_interval,
    )


class Loop:
    """Everything is made in `__init__`, and `fit` is told how long."""

    def __init__(
        self, train_tokens: np.ndarray, val_tokens: np.ndarray, vocab_size=10_000,
        context_length=256, d_model=512, num_layers=4, num_heads=16, d_ff=1344, lr=1e-3,
        save_dir="checkpoints",
    ):
        self.splits, self.out = (train_tokens, val_tokens), Path(save_dir, "state.pt")
        self.context_length = context_length
        self.model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.history = {"train_loss": [], "val_loss": []}

    def fit(self, num_iters, batch_size):
        start = load(self.out, self.model, self.optimizer) if self.out.exists() else 0
        for step in range(start, num_iters):
            x, y = get_batch(self.splits[0], batch_size, self.context_length)
            loss = cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.history["train_loss"].append(loss.item())
        valid = evaluate(self.model, self.splits[1], batch_size, self.context_length)
        self.history["val_loss"].append(valid)
        save(self.model, self.optimizer, num_iters, self.out)


'''
ACCUMULATED = """        optimizer.zero_grad()
        for part in range(4):
            x, y = get_batch(train_data, batch_size // 4, context_length)
            loss = cross_entropy(model(x), y) / 4
            loss.backward()
        loss = loss * 4
        optimizer.step()
"""
ALL = PARTS + TRAIN + WRAPPED


def wrapped(name, *edits):
    return function(*edits, name=name, parts=ALL)


MODEL_MAKES_LOSS = (
    "return TransformerLM.from_config(", "return WithLoss("
), ("@torch.no_grad()\ndef evaluate", """class WithLoss(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.lm = TransformerLM.from_config(config)

    def forward(self, idx, targets=None):
        logits = self.lm(idx)
        return logits, None if targets is None else cross_entropy(logits, targets)


@torch.no_grad()
def evaluate"""), ("cross_entropy(model(x), y)", "model(idx=x, targets=y)[1]")  # fmt: skip

RIGHT = {
    "a function": function(),
    "a dict of settings": wrapped("my_training"),
    "a config in sections": wrapped("by_own_keys"),
    "keyword arguments": wrapped("by_kwargs"),
    "a dataclass": wrapped("by_dataclass"),
    "a dataclass of dataclasses": wrapped("by_sections"),
    "a namespace": wrapped("by_namespace"),
    "a class with a config": wrapped("Trainer"),
    "a class with arrays, which goes on by itself": wrapped("Loop"),
    "goes on by itself": function(
        (LOAD, "load(checkpoint_path, model, optimizer) if os.path.exists(checkpoint_path) else 0"),
        ("resume=None, ", ""),
    ),
    "bare numbers": function(
        ('np.load(train_path, mmap_mode="r")', "np.memmap(train_path, np.uint16, 'r')"),
        ('np.load(valid_path, mmap_mode="r")', "np.memmap(valid_path, np.uint16, 'r')"),
    ),
    "tensors in a log": function(
        (PRINTED, "print('it', step, loss)"), (PRINTED_VALID, "print('Validation:', valid_loss)")
    ),
    "by logging": function(
        (PRINTED, 'logging.info("Iter %d loss=%.3f", step, loss)'),
        (PRINTED_VALID, 'logging.info("[Eval] Iter=%d Val_ppl=%.3f", step, np.exp(valid_loss))'),
        ("import argparse\n", "import argparse, logging\nlogging.getLogger().setLevel(20)\n"),
    ),
    "a table on disk": function(
        (PRINTED, 'open("log.csv", "a").write(f"{step},{loss.item()},\\n")'),
        (PRINTED_VALID, 'open("log.csv", "a").write(f"{step},,{valid_loss}\\n")'),
        (LOOP, f'Path("log.csv").write_text("step,train_loss,val_loss\\n")\n    {LOOP}'),
    ),
    "both losses in one line": function(
        (PRINTED, "pass"),
        (PRINTED_VALID, 'print(f"{step:>6} | {loss.item():7.3f} train | {valid_loss:.3f} valid")'),
        ("train |", "|"), (" valid\")", "\")"), ("{step:>6} |", "step {step:>6} | train"),
        ("| {valid_loss", "| val {valid_loss"),
    ),
    "gradients accumulated": function((BATCH + UPDATE, ACCUMULATED)),
    "a model that makes the loss": function(*MODEL_MAKES_LOSS),
    "compiled": function(("    optimizer =", "    model = torch.compile(model)\n    optimizer =")),
    "forward called by hand": function(("model(x)", "model.forward(x)")),
    "a progress bar": function(
        (PRINTED, "bar.set_postfix(loss=loss.item())"), (LOOP, "for step in bar:"),
        ("    for step in bar", "    from tqdm import tqdm\n"
         "    bar = tqdm(range(start, max_steps))\n    for step in bar"),
    ),
    "two optimizers": function(
        ("optimizer = torch.optim.AdamW(model.parameters(), lr=lr)",
         "first, *others = model.parameters()\n"
         "    two = torch.optim.SGD([first], lr=lr)\n"
         "    optimizer = torch.optim.AdamW(others, lr=lr)"),
        ("optimizer.step()", "optimizer.step()\n        two.step()\n        two.zero_grad()"),
    ),
    "one file, which it splits": function(
        ("train_path, valid_path,", "data_path,"),
        ('np.load(train_path, mmap_mode="r")', 'np.load(data_path, mmap_mode="r")[:1800]'),
        ('np.load(valid_path, mmap_mode="r")', 'np.load(data_path, mmap_mode="r")[1800:]'),
    ),
    "blocks beside other modules": function(
        ("return TransformerLM.from_config(", "return in_one_list("),
        ("def build(", "def in_one_list(config):\n"
         "    lm = TransformerLM.from_config(config)\n"
         "    parts = [lm.token_embeddings, *lm.layers, lm.ln_final, lm.lm_head]\n"
         "    return torch.nn.Sequential(*parts)\n\n\ndef build("),
    ),
    "a main that reads the command line": function(
        ('if __name__ == "__main__":', "def main():"), name="main", parts=PARTS + TRAIN + MAIN
    ),
    "steps on top of the old ones": function(
        ("range(start, max_steps)", "range(start, start + max_steps)")
    ),
}  # fmt: skip

DASHED = """
parser = argparse.ArgumentParser()
parser.add_argument("--train-data", type=Path, required=True, help="tokens.bin")
parser.add_argument("--val-data", type=Path, required=True)
parser.add_argument("--ckpt-dir", type=Path, default=Path("checkpoints"))
for name in ("vocab-size", "context-length", "d-model", "num-layers", "num-heads", "batch-size"):
    parser.add_argument(f"--{name}", type=int, default=8)
parser.add_argument("--d-ff", type=int)
parser.add_argument("--total-tokens", type=float, default=1e9)
parser.add_argument("--lr-max", type=float, default=3e-4)
parser.add_argument("--betas", nargs=2, type=float, default=(0.9, 0.95))
parser.add_argument("--eval-iters", type=int, default=100)
parser.add_argument("--resume", action="store_true")
parser.add_argument("--wandb-project", default="cs336")
args = parser.parse_args()
wandb.init(project=args.wandb_project, config=vars(args))
steps = int(args.total_tokens) // (args.batch_size * args.context_length)
train_data = np.memmap(args.train_data, dtype=np.uint16, mode="r")
valid_data = np.memmap(args.val_data, dtype=np.uint16, mode="r")
model = build(
    args.vocab_size, args.context_length, args.d_model, args.num_layers, args.num_heads, args.d_ff
)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr_max, betas=args.betas)
start = load(args.ckpt_dir / "last.pt", model, optimizer) if args.resume else 0
for step in range(start, steps):
    loss = cross_entropy(*(lambda x, y: (model(x), y))(
        *get_batch(train_data, args.batch_size, args.context_length)))
    model.zero_grad()
    loss.backward()
    optimizer.step()
    wandb.log({"train/loss": loss.item()}, step=step)
    if step == steps - 1:
        wandb.log({"val/loss": evaluate(model, valid_data, args.batch_size, args.context_length)})
save(model, optimizer, steps, args.ckpt_dir / "last.pt")
wandb.finish()
"""
CLICKED = """
import click


@click.command()
@click.option("--train-path", required=True)
@click.option("--valid-path", required=True)
@click.option("--out", default="run.pt")
@click.option("--vocab-size", default=10_000)
@click.option("--context-length", default=256)
@click.option("--d-model", default=512)
@click.option("--num-layers", default=4)
@click.option("--num-heads", default=16)
@click.option("--d-ff", default=1344)
@click.option("--batch-size", default=32)
@click.option("--steps", default=10_000)
@click.option("--learning-rate", default=3e-4)
@click.option("--resume-from", default=None)
@click.option("--log-every", default=100)
@click.option("--eval-every", default=100)
@click.option("--compile/--no-compile", default=False)
def main(train_path, valid_path, out, steps, learning_rate, resume_from, compile, **rest):
    rest |= {"max_steps": steps, "lr": learning_rate, "resume": resume_from}
    train(train_path, valid_path, out, **rest)


main()
"""
POOL = (
    ("def get_batch", """class Windows(torch.utils.data.IterableDataset):
    def __init__(self, *arguments):
        self.arguments = arguments

    def __iter__(self):
        while True:
            yield get_batch(*self.arguments)


def get_batch"""),
    (LOOP, "windows = Windows(train_data, batch_size, context_length)\n"
     "    loader = torch.utils.data.DataLoader(windows, batch_size=None, num_workers=2)\n"
     f"    batches = iter(loader)\n    {LOOP}"),
    ("        x, y = get_batch(train_data, batch_size, context_length)\n        loss",
     "        x, y = next(batches)\n        loss"),
)  # fmt: skip
RIGHT_SCRIPTS = {
    "wandb, bare numbers, a flag to resume": script(parts="import wandb" + PARTS + DASHED),
    "click, a loader with workers": script(*POOL, parts=PARTS + TRAIN + CLICKED),
}

IN_MEMORY = function(
    ('np.load(train_path, mmap_mode="r")', "np.load(train_path)"),
    ('np.load(valid_path, mmap_mode="r")', "np.load(valid_path)"),
)

# --- Not right, and a piece of what is said

FIXED = "model = build(vocab_size, context_length, d_model, num_layers, num_heads, d_ff)"
WRONG = [
    ("steps are not obeyed", [("range(start, max_steps)", "range(start, 10_000)")],
     "told to take 20 steps, but was stopped after 60"),
    ("fewer steps", [("range(start, max_steps)", "range(start, max_steps // 2)")], "10 steps"),
    ("no step", [("range(start, max_steps)", "range(start, 0)")], "took no step"),
    ("d_model", [(FIXED, FIXED.replace("d_model", "48"))], "`d_model` is not applied"),
    ("num_layers", [(FIXED, FIXED.replace("num_layers", "3"))], "num_layers is 3"),
    ("vocab_size", [(FIXED, FIXED.replace("vocab_size", "99"))], "vocab_size is 99"),
    ("large", [(FIXED, FIXED.replace("d_model", "512"))], "not have the size that was"),
    ("context", [("get_batch(train_data, batch_size, context_length)",
                  "get_batch(train_data, batch_size, 8)")], "context_length is 8"),
    ("batch", [("get_batch(train_data, batch_size,", "get_batch(train_data, 4,")],
     "batch_size is 4"),
    ("rate 0", [("lr=lr)", "lr=0.0)")], "learning rate is 0 at every step"),
    ("rate too small", [("lr=lr)", "lr=lr * 1e-3)")], "never rises above 1e-05"),
    ("no step of the optimizer", [("        optimizer.step()\n", "")],
     "`optimizer.step()` is never called"),
    ("no backward", [("        loss.backward()\n", "")], "`loss.backward()` is never called"),
    ("uphill", [("loss.backward()", "(-loss).backward()")], "The loss does not fall"),
    ("another model", [("AdamW(model.parameters()", f"AdamW({FIXED[8:]}.parameters()")],
     "are they another model's"),
    ("targets not shifted", [("data[i + 1 : i + 1 + context_length]",
                              "data[i : i + context_length]")], "one position later"),
    ("gradients add up", [("        optimizer.zero_grad()\n", "")], "zero_grad"),
    ("no validation", [("if (step + 1) % eval_every == 0:", "if False:")],
     "No validation loss is reported"),
    ("validation is not told", [(PRINTED_VALID, "pass")], "computed, but not printed"),
    ("validated on the training data",
     [('valid_data = np.load(valid_path', 'valid_data = np.load(train_path')],
     "not that of the validation data"),
    ("trained on the validation data",
     [('train_data = np.load(train_path', 'train_data = np.load(valid_path')],
     "trains on the validation data"),
    ("a sum is reported", [("sum(losses) / len(losses)", "sum(losses) * 10")], "Report the mean"),
    ("nothing is told", [(PRINTED, "pass"), (PRINTED_VALID, "pass")],
     "No training loss is reported"),
    ("no checkpoint", [(LAST, ""), (EVERY, "            pass")], "leaves no checkpoint"),
    ("resumes nothing", [(LOAD, "20 if resume else 0")], "starts over"),
    ("resumes another model", [(LOAD, LOAD.replace("model,", FIXED[8:] + ","))],
     "into another model"),
    ("cannot resume", [('    state = torch.load(src)\n', '    state = torch.load(src)["all"]\n')],
     "KeyError: 'all'"),
    ("crashes", [(LOOP, "train_data.shuffle()\n    " + LOOP)], "has no attribute 'shuffle'"),
    ("asks", [(LOOP, "input('Go on?')\n    " + LOOP)], "cannot answer input()"),
    ("nan", [("    return torch.nn.functional.cross",
              "    return float('nan') * torch.nn.functional.cross")], "nan or infinite"),
    ("wrong type of numbers", [('np.load(train_path, mmap_mode="r")',
                                "np.memmap(train_path, np.uint8, 'r')")], "uint16"),
    ("ends Python", [(LOOP, "os._exit(3)\n    " + LOOP)], "ended the Python process"),
]  # fmt: skip
ALMOST = [
    ("cannot resume", [(LOAD, "0"), ("resume=None, ", "")], "cannot go on from its checkpoint"),
    ("counts from 0", [(LOAD, "load(resume, model, optimizer) * 0 if resume else 0")],
     "counts its steps from 0"),
    ("one too many", [("range(start, max_steps)", "range(start, max_steps + 1)")],
     "one step too many"),
    ("a size that cannot be set", [(FIXED, FIXED.replace("d_model", "32")),
                                   ("context_length, d_model, num_layers,\n",
                                    "context_length, num_layers,\n")],
     "cannot be set from outside: d_model"),
    ("reports seldom", [("    eval_every=100, checkpoint", "    checkpoint"),
                        ("% eval_every", "% 100")], "an option that says how often"),
]  # fmt: skip
CONSTANTS = (
    PARTS
    + """
train_data = np.resize(np.arange(40), 4_000)
model = build(61, 16, 32, 2, 4, 64)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(10_000):
    x, y = get_batch(train_data, 8, 16)
    loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""
)
WRONG_SCRIPTS = [
    ("crashes", script((LAST, LAST + "    sys.stdout.reconfigure(line_buffering=True)\n"
                                     "    np.load(checkpoint_path + '.npy')\n"),
                       ("import argparse\n", "import argparse, sys\n")), "wrong",
     "in train: `np.load(checkpoint_path + '.npy')`"),
    ("asks", script((LOOP, "input('Go on?')\n    " + LOOP)), "wrong", "not from input()"),
    ("ends Python", script((LOOP, "print('on disk', flush=True)\n    os._exit(3)\n    " + LOOP)),
     "wrong", "status 3; its last output: on disk"),
    ("has no options", CONSTANTS, "not attempted", "It takes no options"),
    ("wants a file", script(('parser.add_argument("--lr"',
                             'parser.add_argument("--vocab_json", required=True)\n'
                             '    parser.add_argument("--lr"')), "not attempted", "vocab_json"),
    ("is no Python", "import torch\nfor\n", "wrong", "SyntaxError"),
]  # fmt: skip
HANGING = script((LOOP, "import socket, time\n    socket.create_server(('127.0.0.1', 0))\n"
                  "    print('listens')\n    time.sleep(600)\n    " + LOOP))  # fmt: skip


def ours(
    train_path, valid_path, out_dir, steps, batch_size, vocab_size, context_length, d_model,
    num_layers, num_heads, d_ff, max_learning_rate, warmup_iters, log_every, eval_every, save_every,
):  # fmt: skip
    """The workbook's own trainer, which goes on by itself."""
    config = TrainConfig(
        name="small",
        corpus="stories",
        model=ModelConfig(
            vocab_size=vocab_size, context_length=context_length, d_model=d_model,
            num_layers=num_layers, num_heads=num_heads, d_ff=d_ff,
        ),
        optimizer=OptimizerConfig(
            max_learning_rate=max_learning_rate, warmup_iters=warmup_iters
        ),
        steps=steps, batch_size=batch_size, log_every=log_every, eval_every=eval_every,
        eval_tokens=128, checkpoint_every=save_every, device="cpu",
    )  # fmt: skip
    data = TrainData(
        train=np.load(train_path, mmap_mode="r"), validation=np.load(valid_path, mmap_mode="r"),
        token_bytes=np.ones(vocab_size, np.int64), end_id=0,
    )  # fmt: skip
    return trainer.train(config, out_dir, data)
