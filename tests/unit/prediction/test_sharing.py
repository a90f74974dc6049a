"""Ranks that take turns on too few cores."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import read_cluster, write_cluster
from backend.cluster.presets import local
from backend.errors import InvalidInput
from backend.prediction.answer import by_hand
from backend.prediction.durations import CORE_COST, TURN_COST, PlanDurations
from backend.prediction.predict import predict, predicted_program
from backend.prediction.question import Question
from backend.prediction.sharing import shared_cores


def host(cores: int | None, servers: int = 1) -> Cluster:
    return Cluster((Level(4 // servers, 1e30, cores=cores), Level(servers, 1e30)))


def test_cores_are_shared_where_a_host_has_fewer_than_ranks(profile, make_plan):
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)))
    assert shared_cores(PlanDurations(profile, plan.partition, host(None))) is None
    assert shared_cores(PlanDurations(profile, plan.partition, host(3))) is None
    shared = shared_cores(PlanDurations(profile, plan.partition, host(2)))
    assert shared is not None
    assert (shared.hosts, shared.each) == ((0, 0, 0), 2)


def test_a_host_is_a_group_of_the_innermost_level(profile, make_plan):
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)))
    shared = shared_cores(PlanDurations(profile, plan.partition, host(1, servers=2)))
    assert shared is not None
    assert shared.hosts == (0, 0, 1)


def test_one_core_computes_all_stages_one_after_the_other(profile, make_plan):
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)))
    alone = predict(profile, host(None), make_plan((3, (0,)))).seconds_per_minibatch
    turns = predict(profile, host(1), plan).seconds_per_minibatch
    assert turns == pytest.approx(TURN_COST * alone, rel=0.02)
    own, apart = (predict(profile, host(cores), plan) for cores in (3, None))
    assert own.seconds_per_minibatch == pytest.approx(CORE_COST * apart.seconds_per_minibatch)


def test_a_timeline_has_no_more_compute_at_once_than_cores(profile, make_plan):
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)))
    _, alone = predicted_program(profile, host(None), plan, 24)
    _, shared = predicted_program(profile, host(1), plan, 24)
    assert shared.makespan > 1.5 * alone.makespan


def test_devices_that_take_turns_are_no_faster_than_their_cores(profile, make_plan):
    """Of two stages of 1 + 2 + 0.5 and 15 + 0.25 s on one core; on two, the second alone. Without
    turns a core does the same in 18.75 s."""
    plan = make_plan((1, (0,)), (3, (1,)))
    turns = predict(profile, host(1), plan).seconds_per_minibatch
    assert turns == pytest.approx(TURN_COST * 18.75)
    assert predict(profile, host(2), plan).seconds_per_minibatch == pytest.approx(CORE_COST * 15.25)
    told = by_hand(Question(profile, host(1)), plan)
    assert told.reason.startswith(
        "The cores of host 0 are the bottleneck: 2 devices take turns on 1 of them, 21.6 s per"
    )
    rarely = 18 + 0.75 / (4 * 3)  # as plans that update after batches of 4, in 3 pipelines
    assert told.bound_seconds == pytest.approx(rarely)
    assert told.gap == pytest.approx(1 - rarely / (TURN_COST * 18.75))


def test_only_as_many_devices_compute_at_once_as_their_host_has_cores():
    assert host(None).speed_at_once == host(4).speed_at_once == 4
    assert host(3).speed_at_once == 3
    assert host(1, servers=2).speed_at_once == 2
    devices = tuple(Device(speed=speed) for speed in (1.0, 3.0, 2.0))
    assert Cluster((Level(3, 1.0, cores=2),), devices=devices).speed_at_once == 5


def test_cores_are_written_and_read():
    cluster = local(4, cores=2)
    assert cluster.levels[0].cores == 2
    assert read_cluster(write_cluster(cluster)) == cluster
    assert "cores" not in write_cluster(local(4))


@pytest.mark.parametrize(
    "levels", [(Level(2, 1.0, cores=0),), (Level(2, 1.0), Level(2, 1.0, cores=2))]
)
def test_cores_are_those_of_a_host(levels):
    with pytest.raises(InvalidInput, match="cores"):
        Cluster(levels)


def test_half_a_core_is_refused():
    with pytest.raises(InvalidInput, match=r"cores: 1.5 is not a whole number"):
        read_cluster("levels: [{count: 2, bandwidth: 1, cores: 1.5}]")
