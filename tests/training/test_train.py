"""A run learns, is told whole, is never done twice, and stops without loss."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
import tiny_runs
import torch

from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, log, textbook
from workbook.training import train as trainer
from workbook.training.train import (
    CHECKPOINTS,
    DivergedError,
    Run,
    run_folder,
    train,
    trained,
)

CURVE = ["tokens", "train_loss", "learning_rate", "gradient_norm", "validation_loss"]


@pytest.fixture(scope="module", autouse=True)
def peak():
    """What the machine can do is not measured each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "matmul_peak", lambda *_: 1e15)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody disturbed."""
    return train(tiny_runs.tiny(), tiny_runs.data(), tmp_path_factory.mktemp("whole"))


def outcome(run):
    return log.load_json(run.folder / log.OUTCOME)


def rounding(run):
    """How far apart, relatively, two ways to compute the loss of a run may be."""
    return {"float32": 1e-5, "bfloat16": 1e-2}[run.precision]


def test_the_model_learns(whole):
    losses = whole.log["validation_loss"].dropna()
    assert losses[0] == pytest.approx(math.log(tiny_runs.VOCAB_SIZE), rel=0.1)
    assert losses[24] < 0.9 * losses[0]


def test_the_log_tells_the_whole_run(whole):
    config = tiny_runs.tiny()
    assert whole.log.index.tolist() == list(range(25))
    assert whole.log["tokens"].iloc[-1] == config.tokens == 24 * 8 * 16
    assert whole.log["validation_loss"].dropna().index.tolist() == [0, 8, 16, 24]
    bits = whole.log["validation_loss"] / math.log(2)  # every id is a byte here
    pd.testing.assert_series_equal(
        whole.log["validation_bits_per_byte"].dropna(), bits.dropna(), check_names=False
    )
    assert whole.log["seconds"].is_monotonic_increasing
    assert (whole.log["mfu"].dropna() > 0).all()
    told = log.config(whole.folder)
    assert told["model"] == asdict(config.model)
    assert told["optimizer"]["max_learning_rate"] == config.optimizer.max_learning_rate
    assert outcome(whole)["status"] == "finished" and whole.flags == []


def test_the_rate_warms_up_and_falls_along_a_cosine(whole):
    config = tiny_runs.tiny()
    rates = whole.log["learning_rate"].dropna()
    assert rates[1] == config.optimizer.max_learning_rate / 4
    assert rates.idxmax() == 4
    assert rates[24] == config.optimizer.min_learning_rate


def test_the_same_config_gives_the_same_bits(whole, tmp_path):
    again = train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    pd.testing.assert_frame_equal(again.log[CURVE], whole.log[CURVE], check_exact=True)


def test_a_finished_run_is_not_done_again(whole, monkeypatch):
    monkeypatch.setattr(trainer.Trainer, "update", lambda self: pytest.fail("it trains"))
    # No lock is needed, so that it can be asked for on a disk that is read-only.
    monkeypatch.setattr(trainer, "locked", lambda *_: pytest.fail("it wants the lock"))
    assert train(tiny_runs.tiny(), tiny_runs.data(), whole.folder).log.equals(whole.log)


def test_the_trained_model_is_the_one_that_was_evaluated(whole):
    ids = torch.from_numpy(tiny_runs.data().validation[:257].astype(np.int64))
    inputs, targets = ids[:-1].view(16, 16), ids[1:].view(16, 16)
    loss = torch.nn.functional.cross_entropy(whole.model()(inputs).flatten(0, 1), targets.flatten())
    assert loss.item() == pytest.approx(whole.log["validation_loss"].iloc[-1], rel=rounding(whole))


def test_only_the_last_checkpoints_are_kept(whole):
    names = [file.name for file in checkpoints.saved(whole.folder / CHECKPOINTS)]
    assert names == ["step-000000024.pt", "step-000000020.pt"]


def test_the_callers_random_numbers_are_not_touched(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(tiny_runs.tiny(steps=4), tiny_runs.data(), tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_listeners_hear_every_record(tmp_path):
    heard = []
    run = train(tiny_runs.tiny(steps=20), tiny_runs.data(), tmp_path, [heard.append])
    assert heard == log.records(run.folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"accumulation": 4},
        {"optimizer": replace(tiny_runs.tiny().optimizer, update="textbook")},
        {"model": replace(tiny_runs.tiny().model, kernels="textbook")},
    ],
)
def test_another_way_to_compute_it_gives_the_same_curve(whole, tmp_path, changes):
    other = train(tiny_runs.tiny(**changes), tiny_runs.data(), tmp_path)
    one, two = (run.log["train_loss"].iloc[1:] for run in (other, whole))
    np.testing.assert_allclose(one, two, rtol=max(1e-3, rounding(whole)))
    np.testing.assert_allclose(one[:4], two[:4], rtol=rounding(whole))


def test_the_textbooks_loop_has_the_losses_of_the_trainer(tmp_path):
    kernels = replace(tiny_runs.tiny().model, kernels="textbook")
    update = replace(tiny_runs.tiny().optimizer, update="textbook")
    config = tiny_runs.tiny(model=kernels, optimizer=update, precision="float32")
    ours = train(config, tiny_runs.data(), tmp_path / "ours")
    losses = textbook.train_plainly(config, tiny_runs.data(), tmp_path / "textbook.pt")
    assert losses == ours.log["train_loss"].dropna().tolist()
    weights = checkpoints.read_state(tmp_path / "textbook.pt")["model"]
    assert all(
        torch.equal(theta, weights[name]) for name, theta in ours.model().state_dict().items()
    )
    fused = replace(config, model=tiny_runs.tiny().model)
    np.testing.assert_allclose(
        textbook.train_plainly(fused, tiny_runs.data(), tmp_path / "fused.pt"), losses, rtol=1e-4
    )


def breaks():
    raise MemoryError("no room")


def interrupted(tmp_path, monkeypatch, at, event, config=None):
    """The folder of a run that `event` befell when it had taken `at` steps."""
    update = trainer.Trainer.update

    def struck(self):
        if self.step == at:
            event()
        return update(self)

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "update", struck)
        with pytest.raises((KeyboardInterrupt, MemoryError)) as raised:
            train(config or tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    return raised.value


@pytest.mark.parametrize("at", [0, 6])
def test_a_run_that_broke_off_goes_on_to_the_same_bits(whole, tmp_path, monkeypatch, at):
    interrupted(tmp_path, monkeypatch, at, breaks)
    found = log.load_json(tmp_path / log.OUTCOME)
    assert (found["status"], found["step"], found["reason"]) == ("stopped", at, "no room")
    resumed = train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    pd.testing.assert_frame_equal(resumed.log[CURVE], whole.log[CURVE], check_exact=True)
    for one, other in zip(resumed.model().parameters(), whole.model().parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.skipif(os.name != "posix", reason="Windows has neither SIGHUP nor SIGUSR1")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_a_signal_finishes_and_saves_the_step_in_hand(whole, tmp_path, monkeypatch, name):
    number = getattr(signal, name)
    usual = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
    before = signal.signal(number, usual)  # the tests may run under nohup
    try:
        stop = interrupted(tmp_path, monkeypatch, 6, lambda: os.kill(os.getpid(), number))
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)
    assert "stopped after step 7, which is saved" in str(stop)
    assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 7
    resumed = train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    pd.testing.assert_frame_equal(resumed.log[CURVE], whole.log[CURVE], check_exact=True)


def test_a_time_to_stop_does_as_ctrl_c_does(whole, tmp_path):
    with pytest.raises(KeyboardInterrupt, match="stopped after step 1, which is saved"):
        train(tiny_runs.tiny(), tiny_runs.data(), tmp_path, until=time.time())
    assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 1
    # The same run, with its batches computed in another way.
    resumed = train(tiny_runs.tiny(accumulation=4), tiny_runs.data(), tmp_path)
    one, two = (run.log["train_loss"].iloc[1:] for run in (resumed, whole))
    np.testing.assert_allclose(one, two, rtol=max(1e-3, rounding(whole)))


def test_a_full_disk_stops_the_run_and_loses_nothing(whole, tmp_path, monkeypatch):
    write = checkpoints.write_state

    def full(state, out):
        if state["iteration"] == 12:
            raise OSError(28, "No space left on device")
        write(state, out)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write_state", full)
        with pytest.raises(OSError, match="No space left"):
            train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 8
    resumed = train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    pd.testing.assert_frame_equal(resumed.log[CURVE], whole.log[CURVE], check_exact=True)


def test_a_loss_that_is_no_number_stops_the_run_before_it_is_saved(whole, tmp_path, monkeypatch):
    update = trainer.Trainer.update

    def spoilt(self):
        loss, norm = update(self)
        return (loss * math.nan if self.step == 12 else loss), norm

    with monkeypatch.context() as patch:
        patch.setattr(trainer.Trainer, "update", spoilt)
        with pytest.raises(DivergedError, match=r"the loss is nan .* at step 12; a smaller"):
            train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    resumed = train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    pd.testing.assert_frame_equal(resumed.log[CURVE], whole.log[CURVE], check_exact=True)


def test_a_rate_that_is_far_too_large_is_told_as_divergence(tmp_path):
    schedule = replace(
        tiny_runs.tiny().optimizer, max_learning_rate=1e30, max_l2_norm=math.inf, warmup_iters=1
    )
    with pytest.raises(DivergedError, match="a smaller max_learning_rate"):
        train(tiny_runs.tiny(optimizer=schedule), tiny_runs.data(), tmp_path)
    told = log.load_json(tmp_path / log.OUTCOME)
    assert told["status"] == "diverged"
    assert "norm of the gradients" in told["reason"]


def test_weights_that_are_no_numbers_are_never_saved(tmp_path, monkeypatch):
    update = trainer.Trainer.update

    def spoilt(self):
        found = update(self)
        if self.step == 8:
            next(self.model.parameters()).data.view(-1)[0] = math.nan
        return found

    monkeypatch.setattr(trainer.Trainer, "update", spoilt)
    config = tiny_runs.tiny(eval_every=24)
    with pytest.raises(DivergedError):
        train(config, tiny_runs.data(), tmp_path)
    assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 4


def test_the_folder_of_another_run_is_refused(whole):
    with pytest.raises(ValueError, match="a run of another config"):
        train(tiny_runs.tiny(steps=25), tiny_runs.data(), whole.folder)


def test_a_batch_that_cannot_be_shared_out_is_refused():
    with pytest.raises(ValueError, match="equal parts"):
        tiny_runs.tiny(batch_size=8, accumulation=3)


def test_a_folder_in_place_of_the_data_is_told(tmp_path):
    with pytest.raises(TypeError, match=r"takes the data second, such as prepare\(config\), not a"):
        train(tiny_runs.tiny(), tmp_path)


def test_trained_gives_a_model_and_its_tokenizer(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    data = tiny_runs.data(tokenizer=byte_tokenizer())
    monkeypatch.setattr(trainer, "prepare", lambda config: data)
    model, tokenizer = trained(tiny_runs.tiny(steps=4))
    assert not model.training
    assert tokenizer is data.tokenizer


def test_a_compiled_model_is_compiled_by_choice_and_saved_as_it_is(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda model: compiled.append(model) or model)
    monkeypatch.setattr(torch._dynamo, "reset", lambda: None)
    run = train(tiny_runs.tiny(steps=4, compile=True), tiny_runs.data(), tmp_path)
    assert len(compiled) == 1
    assert not [name for name in run.model().state_dict() if name.startswith("_orig_mod")]


def test_bfloat16_changes_the_curve_by_rounding_only(tmp_path):
    half, full = (
        train(tiny_runs.tiny(precision=precision), tiny_runs.data(), tmp_path / precision)
        for precision in ("bfloat16", "float32")
    )
    np.testing.assert_allclose(
        half.log["train_loss"].iloc[1:], full.log["train_loss"].iloc[1:], rtol=0.02
    )
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
    config = tiny_runs.tiny(device="cuda", precision=precision)
    found = train(config, tiny_runs.data(), tmp_path)
    np.testing.assert_allclose(
        found.log["train_loss"].iloc[1:], whole.log["train_loss"].iloc[1:], rtol=0.05
    )


def test_a_loss_that_climbs_and_stays_up_ends_the_run(tmp_path):
    schedule = replace(
        tiny_runs.tiny().optimizer, max_learning_rate=10, min_learning_rate=10, warmup_iters=1
    )
    config = tiny_runs.tiny(optimizer=schedule, steps=60)
    with pytest.raises(DivergedError, match=r"the mean of 10 losses has climbed by [\d.]+ nats"):
        train(config, tiny_runs.data(), tmp_path)
    assert Run(config, tmp_path).status == "diverged"
    losses = Run(config, tmp_path).log["train_loss"].dropna()
    assert 10 <= len(losses) < 60
    assert losses.iloc[-10:].mean() > math.log(tiny_runs.VOCAB_SIZE) + config.divergence
    patient = replace(config, divergence=math.inf)
    assert train(patient, tiny_runs.data(), tmp_path / "patient").status == "finished"


def test_a_run_remembers_over_a_break_how_far_its_loss_has_climbed(tmp_path, monkeypatch):
    schedule = replace(
        tiny_runs.tiny().optimizer, max_learning_rate=10, min_learning_rate=10, warmup_iters=1
    )
    config = tiny_runs.tiny(optimizer=schedule, steps=60)
    with pytest.raises(DivergedError) as whole:
        train(config, tiny_runs.data(), tmp_path / "whole")

    interrupted(tmp_path / "broken", monkeypatch, 7, breaks, config)
    with pytest.raises(DivergedError) as resumed:
        train(config, tiny_runs.data(), tmp_path / "broken")
    assert str(resumed.value) == str(whole.value)


class Clock:
    """A clock that each update of the weights advances, and nothing else does."""

    def __init__(self, monkeypatch, step=1.0):
        self.now, self.step = 1_000.0, step
        update = trainer.Trainer.update

        def timed(run):
            found = update(run)
            self.now += self.step
            return found

        monkeypatch.setattr(trainer.Trainer, "update", timed)
        monkeypatch.setattr(trainer, "time", self)

    def perf_counter(self):
        return self.now


class TestATimeLimit:
    def limited(self, seconds, folder, **changes):
        usual = {"steps": 10**6, "log_every": 10, "eval_every": 1_000, "checkpoint_every": 20}
        config = tiny_runs.tiny(max_seconds=seconds, **usual | changes)
        return train(config, tiny_runs.data(), folder)

    def test_is_not_passed_by_an_evaluation_that_is_due_shortly_before(self, tmp_path, monkeypatch):
        clock, validation = Clock(monkeypatch), trainer.Trainer.validation

        def slow(run):
            clock.now += 4
            return validation(run)

        monkeypatch.setattr(trainer.Trainer, "validation", slow)
        # Evaluations take 4 s: before the first step, at 17 s and at 34 s. The next one is due at
        # 51 s, and another step after it would end at 56 s.
        run = self.limited(53.0, tmp_path, eval_every=13)
        assert (run.log.index[-1], run.log["seconds"].iloc[-1]) == (39, 51)

    def test_ends_a_run_in_time_evaluated_and_saved(self, tmp_path, monkeypatch):
        Clock(monkeypatch)
        run = self.limited(60.0, tmp_path)
        assert run.status == "finished"
        assert run.log.index[-1] == run.log["seconds"].iloc[-1] == 60
        assert run.log["validation_loss"].iloc[-1] < math.log(tiny_runs.VOCAB_SIZE)
        assert checkpoints.newest(tmp_path / CHECKPOINTS)["iteration"] == 60

    def test_leads_the_learning_rate_to_its_minimum(self, tmp_path, monkeypatch):
        Clock(monkeypatch)
        run, schedule = self.limited(60.0, tmp_path), tiny_runs.tiny().optimizer
        rates = run.log["learning_rate"].dropna()
        assert rates.iloc[-1] == pytest.approx(schedule.min_learning_rate, rel=0.1)
        assert (rates.diff().dropna() <= 0).all()

    def test_goes_on_over_a_break_to_the_same_end(self, tmp_path, monkeypatch):
        clock = Clock(monkeypatch)
        whole = self.limited(60.0, tmp_path / "whole")
        clock.now += 1_000  # between the sessions
        config = whole.config
        interrupted(
            tmp_path / "broken",
            monkeypatch,
            45,
            lambda: os.kill(os.getpid(), signal.SIGINT),
            config,
        )
        clock.now += 1_000
        resumed = self.limited(60.0, tmp_path / "broken")
        pd.testing.assert_frame_equal(resumed.log[CURVE], whole.log[CURVE], check_exact=True)
        assert resumed.log["seconds"].iloc[-1] == 60

    def test_is_not_spent_by_what_checks_the_run(self, tmp_path, monkeypatch):
        clock, checked = Clock(monkeypatch), trainer.guards.before_training

        def slow(*arguments):
            clock.now += 15
            return checked(*arguments)

        monkeypatch.setattr(trainer.guards, "before_training", slow)
        assert self.limited(60.0, tmp_path).log.index[-1] == 60


def byte_tokenizer(*longer):
    """A tokenizer of 256 bytes and more tokens."""
    return Tokenizer(dict(enumerate([bytes([byte]) for byte in range(256)] + list(longer))), [])


class TestOtherData:
    """A run learns from what it began with, or says what has changed."""

    def stopped(self, folder, monkeypatch):
        data = tiny_runs.data
        usual = {"tokenizer": byte_tokenizer()}
        monkeypatch.setattr(tiny_runs, "data", lambda **changes: data(**usual | changes))
        interrupted(folder, monkeypatch, 10, breaks)

    @pytest.mark.parametrize(
        ("changes", "named"),
        [
            ({"train": tiny_runs.ids(10_000, seed=2)}, "tokens to train on"),
            ({"train": tiny_runs.ids(9_999)}, "tokens to train on"),
            ({"validation": tiny_runs.ids(2_000, seed=3)}, "validation tokens"),
            ({"tokenizer": byte_tokenizer(b"other")}, "tokenizer"),
        ],
    )
    def test_is_refused_and_nothing_is_changed(self, tmp_path, monkeypatch, changes, named):
        self.stopped(tmp_path, monkeypatch)
        before = (tmp_path / "log.jsonl").read_bytes()
        with pytest.raises(ValueError, match=f"other data: .*{named}.* give another folder"):
            train(tiny_runs.tiny(), tiny_runs.data(**changes), tmp_path)
        assert (tmp_path / "log.jsonl").read_bytes() == before
        assert train(tiny_runs.tiny(), tiny_runs.data(), tmp_path).status == "finished"


class TestAFolder:
    def test_of_the_same_run_is_used_by_one_thread_at_a_time(self, tmp_path, whole):
        def work():
            train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run = Run(tiny_runs.tiny(), tmp_path)
        pd.testing.assert_frame_equal(run.log[CURVE], whole.log[CURVE], check_exact=True)


def test_what_is_on_disk_says_how_far_a_killed_run_came(tmp_path, monkeypatch):
    seen, update = [], trainer.Trainer.update

    def watched(self):
        seen.append(log.load_json(tmp_path / log.OUTCOME))
        return update(self)

    monkeypatch.setattr(trainer.Trainer, "update", watched)
    train(tiny_runs.tiny(), tiny_runs.data(), tmp_path)
    assert {found["status"] for found in seen} == {"running"}
    assert [found["step"] for found in seen[::4]] == [0, 4, 8, 12, 16, 20]


class TestAForcedPrecision:
    """`WORKBOOK_PRECISION` decides where a config leaves the precision open."""

    OPEN = tiny_runs.tiny()

    @pytest.mark.parametrize("forced", ["float32", "bfloat16"])
    def test_is_taken_and_logged(self, tmp_path, monkeypatch, forced):
        monkeypatch.setenv("WORKBOOK_PRECISION", forced)
        train(replace(self.OPEN, steps=4), tiny_runs.data(), tmp_path)
        assert log.load_json(tmp_path / log.ENVIRONMENT)["precision"] == forced
        assert checkpoints.newest(tmp_path / CHECKPOINTS)["precision"] == forced

    def test_has_a_place_of_its_own(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
        monkeypatch.delenv("WORKBOOK_PRECISION", raising=False)
        places = {run_folder(self.OPEN), run_folder(replace(self.OPEN))}
        assert run_folder(tiny_runs.tiny(seed=1)) not in places
        for forced in ("float32", "bfloat16"):
            monkeypatch.setenv("WORKBOOK_PRECISION", forced)
            places.add(run_folder(self.OPEN))
            chosen = tiny_runs.tiny(precision="float32")
            assert run_folder(chosen).name == f"tiny-{chosen.key}"
        assert len(places) == 3

    def test_is_kept_by_a_run_that_goes_on_elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.delenv("WORKBOOK_PRECISION", raising=False)
        monkeypatch.setattr(trainer.devices, "has_bf16", lambda device: False)
        undisturbed = train(self.OPEN, tiny_runs.data(), tmp_path / "whole")
        interrupted(tmp_path / "moved", monkeypatch, 10, breaks, self.OPEN)
        monkeypatch.setattr(trainer.devices, "has_bf16", lambda device: True)
        moved = train(self.OPEN, tiny_runs.data(), tmp_path / "moved")
        pd.testing.assert_frame_equal(moved.log[CURVE], undisturbed.log[CURVE], check_exact=True)


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGHUP")
def test_nohup_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(
        trainer.Trainer,
        "validation",
        lambda self: os.kill(os.getpid(), signal.SIGHUP) or {"validation_loss": 4.0},
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = train(tiny_runs.tiny(steps=8), tiny_runs.data(), tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert run.status == "finished"


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_every_seed_that_a_config_takes_can_be_trained_with(tmp_path, seed):
    config = tiny_runs.tiny(seed=seed, steps=4)
    assert train(config, tiny_runs.data(), tmp_path).status == "finished"


@pytest.mark.parametrize("seed", [-1, 2**63, 1.0, True])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match=r"is not a whole number from 0 to 2\*\*63 - 1"):
        tiny_runs.tiny(seed=seed)
