"""The smallest input that still fails: a failing one, with piece after piece taken away."""

import re
import time
from collections.abc import Callable

SHORT = 40  # parts: so few that stretches are dropped from every place


def shrink(text: str, still_fails: Callable[[str], bool], seconds: float = 2.0) -> str:
    """A text, made of parts of `text`, that fails too and of which no character can be spared.

    It is greedy: words go first, then ever smaller stretches. When the time is over, the shortest
    text so far is the answer.
    """
    until = time.monotonic() + seconds

    def joined_fails(parts: list[str]) -> bool:
        return still_fails("".join(parts))

    words = _reduced(re.findall(r"\s*\S+|\s+", text), joined_fails, until)
    return "".join(_reduced(list("".join(words)), joined_fails, until))


def shrink_list(items: list, still_fails: Callable[[list], bool], seconds: float = 1.0) -> list:
    """A list, made of some of the items, that fails too and of which none can be spared."""
    return _reduced(items, still_fails, time.monotonic() + seconds)


def _reduced(parts: list, still_fails: Callable[[list], bool], until: float) -> list:
    """The parts that are left when stretches of them are dropped, long ones first."""
    size = len(parts)
    while size and time.monotonic() < until:
        dropped, at = False, 0
        step = 1 if len(parts) <= SHORT else size
        while at < len(parts) and time.monotonic() < until:
            rest = parts[:at] + parts[at + size :]
            if still_fails(rest):
                parts, dropped = rest, True
            else:
                at += step
        size = min(len(parts), size if dropped and size < SHORT else size // 2)
    return parts
