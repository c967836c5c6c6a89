"""What is asked of an answer beyond its words is found there, or named."""

import pytest

from workbook.study.answers import QUANTITIES, complaints
from workbook.study.problems import PROBLEMS

STORY = " ".join(["Once upon a time there was a little dog who ran to the park."] * 20)


def test_every_quantity_that_is_required_is_known():
    required = [each for problem in PROBLEMS.values() for each in problem.requires.values()]
    assert {kind for each in required for kind in each.quantities} == set(QUANTITIES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"> {STORY}\n\nFluent.", None),
        (f"```\n{STORY}\n```\n\nFluent.", None),
        ("> A dog ran.\n\nIt stopped at its end token.", None),
        ("```\nA dog ran.<|endoftext|>\n```", None),
        ("> A dog ran to the park.\n\nFluent.", "about 8 tokens"),
        (f"It wrote 60 tokens.\n\n> {STORY}", "60 tokens, asked are 256"),
        ("I asked for 256 tokens.\n\n> A dog ran to the park.", "about 8 tokens"),
    ],
)
def test_a_generated_text_is_long_enough_or_ends_by_itself(text, said):
    found = complaints("generate", "", text, 0)
    assert (not found) if said is None else said in found[0]


@pytest.mark.parametrize(
    ("problem", "part", "text", "figures", "said"),
    [
        ("no_pos_emb", "", "RoPE is better.", 0, "it shows no figure"),
        ("no_pos_emb", "", "RoPE is better.", 1, None),
        ("batch_size_experiment", "", "From 1, over 64, to 1,128.", 1, "it does not name 128"),
        ("batch_size_experiment", "", "From 1, over 64 and 128, to 512.", 1, None),
        ("learning_rate", "a", "The best loss is 2.31.", 1, "lowest loss is 2.31, asked is 2"),
        ("learning_rate", "a", "Validation loss fell from 4.10 at once: loss 1.44.", 1, None),
        ("leaderboard", "", "We did our best.", 1, "it names no loss"),
        ("train_bpe_tinystories", "a", "3.8 s at 47 MB; the longest is ` Everything`.", 0, None),
        ("train_bpe_tinystories", "a", "Fast, in 47 MB.", 0, "it names no time"),
        ("tokenizer_experiments", "c", "0.49 MB/s; the Pile takes 40.5 days.", 0, None),
        ("tokenizer_experiments", "c", "It takes 40.5 days.", 0, "no rate in bytes per second"),
        ("unicode2", "c", r"`b'\xc3\x28'` is none.", 0, None),
        ("unicode2", "c", "0xC3 0x28 is none.", 0, None),
        ("unicode2", "b", '`"naïve".encode()`: the ï is two bytes.', 0, None),
        ("unicode2", "c", "Two bytes are none.", 0, "it names no example in bytes"),
        ("unicode1", "a", "", 0, None),
    ],
)
def test_what_is_missing_is_named(problem, part, text, figures, said):
    found = complaints(problem, part, text, figures)
    assert (not found) if said is None else said in found[0]
