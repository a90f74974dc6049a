"""What starts, what waits, and that nobody is starved."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Device
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.turns import Queued, Turn, turns
from backend.runs.request.spec import ProfileSpec, TrainSpec

NOW = datetime.now(UTC)


def node(name: str, count: int) -> Node:
    return Node(name, (Device("gpu", 8e9),) * count, True, NOW, {})


def train(count: int, nodes: tuple[str, ...] = (), first: int = 0) -> TrainSpec:
    """A stage on each of so many devices, numbered from the first."""
    stages = tuple(Stage(n, n + 1, (first + n,)) for n in range(count))
    return TrainSpec(1, Plan("", Partition(stages), "pipedream", 4), nodes=nodes)


def run(number: int, count: int, seconds: float = inf, nodes: tuple[str, ...] = ()) -> Queued:
    return Queued(number, train(count, nodes), seconds)


def starts(found: list[Turn]) -> list[int]:
    return [turn.run_id for turn in found if turn.seconds == 0]


def test_what_is_free_is_given_in_order() -> None:
    queue = [run(1, 2), run(2, 1), run(3, 1), run(4, 1)]
    found = turns(queue, [node("a", 4)], {})
    assert found[:3] == [Turn(1, ("a",), 0.0), Turn(2, ("a",), 0.0), Turn(3, ("a",), 0.0)]
    assert starts(found) == [1, 2, 3]


def test_who_asks_comes_first_for_runs_that_name_no_node() -> None:
    nodes = [node("a", 1), node("b", 1)]
    assert turns([run(1, 1)], nodes, {}, "b")[0].nodes == ("b",)
    assert turns([run(1, 1)], nodes, {"b": {0: inf}}, "b")[0].nodes == ("a",)


def test_a_run_on_several_nodes_starts_when_all_have_its_devices() -> None:
    nodes = [node("a", 2), node("b", 2)]
    both = Queued(1, train(3, ("a", "b")))
    assert turns([both], nodes, {})[0] == Turn(1, ("a", "b"), 0.0)
    assert turns([both], nodes, {"b": {0: inf}})[0] == Turn(1, ("a", "b"), 0.0)  # b has another
    assert turns([both], nodes, {"b": {0: 9.0, 1: 5.0}})[0] == Turn(1, ("a", "b"), 5.0)


def test_nobody_overtakes_the_first_that_waits_unless_it_ends_before() -> None:
    held = {"a": {0: 60.0, 1: 60.0}}
    queue = [run(1, 4), run(2, 1, 30.0), run(3, 1, 90.0), run(4, 1)]
    found = turns(queue, [node("a", 4)], held)
    assert found == [
        Turn(1, ("a",), 60.0),
        Turn(2, ("a",), 0.0),
        Turn(3, behind=1),
        Turn(4, behind=1),
    ]


def test_devices_that_it_will_not_need_are_given_meanwhile() -> None:
    held = {"a": {0: 60.0, 1: 60.0, 2: 60.0}}
    assert starts(turns([run(1, 3), run(2, 1)], [node("a", 4)], held)) == [2]
    assert starts(turns([run(1, 4), run(2, 1)], [node("a", 4)], held)) == []


def test_where_nobody_knows_when_devices_come_free_nobody_overtakes() -> None:
    held = {"a": {0: inf, 1: inf}}
    found = turns([run(1, 3), run(2, 1), run(3, 1)], [node("a", 4)], held)
    assert found == [Turn(1, ("a",), inf), Turn(2, behind=1), Turn(3, behind=1)]
    assert starts(turns([run(1, 3), run(2, 1, 1.0)], [node("a", 4)], held)) == []


def test_another_node_is_not_held_up() -> None:
    nodes = [node("a", 2), node("b", 2)]
    queue = [run(1, 2, nodes=("a",)), run(2, 2)]
    found = turns(queue, nodes, {"a": {0: inf}})
    assert found == [Turn(1, ("a",), inf), Turn(2, ("b",), 0.0)]


def test_whose_nodes_are_away_holds_nobody_up() -> None:
    queue = [run(1, 1, nodes=("z",)), run(2, 1)]
    assert [turn.run_id for turn in turns(queue, [node("a", 1)], {})] == [2]
    assert turns(queue, [], {}) == []


def test_a_run_of_more_devices_than_there_are_waits_for_a_whole_node() -> None:
    held = {"a": {0: 7.0}}
    assert turns([run(1, 9)], [node("a", 2)], held) == [Turn(1, ("a",), 7.0)]
    assert starts(turns([run(1, 9)], [node("a", 2)], {})) == [1]


def test_alone_means_the_whole_node() -> None:
    alone = Queued(1, replace(ProfileSpec(1), whole_nodes=True))
    found = turns([alone, run(2, 1)], [node("a", 2)], {"a": {1: 4.0}})
    assert found == [Turn(1, ("a",), 4.0), Turn(2, behind=1)]
    assert starts(turns([alone, run(2, 1)], [node("a", 2)], {})) == [1]


@dataclass
class Site:
    """One node of so many devices, whose runs take as long as is said, which is known or not."""

    size: int
    known: bool
    queue: list[tuple[int, int, int]]  # number, devices, seconds
    running: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    now: int = 0

    def step(self) -> None:
        """Start what may start, then let a second pass."""
        asked = [run(n, count, secs if self.known else inf) for n, count, secs in self.queue]
        free = [d for d in range(self.size) if d not in self._held()]
        for number in starts(turns(asked, [node("a", self.size)], {"a": self._held()})):
            _, count, seconds = next(each for each in self.queue if each[0] == number)
            taken, free = free[:count], free[count:]
            assert len(taken) == count, "it was told to start on devices that are held"
            self.running[number] = (self.now + seconds, tuple(taken))
            self.started[number] = self.now
        self.queue = [each for each in self.queue if each[0] not in self.started]
        self.now += 1
        self.running = {n: each for n, each in self.running.items() if each[0] > self.now}

    def _held(self) -> Mapping[int, float]:
        return {
            device: float(end - self.now) if self.known else inf
            for end, devices in self.running.values()
            for device in devices
        }


RUNS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), min_size=1, max_size=12)


@given(runs=RUNS, known=st.booleans())
def test_every_run_starts(runs: list[tuple[int, int]], known: bool) -> None:
    site = Site(4, known, [(n, *each) for n, each in enumerate(runs, 1)])
    for _ in range(sum(seconds for _, seconds in runs) + 1):
        site.step()
    assert sorted(site.started) == list(range(1, len(runs) + 1))


@pytest.mark.parametrize("known", [True, False])
@given(small=st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_a_large_run_starts_in_bounded_time_among_a_stream_of_small_ones(
    known: bool, small: list[int]
) -> None:
    """As soon as those that ran before it have ended, however many come after it."""
    site = Site(4, known, [(n, 1, small[n % len(small)]) for n in range(1, 5)])
    site.step()
    site.queue.append((100, 4, 1))
    for number in range(200, 230):
        site.queue.append((number, 1, small[number % len(small)]))
        site.step()
    assert site.started[100] <= max(small)


@given(runs=RUNS)
def test_what_overtakes_delays_nobody_that_has_reserved(runs: list[tuple[int, int]]) -> None:
    """The first that waits starts when it was told to, where the times that are expected hold."""
    site = Site(4, True, [(n, *each) for n, each in enumerate(runs, 1)])
    promised: dict[int, float] = {}
    for _ in range(sum(seconds for _, seconds in runs) + 1):
        asked = [run(n, count, secs) for n, count, secs in site.queue]
        for turn in turns(asked, [node("a", 4)], {"a": site._held()}):
            if turn.nodes and turn.seconds > 0:
                promised.setdefault(turn.run_id, site.now + turn.seconds)
        site.step()
    assert all(site.started[number] <= time for number, time in promised.items())
