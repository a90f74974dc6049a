"""Columns of spans say the same as the spans, and their figures are those of the backend."""

import json
import random
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts.bars import KINDS, Bars, bars_of, read_bars, with_loading
from app.charts.canvas import canvas_bytes, expected_seconds
from app.charts.deviations import DATA, deviations, spent, waiting
from backend.cluster.presets import local
from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.bubbles import bubble
from backend.pipeline.columns import encode
from backend.pipeline.notation import format_action
from backend.pipeline.timeline import Span, Timeline
from backend.prediction.predict import predicted_program
from tests.app import seed
from tests.oracles.comparison import attribution, compare

NUMBERS = st.integers(0, 10**6)
MESSAGES = st.builds(Message, st.sampled_from(Flow), NUMBERS, NUMBERS)
GROUPS = st.lists(NUMBERS, min_size=1, max_size=3).map(tuple)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    *(
        st.builds(kind, NUMBERS, NUMBERS, NUMBERS)
        for kind in (Forward, Recompute, Backward, BackwardInput, BackwardWeight)
    ),
    st.builds(Step, NUMBERS, NUMBERS),
    st.builds(AllReduce, NUMBERS, GROUPS, NUMBERS),
    st.builds(Average, NUMBERS, GROUPS, NUMBERS),
    st.builds(Send, MESSAGES, NUMBERS),
    st.builds(Recv, MESSAGES, NUMBERS),
)


def told(action: Action) -> tuple[int, int, int, int]:
    """Stage, microbatch, version, peer as the action itself says them; -1 for none."""
    message = getattr(action, "message", None)
    if message is not None:
        peer = action.to if isinstance(action, Send) else action.source  # type: ignore[union-attr]
        return message.stage, message.microbatch, -1, peer
    return action.stage, getattr(action, "microbatch", -1), action.version, -1  # type: ignore[union-attr]


def test_the_loading_of_data_is_drawn_beside_the_forwards_that_it_serves() -> None:
    spans = [Span(rank, 0, Forward(0, rank), 0.0, 1.0) for rank in (0, 1)]
    bars, data = bars_of(Timeline.of(tuple(spans))), bars_of(Timeline.of(tuple(spans[:1])))
    both = with_loading(bars, data)
    assert [KINDS[kind] for kind in both.kind] == ["F", "D", "F"]
    assert both.rank.tolist() == [0, 0, 1]
    assert both.microbatch.tolist() == [0, 0, 1]
    assert len(set(zip(both.rank.tolist(), both.index.tolist(), strict=True))) == 3
    assert with_loading(bars, None) is bars


@given(st.lists(ACTIONS, max_size=20))
def test_every_action_is_read_as_it_was_written(actions: list[Action]) -> None:
    texts = [format_action(action) for action in actions]
    spans = (Span(0, index, action, 0.0, 1.0) for index, action in enumerate(actions))
    found = read_bars([encode(Timeline.of(spans))])
    kind = found.kind.tolist()
    numbers = (c.tolist() for c in (found.stage, found.microbatch, found.version, found.peer))
    letters = [next(c for c in text if c in KINDS) for text in texts]
    assert [KINDS[k] for k in kind] == letters
    assert list(zip(*numbers, strict=True)) == [told(action) for action in actions]


def timelines() -> tuple[Timeline, Timeline]:
    """A predicted timeline with replicas, and a shaken copy of it, cut off at its end."""
    plan = seed.predicted(seed.a_profile(), local(3))[0].plan
    _, predicted = predicted_program(seed.a_profile(), local(3), plan, 24)
    noise = random.Random(1)
    spans = [seed._shaken(span, noise) for span in predicted.spans]
    return Timeline.of(tuple(spans[:-7])), predicted


def test_batches_of_ranks_are_one_timeline_in_order() -> None:
    _, timeline = timelines()
    by_rank = [[s for s in timeline.spans if s.rank == rank] for rank in (2, 0, 1)]
    found, whole = read_bars([encode(Timeline.of(spans)) for spans in by_rank]), bars_of(timeline)
    for column in fields(Bars):
        assert np.array_equal(getattr(found, column.name), getattr(whole, column.name))
    assert found.makespan == pytest.approx(timeline.makespan)
    assert len(read_bars([])) == 0
    assert read_bars([]).makespan == 0.0


