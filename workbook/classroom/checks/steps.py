"""The checks of the optional steps on the way to a long problem: short functions, and no points.

The steps of chapter 2 are judged by the reference of the whole problem, as far as it is about them,
and by those of its mistakes that can be made there. The names here are the ids of the steps.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice, product
from operator import eq, length_hint
from typing import Any

import torch
from torch import nn

from workbook.classroom.checks import bpe, optimizer, tokenizer
from workbook.classroom.checks import pretokens as shared
from workbook.classroom.checks.machinery.engine import Exercise, Program, judge, mistake
from workbook.classroom.checks.machinery.verdicts import NotAttempted, Wrong, call, expect, shown
from workbook.classroom.checks.pretokens import cut_specials, pretokens  # which edits replace
from workbook.classroom.checks.tokenizer import PLAIN, Call
from workbook.optimizer.optimizers import Momentum
from workbook.tokenization import bpe as plain

# By the type that came and the one that is asked for, how one becomes the other.
CONVERSIONS: dict[tuple[type, type], str] = {
    (bytes, str): "`data.decode()` makes a str of bytes.",
    (str, bytes): "`text.encode()` makes bytes of a str.",
    (int, bytes): "The byte b is `bytes([b])`, and an item of bytes is an int.",
    (list, bytes): "`bytes(numbers)` makes bytes of ints, and `b''.join(parts)` of bytes.",
    (list, str): "`''.join(parts)` makes one str.",
}


def of_another_type(right: Any, got: Any, what: str = "The result") -> str | None:
    """Say of which type a result is, or the first of what it holds, if another is asked for."""
    came, asked = (dict if isinstance(value, dict) else type(value) for value in (got, right))
    if came is not asked:
        told = f"{what} is of type `{came.__name__}`; `{asked.__name__}` is asked for."
        return " ".join(filter(None, [told, CONVERSIONS.get((came, asked))]))
    if isinstance(right, dict | list | tuple) and right and got:
        pairs = zip(right, got, strict=False)
        inside = "A key" if isinstance(right, dict) else "An item"
        return next(filter(None, (of_another_type(*pair, inside) for pair in pairs)), None)
    return None


@dataclass(frozen=True)
class Step:
    """The check of a step."""

    exercise: Exercise

    def __call__(self, attempt: Any) -> str:
        """Praise for a right function; raises `Wrong` with the first case that fails."""
        return judge(self.exercise, attempt).verdict("It passes every case.")


def _step(
    words: str,
    cases: tuple,
    arguments: Callable[[Any], tuple],
    program: Program,
    *slips: tuple[str, ...],
    whole: Exercise | None = None,
    work: Callable = lambda attempt, *given: attempt(*given),
    same: Callable[[Any, Any], bool] = eq,
) -> Step:
    """The check of a step.

    Arguments:
        words: for a call, with {} for its arguments.
        cases: what the reference takes.
        arguments: of the learner's function, new ones at each call, from a case.
        program: the reference, which may be a part of that of the whole problem.
        slips: mistakes, each as `mistake` takes it.
        whole: the exercise of the whole problem, of which more mistakes are taken.
        work: calls what the learner hands in with the arguments, if a plain call will not do.
        same: whether a result is right.
    """

    def given(case: Any) -> str:
        return words.format(", ".join(map(shown, arguments(case))))

    def run(attempt: Callable, case: Any) -> Any:
        result = call(work, attempt, *arguments(case), given=given(case))
        if result is None:
            raise NotAttempted
        return list(result) if isinstance(result, tuple) else result

    def report(case: Any, right: Any, got: Any) -> Wrong:
        wrong = Wrong("The result is wrong.", given=given(case), expected=right, got=got)
        wrong.mistake = of_another_type(right, got)
        if isinstance(case, bpe.Text) and not bpe.odd_parts({}, got):
            beside = bpe._beside(case, right, got)  # merges: where they first go wrong, and why
            wrong.claim = beside.claim
            wrong.mistake = beside.mistake
        return wrong

    known = [mistake(*slip) for slip in slips]
    errors = {}
    if whole:
        known = [*whole.mistakes, *known]
        errors = whole.errors
    here = [m for m in known if all(program.source.count(old) == 1 for old, _ in m.edits)]
    return Step(Exercise(program, tuple(here), cases, run, same, report, errors))


# In the notebook on Unicode.


def utf8_bytes(point: int) -> bytes:
    """The UTF-8 bytes of a code point, from the bits of it that stand in each."""
    if point < 0x80:
        return bytes([point])
    many = 2 + (point >= 0x800) + (point >= 0x10000)
    bits = [point >> 6 * place & 0x3F for place in reversed(range(many))]
    lead = 0xFF00 >> many & 0xFF  # as many ones as there are bytes
    return bytes([lead | bits[0], *(0x80 | rest for rest in bits[1:])])


encode_utf8 = _step(
    "encode_utf8({})",
    (0x41, 0xFC, 0x4EBA, 0x1F30D, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF),
    lambda point: (point,),
    Program(utf8_bytes),
    ("Each byte after the first begins with the bits 10: add 0b10000000.", "0x80 | rest", "rest"),
    (
        "The first byte lacks its template: as many ones as there are bytes, then a 0.",
        "lead | bits[0]",
        "bits[0]",
    ),
    (
        "The groups of six bits are in the wrong order: the last six are in the last byte.",
        "reversed(range(many))",
        "range(many)",
    ),
    ("Beyond 0xFFFF, four bytes are needed.", " + (point >= 0x10000)", ""),
    ("One byte has room for 7 bits, up to 0x7F.", "point < 0x80", "point < 0x100"),
)

# On the way to `train_bpe`.


def _words(text: bpe.Text) -> tuple[tuple[tuple[bytes, ...], int], ...]:
    """The pre-tokens of a text as bytes, with their counts."""
    counts = bpe.pretoken_counts(text)
    return tuple((tuple(plain.split_bytes(token)), n) for token, n in counts.items())


COUNTED_FROM_1 = "Each count begins at 1: let it begin at 0, as in `counts.get(key, 0) + 1`."
PLACES = bpe.BPE.program.places  # a machine's changes of other lines may never end
TEXTS = *bpe.SMALL, *bpe.CORNERS
SYMBOLS = [tuple(plain.split_bytes(word)) for word in ("ab", "aaa", "aaaaa", "xabab", "abxab", "b")]
# The last shows who joins the word to one string, or compares what the parts make together.
TO_MERGE = (
    *product(SYMBOLS, [(b"a", b"b"), (b"a", b"a")]),
    ((b"ab", b"a", b"ab"), (b"a", b"b")),
    ((b" ", b"ca", b"bc", b"ab", b"c"), (b"a", b"bc")),
)

count_pretokens = _step(
    "count_pretokens({})",
    (*TEXTS, bpe.Text("<|a|>b<|a|>c", 0, ("<|a|>", "<|a|>b"), bpe.SEVERAL)),
    lambda case: (case.text, list(case.special_tokens)),
    Program(shared.decode, cut_specials, pretokens, bpe._documents, bpe.pretoken_counts),
    *((slip.words, *slip.edits[0]) for slip in shared.UNSORTED),
    (
        COUNTED_FROM_1,
        "return Counter(",
        "counts = Counter(",
        "token in part)",
        "token in part)\ncounts.update([*counts])\nreturn counts",
    ),
    (
        "The special tokens were counted, too: they cut the text, and are left out.",
        "if not special]",
        "if True]",
        "pretokens(document) for",
        "[document] if document in case.special_tokens else pretokens(document) for",
    ),
    whole=bpe.BPE,
)
count_pairs = _step(
    "count_pairs({})",
    tuple(map(_words, bpe.SMALL)),
    lambda words: (dict(words),),
    Program(plain.count_pairs, call=lambda count, words: count(words)),
    ("A pair counts as often as its word occurs: add the word's count, not 1.", bpe.ADDED, "+= 1"),
    (bpe.ASSIGNED, bpe.ADDED, "= count"),
    (COUNTED_FROM_1, bpe.ADDED, "+= count + (pair not in pairs)"),
    (
        "(b, a) is another pair than (a, b): keep the order.",
        "in pairwise(symbols):",
        "in map(tuple, map(sorted, pairwise(symbols))):",
    ),
    (
        "Only the first word's pairs are counted: does a `break` or a `return` end the loop?",
        "in words:",
        "in words[:1]:",
    ),
    (
        "Only the last word's pairs are counted: is the dict made anew for each word?",
        "in words:",
        "in words[-1:]:",
    ),
    whole=bpe.BPE,
)
merge_pair = _step(
    "merge_pair({})",
    TO_MERGE,
    lambda case: case,
    Program(plain.merge_pair, places=PLACES, call=lambda merge, case: merge([*case[0]], case[1])),
    (
        bpe.WHOLE_TOKENS,
        "merged = []",
        'return b" ".join(symbols).replace(b" ".join(pair), left + right).split(b" ")',
    ),
    (
        "The parts are compared after they are joined: (ab, c) is another pair than (a, bc).",
        bpe.BOTH,
        "symbols[at] + [*symbols, b''][at + 1] == left + right and [right]",
    ),
    whole=bpe.BPE,
)
train_naive = _step(
    "train_naive({})",
    TEXTS,
    lambda case: (dict(bpe.pretoken_counts(case)), case.num_merges),
    Program(plain.split_bytes, plain.count_pairs, plain.merge_pair, bpe.train, places=PLACES),
    whole=bpe.BPE,
)

# On the way to the tokenizer.

RANKS = {pair: rank for rank, pair in enumerate(PLAIN.merges)}
MANY_PIECES = 1_000  # pieces of the stream that need not be read before something comes out


def pieces_of(case: Call) -> list[str]:
    """The pre-tokens of the joined pieces of a case, special tokens among them."""
    pieces = case.given
    found = []
    # A list of one text: the mistakes of `encode_iterable` are edits of this expression.
    for text in ["".join(pieces)]:
        for part, special in cut_specials(text, case.setup.specials):
            found += [part] if special else pretokens(part)
    return found


def _full(parts: list) -> list:
    """The parts that are not empty: a split may leave such parts at its ends, or not."""
    return [part for part in parts if part != ""]


def _streamed(stream: Callable, pieces: list[str], specials: list[str]) -> list[str]:
    """All that a learner's function yields. Raises: Wrong if it is not lazy."""
    left = iter(pieces)
    yielded = iter(stream(left, specials))
    first = [*islice(yielded, 1)]
    expect(len(pieces) < MANY_PIECES or length_hint(left), "It is not lazy.", tokenizer.LAZY)
    return [*first, *yielded]


