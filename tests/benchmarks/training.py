"""Our trainer beside a naive loop, Hugging Face's Llama and nanoGPT: `python -m benchmarks train`.

    round 1    naive   llama   llama, our settings   nanogpt, our settings   workbook
    round 2    naive   llama   ...                                     a few steps each, in turns

All train a model of about the same size with AdamW, on batches of the same size. What belongs to a
loop is inside its step: loading the batch, clipping for nanoGPT's and ours, and the log for ours.

The naive loop and Hugging Face's Llama at its defaults run as they would anywhere. "Our settings"
are what `workbook train` chooses: the precision of matmuls, torch's fused AdamW, and keeping freed
memory, a setting of the whole process. So each loop has a process of its own; with our settings,
what is left to compare is the code. On a GPU, nanoGPT's loop and ours are timed compiled as well.
"""

import atexit
import math
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from benchmarks import measure
from workbook import accounting, bench
from workbook.config import ModelConfig, TrainConfig
from workbook.optimizer.optimizers import AdamW
from workbook.training import devices, log, presets
from workbook.training.data import TrainData, get_batch
from workbook.training.devices import matmul_peak
from workbook.training.parts import Parts
from workbook.training.trainer import Run, Trainer
from workbook.transformer.model import PARTS, TransformerLM

SHAPES = "laptop", "full"  # presets
ON_A_CPU = 8  # sequences in a batch there: as many as the laptop preset has
COMPILED = ", compiled"  # ends the names of loops that are for a GPU
Loop = Iterator[None]  # takes a training step each time it is asked for the next


# --- The comparison -----------------------------------------------------------------------------


def run(
    rounds: int, steps: int, folder: Path, shapes: list[str] | None = None, device: str = "cpu"
) -> str:
    """Time all loops on each shape, `steps` steps per round; return the table.

    The record is kept in `folder`. A shape is a preset; on a GPU its batch is the preset's own.
    """
    record = {
        "machine": measure.machine(("torch", "transformers", "numpy")),
        "shapes": {shape: compare(shape, rounds, steps, device) for shape in shapes or SHAPES},
    }
    name = "train.json" if device == "cpu" else f"train-{device}.json"
    return measure.keep(folder / name, record, table(record))


def compare(shape: str, rounds: int, steps: int, device: str = "cpu") -> dict:
    """Tokens per second of every loop in every round on one shape, and the parts of our step."""
    config = replace(presets.preset(shape), device=device, compile=False)
    place = devices.pick_device(device)
    if place.type == "cpu":
        config = replace(config, batch_size=min(config.batch_size, ON_A_CPU))
    precision = devices.pick_precision(place, config.precision)
    unwanted = []
    if not measure.installed("transformers"):
        print("transformers is left out, since it is not installed")
        unwanted = ["llama"]
    unwanted += [COMPILED] if place.type == "cpu" else []
    names = [name for name in RIVALS if not any(word in name for word in unwanted)]
    # Ctrl-C stops the bench here; a loop waiting for its turn would only add a traceback.
    ignore_ctrl_c = signal.signal, signal.SIGINT, signal.SIG_IGN
    with ExitStack() as stack:
        works = {}
        for name in names:
            process = stack.enter_context(bench.own_process(*ignore_ctrl_c))
            step_seconds(process, name, config, 1)  # allocates memory and chooses kernels
            works[name] = partial(step_seconds, process, name, config, steps)
        works["peak"] = partial(matmul_peak, precision, str(place))
        took = measure.in_turns(works, rounds, f"bench train {shape}")
    peak = max(took.pop("peak"))
    tokens = config.batch_size * config.model.context_length
    models = dict.fromkeys(names, config.model)
    models |= {name: nearest_shape(config.model) for name in names if "nanogpt" in name}
    return {
        "tokens_a_second": {
            name: [tokens / seconds for seconds in runs] for name, runs in took.items()
        },
        "batch_size": config.batch_size,
        **devices.describe(place, precision),
        "flops_a_token": {name: accounting.flops_per_token(models[name]) for name in names},
        "peak_flops_a_second": peak,
        "step_seconds": step_times(config, random_data(config), steps),
    }


def table(record: dict) -> str:
    """The figures of a record as text."""
    parts = [measure.place(record, f"{record['machine']['cores']} cores")]
    for shape, timed in record["shapes"].items():
        speeds = timed["tokens_a_second"]
        flops = timed["flops_a_token"]
        peak = timed["peak_flops_a_second"]
        columns = {
            name: {
                "MFLOP/token": flops[name] / 1e6,
                "MFU": f"{accounting.mfu(flops[name], max(runs), peak):.0%}",
            }
            for name, runs in speeds.items()
        }
        shown = measure.table(speeds, "tokens/s", lambda name: "workbook", columns)
        seconds = timed["step_seconds"]
        overhead = (seconds["data"] + seconds["log"]) / sum(seconds.values())
        times = ", ".join(f"{part} {1e3 * s:,.1f} ms" for part, s in seconds.items())
        parts.append(
            f"{shape}: batches of {timed['batch_size']}, {timed['precision']} on"
            f" {timed.get('device', 'cpu')}, threads: {timed['threads']}\n{shown}\n"
            f"our step: {times}; data and log are {overhead:.2%} of it"
        )
    return "\n\n".join(parts)


