"""Models and tokenizers in the formats of other libraries: Hugging Face's and tiktoken's.

    folder/config.json              a model's sizes, under the names of `LlamaForCausalLM`
           model.safetensors        its weights, under Llama's names
           tokenizer.json           a tokenizer: vocabulary, merges, special tokens, how text is cut
           tokenizer_config.json    what `transformers` wants to know about it
    x.tiktoken                      a tokenizer, one token per line: "IGE= 262", its bytes in base64
                                    and its rank, which is its id

A Llama's formulas are ours, with one exception. Here RoPE rotates neighbours, (x_0, x_1), as in the
paper; there it rotates value k with value k + d_head / 2. So the rows of Wq and Wk are reordered
within each head, the even ones first. The scores of queries and keys stay the same.

A tokenizer in either format gives the same ids there as here, for text whose characters their
Unicode version knows. What they can express and we cannot, such as other ways to cut text, is
refused by name.
"""

import base64
import binascii
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from einops import rearrange
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from workbook.config import ModelConfig
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.generation.generate import end_of_text
from workbook.tokenization import token_files
from workbook.tokenization.gpt2_files import from_readable, to_readable
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, log
from workbook.transformer.model import TransformerLM

# --- Models -------------------------------------------------------------------------------------

SIZES = {  # ours: Llama's
    "vocab_size": "vocab_size",
    "context_length": "max_position_embeddings",
    "d_model": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "d_ff": "intermediate_size",
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
# Fields that may differ in a Llama's config, but not in our model.
FIXED = {
    "model_type": "llama",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
}
TO_LLAMA = "(heads pair two) d_model -> (heads two pair) d_model"
FROM_LLAMA = "(heads two pair) d_model -> (heads pair two) d_model"


def is_of_other_parts(folder: str | os.PathLike) -> bool:
    """Whether a folder holds a run of a model with parts other than ours."""
    return (Path(folder) / log.CONFIG).is_file() and "parts" in log.config(folder)


def open_model(folder: str | os.PathLike) -> tuple[TransformerLM, Tokenizer | None]:
    """Load the model of a training run or of `save_model`, and its tokenizer if one is known.

    Raises: FileNotFoundError; ValueError if the folder does not hold a complete model.
    """
    folder = Path(folder)
    if (folder / "model.safetensors").is_file():
        return load_model(folder)
    if not (folder / log.CONFIG).is_file():
        raise FileNotFoundError(
            f"{folder} holds no model; give the folder that `workbook train` or"
            " `workbook export-model` wrote"
        )
    if is_of_other_parts(folder):
        raise ValueError(
            f"the model in {folder} is your own, not one of the workbook's; `workbook generate` and"
            " `mine.open_run` open it"
        )
    config = log.config(folder)
    state = checkpoints.newest(folder / "checkpoints", ["model"])
    if state is None:
        raise FileNotFoundError(f"the run in {folder} has no checkpoint yet; let it train longer")
    model = TransformerLM.from_config(ModelConfig(**config["model"]))
    checkpoints.restore(state, model)
    name, tokenizer = token_files.tokenizer_for(config["corpus"])
    now = token_files.fingerprint(tokenizer)
    if state.get("data", {}).get("tokenizer", now) != now:  # earlier versions stored none
        raise ValueError(
            f"the model in {folder} was trained with another tokenizer than {name} is now;"
            " restore the old one, or train the model again"
        )
    return model.eval(), tokenizer


def save_model(
    model: TransformerLM, folder: str | os.PathLike, tokenizer: Tokenizer | None = None
) -> Path:
    """Write a folder that `transformers.AutoModelForCausalLM.from_pretrained` opens; return it.

    With `tokenizer`, `transformers.AutoTokenizer` opens it as well.
    Raises: ValueError if Llama has no such model, or the tokenizer has more tokens than the model.
    """
    folder, config = Path(folder), model.config
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
    ours = model.state_dict()
    weights = {
        their_name: _reordered(name, ours[name], TO_LLAMA, config).detach().cpu().contiguous()
        for name, their_name in weight_names(config)
    }
    if config.tie_embeddings:
        del weights["lm_head.weight"]  # the file may hold a matrix only once
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
    """Load a Llama that `transformers` or `save_model` saved, and its `tokenizer.json` if any.

    Raises: FileNotFoundError; ValueError if it is another kind of model.
    """
    folder = Path(folder)
    config = read_config(folder / "config.json")
    file = folder / "model.safetensors"
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}; weights in several files are not read here")
    try:
        theirs = load_file(file)
    except SafetensorError as error:
        raise ValueError(f"{file} is damaged or incomplete ({error}); copy it again") from error
    if config.tie_embeddings:
        theirs.setdefault("lm_head.weight", theirs.get("model.embed_tokens.weight"))
    names = dict(weight_names(config))
    if odd := sorted(set(theirs) ^ set(names.values())):
        raise ValueError(f"{file} does not fit its config.json: {odd[0]} is missing or unexpected")
    weights = {
        name: _reordered(name, theirs[their_name], FROM_LLAMA, config)
        for name, their_name in names.items()
    }
    model = TransformerLM.from_config(config, dtype=weights["ln_final.weight"].dtype)
    model.load_state_dict(weights)
    tokenizer = folder / "tokenizer.json"
    return model, load_tokenizer_json(tokenizer) if tokenizer.is_file() else None


