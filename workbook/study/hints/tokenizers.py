"""Chapter 2: Unicode and tokenizers."""

HINTS: dict[str, tuple[str, str]] = {
    "unicode1": (
        "Type `chr(0)` alone in a cell, then `print(chr(0))`, then `len(chr(0))`. Which of the "
        "three outputs do you trust, and why?",
        "A character that nobody can see is still a character. A cell shows the `repr`, which "
        "spells it out as an escape; `print` hands the character itself to the screen. "
        "`unicodedata` and the ASCII table know its name.",
    ),
    "unicode2": (
        "Encode one English, one Chinese and one emoji text in all three encodings, and look at "
        "the bytes, not only at their number. For (b) and (c): which first bytes in UTF-8 need "
        "company?",
        "Look for the zeros: the wide encodings are full of them, and two extra or four extra "
        "bytes at the front say in which order the bytes come. In UTF-8 every byte above 7F is "
        "part of a longer character. Bytes 80 to BF only ever continue one, and C2 to F4 only ever "
        "begin one.",
    ),
    "train_bpe": (
        "Make it right on one line of text before you make it fast: count the pre-tokens, keep "
        "each as a tuple of bytes with its count, and write the loop that merges the most frequent "
        "pair. Where must the text be cut before you count anything?",
        "Split at the special tokens first, then by the pattern. Choose the pair with "
        "`max(counts, key=lambda pair: (counts[pair], pair))`, which breaks ties as asked. For "
        "speed, note which pre-tokens contain which pair: a merge changes the counts only inside "
        "those, so take their old pairs away and add the new ones.",
    ),
    "train_bpe_tinystories": (
        "Measure twice: once for the time, once under a profiler. When your counting runs in child "
        "processes, whose memory and whose time does your measurement see?",
        "Add up the memory of the whole tree of processes, and profile a run that counts in one "
        "process: the parent of a pool only waits. Sort the vocabulary by length in bytes, and "
        "remember that a leading space is part of a token.",
    ),
    "train_bpe_expts_owt": (
        "Look at the longest ten tokens as bytes, not as text. Would a person have written them?",
        "Web pages contain rulers made of hyphens, and text that was decoded with the wrong "
        "encoding and encoded again, which doubles its bytes. To compare the tokenizers, look at "
        "what each has as one token that the other has to spell out.",
    ),
    "tokenizer": (
        "Write `decode` first: join the bytes, and decode once at the end. For `encode`, take one "
        "pre-token: which of its pairs has to be merged first?",
        "Give each merge its rank. Inside a pre-token, merge the pair of lowest rank until none is "
        "left. Split off special tokens first, with a pattern that tries the longest one first. "
        "In `encode_iterable` the last pre-token of a piece may go on in the next piece: keep it "
        "back until you know.",
    ),
    "tokenizer_experiments": (
        "Which way round is the ratio? Think about what a better tokenizer does to your figure. "
        "And for `uint16`: what is the largest id that you have to store?",
        "Bytes per token: the length of the encoded text divided by the number of ids. For the "
        "Pile, 825 GB are 825 · 10⁹ bytes; divide by bytes per second, then by 3,600. Two bytes an "
        "id hold 65,536 different values, and both vocabularies are smaller than that.",
    ),
}
