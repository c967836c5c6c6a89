"""A checkout of the course's repository: what is found in it, where that is kept, and its model."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from workbook import cli
from workbook.config import ModelConfig
from workbook.mine import repository
from workbook.mine.tracing import TracedModel

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
        f"from workbook.mine import repository\na = repository.read({str(adopted.file.parent)!r})"
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
    assert made.how["linear"] == "run_linear uses it"


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
from workbook.mine.tracing import TracedModel
sizes = dict(vocab_size=29, context_length=8, d_model=12, num_layers=2, num_heads=3, d_ff=20)
run = repository.adapter(a, "transformer_lm")
traced = TracedModel(run, ModelConfig(**sizes))
model = traced.make()
assert model.table.rows.shape == (29, 12) and not model.last.g.ne(1).any()
ids = torch.randint(0, 29, (2, 5))
traced.call(model, ids).sum().backward()
print(type(model).__name__, all(each.grad is not None for each in model.parameters()))
"""
    printed = inside(made, code)
    assert printed.splitlines()[0] == "Net True"


# The file.


SMALL = {
    "nn.py": """
SIZES = {}

def softmax(x, dim):
    return x

def own(x, dim):
    return x

class Linear:
    def __init__(self, n, m):
        self.n = n

class Table(Linear):
    pass
"""
}


@pytest.fixture
def small(tmp_path) -> Path:
    return checkout(tmp_path / "repo", SMALL)


def test_what_a_hand_changed_stays_until_it_is_cleared(small, tmp_path):
    study = tmp_path / "study"
    given = {"embedding": "nn:Table"}
    assert repository.adopt(small, given, study).parts == {
        "linear": "nn:Linear",
        "embedding": "nn:Table",
        "softmax": "nn:softmax",
    }
    file = study / repository.FILE
    text = file.read_text(encoding="utf-8").replace("nn:softmax", "nn:own")
    file.write_text(f'{text}rope = ""\n', encoding="utf-8")
    stays = repository.adopt(small, {}, study)
    assert stays.parts == {
        "linear": "nn:Linear",
        "embedding": "nn:Table",
        "rope": "",
        "softmax": "nn:own",
    }
    assert stays.how["softmax"] == repository.BY_HAND != stays.how["linear"]
    assert repository.read(study).parts == stays.parts
    cleared = repository.adopt(small, {"softmax": "", "embedding": ""}, study)
    assert cleared.parts == {"linear": "nn:Linear", "rope": "", "softmax": "nn:softmax"}


def test_the_command_prints_what_was_found(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert cli.main(["adopt", str(small), "--set", "embedding=nn:Table"]) == 0
    printed = capsys.readouterr().out
    assert "3 of 20 parts found in" in printed and f"Kept in {tmp_path / 'study'}" in printed
    assert printed.splitlines()[-1].startswith("Next: `workbook check --all`")
    assert cli.main(["adopt", str(small / "nn.py")]) == 2
    assert "is a file; expected the folder of your repository" in capsys.readouterr().err


def test_what_a_hand_wrote_and_is_not_there_any_more_is_told(small, tmp_path):
    repository.adopt(small, {"rope": "nn:Table"}, tmp_path)
    other = checkout(tmp_path / "other", {"nn.py": "def softmax(x, dim):\n    return x\n"})
    found = repository.adopt(other, {}, tmp_path)
    assert found.parts == {"softmax": "nn:softmax"} and found.folder == other
    assert any(note.startswith('rope = "nn:Table", as adopted.toml') for note in found.notes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"linear": "nn:Lineal"}, "nn has no Lineal; it has softmax, own, Linear, Table"),
        ({"linear": "nm:Linear"}, "No module named 'nm'"),
        ({"linear": "Linear"}, "expected linear = \"module:object\", got 'Linear'"),
        ({"linear": "nn:SIZES"}, "it is a dict, not a function or class"),
        ({"unicode1": "a:b"}, "is not a code problem"),
        ({"checkpointing": "a:b"}, r'\["module:save", "module:load"\]'),
    ],
)
def test_a_wrong_place_is_refused(small, tmp_path, given, words):
    with pytest.raises(ValueError, match=words):
        repository.adopt(small, given, tmp_path)
    assert not (tmp_path / repository.FILE).exists()


