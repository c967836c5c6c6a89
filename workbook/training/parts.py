"""What a run is made of: a model, a loss, an optimizer and so on, ours or a learner's.

The trainer, the text samples and the benches call the parts of a `Parts`, never one of ours by
name. So if you have written a part, you can put it in place of ours:

    train(config, data, parts=replace(Parts.ours(config), optimizer=my_optimizer, made_by={...}))
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from workbook.config import ModelConfig, OptimizerConfig, TrainConfig
from workbook.optimizer import optimizers
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import data
from workbook.transformer.model import PARTS as KERNELS
from workbook.transformer.model import TransformerLM


class Maker(NamedTuple):
    """Who made a part that is not ours."""

    where: str  # such as "cs336_basics.model:MyLM"
    hash: str  # of its source


@dataclass(frozen=True, kw_only=True, repr=False)
class Parts:
    """The parts of a run. Each takes the handout's arguments, in its order.

    `clipping` returns the norm that the gradients had before. `get_batch` draws from the generator
    that it is given, or from the global ones. `decode` is a learner's; None means ours, which is in
    `generation`.
    """

    # Functions, not objects: a resumed run, or a second process, makes its own.
    model: Callable[[ModelConfig], nn.Module] = TransformerLM.from_config
    loss: Callable[[Tensor, Tensor], Tensor] = KERNELS["fused"].cross_entropy
    optimizer: Callable[[Iterable[Tensor], OptimizerConfig], Optimizer] = optimizers.from_config
    schedule: Callable[[int, float, float, int, int], float] = optimizers.cosine_schedule
    clipping: Callable[[Iterable[Tensor], float], Tensor] = optimizers.clip_gradients
    get_batch: Callable[
        [np.ndarray, int, int, torch.device, torch.Generator], tuple[Tensor, Tensor]
    ] = data.get_batch
    tokenizer: Callable[..., Tokenizer] = Tokenizer  # of vocab, merges, special_tokens
    decode: Callable[..., list[int]] | None = None
    made_by: Mapping[str, Maker] = field(default_factory=dict)  # by field, for those not ours

    @classmethod
    def ours(cls, config: TrainConfig) -> "Parts":
        """Our parts, with the kernels that a config asks for."""
        # The model chooses its kernels by its config; only the loss is outside of it.
        return cls(loss=KERNELS[config.model.kernels].cross_entropy)

    @property
    def key(self) -> str:
        """A hash of the sources of all parts that are not ours; "" if all are."""
        if not self.made_by:
            return ""
        # Their sources, not their names: a part that was changed makes another run, in another
        # folder.
        hashes = json.dumps({name: maker.hash for name, maker in sorted(self.made_by.items())})
        return sha256(hashes.encode()).hexdigest()[:8]

    def prepare(self, config: TrainConfig) -> data.TrainData:
        """The data of a run, encoded by the tokenizer of these parts. Raises: as in `data`."""
        # Only a learner's tokenizer has to be compared with ours.
        return data.prepare(config, self.tokenizer if "tokenizer" in self.made_by else None)

    def __repr__(self) -> str:
        # All parts are listed, so that one sees at a glance which are not ours.
        rows = {name: f"yours  {where}" for name, where in self.places.items()}
        return "\n".join(f"{name:<9}  {rows.get(name, 'ours')}" for name in NAMES)

    @property
    def places(self) -> dict[str, str]:
        """Where the parts that are not ours come from, as a log stores it."""
        return {name: maker.where for name, maker in self.made_by.items()}


NAMES = tuple(part.name for part in fields(Parts) if part.name != "made_by")