def _reordered(name: str, weight: Tensor, rows: str, config: ModelConfig) -> Tensor:
    """The weight, with its rows in the other order if RoPE rotates its output."""
    if not name.endswith(("q_proj.weight", "k_proj.weight")):
        return weight
    return rearrange(weight, rows, heads=config.num_heads, two=2)


def weight_names(config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name and Llama's name of each weight."""
    yield "token_embeddings.weight", "model.embed_tokens.weight"
    for layer in range(config.num_layers):
        for ours, theirs in LAYER.items():
            yield f"layers.{layer}.{ours}.weight", f"model.layers.{layer}.{theirs}.weight"
    yield "ln_final.weight", "model.norm.weight"
    yield "lm_head.weight", "lm_head.weight"


def llama_config(model: TransformerLM, end_id: int | None) -> dict:
    """The content of `config.json`; `end_id` is the id of `<|endoftext|>`, if there is one."""
    config = model.config
    sizes = {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        **FIXED,
        **sizes,
        "num_key_value_heads": config.num_heads,
        "head_dim": config.d_head,
        # `rope_theta` is for `transformers` up to version 4, `rope_parameters` from version 5 on.
        "rope_theta": config.rope_theta,
        "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": end_id,  # a document begins where another ended
        "eos_token_id": end_id,
        "dtype": str(model.lm_head.weight.dtype).removeprefix("torch."),
    }


def read_config(path: Path) -> ModelConfig:
    """Our config for a Llama's `config.json`.

    Raises: ValueError for features that our model does not have; FileNotFoundError.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; expected a folder that `transformers` saved")
    try:
        fields = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); load the model's folder again") from error
    if not isinstance(fields, dict):
        raise ValueError(f"{path} holds a {type(fields).__name__}; expected the config of a Llama")
    rope = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    fields["rope_type"] = rope.get("rope_type", rope.get("type"))
    heads, width = fields.get("num_attention_heads"), fields.get("hidden_size")
    d_head = width // heads if width and heads else None
    only = {"num_key_value_heads": heads, "head_dim": d_head, "rope_type": "default", **FIXED}
    wrong = {name: one for name in only if (one := fields.get(name)) not in (None, only[name])}
    if wrong:
        has = ", ".join(f"{name}={value!r}" for name, value in wrong.items())
        fits = ", ".join(f"{name}={only[name]!r}" for name in wrong)
        raise ValueError(f"{path} has {has}; our model is a Llama with {fits}")
    try:
        sizes = {ours: fields[theirs] for ours, theirs in SIZES.items()}
    except KeyError as error:
        raise ValueError(f"{path} lacks {error.args[0]}; is it the config of a Llama?") from error
    return ModelConfig(
        **sizes,
        rope_theta=float(rope.get("rope_theta", fields.get("rope_theta", 10_000.0))),
        tie_embeddings=bool(fields.get("tie_word_embeddings", False)),
    )


# --- Tokenizers: Hugging Face's tokenizer.json ---------------------------------------------------

# Hugging Face's name for the pre-tokenization and the byte alphabet of GPT-2.
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
# What each part must be: byte-level, or absent.
KNOWN = {
    "model": ("BPE",),
    "pre_tokenizer": ("ByteLevel",),
    "decoder": (None, "ByteLevel"),
    "post_processor": (None, "ByteLevel"),
    "normalizer": (None,),
    "truncation": (None,),
    "padding": (None,),
}


def save_tokenizer_json(tokenizer: Tokenizer, path: str | os.PathLike) -> None:
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


def load_tokenizer_json(path: str | os.PathLike) -> Tokenizer:
    """Load a `tokenizer.json` with byte-level BPE as in GPT-2.

    Raises: FileNotFoundError; ValueError if it is not such a file, or cuts text in another way.
    """
    try:
        content = json.loads(Path(path).read_bytes())
        unsupported = _unlike_gpt2(content)
        specials = {token["content"]: token["id"] for token in content["added_tokens"]}
    except MALFORMED as error:
        raise _not_a_tokenizer(path, error) from error
    if unsupported:
        raise ValueError(
            f"{path} is not GPT-2's byte-level BPE, the only kind supported here: it has "
            f"{', '.join(unsupported)}"
        )
    try:
        vocab = {
            token_id: name.encode() if name in specials else from_readable(name)
            for name, token_id in content["model"]["vocab"].items()
        }
        lines = content["model"]["merges"]
        pairs = (line.split(" ") if isinstance(line, str) else line for line in lines)
        merges = [(from_readable(left), from_readable(right)) for left, right in pairs]
    except MALFORMED as error:
        raise _not_a_tokenizer(path, error) from error
    vocab |= {token_id: text.encode() for text, token_id in specials.items()}
    return Tokenizer(vocab, merges, list(specials))


MALFORMED = (ValueError, KeyError, TypeError, AttributeError)  # what reading a wrong file raises


def _not_a_tokenizer(path: str | os.PathLike, error: Exception) -> ValueError:
    """The error for a file that is not laid out as a `tokenizer.json`."""
    return ValueError(
        f"{path} is not a tokenizer.json ({type(error).__name__}: {error}); expected one that "
        f"`tokenizers` saved"
    )


def _unlike_gpt2(content: Mapping) -> list[str]:
    """What a `tokenizer.json` asks for that we do not support."""
    wrong = []
    for part, known in KNOWN.items():
        kind = content.get(part) and content[part].get("type", "set")
        wrong += [f"{part} {kind}"] if kind not in known else []
    pre_tokenizer, model = content.get("pre_tokenizer") or {}, content["model"]
    wrong += ["add_prefix_space"] if pre_tokenizer.get("add_prefix_space") else []
    wrong += ["use_regex=false"] if not pre_tokenizer.get("use_regex", True) else []
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        wrong += [f"{name}={model[name]}"] if model.get(name) else []
    for token in content["added_tokens"]:
        for name in ("single_word", "lstrip", "rstrip"):
            wrong += [f"{name} of {token['content']!r}"] if token.get(name) else []
    return wrong


def _ids(tokenizer: Tokenizer) -> dict[bytes, int]:
    """The id that encoding gives each token: the lower one if two have the same bytes."""
    return {token: token_id for token_id, token in sorted(tokenizer.vocab.items(), reverse=True)}


def _mergeable(tokenizer: Tokenizer) -> set[bytes]:
    """The tokens that are single bytes or are made by a merge."""
    return {bytes([value]) for value in range(256)}.union(
        left + right for left, right in tokenizer.merges
    )


# --- Tokenizers: tiktoken's ranks ----------------------------------------------------------------


def save_tiktoken(tokenizer: Tokenizer, path: str | os.PathLike) -> dict[str, int]:
    """Write tiktoken's ranks; return the special tokens with their ids, which it cannot hold.

    `tiktoken.Encoding(name, pat_str=pretokens.PATTERN, special_tokens=..., mergeable_ranks=
    tiktoken.load.load_tiktoken_bpe(path))` then gives the same ids. (It caches each file by its
    path, unless the environment variable TIKTOKEN_CACHE_DIR is set to an empty string.)
    Raises: ValueError if the ids do not rise in the order of the merges, as ranks must.
    """
    ids = _ids(tokenizer)
    learnt = [ids[left + right] for left, right in tokenizer.merges]
    if any(later <= earlier for earlier, later in pairwise(learnt)):
        raise ValueError(
            "tiktoken ranks tokens by id, and the ids of this vocabulary do not rise in the order "
            "of its merges; use save_tokenizer_json, or number the tokens as train_bpe does"
        )
    with atomic_write(path, "wb") as file:
        for token in sorted(_mergeable(tokenizer) & ids.keys(), key=ids.__getitem__):
            file.write(base64.b64encode(token) + b" %d\n" % ids[token])
    return {text: ids[text.encode()] for text in tokenizer.special_tokens}


def load_tiktoken(
    path: str | os.PathLike, special_tokens: Mapping[str, int] | None = None
) -> Tokenizer:
    """Load a file of tiktoken's ranks, with the special tokens by their ids.

    Raises: FileNotFoundError; ValueError if a line is not a token and its rank, or if no merge of
    two tokens makes a token.
    """
    ranks = {}
    for number, line in enumerate(Path(path).read_bytes().splitlines(), start=1):
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise ValueError(
                f"{path}, line {number}: expected a token in base64 and its rank, got {line[:60]!r}"
            ) from error
    merges = _merges_of_ranks(ranks)
    special_tokens = special_tokens or {}
    vocab = {rank: token for token, rank in ranks.items()}
    clash = [text for text, token_id in special_tokens.items() if token_id in vocab]
    if clash:
        raise ValueError(f"the id of the special token {clash[0]!r} is already a rank in {path}")
    vocab |= {token_id: text.encode() for text, token_id in special_tokens.items()}
    return Tokenizer(vocab, merges, list(special_tokens))


def _merges_of_ranks(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The two parts of every token of several bytes, in the order of the ranks.

    A file of ranks has no merges: tiktoken joins whatever makes a token, the lowest rank first. So
    the two parts of a token are what the ranks below its own encode it to.
    """
    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) > 1:
            parts = _encode_below(token, ranks)
            if len(parts) != 2:
                raise ValueError(
                    f"no merge of two tokens makes {token!r}, of rank {ranks[token]}: tokens of "
                    f"lower rank leave {len(parts)} parts; this vocabulary does not come from BPE"
                )
            merges.append((parts[0], parts[1]))
    return merges


def _encode_below(token: bytes, ranks: Mapping[bytes, int]) -> Sequence[bytes]:
    """The parts into which the ranks below its own encode a token."""
    parts = [bytes([value]) for value in token]

    def rank(at: int) -> int:
        return ranks.get(parts[at] + parts[at + 1], ranks[token])

    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=rank)
        if rank(best) >= ranks[token]:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts
