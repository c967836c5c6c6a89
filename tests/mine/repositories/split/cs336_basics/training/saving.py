import torch


def save(model, optimizer, step, path):
    torch.save((model.state_dict(), optimizer.state_dict(), step), path)


def restore(path, model, optimizer):
    model_state, optimizer_state, step = torch.load(path, map_location="cpu")
    model.load_state_dict(model_state)
    optimizer.load_state_dict(optimizer_state)
    return step
