"""Which ranks run on which node."""

from datetime import UTC, datetime

import pytest

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import Share, shares, turn
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


def test_nobody_overtakes_a_run_that_needs_the_node_and_is_complete() -> None:
    both, away = spec((0,), (2,), nodes=("a", "b")), spec((0,), (2,), nodes=("a", "z"))
    queued = {1: away, 2: ProfileSpec(1), 3: both, 4: ProfileSpec(1)}
    assert turn("a", queued, NODES) == [2, 3]
    assert turn("b", queued, NODES) == [2]
    assert turn("c", queued, NODES) == [2, 4]
