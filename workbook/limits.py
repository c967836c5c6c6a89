"""When a run ends before its last step: its loss climbs and does not come down, or time is up.

A single bad batch is no divergence, and many a spike heals. So means of ten logged losses are
compared, and the run goes on as long as they stay near the lowest that there has been.
"""

import math

WINDOW = 10  # logged losses


class ClimbWatch:
    """Sees every logged loss, and says how far the mean of the last ten has climbed."""

    def __init__(self, first: float = math.inf):
        self.lowest, self.recent = first, []  # `first`: the loss before any step

    def climbed(self, loss: float) -> float:
        """Nats between the mean of the last ten losses and the lowest mean so far; 0 at first."""
        self.recent = [*self.recent, loss][-WINDOW:]
        if len(self.recent) < WINDOW:
            return 0.0
        mean = sum(self.recent) / WINDOW
        self.lowest = min(self.lowest, mean)
        return mean - self.lowest

    def state(self) -> dict:
        """What a checkpoint remembers."""
        return {"lowest": self.lowest, "recent": self.recent}

    def restore(self, state: dict) -> None:
        """Nothing; the watch is as it was when `state` was asked for."""
        self.lowest, self.recent = state["lowest"], list(state["recent"])


class TimeLimit:
    """Whether another step would end within `max_seconds`; None: it always would."""

    def __init__(self, max_seconds: float | None):
        self.max_seconds = max_seconds
        self.longest = self.last = 0.0  # seconds: a step's, and when the last one ended

    def is_up(self, elapsed: float) -> bool:
        """Whether a step as long as the longest so far would end too late. Ask after each step."""
        self.longest = max(self.longest, elapsed - self.last)
        self.last = elapsed
        return self.max_seconds is not None and elapsed + self.longest > self.max_seconds

    def share(self, elapsed: float) -> float:
        """The part of the time that is over, 0 to 1; 0 without a limit."""
        return min(elapsed / self.max_seconds, 1.0) if self.max_seconds else 0.0
