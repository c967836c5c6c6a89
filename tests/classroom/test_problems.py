import ast

import pytest

from workbook.classroom import problems
from workbook.classroom.checks.by_problem import CHECKS
from workbook.classroom.problems import PROBLEMS, STEPS
from workbook.config import EDITIONS


def test_the_registry_holds_the_38_problems_in_the_order_of_the_handout():
    assert len(PROBLEMS) == 38
    chapters = [problem.chapter for problem in PROBLEMS.values()]
    assert chapters == sorted(chapters)
    assert [chapters.count(chapter) for chapter in range(2, 8)] == [7, 11, 6, 3, 1, 10]


def test_signatures_are_python_and_are_put_in_words():
    for problem in PROBLEMS.values():
        if problem.name:
            ast.parse(f"def {problem.signature.partition(', called')[0]}: 0")
    in_words = {p.id: p.hand_in for p in PROBLEMS.values() if p.hand_in}
    assert in_words["softmax"] == "the function softmax(x, dim)"
    assert in_words["rope"].endswith("(theta, d_k, max_seq_len), called with (x, positions)")
    assert in_words["checkpointing"] == "the pair (save_checkpoint, load_checkpoint)"


def test_only_one_id_differs_between_the_editions():
    differing = [p for p in PROBLEMS.values() if len(set(p.ids.values())) > 1]
    assert [p.ids for p in differing] == [{"2025": "adamwAccounting", "2026": "adamw_accounting"}]
    assert problems.with_id("adamw_accounting") is problems.with_id("adamwAccounting")


def test_every_record_is_whole():
    assert CHECKS.keys() == PROBLEMS.keys() | STEPS.keys()
    for problem in PROBLEMS.values():
        assert {*problem.requires, *problem.takes} <= set(problem.parts or ("",)), problem.id
        assert set(problem.points) == set(problem.ids) == set(EDITIONS), problem.id
        assert (problem.kind == "code") == bool(problem.hand_in), problem.id
        assert tuple(problem.hints) == (problem.parts or ("",)), problem.id
        for nudge, idea in problem.hints.values():
            assert nudge.endswith((".", "?")) and idea.endswith((".", "?")), problem.id
        assert problem.title and problem.notebook[:2].isdigit(), problem.id


def test_calls_are_written_as_in_python():
    assert problems.in_python("tick", "unicode2", "a") == 'tick("unicode2", "a")'
    assert problems.in_python("tick", "generate", None) == 'tick("generate")'
    assert problems.in_python("tick", "generate", None, 1, 2) == 'tick("generate", None, 1, 2)'
    with_text = problems.in_python("answer", "unicode2", "a", '"""\n"""', "figure=None")
    assert with_text == 'answer("unicode2", "a", """\n""", figure=None)'


def test_an_unknown_id_names_the_nearest_one():
    for typed, said in (
        ("trainbpe", "did you mean 'train_bpe'"),
        ("AdamW_accounting", "did you mean 'adamw_accounting'"),
        (["train_bpe"], "expected a problem's id"),
    ):
        with pytest.raises(ValueError, match=said):
            problems.with_id(typed)


def test_parts_are_recognised_in_the_ways_they_are_written():
    unicode2 = problems.with_id("unicode2")
    parts = [problems.part_of(unicode2, part) for part in ("a", "A", "(b)", "", None)]
    assert parts == ["a", "a", "b", None, None]
    with pytest.raises(ValueError, match="unicode2 has the parts a, b, c; there is no part 'd'"):
        problems.part_of(unicode2, "d")
    with pytest.raises(ValueError, match="train_bpe has no parts"):
        problems.part_of(problems.with_id("train_bpe"), "a")
