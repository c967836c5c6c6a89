"""A stage of a reference done in a wrong way, for the checks that have no `engine` yet."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """One stage of an algorithm, done in a way that is not the right one."""

    stage: str  # the function of the reference that it takes the place of
    function: Callable
    mistake: str  # what to tell a learner whose code does the same

    def __repr__(self) -> str:
        return f"<{self.stage}: {self.mistake}>"


def stages(right: dict[str, Callable], variants: tuple[Variant, ...] = ()) -> dict[str, Callable]:
    """The functions of all stages, the variants in place of the right ones."""
    return right | {variant.stage: variant.function for variant in variants}
