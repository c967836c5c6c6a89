"""The table of `workbook bench train`: our trainer beside a naive loop and two known ones.

    round 1    naive   llama   llama, our settings   nanogpt, our settings   workbook
    round 2    naive   llama   ...                                     a few steps each, in turns
    ratio      of each round; a busy neighbour slows all of one round

Each loop has a process of its own. The naive one and Hugging Face's Llama at its defaults run as
they would anywhere; with our settings what is left to compare is the code. The record,
`data/bench/train.json`, names machine, versions, shapes, and every measured speed.

Where the time of a training step goes, and a run that is killed on purpose.

A training loop in a process of its own, which takes steps when it is asked to.

    bench     5 ->            5 ->
    naive        0.41                     how many steps ->  the seconds of the shortest
    workbook                     0.15

What a loop tunes (how memory is kept, say) holds for its whole process. So loops that are tuned
and loops that run as they would anywhere need processes of their own, even where they take turns.

The training loops that are timed against each other: naive, Hugging Face's, nanoGPT's, and ours.

All train a model of about one size on batches of one size with AdamW, and are called a step at a
time. What belongs to a loop is inside its step: loading the batch, for nanoGPT's and ours clipping,
and for ours the log. "Our settings" are what `workbook train` chooses: the precision of products,
torch's fused AdamW, and how memory is kept, which holds for the whole process.

A GPT-2 in the manner of Karpathy's nanoGPT, to time our training beside it.

It differs from our model in what GPT-2 has: learned positions instead of RoPE, LayerNorm instead of
RMSNorm, a feed-forward layer of two matrices with a GELU between them instead of three with a gate,
and one matrix for embedding and head. As in nanoGPT, nothing has a bias, and queries, keys and
values come from one product.
"""

import importlib.util
import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from tqdm import tqdm

from workbook import accounting, config
from workbook.bench import tokenizers
from workbook.config import ModelConfig, TrainConfig
from workbook.files import write_json
from workbook.optimizer.optimizers import AdamW
from workbook.training import devices, log, presets
from workbook.training.data import TrainData, get_batch
from workbook.training.processes import Team
from workbook.training.train import Trainer, train
from workbook.transformer.model import PARTS, TransformerLM

SHAPES = {"laptop": 32, "tinystories": 8}  # sequences in a batch, by preset


def run(rounds: int, steps: int, shapes: list[str] | None = None) -> str:
    """The table of all shapes; it is recorded."""
    record = {
        "machine": tokenizers.machine(("torch", "transformers", "numpy")),
        "shapes": {shape: compare(shape, rounds, steps) for shape in shapes or SHAPES},
    }
    target = config.repository() / "data" / "bench" / "train.json"
    write_json(target, record)
    return f"{table(record)}\nrecorded in {target}"


def compare(shape: str, rounds: int, steps: int) -> dict:
    """Tokens a second of every loop in every round on one shape, and the parts of our step."""
    import torch

    from workbook.accounting.measured import matmul_peak
    from workbook.training import devices

    settings = replace(presets.get(shape), batch_size=SHAPES[shape], device="cpu")
    precision = devices.pick_precision(torch.device("cpu"), settings.precision)
    there = importlib.util.find_spec("transformers") is not None
    names = [name for name in RIVALS if there or not name.startswith("llama")]
    tokens, peak = settings.batch_size * settings.model.context_length, 0.0
    speeds = {name: [] for name in names}
    with ExitStack() as stack:
        loops = [stack.enter_context(RivalProcess(name, settings)) for name in names]
        for loop in loops:
            loop.seconds(1)  # the first step fetches memory and chooses kernels
        for _ in tqdm(range(rounds), desc=f"bench train {shape}"):
            for loop in loops:
                speeds[loop.name].append(tokens / loop.seconds(steps))
            peak = max(peak, matmul_peak(precision))
    models = dict.fromkeys(names, settings.model) | {
        "nanogpt, our settings": nearest_shape(settings.model)
    }
    return {
        "tokens_a_second": speeds,
        "batch_size": settings.batch_size,
        "precision": devices.name_of(precision),
        "threads": torch.get_num_threads(),
        "flops_a_token": {name: accounting.flops_per_token(models[name]) for name in names},
        "peak_flops_a_second": peak,
        "step_seconds": step_times(settings, random_data(settings), steps),
    }


