"""Bytes of device memory that a stage needs while it trains."""

from collections.abc import Sequence

from backend.cluster.cluster import Device
from backend.errors import InvalidInput
from backend.planning.plan import PlanDoesNotFit, Stage
from backend.profiles.profile import Profile
from backend.units import bytes_text

OPTIMIZER_STATE = {"sgd": 0, "momentum": 1, "adam": 2}
"""Copies of the weights that an optimizer keeps: none, a velocity, two moments."""


def stage_memory(
    profile: Profile, stage: Stage, versions: int, in_flight: int, optimizer: str
) -> float:
    """Peak bytes of one replica of `stage` with `versions` of its weights alive and
    `in_flight` microbatches whose backward is still to come. Raises `InvalidInput` on an
    unknown optimizer.

        |w| (versions + 1 gradient + optimizer state) + in_flight (outputs + input bundle)

    Every layer's output counts, as autograd keeps it; workspaces of kernels, allocator
    losses and tensors that a layer makes inside it are not in the profile and not counted.
    """
    if optimizer not in OPTIMIZER_STATE:
        raise InvalidInput(
            f"no optimizer {optimizer!r}", f"Known are: {', '.join(OPTIMIZER_STATE)}."
        )
    layers = profile.layers[stage.first : stage.stop]
    weights = sum(layer.parameter_bytes for layer in layers)
    bundle = profile.graph.cut_bytes[stage.first - 1] if stage.first else 0
    activations = bundle + sum(layer.output_bytes for layer in layers)
    return float(weights * (versions + 1 + OPTIMIZER_STATE[optimizer]) + in_flight * activations)


def check_memory(needs: Sequence[float], device: Device) -> None:
    """Raise `PlanDoesNotFit` where a stage needs more than `device` has; `needs` is bytes per
    stage. A device of unknown memory is not checked."""
    if device.memory is None:
        return
    worst = max(range(len(needs)), key=needs.__getitem__)
    if needs[worst] > device.memory:
        raise PlanDoesNotFit(
            f"stage {worst} needs {bytes_text(needs[worst])} of memory, {device.name} has "
            f"{bytes_text(device.memory)}: {bytes_text(needs[worst] - device.memory)} too much",
            "Use a smaller microbatch, more stages, or a schedule with fewer in flight.",
        )
