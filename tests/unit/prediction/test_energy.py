"""Joules of a sample: by hand, and what must hold of every plan."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.device_record import UNKNOWN, DeviceRecord
from backend.cluster.presets import local
from backend.comparison.aims import Aim, Fewest, SampleFigure, aim_of
from backend.errors import InvalidInput
from backend.prediction.answer import rank
from backend.prediction.energy import Energy, energy, energy_reason
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

MIB = 2**20
LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3 * (n + 1), 2e-3, MIB, MIB) for n in range(6))
PROFILE = Profile("six", ModelGraph.chain(LAYERS), microbatch=8)


def with_watts(cluster: Cluster, watts: float, idle: float | None) -> Cluster:
    return replace(cluster, device=replace(cluster.device, watts=watts, idle_watts=idle))


def least(figure: SampleFigure, floor: float) -> Aim:
    return Aim(fewest=Fewest(figure, floor))


def answers(cluster: Cluster, schedule: str = "1f1b-flush"):
    return rank(Question(PROFILE, cluster, "", schedule, 4))


def test_two_stages_by_hand(make_plan) -> None:
    """4 microbatches of 8 samples: 10 s on 3 devices, of which two share 4 x 2 s and one has
    4 x 1.5 s of compute; 100 W at work and 20 W idle."""
    plan = make_plan((1, (0, 1)), (2, (2,)), batch=4)
    found = Prediction(plan, 10.0, 3.2, 0.0, 0.0, (0.0,) * 2, (2.0, 1.5), 0, (1, 1))
    cluster = Cluster((Level(4, 1e9),), Device(watts=100.0, idle_watts=20.0))
    joules = 3 * 10 * 20 + 80 * (4 * 2.0 + 4 * 1.5)
    static, compute = 3 * 10 * 20 / 32, 80 * (4 * 2.0 + 4 * 1.5) / 32
    assert energy(found, cluster) == Energy(
        pytest.approx(joules / 32), False, pytest.approx(static), pytest.approx(compute)
    )
    assert energy_reason(found, energy(found, cluster)) == (
        f"A sample takes {joules / 32:.1f} J: 3 devices draw {joules / 10:.0f} W "
        f"(static {static:.1f} J, compute {compute:.1f} J)."
    )
    unknown = replace(cluster, device=Device(watts=100.0))
    most = pytest.approx(3 * 10 * 100 / 32)
    assert energy(found, unknown) == Energy(most, True, most)
    assert energy_reason(found, energy(found, unknown)) == (
        "A sample takes at most 93.8 J: 3 devices draw at most 300 W."
    )


def test_chunks_of_a_device_wait_once(make_plan) -> None:
    plan = make_plan((3, (0,)), (6, (1,)), batch=4)
    stages = plan.partition.stages
    twice = replace(
        plan.partition,
        stages=(
            *stages,
            *(replace(each, first=6 + each.first, stop=6 + each.stop) for each in stages),
        ),
        chunks=2,
    )
    found = Prediction(
        replace(plan, partition=twice), 10.0, 3.2, 0.0, 0.0, (0.0,) * 2, (0.5,) * 4, 0, (1, 1)
    )
    cluster = Cluster((Level(2, 1e9),), Device(watts=100.0, idle_watts=20.0))
    joules = 2 * 10 * 20 + 80 * 4 * (4 * 0.5)
    known = energy(found, cluster)
    assert known is not None
    assert (known.joules, known.is_most) == (pytest.approx(joules / 32), False)


BOARD = 46.99 / 6.09  # GFLOP/s over GFLOP/s per watt


@pytest.mark.parametrize("device", [Device("board", watts=BOARD), Device("H100")])
def test_one_device_draws_its_watts_all_the_time(device: Device) -> None:
    """EF-Train's board has 46.99 GFLOP/s, 6.09 of them per watt (arXiv 2202.10935): 7.7 W."""
    cluster = Cluster((Level(1, 1e9),), device)
    [found] = answers(cluster)
    watts = {"board": BOARD, "H100": 700.0}[device.name]
    joules = energy(found.prediction, cluster)
    assert joules is not None
    assert joules.joules == pytest.approx(watts / found.prediction.samples_per_second)


