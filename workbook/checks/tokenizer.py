"""The check of the class `Tokenizer`: encode, decode, encode_iterable, from_files.

What nearly every text needs is ordinary use. An empty list of special tokens, one that the
vocabulary lacks, ids in no order, and a stream that is cut inside a token are corners.
"""

import inspect
import json
import operator
import random
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partialmethod
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workbook.checks.bpe import first_difference
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
from workbook.tokenization.bpe import Pair, merge_pair, split_bytes, train_incremental
from workbook.tokenization.gpt2_files import byte_alphabet, to_readable

QUICK, LONG = 5.0, 20.0  # seconds that a short text and a long one may take
REPLACED, END = "\ufffd", "<|endoftext|>"

# What is encoded and decoded, and the tokenizer that does it.

LAYOUTS: dict[str, Callable[[list, list, list], list[bytes]]] = {  # of bytes, merges and specials
    "the 256 bytes, merges, special tokens": lambda b, m, s: b + m + s,
    "special tokens, the 256 bytes, merges": lambda b, m, s: s + b + m,
    "GPT-2's: visible bytes first, the others, merges, special tokens": lambda b, m, s: (
        sorted(b, key=lambda byte: byte_alphabet()[byte[0]]) + m + s
    ),
    "in no order": lambda b, m, s: random.Random(336).sample(b + m + s, len(b + m + s)),
}
BYTES_FIRST, SPECIALS_FIRST, GPT2, SHUFFLED = LAYOUTS
ALL_BYTES = [bytes([byte]) for byte in range(256)]


class Setup(NamedTuple):
    """What a tokenizer is made of."""

    layout: str  # how the ids are given out: a key of `LAYOUTS`
    merges: tuple[Pair, ...]
    known: tuple[str, ...]  # the special tokens that the vocabulary holds
    special_tokens: tuple[str, ...] | None

    @lru_cache  # noqa: B019 - setups are few and stay
    def vocab(self) -> dict[int, bytes]:
        """The vocabulary that is handed to the learner's class."""
        tokens = [left + right for left, right in self.merges]
        known = [token.encode() for token in self.known]
        return dict(enumerate(LAYOUTS[self.layout](ALL_BYTES, tokens, known)))

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


class Case(NamedTuple):
    """A call of one method of a tokenizer."""

    setup: Setup
    method: str
    given: Any  # a text, ids, or the pieces of a text
    what: str = ""  # its kind, told where it fails

    text = property(lambda self: "".join(self.given), doc="What is encoded, its pieces joined.")
    with_what = property(lambda self: f" with {self.what}" if self.what else "")


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


def encoded(case: Case) -> list[int]:
    """The ids of a text."""
    ids, tokens = case.setup.ids(), case.setup.specials()
    ranks = {pair: rank for rank, pair in enumerate(case.setup.merges)}
    result = []
    for part, special in cut_specials(decode(case.given.encode()), tokens):
        if special:
            result.append(ids[part.encode()])
            continue
        for token in pretokens(part):
            symbols = merged(token.encode(), ranks, case.setup.ids())
            result += [ids[symbol] for symbol in symbols]
    return result


def decoded(case: Case) -> str:
    """The text of ids; malformed bytes become U+FFFD."""
    token_of = {token_id: token for token, token_id in case.setup.ids().items()}
    tokens = [token_of[token_id] for token_id in case.given]
    return b"".join(tokens).decode("utf-8", errors="replace")


def streamed(case: Case) -> list[int]:
    """The ids of the joined pieces."""
    pieces = case.given
    texts = ["".join(pieces)]
    return [token_id for text in texts for token_id in ids_of(case.setup, text)]


