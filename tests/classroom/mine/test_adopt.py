"""The learner's repository of the course: what is found in it, where that is kept, its model."""

import os
import sys
from pathlib import Path
from socket import gaierror
from types import ModuleType
from urllib.error import URLError

import pytest
import torch
from made_repositories import FOLDER, NAMES, PARTS

from workbook.classroom import cli
from workbook.classroom.mine import adopt
from workbook.classroom.mine.adapters import AdoptedModelRunner
from workbook.config import ModelConfig
from workbook.transformer import TransformerLM

LM = (FOLDER / "renamed/src/cs336_basics/lm.py").read_text(encoding="utf-8")
COURSE = (FOLDER / "renamed/tests/adapters.py").read_text(encoding="utf-8")
MODEL = """
from torch import nn
class Dense(nn.Linear): ...
class Gate(nn.Module): ...
class Net(nn.Module):
    def generate(self, prompt, max_new_tokens, temperature=1.0):
        return prompt
"""
ADAPTERS = """
from cs336_basics import model as m
from cs336_basics.model import Dense as Linear

def run_linear(d_in, d_out, weights, in_features):
    return Linear(d_in, d_out)(in_features)

def run_rmsnorm(d_model, eps, weights, in_features):
    raise NotImplementedError

def run_softmax(in_features, dim):
    e = (in_features - in_features.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)

def run_swiglu(d_model, d_ff, w1_weight, w2_weight, w3_weight, in_features):
    inner = Linear(d_model, d_ff)
    return m.Gate(inner)(in_features)

def run_transformer_lm(vocab_size, weights, in_indices):
    return helper(m.Net(vocab_size), weights)(in_indices)

def helper(net, weights):
    return net

def get_tokenizer(vocab, merges, special_tokens=None):
    from cs336_basics.tok import Tokenizer
    return Tokenizer(vocab, merges, special_tokens)

def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    from cs336_basics.tok import Tokenizer
    return Tokenizer.train(input_path, vocab_size, special_tokens)
"""
FILES = {
    "cs336_basics/__init__.py": "import importlib.metadata\n"
    '__version__ = importlib.metadata.version("cs336_basics")\n'
    '__version__ = importlib.metadata.version("not_installed")\n'
    "from .prep import text, size\nfrom .model import Dense\n",
    "cs336_basics/prep.py": "from pathlib import Path\n"
    'text = Path("data/text.txt").read_text()\nsize = 1 / 0\n',
    "cs336_basics/model.py": MODEL,
    "cs336_basics/training.py": "import torch\nimport fast_tensors\n"
    "def train(step):\n    return step\n"
    "def train_model(config):\n    return train(config)\n",
    "cs336_basics/longest_token_train.py": "for n in range(3):\n    print(n)\n",
    "cs336_basics/tok.py": """
import wandb
from wandb import sdk
from torch.utils.tensorboard import SummaryWriter

class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        wandb.init()

    @staticmethod
    def train(path, size, specials):
        return {}, []
""",
    "data/text.txt": "some text\n",
    "tests/adapters.py": ADAPTERS,
    "tests/conftest.py": "def newer[T](x: T): ...\n",
}


