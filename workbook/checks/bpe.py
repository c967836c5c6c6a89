"""The check of `train_bpe`: texts to train on, and the mistake that explains what went wrong."""

import multiprocessing
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from workbook.checks.calling import call_part, meaning
from workbook.checks.engine import Exercise, Program, judge, mistake, shrink
from workbook.checks.from_scratch import expect_from_scratch
from workbook.checks.pretokens import (
    CUTTING,
    KEPT,
    LIKE_TEXT,
    LINE_ENDS,
    LONGEST,
    PLACES,
    READING,
    SPECIALS,
    cut_specials,
    decode,
    mistakes,
    pretokens,
)
from workbook.checks.timeout import processor_seconds
from workbook.checks.verdicts import (
    ENDLESS,
    WORKERS,
    Findings,
    NotAttempted,
    NotJudged,
    Words,
    Wrong,
    expect_function,
    first_difference,
    kind_of,
    shown,
    slow,
    where,
)
from workbook.tokenization.bpe import count_pairs, merge_pair, split_bytes, train_incremental
from workbook.tokenization.gpt2_files import to_readable  # noqa: F401 - for an edit

SIGNATURE = "train_bpe(input_path, vocab_size, special_tokens) -> (vocab, merges)"
END = "<|endoftext|>"
QUICK, LONG = 5.0, 20.0  # seconds of processor time that a short text and a long one may take
STOPPED = 2.0  # times LONG: a right result that comes until then is *almost*
# If the smallest text takes more seconds, as when each call starts processes, fewer texts are run.
SLOW, VERY_SLOW = 0.25, 2.0
DYING = 64 + 4 * (os.cpu_count() or 1)  # processes that no call needs, unless its workers die

Pair = tuple[bytes, bytes]
Word = list[bytes]


class Case(NamedTuple):
    """A text to train on, and the room for merges."""

    text: str
    num_merges: int
    special_tokens: tuple[str, ...] = (END,)
    what: str = ""  # makes it a corner

    @property
    def vocab_size(self) -> int:
        """The size of a vocabulary with room for that many merges."""
        return 256 + len(self.special_tokens) + self.num_merges


# The reference. It shares the plain parts with `tokenization.bpe`, but keeps its own counts.


def documents(case: Case) -> list[str]:
    """The parts between the special tokens."""
    parts = cut_specials(decode(case.text.encode()), case.special_tokens)
    return [part for part, special in parts if not special]


def pretoken_counts(case: Case) -> Counter[str]:
    """How often each pre-token occurs, in order of first appearance."""
    parts = [pretokens(document) for document in documents(case)]
    return Counter(token for part in parts for token in part)


def train(case: Case) -> list[Pair]:
    """The merges, in order."""
    words = [(split_bytes(token), n) for token, n in pretoken_counts(case).items()]
    pairs, merges = count_pairs(words), []
    while pairs and len(merges) < case.num_merges:
        most = max(pairs.values())
        tied = [pair for pair, count in pairs.items() if count == most]
        best = max(tied)
        merges.append(best)
        for place, (word, n) in enumerate(words):
            merged = merge_pair(word, best) if best[0] in word else word
            if merged != word:
                words[place] = merged, n
                old, new = count_pairs([(word, n)]), count_pairs([(merged, n)])
                pairs.subtract(old)
                pairs.update(new)
        pairs = +pairs
    return merges


# Helpers for the edits of the reference.


def seen(words: list[tuple[Word, int]], tied: list[Pair]) -> list[Pair]:
    """The tied pairs, in the order in which they occur in the words."""
    wanted = set(tied)
    return list(dict.fromkeys(p for word, _ in words for p in pairwise(word) if p in wanted))


def by_id(case: Case, merges: list[Pair]) -> Callable[[Pair], list[int]]:
    """A key that compares the ids of tokens."""
    ids = {token: place for place, token in enumerate(vocabulary(case, merges))}
    return lambda pair: [ids[token] for token in pair]


def apart(word: Word) -> Iterator[Pair]:
    """The pairs of a word, skipping every second of overlapping equal ones."""
    last = None
    for pair in pairwise(word):
        last = None if pair == last else pair
        if last:
            yield pair


