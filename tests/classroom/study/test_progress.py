"""Progress is kept by part, never falls, and stops no cell."""

import json
from unittest.mock import Mock

import matplotlib.pyplot as plt
import pytest

from workbook import config
from workbook.classroom import cli
from workbook.classroom.problems import PROBLEMS
from workbook.classroom.study import progress, records, verbs
from workbook.classroom.study.progress import Part, nearest, points_in, progress_table
from workbook.classroom.study.verbs import answer, check, tick


@pytest.fixture
def study(judged_here, study, monkeypatch):
    """A study folder that we stand in."""
    monkeypatch.setattr(verbs, "handed_in", {})  # by other tests
    return study


def lines(study):
    """The lines of the overview by problem."""
    rows = [line for line in progress_table(study).splitlines() if line[:2] == "  "]
    return {line.split()[0]: line for line in rows}


def test_the_parts_of_all_problems_are_worth_what_the_handout_says(monkeypatch):
    solved = {"": Part(best="complete")} | {part: Part(best="ticked") for part in "abcde"}
    parts = [(each, part, solved[part]) for each in PROBLEMS.values() for part in each.hints]
    for edition in config.EDITIONS:
        monkeypatch.setenv("WORKBOOK_EDITION", edition)
        most = sum(problem.points[edition] or 0 for problem in PROBLEMS.values())
        assert points_in(parts) == f"{most} of {most} points"


WEEK = [  # what is done, and what the table shows of it then, and of what comes next
    (check, ("U+0041", "a"), "a ✗ wrong · b, c ○ open", "(a), wrong, in 01_unicode.ipynb."),
    (check, ("U+0000", "a"), "a ✓ correct · b, c ○ open", "(a), in 01_unicode.ipynb: solved, but"),
    (check, ("U+0041", "a"), "a ✓ correct · b, c ○ open", "not yet answered"),
    (check, ("The one shows it.", "b"), "a ✓ correct · b ✎ read · c ○ open", "(a)"),
    (answer, ("a", "U+0000."), "a ✓ correct, answered", 'your text with its list, then tick("un'),
    (tick, ("b", 1), "a ✓ correct, answered · b ✎ read, 1 ticked · c ○ open", "(b)"),
    (tick, ("b",), "a ✓ correct, answered · b ✓ ticked · c ○ open", "(b), in 01_unicode.ipynb: so"),
]


def test_a_week_in_the_table(study):
    assert "a, b, c ○ open" in lines(study)["unicode1"]
    for verb, arguments, state, comes_next in WEEK:
        verb("unicode1", *arguments)
        assert state in lines(study)["unicode1"]
        assert comes_next in progress_table(study).partition("Next: unicode1 ")[2]
    assert "Solved: 0.7 of 107 points. Answered for the write-up: 1 of 35" in progress_table(study)


ENTRY = [{"loss": 4.9, "seconds": 60}]


def figure():
    figure, _ = plt.subplots()
    plt.close(figure)
    return figure


WIDTHS = [{"ffn": "swiglu", "d_ff": 384}, {"ffn": "silu", "d_ff": 576}]
OF_RUNS = [("leaderboard", ENTRY), ("generate", 300), ("swiglu_ablation", WIDTHS)]


@pytest.mark.parametrize(("problem", "numbers"), OF_RUNS, ids=[name for name, _ in OF_RUNS])
def test_numbers_that_nobody_can_have_seen_are_possible_and_give_no_points(study, problem, numbers):
    report = check(problem, numbers)
    assert str(report).startswith(f"✓ {problem}: possible")
    assert report.then == ("No points yet: your text is missing; write it with `answer`.",)
    assert "✓ possible, no points yet" in lines(study)[problem]
    assert "Solved: 0 of" in progress_table(study)
    assert check(problem, [{"loss": -1, "ffn": "silu"}]).then == ()


BOARD = [  # after the numbers, what an answer shows, what is said of it and what it is worth
    ({}, "it shows no figure: pass yours, as answer(..., figure=fig); it hands in no loss", 0),
    ({"figure": figure(), "loss": 5.4, "corpora": ["owt"]}, "has 4.9.", 0),
    ({"figure": figure(), "loss": 0.2}, "the loss is 0.2, and no model can get below", 0),
    ({"figure": figure(), "loss": 4.9}, "That solves leaderboard: 6 points.", 6),
    ({}, "This part is solved already, and stays so.", 6),
    ({"figure": figure(), "loss": 4.2}, "Of the last answer: the loss is 4.2, but the best run", 6),
]


def test_experiments_get_their_points_with_the_figure_and_the_text(study, capsys):
    check("leaderboard", ENTRY)
    for shown, said, points in BOARD:
        answer("leaderboard", None, "Tied embeddings.", **shown)
        assert said in capsys.readouterr().out
        assert f"Solved: {points} of 107" in progress_table(study)
    assert "✓ complete, answered" in lines(study)["leaderboard"]


def test_a_text_on_an_experiment_needs_its_figure_even_when_all_is_ticked(study):
    answer("no_pos_emb", None, "It is worse without.")
    assert "3 of 3 ticked off.\n" in str(tick("no_pos_emb"))
    assert tick("no_pos_emb").then == (study.of("no_pos_emb", None).no_points_yet,)
    assert "no points yet, answered" in lines(study)["no_pos_emb"]
    answer("no_pos_emb", None, "It is worse without.", figure())
    assert "Solved: 1 of 107" in progress_table(study)


