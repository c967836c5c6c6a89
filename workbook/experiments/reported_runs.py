"""What published write-ups claim about their training runs, and whether it can be.

Nobody's verdict is copied. A loss in nats a token is turned into bits a byte, with the length that
the same write-up measured for its tokens, and held against the floor of its text.
"""

import math
import re
from dataclasses import dataclass

import pandas as pd

from workbook import accounting, config
from workbook.experiments.claims import claims
from workbook.training.loss_bounds import bits_a_byte, limits, nats_a_token

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
