"""What five public write-ups of the assignment claim, and computed verdicts on it.

`data/reported/claims.csv` has a row for each claim, with a verdict that was recorded by hand. None
is copied here. A number in an accounting problem is looked up among all that the formulas give,
under the assumptions of the problem and under others. A loss in nats per token is converted to bits
per byte, with the bytes per token that the same write-up measured, and compared with the floor of
its text.
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from workbook import accounting, config
from workbook.accounting.answers import answers
from workbook.accounting.assumptions import asked
from workbook.accounting.explain import SIZES, Amount, Found, explain_all
from workbook.config import Edition
from workbook.training.loss_bounds import bits_per_byte, bounds, nats_per_token

# Verdicts on a number of an accounting problem, from the best to the worst.
RIGHT, OTHERWISE, SLIP, UNEXPLAINED = "right", "other assumptions", "a slip", "not explained"
NEAR = 0.03  # a number that no assumption gives, but closer than this to the right one: a slip
PARTS = {  # of a model, as a claim about the largest names them: as in `answers`
    "feed-forward": "feed-forward layers",
    "projections": "projections",
    "scores": "scores and weighted sums",
    "head": "head",
}

# Verdicts on a claim about runs.
POSSIBLE, BELOW, NOT_SHOWN = "possible", "below the floor", "does not show it"
RUNS = (  # the problems of training runs
    "learning_rate",
    "batch_size_experiment",
    "generate",
    "layer_norm_ablation",
    "pre_norm_ablation",
    "no_pos_emb",
    "swiglu_ablation",
    "main_experiment",
)
CORPORA = {"TinyStories": "tinystories", "OWT": "owt"}
# Losses on TinyStories by batch size at equal tokens, in nats per token: one public series with the
# course's model and 327,680,000 tokens, its learning rate tuned once; unverified.
BATCHES = {32: 1.381, 64: 1.438, 128: 1.507}
ENOUGH = 256  # tokens of a generated text
FAR_APART = 30  # two learning rates by this factor only show that there is an edge of stability


@dataclass(frozen=True)
class Claim:
    """A row of the table. `value` and `unit` have its numbers, several separated by semicolons."""

    problem: str
    part: str
    writeup: str  # W0 to W4
    claimed: str  # in the words of the write-up
    value: str = ""
    unit: str = ""  # "nats per token of OWT" says of which text
    verdict: str = ""
    right: str = ""
    why: str = ""

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """Each value with its unit; for a claim without a number, a pair of empty strings."""
        return list(zip(self.value.split("; "), self.unit.split("; "), strict=True))

    @property
    def amounts(self) -> list[Amount]:
        """The numbers of a claim about an accounting problem, each with the words that show it."""
        found = []
        for value, unit in self.numbers:
            written = f"{value} {unit}"
            text = written if written in self.claimed else value
            found.append(Amount.of(value, unit, text if len(self.numbers) > 1 else self.claimed))
        return found

    def recorded(self) -> dict[str, str]:
        """What the tables of verdicts show of it."""
        return {
            "problem": self.problem,
            "part": self.part,
            "writeup": self.writeup,
            "claimed": self.claimed,
            "recorded": self.verdict,
        }


@cache
def all_claims() -> list[Claim]:
    """Every claim of the table."""
    path = config.shipped() / "data" / "reported" / "claims.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [Claim(**row) for row in csv.DictReader(file)]


def claims_about(problem: str, part: str | None = None) -> list[Claim]:
    """The claims about a problem, or one part of it.

    Raises: ValueError if no write-up says anything about it.
    """
    found = [c for c in all_claims() if c.problem == problem and part in (None, c.part)]
    if not found:
        known = ", ".join(dict.fromkeys(claim.problem for claim in all_claims()))
        raise ValueError(
            f"no claims about {problem!r}, part {part!r}; there are some about {known}"
        )
    return found


def claims(problem: str, part: str | None = None) -> pd.DataFrame:
    """The same as a table: part, claimed, verdict, right and why, by write-up."""
    columns = ["part", "claimed", "verdict", "right", "why"]
    return pd.DataFrame(claims_about(problem, part)).set_index("writeup")[columns]


def judge_accounting(problem: str, edition: Edition = "2025") -> pd.DataFrame:
    """Every claim about a problem with the recorded verdict, the computed one and its cause."""
    rows = []
    for claim in claims_about(problem):
        verdict, cause = judge_claim(claim, edition)
        rows.append(claim.recorded() | {"computed": verdict, "cause": cause})
    return pd.DataFrame(rows).drop(columns="problem").set_index(["part", "writeup"])


def judge_claim(claim: Claim, edition: Edition = "2025") -> tuple[str, str]:
    """The verdict on a claim of an accounting problem, and in words what makes the difference.

    >>> judge_claim(Claim("adamwAccounting", "b", "W2", "batch 4", "4", "sequences"))
    ('other assumptions', 'the batch is rounded up')
    """
    if claim.unit == "largest part":
        return _judge_largest_part(claim.value, edition)
    found = explain_all(claim.problem, claim.amounts, claim.part, edition)
    by_cause: dict[str, list[str]] = {}
    verdicts = {RIGHT}
    for each in found:
        verdict, cause = _judge_number(each, claim, edition)
        verdicts.add(verdict)
        if cause:
            by_cause.setdefault(cause, []).append(each.amount.text)
    worst = max(verdicts, key=(RIGHT, OTHERWISE, SLIP, UNEXPLAINED).index)
    if len(found) == 1:  # no need to say which number is meant
        return worst, "".join(by_cause)
    return worst, "; ".join(f"{', '.join(texts)}: {cause}" for cause, texts in by_cause.items())


def _judge_number(found: Found, claim: Claim, edition: Edition) -> tuple[str, str]:
    """The verdict on one number, and why it is what it is: "" where it is what was asked for."""
    if found.explanations:
        changes = found.explanations[0].changes
        return (OTHERWISE, " + ".join(changes)) if changes else (RIGHT, "")
    place = claim.problem, claim.part
    units = {unit for unit, _, slip in found.amount.readings() if not slip}
    ratios = [
        found.amount.value / figure.value
        for size in (SIZES if place == ("transformer_accounting", "d") else ("xl",))
        for figure in answers(*place, asked(*place, edition, size)).values()
        if figure.unit in units and figure.value
    ]
    off = min((ratio - 1 for ratio in ratios), key=abs, default=math.inf)
    if abs(off) > NEAR:
        return UNEXPLAINED, "no stated assumption gives this"
    return SLIP, f"{100 * abs(off):.2g} % too {'high' if off > 0 else 'low'}"


def _judge_largest_part(named: str, edition: Edition) -> tuple[str, str]:
    """The verdict on a claim that one part of the model needs the most FLOPs."""
    place = "transformer_accounting", "c"
    found = answers(*place, asked(*place, edition))
    shares = {part: found[f"share of the {name}"].value for part, name in PARTS.items()}
    largest = max(shares, key=lambda part: shares[part])
    if named == largest:
        return RIGHT, ""
    return (
        "wrong",
        f"{named}: {shares[named]:.1%} of the FLOPs; {largest}: {shares[largest]:.1%}",
    )


def judge_runs() -> pd.DataFrame:
    """Every claim about runs, with the recorded verdict, the computed one, and why.

    A claimed loss is given in both units, beside the floor of its text; `if_bits` is the number in
    nats per token if bits per byte were meant.
    """
    rows = [
        claim.recorded() | (judge_loss(claim) or _judge_run(claim))
        for claim in all_claims()
        if claim.problem in RUNS
    ]
    return pd.DataFrame(rows).set_index(["problem", "part", "writeup"])


def judge_loss(claim: Claim) -> dict[str, Any] | None:
    """The verdict on a claimed loss and why; None if the claim is about something else."""
    value, unit = claim.numbers[0]
    measured, _, text = unit.partition(" of ")
    if measured != "nats per token":
        return None
    corpus, nats = CORPORA[text], float(value)
    length, floor = token_length(claim.writeup, corpus), bounds(corpus).floor
    bits, if_bits = bits_per_byte(nats, length), nats_per_token(nats, length)
    why = (
        f"{nats:g} nats per token of {length:g} bytes are {bits:.2f} bits per byte,"
        f" {'below' if bits < floor else 'at or above'} the floor of {floor:g}"
    )
    if bits < floor:
        why += f"; {nats:g} bits per byte would be {if_bits:.2f} nats per token"
    return {
        "computed": BELOW if bits < floor else POSSIBLE,
        "nats_per_token": nats,
        "bits_per_byte": bits,
        "floor": floor,
        "if_bits": if_bits,
        "why": why,
    }


def token_length(writeup: str, corpus: str) -> float:
    """The bytes per token that a write-up measured on a corpus, or else what is usual there."""
    for claim in claims_about("tokenizer_experiments", "a"):
        for value, unit in claim.numbers if claim.writeup == writeup else ():
            if CORPORA[unit.removeprefix("bytes per token of ")] == corpus:
                return float(value)
    return bounds(corpus).bytes_per_token


def _judge_run(claim: Claim) -> dict[str, str]:
    """The verdict on a claim about runs other than a loss, and why."""
    values, unit = [value for value, _ in claim.numbers], claim.numbers[0][1]
    verdict = NOT_SHOWN
    if unit == "learning rate":
        low, high = sorted(map(float, values))
        verdict = NOT_SHOWN if high / low > FAR_APART else POSSIBLE
        orders = math.log10(high / low)
        why = f"{orders:.1f} orders of magnitude lie between the two learning rates"
    elif unit == "tokens":
        verdict = POSSIBLE if int(values[0]) >= ENOUGH else NOT_SHOWN
        why = f"{values[0]} tokens, where {ENOUGH} are asked for"
    elif unit == "sequences":  # a batch that does not fit into the memory
        need = accounting.peak_bytes(config.tinystories(), int(values[0])).total / accounting.GB
        why = f"a step with batch {values[0]} needs about {need:.1f} GB in float32"
    else:
        why = "no losses, and no spread between seeds to compare their difference with"
    return {"computed": verdict, "why": why}


def reported_ablations() -> dict[str, list[float]]:
    """What public runs with the course's own model report that a change costs, in nats per token.

    They are the increase over the unchanged model's loss on TinyStories after 41 to 328 million
    tokens: single runs, unverified.
    """
    path = config.shipped() / "data" / "reported" / "ablations.csv"
    costs: dict[str, list[float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            costs.setdefault(row["change"], []).append(float(row["nats_per_token"]))
    return costs
