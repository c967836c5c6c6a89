"""The twin test: right parts never differ from ours, and of wrong ones the right part is named."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from attempts.transformer_right_heads import GainsInRows
from made_repositories import BUGS, FOLDER, NAMES, PARTS, adopt, buggy, copied
from torch import nn

from workbook.classroom import cli
from workbook.classroom.checks.machinery.verdicts import OurFault
from workbook.classroom.mine import own_parts, twin
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
        ours = TransformerLM.from_config(replace(config, kernels="fused"))
        self.theirs = nn.ModuleDict({"lm": ours})

    def forward(self, ids):
        return self.theirs["lm"](ids)

    def fill(self, weights):
        self.theirs["lm"].load_state_dict(weights)

    def places(self, weights):
        return {f"lm.{name}": weight for name, weight in weights.items()}


def get_batch(dataset, batch_size, context_length, device, generator):
    starts = np.random.default_rng().integers(len(dataset) - context_length, size=batch_size)
    rows = np.stack([dataset[s : s + context_length + 1] for s in starts]).astype(np.int64)
    return torch.from_numpy(rows[:, :-1]), torch.from_numpy(rows[:, 1:])


def torchs(params, its):
    settings = its.max_learning_rate, its.betas, its.eps, its.weight_decay
    return torch.optim.AdamW(params, *settings)


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
    report = twin.TwinReport(preset, steps)
    list(twin.compare_steps(report, twin.small(preset, steps), theirs(**parts)))
    return report


def differing(report):
    return [each.part for each in report.findings]


@pytest.mark.parametrize(("preset", "steps"), [("laptop", 20), ("full", STEPS)])
def test_right_parts_of_another_make_do_not_differ(preset, steps):
    report = report_on(preset, steps, **RIGHT)
    assert not report.differs
    assert {report.outcome(part) for part in report.places} == {"same"}
    assert report.message.startswith(f"Nothing differs in {steps} steps: forward, loss, gradients,")
    assert "Not compared: the first weights, the tokenizer, decoding," in report.message
    ours, its = report.losses
    assert its == pytest.approx(ours, rel=1e-3) and its[-1] < its[0]


@pytest.mark.parametrize("right", twin.RIGHT, ids=lambda each: each.args[1] + each.args[0].__name__)
@pytest.mark.parametrize("steps", [1, STEPS])
def test_either_decay_and_either_eps_is_right(right, steps):
    report = report_on(steps=steps, optimizer=right)
    assert not report.differs
    assert report.outcome("optimizer") == "same"
    assert report.outcome("forward") == "ours"


def test_a_small_run_clips_some_gradients_and_leaves_others():
    clipped = []

    def clipping(params, limit):
        clipped.append(clip_gradients(params, limit).item() > limit)

    report_on(clipping=clipping)
    assert clipped[:4] == [True, False, True, False]


# Wrong parts.


def model(edit):
    """A right model, changed by `edit`."""

    class Model(Theirs):
        def __init__(self, config):
            super().__init__(config)
            edit(self.theirs["lm"])

    return Model


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
        settings = {
            "lr": config.max_learning_rate,
            "betas": config.betas,
            "eps": config.eps,
            "weight_decay": config.weight_decay,
        }
        return AdamW(params, **settings | changes)

    return make


def no_clipping(params, limit):
    [each.grad * limit for each in params]


def in_place_of_the_rest(inputs_and_targets):
    return lambda *args: inputs_and_targets(*data.get_batch(*args))


def last_start_missing(dataset, *args):
    return data.get_batch(dataset[:-1], *args)


WRONG = [
    ("forward", 0, {"model": model(without_scale)}, "The logits before position 1 agree."),
    ("forward", 0, {"model": model(nn.Module.bfloat16)}, "Its weights are in bfloat16, ours in"),
    ("forward", 0, {"model": model(with_a_look_ahead)}, "a logit at position 0 is"),
    ("forward", 0, {"model": model(keeps_its_first_mask)}, "(for 5 sequences of 6 tokens)"),
    ("forward", 0, {"model": model(for_a_batch_of_heads)}, "(for 3 sequences of 4 tokens)"),
    (
        "gradients",
        0,
        {"model": model(detached)},
        "in its backward pass no gradient reaches `lm.layers.0.ln2",
    ),
    ("gradients", 0, {"model": model(halved_gradient)}, "a gradient of `lm.layers.1.ln1.weight`"),
    (
        "loss",
        0,
        {"loss": lambda x, y: fused.cross_entropy(x, y) * y.numel()},
        "for the same logits",
    ),
    (
        "loss",
        0,
        {"loss": lambda x, y: fused.cross_entropy(x, y) * math.nan},
        "it is nan, but ours is",
    ),
    (
        "gradients",
        0,
        {"loss": lambda x, y: (fused.cross_entropy(x, y) + fused.cross_entropy(x, y).detach()) / 2},
        "its value is right, but",
    ),
    ("clipping", 0, {"clipping": no_clipping}, "afterwards a gradient of"),
    ("schedule", 0, {"schedule": lambda it, *its: cosine_schedule(it + 1, *its)}, "(0, 0.01, "),
    (
        "schedule",
        3,
        {"schedule": lambda it, top, low, w, end: cosine_schedule(it, top, 0, w, end)},
        "with the arguments (3,",
    ),
    (
        "schedule",
        7,
        {
            "schedule": lambda it, top, low, w, end: (
                cosine_schedule(it, top, low, w, end) * (it <= end)
            )
        },
        "returns 0, but ours is 0.001",
    ),
    ("optimizer", 1, {"optimizer": adamw(weight_decay=0)}, "after it, a weight of"),
    ("batches", 0, {"get_batch": in_place_of_the_rest(lambda x, y: (x, x))}, "are the inputs"),
    ("batches", 0, {"get_batch": last_start_missing}, "last start is never drawn"),
]


@pytest.mark.parametrize(("part", "step", "parts", "words"), WRONG)
def test_the_part_that_is_wrong_is_named(part, step, parts, words):
    report = report_on(steps=STEPS if step else 2, **parts)
    assert differing(report) == [part], report.message
    assert (report.first.part, report.first.step) == (part, step)
    assert words in report.message and f"(mine:{next(iter(parts))})" in report.message
    how = "fails" if report.first.fails else "differs"
    assert f"  {how} at step {step}  " in str(report)
    assert "\n" not in report.message and report.message[-1] in ".?!"


def raising(*args):
    raise own_parts.PartError("your clipping (mine:clipping) fails: boom, at line 3")


def lacking(*args):
    raise own_parts.PartError("your get_batch: cannot import name 'batched' from 'itertools'")


FAILING = [
    ("batches", {"get_batch": lacking}, "Your get_batch: cannot import"),
    ("clipping", {"clipping": raising}, "Your clipping (mine:clipping) fails: boom, at line 3."),
    ("schedule", {"schedule": lambda *args: 1 / 0}, "fails at step 0: ZeroDivisionError"),
    ("forward", {"model": lambda config: 1 / 0}, "Your model (mine:model) fails at step 0"),
    (
        "loss",
        {"loss": lambda x, y: (x.sum(-1) * 0).flatten()},
        "the shape is (256,), but ours is ()",
    ),
]


@pytest.mark.parametrize(("part", "parts", "words"), FAILING)
def test_a_part_that_fails_is_named(part, parts, words):
    report = report_on(**parts)
    assert report.first.part == part and words in report.message
    assert report.outcome(part).startswith("fails at step 0")
    assert report.losses == [] and report.differs


def test_a_fault_of_ours_is_not_told_as_theirs(monkeypatch):
    monkeypatch.setattr(twin, "of_logits", len)  # which takes no such arguments
    with pytest.raises(OurFault, match="not of your code; please report it"):
        report_on(**RIGHT)


def test_gains_in_rows_do_not_differ(tmp_path):
    part = own_parts.PartRunner("model", "transformer_lm", tmp_path, "mine:model", GainsInRows)
    report = report_on(steps=2, model=partial(own_parts.LearnerModel, part))
    assert not report.differs, report


class Remembering(Theirs):
    """Right, until it is trained as a whole: two of its weights are not given to the optimizer."""

    def parameters(self, recurse=True):
        return iter(list(super().parameters(recurse))[:-4])


def test_what_only_a_whole_run_shows_is_told():
    report = report_on(**RIGHT | {"model": Remembering})
    assert report.first is None and report.differs and report.diverged >= 1
    assert "though each of your parts alone does what ours does" in str(report)


# The learner's own code, in a process of its own.


@pytest.mark.parametrize("name", NAMES)
def test_a_right_repository_trains_as_ours_does(name, study, tmp_path, capsys):
    adopt(copied(name, tmp_path), PARTS[name], study)
    assert cli.main(["twin"]) == 0, capsys.readouterr()
    shown = capsys.readouterr().out
    assert f"  optimizer  same                {PARTS[name]['adamw']}\n" in shown
    assert "d_model 64, num_layers 2" in shown and "Nothing differs in 20 steps" in shown


OF_FLAT, OF_RENAMED = ([bug for bug in BUGS if bug.repository == name] for name in NAMES)
WITHOUT_GRADIENT = [bug for bug in OF_RENAMED if bug.part == "gradients"]
REST = [bug for bug in OF_RENAMED if bug.part != "gradients"]  # which would hide that one


@pytest.mark.parametrize("bugs", [OF_FLAT, WITHOUT_GRADIENT, REST])
def test_a_planted_bug_is_named_by_its_part(bugs, study, tmp_path):
    buggy(bugs, tmp_path, study)
    report = twin.twin("laptop", 8, study)
    parts = {bug.part for bug in bugs}
    assert {*differing(report)} == parts, report
    order = [part for part, *_ in twin.COMPARED if part in parts]
    assert report.first.part == order[0] and "cs336_basics." in report.message
    assert ("These differ or fail too: " in report.message) == (len(parts) > 1)
    assert (report.first.step == 0) == (order[0] not in twin.AFTER_STEP)


SCHEDULE = "def cosine(*arguments):\n    raise KeyError('lost')\n\n__all__ = ['cosine']\n"
# A training loop hands over a generator, which this one goes through twice.
CLIP = """
def clip(parameters, max_l2_norm):
    norm = sum(p.grad.square().sum() for p in parameters) ** 0.5
    for p in parameters:
        p.grad.mul_(min(1, max_l2_norm / (norm + 1e-6)))

