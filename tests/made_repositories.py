"""Two made-up repositories of the course, and the bugs that tests plant in them.

They lie in `tests/classroom/mine/repositories`, right and complete, as other learners write:
`flat` has a file for the model and the handout's names, `renamed` has names of its own everywhere,
a config object, a loss and a trainer that are classes, and asks for a tracker.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

FOLDER = Path(__file__).parent / "classroom" / "mine" / "repositories"
NAMES = ("flat", "renamed")

# Where the parts are, by problem: what `workbook adopt` is to find. A pair is a list of two. Only
# `flat` trains.
PARTS = {
    "flat": {
        "linear": "cs336_basics.model:Linear",
        "embedding": "cs336_basics.model:Embedding",
        "rmsnorm": "cs336_basics.model:RMSNorm",
        "positionwise_feedforward": "cs336_basics.model:SwiGLU",
        "rope": "cs336_basics.model:RotaryPositionalEmbedding",
        "softmax": "cs336_basics.model:softmax",
        "scaled_dot_product_attention": "cs336_basics.model:scaled_dot_product_attention",
        "multihead_self_attention": "cs336_basics.model:MultiHeadSelfAttention",
        "transformer_block": "cs336_basics.model:TransformerBlock",
        "transformer_lm": "cs336_basics.model:TransformerLM",
        "cross_entropy": "cs336_basics.training:cross_entropy",
        "adamw": "cs336_basics.training:AdamW",
        "learning_rate_schedule": "cs336_basics.training:get_lr_cosine_schedule",
        "gradient_clipping": "cs336_basics.training:gradient_clipping",
        "data_loading": "cs336_basics.training:get_batch",
        "checkpointing": [f"cs336_basics.training:{verb}_checkpoint" for verb in ("save", "load")],
        "tokenizer": "cs336_basics.tokenizer:Tokenizer",
        "train_bpe": "cs336_basics.tokenizer:train_bpe",
        "training_together": "cs336_basics.training:main",
        "decoding": "cs336_basics.training:decode",
    },
    "renamed": {
        "linear": "cs336_basics.lm:Proj",
        "embedding": "cs336_basics.lm:TokenTable",
        "rmsnorm": "cs336_basics.lm:Norm",
        "positionwise_feedforward": "cs336_basics.lm:GatedMLP",
        "rope": "cs336_basics.lm:RotaryEncoding",
        "softmax": "cs336_basics.lm:stable_softmax",
        "scaled_dot_product_attention": "cs336_basics.lm:attend",
        "multihead_self_attention": "cs336_basics.lm:Attention",
        "transformer_block": "cs336_basics.lm:Layer",
        "transformer_lm": "cs336_basics.lm:MyLM",
        "cross_entropy": "cs336_basics.learn:NLL",
        "adamw": "cs336_basics.learn:Adam",
        "learning_rate_schedule": "cs336_basics.learn:lr_at",
        "gradient_clipping": "cs336_basics.learn:clip_",
        "data_loading": "cs336_basics.learn:sample_windows",
        "checkpointing": ["cs336_basics.learn:dump", "cs336_basics.learn:restore"],
        "tokenizer": "cs336_basics.tok:BPE",
        "train_bpe": "cs336_basics.tok:Trainer",
        "decoding": "cs336_basics.lm:decode",
    },
}
# Which problems rest on another one, whose bug they show too.
MODEL = ("transformer_block", "transformer_lm")
RESTS_ON = {
    "rmsnorm": MODEL,
    "positionwise_feedforward": MODEL,
    "rope": ("multihead_self_attention", *MODEL),
    "scaled_dot_product_attention": ("multihead_self_attention", *MODEL),
    "multihead_self_attention": MODEL,
    "transformer_block": ("transformer_lm",),
}


def module(repository: str, file: str) -> ModuleType:
    """A file of a checkout that imports none of the others, as a module of its own."""
    name = f"made_{repository}_{Path(file).stem}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, FOLDER / repository / file)
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


class Bug(NamedTuple):
    """An edit of one file that breaks one part, as learners do."""

    name: str
    repository: str
    file: str
    old: str  # what stands there exactly once
    new: str
    problem: str  # whose check must call it wrong
    part: str  # that the twin test must name


def copied(repository: str, folder: Path, bug: Bug | None = None) -> Path:
    """Copy a made-up checkout into a folder, perhaps with a bug planted; return its root."""
    root = folder / repository
    shutil.copytree(FOLDER / repository, root, ignore=shutil.ignore_patterns("__pycache__"))
    if bug is not None:
        plant(bug, root)
    return root


def adopt(root: Path, parts: dict, study: Path) -> None:
    """Write down that these are the parts of a learner, as `workbook adopt` does."""
    study.mkdir(exist_ok=True)
    lines = [f"folder = {json.dumps(str(root))}", "[parts]"]
    lines += [f"{name} = {json.dumps(where)}" for name, where in parts.items()]
    (study / "adopted.toml").write_text("\n".join(lines))


def buggy(bugs: Sequence[Bug], folder: Path, study: Path) -> None:
    """Copy the checkout of these bugs, plant them all, and write down where its parts are."""
    name = bugs[0].repository
    root = copied(name, folder)
    for bug in bugs:
        plant(bug, root)
    adopt(root, PARTS[name], study)


def plant(bug: Bug, root: Path) -> None:
    """Make the edit in a copy of the checkout."""
    file = root / bug.file
    code = file.read_text(encoding="utf-8")
    assert code.count(bug.old) == 1, bug
    file.write_text(code.replace(bug.old, bug.new), encoding="utf-8")


# A line says where: the repository, the file, the problem whose check must call it wrong, and the
# part that the twin test must name. Then come the name of the bug, what stands there, and what is
# put in its place.
EDITS = """
flat cs336_basics/model.py rope forward
RoPE turns halves, not neighbours
- x1, x2 = x[..., 0::2], x[..., 1::2]
+ x1, x2 = x.chunk(2, dim=-1)