def test_options_are_read():
    options = ["linear=a:B", "checkpointing = a:save,a:load", "rope="]
    assert repository.given(options) == {
        "linear": "a:B",
        "checkpointing": "a:save,a:load",
        "rope": "",
    }
    with pytest.raises(ValueError, match="expected --set problem=module:Name, got 'linear'"):
        repository.given(["linear"])
    with pytest.raises(ValueError, match="did you mean 'linear'"):
        repository.given(["lineal=a:B"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('folder = "/"\n[parts]\nlinear = cs336:Linear\n', "line 3"),
        ('folder = "/"\n[parts]\n\nlinear = 3\n', "line 4 of .*expected linear = .*got 3"),
        ('folder = "/"\n[parts]\nlineal = "a:B"\n', "line 3 of .*did you mean 'linear'"),
        ('[parts]\nlinear = "a:B"\n', 'has no valid folder = "PATH"'),
        ('folder = "/"\nparts = 3\n', r"has no valid \[parts\]"),
    ],
)
def test_a_damaged_file_is_told_by_its_line(tmp_path, text, words):
    (tmp_path / repository.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        repository.read(tmp_path)


def test_a_folder_that_moved_is_named(tmp_path):
    (tmp_path / repository.FILE).write_text('folder = "/no/such"\n[parts]\n', encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="/no/such, which is not there; if it moved"):
        repository.read(tmp_path)
    assert repository.read(tmp_path / "other") is None


def test_a_path_without_code_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no Python file"):
        repository.adopt(tmp_path, {}, tmp_path)
    with pytest.raises(OSError, match="is not there; expected the folder"):
        repository.adopt(tmp_path / "none", {}, tmp_path)


# Layouts.

ODD = {
    # Bare imports need the inner folder, whose logging.py must not be taken for Python's.
    "cs336_basics/logging.py": "raise RuntimeError('I am not the standard library')\n",
    "cs336_basics/helpers.py": "from .more import double\n",
    "cs336_basics/more.py": "def double(x):\n    return 2 * x\n",
    "cs336_basics/model.py": """
import logging
import sys
from helpers2 import half
import no_such_package.deep as deep
from no_such_package import Base, decorate, track
try:
    import no_such_fast
except ImportError:
    no_such_fast = None
from cs336_basics.helpers import double
from torch import nn

log = track("here")

class Settings(Base, frozen=True):
    x: int | deep.Kind = 3

class Linear(nn.Module):
    @decorate
    def forward(self, x):
        return double(half(x))

class RMSNorm(nn.Module):
    def __init__(self, d):
        deep.tell(d)
        super().__init__()

assert no_such_fast is None

if __name__ == "__main__":
    sys.exit("this is no script")
""",
    "cs336_basics/helpers2.py": "def half(x):\n    return x / 2\n",
    "cs336_basics/bpe.py": "import sys\nsys.exit(3)\ndef train_bpe(a, b, c):\n    return {}, []\n",
    "cs336_basics/future.py": "type = 3 = 4\nclass Tokenizer:\n    pass\n",
    "parts/softmax_work.ipynb": """{"cells": [
        {"cell_type": "markdown", "source": ["# Softmax"]},
        {"cell_type": "code", "source": ["%time\\n", "import torch\\n", "SCALE = 1.0"]},
        {"cell_type": "code", "source": "print(1 / 0)"},
        {"cell_type": "code", "source": "def softmax(x, dim):\\n    return x.softmax(dim) * SCALE"}
    ]}""",
    # A save that Jupyter did not finish.
    "parts/.~work.ipynb": """{"cells": [
        {"cell_type": "code", "source": "def softmax(x, dim):\\n    return x"}
    ]}""",
    "longest_token_train.py": "for word in []:\n    print(word)\n",
    "scripts/train_lm.py": "import torch, nothing_of_this_runs\nopen('x', 'w').write('x')\n",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> repository.Adopted:
    folder = checkout(tmp_path_factory.mktemp("odd") / "repo", ODD)
    before = sorted(folder.rglob("*"))
    adopted = repository.adopt(folder, {}, tmp_path_factory.mktemp("study"))
    assert sorted(folder.rglob("*")) == before
    return adopted


def test_names_alone_are_enough(odd):
    assert odd.parts["linear"] == "cs336_basics.model:Linear"
    assert odd.parts["softmax"] == "parts/softmax_work.ipynb:softmax"
    assert odd.parts["training_together"] == "scripts/train_lm.py"
    assert {odd.how["linear"], odd.how["softmax"]} == {"by its name"}


def test_modules_that_cannot_be_imported_are_told(odd):
    words = str(odd)
    assert odd.parts["train_bpe"] == "cs336_basics.bpe:train_bpe"
    assert "cs336_basics.bpe cannot be imported: SystemExit: 3, at line 2" in words
    assert "cs336_basics.future cannot be imported: line 1 of" in words


def test_parts_work_until_a_missing_package_is_called(odd):
    code = """
import logging, torch
print(repository.load(a, "linear")()(torch.ones(2)).tolist(), logging.INFO)
print(repository.load(a, "softmax")(torch.zeros(2), 0).tolist())
print(repository.load(a, "training_together"))
try:
    repository.load(a, "rmsnorm")(3)
except ModuleNotFoundError as error:
    print(error)
"""
    lines = inside(odd, code).splitlines()
    assert lines[0] == "[1.0, 1.0] 20" and lines[1] == "[0.5, 0.5]"
    assert lines[2].endswith("scripts/train_lm.py")
    assert "no_such_package.deep.tell" in lines[3] and "pip install no-such-package" in lines[3]
    told = next(note for note in odd.notes if "`pip install no-such-package`" in note)
    assert told.startswith("Missing for linear, rmsnorm:")


def test_no_adapter_runs(tmp_path):
    folder = checkout(
        tmp_path / "repo",
        {
            "src/mine/__init__.py": "",
            "src/mine/parts.py": """
import os, time

def squash(x, dim):
    return x.softmax(dim)

def loss(x, y):
    os.kill(os.getpid(), 9)
""",
            "tests/adapters.py": """
from mine import parts

def run_softmax(in_features, dim):
    return parts.squash(in_features, dim)

def run_cross_entropy(inputs, targets):
    return parts.loss(inputs, targets)
""",
        },
    )
    found = repository.adopt(folder, {}, tmp_path / "study")
    assert found.parts == {"softmax": "mine.parts:squash", "cross_entropy": "mine.parts:loss"}


def test_another_package_of_tests_is_not_taken(tmp_path):
    folder = checkout(
        tmp_path / "repo",
        {
            "nn.py": "def squash(x, dim):\n    return x.softmax(dim)\n",
            "tests/adapters.py": "from nn import squash as run_softmax\n",
        },
    )
    found = repository.adopt(folder, {}, tmp_path / "study")
    assert found.parts == {"softmax": "nn:squash"}
    code = "import tests.study\n" + 'print(repository.adapter(a, "softmax").__module__)'
    assert inside(found, code) == "nn\n"


# The model.

SIZES = {"vocab_size": 29, "context_length": 8, "d_model": 12, "num_layers": 2, "num_heads": 3}
CONFIG = ModelConfig(**SIZES, d_ff=20, rope_theta=100.0)
SEEN = "torch.ones(1, 1, n, n).tril()"
MAKES, CALLS = "m.Net(sizes, turn=turn)", "net(in_indices)[0]"
BEGINS, FORWARD = "def __init__(self, sizes, *, turn):", "def forward(self, ids, cache=None):"


def run_transformer_lm(monkeypatch, changes: dict[str, str]):
    """The adapter of the checkout above, with some of its text and of its model's changed."""
    model, adapters = MODEL, ADAPTERS
    for old, new in changes.items():
        assert old in model + adapters
        model, adapters = model.replace(old, new), adapters.replace(old, new)
    module, package = ModuleType("cs336_basics.model"), ModuleType("cs336_basics")
    package.model = module
    monkeypatch.setitem(sys.modules, "cs336_basics", package)
    monkeypatch.setitem(sys.modules, "cs336_basics.model", module)
    exec(model, vars(module))
    names: dict = {}
    exec(adapters, names)
    return names["run_transformer_lm"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {  # RoPE, positions, a mask and a length at the call
            FORWARD: "def forward(self, ids, turn, at, seen, n):\n"
            "        cache = None\n"
            "        assert at.shape == ids.shape and seen.shape[2:] == (n, n)\n"
            "        assert n == ids.shape[1]\n"
            "        for layer in self.layers:\n            layer.mixer.turn = turn",
            MAKES: "m.Net(sizes, turn=None)",
            CALLS: "net(in_indices, turn, torch.arange(n := in_indices.shape[1]).expand("
            f"in_indices.shape), seen={SEEN}, n=n)[0]",
        },
        {  # the heads one after the other, each with its q, k and v
            "n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)": "n, self.heads, 3, -1)"
            ".permute(3, 0, 2, 1, 4)",
            "= torch.cat(vqk)": "= torch.stack([e.reshape(num_heads, -1, d_model) for e in vqk], 1)"
            ".reshape(-1, d_model)",
        },
        {  # three axes, transposed
            "self.vqk, self.out = Dense(d, 3 * d), Dense(d, d)": "self.out = Dense(d, d)\n"
            "        self.vqk = nn.Parameter(torch.randn(3, heads, d, d // heads))",
            "self.vqk(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)": "torch.einsum("
            "'bnd,xhde->xbhne', x, self.vqk)",
            "vqk.weight.data = torch.cat(vqk)": "vqk.data = torch.stack("
            "[e.reshape(num_heads, -1, d_model).transpose(1, 2) for e in vqk])",
        },
        {BEGINS: BEGINS.replace("turn", "turn, w=None"), MAKES: MAKES.replace(")", ", w=weights)")},
        {MAKES: f"torch.compile({MAKES})"},
        {
            "return self.head(self.last(x)), cache": "return {'logits': self.head(self.last(x))}",
            CALLS: "net(in_indices)['logits']",
        },
    ],
    ids=["plain", "call", "heads", "axes", "weights", "compiled", "dict"],
)
def test_a_model_is_traced(monkeypatch, changes):
    state = torch.random.get_rng_state()
    traced = TracedModel(run_transformer_lm(monkeypatch, changes), CONFIG)
    assert torch.random.get_rng_state().equal(state)
    model = traced.make()
    assert type(model).__name__ == "Net"
    assert model.table.rows.shape == (29, 12) and model.last.g.eq(1).all()
    logits = traced.call(model, torch.randint(0, 29, (3, 7)))
    assert logits.shape == (3, 7, 29)
    logits.sum().backward()
    assert all(each.grad is not None for each in model.parameters())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"self.layers = nn.ModuleList(": "self.layers = list("}, "plain list .*: use nn.ModuleL"),
        (
            {"self.table, self": "self.extra = Dense(d, 3)\n        self.table, self"},
            "`extra.weight`",
        ),
        ({BEGINS: BEGINS.replace("*", "w, *"), MAKES: "m.Net(sizes, weights, turn=turn)"}, "`w`"),
        ({CALLS: "net(in_indices)[0] * 2"}, "returns something other than"),
        ({CALLS: "torch.rand(2, 5, 29)"}, "forward is never called"),
        ({MAKES: "1 / 0"}, "ZeroDivisionError: division by zero"),
        (
            {"net.last.g.data = w": "net.last.eps = 9.0\n    net.last.g.data = w"},
            "gives different logits from",
        ),
    ],
)
def test_a_model_that_cannot_be_made_anew_is_refused(monkeypatch, changes, words):
    with pytest.raises(ValueError, match=words):
        TracedModel(run_transformer_lm(monkeypatch, changes), CONFIG)
