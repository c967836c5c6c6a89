"""The compiled engine behind `train_bpe` and `Tokenizer`: what `pretokens`, `bpe` and `tokenizer`
say in plain Python, over bytes and arrays, with the same results.

    machine   memory by address                     scan    where pre-tokens end
    table     pre-token -> number                   text    files as padded, checked spans
    count     how often each pre-token occurs       merge   merges from counts
    encode    text to ids

Read them in this order. Nothing compiles at import: the first call does, once, and says so.
"""
