"""What five public write-ups of the assignment claim, from `data/reported/claims.csv`.

What published solutions of the accounting problems claim, and a verdict that is computed.

Nobody's verdict is copied: each number of a claim is looked for among all that comes out of the
formulas, under the assumptions of the problem and under others.

What published write-ups claim about their training runs, and whether it can be.

Nobody's verdict is copied. A loss in nats a token is turned into bits a byte, with the length that
the same write-up measured for its tokens, and held against the floor of its text.
"""

import math
import re
from dataclasses import dataclass

import pandas as pd

from workbook import accounting, config
from workbook.accounting.answers import answers
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import SIZES, Found, explain
from workbook.config import Edition
from workbook.training.loss_bounds import bits_a_byte, limits, nats_a_token


def claims(problem: str, part: str | None = None) -> pd.DataFrame:
    """The claims about a problem, or one part of it, by write-up: claimed, verdict, right, why.

    Raises ValueError where no write-up says anything about it.
    """
    path = config.repository() / "data" / "reported" / "claims.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    wanted = table["problem"] == problem
    if part is not None:
        wanted &= table["part"] == part
    if not wanted.any():
        known = ", ".join(dict.fromkeys(table["problem"]))
        raise ValueError(
            f"no claims about {problem!r}, part {part!r}; there are some about {known}"
        )
    return table[wanted].drop(columns="problem").set_index("writeup")


RIGHT, OTHERWISE, SLIP, UNEXPLAINED = "right", "other assumptions", "a slip", "not explained"
NEAR = 0.03  # a number that no assumption gives, but closer than this to the right one: a slip

# How people call the parts of a model, in (c).
PARTS = {
    "feed-forward": r"ffn|feed[- ]?forward|mlp|swiglu",
    "projections": r"projection",
    "scores": r"score|query[- ]key|\bQK",
    "head": r"head|logits",
}


def judge_accounting(problem: str, edition: Edition = "2025") -> pd.DataFrame:
    """Every claim about a problem with the recorded verdict, the computed one and its cause."""
    rows = []
    for writeup, claim in claims(problem).iterrows():
        verdict, cause = judge_claim(problem, claim["part"], claim["claimed"], edition)
        rows.append(
            {
                "part": claim["part"],
                "writeup": writeup,
                "claimed": claim["claimed"],
                "recorded": claim["verdict"],
                "computed": verdict,
                "cause": cause,
            }
        )
    return pd.DataFrame(rows).set_index(["part", "writeup"])


def judge_claim(
    problem: str, part: str, claimed: str, edition: Edition = "2025"
) -> tuple[str, str]:
    """The verdict on a claim, and in words what makes the difference.

    >>> judge_claim("transformer_accounting", "a", "2127056000")
    ('other assumptions', 'the final norm is left out')
    >>> judge_claim("adamwAccounting", "b", "batch 3")
    ('right', '')
    """
    found = explain(problem, claimed, part, edition).numbers
    if not found:
        return _largest_part(claimed, edition)
    by_cause: dict[str, list[str]] = {}
    verdicts = {RIGHT}
    for each in found:
        verdict, cause = _verdict(each, problem, part, edition)
        verdicts.add(verdict)
        if cause:
            by_cause.setdefault(cause, []).append(each.quoted.text)
    worst = max(verdicts, key=(RIGHT, OTHERWISE, SLIP, UNEXPLAINED).index)
    if len(found) == 1:  # no need to say which number is meant
        return worst, "".join(by_cause)
    return worst, "; ".join(f"{', '.join(texts)}: {cause}" for cause, texts in by_cause.items())


def _verdict(found: Found, problem: str, part: str, edition: Edition) -> tuple[str, str]:
    """The verdict on one number, and why it is what it is: "" where it is what was asked for."""
    if found.explanations:
        changes = found.explanations[0].changes
        return (OTHERWISE, " + ".join(changes)) if changes else (RIGHT, "")
    sizes = SIZES if (problem, part) == ("transformer_accounting", "d") else ("xl",)
    ours = [
        answer.value
        for size in sizes
        for answer in answers(problem, part, asked(problem, part, edition, size)).values()
    ]
    # A number without its unit may be in GB.
    scaled = [found.quoted.value * scale for scale in (1, 1e9)]
    off = min((one / right - 1 for one in scaled for right in ours if right), key=abs)
    if abs(off) > NEAR:
        return UNEXPLAINED, "no stated assumption gives this"
    return SLIP, f"{100 * abs(off):.2g} % too {'much' if off > 0 else 'little'}"


def _largest_part(claimed: str, edition: Edition) -> tuple[str, str]:
    """The verdict on a claim in words: does it name the part that needs most FLOPs?"""
    given = asked("transformer_accounting", "c", edition)
    shares = {
        "feed-forward": "feed-forward layers",
        "projections": "projections",
        "scores": "scores and weighted sums",
        "head": "head",
    }
    found = answers("transformer_accounting", "c", given)
    values = {part: found[f"share of the {name}"].value for part, name in shares.items()}
    named = [part for part, words in PARTS.items() if re.search(words, claimed, re.I)]
    largest = max(values, key=lambda part: values[part])
    if named == [largest]:
        return RIGHT, ""
    share = " and ".join(f"the {part} need {values[part]:.1%}" for part in named) or "none is named"
    return "wrong", f"{share}, the {largest} layers {values[largest]:.1%}"


