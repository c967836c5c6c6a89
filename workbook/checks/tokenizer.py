"""The check of the class `Tokenizer`: encode, decode, encode_iterable, from_files.

Each method is an exercise of its own, and the four share one reference. What nearly every text and
every tokenizer needs is ordinary use. An empty list of special tokens, one that the vocabulary
lacks, ids in no order, and a stream that is cut inside a token are corners.
"""

import inspect
import json
import operator
import random
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, cycle, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workbook.checks.calling import bind
from workbook.checks.engine import Exercise, Program, judge, mistake, shrink, shrink_list
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.pretokens import CUTTING, FOUND, LINE_ENDS, READING, decode, pretokens
from workbook.checks.verdicts import (
    Findings,
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_class,
    is_stub,
    kind_of,
    shown,
)
from workbook.tokenization.bpe import Pair, merge_pair, train_incremental
from workbook.tokenization.gpt2_files import byte_alphabet, to_readable

SIGNATURE = "class Tokenizer with Tokenizer(vocab, merges, special_tokens=None)"
QUICK, LONG = 5.0, 20.0  # seconds that a short text and a long one may take
REPLACED = "\ufffd"
END = "<|endoftext|>"
# What the corners are about.
NO_SPECIALS = "an empty list of special tokens"
LACKING = "a special token that the vocabulary lacks"
NO_ORDER = "a vocabulary whose ids are not in the order of the merges"
LINES = "blank lines in a row, or indented lines"
CUTS = "pieces that are cut inside a token"
EMPTY = "no pieces, or empty ones"
CORNERS = NO_SPECIALS, LACKING, NO_ORDER, LINES, CUTS, EMPTY

# What is encoded and decoded, and the tokenizer that does it.

LAYOUTS: dict[str, Callable[[list[bytes], list[bytes]], list[bytes]]] = {
    "the 256 bytes, merges, special tokens": lambda tokens, specials: [*tokens, *specials],
    "special tokens, the 256 bytes, merges": lambda tokens, specials: [*specials, *tokens],
    "GPT-2's: visible bytes first, the others, merges, special tokens": lambda tokens, specials: [
        *sorted(tokens[:256], key=lambda token: byte_alphabet()[token[0]]),
        *tokens[256:],
        *specials,
    ],
    "in no order": lambda tokens, specials: random.Random(336).sample(
        [*tokens, *specials], len(tokens) + len(specials)
    ),
}
BYTES_FIRST, SPECIALS_FIRST, GPT2, SHUFFLED = LAYOUTS


class Setup(NamedTuple):
    """What a tokenizer is made of."""

    layout: str  # how the ids are given out: a key of `LAYOUTS`
    merges: tuple[Pair, ...]
    known: tuple[str, ...]  # the special tokens that the vocabulary holds
    special_tokens: tuple[str, ...] | None

    @lru_cache  # noqa: B019 - setups are few and stay
    def vocab(self) -> dict[int, bytes]:
        """The vocabulary that is handed to the learner's class."""
        tokens = [bytes([byte]) for byte in range(256)]
        tokens += [left + right for left, right in self.merges]
        return dict(enumerate(LAYOUTS[self.layout](tokens, [t.encode() for t in self.known])))

    @lru_cache  # noqa: B019
    def ids(self) -> dict[bytes, int]:
        """The id of each token; special tokens that the vocabulary lacks get the next free ids."""
        ids = {token: token_id for token_id, token in self.vocab().items()}
        for token in self.specials():
            ids.setdefault(token.encode(), len(ids))
        return ids

    def specials(self) -> tuple[str, ...]:
        """The special tokens, none where the argument is None."""
        return self.special_tokens or ()

    def lacking(self) -> list[str]:
        """The special tokens that the vocabulary lacks."""
        return [token for token in self.specials() if token not in self.known]


class Text(NamedTuple):
    """An input of `encode`."""

    setup: Setup
    text: str
    what: str = ""  # its kind, told where it fails


class Pieces(NamedTuple):
    """An input of `encode_iterable`."""

    setup: Setup
    pieces: tuple[str, ...]
    what: str = ""

    @property
    def text(self) -> str:
        """The pieces joined."""
        return "".join(self.pieces)


class Ids(NamedTuple):
    """An input of `decode`."""

    setup: Setup
    ids: tuple[int, ...]
    what: str = ""


Case = Text | Pieces | Ids
METHOD = {Text: "encode", Pieces: "encode_iterable", Ids: "decode"}

# The reference.


def cut_specials(text: str, tokens: Sequence[str]) -> list[tuple[str, bool]]:
    """The text cut at its special tokens, each part with whether it is one; the longest wins."""
    if not tokens:
        return [(text, False)]
    pattern = "|".join(map(regex.escape, sorted(tokens, key=len, reverse=True)))
    parts = regex.split(f"({pattern})", text)
    return [(part, at % 2 == 1) for at, part in enumerate(parts) if part]


def merged(data: bytes, ranks: dict[Pair, int], ids: dict[bytes, int]) -> list[bytes]:
    """The tokens of a pre-token: the earliest merge that applies, again and again."""
    symbols = [bytes([byte]) for byte in data]
    for _ in data:
        pairs = [pair for pair in pairwise(symbols) if pair in ranks]
        if not pairs:
            break
        symbols = merge_pair(symbols, min(pairs, key=ranks.get))
    return symbols


def encoded(case: Text) -> list[int]:
    """The ids of a text."""
    ids, tokens = case.setup.ids(), case.setup.specials()
    ranks = {pair: rank for rank, pair in enumerate(case.setup.merges)}
    result = []
    for part, special in cut_specials(decode(case.text.encode()), tokens):
        if special:
            result.append(ids[part.encode()])
            continue
        for token in pretokens(part):
            symbols = merged(token.encode(), ranks, case.setup.ids())
            result += [ids[symbol] for symbol in symbols]
    return result


def decoded(case: Ids) -> str:
    """The text of ids; malformed bytes become U+FFFD."""
    token_of = {token_id: token for token, token_id in case.setup.ids().items()}
    tokens = [token_of[token_id] for token_id in case.ids]
    return b"".join(tokens).decode("utf-8", errors="replace")


def texts_of(pieces: Sequence[str], tokens: Sequence[str]) -> Sequence[str]:
    """The texts that are encoded one after the other."""
    return ["".join(pieces)]


def streamed(case: Pieces) -> list[int]:
    """The ids of the joined pieces."""
    texts = texts_of(case.pieces, case.setup.specials())
    return [token_id for text in texts for token_id in ids_of_text(case.setup, text)]


@lru_cache(maxsize=4096)
def ids_of_text(setup: Setup, text: str) -> list[int]:
    """The right ids of a text."""
    return encoded(Text(setup, text))


