"""A checkpoint gives everything back, or says why not and changes nothing."""

import math
import os
import pickle
import random
import zipfile
from io import BytesIO
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from workbook.training import checkpoints
from workbook.training.checkpoints import load_checkpoint, newest, save_checkpoint, saved


def pair(width=6, seed=0):
    """A small model and its optimizer after two steps."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Linear(width, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(2):
        step(model, optimizer)
    return model, optimizer


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.arange(8.0).reshape(2, 4)).square().mean().backward()
    optimizer.step()


def contents(model, optimizer):
    """All numbers in both, to compare bit for bit."""
    states = [model.state_dict(), *optimizer.state_dict()["state"].values()]
    return [tensor.clone() for state in states for tensor in state.values()]


def same(one, other):
    return len(one) == len(other) and all(map(torch.equal, one, other))


@pytest.mark.parametrize("kind", ["path", "string", "file"])
def test_model_and_optimizer_go_on_as_if_nothing_had_happened(tmp_path, kind):
    model, optimizer = pair()
    path = tmp_path / "a.pt"
    before = b"what is in the file before the place where it stands\n"
    file = BytesIO(before)
    file.seek(len(before))
    place = {"path": path, "string": str(path), "file": file}[kind]
    save_checkpoint(model, optimizer, 2, place)
    file.seek(len(before))
    resumed, other = pair(seed=1)
    assert load_checkpoint(place, resumed, other) == 2
    assert same(contents(resumed, other), contents(model, optimizer))
    step(model, optimizer)
    step(resumed, other)
    assert same(contents(resumed, other), contents(model, optimizer))


def test_a_compiled_model_and_the_plain_one_have_the_same_checkpoint():
    def compiled(model):
        """As `torch.compile` wraps it; torch's compiler loads slowly."""
        return torch.nn.ModuleDict({"_orig_mod": model})

    model, optimizer = pair()
    for at_first, later in ((compiled, lambda model: model), (lambda model: model, compiled)):
        file = BytesIO()
        resumed, other = pair(seed=1)
        save_checkpoint(at_first(model), optimizer, 2, file)
        file.seek(0)
        assert load_checkpoint(file, later(resumed), other) == 2
        assert same(contents(resumed, other), contents(model, optimizer))


def refused(source, message, **kinds):
    model, optimizer = pair(seed=1, **kinds)
    before = contents(model, optimizer)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(source, model, optimizer)
    assert same(contents(model, optimizer), before), "something was changed"


def test_a_shortened_file_and_a_flipped_bit_in_a_weight_are_noticed(tmp_path):
    model, optimizer = pair()
    path = tmp_path / "a.pt"
    save_checkpoint(model, optimizer, 2, path)
    data = bytearray(path.read_bytes())
    for size in (1, 100, len(data) // 2, len(data) - 30, len(data) - 1):
        path.write_bytes(data[:size])
        refused(path, "is not a complete checkpoint")
    data[data.index(model[0].weight.detach().numpy().tobytes())] ^= 1
    path.write_bytes(data)
    refused(path, r"missing or damaged\); load an older one")


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_code_in_a_file_is_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"kind": checkpoints.KIND, "model": Bomb()}, "zip.pt")
    refused(tmp_path / "zip.pt", "nothing in it was run")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Bomb()))
    refused(tmp_path / "plain.pt", "is a pickle, which could run code when it is loaded")
    assert not (tmp_path / "exploded").exists()


def test_what_is_no_checkpoint_is_refused(tmp_path):
    torch.save(pair()[0].state_dict(), tmp_path / "weights.pt")
    refused(tmp_path / "weights.pt", "is not a workbook checkpoint")
    exhausted = BytesIO()
    save_checkpoint(*pair(), 2, exhausted)
    refused(exhausted, r"seek\(0\)")
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.pt", *pair())


