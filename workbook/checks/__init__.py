"""The checker of every problem that has one, by id. One file a topic; `base` is what they share."""

from collections.abc import Callable

from workbook.checks.encodings import unicode2
from workbook.checks.tokenizer import tokenizer
from workbook.checks.tokenizer_experiments import (
    tokenizer_experiments,
    train_bpe_expts_owt,
    train_bpe_tinystories,
)
from workbook.checks.train_bpe import train_bpe
from workbook.checks.unicode import unicode1

CHECKS: dict[str, Callable] = {
    checker.__name__: checker
    for checker in (
        unicode1,
        unicode2,
        train_bpe,
        train_bpe_tinystories,
        train_bpe_expts_owt,
        tokenizer,
        tokenizer_experiments,
    )
}
