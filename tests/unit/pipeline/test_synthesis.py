"""Orders found for seconds: what they hold, and the fastest of all tiny ones."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.pipeline.actions import BackwardInput, BackwardWeight, Flow, Forward, Step
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.kinds import Kind
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.synthesis.costs import StageCosts, finish
from backend.pipeline.synthesis.greedy import greedy_orders
from backend.pipeline.synthesis.improve import is_held, synthesise
from backend.pipeline.synthesis.layered import fastest
from tests.oracles.every_order import earliest_end

SECONDS = st.integers(0, 9).map(float)


@st.composite
def costs(draw: st.DrawFn) -> StageCosts:
    """Of a straight pipeline, or of a V."""
    size, chunks = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    each = st.tuples(*[SECONDS] * size * chunks)
    hops = st.tuples(*[SECONDS] * (size * chunks - 1))
    held = st.tuples(*[st.integers(chunks, 6)] * size)
    return StageCosts(*(draw(each) for _ in range(3)), draw(hops), draw(hops), draw(held))


@settings(max_examples=60, deadline=None)
@given(costs(), st.integers(1, 6))
def test_what_is_found_is_whole_held_and_not_slower_than_what_it_began_with(given_costs, count):
    found = synthesise(given_costs, count, work=3000)
    assert all({own.count(kind) for kind in given_costs.kinds} == {count} for own in found)
    assert all(map(is_held, found, given_costs.most_held))
    begun = min(finish(given_costs, order) for order in greedy_orders(given_costs, count))
    assert finish(given_costs, found) <= begun < float("inf")
    assert synthesise(given_costs, count, work=3000) == found


@pytest.mark.parametrize(("size", "count"), [(1, 4), (2, 2), (2, 3), (3, 2)])
def test_tiny_ones_are_the_fastest_of_all_orders(size: int, count: int):
    dealt = random.Random(size * 10 + count)
    for _ in range(4):
        asked = dealt_out(dealt, tuple(dealt.randint(1, count) for _ in range(size)))
        found = synthesise(asked, count, work=200_000)
        assert finish(asked, found) == pytest.approx(earliest_end(asked, count))


@pytest.mark.parametrize("held", [(4, 1, 1), (1, 3, 1), (1, 1, 4), (1, 2, 1), (2, 1, 1)])
def test_three_stages_and_four_microbatches_are_the_fastest_of_all_orders(held: tuple[int, ...]):
    dealt = random.Random(sum(held))
    for _ in range(4):
        asked = dealt_out(dealt, held)
        found = synthesise(asked, 4, work=200_000)
        assert finish(asked, found) == pytest.approx(earliest_end(asked, 4))


@pytest.mark.parametrize(("held", "count"), [((2, 2), 6), ((2, 3), 6), ((4, 2), 6), ((2, 2, 2), 1)])
def test_tiny_v_are_the_fastest_of_all_orders(held: tuple[int, ...], count: int):
    dealt = random.Random(sum(held))
    for _ in range(count):
        asked = dealt_out(dealt, held, chunks=2)
        assert finish(asked, synthesise(asked, 1, work=400_000)) == pytest.approx(
            earliest_end(asked, 1)
        )


@dataclass
class Timed:
    """The seconds of `costs`, for the simulator; updates take none."""

    costs: StageCosts

    def compute(self, rank, action):
        return {
            Forward: self.costs.forward[action.stage],
            BackwardInput: self.costs.inputs[action.stage],
            BackwardWeight: self.costs.weights[action.stage],
            Step: 0.0,
        }[type(action)]

    def transfer(self, message, source, to):
        there = message.flow is Flow.ACTIVATION
        return self.costs.onward[message.stage] if there else self.costs.back[message.stage - 1]

    def collective(self, action):
        return 0.0


@pytest.mark.parametrize("name", ["zb-h1", "zb-h2", "zb-v", "v-half", "v-min"])
def test_an_order_takes_the_seconds_that_the_simulator_says(name: str):
    """Messages of both chunks wait for each other on the link between two ranks."""
    rule, dealt = schedule(name), random.Random(name)
    chunks = 2 if rule.chunked else 1
    placement = Placement.V if rule.chunked else Placement.ROUND_ROBIN
    program = lower(rule, Shape((1,) * 3, 6, 6, chunks=chunks, placement=placement))
    order = tuple(letters(program, rank) for rank in range(3))
    for _ in range(5):
        asked = dealt_out(dealt, (99,) * 3, chunks)
        assert simulate(program, Timed(asked)).makespan == pytest.approx(finish(asked, order))


def letters(program, rank: int) -> str:
    names = {
        Kind.FORWARD: "F",
        Kind.BACKWARD_INPUT: "I",
        Kind.BACKWARD_WEIGHT: "W",
    }
    part = program.part(rank)
    cells = zip(part.kind.tolist(), part.stage.tolist(), strict=True)
    own = ((names.get(Kind(kind), ""), stage) for kind, stage in cells)
    return "".join(each.lower() if stage >= 3 else each for each, stage in own)


def test_what_moves_do_not_find_is_found_among_all_orders():
    """Moves alone leave one of these 40 slower. With fifty times the work nothing is faster."""
    dealt = random.Random(31)
    for _ in range(40):
        asked = dealt_out(dealt, tuple(dealt.randint(1, 4) for _ in range(3)))
        end = finish(asked, synthesise(asked, 4, work=200_000))
        assert fastest(asked, 4, end * (1 - 1e-9), work=10_000_000) is None


def dealt_out(dealt: random.Random, held: tuple[int, ...], chunks: int = 1) -> StageCosts:
    count = chunks * len(held)
    each = [tuple(float(dealt.randint(1, 9)) for _ in range(count)) for _ in range(3)]
    hops = [tuple(float(dealt.randint(0, 9)) for _ in range(count - 1)) for _ in range(2)]
    return StageCosts(*each, *hops, held)


def test_equal_stages_with_room_wait_for_their_first_forward_alone():
    ones = (1.0,) * 4
    asked = StageCosts(ones, ones, ones, (0.0,) * 3, (0.0,) * 3, (7,) * 4)
    assert finish(asked, synthesise(asked, 8, work=0)) == 3 * 8 + 3


def test_stages_that_wait_for_each_other_never_end():
    one = (1.0, 1.0)
    asked = StageCosts(one, one, one, (0.0,), (0.0,), (2, 2))
    assert finish(asked, ("FIW", "FIW")) < float("inf")
    assert finish(asked, ("IFW", "FIW")) == float("inf")
