"""The twin test: right parts never differ from ours, and of wrong ones the right part is named."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from attempts import transformer_right_shapes
from made_repositories import BUGS, NAMES, PARTS, copied, plant
from torch import nn

from workbook import cli
from workbook.checks import worker
from workbook.mine import lockstep, own_parts, twin
from workbook.optimizer.optimizers import AdamW, clip_gradients, cosine_schedule
from workbook.training import data
from workbook.training.parts import Maker, Parts
from workbook.transformer import fused
from workbook.transformer import nn as textbook
from workbook.transformer.model import TransformerLM

STEPS = 8


class Theirs(nn.Module):
    """A model as `own_parts` gives it, with other kernels than ours and other names."""

    def __init__(self, config):
        super().__init__()
        self.theirs = nn.ModuleDict(
            {"lm": TransformerLM.from_config(replace(config, kernels="fused"))}
        )

    def forward(self, ids):
        return self.theirs["lm"](ids)

    def fill(self, weights):
        own = self.named_learners()
        with torch.no_grad():
            for name, weight in self.places(weights).items():
                own[name].copy_(weight)

    def places(self, weights):
        return {f"lm.{name}": weight for name, weight in weights.items()}

    def named_learners(self):
        return dict(self.theirs.named_parameters())


def get_batch(dataset, batch_size, context_length, device, generator):
    starts = np.random.default_rng().integers(len(dataset) - context_length, size=batch_size)
    rows = np.stack([dataset[s : s + context_length + 1] for s in starts]).astype(np.int64)
    return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])


def torchs(params, config):
    return torch.optim.AdamW(
        params, config.max_learning_rate, config.betas, config.eps, config.weight_decay
    )


RIGHT = {
    "model": Theirs,
    "loss": fused.cross_entropy,
    "optimizer": torchs,
    "schedule": lambda it, top, low, warmup, end: cosine_schedule(it, top, low, warmup, end),
    "clipping": lambda params, limit: nn.utils.clip_grad_norm_(list(params), limit),
    "get_batch": get_batch,
}


def theirs(**parts):
    """Parts of a learner's; those that are not given are ours."""
    made_by = {name: Maker(f"mine:{name}", "") for name in parts}
    return replace(Parts(), **parts, made_by=made_by)


def report_on(preset="laptop", steps=STEPS, **parts):
    lines = lockstep.compared(lockstep.small(preset, steps), theirs(**parts))
    through_json = (json.loads(json.dumps(line)) for line in lines)
    return twin.collected(twin.Report(preset, steps), through_json)


@pytest.mark.parametrize("preset", ["laptop", "full"])
def test_right_parts_of_another_make_do_not_differ(preset):
    report = report_on(preset, 20, **RIGHT)
    assert report.as_json() | {"message": ""} == {
        "parts_differ": [], "first_step": None, "part": None, "message": "",
    }  # fmt: skip
    assert not report.differs
    assert {report.outcome(part) for part in report.theirs} == {"same"}
    assert report.message.startswith("Nothing differs in 20 steps: forward, loss, gradients,")
    ours, its = report.losses
    assert its == pytest.approx(ours, rel=1e-3) and its[-1] < its[0]


@pytest.mark.parametrize(
    "right", lockstep.RIGHT, ids=lambda each: each.args[1] + each.args[0].__name__
)
@pytest.mark.parametrize("steps", [1, STEPS])
def test_either_decay_and_either_eps_is_right(right, steps):
    report = report_on(steps=steps, optimizer=right)
    assert not report.differs and report.parted is None
    assert report.outcome("optimizer") == "same"
    assert report.outcome("forward") == "ours"


def test_a_small_run_shows_all_that_a_part_does():
    config = lockstep.small("laptop", 20)
    ours = Parts.ours(config)
    rates = [lockstep.rate(config, ours, step) for step in range(1, 21)]
    its = config.optimizer
    assert rates[0] < rates[3] < rates[4] > rates[10] > its.min_learning_rate
    assert rates[4] == pytest.approx(its.max_learning_rate)
    assert rates[15:] == [its.min_learning_rate] * 5
    torch.manual_seed(config.seed)
    start = ours.model(config.model).state_dict()
    batches = lockstep.drawn(config, ours)
    norms = []

    def clipping(params, limit):
        norms.append(clip_gradients(params, limit).item())

    config = lockstep.with_a_limit(config, ours, start, batches)
    list(lockstep.losses(config, replace(ours, clipping=clipping), start, batches))
    clipped = [norm > config.optimizer.max_l2_norm for norm in norms]
    assert 10 <= sum(clipped) <= 18


