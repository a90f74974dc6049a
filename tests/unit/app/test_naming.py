"""Names of plans and ranks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.naming import SHORT, fallback_words, partition_name, plan_name, rank_names
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.fallbacks import FOUND_ANEW, IN_PLACE, Fallback
from backend.prediction.fewer_sites import FEWER_SITES


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
    assert partition_name(a_partition([2, 1]).sharing(((1, 2), ()))) == "2(1:2)-1"
    assert partition_name(a_partition([8]).sharing(((1, 1, 1, 1, 2, 2, 2, 2),))) == "8"


def test_fallbacks_in_a_line() -> None:
    plan = Plan("x", a_partition([1]), "gpipe", 4)
    one, none = Fallback(1, (), plan, 0.71), Fallback(2, (), fault="too much memory")
    missing = "no plan makes the same updates"
    assert fallback_words((one, none)) == (
        f"If one node is lost: 0.71× the samples/s; if two are lost: {missing}"
    )
    slow, slower = Fallback(1, (0,), plan, 0.5), Fallback(1, (1,), plan, 0.3)
    unequal = (Fallback(1, (2,), plan, 0.4), slow, slower, Fallback(1, (3,)))
    here = f"{missing} or 0.30× or 0.50× the samples/s"
    assert fallback_words(unequal) == f"If one node is lost: {here}"
    neither = (Fallback(1, ()), Fallback(2, ()))
    assert fallback_words(neither) == f"If one or two nodes are lost: {missing}"
    assert fallback_words(()) == ""
    sites = Fallback(1, (), plan, 0.5, sites=1), Fallback(2, (), fault="each has lost one")
    assert fallback_words(sites) == (
        f"If one node is lost: 0.50× the samples/s; if two are lost: no site is left. {FEWER_SITES}"
    )
    ordered = Fallback(1, (), plan, 0.7, instead="gpipe"), Fallback(2, (), plan, 0.4)
    assert fallback_words(ordered) == (
        "If one node is lost: 0.70× the samples/s; if two are lost: 0.40× the samples/s. "
        f"{IN_PLACE}schedule gpipe"
    )
    anew = replace(ordered[0], instead="synthesised")
    assert fallback_words((anew, ordered[0])).endswith(f"{IN_PLACE}{FOUND_ANEW} or schedule gpipe")


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_names_fit_and_every_rank_has_one(replicas: list[int]) -> None:
    cut = a_partition(replicas)
    names = rank_names(Plan("x", cut, "pipedream", 1))
    assert len(partition_name(cut)) <= SHORT
    assert len(names) == len(set(names)) == cut.num_devices
    assert names[0] == "rank 0 · stage 0"
    assert names[-1].endswith(f"stage {len(replicas) - 1}")
