"""Every closed form of `workbook.accounting` equals what a running model is measured to need."""

from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from workbook import accounting
from workbook.accounting.measured import optimizer_bytes
from workbook.config import GPT2_SHAPES, ModelConfig, gpt2, laptop, tinystories
from workbook.optimizer.optimizers import AdamW
from workbook.transformer import fused, nn
from workbook.transformer.model import TransformerLM

GIANTS = [
    *(gpt2(size, edition) for edition, size in product(("2025", "2026"), GPT2_SHAPES)),
    gpt2("xl", "2025", context_length=16_384),
]
FULL_XL = gpt2("xl", "2025")
ABLATIONS = [
    {},
    {"norm": "post"},
    {"norm": "none"},
    {"position": "none"},
    {"ffn": "silu"},
    {"tie_embeddings": True},
    {"norm": "post", "ffn": "silu", "position": "none", "tie_embeddings": True},
]
MINIATURE = ModelConfig(
    vocab_size=101, context_length=16, d_model=24, num_layers=2, num_heads=3, d_ff=40
)


def on_meta(config: ModelConfig) -> TransformerLM:
    """The model without its memory: shapes only."""
    return TransformerLM.from_config(replace(config, kernels="textbook"), device="meta")


@pytest.mark.parametrize("config", GIANTS)
def test_parameters_equal_those_of_the_model(config):
    model = on_meta(config)
    assert accounting.parameters(config).total == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("choices", ABLATIONS)
def test_parameters_of_every_ablation_equal_those_of_its_modules(choices):
    config = replace(MINIATURE, **choices)
    measured: dict[str, int] = {}
    for name, parameter in on_meta(config).named_parameters():
        name = name.removesuffix(".weight")
        if name.startswith("layers."):
            name = name.split(".", 2)[2]
        measured[name] = measured.get(name, 0) + parameter.numel()
    assert {row.name: row.total for row in accounting.parameters(config)} == measured


@pytest.mark.parametrize("config", [FULL_XL, *(replace(each, num_layers=2) for each in GIANTS)])
def test_flops_equal_what_torch_counts_forward_and_backward(config):
    model = on_meta(config)
    ids = torch.zeros(1, config.context_length, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        logits = model(ids)
        assert accounting.forward_flops(config).total == counter.get_total_flops()
    with FlopCounterMode(display=False) as counter:
        logits.sum().backward()
    assert accounting.backward_flops(config).total == counter.get_total_flops()


@pytest.mark.parametrize("choices", ABLATIONS)
def test_flops_of_every_ablation_equal_what_torch_counts(choices):
    config = replace(MINIATURE, **choices)
    ids = torch.zeros(5, 7, dtype=torch.long, device="meta")
    with FlopCounterMode(display=False) as counter:
        on_meta(config)(ids).sum().backward()
    assert accounting.step_flops(config, 5, 7) == counter.get_total_flops()


def test_training_takes_three_forward_passes_a_token():
    config = tinystories()
    in_products = sum(
        row.total for row in accounting.parameters(config) if row.part not in ("embedding", "norms")
    )
    T, d, L = config.context_length, config.d_model, config.num_layers
    assert accounting.flops_per_token(config) == 6 * in_products + 12 * L * T * d
    assert accounting.flops_per_token(config) * T == accounting.step_flops(config, 1)


def saved_bytes(config: ModelConfig, batch_size: int, seq: int) -> int:
    """The bytes that autograd keeps for a loss; each storage once, without weights and buffers."""
    model = TransformerLM.from_config(config)
    known = {x.untyped_storage().data_ptr() for x in (*model.parameters(), *model.buffers())}
    kept = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.randint(config.vocab_size, (2, batch_size, seq))
    loss = (fused if config.kernels == "fused" else nn).cross_entropy
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        held = loss(model(ids[0]), ids[1])  # held: what is freed may lend its address
    del held
    return sum(kept.values())


SHAPES = [  # batch_size, seq, d_model, num_heads, d_ff, num_layers, vocab_size
    (2, 16, 24, 3, 40, 2, 101),
    (1, 16, 24, 3, 40, 2, 101),
    (3, 1, 8, 2, 12, 1, 11),
    (1, 1, 4, 2, 6, 1, 5),
    (5, 9, 32, 1, 64, 3, 50),
    (4, 32, 64, 4, 192, 1, 300),
    (2, 64, 16, 8, 44, 4, 33),
]


def of_shape(shape: tuple, **choices) -> ModelConfig:
    _, seq, d_model, num_heads, d_ff, num_layers, vocab_size = shape
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=seq + 3,
        d_model=d_model,
        num_layers=num_layers,
        num_heads=num_heads,
        d_ff=d_ff,
        **choices,
    )


