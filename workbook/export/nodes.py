"""Pandoc's syntax tree, as far as the write-up needs it: small makers of nodes, and one walk.

A node is `{"t": kind, "c": content}`, as in pandoc's JSON.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Node = dict[str, Any]
PLAIN = ["", [], []]  # no name, no classes, no attributes


def node(kind: str, content: Any = None) -> Node:
    """One node; some, such as a space, have no content."""
    return {"t": kind} if content is None else {"t": kind, "c": content}


def words(text: str) -> list[Node]:
    """A text as inline nodes, taken to the letter: nothing in it is markup."""
    found: list[Node] = []
    for word in text.split():
        found += [node("Space"), node("Str", word)]
    return found[1:]


def code(text: str) -> Node:
    """Code inside a line."""
    return node("Code", [PLAIN, text])


def strong(inlines: Sequence[Node]) -> Node:
    """Bold text."""
    return node("Strong", list(inlines))


def link(inlines: Sequence[Node], target: str) -> Node:
    """A link, such as to "#unicode1"."""
    return node("Link", [PLAIN, list(inlines), [target, ""]])


def para(*inlines: Node) -> Node:
    """One paragraph."""
    return node("Para", list(inlines))


def listing(text: str, language: str = "") -> Node:
    """A block of code or of print-out."""
    return node("CodeBlock", [["", [language] if language else [], []], text])


def header(level: int, inlines: Sequence[Node], name: str = "") -> Node:
    """A heading that links can lead to by `name`."""
    return node("Header", [level, [name, [], []], list(inlines)])


def box(kind: str, blocks: Sequence[Node]) -> Node:
    """Blocks that a style sheet sets apart, by the name `kind`."""
    return node("Div", [["", [kind], []], list(blocks)])


def figure(picture: str, alt: str, caption: Sequence[Node]) -> Node:
    """A picture, named by its file, with its description and the line below it."""
    image = node("Image", [PLAIN, words(alt), [picture, ""]])
    return node("Figure", [PLAIN, [None, [node("Plain", list(caption))]], [node("Plain", [image])]])


def table(
    heads: Sequence[Sequence[Node]],
    bodies: Sequence[tuple[Sequence[Node] | None, Sequence[Sequence[Sequence[Node]]]]],
    widths: Sequence[float],
    kind: str,
) -> Node:
    """A table whose rows come in groups: each a title, or None, and its rows of cells."""

    def cell(inlines: Sequence[Node], span: int = 1) -> list:
        return [PLAIN, node("AlignDefault"), 1, span, [node("Plain", list(inlines))]]

    def row(cells: Iterable[Sequence[Node]]) -> list:
        return [PLAIN, [cell(inlines) for inlines in cells]]

    rows = []
    for title, group in bodies:
        if title is not None:
            rows.append([PLAIN, [cell(title, len(widths))]])
        rows += [row(cells) for cells in group]
    columns = [[node("AlignLeft"), node("ColWidth", width)] for width in widths]
    content = [
        ["", [kind], []],
        [None, []],
        columns,
        [PLAIN, [row(heads)]],
        [[PLAIN, 0, [], rows]],
        [PLAIN, []],
    ]
    return node("Table", content)


def rebuilt(tree: Any, change: Callable[[Node], Any]) -> Any:
    """The same tree, each node replaced by what `change` makes of it, children first.

    `change` gives a node, or a list that takes its place among its neighbours.
    """
    if isinstance(tree, list):
        found = []
        for item in tree:
            new = rebuilt(item, change)
            # Only a node may become several; a list that was a list before stays one item.
            if isinstance(item, dict) and isinstance(new, list):
                found += new
            else:
                found.append(new)
        return found
    if isinstance(tree, dict) and "t" in tree:
        return change({**tree, "c": rebuilt(tree["c"], change)} if "c" in tree else tree)
    return tree


def joined(tree: Any) -> Any:
    """The same tree with words that follow each other, and the spaces between them, as one."""
    if isinstance(tree, list):
        found: list = []
        for item in tree:
            text = item["c"] if _is(item, "Str") else " " if _is(item, "Space", "SoftBreak") else ""
            if text and found and _is(found[-1], "Str"):
                found[-1]["c"].append(text)
            else:
                found.append(node("Str", [text]) if text else joined(item))
        return [node("Str", "".join(each["c"])) if _is(each, "Str") else each for each in found]
    if isinstance(tree, dict) and "c" in tree:
        return {**tree, "c": joined(tree["c"])}
    return tree


def _is(item: Any, *kinds: str) -> bool:
    return isinstance(item, dict) and item.get("t") in kinds


def nodes_in(tree: Any) -> Iterator[Node]:
    """Every node of a tree, from the top."""
    if isinstance(tree, list):
        for item in tree:
            yield from nodes_in(item)
    elif isinstance(tree, dict) and "t" in tree:
        yield tree
        yield from nodes_in(tree.get("c"))


def text_of(tree: Any) -> str:
    """The words of a tree, for measuring and for finding letters."""
    found = []
    for item in nodes_in(tree):
        if item["t"] == "Str":
            found.append(item["c"])
        elif item["t"] in ("Code", "CodeBlock", "Math"):
            found.append(item["c"][1])
        elif item["t"] in ("Space", "SoftBreak", "LineBreak", "Plain", "Para"):
            found.append(" ")
    return "".join(found)


def depth(tree: Any) -> int:
    """How deeply the nodes of a tree are nested; found without recursion, whatever was nested."""
    deepest, waiting = 0, [(tree, 0)]
    while waiting:
        item, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(item, list):
            waiting += [(each, level) for each in item]
        elif isinstance(item, dict):
            waiting.append((item.get("c"), level + 1))
    return deepest
