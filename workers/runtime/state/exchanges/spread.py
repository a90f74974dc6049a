"""How far the pipelines' weights are apart."""

from collections.abc import Iterable

import torch
from torch import Tensor

from workers.runtime.messages.peers import Peers

SAMPLED = 2**16
"""Weights of a stage that are compared: all of them would be one exchange more."""


def squares(stages: Iterable[Iterable[Tensor]], peers: Peers | None) -> tuple[float, float]:
    """The squared distance of this pipeline's weights to the mean over all pipelines, and that mean
    squared; of at most `SAMPLED` weights of each of the `stages`, evenly taken. All pipelines call
    it for the same stages; 0 of a single one."""
    distance, size = 0.0, 0.0
    for weights in stages if peers else ():
        flat = [weight.detach().reshape(-1) for weight in weights]
        every = -(-sum(map(len, flat)) // SAMPLED)
        if not every or peers is None:
            continue
        own = torch.cat([weight[::every] for weight in flat]).double()
        mean = own.clone()
        peers.sum(mean)
        mean /= len(peers.ranks)
        distance += float((own - mean).square().sum())
        size += float(mean.square().sum())
    return distance, size
