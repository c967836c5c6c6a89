"""A run learns, is told whole, is never done twice, and stops without loss."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
import tiny_runs
import torch
from tiny_runs import assert_same, at_step

from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, data, log, textbook, trainer
from workbook.training.data import get_batch
from workbook.training.parts import Parts
from workbook.training.trainer import CHECKPOINTS, DivergedError, Run, run_folder, train
from workbook.transformer.model import TransformerLM


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    return tiny_runs.trained(tmp_path_factory.mktemp("whole"))


def rounding(run):
    """How far apart, relatively, two ways to compute the loss of a run may be."""
    return {"float32": 1e-5, "bfloat16": 1e-2}[run.precision]


def train_losses(run):
    return run.log["train_loss"].iloc[1:]


def saved_step(folder):
    """The step of the newest checkpoint."""
    return checkpoints.newest(folder / CHECKPOINTS)["iteration"]


def test_the_model_learns_and_the_log_tells_the_whole_run(whole):
    config = tiny_runs.tiny()
    assert whole.log.index.tolist() == list(range(25))
    assert whole.log["tokens"].iloc[-1] == config.tokens == 24 * 8 * 16
    losses = whole.log["validation_loss"].dropna()
    assert losses.index.tolist() == [0, 8, 16, 24]
    assert losses[0] == pytest.approx(math.log(tiny_runs.VOCAB_SIZE), rel=0.1)
    assert losses[24] < 0.9 * losses[0]
    bits = whole.log["validation_bits_per_byte"].dropna()
    np.testing.assert_allclose(bits, losses / math.log(2))  # every id is a byte here
    assert whole.log["seconds"].is_monotonic_increasing
    assert (whole.log["mfu"].dropna() > 0).all()
    assert whole.log["learning_rate"].idxmax() == config.optimizer.warmup_iters == 4
    told = log.load_json(whole.folder / log.CONFIG)
    assert told["model"] == asdict(config.model)
    assert told["optimizer"]["max_learning_rate"] == config.optimizer.max_learning_rate
    assert whole.status == "finished" and whole.flags == []


def test_a_finished_run_is_not_done_again_and_needs_no_lock(whole):
    def state():
        return {path.name: path.stat().st_mtime_ns for path in whole.folder.iterdir()}

    (whole.folder / ".lock").unlink(missing_ok=True)
    before = state()
    assert tiny_runs.trained(whole.folder, pytest.fail).log.equals(whole.log)
    assert state() == before  # so that it can be asked for on a disk that is read-only


def test_the_trained_model_is_the_one_that_was_evaluated(whole):
    ids = torch.from_numpy(tiny_runs.data().validation[:257].astype(np.int64))
    inputs = ids[:-1].view(16, 16)
    targets = ids[1:].view(16, 16)
    model = whole.model()
    loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    assert loss.item() == pytest.approx(whole.log["validation_loss"].iloc[-1], rel=rounding(whole))
    assert not model.training


def test_the_callers_random_numbers_are_not_touched(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    tiny_runs.trained(tmp_path, steps=4)
    assert torch.equal(torch.rand(3), expected)


def test_listeners_hear_every_record_and_the_disk_says_how_far_a_killed_run_came(tmp_path):
    heard = []
    told = []

    def listen(record):
        heard.append(record)
        if record["step"]:
            told.append(log.load_json(tmp_path / log.OUTCOME))

    run = tiny_runs.trained(tmp_path, listen)
    assert heard == log.records(run.folder)
    assert {found["status"] for found in told} == {"running"}
    assert [found["step"] for found in told[::4]] == [0, 4, 8, 12, 16, 20]


def test_accumulated_gradients_give_the_same_curve(whole, tmp_path):
    one, two = map(train_losses, (tiny_runs.trained(tmp_path, accumulation=4), whole))
    np.testing.assert_allclose(one, two, rtol=max(1e-3, rounding(whole)))
    np.testing.assert_allclose(one[:4], two[:4], rtol=rounding(whole))


def test_the_textbooks_loop_and_parts_have_the_losses_of_the_trainers(whole, tmp_path):
    kernels = replace(tiny_runs.tiny().model, kernels="textbook")
    update = replace(tiny_runs.tiny().optimizer, update="textbook")
    changes = {"model": kernels, "optimizer": update, "precision": "float32"}
    ours = tiny_runs.trained(tmp_path / "ours", **changes)
    file = tmp_path / "textbook.pt"
    losses = textbook.train_plainly(tiny_runs.tiny(**changes), tiny_runs.data(), file)
    assert losses == train_losses(ours).tolist()
    weights = checkpoints.read_state(file)["model"]
    for name, theta in ours.model().state_dict().items():
        assert torch.equal(theta, weights[name])
    np.testing.assert_allclose(losses, train_losses(whole), rtol=max(1e-3, rounding(whole)))


def breaks():
    raise MemoryError("no room")


def broken_off(folder, step, **more):
    """Train until that step is logged, when memory runs out."""
    with pytest.raises(MemoryError):
        tiny_runs.trained(folder, at_step(step, breaks), **more)


@pytest.mark.parametrize("step", [1, 6])  # before and after the first checkpoint
def test_a_run_that_broke_off_goes_on_to_the_same_bits(whole, tmp_path, step):
    broken_off(tmp_path, step)
    found = log.load_json(tmp_path / log.OUTCOME)
    assert (found["status"], found["step"], found["reason"]) == ("stopped", step, "no room")
    assert_same(tiny_runs.trained(tmp_path), whole)


@pytest.mark.skipif(os.name != "posix", reason="Windows has neither SIGHUP nor SIGUSR1")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_finishes_and_saves_the_step_in_hand(tmp_path, name):
    number = getattr(signal, name)
    usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, usual)  # the tests may run under nohup
    try:
        with pytest.raises(KeyboardInterrupt, match="stopped after step 7, which is saved"):
            tiny_runs.trained(tmp_path, at_step(6, lambda: os.kill(os.getpid(), number)))
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)
    assert saved_step(tmp_path) == 7


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGHUP")
def test_nohup_goes_on(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hang_up = at_step(6, lambda: os.kill(os.getpid(), signal.SIGHUP))
        assert tiny_runs.trained(tmp_path, hang_up, steps=8).status == "finished"
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_time_to_stop_does_as_ctrl_c_does(whole, tmp_path):
    with pytest.raises(KeyboardInterrupt, match="stopped after step 1, which is saved"):
        train(tiny_runs.tiny(), tiny_runs.data(), tmp_path, until=time.time())
    assert saved_step(tmp_path) == 1
    assert_same(tiny_runs.trained(tmp_path), whole)


def test_a_checkpoint_that_cannot_be_written_stops_the_run_and_loses_nothing(whole, tmp_path):
    in_the_way = tmp_path / CHECKPOINTS / "step-000000012.pt"
    with pytest.raises(OSError, match="is a folder"):
        tiny_runs.trained(tmp_path, at_step(12, in_the_way.mkdir))
    in_the_way.rmdir()
    assert saved_step(tmp_path) == 8
    assert_same(tiny_runs.trained(tmp_path), whole)


def test_a_loss_that_is_no_number_stops_the_run_before_it_is_saved(whole, tmp_path):
    factors = iter([1.0] * 11 + [math.nan])
    loss = Parts.ours(tiny_runs.tiny()).loss

    def spoilt(*arguments):
        return loss(*arguments) * next(factors)

    with pytest.raises(DivergedError, match=r"the loss is nan .* at step 12; a smaller"):
        tiny_runs.trained(tmp_path, parts={"loss": spoilt})
    assert_same(tiny_runs.trained(tmp_path), whole)


def test_weights_that_are_no_numbers_are_never_saved(tmp_path):
    model = TransformerLM.from_config(tiny_runs.tiny().model)

    def spoil():
        model.lm_head.weight.data[0, 0] = math.nan

    with pytest.raises(DivergedError):
        parts = {"model": lambda config: model}
        tiny_runs.trained(tmp_path, at_step(8, spoil), parts=parts, eval_every=24)
    assert saved_step(tmp_path) == 4


def test_a_loss_that_climbs_and_stays_up_ends_the_run_also_over_a_break(tmp_path):
    rates = {"max_learning_rate": 10, "min_learning_rate": 10, "warmup_iters": 1}
    changes = {"optimizer": replace(tiny_runs.tiny().optimizer, **rates), "steps": 40}
    with pytest.raises(DivergedError, match=r"the mean of 10 losses has climbed by") as whole:
        tiny_runs.trained(tmp_path / "whole", **changes)
    run = Run(tiny_runs.tiny(**changes), tmp_path / "whole")
    assert run.status == "diverged"
    losses = train_losses(run)
    assert 10 <= len(losses) < 40
    assert losses.iloc[-10:].mean() > math.log(tiny_runs.VOCAB_SIZE) + run.config.divergence

    broken_off(tmp_path / "broken", 7, **changes)
    with pytest.raises(DivergedError) as resumed:
        tiny_runs.trained(tmp_path / "broken", **changes)
    assert str(resumed.value) == str(whole.value)

    patient = tiny_runs.trained(tmp_path / "patient", **changes, divergence=math.inf)
    assert patient.status == "finished"


def test_the_folder_of_another_run_is_refused(whole):
    with pytest.raises(ValueError, match=r"made longer: it is of 24 steps now, not 23\."):
        tiny_runs.trained(whole.folder, steps=23)
    with pytest.raises(ValueError, match=r"another config \(seed: 336 there, 1 here\); give"):
        tiny_runs.trained(whole.folder, seed=1, steps=25)
    assert whole.config.steps == log.load_json(whole.folder / log.CONFIG)["steps"]


def test_a_finished_run_goes_on_with_more_steps(whole, tmp_path):
    shutil.copytree(whole.folder, tmp_path / "run")
    run = tiny_runs.trained(tmp_path / "run", steps=32)
    assert (run.status, run.steps, len(run.flags)) == ("finished", 32, 1)
    assert "went on from step 24 with a changed config, such as more steps" in run.flags[0]
    assert repr(run) == f"Run('tiny' of 32 steps, finished at step 32, in '{run.folder}')"
    pd.testing.assert_frame_equal(run.log.loc[:24], whole.log, check_exact=True)
    assert tiny_runs.trained(tmp_path / "run", steps=32).log.equals(run.log)  # nothing more


@pytest.mark.parametrize("steps", [23, 24])
def test_a_checkpoint_at_or_past_the_last_step_ends_the_run_at_once(whole, tmp_path, steps):
    shutil.copytree(whole.folder / CHECKPOINTS, tmp_path / CHECKPOINTS)  # without its config
    for _ in range(2):
        run = tiny_runs.trained(tmp_path, at_step(25, lambda: 1 / 0), steps=steps, divergence=2.0)
        assert (run.status, run.outcome["step"]) == ("finished", 24)
        assert run.flags[0].startswith("no step was taken: its checkpoint, of another config, is")
    assert run.log.empty and saved_step(tmp_path) == 24


def test_a_checkpoint_that_only_the_course_would_write_is_named(tmp_path):
    run = tiny_runs.trained(tmp_path)
    model = run.model()
    other = run.folder / CHECKPOINTS / "step-000000099.pt"
    checkpoints.save_checkpoint(model, torch.optim.AdamW(model.parameters()), 99, other)
    with pytest.raises(ValueError, match=r"newest checkpoint .* has no 'data' .* move it"):
        tiny_runs.trained(tmp_path, steps=30)


def test_a_run_without_its_log_is_flagged_even_if_it_has_finished(tmp_path):
    first = tiny_runs.trained(tmp_path, steps=4)
    (tmp_path / log.LINES).unlink()
    run = tiny_runs.trained(tmp_path, steps=4)
    assert run.flags == ["the log's first lines are missing: the file was removed or cut"]
    assert run.status == "finished" and first.model() is not None


def test_a_lack_of_memory_is_foretold_and_ends_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.setattr(data, "prepare", lambda *_: tiny_runs.data())
    monkeypatch.setattr(trainer, "matmul_peak", lambda *_: 1e15)
    config = tiny_runs.tiny()

    # Of torch, and of NumPy, which draws the batch.
    torchs = RuntimeError("can't allocate memory")
    numpys = MemoryError("Unable to allocate 25 GiB")
    foretold = "a step needs about 0.0 GB of memory, and 0.0 GB"
    for free, words, error in ((10**6, "", torchs), (10**4, foretold, numpys)):
        loss = Mock(side_effect=error)
        memory = SimpleNamespace(available=free)
        monkeypatch.setattr(trainer.psutil, "virtual_memory", lambda memory=memory: memory)
        with pytest.raises(ValueError, match="was not enough: choose a smaller batch_size or"):
            # As from --folder "$NAME" with a variable that is not set: that is no folder.
            trainer.train_and_print(config, "", replace(Parts.ours(config), loss=loss))
        assert capsys.readouterr().err.startswith(words) and run_folder(config).is_dir()


def test_a_batch_that_cannot_be_shared_out_is_refused():
    with pytest.raises(ValueError, match="equal parts"):
        tiny_runs.tiny(batch_size=8, accumulation=3)


def test_a_folder_in_place_of_the_data_is_told(tmp_path):
    with pytest.raises(TypeError, match=r"takes the data second, such as prepare\(config\), not a"):
        train(tiny_runs.tiny(), tmp_path)


def test_a_compiled_model_is_compiled_by_choice_and_saved_as_it_is(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda model: compiled.append(model) or model)
    monkeypatch.setattr(torch._dynamo, "reset", lambda: None)
    run = tiny_runs.trained(tmp_path, steps=4, compile=True)
    assert len(compiled) == 1
    assert not [name for name in run.model().state_dict() if name.startswith("_orig_mod")]


def test_bfloat16_changes_the_curve_by_rounding_only(tmp_path):
    names = "bfloat16", "float32"
    half, full = (tiny_runs.trained(tmp_path / name, precision=name) for name in names)
    np.testing.assert_allclose(train_losses(half), train_losses(full), rtol=0.02)
    assert {weight.dtype for weight in half.model().parameters()} == {torch.float32}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_compiled_run_on_a_gpu_gives_the_same_curve(tmp_path):
    words = ["-m", "workbook", "train", "laptop", "--steps=30", "--log-every=1"]
    words += ["--device=cuda", "--precision=float32", "--eval-tokens=4096"]
    losses = []
    for compiled in ("--compile", "--no-compile"):  # in processes whose signatures are not checked
        place = ["--folder", str(tmp_path / compiled)]
        subprocess.run([sys.executable, *words, compiled, *place], check=True)
        losses.append(log.read_log(tmp_path / compiled)["train_loss"].dropna())
    np.testing.assert_allclose(*losses, rtol=1e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_a_gpu_gives_the_same_curve_but_for_rounding(whole, tmp_path, precision):
    found = tiny_runs.trained(tmp_path, device="cuda", precision=precision)
    np.testing.assert_allclose(train_losses(found), train_losses(whole), rtol=0.05)


class Clock:
    """A clock that advances by 1 s with the batch of each step, and by 15 s with that of the checks
    before the first one.
    """

    def __init__(self):
        self.now = 1_000.0

    def perf_counter(self):
        return self.now

    def get_batch(self, tokens, batch_size, *others):
        self.now += 1 if batch_size == 8 else 15
        return get_batch(tokens, batch_size, *others)


class TestATimeLimit:
    def limited(self, seconds, folder, *listeners, clock=None, **changes):
        clock = clock or Clock()
        usual = {"steps": 10**6, "log_every": 10, "eval_every": 1_000, "checkpoint_every": 20}
        settings = {"max_seconds": seconds, "parts": {"get_batch": clock.get_batch}}
        return tiny_runs.trained(folder, *listeners, clock=clock, **usual | settings | changes)

    def test_is_not_passed_by_an_evaluation_that_is_due_shortly_before(self, tmp_path):
        clock = Clock()

        def slow(record):
            clock.now += 4 if "validation_loss" in record else 0

        # Evaluations take 4 s: before the first step, at 17 s and at 34 s. The next one is due at
        # 51 s, and another step after it would end at 56 s.
        run = self.limited(53.0, tmp_path, slow, clock=clock, eval_every=13)
        assert (run.log.index[-1], run.log["seconds"].iloc[-1]) == (39, 51)

    def test_ends_a_run_in_time_evaluated_saved_and_at_the_lowest_rate(self, tmp_path):
        run = self.limited(40.0, tmp_path)
        schedule = tiny_runs.tiny().optimizer
        assert run.status == "finished"
        assert run.log.index[-1] == run.log["seconds"].iloc[-1] == 40
        assert run.log["validation_loss"].iloc[-1] < math.log(tiny_runs.VOCAB_SIZE)
        assert saved_step(tmp_path) == 40
        rates = run.log["learning_rate"].dropna()
        assert rates.iloc[-1] == pytest.approx(schedule.min_learning_rate, rel=0.2)
        assert (rates.diff().dropna() <= 0).all()

    def test_goes_on_over_a_break_to_the_same_end(self, tmp_path):
        whole = self.limited(40.0, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt, match="stopped after step 21"):
            strike = at_step(20, lambda: signal.raise_signal(signal.SIGINT))
            self.limited(40.0, tmp_path / "broken", strike)
        resumed = self.limited(40.0, tmp_path / "broken")
        assert_same(resumed, whole)
        assert resumed.log["seconds"].iloc[-1] == 40


def byte_tokenizer(*longer):
    """A tokenizer of 256 bytes and more tokens."""
    return Tokenizer(dict(enumerate([bytes([byte]) for byte in range(256)] + list(longer))), [])


OTHER_DATA = [
    ({"train": tiny_runs.ids(10_000, seed=2)}, "tokens to train on"),
    ({"validation": tiny_runs.ids(2_000, seed=3)}, "validation tokens"),
    ({"tokenizer": byte_tokenizer(b"other")}, "tokenizer"),
]


@pytest.mark.parametrize(("changes", "named"), OTHER_DATA)
def test_a_run_goes_on_with_its_data_and_with_no_other(tmp_path, changes, named):
    usual = {"tokenizer": byte_tokenizer()}
    data = tiny_runs.data(**usual)
    other = tiny_runs.data(**usual | changes)
    broken_off(tmp_path, 10, on=data)
    before = (tmp_path / "log.jsonl").read_bytes()
    with pytest.raises(ValueError, match=f"other data: .*{named}.* give another folder"):
        tiny_runs.trained(tmp_path, on=other)
    assert (tmp_path / "log.jsonl").read_bytes() == before
    assert tiny_runs.trained(tmp_path, on=data).status == "finished"


class TestAForcedPrecision:
    """`WORKBOOK_PRECISION` decides where a config leaves the precision open."""

    @pytest.mark.parametrize("forced", ["float32", "bfloat16"])
    def test_is_kept_by_a_run_that_goes_on_elsewhere(self, tmp_path, monkeypatch, forced):
        elsewhere = "float32" if forced == "bfloat16" else "bfloat16"
        monkeypatch.setenv("WORKBOOK_PRECISION", forced)
        whole = tiny_runs.trained(tmp_path / "whole")
        assert whole.precision == forced
        broken_off(tmp_path / "moved", 10)
        monkeypatch.setenv("WORKBOOK_PRECISION", elsewhere)
        moved = tiny_runs.trained(tmp_path / "moved")
        assert_same(moved, whole)
        assert checkpoints.newest(moved.folder / CHECKPOINTS)["precision"] == forced

    def test_has_a_place_of_its_own(self, tmp_path, monkeypatch):
        config = tiny_runs.tiny()
        chosen = tiny_runs.tiny(precision="float32")
        monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
        monkeypatch.delenv("WORKBOOK_PRECISION", raising=False)
        places = {run_folder(config), run_folder(replace(config))}
        assert run_folder(tiny_runs.tiny(seed=1)) not in places
        for forced in ("float32", "bfloat16"):
            monkeypatch.setenv("WORKBOOK_PRECISION", forced)
            places.add(run_folder(config))
            assert run_folder(chosen).name == f"tiny-{chosen.key}"
        assert len(places) == 3


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_config_takes_can_be_trained_with(tmp_path, seed):
    assert tiny_runs.trained(tmp_path, seed=seed, steps=4).status == "finished"


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match=r"is not a whole number from 0 to 2\*\*63 - 1"):
        tiny_runs.tiny(seed=seed)
