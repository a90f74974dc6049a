"""What others took of the cores, and the prediction on what they left."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.cluster.presets import local
from backend.codec import from_json, to_json
from backend.comparison.shared_cores import (
    Expectation,
    at_share,
    short_of_cores,
    taken_by_others,
    takes_turns,
)
from backend.prediction.predict import predict
from backend.profiles.profile import Profile
from backend.runs.events import CoreUse, read_line, write_line
from tests.app.seed import a_profile
from tests.unit.app.components.test_run_figures import PLAN

QUIET = CoreUse(0, 3, cpu=1.0, waited=0.0, process=1.1, busy=2.3, seconds=2.0, cores=2, load=0.4)
SECONDS = st.floats(0, 1e4)
USES = st.builds(
    CoreUse,
    rank=st.integers(0, 7),
    segment=st.just(0),
    cpu=SECONDS,
    waited=SECONDS,
    process=SECONDS,
    busy=SECONDS,
    seconds=SECONDS,
    cores=st.integers(1, 64),
    load=SECONDS,
    host=st.integers(0, 1),
)


def two(**changes: float) -> tuple[CoreUse, CoreUse]:
    first = replace(QUIET, **changes)
    return first, replace(first, rank=1)


def test_without_readings_nothing_is_said() -> None:
    assert taken_by_others((), in_turns=False) is None
    assert taken_by_others((replace(QUIET, cpu=0.0),), in_turns=False) is None


def test_a_segment_of_some_ticks_says_nothing() -> None:
    assert taken_by_others(two(seconds=0.014, waited=0.007), in_turns=False) is None
    assert short_of_cores(two(seconds=0.014, waited=0.007)) is None


def test_on_a_quiet_machine_nothing_was_taken() -> None:
    found = taken_by_others(two(), in_turns=False)
    assert found is not None
    assert (found.taken, found.is_said) == (0.0, False)
    assert found.others == pytest.approx(0.05)


def test_ranks_with_a_core_each_wait_for_others_alone() -> None:
    first, second = two(waited=1.0, busy=4.0)
    found = taken_by_others((first, replace(second, waited=3.0)), in_turns=False)
    assert found is not None
    assert found.by_rank == {0: 0.5, 1: 0.75}
    assert found.taken == pytest.approx(4 / 6)
    assert found.others == pytest.approx(0.9)
    assert found.cores == 2


def test_ranks_that_take_turns_wait_for_each_other_too() -> None:
    """Others had 1.8 of the 2.9 seconds in which the cores were busy without a rank."""
    found = taken_by_others(two(waited=1.0, busy=4.0), in_turns=True)
    assert found is not None
    assert found.by_rank[0] == pytest.approx(1.8 / 2.9 / 2)


def test_whatever_emulated_ranks_wait_for_a_core_is_taken() -> None:
    """Of the whole segment, for they compute next to nothing."""
    first, second = two(cpu=0.01, waited=1.0)
    found = short_of_cores((first, replace(second, waited=0.5)))
    assert found is not None
    assert (found.by_rank, found.taken) == ({0: 0.5, 1: 0.25}, pytest.approx(0.375))
    assert found.is_said
    assert short_of_cores(()) is None


def test_hosts_are_counted_apart() -> None:
    first, second = two(busy=4.0)
    found = taken_by_others((first, replace(second, host=1)), in_turns=False)
    assert found is not None
    assert found.cores == 4
    assert found.others == pytest.approx(2 * 2.9 / 2)


@given(st.lists(USES, unique_by=lambda use: use.rank), st.booleans())
def test_shares_are_shares_whatever_is_told(uses: list[CoreUse], in_turns: bool) -> None:
    found = taken_by_others(uses, in_turns=in_turns)
    if found is not None:
        assert all(0 <= share <= 1 for share in (found.taken, *found.by_rank.values()))
        assert found.others >= 0
        assert from_json(Expectation, to_json(Expectation, Expectation(cores=found))).cores == found


@given(USES)
def test_a_line_is_read_as_it_was_written(use: CoreUse) -> None:
    assert read_line(write_line(use)) == use


def test_a_share_divides_the_seconds_of_its_stage() -> None:
    profile, cluster = _compute_alone(a_profile()), Cluster((Level(2, 1e30),))
    plan = replace(PLAN, partition=replace(PLAN.partition, stages=_halves(profile)))
    alone = predict(profile, cluster, plan)
    found = taken_by_others(two(waited=1.0), in_turns=False)
    assert found is not None
    left = at_share(profile, cluster, plan, found)
    assert left.seconds_per_minibatch == pytest.approx(2 * alone.seconds_per_minibatch)
    slowest = max(range(2), key=lambda stage: alone.stage_seconds[stage])
    one = replace(found, by_rank={slowest: 0.5, 1 - slowest: 0.0})
    assert at_share(profile, cluster, plan, one).seconds_per_minibatch == pytest.approx(
        2 * alone.seconds_per_minibatch
    )


def test_a_prediction_takes_turns_where_a_host_has_too_few_cores() -> None:
    profile = a_profile()
    plan = replace(PLAN, partition=replace(PLAN.partition, stages=_halves(profile)))
    assert not takes_turns(profile, local(2, 2), plan)
    assert takes_turns(profile, local(2, 1), plan)


def _compute_alone(profile: Profile) -> Profile:
    return profile.with_layers(replace(layer, update=0.0) for layer in profile.layers)


def _halves(profile: Profile):
    first, second = PLAN.partition.stages
    cut = len(profile.layers) // 4
    return replace(first, stop=cut), replace(second, first=cut, stop=len(profile.layers))
