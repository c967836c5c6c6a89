"""The promises of the stories: the same bytes everywhere, exact prices, text worth modelling."""

import lzma
import math
import re
from collections import Counter
from fractions import Fraction

import pytest

from workbook.corpora import stories
from workbook.corpora.stories import draws
from workbook.corpora.stories.draws import DrawTable
from workbook.corpora.stories.grammar import Grammar
from workbook.corpora.stories.nodes import Story

WORD = re.compile(r"\b[a-zà-ÿ]+(?:'(?!s\b)[a-z]+)?")  # names and other capitals apart


def text(seed: int, stream: str, size: int) -> str:
    told = stories.write_stories(seed, stream, size)
    return "".join(story + stories.SEPARATOR for story, _ in told)


@pytest.fixture(scope="module")
def train() -> list[tuple[str, float]]:
    """2 MB of stories with their code lengths."""
    return list(stories.write_stories(1, "train", 2_000_000))


# Reproducible ------------------------------------------------------------------------------------


def test_a_larger_size_begins_with_the_smaller_one():
    """Each fills its size, and no more than one story goes beyond."""
    small = [story + stories.SEPARATOR for story, _ in stories.write_stories(7, "train", 20_000)]
    assert text(7, "train", 60_000).startswith("".join(small))
    assert len("".join(small[:-1]).encode()) < 20_000 <= len("".join(small).encode())


def test_any_story_can_be_made_alone():
    in_order = list(stories.write_stories(3, "validation", 20_000))
    assert [stories.story(3, "validation", index) for index in (5, 0)] == [in_order[5], in_order[0]]
    assert next(stories.write_stories(3, "validation", 10**15)) == in_order[0]


# The price of a story ----------------------------------------------------------------------------


def all_tellings(source: str) -> dict[str, tuple[Fraction, set[float]]]:
    """Each text of rule `start`, its probability by trying all random bits, and its prices."""
    grammar = Grammar(source)
    tellings: dict[str, tuple[Fraction, set[float]]] = {}
    waiting: list[tuple[tuple[int, int], ...]] = [()]  # sequences of (width, value)
    while waiting:
        script = waiting.pop()
        place = 0

        def random_bits(width: int, script=script) -> int:
            nonlocal place
            if place == len(script):
                waiting.extend((*script, (width, value)) for value in range(1 << width))
                raise StopIteration
            place += 1
            return script[place - 1][1]

        story = Story(random_bits, grammar.find)
        try:
            story.write(story.capture(grammar.node("start")))
        except StopIteration:
            continue
        probability = Fraction(1, 1 << sum(width for width, _ in script))
        total, prices = tellings.get(story.text(), (Fraction(0), set()))
        tellings[story.text()] = (total + probability, prices | {round(story.bits, 9)})
    return tellings


def test_the_code_length_is_minus_the_logarithm_of_the_probability(monkeypatch):
    monkeypatch.setattr(draws, "PLACES_PER_OPTION", 4)  # small tables: few ways to try
    source = "start:\n    {A}, a_<b>.\n    ? {a}!\na = x, y*3, z\nb = one, [two|ten]"
    tellings = all_tellings(source)
    assert sum(probability for probability, _ in tellings.values()) == 1
    assert len(tellings) == 3 * 3 * 2
    for probability, prices in tellings.values():
        assert [*prices] == [pytest.approx(-math.log2(probability))]
    # Where two ways lead to one text, it is an upper bound. With 16 places, the ways differ.
    monkeypatch.setattr(draws, "PLACES_PER_OPTION", 8)
    probability, prices = all_tellings("start:\n    [a|b][c|][|c]")["ac"]
    assert len(prices) == 2
    assert all(price > -math.log2(probability) for price in prices)


def test_a_second_draw_costs_what_is_left_after_the_first():
    table = DrawTable("abc", [2, 1, 1])
    options = [option for _, option in table.places]
    a = options.index("a")
    b = options.index("b")
    values = iter([a, a, b])  # the taken option is refused twice
    place, price = table.draw_other(lambda width: next(values), [table.places[a]])
    assert place[1] == "b"
    left = len(options) - options.count("a")
    assert price == pytest.approx(-math.log2(options.count("b") / left))


