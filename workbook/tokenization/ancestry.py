"""How a token came about: the merges behind it, down to single bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

from workbook.tokenization.bpe import Pair


@dataclass(frozen=True)
class Ancestor:
    """A token, and the two tokens that a merge made it from; a single byte has no parts."""

    token: bytes
    merge: int = 0  # the number of the merge, counted from 1; 0 for a byte
    parts: tuple["Ancestor", ...] = ()


def merges_behind(token: bytes, merges: Sequence[Pair]) -> Ancestor:
    """The family tree of a token; where two merges make the same bytes, the first counts.

    Raises: ValueError where no merge makes the token.
    """
    origin = {left + right: number for number, (left, right) in reversed([*enumerate(merges, 1)])}
    if len(token) != 1 and token not in origin:
        raise ValueError(
            f"no merge makes {token!r}; pick a token of the vocabulary, not a special one"
        )
    return _grown(token, merges, origin)


def _grown(token: bytes, merges: Sequence[Pair], origin: dict[bytes, int]) -> Ancestor:
    if len(token) == 1:
        return Ancestor(token)
    number = origin[token]
    parts = (_grown(part, merges, origin) for part in merges[number - 1])
    return Ancestor(token, number, tuple(parts))


def outline(tree: Ancestor, indent: str = "") -> str:
    """The family tree as text: a line a token, parts indented, bytes left out; twins come once.

    >>> print(outline(ancestry(b"test", [(b"s", b"t"), (b"t", b"e"), (b"te", b"st")])))
    b'test'  merge 3
      b'te'  merge 2
      b'st'  merge 1
    """
    line = f"{indent}{tree.token!r}  merge {tree.merge:,}"
    twins = len(set(tree.parts)) == 1
    if twins and tree.parts[0].merge:
        line += ", of two alike"
    parts = tree.parts[:1] if twins else tree.parts
    grown = [outline(part, indent + "  ") for part in parts if part.merge]
    return "\n".join([line, *grown])
