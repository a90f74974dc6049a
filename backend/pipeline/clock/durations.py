"""How long things take: what a simulation is told, and the seconds of every row of a program,
asked for once per rank, stage and kind."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from backend.pipeline.actions import Collective, Compute, Message
from backend.pipeline.kinds import FACTS, FLOW, FLOWS, Floats, Ints, Is, Kind
from backend.pipeline.placement import pipeline_rank_of
from backend.pipeline.program import Program

ACTIONS: list[Any] = [FACTS[kind].action for kind in Kind]

FEW = 4
"""Times as many as there are rows, up to which all codes that may be are counted: replicas of two
stages make very many pairs, of which few hand on to each other."""


class Durations(Protocol):
    """How long things take, in seconds, not negative."""

    def compute(self, rank: int, action: Compute) -> float:
        """Seconds for which `action` keeps `rank` and its device busy."""

    def transfer(self, message: Message, source: int, to: int) -> float:
        """Seconds from the first to the last byte of `message` between two ranks, latency
        included, on links that nobody else uses."""

    def collective(self, action: Collective) -> float:
        """Seconds of `action` once all of its group have come."""


def seconds(program: Program, durations: Durations) -> Floats:
    """Per row: of a compute, of a send's transfer, of a collective; 0 for a receive. All
    microbatches and versions must take the same time, as they do with every profile."""
    found = np.zeros(program.num_actions)
    for table, ask in (
        (Is.COMPUTE, _computes),
        (Is.SEND, _transfers),
        (Is.COLLECTIVE, _collectives),
    ):
        places = np.flatnonzero(program.rows.are(table))
        if len(places):
            found[places] = ask(program, places, durations)
    return found


def _computes(program: Program, places: Ints, durations: Durations) -> Floats:
    shape, count, rows = program.shape, len(Kind), program.rows
    chunk = rows.stage[places] // shape.pipeline_size

    def ask(code: int) -> float:
        where, kind = divmod(code, count)
        at, chunk = divmod(where, shape.chunks)
        stage = shape.coordinates[at].stages[chunk]
        return durations.compute(at, ACTIONS[kind](stage, 0))  # of any microbatch and version

    size = shape.num_ranks * shape.chunks * count
    at = program.rank[places] * shape.chunks + chunk
    return _asked(at * count + rows.kind[places], size, ask)


def _transfers(program: Program, places: Ints, durations: Durations) -> Floats:
    shape, rows = program.shape, program.rows
    ranks, most = shape.num_ranks, max(shape.replicas)
    first = np.asarray(shape.first_ranks)
    peer = rows.peer[places]
    replica = peer % shape.num_devices - first[pipeline_rank_of(shape, peer)]
    flow_and_stage = FLOW[rows.kind[places]] * shape.num_stages + rows.stage[places]
    code = (flow_and_stage * ranks + program.rank[places]) * most + replica

    def ask(code: int) -> float:
        rest, replica = divmod(code, most)
        rest, source = divmod(rest, ranks)
        flow, stage = divmod(rest, shape.num_stages)
        towards = 1 if flow == 0 else -1
        pipeline = source // shape.num_devices * shape.num_devices
        to = pipeline + int(first[shape.pipeline_rank_of(stage + towards)]) + replica
        return durations.transfer(Message(FLOWS[flow], stage, 0), source, to)

    return _asked(code, 2 * shape.num_stages * ranks * most, ask)


def _collectives(program: Program, places: Ints, durations: Durations) -> Floats:
    rows = program.rows.at(places)
    kinds, count = len(Kind), len(rows.groups)

    def ask(code: int) -> float:
        rest, group = divmod(code, count)
        stage, kind = divmod(rest, kinds)
        return durations.collective(ACTIONS[kind](stage, rows.groups[group], 0))

    code = (rows.stage * kinds + rows.kind) * count + rows.peer
    return _asked(code, program.shape.num_stages * kinds * count, ask)


def _asked(code: Ints, size: int, ask: Callable[[int], float]) -> Floats:
    """`ask` of every code, asked once each; `size` is more than any."""
    if size > FEW * len(code):
        known, place = np.unique(code, return_inverse=True)
        return np.array([ask(one) for one in known.tolist()])[place]
    answers = np.zeros(size)
    for one in np.flatnonzero(np.bincount(code, minlength=size)).tolist():
        answers[one] = ask(one)
    return np.asarray(answers[code])
