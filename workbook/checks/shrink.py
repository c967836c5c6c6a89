"""The smallest text that still fails: a failing one, with piece after piece taken away."""

import re
import time
from collections.abc import Callable


def shrink(text: str, still_fails: Callable[[str], bool], seconds: float = 2.0) -> str:
    """A text, made of parts of `text`, that fails too and of which no character can be spared.

    It is greedy: words go first, then ever smaller stretches. When the time is over, the shortest
    text so far is the answer.
    """
    until = time.monotonic() + seconds
    words = re.findall(r"\s*\S+|\s+", text)
    return "".join(_reduce(list("".join(_reduce(words, still_fails, until))), still_fails, until))


def _reduce(parts: list[str], still_fails: Callable[[str], bool], until: float) -> list[str]:
    """The parts that are left when stretches of them are dropped, long ones first."""
    size = len(parts) // 2
    while size and time.monotonic() < until:
        dropped, at = False, 0
        while at < len(parts) and time.monotonic() < until:
            rest = parts[:at] + parts[at + size :]
            if still_fails("".join(rest)):
                parts, dropped = rest, True
            else:
                at += size
        if size > 1 or not dropped:
            size //= 2
    return parts