def recorded() -> dict:
    """The record in `data/bench/`."""
    return json.loads((config.repository() / "data/bench/train.json").read_text())


def mfu(found: dict, name: str = "workbook") -> float:
    """The share of the machine's peak that the best round of a loop reached."""
    flops = max(found["tokens_a_second"][name]) * found["flops_a_token"][name]
    return flops / found["peak_flops_a_second"]


def overhead(found: dict) -> float:
    """The share of our step that loading data and writing the log take."""
    seconds = found["step_seconds"]
    return (seconds["data"] + seconds["log"]) / sum(seconds.values())


def table(record: dict) -> str:
    """The figures of a record as text."""
    where = record["machine"]
    lines = [
        f"{where['cores']} cores of {where['processor']} ({where['system']}, load {where['load']})",
        ", ".join(f"{name} {number}" for name, number in where["versions"].items()),
    ]
    for shape, found in record["shapes"].items():
        lines += [
            "",
            f"{shape}: batches of {found['batch_size']}, {found['precision']}, threads:"
            f" {found['threads']}",
            f"{'':22}{'MFLOP a token':>14}{'best tokens/s':>15}{'lowest':>9}{'MFU':>6}"
            "   workbook is",
        ]
        ours = found["tokens_a_second"]["workbook"]
        for name, speeds in found["tokens_a_second"].items():
            ratio = ""
            if name != "workbook":
                ratios = tokenizers.ratios(ours, speeds)
                best = max(ours) / max(speeds)
                ratio = f"{tokenizers.spread(ratios)}; best against best {best:.2f}x"
            lines.append(
                f"{name:22}{found['flops_a_token'][name] / 1e6:14.1f}{max(speeds):15,.0f}"
                f"{min(speeds):9,.0f}{mfu(found, name):6.0%}   {ratio}"
            )
        parts = ", ".join(f"{part} {1e3 * s:,.1f} ms" for part, s in found["step_seconds"].items())
        lines.append(f"our step: {parts}; data and log are {overhead(found):.2%} of it")
    return "\n".join(line.rstrip() for line in lines)


STEP_PARTS = ("data", "forward", "backward", "clip", "update", "log")


def step_times(config: TrainConfig, data: TrainData, steps: int = 20) -> dict[str, float]:
    """The seconds of each part of a step, the shortest of `steps` steps; each is logged."""
    best = dict.fromkeys(STEP_PARTS, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(replace(config, eval_tokens=4_096), Path(folder), data, Team())
        with trainer.open_log(()):
            trainer.begin(None)
            clock = time.perf_counter()

            def lap(part: str) -> None:
                nonlocal clock
                devices.synchronize(trainer.device)
                now = time.perf_counter()
                best[part] = min(best[part], now - clock)
                clock = now

            trainer.lap = lap
            for _ in range(steps):
                loss, norm = trainer.update()
                trainer.record(loss, norm, rate=0.0, evaluates=False)  # nobody reads this log
    return best


def killed_run(config: TrainConfig, folder: Path, at_step: int) -> int:
    """The last step in the log of a run in a process of its own, killed once `at_step` is there.

    SIGKILL cannot be caught: it is to a process what a power cut is to a machine.
    """
    spawn = multiprocessing.get_context("spawn")
    process = spawn.Process(target=_train_until, args=(config, folder, at_step))
    process.start()
    try:
        process.join()
    finally:
        process.kill()  # an interrupted cell leaves nothing running
    if process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"the run ended by itself, with exit code {process.exitcode}")
    return last_step(folder)


def _train_until(config: TrainConfig, folder: Path, at_step: int) -> None:
    """Train, and kill this process as soon as the step is in the log: a watcher may come late."""

    def strike(record: dict) -> None:
        if record["step"] == at_step:
            os.kill(os.getpid(), signal.SIGKILL)

    train(config, folder, listeners=[strike])


