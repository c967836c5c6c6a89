"""What the verbs show: as plain text, and as HTML that reads well on light and dark pages."""

from dataclasses import dataclass, replace
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
    rows: tuple[tuple[str, str], ...] = ()  # (label, text): input, expected, got, printed
    likely: str | None = None  # the likely mistake, in one or two sentences
    facts: tuple[str, ...] = ()  # for the learner to tick

    def with_claim(self, claim: str) -> "Report":
        """The same report under another claim."""
        return replace(self, claim=claim)

    def with_row(self, label: str, text: str) -> "Report":
        """The same report with one row more."""
        return replace(self, rows=(*self.rows, (label, text)))

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
        likely = f"Likely: {self.likely}" if self.likely else ""
        facts = [f"  [ ] {fact}" for fact in self.facts]
        return "\n".join(filter(None, [self.claim, *rows, likely, *facts]))

    def __str__(self) -> str:
        return f"{self.heading}\n{self.message}".rstrip()

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._html()}

    def _html(self) -> str:
        rows = "".join(
            f'<tr><th style="text-align:left;vertical-align:top">{escape(label)}</th>'
            f'<td style="text-align:left">{_code(text)}</td></tr>'
            for label, text in self.rows
        )
        facts = "".join(f"<li>☐ {escape(fact)}</li>" for fact in self.facts)
        return _panel(
            EDGES[self.status],
            f"<strong>{escape(self.heading)}</strong>",
            f"<div>{_prose(self.claim)}</div>",
            f"<table>{rows}</table>" if rows else "",
            f"<div><strong>Likely:</strong> {_prose(self.likely)}</div>" if self.likely else "",
            f'<ul style="list-style:none;padding-left:.5em">{facts}</ul>' if facts else "",
        )


@dataclass(frozen=True)
class Hint:
    """The steps of a hint that were asked for so far."""

    problem: str
    steps: tuple[str, ...]
    of: int  # steps that there are

    def __str__(self) -> str:
        lines = [f"{i}. {step}" for i, step in enumerate(self.steps, 1)]
        return "\n".join([f"Hint for {self.problem}", *lines, *self._more()])

    __repr__ = __str__

    def _more(self) -> list[str]:
        return ["Run hint again for the next step."] if len(self.steps) < self.of else []

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        steps = "".join(f"<li>{_prose(step)}</li>" for step in self.steps)
        html = _panel(
            EDGES["read"],
            f"<strong>Hint for {escape(self.problem)}</strong>",
            f"<ol>{steps}</ol>",
            *(f"<em>{line}</em>" for line in self._more()),
        )
        return {"text/plain": str(self), "text/html": html}


@dataclass(frozen=True)
class Folded:
    """Source code that a notebook shows folded, with keywords bold and comments in italics."""

    name: str
    source: str

    def __str__(self) -> str:
        return f"# {self.name}\n{self.source}"

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        summary = f"<summary>The reference: <code>{escape(self.name)}</code></summary>"
        code = f'<pre style="overflow:auto"><code>{_highlighted(self.source)}</code></pre>'
        return {"text/plain": str(self), "text/html": f"<details>{summary}{code}</details>"}


def _panel(edge: str, *pieces: str) -> str:
    """A box that takes its text and background colour from the page."""
    style = f"border-left:.3em solid {edge};padding:.2em .8em"
    return f'<div style="{style}">{"".join(pieces)}</div>'


def _code(text: str) -> str:
    return f'<code style="white-space:pre-wrap;overflow-wrap:anywhere">{escape(text)}</code>'


def _prose(text: str) -> str:
    """Text as HTML; what stands between backticks becomes code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # a lone backtick is just a character
        return escape(text).replace("\n", "<br>")
    return "".join(
        _code(piece) if i % 2 else escape(piece).replace("\n", "<br>")
        for i, piece in enumerate(pieces)
    )


def _highlighted(source: str) -> str:
    """Python source as HTML, marked by weight and slant: no colour suits every theme."""
    from pygments.lexers import PythonLexer
    from pygments.token import Comment, Keyword, Name, String

    def marked(kind, text: str) -> str:
        if kind in Keyword or kind in Name.Function or kind in Name.Class:
            return f"<b>{escape(text)}</b>"
        if kind in Comment or kind in String.Doc:
            return f"<i>{escape(text)}</i>"
        return escape(text)

    return "".join(marked(kind, text) for kind, text in PythonLexer().get_tokens(source))