flat cs336_basics/training.py cross_entropy loss
the loss is summed
- targets.unsqueeze(-1)).mean()
+ targets.unsqueeze(-1)).sum()

flat cs336_basics/training.py adamw optimizer
AdamW does not correct the bias
- lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
+ lr_t = lr

flat cs336_basics/training.py learning_rate_schedule schedule
the warm-up is a step ahead
- return it / warmup_iters * max_learning_rate
+ return (it + 1) / warmup_iters * max_learning_rate

flat cs336_basics/training.py data_loading batches
the targets are the inputs
- dataset[s + 1 : s + 1 + context_length]
+ dataset[s : s + context_length]

renamed src/cs336_basics/lm.py multihead_self_attention forward
the keys are not turned
- k = self.rope(k, token_positions.unsqueeze(-2))
+ pass

renamed src/cs336_basics/learn.py adamw optimizer
the weights decay without the learning rate
- weight.data * (1 - group["lr"] * group["weight_decay"])
+ weight.data * (1 - group["weight_decay"])

renamed src/cs336_basics/learn.py gradient_clipping clipping
the clipped gradient is thrown away
- p.grad.data = p.grad.data * (limit / (length + 1e-6))
+ _clipped = p.grad.data * (limit / (length + 1e-6))

renamed src/cs336_basics/learn.py cross_entropy loss
the loss takes the mean of the powers, not their sum
- shifted.exp().sum(-1).log()
+ shifted.exp().mean(-1).log()

renamed src/cs336_basics/lm.py positionwise_feedforward gradients
no gradient reaches the gate
- swish(self.gate(x))
+ swish(self.gate(x).data)
"""


def bug(edit: str) -> Bug:
    """Read one of the edits."""
    where, name, old, new = edit.strip().splitlines()
    repository, file, problem, part = where.split()
    return Bug(name, repository, file, old[2:], new[2:], problem, part)


BUGS = tuple(bug(edit) for edit in EDITS.split("\n\n"))
