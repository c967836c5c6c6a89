"""The checks of written answers: a value in the documented form is judged, a sentence never is.

Each part takes one form, which `takes` in `problems` states with an example. Any other value
is `Unreadable`: the learner is shown that form. A text is read, and its facts are shown to tick; no
number is looked for in it. All numbers are in the unit that the form names.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from workbook.classroom.checks.machinery.verdicts import (
    Facts,
    NotAttempted,
    NumberInWords,
    Prose,
    Unreadable,
    Wrong,
    expect,
)
from workbook.tokenization.pretokens import pretokenize
from workbook.tokenization.utf8 import flaw

# The types of attempts.
NUMBER = int | float
FEW_WORDS = 10  # in which nobody explains anything
PAIR = list | tuple


def judged_part(attempt: Any, part: str | None = None, /, **judges: tuple) -> str | Facts:
    """What the judge of a part says of an attempt, which must be of the type beside that judge.

    A part that has no judge takes sentences alone; "whole" is that of a problem without parts.
    """
    kind, judge = judges.get(part or "whole", ((), None))
    fits = isinstance(attempt, kind)
    try:
        if not fits or attempt == {} or (isinstance(attempt, str) and attempt.isspace()):
            raise Unreadable(attempt)
        return judge(attempt)
    except Unreadable as other:
        takes_number = judge is not None and isinstance(1.0, kind)
        if takes_number and isinstance(attempt, str) and _is_number_in_words(attempt):
            raise NumberInWords(attempt) from other
        raise


def _is_number_in_words(text: str) -> bool:
    """Whether a text is a number and a few words, and no sum or sentence about it."""
    begins = re.match(r"\W*(about |roughly )?\W*\d", text, re.IGNORECASE)
    return bool(begins) and "+" not in text and len(text.split()) <= FEW_WORDS


def _number(value: Any) -> float:
    """A finite number. Raises: `Unreadable` for anything else, a text with a number in it too."""
    if type(value) not in (int, float) or not abs(value) < 1e300:  # nan is not smaller either
        raise Unreadable(value)
    return value


def _pair(attempt: Any, *kinds: Any) -> Any:
    """A pair of values of these types. Raises: `Unreadable` for any other."""
    if len(attempt) != 2 or not all(map(isinstance, attempt, kinds)):
        raise Unreadable(attempt)
    return attempt


# --- unicode1: the character with number 0

NUL = chr(0)
OF_BYTES = r"b'\x00'"
BYTES = "That is the repr of bytes, not of a str: `chr` returns a str, which has no b in front."
EMPTY = "NUL is invisible, but it is one character, of length 1: this is not the empty string."
NONE = "`print` returns None, whatever it shows: write what you see between quotes."
REVERSED = "It is the other way round: the repr comes first."
NOT_THE_SAME = "The repr spells the character out; `print` writes the character itself."
MISSING = "NUL was not counted: it is invisible, but it stays in the text as one character."
CUT = "In C, a string ends at NUL. In Python it goes on, and NUL counts as one character."


def _character(attempt: Any) -> str:
    """Judge a code point such as "U+0041" or 65, or the character itself."""
    attempt = f"U+{attempt:04X}" if isinstance(attempt, int) else attempt
    expect(attempt not in (b"\x00", OF_BYTES), "`chr` returns something else.", BYTES, got=attempt)
    expect(attempt not in ("", NUL * 2), "That is not one character.", EMPTY, got=attempt)
    code_point = re.fullmatch(r"U\+([\dA-F]{1,6})|(.)", attempt, re.IGNORECASE | re.DOTALL)
    if not code_point:
        raise Unreadable(attempt)
    code = int(code_point[1], 16) if code_point[1] else ord(attempt)
    meant = f"That is {chr(code)!r}: chr({code})." if code < 0x110000 else None
    expect(code == 0, "That is a different character.", meant, given="ord(chr(0))", got=code)
    return "U+0000: a control character, called NUL. It is a str of length 1."


def _printed(attempt: Any) -> str | Facts:
    """Judge a pair: the repr, and what `print` shows, which is the character or nothing."""
    spelled = (repr(NUL), r"\x00")
    written = (NUL, "")
    expect(None not in attempt, "None is not what is shown.", NONE, got=attempt)
    first, second = _pair(attempt, str, str)
    if first in spelled and second in written:
        return "The repr spells the character out; `print` writes it, and it is invisible."
    claim = "Those are not the repr and what `print` shows."
    expect(first not in written or second not in spelled, claim, REVERSED, got=attempt)
    expect(first != OF_BYTES, claim, BYTES, got=attempt)
    expect(first != second, claim, NOT_THE_SAME, got=attempt)
    return Facts()  # something in words


def _inside(attempt: Any) -> str:
    """Judge a pair: a text with the character inside, and its length."""
    text, length = _pair(attempt, str, int)
    expect(NUL in text, "The character is not in this text: put chr(0) into it.", got=text)
    # Who thinks of C stops counting at NUL; who trusts the eye leaves it out.
    slip = {text.index(NUL): CUT, len(text.replace(NUL, "")): MISSING}.get(length)
    expect(length == len(text), "That is not the length of the text.", slip, got=attempt)
    return "NUL counts like any other character, though it is usually invisible when printed."


# --- unicode2: from characters to bytes

# The bytes that "hello" takes, with a byte order mark in front and without.
MARKED = {name: len("hello".encode(name)) for name in ("UTF-8", "UTF-16", "UTF-32")}
BARE = MARKED | {name: len("hello".encode(f"{name}-LE")) for name in ("UTF-16", "UTF-32")}
MARK = "Byte order marks (2 bytes in UTF-16, 4 in UTF-32) were counted for one, not for the other."
CHARACTERS = "Characters were counted, not bytes."
ASCII = "It is all ASCII, where a character is one byte. Take a character that needs more."
PAIRS = "In hex: below 80 is ASCII, C2 to DF begins a character of two bytes, 80 to BF ends it."


def _sizes(attempt: Any) -> str:
    """Judge the bytes of "hello" by encoding: with byte order marks or without, but not mixed."""
    sizes = {str(name).upper(): _number(size) for name, size in attempt.items()}
    if not sizes.keys() <= MARKED.keys():
        raise Unreadable(attempt)
    if sizes.items() <= MARKED.items() or sizes.items() <= BARE.items():
        return "The sizes are right."
    mistake = None
    if all(size in (MARKED[name], BARE[name]) for name, size in sizes.items()):
        mistake = MARK
    elif 5 in (sizes.get("UTF-16"), sizes.get("UTF-32")):
        mistake = CHARACTERS
    expected = {name: MARKED[name] for name in sizes}
    raise Wrong("Those are not its sizes.", expected=expected, got=attempt, mistake=mistake)


def _not_ascii(attempt: Any) -> str:
    """Judge bytes: they must be UTF-8, and decoding them byte by byte must fail."""
    if broken := flaw(attempt):
        claim = "Those bytes are not UTF-8, so a correct decoder refuses them too."
        raise Wrong(claim, got=attempt, mistake=f"{broken.sentence} Encode some text instead.")
    expect(not attempt.isascii(), "Decoding it byte by byte works.", ASCII, got=attempt)
    wide = next(character for character in attempt.decode() if not character.isascii())
    return f"{wide!r} takes {len(wide.encode())} bytes, none of them a character by itself."


def _two_bytes(attempt: Any) -> str:
    """Judge two bytes, which must not be UTF-8, and say which rule they break."""
    expect(len(attempt) == 2, "Exactly two bytes were asked for.", got=attempt)
    if broken := flaw(attempt):
        return broken.sentence
    claim = "Those two bytes can be decoded."
    got = attempt.decode()
    raise Wrong(claim, given=repr(attempt), got=got, mistake=PAIRS)


# --- Trained tokenizers. What depends on corpus and machine is judged by wide ranges.


class Training(NamedTuple):
    """What a training may take, and what it gives on the course's corpus."""

    corpus: str
    longest: int  # bytes of the longest token
    hours: float
    gigabytes: float


