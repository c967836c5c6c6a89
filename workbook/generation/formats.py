"""A trained model, opened from its run's folder, and written for Hugging Face's `transformers`.

    folder/config.json              a model's sizes, under the names of `LlamaForCausalLM`
           model.safetensors        its weights, under Llama's names
           tokenizer.json           a tokenizer: vocabulary, merges, special tokens, how text is cut
           tokenizer_config.json    what `transformers` wants to know about it

A Llama's formulas are ours, with one exception. Here RoPE rotates neighbours, (x_0, x_1), as in the
paper; there it rotates value k with value k + d_head / 2. So the rows of Wq and Wk are reordered
within each head, the even ones first. The scores of queries and keys stay the same.

The tokenizer gives the same ids there as here, for text whose characters their Unicode version
knows.
"""

import json
import os
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from einops import rearrange
from safetensors.torch import save
from torch import Tensor

from workbook.config import ModelConfig
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.generation.sampling import end_of_text
from workbook.tokenization import token_files
from workbook.tokenization.gpt2_files import from_readable, to_readable
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, log
from workbook.transformer.model import TransformerLM

# --- Models -------------------------------------------------------------------------------------

LLAMA_SIZES = {  # ours: Llama's
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
}
LLAMA_LAYER = {
    "ln1": "input_layernorm",
    "attn.q_proj": "self_attn.q_proj",
    "attn.k_proj": "self_attn.k_proj",
    "attn.v_proj": "self_attn.v_proj",
    "attn.output_proj": "self_attn.o_proj",
    "ln2": "post_attention_layernorm",
    "ffn.w1": "mlp.gate_proj",
    "ffn.w2": "mlp.down_proj",
    "ffn.w3": "mlp.up_proj",
}
LLAMA_FIXED = {  # may differ from Llama to Llama, but not in our model
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
}


