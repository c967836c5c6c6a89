"""The views of notebook 03 show what the model computes."""

import re

import numpy as np
import pytest
from view_inputs import KEYS, MAPS, QUERIES, ROPE, WORDS, drawn, seen

from workbook.classroom import views
from workbook.classroom.views import transformer


def test_maps_share_one_scale_and_are_named():
    first, second, _ = drawn(transformer.heat_maps).axes
    assert first.images[0].get_clim() == second.images[0].get_clim() == (0, 1)
    assert [ax.get_title() for ax in (first, second)] == ["a", "b"]
    assert [label.get_text() for label in first.get_yticklabels()] == WORDS


def test_the_score_is_that_of_the_turned_vectors():
    view = views.rope_arrows(QUERIES, KEYS, query_at=7, key_at=2)
    score = float(ROPE(QUERIES[0].expand(16, 8))[7] @ ROPE(KEYS[0].expand(16, 8))[2])
    assert "Query at 7, key at 2: the query is 5 positions after the key." in seen(view.html)
    assert f"Their score is {score:.3f}." in seen(view.html)
    pairs = [float(number) for number in re.findall(r"pair \d: ([+-]\d\.\d{3})", view.html)]
    assert len(pairs) == 4 and sum(pairs) == pytest.approx(score, abs=0.002)


def test_only_the_distance_counts():
    view = views.rope_arrows(QUERIES, KEYS)
    scores = {}
    for query, key in ((3, 1), (13, 11), (13, 1), (10, 11)):
        view.controls["query_at"].value = query
        view.controls["key_at"].value = key
        scores[query, key] = re.search(r"Their score is (-?\d\.\d{3})", view.html)[1]
    assert scores[3, 1] == scores[13, 11] != scores[13, 1]
    assert "1 position before the key" in seen(view.html)


@pytest.mark.parametrize("angle", [0, 0.1, -0.1, 3.1, np.pi, -3.1])
def test_the_names_of_two_arrows_never_meet(angle):
    query = np.array([np.cos(angle), np.sin(angle)])
    key = np.array([1.0, 0.0])
    first, second = (arrow.name_at for arrow in transformer.arrows_of(query, key))
    assert np.hypot(*(first - second)) > 0.25


def test_the_weights_of_a_query_stand_below_the_tokens():
    def notes():
        return re.findall(r"<small>(.*?)</small>", view.html)

    view = views.attention_viewer(list("abcdabcd"), MAPS, query=3)
    assert notes() == ["0%", "0%", "100%", "0%", "later", "later", "later", "later"]
    assert "Position 3, d, attends most to position 2, c: 100% of its weight." in seen(view.html)
    assert "The mask hides 4 later ones." in seen(view.html)
    view.controls["head"].value = "evenly"
    assert notes() == ["25%", "25%", "25%", "25%", "later", "later", "later", "later"]
    view.controls["query"].value = 7
    assert "later" not in seen(view.html)
