"""What is read of a run: the losses in its log, and what its checkpoint holds."""

import pytest
import torch

from workbook.classroom.checks.machinery import watched
from workbook.classroom.checks.machinery.watched import Seen

LINES = [
    ("step=10 train_loss=3.21 lr=0.01", [3.21], []),
    ("step 10 | train loss 3.21 | val loss 3.5", [3.21], [3.5]),
    ('{"step": 10, "train/loss": 3.21, "valid/loss": 3.5e0}', [3.21], [3.5]),
    ("{'loss': tensor(3.21, grad_fn=<A>), 'validation_loss': np.float64(3.5)}", [3.21], [3.5]),
    ("Loss: nan, eval_loss: inf", ["nan"], ["inf"]),
    ("interval_loss: 3 after eval 2", [3.0], []),
    ("loss_scale=65536 perplexity=24.8 loss fell", [], []),
    ("a" * 100_000, [], []),
]


@pytest.mark.parametrize(("line", "training", "validation"), LINES)
def test_a_loss_is_what_a_log_calls_so(line, training, validation):
    seen = Seen(log=line)
    assert list(map(str, seen.losses())) == list(map(str, training))
    assert list(map(str, seen.losses(validation=True))) == list(map(str, validation))


def test_a_checkpoint_may_nest_what_it_holds(tmp_path):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    states = model.state_dict(), optimizer.state_dict()
    for content in (
        {"model": states[0], "optim": states[1], "it": 20, "config": {"steps": 30}},
        {"states": {"net": states[0], "opt": states[1]}, "progress": {"global_step": 20}},
        (*states, 20),
    ):
        torch.save(content, tmp_path / "run.pt")
        (tmp_path / "config.json").write_text("{}")  # newer, and no checkpoint
        path, saved = watched.checkpoint(tmp_path)
        assert path == tmp_path / "run.pt"
        assert watched.step_of(saved) == 20
        moments = [name for name in saved if watched.OPTIMIZERS.search(name)]
        assert any("exp_avg" in name for name in moments) and len(moments) < len(saved)


def test_where_nothing_can_be_read_there_is_no_checkpoint(tmp_path):
    (tmp_path / "run.pt").write_text("half of")
    assert watched.checkpoint(tmp_path) == (None, {})
    assert watched.step_of({"optimizer.state.0.step": 3, "epochs": 2}) is None