def is_of_other_parts(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of a model with parts other than ours."""
    file = Path(folder) / log.CONFIG
    return file.is_file() and "parts" in log.load_json(file)


def open_model(folder: str | os.PathLike[str]) -> tuple[TransformerLM, Tokenizer]:
    """Load the model of a training run, and its tokenizer.

    Raises: FileNotFoundError; ValueError if the folder does not hold a complete model.
    """
    folder = Path(folder)
    if (folder / "model.safetensors").is_file():
        raise ValueError(f"{folder} holds an exported model, for `transformers`; give its run's")
    if not (folder / log.CONFIG).is_file():
        raise FileNotFoundError(f"{folder} holds no model; give the folder of a training run")
    if is_of_other_parts(folder):
        raise ValueError(
            f"the model in {folder} is your own, not one of the workbook's; `workbook generate` and"
            " `mine.open_run` open it"
        )
    config = log.load_json(folder / log.CONFIG, model=dict, corpus=str)
    try:
        shape = ModelConfig(**config["model"])
        model = TransformerLM.from_config(shape)
    # A setting is missing, unknown, of another type, or far too large.
    except (TypeError, OverflowError, MemoryError, RuntimeError) as error:
        raise ValueError(f"{folder / log.CONFIG} holds no model of ours ({error})") from error
    state = checkpoints.newest(folder / "checkpoints")
    if state is None:
        ended = log.load_json(folder / log.OUTCOME) if (folder / log.OUTCOME).is_file() else {}
        remedy = "yet; let it train longer"
        if ended.get("status") == "diverged":
            remedy = f"(it diverged: {ended.get('reason')}); train again with other settings"
        raise FileNotFoundError(f"the run in {folder} has no checkpoint {remedy}")
    checkpoints.restore(state, model)
    kept = folder / log.TOKENIZER
    if (kept / token_files.RECORD).is_file():
        name = str(kept)
        tokenizer = token_files.load_tokenizer(kept)
    else:
        name, tokenizer = token_files.tokenizer_for(config["corpus"], vocab_size=shape.vocab_size)
    now = token_files.fingerprint(tokenizer)
    if state.get("data", {}).get("tokenizer", now) != now:  # `save_checkpoint` stores none
        raise ValueError(
            f"the model in {folder} was trained with another tokenizer than {name} is now;"
            " restore the old one, or train the model again"
        )
    return model.eval(), tokenizer


def save_model(
    model: TransformerLM, folder: str | os.PathLike[str], tokenizer: Tokenizer | None = None
) -> Path:
    """Write a folder that `transformers.AutoModelForCausalLM.from_pretrained` opens; return it.

    With `tokenizer`, `transformers.AutoTokenizer` opens it as well.
    Raises: ValueError if Llama has no such model, or the tokenizer has more tokens than the model.
    """
    folder = Path(folder)
    config = model.config
    # The ablations of notebook 08 have no place in `LlamaForCausalLM`.
    for field, only in (("norm", "pre"), ("position", "rope"), ("ffn", "swiglu")):
        if (value := getattr(config, field)) != only:
            raise ValueError(
                f"Llama has no {field}={value!r}; only a model with {field}={only!r} can be"
                f" saved in its format"
            )
    if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens and the model"
            f" {config.vocab_size:,}; give the tokenizer that the model was trained with"
        )
    state = model.state_dict()
    weights = {
        llama_name: reordered(name, state[name], config).detach().cpu().contiguous()
        for name, llama_name in weight_names(config)
    }
    if config.tie_embeddings:  # Llama's tied embedding is not scaled: two matrices, then
        weights["model.embed_tokens.weight"] = weights["lm_head.weight"] * model.row_scale
    end_id = None if tokenizer is None else end_of_text(tokenizer)
    with atomic_write(folder / "model.safetensors", "wb") as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_json(folder / "config.json", llama_config(model, end_id))
    if tokenizer is not None:
        save_tokenizer_json(tokenizer, folder / "tokenizer.json")
        end = {} if end_id is None else {"eos_token": END_OF_TEXT}
        kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
        # Otherwise `transformers` would remove the space before a full stop when it decodes.
        tidy = {"clean_up_tokenization_spaces": False}
        write_json(folder / "tokenizer_config.json", kind | tidy | end)
    return folder


def reordered(name: str, weight: Tensor, config: ModelConfig) -> Tensor:
    """The weight, with its rows in Llama's order if RoPE rotates its output."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return weight
    # Within a head 0 1 2 3 4 5 becomes 0 2 4 1 3 5: the first values of all pairs, then the second.
    order = "(heads pair two) d_model -> (heads two pair) d_model"
    return rearrange(weight, order, heads=config.num_heads, two=2)


def weight_names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name and Llama's name of each weight."""
    yield "token_embeddings.weight", "model.embed_tokens.weight"
    for layer in range(config.num_layers):
        for name, llama_name in LLAMA_LAYER.items():
            yield f"layers.{layer}.{name}.weight", f"model.layers.{layer}.{llama_name}.weight"
    yield "ln_final.weight", "model.norm.weight"
    yield "lm_head.weight", "lm_head.weight"


def llama_config(model: TransformerLM, end_id: int | None) -> dict[str, Any]:
    """The content of `config.json`; `end_id` is the id of `<|endoftext|>`, if there is one."""
    config = model.config
    sizes = {llama_name: getattr(config, name) for name, llama_name in LLAMA_SIZES.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        **LLAMA_FIXED,
        **sizes,
        "num_key_value_heads": config.num_heads,
        "head_dim": config.d_head,
        # `rope_theta` is for `transformers` up to version 4, `rope_parameters` from version 5 on.
        "rope_theta": config.rope_theta,
        "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": False,
        "bos_token_id": end_id,  # a document begins where another ended
        "eos_token_id": end_id,
        "dtype": str(model.lm_head.weight.dtype).removeprefix("torch."),
    }


# --- Tokenizers: Hugging Face's tokenizer.json ---------------------------------------------------

# Hugging Face's name for the pre-tokenization and the byte alphabet of GPT-2.
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def save_tokenizer_json(tokenizer: Tokenizer, path: str | os.PathLike[str]) -> None:
    """Write a `tokenizer.json`, which `tokenizers.Tokenizer.from_file` opens.

    Raises: ValueError if a special token reads like another token's name in the byte alphabet.
    """
    ids = _ids(tokenizer)
    names = {to_readable(token): ids[token] for token in _mergeable(tokenizer) if token in ids}
    added = []
    for text in tokenizer.special_tokens:
        token_id = ids[text.encode()]
        if names.setdefault(text, token_id) != token_id:
            raise ValueError(
                f"the special token {text!r} is also how a tokenizer.json writes the token "
                f"{from_readable(text)!r}; choose another, such as '<|{text}|>'"
            )
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        added.append({"id": token_id, "content": text, **flags, "special": True})
    model = {
        "type": "BPE",
        "vocab": dict(sorted(names.items(), key=itemgetter(1))),
        "merges": [[to_readable(left), to_readable(right)] for left, right in tokenizer.merges],
    }
    parts = {"pre_tokenizer": BYTE_LEVEL, "decoder": BYTE_LEVEL, "model": model}
    with atomic_write(path) as file:
        json.dump({"version": "1.0", "added_tokens": added, **parts}, file, ensure_ascii=False)
        file.write("\n")


def _ids(tokenizer: Tokenizer) -> dict[bytes, int]:
    """The id that encoding gives each token: the lower one if two have the same bytes."""
    return {token: token_id for token_id, token in sorted(tokenizer.vocab.items(), reverse=True)}


def _mergeable(tokenizer: Tokenizer) -> set[bytes]:
    """The tokens that are single bytes or are made by a merge."""
    return {bytes([value]) for value in range(256)}.union(
        left + right for left, right in tokenizer.merges
    )