@pytest.mark.parametrize("steps", [1, 2, 3, 200])
def test_a_run_of_any_length_has_a_cosine(steps):
    its = lockstep.small("full", steps).optimizer
    assert 0 < its.warmup_iters < its.cosine_cycle_iters


def test_a_gain_of_two_axes_takes_our_weights(tmp_path):
    def model(config):
        found = own_parts.Found("mine:ModelOfRows", transformer_right_shapes.ModelOfRows)
        return own_parts.Model(own_parts.Learners("model", found, tmp_path), config)

    report = report_on(steps=2, model=model)
    assert not report.differs, report


# Wrong parts.


class Broken(Theirs):
    """Its class attribute is what is broken about its parts."""

    edit = staticmethod(lambda model: None)

    def __init__(self, config):
        super().__init__(config)
        self.edit(self.theirs["lm"])


def model(edit):
    return type("Model", (Broken,), {"edit": staticmethod(edit)})


def without_scale(model):
    for layer in model.layers:
        layer.attn.attend = lambda Q, K, V: textbook.causal_attention(Q * 4, K, V)


def with_a_look_ahead(model):
    for layer in model.layers:
        layer.attn.attend = lambda Q, K, V: nn.functional.scaled_dot_product_attention(
            Q, K, V, torch.ones(Q.shape[-2], Q.shape[-2], dtype=torch.bool).tril(1)
        )


def for_a_batch_of_heads(model):
    """RoPE in which positions of shape (batch, seq) lack an axis for the heads."""
    for layer in model.layers:
        turn = layer.attn.rope.forward
        layer.attn.rope.forward = lambda x, positions, first, turn=turn: turn(
            x, torch.arange(x.shape[-2]).expand(len(x), -1)
        )


def keeps_its_first_mask(model):
    for layer in model.layers:
        kept = {}

        def attend(Q, K, V, kept=kept):
            mask = torch.ones(Q.shape[-2], Q.shape[-2], dtype=torch.bool).tril()
            mask = kept.setdefault("mask", mask)
            return nn.functional.scaled_dot_product_attention(Q, K, V, mask)

        layer.attn.attend = attend


def detached(model):
    forward = model.layers[0].ffn.forward
    model.layers[0].ffn.forward = lambda x: forward(x).detach()


def halved_gradient(model):
    model.layers[1].ln1.weight.register_hook(lambda gradient: gradient / 2)


def adamw(**changes):
    def make(params, config):
        settings = {"lr": config.max_learning_rate, "betas": config.betas, "eps": config.eps,
                    "weight_decay": config.weight_decay}  # fmt: skip
        return AdamW(params, **settings | changes)

    return make


class Deaf(AdamW):
    """Keeps the learning rate that it was made with."""

    def update(self, theta, group, state):
        super().update(theta, {**group, "lr": self.defaults["lr"]}, state)


class L2(AdamW):
    """Adam with the decay in the gradient."""

    def update(self, theta, group, state):
        theta.grad.add_(theta, alpha=group["weight_decay"])
        super().update(theta, {**group, "weight_decay": 0}, state)


class Forgetful(AdamW):
    """Counts its steps by the weights it has seen, all of them together."""

    t = 0

    def update(self, theta, group, state):
        self.t += 1
        state["t"] = self.t - 1
        super().update(theta, group, state)


def own_norms(params, limit):
    for each in params:
        clip_gradients([each], limit)


def no_clipping(params, limit):
    [each.grad * limit for each in params]


def in_place_of_the_rest(inputs_and_targets):
    return lambda *args: inputs_and_targets(*data.get_batch(*args))


def last_start_missing(dataset, *args):
    return data.get_batch(dataset[:-1], *args)


def of(kind):
    return lambda params, config: kind(
        params, config.max_learning_rate, config.betas, config.eps, config.weight_decay
    )