def near(pairs, word, pair, n, left=(1, 1), right=(1, 1), fresh=True, step=2) -> None:
    """Update the counts around each occurrence of the pair, perhaps on one side only.

    `left` and `right` say how many times n is subtracted from the old pair and added to the new.
    If not `fresh`, the left neighbour is read from the old word, even if it was merged too.
    """
    joined, done, at = pair[0] + pair[1], [], 0
    while at < len(word):
        if tuple(word[at : at + 2]) != pair:
            done.append(word[at])
            at += 1
            continue
        if done:
            neighbour = done[-1] if fresh else word[at - 1]
            pairs[neighbour, pair[0]] -= n * left[0]
            pairs[neighbour, joined] += n * left[1]
        if at + 2 < len(word):
            pairs[pair[1], word[at + 2]] -= n * right[0]
            pairs[joined, word[at + 2]] += n * right[1]
        done.append(joined)
        at += step


TIE = "When pairs tie in frequency, merge the greater one, as Python compares tuples of bytes: "
TIES = mistakes("best = max(tied)", *(
    (TIE + words, *(f"best = {choice}" for choice in choices)) for words, *choices in (
        ("you took the first seen.", "seen(words, tied)[0]", "tied[0]"),
        ("you took the last seen.", "seen(words, tied)[-1]", "tied[-1]"),
        ("you took the smaller pair.", "min(tied)"),
        ("you compared their ids. A greater id only means a later token.",
         "max(tied, key=by_id(case, merges))", "min(tied, key=by_id(case, merges))"),
        ("you compared the two parts joined into one string, but (b'a', b'bc') is less than "
         "(b'ab', b'b') although abc is greater than abb.", "max(seen(words, tied), key=b''.join)"),
        ("you compared decoded text, where all bytes that form no whole character look the same.",
         *(f"max(seen(words, tied), key=lambda pair: [t.decode(errors={how!r}) for t in pair])"
           for how in ("replace", "ignore"))),
        ("you compared GPT-2's visible characters, where the space (Ġ) comes after the letters.",
         "max(tied, key=lambda pair: tuple(map(to_readable, pair)))"),
        ("your key inverts the bytes (as for a heap), which ranks a short string above a longer "
         "one that begins with it, but b'ab' is greater than b'a'.",
         "min(tied, key=lambda pair: [[-byte for byte in token] for token in pair])"),
        ("you compared only one part of the pair, or the second part first.",
         "max(seen(words, tied), key=lambda pair: pair[0])",
         "max(seen(words, tied), key=lambda pair: pair[1])",
         "max(tied, key=lambda pair: pair[::-1])"),
        ("you took the longer one, or the shorter one.",
         "max(seen(words, tied), key=lambda pair: len(b''.join(pair)))",
         "max(tied, key=lambda pair: (len(b''.join(pair)), pair))",
         "min(seen(words, tied), key=lambda pair: len(b''.join(pair)))"),
        ("you compared their `str` or `repr`.", "max(tied, key=str)"),
    )
))  # fmt: skip
BETWEEN = "[part for part, special in parts if not special]"
SPLITTING = (
    mistake(f"{LIKE_TEXT} A split with a group, `(...)`, keeps them: leave these parts out.",
            "if not special]", "if True]"),
    *(mistake(f"The special tokens were {how}: they are hard boundaries that no pre-token and "
              "no pair crosses.",
              KEPT, "enumerate(parts)", BETWEEN, f"[{between!r}.join({BETWEEN})]")
      for how, between in (("cut out, and the text on both sides joined", ""),
                           ("replaced by a space", " "), ("replaced by a newline", "\n"))),
    *mistakes(KEPT, (
        "The text before the first special token, or after it, or after the last, was left out.",
        *(f"{KEPT} and {how}" for how in ("not at", "(at or len(parts) < 2)",
                                          "(at < len(parts) - 1 or len(parts) < 2)")))),
    mistake("<|endoftext|> was treated as special though it is not in `special_tokens`.",
            "case.special_tokens)", "(*case.special_tokens, END))"),
)  # fmt: skip
SYMBOLS, COUNTED = "split_bytes(token)", "pretoken_counts(case).items()]"
JOIN, MERGE = "merged.append(left + right)", "merge_pair(word, best)"
OLD, NEW, KEEP = "pairs.subtract(old)", "pairs.update(new)", "pairs = +pairs"
BROKEN = "after a merge, subtract the pairs that it broke up."
FRESH = "after a merge, count the pairs of the new token with its neighbours."
NEAR = "near(pairs, word, best, n, {})".format
STALE = (  # the words, then what the counts are mended by
    ("each merge changes the counts of its neighbours; yours were counted once.", "pass", "pass"),
    (BROKEN, "pass", "pairs.update(new - old)"),
    (BROKEN, "pass", NEW),
    (FRESH, "pairs.subtract(old - new)", "pass"),
    (FRESH, OLD, "pass"),
    *(
        (f"{what} on the {side} of a merge was forgotten.", NEAR(f"{side}={times}"), "pass")
        for side in ("left", "right")
        for what, times in (
            ("the neighbour", (0, 0)),
            ("the new pair with the neighbour", (1, 0)),
            ("subtracting the old pair with the neighbour", (0, 1)),
        )
    ),
    ("when a pair comes twice in a row (abab), the second one's left neighbour is the new token.",
     NEAR("fresh=False"), "pass"),
    ("when pairs overlap (aaa), only the first of them is merged; step over both parts.",
     NEAR("fresh=False, step=1"), "pass"),
)  # fmt: skip
RAN_OUT = "The text may run out of pairs before the vocabulary is full: training then stops, "
COUNTS = (
    mistake("The last byte of the file was lost: a slice, or a part, ends one past its last byte.",
            "case.text.encode()", "case.text.encode()[:-1].decode(errors='ignore').encode()"),
    mistake("Each distinct pre-token was counted once: multiply its pairs' counts by its own.",
            SYMBOLS + ", n)", SYMBOLS + ", 1)"),
    mistake("Each pre-token was counted once in each stretch between special tokens: count it as "
            "often as it occurs.",
            "for token in part)", "for token in dict.fromkeys(part))"),
    mistake("Pre-tokens that occur once were left out.", COUNTED, COUNTED[:-1] + " if n > 1]"),
    mistake("Training started from characters, not from bytes: é or 猫 is several bytes.",
            SYMBOLS, "[character.encode() for character in token]"),
    *mistakes(
        "in pairwise(symbols):",
        ("A pair that occurs twice in a word was counted once.",
         "in dict.fromkeys(pairwise(symbols)):"),
        ("Overlapping pairs were not counted: in aaa the pair (a, a) counts twice.",
         "in apart(symbols):"),
        ("The last pair of each word was not counted: does a `range` end one too early?",
         "in pairwise(symbols[:-1]):"),
    ),
    mistake("Only the first occurrence of the pair in each word was merged.",
            JOIN, "return [*merged, left + right, *symbols[at + 2 :]]"),
    mistake("Pairs were merged from right to left: aaa becomes aa a, not a aa.",
            MERGE, "merge_pair(word[::-1], best[::-1])[::-1]", JOIN, "merged.append(right + left)"),
    mistake("After a merge the next symbol was looked at again: step over both parts, so that aaa "
            "becomes aa a.",
            "at += 2", "at += 1"),
    mistake("After a merge one symbol was skipped: the next pair may begin right after the new "
            "token, which in the shortened list is one place further on, not two.",
            JOIN, f"{JOIN}\nmerged += symbols[at + 2 : at + 3]\nat += 1"),
    mistake("The pair was also merged where it is only the end of one longer token and the "
            "start of the next: compare whole tokens.",  # b"\xff" occurs in no UTF-8
            MERGE, 'b"\\xff\\xff".join(word).replace(b"\\xff\\xff".join(best), b"".join(best))'
            '.split(b"\\xff\\xff")'),
    *(mistake(f"The counts are stale: {words}",  # without updates, the merged pair is dropped
              OLD, old, NEW, new, KEEP, f"pairs.pop(best)\n{KEEP}") for words, old, new in STALE),
    *mistakes(
        "case.num_merges",
        ("One special token was assumed: there is room for "
         "vocab_size - 256 - len(special_tokens) merges.", "case.vocab_size - 257"),
        ("There is one merge too few: off by one.", "case.num_merges - 1"),
        ("There are too many merges: off by one, or you forgot that `vocab_size` includes the "
         "256 bytes and the special tokens.",
         "case.vocab_size - 256", "case.num_merges + 1", "case.vocab_size"),
    ),
    *mistakes(
        "while pairs and",
        ("Training stopped when the best pair occurred only once. Some libraries choose to do "
         "so, but the course's algorithm goes on while any pair is left.",
         "while max(pairs.values(), default=0) > 1 and"),
        (RAN_OUT + "with fewer merges.", "while"),
    ),
    mistake(RAN_OUT + "and no pair is merged again.",
            "return merges", "return merges + merges[-1:] * (case.num_merges - len(merges))"),
)  # fmt: skip

