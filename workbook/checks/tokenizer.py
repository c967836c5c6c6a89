"""The check of the class `Tokenizer`: encode, decode, encode_iterable, from_files.

Ordinary use is what nearly every text needs. The corners are an empty list of special tokens, a
special token that the vocabulary lacks, ids in no order, and a stream that is cut inside a token.
"""

import copy
import gc
import inspect
import json
import operator
import random
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial, partialmethod
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workbook.checks.calling import bind
from workbook.checks.engine import Exercise, Program, judge, mistake, shrink, shrink_list
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.pretokens import (
    CUTTING,
    LINE_ENDS,
    PLACES,
    READING,
    SPECIALS,
    SPLIT,
    UNSORTED,
    cut_specials,
    decode,
    mistakes,
    pretokens,
)
from workbook.checks.timeout import processor_seconds
from workbook.checks.verdicts import (
    Findings,
    NotAttempted,
    Words,
    Wrong,
    call,
    expect_class,
    first_difference,
    is_untouched,
    kind_of,
    meant,
    shown,
    slow,
    unfinished,
)
from workbook.tokenization.bpe import Pair, merge_pair, split_bytes, train_incremental
from workbook.tokenization.gpt2_files import byte_alphabet, to_readable

QUICK, LONG = 5.0, 20.0  # seconds of processor time that a short text and a long one may take
STOPPED = 2.0  # times LONG: a right result that comes until then is *almost*
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

    layout: str  # how the ids are assigned: a key of `LAYOUTS`
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
        """The special tokens; none if the argument is None."""
        return self.special_tokens or ()


class Case(NamedTuple):
    """A call of one method of a tokenizer."""

    setup: Setup
    method: str
    given: Any  # a text, ids, or the pieces of a text
    what: str = ""  # its kind, named if it fails

    text = property(lambda self: "".join(self.given), doc="What is encoded, its pieces joined.")
    with_what = property(lambda self: f" with {self.what}" if self.what else "")


# The reference.


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


# Mistakes, and functions for those that one line cannot show.


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


def skipping(symbols: list[bytes], pair: Pair) -> list[bytes]:
    """The symbols with the pair joined, except right after another joined pair."""
    symbols, at = [*symbols], 0
    while at < len(symbols) - 1:
        if (symbols[at], symbols[at + 1]) == pair:
            symbols[at : at + 2] = [b"".join(pair)]
            at += 1
        at += 1
    return symbols


BYTES = "symbols = [bytes([byte]) for byte in data]"
MERGE = "symbols = merge_pair(symbols, min(pairs, key=ranks.get))"
WORDS = (
    *mistakes(
        BYTES,
        ("Each token is the longest one in the vocabulary that matches. BPE applies the merges in "
         "the order in which they were learnt, which may give shorter tokens.",
         "return longest_match(data, ids)"),
        ("Each merge was applied at only one place in the word: apply it wherever it fits.",
         f"{BYTES}\nfor p in ranks:\n    symbols = once(symbols, p)\nreturn symbols"),
        ("No merge was applied: the ids are those of single bytes.",
         "return [bytes([byte]) for byte in data]"),
        ("A word that is not a token as a whole was split into bytes: apply the merges to it.",
         "return [data] if data in ids else [bytes([byte]) for byte in data]"),
        ("A word that is not a token as a whole got an id for unknown words: BPE has no such id, "
         "since its merges start from bytes.",
         "return [data] if data in ids else [min(ids, key=ids.get)]"),
        ("After a merge one symbol was skipped: the next pair may begin right after the new "
         "token, which in the shortened list is one place further on, not two.",
         f"{BYTES}\nfor p in ranks:\n    symbols = skipping(symbols, p)\nreturn symbols"),
        ("The latest merge was applied first: the earliest in the list `merges` goes first.",
         f"{BYTES}\nfor p in reversed(ranks):\n    symbols = merge_pair(symbols, p)\n"
         "return symbols"),
        ("Words were split into characters: BPE starts from bytes, and é or 猫 is several of them.",
         "symbols = [character.encode() for character in data.decode()]"),
    ),
    *mistakes(
        MERGE,
        ("The leftmost pair that can be merged was merged first: the earliest merge in the list "
         "goes first, wherever in the word it applies.",
         "symbols = once(symbols, pairs[0])"),
        ("The last symbol of the word was lost: a loop over pairs ends before it, so add it.",
         f"{MERGE}\nif len(symbols[-1]) == 1:\n    symbols.pop()",
         "p = min(pairs, key=ranks.get)\nsymbols = merge_pair(symbols, p)\n"
         "symbols = symbols if symbols[-1] == b''.join(p) else symbols[:-1]"),
        ("Only one merge was applied to each word: go on until no merge applies.",
         "return merge_pair(symbols, min(pairs, key=ranks.get))"),
        ("Equal pairs were merged from right to left: aaa becomes aa a.",
         "symbols = once(symbols, min(pairs, key=ranks.get), last=True)"),
    ),
    *mistakes("min(pairs, key=ranks.get)", *(
        (f"{which} was applied first: the earliest in the list `merges` goes first.", code)
        for which, code in (
            ("The latest merge", "max(pairs, key=ranks.get)"),
            ("The merge that makes the token with the smallest id",
             'min(pairs, key=lambda pair: ids[b"".join(pair)])'),
            ("The merge that makes the longest token",
             'min(pairs, key=lambda pair: (-len(b"".join(pair)), ranks[pair]))')))),
)  # fmt: skip


