"""What if: the points of the curves, what changes along them, what they cost, cancelling."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from app.charts.what_if import span, what_if
from app.components.comparison.what_if_view import near, point_rows, said
from app.formats import rate
from app.queries.background import Background
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import cluster_a, local
from backend.comparison.sweep import along as of_axis
from backend.comparison.sweep import sweep
from backend.comparison.variations import (
    Axis,
    Point,
    Prices,
    Variation,
    changes,
    plan_word,
    read_prices,
    variations,
)
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import by_hand
from backend.prediction.question import Question
from backend.prediction.watch import Watch
from backend.profiles.message_overhead import MessageOverhead
from tests.app import seed

LAYERS = len(seed.a_profile().layers)
QUESTION = Question(seed.a_profile(), local(2), "pipedream", "pipedream")


def along(axis: Axis, cluster: Cluster, batch: int = 4) -> list[Variation]:
    return [v for v in variations(cluster, batch, flushes=True) if v.axis is axis]


def test_every_curve_goes_through_the_cluster_as_it_is() -> None:
    for cluster in (local(2), cluster_a(3), Cluster((Level(5, 1e9),), Device("V100"))):
        for axis in Axis:
            (base,) = [v for v in along(axis, cluster, 6) if v.is_base]
            assert base.cluster == cluster
            assert base.batch == 6


def test_one_thing_is_changed_at_a_time() -> None:
    base = cluster_a(4)
    for v in variations(base, 4, flushes=True):
        same_levels = v.cluster.levels == base.levels
        same_device = v.cluster.device == base.device
        assert [same_levels, same_device, v.batch == 4].count(False) == (0 if v.is_base else 1)


def test_known_devices_are_compared_by_their_peaks_and_others_by_factors() -> None:
    types = {v.label: v for v in along(Axis.DEVICE, cluster_a(1))}
    assert types["H100"].value == pytest.approx(67.0 / 15.7)
    assert types["H100"].cluster.device.memory == 80 * 2**30
    assert types["V100"].cluster.device.memory is None  # the cluster's own, as it is
    assert "2× cpu" in {v.label for v in along(Axis.DEVICE, local(2))}


def test_without_a_batch_there_is_no_curve_over_it() -> None:
    assert Axis.BATCH not in {v.axis for v in variations(local(2), 1, flushes=False)}


def a_point(value: float, replicas: tuple[int, ...] | None) -> Point:
    cluster = local(4)
    where = Variation(Axis.BANDWIDTH, value, f"{value:g} GB/s", cluster, 1, value == 2)
    if replicas is None:
        return Point(where, None, "no plan fits")
    stages, device = [], 0
    for number, count in enumerate(replicas):
        last = number == len(replicas) - 1
        stages.append(
            Stage(number, LAYERS if last else number + 1, tuple(range(device, device + count)))
        )
        device += count
    plan = Plan("x", Partition(tuple(stages)), "pipedream", seed.SAMPLES)
    return Point(where, by_hand(Question(seed.a_profile(), cluster), plan))


def test_where_the_best_plan_changes_is_said_and_drawn() -> None:
    points = [a_point(1, (3, 1)), a_point(2, (3, 1)), a_point(4, (4,)), a_point(8, None)]
    ((before, after),) = changes(points)
    assert (before.variation.value, after.variation.value) == (2, 4)
    assert "**3-1** up to 2 GB/s; **4** from 4 GB/s on" in said(points)
    assert "no plan fits at 1" in said(points)
    drawing = what_if(Axis.BANDWIDTH, points, lambda p: p.samples_per_second, rate)
    (line,) = drawing.layout.shapes
    assert 2 < line.x0 < 4
    assert drawing.data[0].y[3] is None
    assert drawing.data[0].marker.symbol[1] == "diamond"
    assert point_rows(points, Prices(2.0))["best plan"][3] == "no plan fits"


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ((5.7, None, 5.78), (5.69, 5.79)),
        ((4.0, 8.0), None),
        ((5.0, 5.0), None),
        ((5.0, 5.000001), None),
        ((None,), None),
        ((), None),
    ],
)
def test_a_small_effect_has_an_axis_that_shows_it(
    values: tuple[float | None, ...], ends: tuple[float, float] | None
) -> None:
    assert span(values) == (ends and pytest.approx(ends))
    assert ("does not begin at 0" in near(values)) == (ends is not None)


def test_when_devices_are_added_the_form_of_the_plan_counts() -> None:
    one = replace(a_point(1, (3, 1)).variation, axis=Axis.DEVICES)
    assert plan_word(replace(a_point(1, (3, 1)), variation=one)) == "n-1"
    assert plan_word(a_point(1, (3, 1))) == "3-1"
    points = [replace(a_point(1, shape), variation=one) for shape in ((1, 1), (3, 1))]
    assert said(points).endswith("n is a stage with several replicas.")
    assert "n is a stage" not in said(points[:1])


def test_cost_counts_every_device_for_as_long_as_it_takes() -> None:
    point = a_point(1, (3, 1))
    speed = point.samples_per_second
    assert speed
    assert point.cost_per_million(Prices(3.6)) == pytest.approx(3.6 * 4 / 3600 / speed * 1e6)
    assert a_point(1, None).cost_per_million(Prices(3.6)) is None
    apart = point.cost_per_million(read_prices(3.6, "H100 9, CPU 7.2"))
    assert apart == pytest.approx(7.2 * 4 / 3600 / speed * 1e6)


@pytest.mark.parametrize("text", ["H100", "H100 x", "H100 -1", "H100 nan", "H100 inf", "H100=4"])
def test_prices_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_prices(2.0, text)
    assert "H100 4.50" in caught.value.advice


def test_types_with_spaces_have_prices_too() -> None:
    prices = read_prices(2.0, " Titan X 0.5 ,, h100 4")
    assert [prices.of(Device(name)) for name in ("Titan X", "H100", "T4")] == [0.5, 4.0, 2.0]
    own = [prices.of(Device(name, price=1.5)) for name in ("H100", "T4")]
    assert own == [4.0, 1.5]
    assert read_prices(1.0, "") == Prices(1.0)


def test_a_sweep_plans_every_point_and_says_where_none_fits() -> None:
    tiny = replace(local(2), device=Device("toy", 1000.0))
    wanted = [
        Variation(Axis.DEVICES, 2, "2 devices", local(2), 1, is_base=True),
        Variation(Axis.DEVICES, 3, "3 devices", tiny, 1, is_base=False),
    ]
    first, second = of_axis(sweep(QUESTION, wanted), Axis.DEVICES)
    assert first.samples_per_second
    assert second.plan is None
    assert "fits" in second.reason


def test_no_type_of_device_is_behind_a_slower_one_where_messages_cost_hosts() -> None:
    """An H100 as it is was behind an H100 PCIe, whose messages were taken to cost nothing."""
    profile = replace(seed.a_profile(), message_overhead=MessageOverhead(1e-2, 1e-9, 1e-2, 1e-9))
    cluster = Cluster((Level(2, 1e9),), Device("H100"))
    question = Question(profile, cluster, "straight", "1f1b-flush")
    names = ("H100 PCIe", "H100", "H200")
    wanted = [each for each in along(Axis.DEVICE, cluster) if each.label in names]
    found = {point.variation.label: point for point in sweep(question, wanted)}
    speeds = [found[name].samples_per_second for name in names]
    assert None not in speeds
    assert speeds == sorted(speeds)
    assert speeds[0] < speeds[-1]


def test_a_cancelled_sweep_keeps_what_it_has() -> None:
    wanted = [Variation(Axis.DEVICES, n, str(n), local(2), 1, False) for n in range(400)]
    one_is_there, goes_on = Event(), Event()

    def held(watch: Watch) -> Iterator[Point]:
        points = sweep(QUESTION, wanted, watch)
        yield next(points)
        one_is_there.set()
        goes_on.wait(60)
        yield from points

    found = Background(held, len(wanted))
    assert one_is_there.wait(60)
    found.cancel()
    goes_on.set()
    assert found.wait(60)
    assert found.was_cancelled
    assert len(of_axis(found.items, Axis.DEVICES)) == found.done == 1