# Mistakes, and what they do where it is no single line.


def longest_match(data: bytes, ids: dict[bytes, int]) -> list[bytes]:
    """The longest token of the vocabulary at each place."""
    tokens = []
    while data:
        tokens.append(next(data[:n] for n in range(len(data), 0, -1) if data[:n] in ids))
        data = data[len(tokens[-1]) :]
    return tokens


def once(symbols: list[bytes], pair: Pair, last: bool = False) -> list[bytes]:
    """The symbols with the pair joined at its first place only, or at its last."""
    places = [at for at, found in enumerate(pairwise(symbols)) if found == pair]
    for at in places[-1:] if last else places[:1]:
        return [*symbols[:at], b"".join(pair), *symbols[at + 2 :]]
    return symbols


def swept(symbols: list[bytes], ranks: dict[Pair, int], growing: bool) -> list[bytes]:
    """One pass from left to right that joins whatever it can, also a symbol that just grew."""
    result, grew = [], False
    for symbol in symbols:
        if result and (result[-1], symbol) in ranks and (growing or not grew):
            result[-1] += symbol
            grew = True
        else:
            result.append(symbol)
            grew = False
    return result


BYTES = "symbols = [bytes([byte]) for byte in data]"
MERGE = "symbols = merge_pair(symbols, min(pairs, key=ranks.get))"
FIRST = "min(pairs, key=ranks.get)"
WORDS = (
    mistake("Each token is the longest one in the vocabulary that matches. BPE applies the merges "
            "in the order in which they were learnt, which may give shorter tokens.",
            BYTES, "return longest_match(data, ids)"),
    mistake("The leftmost pair that can be merged was merged first: it is the earliest merge of "
            "the list that goes first, wherever in the word it applies.",
            MERGE, "symbols = once(symbols, pairs[0])"),
    mistake("Merges were applied in one sweep from left to right: apply the earliest merge of the "
            "list that fits, then look again, until none fits.",
            MERGE, "return swept(symbols, ranks, True)"),
    mistake("There was only one pass over the word: look again after merging, until no merge fits.",
            MERGE, "return swept(symbols, ranks, False)"),
    mistake("Merges were applied in the order of their place in the word: the earliest merge of "
            "the list goes first.",
            MERGE, "symbols = swept(symbols, ranks, False)"),
    mistake("Only one merge was applied to each word: go on until no merge fits.",
            MERGE, "return merge_pair(symbols, min(pairs, key=ranks.get))"),
    mistake("Each merge was applied at one place of the word only: it applies wherever its pair "
            "is.",
            BYTES, f"{BYTES}\nfor pair in ranks:\n    symbols = once(symbols, pair)\n"
            "return symbols"),
    mistake("No merge was applied: the ids are those of single bytes.",
            BYTES, "return [bytes([byte]) for byte in data]"),
    mistake("A word that is no token as a whole fell apart into bytes: apply the merges to it.",
            BYTES, "return [data] if data in ids else [bytes([byte]) for byte in data]"),
    mistake("The latest merge was applied first: it is the earliest of the list that goes first.",
            FIRST, "max(pairs, key=ranks.get)"),
    mistake("The id of the merged token was taken for the rank of the merge: the order of `merges` "
            "counts, and ids may be in any order.",
            FIRST, 'min(pairs, key=lambda pair: ids[b"".join(pair)])'),
    mistake("The merge that makes the longest token was applied first: it is the earliest of the "
            "list that goes first.",
            FIRST, 'min(pairs, key=lambda pair: (-len(b"".join(pair)), ranks[pair]))'),
    mistake("Equal pairs were merged from right to left: aaa becomes aa a.",
            MERGE, "symbols = once(symbols, min(pairs, key=ranks.get), last=True)"),
    mistake("Words were split into characters: BPE starts from bytes, and é or 猫 is several of "
            "them.",
            BYTES, "symbols = [character.encode() for character in data.decode()]"),
)  # fmt: skip


def one_after_another(text: str, tokens: Sequence[str]) -> list[tuple[str, bool]]:
    """The text cut at each special token in turn."""
    parts = [(text, False)]
    for token in tokens:
        cuts = [[each] if each[1] else cut_specials(each[0], [token]) for each in parts]
        parts = [part for cut in cuts for part in cut]
    return parts


def counted_up(setup: Setup, lead: int, merges: bool = True) -> dict[bytes, int]:
    """Ids that are not looked up: the byte b is `lead` + b, and merge i comes after the bytes."""
    ids = {bytes([byte]): lead + byte for byte in range(256)}
    if merges:
        ids |= {b"".join(pair): lead + 256 + rank for rank, pair in enumerate(setup.merges)}
    return setup.ids() | ids


NONE, ALL, IDS = "if not tokens:", "tokens = case.setup.ids(), case.setup.specials()", "ids, tokens"
ESCAPED, SORTED = "map(regex.escape, sorted(", "sorted(tokens, key=len, reverse=True)"
GROUP, KEPT = 'f"({pattern})"', "enumerate(parts) if part]"
LONGEST = "Of special tokens that overlap, the longest wins: "
STRIPPED = "White space beside a special token was stripped: it belongs to the text."
EMPTY_PATTERN = (
    "An empty list of special tokens became an empty pattern, which splits the text at every "
    "character: split only where there are special tokens."
)
VOCAB = "Ids come from the vocabulary, whose order is free: "
APPEND = "Special tokens that the vocabulary lacks must be appended to it."
SPECIALS = (
    mistake("Special tokens were encoded like ordinary text: cut the text at them first, and give "
            "each its own id.",
            NONE, "if True:"),
    mistake("The special tokens went into the regular expression unescaped, where `|`, `.` or `*` "
            "are operators: use `re.escape`.",
            "map(regex.escape, sorted(tokens, key=len, reverse=True))", SORTED,
            "at % 2 == 1", "part in tokens"),
    mistake(LONGEST + "sort them by length, longest first, before you join them to a pattern.",
            SORTED, "tokens"),
    mistake(LONGEST + "the text was cut at one after the other; cut at all of them in one pass.",
            NONE, f"if len(tokens) > 1:\n    return one_after_another(text, tokens)\n{NONE}"),
    mistake("Only the first of the special tokens was treated as special.", ALL, ALL + "[:1]"),
    mistake("Only the last of the special tokens was treated as special.", ALL, ALL + "[-1:]"),
    mistake("Only <|endoftext|> was treated as special: use the list `special_tokens`.",
            ALL, f"{ALL}\ntokens = [token for token in tokens if token == END]"),
    mistake("<|endoftext|> was treated as special though it is not in `special_tokens`: then it is "
            "ordinary text, even if the vocabulary holds it.",
            ALL, f"{ALL}\ntokens = [*tokens, *({{END}} & {{*case.setup.known}})]"),
    mistake("The special tokens are missing from the ids: split with a group, `(...)`, keeps them.",
            KEPT, "enumerate(parts) if part and at % 2 == 0]"),
    mistake(STRIPPED, "(part, at % 2 == 1)", "(part if at % 2 else part.strip(), at % 2 == 1)"),
    mistake(STRIPPED, GROUP, r'rf"\s*({pattern})\s*"'),
    mistake("Only the first special token of the text was found: it may hold many.",
            GROUP + ", text", GROUP + ", text, maxsplit=1"),
    mistake("Special tokens were found only where white space stands around them: they count "
            "anywhere, also inside a word.",
            GROUP, r'rf"(?<!\S)({pattern})(?!\S)"'),
    mistake(EMPTY_PATTERN,
            "return [(text, False)]", "return [(character, False) for character in text]"),
    mistake(EMPTY_PATTERN,
            "in pretokens(part)",
            "in (part if case.setup.special_tokens == () else pretokens(part))"),
    mistake(VOCAB + "here the byte b was given the id b, and merge i the id 256 + i.",
            ALL, f"{ALL}\nids = counted_up(case.setup, 0)"),
    mistake(VOCAB + "here the byte b was given the id b.",
            ALL, f"{ALL}\nids = counted_up(case.setup, 0, merges=False)"),
    mistake(VOCAB + "here the special tokens were thought to come first, then the bytes and "
            "merges.",
            ALL, f"{ALL}\nids = counted_up(case.setup, len(tokens))"),
    mistake(APPEND,
            ALL, f"{ALL}\nids = {{token: i for i, token in case.setup.vocab().items()}}"),
    mistake(APPEND, ALL, f"{ALL}\ntokens = [t for t in tokens if t in case.setup.known]"),
)  # fmt: skip