STORIES = Training("TinyStories with 10,000 tokens", 15, 0.5, 30)
WEB = Training("OpenWebText with 32,000 tokens", 64, 12, 100)
FIGURES = ("seconds", "hours", "gigabytes")
# Gigabytes: the interpreter alone takes more than the first, and several processes more than the
# second; what is above the third is likelier a number of megabytes.
PYTHON, PROCESSES, MEGA = 1e-3, 0.1, 100
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
    figures = {key: _number(value) for key, value in attempt.items() if key in FIGURES}
    expect(min(figures.values(), default=1) > 0, "Time and memory are positive.", got=attempt)
    hours = figures.get("hours", figures.get("seconds", 0) / 3_600)
    claim = f"The problem allows {training.hours:g} hours and {training.gigabytes} GB."
    expect(hours <= training.hours, claim, ANEW, got=attempt)
    if "gigabytes" in figures:
        peak = figures["gigabytes"]
        mistake = OTHER_UNIT if peak >= MEGA else LARGE_PEAK
        expect(peak <= 1.1 * training.gigabytes, claim, mistake, got=attempt)
        expect(peak >= PYTHON, "Python alone takes more memory.", OTHER_UNIT, got=attempt)
        enough = hours <= 1 / 60 or peak >= PROCESSES
        expect(enough, "That is too little memory for so much text.", PARENT, got=attempt)
    praise = [_longest(training, attempt["longest"])] if "longest" in attempt else []
    return " ".join([*praise, *([f"{PLAUSIBLE.capitalize()}."] if figures else [])])


