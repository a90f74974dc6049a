"""The updates of a rank's stages: the mean of the gradients, clipping, averaging of lanes."""

import math
from collections.abc import Mapping

from backend.pipeline.actions import Step
from workers.runtime.seated import Seated

SMALL = 1e-6
"""Added to a norm before dividing by it, as torch.nn.utils.clip_grad_norm_ does."""


class Updating:
    """`applied` are the microbatches of each stage's steps by version, over its replicas;
    `last_reads` the last action that reads a (stage, version)."""

    def __init__(
        self,
        seated: Seated,
        applied: Mapping[int, Mapping[int, tuple[int, ...]]],
        last_reads: Mapping[tuple[int, int], int],
    ) -> None:
        self._seated, self._applied, self._last_reads = seated, applied, last_reads
        self._due: list[tuple[int, Step]] = []

    def step(self, index: int, action: Step) -> None:
        """Make the new version. With clipping, which needs the gradients of all stages, a
        rank of several stages makes them together, at the step of the last."""
        self._due.append((index, action))
        if self._seated.clip_norm is not None and len(self._due) < len(self._seated.stages):
            return
        scale = self._scale(self._seated.clip_norm)
        for place, step in self._due:
            self._make(place, step, scale)
        self._due = []

    @property
    def is_due(self) -> bool:
        """Are there steps that wait for that of the rank's last stage?"""
        return bool(self._due)

    def average(self, stage: int) -> None:
        """Let the lanes and their reference meet."""
        sharing = self._seated.sharing
        assert sharing is not None, "a single lane has nothing to average"
        self._seated.weights[stage].average(self._seated.elasticity, sharing.sum)

    def _make(self, index: int, step: Step, scale: float) -> None:
        stage = step.stage
        self._seated.weights[stage].step(
            step.version,
            self._count(step),
            awaited=lambda v: self._last_reads.get((stage, v), -1) > index,
            scale=scale,
        )

    def _count(self, step: Step) -> int:
        """The gradients in the sum, wherever they were made."""
        return len(self._applied[step.stage][step.version])

    def _scale(self, most: float | None) -> float:
        """What brings the gradient of the lane's whole model to a norm of at most `most`; each
        stage counts once, by its first replica."""
        if most is None:
            return 1.0
        square = sum(
            self._seated.weights[step.stage].square(self._count(step))
            for _, step in self._due
            if step.stage in self._seated.leads
        )
        norm = math.sqrt(self._seated.lane_total(square))
        return min(1.0, most / (norm + SMALL))
