"""GROUP: every group reduces and averages the same, in the same order, beside its steps."""

from collections.abc import Iterator, Sequence

import numpy as np

from backend.pipeline.clock.waits import coded, nth
from backend.pipeline.kinds import Bools, Ints, Is, Kind
from backend.pipeline.placement import holder_of
from backend.pipeline.rules.faults import Broken, Fault, Rule, missing
from backend.pipeline.rules.places import Places
from backend.pipeline.rules.updates import numbers


def in_groups(at: Places) -> Iterator[Broken | Fault]:
    """Every collective where it must be, and nowhere else."""
    yield from reductions(at)
    yield from averages(at)


def reductions(at: Places) -> Iterator[Broken]:
    """An all-reduce of the version after the last backward before each step of a replicated
    stage, over its replicas."""
    rows, shape = at.program.rows, at.shape
    reduce = at.placed & (rows.kind == Kind.ALL_REDUCE)
    replicated = np.asarray(shape.replicas) > 1
    if not replicated.any() and not reduce.any():
        return
    events = np.flatnonzero(reduce | (at.placed & (Is.LEARNING[rows.kind] | _steps(at))))
    before = _before(at, events, np.ones(len(events), np.bool_))
    reduced = (before >= 0) & (rows.kind[before] == Kind.ALL_REDUCE)
    asks = replicated[holder_of(shape, rows.stage[events])] & (rows.kind[events] == Kind.STEP)
    same = reduced & (rows.version[before] == rows.version[events])
    yield Broken(
        Rule.GROUP,
        events[asks & ~same],
        "applies gradients that the group has not reduced",
    )
    twice = events[reduced & (rows.kind[events] == Kind.ALL_REDUCE)]
    yield Broken(Rule.GROUP, twice, "reduces gradients that are reduced already")
    groups = [
        shape.group_of(coordinates.pipeline_rank, coordinates.pipeline)
        for coordinates in shape.coordinates
    ]
    yield _groups(at, reduce, groups, "reduce")


def averages(at: Places) -> Iterator[Broken | Fault]:
    """An averaging after each step of several pipelines, before anybody reads the version."""
    rows, shape = at.program.rows, at.shape
    average = at.placed & (rows.kind == Kind.AVERAGE)
    if shape.num_pipelines == 1 and not average.any():
        return
    step = _steps(at) if shape.num_pipelines > 1 else np.zeros_like(average)
    turning = np.flatnonzero(at.placed & (step | average))
    before = _before(at, turning, np.ones(len(turning), np.bool_))
    apart = (before >= 0) & step[before]
    same = apart & (rows.version[before] == rows.version[turning])
    yield Broken(
        Rule.GROUP,
        turning[average[turning] & ~same],
        lambda row: f"averages version {rows.version[row]}, which no step has just made",
    )
    reading = np.flatnonzero(at.placed & (step | average | (rows.kind == Kind.FORWARD)))
    last = _before(at, reading, (step | average)[reading])
    early = (last >= 0) & step[last] & ~average[reading]
    version = dict(zip(reading.tolist(), rows.version[last].tolist(), strict=True))
    yield Broken(
        Rule.GROUP,
        reading[early],
        lambda row: f"comes before version {version[row]} is averaged",
    )
    yield _groups(
        at,
        average,
        [shape.sharing(coordinates.rank) for coordinates in shape.coordinates],
        "average",
    )
    yield from _left_apart(at, turning, step)


def _left_apart(at: Places, turning: Ints, step: Bools) -> Iterator[Fault]:
    rows = at.program.rows
    place = _place(at, turning)
    ends = np.unique(place[::-1], return_index=True)[1]
    for row in turning[::-1][ends].tolist():
        if step[row]:
            version, stage = rows.version[row], rows.stage[row]
            what = f"never averages version {version} of stage {stage} over pipelines"
            yield missing(int(at.program.rank[row]), Rule.GROUP, what)


def partners(at: Places) -> Iterator[Broken]:
    """The ranks of a group come to its collectives in the same order: that of the first."""
    rows = at.program.rows
    places = np.flatnonzero(rows.are(Is.COLLECTIVE))
    if not len(places):
        return
    own, rank = rows.at(places), at.program.rank[places]
    what = coded(own.kind, own.stage, own.version)
    turn = nth(coded(own.peer, rank))
    leader = np.full(int(own.peer.max()) + 1, at.program.num_ranks)
    np.minimum.at(leader, own.peer, rank)
    leads = rank == leader[own.peer]
    key = own.peer * (int(turn.max()) + 1) + turn
    led = np.full(int(key.max()) + 1, -1)
    led[key[leads]] = what[leads]
    wrong = (led[key] >= 0) & (led[key] != what)
    first = np.unique(coded(own.peer, rank)[wrong], return_index=True)[1]
    place = dict(zip(places.tolist(), leader[own.peer].tolist(), strict=True))
    yield Broken(
        Rule.GROUP,
        places[wrong][first],
        lambda row: f"comes to another collective than rank {place[row]}",
    )


def _steps(at: Places) -> Bools:
    return np.asarray(at.program.rows.kind == Kind.STEP)


def _place(at: Places, rows: Ints) -> Ints:
    """A number per rank and chunk."""
    chunk = at.program.rows.stage[rows] // at.shape.pipeline_size
    return np.asarray(at.program.rank[rows] * at.shape.chunks + chunk)


def _before(at: Places, rows: Ints, marked: Bools) -> Ints:
    """Per row the last marked one before it on its rank and of its stage, or -1."""
    place = _place(at, rows)
    order = np.argsort(place, kind="stable")
    ordered, run = place[order], np.arange(len(rows))
    latest = np.maximum.accumulate(np.where(marked[order], run, -1))
    latest = np.concatenate(([-1], latest[:-1]))[: len(rows)]
    known = (latest >= 0) & (ordered[latest] == ordered)
    found = np.full(len(rows), -1)
    found[order] = np.where(known, rows[order][latest], -1)
    return found


def _groups(at: Places, mask: Bools, wanted: Sequence[tuple[int, ...]], verb: str) -> Broken:
    """The collectives over another group than the one `wanted` of each rank."""
    rows, rank = at.program.rows, at.program.rank
    numbered = {group: number for number, group in enumerate(rows.groups)}
    right = np.array([numbered.get(group, -1) for group in wanted])
    return Broken(
        Rule.GROUP,
        np.flatnonzero(mask & (rows.peer != right[rank])),
        lambda row: f"should {verb} over ranks {numbers(wanted[rank[row]])}",
    )
