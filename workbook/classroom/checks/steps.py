"""The checks of the optional steps on the way to a long problem: short functions, and no points.

The steps of chapter 2 are judged by the reference of the whole problem, as far as it is about them,
and by those of its mistakes that can be made there. The names here are the ids of the steps.
"""

from collections.abc import Callable, Mapping
from itertools import islice, product
from operator import length_hint
from typing import Any

import torch
from torch import nn

from workbook.classroom.checks import bpe, optimizer, tokenizer
from workbook.classroom.checks import pretokens as shared
from workbook.classroom.checks.engine import Exercise, Program, judge, mistake
from workbook.classroom.checks.tokenizer import PLAIN, Call
from workbook.classroom.checks.verdicts import NotAttempted, Prose, Wrong, call, shown
from workbook.optimizer.optimizers import Momentum
from workbook.tokenization import bpe as plain

PRAISE = "It passes every case."
NOTHING = "It returned None: is a `return` missing?"


def _step(
    name: str,
    whole: Exercise,
    program: Program,
    cases: tuple,
    arguments: Callable[[Any], tuple],
    *slips: tuple[str, ...],
    same: Callable[[Any, Any], bool] = lambda right, got: right == got,
    work: Callable | None = None,
) -> Callable[[Any, str | None], str]:
    """The check of a function of chapter 2.

    Arguments:
        whole: the exercise of the whole problem.
        program: the part of its reference that does the step.
        cases: what the reference takes.
        arguments: of the learner's function, new ones at each call, from a case.
        slips: more mistakes, each as `mistake` takes it.
        same: whether a result is right.
        work: calls the learner's function with the arguments, if a plain call will not do.
    """

    def given(case: Any) -> Prose:
        return Prose(f"{name}({', '.join(map(shown, arguments(case)))})")

    def run(attempt: Callable, case: Any) -> Any:
        result = call(*filter(None, (work, attempt)), *arguments(case), given=given(case))
        if result is None:
            raise NotAttempted(NOTHING)
        if isinstance(result, Mapping):
            return dict(result)
        return list(result) if isinstance(result, tuple) else result

    def report(case: Any, right: Any, got: Any) -> Wrong:
        wrong = Wrong("The result is wrong.", given=given(case), expected=right, got=got)
        if right and isinstance(got, list) and {*map(type, (*right, *got))} == {tuple}:
            beside = bpe._beside(case, right, got)  # merges: where they first go wrong, and why
            wrong.claim, wrong.mistake = beside.claim, beside.mistake
        return wrong

    mistakes = [*whole.mistakes, *(mistake(*slip) for slip in slips)]
    here = [m for m in mistakes if all(program.source.count(old) == 1 for old, _ in m.edits)]
    exercise = Exercise(program, tuple(here), cases, run, same, report, whole.errors)

    def check(attempt: Any, part: str | None = None) -> str:
        return judge(exercise, attempt).verdict(PRAISE)

    return check


# On the way to `train_bpe`.


def _words(text: bpe.Text) -> tuple[tuple[tuple[bytes, ...], int], ...]:
    """The pre-tokens of a text as bytes, with their counts."""
    counts = bpe.pretoken_counts(text)
    return tuple((tuple(plain.split_bytes(token)), n) for token, n in counts.items())


PLACES = bpe.BPE.program.places  # a machine's changes of other lines may never end
TEXTS = *bpe.SMALL, *bpe.CORNERS
SYMBOLS = [tuple(plain.split_bytes(word)) for word in ("ab", "aaa", "aaaaa", "xabab", "abxab", "b")]
TO_MERGE = *product(SYMBOLS, [(b"a", b"b"), (b"a", b"a")]), ((b"ab", b"a", b"ab"), (b"a", b"b"))

count_pretokens = _step(
    *("count_pretokens", bpe.BPE),
    Program(shared.cut_specials, shared.pretokens, bpe._documents, bpe.pretoken_counts),
    TEXTS,
    lambda case: (case.text, list(case.special_tokens)),
    ("The special tokens were counted, too: they cut the text, and are left out.",
     "if not special]", "if True]", "pretokens(document) for",
     "[document] if document in case.special_tokens else pretokens(document) for"),
)  # fmt: skip
count_pairs = _step(
    *("count_pairs", bpe.BPE),
    Program(plain.count_pairs, call=lambda count, words: count(words)),
    tuple(map(_words, bpe.SMALL)),
    lambda words: (dict(words),),
    ("A pair counts as often as its word occurs: add the word's count, not 1.", "+= count", "+= 1"),
)
merge_pair = _step(
    *("merge_pair", bpe.BPE),
    Program(plain.merge_pair, places=PLACES, call=lambda merge, case: merge([*case[0]], case[1])),
    TO_MERGE,
    lambda case: case,
)
train_naive = _step(
    *("train_naive", bpe.BPE),
    Program(plain.split_bytes, plain.count_pairs, plain.merge_pair, bpe.train, places=PLACES),
    TEXTS,
    lambda case: (dict(bpe.pretoken_counts(case)), case.num_merges),
)

