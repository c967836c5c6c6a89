"""The checks of written answers: a value in the documented form is judged, a sentence never is.

Each part takes one form, which `takes` in `study.problems` states with an example. Any other value
is `Unreadable`: the learner is shown that form. A text is read, and its facts are shown to tick; no
number is looked for in it. Only a text that is nothing but a number with its unit, such as "34 GB",
is taken as that number.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from workbook.accounting import explain
from workbook.checks.verdicts import Facts, NotAttempted, Unreadable, Words, Wrong, expect
from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.utf8 import flaw

HOUR, DAY = 3_600, 86_400
NUMBERS, PAIR = int | float | str, list | tuple  # the types of attempts


def judged(attempt: Any, part: str | None = None, **judges: tuple) -> str | Facts:
    """What the judge of a part says of an attempt, which must be of the type beside that judge.

    A part that has no judge takes sentences alone; "whole" is that of a problem without parts.
    """
    kind, judge = judges.get(part or "whole", ((), None))
    fits = isinstance(attempt, kind)
    if not fits or attempt == {} or (isinstance(attempt, str) and attempt.isspace()):
        raise Unreadable(attempt)
    return judge(attempt)


# --- Numbers with units

# As written: what is measured, and how many of its unit.
UNITS = explain.UNITS | {"": ("", 1), "P": ("per parameter", 1), "tokens": ("tokens", 1)}
UNITS |= {"s": ("seconds", 1), "h": ("seconds", HOUR), "d": ("seconds", DAY)}
UNITS |= {"minutes": ("seconds", 60), "B": ("bytes", 1), "bytes/token": ("bytes per token", 1)}
UNITS |= {"B/s": ("rate", 1), "kB/s": ("rate", 1e3), "MB/s": ("rate", 1e6)}
NUMBER = re.compile(r"(-?(?:\d{1,3}(?:,\d{3})+|\d*)\.?\d*(?:e[-+]?\d+)?)\s*(.*)", re.IGNORECASE)


class Number(NamedTuple):
    """A number as it was handed in."""

    digits: str  # as written, such as "5.80" or "4.51e12"
    unit: str  # one of `UNITS`; "" where none was named


def number(value: Any) -> Number | None:
    """A finite number, also as a text that is nothing but one number and its unit; else None.

    >>> number("8.51 GB"), number("2,048").digits, number("34 GB or so")
    (Number(digits='8.51', unit='GB'), '2048', None)
    """
    if type(value) not in (str, int, float):
        return None
    try:
        # Fifteen digits of a float: 39.8 / 100 would show the rounding of its last bit.
        match = NUMBER.fullmatch(f"{value:.15g}" if type(value) is float else str(value).strip())
        found = Number(match[1].replace(",", ""), match[2])
        return found if found.unit in UNITS and math.isfinite(float(found.digits)) else None
    except (TypeError, ValueError):  # of another text, of no digits, or of more than Python reads
        return None


def amount(value: Any, kind: str, scale: float = 1) -> float:
    """A number in bytes, seconds, ...; without a unit of its own it counts in units of `scale`.

    >>> amount(2, "seconds", HOUR), amount("30 minutes", "seconds", HOUR)
    (7200.0, 1800.0)
    """
    found = number(value)
    measured, size = UNITS[found.unit] if found else ("nothing", 0)
    if measured not in ("", kind):
        raise Unreadable(value)
    return float(found.digits) * (size if measured else scale)


def _pair(attempt: Any, *kinds: Any) -> Any:
    """A pair of values of these types. Raises: `Unreadable` for any other."""
    if len(attempt) != 2 or not all(map(isinstance, attempt, kinds)):
        raise Unreadable(attempt)
    return attempt


# --- unicode1: the character with number 0

NUL, OF_BYTES = chr(0), r"b'\x00'"
BYTES = "That is the repr of bytes, not of a str: `chr` returns a str, which has no b in front."
EMPTY = "NUL is invisible, but it is one character, of length 1: this is not the empty string."
NONE = "`print` returns None, whatever it shows: write what you see between quotes."
REVERSED = "It is the other way round: the repr comes first."
NOT_THE_SAME = "The repr spells the character out; `print` writes the character itself."
MISSING = "NUL was not counted: it is invisible, but it stays in the text as one character."
CUT = "In C, a string ends at NUL. In Python it goes on, and NUL counts as one character."
NOT_INSIDE = 'Put it into the text with "..." + chr(0) + "...".'


def _character(attempt: Any) -> str:
    """Judge a code point such as "U+0041", or the character itself."""
    expect(attempt not in (b"\x00", OF_BYTES), "`chr` returns something else.", BYTES, got=attempt)
    expect(attempt not in ("", NUL * 2), "That is not one character.", EMPTY, got=attempt)
    code_point = re.fullmatch(r"U\+([\dA-F]{1,6})|(.)", attempt, re.IGNORECASE | re.DOTALL)
    if not code_point:
        raise Unreadable(attempt)
    code = int(code_point[1], 16) if code_point[1] else ord(attempt)
    said = f"That is {chr(code)!r}: chr({code})." if code < 0x110000 else None
    expect(code == 0, "That is a different character.", said, given="ord(chr(0))", got=code)
    return "U+0000: a control character, called NUL. It is a str of length 1."


def _printed(attempt: Any) -> str | Facts:
    """Judge a pair: the repr, and what `print` shows, which is the character or nothing."""
    spelled, written = (repr(NUL), r"\x00"), (NUL, "")
    expect(None not in attempt, "None is not what is shown.", NONE, got=attempt)
    first, second = _pair(attempt, str, str)
    if first in spelled and second in written:
        return "The repr spells the character out; `print` writes it, and it is invisible."
    mistake = BYTES if first == OF_BYTES else NOT_THE_SAME if first == second else None
    mistake = REVERSED if first in written and second in spelled else mistake
    expect(not mistake, "Those are not the repr and what `print` shows.", mistake, got=attempt)
    return Facts()  # something in words


def _inside(attempt: Any) -> str:
    """Judge a pair: a text with the character inside, and its length."""
    text, length = _pair(attempt, str, int)
    expect(NUL in text, "The character is not in this text.", NOT_INSIDE, got=text)
    # Who thinks of C stops counting at NUL; who trusts the eye leaves it out.
    slip = {text.index(NUL): CUT, len(text.replace(NUL, "")): MISSING}.get(length)
    expect(length == len(text), "That is not the length of the text.", slip, got=attempt)
    return "NUL counts like any other character, though it is usually invisible when printed."


# --- unicode2: from characters to bytes

TEXT = "hello"
# The bytes that it takes, with a byte order mark in front and without.
MARKED = {name: len(TEXT.encode(name)) for name in ("UTF-8", "UTF-16", "UTF-32")}
BARE = MARKED | {name: len(TEXT.encode(f"{name}-LE")) for name in ("UTF-16", "UTF-32")}
RANGE = "Code points end at 0x10FFFF, not at 2**32, and a byte has 256 values in any encoding."
MARK = "Byte order marks (2 bytes in UTF-16, 4 in UTF-32) were counted for one, not for the other."
CHARACTERS = "Characters were counted, not bytes."
ASCII = "It is all ASCII, where a character is one byte. Take a character that needs more."
DECODED = "A str is decoded already: put b before the quotes."
PAIRS = "In hex: below 80 is ASCII, C2 to DF begins a character of two bytes, 80 to BF ends it."


def _sizes(attempt: Any) -> str:
    """Judge the bytes of "hello" by encoding: with byte order marks or without, but not mixed."""
    if not attempt.keys() <= MARKED.keys():
        raise Unreadable(attempt)
    sizes = {name: amount(size, "bytes") for name, size in attempt.items()}
    right = sizes.items() <= MARKED.items() or sizes.items() <= BARE.items()
    # The last that fits is told: a mixture of marked and bare sizes is none of the others.
    mistake = CHARACTERS if len(TEXT) in (sizes.get("UTF-16"), sizes.get("UTF-32")) else None
    mistake = RANGE if max(sizes.values()) > 1e6 else mistake
    if all(size in (MARKED[name], BARE[name]) for name, size in sizes.items()):
        mistake = MARK
    expected = {name: MARKED[name] for name in sizes}
    claim = f"Those are not the sizes of {TEXT!r}."
    expect(right, claim, mistake, expected=expected, got=attempt)
    return "The sizes are right."


def _not_ascii(attempt: Any) -> str:
    """Judge bytes: they must be UTF-8, and decoding them byte by byte must fail."""
    if found := flaw(attempt):
        claim = "Those bytes are not UTF-8, so a correct decoder refuses them too."
        raise Wrong(claim, got=attempt, mistake=f"{found.sentence} Encode some text instead.")
    expect(not attempt.isascii(), "Decoding it byte by byte works.", ASCII, got=attempt)
    wide = next(character for character in attempt.decode() if not character.isascii())
    return f"{wide!r} takes {len(wide.encode())} bytes, none of them a character by itself."


def _two_bytes(attempt: Any) -> str:
    """Judge two bytes, which must not be UTF-8, and say which rule they break."""
    if isinstance(attempt, str):
        expect(len(attempt) != 2, "That is a str, and bytes were asked for.", DECODED, got=attempt)
        raise Unreadable(attempt)  # a sentence
    expect(len(attempt) == 2, "Exactly two bytes were asked for.", got=attempt)
    if found := flaw(attempt):
        return found.sentence
    got = Words(" and ".join(f"U+{ord(character):04X}" for character in attempt.decode()))
    raise Wrong("Those two bytes can be decoded.", given=repr(attempt), got=got, mistake=PAIRS)


# --- Trained tokenizers. What depends on corpus and machine is judged by wide ranges.


class Training(NamedTuple):
    """What a training may take, and what it gives on the course's corpus."""

    corpus: str
    longest: int  # bytes of the longest token
    seconds: float
    peak: float  # bytes
    allowed: str  # both in words