decode_ids = _step(
    "decode_ids({})",
    tokenizer.ID_LISTS,
    lambda case: ([*case.given], {i: case.setup.vocab()[i] for i in case.given}),
    tokenizer.DECODE.program,
    whole=tokenizer.DECODE,
    same=tokenizer._same,
)
encode_word = _step(
    "encode_word({})",
    tuple(map(str.encode, pretokens(tokenizer.LEARNT_FROM))),
    lambda word: (word, [pair for pair in PLAIN.merges if b"".join(pair) in word]),
    Program(
        *(plain.merge_pair, tokenizer.merged),
        places=PLACES,
        call=lambda merge, word: merge(word, RANKS, PLAIN.ids()),
    ),
    whole=tokenizer.ENCODE,
)
split_special = _step(
    "split_special({})",
    tokenizer.TEXTS,
    lambda case: (case.text, [*case.setup.specials]),
    Program(
        cut_specials,
        call=lambda cut, case: [part for part, _ in cut(case.text, case.setup.specials)],
    ),
    (
        "The special tokens are missing: a pattern in a group, `(...)`, keeps what it matches.",
        'f"({pattern})"',
        "pattern",
    ),
    ("Only the special tokens come back: keep the text between.", "if part]", "if at % 2]"),
    (
        "Without special tokens the whole text is one part.",
        "return [(text, False)]",
        "return []",
    ),
    whole=tokenizer.ENCODE,
    same=lambda right, got: isinstance(got, list) and _full(got) == _full(right),
)
stream_pretokens = _step(
    "stream_pretokens({})",
    (*tokenizer.STREAMS, *tokenizer.ODD_STREAMS, Call(PLAIN, "", tokenizer.ORDINARY * MANY_PIECES)),
    lambda case: ([*case.given], [*case.setup.specials]),
    Program(tokenizer.last_part, pretokens, cut_specials, pieces_of),
    (shared.LIKE_TEXT, shared.IF_NO_TOKENS, "if True:"),
    (
        f"{shared.LIKE_TEXT} Nor may a piece be cut by itself: hold back the end that the next "
        "piece may still change.",
        shared.IF_NO_TOKENS,
        "if True:",
        '["".join(pieces)]',
        "pieces",
    ),
    whole=tokenizer.STREAM,
    work=_streamed,
)

