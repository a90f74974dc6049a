"""Sums of the replicas' gradients of which each sends the largest numbers alone.

    of each tensor with 128 numbers or more, at update t of its stage, on each replica:
        f = g + e
        every L updates:       threshold = the k-th largest |f|, k = max(1, int(N keep))
        where |f| >= threshold:  send f, e = 0      elsewhere: e = f
        g = all that was sent, replica by replica

(Gupta et al., KDD 2021, arXiv 2010.08899, in the form of a public code of it,
amazingyyc/Kraken; ours: an all-gather in the place of a parameter server, zeros are never sent, and
where places and values together take no fewer bytes all of f is sent without places.)
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from backend.planning.thresholds import LEAST, Thresholds
from workers.runtime.messages.coding import SentBytes
from workers.runtime.messages.peers import Peers, add_sent, flat, put, summed_bytes

UNSENT, THRESHOLD = "unsent", "threshold"


class ThresholdSums:
    """Those of one replica of a stage with these weights."""

    def __init__(self, codec: Thresholds, weights: Mapping[str, Tensor]) -> None:
        self._codec = codec
        self._unsent = {n: torch.zeros_like(w) for n, w in weights.items() if w.numel() >= LEAST}
        self._thresholds: dict[str, Tensor] = {}
        self._updates = 0
        self.sent = SentBytes()

    @property
    def state(self) -> dict[str, dict[str, Tensor]]:
        """What it goes on from, by kind and name: gradients that were not sent, and thresholds."""
        return {UNSENT: self._unsent, THRESHOLD: self._thresholds}

    def load_state(self, state: Mapping[str, Mapping[str, Tensor]], updates: int) -> None:
        """Go on from what `state` gave after so many updates. What is not there begins as zero, and
        a threshold is made anew."""
        for name, unsent in self._unsent.items():
            found = state[UNSENT].get(name)
            self._unsent[name] = torch.zeros_like(unsent) if found is None else found.to(unsent)
        self._thresholds = {n: t for n, t in state[THRESHOLD].items() if n in self._unsent}
        self._updates = updates

    def sum(self, buckets: Iterable[Mapping[str, Tensor]], peers: Peers) -> None:
        """Put the sums over the replicas in the gradients' place, bucket by bucket. All replicas
        call it once for an update."""
        with torch.no_grad():
            for gradients in buckets:
                self._sum_small([g for n, g in gradients.items() if n not in self._unsent], peers)
                self._sum_large({n: g for n, g in gradients.items() if n in self._unsent}, peers)
        self._updates += 1

    def _sum_small(self, gradients: list[Tensor], peers: Peers) -> None:
        if not gradients:
            return
        numbers = flat(gradients)
        peers.sum(numbers)
        put(numbers, gradients)
        num_bytes = summed_bytes(gradients, len(peers.ranks))
        self.sent += SentBytes(num_bytes, num_bytes)

    def _sum_large(self, gradients: Mapping[str, Tensor], peers: Peers) -> None:
        if not gradients:
            return
        waiting = {name: gradient + self._unsent[name] for name, gradient in gradients.items()}
        chosen = flat([self._chosen(name, each) for name, each in waiting.items()])
        own = flat(list(waiting.values()))
        sums = torch.zeros_like(own)
        gone, num_bytes = add_sent(sums, own, chosen, peers)
        own[gone] = 0
        put(own, [self._unsent[name] for name in gradients])
        put(sums, list(gradients.values()))
        self.sent += SentBytes(num_bytes, summed_bytes([own], len(peers.ranks)))

    def _chosen(self, name: str, waiting: Tensor) -> Tensor:
        """Which numbers are sent: what is no number is, so that it is told as without a codec."""
        size = waiting.abs()
        if self._updates % self._codec.every == 0 or name not in self._thresholds:
            largest = size.flatten().topk(self._codec.kept(size.numel())).values
            self._thresholds[name] = largest[-1].clone()
        return ~(size < self._thresholds[name]) & (waiting != 0)
