"""The views of notebook 04 show what the formulas give."""

import pytest
from view_inputs import drawn, seen, texts

from workbook.accounting.assumptions import SWITCHES
from workbook.classroom import views
from workbook.classroom.views import accounting
from workbook.classroom.views.accounting import QUESTIONS, numbers
from workbook.config import EDITIONS


def test_a_limit_is_a_line_and_bars_have_their_totals():
    ax = drawn(accounting.stacked)
    assert texts(ax) == ["6.5", "78.5", "106.5", "limit: 80"]


def shown_boxes(view):
    """The switches that can be seen, by their words."""
    boxes = [control for name, control in view.controls.items() if "=" in name]
    return {box.description: box for box in boxes if box.layout.display != "none"}


def test_the_explorer_shows_bits_and_what_became_of_a_number():
    view = views.float_explorer("70000")
    text = seen(view.html)
    assert "float16 0 11111 0000000000 inf overflow: the largest number is 65504" in text
    assert "bfloat16 0 10001111 0001001 70144 off by 0.0021 of its size" in text
    view.controls["text"].value = "2^-25"
    assert "underflow: the smallest positive number is 5.96e-08" in seen(view.html)
    view.controls["text"].value = "3e-6"
    assert "subnormal, its digits run out: off by 0.0066 of its size" in seen(view.html)


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_switch_that_is_offered_changes_a_number(question, edition):
    asked = numbers(question, edition)
    offered = shown_boxes(views.switchboard(question, edition))
    assert len(offered) >= 3
    for switch in SWITCHES:
        if switch.words in offered:
            assert numbers(question, edition, switch) != asked, switch.words


def flipped(question, edition, name):
    """A number with each switch on that its question offers, the largest first."""
    switches = accounting.offered(question, edition)
    found = [numbers(question, edition, switch)[name].value for switch in switches]
    return sorted(found, reverse=True)


def test_the_riddles_of_notebook_04_have_one_answer_each():
    for edition in EDITIONS:
        first, second, *_ = flipped("memory, batch", edition, "largest batch")
        assert first == 8 > second
    usual = numbers("parameters", "2025")["parameters"].value
    apart = [abs(usual - count) for count in flipped("parameters", "2025", "parameters")]
    first, second, third, *_ = sorted(apart, reverse=True)
    assert first == second > third


def test_a_flipped_switch_changes_the_number_and_puts_out_those_of_the_same_assumption():
    view = views.switchboard()
    assert "No switch is on" in seen(view.html)
    assert "parameters 2,127,057,600 2,127,057,600" in seen(view.html)
    shown_boxes(view)["the final norm is left out"].value = True
    assert "parameters 2,127,057,600 2,127,056,000" in seen(view.html)
    shown_boxes(view)["the norms are left out"].value = True
    on = [words for words, box in shown_boxes(view).items() if box.value]
    assert on == ["the norms are left out"]
    view.controls["question"].value = "AdamW"
    assert "No switch is on" in seen(view.html), "a switch of another question rests"
    assert any("decay" in words for words in shown_boxes(view))
    view.controls["question"].value = "parameters"
    assert not any("decay" in words for words in shown_boxes(view))