PROBLEMS = (
    "learning_rate",
    "batch_size_experiment",
    "generate",
    "layer_norm_ablation",
    "pre_norm_ablation",
    "no_pos_emb",
    "swiglu_ablation",
    "main_experiment",
)
POSSIBLE, BELOW, NOT_SHOWN = "possible", "below the floor", "does not show it"
NAMES = {"tinystories": r"TinyStories", "owt": r"OWT"}
ENOUGH = 256  # tokens of a generated text
APART = 30  # the factor between two rates that says no more of the edge than that there is one


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss that a write-up claims, with the length of its tokens."""

    nats: float  # a token
    corpus: str
    bytes_a_token: float

    @property
    def bits_a_byte(self) -> float:
        """The same loss in bits a byte."""
        return bits_a_byte(self.nats, self.bytes_a_token)

    @property
    def if_bits(self) -> float:
        """What the number is in nats a token, if bits a byte were meant."""
        return nats_a_token(self.nats, self.bytes_a_token)

    @property
    def floor(self) -> float:
        """What no model of this size comes below on this text, in bits a byte."""
        return limits(self.corpus).floor

    @property
    def possible(self) -> bool:
        """Whether it is not below the floor."""
        return self.bits_a_byte >= self.floor

    @property
    def why(self) -> str:
        """The comparison in words, and what the number would be in another unit."""
        compared = "at or above" if self.possible else "below"
        said = (
            f"{self.nats:g} nats a token of {self.bytes_a_token:g} bytes are"
            f" {self.bits_a_byte:.2f} bits a byte, {compared} the floor of {self.floor:g}"
        )
        if self.possible:
            return said
        return f"{said}; {self.nats:g} bits a byte would be {self.if_bits:.2f} nats a token"


def judge_runs() -> pd.DataFrame:
    """Every claim about runs, with the recorded verdict, the computed one, and why.

    Where a loss is claimed it is there in both units, beside the floor of its text.
    """
    rows = []
    for problem in PROBLEMS:
        for writeup, claim in claims(problem).iterrows():
            loss = claimed_loss(str(writeup), claim["claimed"])
            verdict, why = _judged_loss(loss) if loss else _judged(claim["claimed"])
            rows.append(
                {
                    "problem": problem,
                    "part": claim["part"],
                    "writeup": writeup,
                    "claimed": claim["claimed"],
                    "recorded": claim["verdict"],
                    "computed": verdict,
                    "nats_a_token": loss.nats if loss else math.nan,
                    "bits_a_byte": loss.bits_a_byte if loss else math.nan,
                    "floor": loss.floor if loss else math.nan,
                    "if_bits": loss.if_bits if loss else math.nan,
                    "why": why,
                }
            )
    return pd.DataFrame(rows).set_index(["problem", "part", "writeup"])


def claimed_loss(writeup: str, claimed: str) -> Loss | None:
    """The loss in a claim; None where it is about something else."""
    found = re.search(r"\bloss (\d+\.\d+)", claimed)
    named = [name for name, look in NAMES.items() if re.search(look, claimed)]
    if not found or not named:
        return None
    return Loss(
        nats=float(found[1]), corpus=named[0], bytes_a_token=token_length(writeup, named[0])
    )


def token_length(writeup: str, corpus: str) -> float:
    """The bytes of a token that a write-up measured on a corpus, or else what is usual there."""
    measured = claims("tokenizer_experiments", "a")
    for claimed in measured.loc[measured.index == writeup, "claimed"]:
        if found := re.search(rf"{NAMES[corpus]} (\d+\.\d+)", claimed):
            return float(found[1])
    return limits(corpus).bytes_a_token


def _judged_loss(loss: Loss) -> tuple[str, str]:
    return (POSSIBLE if loss.possible else BELOW), loss.why


def _judged(claimed: str) -> tuple[str, str]:
    """The verdict on a claim without a loss, and why."""
    rates = [float(rate) for rate in re.findall(r"\b\d+e-?\d+\b", claimed)]
    if len(rates) == 2:
        factor = max(rates) / min(rates)
        verdict = NOT_SHOWN if factor > APART else POSSIBLE
        return verdict, f"{math.log10(factor):.1f} orders of magnitude lie between the two rates"
    if tokens := re.search(r"(\d+) tokens", claimed):
        verdict = POSSIBLE if int(tokens[1]) >= ENOUGH else NOT_SHOWN
        return verdict, f"{tokens[1]} tokens, where {ENOUGH} are asked for"
    if batch := re.search(r"batch (\d+) .*out of memory", claimed):
        need = accounting.peak_bytes(config.tinystories(), int(batch[1])).total / accounting.GB
        return NOT_SHOWN, f"a step with batch {batch[1]} needs about {need:.1f} GB in float32"
    return NOT_SHOWN, "no losses, and no spread between seeds to hold their difference against"
