"""DiLoCo: sites train alone, then an outer optimizer takes the mean of their ways.

    every H updates of the stage, at all sites n of s:
        d = mean over n of (ref - x_n)      v = mu v + d      ref -= rate (d + mu v)      x_n = ref

(Douillard et al., arXiv 2311.08105, algorithm 1, with the outer Nesterov SGD of its section 3;
torch.optim.SGD has the same formula.) With H = 1, a rate of 1, no momentum and plain SGD inside it
is synchronous SGD. All copies of ref and v stay equal, because all are made of the same sum.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from backend.planning.sites import Sites
from workers.runtime.messages.peers import Peers, summed_bytes
from workers.runtime.state.exchanges.elastic import REFERENCE

VELOCITY = "outer_velocity"


class DiLoCo:
    """By the settings of a plan's sites."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._reference: list[Tensor] = []
        self._velocity: list[Tensor] = []
        self.sent = 0

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {REFERENCE: self._reference, VELOCITY: self._velocity}

    @property
    def common(self) -> list[Tensor]:
        """Those of the last exchange: what sites learned since is not in it."""
        return self._reference

    def begin(self, weights: Sequence[Tensor]) -> None:
        self._reference = [weight.detach().clone() for weight in weights]
        self._velocity = [torch.zeros_like(weight) for weight in self._reference]

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        self._reference, self._velocity = state[REFERENCE], state[VELOCITY]

    def exchange(self, weights: Sequence[Tensor], updates: int, peers: Peers) -> None:
        if updates % self._sites.every or not weights:
            return
        way = list(torch._foreach_sub(self._reference, list(weights)))
        for tensor in way:
            peers.sum(tensor)
        self.sent += summed_bytes(way, len(peers.ranks))
        torch._foreach_div_(way, len(peers.ranks))
        torch._foreach_mul_(self._velocity, self._sites.momentum)
        torch._foreach_add_(self._velocity, way)
        torch._foreach_add_(way, self._velocity, alpha=self._sites.momentum)
        torch._foreach_add_(self._reference, way, alpha=-self._sites.rate)
        for weight, reference in zip(weights, self._reference, strict=True):
            weight.copy_(reference)