def _longest(training: Training, token: Any) -> str:
    """Judge a token that may be the longest."""
    if not isinstance(token, bytes):
        raise Unreadable(token, "The longest token is to be bytes.")
    expect(len(token) >= 8, "That is short for the longest token.", SORT, got=token)
    # In running text a space precedes nearly every word, so the token of a long word begins with
    # one. The web has other long tokens: rulers, and text that was encoded twice.
    is_word = training is STORIES and token.isalpha()
    expect(not is_word, "A byte is missing.", SPACE, expected=b" " + token, got=token)
    pieces = [] if flaw(token) else list(pretokenize([token.decode()]))
    claim = "No merge crosses pre-tokens, but this has several."
    expect(len(pieces) < 2, claim, CROSSED, got=pieces[:6])
    return f"{len(token)} bytes; {training.corpus} gives {training.longest}."


# --- tokenizer_experiments

EXACT = 0.01  # relative: what is left of two rounded numbers
# What a time is multiplied or divided by where two units are mixed up.
SLIPS: dict[float, str] = {60: "minutes and hours", 3_600: "hours and seconds"}
SLIPS |= {24: "hours and days", 8: "bits and bytes", 1e3: "GB, MB and kB", 1e6: "MB and bytes"}
SLIPS |= {1.024**3: "GB and GiB", 1.024**2: "MB and MiB"}
# Bytes per token that a tokenizer reaches on its own text, by corpus: ten documents of `docstrings`
# may have 2.8.
ENOUGH = {"stories": 3.0, "tinystories": 3.0, "docstrings": 2.5, "owt": 2.5}
TOO_MANY = 4.3  # bytes per token for the stories' tokenizer on web text
CEILING = 5.5  # bytes per token: more than a pre-token has, on average, in any of the corpora
UPSIDE_DOWN = "The ratio is upside down: a token stands for at least one byte."
NO_TOKENS = "A token is no longer than a word: did you count words, not tokens, or bits, not bytes?"
NOT_MERGED = "BPE reaches about 4 on text like its training text: is every merge applied?"
OWN_TOKENIZER = "Only text like the training text needs so few tokens: which text is it?"
NO_END = "That fits, as do all IDs of the two vocabularies. But where does uint16 end?"
NOT_LARGEST: dict[float, str] = {
    **dict.fromkeys((9_999, 10_000, 31_999, 32_000), NO_END),
    2**16: "65,536 is how many values there are: they begin at 0, so the largest is one less.",
}


