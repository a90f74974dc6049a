"""What one rank can do: the vocabulary that every reader of a program shares.

| action     | verifier asks               | simulator       | executor            | chart      |
|------------|-----------------------------|-----------------|---------------------|------------|
| Forward    | once; input held; version   | rank busy       | run stage @ version | bar        |
| Recompute  | between the two; version    | rank busy       | forward once more   | bar        |
| Backward   | after forward; its version  | rank busy       | autograd, add grads | bar        |
| Step       | after what it applies       | rank busy       | make a new version  | tick       |
| Send       | made before; first in first | link busy       | post, go on         | thin arrow |
| Recv       | matched by one send         | wait to arrive  | wait for the posted | idle gap   |
| AllReduce  | same order on the group     | waits for last  | collective          | wide bar   |
| Average    | per step, every pipeline    | waits for last  | collective          | wide bar   |

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

    @property
    def cut(self) -> int:
        """The stage behind which the cut is that the message crosses."""
        return self.stage - 1 if self.flow is Flow.GRADIENT else self.stage


@dataclass(frozen=True, slots=True)
class Forward:
    """y = stage(x; weights[version]). A schedule leaves `version` at 0; lowering sets it."""

    stage: int
    microbatch: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Recompute:
    """The forward once more, just before its backward, which then finds the activations that
    the forward did not keep (Chen et al., arXiv 1604.06174). Lowering adds it; no schedule does."""

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


@dataclass(frozen=True, slots=True)
class Average:
    """Elastic averaging over the pipelines of a device (`group`: their ranks, ascending), right
    after the `Step` that made `version` and before anybody reads it:
    d_n = alpha (x_n - ref), x_n -= d_n, ref += sum of d_n (Zhang et al., NeurIPS 2015)."""

    stage: int
    group: tuple[int, ...]
    version: int


Compute = Forward | Recompute | Backward | BackwardInput | BackwardWeight | Step
Collective = AllReduce | Average
Action = Compute | Send | Recv | Collective