# In the notebooks on optimizers and on training. The comments say where a learner is told to look.

GRADIENTS = (2.0, 0.5), (-2.0, 1.0), (4.0, -1.0), (1.0, 3.0)  # of two parameters, by step
B, MOVE = 'b.mul_(group["momentum"]).add_(g)', 'theta.sub_(b, alpha=group["lr"])'
INSIDE = "α is inside b: b ← μ b + g, then θ ← θ - α b, as α may change from step to step."


def _numbers(values: Iterable[Any]) -> list[float]:
    """Numbers of a learner's, as they are shown."""
    graph = any(getattr(value, "requires_grad", False) for value in values)
    expect(
        not graph,
        "A loss is a tensor, not a number.",
        "It keeps the graph of its step, and all tensors in it: return `loss.item()`.",
    )
    return [round(float(value), 6) for value in values]


def _in_torch(words: str, cases: tuple, reference: Callable, work: Callable, *slips: tuple) -> Any:
    """The check of a step whose `work` gives numbers; a case is a number that `work` takes."""
    program = Program(reference, call=work)
    same = optimizer.same
    return _step(words, cases, lambda case: (case,), program, *slips, work=work, same=same)


def _small(many: int) -> tuple[nn.Linear, list[tuple]]:
    """A linear model, and batches for it."""
    torch.manual_seed(0)
    batches = torch.randn(many, 8, 2)
    return nn.Linear(2, 1, bias=False), [(inputs, inputs[:, :1] + 1) for inputs in batches]