def test_an_answer_is_shown_though_the_record_is_of_a_later_version(study, capsys):
    study.path.write_text(json.dumps({"version": 10**6, "problems": {}}))
    answer("unicode1", "a", "It is the character NUL.")
    shown = capsys.readouterr()
    assert "It is the character NUL." in shown.out
    assert "could not be saved" in shown.out + shown.err


def test_only_a_text_that_was_handed_in_is_ticked_off(study):
    def refuse(*place):
        with pytest.raises(ValueError, match=r"no text for \w+ \(\w\) was handed in yet"):
            tick(*place)

    refuse("unicode2", "a")
    assert not study.path.exists()
    answer("unicode2", "a", "UTF-8 is shorter.")
    tick("unicode2", "a")
    assert "a ✓ ticked" in lines(study)["unicode2"]
    check("tokenizer_experiments", 70_000, "d")
    assert study.of("tokenizer_experiments", "d").best == "wrong"
    refuse("tokenizer_experiments", "d")


def test_the_table_follows_the_edition(study, monkeypatch):
    monkeypatch.setenv("WORKBOOK_EDITION", "2026")
    assert "adamw_accounting" in lines(study)
    assert "edition 2026" in progress_table(study) and " of 109 points" in progress_table(study)


def test_an_untouched_stub_leaves_no_trace_and_an_emptied_answer_no_longer_counts(study):
    check("unicode1", ..., "a")
    answer("unicode2", "a", "\n")
    assert not study.path.exists()
    for text in ("Because.", " \n"):
        progress.record_answer("unicode2", "a", text, [])
        assert study.of("unicode2", "a").answered == bool(text.strip())


def test_nothing_is_recorded_outside_a_study_folder(tmp_path, monkeypatch, judged_here):
    monkeypatch.chdir(tmp_path)
    check("unicode1", "U+0000", "a")
    answer("unicode2", "a", "Because.")
    with pytest.raises(ValueError, match="not in a study folder"):
        tick("unicode1", "a")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path))
    assert progress.current().folder == tmp_path
    monkeypatch.chdir(config.shipped() / "notebooks")
    assert progress.current() is None, "the worked notebooks record nothing"


def test_the_nearest_study_folder_is_meant(study, tmp_path, monkeypatch):
    for folder in ("code/deep", "study/notes/today"):
        (tmp_path / folder).mkdir(parents=True)
        monkeypatch.chdir(tmp_path / folder)
        assert nearest() == tmp_path / "study"
    assert progress.current().path == study.path
    monkeypatch.chdir("/")
    assert nearest(tmp_path / "code" / "x.py") == tmp_path / "study"
    monkeypatch.setenv("WORKBOOK_STUDY", str(tmp_path / "mine"))
    assert nearest() == tmp_path / "mine"


def test_in_a_checkout_no_folder_above_it_is_meant(tmp_path, monkeypatch):
    (tmp_path / "study" / ".workbook").mkdir(parents=True)
    checkout = tmp_path / "checkout"
    (checkout / "code").mkdir(parents=True)
    monkeypatch.setattr(config, "checkout", lambda: checkout)
    monkeypatch.chdir(checkout / "code")
    assert nearest() == checkout / "study"
    monkeypatch.setattr(config, "checkout", lambda: None)
    (tmp_path / "study" / ".workbook").rmdir()
    assert progress.around() is None and nearest() == checkout / "code" / "study"


def test_a_record_of_another_version_is_not_lost(study, capsys, monkeypatch):
    monkeypatch.setenv("WORKBOOK_STUDY", str(study.folder))  # as the command line does
    study.path.write_text(json.dumps({"version": 99, "problems": {}}))
    report = check("unicode1", "U+0000", "a")
    assert (
        report.status == "correct" and "could not be saved (LaterVersionError: " in report.message
    )
    (study.folder / "mine.py").write_text("found = 'U+0000'")
    file = str(study.folder / "mine.py:found")
    assert cli.main(["check", "unicode1", file, "--part", "a"]) == 2, "it is not counted in silence"
    assert "of a later version of the workbook" in capsys.readouterr().err
    before = {"version": 2, "problems": {"unicode1": {"a": {"best": "correct", "last": "wrong"}}}}
    study.path.write_text(json.dumps(before))
    assert study.of("unicode1", "a").best == "correct"


def test_a_full_disk_is_told_and_stops_nothing(study, capsys, monkeypatch):
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(records, "write_json", full)
    report = check("unicode1", "U+0000", "a")
    assert report.status == "correct" and "No space left" in report.message
    progress.record_answer("unicode2", "a", "Because.", [])
    assert "could not be saved (OSError: [Errno 28] No space left" in capsys.readouterr().err


def test_a_name_is_kept_beside_the_progress(study):
    assert study.name == ""
    study.name = "\ud800"  # as from a terminal that is not UTF-8
    study.name = "Ada Lovelace"
    answer("unicode2", "a", "Because.")
    assert study.name == "Ada Lovelace" and study.of("unicode2", "a").answered
