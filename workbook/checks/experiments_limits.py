"""What no run can be: a loss below the floor of its text, sums that do not come out."""

import math
from collections.abc import Iterable
from typing import Literal

from workbook import config
from workbook.checks import experiments_text as text_of_runs
from workbook.checks.experiments_run import ReportedRun
from workbook.checks.verdicts import Words, Wrong
from workbook.training.loss_bounds import (
    BYTES_PER_TOKEN,
    bits_per_byte,
    bounds,
    nats_per_token,
    uniform_loss,
)

Kind = Literal["simple", "web"]
CLOSE = 0.02  # relative: how far rounded figures may be from what follows from the others
FEWEST, MOST = 1.0, 12.0  # bytes that a token may hold on average, whatever the tokenizer
LEAKS = (
    "The model sees what it is to predict (causal mask, targets), or it was validated on text that"
    " it was trained on."
)
IDS: dict[Kind, int] = {  # of the largest tokenizer of each kind
    "simple": max(profile.simple_vocab_size for profile in config.PROFILES.values()),
    "web": max(profile.web_vocab_size for profile in config.PROFILES.values()),
}
KINDS: dict[Kind, tuple[str, ...]] = {
    "simple": ("stories", "tinystories"),
    "web": ("pydocs", "owt"),
}


def corpus_for(named: Iterable[str], kind: Kind) -> str:
    """The corpus that is meant: the only one of its kind that is named, or the profile's."""
    fitting = [name for name in named if name in KINDS[kind]]
    if len(fitting) == 1:
        return fitting[0]
    profile = config.profile()
    return {"simple": profile.simple_corpus, "web": profile.web_corpus}[kind]


def refuse_impossible(
    loss: float, corpus: str, bytes_a_token: float | None = None, given: str | None = None
) -> None:
    """Raise where no model has such a loss on a corpus, in nats per token."""
    if not math.isfinite(loss):
        return
    if loss < 0:
        raise Wrong(
            "A loss is never negative.",
            given=Words(given) if given else None,
            expected=Words("-ln of a probability: 0 or more"),
            got=loss,
        )
    known = bounds(corpus, bytes_a_token)
    if loss >= known.lowest:
        return
    bits = bits_per_byte(loss, known.bytes_per_token)
    as_bits = nats_per_token(loss, known.bytes_per_token)
    mistake = LEAKS
    if loss > known.floor:
        mistake += (
            f" Or the unit is another one: {loss:.4g} bits per byte are {as_bits:.2f} nats per"
            " token."
        )
    raise Wrong(
        f"This is lower than any model can get on {corpus}.",
        given=Words(given) if given else None,
        expected=Words(
            f"{known.lowest:.2f} nats per token or more, which are {known.floor:.2f} bits per byte"
            f" at {known.bytes_per_token:g} bytes per token: {known.reason}"
        ),
        got=Words(f"{loss:.4g} nats per token, {bits:.2f} bits per byte"),
        mistake=mistake,
    )


def refuse_untrained(loss: float, kind: Kind) -> None:
    """Raise for a loss that a model has before it learns anything, or a worse one."""
    if loss < uniform_loss(IDS[kind]):
        return
    raise Wrong(
        "A model that has learned nothing does no worse.",
        expected=Words(
            f"less than ln {IDS[kind]:,} = {uniform_loss(IDS[kind]):.2f} nats per token"
        ),
        got=loss,
        mistake="Is it a perplexity? Or a loss that was summed and not averaged?",
    )


def refuse_runs(runs: Iterable[ReportedRun], kind: Kind) -> None:
    """Raise for the first run that contradicts itself, or that no model can be."""
    for run in runs:
        named = text_of_runs.corpora_in(run.words.replace("_", " "))
        corpus = named[0] if len(named) == 1 else corpus_for(named, kind)
        for loss in run.finite:
            refuse_impossible(loss, corpus, run.get("bytes a token"), run.name)
        if len(run.finite) == 1:
            _refuse_units(run)
        _refuse_tokens(run)


def _refuse_units(run: ReportedRun) -> None:
    loss, perplexity, bits = run.loss, run.get("perplexity"), run.get("bits per byte")
    if perplexity is not None:
        refuse_perplexity([loss], perplexity)
    if bits is not None:
        refuse_bits(loss, bits, run.get("bytes a token"))


