"""Questions about a learner's own code have one right answer, which running the code gives."""

import ast
import re
import sys
from datetime import date, timedelta
from functools import partial

import pytest
import torch
from attempts import styles
from attempts import transformer_right_functions as right

from workbook import check, recall
from workbook.classroom import cli
from workbook.classroom.checks import own_code
from workbook.classroom.checks.machinery import worker
from workbook.classroom.checks.machinery.loading import load_file
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import progress
from workbook.classroom.study import recall as recalling

OBSERVED = [name for name, each in PROBLEMS.items() if each.form]
OTHERS = {"a": "bc", "b": "ac", "c": "ab"}


def asked_about(problem, source):
    find = own_code.questions_on_code
    if problem == "training_together":  # for it a process is changed that ends with it
        find = partial(worker.results, recalling.found_questions, find.__name__, seconds=60)
    (fields,) = find(problem, source)
    return [own_code.OwnQuestion(**each) for each in fields]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("problem", OBSERVED)
def test_every_question_is_clear_and_has_one_answer(problem, monkeypatch):
    for limit in ("CASES_SECONDS", "LEFT_OUT_SECONDS"):
        monkeypatch.setattr(own_code, limit, 0.4)  # fewer questions, of the same kinds
    found = 0
    for source in styles.kept(problem)[:5]:
        lines = source.splitlines()
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        for each in asked_about(problem, source):
            found += 1
            text = lines[each.line - 1]
            assert f"{each.line:>3}  {text}" in each.code.splitlines(), "the line is shown"
            asked = each.text.partition("`. ")[2]
            assert f"line {each.line}" in asked or each.kind == "mask"
            assert names.issuperset(re.findall(r"`(\w+)`", asked))
            question = recalling.Variant(each.text, each.answer, {}, each.why, each.code)
            answer = question.value
            assert question.accepts(answer) and question.accepts(f" {answer} ")
            assert question.accepts("no idea") in (None, False)
            if each.kind == "without":
                assert not any(question.accepts(letter) for letter in OTHERS[answer])
                assert answer == "c" or "optimizer.load" not in text, "the weights are restored"
            elif isinstance(answer, tuple):
                assert not question.accepts((*answer, 1)) and not question.accepts(answer[1:])
                assert not {str(size) for size in answer} <= set(re.findall(r"\d+", text))
            else:
                assert not question.accepts(answer + 1)
                assert str(answer) not in re.findall(r"\d+(?:\.\d+)?", text) or each.kind == "mask"
    assert found >= 3


def values_after(source, call):
    """All local values after each line of a module, by line and name, in an observer of our own."""
    path = "seen.py"
    with open(path, "w") as file:
        file.write(source)
    module = load_file(path, "seen")
    seen = {}
    last = {}

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith("seen.py"):
            return None
        if event != "call":
            for name, value in frame.f_locals.items():
                seen.setdefault((last.get(frame), name), value)
            last[frame] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        call(module)
    finally:
        sys.settrace(None)
    return seen


def test_shapes_are_those_that_another_observer_sees():
    source = """import torch


def by_hand(x, dim):
    largest = x.max(dim=dim, keepdim=True).values
    weights = (
        x - largest
    ).exp()
    total = weights.sum(dim=dim, keepdim=True)
    return weights / total


__all__ = ["by_hand"]
"""
    asked = asked_about("softmax", source)
    assert {each.line for each in asked if each.kind == "shape"} == {5, 6, 9}
    given = re.search(r"x = (.*?), dim = (-?\d+)", asked[0].text)
    x = torch.tensor(ast.literal_eval(given[1]), dtype=torch.float32)
    seen = values_after(source, lambda module: module.by_hand(x, int(given[2])))
    for each in asked:
        if each.kind == "shape":
            name = re.search(r"has `(\w+)`", each.text)[1]
            last = {6: 8}.get(each.line, each.line)
            shapes = {
                tuple(value.shape)
                for (line, known), value in seen.items()
                if known == name and line in range(each.line, last + 1)
            }
            assert ast.literal_eval(each.answer) in shapes


COUNTING = """def clip(parameters, limit):
    total = 0.0
    for parameter in parameters:
        if parameter.grad is not None:
            total += parameter.grad.pow(2).sum().item()
    norm = total**0.5
    if norm > limit:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(limit)
                parameter.grad.div_(norm + 1e-6)


__all__ = ["clip"]
"""


def test_loops_values_and_lines_left_out():
    asked = asked_about("gradient_clipping", COUNTING)
    by_line = {(each.kind, each.line): each for each in asked}
    given = asked[0].text
    many = len(re.search(r"clip\(\[(.*?)\]", given)[1].split(","))
    assert ast.literal_eval(by_line["loop", 3].answer) == many
    norm = ast.literal_eval(by_line["value", 6].answer)
    entries = [
        float(n) for part in re.findall(r"grad = \((.*?)\)", given) for n in part.split(",") if n
    ]
    assert norm == pytest.approx(sum(entry**2 for entry in entries) ** 0.5, rel=1e-4)
    assert by_line["without", 10].answer == "'c'"


