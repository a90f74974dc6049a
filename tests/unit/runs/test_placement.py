"""Which ranks run on which node."""

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import Share, settled, shares, shares_on
from backend.runs.request.spec import ProfileSpec, TrainSpec


def node(name: str, count: int) -> Node:
    return Node(name, (Device("cpu"),) * count, True, datetime.now(UTC), {})


NODES = (node("a", 2), node("b", 2), node("c", 1))


def spec(*devices: tuple[int, ...], nodes: tuple[str, ...], num_pipelines: int = 1) -> TrainSpec:
    stages = tuple(Stage(n, n + 1, each) for n, each in enumerate(devices))
    return TrainSpec(
        1, Plan("", Partition(stages), "afp", 4, num_pipelines=num_pipelines), nodes=nodes
    )


def test_devices_are_numbered_through_node_by_node() -> None:
    found = shares(spec((0, 2), (1,), (3,), nodes=("a", "b")), NODES)
    assert found == (Share("a", (0, 2), (0, 1)), Share("b", (1, 3), (0, 1)))


def test_the_node_of_rank_0_comes_first_and_unused_ones_are_left_out() -> None:
    found = shares(spec((4,), (0, 1), nodes=("a", "b", "c")), NODES)
    assert found == (Share("c", (0,), (0,)), Share("a", (1, 2), (0, 1)))


def test_every_pipeline_has_its_ranks() -> None:
    found = shares(spec((0,), (2,), nodes=("a", "b"), num_pipelines=2), NODES)
    assert found == (Share("a", (0, 2), (0, 0)), Share("b", (1, 3), (0, 0)))


def test_any_node_where_none_is_named() -> None:
    assert shares(spec((0, 9), nodes=()), NODES) == ()
    assert shares(ProfileSpec(1), NODES) == ()


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (("a", "z"), "no node 'z' is registered"),
        (("a", "a"), "named twice"),
        (("a", "c"), r"the plan uses 4 devices, but a \(2\), c \(1\) have 3"),
    ],
)
def test_what_does_not_fit(nodes: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        shares(spec((0, 1), (2, 3), nodes=nodes), NODES)


def test_without_named_nodes_all_ranks_are_on_the_one_that_asks() -> None:
    assert shares_on("b", spec((0, 9), nodes=()), NODES) == (Share("b", (0, 1), (0, 1)),)
    named = spec((0,), (2,), nodes=("a", "b"))
    assert shares_on("c", named, NODES) == shares(named, NODES)


@pytest.mark.parametrize(
    ("asked", "taken", "devices", "held"),
    [
        ((0, 1), {}, (0, 1), (0, 1)),
        ((0, 1), {0}, (2, 1), (1, 2)),  # as it is asked for, where that is free
        ((0, 1, 0), {0, 1}, (2, 3, 2), (2, 3)),  # parallel pipelines share theirs
        ((4,), {4}, (5,), (5,)),  # another one of its kind
        ((0, 1), {0, 1, 2}, None, None),
        ((4, 5), {5}, None, None),
        (tuple(range(7)), {}, (0, 1, 2, 3, 4, 5, 0), (0, 1, 2, 3, 4, 5)),  # all of them, shared
        (tuple(range(7)), {3}, None, None),
    ],
)
def test_a_share_takes_free_devices(
    asked: tuple[int, ...],
    taken: set[int],
    devices: tuple[int, ...] | None,
    held: tuple[int, ...] | None,
) -> None:
    mixed = (Device("v100", 16e9),) * 4 + (Device("h100", 80e9),) * 2
    found = settled(Share("a", tuple(range(len(asked))), asked), mixed, taken)
    assert (found.devices if found else None, found.held if found else None) == (devices, held)


def test_a_whole_node_is_free_or_not() -> None:
    share, four = Share("a", (0,), (2,)), (Device("cpu"),) * 4
    assert settled(share, four, {}, whole=True) == Share("a", (0,), (2,), (0, 1, 2, 3))
    assert settled(share, four, {0}, whole=True) is None


def test_of_a_node_that_has_not_said_what_it_has_everything_is_believed() -> None:
    assert settled(Share("a", (0, 1), (0, 7)), (), {7}) == Share("a", (0, 1), (0, 1), (0, 1))


@given(
    kinds=st.lists(st.sampled_from("xy"), min_size=1, max_size=6),
    asked=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    taken=st.sets(st.integers(0, 5)),
)
def test_devices_are_found_where_there_are_some(
    kinds: list[str], asked: list[int], taken: set[int]
) -> None:
    """Against every way to give each device that is asked for one of its kind."""
    devices = tuple(Device(kind) for kind in kinds)
    asked, taken = [a % len(kinds) for a in asked], {t for t in taken if t < len(kinds)}
    distinct = sorted(set(asked))
    free = [d for d in range(len(kinds)) if d not in taken]
    ways = (
        way
        for way in permutations(free, len(distinct))
        if all(kinds[a] == kinds[d] for a, d in zip(distinct, way, strict=True))
    )
    found = settled(Share("a", tuple(range(len(asked))), tuple(asked)), devices, taken)
    assert (found is None) == (next(ways, None) is None)
    if found is not None:
        given = dict(zip(asked, found.devices, strict=True))
        assert tuple(given[a] for a in asked) == found.devices  # whoever shared still shares
        assert len(set(given.values())) == len(distinct)
        assert not taken & set(found.held)
        assert all(kinds[a] == kinds[d] for a, d in given.items())
