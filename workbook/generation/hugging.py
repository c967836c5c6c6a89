"""A model in the format of Hugging Face's `LlamaForCausalLM`, and back.

    folder/config.json              the sizes, under Llama's names
           model.safetensors        the weights, under Llama's names
           tokenizer.json           where the tokenizer is given, with tokenizer_config.json

The formulas are the same but for one thing. RoPE turns neighbours here, (x_0, x_1), as the paper
does; there it turns value k with value k + d_head / 2. So the rows of Wq and Wk change places in
each head, the even ones first. Products of queries and keys stay what they were.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from einops import rearrange
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from workbook.config import ModelConfig
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.generation.exchange import load_tokenizer_json, save_tokenizer_json
from workbook.generation.generate import end_of_text
from workbook.tokenization.tokenizer import Tokenizer
from workbook.transformer.model import TransformerLM

SIZES = {  # ours: Llama's
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
}
EPS = 1e-5  # of every RMSNorm here
# What Llama's config may say otherwise, and our model cannot.
FIXED = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": EPS,
    "attention_bias": False,
    "mlp_bias": False,
}
LAYER = {
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
NEIGHBOURS, HALVES = "(heads pair two) d_model", "(heads two pair) d_model"


def save_model(
    model: TransformerLM, folder: str | os.PathLike, tokenizer: Tokenizer | None = None
) -> Path:
    """The folder, which `transformers.AutoModelForCausalLM.from_pretrained` opens.

    Raises: ValueError where Llama has no such model, or the tokenizer has more ids than it.
    """
    folder, config = Path(folder), model.config
    for field, only in (("norm", "pre"), ("position", "rope"), ("ffn", "swiglu")):
        if (value := getattr(config, field)) != only:
            raise ValueError(
                f"Llama has no {field}={value!r}; only a model with {field}={only!r} can go there"
            )
    if tokenizer is not None and tokenizer.vocab_size > config.vocab_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocab_size:,} ids and the model {config.vocab_size:,};"
            " give the tokenizer that the model was trained with"
        )
    ours, weights = model.state_dict(), {}
    for name, theirs in names(config):
        weight = ours[name]
        if turns(name):
            weight = rearrange(weight, f"{NEIGHBOURS} -> {HALVES}", heads=config.num_heads, two=2)
        weights[theirs] = weight.detach().cpu().contiguous()
    if config.tie_embeddings:
        del weights["lm_head.weight"]  # the file may hold a matrix once only
    end_id = None if tokenizer is None else end_of_text(tokenizer)
    with atomic_write(folder / "model.safetensors", "wb") as file:
        file.write(save(weights, metadata={"format": "pt"}))
    write_json(folder / "config.json", llama_config(model, end_id))
    if tokenizer is not None:
        save_tokenizer_json(tokenizer, folder / "tokenizer.json")
        about = {"tokenizer_class": "PreTrainedTokenizerFast"}
        about["clean_up_tokenization_spaces"] = False
        if end_id is not None:
            about["eos_token"] = END_OF_TEXT
        write_json(folder / "tokenizer_config.json", about)
    return folder


def load_model(folder: str | os.PathLike) -> tuple[TransformerLM, Tokenizer | None]:
    """The model in a folder of that format, and its tokenizer where there is a `tokenizer.json`.

    Raises: FileNotFoundError; ValueError where it is another kind of model.
    """
    folder = Path(folder)
    config = read_config(folder / "config.json")
    file = folder / "model.safetensors"
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}; weights in several files are not read here")
    try:
        theirs = load_file(file)
    except SafetensorError as error:
        raise ValueError(f"{file} is not whole ({error}); copy it again") from error
    if config.tie_embeddings:
        theirs.setdefault("lm_head.weight", theirs.get("model.embed_tokens.weight"))
    wanted = dict(names(config))
    if set(theirs) != set(wanted.values()):
        odd = sorted(set(theirs) ^ set(wanted.values()))
        raise ValueError(f"{file} is no such model: {odd[0]} is too many or missing")
    weights = {}
    for name, their_name in wanted.items():
        weight = theirs[their_name]
        if turns(name):
            weight = rearrange(weight, f"{HALVES} -> {NEIGHBOURS}", heads=config.num_heads, two=2)
        weights[name] = weight
    model = TransformerLM.from_config(config, dtype=weights["ln_final.weight"].dtype)
    model.load_state_dict(weights)
    tokenizer = folder / "tokenizer.json"
    return model, load_tokenizer_json(tokenizer) if tokenizer.is_file() else None


def turns(name: str) -> bool:
    """Whether RoPE turns what this matrix makes."""
    return name.endswith(("q_proj.weight", "k_proj.weight"))


def names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """The name of each weight, here and there."""
    yield "token_embeddings.weight", "model.embed_tokens.weight"
    for layer in range(config.num_layers):
        for ours, theirs in LAYER.items():
            yield f"layers.{layer}.{ours}.weight", f"model.layers.{layer}.{theirs}.weight"
    yield "ln_final.weight", "model.norm.weight"
    yield "lm_head.weight", "lm_head.weight"


def llama_config(model: TransformerLM, end_id: int | None) -> dict:
    """What `config.json` says."""
    config = model.config
    sizes = {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        **FIXED,
        **sizes,
        "num_key_value_heads": config.num_heads,
        "head_dim": config.d_head,
        # One of the two for versions of `transformers` up to 4, the other from 5 on.
        "rope_theta": config.rope_theta,
        "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": end_id,  # a document begins where another ended
        "eos_token_id": end_id,
        "dtype": str(model.lm_head.weight.dtype).removeprefix("torch."),
    }


def read_config(path: Path) -> ModelConfig:
    """Our config for a Llama's. Raises: ValueError for what our model has not."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; expected a folder that `transformers` saved")
    told = json.loads(path.read_bytes())
    heads = told.get("num_attention_heads")
    rope = told.get("rope_parameters") or told.get("rope_scaling") or {}
    found = {name: told.get(name, value) for name, value in FIXED.items()} | {
        "num_key_value_heads": told.get("num_key_value_heads") or heads,
        "rope_type": rope.get("rope_type", rope.get("type", "default")),
    }
    if "head_dim" in told and heads:
        found["head_dim"] = told["head_dim"] or told["hidden_size"] // heads
    wanted = FIXED | {"num_key_value_heads": heads, "rope_type": "default"}
    if "head_dim" in found:
        wanted["head_dim"] = told["hidden_size"] // heads
    wrong = [f"{name}={value!r}" for name, value in found.items() if value != wanted[name]]
    if wrong:
        fits = ", ".join(f"{name.split('=')[0]}={wanted[name.split('=')[0]]!r}" for name in wrong)
        raise ValueError(f"{path} has {', '.join(wrong)}; our model is a Llama with {fits}")
    try:
        sizes = {ours: told[theirs] for ours, theirs in SIZES.items()}
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}; is it the config of a Llama?") from error
    return ModelConfig(
        **sizes,
        rope_theta=float(rope.get("rope_theta", told.get("rope_theta", 10_000.0))),
        tie_embeddings=bool(told.get("tie_word_embeddings", False)),
    )
