"""Who can be in a story: names with their pronouns, as lists for the grammar.

A name and its pronouns are forms of one entry, drawn together, so that they always fit. Numbers
(`name2`, `he2`) are further people of the same story.
"""

from itertools import zip_longest

PRONOUNS = {"she": ("she", "her", "her"), "he": ("he", "him", "his")}
SELVES = {"she": ("herself", "sister"), "he": ("himself", "brother")}
TITLES = {"she": "Mrs.", "he": "Mr."}

# Children, the most frequent first. Names from many places, none of a famous person.
GIRLS = """
    Mia Lina Anna Rosa Zoe Ella Maya Ruby Nora Amina Lucy Ivy Sofia Yuki Clara Priya Tess Leila
    Jade Ada Marta Hana Freya Wanda Nia Carmen Ingrid Mei Elif Poppy Dora Fatima Greta Sana
    Paula Abeni Kiri Selma Tara Olga Bella Anouk Ines Rania Willow Noor Kaya Thea Lupe Zuri Zoë
    Inês Agnes Alba Amara Asha Ayla Bianca Celia Chloe Delia Edith Elsie Esra Eva Fiona Frida
    Gloria Hattie Heidi Holly Ilse Isla Janet Judith Karin Kirsten Laila Leonie Lola Louisa
    Lydia Maja Margot Martha Meera Mina Molly Naomi Nika Odile Petra Reka Romy Safiya Samira
    Signe Simone Susan Sylvie Tamsin Thandi Tove Ursula Vera Wilma Yasmin Zahra Zita
"""
BOYS = """
    Tom Ben Sam Leo Max Noah Omar Finn Luca Kofi Hugo Ravi Jack Emil Mateo Yusuf Theo Ken Pablo
    Otis Arun Felix Idris Oskar Dan Hiro Milo Tariq Jonas Ali Nico Bruno Kwame Anton Deniz Liam
    Toby Juan Sven Malik Rafi Piotr Eli Wei Andre Tomas Jamal Gus Kai Rohan Björn José Aaron
    Adam Albert Alvin Anders Aron Axel Bilal Boris Carlos Cem Clement Cyril Desmond Dmitri Edgar
    Elias Enzo Ernest Ezra Farid Filip Fred Gareth Gilbert Hamid Hannes Hassan Henry Ibrahim
    Ilya Ismail Jabari Jasper Joel Julian Karl Kenji Kojo Laszlo Lewis Lorenzo Luis Marco Martin
    Mehmet Mikkel Nathan Nils Oliver Otto Paul Pedro Peter Ralph Rashid Robin Rufus Samuel Simon
    Tadeo Timo Umberto Victor Walter Xavier Yosef Zeki
"""
SHE_ANIMALS = """
    Dot Hazel Daisy Pippa Bramble Clover Tilly Nutmeg Olive Pearl Minnow Bonnie Fern Lotta Penny
    Juno Saffron Tansy Mimi Juniper Lulu Maple Wren Posy Acorn Apricot Barley Berry Biddy
    Blossom Bubbles Buttercup Caramel Cinnamon Cosy Crumpet Dahlia Dolly Fennel Fluff Frosty
    Gerty Goldie Heather Iris Jelly Lavender Lily Mabel Mallow Millie Misty Muffin Nancy Nelly
    Oona Pansy Peaches Petal Plum Poppy Puff Robin Rosie Sage Shelly Snowdrop Speckle Sukie
    Teasel Tiggy Trixie Twinkle Vanilla Willow Zinnia
"""
HE_ANIMALS = """
    Pip Bruno Moss Timmy Rusty Otto Benji Thistle Hopper Coco Alder Pepper Ziggy Boris Fidget
    Conker Archie Bumble Dusty Jasper Pogo Mungo Sorrel Wilf Ajax Aldo Ash Barney Bertie Bingo
    Biscuit Boomer Bracken Buster Cedar Chip Cobble Copper Crumb Cyril Dexter Doodle Dumpling
    Elvin Fergus Flint Fuzz Gizmo Gus Harold Henry Hubert Humphrey Jingle Kipper Leo Linus
    Magnus Max Mortimer Murphy Nibbles Noodle Oakley Ozzy Patch Pickle Podge Quill Ralph Rocky
    Rowan Scamper Shadow Sooty Stanley Sylvester Teddy Topper Tucker Turnip Wally Wiggle Yarrow
"""

