"""The made-up checkouts compute what ours does, and each planted bug is one edit."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from made_repositories import BUGS, NAMES, PARTS, RESTS_ON, copied

from workbook.classroom.study.problems import PROBLEMS

# In a process of its own, as all four checkouts have a package of the same name.
COMPARE = """
import importlib, importlib.metadata, json, sys, types
from functools import reduce
import torch
from workbook.transformer.model import TransformerLM

root, parts = sys.argv[1], json.loads(sys.argv[2])
sys.path += [root + "/src", root]
sys.modules["wandb"] = types.ModuleType("wandb")
version = importlib.metadata.version
importlib.metadata.version = lambda name: "1.0" if name == "cs336_basics" else version(name)

sizes = dict(vocab_size=101, context_length=16, d_model=32, num_layers=2, num_heads=4, d_ff=80)
torch.manual_seed(0)
ours = TransformerLM(**sizes, rope_theta=5000.0)
ids = torch.randint(101, (3, 13))
from tests import adapters
weights = {name: weight.clone() for name, weight in ours.state_dict().items()}
theirs = adapters.run_transformer_lm(**sizes, rope_theta=5000.0, weights=weights, in_indices=ids)
torch.testing.assert_close(theirs, ours(ids), rtol=1e-4, atol=1e-5)

for places in parts.values():
    for place in [places] if isinstance(places, str) else places:
        module, name = place.split(":")
        assert getattr(importlib.import_module(module), name).__name__
"""


@pytest.mark.parametrize("name", NAMES)
def test_the_right_checkouts_reproduce_our_model(name, tmp_path):
    root = copied(name, tmp_path)
    run = [sys.executable, "-c", COMPARE, str(root), json.dumps(PARTS[name])]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_one_edit_that_python_reads(bug, tmp_path):
    file = copied(bug.repository, tmp_path, bug) / bug.file
    assert (
        file.read_text()
        != copied(bug.repository, tmp_path / "right").joinpath(bug.file).read_text()
    )
    compile(file.read_text(), bug.file, "exec")


def test_every_checkout_is_whole_and_has_five_bugs_of_all_kinds():
    code = {each.id for each in PROBLEMS.values() if each.form not in ("", "script")}
    assert all(PARTS[name].keys() - {"training_together"} == code for name in NAMES)
    assert Counter(bug.repository for bug in BUGS) == dict.fromkeys(NAMES, 5)
    parts = ["forward", "loss", "gradients", "optimizer", "schedule", "clipping", "batches"]
    assert {bug.part for bug in BUGS} == {*parts}
    assert {bug.problem for bug in BUGS} <= code and RESTS_ON.keys() <= code