JOINED = 'b"".join(tokens).decode("utf-8", errors="replace")'
BY_ITSELF = "Each token was decoded by itself: a character may be spread over several tokens. "
DECODING = (
    mistake(BY_ITSELF + "Join all the bytes first, then decode once.",
            JOINED, '"".join(token.decode("utf-8", errors="replace") for token in tokens)'),
    mistake(BY_ITSELF + "What is no whole character was dropped. Join all the bytes first, then "
            'decode once, with `errors="replace"`.',
            JOINED, '"".join(token.decode("utf-8", errors="ignore") for token in tokens)'),
    mistake(BY_ITSELF + "Join all the bytes first, then decode once.",
            JOINED, '"".join(token.decode("utf-8") for token in tokens)'),
    mistake('Malformed bytes were dropped (`errors="ignore"`): they become U+FFFD, '
            '`errors="replace"`.',
            'errors="replace"', 'errors="ignore"'),
    mistake("Ids may stand for bytes that are no UTF-8, and decoding them raises an error: use "
            '`errors="replace"`, which gives U+FFFD.',
            'errors="replace"', 'errors="strict"'),
    mistake('Malformed bytes were written as \\x..: they become U+FFFD, `errors="replace"`.',
            'errors="replace"', 'errors="backslashreplace"'),
    mistake("The bytes were decoded as Latin-1, or one by one with `chr`: they are UTF-8.",
            '"utf-8"', '"latin-1"'),
    mistake("The tokens were joined with spaces: the spaces are part of the tokens.",
            'b"".join', 'b" ".join'),
    mistake("White space at the ends was stripped: the text must come back as it was.",
            JOINED, JOINED + ".strip()"),
    mistake("The special tokens are missing from the text: they are decoded like the others.",
            "for token_id in case.ids",
            "for token_id in case.ids if token_of[token_id].decode(errors='replace') not in "
            "case.setup.specials()"),
)  # fmt: skip


def held_back(pattern: str, pieces: Sequence[str]) -> list[str]:
    """What stands before the last match of a pattern, each time; the rest is kept for later."""
    texts, kept = [], ""
    for piece in pieces:
        kept += piece
        *_, at = (0, *(match.start() for match in regex.finditer(pattern, kept)))
        texts.append(kept[:at])
        kept = kept[at:]
    return [*texts, kept]


def last_part(cut: Callable[[str], list[str]], pieces: Sequence[str]) -> list[str]:
    """All but the last part of what came so far, each time, as far as `cut` sees the parts."""
    texts, kept = [], ""
    for piece in pieces:
        *done, kept = cut(kept + piece) or [""]
        texts += done
    return [*texts, kept]


def parts_of(text: str, tokens: Sequence[str]) -> list[str]:
    """The pre-tokens and special tokens of a text."""
    parts = cut_specials(text, tokens)
    return [each for part, special in parts for each in ([part] if special else pretokens(part))]


WHOLE = '["".join(pieces)]'
LAST_ONLY = (
    "Only the last pre-token was kept back: that is not enough for a contraction such as 'll, nor "
    "for a special token, that comes in two parts."
)
STREAMING = (
    mistake("Each piece was encoded by itself. A cut may go through a word, a run of white space, "
            "a contraction or a special token: keep back the end that the next piece may still "
            "change.",
            WHOLE, "pieces"),
    mistake("The pieces were stripped: their white space is text.",
            WHOLE, "[piece.strip() for piece in pieces]"),
    mistake("A line end was added to each piece: the pieces are the text.",
            WHOLE, r'[f"{piece}\n" for piece in pieces]'),
    mistake("The pieces were split into words, and their spaces are lost.",
            WHOLE, "[word for piece in pieces for word in piece.split()]"),
    mistake("The pieces were joined with spaces.", WHOLE, '[" ".join(pieces)]'),
    mistake("The pieces were joined with line ends.", WHOLE, r'["\n".join(pieces)]'),
    mistake("The text was cut at the last white space: in a run of spaces or line ends, all but "
            "the last one belong together, and a special token may hold a space.",
            WHOLE, r'held_back(r"\s", pieces)'),
    mistake("The text was cut behind the last line end: several line ends in a row are one run.",
            WHOLE, r'held_back(r"(?<=\n)", pieces)'),
    mistake(LAST_ONLY, WHOLE, "last_part(pretokens, pieces)"),
    mistake(LAST_ONLY, WHOLE, "last_part(lambda text: parts_of(text, tokens), pieces)"),
    mistake("What was kept back at the end was never encoded: do so when the pieces are used up.",
            WHOLE, r'held_back("[ \n]", pieces)[:-1]'),
    mistake("The last piece was never encoded.", WHOLE, '["".join(pieces[:-1])]'),
    mistake("Only the first piece was encoded: a `return` stands inside the loop.",
            WHOLE, "pieces[:1]"),
)  # fmt: skip

