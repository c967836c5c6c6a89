"""A table of costs: what is counted, by which formula, how many times, and how much in all."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """One thing that is counted. `pandas.DataFrame(table)` shows these fields as columns."""

    name: str  # such as "ffn.w1"
    part: str  # what it belongs to, such as "feed-forward"
    formula: str  # of `each`, in the symbols B T V d d_ff h L
    each: int
    times: int = 1  # a block's rows are there once for each layer
    total: int = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", self.each * self.times)


class Table(tuple):
    """Rows that add up: `.total`, `.by_part()`, `.share(part)`, and a row by its name.

    >>> table = Table([Row("w1", "feed-forward", "d·d_ff", 6, 2), Row("head", "head", "V·d", 4)])
    >>> table.total, table["w1"].total, table.by_part(), table.share("head")
    (16, 12, {'feed-forward': 12, 'head': 4}, 0.25)
    """

    def __new__(cls, rows: Iterable[Row]):
        return super().__new__(cls, rows)

    def __getitem__(self, key):
        if not isinstance(key, str):
            return super().__getitem__(key)
        for row in self:
            if row.name == key:
                return row
        raise ValueError(f"no row is called {key!r}; there are {', '.join(r.name for r in self)}")

    @property
    def total(self) -> int:
        """The sum over all rows."""
        return sum(row.total for row in self)

    def by_part(self) -> dict[str, int]:
        """The sum over the rows of each part, in the order of the table."""
        sums: dict[str, int] = {}
        for row in self:
            sums[row.part] = sums.get(row.part, 0) + row.total
        return sums

    def share(self, part: str) -> float:
        """What fraction of the total belongs to a part."""
        sums = self.by_part()
        if part not in sums:
            raise ValueError(f"no part is called {part!r}; there are {', '.join(sums)}")
        return sums[part] / self.total
