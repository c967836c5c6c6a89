"""Models and tokenizers in the formats of other libraries: Hugging Face's and tiktoken's.

    folder/config.json              a model's sizes, under the names of `LlamaForCausalLM`
           model.safetensors        its weights, under Llama's names
           tokenizer.json           a tokenizer: vocabulary, merges, special tokens, how text is cut
           tokenizer_config.json    what `transformers` wants to know about it
    x.tiktoken                      a tokenizer, one token per line: "IGEg 262", its bytes in base64
                                    and its rank, which is its id

The formulas of a Llama are ours but for one thing. RoPE rotates neighbours here, (x_0, x_1), as in
the paper; there it rotates value k with value k + d_head / 2. So the rows of Wq and Wk change
places in each head, the even ones first. The scores of queries and keys stay the same.

Both formats of tokenizers give the same ids there as here, on text whose characters their Unicode
version knows. What they can express and we cannot, such as other ways to cut text, is refused by
name.
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
# What Llama's config may say otherwise, and our model cannot.
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
    """Whether a folder has a run that was made of other parts than ours."""
    return (Path(folder) / log.CONFIG).is_file() and "parts" in log.config(folder)


def open_model(folder: str | os.PathLike) -> tuple[TransformerLM, Tokenizer | None]:
    """Load the model of a training run or of `save_model`, and its tokenizer where one is known.

    Raises: FileNotFoundError; ValueError where there is no whole model in the folder.
    """
    folder = Path(folder)
    if (folder / "model.safetensors").is_file():
        return load_model(folder)
    if not (folder / log.CONFIG).is_file():
        raise FileNotFoundError(
            f"{folder} holds no model; give the folder that `workbook train` or"
            " `workbook export-model` named"
        )
    if is_of_other_parts(folder):
        raise ValueError(
            f"the model in {folder} is your own, not one of the workbook's; `workbook generate` and"
            " `mine.open_run` open it"
        )
    config = log.config(folder)
    state = checkpoints.newest(folder / "checkpoints", ["model"])
    if state is None:
        raise FileNotFoundError(f"the run in {folder} has no checkpoint yet; let it train on")
    model = TransformerLM.from_config(ModelConfig(**config["model"]))
    checkpoints.restore(state, model)
    name, tokenizer = token_files.tokenizer_for(config["corpus"])
    now = token_files.fingerprint(tokenizer)
    if state.get("data", {}).get("tokenizer", now) != now:  # earlier versions stored none
        raise ValueError(
            f"the model in {folder} was trained with another tokenizer than {name} is now; put back"
            " the one that it had, or train it anew"
        )
    return model.eval(), tokenizer


def save_model(
    model: TransformerLM, folder: str | os.PathLike, tokenizer: Tokenizer | None = None
) -> Path:
    """Write a folder that `transformers.AutoModelForCausalLM.from_pretrained` opens; return it.

    With `tokenizer`, `transformers.AutoTokenizer` opens it as well.
    Raises: ValueError where Llama has no such model, or the tokenizer has more tokens than it.
    """
    folder, config = Path(folder), model.config
    for field, only in (("norm", "pre"), ("position", "rope"), ("ffn", "swiglu")):
        if (value := getattr(config, field)) != only:
            raise ValueError(
                f"Llama has no {field}={value!r}; only a model with {field}={only!r} can go there"
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
    names = dict(weight_names(config))
    if odd := sorted(set(theirs) ^ set(names.values())):
        raise ValueError(f"{file} is no such model: {odd[0]} is too many or missing")
    weights = {
        name: _reordered(name, theirs[their_name], FROM_LLAMA, config)
        for name, their_name in names.items()
    }
    model = TransformerLM.from_config(config, dtype=weights["ln_final.weight"].dtype)
    model.load_state_dict(weights)
    tokenizer = folder / "tokenizer.json"
    return model, load_tokenizer_json(tokenizer) if tokenizer.is_file() else None


def _reordered(name: str, weight: Tensor, rows: str, config: ModelConfig) -> Tensor:
    """The weight with its rows in the other order if RoPE rotates what it makes."""
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
        # One of the two for versions of `transformers` up to 4, the other from 5 on.
        "rope_theta": config.rope_theta,
        "rope_parameters": {"rope_theta": config.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": config.tie_embeddings,
        "bos_token_id": end_id,  # a document begins where another ended
        "eos_token_id": end_id,
        "dtype": str(model.lm_head.weight.dtype).removeprefix("torch."),
    }


def read_config(path: Path) -> ModelConfig:
    """Our config for a Llama's `config.json`.

    Raises: ValueError for what our model does not have.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; expected a folder that `transformers` saved")
    fields = json.loads(path.read_bytes())
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
# What the other parts must be: nothing, or nothing beyond bytes.
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

    Raises: ValueError where a special token reads like another token's name in the byte alphabet.
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
    """Load a `tokenizer.json` with byte-level BPE as GPT-2 has it.

    Raises: FileNotFoundError; ValueError where it is no such file, or cuts text in another way.
    """
    try:
        content = json.loads(Path(path).read_bytes())
        model, added = content["model"], content["added_tokens"]
        _require_gpt2(path, content)
        specials = {token["content"]: token["id"] for token in added}
        vocab = {
            token_id: name.encode() if name in specials else from_readable(name)
            for name, token_id in model["vocab"].items()
        }
        pairs = (line.split(" ") if isinstance(line, str) else line for line in model["merges"])
        merges = [(from_readable(left), from_readable(right)) for left, right in pairs]
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no tokenizer.json ({type(error).__name__}: {error}); expected what "
            f"`tokenizers` saves"
        ) from error
    vocab |= {token_id: text.encode() for text, token_id in specials.items()}
    return Tokenizer(vocab, merges, list(specials))


