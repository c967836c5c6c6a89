"""Who can be in a story: names with their pronouns, as lists for the grammar.

A name and its pronouns are forms of one entry, drawn together, so that they always fit. Numbers
(`name2`, `he2`) are further people of the same story.
"""

from itertools import zip_longest
from pathlib import Path

PRONOUNS = {"she": ("she", "her", "her"), "he": ("he", "him", "his")}
SELVES = {"she": ("herself", "sister"), "he": ("himself", "brother")}
TITLES = {"she": "Mrs.", "he": "Mr."}


def source() -> str:
    """The lists of people in the grammar's own language, one per line."""
    names = _names()
    children = _alternate(
        [_forms(name, "she", *SELVES["she"], "girl") for name in names["girls"]],
        [_forms(name, "he", *SELVES["he"], "boy") for name in names["boys"]],
    )
    animals = _alternate(
        [_forms(name, "she", *SELVES["she"]) for name in names["she_animals"]],
        [_forms(name, "he", *SELVES["he"]) for name in names["he_animals"]],
    )
    surnames = names["surnames"]
    neighbours = _alternate(
        [_forms(f"{title} {name}", "she") for name in surnames for title in ("Mrs.", "Miss")],
        [_forms(f"Mr. {name}", "he") for name in surnames],
    )
    parents = [_forms(*entry.split("/")) for entry in names["parents"]]
    lines = [
        f"name/he/him/his/himself/sib/kind.people = {children}",
        f"name/he/him/his/himself/sib.animals = {animals}",
        f"parent/phe/phim/phis = {', '.join(parents)}",
        f"adult/ahe/ahim/ahis.people = {neighbours}",
    ]
    for world in ("woods", "plains", "birds", "sea", "machines", "farm"):
        pairs = [elder.split("/") for elder in names[f"elders.{world}"]]
        entries = _alternate(
            [_forms(f"Old {name}", pronoun) for name, pronoun in pairs],
            [_forms(f"{TITLES[pronoun]} {name}", pronoun) for name, pronoun in pairs],
        )
        lines.append(f"adult/ahe/ahim/ahis.{world} = {entries}")
    return "\n".join(lines)


def _names() -> dict[str, list[str]]:
    """The lists of `names.txt` by their headings, the most frequent name first.

    Children's names are from many places, none of a famous person; `parents` are those whom
    children come home to, `surnames` those of neighbours, teachers and shopkeepers, and the
    `elders` of a world, such as `elders.woods`, their like among animals and machines.
    """
    text = Path(__file__).with_name("names.txt").read_text(encoding="utf-8")
    paragraphs = [paragraph.split() for paragraph in text.split("\n\n")]
    return {heading: names for heading, *names in paragraphs}


def _forms(name: str, pronoun: str, *more: str) -> str:
    """One entry: a name, its pronouns, and what else belongs to it.

    >>> _forms("Mia", "she", "girl")
    'Mia/she/her/her/girl'
    """
    return "/".join((name, *PRONOUNS[pronoun], *more))


def _alternate(first: list[str], second: list[str]) -> str:
    """Entries of two lists, alternating, so that both are equally frequent; then what is left."""
    pairs = zip_longest(first, second)
    return ", ".join(entry for pair in pairs for entry in pair if entry)
