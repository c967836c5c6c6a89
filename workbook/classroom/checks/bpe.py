"""The check of `train_bpe`: texts to train on, and the mistake that explains what went wrong."""

import random
import tempfile
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

from workbook.classroom.checks import pretokens as shared
from workbook.classroom.checks.machinery.calling import Runner, call_part
from workbook.classroom.checks.machinery.engine import (
    Exercise,
    Program,
    instead_of,
    judge,
    mistake,
    shrink,
)
from workbook.classroom.checks.machinery.from_scratch import check_style
from workbook.classroom.checks.machinery.timeout import processor_seconds
from workbook.classroom.checks.machinery.verdicts import (
    Findings,
    NotAttempted,
    Prose,
    Wrong,
    difference_at,
    expect_function,
    shown,
)
from workbook.classroom.checks.pretokens import KEPT, QUICK, cut_specials, decode, pretokens
from workbook.corpora.corpora import END_OF_TEXT as EOT
from workbook.tokenization.bpe import Pair, count_pairs, merge_pair, split_bytes, train_incremental

SIGNATURE = "train_bpe(input_path, vocab_size, special_tokens) -> (vocab, merges)"
# If a tiny text takes more seconds, as when each call starts processes, fewer texts are run.
SLOW = 0.25


class Text(NamedTuple):
    """A text to train on, and the room for merges."""

    text: str
    num_merges: int
    special_tokens: tuple[str, ...] = (EOT,)
    what: str = ""  # makes it a corner
    path: type = Path  # as the course's tests do; a str must do, too

    @property
    def vocab_size(self) -> int:
        """The size of a vocabulary with room for that many merges."""
        return 256 + len(self.special_tokens) + self.num_merges


# The reference. It shares the plain parts with `tokenization.bpe`, but keeps its own counts.


def _documents(case: Text) -> list[str]:
    """The parts between the special tokens."""
    parts = cut_specials(decode(case.text.encode()), case.special_tokens)
    return [part for part, special in parts if not special]


def pretoken_counts(case: Text) -> Counter[str]:
    """How often each pre-token occurs, in order of first appearance."""
    parts = [pretokens(document) for document in _documents(case)]
    return Counter(token for part in parts for token in part)


def train(case: Text) -> list[Pair]:
    """The merges, in order."""
    words = [(split_bytes(token), n) for token, n in pretoken_counts(case).items()]
    pairs = count_pairs(words)
    merges = list[Pair]()
    while pairs and len(merges) < case.num_merges:
        most = max(pairs.values())
        tied = [pair for pair, count in pairs.items() if count == most]
        best = max(tied)
        merges.append(best)
        # Only words that hold the pair change: their old pairs are taken out, the new ones counted.
        for place, (word, n) in enumerate(words):
            merged = merge_pair(word, best) if best[0] in word else word
            if merged != word:
                words[place] = merged, n
                old = count_pairs([(word, n)])
                new = count_pairs([(merged, n)])
                pairs.subtract(old)
                pairs.update(new)
        pairs = +pairs
    return merges


# Helpers for the edits of the reference.


def _seen(words: list[tuple[list[bytes], int]], tied: list[Pair]) -> list[Pair]:
    """The tied pairs, in the order in which they occur in the words."""
    wanted = set(tied)
    return list(dict.fromkeys(p for word, _ in words for p in pairwise(word) if p in wanted))


def by_id(case: Text, merges: list[Pair]) -> Callable[[Pair], list[int]]:
    """A key that compares the ids of tokens."""
    ids = {token: place for place, token in enumerate(vocabulary_of(case, merges))}
    return lambda pair: [ids[token] for token in pair]