# The cases. Each keeps a few usual mistakes apart; the first that fails is told.

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
# As in most files: no two blank lines in a row, and no line that begins with a space.
ORDINARY = tuple(f"{LEARNT_FROM.rstrip()}\n".splitlines(keepends=True))


@lru_cache
def learnt() -> tuple[Pair, ...]:
    """The merges that the vocabularies of the cases share, the last ones across pre-tokens."""
    merges = train_incremental(Counter(pretokens(LEARNT_FROM * 2)), 150)
    line = [bytes([byte]) for token in pretokens(ACROSS) for byte in token.encode()]
    for pair in merges:
        line = merge_pair(line, pair)
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


PLAIN, OWN, AS_GPT2, MIXED = map(setup, LAYOUTS)
HANDOUT = (b"t", b"h"), (b" ", b"c"), (b" ", b"a"), (b"th", b"e"), (b" a", b"t")
NESTED = "<|a|>", "<|a|><|b|>", "<|b|>", "|c|", "<|c|>"
OUTSIDE, MARKED = "characters outside ASCII", "special tokens"
TEXTS = (
    Text(Setup(BYTES_FIRST, HANDOUT, (), None), "the cat ate"),
    Text(PLAIN, "", "an empty text"),
    Text(PLAIN, "nat gat"),
    Text(PLAIN, "gathered ban\nanas"),
    Text(PLAIN, "aaaaa aaaaaaa ababa abcab"),
    Text(AS_GPT2, "the other cat"),
    Text(OWN, "the banana that gathered"),
    Text(AS_GPT2, "café 猫狗 🙂🙃 naïve", OUTSIDE),
    Text(PLAIN, "It's we'll don't 'the' WE'LL"),
    Text(PLAIN, "the  end   the\n\n\nthe\t the \n the\u00a0the \u3000 "),
    Text(OWN, "in 2026 the19 x²x² ١٢ the_end (the) the!!\r\nend"),
    Text(setup(GPT2, (END,)), f"the{END}the end{END}{END} cat \n{END}\n", MARKED),
    Text(setup(SPECIALS_FIRST, None, known=(END,)), f"the{END} end"),
    Text(setup(GPT2, (STAR, END)), f"a {STAR}b.*{END}c|>{STAR}<|x|>", MARKED),
    Text(setup(SPECIALS_FIRST, ("<|pad|>", END)), f"a<|pad|>b{END}the", MARKED),
    Text(setup(GPT2, NESTED), "the<|a|><|b|>the<|a|>end<|b|><|a|><|a|><|b|>|c|<|c|>the", MARKED),
    Text(AS_GPT2, LEARNT_FROM.title() + LEARNT_FROM + "हिन्दी e\u0301 \u2028 ½", OUTSIDE),
    Text(setup(GPT2, (END,)), f"{LEARNT_FROM}{END}" * 3, MARKED),
)
ODD_TEXTS = (
    Text(setup(BYTES_FIRST, (), known=(END,)), f"the{END}end", NO_SPECIALS),
    Text(setup(BYTES_FIRST, (END,), known=()), f"the{END}end", LACKING),
    Text(MIXED, "the banana that gathered", NO_ORDER),
    Text(MIXED, "café 猫狗 anana", NO_ORDER),
)
FRESH = tuple(Text(one, "bathe nettle") for one in (MIXED, PLAIN))  # words of no other case


def ids_case(one: Setup, text: str | bytes, what: str = "") -> Ids:
    """The ids of a text, or of single bytes, to decode."""
    ids = ids_of_text(one, text) if isinstance(text, str) else [one.ids()[bytes([b])] for b in text]
    return Ids(one, tuple(ids), what)


ID_LISTS = (
    ids_case(PLAIN, "the cat"),
    ids_case(PLAIN, ""),
    ids_case(AS_GPT2, "é猫".encode()),
    ids_case(AS_GPT2, " the \n"),
    ids_case(setup(GPT2, (END,)), f"a {END}the{END}"),
    ids_case(AS_GPT2, bytes([0x61, 0xC3, 0x62, 0xF0, 0x9F])),
    ids_case(MIXED, LEARNT_FROM + "\u00df\U0001f600\r\n"),
)
ODD_ID_LISTS = (ids_case(setup(GPT2, (END,), known=()), f"a {END}the{END}", LACKING),)


def blocks(text: str, size: int) -> tuple[str, ...]:
    """The text cut into blocks of one size."""
    return tuple(text[at : at + size] for at in range(0, len(text), size))


GAPS = "".join(
    f"gathered{' ' * (i % 5)}we'll{END * (i % 2)}the" + "\n" * (i % 4) for i in range(60)
)
CUT_UP = (
    (PLAIN, "there gathered"),
    (PLAIN, "we'll they'd"),
    (PLAIN, "the  end   the\n\n\nthe \n"),
    (MIXED, "café 猫狗2026!!"),
    (setup(GPT2, (END, "<|endof")), f"the{END}end<|endof {END}{END}"),
)
STREAMS = (
    Pieces(PLAIN, ("the cat\n", "ate\n")),
    Pieces(PLAIN, ("the cat ate the hat",)),
    Pieces(setup(GPT2, (END,)), ORDINARY),
    Pieces(setup(SPECIALS_FIRST, (END,)), (f"the end\n{END}\n", "\n", "then\n", f"{END}\n") * 2),
    Pieces(AS_GPT2, ORDINARY * 3),
)
ODD_STREAMS = (
    Pieces(PLAIN, ("the\n", "\n", "\n", "end\n"), LINES),
    Pieces(PLAIN, ("the\n", "  end\n", "   the\n"), LINES),
    Pieces(setup(GPT2, (END,)), tuple(LEARNT_FROM.splitlines(keepends=True)) * 2, LINES),
    Pieces(setup(GPT2, (END,)), tuple(GAPS.splitlines(keepends=True)), LINES),
    Pieces(PLAIN, ("the cat ", "ate"), CUTS),
    *(
        Pieces(one, (text[:at], text[at:]), CUTS)
        for one, text in CUT_UP
        for at in range(1, len(text))
    ),
    *(Pieces(one, tuple(text), CUTS) for one, text in CUT_UP),
    *(
        Pieces(setup(GPT2, (END,)), blocks(f"{ACROSS}  {LEARNT_FROM}{END}\n\n\n{GAPS}", n), CUTS)
        for n in (1, 7, 16, 61, 100, 333)
    ),
    Pieces(PLAIN, (), EMPTY),
    Pieces(PLAIN, ("", "the", "", " end", ""), EMPTY),
)

# A learner's tokenizer at work.


