"""All code of a learner is checked at once, wherever it is, and whatever it does."""

import json

import pytest
from made_repositories import BUGS, NAMES, PARTS, RESTS_ON, adopt, buggy, copied

from workbook.classroom import cli
from workbook.classroom.mine import check_all
from workbook.classroom.study.progress import Progress

TAKE_LONG = {"train_bpe", "tokenizer", "training_together", "decoding"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder of these tests."""
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    return tmp_path / "study"


def checked(study, *only):
    """What is said of each problem."""
    return {each.problem: each for each in check_all.check_all(study, only or check_all.CODE)}


def not_correct(outcomes):
    return {name for name, each in outcomes.items() if each.status != "correct"}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_right_is_all_correct(name, study, tmp_path, capsys):
    root = copied(name, tmp_path)
    before = sorted(root.rglob("*"))
    adopt(root, PARTS[name], study)
    assert cli.main(["check", "--all"]) == 0, capsys.readouterr()
    shown = capsys.readouterr().out
    assert "✓ transformer_lm                correct\n" in shown
    number = len(PARTS[name])
    assert f"{number} of 20 code problems found, {number} of them correct." in shown
    assert all(Progress(study).of(problem, None).best == "correct" for problem in PARTS[name])
    outcomes = checked(study, "rmsnorm", "checkpointing")
    assert outcomes["checkpointing"].where == ", ".join(PARTS[name]["checkpointing"])
    assert "Worth knowing" not in outcomes["rmsnorm"].message
    assert sorted(root.rglob("*")) == before
    assert not (study / "mine").exists()


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_bug_is_found_where_it_is(name, study, tmp_path):
    bugs = [bug for bug in BUGS if bug.repository == name]
    buggy(bugs, tmp_path, study)
    problems = {bug.problem for bug in bugs}
    outcomes = checked(study, *PARTS[name].keys() - (TAKE_LONG - problems))
    resting = {other for problem in problems for other in RESTS_ON.get(problem, ())}
    assert not_correct(outcomes) == problems | resting
    assert all(outcomes[each].status == "wrong" and outcomes[each].cause for each in problems)
    if name == "flat":
        assert outcomes["cross_entropy"].cause.endswith("The losses are summed, not averaged.")


LAYERS = {
    "linear": "run_linear",
    "embedding": "run_embedding",
    "rmsnorm": "run_rmsnorm",
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


HELPER = {
    "cs336_basics/counts.py": "def merges_of(words, number):\n    return words.items() and []\n",
    "tests/adapters.py": """
from cs336_basics.counts import merges_of
from cs336_basics.plain import Norm, attention

def run_train_bpe(input_path, vocab_size, special_tokens, **kwargs):
    words = dict.fromkeys(open(input_path, encoding="utf-8").read().split(), 1)
    tokens = [*(bytes([i]) for i in range(256)), *(each.encode() for each in special_tokens)]
    return dict(enumerate(tokens)), merges_of(words, vocab_size - len(tokens))

def run_rmsnorm(d_model, eps, weights, in_features):
    norm = Norm(d_model, eps)
    norm.load_state_dict({"gain": weights})
    return norm(in_features)

def run_multihead_self_attention(
    d_model, num_heads, q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight, in_features
):
    weights = q_proj_weight, k_proj_weight, v_proj_weight, o_proj_weight
    return attention(in_features, *weights, num_heads)

""",
    "cs336_basics/plain.py": """
import torch
from torch import nn

class Norm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x):
        high = x.float()
        scale = (high.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return (high * scale * self.weight).to(x.dtype)

    def load_state_dict(self, state, strict=True, assign=False):
        if "weight" in state:
            self.weight.data = state["weight"]

def attention(x, q, k, v, o, heads):
    split = lambda w: (x @ w.T).unflatten(-1, (heads, -1)).transpose(1, 2)
    q, k, v = split(q), split(k), split(v)
    n = x.shape[1]
    scores = q @ k.mT / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones(n, n).tril() == 0, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2) @ o.T

""",
}


def test_the_report_on_the_adapter_is_the_one_where_it_says_more(study, tmp_path):
    root = tmp_path / "repository"
    for name, text in HELPER.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    parts = {"train_bpe": "cs336_basics.counts:merges_of"}
    parts |= {"rmsnorm": "cs336_basics.plain:Norm"}
    parts |= {"multihead_self_attention": "cs336_basics.plain:attention"}
    adopt(root, parts, study)
    outcomes = checked(study)
    bpe = outcomes["train_bpe"]
    assert bpe.status == "wrong" and "it: There are too few merges" in bpe.message
    norm = outcomes["rmsnorm"]
    assert norm.status == "correct" and norm.message.endswith(
        "Worth knowing: your run_rmsnorm returns other numbers than ours; does it load the weights"
        " as it should?"
    )
    assert outcomes["multihead_self_attention"].message.startswith(
        "Your adapter gives the right numbers. This is not a class."
    )


RAISES = """
def silu(x):
    raise RuntimeError("not today")
