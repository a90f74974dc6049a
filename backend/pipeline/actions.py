"""What one rank can do: the vocabulary that every reader of a program shares.

| action       | verifier asks                          | simulator            | executor                       | chart          |
|--------------|----------------------------------------|----------------------|--------------------------------|----------------|
| Forward      | once; input held; version exists       | rank busy            | run the stage with the version | bar            |
| Backward     | after its forward, same version        | rank busy            | autograd, add to gradients     | bar            |
| Step         | after the backwards that it applies    | rank busy            | make a new version             | tick           |
| Send         | made before; first in, first out       | link busy, no wait   | post, return at once           | thin arrow     |
| Recv         | matched by one send                    | wait for the arrival | wait for the posted receive    | idle gap       |
| AllReduce    | same order on the whole group          | waits for the last   | collective on the group        | bar over group |

Nothing here knows seconds, bytes or tensors.
"""

from dataclasses import dataclass
from enum import StrEnum


class Flow(StrEnum):
    """What a message carries: activations towards the loss, or gradients back."""

    ACTIVATION = "activation"
    GRADIENT = "gradient"


@dataclass(frozen=True, slots=True)
class Message:
    """The bundle that leaves `stage` for one microbatch: activations go to stage + 1,
    gradients (of that stage's inputs) to stage - 1."""

    flow: Flow
    stage: int
    microbatch: int


@dataclass(frozen=True, slots=True)
class Forward:
    """y = stage(x; weights[version]). A schedule leaves `version` at 0; lowering sets it."""

    stage: int
    microbatch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Backward:
    """dx, dw = grad(stage)(dy) with the version that the forward read; gradients += dw."""

    stage: int
    microbatch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class BackwardInput:
    """dx alone (zero bubble); pairs with a later `BackwardWeight` of the same microbatch."""

    stage: int
    microbatch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class BackwardWeight:
    """dw alone; gradients += dw. Follows the `BackwardInput` of the same microbatch."""

    stage: int
    microbatch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """weights[version] = optimizer(newest weights, gradients); gradients = 0."""

    stage: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Post `message` to rank `to` and go on. Pairs with one `Recv` there."""

    message: Message
    to: int


@dataclass(frozen=True, slots=True)
class Recv:
    """Wait until `message` from rank `source` is here. Pairs with one `Send` there."""

    message: Message
    source: int


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Mean-free sum of the stage's gradients over `group` (ranks, ascending), before
    the `Step` that makes `version`."""

    stage: int
    group: tuple[int, ...]
    version: int


Compute = Forward | Backward | BackwardInput | BackwardWeight | Step
Action = Compute | Send | Recv | AllReduce
