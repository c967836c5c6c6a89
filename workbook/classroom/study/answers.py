"""Written answers: shown, stored in the notebook's own output, looked up there, and inspected.

`complaints` looks only for what can be seen in the answer itself: a figure, numbers with units,
enough text. Nobody's prose is graded.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeAlias

from workbook import config
from workbook.classroom import problems
from workbook.classroom.panels import Panel, folded
from workbook.classroom.problems import Problem, Requirement
from workbook.classroom.study import solutions
from workbook.classroom.study.numbers import number_of
from workbook.config import Edition
from workbook.corpora import corpora
from workbook.corpora.corpora import CORPORA
from workbook.tokenization.pretokens import pretokenize
from workbook.training.loss_bounds import BYTES_PER_TOKEN, bounds

Corpora: TypeAlias = Iterable[str | Path] | None
BEGINNING = 300  # characters of a long answer, for what shows plain text only
MIME = "application/vnd.workbook.answer+json"


def record_of(
    problem: Problem,
    part: str | None,
    text: str,
    corpora: Corpora,
    measured_on: str | None,
    edition: Edition | None = None,
) -> dict:
    """Make the record of an answer, for the arguments of `verbs.answer`."""
    edition = edition or config.edition()
    if edition not in config.EDITIONS:
        raise ValueError(f"there is no edition {edition!r}; pick {' or '.join(config.EDITIONS)}")
    if not isinstance(text, str):
        raise ValueError(f"answer expects its text as a str, not {type(text).__name__}")
    text = cleandoc(text).strip()
    used = _used(problem, corpora) if text else []
    record: dict[str, Any] = {"problem": problem.id, "part": part, "text": text, "corpora": used}
    record |= {"edition": edition, "profile": config.profile().name}
    record["stand_in"] = any(_replaced(problem, corpus["name"]) for corpus in used)
    # Named only where something was measured: it would make every other answer vary.
    record["device"] = (measured_on or device()) if used else None
    if used and measured_on is None and config.precision() != "auto":
        record["precision"] = config.precision()
    return record


def as_loss(loss: float) -> float:
    """Return a loss as it is recorded. Raises: ValueError if it is none."""
    number = number_of(loss)
    if number is None or not 0 < number < math.inf:
        raise ValueError(f"expected a loss in nats per token, a number such as 1.44, not {loss!r}")
    return number


def as_figures(figure: Any) -> list:
    """Return the figures of an answer. Raises: ValueError for what is none."""
    if figure is None:
        return []
    from workbook.classroom.views import plots

    return plots.figures_in(figure)


def show_answer(record: dict, figures: list, alt: str | None = None) -> None:
    """Show an answer, and in a notebook store its record in the output."""
    details = problems.with_id(record["problem"])
    name = problems.label(details.ids[record["edition"]], record["part"])
    text = record["text"]
    whole = _with_footnote(details, record)
    plain = f"{name}\n\n{whole}" if text else f"{name}: not answered yet."
    if solutions.shell() is None:  # nothing to display in
        print(plain)
        return
    from IPython.display import display

    for figure in figures:
        from workbook.classroom.views import plots

        plots.show(figure, alt or text.partition("\n")[0].split(". ")[0])
    markdown = plain.replace(name, f"**{name}**", 1)
    if record["edition"] != config.edition():
        markdown = folded(f"{escape(name)} in the {record['edition']} edition", whole)
    # The text stands in the record and in the Markdown already: a third copy would only make the
    # file larger. What shows no Markdown shows the beginning.
    short = plain if len(plain) <= BEGINNING else f"{plain[:BEGINNING]} …"
    display({"text/markdown": markdown, "text/plain": short, MIME: record}, raw=True)


def display_or_print(thing: Any) -> None:
    """Show something below the outputs so far; outside a notebook, IPython prints it."""
    from IPython.display import display

    display(thing)


def look_up(problem: str, part: str | None = None) -> Panel:
    """Look up our own answer in the worked notebook; in a notebook it is folded away.

    Example: look_up("unicode1", "a")
    """
    # Not in each kernel: it loads nbformat, for seconds.
    from workbook.classroom.study import notebooks

    details, part = problems.place(problem, part)
    (path,) = notebooks.find_worked([details.notebook])
    for cell in notebooks.read_notebook(path).cells:
        for output in cell.get("outputs", []):
            record = output.get("data", {}).get(MIME)
            if record and _is_for(record, details, part):
                title = f"Our answer to {_name(details, part)}"
                text = _with_footnote(details, record)
                shown = folded(escape(title), text + _picture(cell.outputs))
                return Panel("read", f"{title}\n\n{text}", shown)
    otherwise = f"{_name(details, part)} has no written answer; `reveal` shows code."
    return Panel("read", otherwise, otherwise)


def _is_for(record: dict, problem: Problem, part: str | None) -> bool:
    """Whether a record answers a part, in the edition that is set if the editions differ there."""
    there = (record["problem"], record["part"]) == (problem.id, part)
    return there and (not problem.differs or record["edition"] == config.edition())


def device() -> str:
    """Describe the machine, for a timing: its processor, number of cores and system."""
    machine = config.machine()
    return f"{machine['processor']}, {machine['cores']} cores, {str(machine['system']).split()[0]}"


def _used(problem: Problem, corpora_named: Corpora) -> list[dict]:
    """List the corpora that an answer rests on; "bytes" is None unless the exact file is known."""
    if corpora_named is None:
        profile = config.profile()
        played_by = {"tinystories": profile.simple_corpus, "owt": profile.web_corpus}
        corpora_named = [played_by[asked] for asked in problem.asks_corpora]
    used = []
    for corpus in [corpora_named] if isinstance(corpora_named, str | Path) else corpora_named:
        if isinstance(corpus, Path):
            record = corpora.record(corpus)
            used.append({"name": record["corpus"], "bytes": record["bytes"]})
        elif corpus in CORPORA:
            used.append({"name": corpus, "bytes": None})
        else:
            raise ValueError(f"no corpus is called {corpus!r}; pick from {', '.join(CORPORA)}")
    return used


def _replaced(problem: Problem, corpus: str) -> str | None:
    """Name the corpus that the problem asks for and that this one stands in for, by its title."""
    asked = CORPORA[corpus].stands_in_for if corpus in CORPORA else ""
    return CORPORA[asked].title if asked in problem.asks_corpora else None


def _with_footnote(problem: Problem, record: dict) -> str:
    """Put below the text of an answer, in italics, the corpora that its figures rest on, if any."""
    if not record["corpora"]:
        return record["text"]
    forced = f", precision {record['precision']}" if "precision" in record else ""
    used = [(corpus["name"], corpus["bytes"]) for corpus in record["corpora"]]
    footnote = f"{on_what(problem, used)} Profile {record['profile']}{forced}. {record['device']}."
    return f"{record['text']}\n\n*{footnote}*"


def on_what(problem: Problem, used: Iterable[tuple[str, int | None]]) -> str:
    """Name the corpora that an answer rests on: "On stories (5.0 MB), which stands in for ...".

    `used` are names with the bytes of the file, None if only the corpus is known.
    """
    sizes: dict[str, list[str]] = defaultdict(list)
    for name, size in used:
        sizes[name] += [] if size is None else [f"{size / 1e6:,.1f} MB"]
    named = []
    for name, of_files in sizes.items():
        files = f" ({' and '.join(of_files)})" if of_files else ""
        replaced = _replaced(problem, name)
        named.append(name + files + (f", which stands in for {replaced}" if replaced else ""))
    return f"On {'; '.join(named)}."


def _name(problem: Problem, part: str | None) -> str:
    return problems.label(problem.ids[config.edition()], part)


def _picture(outputs: list) -> str:
    """Write the first picture among outputs as an image for Markdown."""
    for output in outputs:
        if data := output.get("data", {}).get("image/png", "").replace("\n", ""):
            return f'\n\n<img alt="the figure of this answer" src="data:image/png;base64,{data}">'
    return ""


NUMBER = r"\d[\d,_.]*(?:e[+-]?\d+)?"
QUANTITIES = {  # the kinds that a `Requirement` may ask for
    "time": rf"{NUMBER}\s*(?:[µmn]?s\b|secs?\b|seconds?|min\b|minutes?|h\b|hours?|days?|years?)",
    "memory": rf"{NUMBER}\s*(?:[kKMGT]i?B\b|bytes?)",
    "rate in bytes per second": (
        rf"{NUMBER}\s*(?:[kKMGT]i?B|bytes?|tokens?)\s*(?:/|per|a)\s*(?:s\b|sec|second)"
    ),
    "example in bytes": r"b['\"]|(?:\\x|0x|\b)[0-9a-fA-F]{2}(?![0-9a-zA-Z])|\.encode\(",
}
END = re.compile(r"<\|endoftext\|>|end[- ]of[- ]text|end[- ]token|\bEOS\b", re.IGNORECASE)
QUOTED = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1|((?:^>[^\n]*(?:\n|\Z))+)", re.DOTALL | re.M)
AGREES = 0.02  # relative: of a loss in an answer and in a table, both rounded
TOKENS_PER_PIECE = 1.5  # with more tokens per word or mark, the tokenizer was made for another text


def complaints(
    problem: str,
    part: str,
    text: str,
    figures: int,
    loss: float | None,
    corpora: Iterable[str],
    checked: float | None = None,
) -> list[str]:
    """List what an answer lacks of what its problem requires, each in a few words.

    Arguments:
        part: such as "a"; "" where the problem has no parts.
        figures: how many the answer shows.
        loss: the one that was passed to `answer`; losses in the text may be anybody's.
        corpora: the names of those that the answer rests on. On a text in place of the one asked
            for, no level of the loss is required.
        checked: the lowest loss of the runs that `check` has seen, if it has seen any.
    """
    details = problems.with_id(problem)
    required = details.requires.get(part, Requirement())
    missing = []
    if required.figure and not figures:
        missing.append("it shows no figure: pass yours, as answer(..., figure=fig)")
    for kind in required.quantities:
        if not re.search(QUANTITIES[kind], text):
            missing.append(f"it gives no {kind}")
    if (most := required.loss_at_most) is not None:
        if loss is None:
            missing.append("it hands in no loss: pass that of your run, as answer(..., loss=1.44)")
        else:
            stands_in = any(_replaced(details, corpus) for corpus in corpora)
            missing += _odd_loss(loss, None if stands_in else most, corpora, checked)
    if required.tokens_at_least is not None:
        missing += _too_short(text, required.tokens_at_least)
    return missing


def _odd_loss(
    loss: float, most: float | None, corpora: Iterable[str], checked: float | None
) -> list[str]:
    """Complain about a loss that is too high, impossible, or not that of the runs."""
    lowest = min(
        (bounds(corpus).lowest for corpus in corpora if corpus in BYTES_PER_TOKEN), default=0
    )
    if loss < lowest:
        return [f"the loss is {loss:g}, and no model can get below {lowest:.2f} on this text"]
    if checked is not None and abs(loss - checked) > AGREES * checked:
        return [f"the loss is {loss:g}, but the best run that `check` has seen has {checked:.4g}"]
    if most is not None and loss > most:
        return [f"the loss is {loss:g}, but must be at most {most:g}"]
    return []


def _too_short(text: str, least: int) -> list[str]:
    """Complain if a generated text is too short, by the number of its words and marks.

    A token is seldom less than a word or a mark, and never more, so their number tells a text of
    60 tokens from one of 256 whatever the tokenizer.
    """
    if END.search(text):
        return []
    blocks = ["".join(block[1:]).replace("\n>", "\n") for block in QUOTED.findall(text)]
    pieces = sum(1 for _ in pretokenize([max(blocks, key=len, default=text).strip()]))
    if pieces * TOKENS_PER_PIECE < least:
        return [f"the text has about {pieces} tokens, but needs {least} or an end token"]
    return []