def moved(kind: type, steps: int) -> list[float]:
    """Two parameters after some steps of an optimizer."""
    thetas = [optimizer.parameter([place]) for place in (1.0, -2.0)]
    made = kind(thetas, lr=0.1, momentum=0.8)
    for gradients in GRADIENTS[:steps]:
        for theta, g in zip(thetas, gradients, strict=True):
            theta.grad = torch.tensor([g])
        made.step()
        made.param_groups[0]["lr"] /= 2  # as a schedule does
    return _numbers([theta.detach() for theta in thetas])


momentum = _in_torch(
    "Momentum([p0, p1], lr=0.1, momentum=0.8) from p0 = 1, p1 = -2; steps: {}; the results are "
    f"p0 and p1; group['lr'] is halved after each step; their gradients by step: {GRADIENTS}",
    *((1, 2, 4), Momentum, moved),
    ("b is forgotten from step to step: keep it in `self.state[p]`.", B, "b.copy_(g)"),
    (
        "g counts in full, b ← μ b + g: the factor 1 - μ belongs to Adam's averages.",
        "add_(g)",
        'add_(g, alpha=1 - group["momentum"])',
    ),
    ("The step goes uphill: subtract it.", 'alpha=group["lr"]', 'alpha=-group["lr"]'),
    (optimizer.REBOUND, "theta.sub_(", "theta.clone().sub_("),
    ("b never fades: multiply it by μ before you add g.", B, "b.add_(g)"),
    ("θ moves by the b of the step before: update b first.", B, "pass", MOVE, f"{MOVE}\n{B}"),
    (
        "This is Nesterov's form, which adds g to μ b once more: θ moves by the new b alone.",
        MOVE,
        MOVE.replace("b,", 'group["momentum"] * b + g,'),
    ),
    ("μ multiplies b alone, not g.", B, 'b.add_(g).mul_(group["momentum"])'),
    ("b begins at g: let it begin at 0.", B, f"b.add_(g * (not b.any()))\n{B}"),
    (INSIDE, B, f'{B[:-1]} * group["lr"])', MOVE, "theta.sub_(b)"),
    (INSIDE, B, f'{B[:-1]} * group["lr"])'),
    *(
        (
            "α is not that of the group: read `group['lr']` in each step, as a schedule sets it.",
            'alpha=group["lr"]',
            f"alpha={lr}",
        )
        for lr in (0.1, 1e-3)  # what was passed in, and the usual default
    ),
    (
        "All parameters share one b: each has its own, in `self.state[p]`.",
        "_remembered(state",
        "_remembered(self.defaults",
    ),
)


