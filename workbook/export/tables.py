"""Tables made fit for a page: numbers to the right, long ones cut, wide ones split."""

import re
import unicodedata
from copy import deepcopy

from workbook.export.nodes import PLAIN, Node, node, para, text_of, words

ROWS = 40  # of a stranger's table; a page has room for them
WIDE = 96  # letters of the normal size that fit beside each other on a page
NUMERIC = re.compile(r"\s*(?:[-+±≈~<>−]?\s*[$€£]?\d[\d,._ ]*(?:e[-+]?\d+)?\s*(?:%|[a-zA-Zµ/]{1,5})?"  # noqa: RUF001
                     r"|NaN|nan|inf|None|NaT|<NA>|[-–—])?\s*")  # fmt: skip  # noqa: RUF001


def tidy(content: list) -> list[Node]:
    """A table, read from what a stranger wrote, without attributes and not too long."""
    _, caption, columns, head, bodies, foot = content
    rows = [row for body in bodies for part in body[2:] for row in part] + foot[1]
    left_out = len(rows) - ROWS
    rows = [_bare(row) for row in rows[:ROWS]]
    heads = [_bare(row) for row in head[1]]
    count = max([len(columns), *(_width(row) for row in heads + rows)])
    columns = [
        [node("AlignRight" if _is_numeric(rows, place) else "AlignLeft"), node("ColWidthDefault")]
        for place in range(count)
    ]
    caption = [None, caption[1]]
    bodies = [[PLAIN, 0, [], rows]]
    found = [node("Table", [PLAIN, caption, columns, [PLAIN, heads], bodies, [PLAIN, []]])]
    if left_out > 0:
        found.append(para(node("Emph", words(f"{left_out:,} more rows are left out."))))
    return found


def _bare(row: list) -> list:
    """A row whose cells have no attributes and follow the alignment of their column."""
    return [PLAIN, [[PLAIN, node("AlignDefault"), 1, span, blocks]
                    for _, _, _, span, blocks in row[1]]]  # fmt: skip


def _width(row: list) -> int:
    return sum(cell[3] for cell in row[1])


def _is_numeric(rows: list, place: int) -> bool:
    """Whether a column holds numbers, where each cell stands under its head."""
    cells = [row[1][place] for row in rows if len(row[1]) > place and _width(row) == len(row[1])]
    texts = [text_of(cell[4]) for cell in cells]
    return any(text.strip() for text in texts) and all(map(NUMERIC.fullmatch, texts))


def letters(text: str) -> int:
    """The width of a text in letters: Chinese signs and emoji take the room of two."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def widths(table: Node) -> list[int]:
    """The letters that each column of a table needs if no cell is broken, at most 30."""
    _, _, columns, head, bodies, _ = table["c"]
    rows = [*head[1], *(row for body in bodies for row in body[3])]
    needed = [1] * len(columns)
    for row in rows:
        if _width(row) == len(row[1]):
            for place, cell in enumerate(row[1][: len(needed)]):
                needed[place] = max(needed[place], min(30, letters(text_of(cell[4]).strip())))
    return needed


def split(table: Node, most: float) -> list[Node]:
    """The table, or several of some of its columns each, none wider than `most` letters.

    The first column, which names the rows, stands in each.
    """
    needed = [width + 2 for width in widths(table)]
    rows = [*table["c"][3][1], *(row for body in table["c"][4] for row in body[3])]
    is_simple = all(len(row[1]) == len(needed) for row in rows)
    if sum(needed) <= most or not is_simple or len(needed) < 3:
        return [table]
    groups, room = [[]], most - needed[0]
    for place in range(1, len(needed)):
        if groups[-1] and sum(needed[i] for i in groups[-1]) + needed[place] > room:
            groups.append([])
        groups[-1].append(place)
    return [_columns(table, [0, *group]) for group in groups]


def _columns(table: Node, places: list[int]) -> Node:
    """The table with some of its columns."""
    part = deepcopy(table)
    content = part["c"]
    content[2] = [content[2][i] for i in places]
    for row in [*content[3][1], *(row for body in content[4] for row in body[3])]:
        row[1] = [row[1][i] for i in places]
    return part
