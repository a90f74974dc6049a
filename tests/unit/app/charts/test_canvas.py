"""What a timeline's canvas is told besides its columns: the rows and the window at first."""

from typing import Any

import numpy as np
import orjson
import pytest

from app.charts.bars import Bars, bars_of
from app.charts.canvas import canvas_bytes, opening, partners, row_names
from backend.pipeline.actions import Backward, Forward
from backend.pipeline.timeline import Span, Timeline


def straight(total: int) -> Bars:
    """One rank, a forward and a backward per microbatch, a second each."""
    spans = [
        Span(
            0,
            2 * m + back,
            (Backward if back else Forward)(0, m),
            2.0 * m + back,
            2.0 * m + back + 1,
        )
        for m in range(total)
        for back in (0, 1)
    ]
    return bars_of(Timeline.of(spans))


def test_a_long_timeline_opens_where_numbers_can_be_read() -> None:
    assert opening(straight(40)) == pytest.approx((0.0, 20.0))


@pytest.mark.parametrize("total", [0, 1, 15])
def test_a_short_one_is_shown_whole(total: int) -> None:
    assert opening(straight(total)) is None


def test_ranks_without_a_name_are_numbered() -> None:
    two = Bars(*(np.concatenate((c, c)) for c in _columns(straight(1))))
    two.rank[2:] = 1
    assert row_names(("rank 0 · stage 0",), two) == ["rank 0 · stage 0", "rank 1"]


def test_what_was_loaded_twice_for_an_action_has_no_partner() -> None:
    """A stage that is first and last at once loads inputs and targets for each forward."""
    predicted, loaded = straight(3), straight(4)
    loaded.index[:] = len(predicted) + loaded.index // 2
    measured = Bars(
        *(np.concatenate(both) for both in zip(_columns(predicted), _columns(loaded), strict=True))
    )
    ours, theirs = partners(measured, predicted)
    assert ours.tolist() == theirs.tolist() == list(range(6))


def test_slack_is_told_of_each_action() -> None:
    bars = straight(2)
    told = canvas_bytes(bars, names=["rank 0"], alt="", slack=np.array([0.0, 1e-12, 0.5, 2.0]))
    header = orjson.loads(told[4 : 4 + int.from_bytes(told[:4], "little")])
    _, place, count = header["sets"][0]["columns"]["slack"]
    found = np.frombuffer(told, np.float32, count, place)
    assert found.tolist() == [0.0, 0.0, 0.5, 2.0]  # what is below a tick of the axis is none
    plain = canvas_bytes(bars, names=["rank 0"], alt="")
    assert b'"slack"' not in plain


def _columns(bars: Bars) -> list[np.ndarray]:
    return [getattr(bars, name) for name in Bars.__slots__]


def on_stages(*stages: int) -> Bars:
    """A forward per rank, of these stages."""
    spans = (Span(r, 0, Forward(stage, 0), 0.0, 1.0) for r, stage in enumerate(stages))
    return bars_of(Timeline.of(tuple(spans)))


def header(bars: Bars, ghost: Bars | None = None) -> dict[str, Any]:
    packed = canvas_bytes(bars, ghost, names=row_names((), bars), alt="")
    return orjson.loads(packed[4 : 4 + int.from_bytes(packed[:4], "little")])


def test_neighbouring_replicas_fold_into_one_row() -> None:
    told = header(on_stages(0, 0, 0, 1, 2, 2))
    assert told["folds"] == [{"first": 0, "count": 3, "name": "stage 0 · 1 of 3"}]
    assert told["folded"]


def test_measured_replicas_are_shown_one_by_one_at_first() -> None:
    bars = on_stages(*[0] * 15, 1)
    assert not header(bars, bars)["folded"]
    assert not header(on_stages(0, 1, 2))["folds"]
