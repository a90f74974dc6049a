"""Transfers that share wires, pipelines that share devices: first come, first served."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.pipeline.actions import Average, Compute, Send, Step
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.links import OwnLinks, ServerLinks
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate


@dataclass
class Flat:
    hop: float = 1.0

    def compute(self, rank, action):
        return 0.0 if isinstance(action, Step) else 1.0 + 0.25 * rank

    def transfer(self, message, source, to):
        return self.hop

    def collective(self, action):
        return 0.25 if isinstance(action, Average) else 0.5


FOUR = """
schedule gpipe
shape replicas=2,2 microbatches=2 batch=2 chunks=1
0: >2:a0.0
1: >3:a0.1
2: <0:a0.0
3: <1:a0.1
"""


def sends(links, hop=3.0):
    timeline = simulate(parse_program(FOUR), Flat(hop), links)
    return [(s.start, s.end) for s in timeline.spans if isinstance(s.action, Send)]


def test_pairs_do_not_disturb_each_other_on_wires_of_their_own():
    assert sends(OwnLinks()) == [(0, 3), (0, 3)]


def test_the_ranks_of_a_server_share_its_wire_to_the_others():
    assert sends(ServerLinks((0, 0, 1, 1))) == [(0, 3), (3, 6)]


def test_a_wire_into_a_server_is_shared_too():
    assert sends(ServerLinks((0, 1, 2, 2))) == [(0, 3), (3, 6)]


def test_inside_a_server_nothing_is_shared():
    assert sends(ServerLinks((0, 0, 0, 0))) == [(0, 3), (0, 3)]
    assert sends(ServerLinks((0, 1, 0, 1))) == [(0, 3), (0, 3)]


def test_latency_does_not_keep_the_wire():
    assert sends(ServerLinks((0, 0, 1, 1), between=2.0)) == [(0, 3), (1, 4)]


def test_the_wire_goes_to_who_comes_first_in_time_not_to_the_lower_rank():
    text = FOUR.replace("0: >2:a0.0", "0: 0F0@0 >2:a0.0")
    timeline = simulate(parse_program(text), Flat(3.0), ServerLinks((0, 0, 1, 1)))
    found = {s.rank: (s.start, s.end) for s in timeline.spans if isinstance(s.action, Send)}
    assert found == {0: (3, 6), 1: (0, 3)}


@settings(max_examples=60)
@given(
    name=st.sampled_from(["gpipe", "1f1b-flush", "pipedream", "zb-h2", "2bw"]),
    replicas=st.sampled_from([(2, 2), (1, 2, 1), (4, 4), (3, 1, 2)]),
    per_server=st.integers(1, 4),
    hop=st.floats(0.1, 5),
)
def test_a_shared_wire_carries_one_transfer_at_a_time_and_costs_no_less(
    name, replicas, per_server, hop
):
    shape = Shape(replicas, 24, 24)
    servers = tuple(rank // per_server for rank in range(shape.num_ranks))
    links = ServerLinks(servers)
    program = lower(schedule(name), shape)
    shared = simulate(program, Flat(hop), links)
    wires = {}
    for span in shared.spans:
        if isinstance(span.action, Send):
            for wire in links.path(span.rank, span.action.to):
                wires.setdefault(wire, []).append((span.start, span.end))
    for busy in wires.values():
        busy.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(busy))
    bytes_out = max((sum(end - start for start, end in busy) for busy in wires.values()), default=0)
    assert shared.makespan >= bytes_out - 1e-9


@pytest.mark.parametrize("num_pipelines", [1, 2, 3])
@pytest.mark.parametrize("replicas", [(1, 1), (2, 1)])
def test_pipelines_on_a_device_compute_one_at_a_time(num_pipelines, replicas):
    shape = Shape(replicas, 8 * num_pipelines, 4, num_pipelines=num_pipelines)
    timeline = simulate(lower(schedule("afp"), shape), Flat())
    devices = {}
    for span in timeline.spans:
        if isinstance(span.action, Compute) and span.seconds:
            devices.setdefault(shape.device_of(span.rank), []).append((span.start, span.end))
    for busy in devices.values():
        busy.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(busy))
