"""The picture of a run: every kind of action has its colour on the row of its rank."""

from io import BytesIO

import pytest
from PIL import Image

from app.charts import palette
from app.exports import timeline_picture as drawn
from backend.bootstrap import Backend
from backend.errors import NotFound
from tests.app import seed


@pytest.fixture
def backend(home) -> Backend:
    return seed.fresh()


def colours(image: Image.Image, rank: int) -> set[str]:
    """Those in the middle of the rank's bars, below their labels."""
    y = drawn.TOP + drawn.ROW * rank + drawn.BAR - 8
    row = [image.getpixel((x, y)) for x in range(drawn.GUTTER, drawn.WIDTH - drawn.RIGHT)]
    return {"#{:02X}{:02X}{:02X}".format(*pixel) for pixel in row}


def test_bars_have_their_colours_and_the_prediction_is_pale_below(backend: Backend) -> None:
    found = seed.everything(backend)
    data = drawn.timeline_picture(backend, backend.runs.get(found.succeeded))
    image = Image.open(BytesIO(data)).convert("RGB")
    assert image.size == (drawn.WIDTH, drawn.TOP + 2 * drawn.ROW + drawn.BOTTOM)
    for rank in range(2):
        assert {palette.FORWARD, palette.BACKWARD, drawn.REST} <= colours(image, rank)
    ghost = {
        "#{:02x}{:02x}{:02x}".format(*image.getpixel((x, drawn.TOP + drawn.BAR + 8)))
        for x in range(drawn.GUTTER, drawn.WIDTH - drawn.RIGHT)
    }
    assert "#7fb8d8" in ghost  # forward, half way to white


@pytest.mark.parametrize(
    ("least", "step"),
    [(0.0481, 0.05), (1.0, 1.0), (0.0011, 0.002), (30, 50), (7, 10), (0.02, 0.02)],
)
def test_ticks_are_at_round_times(least: float, step: float) -> None:
    assert drawn.round_step(least) == pytest.approx(step)


def test_a_run_without_a_timeline_has_no_picture(backend: Backend) -> None:
    found = seed.everything(backend)
    with pytest.raises(NotFound, match="no timeline"):
        drawn.timeline_picture(backend, backend.runs.get(found.profiled))
