"""What `check("tokenizer", ...)` encodes and decodes, from tiny to larger.

Each case keeps a few usual mistakes apart. The order matters: the first one that fails is shown.
"""

from functools import lru_cache
from itertools import pairwise

from workbook.checks.bpe_reference import Input, Pair, merge, split_bytes, train
from workbook.checks.text_variants import pretokens
from workbook.checks.tokenizer_reference import (
    BYTES_FIRST,
    GPT2,
    SHUFFLED,
    SPECIALS_FIRST,
    Ids,
    Pieces,
    Setup,
    Text,
    predicted,
)

END = "<|endoftext|>"
STAR = "<|.*|>"
LEARNT_FROM = (
    "the cat ate the hat that the bat had; in the end the other cats gathered there, then left.\n"
    "banana bandana ananas nanny cabana aaaa aaa aaaaaaa abab ababab abcabc bcabca\n\n"
    "It's what we'll do, they'd say: don't! We'RE here in 2026, 2025 and 1999.  Two  spaces, three "
    "  and    four.\n"
    "naïve café über día наука 猫猫狗 한국어 🙂🙂 <|endoftext|> .* the\tthe end\n\n\n"
)
ACROSS = (  # merges across pre-tokens are learnt from these, to show where a text is not cut
    "WE'LL the'LL the  end   the\n\n\nend the\tend the\nend the \n the\u00a0the\u3000the x²x² a²"
    " the_end a_b (the) the!!\r\nend 2026the the2026 x2 ½½ 1½ ١٢٣١٢ é1 猫2 the.* e\u0301e\u0301"
    " हिन्दी हिन्दी the<|endoftext|>the<|end a.b !?! '' 't 's"
)


@lru_cache
def learnt() -> tuple[Pair, ...]:
    """The merges that the vocabularies of the cases share, the last ones across pre-tokens."""
    merges = train(Input((LEARNT_FROM * 2).encode(), 0, ()).with_merges(150))
    line = [symbol for token in pretokens(ACROSS) for symbol in split_bytes(token)]
    for pair in merges:
        line = merge(line, pair)
    tokens = {left + right: (left, right) for left, right in merges}
    for left, right in pairwise(line):
        tokens.setdefault(left + right, (left, right))
    return tuple(tokens.values())


def setup(
    layout: str = BYTES_FIRST,
    special_tokens: tuple[str, ...] | None = None,
    known: tuple[str, ...] | None = None,
) -> Setup:
    """A tokenizer; the vocabulary holds the special tokens, or only those that are `known`."""
    holds = special_tokens if known is None else known
    return Setup(layout, learnt(), holds or (), special_tokens)


@lru_cache
def texts() -> tuple[Text, ...]:
    """The inputs of `encode`."""
    plain, own, gpt2, mixed = map(setup, (BYTES_FIRST, SPECIALS_FIRST, GPT2, SHUFFLED))
    handout = (b"t", b"h"), (b" ", b"c"), (b" ", b"a"), (b"th", b"e"), (b" a", b"t")
    end = (END,)
    two = STAR, END
    nested = "<|a|>", "<|a|><|b|>", "<|b|>", "|c|", "<|c|>"
    return (
        Text(Setup(BYTES_FIRST, handout, (), None), "the cat ate"),
        Text(plain, ""),
        Text(plain, "nat gat"),
        Text(plain, "gathered bananas"),
        Text(plain, "aaaaa aaaaaaa ababa abcab"),
        Text(gpt2, "the other cat"),
        Text(mixed, "the banana that gathered"),
        Text(mixed, "café 猫狗 🙂🙃 naïve"),
        Text(plain, "It's we'll don't 'the' WE'LL"),
        Text(plain, "the  end   the\n\n\nthe\t the \n the\u00a0the \u3000 "),
        Text(own, "in 2026 the19 x²x² ١٢ the_end (the) the!!\r\nend"),
        Text(setup(GPT2, end), f"the{END}the end{END}{END} cat \n{END}\n"),
        Text(setup(BYTES_FIRST, end, known=()), f"the{END}end"),
        Text(setup(SHUFFLED, (), known=end), f"the{END}end"),
        Text(setup(SPECIALS_FIRST, None, known=end), f"the{END} end"),
        Text(setup(GPT2, two), f"a {STAR}b.*{END}c|>{STAR}<|x|>"),
        Text(setup(SPECIALS_FIRST, ("<|pad|>", END)), f"a<|pad|>b{END}the"),
        Text(setup(SHUFFLED, nested), "the<|a|><|b|>the<|a|>end<|b|><|a|><|a|><|b|>|c|<|c|>the"),
        Text(gpt2, LEARNT_FROM.title() + LEARNT_FROM + "हिन्दी e\u0301 \u2028 ½"),
        Text(setup(GPT2, end), f"{LEARNT_FROM}{END}" * 3),
    )


def fresh(layout: str) -> Text:
    """A text of words that no other input holds."""
    return Text(setup(layout), "bathe nettle")


@lru_cache
def id_lists() -> tuple[Ids, ...]:
    """The inputs of `decode`."""
    plain, mixed = setup(), setup(SHUFFLED)
    special = setup(GPT2, (END,), known=())
    ids = mixed.ids()
    cut = [ids[bytes([byte])] for byte in "é猫".encode()]
    broken = [ids[bytes([byte])] for byte in (0x61, 0xC3, 0x62, 0xF0, 0x9F)]
    return (
        Ids(plain, tuple(predicted(Text(plain, "the cat")))),
        Ids(plain, ()),
        Ids(mixed, tuple(cut)),
        Ids(mixed, tuple(predicted(Text(mixed, " the \n")))),
        Ids(special, tuple(predicted(Text(special, f"a {END}the{END}")))),
        Ids(mixed, tuple(broken)),
        Ids(mixed, tuple(predicted(Text(mixed, LEARNT_FROM + "\u00df\U0001f600\r\n")))),
    )


@lru_cache
def streams() -> tuple[Pieces, ...]:
    """The inputs of `encode_iterable`."""
    plain, mixed = setup(), setup(SHUFFLED)
    special = setup(GPT2, (END, "<|endof"))
    lines = LEARNT_FROM.splitlines(keepends=True)
    gaps = "".join(
        f"gathered{' ' * (i % 5)}we'll{END * (i % 2)}the" + "\n" * (i % 4) for i in range(60)
    )
    long = f"{ACROSS}  {LEARNT_FROM}{END}\n\n\n{ACROSS}{gaps}"
    cut_up = (
        (plain, "there gathered"),
        (plain, "we'll they'd"),
        (plain, "the  end   the\n\n\nthe \n"),
        (mixed, "café 猫狗2026!!"),
        (special, f"the{END}end<|endof {END}{END}"),
    )
    return (
        Pieces(plain, ("the cat ", "ate")),
        Pieces(plain, ()),
        Pieces(plain, ("", "the", "", " end", "")),
        *(
            Pieces(one, (text[:at], text[at:]))
            for one, text in cut_up
            for at in range(1, len(text))
        ),
        *(Pieces(one, tuple(text)) for one, text in cut_up),
        Pieces(setup(GPT2, (END,)), tuple(lines)),
        *(
            Pieces(setup(GPT2, (END,)), tuple(long[at : at + n] for at in range(0, len(long), n)))
            for n in (1, 7, 16, 61, 100, 333)
        ),
    )
