"""Gaia's significance filter: of each weight a site sends what it learned once that matters.

    after update t of the stage, at each site n of s, for each weight v:
        u_n = (what the update changed) / s      held_n += u_n      w_n = common + held_n
        where |held_n| > T / sqrt(t) |w_n|:      send held_n to all, held_n = 0
        common += all that was sent, site by site

(Hsieh et al., NSDI 2017, section 4; the form with what is held back is that of the author's later
code, kevinhsieh/non_iid_dml.) `common` is equal at all sites to the last bit, so sites differ by
exactly what they hold back. A site's update counts an s-th (ours), so that a threshold of 0 is
synchronous training at the same rate. Where places and values together take no fewer bytes, all
that is held back goes without places. Sites meet after every update: none runs ahead.
"""

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor

from backend.planning.sites import Sites
from workers.runtime.messages.peers import Peers, add_sent, flat, put
from workers.runtime.state.exchanges.elastic import REFERENCE

HELD = "held_back"


class Gaia:
    """By the settings of a plan's sites."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._common: list[Tensor] = []
        self._held: list[Tensor] = []
        self.sent = 0

    @property
    def state(self) -> dict[str, list[Tensor]]:
        return {REFERENCE: self._common, HELD: self._held}

    @property
    def common(self) -> None:
        """Each site has what it holds back beside: the first one's weights are the model."""
        return None

    def begin(self, weights: Sequence[Tensor]) -> None:
        self._common = [weight.detach().clone() for weight in weights]
        self._held = [torch.zeros_like(weight) for weight in self._common]

    def load_state(self, state: dict[str, list[Tensor]]) -> None:
        self._common, self._held = state[REFERENCE], state[HELD]

    def exchange(self, weights: Sequence[Tensor], updates: int, peers: Peers) -> None:
        if not weights:
            return
        common, held = flat(self._common), flat(self._held)
        held += (flat(weights) - (common + held)) / len(peers.ranks)
        significant = held.abs() > self._threshold(updates) * (common + held).abs()
        gone, num_bytes = add_sent(common, held, significant, peers)
        self.sent += num_bytes
        held[gone] = 0
        put(common, self._common)
        put(held, self._held)
        put(common + held, weights)

    def _threshold(self, updates: int) -> float:
        full = self._sites.full
        return 0.0 if full and updates % full == 0 else self._sites.threshold / sqrt(updates)