# The texts. Each distinguishes a few common mistakes; the first that fails is shown.

SMALL = (
    Case("hug hug hug pug", 3),
    # Ties: the greater pair is neither the first seen, nor the last, nor ...
    Case("ba zz ca zy dd dd", 1),
    Case(f"low low low!{END}low lower newer{END}er er", 4),
    # Runs of one letter: how overlapping pairs are counted and merged.
    Case(" aaaa aaa aaaaa aa" * 2, 3),
    # A pair twice in a row and twice in a word.
    Case(" ababab abab abc abc babab cab" * 2, 7),
    # Counts around a merge.
    Case("banana bandana ananas nanny cabana " * 2, 14),
    # Ties between tokens of several bytes.
    Case("abc bca cab abb bab aab bba " * 2, 12),
    # Tokens that begin alike, and bytes that form no whole character.
    Case("ö ø ö ø é è ü û ñ 猫 猴 狗 猫 é 🙂🙃 " * 2, 20),
    # Special tokens: at both ends, side by side, inside a word, beside line ends.
    Case(f"{END}ab{END}{END}abc ab {END} cab\n\n{END}\n\nab" * 2, 5),
    Case(f"ab{END}\n\n\nab ba{END}\nab\n\n" * 2, 4),
    # All that the pattern keeps apart.
    Case("It's we'll I'd 'TIS 'quote' CAN'T DON'T" * 2, 18),
    Case("a  b   cc\n\n\nd \n e\tf\u00a0g\u3000h \n\n  x  " * 2, 12),
    Case("in 2026 and 12345 x2 7up 3.14 a_b b_c x² ½ Ⅳ ١٢٣ " * 2, 28),
    Case("naïve Übung día हिन्दी 한국어 наука e\u0301te\u0301 " * 2, 40),
    Case("stop! (really?) ... --- #1 a+b=c => <b>!> e-mail!!\nEnd.\n" * 2, 22),
)
EVERYTHING = Case(END.join(case.text for case in SMALL), 160)
OTHER = Case("vw", 1)  # shares no letter with the first text


