"""Why ranks wait: the papers' bubbles are warm-up and drain, and nothing is left over."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Forward
from backend.pipeline.bubbles import Idle, idle_causes, total, waiting
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate


@dataclass
class Slow:
    """Seconds per kind; rank `slow` takes `factor` times as long."""

    hop: float = 0.0
    reduce: float = 0.0
    slow: int = -1
    factor: float = 1.0
    seconds: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def compute(self, rank, action):
        f, b, w = self.seconds
        kinds = {Forward: f, Backward: b + w, BackwardInput: b, BackwardWeight: w}
        return kinds.get(type(action), 0.5) * (self.factor if rank == self.slow else 1.0)

    def transfer(self, message, source, to):
        return self.hop

    def collective(self, action):
        return self.reduce


def causes(name, shape, durations):
    program = lower(schedule(name), shape)
    return idle_causes(program, simulate(program, durations))


@pytest.mark.parametrize("name", ["gpipe", "1f1b-flush", "afp"])
def test_equal_stages_and_free_messages_leave_the_papers_bubble(name):
    """(p - 1) (F + B + W) per rank and batch, all of it warm-up and drain; a step of 0.5
    that the others make later is waited for at the end."""
    p, m = 4, 8
    for found in causes(name, Shape((1,) * p, m, m), Slow()):
        assert found[Idle.WARM_UP] + found[Idle.DRAIN] == pytest.approx(3.0 * (p - 1))
        assert sum(found.values()) == pytest.approx(3.0 * (p - 1))


def test_the_first_rank_waits_for_its_first_backward_and_the_last_for_its_first_forward():
    """GPipe, two pipeline ranks, no weights' half: F F F . | B B B against . F F F | B B B ."""
    first, last = causes("gpipe", Shape((1, 1), 3, 3), Slow(seconds=(1.0, 1.0, 0.0)))
    assert first[Idle.WARM_UP] == pytest.approx(2.0)
    assert last[Idle.WARM_UP] == last[Idle.DRAIN] == pytest.approx(1.0)


def test_pipedream_has_one_warm_up_and_one_drain():
    found = causes("pipedream", Shape((1,) * 4, 40), Slow())
    assert all(one[Idle.IMBALANCE] == pytest.approx(0.0) for one in found)
    assert total(found)[Idle.WARM_UP] > 0 < total(found)[Idle.DRAIN]


def test_a_slow_rank_makes_the_others_wait_in_the_middle():
    found = causes("pipedream", Shape((1,) * 3, 30), Slow(slow=1, factor=3.0))
    assert found[0][Idle.IMBALANCE] > 30
    assert found[1][Idle.IMBALANCE] == pytest.approx(0.0)


def test_a_slow_link_is_communication():
    near = causes("1f1b-flush", Shape((1, 1), 8, 8), Slow())
    far = causes("1f1b-flush", Shape((1, 1), 8, 8), Slow(hop=2.0))
    assert total(near)[Idle.COMMUNICATION] == 0
    assert total(far)[Idle.COMMUNICATION] > 8 * 2.0


def test_replicas_synchronise():
    one, other = causes("gpipe", Shape((2,), 2, 2), Slow(reduce=5.0, slow=1, factor=2.0))
    assert one[Idle.SYNCHRONISATION] == pytest.approx(5.0 + 3.0)
    assert other[Idle.SYNCHRONISATION] == pytest.approx(5.0)


def test_pipelines_wait_for_their_device():
    found = causes("1f1b-flush", Shape((1,), 4, 2, num_pipelines=2), Slow())
    assert total(found)[Idle.SHARING] + total(found)[Idle.SYNCHRONISATION] > 0
    assert total(found)[Idle.COMMUNICATION] == total(found)[Idle.IMBALANCE] == 0


@settings(max_examples=120)
@given(
    name=st.sampled_from(sorted(SCHEDULES)),
    replicas=st.sampled_from([(1,), (1, 1, 1), (2, 1), (1, 2), (3, 1, 2), (2, 2)]),
    chunks=st.sampled_from([1, 2]),
    num_pipelines=st.sampled_from([1, 2]),
    durations=st.builds(
        Slow,
        hop=st.floats(0, 3),
        reduce=st.floats(0, 3),
        slow=st.integers(0, 2),
        factor=st.floats(0.1, 4),
        seconds=st.tuples(*[st.floats(0, 3)] * 3),
    ),
)
def test_causes_add_up_to_all_idle_time(name, replicas, chunks, num_pipelines, durations):
    shape = Shape(replicas, 24 * num_pipelines, 24, chunks, num_pipelines=num_pipelines)
    try:
        program = lower(schedule(name), shape)
    except InvalidInput:
        return
    timeline = simulate(program, durations)
    found = idle_causes(program, timeline)
    for one, share in zip(found, waiting(timeline), strict=True):
        assert sum(one.values()) == pytest.approx(share * timeline.makespan, abs=1e-6)
        assert all(seconds >= -1e-9 for seconds in one.values())
