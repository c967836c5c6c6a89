"""The grammar's text files cut up: lines into beats, texts into pieces, lists into items."""

import re

from workbook.corpora.stories.draws import zipf_weights

MARK = re.compile(r"[\[\]]|\{[^}]*\}|<[^>]*>")
WEIGHT = re.compile(r"\*(\d+)$")


def beats(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The lines of a rule, grouped: (mark, forms), where the mark is "|", "?", "--" or empty."""
    found: list[tuple[str, list[str]]] = []
    depth, last = None, ""
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text:
            last = ""
            continue
        depth = depth or indent
        if indent > depth:
            found[-1][1][-1] += " " + text
            continue
        mark = text if text == "--" else text[0] if text[:2] in ("| ", "? ") else ""
        text = text.removeprefix(mark).strip()
        if mark and mark == last:
            found[-1][1].append(text)
        else:
            found.append((mark, [text]))
        last = mark
    return found


def pieces(text: str) -> list[str]:
    """A text cut into [choices], {slots}, <calls> and what lies between them.

    >>> pieces("a_[big|[very |]small] {pet} ran.")
    ['a_', '[big|[very |]small]', ' ', '{pet}', ' ran.']
    """
    found, start, depth = [], 0, 0
    for match in MARK.finditer(text):
        mark = match[0][0]
        if depth == 0:
            found.append(text[start : match.start()])
            start = match.start()
        depth += (mark == "[") - (mark == "]")
        if depth == 0:
            found.append(text[start : match.end()])
            start = match.end()
    if depth:
        raise ValueError(f"unbalanced brackets in {text!r}")
    return [piece for piece in [*found, text[start:]] if piece]


def split(text: str, mark: str) -> list[str]:
    """A text cut at a mark, but not inside brackets.

    >>> split("a|[b|c]|", "|")
    ['a', '[b|c]', '']
    """
    parts, depth = [""], 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def weigh(items: list[str]) -> tuple[list[str], list[int]]:
    """Items without their *5, and their weights; an item that comes twice counts once."""
    weights: dict[str, int] = {}
    for item, weight in zip(items, zipf_weights(len(items)), strict=True):
        factor = WEIGHT.search(item)
        item = WEIGHT.sub("", item)
        weights[item] = weights.get(item, 0) + weight * int(factor[1] if factor else 1)
    return list(weights), list(weights.values())
