"""Sums over links that messages share, against a walk in which every part is a turn."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import backend.pipeline.simulate as simulating
from backend.pipeline.actions import AllReduce
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.links import Ring, ServerLinks, SumPart
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from tests.oracles import in_time
from tests.unit.pipeline.test_against_oracles import Uneven


@dataclass
class Rings:
    """Rings that go on over the links of servers, `share` of the time on the way out."""

    servers: ServerLinks
    parts: tuple[SumPart, ...]
    share: float

    def path(self, source, to):
        return self.servers.path(source, to)

    def latency(self, source, to):
        return self.servers.latency(source, to)

    def ring(self, action):
        assert isinstance(action, AllReduce)
        links = {}
        for here, there in zip(action.group, action.group[1:] + action.group[:1], strict=True):
            if len(path := self.path(here, there)) > 1:
                links[here] = ((path[0], self.share), (path[1], 1.0))
        return Ring(links, self.parts) if links else None


PARTS = st.lists(
    st.builds(SumPart, st.integers(0, 4).map(float), st.integers(0, 3).map(float)),
    min_size=1,
    max_size=5,
)
NO_TIME = (SumPart(0.0, 0.0),)


@settings(max_examples=200)
@given(
    name=st.sampled_from(["pipedream", "1f1b-flush", "2bw", "gpipe"]),
    replicas=st.sampled_from([(2, 2), (4, 2), (3, 3), (2, 4, 2), (2, 1, 2), (4, 4)]),
    servers=st.lists(st.integers(0, 3), min_size=8, max_size=8),
    durations=st.builds(Uneven, st.integers(0, 99), st.sampled_from([7, 4, 3])),
    parts=PARTS.map(tuple),
    latency=st.sampled_from([0.0, 0.0, 0.5]),
    share=st.sampled_from([1.0, 0.5]),
)
@example("pipedream", (2, 4, 2), [0, 0, 1, 0, 0, 1, 1, 0], Uneven(14), NO_TIME, 0.0, 1.0)
def test_who_sends_between_parts_of_a_sum_is_served_in_turn(
    name, replicas, servers, durations, parts, latency, share
):
    program = lower(schedule(name), Shape(replicas, 24, 12))
    links = Rings(ServerLinks(tuple(servers), latency), parts, share)
    found = simulate(program, durations, links)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simulating, "walk_in_time", in_time.walk_in_time)
        assert found == simulate(program, durations, links)


def test_a_message_waits_for_the_part_that_is_on_its_link_and_no_longer():
    """Two replicas on servers of their own sum in three parts of 2 s. What the first gets after 1 s
    uses the links of the second, between its first part and its second."""
    text = """
    schedule pipedream
    shape replicas=2,1 microbatches=2 batch=1 chunks=1
    0: 0R@1[0,1] <2:g1.0
    1: 0R@1[0,1]
    2: 1F0@0 >0:g1.0
    """

    @dataclass
    class Seconds:
        def compute(self, rank, action):
            return 1.0

        def transfer(self, message, source, to):
            return 0.25

        def collective(self, action):
            return 6.0

    links = Rings(ServerLinks((0, 1, 1)), (SumPart(0.0, 2.0),) * 3, 1.0)
    timeline = simulate(parse_program(text), Seconds(), links)
    ends = {(span.rank, span.index): (span.start, span.end) for span in timeline.spans}
    assert ends[2, 1] == (2.0, 2.25)
    assert (ends[0, 0], ends[1, 0]) == ((0.0, 6.0), (0.0, 6.25))