# On the way to the tokenizer.

LAZY = "It reads the whole stream first. Join no pieces, make no list: `yield` as you go."
RANKS = {pair: rank for rank, pair in enumerate(PLAIN.merges)}
LONG, UNREAD = 1_000, "(nothing came out until the stream was read to its end)"


def pieces_of(case: Call) -> list[str]:
    """The pre-tokens of the joined pieces of a case, special tokens among them."""
    pieces = case.given
    # A list of one text: the mistakes of `encode_iterable` are edits of this expression.
    texts, found = ["".join(pieces)], []
    for text in texts:
        for part, special in shared.cut_specials(text, case.setup.specials):
            found += [part] if special else shared.pretokens(part)
    return found


def _streamed(stream: Callable, pieces: list[str], specials: list[str]) -> list[str]:
    """All that a learner's function yields, and `UNREAD` if it is not lazy."""
    left = iter(pieces)
    yielded = iter(stream(left, specials))
    first = [*islice(yielded, 1)]
    is_lazy = len(pieces) < LONG or length_hint(left)
    return [*first, *yielded, *([] if is_lazy else [UNREAD])]


decode_ids = _step(
    *("decode_ids", tokenizer.DECODE, tokenizer.DECODE.program, tokenizer.ID_LISTS),
    lambda case: ([*case.given], {i: case.setup.vocab()[i] for i in case.given}),
    same=tokenizer._same,
)
encode_word = _step(
    *("encode_word", tokenizer.ENCODE),
    Program(
        *(plain.merge_pair, tokenizer.merged),
        places=PLACES,
        call=lambda merge, word: merge(word, RANKS, PLAIN.ids()),
    ),
    tuple(word.encode() for word in shared.pretokens(tokenizer.LEARNT_FROM)),
    lambda word: (word, [pair for pair in PLAIN.merges if b"".join(pair) in word]),
)
split_special = _step(
    *("split_special", tokenizer.ENCODE),
    Program(
        shared.cut_specials,
        call=lambda cut, case: [part for part, _ in cut(case.text, case.setup.specials)],
    ),
    tokenizer.TEXTS,
    lambda case: (case.text, [*case.setup.specials]),
    (
        "The special tokens are missing: a pattern in a group, `(...)`, keeps what it matches.",
        'f"({pattern})"',
        "pattern",
    ),
    same=lambda right, got: (
        isinstance(got, list) and [*filter(None, got)] == [*filter(None, right)]
    ),
)
stream_pretokens = _step(
    *("stream_pretokens", tokenizer.STREAM),
    Program(tokenizer.last_part, shared.pretokens, shared.cut_specials, pieces_of),
    (*tokenizer.STREAMS, *tokenizer.ODD_STREAMS, Call(PLAIN, "", tokenizer.ORDINARY * LONG)),
    lambda case: ([*case.given], [*case.setup.specials]),
    (LAZY, "return found", "return found + [UNREAD] * (len(pieces) >= LONG)"),
    work=_streamed,
)

# In the notebooks on optimizers and on training. The comments say where a learner is told to look.

GRADIENTS = (1.0, 1.0), (-2.0, 0.5), (4.0, -1.0), (1.0, 3.0)  # of two parameters, by step


def _in_torch(
    reference: Callable, use: Callable, given: str, numbers: tuple, *slips: tuple[str, ...]
) -> Callable[[Any, str | None], str]:
    """The check of a function or class of a later chapter.

    Arguments:
        use: calls the reference, or an attempt, with what one of the `numbers` stands for.
        given: that in words.
        slips: mistakes, each as `mistake` takes it.
    """

    def run(attempt: Callable, number: int) -> list[float]:
        values = call(use, attempt, number, given=given.format(number))
        if any(value is None for value in values):
            raise NotAttempted(NOTHING)
        if any(getattr(value, "requires_grad", False) for value in values):
            why = "It keeps the graph of its step, and all tensors in it: return `loss.item()`."
            raise Wrong("A loss is a tensor, not a number.", mistake=why)
        return [*map(float, values)]

    def report(number: int, right: list[float], got: list[float]) -> Wrong:
        return optimizer._beside("The numbers are wrong.")(given.format(number), right, got)

    mistakes, program = tuple(mistake(*slip) for slip in slips), Program(reference, call=use)
    exercise = Exercise(program, mistakes, numbers, run, optimizer.same, report)

    def check(attempt: Any, part: str | None = None) -> str:
        torch.optim.SGD([optimizer.parameter([0.0])])  # loads torch's compiler, which takes seconds
        return judge(exercise, attempt).verdict(PRAISE)

    return check


