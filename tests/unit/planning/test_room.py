"""Each replica is held against its own device, with shares by its own microbatches in flight."""

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.memory import Holding, memory, peak
from backend.pipeline.schedules.catalog import schedule, training_schedules
from backend.planning.memory import MemoryRule, replica_parts
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.planning.room import check_memory, least_room
from backend.prediction.predict import predict, predicted_program
from backend.prediction.shapes import steady_shape
from backend.prediction.sizes import PlanSizes
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = (Layer("l", "Linear", 1.0, 2.0, 100, 1000, saved_bytes=700),) * 2
PROFILE = Profile("two", ModelGraph.chain(LAYERS), 1)
TAKE_SHARES = [
    member.name for member in training_schedules() if member.takes_shares and not member.chunked
]
SHARED = Partition((Stage(0, 1, (0, 1), (1, 3)), Stage(1, 2, (2,))))


def cluster_of(*devices: Device) -> Cluster:
    return Cluster((Level(len(devices), 1e9),), devices[0], devices)


def two(one: float, other: float, *memory: int | None) -> tuple[list[list[Holding]], Cluster]:
    """Two stages, on a device each, that hold so many bytes."""
    devices = (Device(name, own) for name, own in zip(("small", "large"), memory, strict=True))
    return [[Holding(weights=held)] for held in (one, other)], cluster_of(*devices)


STRAIGHT = Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,))))


def test_a_stage_that_does_not_fit_is_named_with_the_excess() -> None:
    with pytest.raises(
        PlanDoesNotFit, match=r"stage 1 needs 3.00 KiB.*large has 2.00 KiB: 1.00 KiB"
    ):
        check_memory(*two(1024.0, 3072.0, 2048, 2048), STRAIGHT)


def test_what_fits_exactly_and_what_is_not_known_pass() -> None:
    check_memory(*two(2048.0, 1e30, 2048, None), STRAIGHT)


def test_an_error_says_what_the_memory_consists_of() -> None:
    held = Holding(weights=1024, optimizer=2048, process=512)
    cut = Partition((Stage(0, 1, (0,)),))
    with pytest.raises(PlanDoesNotFit) as refusal:
        check_memory([[held]], cluster_of(Device("small", 10)), cut)
    assert "optimizer 2.00 KiB, weights 1.00 KiB, process 512 bytes" in refusal.value.advice


def test_each_stage_is_held_against_its_own_device() -> None:
    check_memory(*two(10.0, 100.0, 10, 100), STRAIGHT)
    with pytest.raises(PlanDoesNotFit, match="stage 0 needs 11 bytes of memory, small has 10"):
        check_memory(*two(11.0, 100.0, 10, 100), STRAIGHT)


def test_the_replica_with_the_least_room_stands_for_its_stage() -> None:
    cut = Partition((Stage(0, 1, (0, 1)),))
    held = [[Holding(weights=50), Holding(weights=80)]]
    (tight,) = least_room(held, cluster_of(Device("a", 60), Device("b", 100)), cut)
    assert (tight.replica, tight.excess) == (0, -10)
    (most,) = least_room(held, cluster_of(Device("a"), Device("b")), cut)
    assert (most.replica, most.excess) == (1, float("-inf"))


@pytest.mark.parametrize("name", TAKE_SHARES)
def test_with_shares_each_replica_holds_what_a_simulated_one_does(name: str) -> None:
    """Of activations; messages may come earlier than a bound counts, as without shares."""
    plan = Plan("", SHARED, name, 1, 8)
    shape = steady_shape(plan)
    promised = [one for each in replica_parts(PROFILE, plan, shape, "adam") for one in each]
    each = (Device(speed=1.0), Device(speed=3.0), Device(speed=4.0))
    program, timeline = predicted_program(PROFILE, cluster_of(*each), plan, shape.num_microbatches)
    held = memory(program, timeline, PlanSizes(PROFILE, SHARED, "adam"))
    peaks = [peak(moments).holding for moments in held]
    for mine, most in zip(peaks, promised, strict=True):
        assert 0.65 * most.activations <= mine.activations <= most.activations
        assert mine.versions == most.versions
        assert mine.total <= 1.07 * most.total
    assert promised[0].activations <= promised[1].activations


def test_a_small_slow_device_beside_a_large_fast_one_fits_with_its_own_microbatches() -> None:
    """Refused where the replica with most in flight was held against the smallest device."""
    plan = Plan("", SHARED, "gpipe", 1, 8)
    slow, fast = (one.total for one in replica_parts(PROFILE, plan, steady_shape(plan), "adam")[0])
    assert slow < fast

    def on(first: float, second: float) -> Cluster:
        given = [Device("slow", int(first)), Device("fast", int(second), 3.0), Device("end")]
        return cluster_of(*given)

    assert predict(PROFILE, on(slow, fast), plan, "adam").memory_bytes[0] == fast
    with pytest.raises(PlanDoesNotFit, match=r"replica 1 of stage 0 needs .* fast has"):
        predict(PROFILE, on(slow, fast - 1), plan, "adam")
    with pytest.raises(PlanDoesNotFit, match=r"replica 0 of stage 0 needs .* slow has"):
        predict(PROFILE, on(slow - 1, fast), plan, "adam")


def test_a_planner_s_rule_holds_each_replica_against_its_device_too() -> None:
    rule = MemoryRule(1e9, schedule("gpipe"), "adam", batch=8)
    plan = Plan("", SHARED, "gpipe", 1, 8)
    slow, fast = (one.total for one in replica_parts(PROFILE, plan, steady_shape(plan), "adam")[0])
    memories = (slow, fast, None)
    for less, fits in (((0, 0), True), ((1, 0), False), ((0, 1), False)):
        each = tuple(
            Device(memory=None if own is None else int(own) - short)
            for own, short in zip(memories, (*less, 0), strict=True)
        )
        assert rule.fits(PROFILE, cluster_of(*each), SHARED) is fits
