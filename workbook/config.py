"""The two switches of the workbook, profile and edition, and the folder its data lives in.

Only this module reads the environment. Everything else takes arguments.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Edition = Literal["2025", "2026"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The sizes of one pass through the workbook."""

    name: str
    simple_corpus: str  # plays TinyStories
    web_corpus: str  # plays OpenWebText
    simple_vocab_size: int  # ids, special tokens included
    web_vocab_size: int  # ids, special tokens included
    simple_bytes: int | None  # of the simple corpus, to train tokenizers on; None: all of it


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            name="laptop",
            simple_corpus="stories",
            web_corpus="pydocs",
            simple_vocab_size=2_048,
            web_vocab_size=8_192,
            simple_bytes=5_000_000,
        ),
        Profile(
            name="full",
            simple_corpus="tinystories",
            web_corpus="owt",
            simple_vocab_size=10_000,
            web_vocab_size=32_000,
            simple_bytes=None,
        ),
    )
}
EDITIONS: tuple[Edition, ...] = ("2025", "2026")


def _choice(variable: str, choices: tuple[str, ...]) -> str:
    """The value of an environment variable, its first choice where it is unset or empty."""
    value = os.environ.get(variable) or choices[0]
    if value not in choices:
        known = ", ".join(choices)
        raise ValueError(f"{variable}={value!r} is none of {known}; unset it or pick one")
    return value


def profile() -> Profile:
    """The profile that `WORKBOOK_PROFILE` names; `laptop` where it is unset."""
    return PROFILES[_choice("WORKBOOK_PROFILE", tuple(PROFILES))]


def edition() -> Edition:
    """The edition of the handout that `WORKBOOK_EDITION` names; `2025` where it is unset."""
    return _choice("WORKBOOK_EDITION", EDITIONS)


def repository() -> Path:
    """The checkout that this package was installed from: it holds `notebooks/` and `data/`."""
    return Path(__file__).resolve().parents[1]


def data_folder() -> Path:
    """Where corpora, tokenizers and records live: `WORKBOOK_DATA`, or `data/` in the checkout."""
    return Path(os.environ.get("WORKBOOK_DATA") or repository() / "data")
