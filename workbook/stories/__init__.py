"""`stories`: simple children's stories from a seeded grammar of our own, in any amount.

A story is what a plot of `texts/*.txt` writes when its choices are drawn at random: who it is
about, what goes wrong, who helps, which words tell it (`grammar.py` explains the language). Every
story has its own random numbers, made from (seed, stream, index) alone, so any story can be made
by itself, and its bytes are the same on every machine.

We know something about this corpus that nobody knows about a real one: how much its stories can
be compressed. Each draw of probability p costs -log2(p) bits, the length of the shortest code for
it, and a story's code length is the sum over its draws. That is an upper bound of the text's own
information: a reader who sees only the text may be unable to tell which draws made it, because
several ways can lead to the same words, and then the text is more probable than any single way.
So over a large sample: entropy of the text <= code length, in bits. The best possible model of
this corpus reaches the entropy; a trained model that goes below the code length per byte, on
stories it has not seen, does nothing impossible, but one far below it has seen them.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

from workbook.stories import people
from workbook.stories.grammar import Grammar
from workbook.stories.nodes import Story

SEPARATOR = "\n<|endoftext|>\n"  # after each document of a file


@cache
def grammar() -> Grammar:
    """The grammar of the stories, read once."""
    folder = Path(__file__).parent / "texts"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))]
    return Grammar(people.source(), *texts)


def story(seed: int, stream: str, index: int) -> tuple[str, float]:
    """One story (no line end behind it), and the code length of its choices in bits."""
    key = sha256(f"{seed} {stream} {index}".encode()).digest()
    return tell(Random(int.from_bytes(key, "big")))


def tell(random: Random) -> tuple[str, float]:
    """A story told with these random numbers, of which only `getrandbits` is used, and its bits."""
    rules = grammar()
    told = Story(random.getrandbits, rules.find)
    rules.any_plot().write(told)
    return told.text(), told.bits


def write(seed: int, stream: str, size: int) -> Iterator[tuple[str, float]]:
    """The stories 0, 1, 2, ... of a stream, until they and their separators fill `size` bytes.

    The last one may go beyond `size`. A larger size begins with the same stories. Streams with
    different names ("train", "validation") have nothing in common but the grammar.
    """
    written = index = 0
    while written < size:
        text, bits = story(seed, stream, index)
        yield text, bits
        written += len(text.encode()) + len(SEPARATOR)
        index += 1
