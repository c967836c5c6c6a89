from dataclasses import dataclass, field

import torch


@dataclass
class BlockConfig:
    d_model: int
    n_heads: int
    d_ff: int
    max_seq_len: int
    rope_theta: float = 10_000.0
    device: torch.device | str = "cpu"


@dataclass
class TransformerConfig:
    vocab_size: int
    context_length: int
    d_model: int
    num_layers: int
    num_heads: int
    d_ff: int
    rope_theta: float
    device: torch.device | str = "cpu"

    @property
    def block(self) -> BlockConfig:
        return BlockConfig(
            d_model=self.d_model,
            n_heads=self.num_heads,
            d_ff=self.d_ff,
            max_seq_len=self.context_length,
            rope_theta=self.rope_theta,
            device=self.device,
        )


@dataclass
class TrainingConfig:
    model: TransformerConfig
    train_path: str
    valid_path: str
    checkpoint_path: str = "model.pt"
    resume_from: str | None = None
    steps: int = 1000
    eval_every: int = 100
    batch_size: int = 32
    lr: float = 1e-3
    betas: tuple[float, float] = field(default=(0.9, 0.95))
    project: str = "cs336"
    wandb_mode: str = "offline"