@lru_cache(maxsize=4096)
def ids_of(setup: Setup, text: str) -> list[int]:
    """The right ids of a text."""
    return encoded(Case(setup, "encode", text))


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
    result, free = [], True
    for symbol in symbols:
        if result and free and (result[-1], symbol) in ranks:
            result[-1] += symbol
            free = growing
        else:
            result.append(symbol)
            free = True
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
    mistake("Merges were applied in the order of their place in the word: take the earliest.",
            MERGE, "symbols = swept(symbols, ranks, False)"),
    mistake("Only one merge was applied to each word: go on until no merge fits.",
            MERGE, "return merge_pair(symbols, min(pairs, key=ranks.get))"),
    mistake("Each merge was applied at one place of the word only: it applies wherever it can.",
            BYTES, f"{BYTES}\nfor p in ranks:\n    symbols = once(symbols, p)\nreturn symbols"),
    mistake("No merge was applied: the ids are those of single bytes.",
            BYTES, "return [bytes([byte]) for byte in data]"),
    mistake("A word that is no token as a whole fell apart into bytes: apply the merges to it.",
            BYTES, "return [data] if data in ids else [bytes([byte]) for byte in data]"),
    mistake("The latest merge was applied first: it is the earliest of the list that goes first.",
            FIRST, "max(pairs, key=ranks.get)"),
    mistake("The id of the merged token was taken for the rank of the merge: the order of `merges` "
            "counts, and ids may be in any order.",
            FIRST, 'min(pairs, key=lambda pair: ids[b"".join(pair)])'),
    mistake("The merge that makes the longest token was applied first: take the earliest.",
            FIRST, 'min(pairs, key=lambda pair: (-len(b"".join(pair)), ranks[pair]))'),
    mistake("Equal pairs were merged from right to left: aaa becomes aa a.",
            MERGE, "symbols = once(symbols, min(pairs, key=ranks.get), last=True)"),
    mistake("Words were split into characters: BPE starts from bytes, and é or 猫 is several.",
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


NONE, ALL = "if not tokens:", "tokens = case.setup.ids(), case.setup.specials()"
SORTED, GROUP = "sorted(tokens, key=len, reverse=True)", 'f"({pattern})"'
LONGEST = "Of special tokens that overlap, the longest wins: "
STRIPPED = "White space beside a special token was stripped: it belongs to the text."
EMPTY_PATTERN = (
    "An empty list of special tokens became an empty pattern, which splits the text at every "
    "character: split only where there are special tokens."
)
VOCAB = "Ids come from the vocabulary, whose order is free: "
APPEND = "Special tokens that the vocabulary lacks must be appended to it."
SPECIALS = (
    mistake("Special tokens were encoded like ordinary text: cut the text at them first.",
            NONE, "if True:"),
    mistake("The special tokens went into the regular expression unescaped, where `|`, `.` or `*` "
            "are operators: use `re.escape`.",
            f"map(regex.escape, {SORTED})", SORTED, "at % 2 == 1", "part in tokens"),
    mistake("The special tokens were joined by | before `re.escape`, which escapes the | as well: "
            "escape each one, then join.",
            f'"|".join(map(regex.escape, {SORTED}))', f'regex.escape("|".join({SORTED}))'),
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
            "(parts) if part", "(parts) if part and at % 2 == 0"),
    mistake(STRIPPED, "(part, at % 2 == 1)", "(part if at % 2 else part.strip(), at % 2 == 1)"),
    mistake(STRIPPED, GROUP, r'rf"\s*({pattern})\s*"'),
    mistake("Only the first special token of the text was found: it may hold many.",
            GROUP + ", text", GROUP + ", text, maxsplit=1"),
    mistake("Special tokens were found only where white space stands around them.",
            GROUP, r'rf"(?<!\S)({pattern})(?!\S)"'),
    mistake(EMPTY_PATTERN,
            "return [(text, False)]", "return [(character, False) for character in text]"),
    mistake(EMPTY_PATTERN, "in pretokens(part)",
            "in (part if case.setup.special_tokens == () else pretokens(part))"),
    mistake(VOCAB + "here the byte b was given the id b, and merge i the id 256 + i.",
            ALL, f"{ALL}\nids = counted_up(case.setup, 0)"),
    mistake(VOCAB + "here the byte b was given the id b.",
            ALL, f"{ALL}\nids = counted_up(case.setup, 0, merges=False)"),
    mistake(VOCAB + "here special tokens were thought to come first, then bytes and merges.",
            ALL, f"{ALL}\nids = counted_up(case.setup, len(tokens))"),
    mistake(APPEND, ALL, f"{ALL}\nids = {{t: i for i, t in case.setup.vocab().items()}}"),
    mistake(APPEND, "if special:",
            "if special and part not in case.setup.known:\n    continue\nif special:"),
    mistake(APPEND, ALL, f"{ALL}\ntokens = [t for t in tokens if t in case.setup.known]"),
)  # fmt: skip