def counted_up(setup: Setup, lead: int, merges: bool = True) -> dict[bytes, int]:
    """Ids that are not looked up: the byte b is `lead` + b, and merge i comes after the bytes."""
    ids = {bytes([byte]): lead + byte for byte in range(256)}
    if merges:
        ids |= {b"".join(pair): lead + 256 + rank for rank, pair in enumerate(setup.merges)}
    return setup.ids() | ids


ALL = "tokens = case.setup.ids(), case.setup.specials()"
APPEND = "Special tokens that the vocabulary lacks must be appended to it."
TOKENS = (
    *mistakes(
        ALL,
        ("<|endoftext|> was treated as special though it is not in `special_tokens`: then it is "
         "ordinary text, even if the vocabulary holds it.",
         f"{ALL}\ntokens = [*tokens, *({{END}} & {{*case.setup.known}})]"),
        ("Ids come from the vocabulary, which may be in any order: yours were counted up, with "
         "byte b as id b, or after the special tokens.",
         *(f"{ALL}\nids = counted_up(case.setup, {how})"
           for how in ("0", "0, False", "len(tokens)"))),
        (APPEND, f"{ALL}\nids = {{t: i for i, t in case.setup.vocab().items()}}",
         f"{ALL}\ntokens = [t for t in tokens if t in case.setup.known]"),
    ),
    *mistakes(
        "if special:",
        (APPEND, "if special and part not in case.setup.known:\n    continue\nif special:"),
        ("The special tokens are missing from the ids: splitting with a group, `(...)`, "
         "keeps them.",
         "if special:\n    continue\nif special:"),
    ),
    *mistakes(
        SPLIT,
        ("Only the first special token in the text was found: there may be many.",
         SPLIT.replace("text)", "text, maxsplit=1)")),
        ("Special tokens were found only with white space around them.",
         r'regex.split(rf"(?<!\S)({pattern})(?!\S)", text)'),
    ),
    mistake("An empty list of special tokens became an empty pattern, which splits the text at "
            "every character: split only if there are special tokens.",
            "in pretokens(part)",
            "in (part if case.setup.special_tokens == () else pretokens(part))"),
)  # fmt: skip

