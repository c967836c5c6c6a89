"""All code of a learner is checked at once, wherever it is, and whatever it does."""

import json

import pytest
from made_repositories import BUGS, NAMES, PARTS, RESTS_ON, copied, plant

from workbook import cli
from workbook.mine import check_all
from workbook.study.progress import Progress

TAKE_LONG = {"train_bpe", "tokenizer", "adamw", "training_together", "decoding"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study folder of these tests."""
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    return tmp_path / "study"


def adopt(root, parts, study):
    """Write down that these are the parts of a learner, as `workbook adopt` does."""
    study.mkdir(exist_ok=True)
    lines = [f"folder = {json.dumps(str(root))}", "[parts]"]
    lines += [f"{name} = {json.dumps(where)}" for name, where in parts.items()]
    (study / "adopted.toml").write_text("\n".join(lines))


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
    written = tmp_path / "said.json"
    assert cli.main(["check", "--all", "--json", str(written)]) == 0, capsys.readouterr()
    shown = capsys.readouterr().out
    assert "✓ transformer_lm                correct\n" in shown
    said = {each.pop("problem"): each for each in json.loads(written.read_text(encoding="utf-8"))}
    if "training_together" in PARTS[name]:
        assert "20 of 20 code problems found, 20 of them correct.\n" in shown
    else:
        assert "19 of 20 code problems found, 19 of them correct. Not found: training_t" in shown
        nothing = {"found": None, "status": "not found", "message": ""}
        assert said.pop("training_together") == nothing
    assert said.keys() == PARTS[name].keys()
    for problem, each in said.items():
        where = PARTS[name][problem]
        assert each["found"] == (where if isinstance(where, str) else ", ".join(where))
        assert each["status"] == "correct" and each["message"]
        assert Progress(study).of(problem, None).best == "correct"
    assert sorted(root.rglob("*")) == before
    assert not (study / "mine").exists()


def reach(bug):
    """The problems that are wrong because of a bug."""
    return {bug.problem, *RESTS_ON.get(bug.problem, ())}


def groups():
    """Bugs of one repository that can be planted together, as none hides another."""
    found = []
    for bug in BUGS:
        for group in found:
            alone = all(
                bug.problem not in reach(other) and other.problem not in reach(bug)
                for other in group
            )
            if group[0].repository == bug.repository and alone:
                group.append(bug)
                break
        else:
            found.append([bug])
    return found


@pytest.mark.parametrize("bugs", groups(), ids=lambda bugs: f"{bugs[0].repository}-{len(bugs)}")
def test_a_planted_bug_is_found_where_it_is(bugs, study, tmp_path):
    root = copied(bugs[0].repository, tmp_path)
    for bug in bugs:
        plant(bug, root)
    adopt(root, PARTS[bugs[0].repository], study)
    problems = {bug.problem for bug in bugs}
    outcomes = checked(study, *PARTS[bugs[0].repository].keys() - (TAKE_LONG - problems))
    assert not_correct(outcomes) == set().union(*map(reach, bugs))
    assert all(outcomes[each].status == "wrong" and outcomes[each].cause for each in problems)
    if "cross_entropy" in problems and bugs[0].repository == "flat":
        assert outcomes["cross_entropy"].cause == "The losses are summed, not averaged."


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


@pytest.mark.parametrize("name", ["configs", "renamed"])
def test_where_no_object_can_be_called_its_adapter_is(name, study, tmp_path):
    parts = {problem: f"tests.adapters:{function}" for problem, function in LAYERS.items()}
    adopt(copied(name, tmp_path), parts, study)
    outcomes = checked(study)
    assert not_correct(outcomes) == set()
    assert all("As your adapter calls it: " in each.message for each in outcomes.values())


def test_an_adapter_hides_no_bug_of_what_it_calls(study, tmp_path):
    for bug in BUGS:
        if bug.problem in LAYERS and bug.repository == "split":
            parts = {bug.problem: f"tests.adapters:{LAYERS[bug.problem]}"}
            adopt(copied("split", tmp_path / bug.part / bug.problem, bug), parts, study)
            assert not_correct(checked(study)) == {bug.problem}, bug


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
    assert "cut short: Python ended with status -9" in outcomes["softmax"]
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
    assert (tmp_path / "said.json").is_file()
    assert cli.main(["adopt", str(root)]) == 0
    assert "cut short" not in capsys.readouterr().out


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
    assert {name: each.found for name, each in checked(study).items()} == {
        "rope": "cs336_basics.model:RotaryPositionalEmbedding",
        "softmax": "mine.softmax:softmax",
    }


def test_what_cannot_be_imported_is_wrong_and_says_why(study, tmp_path):
    root = copied("split", tmp_path)
    (root / "cs336_basics" / "layers" / "rotary.py").write_text("from torch import nothing\n")
    parts = {name: PARTS["split"][name] for name in ("rope", "softmax", "gradient_clipping")}
    adopt(root, parts, study)
    outcomes = checked(study)
    assert outcomes["gradient_clipping"].status == "correct"
    assert outcomes["rope"].status == "wrong"
    assert "rotary" in outcomes["rope"].message and "nothing" in outcomes["rope"].message


def test_a_damaged_mapping_is_said_in_one_line(study, capsys):
    study.mkdir()
    (study / "adopted.toml").write_text("folder = ")
    assert cli.main(["check", "--all"]) == 2
    assert "adopted.toml" in capsys.readouterr().err


def test_a_line_is_cut_to_the_width():
    wrong = check_all.Outcome("rope", "m:Rope", "wrong", "...", "RoPE turns halves. " * 9)
    assert len(wrong.row(60)) == 60 and wrong.row(60).endswith("…")
    assert wrong.row().endswith("halves.")