# Those whom children come home to.
PARENTS = """
    Mum/she Dad/he Mama/she Papa/he Grandma/she Grandpa/he Nana/she Grandad/he Auntie/she Uncle/he
"""

# Neighbours, teachers and shopkeepers.
SURNAMES = """
    Green Lopez Brown Chen Okafor Singh Baker Rossi Park Novak Haddad Silva Miller Tanaka Murphy
    Demir Larsen Diaz Mensah Kowalski Patel Rose Fischer Nguyen Dubois Hill Abbas Abbott Adeyemi
    Andersen Bakshi Banerjee Becker Bell Berg Blum Bonnet Carter Castillo Conti Cooper Costa
    Dahl Dean Duarte Eriksen Evans Farah Ferrari Flynn Fox Fuchs Garcia Gomez Gray Hall Hansen
    Hoffmann Horvat Hunter Ibsen Ito Jensen Jones Kaya Kelly Kim Klein Kumar Lange Lee Lemon
    Levin Lindgren Marsh Martins Meyer Moreau Moss Nakamura Nielsen Obi Olsen Ortega Osman Papas
    Perez Petrov Pope Quinn Rao Reyes Roth Sato Schmidt Sharma Stone Suzuki Taylor Thorne Toth
    Vega Virtanen Wagner Walsh Weber White Winter Wolf Wong Wood Yilmaz Young Zimmer
"""
ELDERS = {
    "woods": "Badger/he Owl/she Hare/she Heron/he Otter/he Toad/he Goose/she Mole/he Bear/she",
    "plains": "Tortoise/he Elephant/she Hippo/she Giraffe/he Ostrich/she Rhino/he Stork/she",
    "birds": "Stork/he Owl/she Crow/he Goose/she Swan/she Eagle/he",
    "sea": "Octopus/he Whale/she Crab/he Turtle/she Lobster/he Walrus/he Eel/she",
    "machines": "Crane/she Ferry/he Locomotive/she Lorry/he",
    "farm": "Donkey/he Goose/she Cow/she Dog/he Goat/she Horse/he Turkey/he Cat/she",
}


def source() -> str:
    """The lists of people in the grammar's own language, one per line."""
    children = _alternate(
        [_forms(name, "she", *SELVES["she"], "girl") for name in GIRLS.split()],
        [_forms(name, "he", *SELVES["he"], "boy") for name in BOYS.split()],
    )
    animals = _alternate(
        [_forms(name, "she", *SELVES["she"]) for name in SHE_ANIMALS.split()],
        [_forms(name, "he", *SELVES["he"]) for name in HE_ANIMALS.split()],
    )
    surnames = SURNAMES.split()
    neighbours = _alternate(
        [_forms(f"{title} {name}", "she") for name in surnames for title in ("Mrs.", "Miss")],
        [_forms(f"Mr. {name}", "he") for name in surnames],
    )
    lines = [
        f"name/he/him/his/himself/sib/kind.people = {children}",
        f"name/he/him/his/himself/sib.animals = {animals}",
        f"parent/phe/phim/phis = {', '.join(_forms(*words) for words in _words(PARENTS))}",
        f"adult/ahe/ahim/ahis.people = {neighbours}",
    ]
    for world, elders in ELDERS.items():
        entries = _alternate(
            [_forms(f"Old {name}", pronoun) for name, pronoun in _words(elders)],
            [_forms(f"{TITLES[pronoun]} {name}", pronoun) for name, pronoun in _words(elders)],
        )
        lines.append(f"adult/ahe/ahim/ahis.{world} = {entries}")
    return "\n".join(lines)


def _words(text: str) -> list[list[str]]:
    return [word.split("/") for word in text.split()]


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
