"""When a run ends before its last step: its loss climbs and does not come down, or time is up.

A single bad batch is no divergence, and many a spike heals. So means of ten logged losses are
compared, and the run goes on as long as they stay near the lowest that there has been.
"""

import math
from collections import deque
from statistics import median_low

WINDOW = 10  # logged losses
RECENT = 5  # steps whose usual length says how long the next one takes


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
    """Whether another step would end within `max_seconds`; None: it always would.

    A step is expected to take as long as the last five usually did. So one slow step does not end a
    run early, nor does what is no step: setting up, evaluating, saving, the sessions before this
    one. The first step of a session does not count either, because compiling is part of it.
    """

    def __init__(self, max_seconds: float | None):
        self.max_seconds = max_seconds
        self.steps = 0  # of this session
        self.recent: deque[float] = deque(maxlen=RECENT)  # seconds of a step

    def is_up(self, elapsed: float, step: float) -> bool:
        """Whether another step would end too late. Ask after each step.

        `elapsed` is all the time that the run has taken so far, and `step` that of the last step
        alone, both in seconds.
        """
        self.steps += 1
        if self.steps > 1:
            self.recent.append(step)
        expected = median_low(self.recent) if self.recent else 0.0
        return self.max_seconds is not None and elapsed + expected > self.max_seconds

    def share(self, elapsed: float) -> float:
        """The part of the time that is over, 0 to 1; 0 without a limit."""
        return min(elapsed / self.max_seconds, 1.0) if self.max_seconds else 0.0
