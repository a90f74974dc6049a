"""The updates of a rank's stages: the mean of the gradients, clipping, exchanges of pipelines."""

import math
from collections.abc import Callable

from backend.pipeline.actions import Step
from workers.runtime.execution.program import RankProgram, last_reads
from workers.runtime.messages.groups import led_stages
from workers.runtime.rank import Rank

SMALL = 1e-6
"""Added to a norm before dividing by it, as torch.nn.utils.clip_grad_norm_ does."""


class Updates:
    """Those of a segment. `share` are the samples of a microbatch to those of a full one;
    `averaged` is told of each stage whose pipelines were averaged."""

    def __init__(
        self,
        rank: Rank,
        program: RankProgram,
        share: Callable[[int], float],
        averaged: Callable[[int], None],
    ) -> None:
        self._state, self._groups, self._led = rank.state, rank.groups, led_stages(rank.coordinates)
        self._applied, self._last_reads = program.applied, last_reads(program.actions)
        self._share, self._averaged = share, averaged
        self._due: list[tuple[int, Step]] = []
        self._to_average: list[int] = []

    def step(self, index: int, action: Step) -> None:
        """Make the new version. With clipping, which needs the gradients of all stages, a
        rank of several stages makes them together, at the step of the last."""
        self._due.append((index, action))
        if self._is_joint and len(self._due) < len(self._state.weights):
            return
        scale = self._scale() if self._is_joint else 1.0
        for place, step in self._due:
            self._make(place, step, scale)
        waiting, self._due, self._to_average = self._to_average, [], []
        for stage in waiting:
            self.average(stage)

    @property
    def _is_joint(self) -> bool:
        """Does an update ask for the gradients of all stages first?"""
        is_clipped = self._state.clip_norm is not None and self._state.clip_whole
        return is_clipped or self._state.loss_scale is not None

    @property
    def is_due(self) -> bool:
        """Are there steps that wait for that of the rank's last stage?"""
        return bool(self._due)

    def average(self, stage: int) -> None:
        """Let the pipelines learn from each other, once the stage's step is made."""
        if any(step.stage == stage for _, step in self._due):
            self._to_average.append(stage)
            return
        assert self._groups.peers is not None, "a single pipeline has nothing to exchange"
        self._state.weights[stage].exchange(self._groups.peers)
        self._averaged(stage)

    def _make(self, index: int, step: Step, scale: float) -> None:
        """The step's version; the newest weights under that number where `scale` is 0."""
        stage, weights = step.stage, self._state.weights[step.stage]

        def awaited(version: int) -> bool:
            return self._last_reads.get((stage, version), -1) > index

        if scale:
            weights.step(step.version, self.count(step), awaited, self._own(step, scale))
        else:
            weights.skip(step.version, awaited)

    def count(self, step: Step) -> float:
        """The gradients in the sum, wherever they were made; those of a smaller microbatch
        count as its share of the samples."""
        return sum(map(self._share, self._applied[step.stage][step.version]))

    def _scale(self) -> float:
        """What takes the loss's scale off the gradient of the pipeline's whole model and brings it
        to the norm that is allowed; 0 where it is not finite. What all replicas of a stage have
        counts once, by the first of them."""
        square = 0.0
        for _, step in self._due:
            shared, own = self._state.weights[step.stage].squares(self.count(step))
            square += own + (shared if step.stage in self._led else 0.0)
        norm = math.sqrt(self._groups.pipeline_total(square))
        loss_scale, scale = self._state.loss_scale, 1.0
        if loss_scale is not None:
            scale = 1 / loss_scale.value
            loss_scale.told(math.isfinite(norm))
            if not math.isfinite(norm):
                return 0.0
        return scale * self._clipped(norm * scale) if self._state.clip_whole else scale

    def _own(self, step: Step, scale: float) -> float:
        """What brings the gradient of the stage to the norm that is allowed to each."""
        if self._state.clip_whole or self._state.clip_norm is None:
            return scale
        shared, own = self._state.weights[step.stage].squares(self.count(step))
        norm = math.sqrt(shared + self._groups.stage_total(step.stage, own))
        return scale * self._clipped(norm * scale)

    def _clipped(self, norm: float) -> float:
        most = self._state.clip_norm
        return 1.0 if most is None else min(1.0, most / (norm + SMALL))