class Learner:
    """The learner's class; each case gets a tokenizer of its own, with copies of the arguments."""

    def __init__(self, attempt: type):
        self.attempt = attempt
        self.changed: set[str] = set()  # the arguments that the class changed
        self.remarks: list[str] = []

    def make(self, one: Setup, given: Words | None = None) -> Any:
        """A tokenizer. Raises: Wrong or NotAttempted, as `verdicts.call`."""
        given = given or Words(described_setup(one))
        values = {"vocab": dict(one.vocab()), "merges": list(one.merges)}
        before = dict(one.vocab()), list(one.merges)
        extras = {"special_tokens": None}
        if one.special_tokens is not None:
            extras, values = {}, {**values, "special_tokens": list(one.special_tokens)}
        args, kwargs, _ = bind(self.attempt, values, extras=extras, given=given)
        made = call(self.attempt, *args, given=given, **kwargs)
        self.changed |= {k for k, v in zip(values, before, strict=False) if values[k] != v}
        return made

    def __call__(self, case: Case, tokenizer: Any = None) -> list[int] | str:
        """What the method that the case is for returns, in one form."""
        given = described(case)
        tokenizer = self.make(case.setup, given) if tokenizer is None else tokenizer
        method = getattr(tokenizer, METHOD[type(case)])
        try:
            if isinstance(case, Text):
                return ids_in(call(method, case.text, seconds=QUICK, given=given), given)
            if isinstance(case, Ids):
                return text_in(call(method, list(case.ids), seconds=QUICK, given=given), given)
            ids = call(lambda: used_up(method, case.pieces), seconds=QUICK, given=given)
            return ids_in(ids, given, "encode_iterable")
        except Wrong as wrong:
            if wrong.error:
                with_what = f" with {case.what}" if case.what else ""
                wrong.claim = f"`{METHOD[type(case)]}` raised an error{with_what}."
            raise


def used_up(method: Callable, pieces: Sequence[str]) -> Any:
    """All that an iterator yields, as a list; what is no iterator stays as it is."""
    result = method(iter(pieces))
    return result if result is None or isinstance(result, str | bytes) else list(result)


def _malformed(method: str, given: Words, asked: str, got: str, why: str | None) -> Wrong:
    """What is said of a result that is not of the kind asked for."""
    claim = f"`{method}` does not give {asked}."
    return Wrong(
        claim, given=given, expected=Words(asked), got=Words(got), mistake=why or f"{got}."
    )


def ids_in(result: Any, given: Words, method: str = "encode") -> list[int]:
    """A result as a list of ints. Raises: Wrong where it holds something else."""
    asked = "a list of ids" if method == "encode" else "ids, one after the other"
    if result is None:
        raise NotAttempted(f"`{method}` returned None: is a `return` still to write?")
    if isinstance(result, str | bytes):
        why = "The result is text: look up the id of each token."
        raise _malformed(method, given, asked, kind_of(result), why)
    if isinstance(result, Iterator):
        why = "`encode` is a generator (it has a `yield`): return a list."
        raise _malformed(method, given, asked, kind_of(result), why)
    if not hasattr(result, "__iter__"):
        raise _malformed(method, given, asked, kind_of(result), f"The result is {kind_of(result)}.")
    ids = []
    for item in result:
        try:
            ids.append(operator.index(item))
        except TypeError:
            why = "Among the ids is something else."
            if isinstance(item, list | tuple):
                why = "There are lists in place of ids: add their items (`yield from`)."
            elif isinstance(item, bytes | str):
                why = "There are tokens in place of ids: look each one up in the vocabulary."
            got = f"among the ids, {kind_of(item)}"
            raise _malformed(method, given, asked, got, why) from None
    return ids


def text_in(result: Any, given: Words) -> str:
    """A result that is a str. Raises: Wrong where it is something else."""
    if result is None:
        raise NotAttempted("`decode` returned None: is a `return` still to write?")
    if not isinstance(result, str):
        why = "Decode the bytes of all tokens, joined."
        if isinstance(result, bytes | bytearray):
            why = "Bytes must still be decoded."
        elif isinstance(result, list | tuple):
            why = "The parts must still be joined."
        raise _malformed("decode", given, "a str", kind_of(result), why)
    return result


def same(one: list[int] | str, other: list[int] | str) -> bool:
    """True for equal ids, and for equal texts however many U+FFFD stand for a malformed stretch."""
    if isinstance(one, str) and isinstance(other, str):
        return regex.sub(f"{REPLACED}+", REPLACED, one) == regex.sub(
            f"{REPLACED}+", REPLACED, other
        )
    return one == other


# What is told of a case.


def described(case: Case) -> Words:
    """The call, and what the tokenizer is made of as far as it matters."""
    if isinstance(case, Ids):
        return Words(f"decode(ids), the ids being {readable(list(case.ids), case.setup)}")
    argument = case.text if isinstance(case, Text) else list(case.pieces)
    made_of = described_setup(case.setup, case.text)
    return Words(f"{METHOD[type(case)]}({shown(argument)}) of a tokenizer {made_of}")


def described_setup(one: Setup, text: str = "") -> str:
    """The merges that can apply to a text, the special tokens and the order of the ids."""
    data = text.encode()
    merges = [pair for pair in one.merges if b"".join(pair) in data]
    others = len(one.merges) - len(merges)
    if len(merges) > 8 or (others and not merges):
        words = f"with {len(one.merges)} merges"
    else:
        words = f"with the merges {merges}" if merges else "without merges"
        if others:
            words += " (and others that cannot apply)"
    if one.special_tokens is None:
        words += "; special_tokens is None"
    else:
        words += f"; special_tokens={list(one.special_tokens)}"
    if one.lacking():
        words += f", of which the vocabulary lacks {', '.join(one.lacking())}"
    if only := [token for token in one.known if token not in one.specials()]:
        words += f", though the vocabulary holds {', '.join(only)}"
    if one.layout != BYTES_FIRST:
        words += f"; order of the vocabulary: {one.layout}"
    return words


def readable(ids: list[int], one: Setup) -> Words:
    """Ids, and the tokens that they stand for."""
    tokens = {token_id: token for token, token_id in one.ids().items()}
    spelt = [repr(tokens[i]) if i in tokens else f"{i} is no id" for i in ids]
    if len(ids) > 16:
        return Words(f"{shown(ids)}: {' '.join(spelt[:24])} ...")
    return Words(f"{ids}: {' '.join(spelt)}" if ids else "[]")


