"""Arguments find the parameters that mean them, whatever a learner calls and orders them."""

from dataclasses import dataclass

import pytest
import torch

from workbook.classroom.checks.machinery.calling import bind, call_part, parameters_of
from workbook.classroom.checks.machinery.verdicts import Wrong

BLOCK = {"d_model": 8, "num_heads": 2, "d_ff": 12, "max_seq_len": 16, "theta": 50.0}
LM = {"vocab_size": 5, "context_length": 16, "d_model": 8, "num_layers": 3, "num_heads": 2}
LM |= {"d_ff": 12, "rope_theta": 50.0}
SIZES = {"d_model": 8, "num_heads": 2}
QKV = {"Q": 1, "K": 2, "V": 3, "mask": 4}
SIGNATURES = [  # values, a signature, and what its parameters should get
    (LM, "a, b, c, d, e, f, g", dict(zip("abcdefg", LM.values(), strict=True))),
    (
        LM,
        "*, n_layers, n_heads, d_ff, rope_theta, d_model, vocab_size, max_seq_len, device=None",
        {
            "n_layers": 3,
            "n_heads": 2,
            "d_ff": 12,
            "rope_theta": 50.0,
            "d_model": 8,
            "vocab_size": 5,
            "max_seq_len": 16,
        },
    ),
    (BLOCK, "d_model, num_heads, d_ff, use_rope=True, max_seq_len=None, theta=None", BLOCK),
    (SIZES, "d_model, num_heads, pos_embed=None", SIZES),
    (
        SIZES,
        "d_model, num_heads, remove_rope, use_norm, use_post_norm, with_bias",
        {**SIZES, "remove_rope": False, "use_norm": True, "use_post_norm": False}
        | {"with_bias": False},
    ),
    (
        BLOCK,
        "d_ff, d_model, n_heads, base, context_length",
        {"d_ff": 12, "d_model": 8, "n_heads": 2, "base": 50.0, "context_length": 16},
    ),
    (
        BLOCK,
        "device, d_model, num_heads, d_ff, max_seq_len, theta, eps, dtype",
        {**BLOCK, "device": None, "eps": 1e-5, "dtype": None},
    ),
    (
        BLOCK,
        "block_index, d_model, num_heads, d_ff, mode='pre', length=None, base=10.0",
        {"block_index": 0, "d_model": 8, "num_heads": 2, "d_ff": 12, "length": 16, "base": 50.0},
    ),
    (
        {"theta": 50.0, "d_k": 4, "max_seq_len": 8},
        "d_model, theta, max_seq_len",
        {"d_model": 4, "theta": 50.0, "max_seq_len": 8},
    ),
    (QKV, "K, Q, V, mask=None", QKV),
    ({"logits": 1, "targets": 2}, "targets, inputs", {"targets": 2, "inputs": 1}),
    ({"d_model": 8, "d_ff": 12}, "in_features, hidden_dim", {"in_features": 8, "hidden_dim": 12}),
    # A default that is a text takes no value by position.
    (
        {"input_path": "a", "vocab_size": 300},
        "vocab_size, file_path='b'",
        {"vocab_size": 300, "file_path": "a"},
    ),
    # `norm` is no switch that turns an `rm` off.
    (SIZES, "norm, dots", {"norm": 8, "dots": 2}),
    (SIZES, "d_model, use_norm, num_heads", {**SIZES, "use_norm": True}),
]


@dataclass
class Config:
    n_layer: int
    n_head: int
    d_model: int
    d_ff: int
    vocab_size: int
    block_size: int
    theta: float = 10_000.0
    without_rotary: bool = False


def annotated(config: Config):
    return config


def annotated_in_a_text(config: "Config", device: "torch.device" = None):
    return config


def defaulted(config: Config | None = None):
    return config


def test_a_switch_for_rope_is_turned_the_right_way_round_also_inside_a_config():
    for on in (True, False):
        own = bind(made("d_model, num_heads, remove_rope=False, use_rope=True"), SIZES, rope=on)
        assert (own.kwargs["use_rope"], own.kwargs["remove_rope"]) == (on, not on)
        assert bind(annotated, LM, rope=on).kwargs["config"].without_rotary is not on


def made(parameters):
    return eval(f"lambda {parameters}: None")


@pytest.mark.parametrize(("values", "parameters", "wanted"), SIGNATURES)
def test_each_value_goes_to_the_parameter_that_means_it(values, parameters, wanted):
    args, kwargs, left = bind(made(parameters), values)
    assert (args, kwargs, left) == ((), wanted, {})


def test_a_config_object_is_made():
    for function in (annotated, annotated_in_a_text, defaulted):
        config = call_part(function, LM)
        assert (config.n_layer, config.block_size, config.theta) == (3, 16, 50.0)
    names = [each.name for each in parameters_of(annotated_in_a_text)]
    assert (names[0], names[-1]) == ("n_layer", "device")
    assert parameters_of(len) and parameters_of(3) == []
    with pytest.raises(Wrong) as raised:
        call_part(lambda cfg: cfg, LM)
    assert "of which dataclass is `cfg`? Annotate it" in raised.value.rows[-1][1]


WITHOUT_PLACE = [
    (
        "d_model, num_heads, d_ff, max_seq_len, use_rope=False",
        BLOCK,
        "your fifth argument is `use_rope`; which one is `theta`?",
    ),
    (
        "d_model, num_heads, weights=None",
        SIZES | {"theta": 5.0},
        "your third argument is `weights`; which one is `theta`?",
    ),
    ("x, surprise", {"x": 1}, "`surprise`"),
]


@pytest.mark.parametrize(("parameters", "values", "words"), WITHOUT_PLACE)
def test_what_has_no_place_is_asked_for_and_lands_nowhere_else(parameters, values, words):
    with pytest.raises(Wrong) as raised:
        bind(made(parameters), values)
    assert words in raised.value.rows[-1][1]


def test_what_a_signature_does_not_name_is_handed_on_by_place_or_by_name():
    values = {"x": 1, "token_positions": 2}
    for parameters in ("*args, **kwargs", "x, *args", "x, *args, device=None"):
        assert bind(made(parameters), values)[:2] == ((1, 2), {})
    assert bind(made("x, **kwargs"), values)[:2] == ((), values)


def test_values_that_may_be_left_out_are_given_only_where_there_is_a_place():
    values = {"x": 1, "token_positions": 2}
    where = {"x": None, "x, pos=None": "pos", "x, cache=None": None, "x, where": "where"}
    for parameters, name in where.items():
        kwargs = bind(made(parameters), values, optional=["token_positions"]).kwargs
        assert kwargs == ({"x": 1, name: 2} if name else {"x": 1})


def test_extras_are_given_where_a_signature_asks_for_them():
    extras = {"d_k": 4, "tokenizer": "ours"}
    assert bind(made("d_model, num_heads, d_key"), SIZES, extras=extras).kwargs["d_key"] == 4
    both = bind(made("hidden_dim, dim, device"), {"d_model": 8, "d_ff": 12}, extras=extras).kwargs
    assert both == {"hidden_dim": 12, "dim": 8, "device": None}
    assert "tok" not in bind(made("d_model, num_heads, tok=None"), SIZES, extras=extras).kwargs
