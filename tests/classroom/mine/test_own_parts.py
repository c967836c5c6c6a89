"""A learner's parts take the places of ours, and are named where they fail."""

from dataclasses import replace
from inspect import getsource

import numpy as np
import pytest
import tiny_runs
import torch
from made_repositories import FOLDER, NAMES, module

from workbook.classroom import cli, mine
from workbook.classroom.checks.machinery.verdicts import OurFault
from workbook.classroom.mine import adopt, own_parts
from workbook.classroom.mine.own_parts import PartError
from workbook.config import OptimizerConfig
from workbook.generation.sampling import write_text
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training.trainer import train
from workbook.transformer.model import TransformerLM

pytestmark = pytest.mark.usefixtures("in_study")
CONFIG = tiny_runs.tiny(steps=12, checkpoint_every=5, log_every=4, precision="float32")
LETTERS = {i: bytes([65 + i]) for i in range(63)}
BYTES = Tokenizer(LETTERS | {63: b"<|endoftext|>"}, [], ["<|endoftext|>"])

flat = module("flat", "cs336_basics/training.py")
CLIP = f"import math\n{getsource(flat.gradient_clipping)}\n__all__ = ['gradient_clipping']\n"
LOSS = f"import torch\n{getsource(flat.cross_entropy)}"
MODEL = """
import torch
from torch import nn

class TransformerLM(nn.Module):
    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff, theta):
        super().__init__()
        self.table, self.head = nn.Embedding(vocab_size, d_model), nn.Linear(d_model, vocab_size)

    def forward(self, token_ids):
        return {forward}
"""


def solved(study, **sources):
    for problem, source in sources.items():
        (study / "mine" / f"{problem}.py").write_text(source)


class TestFromTheNotebooks:
    """What the study folder has kept."""

    def test_right_parts_make_our_run_and_other_code_another(self, study, monkeypatch, capsys):
        solved(study, gradient_clipping=CLIP, cross_entropy=LOSS)
        monkeypatch.setattr(cli.presets, "chosen", lambda options: CONFIG)
        assert cli.main(["train", "laptop", "--mine"]) == 0
        out = capsys.readouterr().out
        assert "model      ours" in out and "loss       yours  mine.cross_entropy" in out
        assert "step 12 of 12" in out
        parts = mine.parts()
        (run,) = mine.runs().values()
        ours = train(CONFIG, tiny_runs.data(), None)
        both = run.log["train_loss"].dropna(), ours.log["train_loss"].dropna()
        assert np.allclose(*both, atol=1e-3)
        assert run.made_of == {
            "loss": "mine.cross_entropy:cross_entropy",
            "clipping": "mine.gradient_clipping:gradient_clipping",
        }
        solved(study, gradient_clipping=CLIP + "# changed")
        assert mine.parts().key != parts.key
        (listed,) = mine.runs().values()
        assert listed.folder == run.folder and listed.parts is None  # that code is gone
        with pytest.raises(ValueError, match="made by another version of your code"):
            mine.open_run(run.folder)

    def test_without_parts_all_are_ours(self):
        assert mine.parts().key == "" and mine.runs() == {}
        with pytest.raises(PartError, match="you have no part for rope yet"):
            mine.own("rope")

    def test_own_takes_the_handouts_arguments_by_name_and_says_what_fails(self, study):
        solved(study, gradient_clipping=CLIP.replace("max_l2_norm", "threshold"))
        weight = torch.nn.Parameter(torch.zeros(2))
        weight.grad = torch.tensor([3.0, 4.0])
        mine.own("gradient_clipping")(parameters=[weight], max_l2_norm=1.0)
        assert torch.allclose(weight.grad, torch.tensor([0.6, 0.8]))
        with pytest.raises(PartError, match=r"TypeError: .*, at line \d+, in gradient_clipping: `"):
            mine.own("gradient_clipping")(parameters=None, max_l2_norm=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_repository_trains_writes_and_goes_on(name, study, clean_imports, capsys):
    adopt.adopt(FOLDER / name, {}, study)
    parts = mine.parts()
    assert set(parts.made_by) == set(own_parts.MAKERS)
    ours = TransformerLM.from_config(CONFIG.model)
    model = parts.model(CONFIG.model)
    ids = torch.arange(32).reshape(2, 16)
    model.fill(ours.state_dict())
    with torch.no_grad():
        assert torch.allclose(model(ids), ours(ids), atol=1e-4)
    assert mine.rehearsed(CONFIG, parts) == CONFIG
    assert "starts from weights that the workbook draws" in capsys.readouterr().out

    def breaks(record):
        if record["step"] == 8:
            raise OSError("broken off")

    with pytest.raises(OSError, match="broken off"):
        train(CONFIG, tiny_runs.data(), None, [breaks], parts)
    run = train(CONFIG, tiny_runs.data(), None, parts=mine.parts())
    assert run.loss < run.log["validation_loss"].iloc[0] - 0.2 and run.flags == []
    opened, _, decode = mine.open_run(run.folder)
    text = "".join(write_text(opened, BYTES, "ABC", 5, decoding=decode))
    assert text == "" or set(text.encode()) <= set(range(65, 128))
    made = parts.tokenizer(BYTES.vocab, BYTES.merges, BYTES.special_tokens)
    assert made.decode(made.encode("ABC<|endoftext|>")) == "ABC<|endoftext|>"


NO_GROUPS = "class AdamW:\n    def __init__(self, params, lr, betas, eps, weight_decay): ...\n"
STUB = "def get_batch(dataset, batch_size, context_length, device):\n    ...\n"
COUNTS = "    math.calls = getattr(math, 'calls', 0) + 1\n    assert math.calls < 8, 'too often'\n"
LATE = CLIP.replace("    norm =", f"{COUNTS}    norm =")
ENDLESS = "def clip(parameters, max_l2_norm):\n    while True: pass\n"
IDS = torch.zeros(2, 16, dtype=torch.long)


def of_model(parts):
    parts.model(CONFIG.model)(IDS)


def of_loss(parts):
    parts.loss(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.long))


