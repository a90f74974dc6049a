"""Bytes over time: by hand on small programs, against the papers' formulas on straight ones."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.memory import Holding, memory, peak
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate


@dataclass
class Even:
    """Bytes and seconds that are the same for every stage."""

    weight: float = 0.0
    state: float = 0.0
    activation: float = 0.0
    bundle: float = 0.0
    hop: float = 0.0
    work: float = 0.0
    constant: float = 0.0
    waiting: float = 0.0
    base: float = 0.0

    def weights(self, stage):
        return self.weight

    def reference(self, stage):
        return self.weight

    def optimizer(self, stage):
        return self.state

    def activations(self, stage):
        return self.activation

    def at_work(self, stage):
        return self.work

    def deferred(self, stage):
        return self.waiting

    def constants(self, stage):
        return self.constant

    def process(self):
        return self.base

    def boundary(self, stage):
        return self.bundle

    def boundary_gradient(self, stage):
        return self.bundle

    def compute(self, rank, action):
        return 0.0 if type(action).__name__ == "Step" else 1.0

    def transfer(self, message, source, to):
        return self.hop

    def collective(self, action):
        return 0.0


def peaks(name, shape, even):
    program = lower(schedule(name), shape)
    return [peak(own) for own in memory(program, simulate(program, even), even)]


def test_one_rank_by_hand():
    program = lower(schedule("gpipe"), Shape((1,), 2, 2))
    even = Even(weight=100, state=200, activation=10, bundle=1)
    (own,) = memory(program, simulate(program, even), even)
    seen = {moment.time: moment.holding for moment in own}
    assert seen == {
        0.0: Holding(100, 0, 0, 200, 10, 1),
        1.0: Holding(100, 0, 0, 200, 20, 2),
        2.0: Holding(100, 0, 100, 200, 20, 2),
        3.0: Holding(100, 0, 100, 200, 10, 1),
        4.0: Holding(100, 0, 0, 200, 0, 0),
    }
    assert peak(own).time == 2.0
    assert peak(own).holding.total == 422


def test_constants_and_the_process_are_always_there():
    program = lower(schedule("gpipe"), Shape((1,), 2, 2))
    even = Even(weight=100, constant=3, base=5)
    (own,) = memory(program, simulate(program, even), even)
    assert {(m.holding.constants, m.holding.process) for m in own} == {(3, 5)}
    assert own[0].holding.total == 100 + 3 + 5


def test_parts_are_named_and_added():
    some = Holding(weights=1, versions=2, process=4)
    assert some.named == {"weights": 1, "older versions": 2, "process": 4}
    assert (some + Holding(weights=1)).times(2) == Holding(weights=4, versions=4, process=8)


def test_the_layer_at_work_counts_while_it_computes():
    program = lower(schedule("gpipe"), Shape((1,), 2, 2))
    even = Even(weight=100, activation=10, work=7)
    (own,) = memory(program, simulate(program, even), even)
    assert {m.time: m.holding.work for m in own} == {0.0: 7, 1.0: 7, 2.0: 7, 3.0: 7, 4.0: 0}
    assert peak(own).holding.total == 100 + 100 + 2 * 10 + 7


P, M = 4, 12


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("gpipe", [M] * P),
        ("1f1b-flush", [4, 3, 2, 1]),
        ("afp", [7, 5, 3, 1]),
        ("zb-h1", [P] * P),
        ("zb-h2", [2 * P - 1] * P),
        ("pipedream", [4, 3, 2, 1]),
        ("2bw", [4, 3, 2, 1]),
    ],
)
def test_activations_are_those_of_the_table(name, held):
    found = peaks(name, Shape((1,) * P, 2 * M, M), Even(activation=1.0))
    assert [one.holding.activations for one in found] == held


@pytest.mark.parametrize(
    ("name", "older"),
    [
        ("1f1b-flush", [0, 0, 0, 0]),
        ("pipedream", [3, 2, 1, 0]),
        ("pipedream-vertical-sync", [3, 3, 3, 3]),
        ("pipedream-naive", [0, 0, 0, 0]),
        ("2bw", [1, 1, 1, 1]),
    ],
)
def test_older_versions_are_those_of_the_table(name, older):
    found = peaks(name, Shape((1,) * P, 2 * M, M), Even(weight=1.0))
    assert [one.holding.versions for one in found] == older
    assert all(one.holding.weights == one.holding.gradients == 1 for one in found)


def test_recomputation_keeps_inputs_and_one_microbatch_of_activations():
    """PipeDream-2BW, section 3.3: A_total / p + p A_in instead of p A_total / p + p A_in."""
    plain = peaks("2bw", Shape((1,) * P, 2 * M, M), Even(activation=10.0, bundle=1.0))
    again = peaks("2bw", Shape((1,) * P, 2 * M, M, recompute=True), Even(10.0, 0, 10.0, 1.0))
    assert [one.holding.activations for one in plain] == [40, 30, 20, 10]
    assert [one.holding.activations for one in again] == [10, 10, 10, 10]
    assert again[0].holding.buffers >= P


def test_pipelines_share_one_reference():
    program = lower(schedule("afp"), Shape((1, 1), 12, 2, num_pipelines=3))
    even = Even(weight=1.0)
    first = [own[0].holding.weights for own in memory(program, simulate(program, even), even)]
    assert first == [2, 2, 1, 1, 1, 1]


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    replicas=st.sampled_from([(1,), (1, 1, 1), (2, 1), (1, 2), (2, 2)]),
    chunks=st.sampled_from([1, 2]),
    num_pipelines=st.sampled_from([1, 2]),
    recompute=st.booleans(),
    hop=st.floats(0, 3),
)
def test_what_comes_goes(name, replicas, chunks, num_pipelines, recompute, hop):
    shape = Shape(replicas, 24 * num_pipelines, 12, chunks, 1, num_pipelines, recompute)
    try:
        program = lower(schedule(name), shape)
    except InvalidInput:
        return
    even = Even(64.0, 32.0, 8.0, 1.0, hop, work=4.0)
    for own in memory(program, simulate(program, even), even):
        assert all(before.time <= after.time for before, after in pairwise(own))
        assert all(
            min(m.holding.activations, m.holding.buffers, m.holding.gradients) >= 0 for m in own
        )
        assert own[-1].holding == Holding(weights=own[0].holding.weights, optimizer=32.0 * chunks)