def looped(model: nn.Module, steps: Any, loss_of: Callable, batches: Any) -> list[float]:
    """The loss of each batch, before the step on it."""
    losses = []
    for inputs, targets in batches:
        loss = loss_of(model(inputs), targets)
        steps.zero_grad()  # where the gradients are cleared
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def trained(loop: Callable, many: int) -> list[float] | None:
    """The losses of a run of some batches, and the weights after it."""
    model, batches = _small(many)
    losses = loop(model, torch.optim.SGD([model.weight], 0.1), nn.functional.mse_loss, batches)
    return None if losses is None else _numbers([*losses, *model.weight[0].tolist()])


training_loop = _in_torch(
    "a linear model, SGD(lr=0.1), mse_loss; batches: {}; the results are losses, then weights",
    *((1, 2, 5), looped, trained),
    (
        "The weights stay as they were: is `backward` or `step` missing, or are the gradients "
        "cleared between the two?",
        "steps.step()",
        "pass",
    ),
    (
        "Only the last loss comes back: append each.",
        "losses.append(loss.item())",
        "losses = [loss.item()]",
    ),
    ("Only the first batch is used: does a `return` end the loop?", "in batches", "in batches[:1]"),
)


def in_parts(model: nn.Module, loss_of: Callable, inputs: Any, targets: Any, parts: int) -> float:
    """The mean loss of a batch that goes through the model in parts, and leaves gradients."""
    total = 0.0
    for x, y in zip(inputs.chunk(parts), targets.chunk(parts), strict=True):
        loss = loss_of(model(x), y) / parts
        loss.backward()  # where the gradients are computed
        total += loss.item()
    return total


def accumulated(accumulate: Callable, parts: int) -> list[float] | None:
    """The loss, the gradients that are left, and the size of the largest part."""
    (model, [(inputs, targets)]) = _small(1)
    sizes = [0]
    model.register_forward_hook(lambda model, given, output: sizes.append(len(given[0])))
    loss = accumulate(model, nn.functional.mse_loss, inputs, targets, parts)
    weight = model.weight
    left = (0, 0) if weight.grad is None else weight.grad[0].tolist()
    return None if loss is None else _numbers([loss, *left, max(sizes)])


accumulate = _in_torch(
    "a linear model, mse_loss and a batch of 8; parts: {}; the results are the loss, the "
    "gradients, and how much of the batch went through the model at once",
    *((1, 2, 4), in_parts, accumulated),
    (
        "Each part's loss is a mean: divide it by the number of parts before `backward`, or the "
        "gradients are that many times too large.",
        " / parts",
        "",
    ),
    (
        "The loss is divided too late: `backward` has run on the whole one. Divide it before.",
        " / parts",
        "",
        "loss.item()",
        "loss.item() / parts",
    ),
    ("The losses of the parts add up: `+=`.", "total += ", "total = "),
    (
        "`split(n)` makes pieces of n rows; `chunk(n)` makes n pieces.",
        "inputs.chunk(parts), targets.chunk(parts)",
        "inputs.split(parts), targets.split(parts)",
    ),
    (
        "Only the last part's gradient is left: clear nothing between the parts.",
        "loss.backward()",
        "model.zero_grad()\nloss.backward()",
    ),
    (
        "The whole batch went through the model at once: cut it, as with `chunk`.",
        "total = 0.0",
        "total, parts = 0.0, 1",
    ),
)