def of_optimizer(parts):
    parts.optimizer([torch.nn.Parameter(torch.ones(1))], OptimizerConfig())


def of_run(parts):
    train(CONFIG, tiny_runs.data(), None, parts=parts)


def of_import(parts):
    assert "broken: ModuleNotFoundError" in str(parts)
    of_run(parts)


FAILING = [
    (
        of_import,
        "cross_entropy",
        "import no_such_package\n",
        "your loss .*cross_entropy.* cannot be imported: .*'no_such_package', at line 1",
    ),
    (of_run, "gradient_clipping", ENDLESS, "your clipping .* stopped after 0.5 s.*, at line 2"),
    (
        of_run,
        "gradient_clipping",
        "import os\ndef clip(p, max_l2_norm):\n    os._exit(0)\n",
        r"your clipping .* SystemExit: os._exit\(0\), at line 3",
    ),
    (of_run, "data_loading", STUB, "your get_batch .* is not written yet"),
    (
        of_run,
        "data_loading",
        STUB.replace("...", "dataset = 1"),  # no `return`
        r"returns \[\(\)\] instead of two tensors",
    ),
    (
        of_model,
        "transformer_lm",
        MODEL.replace("{forward}", "self.head(self.table(token_ids))[:, -1]"),
        r"returns \(2, 64\) instead of logits",
    ),
    (
        of_loss,
        "cross_entropy",
        LOSS.replace(".mean()", ""),
        r"returns \(6, 1\) instead of one number",
    ),
    (of_optimizer, "adamw", NO_GROUPS, "has no param_groups"),
]


@pytest.mark.parametrize(("use", "problem", "source", "words"), FAILING)
def test_a_part_that_fails_is_named_with_its_place(use, problem, source, words, study):
    solved(study, **{problem: source})
    with pytest.raises(PartError, match=words):
        use(mine.parts(seconds=0.5 if source == ENDLESS else 120.0))


def test_a_fault_of_ours_is_no_fault_of_the_part(study, monkeypatch):
    monkeypatch.setattr(own_parts, "call_part", len)  # which takes no such arguments
    solved(study, learning_rate_schedule="def at(it):\n    return it\n\n__all__ = ['at']\n")
    with pytest.raises(OurFault, match="not of your code; please report it"):
        mine.parts().schedule(1, 1.0, 0.1, 5, 9)


def test_one_that_crashes_late_stops_the_run_and_keeps_it(study):
    solved(study, gradient_clipping=LATE)
    where = r"clipping .*: AssertionError: too often, at line 5, in gradient_clipping"
    with pytest.raises(PartError, match=where):
        of_run(mine.parts())
    (run,) = mine.runs().values()
    assert run.status == "stopped" and "too often" in run.outcome["reason"]


class TestTheCommand:
    """`workbook train PRESET --mine`."""

    def test_parts_that_need_float32_get_it(self, study, capsys):
        picky = "    assert logits.dtype == torch.float32, logits.dtype\n    logits ="
        solved(study, cross_entropy=LOSS.replace("    logits =", picky))
        half = replace(CONFIG, precision="bfloat16")
        assert mine.rehearsed(half, mine.parts()).precision == "float32"
        assert "float32 is used" in capsys.readouterr().out
        solved(study, cross_entropy=LOSS.replace(".mean()", ".mean() * float('nan')"))
        with pytest.raises(PartError, match="the first loss is nan: is each weight filled"):
            mine.rehearsed(half, mine.parts())
