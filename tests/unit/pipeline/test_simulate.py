from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.pipeline.actions import (
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.bubbles import bubble, waiting
from backend.pipeline.clock.in_time import Cores
from backend.pipeline.clock.waits import ProgramStuck
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate


@dataclass
class Flat:
    """The same seconds on every rank."""

    forward: float = 1.0
    backward: float = 2.0
    weight: float = 0.0
    hop: float = 0.0
    step: float = 0.0
    reduce: float = 0.0
    average_seconds: float = 0.0

    def compute(self, rank, action):
        return {
            Forward: self.forward,
            Recompute: self.forward,
            Backward: self.backward + self.weight,
            BackwardInput: self.backward,
            BackwardWeight: self.weight,
            Step: self.step,
        }[type(action)]

    def transfer(self, message, source, to):
        return self.hop

    def collective(self, action):
        return self.average_seconds if isinstance(action, Average) else self.reduce


ORACLE = [
    ("1.5B", 8, 24, 18.522, 18.086, 9.337, 0.601, (0.2431, 0.1585, 0.1083)),
    ("1.5B", 8, 64, 18.546, 18.097, 9.321, 0.762, (0.1240, 0.0674, 0.0444)),
    ("6.2B", 8, 32, 29.802, 29.428, 19.530, 0.577, (0.1898, 0.1045, 0.0559)),
    ("14.6B", 16, 48, 11.347, 11.248, 8.132, 0.377, (0.2552, 0.1397, 0.0672)),
    ("28.3B", 32, 128, 10.408, 10.204, 7.703, 0.408, (0.2168, 0.1106, 0.0490)),
]


@pytest.mark.parametrize(("number", "name"), [(0, "1f1b-flush"), (1, "zb-h1"), (2, "zb-h2")])
@pytest.mark.parametrize(("model", "p", "m", "f", "b", "w", "c", "published"), ORACLE)
def test_bubbles_are_those_that_the_zero_bubble_paper_publishes(
    model, p, m, f, b, w, c, published, number, name
):
    """Qi et al., ICLR 2024 (arXiv 2401.10241), tables 5 and 9: the cost is the longest over
    the ranks from first start to last end of compute; the step costs nothing there."""
    program = lower(schedule(name), Shape((1,) * p, m, m))
    timeline = simulate(program, Flat(forward=f, backward=b, weight=w, hop=c))
    cost = 0.0
    for rank in range(p):
        own = [s for s in timeline.spans if s.rank == rank and isinstance(s.action, Compute)]
        cost = max(cost, own[-1].end - own[0].start)
    assert round((cost - m * (f + b + w)) / cost, 4) == published[number]


@pytest.mark.parametrize("name", ["gpipe", "1f1b-flush"])
@pytest.mark.parametrize("p", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("m", [1, 2, 4, 9, 16])
def test_the_bubble_of_a_flush_is_p_minus_1_over_m_plus_p_minus_1(name, p, m):
    """GPipe (Huang et al., 2019), section 2.3, for equal stages and free messages."""
    timeline = simulate(lower(schedule(name), Shape((1,) * p, m, m)), Flat())
    assert timeline.makespan == pytest.approx(3 * (m + p - 1))
    assert bubble(timeline) == pytest.approx((p - 1) / (m + p - 1))
    assert waiting(timeline) == pytest.approx([(p - 1) / (m + p - 1)] * p)


def test_pipedream_fills_the_pipeline_once_for_a_whole_segment():
    timeline = simulate(lower(schedule("pipedream"), Shape((1,) * 4, 60)), Flat())
    assert timeline.makespan == pytest.approx(3 * (60 + 4 - 1))


HEAD = "schedule gpipe\nshape replicas={} microbatches=2 batch=1 chunks=1\n"


def times(replicas, ranks, durations):
    text = HEAD.format(replicas) + "\n".join(f"{r}: {line}" for r, line in enumerate(ranks))
    timeline = simulate(parse_program(text), durations)
    return [
        [(s.start, s.end) for s in timeline.spans if s.rank == rank] for rank in range(len(ranks))
    ]


def test_a_send_takes_the_channel_and_not_the_rank():
    first, second = times(
        "1,1",
        ["0F0@0 >1:a0.0 0F1@0 >1:a0.1", "<0:a0.0 1F0@0 <0:a0.1 1F1@0"],
        Flat(forward=1.0, hop=3.0),
    )
    assert first == [(0, 1), (1, 4), (1, 2), (4, 7)]
    assert second == [(0, 4), (4, 5), (5, 7), (7, 8)]


def test_opposite_directions_and_other_pairs_do_not_share_a_channel():
    first, second = times("1,1", [">1:a0.0 <1:g1.0", ">0:g1.0 <0:a0.0"], Flat(hop=2.0))
    assert first == [(0, 2), (0, 2)]
    assert second == [(0, 2), (0, 2)]


def test_an_all_reduce_starts_when_the_last_of_the_group_comes():
    first, second = times(
        "2", ["0F0@0 0R@1[0,1] 0S@1", "0F1@0 0B1@0 0R@1[0,1] 0S@1"], Flat(reduce=0.5)
    )
    assert first == [(0, 1), (3, 3.5), (3.5, 3.5)]
    assert second == [(0, 1), (1, 3), (3, 3.5), (3.5, 3.5)]


def test_what_arrived_long_ago_is_not_waited_for():
    _, second = times(
        "1,1", [">1:a0.0 >1:a0.1", "<0:a0.0 1F0@0 <0:a0.1"], Flat(forward=9.0, hop=1.0)
    )
    assert second == [(0, 1), (1, 10), (10, 10)]


def test_a_program_that_waits_for_ever_has_no_timeline():
    with pytest.raises(ProgramStuck, match="rank 0 at action 0"):
        times("1,1", ["<1:g1.0", "1F0@0"], Flat())


@settings(max_examples=60)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    replicas=st.sampled_from([(1,), (1, 1, 1), (2, 1), (1, 2), (3, 1, 2), (4,)]),
    batches=st.integers(1, 3),
    seconds=st.tuples(*[st.floats(0, 5)] * 7),
)
def test_ranks_do_one_thing_at_a_time_and_effects_follow_causes(name, replicas, batches, seconds):
    program = lower(schedule(name), Shape(replicas, 24 * batches, 24))
    timeline = simulate(program, Flat(*seconds))
    begun = {(s.rank, s.index): s for s in timeline.spans}
    sent = {s.action.message: s for s in timeline.spans if isinstance(s.action, Send)}
    assert all(s.start <= s.end for s in timeline.spans)
    for rank in range(len(program.ranks)):
        own = [s for s in timeline.spans if s.rank == rank and not isinstance(s.action, Send)]
        assert all(before.end <= after.start for before, after in pairwise(own))
    for span in timeline.spans:
        if isinstance(span.action, Recv):
            assert span.end >= sent[span.action.message].end
        if isinstance(span.action, Send):
            assert span.start >= begun[span.rank, span.index - 1].end
        if isinstance(span.action, AllReduce):
            collective = [s for s in timeline.spans if s.action == span.action]
            assert {(s.start, s.end) for s in collective} == {(span.start, span.end)}


@given(factor=st.floats(0.1, 10))
def test_slower_everything_is_slower_by_the_same_factor(factor):
    program = lower(schedule("pipedream"), Shape((2, 1), 8))
    base = simulate(program, Flat(1, 2, 0.0, 0.3, 0.1, 0.2)).makespan
    slow = Flat(factor, 2 * factor, 0.0, 0.3 * factor, 0.1 * factor, 0.2 * factor)
    assert simulate(program, slow).makespan == pytest.approx(factor * base)


def on(cores: int, hosts: tuple[int, ...] = (0, 0, 0, 0)) -> Cores:
    return Cores(hosts, cores)


@pytest.mark.parametrize("name", ["gpipe", "1f1b-flush", "pipedream", "2bw"])
def test_ranks_with_a_core_each_are_not_slowed(name):
    program = lower(schedule(name), Shape((1,) * 4, 16, 4 if name != "pipedream" else 1))
    assert simulate(program, Flat(), cores=on(4)) == simulate(program, Flat())


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_no_more_ranks_compute_at_once_than_there_are_cores(cores):
    program = lower(schedule("pipedream"), Shape((1,) * 4, 24))
    spans = simulate(program, Flat(), cores=on(cores)).spans
    computed = [span for span in spans if isinstance(span.action, Compute) and span.seconds]
    for span in computed:
        beside = [other for other in computed if other.start <= span.start < other.end]
        assert len(beside) <= cores


def test_a_busy_pipeline_takes_its_work_over_the_cores():
    """24 microbatches x 4 stages x 3 s on 2 cores: 144 s, and a little to fill and drain."""
    program = lower(schedule("pipedream"), Shape((1,) * 4, 24))
    assert 144 <= simulate(program, Flat(), cores=on(2)).makespan <= 150
    assert simulate(program, Flat(), cores=on(1)).makespan == pytest.approx(288)


def test_each_host_has_its_own_cores():
    program = lower(schedule("pipedream"), Shape((1,) * 4, 24))
    both = simulate(program, Flat(), cores=on(1, hosts=(0, 0, 1, 1))).makespan
    assert 144 <= both <= 156
