"""Pairs of functions for checkpoints as learners write them, right and wrong."""

import os
import pickle
from pathlib import Path

import torch
from made_repositories import module

from attempts.lists import almost, mistake, right
from workbook.training.checkpoints import load_checkpoint, save_checkpoint

# Right.


flat = module("flat", "cs336_basics/training.py")
save = flat.save_checkpoint
load = flat.load_checkpoint


def save_tuple(model, optimizer, iteration, out):
    torch.save((model.state_dict(), optimizer.state_dict(), torch.tensor(iteration)), out)


def load_tuple(src, model, optimizer):
    weights, state, iteration = torch.load(src, map_location="cpu", weights_only=True)
    optimizer.load_state_dict(state)
    for name, parameter in model.named_parameters():
        parameter.data.copy_(weights[name])
    return int(iteration)


def save_pickled(model, optimizer, iteration, out):
    """Whole objects, by pickle; a temporary file that is renamed."""
    data = pickle.dumps((model, optimizer.state_dict(), iteration))
    if hasattr(out, "write"):
        out.write(data)
        return
    temporary = f"{os.fspath(out)}.tmp"
    Path(temporary).write_bytes(data)
    os.replace(temporary, out)


def load_pickled(src, model, optimizer):
    data = src.read() if hasattr(src, "read") else Path(src).read_bytes()
    saved, state, iteration = pickle.loads(data)
    model.load_state_dict(saved.state_dict())
    optimizer.load_state_dict(state)
    model.eval()
    return iteration


def save_whole(model, optimizer, iteration, out):
    torch.save([model, optimizer, iteration], out)


def load_whole(src, model, optimizer):
    saved, old, iteration = torch.load(src, weights_only=False)
    model.load_state_dict(saved.state_dict())
    optimizer.load_state_dict(old.state_dict())
    return iteration


def store(net, optim, step, path):
    save(net, optim, step, path)


def restore(path, net, optim):
    return load(path, net, optim)


for pair in (
    [load, save],  # their names tell which is which
    (restore, store),  # and so do their parameters
    (save_tuple, load_tuple),
    (save_pickled, load_pickled),
    (save_whole, load_whole),
):
    right("checkpointing")(pair)

# Wrong, beside the right `save` or `load`.


def save_halved(model, optimizer, iteration, out):
    save(model.half(), optimizer, iteration, out)


def save_to_path(model, optimizer, iteration, out):
    with open(out, "wb") as file:
        save(model, optimizer, iteration, file)


def save_to_text(model, optimizer, iteration, out):
    save(model, optimizer, iteration, out if hasattr(out, "write") else out + "")


def save_and_close(model, optimizer, iteration, out):
    save(model, optimizer, iteration, out)
    if hasattr(out, "close"):
        out.close()


def save_under_own_name(model, optimizer, iteration, out):
    save(model, optimizer, iteration, f"step-{iteration}.pt")


def save_in_memory(model, optimizer, iteration, out):
    load_from_memory.state = model.state_dict(), optimizer.state_dict(), iteration
    torch.save(0, out)


def load_from_memory(src, model, optimizer):
    weights, state, iteration = load_from_memory.state
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    return iteration


def load_model_only(src, model, optimizer):
    state = torch.load(src)
    model.load_state_dict(state["model"])
    return state["it"]


def load_without_second_moment(src, model, optimizer):
    it = load(src, model, optimizer)
    for state in optimizer.state.values():
        state["exp_avg_sq"].zero_()
    return it


def load_twice(src, model, optimizer):
    """Reads the file once for each; an open one is at its end the second time."""
    load_model_only(src, model, optimizer)
    return load(src, model, optimizer)


def load_by_hand(src, model, optimizer):
    it = load_model_only(src, model, optimizer)
    optimizer.state = torch.load(src)["optimizer"]["state"]
    return it


for words, wrong in (
    ("averages begin at zero again", (save, load_model_only)),
    ("holds whole objects", (save_whole, load)),
    ("Saving changed the model", (save_halved, load)),
    ("from memory and not from the file", (save_in_memory, load_from_memory)),
    ("under another name", (save_under_own_name, load)),
    ("assigns each average to its parameter", (save, load_by_hand)),
    ("is lost or changed", (save, load_without_second_moment)),
    ("Two functions are needed", save),
    ("not only your own", (lambda model, optimizer, it, out: model.d_model, load)),
    ("what is saved comes first", (lambda model, optimizer, it, out: torch.save(out, it), load)),
):
    mistake("checkpointing", words)(wrong)
for words, pair in (
    ("may also be open files", (save_to_path, load)),
    ("may be a pathlib.Path", (save_to_text, load)),
    ("leave an open file open", (save_and_close, load)),
    ("an open one is read twice", (save, load_twice)),
    ("not from scratch yet", (save_checkpoint, load_checkpoint)),
):
    almost("checkpointing", words)(pair)