"""


def test_the_cause_is_told_in_one_line(study, tmp_path):
    root = copied("flat", tmp_path)
    code = root / "cs336_basics" / "model.py"
    code.write_text(code.read_text().replace("class SwiGLU", f"{RAISES}\n\nclass SwiGLU"))
    (root / "cs336_basics" / "ready.py").write_text(
        "from torch.nn.functional import softmax\n\ndef mine(x, dim):\n    return softmax(x, dim)\n"
    )
    where = {"softmax": "cs336_basics.ready:mine"}
    where["positionwise_feedforward"] = PARTS["flat"]["positionwise_feedforward"]
    adopt(root, where, study)
    outcomes = checked(study)
    raised = outcomes["positionwise_feedforward"].cause
    assert raised.startswith("It raised an error. RuntimeError: not today, at line ")
    assert "not from scratch yet. `torch`'s ready `softmax`" in outcomes["softmax"].cause
    assert not any("\n" in each.cause for each in outcomes.values())


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
    assert Progress(study).of("softmax", None).best == "wrong"


LEAVES_A_THREAD = """
import threading, time


threading.Thread(target=time.sleep, args=[10**6]).start()
"""


def test_a_thread_that_never_ends_holds_up_nothing(study, tmp_path, capsys):
    root = copied("flat", tmp_path)
    code = root / "cs336_basics" / "model.py"
    code.write_text(code.read_text() + LEAVES_A_THREAD)
    adopt(root, {name: PARTS["flat"][name] for name in ("linear", "rope")}, study)
    assert cli.main(["check", "--all", "--json", str(tmp_path / "said.json")]) == 0
    assert "2 of 20 code problems found, 2 of them correct" in capsys.readouterr().out
    said = {each.pop("problem"): each for each in json.loads((tmp_path / "said.json").read_text())}
    assert len(said) == 20 and said["softmax"]["status"] == "not found"
    assert said["rope"]["status"] == "correct" and said["rope"]["found"].endswith(
        ":RotaryPositionalEmbedding"
    )
    assert cli.main(["adopt", str(root)]) == 0
    assert "cut short" not in capsys.readouterr().out


def test_what_rests_on_a_wrong_part_is_not_judged(study, monkeypatch):
    verdicts = {"rope": "wrong", "multihead_self_attention": "wrong", "transformer_block": "wrong"}

    def results(folder, names, seconds):
        yield from ([name, verdicts.get(name, "correct"), "It differs.", ""] for name in names)

    monkeypatch.setattr(check_all, "_apart", results)
    names = ("rmsnorm", "rope", "multihead_self_attention", "transformer_block", "transformer_lm")
    adopt(study, dict.fromkeys(names, "model:part"), study)
    found = {outcome.problem: outcome for outcome in check_all.check_all(study)}
    assert [found[name].status for name in names] == [
        *("correct", "wrong", "not judged", "not judged", "correct")
    ]
    assert "because rope is not right" in found["multihead_self_attention"].row()
    assert "It may be this: It differs." in found["multihead_self_attention"].message


KEPT = """# softmax, kept when its check said correct
def stable(x, dim):
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


__all__ = ["stable"]
"""


def test_what_notebooks_kept_is_checked_where_no_repository_has_it(study, tmp_path, capsys):
    (study / "mine").mkdir(parents=True)
    (study / "mine" / "softmax.py").write_text(KEPT)
    assert cli.main(["check", "--all"]) == 0
    assert "✓ softmax " in capsys.readouterr().out
    adopt(copied("flat", tmp_path), {"rope": PARTS["flat"]["rope"]}, study)
    assert {name: each.where for name, each in checked(study).items()} == {
        "rope": "cs336_basics.model:RotaryPositionalEmbedding",
        "softmax": "mine.softmax:softmax",
    }


def test_what_cannot_be_imported_is_wrong_and_what_needs_a_package_is_unknown(study, tmp_path):
    root = copied("flat", tmp_path)
    (root / "cs336_basics" / "rotary.py").write_text("from torch import nothing\n")
    (root / "cs336_basics" / "smooth.py").write_text("import no_such_package\n")
    parts = {"decoding": "cs336_basics.rotary:f", "training_together": "cs336_basics.smooth:f"}
    adopt(root, parts | {"linear": PARTS["flat"]["linear"]}, study)
    outcomes = checked(study)
    assert [outcomes[each].status for each in ("linear", *parts)] == [
        "correct", "wrong", "not attempted"
    ]  # fmt: skip
    assert "cannot import name 'nothing' from 'torch'" in outcomes["decoding"].message
    assert "install the package that has `no_such_package`" in outcomes["training_together"].message


def test_a_line_is_cut_to_the_width():
    wrong = check_all.CheckOutcome("rope", "m:Rope", "wrong", "...", "RoPE turns halves. " * 9)
    assert len(wrong.row(60)) == 60 and wrong.row(60).endswith("…")
    assert wrong.row().endswith("halves.")
