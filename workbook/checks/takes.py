"""What `check` takes for each written problem, in words: said to whom has nothing to hand in yet.

The checks of chapter 7 say so themselves, beside what they read.
"""

TAKES: dict[tuple[str, str | None], str] = {
    ("unicode1", "a"): 'a code point, such as "U+0041", or a sentence',
    ("unicode1", "b"): "the repr, or a sentence",
    ("unicode1", "c"): "the length of such a text, or a sentence",
    ("unicode2", "a"): "a sentence or two",
    ("unicode2", "b"): "bytes on which the function fails",
    ("unicode2", "c"): "two bytes, such as bytes([0x68, 0x69])",
    ("train_bpe_tinystories", "a"): 'the longest token as bytes, such as b" hello", or a sentence',
    ("train_bpe_tinystories", "b"): "a sentence: the slowest step, and how you know",
    ("train_bpe_expts_owt", "a"): 'the longest token as bytes, such as b" hello", or a sentence',
    ("train_bpe_expts_owt", "b"): "a sentence or two",
    ("tokenizer_experiments", "a"): "a number of bytes per token, or a sentence",
    ("tokenizer_experiments", "b"): "a number of bytes per token, or a sentence",
    ("tokenizer_experiments", "c"): "a pair, bytes per second and hours, or a sentence",
    ("tokenizer_experiments", "d"): "a sentence",
    ("transformer_accounting", "a"): "a number of parameters, such as 124e6, or a sentence",
    ("transformer_accounting", "b"): "a number of FLOPs, such as 3.5e12, or a sentence",
    ("transformer_accounting", "c"): 'a part in words, such as "the output head"',
    ("transformer_accounting", "d"): "a sentence or two",
    ("transformer_accounting", "e"): "a number of FLOPs, such as 5e13, or a sentence",
    ("adamwAccounting", "a"): "a number of bytes, or the formula in words",
    ("adamwAccounting", "b"): "a batch size, or a sentence",
    ("adamwAccounting", "c"): "FLOPs, for each parameter or for the step, or a sentence",
    ("adamwAccounting", "d"): 'a time with its unit, such as "12 days", or a sentence',
    ("learning_rate_tuning", None): "a dict of losses, such as {10: [...], 100: [...]}, or a"
    " sentence",
    ("generate", None): "the text and what you say of it, its ids, or its number of tokens",
}