def _larger() -> Iterator[Case]:
    """Longer texts drawn from a seed, for mistakes that short ones do not reveal."""
    rng = random.Random(336)
    syllables = [rng.choice("bdklmnrst") + rng.choice("aeio") for _ in range(12)]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(60)]
    marks = [*"    ", ", ", ". ", "\n", "\n\n", "  ", " 12 ", "'s ", END, "é "]
    yield Case("".join(rng.choice(words) + rng.choice(marks) for _ in range(350)), 110)
    yield Case("".join(rng.choices("ab ", (6, 3, 1), k=700)), 40)
    yield Case("".join(rng.choices("猫猴狗éèab 🙂", k=400)), 30)


LARGER = tuple(_larger())
RUNS_OUT = "a text that runs out of pairs before the vocabulary is full"
SEVERAL = "several special tokens"
CORNERS = (
    Case("hug hug hug pug", 3, (), "special_tokens=[]"),
    Case("ab cab", 9, what=RUNS_OUT),
    Case(f"ab{END}", 3, what=RUNS_OUT),
    Case("ab ab cd ef", 4, what="pairs that occur only once"),
    Case("ab<|pad|>ab<|pad|>ba" * 2, 2, ("<|pad|>",), "a special token that is not <|endoftext|>"),
    Case(f"b<|pad|>abc{END}abc<|pad|>{END}ab" * 2, 2, ("<|pad|>", END), SEVERAL),
    Case("x<|.*|>y z<|.*|>y z<|+|>zy (a|b) <|*|> xy zy\n<|+|>\nxz " * 2, 9, ("<|.*|>", "<|+|>"),
         SEVERAL),
    Case(f"ab{END}ab{END}ba" * 2, 11, ("<|pad|>",),
         "<|endoftext|> in the text but not in special_tokens"),
    Case(f"ab{END}   {END}   {END}ba" * 2, 2, what="a document of nothing but white space"),
)  # fmt: skip
ANY_TOKENS = "`special_tokens` may hold any strings, any number of them or none."
OPEN = (  # what the course does not settle, and what to say of another result
    (Case("ab\r\ncd\r\nab\r\n\r\n" * 3, 6), LINE_ENDS.words),
    (
        Case("bd<|end|>bc<|end|>bc<|end|>bcbd<|x<|end|>y|>", 1, ("<|end|>", "<|end|>b")),
        LONGEST + "or the longer one is cut apart.",
    ),
    (Case("", 4), "An empty file gives the 256 bytes, the special tokens and no merges."),
)
FRESH_START = (
    "Something is kept from call to call: a global, a default argument such as `merges=[]`, or a "
    "cache; or ties are broken at random. Start every call with fresh lists and dicts."
)
THROUGH_ALL = (
    "Probably each merge goes through the whole text again. Store each distinct pre-token once, "
    "with its count, and update only the counts that a merge changes."
)
CUT = (
    "Probably the file is read in parts whose boundaries fall inside words, or inside the bytes of "
    "a character. Move each boundary to a special token, or hold back the end of a part until the "
    "next one is read."
)
AT_SIZE = (
    "All short texts were right, so this shows only on long ones: counts that drift from merge to "
    "merge, parts of the file counted twice or left out, or workers whose counts are not added up."
)
WORD = " Größenwahn"  # 13 bytes and 11 characters, so that boundaries at 4096, 65536 ... cut it