STORIES = Training("TinyStories with 10,000", 15, HOUR / 2, 30e9, "30 minutes and 30 GB")
WEB = Training("OpenWebText with 32,000", 64, 12 * HOUR, 100e9, "12 hours and 100 GB")
FIGURES = {"seconds": ("seconds", 1), "hours": ("seconds", HOUR), "gigabytes": ("bytes", 1e9)}
PYTHON, PROCESSES = 1e6, 100e6  # bytes: the interpreter alone takes more, and so do a few of it
MEGA = 100e9  # bytes: more is likelier a number of megabytes that was handed in as gigabytes
SHORTEST = 8  # bytes of a longest token
PLAUSIBLE = "plausible, which is all that can be said without your corpus and machine"
SPACE = "The leading space was dropped: it is part of the token, and one byte."
SORT = "Sort the vocabulary by length in bytes."
CROSSED = "Merges crossed pre-token boundaries, or this is not a token of your vocabulary."
PARENT = "RUSAGE_SELF leaves out the workers of a pool, which hold the text and the counts."
OTHER_UNIT = "GB are asked for, 10**9 bytes each: is it in another unit?"
LARGE_PEAK = "Read the corpus in pieces, and keep each pre-token once, with its count."
ANEW = "After a merge, update only the counts from pre-tokens that contain the pair."


