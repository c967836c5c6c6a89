"""A checkout of the course's repository: what is found in it, where that is kept, and its model."""

import subprocess
import sys
from pathlib import Path

import pytest

from workbook.study import repository

VERSION = """
import importlib.metadata
__version__ = importlib.metadata.version("cs336_basics")
"""

MODEL = """
import torch
from torch import nn

class Dense(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_out, d_in) / d_in**0.5)

    def forward(self, x):
        return x @ self.weight.T

class Table(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(n, d))

    def forward(self, ids):
        return self.rows[ids]

class Turn(nn.Module):
    def __init__(self, theta, d_k, n):
        super().__init__()
        angles = torch.arange(n)[:, None] * theta ** (-torch.arange(0, d_k, 2) / d_k)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, x, positions):
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = self.cos[positions], self.sin[positions]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

class Gain(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.g, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        return x * (x.pow(2).mean(-1, keepdim=True) + self.eps).rsqrt() * self.g

class Mixer(nn.Module):
    def __init__(self, d, heads, turn=None):
        super().__init__()
        self.heads, self.turn = heads, turn
        self.vqk, self.out = Dense(d, 3 * d), Dense(d, d)

    def forward(self, x):
        b, n, d = x.shape
        v, q, k = self.vqk(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.turn is not None:
            q, k = (self.turn(each, torch.arange(n)) for each in (q, k))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        seen = torch.ones(n, n, dtype=torch.bool).tril()
        y = scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, d))

class Gate(nn.Module):
    def __init__(self, d, d_ff):
        super().__init__()
        self.up, self.side, self.down = Dense(d, d_ff), Dense(d, d_ff), Dense(d_ff, d)

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x)) * self.side(x))

class Layer(nn.Module):
    def __init__(self, d, heads, d_ff, turn):
        super().__init__()
        self.one, self.two = Gain(d), Gain(d)
        self.mixer, self.gate = Mixer(d, heads, turn), Gate(d, d_ff)

    def forward(self, x):
        x = x + self.mixer(self.one(x))
        return x + self.gate(self.two(x))

class Net(nn.Module):
    def __init__(self, sizes, *, turn):
        super().__init__()
        d = sizes["d"]
        self.table, self.last = Table(sizes["v"], d), Gain(d)
        self.layers = nn.ModuleList(
            Layer(d, sizes["h"], sizes["f"], turn) for _ in range(sizes["n"])
        )
        self.head = Dense(d, sizes["v"])

    def forward(self, ids, cache=None):
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x)), cache

    @torch.no_grad()
    def generate(self, prompt, max_new_tokens, temperature=1.0):
        return prompt
"""

ADAPTERS = """
import torch
from cs336_basics import model as m
from cs336_basics.model import Dense as Linear

def run_linear(d_in, d_out, weights, in_features):
    layer = Linear(d_in, d_out)
    layer.load_state_dict({"weight": weights})
    return layer(in_features)

def run_rmsnorm(d_model, eps, weights, in_features):
    raise NotImplementedError

def run_softmax(in_features, dim):
    e = (in_features - in_features.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)

def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    gate = m.Gate(d_model, d_ff)
    gate.up.weight.data, gate.side.weight.data = w1_weight, w3_weight
    gate.down.weight.data = w2_weight
    return gate(in_features)

def run_transformer_lm(
    vocab_size, context_length, d_model, num_layers, num_heads, d_ff, rope_theta, weights,
    in_indices,
):
    sizes = {"v": vocab_size, "d": d_model, "n": num_layers, "h": num_heads, "f": d_ff}
    turn = m.Turn(rope_theta, d_model // num_heads, context_length)
    net = m.Net(sizes, turn=turn)
    w = weights
    net.table.rows.data = w["token_embeddings.weight"]
    net.head.weight.data = w["lm_head.weight"]
    net.last.g.data = w["ln_final.weight"]
    for n, layer in enumerate(net.layers):
        p = f"layers.{n}."
        vqk = [w[f"{p}attn.{each}_proj.weight"] for each in "vqk"]
        layer.mixer.vqk.weight.data = torch.cat(vqk)
        layer.mixer.out.weight.data = w[p + "attn.output_proj.weight"]
        layer.one.g.data, layer.two.g.data = w[p + "ln1.weight"], w[p + "ln2.weight"]
        layer.gate.up.weight.data = w[p + "ffn.w1.weight"]
        layer.gate.down.weight.data = w[p + "ffn.w2.weight"]
        layer.gate.side.weight.data = w[p + "ffn.w3.weight"]
    return net(in_indices)[0]
"""

TRAINING = """
import no_such_tracker

def train_model(config):
    return config
"""

FILES = {
    "cs336_basics/__init__.py": VERSION,
    "cs336_basics/model.py": MODEL,
    "cs336_basics/training.py": TRAINING,
    "tests/__init__.py": "",
    "tests/adapters.py": ADAPTERS,
    "pyproject.toml": '[project]\nname = "my-cs336"\nrequires-python = ">=3.11"\n',
}


def checkout(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> repository.Adopted:
    folder = checkout(tmp_path_factory.mktemp("made") / "assignment1-basics", FILES)
    before = sorted(folder.rglob("*"))
    adopted = repository.adopt(folder, {}, tmp_path_factory.mktemp("study"))
    assert sorted(folder.rglob("*")) == before
    return adopted


def inside(adopted: repository.Adopted, code: str) -> str:
    """What a Python of its own prints that has read the mapping as `a`."""
    start = (
        f"from workbook.study import repository\na = repository.read({str(adopted.file.parent)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{start}\n{code}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parts_are_found_where_the_adapters_call_them(made):
    where = {name: made.parts.get(name) for name in ("linear", "positionwise_feedforward")}
    assert where == {
        "linear": "cs336_basics.model:Dense",
        "positionwise_feedforward": "cs336_basics.model:Gate",
    }
    assert made.parts["transformer_lm"] == "cs336_basics.model:Net"
    assert made.how["linear"] == "run_linear calls it"


def test_a_body_in_an_adapter_is_the_part_itself(made):
    assert made.parts["softmax"] == "tests.adapters:run_softmax"


def test_what_no_adapter_has_is_found_by_its_name(made):
    assert made.parts["decoding"] == "cs336_basics.model:Net.generate"
    assert made.parts["training_together"] == "cs336_basics.training:train_model"


def test_what_is_not_found_and_what_is_missing_is_told(made):
    words = str(made)
    assert "Not found: rmsnorm" in words and "--set rmsnorm=module:RMSNorm" in words
    assert "pip install no-such-tracker" in words and "training_together" in words


def test_its_model_is_made_anew(made):
    code = """
import torch
from workbook.config import ModelConfig
sizes = dict(vocab_size=29, context_length=8, d_model=12, num_layers=2, num_heads=3, d_ff=20)
run = repository.adapter(a, "transformer_lm")
traced = repository.TracedModel(run, ModelConfig(**sizes))
model = traced.make()
assert model.table.rows.shape == (29, 12) and not model.last.g.ne(1).any()
ids = torch.randint(0, 29, (2, 5))
traced.call(model, ids).sum().backward()
print(traced.where, all(each.grad is not None for each in model.parameters()))
"""
    printed = inside(made, code)
    assert printed.splitlines()[0] == "cs336_basics.model:Net True"