def repository(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> adopt.Adopted:
    folder = repository(tmp_path_factory.mktemp("made") / "assignment1-basics", FILES)
    before = sorted(folder.rglob("*"))
    adopted = adopt.adopt(folder.parent, {}, tmp_path_factory.mktemp("study"))
    assert sorted(folder.rglob("*")) == before and adopted.folder == folder
    return adopted


@pytest.mark.slow
def test_all_parts_of_a_repository_are_found(tmp_path):
    for name in NAMES:
        assert adopt.adopt(FOLDER / name, {}, tmp_path / name).parts == PARTS[name]


@pytest.mark.slow
def test_parts_are_found_where_the_adapters_call_them(made):
    assert made.parts == {
        "train_bpe": "cs336_basics.tok:Tokenizer.train",
        "tokenizer": "cs336_basics.tok:Tokenizer",
        "linear": "cs336_basics.model:Dense",
        "positionwise_feedforward": "cs336_basics.model:Gate",
        "softmax": "tests.adapters:run_softmax",  # whose body is there
        "transformer_lm": "cs336_basics.model:Net",
        "training_together": "cs336_basics.training:train_model",
        "decoding": "cs336_basics.model:Net.generate",
    }
    assert made.how["linear"] == "run_linear uses it" and made.how["decoding"] == "by its name"
    words = str(made)
    assert words.count("Not found: embedding, rope, ") == 1
    assert "Not written yet in tests/adapters.py: rmsnorm." in words
    assert "PackageNotFoundError" not in words  # nothing of theirs needs its version
    assert words.count("ZeroDivisionError") == 1 and "conftest" not in words
    assert "`from .prep import text, size` in cs336_basics fails: " in words


@pytest.mark.slow
@pytest.mark.usefixtures("clean_imports")
def test_an_endless_import_costs_its_own_names_only(tmp_path, monkeypatch):
    monkeypatch.setattr(adopt, "STATEMENT_SECONDS", 2.0)
    monkeypatch.setattr(adopt, "LATER_SECONDS", 1.0)
    adapters = "from runs_on import a\nimport runs_on\nfrom quick import softmax\n"
    adapters += "def run_softmax(x, dim):\n    return softmax(x, dim)\n"
    files = {"tests/adapters.py": adapters, "quick.py": "def softmax(x, dim):\n    return x\n"}
    folder = repository(tmp_path, files | {"runs_on.py": "while True:\n    pass\n"})
    softmax, trouble = adopt.find_parts(str(folder), {})
    assert softmax["where"] == "quick:softmax"
    assert trouble["trouble"].startswith("`from runs_on import a` in tests.adapters fails: it does")


@pytest.mark.slow
def test_an_import_that_ends_python_is_noted(tmp_path):
    adapters = "import os\nos._exit(0)\ndef run_softmax(x, dim):\n    return x\n"
    folder = repository(tmp_path / "basics", {"tests/adapters.py": adapters})
    assert "cut short: Python ended with status 0" in str(adopt.adopt(folder, {}, tmp_path))


@pytest.mark.usefixtures("clean_imports")
def test_parts_work_though_a_tracker_is_missing_and_a_package_is_named(made):
    assert adopt.load_adopted(made, "linear")(3, 2)(torch.ones(3)).shape == (2,)
    assert type(adopt.load_adopted(made, "tokenizer")({}, [])).__name__ == "Tokenizer"
    with pytest.raises(ValueError) as raised:
        adopt.load_adopted(made, "training_together")
    why = str(raised.value)
    assert why.startswith("cs336_basics.training cannot be imported: ModuleNotFoundError: No mod")
    assert why.endswith("training.py; install the package that has `fast_tensors` first")
    assert not [*made.folder.rglob("__pycache__")], "nothing is written into a repository"


@pytest.mark.usefixtures("clean_imports")
def test_no_adapter_runs_and_an_import_that_fails_costs_only_its_part(tmp_path, monkeypatch):
    files = {
        "src/own/__init__.py": "",
        "src/own/parts.py": "def squash(x, dim):\n    return x\ndef loss(x, y):\n    1 / 0\n",
        "src/own/ends.py": "import sys\nsys.exit(3)\ndef clip(p, norm):\n    return 1\n",
        "tests/adapters.py": """
from __future__ import annotations
from own import parts
from own.ends import clip
from no_such_package import train

def run_softmax(in_features: Nobody, dim):
    return parts.squash(in_features, dim)
def run_cross_entropy(inputs, targets):
    return parts.loss(inputs, targets)
def run_gradient_clipping(parameters, max_l2_norm):
    return clip(parameters, max_l2_norm)
""",
    }
    adopted = adopt.adopt(repository(tmp_path / "repo", files), {}, tmp_path / "study")
    assert adopted.parts == {
        "softmax": "own.parts:squash",
        "cross_entropy": "own.parts:loss",
        "gradient_clipping": "own.ends:clip",
    }
    assert adopted.how["gradient_clipping"] == (
        "run_gradient_clipping uses it, but it cannot be imported"
    )
    with pytest.raises(ValueError, match="SystemExit: 3"):
        adopt.load_adopted(adopted, "gradient_clipping")
    assert "`from own.ends import clip` in tests.adapters fails: SystemExit: 3" in str(adopted)
    assert "'no_such_package', at line 5" in str(adopted)
    monkeypatch.setitem(sys.modules, "tests", ModuleType("tests"))  # an installed one
    function = adopt.adapters(adopted, "softmax")["run_softmax"]
    assert function.__code__.co_filename == f"{adopted.folder}/tests/adapters.py"


@pytest.mark.parametrize("place", ["cs336/a1", "zz"])
def test_of_a_whole_course_the_folder_of_this_assignment_is_taken(tmp_path, place):
    other = {"cs336-alignment/tests/adapters.py": "def run_tokenize_prompts(a):\n    return 1\n"}
    root = repository(tmp_path / "course", other | {"x.py": ""})
    alone = adopt.adopt(root, {}, tmp_path / "study")
    assert alone.folder == root
    assert f"{next(root.glob('*/tests/adapters.py'))} has no function of this assi" in str(alone)
    adapters = "def run_softmax(x, dim):\n    return x\n"
    folder = repository(root / place, {"tests/adapters.py": adapters})
    adopted = adopt.adopt(root, {}, tmp_path / "study")
    assert adopted.folder == folder
    assert adopted.parts == {"softmax": "tests.adapters:run_softmax"}


HANDOUTS = {
    "own/model.py": """
class Linear:
    def __init__(self, d_in, d_out):
        self.d_in = d_in
class RMSNorm:
    def __init__(self, d_model):
        raise NotImplementedError
def softmax(x, dim):
    return x
def save_checkpoint(model, optimizer, iteration, out):
    return None
""",
    "own/old/linear.py": "class Linear:\n    def f(self):\n        return 1\n",
    "own/inference.py": "def decoding(tokenizer, lm, prompt, max_tokens):\n    return prompt\n",
    "own/io.py": "def load_checkpoint(src, model, optimizer):\n    return 3\n",
}
NAMED = {
    "linear": "own.model:Linear",
    "softmax": "own.model:softmax",
    "checkpointing": ["own.model:save_checkpoint", "own.io:load_checkpoint"],
    "decoding": "own.inference:decoding",
}
BROKEN = {"tests/adapters.py": "import own\n\ndef run_softmax(x dim):\n    return x\n"}


@pytest.mark.parametrize(
    ("files", "words"),
    [({}, "repo has no tests/adapters.py"), (BROKEN, "`def run_softmax(x dim):`; so only")],
)
def test_without_adapters_that_can_be_read_the_handouts_names_are_found(tmp_path, files, words):
    folder = repository(tmp_path / "repo", {**HANDOUTS, **files})
    adopted = adopt.adopt(folder, {}, tmp_path / "study")
    assert adopted.parts == NAMED and set(adopted.how.values()) == {"by its name"}
    assert words in str(adopted) and "Not found: train_bpe" in str(adopted)


def test_where_nothing_was_found_the_check_says_why(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert cli.main(["adopt", str(repository(tmp_path / "repo", BROKEN))]) == 0
    assert "Next: " not in capsys.readouterr().out
    assert cli.main(["check", "--all"]) == 2
    said = capsys.readouterr().err
    assert "tests/adapters.py cannot be read: SyntaxError: " in said
    assert "at line 3 of" in said and "`def run_softmax(x dim):`" in said


PIECES = """
from own.model import Embed, Norm
from own.tok import BPETokenizer

def run_embedding(vocab_size, d_model, weights, token_ids):
    return Embed(vocab_size, d_model)(token_ids)
def run_rmsnorm(d_model, eps, weights, in_features):
    return Norm(d_model)(in_features)
def run_transformer_lm(vocab_size, d_model, weights, in_indices, **more):
    return Norm(d_model)(Embed(vocab_size, d_model)(in_indices))
def run_train_bpe(input_path, vocab_size, special_tokens):
    tokenizer = BPETokenizer()
    tokenizer.train(input_path, vocab_size, special_tokens)
    return tokenizer.vocab, tokenizer.merges
"""


def test_a_class_of_the_problems_name_comes_before_an_adapter_and_that_before_a_tokenizer(tmp_path):
    files = {
        "tests/adapters.py": PIECES,
        "own/tok.py": "class BPETokenizer:\n    def train(self, *args):\n        return 1\n",
        "own/model.py": "class Embed: ...\nclass Norm: ...\n"
        "class TransformerLM:\n    def forward(self, x):\n        return x\n",
    }
    adopted = adopt.adopt(repository(tmp_path / "repo", files), {}, tmp_path / "study")
    assert adopted.parts["transformer_lm"] == "own.model:TransformerLM"
    assert adopted.parts["train_bpe"] == "tests.adapters:run_train_bpe"


def test_a_training_file_is_found_by_the_model_that_it_imports_and_before_a_sweep(tmp_path):
    files = {
        "own/model.py": "import torch\n",
        "own/training_together.py": "from own.model import M\ndef run_training():\n    M()\n",
        "own/tuning/train_lr.py": "import torch\ndef train():\n    return 1\n",
        "own/tok.py": "def generate_docs(prompt, start, end_token):\n    return prompt\n",
        "own/generation.py": "def sample_next(logits, temperature, top_p):\n    return 1\n",
        "scratch/train_owt_sweep.py": "import torch\ndef train(lr):\n    print(lr)\n",
    }
    adopted = adopt.adopt(repository(tmp_path / "repo", files), {}, tmp_path / "study")
    assert adopted.parts == {"training_together": "own.training_together:run_training"}


STARS = {
    "own/__init__.py": "from .whole import softmax\nfrom .partly import loss\n",
    "own/whole.py": "def softmax(x, dim):\n    return x.softmax(dim)\n",
    "own/partly.py": "import no_such_package\ndef loss(x, y):\n    return x\n",
    "own/stars.py": "from no_such_package import einsum\ndef clip(p, norm):\n    return p\n",
    "own/Rope.py": "class Rope:\n    def forward(self, x, token_positions):\n        return x\n",
    "tests/adapters.py": """
import own
from own.stars import *

def run_softmax(in_features, dim):
    return own.softmax(in_features, dim)
def run_cross_entropy(inputs, targets):
    return own.loss(inputs, targets)
def run_gradient_clipping(parameters, max_l2_norm):
    return clip(parameters, max_l2_norm)
def run_rope(d_k, theta, max_seq_len, in_query_or_key, token_positions):
    from own.rope import Rope
    return Rope()(in_query_or_key, token_positions)
""",
}


@pytest.mark.usefixtures("clean_imports")
def test_names_that_a_failed_import_should_have_made_are_lost_and_no_mistake(tmp_path):
    """By `import *`, and as attributes of a package of which one import fails."""
    adopted = adopt.adopt(repository(tmp_path / "repo", STARS), {}, tmp_path / "study")
    assert adopted.parts["softmax"] == "own.whole:softmax"
    for problem in ("cross_entropy", "gradient_clipping"):
        where = adopted.parts.get(problem, "")
        assert not where.startswith("tests.adapters"), where
        with pytest.raises(ValueError, match="install the package that has `no_such_package`"):
            adopt.load_adopted(adopted, problem)
    assert adopted.parts["rope"] == "own.rope:Rope"  # as the adapter has it, with its reason
    with pytest.raises(ValueError, match=r"your module is `own\.Rope`: upper and lower case"):
        adopt.load_adopted(adopted, "rope")


@pytest.mark.usefixtures("clean_imports")
@pytest.mark.parametrize("file", ["_fast.pyi", "_fast.cpp", "_fast.rs", "_fast/src/lib.rs"])
def test_a_module_of_which_only_the_source_is_there_has_to_be_built(tmp_path, file):
    adapters = "from own._fast import softmax\n"
    adapters += "def run_softmax(x, dim):\n    return softmax(x, dim)\n"
    files = {"own/__init__.py": "", f"own/{file}": "", "tests/adapters.py": adapters}
    adopted = adopt.adopt(repository(tmp_path / "repo", files), {}, tmp_path / "study")
    only = file.partition("/")[0]
    assert f"it is compiled code, of which only own/{only} is here: build it first" in str(adopted)


@pytest.mark.usefixtures("clean_imports")
def test_of_the_names_in_a_line_one_that_fails_costs_no_other(tmp_path):
    uses = "def run_softmax(x, dim):\n    return a.f(x)\n"
    uses += "def run_cross_entropy(x, y):\n    return b.loss(x)\n"
    uses += "def run_linear(d_in, d_out, w, x):\n    return a.Line(d_in)(x)\n"
    files = {
        "own/__init__.py": "",
        "own/a.py": "def f(x):\n    return x\n",
        "own/b.py": "x: 1 = no_such_name\ndef loss(x):\n    return x\n",
        "tests/adapters.py": f"from own import b, a\n{uses}",
    }
    adopted = adopt.adopt(repository(tmp_path / "repo", files), {}, tmp_path / "study")
    assert adopted.how["softmax"] == "run_softmax uses it"
    assert adopted.how["cross_entropy"] == "run_cross_entropy uses it, but it cannot be imported"
    assert str(adopted).count("`from own import b` in tests.adapters fails: NameError") == 1
    assert adopted.parts["linear"] == "own.a:Line"  # so nothing is said of the adapter itself
    assert "`a.Line` in tests.adapters fails: own.a has no Line" in str(adopted)


LACKING = [
    (ModuleNotFoundError(name="hydra.core"), "`hydra` first (hydra-core>=1.3 in your"),
    (ModuleNotFoundError(name="own.softmax"), "your module is `own.Softmax`: upper and lower"),
    (ModuleNotFoundError(name="own.sofmax"), ""),
    (
        ModuleNotFoundError(name="code.part"),
        "a module `code` of its own, which comes first: rename",
    ),
    (ImportError(name="typing"), "your pyproject.toml asks for Python 3.99"),
    (AttributeError(name="next", obj=os), "your pyproject.toml asks for Python 3.99"),
    (SyntaxError(), "your pyproject.toml asks for Python 3.99"),
    (TypeError("Too few arguments for typing.Generator"), "asks for Python 3.99"),
    (NameError(name="math"), ""),
    (FileNotFoundError(2, "No such file", "logs/1.log"), "; it opens a file while it is imported"),
    (URLError("[Errno -2] Name or service not known"), "it needs the network while it is imported"),
    (gaierror(-2, "Name or service not known"), "it needs the network while it is imported"),
    (OSError("We couldn't connect to 'https://huggingface.co'"), "it needs the network while"),
]


@pytest.mark.parametrize(("error", "words"), LACKING)
def test_what_this_computer_lacks_is_named(tmp_path, error, words):
    needs = 'requires-python = ">=3.99"\ndependencies = ["torch", "hydra-core>=1.3"]\n'
    files = {"pyproject.toml": needs, "own/Softmax.py": "", "own/__init__.py": ""}
    files["code/part.py"] = ""
    lacks = adopt.Repository(repository(tmp_path, files))._lacks(error)
    assert words in lacks if words else not lacks


# The file.


@pytest.fixture
def small(tmp_path) -> Path:
    code = "SIZES = {}\n\ndef squash(x, dim):\n    return x\n\nclass Table:\n    pass\n"
    adapters = "from nn import squash as run_softmax\n"
    return repository(tmp_path / "repo", {"nn.py": code, "tests/adapters.py": adapters})


def test_what_a_hand_set_stays_until_it_is_cleared(small, tmp_path):
    study = tmp_path / "study"
    parts = {"embedding": "nn:Table", "softmax": "nn:squash"}
    assert adopt.adopt(small, {"embedding": "nn:Table"}, study).parts == parts
    file = study / adopt.FILE
    file.write_text(f'{file.read_text(encoding="utf-8")}softmax = ""\n', encoding="utf-8")
    stays = adopt.adopt(small, {}, study)
    parts = {"embedding": "nn:Table", "softmax": ""}
    assert stays.parts == adopt.read_adopted(study).parts == parts
    assert "by hand" in str(stays) and stays.where("softmax") == ""
    cleared = adopt.adopt(small, {"softmax": "", "embedding": ""}, study)
    assert cleared.parts == {"softmax": "nn:squash"}


def test_the_command_prints_what_was_found(small, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert cli.main(["adopt", str(small), "--set", "embedding=nn:Table"]) == 0
    printed = capsys.readouterr().out
    assert "2 of 20 parts found in" in printed and f"Kept in {tmp_path / 'study'}" in printed
    assert printed.splitlines()[-1].startswith("Next: `workbook check --all`")
    assert cli.main(["adopt", str(small / "nn.py")]) == 2
    assert "is a file; expected the folder of your repository" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes among its files")
def test_odd_files_hold_up_nothing(small, tmp_path):
    deep = {"deep.py": f"x = {'-' * 100_000}1\n", "pyproject.toml": '[project]\nname = "a/b"\n'}
    deep["train.py"] = f"import torch\n\ndef train():\n    return {'+'.join(600 * '1')}\n"
    os.mkfifo(repository(small, deep) / "pipe.py")
    parts = {"softmax": "nn:squash", "training_together": "train:train"}
    assert adopt.adopt(small, {}, tmp_path / "study").parts == parts


WRONG_PLACES = [
    ("linear=nn:Lineal", "nn has no Lineal; it has squash, Table"),
    ("linear=Linear", "expected linear = \"module:object\", got 'Linear'"),
    ("unicode1=a:b", "is not a code problem"),
    ("checkpointing=a:b", r'\["module:save", "module:load"\]'),
    ("linear", "expected --set problem=module:name, got 'linear'"),
    ("lineal=a:B", "did you mean 'linear'"),
]


@pytest.mark.parametrize(("option", "words"), WRONG_PLACES)
def test_a_wrong_place_is_refused(small, tmp_path, option, words):
    with pytest.raises(ValueError, match=words):
        adopt.adopt(small, adopt.read_options([option]), tmp_path)
    assert not (tmp_path / adopt.FILE).exists()


def test_a_damaged_file_and_a_folder_without_code_are_told(tmp_path, capsys, monkeypatch):
    assert adopt.read_adopted(tmp_path) is None
    for text, error, words in (
        ("folder = ", ValueError, "cannot be used"),
        ('folder = "/"\n[parts]\nlinear = 3\n', ValueError, "expected linear = .*got 3"),
        ('folder = "/"\n[by_hand]\nlineal = "a:B"\n', ValueError, "did you mean 'linear'"),
        ('[parts]\nlinear = "a:B"\n', ValueError, 'expected folder = "PATH"'),
        ('folder = "/no/such"\n[parts]\n', FileNotFoundError, "is not there; if it moved"),
    ):
        (tmp_path / adopt.FILE).write_text(text, encoding="utf-8")
        with pytest.raises(error, match=words):
            adopt.read_adopted(tmp_path)
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path))
    assert cli.main(["check", "--all"]) == 2 and "adopted.toml" in capsys.readouterr().err
    with pytest.raises(ValueError, match="has no Python file"):
        adopt.adopt(tmp_path, {}, tmp_path)
    with pytest.raises(OSError, match="is not there; expected the folder"):
        adopt.adopt(tmp_path / "none", {}, tmp_path)


# The model, as `run_transformer_lm` makes it.

SIZES = {"vocab_size": 29, "context_length": 8, "d_model": 12, "num_layers": 2, "num_heads": 3}
CONFIG = ModelConfig(**SIZES, d_ff=20, rope_theta=100.0)
MAKES, CALLS = "lm.MyLM(lm.Settings(*sizes))", "return model(in_indices)"
BEGINS, RETURNS = "self, config: Settings):", "return self.unembed(self.final_norm(x))"


def source(monkeypatch, changes: dict[str, str]) -> AdoptedModelRunner:
    """The model of the repository `renamed`, with some of its text changed."""
    model = LM
    course = COURSE
    for old, new in changes.items():
        assert old in model + course, old
        model = model.replace(old, new)
        course = course.replace(old, new)
    package = ModuleType("cs336_basics")
    module = ModuleType("cs336_basics.lm")
    package.lm = module
    package.learn = None
    package.tok = None
    monkeypatch.setitem(sys.modules, "cs336_basics", package)
    monkeypatch.setitem(sys.modules, "cs336_basics.lm", module)
    exec(model, vars(module))
    names: dict = {}
    exec(course, names)
    return AdoptedModelRunner(names["run_transformer_lm"], CONFIG, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {  # RoPE, positions and a mask at the call
            "def forward(self, idx: Tensor) -> Tensor:": "def forward(self, idx, turn, at, seen):\n"
            "        assert at.shape[-1] == seen.shape[-1] == seen.shape[-2] == idx.shape[1]\n"
            "        for block in self.blocks:\n            block.attention.rope = turn",
            CALLS: "turn = lm.RotaryEncoding(rope_theta, d_model // num_heads, context_length)\n"
            "    return model(in_indices, turn, torch.arange(n := in_indices.shape[1]).expand("
            "in_indices.shape), seen=torch.ones(1, 1, n, n).tril())",
        },
        {  # the heads one after the other, each with its q, k and v
            "seq, 3, self.num_heads, d_": "seq, self.num_heads, 3, d_",
            "split.transpose(-4, -2).unbind(-3)": "split.transpose(-4, -3).unbind(-2)",
            "torch.cat([q, k, v])": "torch.stack([w.unflatten(0, (attention.num_heads, -1)) for w"
            " in (q, k, v)], 1).flatten(0, 2)",
        },
        {  # transposed
            "torch.empty(n_out, n_in": "torch.empty(n_in, n_out",
            "self.kernel.mT": "self.kernel",
            "kernel.data = ": "kernel.data.T[:] = ",
        },
        {CALLS: "return model(idx=in_indices)"},
        {BEGINS: "self, config, weights):", MAKES: "lm.MyLM(lm.Settings(*sizes), weights)"},
        {MAKES: f"torch.compile({MAKES})", "ones(d_model, ": "ones(1, d_model, "},
        {
            RETURNS: "return {'logits': self.unembed(self.final_norm(x))}",
            CALLS: "return model.forward(in_indices)['logits']",
        },
    ],
    ids=["plain", "call", "heads", "transposed", "keywords", "weights", "compiled", "dict"],
)
def test_a_model_is_caught(monkeypatch, changes):
    adopted = source(monkeypatch, changes)
    torch.manual_seed(3)
    model = adopted.make()
    expected = torch.rand(1)
    torch.manual_seed(3)
    ours = TransformerLM.from_config(CONFIG)
    assert torch.rand(1) == expected  # the adapter's own draws leave no trace
    assert type(model).__name__ == "MyLM" and model.training
    assert model.tok_emb.embeddings.equal(ours.token_embeddings.weight)  # so it starts as ours does
    ids = torch.randint(0, 29, (3, 7))
    torch.testing.assert_close(adopted.run(model, ids), ours(ids), rtol=1e-3, atol=1e-4)
    adopted.run(model, ids).sum().backward()
    assert all(each.grad is not None for each in model.parameters())
    other = TransformerLM.from_config(CONFIG)
    for name, value in adopted.places(other.state_dict()).items():
        model.get_parameter(name).data.copy_(value)
    torch.testing.assert_close(adopted.run(model, ids), other(ids), rtol=1e-3, atol=1e-4)