def beside(case: Case, asked: list[int] | str, got: list[int] | str) -> Wrong:
    """What is said of a result that is wrong."""
    with_what = f" with {case.what}" if case.what in CORNERS else ""
    return Wrong(
        f"`{METHOD[type(case)]}` does not give the expected result{with_what}.",
        given=described(case),
        expected=asked if isinstance(case, Ids) else readable(asked, case.setup),
        got=got if isinstance(case, Ids) else readable(got, case.setup),
        mistake=_of_text(asked, got) if isinstance(case, Ids) else _of_ids(case, asked, got),
    )


def _of_text(asked: str, got: str) -> str:
    """What can be seen from a text that no known mistake explains."""
    if REPLACED in asked and REPLACED not in got:
        return 'Bytes that are no UTF-8 must become U+FFFD: decode with `errors="replace"`.'
    if REPLACED in got and REPLACED not in asked:
        return "A whole character was torn apart: join all bytes first, then decode once."
    return "The text is all the bytes of the tokens, joined and then decoded as UTF-8."


def _of_ids(case: Text | Pieces, asked: list[int], got: list[int]) -> str:
    """What can be seen from ids that no known mistake explains."""
    names = {token_id: token for token, token_id in case.setup.ids().items()}
    right, known = ([names.get(token_id, b"") for token_id in ids] for ids in (asked, got))
    at, wrong_from = first_difference(asked, got), 0
    wrong_from, start, part = len(b"".join(right[:at])), 0, ""
    for part in parts_of(case.text, case.setup.specials()):
        if wrong_from < start + len(part.encode()):
            break
        start += len(part.encode())
    if part in case.setup.specials() and at < len(got):
        if part.encode().startswith(known[at] or b"?"):
            return f"The special token {part!r} was encoded like ordinary text."
        holds = "holds" if part in case.setup.known else "lacks"
        given = "its id there is" if part in case.setup.known else "it gets the next free id,"
        right_id = case.setup.ids()[part.encode()]
        return f"The vocabulary {holds} the special token {part!r}: {given} {right_id}."
    if strange := [token_id for token_id in got if token_id not in names]:
        return f"{strange[0]} is not an id of the vocabulary, nor of a special token added to it."
    if b"".join(known) != case.text.encode():
        spelt = b"".join(known).decode("utf-8", "replace")
        return f"The ids spell another text, {spelt!r}: nothing may be lost or added."
    if wrong_from + len(known[at]) > start + len(part.encode()):
        return (
            f"The token {known[at]!r} reaches across the border of two pre-tokens of GPT-2's "
            "pattern."
        )
    if isinstance(case, Text):
        return (
            f"In {part!r} the token {right[at]!r} should come where {known[at]!r} is: of the "
            "merges that apply, the earliest in the list goes first, again and again until none is "
            "left."
        )
    cuts = {len(case.text[:cut].encode()) for cut in accumulate(map(len, case.pieces))}
    if any(start < cut < start + len(part.encode()) for cut in cuts):
        return (
            f"The cut between two pieces goes through {part!r}: keep back the end of a piece until "
            "it is certain what follows."
        )
    return (
        f"{part!r} was cut through, though it does not stand where one piece ends: do not cut the "
        "text anywhere but between two pre-tokens."
    )


def first_difference(one: list, other: list) -> int:
    """The first index at which two lists differ; the shorter length where one begins the other."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def simpler(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails: less to encode, then less that the tokenizer is of."""
    if isinstance(case, Ids):
        ids = shrink_list(list(case.ids), lambda ids: fails(case._replace(ids=tuple(ids))))
        return case._replace(ids=tuple(ids))
    if isinstance(case, Text):
        case = case._replace(text=shrink(case.text, lambda text: fails(case._replace(text=text))))
    else:
        case = case._replace(pieces=_fewer_pieces(case, fails))

    def tries(**changes: Any) -> bool:
        nonlocal case
        other = case._replace(setup=case.setup._replace(**changes))
        if fails(other):
            case = other
        return case == other

    data = case.text.encode()
    tries(merges=tuple(pair for pair in case.setup.merges if b"".join(pair) in data))
    shrink_list(list(case.setup.merges), lambda merges: tries(merges=tuple(merges)))
    tries(layout=BYTES_FIRST)
    if not tries(special_tokens=None, known=()):
        for token in case.setup.specials():
            left = tuple(other for other in case.setup.specials() if other != token)
            tries(special_tokens=left, known=tuple(t for t in case.setup.known if t != token))
    return case


def _fewer_pieces(case: Pieces, fails: Callable[[Case], bool]) -> tuple[str, ...]:
    """Fewer and shorter pieces that still fail; lines stay lines."""
    lines = all(piece.endswith("\n") for piece in case.pieces)

    def still(pieces: Sequence[str]) -> bool:
        as_before = not lines or all(map(regex.compile(r"[^\n]*\n").fullmatch, pieces))
        return as_before and fails(case._replace(pieces=tuple(pieces)))

    pieces = shrink_list(list(case.pieces), still)
    for at in range(1, len(pieces)):
        two = ["".join(pieces[:at]), "".join(pieces[at:])]
        if len(pieces) > 2 and still(two):
            pieces = two
            break
    for at in range(len(pieces)):
        before, after = pieces[:at], pieces[at + 1 :]
        pieces[at] = shrink(
            pieces[at], lambda text, b=before, a=after: still([*b, text, *a]), seconds=1.0
        )
    return tuple(pieces)


# The exercises.

PER_METHOD = {"run": lambda learner, case: learner(case), "same": same, "report": beside}
ENCODE = Exercise(
    program=Program(
        decode,
        pretokens,
        cut_specials,
        merged,
        encoded,
        places={
            FOUND: "how the text is cut into pre-tokens",
            "pattern =": "how special tokens are found",
            "enumerate(parts)": "what becomes of the parts between special tokens",
            "[bytes([byte])": "how a word becomes single bytes",
            "min(pairs": "which merge goes first",
            "ranks = {": "the ranks of the merges",
            "ids[symbol]": "how tokens become ids",
        },
    ),
    mistakes=(*WORDS, *SPECIALS, *CUTTING, *READING, LINE_ENDS),
    cases=TEXTS,
    corners=ODD_TEXTS,
    smaller=simpler,
    errors={
        r"NoneType' object is not (iter|subscr)|NoneType' has no len": "special_tokens is None, "
        "which stands for no special tokens: `special_tokens or []`.",
    },
    **PER_METHOD,
)
DECODE = Exercise(
    program=Program(decoded),
    mistakes=DECODING,
    cases=ID_LISTS,
    corners=ODD_ID_LISTS,
    smaller=simpler,
    **PER_METHOD,
)
STREAM = Exercise(
    program=Program(texts_of, streamed),
    mistakes=STREAMING,
    cases=STREAMS,
    corners=ODD_STREAMS,
    smaller=simpler,
    errors={
        "^(Attribute|Type)Error": "The argument may be any iterable of strings, not only a file or "
        "a list: loop over it, and do not ask for its length, an item or `read`.",
    },
    **PER_METHOD,
)