WRONG = [
    ("forward", 0, {"model": model(without_scale)}, "The logits before position 1 agree."),
    ("forward", 0, {"model": model(with_a_look_ahead)}, "a logit at position 0 is"),
    ("forward", 0, {"model": model(keeps_its_first_mask)}, "(for 5 sequences of 6 tokens)"),
    ("forward", 0, {"model": model(for_a_batch_of_heads)}, "(for 3 sequences of 4 tokens)"),
    ("gradients", 0, {"model": model(detached)},
     "in its backward pass no gradient reaches `lm.layers.0.ln2"),
    ("gradients", 0, {"model": model(halved_gradient)}, "a gradient of `lm.layers.1.ln1.weight`"),
    ("loss", 0, {"loss": lambda x, y: fused.cross_entropy(x, y) * y.numel()},
     "for the same logits"),
    ("loss", 0, {"loss": lambda x, y: fused.cross_entropy(x, y) * math.nan},
     "it is nan, but ours is"),
    (
        "gradients", 0,
        {"loss": lambda x, y: (fused.cross_entropy(x, y) + fused.cross_entropy(x, y).detach()) / 2},
        "its value is right, but",
    ),
    ("clipping", 0, {"clipping": own_norms}, "afterwards"),
    ("clipping", 0, {"clipping": no_clipping}, "afterwards the norm is"),
    ("schedule", 1, {"schedule": lambda it, *its: cosine_schedule(it + 1, *its)}, "(1, 0.01, "),
    ("schedule", 3, {"schedule": lambda it, top, low, w, end: cosine_schedule(it, top, 0, w, end)},
     "with the arguments (3,"),
    ("schedule", 7, {"schedule": lambda it, top, low, w, end: cosine_schedule(it, top, low, w, end)
                     * (it <= end)}, "returns 0, but ours is 0.001"),
    ("optimizer", 1, {"optimizer": adamw(betas=(0.95, 0.9))}, "after it, a weight of"),
    ("optimizer", 1, {"optimizer": adamw(weight_decay=0)}, "after it, a weight of"),
    ("optimizer", 1, {"optimizer": of(Deaf)}, ""),
    ("optimizer", 1, {"optimizer": of(L2)}, ""),
    ("optimizer", 1, {"optimizer": of(Forgetful)}, ""),
    ("batches", 0, {"get_batch": in_place_of_the_rest(lambda x, y: (x, x))}, "are the inputs"),
    ("batches", 0, {"get_batch": last_start_missing}, "last start is never drawn"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "step", "parts", "words"), WRONG)
def test_the_part_that_is_wrong_is_named(part, step, parts, words):
    report = report_on(**parts)
    result = report.as_json()
    assert (result["parts_differ"], result["part"]) == ([part], part), report.message
    assert report.first.step == step
    assert result["first_step"] >= step
    assert words in report.message and f"(mine:{next(iter(parts))})" in report.message
    assert f"differs at step {step}" in str(report)
    assert cli_free(report.message)


def cli_free(text):
    return "\n" not in text and text[-1] in ".?!"


def test_several_parts_are_found_and_the_first_is_named():
    report = report_on(
        schedule=lambda it, *its: cosine_schedule(it + 1, *its),
        clipping=no_clipping,
        get_batch=last_start_missing,
        optimizer=adamw(weight_decay=0),
    )
    assert report.as_json()["parts_differ"] == ["clipping", "schedule", "optimizer", "batches"]
    assert report.first.part == "clipping"
    assert report.message.endswith("These differ too: schedule, optimizer, batches.")
    assert report.first_step == 1  # where the losses part


def raising(*args):
    raise ValueError("your clipping (mine:clipping) fails: boom, in mine.py, line 3")


@pytest.mark.parametrize(
    ("part", "parts", "words"),
    [
        (
            "clipping",
            {"clipping": raising},
            "Your clipping (mine:clipping) fails: boom, in mine.py",
        ),
        ("schedule", {"schedule": lambda *args: 1 / 0}, "fails at step 1: ZeroDivisionError"),
        ("forward", {"model": lambda config: 1 / 0}, "Your model (mine:model) fails at step 0"),
        (
            "loss",
            {"loss": lambda x, y: (x.sum(-1) * 0).flatten()},
            "the shape is (256,), but ours is ()",
        ),
    ],
)
def test_a_part_that_fails_is_named(part, parts, words):
    report = report_on(**parts)
    assert report.as_json()["part"] == part
    assert words in report.message
    assert report.losses == ((), ()) and report.differs


class Remembering(Theirs):
    """Right, until it is trained as a whole: two of its weights are not given to the optimizer."""

    def parameters(self, recurse=True):
        return iter(list(super().parameters(recurse))[:-4])