def _ratio(value: Any, least: float = 1, most: float = TOO_MANY) -> str:
    """Judge bytes per token, which are implausible below `least` and above `most`."""
    ratio = _number(value)
    claim = "So many bytes per token are implausible."
    # The bounds that hold for every tokenizer come first.
    expect(ratio >= 1, claim, UPSIDE_DOWN, got=ratio)
    expect(ratio <= CEILING, claim, NO_TOKENS, got=ratio)
    expect(ratio >= least, claim, NOT_MERGED, got=ratio)
    expect(ratio <= most, claim, OWN_TOKENIZER, got=ratio)
    return f"{ratio:.2f} bytes per token: {PLAUSIBLE}."


def _own(attempt: Any) -> str:
    """Judge the bytes per token of each tokenizer on its own corpus; a number is of the stories."""
    ratios = attempt if isinstance(attempt, dict) else {"stories": attempt}
    if unknown := [key for key in ratios if key not in ENOUGH]:
        raise Unreadable(attempt, f"{unknown[0]!r} is not one of the corpora.")
    return " ".join(_ratio(ratio, ENOUGH[name], CEILING) for name, ratio in ratios.items())


def _pile(attempt: Any) -> str:
    """Judge a pair: bytes per second, and the hours that the Pile takes at that speed."""
    rate, hours = map(_number, _pair(attempt, NUMBER, NUMBER))
    expect(min(rate, hours) > 0, "Speed and time must be positive.", got=attempt)
    right = 825e9 / rate / 3_600
    rounded = right >= 5 and float(hours).is_integer() and abs(hours - right) < 1
    ratio = max(hours / right, right / hours)
    slip = next((words for by, words in SLIPS.items() if abs(ratio / by - 1) <= EXACT), "two units")
    claim = f"825e9 bytes at {rate:,.10g} bytes per second take {right:,.5g} hours."
    expect(rounded or ratio <= 1 + EXACT, claim, f"Are {slip} mixed up?", got=hours)
    return f"The division is right: {right:,.1f} hours, or {right / 24:,.2f} days."


def _uint16(attempt: Any) -> str:
    """Judge the largest number in uint16."""
    largest = _number(attempt)
    mistake = NOT_LARGEST.get(largest, "16 bits have 2 ** 16 values, beginning at 0.")
    expect(largest == 65_535, "That is not the largest number in uint16.", mistake, got=attempt)
    return "Two bytes per token: 65,536 values fit, and the largest of them is 65,535."


# --- Three learning rates. The loss is the mean of the squares of 100 weights, drawn from N(0, 5²):
# 25 ± 3.5, or surely between these two.

# Above the third a loss "after the first step" is likelier the first one, with t from 1.
LOWEST, HIGHEST, SELDOM = 4.0, 46.0, 37.0
RATES = (10, 100, 1_000, 1)
RULE = "each step multiplies the loss by (1 - 0.02 α / √(t + 1))²"
OF_RATE = "These are the losses for a learning rate of {:,}."
LATE = "t begins at 0: yours begins at 1."
NOT_FRESH = "The weights were not drawn afresh for this run, or they lack the factor 5."


def growth(rate: float, t: int) -> float:
    """What step t multiplies all weights by: the gradient is 2/100 of them."""
    return 1 - 0.02 * rate / math.sqrt(t + 1)


