import pytest
import torch
from attempts import checkpointing as attempts

from workbook.classroom.study.verbs import check


def test_one_missing_half_is_wrong(judged_here):
    def raising(*arguments):
        raise NotImplementedError

    for half in (None, raising):
        for pair in ((attempts.save, half), (half, attempts.load)):
            report = check("checkpointing", pair)
            assert report.status == "wrong" and "is still" in report.claim, report


@pytest.mark.parametrize("place", [None, "cpu"])
def test_a_checkpoint_that_stays_on_its_device_is_worth_knowing(place, judged_here):
    def load(src, model, optimizer):
        state = torch.load(src, map_location=place)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        return state["iteration"]

    def save(model, optimizer, iteration, out):
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**states, "iteration": iteration}, out)

    report = check("checkpointing", (save, load))
    assert report.status == "correct", report
    assert ("without `map_location`" in report.message) == (place is None)


def test_no_file_is_left_behind(tmp_path, monkeypatch, judged_here):
    monkeypatch.chdir(tmp_path)
    check("checkpointing", (attempts.save, attempts.load))
    assert list(tmp_path.iterdir()) == []
