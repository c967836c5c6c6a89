"""Right and faulty programs of a problem, with the interface that the handout names.

A learner's own test is tried on them (`examples`). The right ones are ours, in two styles; the
faulty ones are versions of the reference of the problem's check, with a mistake of its catalogue or
a small change that a machine made.
"""

import codecs
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbook.classroom.checks import bpe, decoding, optimizer, steps, transformer
from workbook.classroom.checks import tokenizer as tokenizers
from workbook.classroom.checks.data_loading import FAULTS
from workbook.classroom.checks.machinery.engine import (
    BORDER,
    Exercise,
    Mistake,
    Program,
    mistake,
)
from workbook.classroom.checks.machinery.verdicts import Wrong
from workbook.classroom.checks.tokenizer import Call
from workbook.generation import sampling
from workbook.optimizer import optimizers
from workbook.tokenization import bpe as plain
from workbook.tokenization.pretokens import pretokenize, special_pattern
from workbook.tokenization.tokenizer import PlainTokenizer, Tokenizer
from workbook.training.data import get_batch
from workbook.transformer import nn

LEAST_TEMPERATURE = 1e-6
MOST_READ = 10_000  # pieces of a stream, which may never end


class Versions(NamedTuple):
    """An exercise, and how a version of its reference becomes a program of the problem."""

    exercise: Exercise
    shaped: Callable[[Callable], Any]
    kinds: Mapping[str, str] = {}  # by the words of a mistake, what goes wrong, if no case tells
    within: str = ""  # the function of the reference that makes up the program, if not all do

    @property
    def mistakes(self) -> list[Mistake]:
        """Those of the catalogue that a program of this shape can have, one for each sentence."""
        sources = self.exercise.program.source.split(BORDER)
        part = next((each for each in sources if each.startswith(f"def {self.within}(")), "")
        part = part or self.exercise.program.source
        here = [m for m in self.exercise.mistakes if all(old in part for old, _ in m.edits)]
        return [*{each.words: each for each in reversed(here)}.values()][::-1]


class Subject(NamedTuple):
    """What a test of one problem is tried on.

    Each right program has its forms, mostly one: where several are right, which give different
    numbers, a test accepts the program if it accepts one of them.
    """

    right: tuple[tuple[Any, ...], ...]
    versions: tuple[Versions, ...]


def _inner(version: partial) -> Callable:
    """The function of a version whose program is called with a case."""
    return version.args[0]


def _layer(kind: type, forward: Callable) -> Callable[[partial], type]:
    """A module of ours whose `forward` is done by a version of the reference."""

    def shaped(version: partial) -> type:
        def done(self: Any, x: Tensor, *positions: Tensor, **named: Tensor) -> Tensor:
            return forward(_inner(version), self, x, *positions, **named).to(x.dtype)

        return type(kind.__name__, (kind,), {"forward": done})

    return shaped


class _Rope(nn.RotaryPositionalEmbedding):
    """RoPE that remembers its theta."""

    def __init__(self, theta: float, d_k: int, max_seq_len: int, device: Any = None):
        super().__init__(theta, d_k, max_seq_len, device)
        self.theta = theta


