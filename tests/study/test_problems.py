import ast

import pytest

from workbook.config import EDITIONS
from workbook.study import problems
from workbook.study.problems import PROBLEMS


def test_the_registry_holds_the_38_problems_in_the_order_of_the_handout():
    assert len(PROBLEMS) == 38
    chapters = [problem.chapter for problem in PROBLEMS.values()]
    assert chapters == sorted(chapters)
    assert {chapter: chapters.count(chapter) for chapter in chapters} == {
        2: 7,
        3: 11,
        4: 6,
        5: 3,
        6: 1,
        7: 10,
    }


def test_every_problem_has_a_check():
    assert [p.id for p in PROBLEMS.values() if not callable(p.checker())] == []


def test_parts_with_a_requirement_or_an_example_exist():
    for problem in PROBLEMS.values():
        assert {*problem.requires, *problem.takes} <= set(problem.parts or ("",)), problem.id


def test_signatures_are_python_and_are_put_in_words():
    for problem in PROBLEMS.values():
        if problem.name:
            ast.parse(f"def {problem.signature.partition(', called')[0]}: 0")
    in_words = {p.id: p.hand_in for p in PROBLEMS.values() if p.hand_in}
    assert in_words["softmax"] == "the function softmax(x, dim)"
    assert in_words["rope"].endswith("(theta, d_k, max_seq_len), called with (x, positions)")
    assert in_words["checkpointing"] == "the pair (save_checkpoint, load_checkpoint)"


def test_points_are_those_of_each_edition():
    without = [p.id for p in PROBLEMS.values() if p.points["2025"] is None]
    assert without == ["cross_entropy", "learning_rate_schedule"]
    assert all(PROBLEMS[id].points["2026"] == 1 for id in without)
    assert PROBLEMS["train_bpe"].points == {"2025": 15, "2026": 15}
    chapter_2 = [p.points["2025"] for p in PROBLEMS.values() if p.chapter == 2]
    assert chapter_2 == [1, 3, 15, 2, 2, 15, 4]


def test_only_one_id_differs_between_the_editions():
    differing = [p for p in PROBLEMS.values() if len(set(p.ids.values())) > 1]
    assert [p.ids for p in differing] == [{"2025": "adamwAccounting", "2026": "adamw_accounting"}]


def test_both_spellings_give_the_same_problem():
    assert problems.get("adamw_accounting") is problems.get("adamwAccounting")


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=lambda p: p.id)
def test_every_record_is_whole(problem):
    assert set(problem.points) == set(problem.ids) == set(EDITIONS)
    assert (problem.kind == "code") == bool(problem.hand_in)
    assert tuple(problem.hints) == (problem.parts or ("",))
    for nudge, idea in problem.hints.values():
        assert nudge.endswith((".", "?")) and idea.endswith((".", "?"))
    assert problem.title and problem.notebook[:2].isdigit()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train-bpe", "train_bpe"),
        ("trainbpe", "train_bpe"),
        ("unicode_1", "unicode1"),
        ("AdamW_accounting", "adamw_accounting"),
        ("toknizer", "tokenizer"),
    ],
)
def test_an_unknown_id_names_the_nearest_one(typed, meant):
    with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
        problems.get(typed)


@pytest.mark.parametrize("nonsense", [None, 3, ["train_bpe"], problems.get])
def test_what_is_no_text_is_no_id(nonsense):
    with pytest.raises(ValueError, match="expected a problem's id"):
        problems.get(nonsense)


def test_parts_are_recognised_in_the_ways_they_are_written():
    unicode2 = problems.get("unicode2")
    assert [problems.part_of(unicode2, part) for part in ("a", "A", "(b)", "", None)] == [
        "a",
        "a",
        "b",
        None,
        None,
    ]
    with pytest.raises(ValueError, match="unicode2 has the parts a, b, c; there is no part 'd'"):
        problems.part_of(unicode2, "d")
    with pytest.raises(ValueError, match="train_bpe has no parts"):
        problems.part_of(problems.get("train_bpe"), "a")


def test_what_is_asked_on_the_course_corpora_is_marked():
    asks = {p.id: p.asks_corpora for p in PROBLEMS.values() if p.asks_corpora}
    assert asks["train_bpe_tinystories"] == asks["generate"] == ("tinystories",)
    assert asks["main_experiment"] == ("owt",)
    assert asks["tokenizer_experiments"] == ("tinystories", "owt")
    assert "train_bpe" not in asks
