"""What training changes on one rank: the weights of its stages and the scale of the loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import RankCoordinates
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.spec import TrainSpec
from workers.runtime.compute.stage import StageModule
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.messages.world import Group
from workers.runtime.state.learning_rate import learning_rate_factor
from workers.runtime.state.loss_scale import LossScale
from workers.runtime.state.optimizers import optimizer_of
from workers.runtime.state.rounding import RoundedUpdates, masters, rounded
from workers.runtime.state.weights import Weights


@dataclass(frozen=True, slots=True)
class TrainedState:
    """`weights` by stage number.

    loss_scale  of float16, None for other precisions
    clip_norm   most that the 2-norm of the whole gradient may be; None = any
    elasticity  alpha of elastic averaging
    """

    weights: dict[int, Weights]
    loss_scale: LossScale | None
    clip_norm: float | None
    elasticity: float

    def begin(self) -> None:
        """A segment begins: the newest weights are version 0."""
        for weights in self.weights.values():
            weights.begin()


def trained_state(
    spec: TrainSpec,
    coordinates: RankCoordinates,
    modules: Mapping[int, StageModule],
    replicas: Mapping[int, Group],
) -> TrainedState:
    """The weights that the modules have, in the precision that `spec` says, under a fresh optimizer
    each. `replicas` are the groups of the stages that several ranks train."""
    member = schedule(spec.plan.schedule)
    factor = learning_rate_factor(spec.optimizer, len(member.updates(coordinates)), spec.epochs)
    kind = STATE_PRECISIONS[spec.state_precision]
    rule, is_sharded = partial(optimizer_of, spec.optimizer), spec.plan.shard_state

    def made(first: dict[str, Tensor], group: Group | None) -> Weights:
        kept = rounded(first, kind)
        return Weights(
            kept,
            RoundedUpdates(rule, kind) if kind.is_rounded else rule(),
            None if group is None else Buckets(kept, group),
            member.consistent,
            factor,
            masters(first, kind),
            is_sharded,
        )

    weights = {
        number: made(stage.weights, replicas.get(number)) for number, stage in modules.items()
    }
    if coordinates.shape.num_pipelines > 1:
        for each in weights.values():
            each.keep_reference()
    return TrainedState(
        weights,
        LossScale() if spec.precision == "float16" else None,
        spec.optimizer.clip_norm,
        1 / coordinates.shape.num_pipelines if spec.elasticity is None else spec.elasticity,
    )