MISTAKEN: dict[str, Callable[[float, int], float]] = {
    "The loss is a mean: is yours a sum?": lambda rate, t: 1 - 2 * rate / math.sqrt(t + 1),
    "α is divided by √(t + 1): yours does not shrink.": lambda rate, t: 1 - 0.02 * rate,
    "α is divided by √(t + 1): the root is missing.": lambda rate, t: 1 - 0.02 * rate / (t + 1),
    "The step goes uphill: subtract the gradient.": lambda rate, t: 2 - growth(rate, t),
}


def _tuning(attempt: Any) -> str:
    """Judge a dict from each learning rate to the losses of its run."""
    for rate, losses in attempt.items():
        numbers = [rate, *losses] if isinstance(losses, list | tuple) else [None]
        if not all(type(number) in (int, float) for number in numbers):
            raise Unreadable(attempt)
        if len(numbers) < 4:
            raise NotAttempted("Hand in the losses of all ten steps.")
    return " ".join(_run(rate, losses) for rate, losses in attempt.items())


def _run(rate: float, losses: list[float]) -> str:
    """Judge the losses of one run."""
    likely = []
    for late in (0, 1):  # recorded before each step, or after it
        if _follow(losses, growth, rate, late):
            before = losses[0] / ((growth(rate, 0) ** 2 if late else 1) or 1)
            if LOWEST < before < (SELDOM if late else HIGHEST):
                return f"The losses with {rate:,g} follow the rule: {RULE}."
            likely.append(LATE if late and LOWEST < losses[0] < HIGHEST else NOT_FRESH)
        likely += [words for words, step in MISTAKEN.items() if _follow(losses, step, rate, late)]
        likely += [OF_RATE.format(other) for other in RATES if _follow(losses, growth, other, late)]
    claim = f"These are not the losses with {rate:,g}."
    expected = f"about 25 at first; {RULE}"
    raise Wrong(claim, expected=Prose(expected), got=losses, mistake=(likely or [None])[0])


def _follow(losses: list[float], step: Callable, rate: float, late: int) -> bool:
    """True where each loss follows from the one before; `late`: the first is after a step."""
    # 0.006 absolute: people write two decimals, and zero is not quite zero.
    return all(
        abs(after - before * step(rate, t) ** 2) <= max(0.006, EXACT * after)
        for t, (before, after) in enumerate(pairwise(losses), late)
        if math.isfinite(before) and math.isfinite(after)
    )


# --- A generated text

SHORT = "If the model ended the text itself, hand in the text: then it may be shorter."


def _generated(attempt: Any) -> str:
    """Judge the number of tokens of a generated text; the text itself is read."""
    tokens = _number(attempt)
    expect(tokens >= 256, "That is too short: 256 tokens are needed.", SHORT, got=attempt)
    return f"A text of {tokens:g} tokens is long enough."


# --- The checks, by what they judge of each part

POINT = str | bytes | int
unicode1 = partial(judged_part, a=(POINT, _character), b=(PAIR, _printed), c=(PAIR, _inside))
unicode2 = partial(judged_part, a=(dict, _sizes), b=(bytes, _not_ascii), c=(bytes, _two_bytes))
train_bpe_tinystories = partial(judged_part, a=(dict, partial(_training, STORIES)))
train_bpe_expts_owt = partial(judged_part, a=(dict, partial(_training, WEB)))
tokenizer_experiments = partial(
    judged_part, a=(NUMBER | dict, _own), b=(NUMBER, _ratio), c=(PAIR, _pile), d=(NUMBER, _uint16)
)
learning_rate_tuning = partial(judged_part, whole=(dict, _tuning))


def generate(attempt: Any, part: str | None = None) -> str | Facts:
    """Judge the number of a text's tokens; the text itself, which may begin with one, is read."""
    if isinstance(attempt, str) and attempt.strip():
        return Facts()
    return judged_part(attempt, whole=(NUMBER, _generated))
