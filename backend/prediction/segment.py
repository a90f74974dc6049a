"""The program of a segment, and what of it no seconds change: found once for many predictions."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from backend.pipeline.actions import Flow, Message
from backend.pipeline.held import staleness
from backend.pipeline.kinds import Kind
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.replica_groups import ALL, ReplicaGroups
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape

KEPT_PROGRAMS = 64
KEPT_COMPUTES = 4096
"""Segments with at most as many forwards are kept, the last 64 of them (some 20 MB): a search asks
for the same ones again on every further cluster."""


@dataclass(frozen=True)
class Segment:
    """`program` with what is counted in it. It may be that of one of several groups of ranks that
    are alike (`AlikeGroups`): then what is counted is that of all."""

    program: Program
    groups: ReplicaGroups = ALL

    @cached_property
    def shape(self) -> Shape:
        """That of all groups."""
        is_batched = schedule(self.program.schedule).batched
        return self.groups.all(self.program.shape, is_batched)

    @cached_property
    def staleness(self) -> int:
        """The most updates between a forward and its backward, over all stages."""
        return max(staleness(self.program))

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """Per stage the weight versions that are kept at once."""
        shape, rule = self.shape, schedule(self.program.schedule)
        groups = (shape.group_of(stage) for stage in range(shape.num_stages))
        return tuple(rule.live(shape.at(group[0])) for group in groups)

    @cached_property
    def sent(self) -> tuple[tuple[Message, int], ...]:
        """How often each message is sent, of any microbatch."""
        rows, num_stages = self.program.rows, self.program.shape.num_stages
        found = []
        for flow, kind in (
            (Flow.ACTIVATION, Kind.SEND_ACTIVATION),
            (Flow.GRADIENT, Kind.SEND_GRADIENT),
        ):
            counts = np.bincount(rows.stage[rows.kind == kind], minlength=num_stages)
            stages = np.flatnonzero(counts).tolist()
            times = self.groups.count
            found += [(Message(flow, stage, 0), times * int(counts[stage])) for stage in stages]
        return tuple(found)

    @cached_property
    def reduced(self) -> tuple[tuple[int, int, int], ...]:
        """How often each group reduces: (stage, members, times that one of them does)."""
        return self._collectives(Kind.ALL_REDUCE)

    @cached_property
    def averaged(self) -> tuple[tuple[int, int, int], ...]:
        """How often pipelines exchange, likewise."""
        return self._collectives(Kind.AVERAGE)

    def _collectives(self, kind: Kind) -> tuple[tuple[int, int, int], ...]:
        rows = self.program.rows.at(self.program.rows.kind == kind)
        names = np.stack([rows.stage, rows.peer])
        found, counts = np.unique(names, axis=1, return_counts=True)
        times = self.groups.count
        return tuple(
            (stage, times * len(rows.groups[group]), times * count)
            for (stage, group), count in zip(found.T.tolist(), counts.tolist(), strict=True)
        )


def segment(name: str, shape: Shape, groups: ReplicaGroups = ALL) -> Segment:
    """The segment of a schedule's program, or that of one of `groups`. Raises `InvalidInput` for a
    shape that it refuses."""
    small = shape.num_stages * shape.num_microbatches <= KEPT_COMPUTES * groups.count
    return _kept(name, shape, groups) if small else _made(name, shape, groups)


def _made(name: str, shape: Shape, groups: ReplicaGroups) -> Segment:
    rule = schedule(name)
    return Segment(lower(rule, groups.one(shape, rule.batched)), groups)


_kept = lru_cache(KEPT_PROGRAMS)(_made)
