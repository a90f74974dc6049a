"""Names of plans and ranks."""

from hypothesis import given
from hypothesis import strategies as st

from app.naming import SHORT, partition_name, plan_name, rank_names
from backend.planning.plan import Partition, Plan, Stage


def a_partition(replicas: list[int]) -> Partition:
    stages, device = [], 0
    for number, count in enumerate(replicas):
        stages.append(Stage(number, number + 1, tuple(range(device, device + count))))
        device += count
    return Partition(tuple(stages))


def test_a_short_partition_is_named_by_its_replicas() -> None:
    assert partition_name(a_partition([15, 1])) == "15-1"
    assert plan_name(Plan("x", a_partition([2, 1]), "gpipe", 4)) == "2-1 · gpipe"


def test_a_long_one_by_its_number_of_stages() -> None:
    assert partition_name(a_partition([1] * 16)) == "16 stages"


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_names_fit_and_every_rank_has_one(replicas: list[int]) -> None:
    cut = a_partition(replicas)
    names = rank_names(Plan("x", cut, "pipedream", 1))
    assert len(partition_name(cut)) <= SHORT
    assert len(names) == len(set(names)) == cut.num_devices
    assert names[0] == "rank 0 · stage 0"
    assert names[-1].endswith(f"stage {len(replicas) - 1}")