def _training(training: Training, attempt: Any) -> str:
    """Judge the time, the memory and the longest token of a training, or some of them."""
    if unknown := [key for key in attempt if key not in (*FIGURES, "longest")]:
        raise Unreadable(attempt, f"{unknown[0]!r} is not a key of this answer.")
    figures = {key: amount(attempt[key], *unit) for key, unit in FIGURES.items() if key in attempt}
    positive = all(value > 0 for value in figures.values())
    expect(positive, "Time and memory are positive.", got=attempt)
    seconds = figures.get("seconds", figures.get("hours", 0))
    claim = f"The problem allows {training.allowed}."
    expect(seconds <= training.seconds, claim, ANEW, got=attempt)
    if peak := figures.get("gigabytes"):
        megabytes = f"Is that in MB? {peak / 1e9:,.10g} MB are {peak / 1e12:,.3g} GB."
        mistake = megabytes if peak >= MEGA else LARGE_PEAK
        expect(peak <= 1.1 * training.peak, claim, mistake, got=attempt)
        expect(peak >= PYTHON, "Python alone takes more memory.", OTHER_UNIT, got=attempt)
        enough = seconds <= 60 or peak >= PROCESSES
        expect(enough, "That is too little memory for so much text.", PARENT, got=attempt)
    praise = [_longest(training, attempt["longest"])] if "longest" in attempt else []
    return " ".join([*praise, *([f"{PLAUSIBLE.capitalize()}."] if figures else [])])


