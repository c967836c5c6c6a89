"""A trained model from its folder: of one of our training runs, or in Hugging Face's format.

A model in the format of Hugging Face's `LlamaForCausalLM`, and back.

    folder/config.json              the sizes, under Llama's names
           model.safetensors        the weights, under Llama's names
           tokenizer.json           where the tokenizer is given, with tokenizer_config.json

The formulas are the same but for one thing. RoPE turns neighbours here, (x_0, x_1), as the paper
does; there it turns value k with value k + d_head / 2. So the rows of Wq and Wk change places in
each head, the even ones first. Products of queries and keys stay what they were.

Tokenizers from and for other libraries: Hugging Face's `tokenizer.json`, tiktoken's ranks.

    tokenizer.json   one JSON file: vocabulary, merges, special tokens, and how text is cut
    x.tiktoken       a token a line, "IGEg 262": its bytes in base64, its rank, which is its id

Both give the same ids there as here, on text whose characters their Unicode version knows. What
they can express and we cannot, other ways to cut text for example, is refused by name.
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

from workbook.config import ModelConfig
from workbook.corpora.corpora import END_OF_TEXT
from workbook.files import atomic_write, write_json
from workbook.generation.generate import end_of_text
from workbook.tokenization import token_files
from workbook.tokenization.gpt2_files import from_readable, to_readable
from workbook.tokenization.tokenizer import Tokenizer
from workbook.training import checkpoints, log
from workbook.transformer.model import TransformerLM


def open_model(folder: str | os.PathLike) -> tuple[TransformerLM, Tokenizer | None]:
    """The model in a folder, and its tokenizer where one is known.

    Raises: FileNotFoundError; ValueError where there is no whole model in it.
    """
    folder = Path(folder)
    if (folder / "model.safetensors").is_file():
        return load_model(folder)
    if not (folder / log.CONFIG).is_file():
        raise FileNotFoundError(
            f"{folder} holds no model; give the folder that `workbook train` or"
            " `workbook export-model` named"
        )
    asked = log.config(folder)
    state = checkpoints.newest(folder / "checkpoints", ["model"])
    if state is None:
        raise FileNotFoundError(f"the run in {folder} has no checkpoint yet; let it train on")
    model = TransformerLM.from_config(ModelConfig(**asked["model"]))
    checkpoints.restore(state, model)
    name, tokenizer = token_files.tokenizer_for(asked["corpus"])
    now = token_files.fingerprint(tokenizer)
    if state.get("data", {}).get("tokenizer", now) != now:  # earlier versions stored none
        raise ValueError(
            f"the model in {folder} was trained with another tokenizer than {name} is now; put back"
            " the one that it had, or train it anew"
        )
    return model.eval(), tokenizer


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


# Hugging Face's name for the pre-tokenisation and the byte alphabet of GPT-2.
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
    names = {to_readable(token): ids[token] for token in _made(tokenizer) if token in ids}
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
    """The id that text gets for each token: where two stand for the same bytes, the lower."""
    return {token: token_id for token_id, token in sorted(tokenizer.vocab.items(), reverse=True)}


def _made(tokenizer: Tokenizer) -> set[bytes]:
    """The tokens that are bytes or made by a merge."""
    return {bytes([value]) for value in range(256)}.union(
        left + right for left, right in tokenizer.merges
    )


def load_tokenizer_json(path: str | os.PathLike) -> Tokenizer:
    """The tokenizer in a `tokenizer.json` with byte-level BPE as GPT-2 has it.

    Raises: FileNotFoundError; ValueError where it is no such file, or cuts text in another way.
    """
    try:
        told = json.loads(Path(path).read_bytes())
        model, added = told["model"], told["added_tokens"]
        _require_gpt2(path, told)
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


def _require_gpt2(path: str | os.PathLike, told: Mapping) -> None:
    """Raise ValueError where a `tokenizer.json` asks for something that we do not do."""
    wrong = []
    for part, known in KNOWN.items():
        kind = told.get(part) and told[part].get("type", "set")
        wrong += [f"{part} {kind}"] if kind not in known else []
    cut = told.get("pre_tokenizer") or {}
    wrong += ["add_prefix_space"] if cut.get("add_prefix_space") else []
    wrong += ["use_regex=false"] if not cut.get("use_regex", True) else []
    model = told["model"]
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "ignore_merges"):
        wrong += [f"{name}={model[name]}"] if model.get(name) else []
    for token in told["added_tokens"]:
        for name in ("single_word", "lstrip", "rstrip"):
            wrong += [f"{name} of {token['content']!r}"] if token.get(name) else []
    if wrong:
        raise ValueError(
            f"{path} is not GPT-2's byte-level BPE, the only kind that is read here: it has "
            f"{', '.join(wrong)}"
        )


def save_tiktoken(tokenizer: Tokenizer, path: str | os.PathLike) -> dict[str, int]:
    """Write tiktoken's ranks and return what the file cannot hold, the special tokens with ids.

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
        for token in sorted(_made(tokenizer) & ids.keys(), key=ids.__getitem__):
            file.write(base64.b64encode(token) + b" %d\n" % ids[token])
    return {text: ids[text.encode()] for text in tokenizer.special_tokens}


def load_tiktoken(
    path: str | os.PathLike, special_tokens: Mapping[str, int] | None = None
) -> Tokenizer:
    """The tokenizer of a file of tiktoken's ranks, and the special tokens with their ids.

    tiktoken joins whatever makes a token, the lowest rank first. Which two parts make a token is
    found by encoding it with the ranks below its own.
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
    """The two parts of every token of several bytes, in the order of the ranks."""
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
