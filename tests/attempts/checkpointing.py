"""Pairs of functions for checkpoints as learners write them, right and wrong."""

import os
import pickle
from pathlib import Path

import torch

from attempts.ours import copied
from workbook.training.checkpoints import load_checkpoint, save_checkpoint

checkpoints = copied("training.checkpoints")


def save(model, optimizer, iteration, out):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "it": iteration}
    torch.save(state, out)


def load(src, model, optimizer):
    state = torch.load(src)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["it"]


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


def save_in_other_order(optim, net, ckpt_path, step):
    save(net, optim, step, ckpt_path)


def load_in_other_order(lm, optimizer, path):
    return load(path, lm, optimizer)


RIGHT = [
    (save, load),
    [load, save],  # their names tell which is which
    (save_tuple, load_tuple),
    (save_pickled, load_pickled),
    (save_whole, load_whole),
    (checkpoints.save_checkpoint, checkpoints.load_checkpoint),
    (save_in_other_order, load_in_other_order),
]


def save_model_only(model, optimizer, iteration, out):
    torch.save({"model": model.state_dict(), "it": iteration}, out)


def load_only(*names):
    def load_some(src, model, optimizer):
        state, holders = torch.load(src), {"model": model, "optimizer": optimizer}
        for name in names:
            holders[name].load_state_dict(state[name])
        return state["it"]

    return load_some


def load_new_name(src, model, optimizer):
    saved, old, iteration = torch.load(src, weights_only=False)
    model, optimizer = saved, old
    model.train()
    optimizer.zero_grad()
    return iteration


def save_halved(model, optimizer, iteration, out):
    save(model.half(), optimizer, iteration, out)


def save_to_path(model, optimizer, iteration, out):
    with open(out, "wb") as file:
        save(model, optimizer, iteration, file)


def load_from_path(src, model, optimizer):
    with open(src, "rb") as file:
        return load(file, model, optimizer)


def save_to_text(model, optimizer, iteration, out):
    save(model, optimizer, iteration, out if hasattr(out, "write") else out + "")


def save_and_close(model, optimizer, iteration, out):
    save(model, optimizer, iteration, out)
    if hasattr(out, "close"):
        out.close()


def save_with_folder(model, optimizer, iteration, out):
    """Makes the folder first, which an open file does not have."""
    os.makedirs(os.path.dirname(out), exist_ok=True)
    save(model, optimizer, iteration, out)


def save_under_own_name(model, optimizer, iteration, out):
    save(model, optimizer, iteration, f"step-{iteration}.pt")


def load_own_name(src, model, optimizer):
    return load("step-7.pt", model, optimizer)


MEMORY = {}


def save_in_memory(model, optimizer, iteration, out):
    MEMORY.update(model=model.state_dict(), optimizer=optimizer.state_dict(), it=iteration)
    torch.save(0, out)


def load_from_memory(src, model, optimizer):
    model.load_state_dict(MEMORY["model"])
    optimizer.load_state_dict(MEMORY["optimizer"])
    return MEMORY["it"]


def load_without_second_moment(src, model, optimizer):
    it = load(src, model, optimizer)
    for state in optimizer.state.values():
        state["exp_avg_sq"].zero_()
    return it


def load_twice(src, model, optimizer):
    """Reads the file once for each; an open one is at its end the second time."""
    load_only("model")(src, model, optimizer)
    return load_only("optimizer")(src, model, optimizer)


def load_by_hand(src, model, optimizer):
    state = torch.load(src)
    model.load_state_dict(state["model"])
    optimizer.state = state["optimizer"]["state"]
    return state["it"]


def load_new_optimizer(src, model, optimizer):
    optimizer = torch.optim.AdamW(model.parameters())
    return load(src, model, optimizer)


def load_and_return_a_pair(src, model, optimizer):
    return None, load(src, model, optimizer)


WRONG = [
    ((save_model_only, load_only("model")), "averages begin at zero again"),
    ((save_whole, load_new_name), "writes into it"),
    ((save_whole, load), "holds whole objects"),
    ((save_halved, load), "Saving changed the model"),
    ((save_in_memory, load_from_memory), "from memory and not from the file"),
    ((save_under_own_name, load_own_name), "under another name"),
    ((save, load_by_hand), "assigns each average to its parameter"),
    ((save, load_new_optimizer), "an optimizer other than the one that was passed in"),
    ((save, load_without_second_moment), "is lost or changed"),
    ((save, load_and_return_a_pair), "alone, as an int"),
    (save, "Two functions are needed"),
    ((lambda model, out: model, load), "cannot be called with the arguments"),
]

ALMOST = [
    ((save_to_path, load_from_path), "may also be open files"),
    ((save_with_folder, load), "may also be open files"),
    ((save_to_text, load), "may be a pathlib.Path"),
    ((save_and_close, load), "leave an open file open"),
    ((save, load_twice), "an open one is read twice"),
    ((save_checkpoint, load_checkpoint), "not from scratch yet"),
]
