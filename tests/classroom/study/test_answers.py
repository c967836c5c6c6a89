import json
import math

import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell, new_notebook, new_output

from workbook import config
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import answers, notebooks, verbs
from workbook.classroom.study.answers import MIME, QUANTITIES, complaints, look_up
from workbook.classroom.study.verbs import answer, check
from workbook.corpora import corpora

STORY = " ".join(["Once upon a time there was a little dog who ran to the park."] * 20)


@pytest.fixture
def bundles(monkeypatch):
    """What is displayed, as in a notebook."""
    shown = []
    InteractiveShell.instance()
    # `plots` first: imported while IPython's own is replaced, it would keep the replacement.
    for display in ("workbook.classroom.views.plots.display", "IPython.display.display"):
        monkeypatch.setattr(display, lambda bundle, **_: shown.append(bundle))
    monkeypatch.setattr(verbs, "handed_in", {})
    yield shown
    InteractiveShell.clear_instance()


def test_an_answer_is_rendered_and_stored(bundles):
    answer("unicode1", "a", "It is **NUL**.")
    (bundle,) = bundles
    assert bundle["text/markdown"] == "**unicode1 (a)**\n\nIt is **NUL**."
    assert bundle["text/plain"] == "unicode1 (a)\n\nIt is **NUL**."
    wanted = {"problem": "unicode1", "part": "a", "text": "It is **NUL**.", "edition": "2025"}
    wanted |= {"profile": "laptop", "corpora": [], "stand_in": False, "figure": False}
    assert json.loads(json.dumps(bundle[MIME])) == {**wanted, "device": None}


