"""The nodes of a compiled grammar, which write themselves into a story.

A `Story` is the memory of one document: its text so far, the words it remembers, and what its
draws cost. Every draw of this package happens in this file.
"""

from collections.abc import Callable
from typing import Protocol

from workbook.corpora.stories.draws import DrawTable

PARAGRAPH = " \N{PILCROW SIGN} "
CAPITAL = "^"  # the letter after it becomes a capital
TIDY = (  # in this order; `replace` is many times faster than a regular expression
    ("  ", " "),
    ("  ", " "),
    ("  ", " "),
    (" .", "."),
    (" ,", ","),
    (" !", "!"),
    (" ?", "?"),
    (PARAGRAPH, "\n\n"),
    ("_ ", "_"),  # a_ was followed by an option that is empty
    *((f"_{vowel}", f"n {vowel}") for vowel in "aeiou"),
    ("_", " "),
)
DIGITS = "0123456789"


class Node(Protocol):
    """Anything that writes itself into a story."""

    def write(self, story: "Story") -> None: ...


class WordList:
    """A list of words: entries of one or more forms, such as (kite, kites)."""

    def __init__(self, forms: tuple[str, ...], entries: list[tuple[str, ...]], weights: list[int]):
        self.forms = forms
        self.table = DrawTable(entries, weights)


class Story:
    """One document while it is being written."""

    def __init__(
        self, random_bits: Callable[[int], int], find: Callable[[str, "Story"], Node | str]
    ):
        self.random_bits = random_bits
        self.find = find  # a node by its name, in the world of this story
        self.bits = 0.0
        self.values: dict[str, str] = {}
        self.taken: dict[WordList, list[tuple[float, tuple[str, ...]]]] = {}
        self.parts: list[str] = []
        self.write = self.parts.append

    def text(self) -> str:
        """The text so far, with capitals, articles, paragraphs and spaces put right."""
        first, *others = "".join(self.parts).split(CAPITAL)
        text = first + "".join(part[:1].upper() + part[1:] for part in others)
        for spare, right in TIDY:
            text = text.replace(spare, right)
        return text.strip()

    def capture(self, node: Node | str) -> str:
        """The text that a node writes, kept out of the story's."""
        if isinstance(node, str):
            return node
        start = len(self.parts)
        node.write(self)
        text = "".join(self.parts[start:])
        del self.parts[start:]
        return text

    def remember(self, slot: str) -> str:
        """The word of a slot at its first use: drawn now, and the same ever after.

        All forms of an entry are remembered together. `kite2` is another entry than `kite`.
        """
        name = slot.rstrip(DIGITS)
        node = self.find(name, self)
        if isinstance(node, WordForm):
            words = node.words
            taken = self.taken.get(words)
            if taken:
                place, price = words.table.draw_other(self.random_bits, taken)
            else:
                place = words.table.places[self.random_bits(words.table.width)]
                price = place[0]
            self.bits += price
            self.keep(words, place, slot[len(name) :])
        else:
            self.values[slot] = self.capture(node)
        return self.values[slot]

    def keep(self, words: WordList, place: tuple[float, tuple[str, ...]], number: str) -> None:
        """Bind every form of an entry, and never draw that entry for another number."""
        self.taken.setdefault(words, []).append(place)
        for form, text in zip(words.forms, place[1], strict=True):
            self.values[form + number] = text


class Series:
    """Nodes and plain text, one after another."""

    def __init__(self, parts: list[Node | str]):
        self.parts = parts

    def write(self, story: Story) -> None:
        for part in self.parts:
            if isinstance(part, str):
                story.write(part)
            else:
                part.write(story)


class Choice:
    """One of several nodes, drawn anew each time."""

    def __init__(self, options: list[Node | str], weights: list[int]):
        table = DrawTable(options, weights)
        self.places = table.places
        self.width = table.width

    def write(self, story: Story) -> None:
        price, option = self.places[story.random_bits(self.width)]
        story.bits += price
        if isinstance(option, str):
            story.write(option)
        else:
            option.write(story)


class WordForm:
    """One form of an entry, drawn anew each time and not remembered."""

    def __init__(self, words: WordList, index: int):
        self.words = words
        self.index = index
        self.places = words.table.places
        self.width = words.table.width

    def write(self, story: Story) -> None:
        price, entry = self.places[story.random_bits(self.width)]
        story.bits += price
        story.write(entry[self.index])


class Slot:
    """A remembered word."""

    def __init__(self, key: str):
        self.key = key

    def write(self, story: Story) -> None:
        story.write(story.values.get(self.key) or story.remember(self.key))


class Assign:
    """Remembers an entry, named by its first form, or a new one given as form/form."""

    def __init__(self, slot: str, value: str):
        self.slot = slot
        self.value = value

    def write(self, story: Story) -> None:
        name = self.slot.rstrip(DIGITS)
        form = story.find(name, story)
        assert isinstance(form, WordForm), f"{{{self.slot}={self.value}}}: {name} is no list"
        words = form.words
        number = self.slot[len(name) :]
        for place in words.table.places:
            if place[1][0] == self.value:
                return story.keep(words, place, number)
        story.keep(words, (0.0, tuple(self.value.split("/"))), number)


class Find:
    """A node whose name depends on the story: on its world, or on a remembered word."""

    def __init__(self, name: str, slot: str | None):
        self.name = name
        self.slot = slot

    def write(self, story: Story) -> None:
        name = self.name
        if self.slot:
            name += story.values.get(self.slot) or story.remember(self.slot)
        node = story.find(name, story)
        if isinstance(node, str):
            story.write(node)
        else:
            node.write(story)