# What a learner's `train_bpe` returned, or a description of what is wrong with it.

FORM = Words("(vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]])")
BYTES = bytes | bytearray


def described(case: Case) -> Words:
    """The call as the learner would make it, and what the file holds."""
    call = f"train_bpe(path, {case.vocab_size}, {list(case.special_tokens)})"
    held = shown(case.text) if case.text else "nothing"
    room = f"{case.num_merges} merge{'' if case.num_merges == 1 else 's'}"
    return Words(f"{call}, room for {room}; the file holds {held}")


def answer(result: Any, given: Words) -> tuple[dict[int, bytes], list[Pair]]:
    """The vocabulary and the merges; raises `Wrong` if they are not in the form asked for.

    An object that keeps them as attributes, such as a trainer that returns nothing, will do.
    """
    if result is None:
        raise NotAttempted("It returned None: is `return vocab, merges` missing?")
    names = {meaning(name, ("vocab", "merges")): name for name in getattr(result, "__dict__", ())}
    if len(names.keys() & {"vocab", "merges"}) == 2:
        result = getattr(result, names["vocab"]), getattr(result, names["merges"])
    if isinstance(result, tuple | list) and len(result) == 2:
        vocab, merges = result
        if isinstance(merges, Iterable) and not isinstance(merges, Mapping | str | BYTES):
            merges = list(merges)
        if not (odd := _odd_form(vocab, merges)):
            vocab = {int(token_id): bytes(token) for token_id, token in vocab.items()}
            return vocab, [(bytes(left), bytes(right)) for left, right in merges]
    else:
        odd = shown(result), "`train_bpe` returns two things: `return vocab, merges`."
    claim = "The result is not in the form asked for."
    raise Wrong(claim, given=given, expected=FORM, got=Words(odd[0]), mistake=odd[1])


def _odd_form(vocab: Any, merges: Any) -> tuple[str, str] | None:
    """The part of a result that is not in the form asked for, and what to say about it."""
    if isinstance(merges, Mapping) and not isinstance(vocab, Mapping):
        return shown((vocab, merges)), "The two are swapped: the vocabulary comes first."
    if not isinstance(vocab, Mapping):
        return f"vocab is {kind_of(vocab)}", "The vocabulary is a dict: id -> bytes."
    for token_id, token in vocab.items():
        if not isinstance(token_id, Integral) or not isinstance(token, BYTES):
            hint = "Ids are integers, and tokens are bytes, not text: special tokens too."
            if isinstance(token, Integral):
                hint = "It is the wrong way round: ids are the keys."
            return f"vocab has the entry {token_id!r}: {token!r}", hint
    if not isinstance(merges, list):
        hint = "The merges are a list of pairs in the order in which they were made, not a dict."
        return f"merges is {kind_of(merges)}", hint
    for pair in merges:
        if not isinstance(pair, tuple | list) or [isinstance(t, BYTES) for t in pair] != [True] * 2:
            hint = "A merge is a tuple of two bytes objects: not joined, not their ids, not text."
            return f"merges has the item {shown(pair)}", hint
    return None


def vocabulary(case: Case, merges: Iterable[Pair]) -> list[bytes]:
    """The tokens that belong to the merges: special tokens, the 256 bytes, merged tokens."""
    specials = [token.encode() for token in case.special_tokens]
    return [*specials, *(bytes([byte]) for byte in range(256)), *map(b"".join, merges)]


