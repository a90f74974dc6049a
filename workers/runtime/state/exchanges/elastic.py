"""Elastic averaging of pipelines with their reference.

    d_n = alpha (x_n - ref)     x_n -= d_n     ref += sum over pipelines of d_n

(Zhang, Choromanska, LeCun, NeurIPS 2015, section 2; AvgPipe, PPoPP 2023). Every pipeline keeps
its own copy of the reference, and all copies stay equal, because all add the same sum.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.runtime.messages.peers import Peers, summed_bytes

REFERENCE = "reference"


class Elastic:
    """`alpha` is how much of the distance to the reference a pipeline gives up."""

    def __init__(self, alpha: float) -> None:
        self._alpha = alpha
        self._reference: list[Tensor] = []
        self.sent = 0

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {REFERENCE: self._reference}

    @property
    def common(self) -> list[Tensor]:
        return self._reference

    def begin(self, weights: Sequence[Tensor]) -> None:
        self._reference = [weight.detach().clone() for weight in weights]

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        self._reference = state[REFERENCE]

    def exchange(self, weights: Sequence[Tensor], updates: int, peers: Peers) -> None:
        """It conserves ref + the sum of all x_n."""
        if not weights:
            return
        away = list(torch._foreach_sub(list(weights), self._reference))
        torch._foreach_mul_(away, self._alpha)
        torch._foreach_sub_(list(weights), away)
        for tensor in away:
            peers.sum(tensor)
        torch._foreach_add_(self._reference, away)
        self.sent += summed_bytes(away, len(peers.ranks))