def test_watts_of_a_type_are_not_those_of_another_ones_seconds() -> None:
    cluster = Cluster((Level(2, 1e9),), Device("V100"))
    question = Question(replace(PROFILE, device="H100 (float32)"), cluster, "straight")
    assert [each.energy for each in rank(question)] == [None]
    same = replace(question, profile=replace(PROFILE, device="Tesla V100"))
    given = replace(question, cluster=with_watts(cluster, 250.0, 20.0))
    assert all(each.energy for asked in (same, given) for each in rank(asked))


COUNTED = PROFILE.with_layers(replace(layer, flops=1e9 * (n + 1)) for n, layer in enumerate(LAYERS))
RECORD = DeviceRecord(joules_per_flop=2e-12, joules_per_byte=3e-11, joules_per_link_byte=5e-10)


def test_a_record_by_hand(make_plan) -> None:
    """Two devices, 4 microbatches of 8 samples in 10 s. Of a layer: operations and bytes (input,
    weights, output of a MiB each; the first reads none) of a forward and twice of a backward, and 5
    tensors of weights for the update."""
    plan = make_plan((4, (0,)), (6, (1,)), batch=4)
    found = Prediction(plan, 10.0, 3.2, 0.0, 7e6, (0.0,) * 2, (2.0, 1.5), 0, (1, 1))
    cluster = Cluster((Level(2, 1e9),), Device(idle_watts=20.0, record=RECORD))
    known = energy(found, cluster, COUNTED)
    assert known is not None
    flops = 4 * 3 * 1e9 * sum(range(1, 7))
    moved = 4 * 3 * (3 * 6 - 1) * MIB + 5 * 6 * MIB
    assert known.static == pytest.approx(2 * 20 * 10 / 32)
    assert known.compute == pytest.approx(flops * 2e-12 / 32)
    assert known.memory == pytest.approx(moved * 3e-11 / 32)
    assert known.links == pytest.approx(7e6 * 5e-10 / 32)
    assert known.joules == pytest.approx(known.static + known.compute + known.memory + known.links)
    again = energy(replace(found, plan=replace(plan, recompute=True)), cluster, COUNTED)
    assert again is not None
    assert again.compute == pytest.approx(4 / 3 * known.compute)
    more = energy(replace(found, sent_bytes=8e6), cluster, COUNTED)
    assert more is not None
    assert more.joules > known.joules


def test_replicas_divide_operations_and_each_updates(make_plan) -> None:
    one, two = (make_plan((6, devices), batch=4) for devices in ((0,), (0, 1)))
    cluster = Cluster((Level(2, 1e9),), Device(idle_watts=0.0, record=RECORD))
    known = [
        energy(Prediction(plan, 10.0, 3.2, 0.0, 0.0, (0.0,), (2.0,), 0, (1,)), cluster, COUNTED)
        for plan in (one, two)
    ]
    first, second = known
    assert first is not None
    assert second is not None
    assert second.compute == pytest.approx(first.compute)
    update = 5 * 6 * MIB * 3e-11 / 32
    assert second.memory == pytest.approx(first.memory + update)


@pytest.mark.parametrize(
    ("device", "profile"),
    [
        (Device(watts=9.0, idle_watts=3.0, record=RECORD), PROFILE),
        (Device(watts=9.0, record=RECORD), COUNTED),
        (Device(watts=9.0, idle_watts=3.0, record=replace(RECORD, joules_per_byte=None)), COUNTED),
    ],
)
def test_a_device_whose_record_tells_too_little_is_counted_by_its_watts(
    make_plan, device: Device, profile: Profile
) -> None:
    plan = make_plan((4, (0,)), (6, (1,)), batch=4)
    found = Prediction(plan, 10.0, 3.2, 0.0, 0.0, (0.0,) * 2, (2.0, 1.5), 0, (1, 1))
    cluster = Cluster((Level(2, 1e9),), device)
    plain = replace(cluster, device=replace(device, record=UNKNOWN))
    assert energy(found, cluster, profile) == energy(found, plain)
    assert energy(found, cluster, profile) is not None


def test_a_known_type_whose_watts_are_not_published_gives_no_joules() -> None:
    [found, *_] = answers(Cluster((Level(2, 1e9),), Device("TPU v5e")))
    assert found.energy is None


def test_watts_that_nobody_knows_give_no_joules() -> None:
    [found, *_] = answers(local(2))
    assert energy(found.prediction, local(2)) is None
    assert energy_reason(found.prediction, None) == ""
    assert not any("J:" in reason for reason in found.reasons)
    assert found.energy is None