def _longest(training: Training, token: Any) -> str:
    """Judge a token that may be the longest."""
    if not isinstance(token, bytes):
        raise Unreadable(token, "The longest token is to be bytes.")
    expect(len(token) >= SHORTEST, "That is short for the longest token.", SORT, got=token)
    # In running text a space precedes nearly every word, so the token of a long word begins with
    # one. The web has other long tokens: rulers, and text that was encoded twice.
    is_word = training is STORIES and token.isalpha()
    expect(not is_word, "A byte is missing.", SPACE, expected=b" " + token, got=token)
    pieces = [] if flaw(token) else list(pretokenize([token.decode()]))
    got = Words(" | ".join(map(repr, pieces[:6])))
    expect(len(pieces) < 2, "No merge crosses pre-tokens, but this has several.", CROSSED, got=got)
    if len(token) == training.longest:
        return f"{len(token)} bytes, as {training.corpus} tokens gives."
    gives = f"{training.corpus} tokens gives {training.longest}"
    return f"{len(token)} bytes; {gives}. A token from another corpus cannot be checked here."


# --- tokenizer_experiments

PILE = 825e9  # bytes
EXACT = 0.01  # relative: what is left of two rounded numbers
# What a time is multiplied or divided by where two units are mixed up.
SLIPS = {1.024**3: "GB and GiB", 1.024**2: "MB and MiB", 8: "bits and bytes", 24: "hours and days"}
SLIPS |= {60: "minutes and hours", 3_600: "hours and seconds", 86_400: "days and seconds"}
SLIPS |= {1e3: "GB, MB and kB", 1e6: "MB and bytes"}
# Bytes per token that a tokenizer reaches on its own text, by corpus: ten documents of `docstrings`
# may have 2.8.
ENOUGH = {"stories": 3.0, "tinystories": 3.0, "docstrings": 2.5, "owt": 2.5}
TOO_MANY = 4.3  # bytes per token for the stories' tokenizer on web text
CEILING = 5.5  # bytes per token: more than a pre-token has, on average, in any of the corpora
NO_RATIO = "That is not a ratio. Hand in bytes per token, such as 2.5."
UPSIDE_DOWN = "The ratio is upside down: a token stands for at least one byte."
NO_TOKENS = "A token is no longer than a word: did you count words, not tokens, or bits, not bytes?"
NOT_MERGED = "BPE reaches about 4 on text like its training text: is every merge applied?"
OWN_TOKENIZER = "Only text like the training text needs so few tokens: which text is it?"
NO_PRODUCT = "Speed and time do not match: 825e9 bytes / {:,.10g} bytes per second."
SLOW = " That is slow: do you search all merges for each pre-token?"
NO_END = "That fits, as do all IDs of the two vocabularies. But where does uint16 end?"
NOT_LARGEST = dict.fromkeys((9_999, 10_000, 31_999, 32_000), NO_END) | {
    2**16: "65,536 is how many values there are: they begin at 0, so the largest is one less.",
    2: "That is the number of bytes, not the largest number that they hold.",
    2**15 - 1: "That is int16, with a sign.",
    2**8 - 1: "That is uint8.",
    2**32 - 1: "That is uint32.",
}


