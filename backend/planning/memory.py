"""Bytes of device memory that a stage needs while it trains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.planning.cost import ROUNDING, Floats
from backend.planning.plan import PlanDoesNotFit, Stage
from backend.profiles.profile import Profile
from backend.units import bytes_text

OPTIMIZER_STATE = {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}
"""Copies of the weights that an optimizer keeps: none, a velocity, two moments."""


class Cuts(Protocol):
    """Where a model can be cut, as a rule sees it: bytes of the stages between two cuts."""

    @property
    def cut_bytes(self) -> Floats: ...
    def weights(self, firsts: NDArray[np.int64], stop: int) -> Floats: ...
    def kept(self, firsts: NDArray[np.int64], stop: int) -> Floats: ...


@dataclass(frozen=True, slots=True)
class MemoryRule:
    """What a planner keeps within: the same formula as `stage_memory`, before the plan is known.

    limit     bytes of the smallest device
    copies    of the weights besides their versions: one gradient and the optimizer's state
    live      weight versions alive; 0 = as many as microbatches in flight (stashing)
    batch     most microbatches in flight at a position (a flush schedule's batch); 0 = no such
              bound
    whole     the whole batch is in flight, as in GPipe
    recompute only the bundles that come in are kept, and one microbatch's outputs
    """

    limit: float
    copies: int
    live: int = 0
    batch: int = 0
    recompute: bool = False
    whole: bool = False

    def fewest_replicas(
        self, downsets: Cuts, firsts: NDArray[np.int64], stop: int, after: int
    ) -> Floats:
        """The fewest replicas of the stages firsts..stop that fit where `after` devices hold
        the stages behind; infinite where none do. One replica of r holds 1 + ceil(after / r)
        microbatches (PipeDream, section 3.3)."""
        weights, outputs = downsets.weights(firsts, stop), downsets.kept(firsts, stop)
        bundle = downsets.cut_bytes[firsts]
        fixed = weights * (self.copies + self.live) + (outputs if self.recompute else 0.0)
        each = (bundle if self.recompute else outputs + bundle) + (0 if self.live else weights)
        room = self.limit - fixed
        fitting = np.divide(room, each, out=np.full(len(room), np.inf), where=each > 0)
        most = np.where(room < 0, 0, np.floor(fitting * (1 + ROUNDING)))
        waiting = np.where(most > 1, np.ceil(after / np.maximum(most - 1, 1)), np.inf)
        least = np.where(most < 1, np.inf, 1.0 if not after else np.maximum(waiting, 1.0))
        if self.batch:
            share = np.where(most < 1, np.inf, np.ceil(self.batch / np.maximum(most, 1)))
            least = share if self.whole else np.minimum(least, share)
        return np.asarray(least)

    def shared_fits(
        self, downsets: Cuts, firsts: NDArray[np.int64], stop: int, machine: int
    ) -> NDArray[np.bool_]:
        """Whether a pipeline of the layers firsts..stop may fit on `machine` devices at all:
        each of its stages holds its weights once and one microbatch or more."""
        weights, outputs = downsets.weights(firsts, stop), downsets.kept(firsts, stop)
        needed = weights * (self.copies + max(self.live, 1)) + outputs
        return np.asarray(needed <= machine * self.limit * (1 + ROUNDING))

    def needs(self, profile: Profile, stage: Stage, after: int) -> float:
        """Bytes of one replica of `stage` where `after` devices hold the stages behind it."""
        held = 1 + -(-after // stage.replicas)
        if self.batch:
            share = -(-self.batch // stage.replicas)
            held = share if self.whole else min(held, share)
        live = self.live or held
        extra = profile.layers[stage.first : stage.stop]
        weights = (self.copies - 1) * sum(layer.parameter_bytes for layer in extra)
        return weights + stage_memory(profile, stage, live, held, "sgd", self.recompute)


def stage_memory(
    profile: Profile,
    stage: Stage,
    versions: int,
    in_flight: int,
    optimizer: str,
    recompute: bool = False,
) -> float:
    """Peak bytes of one replica of `stage` with `versions` of its weights alive and
    `in_flight` microbatches whose backward is still to come. Raises `InvalidInput` on an
    unknown optimizer.

        |w| (versions + 1 gradient + optimizer state) + in_flight (activations + input bundle)

    With `recompute` only the bundles wait, beside the activations of one microbatch
    (PipeDream-2BW, section 3.3). Activations are what autograd was measured to keep, else every
    layer's output; workspaces of kernels and allocator losses are not in the profile.
    """
    layers = profile.layers[stage.first : stage.stop]
    weights = sum(layer.parameter_bytes for layer in layers)
    bundle = profile.graph.cut_bytes[stage.first - 1] if stage.first else 0
    outputs = sum(layer.activation_bytes for layer in layers)
    kept = in_flight * bundle + (1 if recompute else in_flight) * outputs
    return float(weights * (versions + extra_copies(optimizer)) + kept)


def extra_copies(optimizer: str) -> int:
    """Copies of the weights besides their versions: one gradient and the optimizer's state.
    Raises `InvalidInput` on an unknown optimizer."""
    if optimizer not in OPTIMIZER_STATE:
        raise InvalidInput(
            f"no optimizer {optimizer!r}", f"Known are: {', '.join(OPTIMIZER_STATE)}."
        )
    return 1 + OPTIMIZER_STATE[optimizer]


def check_memory(needs: Sequence[float], devices: Sequence[Device]) -> None:
    """Raise `PlanDoesNotFit` where a stage needs more than its device has; `needs` is bytes per
    stage, `devices` the smallest device of each. Unknown memory is not checked."""
    excess = [
        0.0 if device.memory is None else need - device.memory
        for need, device in zip(needs, devices, strict=True)
    ]
    worst = max(range(len(needs)), key=excess.__getitem__)
    device = devices[worst]
    if excess[worst] > 0 and device.memory is not None:
        raise PlanDoesNotFit(
            f"stage {worst} needs {bytes_text(needs[worst])} of memory, {device.name} has "
            f"{bytes_text(device.memory)}: {bytes_text(excess[worst])} too much",
            "Recompute activations, use fewer microbatches in flight, more stages, a smaller "
            "microbatch, or 2BW's two weight versions.",
        )
