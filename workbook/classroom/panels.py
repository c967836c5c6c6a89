"""What a verb shows: plain text, and HTML that reads well on light and dark pages."""

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

# What a check says, ...
Status = Literal["not attempted", "correct", "almost", "possible", "wrong", "read", "ticked"]
# ... and what a part has reached by it, from nothing to everything.
SIGNS = {"open": "○", "wrong": "✗", "read": "✎", "almost": "≈"}
SIGNS |= dict.fromkeys(("possible", "ticked", "complete", "correct"), "✓")
# The sign and the word show a status; the colour of the panel's edge only repeats it.
SIGN_COLOURS = {"✓": "#009E73", "≈": "#E69F00", "✗": "#D55E00", "○": "#999999", "✎": "#56B4E9"}


@dataclass(frozen=True)
class Panel:
    """A text, with the sign and the colour of a status, or as a notebook shows its Markdown."""

    status: Status
    text: str
    markdown: str = ""  # in place of the sign and the colour

    def __repr__(self) -> str:
        return self.text if self.markdown else f"{sign(self.status)} {self.text}"

    def _repr_html_(self) -> str | None:
        return None if self.markdown else panel(self.status, as_html(str(self)))

    def _repr_markdown_(self) -> str | None:
        return self.markdown or None


def folded(title: str, markdown: str) -> str:
    """Put something behind a fold; the title is HTML."""
    return f"<details><summary>{title}</summary>\n\n{markdown}\n\n</details>"


def sign(status: str) -> str:
    """The sign of a status, or of what a part has reached."""
    return SIGNS.get(status, "○")  # what was not attempted counts as open


def panel(status: Status, *pieces: str) -> str:
    """Draw a box around pieces of HTML; it takes its text and background colour from the page."""
    style = f"border-left:.3em solid {SIGN_COLOURS[sign(status)]};padding:.2em .8em"
    return f'<div style="{style}">{"".join(pieces)}</div>'


def lines_on_screen(text: str) -> list[str]:
    """Split a text into the lines that a terminal shows: without what `\\r` overwrote."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]


def value_as_html(text: str) -> str:
    """Show a value as code, or words that name some: no literal begins with a backtick."""
    return as_html(text) if text.startswith("`") else _code(text)


def as_html(text: str) -> str:
    """Turn text into HTML; what is between two backticks becomes code."""
    pieces = re.split("`([^`]*)`", text)  # prose and code in turn
    return "".join(
        _code(piece) if i % 2 else escape(piece).replace("\n", "<br>")
        for i, piece in enumerate(pieces)
    )


def _code(text: str) -> str:
    return f'<code style="white-space:pre-wrap;overflow-wrap:anywhere">{escape(text)}</code>'
