"""Parameters and FLOPs are those worked out by hand; `test_proof` compares them with torch."""

import pandas as pd
import pytest

from workbook import accounting
from workbook.config import GPT2_SHAPES, gpt2, laptop, tinystories


def test_training_takes_three_forward_passes_per_token():
    config = tinystories()
    three_passes = 3 * accounting.forward_flops(config).total
    assert accounting.flops_per_token(config) * config.context_length == three_passes
    assert accounting.step_flops(config, 7) == 7 * three_passes


# The right values of the course's problems, worked out by hand once: not by the code they test.
def test_the_answers_of_transformer_accounting():
    xl = gpt2("xl", "2025")
    assert accounting.parameters(xl).total == 2_127_057_600
    assert accounting.parameters(gpt2("xl", "2026")).total == 1_640_452_800
    sizes = [accounting.forward_flops(gpt2(size, "2025")).total for size in GPT2_SHAPES]
    assert sizes == [349_630_365_696, 1_033_109_504_000, 2_257_754_521_600, 4_513_336_524_800]
    assert accounting.forward_flops(gpt2("xl", "2026")).total == 3_516_769_894_400
    flops = accounting.forward_flops(xl)
    shares = {part: round(100 * flops.share(part), 1) for part in flops.by_part()}
    attention = {"projections": 22.3, "scores + weighted sum": 7.1}
    assert shares == attention | {"feed-forward": 66.9, "head": 3.6}
    longer = accounting.forward_flops(xl, seq=16_384)
    assert longer.total == 149_522_795_724_800
    assert accounting.forward_flops(gpt2("xl", "2026"), seq=16_384).total == 133_577_729_638_400
    assert round(longer.total / flops.total, 1) == 33.1
    assert round(100 * longer.share("scores + weighted sum"), 1) == 55.2


def test_tables_are_shown_by_pandas_and_name_what_they_lack():
    table = accounting.parameters(laptop())
    assert list(pd.DataFrame(table)) == ["name", "part", "formula", "each", "times", "total"]
    assert sum(table.by_part().values()) == pd.DataFrame(table)["total"].sum() == table.total
    with pytest.raises(ValueError, match="no row is called 'w1'; the rows are token_embeddings"):
        table.row("w1")
    with pytest.raises(ValueError, match="no part is called 'ffn'; the parts are embedding"):
        table.share("ffn")