def step_seconds(process: Executor, name: str, config: TrainConfig, steps: int) -> float:
    """The seconds of a step of a loop in its process."""
    return process.submit(best_seconds, name, config, steps).result()


def best_seconds(name: str, config: TrainConfig, steps: int) -> float:
    """The shortest time of some steps of a loop in this process; on a GPU, their mean.

    On a GPU steps overlap: while it computes one, the next is prepared.
    """
    loop = running(name, config)
    device = devices.pick_device(config.device)
    if device.type == "cpu":
        return min(bench.seconds(lambda: next(loop)) for _ in range(steps))
    next(loop)
    devices.synchronize(device)
    start = time.perf_counter()
    for _ in range(steps):
        next(loop)
    devices.synchronize(device)
    return (time.perf_counter() - start) / steps


@cache
def running(name: str, config: TrainConfig) -> Loop:
    """The loop of that name in this process, begun when it is first asked for."""
    loop = RIVALS[name](config, random_data(config))
    atexit.register(loop.close)  # ours has a log open in a temporary folder
    return loop


def random_data(config: TrainConfig) -> TrainData:
    """Random tokens: the cost of a step does not depend on what they say."""
    size = config.model.vocab_size
    tokens = np.random.default_rng(0).integers(size, size=100_000, dtype=np.uint16)
    lengths = np.ones(size, np.int64)
    return TrainData(train=tokens, validation=tokens[:5_000].copy(), token_bytes=lengths)


@contextmanager
def open_trainer(
    config: TrainConfig, data: TrainData, parts: Parts | None = None
) -> Iterator[Trainer]:
    """A trainer that is about to take its first step, with a log that nobody keeps."""
    with TemporaryDirectory() as folder:
        config = replace(config, eval_tokens=2_048)
        with log.RunLog(folder) as run_log:
            trainer = Trainer(Run(config, Path(folder), parts=parts), data, run_log)
            trainer.begin(None)
            yield trainer


def step_times(config: TrainConfig, data: TrainData, steps: int = 20) -> dict[str, float]:
    """The seconds of each part of a step, the shortest of `steps` steps that are all logged.

    The parts are data, forward, backward, clip, update and log.
    """
    best: dict[str, float] = {}
    clock = time.perf_counter()
    usual = Parts.ours(config)

    def take_time(part: str) -> None:
        nonlocal clock
        devices.synchronize(devices.pick_device(config.device))
        now = time.perf_counter()
        best[part] = min(best.get(part, math.inf), now - clock)
        clock = now

    def then_timed(part: str, function: Callable) -> Callable:
        def timed(*arguments):
            result = function(*arguments)
            take_time(part)
            return result

        return timed

    def clipping(*arguments):
        take_time("backward")  # which has just ended
        return then_timed("clip", usual.clipping)(*arguments)

    get_batch = then_timed("data", usual.get_batch)
    loss = then_timed("forward", usual.loss)
    parts = replace(usual, get_batch=get_batch, loss=loss, clipping=clipping)
    with open_trainer(config, data, parts) as trainer:
        for _ in range(steps):
            loss, norm = trainer.update()
            take_time("update")
            trainer.record(loss, norm, evaluates=False)
            take_time("log")
    return best


# --- The loops ----------------------------------------------------------------------------------


def naive(config: TrainConfig, data: TrainData) -> Loop:
    """The textbook's model and optimizer in float32, one matmul after the other."""
    model = TransformerLM.from_config(replace(config.model, kernels="textbook"))
    model = model.to(devices.pick_device(config.device))
    optimizer = AdamW(model.parameters(), config.optimizer.max_learning_rate)
    return plain_loop(config, data, model, optimizer, torch.float32, kernels="textbook")


def llama(config: TrainConfig, data: TrainData, *, equal: bool) -> Loop:
    """Hugging Face's Llama: at its defaults, or with our settings (`equal`)."""
    from transformers import LlamaForCausalLM

    model = LlamaForCausalLM(llama_config(config.model)).train()
    model = model.to(devices.pick_device(config.device))
    lr = config.optimizer.max_learning_rate
    optimizer = torch.optim.AdamW(model.parameters(), lr, fused=equal or None)
    precision = our_settings(config) if equal else torch.float32
    return plain_loop(config, data, lambda ids: model(ids).logits, optimizer, precision)


def llama_config(config: ModelConfig):
    """The same shape under Hugging Face's names."""
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