def refuse_perplexity(losses: list[float], perplexity: float) -> None:
    """Raise where a perplexity is exp of none of the losses beside it."""
    if perplexity <= 0 or not losses:
        return
    slack = _half_digit(perplexity, 0) / perplexity + 0.25 * CLOSE
    if any(abs(math.log(perplexity) - loss) < slack + _half_digit(loss, 1) for loss in losses):
        return
    loss = losses[0]
    slip = None
    if any(abs(math.log2(perplexity) - loss) < 0.03 for loss in losses):
        slip = "2 to the power is for bits: the loss is in nats, so take exp."
    raise Wrong(
        "That perplexity does not belong to that loss.",
        given=Words(f"a loss of {loss:g} nats per token"),
        expected=Words(f"exp({loss:g}) = {math.exp(min(loss, 700)):,.2f}"),
        got=Words(f"{perplexity:g}"),
        mistake=slip,
    )


def _half_digit(value: float, least: int) -> float:
    """By how much a number may be rounded that shows its digits, `least` of them decimals."""
    decimals = f"{value:.10g}".partition(".")[2]
    return 0.5 * 10.0 ** -max(len(decimals), least)


def refuse_bits(loss: float, bits: float, bytes_a_token: float | None) -> None:
    """Raise where a loss in bits per byte does not follow from one in nats per token."""
    if bits <= 0 or loss <= 0:
        return
    implied = bits_per_byte(loss, bits)  # the same formula, solved for the bytes of a token
    if bytes_a_token is None and FEWEST <= implied <= MOST:
        return
    if bytes_a_token is not None and abs(implied / bytes_a_token - 1) < 2.5 * CLOSE:
        return
    usual = bytes_a_token or max(BYTES_PER_TOKEN.values())
    slips = {
        "That is in bits a token: divide by the bytes of a token.": loss / math.log(2),
        "It is still in nats: divide by ln 2.": loss / usual,
        "It was multiplied by the bytes of a token: divide.": loss / math.log(2) * usual,
        "It was multiplied by ln 2: divide.": loss * math.log(2) / usual,
    }
    raise Wrong(
        "The two losses do not fit together.",
        given=Words(f"{loss:g} nats per token, {usual:g} bytes a token"),
        expected=Words(f"{bits_per_byte(loss, usual):.2f} bits per byte"),
        got=Words(f"{bits:g}"),
        mistake=next((s for s, v in slips.items() if abs(v / bits - 1) < 3 * CLOSE), None),
    )


def _refuse_tokens(run: ReportedRun) -> None:
    """Raise where a run's tokens are not steps × batch × context."""
    steps = run.get("steps taken") or run.get("steps")
    batch, context, tokens = (run.get(each) for each in ("batch", "context", "tokens"))
    if run.diverged or not (steps and batch and context and tokens):
        return
    product = steps * batch * context
    share = tokens / product
    slips = {
        "The context is missing from the product.": steps * batch,
        "The batch is missing from the product.": steps * context,
    }
    slip = next((s for s, v in slips.items() if abs(tokens / v - 1) < CLOSE), None)
    # A run may end before its last step; several parts of a batch, or devices, give a multiple.
    multiple = share > 1.5 and abs(share - round(share)) < CLOSE
    if (share <= 1 + CLOSE and (share > 1 - CLOSE or not slip)) or multiple:
        return
    raise Wrong(
        "These tokens are not steps × batch × context.",
        given=Words(run.name),
        expected=Words(f"{steps:,.0f} × {batch:,.0f} × {context:,.0f} = {product:,.0f}"),
        got=Words(f"{tokens:,.0f}"),
        mistake=slip,
    )


def refuse_text(text: str, kind: Kind) -> list[text_of_runs.Said]:
    """The losses that a text claims; raises where one is impossible or a sum does not come out."""
    text_of_runs.refuse_products(text)
    everywhere = text_of_runs.corpora_in(text)
    size = text_of_runs.bytes_a_token(text)
    said = text_of_runs.losses(text)
    for clause in text_of_runs.clauses(text):
        # Without a corpus in its clause it may be any that the text names: the lowest floor counts.
        named = text_of_runs.corpora_in(clause) or everywhere or (corpus_for((), kind),)
        known = min((bounds(name, size) for name in named), key=lambda each: each.lowest)
        losses = [each.loss for each in said if each.clause == clause]
        perplexities = text_of_runs.perplexities(clause)
        bits = text_of_runs.bits_a_byte(clause)
        claimed = losses + [nats_per_token(each, known.bytes_per_token) for each in bits]
        # Where another number of the clause can be a loss, a low one may be anything.
        others = [each for each in text_of_runs.decimals(clause) if each not in losses + bits]
        if not any(known.lowest <= each <= uniform_loss(IDS["web"]) for each in losses + others):
            for loss in claimed:
                refuse_impossible(loss, known.corpus, size)
        if losses and len(perplexities) == 1:
            refuse_perplexity(losses, perplexities[0])
        if len(losses) == 1 and len(bits) == 1:
            refuse_bits(losses[0], bits[0], text_of_runs.bytes_a_token(clause))
    return said
