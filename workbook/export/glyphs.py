"""Which letters the fonts of this machine can show: typst itself is asked, letter by letter."""

import re
import unicodedata
from collections.abc import Iterable

NOWHERE = "\U0010fffd"  # a place for private use: no font of ours has it
SYMBOL = re.compile(rb'<symbol id="(\w+)"')
UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Me")  # categories that may well show nothing
ADVICE = (
    ("CJK", "fonts-noto-cjk"),
    ("HIRAGANA", "fonts-noto-cjk"),
    ("KATAKANA", "fonts-noto-cjk"),
    ("HANGUL", "fonts-noto-cjk"),
    ("", "fonts-noto-core and fonts-noto-color-emoji"),
)


def unshown(text: str, fonts, family: str) -> list[str]:
    """The letters of a text that no font can show, in the order of their numbers.

    Each is set on a page of its own. Where a font lacks a letter its box for missing ones is
    drawn, which is known from a letter that nobody has.
    """
    import typst

    asked = sorted({c for c in text if c > "\x7f" and unicodedata.category(c) not in UNSEEN})
    if not asked:
        return []
    pages = "\n#pagebreak()\n".join(f'#"\\u{{{ord(c):x}}}";' for c in [NOWHERE, *asked])
    source = f'#set text(font: "{family}")\n{pages}\n'
    drawn = typst.compile(source.encode(), format="svg", font_paths=fonts)
    missing = set(SYMBOL.findall(drawn[0]))
    return [c for c, page in zip(asked, drawn[1:], strict=True)
            if missing & set(SYMBOL.findall(page))]  # fmt: skip


def complaints(missing: Iterable[str]) -> list[str]:
    """The letters by name, those of one package of fonts on one line."""
    by_package: dict[str, list[str]] = {}
    for letter in missing:
        name = unicodedata.name(letter, "without a name")
        package = next(package for start, package in ADVICE if name.startswith(start))
        by_package.setdefault(package, []).append(f"U+{ord(letter):04X} {name}")
    return [
        f"no installed font shows {'; '.join(names[:8])}"
        + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        + f": their numbers stand instead (on Debian: apt install {package})"
        for package, names in by_package.items()
    ]


def replaced(text: str, missing: Iterable[str], before: str = "") -> str:
    """The text with each missing letter written as its number; `before` may hold a `{}` for it."""
    return text.translate(
        {ord(letter): f"{before.format(letter)}[U+{ord(letter):04X}]" for letter in missing}
    )