def nanogpt(config: TrainConfig, data: TrainData) -> Loop:
    """A GPT-2 as nanoGPT has it, with our settings; like nanoGPT's, its loop clips gradients."""
    model = GPT(config.model).to(devices.pick_device(config.device))
    weights = list(model.parameters())
    choices = config.optimizer
    groups = [  # matrices decay, gains do not
        {"params": [w for w in weights if w.ndim == 2], "weight_decay": choices.weight_decay},
        {"params": [w for w in weights if w.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, choices.max_learning_rate, choices.betas, fused=True)

    clip = partial(clip_grad_norm_, weights, choices.max_l2_norm)
    forward = devices.compiled(model) if config.compile else model
    return plain_loop(config, data, forward, optimizer, our_settings(config), clip)


def our_settings(config: TrainConfig) -> torch.dtype:
    """Tune this process as our trainer does; return the precision of matmuls that it chooses."""
    device = devices.pick_device(config.device)
    devices.tune(device)
    return devices.pick_precision(device, config.precision)


def plain_loop(
    config: TrainConfig,
    data: TrainData,
    model: Callable[[Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    precision: torch.dtype,
    clip: Callable[[], object] = lambda: None,
    kernels: str = "fused",
) -> Loop:
    """Batch, loss, gradients, update; `model` makes logits of tokens."""
    cross_entropy = PARTS[kernels].cross_entropy
    device = devices.pick_device(config.device)
    while True:
        context = config.model.context_length
        inputs, targets = get_batch(data.train, config.batch_size, context, device)
        with devices.autocast(device, precision):
            loss = cross_entropy(model(inputs), targets)
        loss.backward()
        clip()
        optimizer.step()
        optimizer.zero_grad()
        yield


def ours(config: TrainConfig, data: TrainData) -> Loop:
    """`workbook train`, its log included."""
    with open_trainer(config, data) as trainer:
        while True:
            loss, norm = trainer.update()
            logs = trainer.step % config.log_every == 0
            if logs or trainer.device.type == "cpu":
                trainer.check_finite(loss, norm)
            if logs:
                trainer.record(loss, norm, evaluates=False)
            yield


def compiled(config: TrainConfig, data: TrainData, *, loop: Callable) -> Loop:
    """The loop with its model compiled."""
    return loop(replace(config, compile=True), data)


RIVALS: dict[str, Callable[[TrainConfig, TrainData], Loop]] = {
    "naive": naive,
    "llama": partial(llama, equal=False),
    "llama, our settings": partial(llama, equal=True),
    "nanogpt, our settings": nanogpt,
    f"nanogpt, our settings{COMPILED}": partial(compiled, loop=nanogpt),
    "workbook": ours,
    f"workbook{COMPILED}": partial(compiled, loop=ours),
}


class GPT(nn.Module):
    """A GPT-2 as Karpathy's nanoGPT has it: logits (batch, seq, vocab) of tokens (batch, seq).

    It differs from our model in learned positions instead of RoPE, LayerNorm instead of RMSNorm, a
    feed-forward layer of two matrices with a GELU between them instead of three with a gate, and
    one matrix for embedding and head. As in nanoGPT, nothing has a bias, and one matmul makes
    queries, keys and values.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.token_embeddings = nn.Embedding(config.vocab_size, config.d_model)
        self.position_embeddings = nn.Embedding(config.context_length, config.d_model)
        self.layers = nn.ModuleList(
            GPTBlock(config.d_model, config.num_heads) for _ in range(config.num_layers)
        )
        self.ln_final = nn.LayerNorm(config.d_model, bias=False)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:  # the gains of norms begin as ones
                # What is added to the residual stream begins smaller the more layers add to it.
                adds = name.endswith(("output.weight", "down.weight"))
                nn.init.normal_(weight, std=0.02 / (2 * config.num_layers) ** (0.5 * adds))
        self.token_embeddings.weight = self.lm_head.weight

    def forward(self, token_ids: Tensor) -> Tensor:
        positions = torch.arange(token_ids.shape[-1], device=token_ids.device)
        x = self.token_embeddings(token_ids) + self.position_embeddings(positions)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_final(x))


class GPTBlock(nn.Module):
    """Attention and a feed-forward layer, each after a norm and added to its input."""

    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.ln1, self.ln2 = (nn.LayerNorm(d_model, bias=False) for _ in range(2))
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.up = nn.Linear(d_model, 4 * d_model, bias=False)
        self.down = nn.Linear(4 * d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        split = "batch seq (three heads d_head) -> three batch heads seq d_head"
        Q, K, V = rearrange(self.qkv(self.ln1(x)), split, three=3, heads=self.num_heads)
        heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        x = x + self.output(rearrange(heads, "batch heads seq d_head -> batch seq (heads d_head)"))
        return x + self.down(functional.gelu(self.up(self.ln2(x))))


def nearest_shape(config: ModelConfig) -> ModelConfig:
    """The config of our model that has the GPT's matrices: for accounting, which counts these.

    Two matrices with d_ff = 4 d have about as many weights as SwiGLU's three with 8/3 d.
    """
    return replace(
        config, ffn="silu", d_ff=4 * config.d_model, position="none", tie_embeddings=True
    )
