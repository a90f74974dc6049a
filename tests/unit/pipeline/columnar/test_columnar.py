"""The fast path says what the readable one says: programs, faults and seconds, to the bit."""

import importlib.util
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.pipeline.bubbles import bubble, waiting
from backend.pipeline.columnar.layout import layout
from backend.pipeline.columnar.lower import lower_table
from backend.pipeline.columnar.simulate import simulate_table
from backend.pipeline.columnar.soundness import is_sound
from backend.pipeline.columnar.table import pack, unpack
from backend.pipeline.columnar.verify import run_table, verify_table
from backend.pipeline.exchange.text import parse_program
from backend.pipeline.links import ServerLinks
from backend.pipeline.lower import lower
from backend.pipeline.replay import ProgramStuck
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import Cores, simulate
from backend.pipeline.verify import ProgramUnsound, verify

_spec = importlib.util.spec_from_file_location(
    "mutants", Path(__file__).parents[1] / "test_mutants.py"
)
mutants = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(mutants)


@dataclass
class Uneven:
    """No two ranks, stages or kinds take the same time; now and then nothing at all."""

    seed: int

    def compute(self, rank, action):
        return (hash((self.seed, rank, action.stage, type(action).__name__[0])) % 7) / 3

    def transfer(self, message, source, to):
        return (hash((self.seed, message.stage, source, to)) % 5) / 3

    def all_reduce(self, stage, group):
        return len(group) / 3

    def average(self, stage, group):
        return len(group) / 7


@st.composite
def cases(draw):
    """Any schedule on a shape that it admits."""
    member = draw(st.sampled_from(list(SCHEDULES.values())))
    replicas = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    batch = draw(st.sampled_from([1, 4, 6, 12]))
    shape = partial_shape(
        replicas,
        batch,
        draw(st.integers(1, 3)),
        lanes=draw(st.sampled_from([1, 1, 1, 2])),
        chunks=draw(st.sampled_from([1, 1, 2, 3])),
        advance=draw(st.integers(0, 3)),
        recompute=draw(st.booleans()),
    )
    assume(shape is not None)
    try:
        member.check(shape)
    except InvalidInput:
        assume(False)
    return member, shape


def partial_shape(replicas, batch, batches, lanes, **counts):
    try:
        return Shape(replicas, batch * batches * lanes, batch, lanes=lanes, **counts)
    except InvalidInput:
        return None


@settings(max_examples=150, deadline=None)
@given(case=cases(), seed=st.integers(0, 99))
def test_tables_are_the_readable_programs_and_take_the_same_time(case, seed):
    member, shape = case
    program = lower(member, shape)
    table = lower_table(member, shape)
    assert table.equals(pack(program))
    assert unpack(table) == program
    assert is_sound(table)
    assert verify_table(table) == ()
    readable = simulate(program, Uneven(seed))
    times = run_table(table, Uneven(seed))
    assert times.timeline() == readable
    assert times.makespan == readable.makespan
    assert times.bubble() == pytest.approx(bubble(readable))
    busy = times.busy() / times.makespan if times.makespan else np.ones(shape.num_ranks)
    assert 1 - busy == pytest.approx(np.array(waiting(readable)))


def test_the_usual_programs_take_the_fast_way():
    """Or else the test above would compare the readable path with itself."""
    for member in SCHEDULES.values():
        assert layout(lower_table(member, Shape((2, 2), 16, 8))) is not None
    assert layout(lower_table(schedule("gpipe"), Shape((1, 1), 8, 4, lanes=2))) is not None


@settings(max_examples=150, deadline=None)
@given(
    case=cases(),
    seed=st.integers(0, 99),
    per_server=st.integers(1, 4),
    latency=st.booleans(),
    each=st.integers(0, 2),
)
def test_shared_wires_devices_and_cores_are_given_out_alike(case, seed, per_server, latency, each):
    """Servers of so many devices; every rank of a server shares its wire to the others, and its
    cores where there are any."""
    member, shape = case
    servers = tuple(shape.device_of(rank) // per_server for rank in range(shape.num_ranks))
    links = ServerLinks(servers, between=0.125 if latency else 0.0)
    cores = Cores(servers[: shape.num_devices], each) if each else None
    readable = simulate(lower(member, shape), Uneven(seed), links, cores)
    fast = simulate_table(lower_table(member, shape), Uneven(seed), cores, links)
    assert fast.timeline() == readable


@pytest.mark.parametrize("kind", mutants.KINDS)
def test_no_mutant_is_called_sound(kind):
    """Every seventh mutant of each kind; all of them are in test_mutants."""
    found = [m for program in mutants.programs() for m in mutants.KINDS[kind](program)]
    for mutant in islice(found, 0, None, 7):
        assert verify_table(pack(mutant)) == verify(mutant) != ()


def test_a_broken_table_is_not_run():
    program = lower(schedule("gpipe"), Shape((1, 1), 4, 4))
    cut = replace(program, ranks=(program.ranks[0][:-1], program.ranks[1]))
    with pytest.raises(ProgramUnsound, match="makes 0 of 1 updates"):
        run_table(pack(cut), Uneven(0))


def test_a_table_that_waits_for_ever_says_where():
    text = """
    schedule gpipe
    shape replicas=1,1 microbatches=1 batch=1 chunks=1
    0: <1:g1.0 0F0@0 0B0@0 >1:a0.0 0S@1
    1: <0:a0.0 1F0@0 1B0@0 >0:g1.0 1S@1
    """
    with pytest.raises(ProgramStuck, match="rank 0 at action 0"):
        simulate_table(pack(parse_program(text)), Uneven(0))
    beside = text.replace(" >1:a0.0 0S@1", " 0S@1").replace("0F0@0", "0F0@0 >1:a0.0")
    stuck = pack(parse_program(beside))
    assert layout(stuck) is not None
    with pytest.raises(ProgramStuck, match="rank 0 at action 0"):
        simulate_table(stuck, Uneven(0))


def test_any_program_can_be_packed():
    program = parse_program(
        "schedule gpipe\nshape replicas=1,2 microbatches=2 batch=2 chunks=1\n"
        "0: 0F0@0 >1:a0.0 <2:g1.1 0A@1[0,5]\n1:\n2: 1C1@7 1S@3 1R@3[1,2] 1I0@0 1W0@0\n"
    )
    assert unpack(pack(program)) == program
    assert verify_table(pack(program)) == verify(program) != ()