JOINED = 'b"".join(tokens).decode("utf-8", errors="replace")'
DECODING = (
    *mistakes(
        JOINED,
        ("Each token was decoded by itself: a character may be spread over several tokens. Join "
         "all the bytes first, then decode once.",
         *(f'"".join(token.decode("utf-8", errors="{how}") for token in tokens)'
           for how in ("replace", "strict", "ignore"))),
        ("White space at the ends was stripped: the text must come back as it was.",
         JOINED + ".strip()"),
    ),
    *mistakes(
        'errors="replace"',
        ("Bytes that are not UTF-8 were dropped or written as \\x.., or raised an error: they "
         'become U+FFFD with `errors="replace"`.',
         *(f'errors="{how}"' for how in ("ignore", "strict", "backslashreplace"))),
    ),
    mistake("The bytes were decoded as Latin-1, or one by one with `chr`: they are UTF-8.",
            '"utf-8"', '"latin-1"'),
    mistake("The tokens were joined with spaces: the spaces are part of the tokens.",
            'b"".join', 'b" ".join'),
    mistake("The special tokens are missing from the text: they are decoded like the others.",
            "(tokens)", "(t for t in tokens if t.decode(errors='replace') not in left_out)",
            "tokens = [", "left_out = case.setup.specials()\ntokens = ["),
)  # fmt: skip


def last_part(cut: Callable[[str], list[str]] | str, pieces: Sequence[str]) -> list[str]:
    """The texts to encode if the last part so far, by `cut` or a pattern, is always held back."""
    texts, kept = [], ""
    for piece in pieces:
        text = kept + piece
        *done, kept = (regex.split(cut, text) if isinstance(cut, str) else cut(text)) or [""]
        texts += done
    return [*texts, kept]


def parts_of(text: str, tokens: Sequence[str]) -> list[str]:
    """The pre-tokens and special tokens of a text."""
    parts = cut_specials(text, tokens)
    return [each for part, special in parts for each in ([part] if special else pretokens(part))]


STREAMING = mistakes(
    '["".join(pieces)]',
    ("Each piece was encoded by itself. A cut may go through a word, a run of white space, a "
     "contraction or a special token: hold back the end that the next piece may still change.",
     "pieces"),
    ("The pieces were stripped, or split into words: their white space is text.",
     "[piece.strip() for piece in pieces]", "[word for piece in pieces for word in piece.split()]"),
    ("The pieces were joined with spaces or newlines: they already are the text.",
     r'[f"{piece}\n" for piece in pieces]', '[" ".join(pieces)]', r'["\n".join(pieces)]'),
    ("The text was cut at the last white space: in a run of spaces or newlines, all but the last "
     "one belong together, and a special token may hold a space.",
     r'last_part(r"(?s)(?=\s(?!.*\s))", pieces)'),
    ("The text was cut after the last newline: several newlines in a row are one run.",
     r'last_part(r"(?s)(?<=\n)(?!.*\n)", pieces)'),
    ("Only the last pre-token was held back: that is not enough for a contraction such as 'll, or "
     "a special token, that comes in two parts.",
     "last_part(pretokens, pieces)",
     "last_part(lambda text: parts_of(text, case.setup.specials()), pieces)"),
    ("The end of the text was never encoded: encode it when the pieces run out.",
     r'last_part("(?s)(?=[ \n](?!.*[ \n]))", pieces)[:-1]', '["".join(pieces[:-1])]'),
    ("Only the first piece was encoded: is there a `return` inside the loop?", "pieces[:1]"),
)  # fmt: skip

# The cases. Each distinguishes a few common mistakes; the first that fails is reported.