def test_code_lengths_are_finite_and_plausible(train):
    assert all(0 < bits < math.inf for _, bits in train)
    total = sum(len(story.encode()) for story, _ in train)
    assert 0.37 < sum(bits for _, bits in train) / total < 0.43


# Text worth modelling ----------------------------------------------------------------------------


def test_xz_cannot_shrink_the_stories_five_times():
    data = text(1, "train", 190_000).encode()[:190_000]
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    assert len(data) / len(packed) < 5


def test_no_story_comes_twice_in_one_split_or_in_two(train):
    told = {story for story, _ in train}
    assert len(told) == len(train)
    assert told.isdisjoint(story for story, _ in stories.write_stories(1, "validation", 200_000))


def test_words_fall_like_zipfs_law_in_short_stories_for_a_small_child(train):
    counts = Counter(word for story, _ in train for word in WORD.findall(story))
    assert 2_500 < len(counts) < 4_000
    frequencies = [count for _, count in counts.most_common(1_000)]
    slope = math.log(frequencies[999] / frequencies[9]) / math.log(1_000 / 10)
    assert -1.6 < slope < -0.8
    assert frequencies[0] > 20 * frequencies[99]
    lengths = sorted(len(story.split()) for story, _ in train)
    assert lengths[0] >= 80 and lengths[len(lengths) * 95 // 100] <= 350


# English -----------------------------------------------------------------------------------------

SLIPS = {
    "a before a vowel": r"\b[Aa] (?!one\b|use|uni)[aeiouAEIOU]",
    "an before a consonant": r"\b[Aa]n (?!hour)[^aeiouAEIOU]",
    "two spaces": r"  ",
    "a space before a mark": r" [.,!?;:]",
    "two marks": r"[.,!?;:][.,!?;:]",
    "a sentence that begins small": r"(?:^|\n|(?<!Mr)(?<!Mrs)\. )[a-zà-ÿ]",
    "marks of the grammar": r"[][{}<>|_@*#\N{PILCROW SIGN}]",
    "the same word twice": r"\b(?!had\b)(\w+) \1\b",
    "no end": r"[^.!?\"\n](?:\n|$)",
    "an unfinished speech": r"[a-z]\"(?:\n|$)",
}


def test_no_story_has_a_slip(train):
    slips = []
    for story, _ in train[:3000]:
        for slip, pattern in SLIPS.items():
            if match := re.search(pattern, story):
                slips.append((slip, story[max(0, match.start() - 30) : match.end() + 20]))
    assert slips == []
    paragraphs = [paragraph for story, _ in train for paragraph in story.split("\n\n")]
    assert [paragraph for paragraph in paragraphs if paragraph.count('"') % 2] == []


def test_every_plot_can_be_told_and_there_are_many():
    grammar = stories.grammar()
    assert len(grammar.plots) >= 35
    random = stories.Random(0)
    for name in grammar.plots * 10:
        story = Story(random.getrandbits, grammar.find)
        grammar.node(name).write(story)
        assert "\n\n" in story.text()


def test_a_name_keeps_its_pronoun():
    slots = [f"{{{form}{n}}}" for n in ("", "2", "3") for form in ("name", "he", "his", "himself")]
    sources = stories.people.source() + "\nworld = people, woods\nstart:\n    " + " ".join(slots)
    pronouns = {"she": ("her", "herself"), "he": ("his", "himself")}
    of_name = {}
    grammar = Grammar(sources)
    for seed in range(100):
        story = Story(stories.Random(seed).getrandbits, grammar.find)
        grammar.node("start").write(story)
        words = story.text().split()
        people = [words[start : start + 4] for start in (0, 4, 8)]
        assert len({name for name, *_ in people}) == 3
        for name, he, his, himself in people:
            assert (his, himself) == pronouns[he]
            assert of_name.setdefault((story.values["world"], name), he) == he


# Mistakes in the grammar's files -----------------------------------------------------------------


def test_a_mistake_in_the_grammar_is_named():
    with pytest.raises(AssertionError, match="no list or rule 'missing'"):
        all_tellings("start:\n    <missing>\nworld = people")
