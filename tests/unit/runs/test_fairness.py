"""Free devices go to whoever holds least of their share, and nobody waits for ever."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.people.project import Project, Quota
from backend.runs.dispatch.fairness import ProjectLoad, Waiting, in_turn, over_quota

MADE = datetime(2026, 11, 20, tzinfo=UTC)


def project(number: int, **quota: float) -> Project:
    return Project(number, f"p{number}", False, MADE, Quota(**quota))


def loads(*held: int, shares: tuple[float, ...] = ()) -> dict[int, ProjectLoad]:
    given = shares or (1.0,) * len(held)
    return {
        n: ProjectLoad(project(n, share=share), devices, devices)
        for n, (devices, share) in enumerate(zip(held, given, strict=True), start=1)
    }


def order(waiting: list[tuple[int, int]], found: dict[int, ProjectLoad]) -> list[int]:
    return [each.run_id for each in in_turn([Waiting(*pair) for pair in waiting], found)]


def test_one_project_is_served_in_order():
    assert order([(3, 1), (5, 1), (9, 1)], loads(4)) == [3, 5, 9]


def test_who_holds_less_comes_first_however_long_the_other_waits():
    assert order([(1, 1), (2, 1), (70, 2)], loads(2, 0)) == [70, 1, 2]


def test_of_two_that_hold_nothing_the_one_that_was_served_longer_ago_comes_first():
    early, late = (replace(loads(0, 0)[n], served_at=MADE + timedelta(n)) for n in (1, 2))
    assert order([(1, 2), (2, 1)], {1: early, 2: late}) == [2, 1]
    assert order([(1, 2), (2, 1)], {1: early, 2: loads(0, 0)[2]}) == [1, 2]


def test_a_share_counts():
    assert order([(1, 1), (2, 2)], loads(3, 2, shares=(2.0, 1.0))) == [1, 2]


def test_what_is_given_counts_for_the_next_choice():
    """However many runs one project has before the others come."""
    flood = [(n, 1) for n in range(1, 6)]
    assert order([*flood, (6, 2), (7, 2), (8, 3)], loads(0, 0, 0)) == [1, 6, 8, 2, 7, 3, 4, 5]
    assert order([*flood, (6, 2), (7, 2)], loads(0, 2, shares=(1.0, 2.0))) == [1, 6, 2, 7, 3, 4, 5]


def test_a_large_run_counts_by_its_devices():
    queue = [Waiting(run, project) for run, project in ((1, 1), (2, 1), (3, 2), (4, 2), (5, 2))]
    found = in_turn(queue, loads(0, 0), {1: 3})
    assert [each.run_id for each in found] == [1, 3, 4, 5, 2]


@pytest.mark.parametrize(
    ("quota", "load", "word"),
    [
        ({"running": 2}, (2, 5, 0), "may have 2 live runs and has 2"),
        ({"running": 2}, (1, 5, 0), None),
        ({"devices": 4}, (1, 4, 0), "may hold 4 devices and holds 4"),
        ({"running": 0}, (0, 0, 9), "may have 0"),
        ({"queued": 1}, (0, 0, 9), None),
    ],
)
def test_a_project_at_its_limit_waits_and_says_why(
    quota: dict[str, int], load: tuple[int, int, int], word: str | None
):
    found = ProjectLoad(project(1, **quota), *load)
    reason = over_quota(found)
    assert (reason is None) == (word is None)
    assert word is None or word in (reason or "")
    assert order([(1, 1)], {1: found}) == ([] if word else [1])


def test_a_run_that_is_too_large_for_what_is_left_is_told():
    load = ProjectLoad(project(1, devices=4), 0, 0)
    assert over_quota(load, 4) is None
    assert "may hold 4 devices and holds 0; the run needs 8" in (over_quota(load, 8) or "")


@dataclass
class Site:
    """Nodes that carry runs in turns; each run lasts so many turns."""

    nodes: list[int]
    shares: list[float]
    queued: dict[int, tuple[int, int]]  # run -> project, turns
    running: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    started: list[int] = field(default_factory=list)
    served: dict[int, datetime] = field(default_factory=dict)
    now: datetime = MADE

    def turn(self) -> None:
        left = {n: (run, project, turns - 1) for n, (run, project, turns) in self.running.items()}
        self.running = {n: entry for n, entry in left.items() if entry[2] > 0}
        for node in range(len(self.nodes)):
            if node not in self.running and self.queued:
                waiting = [Waiting(run, owner) for run, (owner, _) in self.queued.items()]
                first = in_turn(sorted(waiting, key=lambda each: each.run_id), self.loads())[0]
                owner, turns = self.queued.pop(first.run_id)
                self.running[node] = (first.run_id, owner, turns)
                self.started.append(first.run_id)
                self.now += timedelta(seconds=1)
                self.served[owner] = self.now

    def loads(self) -> dict[int, ProjectLoad]:
        held = dict.fromkeys(range(len(self.shares)), 0)
        for node, (_, owner, _) in self.running.items():
            held[owner] += self.nodes[node]
        return {
            n: ProjectLoad(project(n, share=share), 0, held[n], 0, self.served.get(n))
            for n, share in enumerate(self.shares)
        }


@given(
    nodes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    shares=st.lists(st.floats(0.1, 10), min_size=1, max_size=4),
    runs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=40),
)
def test_every_run_starts_and_in_its_project_in_order(
    nodes: list[int], shares: list[float], runs: list[tuple[int, int]]
):
    asked = {n: (owner % len(shares), turns) for n, (owner, turns) in enumerate(runs)}
    site = Site(nodes, shares, dict(asked))
    for _ in range(5 * len(runs) + 1):
        site.turn()
    assert sorted(site.started) == sorted(asked)
    for owner in range(len(shares)):
        of_one = [run for run in site.started if asked[run][0] == owner]
        assert of_one == sorted(of_one)


@given(num_nodes=st.integers(1, 4), flood=st.integers(1, 30), turns=st.integers(1, 5))
def test_a_flood_of_one_project_holds_up_another_until_one_node_is_free(
    num_nodes: int, flood: int, turns: int
):
    """However many runs were asked for before, on one node as on many."""
    site = Site([1] * num_nodes, [1.0, 1.0], dict.fromkeys(range(flood), (0, turns)))
    site.turn()
    site.queued |= {1000: (1, turns), 1001: (1, turns)}
    for _ in range(turns):
        site.turn()
    assert 1000 in site.started
    for _ in range(2 * turns):
        site.turn()
    assert 1001 in site.started


@given(
    devices=st.lists(st.integers(0, 16), min_size=2, max_size=5),
    waiting=st.lists(st.integers(0, 4), min_size=1, max_size=30),
)
def test_the_first_is_of_a_project_that_holds_least(devices: list[int], waiting: list[int]):
    found = loads(*devices)
    queue = [Waiting(n, 1 + owner % len(devices)) for n, owner in enumerate(waiting)]
    first = in_turn(queue, found)[0]
    assert found[first.project_id].of_share == min(found[w.project_id].of_share for w in queue)
    tied = [w for w in queue if found[w.project_id].of_share == found[first.project_id].of_share]
    assert first == min(tied, key=lambda each: each.run_id)
    assert in_turn(queue, {n: replace(load) for n, load in found.items()}) == in_turn(queue, found)