def test_what_only_a_whole_run_shows_is_found_by_swapping():
    report = report_on(**RIGHT | {"model": Remembering})
    assert report.as_json()["parts_differ"] == ["forward"]
    words = "does what ours does on our weights, but a run with it diverges from ours"
    assert words in report.message
    assert report.first_step >= 1


def test_a_process_that_ends_is_told_with_the_part():
    def lines():
        yield from (
            {"theirs": {"forward": "m:M", "loss": ""}},
            {"trying": ["forward", 3, "Your model (m:M)"]},
        )
        raise worker.EndedError("nothing came for 50 s")

    report = twin.collected(twin.Report("laptop", 5), lines())
    assert report.first == ("forward", 3, report.message)
    assert "(m:M)" in report.message and "nothing came for 50 s" in report.message


def test_a_process_that_ends_before_is_an_error():
    def lines():
        raise worker.EndedError("killed")
        yield

    with pytest.raises(worker.EndedError):
        twin.collected(twin.Report("laptop", 5), lines())


def test_an_unknown_preset_is_refused_at_once(capsys):
    assert cli.main(["twin", "desktop"]) == 2
    assert "'desktop' is not a preset" in capsys.readouterr().err


# The learner's own code, in a process of its own.


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


@pytest.mark.parametrize("name", NAMES)
def test_a_right_checkout_trains_as_ours_does(name, study, tmp_path, capsys):
    adopt(copied(name, tmp_path), PARTS[name], study)
    written = tmp_path / "found.json"
    assert cli.main(["twin", "--json", str(written)]) == 0, capsys.readouterr()
    shown = capsys.readouterr().out
    assert f"  optimizer  same                {PARTS[name]['adamw']}\n" in shown
    assert "d_model 64, num_layers 2" in shown and "Nothing differs in 20 steps" in shown
    found = json.loads(written.read_text(encoding="utf-8"))
    assert found.pop("message") in shown
    assert found == {"parts_differ": [], "first_step": None, "part": None}


def groups():
    """Bugs of one repository in different parts, so that none hides another."""
    found = []
    for bug in BUGS:
        for group in found:
            parts = {bug.part, *(each.part for each in group)}
            hidden = "gradients" in parts and parts & {"forward", "loss"}
            if group[0].repository == bug.repository and len(parts) > len(group) and not hidden:
                group.append(bug)
                break
        else:
            found.append([bug])
    return found


@pytest.mark.parametrize("bugs", groups(), ids=lambda bugs: f"{bugs[0].repository}-{len(bugs)}")
def test_a_planted_bug_is_named_by_its_part(bugs, study, tmp_path, capsys):
    root = copied(bugs[0].repository, tmp_path)
    for bug in bugs:
        plant(bug, root)
    adopt(root, PARTS[bugs[0].repository], study)
    written = tmp_path / "found.json"
    assert cli.main(["twin", "--steps", "8", "--json", str(written)]) == 1, capsys.readouterr()
    found = json.loads(written.read_text(encoding="utf-8"))
    parts = {bug.part for bug in bugs}
    assert set(found["parts_differ"]) == parts, found
    order = [part for part, *_ in lockstep.COMPARED if part in parts]
    assert found["part"] == order[0]
    assert "cs336_basics." in found["message"]
    assert (found["first_step"] == 0) == (order[0] in ("forward", "loss", "batches"))


BROKEN = """
import os, time

def {name}(*arguments):
    {body}

__all__ = ["{name}"]
"""


@pytest.mark.parametrize(
    ("problem", "name", "body", "part", "words"),
    [
        ("gradient_clipping", "clip_gradients", "os._exit(3)", "clipping", "status 3"),
        ("learning_rate_schedule", "cosine", "raise KeyError('lost')", "schedule", ".py, line 5"),
    ],
)
def test_code_that_ends_the_process_or_fails_is_named(
    problem, name, body, part, words, study, capsys
):
    (study / "mine").mkdir(parents=True)
    code = BROKEN.format(name=name, body=body)
    (study / "mine" / f"{problem}.py").write_text(code)
    report = twin.twin("laptop", 2, study)
    assert [each.part for each in report.found] == [part]
    assert words in report.message, report.message
    assert report.outcome("forward") == "ours"


def test_where_nothing_is_there_it_says_what_to_do(study, capsys):
    study.mkdir()
    assert cli.main(["twin"]) == 2
    assert "workbook adopt" in capsys.readouterr().err