# What no single call shows.


def expect_independent(learner: Learner) -> None:
    """Raise `Wrong` where a tokenizer is disturbed by another one, or by an earlier call."""
    here, there = FRESH
    try:
        one = learner.make(here.setup)
        if learner(here, one) != ENCODE.expected(here):
            return  # it is wrong for another reason
        other = learner.make(there.setup)
        results = (there, learner(there, other)), (here, learner(here, one))
    except Wrong:
        return
    for (case, got), wrong in zip(results, (here, there), strict=True):
        if got == ENCODE.expected(wrong) or (case is here and got != ENCODE.expected(here)):
            raise Wrong(
                "Two tokenizers, made of different vocabularies, disturb each other.",
                given=Words(f"{described(case)}, used in turn with another one"),
                expected=readable(ENCODE.expected(case), case.setup),
                got=readable(got, case.setup),
                mistake="Something is shared between instances or calls: a class attribute, a "
                "global, a default argument such as `cache={}`. Keep it on `self`.",
            )


def expect_the_same_twice(learner: Learner) -> None:
    """Raise `Wrong` where a second stream knows the first one."""
    case = STREAMS[0]
    tokenizer = learner.make(case.setup)
    learner(case, tokenizer)
    again = learner(case, tokenizer)
    if again != STREAM.expected(case):
        wrong = beside(case, STREAM.expected(case), again)
        wrong.claim = "The second `encode_iterable` of a tokenizer differs from the first."
        wrong.mistake = (
            "What was kept back is still there: keep it in a local variable, not on self."
        )
        raise wrong


SLOW = {
    "encode": "Probably the work grows with the square of the text: look up ids in a dict and not "
    "in a list, merge inside pre-tokens only, and do not copy the rest of the text for each token.",
    "encode_iterable": "Probably what was read before is encoded again with each piece: keep only "
    "the end that is not certain yet.",
}


def expect_quick(learner: Learner, method: str, pieces: Sequence[str], what: str) -> None:
    """Raise `Wrong` where a long text takes much longer than it needs, or gives other ids."""
    text = "".join(pieces)
    given = Words(f"{method}(text), where the text is {len(text):,} characters {what}")
    encode = getattr(learner.make(PLAIN), method)
    run = (lambda: encode(text)) if method == "encode" else (lambda: used_up(encode, pieces))
    try:
        ids = ids_in(call(run, seconds=LONG, given=given), given, method)
    except Wrong as wrong:
        if wrong.timed_out:
            wrong.claim = f"`{method}` is hopelessly slow: stopped after {LONG:g} s."
            wrong.mistake = SLOW[method]
        raise
    if ids != (right := ids_of_text(PLAIN, text)):
        at = first_difference(right, ids)
        raise Wrong(
            f"`{method}` of a long text differs, though short texts are right.",
            given=given,
            expected=right[at : at + 8],
            got=Words(f"{ids[at : at + 8]}, from id {at:,} on"),
            mistake=_of_ids(Pieces(PLAIN, tuple(pieces)), right, ids),
        )