STAR = "<|.*|>"
LEARNT_FROM = (
    "the cat ate the hat that the bat had; in the end the other cats gathered there, then left.\n"
    "banana bandana ananas nanny cabana aaaa aaa aaaaaaa abab ababab abcabc bcabca\n\n"
    "It's what we'll do, they'd say: don't! We'RE here in 2026, 2025 and 1999.  Two  spaces, three "
    "  and    four.\n"
    "naïve café über día наука 猫猫狗 한국어 🙂🙂 <|text|> .* the\tthe end\n\n\n"
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
    (OWN, "in 2026 the19 the2026 x²x² ١٢ the_end (the) the!!\r\nend"),
    (ENDED, f"the{END}the end{END}{END} cat \n{END}\n {END}  {END}", MARKED),
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
    (setup(SPECIALS_FIRST, None, known=(END,)), f"the{END} end", f"{END} not in special_tokens"),
    (MIXED, LEARNT_FROM, NO_ORDER),
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
        self.remarks: list[str] = []

    def make(self, one: Setup, given: Words | None = None) -> Any:
        """A tokenizer. Raises: Wrong or NotAttempted, as `verdicts.call`."""
        given = given or Words(made_of(one))
        before, extras = {"vocab": one.vocab(), "merges": [*one.merges]}, {"special_tokens": None}
        values = {name: copy.copy(value) for name, value in before.items()}
        if one.special_tokens is not None:
            values, extras = {**values, "special_tokens": list(one.special_tokens)}, {}
        args, kwargs, _ = bind(self.attempt, values, extras=extras, given=given)
        made = call(self.attempt, *args, given=given, **kwargs)
        self.changed |= {name for name, value in before.items() if values[name] != value}
        return made

    def __call__(
        self, case: Case, tokenizer: Any = None, seconds: float = 0, given: Words | None = None
    ) -> list[int] | str:
        """What the method returns, as a str or a list of ints. Raises: Wrong and NotAttempted."""
        given, value = given or described(case), case.given
        made = self.make(case.setup, given) if tokenizer is None else tokenizer
        method = getattr(made, case.method)
        if case.method == "encode_iterable":
            method = partial(used_up, method)
        elif case.method == "decode":
            value = list(value)
        try:
            result = call(method, value, seconds=seconds or QUICK, given=given)
        except Wrong as wrong:
            if wrong.error:
                wrong.claim = f"`{case.method}` raised an error{case.with_what}."
            raise
        return in_one_form(result, case.method, given)


def used_up(method: Callable, pieces: Sequence[str]) -> Any:
    """Everything that the method yields, as a list; None, str and bytes stay as they are."""
    result = method(iter(pieces))
    return result if result is None or isinstance(result, str | bytes) else list(result)


def in_one_form(result: Any, method: str, given: Words) -> list[int] | str:
    """A result as a str or a list of ints. Raises: Wrong if it is something else."""
    if result is None:
        raise NotAttempted(f"`{method}` returned None: is a `return` missing?")
    asked, got, why = "a list of ids", kind_of(result), "Look up the id of each token."
    if method == "decode":
        if isinstance(result, str):
            return result
        asked, why = "a str", "Join the tokens, and decode the bytes."
    elif isinstance(result, Iterator):
        why = "`encode` is a generator (it has a `yield`): return a list."
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        try:
            return [operator.index(item) for item in result]
        except TypeError:
            odd = next((item for item in result if not hasattr(item, "__index__")), None)
            got = f"among the ids, {kind_of(odd)}"
            if not isinstance(odd, bytes | str):
                why = "Only ids belong there: add the items of a list, not the list (`yield from`)."
    raise Wrong(
        f"`{method}` does not give {asked}.",
        given=given,
        expected=Words(asked),
        got=Words(got),
        mistake=why,
    )


def same(one: list[int] | str, other: list[int] | str) -> bool:
    """True for equal ids, and for equal texts however many U+FFFD stand for a malformed stretch."""
    if isinstance(one, str) and isinstance(other, str):
        one, other = (regex.sub(f"{REPLACED}+", REPLACED, text) for text in (one, other))
    return one == other


# What is said about a case.


def described(case: Case) -> Words:
    """The call, and what the tokenizer is made of as far as it matters."""
    if case.method == "decode":
        return Words(f"decode(ids) with the ids {readable(list(case.given), case.setup)}")
    argument = case.given if case.method == "encode" else list(case.given)
    made = made_of(case.setup, case.text)
    return Words(f"{case.method}({shown(argument)}) of a tokenizer {made}")


def made_of(one: Setup, text: str = "") -> str:
    """The merges that can apply to a text, the special tokens and the order of the ids."""
    merges = [pair for pair in one.merges if b"".join(pair) in text.encode()]
    words = f"with {len(one.merges)} merges" if one.merges else "without merges"
    if 0 < len(merges) <= 8:
        words = f"with the merges {merges}"
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
    spelt = [repr(tokens[i]) if i in tokens else f"{i} is not an id" for i in ids[:24]]
    return Words(f"{shown(ids)}: {' '.join(spelt)}{' ...' * (len(ids) > 24)}" if ids else "[]")


def beside(case: Case, asked: list[int] | str, got: list[int] | str) -> Wrong:
    """What to say about a wrong result."""
    ids = case.method != "decode"
    torn = "A character was split between tokens: join all bytes first, then decode once."
    return Wrong(
        f"`{case.method}` does not give the expected result{case.with_what}.",
        given=described(case),
        expected=readable(asked, case.setup) if ids else asked,
        got=readable(got, case.setup) if ids else got,
        mistake=seen(case, asked, got) if ids else torn if REPLACED in got else None,
    )


def seen(case: Case, asked: list[int], got: list[int]) -> str:
    """What wrong ids show when no known mistake explains them."""
    names = {token_id: token for token, token_id in case.setup.ids().items()}
    right, known = ([names.get(token_id, b"") for token_id in ids] for ids in (asked, got))
    at, end, part = first_difference(asked, got), 0, ""
    start = len(b"".join(right[:at]))
    for part in parts_of(case.text, case.setup.specials()):
        end += len(part.encode())
        if start < end:
            break
    if part in case.setup.specials():
        return (
            f"The special token {part!r} is one id, {case.setup.ids()[part.encode()]}: that of the "
            "vocabulary, or the next free one if the vocabulary lacks it."
        )
    if strange := [token_id for token_id in got if token_id not in names]:
        return f"{strange[0]} is not an id of the vocabulary, nor of a special token added to it."
    if b"".join(known) != case.text.encode():
        spelt = b"".join(known).decode("utf-8", "replace")
        return f"The ids spell a different text, {shown(spelt)}: nothing may be lost or added."
    if start + len(known[at]) > end:
        return f"The token {known[at]!r} reaches across two pre-tokens of GPT-2's pattern."
    if case.method == "encode":
        return (
            f"In {part!r} the token {right[at]!r} should come where {known[at]!r} is: of the "
            "merges that apply, the earliest in the list goes first, until none is left."
        )
    return f"{part!r} was cut in two: hold back the end of the text until it is clear what follows."


def simpler(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails: first with less input, then with a simpler tokenizer."""

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
            known, tokens = (tuple(t for t in ts if t != gone) for ts in case.setup[2:])
            if tokens:  # an empty list would be another case
                tries(special_tokens=tokens, known=known)
    return case


def _fewer(case: Case, fails: Callable[[Case], bool]) -> tuple:
    """Fewer ids, or fewer and shorter pieces, that still fail; lines stay lines."""

    def still(items: list) -> bool:
        fits = case.what != LINES or all(regex.fullmatch(r"[^\n]*\n", piece) for piece in items)
        return fits and fails(case._replace(given=tuple(items)))

    items = shrink_list(list(case.given), still)
    if case.method == "encode_iterable":
        halves = [["".join(items[:at]), "".join(items[at:])] for at in range(1, len(items))]
        items = next(filter(still, halves if len(items) > 2 else ()), items)
        for at in range(len(items)):
            before, after = items[:at], items[at + 1 :]
            items[at] = shrink(items[at], lambda text: still([*before, text, *after]), 1.0)  # noqa: B023 - called at once
    return tuple(items)


# The exercises.

COMMON = {"run": Learner.__call__, "same": same, "report": beside, "smaller": simpler}
ENCODE = Exercise(
    program=Program(
        *(decode, pretokens, cut_specials, merged, encoded),
        places=PLACES
        | {
            "[bytes([byte])": "how a word becomes single bytes",
            "min(pairs": "which merge goes first",
            "ranks = {": "the ranks of the merges",
            "ids[symbol]": "how tokens become ids",
        },
    ),
    mistakes=(*WORDS, *SPECIALS, *UNSORTED, *TOKENS, *CUTTING, *READING, LINE_ENDS),
    cases=TEXTS,
    corners=ODD_TEXTS,
    errors={
        r"NoneType' object is not (iter|subscr)|NoneType' has no len": "special_tokens is None, "
        "which means no special tokens: use `special_tokens or []`.",
        r"(min|max)\(\)": "A word of one byte has no pair to choose from: stop when none is left.",
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
        "a list: loop over it, without `len`, indexing or `read`.",
    },
    **COMMON,
)

# What no single call shows.

BOTH = cases(  # words that are new, and known to another tokenizer when they come again
    "encode",
    (PLAIN, "lathe nettles"),
    (Setup(SHUFFLED, HANDOUT, (), None), "bathe nettle"),
    (PLAIN, "bathe nettle"),
)


def expect_no_memory(learner: Learner, *cases: Case) -> None:
    """Raise `Wrong` if only the last result is wrong, because of what earlier calls left behind.

    What is wrong from the start is left to the exercise.
    """
    try:
        tokenizers = {case.setup: learner.make(case.setup) for case in cases}
        results = [learner(case, tokenizers[case.setup]) for case in cases]
    except Wrong:
        return
    rights = [ids_of(case.setup, case.text) for case in cases]
    if results[:-1] == rights[:-1] and results != rights:
        at = len(rights) - 1
        wrong = beside(cases[at], rights[at], results[at])
        wrong.claim = f"A call of `{cases[at].method}` changes what the next one gives."
        wrong.mistake = (
            "Something is kept from call to call, or shared between tokenizers: a class attribute, "
            "a default argument such as `cache={}`, what a stream held back. Keep caches on "
            "`self`, and the rest of a stream in a local variable."
        )
        raise wrong


SLOW = {
    "encode": "Probably the time grows with the square of the length: look up ids in a dict, not "
    "in a list, merge inside pre-tokens only, and do not copy the rest of the text for each token.",
    "encode_iterable": "Probably each piece makes it encode again all that it has read: keep "
    "only the end that the next piece may still change.",
}
MANY_LINES, ONE_WORD = ORDINARY * (80_000 // len("".join(ORDINARY))), ("gathered" * 6,) * 20


def expect_quick(learner: Learner, method: str, pieces: Sequence[str]) -> None:
    """Raise `Wrong` if a long text takes much longer than it needs, or gives other ids."""
    case = Case(PLAIN, method, pieces if method == "encode_iterable" else "".join(pieces))
    what = "in lines" if pieces is MANY_LINES else "without any space"
    given = Words(f"{method}(text), where the text is {len(case.text):,} characters {what}")
    right, before = ids_of(PLAIN, case.text), processor_seconds()
    try:
        ids = learner(case, seconds=STOPPED * LONG, given=given)
    except Wrong as wrong:
        if wrong.timed_out:
            wrong.claim = f"`{method}` is far too slow: {wrong.claim[len('It was ') :]}"
            wrong.mistake = SLOW[method]
        raise
    used = processor_seconds() - before
    if ids != right:
        at = first_difference(right, ids)
        raise Wrong(
            f"`{method}` gives wrong ids for a long text, though short texts are right.",
            given=given,
            expected=right[at : at + 8],
            got=Words(f"{ids[at : at + 8]}, from index {at:,} on"),
            mistake=seen(case._replace(method="encode_iterable"), right, ids),
        )
    if used > LONG:
        raise slow(f"The ids of `{method}` are right", used, LONG, given, SLOW[method])


READ_AHEAD = 1_500_000  # characters that may be read before the first id comes
BUFFER = 32_000  # memory is not measured if it reads further ahead: a buffer is not a leak
FEW, MANY = 8_000, 40_000  # characters after which memory is measured


def expect_lazy(learner: Learner) -> None:
    """Raise `Wrong` if the stream is read to its end first, or what was read is kept."""
    given, read, held = Words("`encode_iterable(lines)`, with endless lines"), 0, []

    def lines() -> Iterator[str]:
        nonlocal read
        for line in cycle(ORDINARY):
            if read > READ_AHEAD:
                raise EOFError
            read += len(line)
            yield line

    def run() -> None:
        ids = iter(learner.make(PLAIN).encode_iterable(lines()))
        held.append(next(ids))
        if read < BUFFER:
            tracemalloc.start(1)
            try:
                for many in (FEW, MANY):
                    while read < many:
                        next(ids)
                    gc.collect()  # a recursive function may leave cycles behind
                    held.append(tracemalloc.get_traced_memory()[0])
            finally:
                tracemalloc.stop()

    try:
        call(run, seconds=LONG, given=given)
    except Wrong as wrong:
        if held and wrong.timed_out:
            return  # tracing memory takes time: that is not the tokenizer's fault
        if held or (read <= READ_AHEAD and not wrong.timed_out):
            raise
        raise Wrong(
            "`encode_iterable` is not lazy.",
            given=given,
            expected=Words("an id after a line or two"),
            got=Words(f"no id after {read:,} characters"),
            mistake="It reads the whole stream before it yields anything: yield ids as soon "
            "as they are certain. Joining the pieces, or making a list, needs memory for all "
            "of the text.",
        ) from None
    if len(held) > 1 and held[2] - held[1] > (MANY - FEW) // 2:
        raise Wrong(
            "`encode_iterable` needs more memory the more it reads.",
            given=given,
            expected=Words("about as much memory as after the first lines"),
            got=Words(f"{held[2] - held[1]:,} more bytes after {MANY - FEW:,} more characters"),
            mistake="The text that was read, or its ids, is kept: drop both once the ids are out.",
        )


# `from_files`, whose file format the course leaves open: GPT-2's is tried, and a failure remarked.

FROM_FILES = Words("Tokenizer.from_files(vocab_filepath, merges_filepath, special_tokens)")
OPEN = (
    "`from_files` does not read GPT-2's files (vocab.json and merges.txt, in the alphabet where a "
    "space is Ġ). The course leaves the format open, so any other of your own is right too."
)


def check_files(learner: Learner) -> Findings:
    """What is wrong with `from_files`: it cannot be called, or makes no tokenizer."""
    found, method = Findings(), inspect.getattr_static(learner.attempt, "from_files")
    case = Case(ENDED, "encode", f"the cat{END} é\n")
    spelt = {to_readable(token): token_id for token, token_id in ENDED.ids().items()}
    lines = [f"{to_readable(left)} {to_readable(right)}\n" for left, right in ENDED.merges]
    with found("corner"), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if not isinstance(method, classmethod | staticmethod):
            why = "`@classmethod` is missing above `def from_files(cls, ...)`."
            raise Wrong("`from_files` must be a class method.", given=FROM_FILES, mistake=why)
        vocab, merges = Path(folder, "vocab.json"), Path(folder, "merges.txt")
        vocab.write_text(json.dumps(spelt), encoding="utf-8")
        merges.write_text("".join(lines), encoding="utf-8", newline="\n")
        values = {"vocab_filepath": str(vocab), "merges_filepath": str(merges)}
        values["special_tokens"] = [END]
        args, kwargs, _ = bind(learner.attempt.from_files, values, given=FROM_FILES)
        made = learner.attempt
        try:
            made = call(learner.attempt.from_files, *args, given=FROM_FILES, **kwargs)
            if made is None:
                raise AttributeError
            right = learner(case, made) == ENCODE.expected(case)
        except Wrong as wrong:
            if isinstance(wrong.error, NameError):  # whatever the format is
                raise
            right = False
        except AttributeError:  # it has no `encode`
            why = "End it with `return cls(vocab, merges, special_tokens)`."
            claim, got = "`from_files` does not make a tokenizer.", Words(kind_of(made))
            raise Wrong(claim, given=FROM_FILES, got=got, mistake=why) from None
        if not right:
            learner.remarks.append(OPEN)
    return found


# The verdict.


LOOKS = Counter()  # at merges


def _look(merge: tuple, how: Callable, *arguments: Any) -> Any:
    LOOKS["all"] += 1
    return how(merge, *arguments)


SEEN_BY = ("__iter__", "__getitem__", "__eq__", "__hash__")
Watched = type("Watched", (tuple,), {n: partialmethod(_look, getattr(tuple, n)) for n in SEEN_BY})


def remarks_on_encode(learner: Learner) -> Iterator[str]:
    """Remarks on what a right `encode` returns and how it goes through the merges."""
    words = [f" q{letter}z" for letter in "abcdefghijklmnop"]
    tokenizer = learner.make(PLAIN._replace(merges=tuple(map(Watched, PLAIN.merges))))
    LOOKS.clear()
    result = call(tokenizer.encode, "".join(words), seconds=QUICK)
    if LOOKS["all"] > len(words) * len(PLAIN.merges) // 2:
        yield (
            "`encode` goes through the whole list of merges for every new word: with 32,000 merges "
            "that is slow. Look up only the pairs of the word, in a dict pair -> rank."
        )
    if not isinstance(result, list):
        kind = kind_of(result).partition(":")[0]
        yield f"`encode` returns {kind}: the problem asks for a list of ints."


def check_encode(learner: Learner) -> Findings:
    """What is wrong with `encode`."""
    found = Findings()
    with found("use"):
        expect_no_memory(learner, *BOTH)
    found = found or judge(ENCODE, learner)
    if not found.in_use:
        with found("use"):
            expect_quick(learner, "encode", MANY_LINES)
            expect_quick(learner, "encode", ONE_WORD)
    return found


def check_stream(learner: Learner) -> Findings:
    """What is wrong with `encode_iterable`."""
    found = judge(STREAM, learner)
    if not found.in_use:
        with found("use"):
            expect_quick(learner, "encode_iterable", MANY_LINES)
            expect_no_memory(learner, *STREAMS[:1] * 2)
            with found("corner"):
                expect_lazy(learner)
            if found:
                found.passes = ["`encode_iterable` is right for the lines of ordinary text."]
            else:
                expect_quick(learner, "encode_iterable", ONE_WORD)
    return found


CHECKS = {
    "encode": check_encode,
    "decode": partial(judge, DECODE),
    "encode_iterable": check_stream,
    "from_files": check_files,
}


def tokenizer(attempt: Any, part: str | None = None) -> str:
    """Praise for a right class; raises `Wrong` with the smallest input that fails."""
    expect_class(attempt, "class Tokenizer with Tokenizer(vocab, merges, special_tokens=None)")
    if "__init__" in vars(attempt) and is_untouched(attempt.__init__):
        raise NotAttempted("`__init__` is still missing.")
    learner, found, right, missing = Learner(attempt), Findings(), [], {}
    for name, check in CHECKS.items():
        if name not in ("encode", "decode") and found.in_use:
            break  # the others rest on these two
        try:
            if not hasattr(attempt, name):
                raise NotAttempted(f"`{name}` is still missing{meant(attempt, name, CHECKS)}")
            if not callable(getattr(attempt, name)) or is_untouched(getattr(attempt, name)):
                raise NotAttempted(f"`{name}` is still missing.")
            new = check(learner)
        except NotAttempted as stub:
            missing[name] = unfinished(stub).claim
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
    if [*missing] == ["from_files"]:
        with found("corner"):  # the other three are what the course's tests call
            raise Wrong(missing.pop("from_files"))
    found.passes += dict.fromkeys(missing.values())
    if missing and not found.in_use:
        raise NotAttempted(" ".join([*found.passes, *(wrong.claim for wrong in found.found)]))
    if not found:
        learner.remarks += remarks_on_encode(learner)
        with found("style"):
            expect_from_scratch(lambda: learner(TEXTS[0]), [attempt])
    learner.remarks += [
        f"The constructor changed the {argument} that it was given: make a copy, so that a second "
        "tokenizer gets the same vocabulary."
        for argument in sorted(learner.changed)
    ]
    praise = "Every text is encoded and decoded as in the reference, in pieces too."
    return found.verdict(praise, learner.remarks)