__all__ = ["clip"]
"""
ENDS = "import os\ndef clip(*arguments):\n    os.kill(os.getpid(), 9)\n\n__all__ = ['clip']\n"


def test_code_that_fails_is_named_and_code_that_ends_the_process_is_told(study):
    (study / "mine" / "learning_rate_schedule.py").write_text(SCHEDULE)
    (study / "mine" / "gradient_clipping.py").write_text(CLIP)
    report = twin.twin("laptop", 2, study)
    assert differing(report) == ["clipping", "schedule"] and report.outcome("forward") == "ours"
    assert "afterwards a gradient of" in report.message
    said = report.findings[-1].message
    assert "KeyError: 'lost', at line 2, in cosine" in said and "says more" not in said
    (study / "mine" / "gradient_clipping.py").write_text(ENDS)
    with pytest.raises(OSError, match="Python was ended by signal 9"):
        twin.twin("laptop", 2, study)


def test_where_nothing_can_be_compared_it_says_what_to_do(study, capsys):
    assert cli.main(["twin"]) == 2
    assert "workbook adopt" in capsys.readouterr().err
    adopt(FOLDER / "flat", {"train_bpe": PARTS["flat"]["train_bpe"]}, study)
    assert cli.main(["twin"]) == 2
    assert "none of your parts (train_bpe) is used in a run" in capsys.readouterr().err
