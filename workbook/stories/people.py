"""Who can be in a story: names with their pronouns, as lists for the grammar.

Everybody has six forms under one draw, so that a name never meets a wrong pronoun. Number 2 and 3
(`name2`, `he3`) are further people of the same story.
"""

from itertools import zip_longest

PRONOUNS = {
    "she": ("she", "her", "her", "herself", "sister"),
    "he": ("he", "him", "his", "himself", "brother"),
}

# Children, the most frequent first. Names from many places, none of a famous person.
GIRLS = """
    Mia Lina Anna Rosa Zoe Ella Maya Ruby Nora Amina Lucy Ivy Sofia Yuki Clara Priya Tess Leila Jade
    Ada Marta Hana Freya Wanda Nia Carmen Ingrid Mei Elif Poppy Dora Fatima Greta Sana Paula Abeni
    Kiri Selma Tara Olga Bella Anouk Ines Rania Willow Noor Kaya Thea Lupe Zuri Zoë Inês
"""
BOYS = """
    Tom Ben Sam Leo Max Noah Omar Finn Luca Kofi Hugo Ravi Jack Emil Mateo Yusuf Theo Ken Pablo Otis
    Arun Felix Idris Oskar Dan Hiro Milo Tariq Jonas Ali Nico Bruno Kwame Anton Deniz Liam Toby Juan
    Sven Malik Rafi Piotr Eli Wei Andre Tomas Jamal Gus Kai Rohan Björn José
"""
SHE_ANIMALS = """
    Dot Hazel Daisy Pippa Bramble Clover Tilly Nutmeg Olive Pearl Minnow Bonnie Fern Lotta Penny
    Juno Saffron Tansy Mimi Juniper Lulu Maple Wren Posy
"""
HE_ANIMALS = """
    Pip Bruno Moss Timmy Rusty Otto Benji Thistle Hopper Coco Alder Pepper Ziggy Boris Fidget Conker
    Archie Bumble Dusty Jasper Pogo Mungo Sorrel Wilf
"""

# Those whom children come home to: what they are called, and what they are.
PARENTS = """
    Mum/mum/she Dad/dad/he Mama/mama/she Papa/papa/he Grandma/grandma/she Grandpa/grandpa/he
    Nana/nana/she Grandad/grandad/he Auntie/aunt/she Uncle/uncle/he
"""

# Neighbours, teachers and shopkeepers.
SURNAMES = """
    Green Lopez Brown Chen Okafor Singh Baker Rossi Park Novak Haddad Silva Miller Tanaka Murphy
    Demir Larsen Diaz Mensah Kowalski Patel Rose Fischer Nguyen Dubois Hill
"""
ELDERS = {
    "woods": "Badger/he Owl/she Hare/she Heron/he Otter/he Toad/he Goose/she Mole/he Bear/she",
    "plains": "Tortoise/he Elephant/she Hippo/she Giraffe/he Ostrich/she Rhino/he Stork/she",
    "birds": "Stork/he Owl/she Crow/he Goose/she Swan/she Eagle/he",
    "sea": "Octopus/he Whale/she Crab/he Turtle/she Lobster/he Walrus/he Eel/she",
    "farm": "Donkey/he Goose/she Cow/she Dog/he Goat/she Horse/he Turkey/he Cat/she",
}


def source() -> str:
    """The lists of people in the grammar's own language, one a line."""
    children = _alternate(
        [_forms(name, "she", "girl") for name in GIRLS.split()],
        [_forms(name, "he", "boy") for name in BOYS.split()],
    )
    animals = _alternate(
        [_forms(name, "she") for name in SHE_ANIMALS.split()],
        [_forms(name, "he") for name in HE_ANIMALS.split()],
    )
    parents = [_forms(called, pronoun, noun) for called, noun, pronoun in _words(PARENTS)]
    neighbours = _alternate(
        [
            _forms(f"{title} {name}", "she")
            for name in SURNAMES.split()
            for title in ("Mrs.", "Miss")
        ],
        [_forms(f"Mr. {name}", "he") for name in SURNAMES.split()],
    )
    lines = [
        f"name/he/him/his/himself/sib/kind.people = {children}",
        f"name/he/him/his/himself/sib.animals = {animals}",
        f"parent/phe/phim/phis/pself/psib/mum = {', '.join(parents)}",
        f"adult/ahe/ahim/ahis/aself/asib.people = {neighbours}",
    ]
    for world, elders in ELDERS.items():
        title = {"she": "Mrs.", "he": "Mr."}
        entries = _alternate(
            [_forms(f"Old {name}", pronoun) for name, pronoun in _words(elders)],
            [_forms(f"{title[pronoun]} {name}", pronoun) for name, pronoun in _words(elders)],
        )
        lines.append(f"adult/ahe/ahim/ahis/aself/asib.{world} = {entries}")
    return "\n".join(lines)


def _words(text: str) -> list[list[str]]:
    return [word.split("/") for word in text.split()]


def _forms(name: str, pronoun: str, *more: str) -> str:
    """One entry: a name, its pronouns, and what else belongs to it.

    >>> _forms("Mia", "she", "girl")
    'Mia/she/her/her/herself/sister/girl'
    """
    return "/".join((name, *PRONOUNS[pronoun], *more))


def _alternate(first: list[str], second: list[str]) -> str:
    """Entries of two lists by turns, so that both are as frequent; then the rest of the longer."""
    pairs = zip_longest(first, second)
    return ", ".join(entry for pair in pairs for entry in pair if entry)
