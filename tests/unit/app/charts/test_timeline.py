"""The timeline figure: hue by kind, label by microbatch, waiting in the gaps."""

from collections.abc import Iterable

import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts import palette
from app.charts.timeline import Window, num_microbatches, timeline, whole, within
from backend.pipeline.actions import Action, Backward, Flow, Forward, Message, Recv, Send, Step
from backend.pipeline.timeline import Span, Timeline


def a_timeline(rows: Iterable[Iterable[tuple[Action, float, float]]]) -> Timeline:
    return Timeline(
        tuple(
            Span(rank, index, action, start, end)
            for rank, row in enumerate(rows)
            for index, (action, start, end) in enumerate(row)
        )
    )


HANDED_OVER = Message(Flow.ACTIVATION, 0, 0)

# rank 0:  F0 F1 ....... B0 B1 S
# rank 1:  .. F0 B0 F1 B1
TWO = a_timeline(
    [
        [
            (Forward(0, 0), 0, 1),
            (Send(HANDED_OVER, 1), 1, 1.2),
            (Forward(0, 1), 1, 2),
            (Backward(0, 0), 5, 7),
            (Backward(0, 1), 8, 10),
            (Step(0, 1), 10, 10.5),
        ],
        [
            (Recv(HANDED_OVER, 0), 0, 1.2),
            (Forward(1, 0), 1.2, 2.2),
            (Backward(1, 0), 2.2, 4.2),
            (Forward(1, 1), 4.2, 5.2),
            (Backward(1, 1), 5.2, 7.2),
        ],
    ]
)


def bars(figure: go.Figure, name: str) -> list[go.Bar]:
    return [trace for trace in figure.data if trace.name == name]


def test_hue_is_the_kind_and_the_label_is_the_microbatch() -> None:
    figure = timeline(whole(TWO))
    (forward,) = bars(figure, "forward")
    assert forward.marker.color == palette.FORWARD
    assert list(forward.text) == ["0", "1", "0", "1"]
    assert list(forward.y) == [0, 0, 1, 1]
    assert list(forward.base) == pytest.approx([0, 1, 1.2, 4.2])
    assert [trace.marker.color for trace in bars(figure, "backward")] == [palette.BACKWARD]


def test_gaps_are_drawn_as_waiting_and_receives_are_not_bars() -> None:
    figure = timeline(whole(TWO))
    (waiting,) = bars(figure, "waiting")
    found = [
        (rank, start, start + length)
        for rank, start, length in zip(waiting.y, waiting.base, waiting.x, strict=True)
    ]
    expected = [(0, 2, 5), (0, 7, 8), (1, 0, 1.2), (1, 7.2, 10.5)]
    assert [pytest.approx(gap) for gap in expected] == found
    assert not bars(figure, "receive")


def test_a_ghost_lies_below_in_the_same_row_without_labels() -> None:
    figure = timeline(whole(TWO), whole(TWO))
    measured, ghost = bars(figure, "forward")
    assert ghost.offset > measured.offset + measured.width - 1e-9
    assert ghost.offset + ghost.width < 0.5
    assert ghost.text is None
    assert not ghost.showlegend
    assert "predicted" in ghost.hovertext[0]


def test_rows_are_named_and_rank_0_is_on_top() -> None:
    figure = timeline(whole(TWO), rank_names=("rank 0 · stage 0", "rank 1 · stage 1"))
    assert list(figure.layout.yaxis.ticktext) == ["rank 0 · stage 0", "rank 1 · stage 1"]
    low, high = figure.layout.yaxis.range
    assert low > high


def test_the_axis_has_a_unit_that_fits() -> None:
    short = a_timeline([[(Forward(0, 0), 0, 0.004)]])
    assert timeline(whole(short)).layout.xaxis.ticksuffix == " ms"
    assert timeline(whole(TWO)).layout.xaxis.ticksuffix == " s"


def test_an_empty_timeline_is_an_empty_figure() -> None:
    assert num_microbatches(Timeline(())) == 0
    assert timeline(whole(Timeline(()))).layout.height > 0


def test_a_window_starts_at_its_own_second_0_and_keeps_what_happens_meanwhile() -> None:
    found = within(TWO, Window(1, 2))
    assert found.seconds == 9  # from the first forward of microbatch 1 to its last backward
    kinds = {(span.rank, type(span.action).__name__) for span in found.spans}
    assert (1, "Forward") in kinds
    assert min(s.start for s in found.spans if s.action == Forward(0, 1)) == 0
    assert any(span.action == Backward(0, 0) for span in found.spans)  # not a false gap
    assert not any(span.action == Forward(0, 0) for span in found.spans)


@given(st.integers(1, 30), st.data())
def test_every_microbatch_of_a_window_is_in_it(total: int, data: st.DataObject) -> None:
    row = [(Forward(0, m), float(2 * m), 2 * m + 1.5) for m in range(total)]
    first = data.draw(st.integers(0, total - 1))
    stop = data.draw(st.integers(first + 1, total))
    found = within(a_timeline([row]), Window(first, stop))
    assert {span.action for span in found.spans} == {Forward(0, m) for m in range(first, stop)}
    assert num_microbatches(a_timeline([row])) == total
