"""What a schedule does to a stage's weights beside computing: adding up, keeping versions."""

from dataclasses import dataclass

from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape
from backend.profiles.layer import LayerSums


@dataclass(frozen=True, slots=True)
class WeightUpdateCost:
    """Of one stage.

    gathered  microbatches of a rank whose gradients one update applies
    replicas  ranks whose gradients it applies
    is_split  whether the weights' half of a backward runs by itself
    renews    whether some backward still awaits the version before an update
    """

    gathered: int = 1
    replicas: int = 1
    renews: bool = False
    is_split: bool = False

    @property
    def added(self) -> float:
        """The share of backwards whose gradients are added to others. Replicas copy all of
        theirs into the buckets that travel."""
        return 1.0 if self.replicas > 1 else 1 - 1 / self.gathered

    @property
    def is_mean(self) -> bool:
        """Whether an update divides the sum of several gradients."""
        return self.gathered * self.replicas > 1

    def seconds(self, part: LayerSums) -> float:
        """Profiled seconds of an update of all weights of a stage."""
        seconds = part.renewal if self.renews else part.update
        return seconds + (part.copying if self.is_mean else 0.0)


PLAIN = WeightUpdateCost()


def weight_update_costs(rule: Schedule, shape: Shape) -> tuple[WeightUpdateCost, ...]:
    """That of each stage of `shape` under `rule`."""
    return tuple(_of(rule, shape, stage) for stage in range(shape.num_stages))


def _of(rule: Schedule, shape: Shape, stage: int) -> WeightUpdateCost:
    group = shape.group_of(stage)
    gathered = max(1, shape.batch // len(group)) if rule.batched else 1
    renews = rule.live(shape.at(group[0])) > 1
    return WeightUpdateCost(gathered, len(group), renews, rule.splits(shape.kept_order))
