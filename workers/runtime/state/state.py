"""What training changes on one rank: the weights of its stages and the scale of the loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import RankCoordinates
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.learning_rate import learning_rate_factor, num_scheduled
from backend.runs.request.spec import TrainSpec
from workers.runtime.compute.channels.splitting import Slices
from workers.runtime.compute.stage import StageModule
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.messages.world import Group
from workers.runtime.state.exchanges.catalog import exchange_of
from workers.runtime.state.grouped import grouped_optimizer
from workers.runtime.state.loss_scale import LossScale
from workers.runtime.state.moving_average import MovingAverage
from workers.runtime.state.rounding import masters, rounded
from workers.runtime.state.shard import Shard, whole
from workers.runtime.state.weights import Weights


@dataclass(frozen=True, slots=True)
class TrainedState:
    """`weights` by stage number.

    loss_scale  of float16, None for other precisions
    clip_norm   most that the 2-norm of the gradient may be; None = any
    clip_whole  of the whole model's gradient, rather than of each stage's own
    """

    weights: dict[int, Weights]
    loss_scale: LossScale | None
    clip_norm: float | None
    clip_whole: bool

    def begin(self) -> None:
        """A segment begins: the newest weights are version 0."""
        for weights in self.weights.values():
            weights.begin()


def trained_state(
    spec: TrainSpec,
    coordinates: RankCoordinates,
    modules: Mapping[int, StageModule],
    replicas: Mapping[int, Group],
    tied: Mapping[str, Sequence[str]],
    slices: Mapping[int, Slices] | None = None,
) -> TrainedState:
    """The weights that the modules have, in the precision that `spec` says, under a fresh optimizer
    each. `replicas` are the groups of the stages that several ranks train; `tied` are the names of
    each weight in the model, of which the first counts; `slices` are those of split layers, by
    stage: their gradients are not summed."""
    member, shape, rule = schedule(spec.plan.schedule), coordinates.shape, spec.optimizer
    per_epoch = shape.num_microbatches // shape.batch
    stride = per_epoch / max(len(member.updates(coordinates)), 1)
    factor = learning_rate_factor(rule, per_epoch, num_scheduled(spec, per_epoch), stride)
    kind = STATE_PRECISIONS[spec.state_precision]
    alpha = 1 / shape.num_pipelines if spec.elasticity is None else spec.elasticity

    def made(stage: int, first: dict[str, Tensor], group: Group | None) -> Weights:
        kept = rounded(first, kind)
        apart = slices.get(stage, {}) if slices else {}
        codec = spec.plan.codec_of_sums
        buckets = None if group is None else Buckets(kept, group, codec, apart)
        shard = Shard(buckets) if spec.plan.shard_state and buckets is not None else None
        updated = [
            (tied.get(part.name, (part.name,))[0], kept[part.name].dim())
            for part in (shard.slices if shard else whole(kept))
        ]
        return Weights(
            kept,
            grouped_optimizer(rule, updated, kind),
            buckets,
            member.consistent,
            factor,
            masters(first, kind),
            shard,
            MovingAverage(rule.ema) if rule.ema else None,
            exchange_of(spec.plan.sites, alpha) if shape.num_pipelines > 1 else None,
        )

    weights = {
        number: made(number, stage.weights, replicas.get(number))
        for number, stage in modules.items()
    }
    return TrainedState(
        weights,
        LossScale() if spec.precision == "float16" else None,
        rule.clip_norm,
        rule.clip_by == "model",
    )