def _ratio(value: Any, least: float = 1, most: float = math.inf) -> str:
    """Judge bytes per token, which are implausible below `least` and above `most`."""
    ratio = amount(value, "bytes per token")
    if not 0 < ratio <= 1_000:
        raise NotAttempted(NO_RATIO)
    mistake = OWN_TOKENIZER if ratio > most else NOT_MERGED if ratio < least else None
    mistake = UPSIDE_DOWN if ratio < 1 else NO_TOKENS if ratio > CEILING else mistake
    got = Words(f"{ratio:.4g}, or {1 / ratio:.2f} upside down")
    expect(not mistake, "That number of bytes per token is implausible.", mistake, got=got)
    return f"{ratio:.2f} bytes per token: {PLAUSIBLE}."


def _own(attempt: Any) -> str:
    """Judge the bytes per token of each tokenizer on its own corpus; a number is of the stories."""
    ratios = attempt if isinstance(attempt, dict) else {"stories": attempt}
    if unknown := [key for key in ratios if key not in ENOUGH]:
        raise Unreadable(attempt, f"{unknown[0]!r} is not one of the corpora.")
    return " ".join(_ratio(ratio, ENOUGH[name]) for name, ratio in ratios.items())


def _pile(attempt: Any) -> str:
    """Judge a pair: bytes per second, and the hours that the Pile takes at that speed."""
    speed, time = _pair(attempt, NUMBERS, NUMBERS)
    rate, seconds = amount(speed, "rate"), amount(time, "seconds", HOUR)
    expect(min(rate, seconds) > 0, "Speed and time must be positive.", got=attempt)
    # Compared in the unit that was named, for "14 d" may be 13.4 days, rounded up.
    unit = number(time).unit or "hours"
    got, right = seconds / UNITS[unit][1], PILE / rate / UNITS[unit][1]
    rounded = got.is_integer() and got >= 5 and abs(got - right) < 1
    ratio = max(got / right, right / got)
    slip = next((words for by, words in SLIPS.items() if abs(ratio / by - 1) <= EXACT), "two units")
    way = f"{float(f'{ratio:.3g}'):,g} times too {'much' if got > right else 'little'}"
    mistake = f"{way}: are {slip} mixed up?"
    expected, got = Words(f"{right:,.5g} {unit}"), Words(f"{got:,.5g} {unit}")
    close = rounded or ratio <= 1 + EXACT
    expect(close, NO_PRODUCT.format(rate), mistake, expected=expected, got=got)
    hours, slow = PILE / rate / HOUR, SLOW if rate < 20_000 else ""
    return f"The division is right: {hours:,.1f} hours, or {hours / 24:,.2f} days.{slow}"


def _uint16(attempt: Any) -> str:
    """Judge the largest number in uint16."""
    largest = amount(attempt, "")
    mistake = NOT_LARGEST.get(largest, "16 bits have 2 ** 16 values, beginning at 0.")
    expect(largest == 65_535, "That is not the largest number in uint16.", mistake, got=attempt)
    return "Two bytes per token: 65,536 values fit, and the largest of them is 65,535."


# --- Three learning rates. The loss is the mean of the squares of 100 weights, drawn from N(0, 5²):
# 25 ± 3.5, or surely between these two.

RATES = (10, 100, 1000, 1)
LOWEST, HIGHEST = 4.0, 46.0
SELDOM = 37.0  # above it a loss "after the first step" is likelier the first, with t from 1
ROUNDED = 0.006  # absolute: people write two decimals, and zero is not quite zero
RULE = "each step multiplies the loss by (1 - 0.02 α / √(t + 1))²"
OF_RATE = "These are the losses for a learning rate of {:,}."
ALL_STEPS = "Hand in the losses of all ten steps, as numbers."
LATE = "t begins at 0: yours begins at 1."
NOT_FRESH = "The weights were not drawn afresh for this run, or they lack the factor 5."


