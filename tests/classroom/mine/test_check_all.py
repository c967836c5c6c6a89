"""All code of a learner is checked at once, wherever it is, and whatever it does."""

import json
from inspect import getsource

import pytest
from made_repositories import BUGS, NAMES, PARTS, adopt, buggy, copied, module

from workbook.classroom import cli
from workbook.classroom.mine import adopt as adoption
from workbook.classroom.mine import check_all, own_parts
from workbook.classroom.study.progress import Progress

# What shows the bugs that are planted in another part, on which it rests.
MODEL = {"transformer_block", "transformer_lm"}
RESTING = {"flat": {"multihead_self_attention", *MODEL}, "renamed": MODEL}


def checked(study, *only):
    """What is said of each problem."""
    return {each.problem: each for each in check_all.check_all(study, only or check_all.CODE)}


def not_correct(outcomes):
    return {name for name, each in outcomes.items() if each.status != "correct"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_right_is_all_correct(name, study, tmp_path, capsys):
    root = copied(name, tmp_path)
    number = len(PARTS[name])
    before = sorted(root.rglob("*"))
    adopt(root, PARTS[name], study)
    assert cli.main(["check", "--all", "--json", str(tmp_path / "said.json")]) == 0
    shown = capsys.readouterr().out
    assert "✓ transformer_lm                correct\n" in shown
    assert f"{number} of 20 code problems found, {number} of them correct." in shown
    said = {each["problem"]: each for each in json.loads((tmp_path / "said.json").read_text())}
    trained = "correct" if name == "flat" else "not found"
    assert len(said) == 20 and said["training_together"]["status"] == trained
    assert said["checkpointing"]["found"] == ", ".join(PARTS[name]["checkpointing"])
    # Their adapters and ours, written apart, return the same for the same weights.
    assert not any("your run_" in each["message"] for each in said.values())
    assert all(Progress(study).of(problem, None).best == "correct" for problem in PARTS[name])
    assert sorted(root.rglob("*")) == before
    assert not any((study / "mine").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_bug_is_found_where_it_is(name, study, tmp_path):
    bugs = [bug for bug in BUGS if bug.repository == name]
    buggy(bugs, tmp_path, study)
    problems = {bug.problem for bug in bugs}
    resting = RESTING[name]
    outcomes = checked(study, *problems, *resting, "linear", "rmsnorm", "softmax")
    assert not_correct(outcomes) == problems | resting
    assert all(outcomes[each].status == "wrong" and outcomes[each].cause for each in problems)
    assert {outcomes[each].status for each in resting} == {"not judged"}
    if name == "flat":
        assert outcomes["cross_entropy"].cause.endswith("The losses are summed, not averaged.")
        attention = outcomes["multihead_self_attention"]
        assert "because rope is not right; it may be this: The sign" in attention.row()
        assert "It may be this: " in attention.message


TURNED = ("x1 * cos - x2 * sin, x1 * sin + x2 * cos", "x1 * cos + x2 * sin, x2 * cos - x1 * sin")
INVERTED = ("mask = torch.tril(", "mask = ~torch.tril(")
WIDE = ("weight, mean=0, std=sigma, a=-3 * sigma, b=3 * sigma", "weight, std=9.0")
SHIFTED = ('x, "d_out d_in, ... d_in -> ... d_out")', 'x, "d_out d_in, ... d_in -> ... d_out") + 1')
BIASES = ("_proj = Linear(d_model, d_model)", "_proj = nn.Linear(d_model, d_model)")
CHANGES = ("scores = ", "Q *= 1 + 0 * Q\n    scores = ")
OWN_FAULTS = [  # the part below, and what is its fault; that of attention, and words of it
    ("rope", TURNED, INVERTED, "mask"),  # its case without RoPE fails
    ("linear", WIDE, INVERTED, "mask"),  # weights are filled in
    ("linear", SHIFTED, BIASES, "bias"),  # it is not used
    ("scaled_dot_product_attention", CHANGES, INVERTED, "mask"),  # its result is right
]


@pytest.mark.parametrize(("below", "fault", "own", "words"), OWN_FAULTS)
def test_a_fault_that_cannot_be_of_a_part_below_is_not_put_down_to_that(
    study, tmp_path, below, fault, own, words
):
    model = copied("flat", tmp_path) / "cs336_basics" / "model.py"
    code = model.read_text()
    for old, new in (fault, own):
        assert old in code
        code = code.replace(old, new)
    model.write_text(code)
    parts = {name: PARTS["flat"][name] for name in (below, "multihead_self_attention")}
    adopt(model.parents[1], parts, study)
    outcomes = checked(study)
    assert outcomes[below].status != "correct"
    attention = outcomes["multihead_self_attention"]
    assert attention.status == "wrong" and words in attention.cause


LAYERS = {
    "linear": "run_linear",
    "positionwise_feedforward": "run_swiglu",
    "multihead_self_attention": "run_multihead_self_attention_with_rope",
    "transformer_block": "run_transformer_block",
    "transformer_lm": "run_transformer_lm",
    "tokenizer": "get_tokenizer",
    "adamw": "get_adamw_cls",
}


def test_where_no_object_can_be_called_its_adapter_is(study, tmp_path):
    parts = {problem: f"tests.adapters:{function}" for problem, function in LAYERS.items()}
    adopt(copied("renamed", tmp_path), parts, study)
    outcomes = checked(study)
    assert not_correct(outcomes) == set()
    assert all("As your adapter calls it: " in each.message for each in outcomes.values())


def test_an_adapter_hides_no_bug_of_what_it_calls(study, tmp_path):
    bugs = [bug for bug in BUGS if bug.problem in LAYERS and bug.repository == "renamed"]
    buggy(bugs, tmp_path, study)
    parts = {bug.problem: f"tests.adapters:{LAYERS[bug.problem]}" for bug in bugs}
    adopt(tmp_path / "renamed", parts, study)
    assert not_correct(checked(study)) == parts.keys() and len(bugs) == 3


HELPERS = """
def merges_of(words, number):
    return words.items() and []

def times(x, weight):
    return x @ weight.T
"""
ADAPTERS = """
from cs336_basics.helpers import merges_of, times
from cs336_basics.model import Embedding, RMSNorm

def run_embedding(vocab_size, d_model, weights, token_ids):
    return Embedding(vocab_size, d_model)(token_ids, weights)

def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    words = dict.fromkeys(open(input_path, encoding="utf-8").read().split(), 1)
    tokens = [*(bytes([i]) for i in range(256)), *(each.encode() for each in special_tokens)]
    return dict(enumerate(tokens)), merges_of(words, vocab_size - len(tokens))

def run_rmsnorm(d_model, eps, weights, in_features):
    return RMSNorm(d_model, eps)(in_features)

def run_linear(d_in, d_out, weights, in_features):
    return times(in_features, weights)
"""


def test_the_report_on_the_adapter_is_the_one_where_it_says_more(study, tmp_path):
    root = copied("flat", tmp_path)
    (root / "cs336_basics" / "helpers.py").write_text(HELPERS)
    (root / "tests" / "adapters.py").write_text(ADAPTERS)
    parts = {"train_bpe": "cs336_basics.helpers:merges_of", "rmsnorm": PARTS["flat"]["rmsnorm"]}
    parts |= {"linear": "cs336_basics.helpers:times", "embedding": PARTS["flat"]["embedding"]}
    adopt(root, parts, study)
    outcomes = checked(study)
    bpe = outcomes["train_bpe"]
    assert bpe.status == "wrong" and "it: There are too few merges" in bpe.message
    norm = outcomes["rmsnorm"]
    worth_knowing = "Worth knowing: your run_rmsnorm returns other numbers than ours; does it load"
    assert norm.status == "correct" and worth_knowing in norm.message
    assert norm.row().startswith(f"✓ rmsnorm                       correct\n    {worth_knowing}")
    remark = outcomes["embedding"].cause
    assert remark.startswith("Worth knowing: your run_embedding raises TypeError: ")
    assert "does it load" not in remark
    said = "Your adapter gives the right numbers. This is not a class."
    assert outcomes["linear"].message.startswith(said)
    assert outcomes["linear"].status == "not attempted"  # nothing is known to be wrong
    assert "The check cannot go by your adapter: the adapter makes no" in outcomes["linear"].cause


APART = "class AdamW:\n    def __init__(self, weights, momentum, speed):\n        self.t = speed\n"
NO_USE = "import torch\n\ndef get_adamw_cls():\n    return torch.optim.AdamW\n"


@pytest.mark.usefixtures("clean_imports")
def test_an_adapter_that_uses_another_object_says_nothing_of_the_part(study, tmp_path):
    root = copied("flat", tmp_path)
    (root / "cs336_basics" / "apart.py").write_text(APART)
    (root / "tests" / "adapters.py").write_text(NO_USE)
    adopt(root, {"adamw": "cs336_basics.apart:AdamW"}, study)
    outcome = checked(study)["adamw"]
    assert outcome.status == "wrong" and "your adapter" not in outcome.message
    part = own_parts.find_part("adamw", study)
    assert part.called is part.thing  # a run has no more to do with that adapter


OLDER = """
import torch
from cs336_basics.model import scaled_dot_product_attention

def attend(d_k, K, Q, V, mask=None):
    return scaled_dot_product_attention(Q, K, V, None if mask is None else ~mask)

class RMSNorm(torch.nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
"""
OLDER_ADAPTERS = """
from cs336_basics.older import RMSNorm, attend

def run_gelu(in_features):
    raise AssertionError("nothing calls it")

def run_rmsnorm(d_model, eps, weights, in_features):
    return RMSNorm(d_model, eps)(in_features) * weights["weight"]

def run_scaled_dot_product_attention(K, Q, V, mask=None, pdrop=None):
    return attend(0, K, Q, V, mask)

def run_train_bpe(input_path, vocab_size, special_tokens):
    from workbook.tokenization import train_bpe
    vocab, merges = train_bpe(input_path, vocab_size - len(special_tokens), [])
    return {**vocab, **dict(enumerate((t.encode() for t in special_tokens), len(vocab)))}, merges
"""


def test_what_the_edition_of_2024_wants_otherwise_is_not_called_wrong(study, tmp_path):
    root = copied("flat", tmp_path)
    (root / "cs336_basics" / "older.py").write_text(OLDER)
    (root / "tests" / "adapters.py").write_text(OLDER_ADAPTERS)
    adopted = adoption.adopt(root, {}, study)
    assert "the course's 2024 edition" in " ".join(adopted.notes)
    outcomes = checked(study)
    words_of = {"scaled_dot_product_attention": "hides", "rmsnorm": "half precision"}
    words_of["train_bpe"] = "like any other string"
    for name, words in words_of.items():
        assert outcomes[name].status == "not attempted" and words in outcomes[name].message
    (root / "cs336_basics" / "older.py").write_text(OLDER.replace("~mask", "None"))
    assert checked(study)["scaled_dot_product_attention"].status == "wrong"


RAISES = 'def silu(x):\n    print("7%\\r99%")\n    raise RuntimeError("not today")\n\n\n'
MARKED = "from torch.cuda import nvtx\nfrom cs336_basics.training import cross_entropy\n"
MARKED += "loss = nvtx.range('the loss')(cross_entropy)\n"
READY = "from torch.nn.functional import softmax\ndef mine(x, dim):\n    return softmax(x, dim)\n"


def test_the_cause_is_told_in_one_line_and_what_needs_a_package_is_unknown(study, tmp_path):
    code = copied("flat", tmp_path) / "cs336_basics"
    model = (code / "model.py").read_text()
    (code / "model.py").write_text(model.replace("class SwiGLU", f"{RAISES}class SwiGLU"))
    (code / "ready.py").write_text(READY)
    (code / "fails.py").write_text("from torch import nothing\n")
    (code / "lacks.py").write_text("import no_such_package\n")
    (code / "marked.py").write_text(MARKED)
    parts = {name: PARTS["flat"][name] for name in ("linear", "positionwise_feedforward")}
    parts |= {"softmax": "cs336_basics.ready:mine", "decoding": "cs336_basics.fails:f"}
    parts |= {"cross_entropy": "cs336_basics.marked:loss"}
    adopt(code.parent, parts | {"training_together": "cs336_basics.lacks:f"}, study)
    outcomes = checked(study)
    # A build of torch for CPUs alone has no marks for a profiler.
    assert outcomes["linear"].status == outcomes["cross_entropy"].status == "correct"
    raised = outcomes["positionwise_feedforward"].cause
    assert raised.startswith("It raised an error. RuntimeError: not today, at line ")
    assert "7%" not in outcomes["positionwise_feedforward"].message  # a progress bar
    assert "not from scratch yet. `torch`'s ready `softmax`" in outcomes["softmax"].cause
    assert outcomes["decoding"].status == "not attempted"  # it was not reached
    assert "cannot import name 'nothing' from 'torch'" in outcomes["decoding"].cause
    assert outcomes["training_together"].status == "not attempted"
    assert "install the package that has `no_such_package`" in outcomes["training_together"].cause
    assert not any("\n" in each.cause for each in outcomes.values())


def test_a_fault_of_ours_judges_nothing_and_stops_nothing(study, monkeypatch):
    monkeypatch.setattr(check_all.worker, "result", lambda *_, seconds: int("a fault of ours"))
    rows = list(check_all._apart(study, ["softmax", "linear"], 60.0))
    assert [report.status for _, report, _ in rows] == ["not attempted"] * 2
    assert "a fault of ours" in rows[0][1].message


def test_what_is_said_of_one_part_is_not_said_of_all_that_have_it(study, tmp_path):
    model = copied("flat", tmp_path) / "cs336_basics" / "model.py"
    model.write_text(model.read_text().replace("x * torch.sigmoid(x)", "nn.functional.silu(x)"))
    parts = ("positionwise_feedforward", "transformer_block")
    adopt(model.parents[1], {name: PARTS["flat"][name] for name in parts}, study)
    first, second = checked(study).values()
    assert first.status == second.status == "almost"
    assert second.cause == "As in positionwise_feedforward."
    assert "`torch`'s ready `silu`" in first.cause and "ready `silu`" in second.message
    (model.parent / "lacks.py").write_text("import no_such_package\n")
    adopt(model.parents[1], dict.fromkeys(("rope", "softmax"), "cs336_basics.lacks:f"), study)
    first, second = checked(study).values()
    assert "no_such_package" in first.cause and first.message == second.message
    assert second.cause == "As in rope."


ENDS = """
import os, signal

def softmax(x, dim):
    os.kill(os.getpid(), signal.SIGKILL)

def cross_entropy(logits, targets):
    processes = []
    while True:
        processes.append(__import__("subprocess").Popen(["sleep", "60"]))
"""


def test_what_ends_its_process_stops_no_other_check(study, tmp_path, capsys):
    root = copied("flat", tmp_path)
    (root / "cs336_basics" / "ends.py").write_text(ENDS)
    where = "cs336_basics.ends:"
    parts = {"softmax": f"{where}softmax", "cross_entropy": f"{where}cross_entropy"}
    right = {name: PARTS["flat"][name] for name in ("linear", "rope", "gradient_clipping")}
    adopt(root, parts | right, study)
    assert cli.main(["check", "--all"]) == 1
    outcomes = {line.split()[1]: line for line in capsys.readouterr().out.splitlines() if line}
    assert "cut short: Python was ended by signal 9" in outcomes["softmax"]
    assert "cut short: it started" in outcomes["cross_entropy"]
    assert all("✓" in outcomes[name] for name in right)
    assert Progress(study).of("cross_entropy", None).best == "wrong"
    assert Progress(study).of("softmax", None).best != "wrong"


softmax = getsource(module("flat", "cs336_basics/model.py").softmax)
KEPT = f"# softmax, kept when its check said correct\nimport torch\n{softmax}"
KEPT += '\n__all__ = ["softmax"]\n'


def test_what_notebooks_kept_is_checked_where_no_repository_has_it(study, tmp_path, capsys):
    (study / "mine" / "softmax.py").write_text(KEPT)
    assert cli.main(["check", "--all"]) == 0
    assert "✓ softmax " in capsys.readouterr().out
    adopt(copied("flat", tmp_path), {"rope": PARTS["flat"]["rope"]}, study)
    wheres = {"rope": PARTS["flat"]["rope"], "softmax": "mine.softmax:softmax"}
    assert {name: each.where for name, each in checked(study).items()} == wheres