OF_ONE_GROUP = """import torch


class AdamW(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, decay=weight_decay))

    def step(self, closure=None):
        group = self.param_groups[0]
        lr, (b1, b2) = group["lr"], group["betas"]
        for p in group["params"]:
            if p.grad is None:
                continue
            kept = self.state[p]
            t = kept["t"] = kept.get("t", 0) + 1
            kept["m"] = b1 * kept.get("m", 0) + (1 - b1) * p.grad
            kept["v"] = b2 * kept.get("v", 0) + (1 - b2) * p.grad**2
            size = lr * (1 - b2**t) ** 0.5 / (1 - b1**t)
            p.data -= size * kept["m"] / (kept["v"].sqrt() + group["eps"])
            p.data -= lr * group["decay"] * p.data


__all__ = ["AdamW"]
"""


@pytest.mark.slow
def test_nobody_is_asked_how_many_settings_torch_gives_a_group():
    asked = {(each.kind, each.line) for each in asked_about("adamw", OF_ONE_GROUP)}
    assert asked and ("items", 9) not in asked


def test_what_differs_from_run_to_run_is_not_asked():
    source = """import random


def schedule(it, high, low, warm, cycle):
    drawn = random.random()
    counted = random.randrange(1, 1000)
    if it < warm:
        return it / warm * high
    if it > cycle:
        return low
    import math
    share = (it - warm) / (cycle - warm)
    return low + (high - low) * (1 + math.cos(math.pi * share)) / 2


__all__ = ["schedule"]
"""
    asked = asked_about("learning_rate_schedule", source)
    assert asked and not {5, 6} & {each.line for each in asked}


CACHED = """SEEN = {}


def softmax(x, dim):
    SEEN[x.sum().item()] = dim
    known = sorted(SEEN)
    largest = x.max(dim=dim, keepdim=True).values
    weights = (x - largest).exp()
    return weights / weights.sum(dim=dim, keepdim=True)


__all__ = ["softmax"]
"""


def test_what_earlier_cases_left_behind_is_not_asked():
    assert {each.line for each in asked_about("softmax", CACHED)} == {7, 8}


ODD = """import torch


def halves(values):
    for value in values:
        yield value / 2


def clip(parameters, limit):
    parameters = list(parameters)
    rounds = 0
    for parameter in parameters:
        with torch.no_grad():
            rounds += 1
    eps = 1e-6; total = 0.0
    for parameter in parameters:
        try:
            total += parameter.grad.pow(2).sum().item()
        except AttributeError:
            pass
    few = [value for value in halves([3.0, 5.0])]
    norm = total**0.5
    tiny = 1e-6
    many = 10_000 * rounds
    both = dict(few=few, norm=norm)
    if norm > limit:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(limit / (norm + tiny))


__all__ = ["clip"]
"""


def test_odd_lines_are_counted_right_or_not_asked_about():
    asked = {(each.kind, each.line): each.answer for each in asked_about("gradient_clipping", ODD)}
    unasked = {("loop", 12), ("loop", 16), ("value", 23), ("value", 24), ("items", 25)}
    assert not unasked & asked.keys()
    assert not any(line in (5, 15) for _, line in asked), "of a generator, or of a shared line"
    assert asked["items", 21] == "2"


ONE_LINERS = """def joined(tensors):
    out = 0.0
    for tensor in tensors:
        out = out + 1
    return out


def clip(parameters, limit):
    held = []
    for parameter in parameters:
        if parameter.grad is None: continue
        held.append(parameter.grad)
    both = [held, held]
    joined(held)
    joined(both)
    norm = sum(grad.pow(2).sum().item() for grad in held) ** 0.5
    if norm > limit:
        for grad in held:
            grad.mul_(limit / (norm + 1e-6))


__all__ = ["clip"]
"""


def test_no_loop_is_asked_about_whose_rounds_are_not_seen_or_differ_by_call():
    asked = {(each.kind, each.line) for each in asked_about("gradient_clipping", ONE_LINERS)}
    assert not {("loop", 10), ("loop", 3), ("items", 13), ("value", 4)} & asked
    assert ("value", 16) in asked


def test_a_letter_is_read_however_it_is_written():
    question = recalling.Variant("What comes of it?", "'c'", {}, "", "code")
    assert all(map(question.accepts, ("c", "C", "(c)", "c.", "c: other values")))
    assert not any(map(question.accepts, ("b", "(a)", "cc", "an error")))


def test_code_that_fails_or_cannot_be_observed_is_asked_about_by_nobody():
    for source in ("def softmax(x, dim):\n    1 / 0\n", "raise ValueError\n", "softmax = 3\n"):
        assert asked_about("softmax", source) == []
    assert (
        asked_about("data_loading", "def get_batch(x, b, m, d):\n    y = x\n    return y, y\n")
        == []
    )


def test_recall_asks_about_the_code_that_was_kept(tmp_path, monkeypatch, capsys):
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "study"))
    assert check("softmax", right.softmax).status == "correct"
    study = progress.Progress(tmp_path / "study")
    with study.changing("softmax", None) as entry:
        entry.day = str(date.today() - timedelta(days=2))
    shown = recall()
    assert "Your `mine/softmax.py` runs on `softmax(" in str(shown)
    assert "def softmax(" in str(shown) and "<code" in shown._repr_html_()
    asked = recalling.questions_on(study, recalling.due_now(study, date.today()))
    assert "softmax: ✓" in str(recall(asked["softmax"].question.value))
    topic = recalling.topics_of(study)["softmax"]
    assert not recalling.questions_on(study, {"softmax": topic})["softmax"].question.code
    (tmp_path / "study" / "mine" / "softmax.py").unlink()
    assert cli.main(["recall"]) == 0
