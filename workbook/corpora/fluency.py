"""How well a text reads, as far as counting can tell: known words, repetition, copied passages.

None of the three proves that a text makes sense. Each catches one way in which it may not: words
that do not exist, going round in circles, and reciting memorised training data.
"""

import re
from collections.abc import Collection, Iterator

WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
WINDOW = 4  # words: a phrase repeated on purpose is seldom longer


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, without numbers and punctuation.

    >>> split_words("It's the fox's 3rd den!")
    ["it's", 'the', "fox's", 'rd', 'den']
    """
    return [word.lower() for word in WORD.findall(text)]


def distinct_words(texts: Iterator[str] | Collection[str]) -> set[str]:
    """All words of some texts.

    >>> sorted(distinct_words(["The fox\u2019s den.", "It ran"]))
    ['den', 'fox\u2019s', 'it', 'ran', 'the']
    """
    return {match[0].lower() for text in texts for match in WORD.finditer(text)}


def known_share(text: str, known: Collection[str]) -> float:
    """The share of words that are known: 1 if all are.

    >>> known_share("The fox flombered.", {"the", "fox"}), known_share("", {"the"})
    (0.6666666666666666, 0.0)
    """
    words = split_words(text)
    return sum(word in known for word in words) / max(len(words), 1)


def repeated_share(text: str) -> float:
    """The share of runs of `WINDOW` words that occurred before in the same text.

    >>> repeated_share("the fox ran and the fox ran and the fox ran"), repeated_share("too short")
    (0.5, 0.0)
    """
    words = split_words(text)
    runs = [tuple(words[at : at + WINDOW]) for at in range(len(words) - WINDOW + 1)]
    return (len(runs) - len(set(runs))) / max(len(runs), 1)


def counts(text: str, source: str) -> dict[str, float]:
    """The measures of a text: its words, and how it compares with `source`, which its author read.

    >>> counts("The fox flombered.", "The fox ran.")
    {'words': 3, 'known': 0.6666666666666666, 'repeated': 0.0, 'copied_words': 2}
    """
    return {
        "words": len(split_words(text)),
        "known": known_share(text, distinct_words([source])),
        "repeated": repeated_share(text),
        "copied_words": len(longest_copy(text, source).split()),
    }


def longest_copy(text: str, source: str) -> str:
    """The longest run of whole words of `text` that occurs in `source`, letter for letter.

    >>> longest_copy("A fox ran to the hill.", "There a fox ran to the river.")
    'fox ran to the'
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    best = ""
    first = 0
    searched = source.encode()  # bytes are searched twice as fast
    for _, end in spans:
        # If a run is not in the source, no longer one is either, so `first` never goes back.
        while first < len(spans) and spans[first][0] < end:
            run = text[spans[first][0] : end]
            if run.encode() in searched:
                best = max(best, run, key=len)
                break
            first += 1
    return best
