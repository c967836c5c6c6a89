"""The views of notebook 04 show what the formulas give."""

from functools import partial

import pytest
from view_inputs import STORED, drawn, seen, texts, walk
from work import calls

from workbook import views
from workbook.accounting.assumptions import SWITCHES
from workbook.config import EDITIONS
from workbook.views import accounting
from workbook.views.accounting import QUESTIONS, State


def test_shares_are_of_the_row_and_small_ones_have_no_number():
    assert texts(drawn(accounting.shares)) == ["80%", "", "10%", "", "10%", "96%"]


def test_a_band_too_thin_for_its_name_has_it_above():
    ax = drawn(accounting.shares_along)
    assert texts(ax) == [" feed-forward ", " scores ", "head, at most 4%"]


def test_a_bar_above_the_limit_says_so():
    assert texts(drawn(accounting.stacked)) == ["6.5", "78.5", "106.5\ntoo much", "80 GB"]


def test_times_are_marked_where_lines_run():
    ax = drawn(accounting.days)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    assert shown == ["1 day", "1 week", "1 month", "1 year", "10 years"]
    assert texts(ax) == ["slow", "fast"]


def test_the_published_number_that_comes_out_is_bold():
    ax = drawn(accounting.outcomes)
    bold = [text.get_text() for text in ax.texts if text.get_weight() == "bold"]
    assert bold == ["W1: 3   this is it"] and len(ax.texts) == 4


def test_a_number_is_drawn_bit_by_bit():
    shown = texts(drawn(accounting.float_bits))
    bits = "".join(text for text in shown if text in "01")
    assert bits == "".join(each.sign + each.exponent + each.mantissa for each in STORED.values())
    assert "= 0.0999755859, normal" in shown


def test_ranges_reach_from_the_smallest_to_the_largest_number():
    bars = drawn(accounting.float_ranges).patches
    reach = min(bar.get_x() for bar in bars), max(bar.get_x() + bar.get_width() for bar in bars)
    assert reach == pytest.approx((-44.85, 38.53), abs=0.01)


def shown_boxes(view):
    """The switches that can be seen, by their words."""
    return {
        control.description: control
        for name, control in view.controls.items()
        if "=" in name and control.layout.display != "none"
    }


def presets(view):
    """The buttons that flip what gives a number, by their labels."""
    return {part.description: part for part in walk(view.box) if hasattr(part, "click")}


def flip(view, start):
    """Flip the switch whose words begin like this."""
    (box,) = [box for words, box in shown_boxes(view).items() if words.startswith(start)]
    box.value = not box.value


def test_the_explorer_shows_bits_and_what_became_of_a_number():
    view = views.float_explorer("70000")
    text = seen(view.html)
    assert "float16 0 11111 0000000000 inf overflow: the largest number is 65504" in text
    assert "bfloat16 0 10001111 0001001 70144 off by 0.0021 of its size" in text
    view.controls["text"].value = "2^-25"
    assert "underflow: the smallest positive number is 5.96e-08" in seen(view.html)
    view.controls["text"].value = "3e-6"
    assert "subnormal, its digits run out: off by 0.0066 of its size" in seen(view.html)


def test_the_buttons_halve_and_double_the_number():
    view = views.float_explorer("3")
    field, halve, double = view.box.children[1].children
    halve.click()
    assert field.value == "1.5"
    double.click()
    double.click()
    assert field.value == "6.0" and "Python holds 6.0" in seen(view.html)
    field.value = "six"
    double.click()
    assert field.value == "six" and "'six' is not a number. Try 0.1" in seen(view.html)


def test_the_switchboard_begins_with_what_is_asked():
    text = seen(views.switchboard().html)
    assert "No switch is on" in text
    assert "parameters 2,127,057,600 2,127,057,600" in text
    assert "W3 2127057600 this is it" in text


def test_a_flipped_switch_gives_the_number_that_somebody_published():
    view = views.switchboard()
    flip(view, "the final norm is left out")
    assert "parameters 2,127,057,600 2,127,056,000" in seen(view.html)
    assert "W1 2127056000 this is it" in seen(view.html)
    flip(view, "the final norm is left out")
    assert "No switch is on" in seen(view.html)


def test_an_assumption_has_one_value():
    view = views.switchboard()
    flip(view, "the final norm is left out")
    flip(view, "the norms are left out")
    on = [words for words, box in shown_boxes(view).items() if box.value]
    assert on == ["the norms are left out"]


both_editions = pytest.mark.parametrize("edition", EDITIONS)
every_question = pytest.mark.parametrize("question", QUESTIONS)


@both_editions
@every_question
def test_every_switch_that_is_offered_changes_a_number(question, edition):
    asked = State(question, edition, ())
    offered = shown_boxes(views.switchboard(question, edition))
    assert len(offered) >= 3
    for switch in SWITCHES:
        if switch.words in offered and switch.words != "80 GB are read as 80 GiB":
            assert State(question, edition, (switch,)).now != asked.right, switch.words


@both_editions
@every_question
def test_every_preset_flips_what_gives_its_claim(question, edition):
    view = views.switchboard(question, edition)
    asked = view.html
    for label, button in presets(view).items():
        button.click()
        found = seen(view.html).partition("Published numbers")[2]
        assert label == "as asked" or "this is it" in found, label
    presets(view)["as asked"].click()
    assert view.html == asked


def test_switches_of_another_question_rest():
    view = views.switchboard("AdamW")
    flip(view, "the weight decay")
    view.controls["question"].value = "parameters"
    assert "No switch is on" in seen(view.html)
    assert not any("decay" in words for words in shown_boxes(view))


def test_the_edition_changes_what_is_asked():
    view = views.switchboard("time")
    assert "5,115.2 days" in seen(view.html)
    view.controls["edition"].value = "2026"
    assert "202.1 days (4,850 hours)" in seen(view.html)


def test_a_flipped_switch_takes_little_work():
    view = views.switchboard("time")
    for _ in range(3):
        assert calls(partial(flip, view, "the head is left out")) < 50_000
