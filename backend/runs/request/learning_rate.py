"""How the learning rate changes over the training: a factor per update.

Positions are counted in weight updates of the run, so that stages whose replicas make fewer
updates keep step with the others.
"""

import math
from collections.abc import Callable

from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec

RateFactor = Callable[[int], float]
"""From the number of updates that a stage has made to the factor of its next one."""

RISING, FIRST, LAST = 0.3, 1 / 25, 1e-4 / 25
"""Of one-cycle: the share of the updates in which the rate rises where no warm-up says it, and the
factors that it begins and ends with (Smith and Topin, 2019, with the numbers of
torch.optim.lr_scheduler.OneCycleLR)."""
TIMESCALE = 10_000
"""Updates that the inverse square root begins with where there is no warm-up (transformers')."""


def num_scheduled(spec: TrainSpec, per_epoch: int) -> int:
    """Updates over which a rate falls that falls until the end: all that the run may make."""
    whole = spec.epochs * per_epoch
    return min(whole, spec.stop.updates) if spec.stop.updates else whole


def learning_rate_factor(
    spec: OptimizerSpec, per_epoch: int, total: int, stride: float = 1.0
) -> RateFactor:
    """The factor of the learning rate for a stage, one of whose updates is `stride` of the run's,
    which makes so many per epoch and in all.

    A warm-up of epochs is (k + stride) / W at position k (Goyal et al., arXiv 1706.02677, section
    2.2, from 0), one of updates k / W as in transformers' get_*_schedule_with_warmup.
    """
    warm = spec.warm_up_updates or spec.warm_up * per_epoch
    late = 0.0 if spec.warm_up_updates else stride

    def factor(updates: int) -> float:
        done = updates * stride
        if spec.decay == "one-cycle":
            return _one_cycle(done, (warm or RISING * total) - stride, total - stride)
        if done < warm:
            return min(1.0, (done + late) / warm)
        return _decay(spec, done, warm, per_epoch, total)

    return factor


def _decay(spec: OptimizerSpec, done: float, warm: float, per_epoch: int, total: int) -> float:
    left = min(1.0, max(0.0, (total - done) / max(total - warm, 1.0)))
    match spec.decay:
        case "none" | "one-cycle":
            return 1.0
        case "step":
            return float(spec.decay_factor ** math.floor(done / per_epoch / spec.decay_epochs))
        case "linear":
            return left
        case "cosine":
            return 0.5 * (1 - math.cos(math.pi * left))
        case "inverse-sqrt":
            scale = warm or TIMESCALE
            return 1 / math.sqrt((done + scale - warm) / scale)


def _one_cycle(done: float, top: float, last: float) -> float:
    """The highest factor is at `top`, the last one at `last`."""
    if done <= top:
        return _between(FIRST, 1.0, done / top if top > 0 else 1.0)
    return _between(1.0, LAST, min(1.0, (done - top) / max(last - top, 1e-9)))


def _between(first: float, last: float, share: float) -> float:
    return last + (first - last) / 2 * (math.cos(math.pi * share) + 1)
