"""The checks of main_experiment and leaderboard: losses on text from the web."""

import math
import re
from numbers import Real
from typing import Any

from workbook import config
from workbook.checks.experiments_limits import (
    corpus_for,
    refuse_impossible,
    refuse_runs,
    refuse_text,
    refuse_untrained,
)
from workbook.checks.experiments_read import expect_readable, pair, runs
from workbook.checks.experiments_run import ReportedRun
from workbook.checks.experiments_text import clauses, corpora_in
from workbook.checks.figures import quantities, text_of
from workbook.checks.verdicts import Facts, NotAttempted, Words, Wrong
from workbook.experiments.studies import BOARD_BEST, BOARD_TARGET, CAPS

OLD_MINUTES = 90  # also in the texts of 2026 before 26.0.3
WEB, SIMPLE = ("owt", "pydocs"), ("tinystories", "stories")
BOTH = (
    'a dict such as {"stories": loss, "pydocs": loss} or {"tinystories": loss, "owt": loss}, the'
    " loss on the web text, or a text"
)
ENTRY = "the loss, a tuple (loss, minutes), the log of the run, or a text"

EXPERIMENT = Facts(
    (
        "the curve, with corpus, tokens and device",
        "why the losses differ: the text, the size of the vocabulary, and how long a token is",
        "both in bits per byte as well, which can be compared where nats per token cannot",
        "a text that it wrote, and how fluent that is beside the stories",
    )
)
BOARD = Facts(
    (
        "the final validation loss, and the time the run took",
        "a curve against time that ends before the limit",
        "what was changed, each change measured by itself",
    )
)


def main_experiment(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of a loss on web text, alone or beside that on stories."""
    expect_readable(attempt, BOTH)
    if isinstance(attempt, str):
        refuse_text(text_of(attempt, BOTH), "web")
        return EXPERIMENT
    if isinstance(attempt, Real):
        return _on_the_web(float(attempt), corpus_for((), "web"))
    found = [run for run in runs(attempt, "rate") if run.ended or run.get("bits per byte")]
    stories = _about(found, SIMPLE)
    refuse_runs(stories, "simple")
    refuse_runs([run for run in found if run not in stories], "web")
    web, simple = (_lowest(_about(found, names)) for names in (WEB, SIMPLE))
    if web is None:
        raise NotAttempted(f"No loss on web text was found. Hand in {BOTH}.")
    praise = _on_the_web(web.loss, corpus_for(corpora_in(web.words.replace("_", " ")), "web"))
    if simple is None:
        return praise
    for unit, one, two in (
        ("nats per token", web.loss, simple.loss),
        ("bits per byte", web.get("bits per byte"), simple.get("bits per byte")),
    ):
        if one is not None and two is not None and one < two:
            raise Wrong(
                "Text from the web is not easier than stories.",
                expected=Words("the larger loss on web text"),
                got=Words(f"{one:.4g} on web text, {two:.4g} on stories, in {unit}"),
                mistake="Were the two swapped? Or was the web text validated on what was trained"
                " on?",
            )
    return (
        f"Web text costs {web.loss - simple.loss:.3g} nats per token more. Is it as much in bits a"
        " byte? The tokens are not equally long."
    )


def _about(found: list[ReportedRun], names: tuple[str, ...]) -> list[ReportedRun]:
    """The runs on one of these corpora, by its name or by the part that it plays."""
    look = r"\bweb\b|internet" if names == WEB else r"\bsimple\b"
    here = []
    for run in found:
        words = run.words.replace("_", " ")
        if set(corpora_in(words)) & set(names) or re.search(look, words, re.I):
            here.append(run)
    return here


def _lowest(found: list[ReportedRun]) -> ReportedRun | None:
    return min((run for run in found if run.finite), key=lambda run: run.loss, default=None)


def _on_the_web(loss: float, corpus: str) -> str:
    refuse_impossible(loss, corpus)
    refuse_untrained(loss, "web")
    return (
        f"{loss:.4g} nats per token is possible on web text, a perplexity of {math.exp(loss):,.3g}."
    )


def leaderboard(attempt: Any, part: str | None = None) -> str | Facts:
    """What holds of an entry: its loss, and its time against the limit of the edition."""
    if two := pair(attempt):
        return _entry(two[0], 60 * two[1])
    expect_readable(attempt, ENTRY)
    if isinstance(attempt, str):
        return _said(text_of(attempt, ENTRY))
    if isinstance(attempt, Real):
        return _entry(float(attempt), None)
    found = runs(attempt, "minutes")
    if not any(run.ended for run in found):
        raise NotAttempted(f"No loss was found. Hand in {ENTRY}.")
    refuse_runs(found, "web")
    lowest = _lowest(found)
    if lowest is None:
        raise NotAttempted("Every run diverged: no loss to hand in yet.")
    named = {name for run in found for name in corpora_in(run.words.replace("_", " "))}
    return _entry(lowest.loss, lowest.get("seconds"), corpus_for(named, "web"))


def _entry(loss: float, seconds: float | None, corpus: str | None = None) -> str:
    """Praise for an entry within the rules."""
    corpus = corpus or corpus_for((), "web")
    refuse_impossible(loss, corpus)
    refuse_untrained(loss, "web")
    remarks = [_in_time(seconds)] if seconds is not None else []
    if corpus == "owt" and not loss < BOARD_TARGET:
        raise Wrong(
            "That is not low enough.",
            expected=Words(f"less than {BOARD_TARGET:g} nats per token on OpenWebText"),
            got=loss,
            mistake="A simple run of the main experiment comes below it in that time.",
        )
    if corpus != "owt":
        remarks.append(
            f"The handout's {BOARD_TARGET:g} is for OpenWebText: {corpus} is other text."
        )
    elif loss < BOARD_BEST:
        remarks.append(
            f"The best public entry known here has {BOARD_BEST}: make sure that no validation text"
            " was trained on."
        )
    return " ".join([f"{loss:.4g} nats per token is possible on {corpus}.", *remarks])


def _in_time(seconds: float) -> str:
    """What is said of a time within the limit; raises beyond it."""
    edition = config.edition()
    minutes, most = seconds / 60, round(CAPS[edition] / 60)
    if minutes <= 1.005 * most:
        return f"{minutes:.3g} of {most} minutes."
    if minutes <= 1.005 * OLD_MINUTES:
        return (
            f"{minutes:.3g} minutes: the handout of {edition} allows {most} from 26.0.3 on, and"
            f" {OLD_MINUTES} before. Make sure which one is yours."
        )
    raise Wrong(
        "That is longer than allowed.",
        expected=Words(f"at most {most} minutes in edition {edition}"),
        got=Words(f"{minutes:.3g} minutes"),
        mistake="The clock counts, evaluation and saving included: let the schedule end with it.",
    )


def _said(text: str) -> Facts:
    said = refuse_text(text, "web")
    named = corpora_in(text)
    if said and named == ("owt",):
        _entry(min(each.loss for each in said), None, "owt")
    for clause in clauses(text):
        times = [q.scaled for q in quantities(clause) if q.kind == "seconds"]
        limit = re.search(r"\b(?:cap|limit|allow\w*|asked|longer|other|if)\b", clause)
        if len(times) == 1 and any(each.clause == clause for each in said) and not limit:
            _in_time(times[0])
    return BOARD