def test_an_answer_names_corpus_sizes_profile_device_and_stand_in(bundles, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBOOK_DATA", str(tmp_path))
    monkeypatch.delenv("WORKBOOK_PRECISION", raising=False)
    stories = [corpora.path("stories", split, size=200_000) for split in corpora.SPLITS]
    answer("train_bpe_tinystories", "a", "Quick.", corpora=stories)
    record = bundles[0][MIME]
    assert record["stand_in"] is True and record["profile"] == "laptop"
    assert [used["bytes"] for used in record["corpora"]] == [f.stat().st_size for f in stories]
    assert record["device"] == answers.device() != ""
    footnote = bundles[0]["text/plain"].split("\n")[-1]
    rests_on = "*On stories (0.2 MB and 0.2 MB), which stands in for TinyStories. Profile laptop."
    assert rests_on in footnote and record["device"] in footnote


def test_a_forced_precision_is_named_or_else_the_machine_of_a_recorded_run(bundles, monkeypatch):
    monkeypatch.setenv("WORKBOOK_PRECISION", "bfloat16")
    answer("generate", None, "Once upon a time.")
    assert bundles[0][MIME]["precision"] == "bfloat16"
    assert "Profile laptop, precision bfloat16. " in bundles[0]["text/plain"]
    answer("unicode1", "a", "NUL.", measured_on="an abacus")  # nothing was measured
    answer("no_pos_emb", None, "Worse.", measured_on="an abacus")  # in whatever precision it had
    assert all("precision" not in bundle[MIME] for bundle in bundles[1:])
    assert [bundle[MIME]["device"] for bundle in bundles[1:]] == [None, "an abacus"]
    assert bundles[2]["text/plain"].endswith("Profile laptop. an abacus.*")


def test_the_corpora_of_the_profile_are_assumed(bundles, monkeypatch):
    for profile, *assumed in (("laptop", "stories", "docstrings"), ("full", "tinystories", "owt")):
        monkeypatch.setenv("WORKBOOK_PROFILE", profile)
        answer("tokenizer_experiments", "b", "More tokens.")
        record = bundles.pop()[MIME]
        assert [used["name"] for used in record["corpora"]] == assumed
        assert record["stand_in"] is (profile == "laptop")


def test_a_figure_comes_first_and_has_words(bundles):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    answer("unicode2", "a", "UTF-8 is shortest. Look.", figure)
    picture, stored = bundles
    assert picture["image/png"] and picture["text/plain"].endswith("UTF-8 is shortest")
    assert stored[MIME]["figure"] is True


def test_an_empty_answer_says_so(bundles):
    answer("unicode1", "b", "   \n  ")
    assert bundles[0]["text/plain"] == "unicode1 (b): not answered yet."
    assert bundles[0][MIME]["text"] == ""


def test_an_empty_answer_takes_the_text_that_check_was_given(bundles, judged_here):
    check("unicode1", "Nothing is seen.", "b")
    answer("unicode1", "b", "\n")
    answer("unicode1", "b", "It is invisible.")
    assert [one[MIME]["text"] for one in bundles] == ["Nothing is seen.", "It is invisible."]


def test_the_edition_spells_the_id(bundles, monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    answer("adamwAccounting", "a", "16 bytes a parameter.")
    assert bundles[0]["text/plain"].startswith("adamw_accounting (a)")
    assert bundles[0][MIME]["problem"] == "adamwAccounting"


def test_an_answer_to_another_edition_is_folded_and_only_stored(bundles, study):
    answer("adamwAccounting", "d", "4,850 hours.", edition="2026")
    (bundle,) = bundles
    assert bundle[MIME]["edition"] == "2026"
    folded = "<details><summary>adamw_accounting (d) in the 2026 edition</summary>"
    assert bundle["text/markdown"].startswith(folded)
    assert not study.of("adamwAccounting", "d").answered
    with pytest.raises(ValueError, match="no edition '2024'; pick 2025 or 2026"):
        answer("adamwAccounting", "d", "4,850 hours.", edition="2024")


def test_outside_a_notebook_an_answer_is_printed(capsys):
    answer("unicode1", "a", "\n    It is NUL.\n    Nobody sees it.\n    ")
    assert capsys.readouterr().out == "unicode1 (a)\n\nIt is NUL.\nNobody sees it.\n"


def test_a_misplaced_answer_is_a_clear_error():
    with pytest.raises(ValueError, match="say which part of unicode1"):
        answer("unicode1", None, "x")
    with pytest.raises(ValueError, match="expects its text as a str, not int"):
        answer("unicode1", "a", 7)
    with pytest.raises(ValueError, match="no corpus is called 'wikipedia'"):
        answer("main_experiment", None, "x", corpora=["wikipedia"])


@pytest.fixture
def worked(tmp_path, monkeypatch):
    """A checkout with two stored answers, the first with a picture."""
    monkeypatch.setattr(config, "checkout", lambda: tmp_path)
    figure = new_output("display_data", {"image/png": "aGk="})
    cells = []
    stories = {"name": "stories", "bytes": 5_000_000}
    for part, used, *picture in (("a", [], figure), ("b", [stories])):
        record = {"problem": "unicode1", "part": part, "text": f"Our *{part}*.", "corpora": used}
        record |= {"profile": "laptop", "device": "a laptop"}
        outputs = [*picture, new_output("display_data", {MIME: record})]
        cells.append(new_code_cell("answer()", outputs=outputs, execution_count=1))
    notebooks.write_notebook(tmp_path / "notebooks" / "01_unicode.ipynb", new_notebook(cells=cells))


def test_our_answer_is_looked_up_behind_a_fold_and_says_what_it_rests_on(worked):
    looked_up = look_up("unicode1", "a")
    assert str(looked_up) == "Our answer to unicode1 (a)\n\nOur *a*."
    markdown = looked_up._repr_markdown_()
    assert markdown.startswith("<details><summary>Our answer to unicode1 (a)</summary>\n\nOur *a*.")
    assert 'src="data:image/png;base64,aGk="' in markdown
    other = look_up("unicode1", "b")._repr_markdown_()
    assert "<img" not in other and "*On stories (5.0 MB). Profile laptop. a laptop.*" in other


def test_where_there_is_no_answer_it_is_said(worked):
    assert "has no written answer; `reveal` shows code" in str(look_up("unicode1", "c"))


def test_every_quantity_that_is_required_is_known():
    required = [one for problem in PROBLEMS.values() for one in problem.requires.values()]
    assert {kind for one in required for kind in one.quantities} == set(QUANTITIES)


ANSWERS = [
    ("generate", "", f"> {STORY}\n\nFluent.", 0, None),
    ("generate", "", f"```\n{STORY}\n```\n\nFluent.", 0, None),
    ("generate", "", "```\nA dog ran.<|endoftext|>\n```", 0, None),
    ("generate", "", "256 asked for.\n\n> A dog ran to the park.", 0, "about 8 tokens"),
    ("no_pos_emb", "", "RoPE is better.", 0, "it shows no figure"),
    ("leaderboard", "", "A loss of 3.1; 5.0 is asked for.", 1, "it hands in no loss"),
    ("train_bpe_tinystories", "a", "Fast, in 47 MB.", 0, "it gives no time"),
    ("tokenizer_experiments", "c", "It takes 40.5 days.", 0, "no rate in bytes per second"),
    ("unicode2", "c", "0xC3 0x28 is none.", 0, None),
    ("unicode2", "b", '`"naïve".encode()`: the ï is two bytes.', 0, None),
    ("unicode2", "c", "Two bytes are none.", 0, "it gives no example in bytes"),
]


@pytest.mark.parametrize(("problem", "part", "text", "figures", "said"), ANSWERS)
def test_what_is_missing_is_named(problem, part, text, figures, said):
    missing = complaints(problem, part, text, figures, None, ["owt"])
    assert (not missing) if said is None else said in missing[0]


LOSSES = [  # a corpus, the loss of an answer and of the check, and what is said
    ("tinystories", 6.2, None, "the loss is 6.2, but must be at most 2"),
    ("stories", 6.2, None, None),  # a text in place of the one that is asked for
    ("tinystories", 1.44, None, None),
    ("tinystories", 0.2, None, "the loss is 0.2, and no model can get below 0.99"),
    ("stories", 0.2, None, "no model can get below"),
    ("stories", 1.9, 1.5, "the best run that `check` has seen has 1.5"),
    ("stories", 1.51, 1.5, None),
]


@pytest.mark.parametrize(("corpus", "loss", "checked", "said"), LOSSES)
def test_a_loss_that_is_handed_in_is_held_to_its_bounds_and_to_the_runs(
    corpus, loss, checked, said
):
    text = "A validation loss of 6.2. The course asks for a loss of 1.45."
    missing = complaints("learning_rate", "a", text, 1, loss, [corpus], checked)
    assert (not missing) if said is None else said in missing[0]


@pytest.mark.parametrize("loss", ["1.4", True, math.nan, -1, math.inf])
def test_a_loss_that_is_none_is_refused(loss):
    with pytest.raises(ValueError, match="expected a loss in nats per token, a number such as"):
        answer("leaderboard", None, "Our entry.", loss=loss)