def test_the_figures_are_those_of_the_readable_path() -> None:
    measured, predicted = timelines()
    ours, theirs = bars_of(measured), bars_of(predicted)
    assert waiting(ours) == pytest.approx(bubble(measured))
    for mine, readable in zip(spent(ours), attribution(measured), strict=True):
        for cause, value in readable.items():
            assert mine.get(cause, 0.0) == pytest.approx(value, abs=1e-12)
    found, readable_join = deviations(ours, theirs), compare(measured, predicted)
    assert found.unmatched == readable_join.unmatched
    assert found.median_share == pytest.approx(readable_join.median_share)
    assert len(found.ours) == len(readable_join.deviations)
    largest = [abs(one.seconds) for one in readable_join.largest(5)]
    assert np.abs(found.seconds[found.largest(5)]) == pytest.approx(largest)


def test_a_forward_that_waits_for_its_samples_spends_that_on_data() -> None:
    did = [Span(0, 0, Forward(0, 0), 0.0, 4.0), Span(0, 1, Forward(0, 1), 4.0, 8.0)]
    loaded = [
        Span(0, 0, Forward(0, 0), 0.0, 1.0),  # at its turn
        Span(0, 1, Forward(0, 1), 1.0, 3.5),  # ahead, beside the first one
        Span(0, 1, Forward(0, 1), 3.5, 4.5),  # its targets came half a second late
    ]
    measured, loading = (bars_of(Timeline.of(tuple(spans))) for spans in (did, loaded))
    (row,) = spent(measured, {DATA: loading})
    assert row == pytest.approx({DATA: 1.5, "forward": 6.5})


def test_a_step_that_copies_weights_spends_that_on_the_checkpoint() -> None:
    did = [Span(1, 0, Step(1, 1), 0.0, 2.0), Span(1, 1, Step(1, 2), 2.0, 5.0)]
    saved = [Span(1, 1, Step(1, 2), 3.0, 4.5)]
    measured, saving = (bars_of(Timeline.of(tuple(spans))) for spans in (did, saved))
    _, row = spent(measured, {"checkpoint": saving})
    assert row == pytest.approx({"optimizer": 3.5, "checkpoint": 1.5})


def test_kinds_of_action_are_summed_up() -> None:
    measured, predicted = (bars_of(timeline) for timeline in timelines())
    found = deviations(measured, predicted)
    kinds = found.by_kind()
    assert sum(kind.number for kind in kinds) == len(found.ours)
    assert sum(kind.longer for kind in kinds) == pytest.approx(float(found.seconds.sum()))
    assert {"forward", "backward"} <= {kind.word for kind in kinds}


def unpacked(data: bytes) -> tuple[dict, list[dict[str, np.ndarray]]]:
    """The header and the columns, as the canvas reads them."""
    kinds = {"f32": "<f4", "i32": "<i4", "i16": "<i2", "i8": "i1", "u32": "<u4", "u8": "u1"}
    header = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])
    sets = [
        {
            name: np.frombuffer(data, kinds[kind], count, at)
            for name, (kind, at, count) in one["columns"].items()
        }
        for one in header["sets"]
    ]
    assert all(at % 8 == 0 for one in header["sets"] for _, at, _ in one["columns"].values())
    return header, sets


def test_the_canvas_gets_every_bar_of_every_row() -> None:
    measured, predicted = (bars_of(timeline) for timeline in timelines())
    names = [f"rank {rank}" for rank in range(3)]
    header, (upper, ghost) = unpacked(
        canvas_bytes(measured, predicted, names=names, alt="x", param="window", group="g")
    )
    assert header["names"] == names
    assert header["extent"] == pytest.approx(max(measured.end.max(), predicted.end.max()))
    drawn = (measured.kind != KINDS.index("<")) & (measured.end > measured.start)
    assert upper["rows"][-1] == len(upper["ticks"]) == drawn.sum()
    for track in range(6):
        starts = upper["ticks"][upper["rows"][track] : upper["rows"][track + 1]].astype(float)
        assert (np.diff(starts) >= 0).all()
    starts = np.sort(upper["ticks"] * header["tick"])
    assert starts == pytest.approx(np.sort(measured.start[drawn]), abs=1e-9)
    assert ghost["long"].sum() == pytest.approx(
        float(predicted.seconds[predicted.kind != KINDS.index("<")].sum()), rel=1e-5
    )
    assert "expected" in upper
    assert np.nanmax(upper["expected"]) > 0


def test_an_action_that_only_one_has_expects_nothing() -> None:
    one = bars_of(Timeline.of((Span(0, 0, Forward(0, 0), 0, 1), Span(0, 1, Forward(0, 1), 1, 2))))
    other = bars_of(Timeline.of((Span(0, 0, Forward(0, 0), 0, 3), Span(0, 1, Forward(0, 7), 3, 4))))
    expected = expected_seconds(one, other)
    assert expected[0] == 3
    assert np.isnan(expected[1])
