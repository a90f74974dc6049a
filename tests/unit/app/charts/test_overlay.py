"""Several runs in one picture."""

from app.charts.curve import PERCENTS
from app.charts.overlay import RUN, SERIES, SMOOTHED, Curve, overlay, rows

LINES = [
    Curve("1 · a", [1, 2], [0.5, 0.25], [0.5, 0.4]),
    Curve("2 · b", [1], [0.75], [0.75]),
]


def test_rows_hold_every_point_of_every_run() -> None:
    assert rows(LINES) == {
        "run": ["1 · a", "1 · a", "2 · b"],
        "x": [1, 2, 1],
        "value": [0.5, 0.25, 0.75],
        "smoothed": [0.5, 0.4, 0.75],
    }


def test_each_run_has_its_look_and_the_order_of_the_page() -> None:
    drawn = overlay(LINES, axis="epochs", name="loss")
    scale = drawn["encoding"]["color"]["scale"]
    assert scale["domain"] == ["1 · a", "2 · b"]
    assert scale["range"] == [SERIES[0][0], SERIES[1][0]]
    assert drawn["encoding"]["x"]["title"] == "epochs"
    assert drawn["encoding"]["color"]["field"] == RUN


def test_ten_runs_can_be_told_apart() -> None:
    assert len({(colour, tuple(dash)) for colour, dash in SERIES}) == len(SERIES) == 10


def test_the_raw_values_lie_faintly_below_their_average() -> None:
    assert len(overlay(LINES, axis="x", name="loss")["layer"]) == 2
    below, above, _ = overlay(LINES, axis="x", name="loss", raw=True)["layer"]
    assert below["encoding"]["y"]["field"] == "value"
    assert below["mark"]["opacity"] < 0.5
    assert above["encoding"]["y"]["field"] == SMOOTHED


def test_shares_are_percents_and_heights_may_be_logarithmic() -> None:
    drawn = overlay(LINES, axis="x", name="accuracy", share=True, log=True)
    height = drawn["layer"][0]["encoding"]["y"]
    assert height["axis"]["labelExpr"] == PERCENTS
    assert height["scale"] == {"type": "log"}