def test_without_idle_watts_joules_do_not_depend_on_the_schedule() -> None:
    cluster = with_watts(local(2), 50.0, 0.0)
    [pipeline] = [a for a in answers(cluster) if a.prediction.plan.partition.label == "1-1"][:1]
    plan = pipeline.prediction.plan
    joules = [
        energy(predict(PROFILE, cluster, replace(plan, schedule=schedule)), cluster)
        for schedule in ("gpipe", "1f1b-flush", "2bw")
    ]
    seconds = {
        predict(PROFILE, cluster, replace(plan, schedule=s)).seconds_per_minibatch
        for s in ("1f1b-flush", "2bw")
    }
    assert len(seconds) == 2
    assert [each.joules for each in joules] == pytest.approx([joules[0].joules] * 3)


def test_with_idle_watts_alone_the_fewest_joules_are_the_fastest_of_as_many_devices() -> None:
    cluster = with_watts(Cluster((Level(2, 1e10), Level(2, 1e8))), 80.0, 80.0)
    found = [
        each
        for each in answers(cluster)
        if sum(each.prediction.plan.partition.replicas) == cluster.num_devices
    ]
    assert len(found) > 1
    fastest = [each.prediction.samples_per_second for each in found]
    ranked = least(SampleFigure.ENERGY, 0.0).ranked(found)
    assert [each.prediction.samples_per_second for each in ranked] == sorted(fastest, reverse=True)


@pytest.mark.parametrize("idle", [0.0, 30.0, 100.0])
def test_more_watts_are_more_joules(idle: float) -> None:
    for found in answers(local(4)):
        joules = [
            energy(found.prediction, with_watts(local(4), watts, idle)).joules
            for watts in (100.0, 150.0, 300.0)
        ]
        assert joules == sorted(joules)
        assert joules[0] < joules[-1]


def test_fewer_joules_are_taken_only_above_the_floor() -> None:
    cluster = with_watts(local(4), 100.0, 50.0)
    found = answers(cluster)
    free, held = (least(SampleFigure.ENERGY, floor).ranked(found) for floor in (0.0, 0.95))
    most = max(each.prediction.samples_per_second for each in found)
    assert held[0].prediction.samples_per_second >= 0.95 * most
    known = [energy(each.prediction, cluster).joules for each in free]
    assert known == sorted(known)
    assert sorted(map(id, free)) == sorted(map(id, found))


def test_plans_of_which_no_energy_is_known_come_last() -> None:
    cluster = with_watts(local(4), 100.0, 50.0)
    found = answers(cluster)
    assert len(found) > 1
    fastest = found[0]
    unknown = [replace(fastest, energy=None), *found[1:]]
    last = least(SampleFigure.ENERGY, 0.0).ranked(unknown)[-1]
    assert last.energy is None
    assert last.prediction is fastest.prediction


@pytest.mark.parametrize("floor", [0.0, 0.5, 1.0])
def test_the_cheapest_plan_of_enough_speed_is_first(floor: float) -> None:
    """Over slow links one device costs less than the four that are faster together."""
    cluster = Cluster((Level(4, 6e7),), Device(price=2.0))
    found = answers(cluster)
    most = max(each.prediction.samples_per_second for each in found)
    [first, *rest] = least(SampleFigure.MONEY, floor).ranked(found)
    enough = [each for each in found if each.prediction.samples_per_second >= floor * most]
    assert first.money == min(each.money for each in enough)
    assert (first.prediction.samples_per_second < most) == (floor < 1)
    held = [each.money for each in (first, *rest)][: len(enough)]
    assert held == sorted(held)


def test_plans_without_a_price_are_ranked_by_speed() -> None:
    found = answers(local(4))
    ranked = least(SampleFigure.MONEY, 0.0).ranked(found)
    speeds = [each.prediction.samples_per_second for each in ranked]
    assert {each.money for each in ranked} == {None}
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((0.9, None, 0.9, None), "a target and a floor for energy"),
        ((0.9, None, None, 0.9), "a target and a floor for money"),
        ((None, None, 0.9, 0.9), "two floors"),
        ((None, None, 1.5, None), "a floor of 1.5"),
        ((None, None, None, -0.1), "a floor of -0.1"),
    ],
)
def test_an_aim_that_cannot_be_is_refused(asked: tuple[float | None, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        aim_of(*asked, learnt=lambda target: {})
    assert caught.value.advice
