"""The slider of notebook 05 shows the closed form, live and stored."""

import re
from html import unescape

import matplotlib.image
import pytest

from workbook import views
from workbook.optimizer import toys
from workbook.study.notebooks import WIDGET_VIEW


def seen(html):
    """The text of some HTML, its elements apart."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def row(view, step):
    """The cells of one step, as numbers."""
    body = view.html.partition("<tbody>")[2]
    cells = re.findall(r'<td class="number">([^<]*)</td>', body)[4 * step : 4 * step + 4]
    return [float(cell) for cell in cells]


def parts(view):
    """The three buttons and the slider."""
    return view.box.children[1].children


@pytest.mark.parametrize("lr", [1, 10, 50, 99, 100, 101, 1_000])
def test_it_shows_ten_steps_of_the_closed_form(lr):
    view = views.learning_rate_slider(lr)
    losses = toys.relative_losses(lr, 10)
    assert toys.story(lr) in seen(view.html)
    for t in range(10):
        factor = toys.factor(lr, t)
        step, times, squared, loss = row(view, t)
        assert step == t
        assert times == pytest.approx(factor, abs=6e-4)
        assert squared == pytest.approx(factor**2, abs=6e-4)
        assert loss == pytest.approx(losses[t + 1], rel=6e-3)


def test_the_slider_and_the_buttons_move_it():
    view = views.learning_rate_slider(10)
    *buttons, slider = parts(view)
    assert [button.description for button in buttons] == ["10", "100", "1,000"]
    buttons[2].click()
    assert slider.value == 1_000 and "It grows for 99 steps" in seen(view.html)
    buttons[1].click()
    assert "After 4 steps it is exactly 0." in seen(view.html)
    slider.value = 50
    assert "After 1 step it is exactly 0." in seen(view.html)


def test_a_bar_goes_left_for_a_small_loss_and_right_for_a_large_one():
    def widths(lr, step):
        bars = re.findall(r"width: ([\d.]+)rem", views.learning_rate_slider(lr).html)
        return [float(width) for width in bars[2 * step : 2 * step + 2]]

    assert widths(100, 0) == [0, 0]
    assert widths(100, 4) == [6, 0]
    left, right = widths(10, 9)
    assert 0 < left < 1 and right == 0
    assert widths(1_000, 9)[0] == 0 and widths(1_000, 9)[1] == 6


@pytest.mark.parametrize("lr", [1, 100, 1_000, 1_200])
def test_stored_it_is_a_picture_and_words(lr, tmp_path):
    data, metadata = views.learning_rate_slider(lr)._repr_mimebundle_()
    assert set(data) == {WIDGET_VIEW, "image/png", "text/plain"}
    assert metadata["image/png"]["alt"] == data["text/plain"]
    assert f"Learning rate {lr:,}" in data["text/plain"]
    (tmp_path / "view.png").write_bytes(data["image/png"])
    pixels = matplotlib.image.imread(tmp_path / "view.png")[:, :, :3]
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        assert (edge == 1).all()


def test_its_control_is_labelled_and_follows_every_key():
    view = views.learning_rate_slider()
    [control] = view.controls.values()
    assert control.description == "Learning rate" and control.continuous_update
