"""All plans of one question: where to cut, on what to place, what to keep within."""

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Cluster
from backend.planning.cost import Floats
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.candidates import Cells
from backend.planning.pipedream.ideals import Ideals
from backend.planning.plan import Partition, Stage
from backend.planning.replica_bounds import Bounds
from backend.planning.work import SearchWork

Ints = NDArray[np.int64]
KEPT_BOUNDS = 4_096
"""Of several spaces: their plans differ, what a stage holds does not."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The layers between two ideals on the devices of pipeline ranks start..end-1, counted from
    the last device."""

    first: int
    stop: int
    start: int
    end: int


@dataclass(frozen=True)
class PlanSpace:
    """With `relaxed` of memory only that is asked which no plan escapes, for a lower bound: idle
    devices and copied pipelines are thought of. `tells_excess`: a plan that does not fit is said
    with the smallest memory that would do, which takes a bisection. A search counts its `work`."""

    ideals: Ideals | Cells
    cluster: Cluster
    overlap: bool = True
    memory: MemoryRule | None = None
    relaxed: bool = False
    tells_excess: bool = True
    work: SearchWork = field(default_factory=SearchWork, compare=False)

    def with_share(self, share: float) -> "PlanSpace":
        """The same for a search that may do that share of the work that is left."""
        return replace(self, work=self.work.part(share))

    @property
    def is_exact(self) -> bool:
        """Whether what is not feasible in the order of the devices is so for every plan."""
        is_flat = len(self.cluster.levels) == 1
        return is_flat and self.ideals.complete and self.cluster.is_uniform

    @cached_property
    def compute(self) -> Floats:
        """Sums of seconds on the cluster's devices, or on the profiled one where they differ."""
        return self.ideals.compute / self._pace

    @cached_property
    def compute_most(self) -> Floats:
        """The most of what each stands for."""
        return self.ideals.compute_most / self._pace

    def between(self, firsts: Ints, stop: int) -> Floats:
        """Seconds of the stages between."""
        return np.asarray(np.maximum(self.compute[stop] - self.compute_most[firsts], 0.0))

    @property
    def _pace(self) -> float:
        return self.cluster.each[0].speed if self.cluster.is_uniform else 1.0

    def seconds(self, partition: Partition) -> float:
        """The bottleneck of `partition`."""
        return bottleneck(self.ideals.profile, self.cluster, partition, self.overlap)

    def fits(self, pieces: tuple[Piece, ...]) -> bool:
        """Whether all stages keep within the memory, as the prediction counts it."""
        return self.memory is None or self.keeps_within(self.partition(pieces))

    def keeps_within(self, partition: Partition) -> bool:
        profile, rule = self.ideals.profile, self.memory
        return rule is None or rule.fits(profile, self.cluster, partition)

    def partition(self, pieces: tuple[Piece, ...]) -> Partition:
        """The pieces as stages on devices, the last device at pipeline rank 0."""
        count, found = self.cluster.num_devices, self.ideals
        assert isinstance(found, Ideals)
        sizes = found.members.sum(axis=1).tolist()
        stages = (
            Stage(sizes[p.first], sizes[p.stop], tuple(range(count - p.end, count - p.start)))
            for p in pieces
        )
        return Partition(tuple(stages), found.order(piece.stop for piece in pieces))

    def with_devices(self, total: int) -> "PlanSpace":
        """The plans of pipelines with so many devices in all."""
        assert self.memory is not None
        return replace(self, memory=replace(self.memory, total=total))

    def memory_on(self, *sizes: float | None) -> MemoryRule:
        """The rule on devices of so many bytes, None where that is not known."""
        assert self.memory is not None
        return replace(self.memory, limit=min([self.memory.limit, *filter(None, sizes)]))

    def bounds(self, after: int, copies: int = 1) -> Bounds:
        """What a stage in front of `after` devices holds, of a pipeline that stands in so many
        machines alike."""
        assert self.memory is not None
        most = copies * self.cluster.num_devices - (after if copies == 1 else 0)
        return _bounds(self.memory, max(1, most), after)


_bounds = lru_cache(KEPT_BOUNDS)(MemoryRule.bounds)