def _rolled(attempt: Any, steps: int) -> list[float]:
    """Two parameters after some steps of a class, or of one with this `update`."""
    is_class = isinstance(attempt, type)
    kind = attempt if is_class else type("Reference", (Momentum,), {"update": attempt})
    thetas = [optimizer.parameter([place]) for place in (1.0, -2.0)]
    made = kind(thetas, lr=0.1, momentum=0.8)
    for gradients in GRADIENTS[:steps]:
        for theta, g in zip(thetas, gradients, strict=True):
            theta.grad = torch.tensor([g])
        made.step()
    return [theta.item() for theta in thetas]


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


def _looped(loop: Callable, many: int) -> list:
    """The losses of a run of some batches, and the weights after it."""
    torch.manual_seed(0)
    model, batches = nn.Linear(2, 1, bias=False), torch.randn(many, 8, 2)
    pairs = [(inputs, inputs[:, :1] + 1) for inputs in batches]
    losses = loop(model, torch.optim.SGD([model.weight], 0.1), nn.functional.mse_loss, pairs)
    return [None] if losses is None else [*losses, *model.weight[0].tolist()]


def in_parts(model: nn.Module, loss_of: Callable, inputs: Any, targets: Any, parts: int) -> float:
    """The mean loss of a batch that goes through the model in parts, and leaves gradients."""
    total = 0.0
    for x, y in zip(inputs.chunk(parts), targets.chunk(parts), strict=True):
        loss = loss_of(model(x), y) / parts
        loss.backward()  # where the gradients are computed
        total += loss.item()
    return total


def _in_parts(accumulate: Callable, parts: int) -> list:
    """The loss, the gradients that are left, and the size of the largest part."""
    torch.manual_seed(0)
    model, inputs, sizes = nn.Linear(2, 1, bias=False), torch.randn(8, 2), [0]
    model.register_forward_hook(lambda model, given, output: sizes.append(len(given[0])))
    loss = accumulate(model, nn.functional.mse_loss, inputs, inputs[:, :1] + 1, parts)
    left = model.weight.grad
    return [loss, *(left[0].tolist() if left is not None else (0, 0)), max(sizes)]


OLD = 'b.mul_(group["momentum"]).add_(g)'
momentum = _in_torch(
    *(Momentum.update, _rolled),
    "Momentum([p0, p1], lr=0.1, momentum=0.8) from p0 = 1, p1 = -2; steps: {}; the results are "
    f"p0 and p1; their gradients by step: {GRADIENTS}",
    (1, 2, 4),
    ("b is forgotten from step to step: keep it in `self.state[p]`.", OLD, "b.copy_(g)"),
    ("g counts in full, b ← μ b + g: the factor 1 - μ belongs to Adam's averages.",
     "add_(g)", 'add_(g, alpha=1 - group["momentum"])'),
    ("b never fades: multiply it by μ before you add g.", OLD, "b.add_(g)"),
    ("All parameters share one b: each has its own, in `self.state[p]`.",
     "_remembered(state", "_remembered(self.defaults"),
)  # fmt: skip
training_loop = _in_torch(
    *(looped, _looped),
    "a linear model, SGD(lr=0.1), mse_loss; batches: {}; the results are losses, then weights",
    (1, 2, 5),
    ("The weights stay as they were: is `backward` or `step` missing, or are the gradients cleared "
     "between the two?", "steps.step()", "pass"),
    ("Only the first batch is used: does a `return` end the loop?", "in batches", "in batches[:1]"),
)  # fmt: skip
accumulate = _in_torch(
    *(in_parts, _in_parts),
    "a linear model, mse_loss and a batch of 8; parts: {}; the results are the loss, the "
    "gradients, and how much of the batch went through the model at once",
    (1, 2, 4),
    ("Each part's loss is a mean: divide it by the number of parts before `backward`, or the "
     "gradients are that many times too large.", " / parts", ""),
    ("Only the last part's gradient is left: clear nothing between the parts.",
     "loss.backward()", "model.zero_grad()\nloss.backward()"),
    ("The whole batch went through the model at once: cut it, as with `chunk`.",
     "in zip(inputs.chunk(parts), targets.chunk(parts), strict=True)", "in [(inputs, targets)]",
     " / parts", ""),
)  # fmt: skip