def _but_the_last(text: str, parts: int) -> str:
    """A text up to the last of its parts, each of which begins at a special token."""
    at = text.find(EOT, len(text) // parts * (parts - 1))
    return text[:at] if at >= 0 else text


def _beside_the_old(word: list[bytes], best: Pair) -> Counter[Pair]:
    """How a merge changes the counts of a word, if its neighbours are read from the old word."""
    new = b"".join(best)
    changes: Counter[Pair] = Counter()
    at = 0
    while at < len(word) - 1:
        if tuple(word[at : at + 2]) != best:
            at += 1
            continue
        changes[best] -= 1
        for left in word[at - 1 : at] if at else []:
            changes[left, word[at]] -= 1
            changes[left, new] += 1
        for right in word[at + 2 : at + 3]:
            changes[word[at + 1], right] -= 1
            changes[new, right] += 1
        at += 2
    return changes


TIE = "When pairs tie in frequency, merge the greater one, as Python compares tuples of bytes: "
TIES = instead_of(
    "max(tied)",
    {
        "you took the first seen.": ("_seen(words, tied)[0]", "tied[0]"),
        "you took the last seen.": ("_seen(words, tied)[-1]", "tied[-1]"),
        "you took the smaller pair.": "min(tied)",
        "you compared their ids. A greater id only means a later token.": (
            "max(tied, key=by_id(case, merges))",
            "min(tied, key=by_id(case, merges))",
        ),
        "you compared the two parts joined into one string, but (b'a', b'bc') is less than "
        "(b'ab', b'b') although abc is greater than abb.": (
            "max(_seen(words, tied), key=b''.join)"
        ),
        "you compared decoded text, where all bytes that form no whole character look the same.": [
            f"max(_seen(words, tied), key=lambda pair: [t.decode(errors={how!r}) for t in pair])"
            for how in ("replace", "ignore")
        ],
        "your key inverts the bytes (as for a heap), which ranks a short string above a longer "
        "one that begins with it, but b'ab' is greater than b'a'.": (
            "min(tied, key=lambda pair: [[-byte for byte in token] for token in pair])"
        ),
    },
    TIE,
)
FILES_TEXT = "decode(case.text.encode())"
BETWEEN = "[part for part, special in parts if not special]"
SPLITTING = (
    mistake(
        f"{shared.LIKE_TEXT} A split with a group, `(...)`, keeps them: leave these parts out.",
        "if not special]",
        "if True]",
    ),
    *(
        mistake(
            f"The special tokens were {how}: no pre-token and no pair crosses them.",
            KEPT,
            "enumerate(parts)",
            BETWEEN,
            f"[{between!r}.join({BETWEEN})]",
        )
        for how, between in (
            ("cut out, and the text on both sides joined", ""),
            ("replaced by a space", " "),
            ("replaced by a newline", "\n"),
        )
    ),
    *instead_of(
        KEPT,
        {
            "The text before the first special token, or after it, or after the last, was left"
            " out.": [
                f"{KEPT} and {how}"
                for how in (
                    "not at",
                    "(at or len(parts) < 2)",
                    "(at < len(parts) - 1 or len(parts) < 2)",
                )
            ]
        },
    ),
    *instead_of(
        FILES_TEXT,
        {
            "What comes after the last boundary of the file's parts was lost: the end of the file "
            "is a boundary, too.": [f"_but_the_last({FILES_TEXT}, {parts})" for parts in (2, 4, 8)]
        },
    ),
    mistake(
        "<|endoftext|> was treated as special though it is not in `special_tokens`.",
        "case.special_tokens)",
        "(*case.special_tokens, EOT))",
    ),
    mistake(
        "<|endoftext|> was added as a special token though it is not in `special_tokens`.",
        "case.special_tokens)",
        "(*case.special_tokens, EOT))",
        "< case.num_merges",
        "< case.num_merges - (EOT not in case.special_tokens)",
    ),
)
WHOLE_TOKENS = (
    "The pair was also merged where it is only the end of one longer token and the start of the "
    "next: compare whole tokens."
)
SYMBOLS = "split_bytes(token)"
UNMERGED, BOTH = "merged.append(symbols[at])", "symbols[at] == left and symbols[at + 1 : at + 2]"
MERGE = "merge_pair(word, best)"
OLD, NEW, KEEP = "pairs.subtract(old)", "pairs.update(new)", "pairs = +pairs"
ADDED = "+= count"
ASSIGNED = "A pair may occur again, in this word or another: add (`+=`), do not assign (`=`)."
STALE = (  # the words, then what the counts are mended by
    ("each merge changes the counts of its neighbours; yours were counted once.", "pass", "pass"),
    *(
        ("after a merge, subtract the pairs that it broke up.", "pass", mended)
        for mended in ("pairs.update(new - old)", NEW)
    ),
    *(
        ("after a merge, count the pairs of the new token with its neighbours.", mended, "pass")
        for mended in ("pairs.subtract(old - new)", OLD)
    ),
)
RAN_OUT = "The text may run out of pairs before the vocabulary is full: training then stops, "
COUNTS = (
    mistake(
        "Each distinct pre-token was counted once: multiply its pairs' counts by its own.",
        SYMBOLS + ", n)",
        SYMBOLS + ", 1)",
    ),
    mistake(
        "Each pre-token was counted once per document: count it as often as it occurs.",
        "for token in part)",
        "for token in dict.fromkeys(part))",
    ),
    mistake(
        "Training started from characters, not from bytes: é or 猫 is several bytes.",
        SYMBOLS,
        "[character.encode() for character in token]",
    ),
    *instead_of(
        "in pairwise(symbols):",
        {
            "Each symbol was paired with itself: shift one of the two, as in `zip(word, word[1:])`."
            "": "in zip(symbols, symbols):",
            "The first pair of each word was not counted: places count from 0.": (
                "in pairwise(symbols[1:]):"
            ),
            "A pair that occurs twice in a word was counted once.": "in {*pairwise(symbols)}:",
            "The last pair of each word was not counted: does a `range` end one too early?": (
                "in pairwise(symbols[:-1]):"
            ),
            "Every other pair was left out: go on by one place, not by two; pairs overlap.": (
                "in zip(symbols[::2], symbols[1::2]):"
            ),
        },
    ),
    shared.FIRST_ONLY,
    shared.SKIPPED_ONE,
    mistake(
        "The last symbol of a word is lost when it is not merged: a loop that looks at two symbols "
        "ends before it, so add it.",
        "while at < len(symbols):",
        "while at < len(symbols) - 1:",
    ),
    mistake(
        "The second part of a merged pair comes again: after a merge, step over both parts: aaa "
        "becomes aa a.",
        "at += 2",
        "at += 1",
    ),
    mistake("Symbols that are not merged are lost: keep them.", UNMERGED, "pass"),
    mistake(
        "The two parts of a token are joined in the wrong order.",
        shared.JOIN,
        "merged.append(right + left)",
    ),
    mistake(
        "A pair at the end of a word is not merged: does the loop end one too early?",
        BOTH,
        f"at + 2 < len(symbols) and {BOTH}",
    ),
    mistake(
        WHOLE_TOKENS,  # b"\xff" occurs in no UTF-8
        MERGE,
        'b"\\xff\\xff".join(word).replace(b"\\xff\\xff".join(best), b"".join(best))'
        '.split(b"\\xff\\xff")',
    ),
    mistake(
        "The same pair is found each time: after a merge, the words still hold its two parts, "
        "or its count is as before. Write the merged words back, and count again.",
        OLD,
        "pass",
        NEW,
        "pass",
    ),
    mistake(
        "After a merge only the first word is left: keep all words, with the pair or without. "
        "Does a `break` end the loop?",
        KEEP,
        "words = words[:1]\npairs = count_pairs(words)",
    ),
    mistake(
        "After a merge only the words with the pair are left: keep the others, too.",
        KEEP,
        'words = [(word, n) for word, n in words if b"".join(best) in word]\n'
        "pairs = count_pairs(words)",
    ),
    mistake(
        "Only the first word's pairs are counted: does a `break` or a `return` end the loop?",
        "pairs = count_pairs(words)",
        "pairs = count_pairs(words[:1])",
        KEEP,
        "pairs = count_pairs(words[:1])",
    ),
    *instead_of(
        "append(best)",
        {
            "The two parts of each merge are swapped.": "append(best[::-1])",
            "The merges come back in the reverse order.": "insert(0, best)",
        },
    ),
    mistake(
        "The greatest pair is merged, not the most frequent one: `max` needs a `key`.",
        "best = max(tied)",
        "best = max(pairs)",
    ),
    *(
        mistake(
            "The rarest pair is merged: the most frequent one goes first, by `max`, not `min`.",
            "max(pairs.values())",
            "min(pairs.values())",
            "best = max(tied)",
            f"best = {choice}",
        )
        for choice in ("max(tied)", "min(tied)", "_seen(words, tied)[0]")
    ),
    mistake(
        "Of two merges side by side, as in aaaa, the second has the new token on its left: yours "
        "takes the neighbour from the old word.",
        OLD,
        "pairs.update({p: n * change for p, change in _beside_the_old(word, best).items()})",
        NEW,
        "pass",
        KEEP,
        f"pairs.pop(best)\n{KEEP}",
    ),
    mistake(ASSIGNED, ADDED, "= count", KEEP, "pairs = count_pairs(words)"),
    *(
        mistake(
            f"The counts are stale: {words}",  # without updates, the merged pair is dropped
            OLD,
            old,
            NEW,
            new,
            KEEP,
            f"pairs.pop(best)\n{KEEP}",
        )
        for words, old, new in STALE
    ),
    *instead_of(
        "case.num_merges",
        {
            "One special token was assumed: there is room for "
            "vocab_size - 256 - len(special_tokens) merges.": "case.vocab_size - 257",
            "The special tokens were subtracted twice.": (
                "case.num_merges - len(case.special_tokens)"
            ),
            "There is one merge too few: off by one.": "case.num_merges - 1",
            "Only one merge is made: count and merge again and again, until the vocabulary is "
            "full. Is the loop missing, or is a `return` inside it?": "min(1, case.num_merges)",
            "There are too many merges: `vocab_size` includes the 256 bytes and the special"
            " tokens.": ("case.vocab_size - 256", "case.vocab_size"),
            "There is one merge too many: off by one.": "case.num_merges + 1",
        },
    ),
    *instead_of(
        "while pairs and",
        {
            "Nothing is merged: as long as there is room, count the pairs, merge the most frequent "
            "one wherever it occurs, and add it to `merges`.": "while [] and",
            "Training stopped when the best pair occurred only once. Some libraries choose to do "
            "so, but the course's algorithm goes on while any pair is left.": (
                "while max(pairs.values(), default=0) > 1 and"
            ),
            RAN_OUT + "with fewer merges.": "while",
        },
    ),
    mistake(
        RAN_OUT + "and no pair is merged again.",
        "return merges",
        "return merges + merges[-1:] * (case.num_merges - len(merges))",
    ),
)

# The texts. Each distinguishes a few common mistakes; the first that fails is shown.

SMALL = (
    Text("hug hug hug pug", 3),
    # Ties: the greater pair is neither the first seen, nor the last, nor ...
    Text("ba zz ca zy dd dd", 1),
    Text(f"low low low!{EOT}low lower newer{EOT}er er", 4),
    # Runs of one letter: how overlapping pairs are counted and merged.
    Text(" aaaa aaa aaaaa aa" * 2, 3),
    # A pair twice in a row and twice in a word.
    Text(" ababab abab abc abc babab cab" * 2, 7),
    # Counts around a merge.
    Text("banana bandana ananas nanny cabana " * 2, 14),
    # Ties between tokens of several bytes.
    Text("abc bca cab abb bab aab bba " * 2, 12),
    # Tokens that begin alike, and bytes that form no whole character.
    Text("ö ø ö ø é è ü û ñ 猫 猴 狗 猫 é 🙂🙃 " * 2, 20),
    # Special tokens: at both ends, side by side, inside a word, beside line ends.
    Text(f"{EOT}ab{EOT}{EOT}abc ab {EOT} cab\n\n{EOT}\n\nab" * 2, 5),
    Text(f"ab{EOT}\n\n\nab ba{EOT}\nab\n\n" * 2, 4),
    # All that the pattern keeps apart.
    Text("It's we'll I'd 'TIS 'quote' CAN'T DON'T" * 2, 18),
    Text("a  b   cc\n\n\nd \n e\tf\u00a0g\u3000h \n\n  x  " * 2, 12),
    Text("in 2026 and 12345 x2 7up 3.14 a_b b_c x² ½ Ⅳ ١٢٣ " * 2, 28),
    Text("naïve Übung día हिन्दी 한국어 наука e\u0301te\u0301 " * 2, 40),
    Text("stop! (really?) ... --- #1 a+b=c => <b>!> e-mail!!\nEnd.\n" * 2, 22),
)
EVERYTHING = Text(EOT.join(case.text for case in SMALL), 160)
TINY = SMALL[0], Text("vw vw vw", 1)  # they share no letter
PRAISE = "Merges and vocabulary agree with the reference on every text."
TEXT_MODE = (
    "Opened in text mode, a file's `\\r\\n` becomes `\\n`, so it is not trained on its own bytes: "
    '`open(path, newline="")` keeps them.'
)
STR_PATH = "a path that is a str"
RUNS_OUT = "a text that runs out of pairs before the vocabulary is full"
SEVERAL = "several special tokens"
CORNERS = (
    Text("hug hug hug pug", 3, (EOT,), STR_PATH, str),
    Text("hug hug hug pug", 3, (), "special_tokens=[]"),
    Text("ab cab", 9, what=RUNS_OUT),
    Text("ab ab cd ef", 4, what="pairs that occur only once"),
    Text("ab<|pad|>ab<|pad|>ba" * 2, 2, ("<|pad|>",), "a special token that is not <|endoftext|>"),
    Text(f"b<|pad|>abc{EOT}abc<|pad|>{EOT}ab" * 2, 2, ("<|pad|>", EOT), SEVERAL),
    Text(
        "x<|.*|>y z<|.*|>y z<|+|>zy (a|b) <|*|> xy zy\n<|+|>\nxz " * 2,
        9,
        ("<|.*|>", "<|+|>"),
        SEVERAL,
    ),
    Text(
        f"ab{EOT}ab{EOT}ba" * 2,
        11,
        ("<|pad|>",),
        "<|endoftext|> in the text but not in special_tokens",
    ),
    Text(f"ab{EOT}   {EOT}   {EOT}ba" * 2, 2, what="a document of nothing but white space"),
)
ANY_TOKENS = "`special_tokens` may hold any strings, any number of them or none."
HINTS = {  # for a corner in which it raises an error, or is stopped; else it is `ANY_TOKENS`
    STR_PATH: "`Path(input_path)` makes a Path of a str, and leaves a Path as it is.",
    RUNS_OUT: RAN_OUT + "with fewer merges.",
}
FRESH_START = (
    "Something is kept from call to call: a global, a default argument such as `merges=[]`, or a "
    "cache; or ties are broken at random. Start every call with fresh lists and dicts."
)
THROUGH_ALL = (
    "Store each distinct pre-token once, with its count, and update only the counts that a merge "
    "changes: no merge may go through the whole text again."
)
CUT_WORDS = (
    "Probably the file is read in parts whose boundaries fall inside words, or characters. Move "
    "each boundary to a special token, or hold back the end of a part until the next is read."
)
AT_SIZE = (
    "All short texts were right, so this shows only on long ones: counts that drift from merge to "
    "merge, parts of the file counted twice or left out, or workers whose counts are not added up."
)
WORD = " Größenwahn"  # 13 bytes and 11 characters, so that boundaries at 4096, 65536 ... cut it


# What a learner's `train_bpe` returned, or a description of what is wrong with it.

FORM = Prose("(vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]])")
TWO_THINGS = (
    "`train_bpe` returns two things, the vocabulary first: a dict from ids to bytes objects, "
    "special tokens too, and a list of pairs of bytes objects in the order in which they were "
    "merged: not joined, not their ids, not text, not a dict."
)


def called(case: Text) -> str:
    """The call as the learner would make it."""
    return f"train_bpe(path, {case.vocab_size}, {list(case.special_tokens)})"


def _described(case: Text) -> str:
    """The call, and what the file holds."""
    room = f"{case.num_merges} merge{'' if case.num_merges == 1 else 's'}"
    return f"{called(case)}, room for {room}; the file holds {shown(case.text)}"


def _answer(result: Any, given: str) -> tuple[dict[int, bytes], list[Pair]]:
    """The vocabulary and the merges; raises `Wrong` if they are not in the form asked for."""
    if result is None:
        raise NotAttempted("It returned None: is `return vocab, merges` missing?")
    odd = [result]
    if isinstance(result, tuple | list) and len(result) == 2:
        vocab, merges = result
        odd = odd_parts(vocab, merges)
        if not odd:  # numpy's integers become Python's, and lists of two become tuples
            return {int(i): token for i, token in vocab.items()}, [tuple(pair) for pair in merges]
    got = f"among other things {shown(odd[0])}"
    raise Wrong(
        "The result is not in the form asked for.",
        given=given,
        expected=FORM,
        got=Prose(got),
        mistake=TWO_THINGS,
    )


def odd_parts(vocab: Any, merges: Any) -> list:
    """What is not in the form asked for; empty if all is."""
    if not isinstance(vocab, Mapping):
        return [vocab]
    if not isinstance(merges, list | tuple):
        return [merges]
    odd = [{i: t} for i, t in vocab.items() if not (isinstance(i, Integral) and type(t) is bytes)]
    for pair in merges:
        if not isinstance(pair, tuple | list) or [type(token) for token in pair] != [bytes, bytes]:
            odd.append(pair)
    return odd


def vocabulary_of(case: Text, merges: Iterable[Pair]) -> list[bytes]:
    """The tokens that belong to the merges: special tokens, the 256 bytes, merged tokens."""
    specials = [token.encode() for token in case.special_tokens]
    return [*specials, *(bytes([byte]) for byte in range(256)), *map(b"".join, merges)]


def expect_vocabulary(got: dict[int, bytes], merges: list[Pair], case: Text) -> None:
    """Raise `Wrong` unless the vocabulary matches the merges; ids in any order will do."""
    wanted = Counter(vocabulary_of(case, merges))
    having = Counter(got.values())
    missing = [*(wanted - having)]
    extra = [*(having - wanted)]
    if {token.decode("utf-8", "replace") for token in missing} & set(case.special_tokens):
        likely = "The special tokens belong to the vocabulary, each with an id of its own."
    elif any(len(token) == 1 for token in missing):
        likely = (
            "The vocabulary holds all 256 bytes, even those that are not in the text: the byte b "
            "is `bytes([b])`; `bytes(b)` is b zeros, and `chr(b).encode()` is UTF-8."
        )
    elif missing or extra:
        likely = "Each merge adds one token to the vocabulary: its two parts joined, in order."
    elif max(got) >= case.vocab_size:
        likely = "The ids have gaps: give each new token the next free id, such as `len(vocab)`."
    else:
        return
    last = max(got, default="none")
    size = wanted.total()
    odd = f"missing: {missing[:4]}, not expected: {extra[:4]}"
    raise Wrong(
        "The merges are right, but the vocabulary is not.",
        given=_described(case),
        expected=Prose(f"{size} entries, ids up to {size - 1}"),
        got=Prose(f"{having.total()} entries, ids up to {last}; {odd}"),
        mistake=likely,
    )


# What to say about wrong merges, from the state in which they went wrong.


def _beside(case: Text, right: list[Pair], got: list[Pair]) -> Wrong:
    """What to say about wrong merges: where they first go wrong, and why."""
    at = difference_at(right, got)
    words = [(split_bytes(token), n) for token, n in pretoken_counts(case).items()]
    counts = count_pairs(words)
    most = counts  # of each pair, the largest count so far
    for pair in right[:at]:
        words = [(merge_pair(word, pair), n) for word, n in words]
        counts = count_pairs(words)
        most = most | counts
    claim = f"Merge {at + 1} is not the expected one"
    if at == len(right):
        claim = "There are too many merges"
        symptom = "The vocabulary has no room for more, or no pair is left: then training stops."
    elif at == len(got):
        claim = "There are too few merges"
        symptom = f"There is room, and the count of {right[at]} is still {counts[right[at]]}."
    elif got[at] in right[:at]:
        symptom = (
            f"{got[at]} was merged before, and is merged again: merge it wherever it occurs, "
            "and subtract it from the counts. A list of the words that contain each pair must be "
            "updated with new pairs, too."
        )
    elif got[at] in most and not counts[got[at]]:
        symptom = f"{got[at]} no longer occurs: its count is stale."
    elif b"".join(got[at]) not in case.text.encode():
        symptom = f"{got[at]} is not in the file: its text was changed before it was counted."
    else:
        symptom = _why_not(got[at], right[at], counts, most)
    claim += f" with {case.what}." if case.what else "."
    return Wrong(claim, given=_described(case), expected=right, got=got, mistake=symptom)


def _why_not(pair: Pair, wanted: Pair, counts: Counter[Pair], most: Counter[Pair]) -> str:
    """Why this pair is not the one to merge, but `wanted` is; `most` are the largest counts yet."""
    if not counts[pair]:
        return (
            f"{pair} are never neighbours inside one pre-token: merges cross neither special tokens"
            " nor the cuts of GPT-2's pattern, and a word is merged from left to right."
        )
    why = f"The count of {pair} is {counts[pair]}, that of {wanted} is {counts[wanted]}. "
    if counts[pair] == counts[wanted]:
        why = f"{TIE}{pair} and {wanted} have the same count, {counts[pair]}. "
        why += "If your rule for ties is right, then a count is not. "
    if (most[pair], pair) < (counts[wanted], wanted):
        return why + "Print your counts before this merge."
    return why + (
        f"The count of {pair} was {most[pair]} before: is yours out of date? A merge subtracts the "
        "pairs that it breaks up. With a heap, compare each count from the heap with the current."
    )


class BpeRunner(Runner):
    """Runs a function, with the text in a new file at each call."""

    def __init__(self, attempt: Callable, folder: str):
        super().__init__(attempt)
        self.folder = Path(folder)
        self.calls = 0

    def run(self, case: Text) -> list[Pair]:
        """The merges; if they are right, the vocabulary must be too."""
        vocab, merges = self.train(case)
        if merges == BPE.expected(case):
            expect_vocabulary(vocab, merges, case)
        return merges

    def train(self, case: Text, seconds: float | None = None, given: str | None = None) -> Any:
        """The vocabulary and the merges. Raises `Wrong` or `NotAttempted` as `call_part` does."""
        self.calls += 1
        path = self.folder / f"text{self.calls}.txt"
        path.write_bytes(case.text.encode())
        values = {"input_path": case.path(path), "vocab_size": case.vocab_size}
        values["special_tokens"] = list(case.special_tokens)
        given = given or _described(case)
        extras = {"num_processes": 1}
        try:
            result = call_part(
                self.attempt, values, seconds=seconds or QUICK, extras=extras, given=given
            )
        except Wrong as failure:
            if case.what:
                failure.claim = f"{failure.claim.removesuffix('.')} with {case.what}."
                failure.mistake = HINTS.get(case.what, ANY_TOKENS)
            raise
        return _answer(result, given)


def _smaller(case: Text, fails: Callable[[Text], bool]) -> Text:
    """A smaller case that still fails: fewer merges, then less text that has as many."""
    if case.what:
        return case  # a shorter text might meet another corner
    # Who fails with some number of merges fails with more, too.
    enough = bisect_left(
        range(case.num_merges), True, lo=1, key=lambda n: fails(case._replace(num_merges=n))
    )
    case = case._replace(num_merges=enough)

    def still(text: str) -> bool:
        shorter = case._replace(text=text)
        return len(BPE.expected(shorter)) == enough and fails(shorter)

    return case._replace(text=shrink(case.text, still))


BPE = Exercise(
    program=Program(
        *(split_bytes, count_pairs, merge_pair, decode, cut_specials, pretokens),
        *(_documents, pretoken_counts, train),
        places=shared.PLACES
        | {
            "while pairs": "when training stops",
            "most =": "how the most frequent pair is found",
            "tied =": "how the most frequent pair is found",
            "pairs.subtract": "the counts that a merge subtracts",
            "pairs.update": "the counts that a merge adds",
        },
    ),
    mistakes=(*TIES, *SPLITTING, *COUNTS, *shared.MISTAKES),
    cases=(*SMALL, EVERYTHING),
    corners=CORNERS,
    run=BpeRunner.run,
    same=lambda right, got: right == got,
    report=_beside,
    smaller=_smaller,
    errors={
        "Path' object has no": "This is the path of the file, not its text: open it, and read it.",
        r"range\(0, 256\)": "There are 256 bytes, from 0 to 255: `range(256)`.",
        "BrokenProcessPool": "Its worker processes die: look at what they import and run first.",
    },
)


def train_bpe(attempt: Any) -> str:
    """Praise for a right `train_bpe`; raises `Wrong` with the smallest input that fails."""
    expect_function(attempt, SIGNATURE)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        runner = BpeRunner(attempt, folder)
        findings = Findings()
        exercise = BPE
        before = processor_seconds()
        with findings("use"):
            shared.expect_no_memory(BPE, runner, TINY, FRESH_START)
        if processor_seconds() - before > len(TINY) * SLOW:
            exercise = replace(BPE, cases=(EVERYTHING,), corners=CORNERS[:3])
        findings = findings or judge(exercise, runner)
        if not findings.in_use:
            with findings("use"):
                _expect_long_texts(runner)
        findings.wrongs = shared.one_for_each_cause(findings.wrongs)
        check_style(findings, lambda: runner.train(SMALL[0]), [attempt])
        remarks = [] if findings else _worth_knowing(runner)
    return findings.verdict(PRAISE, remarks)


def _worth_knowing(runner: BpeRunner) -> list[str]:
    """What a right trainer makes of line breaks as Windows writes them, in a sentence."""
    windows, others = (Text(line_break * 4, 2) for line_break in ("\r\n", "\n"))
    with suppress(Wrong, NotAttempted):
        if runner.train(windows)[1] == BPE.expected(others):
            return [TEXT_MODE]
    return []


@lru_cache
def long_texts() -> tuple[tuple[Text, list[Pair], str, str], ...]:
    """Long texts: each case, its merges, the file described in words, and the likely mistake."""
    rng = random.Random(336)
    times = 160_001
    often = [1 / rank for rank in range(1, 1201)]
    words = ["".join(rng.choices("etaoinshrdlucm", k=rng.randint(2, 9))) for _ in often]
    lines = [" ".join(rng.choices(words, often, k=50)) + ".\n" for _ in range(4_000)]
    megabyte = EOT.join(lines)
    cases = Text(WORD * times, len(WORD.encode()) - 1), Text(megabyte, 343)
    # The merges come from the package's own trainer: the reference is slow.
    merges = [train_incremental(pretoken_counts(case), case.num_merges) for case in cases]
    held = f"the word {WORD!r} {times:,} times", f"{len(megabyte):,} bytes of made-up words"
    return tuple(zip(cases, merges, held, (CUT_WORDS, AT_SIZE), strict=True))


def _expect_long_texts(runner: BpeRunner) -> None:
    """Raise `Wrong` if a long file is read in parts that cut words, or takes far too long."""

    def merges(case: Text, seconds: float, given: str) -> list[Pair]:
        return runner.train(case, seconds, given)[1]

    for case, right, held, likely in long_texts():
        given = f"{called(case)}; the file holds {held}"
        run = partial(merges, case)
        shared.expect_right_and_quick("Training", run, right, given, (likely, THROUGH_ALL))
