"""Bytes of what a rank holds of each stage of a plan, as the memory of a program asks for."""

from dataclasses import dataclass

from backend.planning.optimizers import optimizer_named
from backend.planning.plan import Partition
from backend.profiles.profile import Layer, Profile


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """`backend.pipeline.memory.Sizes` of a partition of a profile; `rule` is the optimizer's."""

    profile: Profile
    partition: Partition
    rule: str

    def weights(self, stage: int) -> float:
        """One version of the stage's weights."""
        return float(sum(layer.parameter_bytes for layer in self._layers(stage)))

    def optimizer(self, stage: int) -> float:
        """A velocity, two moments, or nothing."""
        return optimizer_named(self.rule).state_copies * self.weights(stage)

    def activations(self, stage: int) -> float:
        """What autograd keeps of every layer: as it was measured, else the layer's output."""
        return float(sum(layer.activation_bytes for layer in self._layers(stage)))

    def boundary(self, stage: int) -> float:
        """The bundle that goes into the stage; what the loader brings is not in the profile."""
        return self._in_front(stage, self._ordered.graph.cut_bytes)

    def boundary_gradient(self, stage: int) -> float:
        """What of it has a gradient."""
        return self._in_front(stage, self._ordered.graph.gradient_bytes)

    def _in_front(self, stage: int, cuts: tuple[int, ...]) -> float:
        first = self.partition.stages[stage].first
        return float(cuts[first - 1]) if first else 0.0

    def _layers(self, stage: int) -> tuple[Layer, ...]:
        found = self.partition.stages[stage]
        return self._ordered.layers[found.first : found.stop]

    @property
    def _ordered(self) -> Profile:
        return self.profile.in_order(self.partition.order)
