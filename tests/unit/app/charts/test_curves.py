"""Curves and shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts import palette
from app.charts.curve import PERCENTS, SIZES, curve, round_sizes
from app.charts.overlay import Curve, overlay
from app.charts.shares import attribution, spent_on
from backend.pipeline.actions import AllReduce, Backward, Flow, Forward, Message, Recv, Send, Step
from backend.pipeline.kinds import kind
from backend.runs.events import SUMS_SENT

MIB = 2**20


def test_few_points_have_dots_and_a_target_has_a_level() -> None:
    line, dots, level = curve(4, name="accuracy", target=0.95, share=True)["layer"]
    assert line["mark"]["color"] == palette.CURVE
    assert dots["mark"]["opacity"] == 1
    assert level["encoding"]["y"] == {"datum": 0.95}
    many = curve(400, name="loss")["layer"]
    assert len(many) == 2
    assert many[1]["mark"]["opacity"] == 0


def test_bytes_have_units_where_they_are_drawn() -> None:
    name = "bytes between sites"
    compared = overlay([Curve("run 1", [0.0], [2.0**25], [2.0**25])], axis="updates", name=name)
    for drawn in (curve(4, name=name)["encoding"], compared["layer"][0]["encoding"]):
        assert drawn["y"]["axis"]["labelExpr"] == SIZES
    assert curve(4, name="accuracy", share=True)["encoding"]["y"]["axis"]["labelExpr"] == PERCENTS
    assert curve(4, name="loss")["encoding"]["y"]["axis"] == {}


@pytest.mark.parametrize(
    ("least", "most", "found"),
    [
        (4 * MIB, 9.79 * MIB, [4, 6, 8, 10]),
        (0.9 * MIB, 1.78 * MIB, [0.8, 1.0, 1.2, 1.4, 1.6, 1.8]),
        (9.79 * MIB, 9.79 * MIB, [9.79]),
        (0.0, 0.0, [0.0]),
    ],
)
def test_bytes_stand_at_round_numbers_of_their_unit(
    least: float, most: float, found: list[float]
) -> None:
    values = curve(2, name=SUMS_SENT, values=[least, most])["encoding"]["y"]["axis"]["values"]
    assert [value / MIB for value in values] == pytest.approx(found)


@given(st.floats(0, 1e13), st.floats(0, 1e13))
def test_a_few_sizes_hold_all_values(one: float, other: float) -> None:
    values = round_sizes(*sorted((one, other)))
    assert values[0] <= min(one, other)
    assert values[-1] >= max(one, other) * (1 - 1e-9)
    assert 1 <= len(values) <= 8


def test_several_lines_have_colours_of_their_own_and_marks_have_none_of_them() -> None:
    names = ["stage 0", "last stage"]
    line, dots, level = curve(4, name="accuracy", target=0.9, lines=names)["layer"]
    for drawn in (line, dots):
        assert "color" not in drawn["mark"]
        scale = drawn["encoding"]["color"]["scale"]
        assert scale == {"domain": names, "range": list(palette.SERIES[:2])}
    assert level["mark"]["color"] == palette.NEUTRAL
    assert "color" not in level["encoding"]


def test_a_change_of_plan_is_a_mark() -> None:
    words = {120: "1 · gpipe, 0.62×", 300: "its own plan again"}
    *_, line, other, text, below = curve(400, name="loss", marks=words)["layer"]
    for step, mark, told in ((120, line, text), (300, other, below)):
        assert mark["encoding"]["x"] == told["encoding"]["x"] == {"datum": step}
        assert mark["mark"]["tooltip"] == told["mark"]["text"] == words[step]
    assert text["mark"]["dy"] < below["mark"]["dy"]


def test_shares_of_each_rank_add_up_to_100_percent() -> None:
    rows = [
        ("rank 0", {"forward": 1.0, "backward": 2.0, "idle": 1.0}),
        ("rank 1", {"forward": 3.0, "waiting": 1.0}),
    ]
    figure = attribution(rows)
    assert [sum(trace.x[row] for trace in figure.data) for row in (0, 1)] == [100, 100]
    assert {trace.name for trace in figure.data} == {"forward", "backward", "waiting", "idle"}
    colours = {trace.name: trace.marker.color for trace in figure.data}
    assert list(spent_on(rows).items()) == list(colours.items())
    assert spent_on([("rank 0", {"forward": 0.0})]) == {}


def test_a_rank_without_time_divides_nothing_by_zero() -> None:
    assert len(attribution([("rank 0", {})]).data) == 0


def test_every_action_has_a_word_and_every_word_a_colour() -> None:
    message = Message(Flow.GRADIENT, 1, 0)
    actions = [Forward(0, 0), Backward(0, 0), Step(0), Send(message, 0), Recv(message, 1)]
    for action in [*actions, AllReduce(0, (0, 1), 1)]:
        assert kind(action) in palette.COLOURS


def test_words_on_colours_are_black_or_white() -> None:
    assert palette.on(palette.FORWARD) != palette.on(palette.BACKWARD)
