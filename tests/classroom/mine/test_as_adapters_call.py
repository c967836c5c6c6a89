"""Layers are made, filled and called as the learner's own adapters do it."""

from urllib.error import URLError

import pytest
from made_repositories import adopt, copied

from workbook.classroom.checks.machinery.verdicts import NotJudged
from workbook.classroom.mine import adapters, check_all, own_parts, twin
from workbook.transformer.model import TransformerLM

# None of these can be judged by its signature or the names of its weights alone.
LAYERS = """
from cs336_basics import model

class Linear(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.weight = nn.Parameter(nn.init.trunc_normal_(torch.empty(sizes)))

    def forward(self, x):
        return x @ self.weight.T

class Embedding(nn.Module):
    def __init__(self, table, scale):
        super().__init__()
        self.table = nn.Parameter(table)

    def forward(self, token_ids):
        return self.table[token_ids]

class SwiGLU(model.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, (d_ff + 63) // 64 * 64)
        self.alpha, self.beta, self.gamma = self.w1, self.w2, self.w3
        del self.w1, self.w2, self.w3

    def forward(self, x):
        return self.beta(model.silu(self.alpha(x)) * self.gamma(x))

class Block(model.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.attn.rope = model.RotaryPositionalEmbedding(1.0, d_model // num_heads, 1)

    def forward(self, x, position_embeddings):
        self.attn.rope.cos, self.attn.rope.sin = position_embeddings
        return super().forward(x)

class LM(model.TransformerLM):
    def __init__(self, config):
        super().__init__(*config)
        self.table = self.token_embeddings
        del self.token_embeddings
        nn.init.constant_(self.table.weight, 0.5)

    def forward(self, *, x):
        self.token_embeddings = self.table.forward
        return super().forward(x)
"""
ADAPTERS = """
import torch
from cs336_basics import own

def run_linear(d_in, d_out, weights, in_features):
    "The course's own docstrings have a \\T in them."
    linear = own.Linear((d_out, d_in))
    linear.load_state_dict({"weight": weights})
    return linear(in_features)

def run_embedding(vocab_size, d_model, weights, token_ids):
    return own.Embedding(weights, 1.0)(token_ids)

def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    swiglu = own.SwiGLU(d_model, d_ff)
    swiglu.alpha.weight.data, swiglu.beta.weight.data = w1_weight, w2_weight
    swiglu.gamma.weight.data = w3_weight
    return swiglu(in_features)

def run_transformer_block(d_model, num_heads, d_ff, max_seq_len, theta, weights, in_features):
    block = own.Block(d_model, num_heads, d_ff)
    block.load_state_dict(weights)
    rope = own.model.RotaryPositionalEmbedding(theta, d_model // num_heads, in_features.shape[-2])
    return block(in_features, position_embeddings=(rope.cos, rope.sin))

def run_transformer_lm(vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta,
                       weights, in_indices):
    config = vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta
    lm = own.LM(config)
    lm.load_state_dict({n.replace("token_embeddings", "table"): w for n, w in weights.items()})
    return lm(x=in_indices)
"""
FOUND = {
    "linear": "cs336_basics.own:Linear",
    "embedding": "cs336_basics.own:Embedding",
    "positionwise_feedforward": "cs336_basics.own:SwiGLU",
    "transformer_block": "cs336_basics.own:Block",
    "transformer_lm": "cs336_basics.own:LM",
}


@pytest.fixture
def repository(study, tmp_path):
    """A function that writes a repository with such layers and adapters, and adopts parts."""

    def write(parts, layers=LAYERS, functions=ADAPTERS):
        root = copied("flat", tmp_path)
        code = f"import torch\nfrom torch import nn\n{layers}"
        (root / "cs336_basics" / "own.py").write_text(code)
        (root / "tests" / "adapters.py").write_text(functions)
        adopt(root, parts, study)

    return write


def checked(study, *only):
    return {each.problem: each for each in check_all.check_all(study, only or check_all.CODE)}


@pytest.mark.slow
def test_layers_are_judged_as_their_adapters_call_them(repository, study):
    repository(FOUND)
    outcomes = checked(study, *FOUND)
    messages = {name: outcome.message for name, outcome in outcomes.items()}
    assert all(said.startswith("As your adapter calls it: ") for said in messages.values()), (
        messages
    )
    # Of the weights, those that the class has drawn are looked at, not those that were loaded.
    assert "should be √(2 / (d_in + d_out)), but is that of a bare" in messages["linear"]
    assert messages["embedding"].endswith("The right rows. Initial weights not judged.")
    assert outcomes["positionwise_feedforward"].status == "correct"
    assert "your adapter changes the shape of" in outcomes["positionwise_feedforward"].cause
    assert outcomes["transformer_block"].status == "correct"
    assert not outcomes["transformer_block"].cause
    assert outcomes["transformer_lm"].status == "almost"
    assert "its `table.weight`" in messages["transformer_lm"]
    assert not any("workbook adopt" in said or "escape" in said for said in messages.values())


