"""Every single mutation, at every place of small valid programs, is caught by the verifier."""

from contextlib import suppress
from functools import cache

import pytest

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.pipeline.shape import Shape
from backend.pipeline.verify import verify
from tests.oracles.lower import lower
from tests.unit.pipeline.mutations import KINDS

SHAPES = [
    Shape((1,), 4, 2),
    Shape((1, 1), 4, 4),
    Shape((1, 1, 1), 4, 2),
    Shape((2, 1), 4, 4),
    Shape((1, 2), 4, 2),
    Shape((3, 1, 2), 6, 6),
    Shape((1, 1), 6, 3, advance=2, recompute=True),
    Shape((1, 2), 16, 4, num_pipelines=2),
    Shape((1, 1), 4, 2, chunks=2, recompute=True),
]
FIELDS = ("versions", "updates", "trains", "consistent")
BY_RANK = ("in_flight", "live")
"""With `idle_backward` and the name all that the verifier reads of a schedule."""


def promises(member, shape):
    by_rank = (getattr(member, name)(at) for name in BY_RANK for at in shape.coordinates)
    fields = (getattr(member, name) for name in FIELDS)
    return (*fields, *by_rank, *member.idle_backward(shape).tolist())


@cache
def programs():
    found = []
    for member in SCHEDULES.values():
        for shape in SHAPES:
            with suppress(InvalidInput):
                found.append(lower(member, shape))
    return tuple(found)


@cache
def different():
    """Schedules that write the same and promise the same of it ask the verifier the same: once."""
    found = {}
    for program in programs():
        promised = promises(SCHEDULES[program.schedule], program.shape)
        found.setdefault((program.shape, program.ranks, promised), program)
    return tuple(found.values())


class Read:
    """A schedule that notes what is read of it."""

    def __init__(self, member, names):
        self._member, self._names = member, names

    def __getattr__(self, name):
        self._names.add(name)
        return getattr(self._member, name)


def test_the_verifier_reads_nothing_else_of_a_schedule(monkeypatch):
    names = set()
    monkeypatch.setattr(
        "backend.pipeline.verify.schedule", lambda name: Read(SCHEDULES[name], names)
    )
    for kind in KINDS.values():
        for program in different():
            if mutant := next(kind(program), None):
                verify(mutant.pack())
    assert verify(different()[0].pack()) == ()
    assert names == {"name", "idle_backward", *FIELDS, *BY_RANK}


@pytest.mark.parametrize("kind", KINDS)
def test_every_mutant_is_caught(kind):
    mutants = [mutant for program in different() for mutant in KINDS[kind](program)]
    assert len(mutants) >= 20
    assert not [mutant for mutant in mutants if not verify(mutant.pack())]