def _schedule(version: partial) -> Callable:
    def schedule(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
        settings = max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters
        return _inner(version)(it, *settings)

    return schedule


def _clip(version: Callable) -> Callable:
    def clip(parameters: Iterable[Tensor], max_l2_norm: float) -> None:
        once = not isinstance(parameters, list | tuple)
        held = list(parameters)
        if all(parameter.grad is None for parameter in held):
            return
        version(SimpleNamespace(parameters=lambda: held, limit=max_l2_norm, generator=once))

    return clip


def _adamw(version: Callable) -> type:
    """AdamW with the `update` of a version of the reference."""

    def update(self: Any, theta: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        # Edits that tell the handout's ε from torch's need the factor.
        version.__globals__["update"](self, theta, {"times": 1.0} | group, state)

    return _warm(type("AdamW", (optimizers.AdamW,), {"update": update}))


def _warm(kind: Any) -> Any:
    """The class of an optimizer once torch has changed it, as it does when the first is made."""
    kind([optimizer.parameter([0.0])], lr=0.1)
    return kind


def _before(kind: type[optimizers.AdamW]) -> type:
    """The optimizer with its decay before the step, as in the handout of 2026."""

    def made_of(self: Any, params: Any, *settings: Any, **named: Any) -> None:
        kind.__init__(self, params, *settings, **{"decay": "before"} | named)

    return _warm(type("AdamW", (kind,), {"__init__": made_of}))


TORCHS = _warm(torch.optim.AdamW)  # its ε is in another place


def _train_bpe(version: Callable) -> Callable:
    def train_bpe(input_path, vocab_size: int, special_tokens: list[str]) -> tuple[dict, list]:
        special_tokens = special_tokens or []
        num_merges = vocab_size - 256 - len(special_tokens)
        text = Path(input_path).read_bytes().decode()
        case = bpe.Text(text, num_merges, tuple(special_tokens))
        merges = version(case)
        specials = [token.encode() for token in special_tokens]
        tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
        return dict(enumerate(tokens + specials)), merges

    return train_bpe


class _Made:
    """What a tokenizer is made of, as the reference asks for it."""

    def __init__(self, vocab: dict[int, bytes], merges: Iterable, special_tokens: list | None):
        held = dict(vocab)
        self.special_tokens = None if special_tokens is None else tuple(special_tokens)
        self.specials = self.special_tokens or ()
        self.known = [t for t in self.specials if t.encode() in held.values()]
        self.merges = tuple(map(tuple, merges))
        self.vocab = lambda: held
        numbers = {token: token_id for token_id, token in held.items()}
        for token in self.specials:
            numbers.setdefault(token.encode(), max(numbers.values()) + 1)
        self.ids = lambda: numbers


def _tokenizer(method: str) -> Callable[[Callable], type]:
    """A class of which a version of the reference does this method, and ours the others."""

    def shaped(version: Callable) -> type:
        def done(self: Any, given: Any) -> Any:
            given = given if isinstance(given, str) else tuple(islice(given, MOST_READ))
            result = version(Call(self.made, method, given))
            return iter(result) if method == "encode_iterable" else result

        def made_of(self: Any, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            PlainTokenizer.__init__(self, vocab, merges, special_tokens)
            self.made = _Made(vocab, merges, special_tokens)

        return type("Tokenizer", (PlainTokenizer,), {"__init__": made_of, method: done})

    return shaped


def _shares(model: Callable, ids: list[int]) -> np.ndarray:
    """The probabilities of the next token, as parts of the largest."""
    logits = model(torch.tensor([ids]))[0, -1].detach().double()
    return (logits - logits.max()).exp().clamp(min=1e-300).numpy()


def _length_of(model: Any) -> int:
    settings = getattr(model, "config", model)
    return getattr(model, "context_length", getattr(settings, "context_length", decoding.ENDLESS))


def _ours(model, prompt_ids, *settings, **named):
    """Our `decode`, of a model that need not say in its config how much it reads."""
    length = _length_of(model)

    class Reading(torch.nn.Module):
        def forward(self, ids: Tensor) -> Tensor:
            return model(ids[:, -length:])

    return sampling.decode(Reading(), prompt_ids, *settings, **named)


def _with(function: Any, **names: Any) -> Callable:
    """A copy of a function in which these names stand for something else."""
    known = function.__globals__ | names
    return FunctionType(function.__code__, known, function.__name__, function.__defaults__)


def _decode(chain_version: Callable | None = None, choice: Callable | None = None) -> Callable:
    """`decode` with a version of the chain of tokens, or of the choice of one; else the right one.

    The references are about scripted models: here they get the one that is handed in.
    """
    written = chain_version or decoding.CHAIN.program.edited()
    probabilities = choice or decoding.CHOICE.program.edited()

    @torch.no_grad()
    def decode(model, prompt_ids, max_new_tokens, temperature=1.0, top_p=1.0, end_id=None):
        length = _length_of(model)
        temperature = max(temperature, LEAST_TEMPERATURE)
        prompt = tuple(map(int, prompt_ids))
        case = decoding.Request(prompt, max_new_tokens, end_id, length, temperature, top_p)

        def drawn(ids: list[int]) -> int:
            shares = _with(probabilities, SHARES=_shares(model, list(ids)))(case)
            return int(torch.tensor(shares).multinomial(1))

        return _with(written, follower=drawn)(case)

    return decode


def cut_out(dataset, batch_size: int, context_length: int, device: str = "cpu"):
    """A batch: the reference of `get_batch` here, as its check needs none."""
    starts = np.random.randint(0, len(dataset) - context_length, batch_size)
    rows = [dataset[start : start + context_length + 1] for start in starts]
    windows = torch.from_numpy(np.stack(rows).astype(np.int64)).to(device)
    return windows[:, :-1], windows[:, 1:]


def _batches(dataset, batch_size: int, context_length: int, device: str = "cpu"):
    inputs, targets = get_batch(dataset, batch_size, context_length, "cpu")
    return inputs.to(device), targets.to(device)  # which says in torch's words what it lacks


def without_cases(function: Callable, *mistakes: Mistake) -> Exercise:
    """An exercise that judges nothing: for learners' tests, or for questions about a case."""
    return Exercise(
        Program(function),
        mistakes,
        (),
        lambda attempt, case: None,
        lambda right, got: True,
        lambda case, right, got: Wrong("", given=case),
    )


def _batch_mistake(fault: str, *edits: str) -> Mistake:
    return mistake(FAULTS[fault][2], *edits)


OF_BATCHES = [(words, claim) for claim, _, words in FAULTS.values()]
RETURNED, DRAWN = "windows[:, :-1], windows[:, 1:]", "len(dataset) - context_length, batch_size)"
BATCHES = without_cases(
    cut_out,
    _batch_mistake("inputs", RETURNED, "windows[:, :-1], windows[:, :-1]"),
    _batch_mistake("swapped", RETURNED, "windows[:, 1:], windows[:, :-1]"),
    _batch_mistake("shape", RETURNED, "windows, windows"),
    _batch_mistake("no_last", DRAWN, f"{DRAWN.replace(', ', ' - 1, ')}"),
    _batch_mistake("no_first", "randint(0", "randint(1"),
    _batch_mistake("one_start", DRAWN, f"{DRAWN}[:1].repeat(batch_size)"),
    _batch_mistake("in_a_row", "rows = [", "starts = np.arange(batch_size)\nrows = ["),
    _batch_mistake("seeded", "np.random.randint", "np.random.RandomState(0).randint"),
    _batch_mistake("type", "astype(np.int64)", "astype(np.int32)"),
    _batch_mistake("small_type", "astype(np.int64)", "astype(np.int16).astype(np.int64)"),
    _batch_mistake("turned", RETURNED, "windows[:, :-1].T, windows[:, 1:].T"),
    _batch_mistake(
        "scattered",
        "dataset[start : start + context_length + 1] for start in starts",
        "np.random.choice(dataset, context_length + 1) for start in starts",
    ),
)


def train_on(steps: int, path: Any, resume: bool = False) -> list[float]:
    """The losses of a small run, which is saved at its end; or of one that goes on from there."""
    weight = optimizer.parameter([0.0, 0.0])
    made = optimizers.Momentum([weight], lr=0.1)
    done = 0
    if resume:
        saved = torch.load(path)
        weight.data = saved["weight"]
        made.load_state_dict(saved["optimizer"])
        done = saved["step"]
    losses = []
    for step in range(done, done + steps):
        made.param_groups[0]["lr"] = 0.1 / (1 + 0.1 * step)
        x = torch.randn(8, 2, generator=torch.Generator().manual_seed(step))
        loss = (x @ weight - x[:, 0] - 1).square().mean()
        made.zero_grad()
        loss.backward()
        made.step()
        losses.append(loss.item())
    saved = {"weight": weight.data, "optimizer": made.state_dict(), "step": done + steps}
    torch.save(saved, path)
    return losses


def train_in_order(steps: int, path: Any, resume: bool = False) -> list[float]:
    """The second right one: AdamW, and batches from a generator whose state is saved, too."""
    model = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    made = torch.optim.AdamW(model.parameters(), lr=0.05)
    order = torch.Generator().manual_seed(0)
    parts: dict[str, Any] = {"model": model, "optimizer": made}
    if resume:
        saved = torch.load(path)
        order.set_state(saved["order"])
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    losses = []
    for _ in range(steps):
        x = torch.randn(4, 2, generator=order)
        loss = (model(x) - x.sum(-1, keepdim=True)).abs().mean()
        made.zero_grad()
        loss.backward()
        made.step()
        losses.append(loss.item())
    states = {name: part.state_dict() for name, part in parts.items()}
    torch.save({"order": order.get_state(), **states}, path)
    return losses


TWICE = "What is saved counts the steps since the break alone."
STEP = 'done = saved["step"]'
STATE = 'made.load_state_dict(saved["optimizer"])'
RESUMED_RUN = without_cases(
    train_on,
    mistake("The last step before the break is taken twice.", STEP, f"{STEP} - 1"),
    mistake("A step is skipped.", STEP, f"{STEP} + 1"),
    mistake("Steps, schedule and batches start over.", STEP, "done = 0"),
    mistake("The batches come in a new order.", "seed(step)", "seed(step - done)"),
    mistake("The schedule starts over.", "0.1 * step)", "0.1 * (step - done))"),
    mistake("The optimizer forgets its state.", STATE, "pass"),
    mistake("The model starts over.", 'weight.data = saved["weight"]', "pass"),
    mistake(TWICE, '"step": done + steps', '"step": steps'),
)

# The optional steps: how a version takes what the learner's function takes, and a second right one.


def _joined(symbols: Sequence[bytes], pair: tuple[bytes, bytes]) -> tuple[bytes, ...]:
    waiting = [*reversed(symbols)]
    joined = []
    while waiting:
        symbol = waiting.pop()
        if waiting and (symbol, waiting[-1]) == tuple(pair):
            symbol += waiting.pop()
        joined.append(symbol)
    return tuple(joined)


def _in_order(word: bytes, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
    symbols = tuple(bytes([byte]) for byte in word)
    for pair in merges:
        symbols = _joined(symbols, pair)
    return list(symbols)


def _encode_word(version: partial) -> Callable:
    def encode_word(word: bytes, merges: list[tuple[bytes, bytes]]) -> list[bytes]:
        tokens = [*(bytes([byte]) for byte in range(256)), *map(b"".join, merges)]
        ids = {token: place for place, token in enumerate(tokens)}
        ranks = {pair: rank for rank, pair in reversed([*enumerate(merges)])}
        return _inner(version)(word, ranks, ids)

    return encode_word


def _decode_ids(version: Callable) -> Callable:
    def decode_ids(ids: list[int], vocab: dict[int, bytes]) -> str:
        numbers = {token: token_id for token_id, token in vocab.items()}
        setup = SimpleNamespace(ids=lambda: numbers, specials=())
        # The reference goes by the bytes, which several ids may share: each stands for the last.
        given = [numbers[vocab[token_id]] for token_id in ids]
        return version(SimpleNamespace(given=given, setup=setup))

    return decode_ids


def _train_naive(version: Callable) -> Callable:
    def train_naive(counts: dict[str, int], num_merges: int) -> list[tuple[bytes, bytes]]:
        counting = _with(version, pretoken_counts=lambda case: Counter(counts))
        return counting(bpe.Text("", num_merges))

    return train_naive


def _stream_pretokens(version: Callable) -> Callable:
    def stream_pretokens(pieces: Iterable[str], special_tokens: list[str]) -> Iterator[str]:
        setup = SimpleNamespace(specials=special_tokens)
        yield from version(SimpleNamespace(given=[*islice(pieces, MOST_READ)], setup=setup))

    return stream_pretokens


def _one_by_one(pieces: Iterable[str], special_tokens: list[str]) -> Iterator[str]:
    return pretokenize(chain.from_iterable(pieces), special_tokens)


def _accumulated(model: Any, loss_of: Callable, inputs: Any, targets: Any, parts: int) -> float:
    losses = []
    for x, y in zip(inputs.split(len(inputs) // parts), targets.chunk(parts), strict=True):
        losses.append(loss_of(model(x), y) * len(x) / len(inputs))
        losses[-1].backward()
    return sum(loss.item() for loss in losses)


def _looped(model: Any, steps: Any, loss_of: Callable, batches: Iterable) -> list[float]:
    def taken(inputs: Tensor, targets: Tensor) -> float:
        loss = loss_of(model(inputs), targets)
        loss.backward()
        steps.step()
        steps.zero_grad()
        return loss.item()

    for parameter in model.parameters():
        parameter.grad = None
    return [taken(*batch) for batch in batches]


def _subject(exercise: Exercise, shaped: Callable, *right: Any, **options: Any) -> Subject:
    """A subject with one exercise; its reference itself is the first of the right programs."""
    versions = Versions(exercise, shaped, **options)
    programs = shaped(exercise.program.edited()), *right
    return Subject(tuple((program,) for program in programs), (versions,))


def _as_is(version: Any) -> Any:
    return version


SUBJECTS = {
    "softmax": _subject(transformer.softmax, _inner, nn.softmax),
    "scaled_dot_product_attention": _subject(
        transformer.scaled_dot_product_attention, _inner, nn.scaled_dot_product_attention
    ),
    "cross_entropy": _subject(transformer.cross_entropy, _inner, nn.cross_entropy),
    "rmsnorm": _subject(
        transformer.rmsnorm,
        _layer(nn.RMSNorm, lambda norm, self, x: norm(x, self.weight, self.eps)),
        nn.RMSNorm,
    ),
    "positionwise_feedforward": _subject(
        transformer.positionwise_feedforward,
        _layer(
            nn.SwiGLU,
            lambda gated, self, x: gated(x, dict(self.named_parameters(remove_duplicate=False))),
        ),
        nn.SwiGLU,
    ),
    "rope": _subject(
        transformer.rope,
        _layer(
            _Rope,
            lambda turned, self, x, token_positions=None: turned(
                x,
                torch.arange(x.shape[-2]) if token_positions is None else token_positions,
                self.theta,
            ),
        ),
        nn.RotaryPositionalEmbedding,
    ),
    "learning_rate_schedule": _subject(optimizer.SCHEDULE, _schedule, optimizers.cosine_schedule),
    "gradient_clipping": _subject(optimizer.CLIPPING, _clip, optimizers.clip_gradients),
    "adamw": Subject(
        (
            (_adamw(optimizer.ADAMW.program.edited()), _before(optimizers.AdamW), TORCHS),
            (_warm(optimizers.AdamW), _before(optimizers.AdamW), TORCHS),
        ),
        (Versions(optimizer.ADAMW, _adamw, within="update"),),
    ),
    "data_loading": _subject(BATCHES, _as_is, _batches, kinds=dict(OF_BATCHES)),
    "train_bpe": _subject(bpe.BPE, _train_bpe, plain.train_bpe),
    "tokenizer": Subject(
        ((PlainTokenizer,), (Tokenizer,)),
        (
            Versions(tokenizers.ENCODE, _tokenizer("encode")),
            Versions(tokenizers.DECODE, _tokenizer("decode")),
            Versions(tokenizers.STREAM, _tokenizer("encode_iterable")),
        ),
    ),
    "decoding": Subject(
        ((_decode(),), (_ours,)),
        (
            Versions(decoding.CHAIN, _decode),
            Versions(decoding.CHOICE, lambda version: _decode(choice=version)),
        ),
    ),
    "encode_utf8": _subject(steps.encode_utf8.exercise, _as_is, lambda point: chr(point).encode()),
    "count_pretokens": _subject(
        steps.count_pretokens.exercise,
        lambda version: (
            lambda text, special_tokens: dict(
                version(bpe.Text(text, 0, tuple(special_tokens or ())))
            )
        ),
        lambda text, special_tokens: Counter(
            part
            for part in pretokenize([text], special_tokens)
            if part not in (special_tokens or ())
        ),
    ),
    "count_pairs": _subject(
        steps.count_pairs.exercise,
        lambda version: lambda words: dict(version(tuple(words.items()))),
        lambda words: sum(
            (Counter({pair: n}) for word, n in words.items() for pair in pairwise(word)), Counter()
        ),
    ),
    "merge_pair": _subject(
        steps.merge_pair.exercise,
        lambda version: lambda symbols, pair: tuple(version((symbols, pair))),
        _joined,
    ),
    "train_naive": _subject(
        steps.train_naive.exercise,
        _train_naive,
        lambda counts, num_merges: plain.train_incremental(Counter(counts), num_merges),
    ),
    "decode_ids": _subject(
        steps.decode_ids.exercise,
        _decode_ids,
        lambda ids, vocab: codecs.decode(bytes(chain(*map(vocab.get, ids))), "utf-8", "replace"),
    ),
    "encode_word": _subject(steps.encode_word.exercise, _encode_word, _in_order),
    "split_special": _subject(
        steps.split_special.exercise,
        lambda version: (
            lambda text, special_tokens: [part for part, _ in _inner(version)(text, special_tokens)]
        ),
        lambda text, special_tokens: [*filter(None, special_pattern(special_tokens).split(text))],
    ),
    "stream_pretokens": Subject(
        ((pretokenize,), (_one_by_one,)),
        (Versions(steps.stream_pretokens.exercise, _stream_pretokens),),
    ),
    "momentum": _subject(
        steps.momentum.exercise, lambda version: _warm(_inner(version)), _warm(torch.optim.SGD)
    ),
    "training_loop": _subject(steps.training_loop.exercise, _inner, _looped),
    "accumulate": _subject(steps.accumulate.exercise, _inner, _accumulated),
    "resuming": _subject(
        RESUMED_RUN, _as_is, train_in_order, kinds={TWICE: "a run that is resumed a second time"}
    ),
}
