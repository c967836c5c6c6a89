"""How far each problem has come, in both editions: states, parts, what counts."""

import re

from export_folders import answered, learner, notebook, png, shown

from workbook.classroom.export import status
from workbook.classroom.export.document import compose
from workbook.classroom.export.pandoc import text_of

OPEN = (status.UNANSWERED, status.UNSOLVED)
STORIES = {"corpora": [{"name": "stories", "bytes": None}], "stand_in": True}


def test_parts_that_are_missing_are_named_and_stand_ins_marked(tmp_path):
    learner(
        tmp_path,
        answered("unicode1", "a", "It is NUL."),
        answered("unicode1", "c", "It stays."),
        answered("train_bpe_tinystories", "a", "It took 5 s and 47 MB.", **STORIES),
        answered("train_bpe_tinystories", "b", "The merges.", **STORIES),
        answered("learning_rate_tuning", None, "They grow."),
        answered("unicode2", "a", "  "),
        passed={"softmax": "def softmax(x, dim):\n    return x\n"},
    )
    entries = status.assess(tmp_path, "2025").entries
    open_states = {e.problem.kind: e.state for e in entries if e.state in OPEN}
    assert open_states == {"code": "not solved", "written": "unanswered"}
    assert {e.problem.id: e.in_words for e in entries if e.in_words not in OPEN} == {
        "unicode1": "answered: a, c; unanswered: b",
        "train_bpe_tinystories": "answered on a stand-in corpus",
        "softmax": "code correct",
        "learning_rate_tuning": "answered",
    }


def test_an_answer_that_falls_short_is_named(tmp_path):
    story = "> Once upon a time there was a dog who liked the sun.\n\nFluent, and it is short."
    write_up = status.assess(learner(tmp_path, answered("generate", None, story)), "2025")
    short = r"generate: the text has about \d+ tokens, but needs 256 or an end token"
    assert any(re.match(short, line) for line in write_up.missing)
    (entry,) = (entry for entry in write_up.entries if entry.answers)
    assert "falls short of what is asked" in entry.in_words
    assert "worth 0 of 107 points" in lead(tmp_path)


def test_an_experiment_counts_with_its_figure_alone(tmp_path):
    for figures, points in (([], 0), ([shown(png=png())], 1)):
        learner(tmp_path, answered("no_pos_emb", None, "It is worse without.", *figures))
        assert f"worth {points} of 107 points" in lead(tmp_path)


def test_code_that_is_almost_correct_is_counted_as_such(tmp_path):
    folder = learner(tmp_path, passed={"rope": "class R: 1"})
    learner(folder, passed={"softmax": "def softmax(x, dim): ..."}, best="almost")
    write_up = status.assess(folder, "2025")
    states = {entry.problem.id: entry.in_words for entry in write_up.entries if entry.listings}
    assert states == {"softmax": "code almost correct", "rope": "code correct"}
    assert [entry.id for entry in write_up.entries if entry.is_done] == ["rope"]
    assert "softmax: code almost correct" in write_up.missing


def lead(folder):
    """The first page of a write-up."""
    return text_of(compose(status.assess(folder, "2025")).lead)


def test_answers_of_several_profiles_are_named_on_the_first_page(tmp_path):
    other = answered("unicode1", "b", "Words.", profile="full", edition="2026")
    learner(tmp_path, answered("unicode1", "a", "Words."), other)
    assert "Profile full, laptop" in lead(tmp_path)
    assert "Written under edition 2026" in lead(tmp_path)


def test_the_first_page_says_how_many_points_rest_on_stand_ins(tmp_path):
    learner(
        tmp_path,
        answered("train_bpe_tinystories", "a", "It took 5 s and 47 MB.", **STORIES),
        answered("train_bpe_tinystories", "b", "The merges."),
        answered("tokenizer_experiments", "a", "4.2 bytes per token.", **STORIES),
        answered("learning_rate_tuning", None, "They grow."),
    )
    assert "worth 3 of 107 points" in lead(tmp_path)  # with learning_rate_tuning, and no part alone
    assert "; 2 of these points rest on stand-in texts, with" in " ".join(lead(tmp_path).split())
    notebook(tmp_path / "01_unicode.ipynb", answered("learning_rate_tuning", None, "They grow."))
    assert "stand-in texts" not in lead(tmp_path)


def test_an_answer_names_the_sizes_of_its_texts_and_each_text_once(tmp_path):
    sizes = (5_000_741, 2_000_563, 10**400, "5 MB")
    used = [{"name": "stories", "bytes": size} for size in sizes]
    text = "It took 5 s and 47 MB."
    learner(tmp_path, answered("train_bpe_tinystories", "a", text, corpora=used))
    page = text_of(compose(status.assess(tmp_path, "2025")).blocks)
    assert "On stories (5.0 MB and 2.0 MB), which stands in for TinyStories. Profile" in page


def test_an_answer_that_differs_between_editions_counts_for_its_own_only(tmp_path):
    both = answered("unicode1", "a", "The same in both.")
    texts = {"2025": "5,115 days", "2026": "4,850 hours"}
    cells = [answered("adamwAccounting", "d", texts[year], edition=year) for year in texts]
    learner(tmp_path, both, *cells)
    for edition, said in texts.items():
        entries = {e.problem.id: e for e in status.assess(tmp_path, edition).entries}
        assert entries["adamwAccounting"].answers["d"].text == said
        assert "a" in entries["unicode1"].answers
    learner(tmp_path, cells[0])
    write_up = status.assess(tmp_path, "2026")
    assert not any(entry.answers for entry in write_up.entries)
    assert any("edition 2025, for which" in note for note in write_up.notes)


def test_the_last_answer_counts_and_its_notebook_is_named(tmp_path):
    learner(tmp_path, answered("unicode1", "a", "Second."))
    notebook(tmp_path / "01_unicode-Copy1.ipynb", answered("unicode1", "a", "First."))
    write_up = status.assess(tmp_path, "2025")
    assert write_up.entries[0].answers["a"].text == "Second."
    (note,) = write_up.notes
    assert "is answered in 01_unicode-Copy1.ipynb and again in 01_unicode.ipynb: the last" in note