def factor(rate: float, t: int) -> float:
    """What step t multiplies all weights by: the gradient is 2/100 of them."""
    return 1 - 0.02 * rate / math.sqrt(t + 1)


MISTAKEN: dict[str, Callable[[float, int], float]] = {
    "The loss is a mean: is yours a sum?": lambda rate, t: 1 - 2 * rate / math.sqrt(t + 1),
    "α is divided by √(t + 1): yours does not shrink.": lambda rate, t: 1 - 0.02 * rate,
    "α is divided by √(t + 1): the root is missing.": lambda rate, t: 1 - 0.02 * rate / (t + 1),
    "The step goes uphill: subtract the gradient.": lambda rate, t: 2 - factor(rate, t),
}


def _tuning(attempt: Any) -> str:
    """Judge a dict from each learning rate to the losses of its run."""
    for rate, losses in attempt.items():
        if type(rate) not in (int, float) or not isinstance(losses, list | tuple):
            raise Unreadable(attempt)
        if len(losses) < 3 or not all(type(loss) in (int, float) for loss in losses):
            raise NotAttempted(ALL_STEPS)
    return " ".join(_run(rate, losses) for rate, losses in attempt.items())


def _run(rate: float, losses: list[float]) -> str:
    """Judge the losses of one run."""
    likely = []
    for late in (0, 1):  # recorded before each step, or after it
        if _follow(losses, factor, rate, late):
            before = losses[0] / ((factor(rate, 0) ** 2 if late else 1) or 1)
            if LOWEST < before < (SELDOM if late else HIGHEST):
                return f"The losses with {rate:,g} follow the rule: {RULE}."
            likely.append(LATE if late and LOWEST < losses[0] < HIGHEST else NOT_FRESH)
        likely += [words for words, step in MISTAKEN.items() if _follow(losses, step, rate, late)]
        likely += [OF_RATE.format(other) for other in RATES if _follow(losses, factor, other, late)]
    claim, expected = f"These are not the losses with {rate:,g}.", f"about 25 at first; {RULE}"
    raise Wrong(claim, expected=Words(expected), got=losses, mistake=(likely or [None])[0])


def _follow(losses: list[float], step: Callable, rate: float, late: int) -> bool:
    """True where each loss follows from the one before; `late`: the first is after a step."""
    return all(
        abs(after - before * step(rate, t) ** 2) <= max(ROUNDED, EXACT * after)
        for t, (before, after) in enumerate(pairwise(losses), late)
        if math.isfinite(before) and math.isfinite(after)
    )


# --- A generated text

SHORT = "If the model ended the text itself, hand in the text: then it may be shorter."


def _generated(attempt: Any) -> str:
    """Judge the number of tokens of a generated text; the text itself is read."""
    tokens = amount(attempt, "tokens")
    expect(tokens >= 256, "That is too short: 256 tokens are needed.", SHORT, got=attempt)
    return f"A text of {tokens:g} tokens is long enough."


# --- The checks, by what they judge of each part

unicode1 = partial(judged, a=(str | bytes, _character), b=(PAIR, _printed), c=(PAIR, _inside))
unicode2 = partial(judged, a=(dict, _sizes), b=(bytes, _not_ascii), c=(bytes | str, _two_bytes))
train_bpe_tinystories = partial(judged, a=(dict, partial(_training, STORIES)))
train_bpe_expts_owt = partial(judged, a=(dict, partial(_training, WEB)))
_other = partial(_ratio, most=TOO_MANY)
tokenizer_experiments = partial(
    judged, a=(NUMBERS | dict, _own), b=(NUMBERS, _other), c=(PAIR, _pile), d=(NUMBERS, _uint16)
)
learning_rate_tuning = partial(judged, whole=(dict, _tuning))
generate = partial(judged, whole=(NUMBERS, _generated))
