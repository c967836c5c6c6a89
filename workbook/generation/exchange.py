"""Tokenizers from and for other libraries: Hugging Face's `tokenizer.json`, tiktoken's ranks.

    tokenizer.json   one JSON file: vocabulary, merges, special tokens, and how text is cut
    x.tiktoken       a token a line, "IGEg 262": its bytes in base64, its rank, which is its id

Both give the same ids there as here, on text whose characters their Unicode version knows. What
they can express and we cannot, other ways to cut text for example, is refused by name.
"""

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

from workbook.files import atomic_write
from workbook.tokenization.gpt2_files import from_readable, to_readable
from workbook.tokenization.tokenizer import Tokenizer

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