def expect_vocabulary(got: dict[int, bytes], merges: list[Pair], case: Case, given: Words) -> None:
    """Raise `Wrong` unless the vocabulary matches the merges; ids in any order will do."""
    wanted, having = Counter(vocabulary(case, merges)), Counter(got.values())
    missing, extra = list((wanted - having).elements()), list((having - wanted).elements())
    stray = sorted(set(got) - set(range(len(got))))
    claim = "The merges are right, but the vocabulary is not."
    expected, found = (
        f"{tokens.total()} entries{_among(special)}"
        for tokens, special in ((wanted, missing), (having, extra))
    )
    if {token.decode("utf-8", "replace") for token in missing} & set(case.special_tokens):
        likely = "The special tokens belong to the vocabulary, each with an id of its own."
    elif any(len(token) == 1 for token in missing):
        likely = (
            "The vocabulary holds all 256 bytes, even those that are not in the text: the byte b "
            "is `bytes([b])`; `bytes(b)` is b zeros, and `chr(b).encode()` is UTF-8."
        )
    elif missing:
        likely = "Each merge adds a token to the vocabulary: its two parts joined, in order."
    elif extra:
        likely = "A token has two ids, or no merge made it."
    elif stray and len(merges) == case.num_merges:
        claim, expected = "The ids of the vocabulary have gaps.", f"ids 0 to {len(got) - 1}"
        found = f"{len(got)} ids, among them {stray[:4]}"
        likely = (
            "Give each new token the next free id, such as `len(vocab)`: a model needs a row for "
            "every id up to the largest."
        )
    else:
        return
    raise Wrong(claim, given=given, expected=Words(expected), got=Words(found), mistake=likely)


def _among(tokens: list[bytes]) -> str:
    rest = f" and {len(tokens) - 4} more" if len(tokens) > 4 else ""
    return f", among them {', '.join(map(repr, tokens[:4]))}{rest}" if tokens else ""


# What to say about wrong merges, from the state in which they went wrong.


def beside(case: Case, right: list[Pair], got: list[Pair]) -> Wrong:
    """What to say about wrong merges: where they first go wrong, and why."""
    at = first_difference(right, got)
    words = [(split_bytes(token), n) for token, n in pretoken_counts(case).items()]
    counts, before = count_pairs(words), Counter()
    for pair in right[:at]:
        before |= counts
        words = [(merge_pair(word, pair), n) for word, n in words]
        counts = count_pairs(words)
    if at == len(right):
        claim = "There are too many merges."
        symptom = "The vocabulary has no room for more, or no pair is left: then training stops."
    elif at == len(got):
        claim = "There are too few merges."
        symptom = f"There is room, but {right[at]} still occurs {_times(counts[right[at]])}."
    else:
        claim = f"Merge {at + 1} is not the expected one."
        symptom = _symptom(counts, before, right[:at], right[at], got[at])
    return Wrong(claim, given=described(case), expected=right, got=got, mistake=symptom)


def _symptom(counts: Counter, before: Counter, done: list[Pair], wanted: Pair, pair: Pair) -> str:
    """Why this pair is not the one to merge, but `wanted` is."""
    if pair in done:
        return (
            f"{pair} was merged before, and is merged again: merge it wherever it occurs, "
            "and subtract it from the counts. A list of the words that contain each pair must be "
            "updated with new pairs, too."
        )
    if not counts[pair]:
        return (
            f"{pair} no longer occurs, and its count is stale; or it never occurred inside one "
            "pre-token: merges may not cross the boundaries that special tokens and GPT-2's "
            "pattern set."
        )
    if counts[pair] == counts[wanted]:
        where = "is right, then a count is not, or a word is not cut where GPT-2's pattern cuts it."
        if before[pair] > counts[pair]:
            where = (
                "is right, then you used an old count, from before an earlier merge lowered it: "
                "compare each count from the heap with the current one."
            )
        elif before[wanted] > counts[wanted]:
            where = (
                "is right, then the count of the greater pair, which an earlier merge lowered, "
                "was lost: a heap needs a new entry whenever a count changes."
            )
        times = _times(counts[pair])
        return f"{TIE}{pair} and {wanted} both occur {times}. If your rule for ties {where}"
    return (
        f"{pair} occurs {_times(counts[pair])}, {wanted} {_times(counts[wanted])}. Look at how "
        "often each pre-token is counted, and at the last pair of each word. A merge also "
        "subtracts the pairs that it breaks up, and adds the new token's with its neighbours."
    )


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