EACH = '"".join(token.decode("utf-8", errors="{}") for token in tokens)'
JOINED, ERRORS = 'b"".join(tokens).decode("utf-8", errors="replace")', 'errors="replace"'
BY_ITSELF = "Each token was decoded by itself: a character may be spread over several tokens. "
DECODING = (
    *(mistake(BY_ITSELF + "Join all the bytes first, then decode once.", JOINED, EACH.format(how))
      for how in ("replace", "strict")),
    mistake(BY_ITSELF + "What is no whole character was dropped.", JOINED, EACH.format("ignore")),
    mistake('Malformed bytes were dropped (`errors="ignore"`): use `errors="replace"`, for U+FFFD.',
            ERRORS, 'errors="ignore"'),
    mistake("Ids may stand for bytes that are no UTF-8, and decoding them raises an error: use "
            '`errors="replace"`, which gives U+FFFD.',
            ERRORS, 'errors="strict"'),
    mistake('Malformed bytes were written as \\x..: they become U+FFFD, `errors="replace"`.',
            ERRORS, 'errors="backslashreplace"'),
    mistake("The bytes were decoded as Latin-1, or one by one with `chr`: they are UTF-8.",
            '"utf-8"', '"latin-1"'),
    mistake("The tokens were joined with spaces: the spaces are part of the tokens.",
            'b"".join', 'b" ".join'),
    mistake("White space at the ends was stripped: the text must come back as it was.",
            JOINED, JOINED + ".strip()"),
    mistake("The special tokens are missing from the text: they are decoded like the others.",
            "(tokens)", "(t for t in tokens if t.decode(errors='replace') not in tokens_left_out)",
            "tokens = [", "tokens_left_out = case.setup.specials()\ntokens = ["),
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


LAST_ONLY = (
    "Only the last pre-token was kept back: that is not enough for a contraction such as 'll, nor "
    "for a special token, that comes in two parts."
)
STREAMING = tuple(mistake(words, '["".join(pieces)]', new) for words, new in (
    ("Each piece was encoded by itself. A cut may go through a word, a run of white space, a "
     "contraction or a special token: keep back the end that the next piece may still change.",
     "pieces"),
    ("The pieces were stripped: their white space is text.", "[piece.strip() for piece in pieces]"),
    ("A line end was added to each piece: the pieces are the text.",
     r'[f"{piece}\n" for piece in pieces]'),
    ("The pieces were split into words, and their spaces are lost.",
     "[word for piece in pieces for word in piece.split()]"),
    ("The pieces were joined with spaces.", '[" ".join(pieces)]'),
    ("The pieces were joined with line ends.", r'["\n".join(pieces)]'),
    ("The text was cut at the last white space: in a run of spaces or line ends, all but the last "
     "one belong together, and a special token may hold a space.",
     r'held_back(r"\s", pieces)'),
    ("The text was cut behind the last line end: several line ends in a row are one run.",
     r'held_back(r"(?<=\n)", pieces)'),
    (LAST_ONLY, "last_part(pretokens, pieces)"),
    (LAST_ONLY, "last_part(lambda text: parts_of(text, case.setup.specials()), pieces)"),
    ("What was kept back at the end was never encoded: do so when the pieces are used up.",
     r'held_back("[ \n]", pieces)[:-1]'),
    ("The last piece was never encoded.", '["".join(pieces[:-1])]'),
    ("Only the first piece was encoded: a `return` stands inside the loop.", "pieces[:1]"),
))  # fmt: skip

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
    line = split_bytes("".join(pretokens(ACROSS)))
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
    known = special_tokens if known is None else known
    return Setup(layout, learnt(), known or (), special_tokens)


def cases(method: str, *entries: tuple) -> tuple[Case, ...]:
    """Cases of one method, from (setup, what is given, its kind)."""
    return tuple(Case(entry[0], method, *entry[1:]) for entry in entries)


def single(byte_string: bytes, one: Setup) -> tuple[int, ...]:
    """The ids of single bytes."""
    return tuple(one.ids()[bytes([byte])] for byte in byte_string)


PLAIN, OWN, AS_GPT2, MIXED = map(setup, LAYOUTS)
ENDED, LACKS = setup(GPT2, (END,)), setup(GPT2, (END,), known=())
HANDOUT = (b"t", b"h"), (b" ", b"c"), (b" ", b"a"), (b"th", b"e"), (b" a", b"t")
NESTED = "<|a|>", "<|a|><|b|>", "<|b|>", "|c|", "<|c|>"
OUTSIDE, MARKED = "characters outside ASCII", "special tokens"
# What the corners are about.
LACKING = "a special token that the vocabulary lacks"
NO_ORDER = "a vocabulary whose ids are not in the order of the merges"
LINES, CUTS = "blank lines in a row, or indented lines", "pieces that are cut inside a token"
NO_SPECIALS, EMPTY = "an empty list of special tokens", "no pieces, or empty ones"
TEXTS = cases(
    "encode",
    (Setup(BYTES_FIRST, HANDOUT, (), None), "the cat ate"),
    (PLAIN, "", "an empty text"),
    (PLAIN, "nat gat"),
    (PLAIN, "gathered ban\nanas"),
    (PLAIN, "aaaaa aaaaaaa ababa abcab"),
    (AS_GPT2, "the other cat"),
    (OWN, "the banana that gathered"),
    (AS_GPT2, "café 猫狗 🙂🙃 naïve", OUTSIDE),
    (PLAIN, "It's we'll don't 'the' WE'LL"),
    (PLAIN, "the  end   the\n\n\nthe\t the \n the\u00a0the \u3000 "),
    (OWN, "in 2026 the19 x²x² ١٢ the_end (the) the!!\r\nend"),
    (ENDED, f"the{END}the end{END}{END} cat \n{END}\n", MARKED),
    (setup(SPECIALS_FIRST, None, known=(END,)), f"the{END} end"),
    (setup(GPT2, (STAR, END)), f"a {STAR}b.*{END}c|>{STAR}<|x|>", MARKED),
    (setup(SPECIALS_FIRST, ("<|pad|>", END)), f"a<|pad|>b{END}the", MARKED),
    (setup(GPT2, NESTED), "the<|a|><|b|>the<|a|>end<|b|><|a|><|a|><|b|>|c|<|c|>the", MARKED),
    (AS_GPT2, LEARNT_FROM.title() + LEARNT_FROM + "हिन्दी e\u0301 \u2028 ½", OUTSIDE),
    (ENDED, f"{LEARNT_FROM}{END}" * 3, MARKED),
)
ODD_TEXTS = cases(
    "encode",
    (setup(BYTES_FIRST, (), known=(END,)), f"the{END}end", NO_SPECIALS),
    (setup(BYTES_FIRST, (END,), known=()), f"the{END}end", LACKING),
    (MIXED, "the banana that gathered", NO_ORDER),
    (MIXED, "café 猫狗 anana", NO_ORDER),
)
ID_LISTS = cases(
    "decode",
    (PLAIN, tuple(ids_of(PLAIN, "the cat"))),
    (PLAIN, ()),
    (AS_GPT2, single("é猫".encode(), AS_GPT2)),
    (AS_GPT2, tuple(ids_of(AS_GPT2, " the \n"))),
    (ENDED, tuple(ids_of(ENDED, f"a {END}the{END}"))),
    (AS_GPT2, single(b"a\xc3b\xf0\x9f", AS_GPT2)),
    (MIXED, tuple(ids_of(MIXED, LEARNT_FROM + "\u00df\U0001f600\r\n"))),
)
ODD_ID_LISTS = cases("decode", (LACKS, tuple(ids_of(LACKS, f"a {END}the{END}")), LACKING))
GAPS = "".join(
    f"gathered{' ' * (i % 5)}we'll{END * (i % 2)}the" + "\n" * (i % 4) for i in range(60)
)
BLOCKS = f"{ACROSS}  {LEARNT_FROM}{END}\n\n\n{GAPS}"
CUT_UP = (
    (PLAIN, "there gathered"),
    (PLAIN, "we'll they'd"),
    (PLAIN, "the  end   the\n\n\nthe \n"),
    (MIXED, "café 猫狗2026!!"),
    (setup(GPT2, (END, "<|endof")), f"the{END}end<|endof {END}{END}"),
)
STREAMS = cases(
    "encode_iterable",
    (PLAIN, ("the cat\n", "ate\n")),
    (PLAIN, ("the cat ate the hat",)),
    (ENDED, ORDINARY),
    (setup(SPECIALS_FIRST, (END,)), (f"the end\n{END}\n", "\n", "then\n", f"{END}\n") * 2),
    (AS_GPT2, ORDINARY * 3),
)
ODD_STREAMS = cases(
    "encode_iterable",
    (PLAIN, ("the\n", "\n", "\n", "end\n"), LINES),
    (PLAIN, ("the\n", "  end\n", "   the\n"), LINES),
    (ENDED, (*LEARNT_FROM.splitlines(True),) * 2, LINES),
    (ENDED, tuple(GAPS.splitlines(True)), LINES),
    (PLAIN, ("the cat ", "ate"), CUTS),
    *((one, (t[:at], t[at:]), CUTS) for one, t in CUT_UP for at in range(1, len(t))),
    *((one, tuple(text), CUTS) for one, text in CUT_UP),
    *((ENDED, tuple(regex.findall(f"(?s).{{1,{n}}}", BLOCKS)), CUTS) for n in (1, 7, 16, 61, 333)),
    (PLAIN, (), EMPTY),
    (PLAIN, ("", "the", "", " end", ""), EMPTY),
)

# A learner's tokenizer at work.


class Learner:
    """The learner's class; each case gets a tokenizer of its own, with copies of the arguments."""

    def __init__(self, attempt: type):
        self.attempt = attempt
        self.changed: set[str] = set()  # the arguments that the class changed

    def make(self, one: Setup, given: Words | None = None) -> Any:
        """A tokenizer. Raises: Wrong or NotAttempted, as `verdicts.call`."""
        given = given or Words(made_of(one))
        values = {"vocab": dict(one.vocab()), "merges": list(one.merges)}
        before = dict(one.vocab()), list(one.merges)
        extras = {"special_tokens": None}
        if one.special_tokens is not None:
            values, extras = {**values, "special_tokens": list(one.special_tokens)}, {}
        args, kwargs, _ = bind(self.attempt, values, extras=extras, given=given)
        made = call(self.attempt, *args, given=given, **kwargs)
        self.changed |= {k for k, v in zip(values, before, strict=False) if values[k] != v}
        return made

    def __call__(self, case: Case, tokenizer: Any = None) -> list[int] | str:
        """What the method returns, in one form. Raises: Wrong and NotAttempted."""
        given = described(case)
        made = self.make(case.setup, given) if tokenizer is None else tokenizer
        method = getattr(made, case.method)
        try:
            if case.method == "encode_iterable":
                result = call(lambda: used_up(method, case.given), seconds=QUICK, given=given)
            else:
                value = list(case.given) if case.method == "decode" else case.given
                result = call(method, value, seconds=QUICK, given=given)
        except Wrong as wrong:
            if wrong.error:
                wrong.claim = f"`{case.method}` raised an error{case.with_what}."
            raise
        return in_one_form(result, case.method, given)


def used_up(method: Callable, pieces: Sequence[str]) -> Any:
    """All that an iterator yields, as a list; what is no iterator stays as it is."""
    result = method(iter(pieces))
    return result if result is None or isinstance(result, str | bytes) else list(result)


def in_one_form(result: Any, method: str, given: Words) -> list[int] | str:
    """A result as a str or a list of ints. Raises: Wrong where it is something else."""
    got, why, asked = kind_of(result), None, "a str" if method == "decode" else "a list of ids"
    if result is None:
        raise NotAttempted(f"`{method}` returned None: is a `return` still to write?")
    if method == "decode":
        if isinstance(result, str):
            return result
        parts = "Bytes" if isinstance(result, bytes | bytearray) else "The parts"
        why = f"{parts} must still be {'decoded' if parts == 'Bytes' else 'joined'}."
    elif isinstance(result, str | bytes):
        why = "The result is text: look up the id of each token."
    elif isinstance(result, Iterator):
        why = "`encode` is a generator (it has a `yield`): return a list."
    elif isinstance(result, Iterable):
        try:
            return [operator.index(item) for item in result]
        except TypeError:
            odd = next((item for item in result if not hasattr(item, "__index__")), None)
            got = f"among the ids, {kind_of(odd)}"
            why = "There are lists in place of ids: add their items (`yield from`)."
            if isinstance(odd, bytes | str):
                why = "There are tokens in place of ids: look each one up in the vocabulary."
    raise Wrong(
        f"`{method}` does not give {asked}.",
        given=given,
        expected=Words(asked),
        got=Words(got),
        mistake=why or f"The result is {got}.",
    )


def same(one: list[int] | str, other: list[int] | str) -> bool:
    """True for equal ids, and for equal texts however many U+FFFD stand for a malformed stretch."""
    if isinstance(one, str) and isinstance(other, str):
        one, other = (regex.sub(f"{REPLACED}+", REPLACED, text) for text in (one, other))
    return one == other


# What is told of a case.


def described(case: Case) -> Words:
    """The call, and what the tokenizer is made of as far as it matters."""
    if case.method == "decode":
        return Words(f"decode(ids), the ids being {readable(list(case.given), case.setup)}")
    argument = case.given if case.method == "encode" else list(case.given)
    made = made_of(case.setup, case.text)
    return Words(f"{case.method}({shown(argument)}) of a tokenizer {made}")


def made_of(one: Setup, text: str = "") -> str:
    """The merges that can apply to a text, the special tokens and the order of the ids."""
    merges = [pair for pair in one.merges if b"".join(pair) in text.encode()]
    others = len(one.merges) - len(merges)
    words = f"with the merges {merges}" if merges else "without merges"
    if len(merges) > 8 or (others and not merges):
        words = f"with {len(one.merges)} merges"
    elif others:
        words += " (and others that cannot apply)"
    tokens = one.special_tokens
    words += "; special_tokens" + (" is None" if tokens is None else f"={list(tokens)}")
    if lacking := [token for token in one.specials() if token not in one.known]:
        words += f", of which the vocabulary lacks {', '.join(lacking)}"
    if only := [token for token in one.known if token not in one.specials()]:
        words += f", though the vocabulary holds {', '.join(only)}"
    return words + (f"; order of the vocabulary: {one.layout}" if one.layout != BYTES_FIRST else "")


def readable(ids: list[int], one: Setup) -> Words:
    """Ids, and the tokens that they stand for."""
    tokens = {token_id: token for token, token_id in one.ids().items()}
    spelt = [repr(tokens[i]) if i in tokens else f"{i} is no id" for i in ids]
    if len(ids) > 16:
        return Words(f"{shown(ids)}: {' '.join(spelt[:24])} ...")
    return Words(f"{ids}: {' '.join(spelt)}" if ids else "[]")


def beside(case: Case, asked: list[int] | str, got: list[int] | str) -> Wrong:
    """What is said of a result that is wrong."""
    ids = case.method != "decode"
    torn = "A whole character was torn apart: join all bytes first, then decode once."
    return Wrong(
        f"`{case.method}` does not give the expected result{case.with_what}.",
        given=described(case),
        expected=readable(asked, case.setup) if ids else asked,
        got=readable(got, case.setup) if ids else got,
        mistake=seen(case, asked, got) if ids else torn if REPLACED in got else None,
    )


def seen(case: Case, asked: list[int], got: list[int]) -> str:
    """What can be seen from ids that no known mistake explains."""
    names = {token_id: token for token, token_id in case.setup.ids().items()}
    right, known = ([names.get(token_id, b"") for token_id in ids] for ids in (asked, got))
    at, start, part = first_difference(asked, got), 0, ""
    wrong_from = len(b"".join(right[:at]))
    for part in parts_of(case.text, case.setup.specials()):
        if wrong_from < start + len(part.encode()):
            break
        start += len(part.encode())
    if part in case.setup.specials() and at < len(got):
        if part.encode().startswith(known[at] or b"?"):
            return f"The special token {part!r} was encoded like ordinary text."
        new_id = case.setup.ids()[part.encode()]
        if part in case.setup.known:
            return f"The vocabulary holds the special token {part!r}: its id there is {new_id}."
        return (
            f"The vocabulary lacks the special token {part!r}: it gets the next free id, {new_id}."
        )
    if strange := [token_id for token_id in got if token_id not in names]:
        return f"{strange[0]} is not an id of the vocabulary, nor of a special token added to it."
    if b"".join(known) != case.text.encode():
        spelt = b"".join(known).decode("utf-8", "replace")
        return f"The ids spell another text, {spelt!r}: nothing may be lost or added."
    if wrong_from + len(known[at]) > start + len(part.encode()):
        return f"The token {known[at]!r} reaches across two pre-tokens of GPT-2's pattern."
    if case.method == "encode":
        return (
            f"In {part!r} the token {right[at]!r} should come where {known[at]!r} is: of the "
            "merges that apply, the earliest in the list goes first, until none is left."
        )
    return f"{part!r} was cut through: keep back the end of a text until what follows is certain."


def simpler(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails: less is given, then the tokenizer is made of less."""

    def tries(**changes: Any) -> bool:
        nonlocal case
        other = case._replace(setup=case.setup._replace(**changes))
        case = other if fails(other) else case
        return case == other

    if case.method == "encode":
        case = case._replace(given=shrink(case.given, lambda t: fails(case._replace(given=t))))
    else:
        case = case._replace(given=_fewer(case, fails))
    if case.method == "decode":
        return case
    data = case.text.encode()
    tries(merges=tuple(pair for pair in case.setup.merges if b"".join(pair) in data))
    shrink_list(list(case.setup.merges), lambda merges: tries(merges=tuple(merges)))
    tries(layout=BYTES_FIRST)
    if not tries(special_tokens=None, known=()):
        for gone in case.setup.specials():
            kept = [tuple(t for t in ts if t != gone) for ts in case.setup[:1:-1]]
            tries(special_tokens=kept[0], known=kept[1])
    return case


def _fewer(case: Case, fails: Callable[[Case], bool]) -> tuple:
    """Fewer ids, or fewer and shorter pieces, that still fail; lines stay lines."""
    as_lines = case.what == LINES

    def still(items: list) -> bool:
        fits = not as_lines or all(regex.fullmatch(r"[^\n]*\n", piece) for piece in items)
        return fits and fails(case._replace(given=tuple(items)))

    items = shrink_list(list(case.given), still)
    if case.method == "encode_iterable":
        halves = [["".join(items[:at]), "".join(items[at:])] for at in range(1, len(items))]
        items = next(filter(still, halves if len(items) > 2 else ()), items)
        for at, piece in enumerate(items):
            items[at] = shrink(
                piece, lambda text, at=at: still([*items[:at], text, *items[at + 1 :]]), seconds=1.0
            )
    return tuple(items)


# The exercises.

COMMON = {"run": Learner.__call__, "same": same, "report": beside, "smaller": simpler}
PLACES = {
    FOUND: "how the text is cut into pre-tokens",
    "pattern =": "how special tokens are found",
    "enumerate(parts)": "what becomes of the parts between special tokens",
    "[bytes([byte])": "how a word becomes single bytes",
    "min(pairs": "which merge goes first",
    "ranks = {": "the ranks of the merges",
    "ids[symbol]": "how tokens become ids",
}
ENCODE = Exercise(
    program=Program(decode, pretokens, cut_specials, merged, encoded, places=PLACES),
    mistakes=(*WORDS, *SPECIALS, *CUTTING, *READING, LINE_ENDS),
    cases=TEXTS,
    corners=ODD_TEXTS,
    errors={
        r"NoneType' object is not (iter|subscr)|NoneType' has no len": "special_tokens is None, "
        "which stands for no special tokens: `special_tokens or []`.",
        r"(min|max)\(\)": "A word of one byte has no pair to choose from: stop where none is left.",
    },
    **COMMON,
)
DECODE = Exercise(Program(decoded), DECODING, ID_LISTS, corners=ODD_ID_LISTS, **COMMON)
STREAM = Exercise(
    program=Program(streamed),
    mistakes=STREAMING,
    cases=STREAMS,
    corners=ODD_STREAMS,
    errors={
        "^(Attribute|Type)Error": "The argument may be any iterable of strings, not only a file or "
        "a list: loop over it, and do not ask for its length, an item or `read`.",
    },
    **COMMON,
)

# What no single call shows.


def expect_independent(learner: Learner) -> None:
    """Raise `Wrong` where a tokenizer is disturbed by another one, or by an earlier call."""
    here, there = cases("encode", (MIXED, "bathe nettle"), (PLAIN, "bathe nettle"))  # new words
    try:
        one, other = learner.make(here.setup), learner.make(there.setup)
        before, beside_it, after = learner(here, one), learner(there, other), learner(here, one)
    except Wrong:
        return
    if before == encoded(here) and (beside_it == before or after != before):
        case, got = (there, beside_it) if beside_it == before else (here, after)
        wrong = beside(case, encoded(case), got)
        wrong.claim = "Two tokenizers, made of different vocabularies, disturb each other."
        wrong.mistake = (
            "Something is shared between instances or calls: a class attribute, a global, a "
            "default argument such as `cache={}`. Keep it on `self`."
        )
        raise wrong


def expect_the_same_twice(learner: Learner) -> None:
    """Raise `Wrong` where a second stream knows the first one."""
    case, tokenizer = STREAMS[0], learner.make(STREAMS[0].setup)
    if (first := learner(case, tokenizer)) != (again := learner(case, tokenizer)):
        wrong = beside(case, first, again)
        wrong.claim = "The second `encode_iterable` of a tokenizer differs from the first."
        wrong.mistake = "What was kept back is still there: keep it in a local variable."
        raise wrong


SLOW = {
    "encode": "Probably the work grows with the square of the text: look up ids in a dict and not "
    "in a list, merge inside pre-tokens only, and do not copy the rest of the text for each token.",
    "encode_iterable": "Probably what was read before is encoded again with each piece: keep only "
    "the end that is not certain yet.",
}
MANY_LINES, ONE_WORD = ORDINARY * (80_000 // len("".join(ORDINARY))), ("gathered" * 6,) * 40


def expect_quick(learner: Learner, method: str, pieces: Sequence[str], what: str) -> None:
    """Raise `Wrong` where a long text takes much longer than it needs, or gives other ids."""
    text = "".join(pieces)
    given = Words(f"{method}(text), where the text is {len(text):,} characters {what}")
    encode = getattr(learner.make(PLAIN), method)
    run = (lambda: encode(text)) if method == "encode" else (lambda: used_up(encode, pieces))
    try:
        ids = in_one_form(call(run, seconds=LONG, given=given), method, given)
    except Wrong as wrong:
        if wrong.timed_out:
            wrong.claim = f"`{method}` is hopelessly slow: stopped after {LONG:g} s."
            wrong.mistake = SLOW[method]
        raise
    if ids != (right := ids_of(PLAIN, text)):
        at = first_difference(right, ids)
        raise Wrong(
            f"`{method}` of a long text differs, though short texts are right.",
            given=given,
            expected=right[at : at + 8],
            got=Words(f"{ids[at : at + 8]}, from id {at:,} on"),
            mistake=seen(Case(PLAIN, "encode_iterable", tuple(pieces)), right, ids),
        )


READ_AHEAD = 1_500_000  # characters that may be read before the first id comes
BUFFER = 32_000  # who reads further ahead than this is not measured: a buffer is no leak
FEW, MANY = 8_000, 40_000  # characters after which memory is measured


class Source:
    """An endless stream of lines, which counts what is read and stops at a limit."""

    read = 0

    def __iter__(self) -> Iterator[str]:
        for line in cycle(ORDINARY):
            if self.read > READ_AHEAD:
                raise EOFError
            self.read += len(line)
            yield line


def expect_lazy(learner: Learner) -> None:
    """Raise `Wrong` where the stream is read to its end first, or what was read is kept."""
    given, source = Words("the first id of `encode_iterable(lines)`, of endless lines"), Source()

    def started(source: Source) -> Iterator:
        return iter(learner.make(PLAIN).encode_iterable(iter(source)))

    def bytes_in_use() -> list[int]:
        source, held = Source(), []
        ids = started(source)
        tracemalloc.start(1)
        try:
            for many in (FEW, MANY):
                while source.read < many:
                    for _ in islice(ids, 50):
                        pass
                held.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        return held

    try:
        call(lambda: next(started(source)), seconds=LONG, given=given)
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
    if source.read > BUFFER:
        return
    given = Words(f"`encode_iterable(lines)`, with {MANY:,} characters of lines")
    try:
        before, after = call(bytes_in_use, seconds=LONG, given=given)
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
    if not isinstance(method, classmethod | staticmethod):
        raise Wrong(
            "`from_files` belongs to the class, not to an instance.",
            expected=FROM_FILES,
            got=Words("a method that needs an instance"),
            mistake="`@classmethod` is missing above `def from_files(cls, ...)`.",
        )
    case = Case(ENDED, "encode", f"the cat{END} é\n")
    spelt = {to_readable(token): token_id for token, token_id in ENDED.ids().items()}
    lines = [f"{to_readable(left)} {to_readable(right)}\n" for left, right in ENDED.merges]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        vocab, merges = Path(folder, "vocab.json"), Path(folder, "merges.txt")
        vocab.write_text(json.dumps(spelt), encoding="utf-8")
        merges.write_text("".join(lines), encoding="utf-8", newline="\n")
        names = ("vocab_filepath", "merges_filepath", "special_tokens")
        values = dict(zip(names, (str(vocab), str(merges), [END]), strict=True))
        args, kwargs, _ = bind(learner.attempt.from_files, values, given=FROM_FILES)
        try:
            made = call(learner.attempt.from_files, *args, given=FROM_FILES, **kwargs)
            if not inspect.isclass(made) and hasattr(made, "encode") and hasattr(made, "decode"):
                return [] if learner(case, made) == ENCODE.expected(case) else [OPEN]
        except Wrong as wrong:
            if isinstance(wrong.error, NameError):  # whatever the format is
                raise
            return [OPEN]
    raise Wrong(
        "`from_files` does not make a tokenizer.",
        given=FROM_FILES,
        expected=Words("a tokenizer"),
        got=Words(kind_of(made)),
        mistake="End it with `return cls(vocab, merges, special_tokens)`.",
    )


# The verdict.


class Watched(tuple):
    """A merge; how often any is looked at is counted."""

    looks = 0

    def _look(self, how: Callable, *arguments: Any) -> Any:
        Watched.looks += 1
        return how(self, *arguments)

    __iter__ = partialmethod(_look, tuple.__iter__)
    __getitem__ = partialmethod(_look, tuple.__getitem__)
    __eq__ = partialmethod(_look, tuple.__eq__)
    __hash__ = partialmethod(_look, tuple.__hash__)


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
    found = found if found else judge(ENCODE, learner)
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
            with found("corner"):
                expect_lazy(learner)
            if not found:
                expect_quick(learner, "encode_iterable", ONE_WORD, "without any space")
            else:
                found.passes = ["`encode_iterable` is right for the lines of ordinary text."]
    return found


CHECKS = {
    "encode": check_encode,
    "decode": lambda learner: judge(DECODE, learner),
    "encode_iterable": check_stream,
}


def tokenizer(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the smallest input that fails."""
    expect_class(attempt, "class Tokenizer with Tokenizer(vocab, merges, special_tokens=None)")
    if "__init__" in vars(attempt) and is_stub(attempt.__init__):
        raise NotAttempted("`__init__` is still to write.")
    learner, found, right, missing, remarks = Learner(attempt), Findings(), [], {}, []
    for name in ("encode", "decode", "encode_iterable", "from_files"):
        if name not in ("encode", "decode") and fails_in_use(found):
            break  # these two rest on the others
        new = Findings()
        try:
            if not callable(getattr(attempt, name, None)) or is_stub(getattr(attempt, name)):
                raise NotAttempted
            if name in CHECKS:
                new = CHECKS[name](learner)
            else:
                with new("use"):
                    remarks += remarks_on_files(learner)
        except NotAttempted as stub:
            still = str(stub) or f"`{name}` is still to write."
            if name == "from_files" and not missing:
                with found("corner"):  # the other three are what the course's tests call
                    raise Wrong(still) from None
            else:
                missing[name] = still
            continue
        right += [] if new else [f"`{name}`"]
        found.passes += new.passes
        told = [wrong.case.what for wrong in found.found if wrong.weight == "corner" and wrong.case]
        for wrong in new.found if "encode" not in missing else ():  # which the others may call
            if any(wrong.mistake == other.mistake for other in found.found):
                wrong.mistake = None  # told already
            if not (wrong.weight == "corner" and wrong.case and wrong.case.what in told):
                found.found.append(wrong)
    if right:
        names = " and ".join(filter(None, [", ".join(right[:-1]), right[-1]]))
        found.passes.insert(0, f"{names} {'are' if len(right) > 1 else 'is'} right.")
    found.passes += dict.fromkeys(missing.values())
    if missing and not fails_in_use(found):
        raise NotAttempted(" ".join([*found.passes, *(wrong.claim for wrong in found.found)]))
    if not found:
        remarks += remarks_on_encode(learner)
        with found("style"):
            expect_from_scratch(lambda: learner(TEXTS[0]), [attempt])
    remarks += [
        f"The constructor changed the {argument} that it was given: make a copy, so that a second "
        "tokenizer of the same vocabulary is not surprised."
        for argument in sorted(learner.changed)
    ]
    praise = "Every text is encoded and decoded like the reference does it, in pieces too."
    return found.verdict(praise, remarks)