OF_POSITIONS = """
from cs336_basics import model

class Attention(model.MultiHeadSelfAttention):
    def __init__(self, d_model, num_heads, max_seq_len, theta, token_positions):
        super().__init__(d_model, num_heads, max_seq_len, theta)
        self.positions = token_positions

    def forward(self, x):
        return super().forward(x, self.positions)
"""
RUN_OF_POSITIONS = """
from cs336_basics import own

def run_multihead_self_attention_with_rope(
    d_model, num_heads, max_seq_len, theta, q_proj_weight, k_proj_weight, v_proj_weight,
    o_proj_weight, in_features, token_positions=None,
):
    layer = own.Attention(d_model, num_heads, max_seq_len, theta, token_positions)
    weights = (q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight)
    names = (f"{name}_proj.weight" for name in ("q", "k", "v", "output"))
    layer.load_state_dict(dict(zip(names, weights)))
    return layer(in_features)
"""


# Called by its `forward`, with what the problem has no name for.
OF_THREE = """
from cs336_basics import model

class Attention(model.MultiHeadSelfAttention):
    def forward(self, first, second, third, at=None):
        assert first is second is third
        return super().forward(first, at)
"""
RUN_OF_THREE = RUN_OF_POSITIONS.replace("theta, token_positions)", "theta)").replace(
    "layer(in_features)", "layer.forward(in_features, in_features, in_features, token_positions)"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "function"), [(OF_POSITIONS, RUN_OF_POSITIONS), (OF_THREE, RUN_OF_THREE)]
)
def test_a_layer_is_made_and_called_with_what_its_adapter_has_for_it(
    layer, function, repository, study
):
    parts = {"multihead_self_attention": "cs336_basics.own:Attention"}
    repository(parts, layer, function)
    (outcome,) = checked(study).values()
    assert outcome.status == "correct", outcome.message


TURNED = """
class Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        return torch.einsum("oi,...i->...o", self.weight, x)
"""
RUN_TURNED = """
from cs336_basics import own

def run_linear(d_in, d_out, weights, in_features):
    layer = own.Linear(d_in, d_out)
    layer.weight.data = weights
    return layer(in_features)
"""


def test_a_class_that_fails_with_its_own_weights_is_not_saved_by_its_adapter(repository, study):
    repository({"linear": "cs336_basics.own:Linear"}, TURNED, RUN_TURNED)
    (outcome,) = checked(study).values()
    assert outcome.status == "wrong" and "As the class makes it, before your" in outcome.message
    words = "The class makes `weight` of shape (64, 256), and your adapter makes it (256, 64)."
    assert words in outcome.cause


HALF = """
from cs336_basics import model

class LM(model.TransformerLM):
    def __init__(self, *sizes, dtype=torch.bfloat16):
        super().__init__(*sizes)
        self.to(dtype)

    def forward(self, x):
        return super().forward(x).to(self.lm_head.weight.dtype)
"""
RUN_LM = """
from cs336_basics import own

def run_transformer_lm(weights, in_indices, **sizes):
    lm = own.LM(*sizes.values())
    lm.load_state_dict(weights)
    return lm(x=in_indices)
"""
LOOSE = """
def run_transformer_lm(vocab_size, d_model, weights, in_indices, **sizes):
    from cs336_basics import own
    table = own.model.Embedding(vocab_size, d_model)
    return own.model.Linear(d_model, vocab_size)(table(in_indices))
"""


@pytest.mark.slow
def test_a_model_in_half_precision_is_judged_in_float32_and_its_weights_are_found(
    repository, study, clean_imports
):
    repository({"transformer_lm": "cs336_basics.own:LM"}, HALF, RUN_LM)
    (outcome,) = checked(study).values()
    said = "Worth knowing: it is right in float32; its default is bfloat16."
    assert outcome.status == "correct" and outcome.message.endswith(said), outcome.message
    config = twin.small("laptop", 4).model
    model = own_parts.parts(study).model(config)
    weights = TransformerLM.from_config(config).state_dict()
    model.fill(weights)
    assert all(weight.equal(weights[name]) for name, weight in model.places(weights).items())


def test_loose_layers_are_told_with_the_class_that_could_hold_them(
    repository, study, clean_imports
):
    repository({"transformer_lm": "cs336_basics.own:LM"}, HALF, LOOSE)
    words = "run_transformer_lm puts loose layers together .* let it make your cs336_basics.own:LM"
    with pytest.raises(own_parts.PartError, match=words):
        own_parts.parts(study).model(twin.small("laptop", 4).model)


def test_an_adapter_that_asks_for_the_network_is_not_judged():
    def run():
        raise URLError("[Errno -2] Name or service not known")

    with pytest.raises(NotJudged, match=r"^it needs the network \(URLError"):
        adapters.as_unusable(run)
