"""The views of notebook 07 show the probabilities that they are given."""

from view_inputs import VIEWS, drawn, legend, seen, texts

from workbook.classroom.views import generation


def test_where_top_p_cuts_is_named():
    assert legend(drawn(generation.reach)) == ["sure: 1 token", "even: 9 tokens"]


def test_a_probability_has_a_tone_and_a_number():
    tones = {1: "plain", 0.3: "tone0", 0.01: "tone1", 0: "strong"}
    assert {share: generation.tone(share) for share in tones} == tones
    assert [generation.percent(share) for share in tones] == ["100%", "30%", "1%", "<1%"]


def test_a_judged_text_has_its_probabilities_below_the_tokens():
    shown = [text for text in texts(drawn(generation.judged_text)) if text]
    assert shown[:4] == [">50%", "10-50%", "1-10%", "<1%"]
    assert shown[4:] == ["Once", "90%", "␣upon", "20%", "↵", "3%", r"\xf0\x9f", "<1%"]


def test_the_chances_are_what_the_function_gives():
    view = VIEWS["next_token_chances"][0]()
    assert "Temperature 1, top-p 1: 5 tokens of 5 may come next." in seen(view.html)
    assert "The likeliest is ␣fox, with 60%." in seen(view.html)
    assert seen(view.html).count("<1% <1%") == 1
    assert "␣fox 60%, 60%" in repr(view)
    view.controls["top_p"].value = 0.8
    assert "2 tokens of 5 may come next. The likeliest is ␣fox, with 71%." in seen(view.html)
    assert seen(view.html).count("cut") == 3
