"""`from_files`, whose file format the course leaves open: GPT-2's is tried, and told of."""

import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

from workbook.checks import tokenizer_cases as cases
from workbook.checks.tokenizer_answers import Learner
from workbook.checks.tokenizer_reference import GPT2, Text, predicted
from workbook.checks.verdicts import NotAttempted, Words, Wrong, call, is_stub, kind_of
from workbook.tokenization.gpt2_files import to_readable

OPEN = (
    "`from_files` does not read GPT-2's files (vocab.json and merges.txt, in the alphabet where a "
    "space is Ġ). The course leaves the format open, so any other that you write yourself is right."
)


def check_files(learner: Learner) -> list[str]:
    """Notes on `from_files`; raises `Wrong` where it cannot be called or makes no tokenizer."""
    method = inspect.getattr_static(learner.attempt, "from_files")
    if isinstance(method, classmethod | staticmethod):
        method = method.__func__
    else:
        if is_stub(method):
            raise NotAttempted
        raise Wrong(
            "`from_files` belongs to the class, not to an instance.",
            expected=Words("Tokenizer.from_files(vocab_filepath, merges_filepath, special_tokens)"),
            got=Words("a method that needs an instance"),
            mistake="`@classmethod` is missing above `def from_files(cls, ...)`.",
        )
    if is_stub(method):
        raise NotAttempted
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _notes(learner, Path(folder))


def _notes(learner: Learner, folder: Path) -> list[str]:
    end = (cases.END,)
    given = Text(cases.setup(GPT2, end), f"the cat{cases.END} é\n")
    files = _written(given, folder)
    shown = Words("Tokenizer.from_files(vocab_filepath, merges_filepath, special_tokens)")
    try:
        made = call(learner.attempt.from_files, *files, list(end), given=shown)
        if _is_tokenizer(made):
            ids = list(call(made.encode, given.text, given=shown))
            return [] if ids == predicted(given) else [OPEN]
    except Wrong as failure:
        if "arguments" in failure.claim:
            raise
        return [OPEN]
    except NotAttempted:
        raise
    except Exception:  # ids of a strange kind
        return [OPEN]
    raise Wrong(
        "`from_files` does not make a tokenizer.",
        given=shown,
        expected=Words("a tokenizer"),
        got=Words(kind_of(made)),
        mistake="End it with `return cls(vocab, merges, special_tokens)`.",
    )


def _is_tokenizer(made: Any) -> bool:
    return hasattr(made, "encode") and hasattr(made, "decode") and not inspect.isclass(made)


def _written(given: Text, folder: Path) -> tuple[str, str]:
    """The paths of the vocabulary and the merges, as GPT-2 has them."""
    vocab, merges = folder / "vocab.json", folder / "merges.txt"
    names = {
        token.decode()
        if token.decode("utf-8", "replace") in given.setup.known
        else to_readable(token): token_id
        for token_id, token in given.setup.vocab().items()
    }
    vocab.write_text(json.dumps(names), encoding="utf-8")
    lines = [f"{to_readable(left)} {to_readable(right)}\n" for left, right in given.setup.merges]
    merges.write_text("".join(lines), encoding="utf-8", newline="\n")
    return str(vocab), str(merges)
