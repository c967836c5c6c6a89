"""`stories`: simple children's stories from a seeded grammar of our own, in any amount.

A story is what a plot in `texts/*.txt` writes when its choices are drawn at random: who it is
about, what goes wrong, who helps, and in which words (`grammar.py` explains the language). Every
story has its own random numbers, made from (seed, stream, index) alone, so any story can be made
by itself, and its bytes are the same on every machine.

We know something about this corpus that nobody knows about a real one: how few bits are enough to
encode its stories. A draw of probability p costs -log2(p) bits, the length of the shortest
code for it, and a story's code length is the sum over its draws. Each draw counts once; what is
decided without a draw costs nothing. The sum is an upper bound on the information in the text:
several ways can lead to the same words, so the text is at least as probable as the one way that
was taken. Over many stories, entropy of the text <= code length, in bits. The best possible model
reaches the entropy on stories that it has not seen. A trained model can come a little below the
code length, but one that is far below it has seen them.

Nothing but chance prevents the same story from coming twice, in one stream or in two: the two
would have to agree in some 600 bits.
"""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random

from workbook.corpora.stories import people
from workbook.corpora.stories.grammar import Grammar
from workbook.corpora.stories.nodes import Story

SEPARATOR = "\n<|endoftext|>\n"  # after each document of a file


@cache
def grammar() -> Grammar:
    """The grammar of the stories, read once."""
    return Grammar(*sources())


def sources() -> list[str]:
    """The lists and rules of the grammar, in its own language."""
    folder = Path(__file__).parent / "texts"
    texts = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))]
    return [people.source(), *texts]


def story(seed: int, stream: str, index: int) -> tuple[str, float]:
    """One story, without a line end, and the code length of its choices in bits."""
    key = sha256(f"{seed} {stream} {index}".encode()).digest()
    return tell(Random(int.from_bytes(key, "big")))


def tell(random: Random) -> tuple[str, float]:
    """A story whose choices `random` draws (only by `getrandbits`), and its code length in bits."""
    rules = grammar()
    new = Story(random.getrandbits, rules.find)
    rules.any_plot.write(new)
    return new.text(), new.bits


def write_stories(seed: int, stream: str, size: int) -> Iterator[tuple[str, float]]:
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