MANY_LINES = ORDINARY * (80_000 // len("".join(ORDINARY)))
ONE_WORD = ("gathered" * 6,) * 40
READ_AHEAD = 1_500_000  # characters that may be read before the first id comes
BUFFER = 32_000  # who reads further ahead than this is not measured: a buffer is no leak
FEW, MANY = 8_000, 40_000  # characters after which memory is measured


class Source:
    """An endless stream of lines, which counts what is read and stops at a limit."""

    def __init__(self):
        self.read = 0

    def __iter__(self) -> Iterator[str]:
        for line in cycle(ORDINARY):
            if self.read > READ_AHEAD:
                raise EOFError
            self.read += len(line)
            yield line


def expect_lazy(learner: Learner) -> None:
    """Raise `Wrong` where the stream is read to its end first, or what was read is kept."""
    given, source = Words("the first id of `encode_iterable(lines)`, of endless lines"), Source()

    def first() -> Any:
        return next(iter(learner.make(PLAIN).encode_iterable(iter(source))))

    try:
        ids_in([call(first, seconds=LONG, given=given)], given, "encode_iterable")
    except Wrong as wrong:
        if source.read <= READ_AHEAD and not wrong.timed_out:
            raise
        raise Wrong(
            "`encode_iterable` is not lazy.",
            given=given,
            expected=Words("an id after a line or two"),
            got=Words(f"no id after {source.read:,} characters"),
            mistake="It reads the whole stream before it yields anything: yield the ids of what is "
            "certain while you read on. Joining the pieces, or making a list, needs memory for all "
            "of the text.",
        ) from None
    if source.read < BUFFER:
        _expect_little_memory(learner)


def _expect_little_memory(learner: Learner) -> None:
    """Raise `Wrong` where the memory in use grows with what was read."""
    given = Words(f"`encode_iterable(lines)`, with {MANY:,} characters of lines")

    def held() -> list[int]:
        source = Source()
        ids, in_use = iter(learner.make(PLAIN).encode_iterable(iter(source))), []
        tracemalloc.start(1)
        try:
            for characters in (FEW, MANY):
                while source.read < characters:
                    for _ in islice(ids, 50):
                        pass
                in_use.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        return in_use

    try:
        before, after = call(held, seconds=LONG, given=given)
    except Wrong as wrong:
        if wrong.timed_out:
            return  # memory is counted at the price of time: that is no fault of the tokenizer
        raise
    if after - before > (MANY - FEW) // 2:
        raise Wrong(
            "`encode_iterable` needs more memory the more it reads.",
            given=given,
            expected=Words("about as much memory as after the first lines"),
            got=Words(f"{after - before:,} bytes more for {MANY - FEW:,} characters more"),
            mistake="What was read, or the ids of it, is kept: forget it once its ids are out.",
        )


# `from_files`, whose file format the course leaves open: GPT-2's is tried, and told of.

FROM_FILES = Words("Tokenizer.from_files(vocab_filepath, merges_filepath, special_tokens)")
OPEN = (
    "`from_files` does not read GPT-2's files (vocab.json and merges.txt, in the alphabet where a "
    "space is Ġ). The course leaves the format open, so any other that you write yourself is right."
)


def remarks_on_files(learner: Learner) -> list[str]:
    """Remarks on `from_files`. Raises: Wrong where it cannot be called or makes no tokenizer."""
    method = inspect.getattr_static(learner.attempt, "from_files")
    if is_stub(getattr(method, "__func__", method)):
        raise NotAttempted
    if not isinstance(method, classmethod | staticmethod):
        raise Wrong(
            "`from_files` belongs to the class, not to an instance.",
            expected=FROM_FILES,
            got=Words("a method that needs an instance"),
            mistake="`@classmethod` is missing above `def from_files(cls, ...)`.",
        )
    case = Text(setup(GPT2, (END,)), f"the cat{END} é\n")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        vocab, merges = _written(case.setup, Path(folder))
        values = {"vocab_filepath": vocab, "merges_filepath": merges, "special_tokens": [END]}
        args, kwargs, _ = bind(learner.attempt.from_files, values, given=FROM_FILES)
        try:
            made = call(learner.attempt.from_files, *args, given=FROM_FILES, **kwargs)
            if inspect.isclass(made) or not (hasattr(made, "encode") and hasattr(made, "decode")):
                raise Wrong(
                    "`from_files` does not make a tokenizer.",
                    given=FROM_FILES,
                    expected=Words("a tokenizer"),
                    got=Words(kind_of(made)),
                    mistake="End it with `return cls(vocab, merges, special_tokens)`.",
                )
            return [] if learner(case, made) == ENCODE.expected(case) else [OPEN]
        except Wrong as wrong:
            if wrong.mistake and not wrong.error:
                raise
            return [OPEN]


def _written(one: Setup, folder: Path) -> tuple[str, str]:
    """The paths of the vocabulary and the merges, as GPT-2 has them."""
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    special = [token.encode() for token in one.known]
    names = {
        token.decode() if token in special else to_readable(token): token_id
        for token_id, token in one.vocab().items()
    }
    vocab.write_text(json.dumps(names), encoding="utf-8")
    lines = [f"{to_readable(left)} {to_readable(right)}\n" for left, right in one.merges]
    merges.write_text("".join(lines), encoding="utf-8", newline="\n")
    return str(vocab), str(merges)


# The verdict.


class Watched(tuple):
    """A merge that counts how often it is looked at."""

    looks = 0

    def __iter__(self):
        Watched.looks += 1
        return super().__iter__()

    def __getitem__(self, at):
        Watched.looks += 1
        return super().__getitem__(at)

    def __eq__(self, other):
        Watched.looks += 1
        return super().__eq__(other)

    def __hash__(self):
        Watched.looks += 1
        return super().__hash__()


def remarks_on_encode(learner: Learner) -> list[str]:
    """Remarks on what a right `encode` returns and how it goes through the merges."""
    remarks, words = [], [f" q{letter}z" for letter in "abcdefghijklmnop"]
    one = PLAIN._replace(merges=tuple(map(Watched, PLAIN.merges)))
    try:
        tokenizer = learner.make(one)
        Watched.looks = 0
        result = call(tokenizer.encode, "".join(words), seconds=QUICK)
    except (Wrong, NotAttempted):
        return remarks
    if Watched.looks > len(words) * len(one.merges) // 2:
        remarks.append(
            "`encode` goes through the whole list of merges for every new word: with 32,000 merges "
            "that is slow. Look up in a dict, pair -> rank, only the pairs that the word has."
        )
    if not isinstance(result, list):
        kind = kind_of(result).partition(":")[0]
        remarks.append(f"`encode` returns {kind}: the problem asks for a list of ints.")
    return remarks


def fails_in_use(found: Findings) -> bool:
    """Whether something goes wrong in ordinary use."""
    return any(wrong.weight == "use" for wrong in found.found)


def check_encode(learner: Learner) -> Findings:
    """What is wrong with `encode`."""
    found = Findings()
    with found("use"):
        expect_independent(learner)
    if not found:
        found = judge(ENCODE, learner)
    if not fails_in_use(found):
        with found("use"):
            expect_quick(learner, "encode", MANY_LINES, "of lines")
            expect_quick(learner, "encode", ONE_WORD, "without any space")
    return found


def check_stream(learner: Learner) -> Findings:
    """What is wrong with `encode_iterable`."""
    found = judge(STREAM, learner)
    if not fails_in_use(found):
        with found("use"):
            expect_quick(learner, "encode_iterable", MANY_LINES, "of lines")
            expect_the_same_twice(learner)
    if not fails_in_use(found):
        with found("corner"):
            expect_lazy(learner)
    if not found:
        with found("use"):
            expect_quick(learner, "encode_iterable", ONE_WORD, "without any space")
    return found


def check_files(learner: Learner) -> Findings:
    """What is wrong with `from_files`."""
    found = Findings()
    with found("use"):
        learner.remarks += remarks_on_files(learner)
    return found


def _list(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


CHECKS = {
    "encode": check_encode,
    "decode": lambda learner: judge(DECODE, learner),
    "encode_iterable": check_stream,
    "from_files": check_files,
}


def tokenizer(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the smallest input that fails."""
    expect_class(attempt, SIGNATURE)
    if "__init__" in vars(attempt) and is_stub(attempt.__init__):
        raise NotAttempted("`__init__` is still to write.")
    learner, found, right, missing = Learner(attempt), Findings(), [], {}
    for name, check in CHECKS.items():
        if name not in ("encode", "decode") and fails_in_use(found):
            break  # `encode_iterable` and `from_files` rest on the other two
        try:
            if not callable(getattr(attempt, name, None)) or is_stub(getattr(attempt, name)):
                raise NotAttempted
            new = check(learner)
        except NotAttempted as stub:
            missing[name] = str(stub) or f"`{name}` is still to write."
            continue
        if not new:
            right.append(f"`{name}`")
        elif name == "encode_iterable" and not fails_in_use(new):
            found.passes.append("`encode_iterable` is right for the lines of ordinary text.")
        told = {wrong.case.what for wrong in found.found if wrong.case}
        for wrong in new.found if "encode" not in missing else ():  # which the others may call
            if any(wrong.mistake == other.mistake for other in found.found):
                wrong.mistake = None  # told already
            if not (wrong.case and wrong.case.what in told):
                found.found.append(wrong)
    if right:
        found.passes.insert(0, _list(right) + (" are right." if len(right) > 1 else " is right."))
    still = list(dict.fromkeys(missing.values()))
    if missing and not fails_in_use(found):
        claims = [wrong.claim for wrong in found.found]
        raise NotAttempted(" ".join([*found.passes, *still, *claims]))
    found.passes += still
    if not found:
        learner.remarks += remarks_on_encode(learner)
        with found("style"):
            expect_from_scratch(lambda: learner(TEXTS[0]), [attempt])
    for argument in sorted(learner.changed):
        learner.remarks.append(
            f"The constructor changed the {argument} that it was given: make a copy, so that a "
            "second tokenizer of the same vocabulary is not surprised."
        )
    praise = "Every text is encoded and decoded like the reference does it, in pieces too."
    return found.verdict(praise, learner.remarks)
