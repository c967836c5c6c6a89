"""A look inside a running model: who attends to whom, and how large the activations are."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import Module

from workbook.transformer.model import MultiHeadSelfAttention, TransformerLM

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


@torch.no_grad()
def attention_maps(
    model: TransformerLM, token_ids: Int[Tensor, "... seq"]
) -> Float[Tensor, "layers ... heads seq seq"]:
    """The attention weights of every layer and head: a row for each query, a column for each key.

    The model's own attention computes them: if the values are the rows of an identity matrix, their
    weighted mean is the weights themselves.
    """
    maps: list[Tensor] = []

    def recorded(attend: Attend) -> Attend:
        def attend_and_record(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
            # With V = 1, weights · V are the weights; the real output still goes on.
            identity = torch.eye(K.shape[-2], dtype=V.dtype, device=V.device)
            maps.append(attend(Q, K, identity.expand(*K.shape[:-1], -1)))
            return attend(Q, K, V)

        return attend_and_record

    # `modules` goes through the model in the order in which its layers were made: from the first to
    # the last.
    layers = [part for part in model.modules() if isinstance(part, MultiHeadSelfAttention)]
    own = [attention.attend for attention in layers]
    try:
        for attention in layers:
            attention.attend = recorded(attention.attend)
        # What a notebook calls must leave the model as it was, even if it fails halfway.
        model(token_ids)
    finally:
        for attention, attend in zip(layers, own, strict=True):
            attention.attend = attend
    return torch.stack(maps)


@torch.no_grad()
def residual_rms(
    model: TransformerLM, token_ids: Int[Tensor, "... seq"]
) -> Float[Tensor, " depths"]:
    """The mean RMS of the residual stream's vectors: after the embedding, and after each block."""
    sizes: list[Tensor] = []

    def note(part: Module, inputs: object, output: Tensor) -> None:
        sizes.append(rms(output).mean())

    parts = [model.token_embeddings, *model.layers]
    # A hook sees what a module returns without any change to the module's code.
    hooks = [part.register_forward_hook(note) for part in parts]
    try:
        model(token_ids)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(sizes)


def rms(x: Float[Tensor, "... d_model"]) -> Float[Tensor, "..."]:
    """The root mean square of each vector: what RMSNorm divides by."""
    # Without the ε of RMSNorm: a vector of zeros has the size 0.
    return x.to(torch.promote_types(x.dtype, torch.float32)).square().mean(-1).sqrt()
