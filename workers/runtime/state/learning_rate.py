"""How the learning rate changes over the training: a factor per update."""

import math
from collections.abc import Callable

from backend.runs.request.spec import OptimizerSpec

RateFactor = Callable[[int], float]
"""From the number of updates that a stage has made to the factor of its next one."""


def learning_rate_factor(spec: OptimizerSpec, updates_per_epoch: int, epochs: int) -> RateFactor:
    """The factor of the learning rate for a stage that makes so many updates per epoch.

    Position in training is counted in epochs, so that stages whose replicas make fewer
    updates keep step with the others. In the warm-up it is (e + 1/u) / warm_up after e epochs
    of u updates each (Goyal et al., arXiv 1706.02677, section 2.2, from 0).
    """

    def factor(updates: int) -> float:
        done = updates / updates_per_epoch
        if done < spec.warm_up:
            return min(1.0, (done + 1 / updates_per_epoch) / spec.warm_up)
        return _decay(spec, done, epochs)

    return factor


def _decay(spec: OptimizerSpec, done: float, epochs: int) -> float:
    left = max(0.0, (epochs - done) / max(epochs - spec.warm_up, 1e-9))
    match spec.decay:
        case "none":
            return 1.0
        case "step":
            return float(spec.decay_factor ** math.floor(done / spec.decay_epochs))
        case "linear":
            return min(1.0, left)
        case "cosine":
            return 0.5 * (1 - math.cos(math.pi * min(1.0, left)))