class Learner:
    """The learner's function, with the text in a new file at each call."""

    def __init__(self, attempt: Callable, folder: str):
        self.attempt, self.folder, self.calls = attempt, Path(folder), 0
        self.kind: type = str  # of the path
        self.needs_path: Wrong | None = None  # the failure when the path is a str

    def __call__(self, case: Case, seconds: float | None = None, given: Words | None = None) -> Any:
        """The vocabulary and the merges. Raises `Wrong` or `NotAttempted` as `call_part` does."""
        self.calls += 1
        path = self.folder / f"text{self.calls}.txt"
        path.write_bytes(case.text.encode())
        given = given or described(case)

        def result(path: str | Path) -> Any:
            values = dict(input_path=path, vocab_size=case.vocab_size)
            values["special_tokens"] = list(case.special_tokens)
            options = {"extras": {"num_processes": 1}, "given": given}
            result = call_part(self.attempt, values, seconds=seconds or QUICK, **options)
            return answer(result, given)

        started = _processes()
        try:
            return result(self.kind(path))
        except Wrong as failure:
            if failure.mistake == WORKERS:
                raise _waits(failure, _processes() - started) from failure
            if self.calls > 1 or not isinstance(failure.error, AttributeError | TypeError):
                raise
            found = result(path)  # as the course's tests do it
            self.kind, self.needs_path = Path, failure
            return found


DIED = "Its worker processes die: look at what they import and run first, such as an initializer."


def _processes() -> int:
    """How many processes were made so far: Python numbers them."""
    return int(multiprocessing.Process().name.rpartition(":")[2].rpartition("-")[2])


def _waits(failure: Wrong, started: int) -> Exception:
    """What to say about a call that was stopped while it waited for its worker processes."""
    if started > DYING:
        failure.claim += f" {started} worker processes were started, each replacing one that died."
        failure.mistake = DIED
        return failure
    return NotJudged(f"Nothing was judged: {failure.claim[0].lower()}{failure.claim[1:]} {WORKERS}")


def merges_of(learner: Learner, case: Case) -> list[Pair]:
    """The learner's merges; if they are right, the vocabulary must be too."""
    vocab, merges = learner(case)
    if merges == BPE.expected(case):
        expect_vocabulary(vocab, merges, case, described(case))
    return merges


def smaller(case: Case, fails: Callable[[Case], bool]) -> Case:
    """The smallest case that still fails, and that meets no other corner."""
    if case.what:
        return case
    best = case

    def still(**changed: Any) -> bool:
        nonlocal best
        tried = best._replace(**changed)
        if len(BPE.expected(tried)) < tried.num_merges or not fails(tried):
            return False
        best = tried
        return True

    def fewer_merges() -> None:
        low = 1
        while low < best.num_merges:  # an attempt that fails with some merges fails with more
            middle = (low + best.num_merges) // 2
            low = low if still(num_merges=middle) else middle + 1

    fewer_merges()
    shrink(case.text, lambda text: bool(text) and still(text=text))
    fewer_merges()
    return best


BPE = Exercise(
    program=Program(
        *(split_bytes, count_pairs, merge_pair, decode, cut_specials, pretokens),
        *(documents, pretoken_counts, train),
        places=PLACES
        | {
            "while pairs": "when training stops",
            "most =": "how the most frequent pair is found",
            "tied =": "how the most frequent pair is found",
            "pairs.subtract": "the counts that a merge subtracts",
            "pairs.update": "the counts that a merge adds",
        },
    ),
    mistakes=(*TIES, *SPECIALS, *SPLITTING, *COUNTS, *CUTTING, *READING),
    cases=(*SMALL, EVERYTHING, *LARGER),
    corners=CORNERS,
    run=merges_of,
    same=lambda right, got: right == got,
    report=beside,
    smaller=smaller,
    errors={
        r"range\(0, 256\)": "There are 256 bytes, from 0 to 255: `range(256)`.",
        "BrokenProcessPool": DIED,
    },
)


