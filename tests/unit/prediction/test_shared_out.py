"""Plans whose replicas take microbatches by speed: gains by AccPar's formula, who gives them."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.pipeline.exchange.text import format_program, parse_program
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.cuts import cut_of, read_cut, write_cut
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sharing_out import shared_out
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
