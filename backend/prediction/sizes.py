"""Bytes of what a rank holds of each stage of a plan, as the memory of a program asks for."""

from dataclasses import dataclass

from backend.planning.memory import at_work
from backend.planning.optimizers import optimizer_named
from backend.planning.plan import Partition
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.profiles.state_precision import StatePrecisionKind, state_precision_named


@dataclass(frozen=True, slots=True)
class PlanSizes:
    """`backend.pipeline.memory.Sizes` of a partition of a profile; `rule` is the optimizer's, and
    replicas share its state where it is `sharded`; pipelines keep so many `copies` of the weights
    for their exchanges."""

    profile: Profile
    partition: Partition
    rule: str
    sharded: bool = False
    copies: int = 1

    def weights(self, stage: int) -> float:
        """One version of the stage's weights."""
        return float(sum(layer.parameter_bytes for layer in self._layers(stage)))

    def optimizer(self, stage: int) -> float:
        """A velocity, two moments, or nothing; the average of the weights; and the masters. Of
        what is shared one part."""
        sharers = self.partition.stages[stage].replicas if self.sharded else 1
        state = optimizer_named(self.rule).state(self.profile.state_precision)
        return state * self.weights(stage) / sharers

    def reference(self, stage: int) -> float:
        """As exact as the masters, or the weights where there are none."""
        return self.copies * self._kept.finest * self.weights(stage)

    def activations(self, stage: int) -> float:
        """What autograd keeps of every layer: as it was measured, else the layer's output."""
        return float(sum(layer.activation_bytes for layer in self._layers(stage)))

    def deferred(self, stage: int) -> float:
        """As it was measured."""
        return float(sum(layer.deferred_bytes or 0 for layer in self._layers(stage)))

    def at_work(self, stage: int) -> float:
        """The layer that has most alive while it works, as it was measured."""
        return float(at_work(self._layers(stage)))

    def constants(self, stage: int) -> float:
        """Frozen weights and buffers, of which there is one version."""
        return float(sum(layer.constant_bytes for layer in self._layers(stage)))

    def process(self) -> float:
        """As it was measured with the profile."""
        return float(self.profile.process_bytes)

    def boundary(self, stage: int) -> float:
        """The bundle that goes into the stage; what the loader brings is not in the profile."""
        return self._in_front(stage, self._ordered.graph.cut_bytes)

    def boundary_gradient(self, stage: int) -> float:
        """What of it has a gradient."""
        return self._in_front(stage, self._ordered.graph.gradient_bytes)

    def _in_front(self, stage: int, cuts: tuple[int, ...]) -> float:
        first = self.partition.stages[stage].first
        return float(cuts[first - 1]) if first else 0.0

    @property
    def _kept(self) -> StatePrecisionKind:
        return state_precision_named(self.profile.state_precision)

    def _layers(self, stage: int) -> tuple[Layer, ...]:
        found = self.partition.stages[stage]
        return self._ordered.layers[found.first : found.stop]

    @property
    def _ordered(self) -> Profile:
        return self.profile.in_order(self.partition.order)
