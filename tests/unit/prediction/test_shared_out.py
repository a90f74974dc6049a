"""Plans whose replicas take microbatches by speed: gains by AccPar's formula, who gives them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.by_speeds import by_speeds
from backend.planning.cost import sync_seconds
from backend.planning.cuts import cut_of, read_cut, write_cut
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sharing_out import other_shares, shared_out
from backend.prediction.answer import rank
from backend.prediction.bottleneck import most_samples
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-2, 2e-2, 64, 64) for n in range(4))
PROFILE = Profile("four", ModelGraph.chain(LAYERS), microbatch=4)
CASES = [((1.0, 2.0), (1, 2), 1.5), ((1.0, 1.0, 4.0), (1, 1, 4), 2.0)]


def unequal(*speeds: float) -> Cluster:
    each = tuple(Device(f"x{speed:g}", speed=speed) for speed in speeds)
    return Cluster((Level(len(speeds), 1e12),), each[0], each)


def data_parallel(count: int, batch: int, name: str = "1f1b-flush") -> Plan:
    return Plan("by-hand", Partition((Stage(0, 4, tuple(range(count))),)), name, 4, batch)


@pytest.mark.parametrize(("speeds", "expected", "gain"), CASES)
@pytest.mark.parametrize("name", ["1f1b-flush", "gpipe", "2bw"])
def test_the_gain_is_that_of_the_formula(speeds, expected, gain, name):
    """Sum of speeds over the number of devices times the slowest."""
    cluster, plan = unequal(*speeds), data_parallel(len(speeds), 12, name)
    found = shared_out(plan, cluster)
    (shares,) = found.partition.shares
    assert shares == expected
    one, other = (predict(PROFILE, cluster, each) for each in (plan, found))
    assert other.samples_per_second / one.samples_per_second == pytest.approx(gain, rel=1e-4)
    assert other.samples_per_second <= most_samples(PROFILE, cluster, found) * (1 + 1e-9)


def test_best_gives_shares_and_no_worse_a_plan():
    cluster = unequal(1.0, 2.0)
    (found,) = rank(Question(PROFILE, cluster, "best", "1f1b-flush", 12))
    plan = found.prediction.plan
    equal = predict(PROFILE, cluster, replace(plan, partition=plan.partition.sharing(())))
    assert plan.partition.shares
    assert found.prediction.samples_per_second > 1.4 * equal.samples_per_second


def test_no_shares_where_devices_are_equal_or_nothing_is_left_for_one():
    plan = data_parallel(2, 12)
    assert shared_out(plan, unequal(2.0, 2.0)) == plan
    assert shared_out(plan, unequal(1.0, 100.0)) == plan
    assert shared_out(data_parallel(2, 12, "pipedream"), unequal(1.0, 2.0)).partition.shares == ()


def test_another_schedule_keeps_shares_where_it_takes_them():
    plan = shared_out(data_parallel(2, 12), unequal(1.0, 2.0))
    assert plan.under("gpipe", 12).partition.shares == ((1, 2),)
    assert plan.under("pipedream", 12).partition.shares == ()


def test_a_cut_names_its_shares():
    base = Partition((Stage(0, 2, (0, 1)), Stage(2, 4, (2,))))
    cut = base.sharing(((2, 1), ()))
    assert write_cut(cut) == "2x2~2.1-4x1"
    assert read_cut(write_cut(cut), base, 3) == cut
    assert read_cut("2x2-4x1", cut, 3) == base
    assert (cut.label, base.label) == ("2(2:1)-1", "2-1")
    assert cut_of((3, 4), (2, 1), cut, 3).shares == ((2, 1), ())
    assert cut_of((3, 4), (1, 1), cut, 3).shares == ()
    with pytest.raises(InvalidInput, match="shares 2:0 are not those of the 2 replicas"):
        read_cut("2x2~2.0-4x1", base, 3)


def test_a_program_as_text_says_its_shares():
    shape = Shape((2, 1), 6, 6, shares=((2, 1), ()))
    program = lower(schedule("1f1b-flush"), shape)
    assert parse_program(format_program(program)) == program


def linked(inner: float, outer: float, *speeds: float) -> Cluster:
    each = tuple(Device(f"x{speed:g}", speed=speed) for speed in speeds)
    return Cluster((Level(2, inner), Level(len(speeds) // 2, outer)), each[0], each)


def test_a_replica_behind_a_slow_link_counts_with_its_messages():
    """Of equal compute the one that shares a machine with the next stage takes more."""
    cluster = linked(1e12, 1e3, 2.0, 1.0, 2.0, 1.0)
    stages = Stage(0, 3, (0, 2)), Stage(3, 4, (1,))
    plan = Plan("by-hand", Partition(stages), "1f1b-flush", 4, 12)
    assert shared_out(plan, cluster).partition.shares == ()
    heavy = tuple(replace(layer, output_bytes=90) for layer in LAYERS)
    slow = replace(PROFILE, graph=ModelGraph.chain(heavy))
    (shares, _) = shared_out(plan, cluster, slow).partition.shares
    assert shares == (2, 1)  # 45 ms of compute, and 90 ms of a message


def test_every_way_to_share_a_small_batch_is_tried():
    cluster = unequal(1.0, 2.0, 4.0)
    cut = Partition((Stage(0, 2, (0, 1)), Stage(2, 4, (2,))))
    plan = Plan("by-hand", cut, "1f1b-flush", 4, 4)
    found = [other.partition.shares for other in other_shares(plan, cluster)]
    assert found == [((1, 3), ()), (), ((3, 1), ())]
    assert not list(other_shares(plan, unequal(1.0, 1.0, 1.0)))
    assert not list(other_shares(replace(plan, schedule="pipedream", batch=1), cluster))


def test_one_microbatch_of_a_large_batch_is_moved():
    plan = shared_out(data_parallel(3, 48), unequal(1.0, 1.0, 4.0))
    (shares,) = plan.partition.shares
    assert shares == (1, 1, 4)
    found = [
        other.partition.stages[0].parts for other in other_shares(plan, unequal(1.0, 1.0, 4.0))
    ]
    moved = [tuple(int(48 * part) for part in parts) for parts in found]
    assert len(moved) == 6
    assert (9, 8, 31) in moved
    assert all(sum(each) == 48 for each in moved)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_partitions_by_speeds_are_the_best_on_neighbours(data):
    """Of all cuts and all neighbouring devices, by the sum of their speeds."""
    count = data.draw(st.integers(1, 4))
    costs = st.integers(0, 9)
    layers = tuple(
        Layer(f"l{n}", "Linear", 0.0, float(data.draw(costs)), data.draw(costs), data.draw(costs))
        for n in range(count)
    )
    profile = Profile("drawn", ModelGraph.chain(layers), 1)
    speeds = data.draw(st.lists(st.sampled_from((1.0, 2.0, 4.0)), min_size=2, max_size=4))
    each = tuple(Device(speed=speed) for speed in speeds)
    cluster = Cluster((Level(len(each), 1.0),), each[0], each)
    found = by_speeds(profile, cluster, 4)
    if cluster.is_uniform:
        assert not found
        return
    best = min(bottleneck(profile, speeds, cut.stages) for cut in found)
    every = contiguous(count, len(speeds))
    assert best <= min(bottleneck(profile, speeds, stages) for stages in every) * (1 + 1e-9)


def bottleneck(profile: Profile, speeds: list[float], stages: Sequence[Stage]) -> float:
    """With links of 1 byte/s and sums once in four microbatches."""
    worst = 0.0
    for stage in stages:
        held = profile.layers[stage.first : stage.stop]
        compute = sum(layer.compute for layer in held)
        sums = sync_seconds(sum(layer.parameter_bytes for layer in held), stage.replicas, 1.0) / 4
        cut = profile.graph.exchanged_bytes[stage.first - 1] if stage.first else 0.0
        worst = max(worst, compute / sum(speeds[d] for d in stage.devices), sums, cut)
    return worst


def contiguous(layers: int, devices: int) -> Iterator[tuple[Stage, ...]]:
    for count in range(1, min(layers, devices) + 1):
        for cuts in combinations(range(1, layers), count - 1):
            for used in range(count, devices + 1):
                for ends in combinations(range(1, used), count - 1):
                    firsts, starts = (0, *cuts, layers), (0, *ends, used)
                    pairs = zip(pairwise(firsts), pairwise(starts), strict=True)
                    yield tuple(Stage(a, b, tuple(range(c, d))) for (a, b), (c, d) in pairs)