UNTRAINABLE = [
    ({"self.blocks = nn.ModuleList(": "self.blocks = list("}, "plain list; use nn.ModuleList"),
    ({"self.n_ctx =": "self.extra = Proj(3, 3)\n        self.n_ctx ="}, "to `extra.kern"),
    ({CALLS: f"{CALLS} * 2"}, "returns something other than the result of MyLM.forward"),
    (
        {CALLS: "return model.unembed(lm.TokenTable(vocab_size, d_model)(in_indices))"},
        r"run_transformer_lm puts loose layers together \(TokenTable is no part of MyLM\)",
    ),
    ({"rope_theta, weights, in_indices, **more": "weights"}, "2025 and 2026: got an unexpected"),
    ({MAKES: "1 / 0"}, "the adapter fails: ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("changes", "words"), UNTRAINABLE)
def test_a_model_that_cannot_be_trained_is_refused(monkeypatch, changes, words):
    adopted = source(monkeypatch, changes)
    with pytest.raises(ValueError, match=words):
        adopted.make()
        adopted.places(TransformerLM.from_config(CONFIG).state_dict())


def test_a_model_that_is_no_module_is_named():
    words = r"Path is no nn\.Module, so torch finds no parameters in it"
    with pytest.raises(ValueError, match=words):
        AdoptedModelRunner(lambda **arguments: None, CONFIG, Path).make()
