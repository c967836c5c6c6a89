import torch


def random_batch(tokens, batch_size, context_length, device="cpu"):
    last = len(tokens) - context_length
    inputs, targets = [], []
    for start in torch.randint(last, (batch_size,)).tolist():
        window = torch.tensor(tokens[start : start + context_length + 1], dtype=torch.long)
        inputs.append(window[:-1])
        targets.append(window[1:])
    return torch.stack(inputs).to(device), torch.stack(targets).to(device)
