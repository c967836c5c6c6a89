"""Two made-up repositories of the course, and the bugs that tests plant in them.

They lie in `tests/classroom/mine/repositories`, right and complete, as other learners write:
`flat` has a file for the model and the handout's names, `renamed` has names of its own everywhere,
a config object, a loss and a trainer that are classes, and asks for a tracker.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from workbook.classroom.checks.machinery.loading import load_file

FOLDER = Path(__file__).parent / "classroom" / "mine" / "repositories"
NAMES = ("flat", "renamed")

# Where the parts are, by problem: what `workbook adopt` is to find in the package `cs336_basics` of
# `flat` and of `renamed`. A comma is between the two of a pair. Only `flat` trains.
PLACES = """
linear                        model:Linear                        lm:Proj
embedding                     model:Embedding                     lm:TokenTable
rmsnorm                       model:RMSNorm                       lm:Norm
positionwise_feedforward      model:SwiGLU                        lm:GatedMLP
rope                          model:RotaryPositionalEmbedding     lm:RotaryEncoding
softmax                       model:softmax                       lm:stable_softmax
scaled_dot_product_attention  model:scaled_dot_product_attention  lm:attend
multihead_self_attention      model:MultiHeadSelfAttention        lm:Attention
transformer_block             model:TransformerBlock              lm:Layer
transformer_lm                model:TransformerLM                 lm:MyLM
cross_entropy                 training:cross_entropy              learn:NLL
adamw                         training:AdamW                      learn:Adam
learning_rate_schedule        training:get_lr_cosine_schedule     learn:lr_at
gradient_clipping             training:gradient_clipping          learn:clip_
data_loading                  training:get_batch                  learn:sample_windows
checkpointing  training:save_checkpoint,training:load_checkpoint  learn:dump,learn:restore
tokenizer                     tokenizer:Tokenizer                 tok:BPE
train_bpe                     tokenizer:train_bpe                 tok:Trainer
decoding                      training:decode                     lm:decode
training_together             training:main
"""


def places(column: int) -> dict[str, str | list[str]]:
    """One column of the table: "module:object" by problem, a list of two for a pair."""
    table = {}
    for problem, *columns in map(str.split, PLACES.strip().splitlines()):
        if column < len(columns):
            wheres = [f"cs336_basics.{where}" for where in columns[column].split(",")]
            table[problem] = wheres if len(wheres) > 1 else wheres[0]
    return table


PARTS = {name: places(column) for column, name in enumerate(NAMES)}


def module(repository: str, file: str) -> ModuleType:
    """A file of a checkout that imports none of the others, as a module of its own."""
    name = f"made_{repository}_{Path(file).stem}"
    if name not in sys.modules:
        load_file(FOLDER / repository / file, name)
    return sys.modules[name]


class Bug(NamedTuple):
    """An edit of one file that breaks one part, as learners do."""

    repository: str
    file: str
    problem: str  # whose check must call it wrong
    part: str  # that the twin test must name
    old: str  # what stands there exactly once
    new: str


def copied(repository: str, folder: Path) -> Path:
    """Copy a made-up checkout into a folder; return its root."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(FOLDER / repository, folder / repository, ignore=ignored))


def adopt(root: Path, parts: dict, study: Path) -> None:
    """Write down that these are the parts of a learner, as `workbook adopt` does."""
    lines = [f"folder = {json.dumps(str(root))}", "[parts]"]
    lines += [f"{name} = {json.dumps(where)}" for name, where in parts.items()]
    (study / "adopted.toml").write_text("\n".join(lines))


def buggy(bugs: Sequence[Bug], folder: Path, study: Path) -> None:
    """Copy the checkout of these bugs, plant them all, and write down where its parts are."""
    name = bugs[0].repository
    root = copied(name, folder)
    for bug in bugs:
        file = root / bug.file
        code = file.read_text(encoding="utf-8")
        assert code.count(bug.old) == 1, bug
        file.write_text(code.replace(bug.old, bug.new), encoding="utf-8")
    adopt(root, PARTS[name], study)


# A line says where: the repository, the file, the problem whose check must call it wrong, and the
# part that the twin test must name; then what the bug is. Below are what stands there, and what is
# put in its place.
EDITS = """
flat cs336_basics/model.py rope forward: RoPE turns the other way
- [x1 * cos - x2 * sin, x1 * sin + x2 * cos]
+ [x1 * cos + x2 * sin, x2 * cos - x1 * sin]
flat cs336_basics/training.py cross_entropy loss: the loss is summed
- targets.unsqueeze(-1)).mean()
+ targets.unsqueeze(-1)).sum()
flat cs336_basics/training.py adamw optimizer: AdamW does not correct the bias
- lr_t = lr * math.sqrt(1 - beta2**t) / (1 - beta1**t)
+ lr_t = lr
flat cs336_basics/training.py data_loading batches: the targets are the inputs
- dataset[s + 1 : s + 1 + context_length]
+ dataset[s : s + context_length]
renamed src/cs336_basics/lm.py multihead_self_attention forward: the keys are not turned
- k = self.rope(k, token_positions.unsqueeze(-2))
+ pass
renamed src/cs336_basics/learn.py adamw optimizer: weights decay without the learning rate
- weight.data * (1 - group["lr"] * group["weight_decay"])
+ weight.data * (1 - group["weight_decay"])
renamed src/cs336_basics/learn.py gradient_clipping clipping: the clipped gradient is thrown away
- p.grad.data = p.grad.data * (limit / (length + 1e-6))
+ _clipped = p.grad.data * (limit / (length + 1e-6))
renamed src/cs336_basics/lm.py positionwise_feedforward gradients: no gradient reaches the gate
- swish(self.gate(x))
+ swish(self.gate(x).data)
"""
LINES = EDITS.strip().splitlines()
BUGS = tuple(
    Bug(*where.partition(":")[0].split(), old.removeprefix("- "), new.removeprefix("+ "))
    for where, old, new in zip(LINES[::3], LINES[1::3], LINES[2::3], strict=True)
)
