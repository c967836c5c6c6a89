"""A learner's tokenizer at work: what it is called with, in words, and what it returned."""

import operator
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from workbook.checks.tokenizer_reference import (
    BYTES_FIRST,
    Ids,
    Pieces,
    Setup,
    Text,
    predicted,
)
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, kind_of, shown

METHOD = {Text: "encode", Pieces: "encode_iterable", Ids: "decode"}
REPLACED = "\ufffd"
QUICK = 5.0  # seconds that a short input may take


class Outcome(NamedTuple):
    """What became of one input: ids or text, or the way in which there is neither."""

    given: Text | Pieces | Ids
    result: list[int] | str  # of `encode`, "error" or "endless" where there are no ids
    failure: Wrong | None = None

    @property
    def right(self) -> bool:
        """True where the result is the expected one."""
        return self.failure is None and same(self.result, predicted(self.given))

    @property
    def got(self) -> str:
        """An error in words; empty where there is none."""
        return dict(self.failure.rows)["got"] if self.failure else ""


def same(one: list[int] | str, other: list[int] | str) -> bool:
    """True for equal ids, and for equal texts however many U+FFFD stand for a malformed stretch."""
    if isinstance(one, str) and isinstance(other, str):
        return _squeezed(one) == _squeezed(other)
    return one == other


def _squeezed(text: str) -> str:
    while REPLACED * 2 in text:
        text = text.replace(REPLACED * 2, REPLACED)
    return text


class Learner:
    """The learner's class; each input gets a tokenizer of its own, with copies of the arguments."""

    def __init__(self, attempt: type):
        self.attempt = attempt
        self.changed: set[str] = set()  # the arguments that the class changed

    def make(self, setup: Setup, given: Words | None = None) -> Any:
        """A tokenizer. Raises `Wrong` or `NotAttempted` like `base.call`."""
        vocab, merges = setup.vocab(), list(setup.merges)
        arguments = [vocab, merges]
        if setup.special_tokens is not None:
            arguments.append(list(setup.special_tokens))
        made = call(self.attempt, *arguments, given=given or Words(described_setup(setup)))
        if vocab != setup.vocab():
            self.changed.add("vocab")
        if merges != list(setup.merges):
            self.changed.add("merges")
        return made

    def __call__(self, given: Text | Pieces | Ids, seconds: float | None = None) -> list[int] | str:
        """What the method that the input is for returns, in one form."""
        tokenizer = self.make(given.setup, described(given))
        return run(tokenizer, given, seconds or QUICK)

    def outcome(self, given: Text | Pieces | Ids, seconds: float | None = None) -> Outcome:
        """What becomes of an input; a result in a wrong form is raised at once."""
        try:
            result = self(given, seconds)
        except Malformed:
            raise
        except Wrong as failure:
            return Outcome(given, "endless" if failure.timed_out else "error", failure)
        return Outcome(given, result)


class Malformed(Wrong):
    """A result that is not of the kind asked for."""


def run(tokenizer: Any, given: Text | Pieces | Ids, seconds: float = QUICK) -> list[int] | str:
    """What a tokenizer makes of an input, in one form: a list of ids or a text."""
    method = getattr(tokenizer, METHOD[type(given)])
    words = described(given)
    if isinstance(given, Text):
        return ids_of(call(method, given.text, seconds=seconds, given=words), words)
    if isinstance(given, Ids):
        return _text_of(call(method, list(given.ids), seconds=seconds, given=words), words)
    pieces = given.pieces
    result = call(lambda: _used_up(method, iter(pieces)), seconds=seconds, given=words)
    return ids_of(result, words, "encode_iterable")


def _used_up(method: Callable, pieces: Iterator[str]) -> Any:
    result = method(pieces)
    return result if result is None or isinstance(result, str | bytes) else list(result)


def ids_of(result: Any, given: Words, method: str = "encode") -> list[int]:
    """A result as a list of ints; raises `Malformed` where it holds something else."""
    asked = Words("a list of ids" if method == "encode" else "ids, one after the other")
    if result is None:
        raise NotAttempted(f"`{method}` returned None: is a `return` still to write?")
    mistake = None
    if isinstance(result, str | bytes):
        mistake = "The result is text: look up the id of each token."
    elif isinstance(result, Iterator):
        mistake = "`encode` is a generator (it has a `yield`): return a list."
    elif not hasattr(result, "__iter__"):
        mistake = f"The result is {kind_of(result)}."
    if mistake:
        raise Malformed(
            f"`{method}` does not give ids.",
            given=given,
            expected=asked,
            got=Words(kind_of(result)),
            mistake=mistake,
        )
    ids = []
    for item in result:
        try:
            ids.append(operator.index(item))
        except TypeError:
            if isinstance(item, list | tuple):
                mistake = "There are lists in place of ids: add their items (`yield from`)."
            elif isinstance(item, bytes | str):
                mistake = "There are tokens in place of ids: look each one up in the vocabulary."
            raise Malformed(
                f"`{method}` does not give ids.",
                given=given,
                expected=asked,
                got=Words(f"among the ids, {kind_of(item)}"),
                mistake=mistake,
            ) from None
    return ids


def _text_of(result: Any, given: Words) -> str:
    if result is None:
        raise NotAttempted("`decode` returned None: is a `return` still to write?")
    if not isinstance(result, str):
        mistake = None
        if isinstance(result, bytes | bytearray):
            mistake = "Bytes must still be decoded."
        elif isinstance(result, list | tuple):
            mistake = "The parts must still be joined."
        raise Malformed(
            "`decode` does not give a str.",
            given=given,
            expected=Words("a str"),
            got=Words(kind_of(result)),
            mistake=mistake,
        )
    return result


def described(given: Text | Pieces | Ids) -> Words:
    """The call, and what the tokenizer is made of as far as it matters."""
    if isinstance(given, Ids):
        standing = readable(list(given.ids), given.setup)
        return Words(f"decode(ids), the ids being {standing}")
    text = given.text if isinstance(given, Text) else list(given.pieces)
    setup = described_setup(given.setup, "".join(text))
    return Words(f"{METHOD[type(given)]}({shown(text)}) of a tokenizer {setup}")


def described_setup(setup: Setup, text: str = "") -> str:
    """The merges that can apply to a text, the special tokens and the order of the ids."""
    merges = [pair for pair in setup.merges if b"".join(pair) in text.encode()]
    others = len(setup.merges) - len(merges)
    if len(merges) > 8 or (others and not merges):
        words = f"with {len(setup.merges)} merges"
    else:
        words = f"with the merges {merges}" if merges else "without merges"
        if others:
            words += " (and others that cannot apply)"
    if setup.special_tokens is None:
        words += "; special_tokens is None"
    else:
        words += f"; special_tokens={list(setup.special_tokens)}"
    if lacking := [token for token in setup.specials() if token not in setup.known]:
        words += f", of which the vocabulary lacks {', '.join(lacking)}"
    if only := [token for token in setup.known if token not in setup.specials()]:
        words += f", though the vocabulary holds {', '.join(only)}"
    if setup.layout != BYTES_FIRST:
        words += f"; order of the vocabulary: {setup.layout}"
    return words


def readable(ids: list[int], setup: Setup) -> Words:
    """Ids, and the tokens that they stand for."""
    tokens = {token_id: token for token, token_id in setup.ids().items()}
    spelt = [repr(tokens[i]) if i in tokens else f"{i} is no id" for i in ids]
    if len(ids) > 16:
        return Words(f"{shown(ids)}: {' '.join(spelt[:24])} ...")
    return Words(f"{ids}: {' '.join(spelt)}" if ids else "[]")