def train_bpe(attempt: Any, part: str | None = None) -> str:
    """Praise for a right `train_bpe`; raises `Wrong` with the smallest input that fails."""
    expect_function(attempt, SIGNATURE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        learner = Learner(attempt, folder)
        exercise, seconds = BPE, _seconds(learner)
        if seconds > SLOW:  # each call starts processes: cover as much in fewer calls
            exercise = replace(BPE, cases=(EVERYTHING, LARGER[0]), corners=CORNERS[:2])
        else:
            _expect_no_memory(learner)
        found = judge(exercise, learner)
        if not found.in_use:
            with found("use"):
                _expect_long_texts(learner)
        _name_corners(found)
        with found("corner"):
            if failure := learner.needs_path:
                failure.claim = "It raised an error for a path that is a str; a `Path` works."
                failure.mistake = "`Path(input_path)` accepts either."
                raise failure
        if not found and seconds < SLOW:
            with found("style"):
                expect_from_scratch(lambda: learner(SMALL[0]), [attempt])
        remarks = [] if found else list(_remarks(learner, seconds))
    return found.verdict("Merges and vocabulary agree with the reference on every text.", remarks)


def _seconds(learner: Learner) -> float:
    """The processor time of the smallest text, of the second try if the first was slow.

    Raises: Wrong if it is stopped.
    """
    for _ in range(2):
        before = processor_seconds()
        try:
            learner(SMALL[0])
        except Wrong as failure:
            if failure.timed_out:
                raise
        seconds = processor_seconds() - before
        if not SLOW < seconds < VERY_SLOW:
            break
    return seconds


def _name_corners(found: Findings) -> None:
    """Name the corner of each finding; drop findings that only follow from another."""
    told = {}
    for wrong in found.found:
        cause = wrong.mistake or wrong
        if wrong.case in CORNERS:
            what = wrong.case.what
            wrong.claim = f"With {what}, {wrong.claim[0].lower()}{wrong.claim[1:]}"
            if wrong.error or wrong.timed_out:
                cause = where(wrong.error) or what
                wrong.mistake = RAN_OUT + "with fewer merges." if what == RUNS_OUT else ANY_TOKENS
        told.setdefault(cause, wrong)
    found.found = list(told.values())


def _expect_no_memory(learner: Learner) -> None:
    """Raise `Wrong` if a repeated call differs, or shows traces of an earlier text."""
    try:
        results = [learner(case)[1] for case in (SMALL[0], OTHER) * 2]
    except Wrong:
        return
    _, other, again, _ = results
    alien = any(b"".join(pair).decode(errors="replace") in SMALL[0].text for pair in other)
    if alien or results[:2] != results[2:]:
        case, got = (OTHER, other) if alien else (SMALL[0], again)
        claim = "The result depends on an earlier call, or on chance."
        right = BPE.expected(case)
        raise Wrong(claim, given=described(case), expected=right, got=got, mistake=FRESH_START)


@lru_cache
def _long_texts() -> tuple[tuple[Case, str, str], ...]:
    """Long texts: each case, the file described in words, and the likely mistake."""
    rng, times = random.Random(336), 160_001
    letters, often = "etaoinshrdlucmfwypvbgkjqxz", [1 / rank for rank in range(1, 1201)]
    words = ["".join(rng.choices(letters, often[:26], k=rng.randint(2, 9))) for _ in often]
    drawn = rng.choices(words, often, k=200_000)
    lines = [" ".join(drawn[at : at + 50]) + ".\n" for at in range(0, len(drawn), 50)]
    megabyte = END.join("".join(lines[at : at + 5]) for at in range(0, len(lines), 5))
    return (
        (Case(WORD * times, len(WORD.encode()) - 1), f"the word {WORD!r} {times:,} times", CUT),
        (Case(megabyte, 343), f"{len(megabyte):,} bytes of made-up words", AT_SIZE),
    )


@lru_cache
def _long_merges(case: Case) -> list[Pair]:
    """The merges of a long text, from the package's own trainer: the reference is slow."""
    return train_incremental(pretoken_counts(case), case.num_merges)


def _expect_long_texts(learner: Learner) -> None:
    """Raise `Wrong` if a long file is read in parts that cut words, or takes far too long."""
    for case, held, likely in _long_texts():
        call = f"train_bpe(path, {case.vocab_size}, {list(case.special_tokens)})"
        given, right = Words(f"{call}; the file holds {held}"), _long_merges(case)
        before = processor_seconds()
        try:
            _, merges = learner(case, STOPPED * LONG, given)
        except Wrong as failure:
            if failure.mistake == ENDLESS:
                failure.claim = f"It is far too slow: {failure.claim[len('It was ') :]}"
                failure.mistake = THROUGH_ALL
            raise
        used = processor_seconds() - before
        if merges != right:
            end = first_difference(right, merges) + 1
            claim = f"Merge {end} of a long text is wrong, though short texts are right."
            expected, got = right[:end], merges[:end]
            raise Wrong(claim, given=given, expected=expected, got=got, mistake=likely)
        if used > LONG:
            raise slow("The merges are right", used, LONG, given, THROUGH_ALL)


def _remarks(learner: Learner, seconds: float) -> Iterator[str]:
    """Remarks on inputs that the course leaves open; none of them makes a solution wrong."""
    if seconds >= SLOW:
        yield (
            f"a call took {seconds:.1f} s of processor time for a text of {len(SMALL[0].text)} "
            "bytes. If it starts worker processes, let it do so for large files only."
        )
        return
    for case, words in OPEN:
        try:
            right = merges_of(learner, case) == BPE.expected(case)
        except (Wrong, NotAttempted):
            right = False
        if not right:
            yield words
