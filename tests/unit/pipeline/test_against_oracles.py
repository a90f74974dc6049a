"""The columns say what the readable oracles say: programs, faults and seconds, to the bit."""

from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline import held
from backend.pipeline.actions import Average
from backend.pipeline.clock import durations
from backend.pipeline.clock.in_time import Cores
from backend.pipeline.clock.waits import ProgramStuck
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.links import ServerLinks
from backend.pipeline.lower import lower
from backend.pipeline.rules.faults import Rule
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from tests.oracles import held as oracle_held
from tests.oracles.lower import lower as readable_lower
from tests.oracles.program import unpack
from tests.oracles.simulate import simulate as readable_simulate
from tests.oracles.verify import verify as readable_verify
from tests.unit.pipeline.mutations import KINDS
from tests.unit.pipeline.test_mutants import programs


@dataclass
class Uneven:
    """Ranks, stages and kinds take one of `few` times, of which one is nothing at all."""

    seed: int
    few: int = 7

    def compute(self, rank, action):
        return (hash((self.seed, rank, action.stage, ord(type(action).__name__[0]))) % self.few) / 3

    def transfer(self, message, source, to):
        return (hash((self.seed, message.stage, source, to)) % (self.few - 2)) / 3

    def collective(self, action):
        return len(action.group) / 7 if isinstance(action, Average) else len(action.group) / 3


@st.composite
def cases(draw):
    """Any schedule on a shape that it admits."""
    member = draw(st.sampled_from(list(SCHEDULES.values())))
    replicas = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    batch = draw(st.sampled_from([1, 4, 6, 12]))
    chunks = draw(st.sampled_from([1, 1, 2, 3]))
    quiet = draw(st.sets(st.integers(0, max(0, len(replicas) * chunks - 2))))
    shape = partial_shape(
        replicas,
        batch,
        draw(st.integers(1, 3)),
        num_pipelines=draw(st.sampled_from([1, 1, 1, 2])),
        chunks=chunks,
        one_way=tuple(sorted(quiet)) if len(replicas) * chunks > 1 else (),
        advance=draw(st.integers(0, 3)),
        recompute=draw(st.booleans()),
    )
    assume(shape is not None)
    try:
        member.check(shape)
    except InvalidInput:
        assume(False)
    return member, shape


def partial_shape(replicas, batch, batches, num_pipelines, **counts):
    try:
        return Shape(
            replicas, batch * batches * num_pipelines, batch, num_pipelines=num_pipelines, **counts
        )
    except InvalidInput:
        return None


@settings(max_examples=150)
@given(case=cases(), seed=st.integers(0, 99))
@example((schedule("local"), Shape((2,), 2, 1)), 0)  # an update without a replica's microbatch
def test_columns_are_the_readable_programs_and_take_the_same_time(case, seed):
    member, shape = case
    program, columns = readable_lower(member, shape), lower(member, shape)
    assert columns == program.pack()
    assert unpack(columns) == program
    assert verify(columns) == readable_verify(program) == ()
    assert simulate(columns, Uneven(seed)) == readable_simulate(program, Uneven(seed))


@settings(max_examples=40)
@given(case=cases(), seed=st.integers(0, 99))
def test_few_of_very_many_pairs_of_ranks_are_asked_for_their_seconds(case, seed):
    program, found = lower(*case), []
    for few in (0, 10**6):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(durations, "FEW", few)
            found.append(simulate(program, Uneven(seed)))
    assert found[0] == found[1]


@settings(max_examples=100)
@given(case=cases())
def test_ranks_hold_what_the_oracle_counts(case):
    member, shape = case
    program = lower(member, shape)
    for coordinates in shape.coordinates:
        own = slice(program.bounds[coordinates.rank], program.bounds[coordinates.rank + 1])
        actions = program.ranks[coordinates.rank]
        assert held.in_flight(program.rows)[own].tolist() == oracle_held.in_flight(actions)
        for chunk, stage in enumerate(coordinates.stages):
            found = held.live_versions(program, chunk)[own].tolist()
            assert found == oracle_held.live_versions(actions, stage)


@settings(max_examples=150)
@given(
    case=cases(),
    seed=st.integers(0, 99),
    per_server=st.integers(1, 4),
    latency=st.booleans(),
    each=st.integers(0, 2),
)
def test_shared_links_devices_and_cores_are_given_out_alike(case, seed, per_server, latency, each):
    """Servers of so many devices; every rank of a server shares its link to the others, and its
    cores where there are any."""
    member, shape = case
    servers = tuple(shape.device_of(rank) // per_server for rank in range(shape.num_ranks))
    links = ServerLinks(servers, between=0.125 if latency else 0.0)
    cores = Cores(servers[: shape.num_devices], each) if each else None
    readable = readable_simulate(readable_lower(member, shape), Uneven(seed), links, cores)
    assert simulate(lower(member, shape), Uneven(seed), links, cores) == readable


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_has_the_faults_that_the_oracle_finds(kind):
    """One mutant in 29 of each kind; all of them are in test_mutants. What ranks hold is counted
    where all else is right. Where something is out of place or runs twice, both say so in the
    same words, and what follows from it may differ."""
    found = [m for program in programs() for m in KINDS[kind](program)]
    for mutant in islice(found, 0, None, 29):
        ours, theirs = set(verify(mutant.pack())), set(readable_verify(mutant))
        assert ours
        if {fault.rule for fault in theirs} != {Rule.BOUND}:
            theirs = {fault for fault in theirs if fault.rule is not Rule.BOUND}
        for primary in (Rule.RANK, Rule.ONCE):
            if any(fault.rule is primary for fault in theirs):
                ours, theirs = ({f for f in both if f.rule is primary} for both in (ours, theirs))
        assert ours == theirs


def stuck_at(text):
    with pytest.raises(ProgramStuck) as caught:
        simulate(parse_program(text), Uneven(0))
    with pytest.raises(ProgramStuck) as wanted:
        readable_simulate(unpack(parse_program(text)), Uneven(0))
    assert caught.value.places == wanted.value.places
    assert str(caught.value) == str(wanted.value)
    return caught.value.places


def test_a_program_that_waits_for_ever_says_where():
    text = """
    schedule gpipe
    shape replicas=1,1 microbatches=1 batch=1 chunks=1
    0: <1:g1.0 0F0@0 0B0@0 >1:a0.0 0S@1
    1: <0:a0.0 1F0@0 1B0@0 >0:g1.0 1S@1
    """
    assert stuck_at(text) == ((0, 0), (1, 0))
    beside = text.replace(" >1:a0.0 0S@1", " 0S@1").replace("0F0@0", "0F0@0 >1:a0.0")
    assert stuck_at(beside) == ((0, 0), (1, 0))


def test_any_program_can_be_packed():
    program = parse_program(
        "schedule gpipe\nshape replicas=1,2 microbatches=2 batch=2 chunks=1\n"
        "0: 0F0@0 >1:a0.0 <2:g1.1 0A@1[0,5]\n1:\n2: 1C1@7 1S@3 1R@3[1,2] 1I0@0 1W0@0\n"
    )
    assert unpack(program).pack() == program
    assert verify(program) != ()
