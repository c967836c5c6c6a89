"""Pandoc's syntax tree, and pandoc itself, run in its sandbox.

A node of the tree is `{"t": kind, "c": content}`, as in pandoc's JSON.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from workbook.config import DISTRIBUTION

Node = dict[str, Any]
UNNAMED = ["", [], []]  # the attributes of a node: no name, no classes, nothing else
INSTALL = f'pip install "{DISTRIBUTION}[export]", or in a clone: uv sync --extra export'
CONFINED = ["+RTS", "-M2g", "-RTS", "--sandbox"]  # of memory; and no file or address is opened
PANDOC_SECONDS = 30.0  # for one call
# Control codes, and characters that make a line look different from what is stored.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e\ud800-\udfff\ufeff]")
UNREAD_FORMULA = re.compile(r"Could not convert TeX math (.*), rendering as TeX")


def require() -> str:
    """Return the program's path; raise ValueError if the `export` extra is not installed."""
    try:
        import pypandoc
        import typst  # noqa: F401  # the other half of the extra: better to miss it now than later

        return pypandoc.get_pandoc_path()
    except (ImportError, OSError) as error:
        name = getattr(error, "name", None) or "pandoc"
        raise ValueError(f"the export needs {name}, which is not installed: {INSTALL}") from None


def parse(text: str, source: str) -> list[Node]:
    """Read a text in the format `source` into a list of blocks."""
    done, _ = _run(["--from", source, "--to", "json"], text.encode())
    return json.loads(done)["blocks"]


def render(blocks: Sequence[Node], target: str, *options: str) -> tuple[str, list[str]]:
    """Write blocks in the format `target`; also return the formulas that it cannot express."""
    tree = {"pandoc-api-version": [1, 23, 1], "meta": {}, "blocks": list(blocks)}
    arguments = ["--from", "json", "--to", target, "--wrap", "none", *options]
    done, errors = _run(arguments, json.dumps(tree).encode())
    return done.decode(), UNREAD_FORMULA.findall(errors)


def _run(arguments: list[str], data: bytes) -> tuple[bytes, str]:
    """Run pandoc on `data`, and return what it wrote to its output and to its error stream."""
    command = [require(), *CONFINED, *arguments]
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=PANDOC_SECONDS)
    except subprocess.TimeoutExpired:
        raise ValueError(f"pandoc did not finish within {PANDOC_SECONDS:.0f} s") from None
    errors = done.stderr.decode(errors="replace")
    if done.returncode:
        reason = errors.strip().partition("\n")[0] or "it said nothing"
        raise ValueError(f"pandoc failed: {reason}")
    return done.stdout, errors


def node(kind: str, content: Any = None) -> Node:
    """Make a node; some, such as a space, have no content."""
    return {"t": kind} if content is None else {"t": kind, "c": content}


def legible(text: str) -> str:
    """Write invisible characters as Python escapes them: `\\x00`."""
    return UNSEEN.sub(lambda match: ascii(match[0])[1:-1], text)


def prose(text: str) -> list[Node]:
    """Make inline nodes of a text in which nothing is markup."""
    words = legible(text).split()
    return [part for word in words for part in (node("Space"), node("Str", word))][1:]


def link(inlines: Sequence[Node], address: str) -> Node:
    """Make a link to an address."""
    return node("Link", [UNNAMED, list(inlines), [address, ""]])


def image(alt: Sequence[Node], address: str) -> Node:
    """Make a picture that lies at an address, described by inline nodes."""
    return node("Image", [UNNAMED, list(alt), [address, ""]])


def code(text: str) -> Node:
    """Make a piece of code inside a line."""
    return node("Code", [UNNAMED, legible(text)])


def para(*inlines: Node) -> Node:
    """Make a paragraph."""
    return node("Para", list(inlines))


def box(kind: str, blocks: Sequence[Node]) -> Node:
    """Make a block that the style sheets know by the name `kind`."""
    return node("Div", [["", [kind], []], list(blocks)])


def table_cell(blocks: Sequence[Node], span: int = 1) -> list:
    """Make a cell of a table, `span` columns wide, aligned as its column is."""
    return [UNNAMED, node("AlignDefault"), 1, span, list(blocks)]


def row(*cells: Sequence[Node]) -> list:
    """Make a row of a table from lines of text."""
    return [UNNAMED, [table_cell([node("Plain", list(line))]) for line in cells]]


def grid(columns: list, heads: list, rows: list, name: str = "", caption: Sequence = ()) -> Node:
    """Make a table of rows, which the style sheets know by its `name`.

    A column is a pair of nodes, its alignment and its width; a caption is made of blocks.
    """
    head = [UNNAMED, heads]
    body = [UNNAMED, 0, [], rows]
    foot = [UNNAMED, []]
    attributes = ["", [name] if name else [], []]
    return node("Table", [attributes, [None, list(caption)], columns, head, [body], foot])


def rebuilt(tree: Any, change: Callable[[Node], Any], room: int = 100) -> Any:
    """Rebuild the tree with each node replaced by `change(node)`, children first.

    `change` returns a node, or a list that takes its place among its neighbours. Raises ValueError
    if nodes are nested more than `room` deep.
    """
    if isinstance(tree, list):
        built = []
        for item in tree:
            new = rebuilt(item, change, room)
            # Only a node may become several; a list that was a list before stays one item.
            if isinstance(item, dict) and isinstance(new, list):
                built += new
            else:
                built.append(new)
        return built
    if isinstance(tree, dict) and "t" in tree:
        if not room:
            raise ValueError("it is nested too deeply")
        inside = {"c": rebuilt(tree["c"], change, room - 1)} if "c" in tree else {}
        return change({**tree, **inside})
    return tree


def nodes_in(tree: Any) -> Iterator[Node]:
    """Yield every node of a tree, from the top."""
    if isinstance(tree, list):
        for item in tree:
            yield from nodes_in(item)
    elif isinstance(tree, dict) and "t" in tree:
        yield tree
        yield from nodes_in(tree.get("c"))


def text_of(tree: Any) -> str:
    """Return a tree's text without markup."""
    texts = []
    for item in nodes_in(tree):
        if item["t"] == "Str":
            texts.append(item["c"])
        elif item["t"] in ("Code", "CodeBlock", "Math"):
            texts.append(item["c"][1])
        elif item["t"] in ("Space", "SoftBreak", "LineBreak", "Plain", "Para"):
            texts.append(" ")
    return "".join(texts)
