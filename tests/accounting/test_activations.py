"""The tensors that a formula lists have the bytes that autograd keeps in a real forward pass."""

import pytest
import torch

from workbook import accounting
from workbook.accounting import measured
from workbook.config import ModelConfig
from workbook.transformer import fused, nn
from workbook.transformer.model import TransformerLM

SHAPES = [  # batch_size, seq, d_model, num_heads, d_ff, num_layers, vocab_size
    (2, 16, 24, 3, 40, 2, 101),
    (1, 1, 4, 2, 6, 1, 5),
    (5, 9, 32, 1, 64, 3, 50),
    (2, 64, 16, 8, 44, 4, 33),
]
ABLATIONS = [
    {},
    {"norm": "post"},
    {"norm": "none"},
    {"position": "none"},
    {"ffn": "silu"},
    {"tie_embeddings": True},
    {"norm": "post", "ffn": "silu", "position": "none", "tie_embeddings": True},
]


def saved_bytes(config: ModelConfig, batch_size: int, seq: int) -> int:
    """The bytes that autograd keeps for a loss, without weights and buffers."""
    model = TransformerLM.from_config(config)
    ids, targets = torch.randint(config.vocab_size, (2, batch_size, seq))
    loss = (fused if config.kernels == "fused" else nn).cross_entropy
    return sum(measured.saved_bytes(lambda: loss(model(ids), targets), model))


@pytest.mark.parametrize("kernels", ["textbook", "fused"])
@pytest.mark.parametrize("choices", ABLATIONS, ids=str)
def test_activations_equal_what_autograd_keeps_to_the_byte(choices, kernels):
    for batch_size, seq, d_model, num_heads, d_ff, num_layers, vocab_size in SHAPES:
        config = ModelConfig(
            vocab_size=vocab_size,
            context_length=seq + 3,
            d_model=d_model,
            num_layers=num_layers,
            num_heads=num_heads,
            d_ff=d_ff,
            kernels=kernels,
            **choices,
        )
        table = accounting.saved_activations(config, batch_size, seq)
        assert table.total == saved_bytes(config, batch_size, seq), config