@pytest.mark.parametrize("choices", ABLATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_textbook_activations_equal_what_autograd_keeps_to_the_byte(shape, choices):
    config = of_shape(shape, kernels="textbook", **choices)
    table = accounting.saved_activations(config, *shape[:2])
    assert table.total == saved_bytes(config, *shape[:2])


@pytest.mark.parametrize("choices", ABLATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_fused_activations_equal_what_autograd_keeps_to_the_byte(shape, choices):
    config = of_shape(shape, kernels="fused", **choices)
    table = accounting.saved_activations(config, *shape[:2])
    assert table.total == saved_bytes(config, *shape[:2])


@pytest.mark.parametrize("make", [torch.optim.AdamW, AdamW])
def test_optimizer_bytes_equal_the_state_after_a_step(make):
    model = TransformerLM.from_config(MINIATURE)
    optimizer = make(model.parameters())
    model(torch.zeros(1, 4, dtype=torch.long)).sum().backward()
    optimizer.step()
    assert accounting.optimizer_bytes(MINIATURE) == optimizer_bytes(optimizer)


# The right values of the course's problems, worked out by hand once: not by the code they test.
def test_the_answers_of_transformer_accounting():
    xl = gpt2("xl", "2025")
    assert accounting.parameters(xl).total == 2_127_057_600
    assert accounting.parameters(gpt2("xl", "2026")).total == 1_640_452_800
    sizes = [accounting.forward_flops(gpt2(size, "2025")).total for size in GPT2_SHAPES]
    assert sizes == [349_630_365_696, 1_033_109_504_000, 2_257_754_521_600, 4_513_336_524_800]
    assert accounting.forward_flops(gpt2("xl", "2026")).total == 3_516_769_894_400
    flops = accounting.forward_flops(xl)
    shares = {part: round(100 * flops.share(part), 1) for part in flops.by_part()}
    assert shares == {"feed-forward": 66.9, "projections": 22.3, "scores": 7.1, "head": 3.6}
    longer = accounting.forward_flops(xl, seq=16_384)
    assert longer.total == 149_522_795_724_800
    assert accounting.forward_flops(gpt2("xl", "2026"), seq=16_384).total == 133_577_729_638_400
    assert round(longer.total / flops.total, 1) == 33.1
    assert round(100 * longer.share("scores"), 1) == 55.2


@pytest.mark.parametrize(
    ("edition", "count", "a", "b", "days"),
    [("2025", 1_635_537_600, 15.518, 26.169, 5_115), ("2026", 1_640_452_800, 16.373, 26.247, 202)],
)
def test_the_answers_of_adamw_accounting(edition, count, a, b, days):
    config, device = accounting.asked_model(edition), accounting.asked_device(edition)
    assert accounting.parameters(config).total == count
    line = accounting.memory_line(config)
    assert [round(x / accounting.GB, 3) for x in line] == [a, b]
    assert accounting.largest_batch(*line) == 3
    assert accounting.adamw_flops(count) == 14 * count
    seconds = accounting.training_seconds(
        accounting.step_flops(config, 1_024), 400_000, device.flops_per_second
    )
    assert round(seconds / 86_400) == days


def test_counting_choices_give_what_is_published():
    assert accounting.adamw_operations(bias_corrections=2, update=4).total == 15
    assert accounting.adamw_operations(first_moment=2, second_moment=3).total == 12
    two = accounting.asked_model("2025")
    reading = accounting.memory_line(two, maps=1, embedding_output=True)
    assert round(reading[0] / accounting.GB, 2) == 10.49
    assert accounting.largest_batch(*reading) == 5
    assert round(accounting.memory_line(two, residual_copies=1)[0] / accounting.GB, 2) == 16.15


def test_no_batch_fits_where_the_weights_do_not():
    assert accounting.largest_batch(10, 200, memory=100) == 0


def test_utilisation_is_a_share_of_the_peak():
    with pytest.raises(ValueError, match=r"0\.5 means half"):
        accounting.training_seconds(10, 1, 1e12, utilisation=50)
    assert accounting.mfu(2e6, 5_000, 2e10) == 0.5


def test_tables_are_shown_by_pandas_and_name_what_they_lack():
    table = accounting.parameters(laptop())
    assert list(pd.DataFrame(table)) == ["name", "part", "formula", "each", "times", "total"]
    assert sum(table.by_part().values()) == pd.DataFrame(table)["total"].sum() == table.total
    with pytest.raises(ValueError, match="no row is called 'w1'; there are token_embeddings"):
        table["w1"]
    with pytest.raises(ValueError, match="no part is called 'ffn'; there are embedding"):
        table.share("ffn")
