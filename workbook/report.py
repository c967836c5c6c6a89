"""What `check` says, as plain text and as HTML that reads well on light and dark pages."""

from dataclasses import dataclass
from html import escape
from typing import Literal

Status = Literal["not attempted", "correct", "wrong", "read"]

# A status is told by its sign and its word; the colour of the edge only repeats it.
SIGNS: dict[Status, str] = {"correct": "✓", "wrong": "✗", "not attempted": "○", "read": "✎"}
EDGES: dict[Status, str] = {
    "correct": "#009E73",
    "wrong": "#D55E00",
    "not attempted": "#999999",
    "read": "#56B4E9",
}


@dataclass(frozen=True)
class Report:
    """The outcome of one check. In a notebook it is shown as a small panel."""

    status: Status
    problem: str
    part: str | None
    claim: str
    rows: tuple[tuple[str, str], ...] = ()  # (label, text): input, expected, got, likely, printed
    facts: tuple[str, ...] = ()  # for the learner to tick

    @property
    def heading(self) -> str:
        """Sign, problem, part and status, such as "✗ train_bpe: wrong"."""
        part = f" ({self.part})" if self.part else ""
        return f"{SIGNS[self.status]} {self.problem}{part}: {self.status}"

    @property
    def message(self) -> str:
        """Everything but the heading, as plain text."""
        width = max((len(label) for label, _ in self.rows), default=0)
        gap = "\n" + " " * (width + 4)
        rows = [f"  {label:<{width}}  {text.replace(chr(10), gap)}" for label, text in self.rows]
        facts = [f"  [ ] {fact}" for fact in self.facts]
        return "\n".join(filter(None, [self.claim, *rows, *facts]))

    def __str__(self) -> str:
        return f"{self.heading}\n{self.message}".rstrip()

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top;padding-right:1em">{escape(label)}'
            f'</th><td style="text-align:left"><code style="white-space:pre-wrap">{escape(text)}'
            "</code></td></tr>"
            for label, text in self.rows
        )
        table = f'<table style="margin:.4em 0">{rows}</table>' if rows else ""
        facts = "".join(f"<li>☐ {escape(fact)}</li>" for fact in self.facts)
        ticks = f'<ul style="list-style:none;padding-left:.5em">{facts}</ul>' if facts else ""
        claim = escape(self.claim).replace("\n", "<br>")
        return (
            f'<div style="border-left:.3em solid {EDGES[self.status]};padding:.2em .8em">'
            f"<strong>{escape(self.heading)}</strong><br>{claim}{table}{ticks}</div>"
        )