def last_step(folder: Path) -> int:
    """The last step in the log; -1 where there is none yet."""
    if not (folder / log.LINES).exists():
        return -1
    found = log.records(folder)
    return found[-1]["step"] if found else -1


class RivalProcess:
    """One of the `RIVALS`, by its name, in a process of its own; `with` ends it."""

    def __init__(self, name: str, config: TrainConfig):
        self.name = name
        context = multiprocessing.get_context("spawn")  # a copy of this process would be tuned
        self.line, far_end = context.Pipe()
        self.process = context.Process(target=serve, args=(name, config, far_end), daemon=True)
        self.process.start()
        far_end.close()  # it is the other process' now: where that ends, so does the line

    def seconds(self, steps: int) -> float:
        """The shortest of some steps.

        Raises: RuntimeError where the process has ended.
        """
        try:
            self.line.send(steps)
            return self.line.recv()
        except (EOFError, OSError) as error:
            self.process.join()
            code = self.process.exitcode
            why = "it was killed; was memory enough?" if code < 0 else "its error stands above"
            raise RuntimeError(
                f"the process of the loop {self.name!r} ended with exit code {code}: {why}"
            ) from error

    def __enter__(self) -> "RivalProcess":
        return self

    def __exit__(self, *_) -> None:
        self.line.close()
        self.process.join()
        self.process.close()


def serve(name: str, config: TrainConfig, line: Connection) -> None:
    """Nothing; answers on the line until its other end is closed."""
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt), ExitStack() as stack:
        step = RIVALS[name](config, random_data(config), stack)
        while True:
            line.send(best_seconds(step, line.recv()))


def best_seconds(step: Callable[[], object], steps: int) -> float:
    """The shortest of some steps."""
    taken = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)


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
    model = GPT(config.model)
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


def nearest_shape(config: ModelConfig) -> ModelConfig:
    """Our config that has this GPT's matrices: for accounting, which counts no more than those.

    Two matrices with d_ff = 4 d have about as many weights as SwiGLU's three with 8/3 d.
    """
    return replace(
        config, ffn="silu", d_ff=4 * config.d_model, position="none", tie_embeddings=True
    )


class GPT(nn.Module):
    """Logits (batch, seq, vocab) of ids (batch, seq); the sizes are those of `config`."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.token_embeddings = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embeddings = nn.Embedding(config.context_length, config.d_model)
        self.layers = nn.ModuleList(
            Block(config.d_model, config.num_heads) for _ in range(config.num_layers)
        )
        self.ln_final = nn.LayerNorm(config.d_model, bias=False)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:  # the gains of norms begin as ones
                deep = name.endswith("output.weight")  # what is added to the residual stream
                nn.init.normal_(weight, std=0.02 / (2 * config.num_layers) ** (0.5 * deep))
        self.token_embeddings.weight = self.lm_head.weight

    def forward(self, token_ids: Tensor) -> Tensor:
        positions = torch.arange(token_ids.shape[-1], device=token_ids.device)
        x = self.token_embeddings(token_ids) + self.position_embeddings(positions)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm and added to what came in."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.ln1, self.ln2 = (nn.LayerNorm(d_model, bias=False) for _ in range(2))
        self.attn = Attention(d_model, num_heads)
        self.ffn = FeedForward(d_model)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))


class Attention(nn.Module):
    """Causal attention by torch's one kernel."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        split = "batch seq (three heads d_head) -> three batch heads seq d_head"
        Q, K, V = rearrange(self.qkv(x), split, three=3, heads=self.num_heads)
        heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        return self.output(rearrange(heads, "batch heads seq d_head -> batch seq (heads d_head)"))


class FeedForward(nn.Module):
    """W2 GELU(W1 x), four times as wide inside."""

    def __init__(self, d_model: int):
        super().__init__()
        self.up = nn.Linear(d_model, 4 * d_model, bias=False)
        self.output = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(functional.gelu(self.up(x)))