def test_another_model_or_optimizer_is_refused_before_anything_is_copied(tmp_path):
    model, optimizer = pair()
    save_checkpoint(model, optimizer, 2, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", r"another model: 0.weight is \(6, 4\) there and \(5, 4\)", width=5)
    save_checkpoint(model, torch.optim.AdamW([model[0].weight]), 2, tmp_path / "a.pt")
    refused(tmp_path / "a.pt", "parameter group that doesn't match the size")


def test_weights_or_moments_that_are_nan_are_told_as_such_and_not_loaded(tmp_path):
    for place in ("weight", "moment"):
        model, optimizer = pair()
        weight = model[0].weight
        spoilt = weight.data if place == "weight" else optimizer.state[weight]["exp_avg"]
        spoilt[0] = math.nan
        save_checkpoint(model, optimizer, 2, tmp_path / "a.pt")
        refused(tmp_path / "a.pt", "is spoilt: .* is NaN or infinite there")


def test_a_full_disk_leaves_the_old_checkpoint_and_no_other_file(tmp_path, monkeypatch):
    save_checkpoint(*pair(), 2, tmp_path / "a.pt")
    before = (tmp_path / "a.pt").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(*pair(seed=1), 3, tmp_path / "a.pt")
    assert (tmp_path / "a.pt").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.pt"]


def test_the_last_few_are_kept_and_what_a_killed_writer_left_is_swept_away(tmp_path):
    assert newest(tmp_path) is None
    (tmp_path / ".step-000000001.pt.abc.tmp").write_bytes(b"half")
    for iteration in (5, 10, 100, 1_000_000_000, 1_000_000_001):
        checkpoints.keep_last({"iteration": iteration}, tmp_path, 2)
    assert [file.stem for file in saved(tmp_path)] == ["step-1000000001", "step-1000000000"]
    assert len(os.listdir(tmp_path)) == 2


def test_an_older_checkpoint_stands_in_for_a_damaged_one_which_is_named(tmp_path, capsys):
    for iteration in (1, 2):
        last = checkpoints.keep_last({"iteration": iteration}, tmp_path, 3)
    assert newest(tmp_path)["iteration"] == 2
    assert capsys.readouterr().err == ""
    last.write_bytes(last.read_bytes()[:-100])
    assert newest(tmp_path)["iteration"] == 1
    assert f"an older checkpoint: {last} is not a complete" in capsys.readouterr().err
    saved(tmp_path)[1].write_bytes(b"x")
    with pytest.raises(ValueError, match=r"no checkpoint in .* can be read.* to begin anew"):
        newest(tmp_path)


@pytest.mark.slow
def test_whichever_bit_is_flipped_a_checkpoint_is_read_right_or_the_older_one_is(tmp_path):
    for iteration in (1, 2):
        state = {"iteration": iteration, "weight": torch.full((3,), float(iteration))}
        last = checkpoints.keep_last(state, tmp_path, 3)
    data = last.read_bytes()
    with zipfile.ZipFile(last) as archive:
        index = range(archive.start_dir, len(data))
    drawn = random.Random(0)
    # Among the attributes of an entry, bit 4 says that it is a folder.
    flips = [(place, 1 << bit) for place in index for bit in (4, drawn.randrange(8))]
    flips += [(drawn.randrange(index.start), 1 << drawn.randrange(8)) for _ in range(300)]
    older = 0
    for place, bit in flips:
        damaged = bytearray(data)
        damaged[place] ^= bit
        last.write_bytes(damaged)
        read = newest(tmp_path)
        assert read["weight"].tolist() == 3 * [read["iteration"]], (place, bit)
        older += read["iteration"] == 1
    assert older > len(flips) / 2  # the others are dates, padding and the like


def test_a_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    checkpoints.keep_last({"iteration": 1}, tmp_path, 3)
    torchs = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 B")
    for owner, name in ((zipfile.ZipFile, "testzip"), (torch, "load")):
        errors = [MemoryError(), KeyboardInterrupt()]
        if owner is torch:
            errors.append(torchs)
        for error in errors:
            with monkeypatch.context() as patched:
                patched.setattr(owner, name, Mock(side_effect=error))
                with pytest.raises(type(error)):
                    newest(tmp_path)
    assert newest(tmp_path)["iteration"] == 1


def test_all_random_numbers_go_on_where_they_stood(tmp_path):
    def draw():
        return [torch.rand(3).tolist(), np.random.rand(3).tolist(), random.gauss(0, 1)]

    random.gauss(0, 1)  # it draws two and keeps one
    checkpoints.write_state(checkpoints.random_state(), tmp_path / "r.pt")
    expected = draw()
    draw()
    checkpoints.restore_random_state(checkpoints.read_state(tmp_path / "r.pt"))
    assert draw() == expected


def test_a_file_of_another_kind_is_called_what_it_is(tmp_path):
    weights = {"weight": torch.ones(2)}
    old, safe, lfs, pickled, empty = (tmp_path / name for name in ("old", "safe", "lfs", "p", "e"))
    torch.save(weights, old, _use_new_zipfile_serialization=False)
    save_file(weights, safe)
    lfs.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n")
    pickled.write_bytes(pickle.dumps({"weight": [1.0]}))
    empty.touch()
    words = {
        old: "in torch's format before 1.6",
        safe: "a safetensors file",
        lfs: "a pointer of Git LFS",
        pickled: "a pickle",
        empty: "empty",
    }
    for path, what in words.items():
        with pytest.raises(ValueError, match=f"is {what}"):
            checkpoints.read_state(path)


def test_names_of_data_parallel_weights_are_understood(tmp_path):
    model, optimizer = pair()
    checkpoints.save_checkpoint(nn.DataParallel(model), optimizer, 3, tmp_path / "parallel.pt")
    state = checkpoints.read_state(tmp_path / "parallel.pt")
    state["model"] = {f"module.{name}": tensor for name, tensor in state["model"].items()}
    other, _ = pair(seed=1)
    checkpoints.restore(state, other)
    assert all(map(torch.equal, model.parameters(), other.parameters()))


def test_numbers_of_numpy_are_kept_as_numbers(tmp_path):
    model, optimizer = pair()
    optimizer.param_groups[0]["lr"] = np.float32(0.5)
    checkpoints.save_checkpoint(model, optimizer, np.int64(7), tmp_path / "a.pt")
    assert checkpoints.load_checkpoint(tmp_path / "a.pt", model, optimizer) == 7
    assert optimizer.param_groups[0]["lr"] == 0.5