def _require_gpt2(path: str | os.PathLike, content: Mapping) -> None:
    """Raise ValueError where a `tokenizer.json` asks for something that we do not do."""
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
    if wrong:
        raise ValueError(
            f"{path} is not GPT-2's byte-level BPE, the only kind that is read here: it has "
            f"{', '.join(wrong)}"
        )


def _ids(tokenizer: Tokenizer) -> dict[bytes, int]:
    """The id that encoding gives each token: where two have the same bytes, the lower one."""
    return {token: token_id for token_id, token in sorted(tokenizer.vocab.items(), reverse=True)}


def _mergeable(tokenizer: Tokenizer) -> set[bytes]:
    """The tokens that are single bytes or made by a merge."""
    return {bytes([value]) for value in range(256)}.union(
        left + right for left, right in tokenizer.merges
    )


# --- Tokenizers: tiktoken's ranks ----------------------------------------------------------------


def save_tiktoken(tokenizer: Tokenizer, path: str | os.PathLike) -> dict[str, int]:
    """Write tiktoken's ranks; return the special tokens with their ids, which it cannot hold.

    `tiktoken.Encoding(name, pat_str=pretokens.PATTERN, special_tokens=..., mergeable_ranks=
    tiktoken.load.load_tiktoken_bpe(path))` then gives the same ids. (It keeps a copy of each file
    by its path, unless the environment variable TIKTOKEN_CACHE_DIR is set and empty.)
    Raises: ValueError where ids do not rise in the order of the merges, as ranks must.
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

    Raises: FileNotFoundError; ValueError where a line is no rank, or a token has no two parts.
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
        raise ValueError(f"the id of the special token {clash[0]!r} is a rank in {path} already")
    vocab |= {token_id: text.encode() for text, token_id in special_tokens.items()}
    return Tokenizer(vocab, merges, list(special_tokens))


def _merges_of_ranks(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The two parts of every token of several bytes, in the order of the ranks.

    A file of ranks has no merges: tiktoken joins whatever makes a token, the lowest rank first. So
    the two parts of a token are what it is encoded to with the ranks below its own.
    """
    merges = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) > 1:
            parts = _encode_below(token, ranks)
            if len(parts) != 2:
                raise ValueError(
                    f"no merge of two tokens makes {token!r}, of rank {ranks[token]}: the tokens "
                    f"below it make {len(parts)} parts of it; this vocabulary is not from BPE"
                )
            merges.append((parts[0], parts[1]))
    return merges


def _encode_below(token: bytes, ranks: Mapping[bytes, int]) -> Sequence[bytes]:
    """The parts of a token that the ranks below its own make."""
    parts = [bytes([value]) for value in token]

    def rank(at: int) -> int:
        return ranks.get(parts[at] + parts[at + 1], ranks[token])

    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=rank)
        if rank(best) >= ranks[token]:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return parts
