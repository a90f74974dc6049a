"""A rank keeps the weights of its own stages alone."""

import torch
from torch import nn

from workers.runtime.compute.release import release


def test_foreign_weights_are_given_back_once_and_keep_their_names() -> None:
    own, foreign = nn.Linear(3, 4), nn.Linear(4, 5)
    model = nn.Sequential(own, foreign)
    before = own.weight.detach().clone()
    assert release([own], [foreign, foreign]) == (4 * 5 + 5) * 4
    assert torch.equal(own.weight, before)
    assert [tuple(p.shape) for p in foreign.parameters()] == [(0,), (0,)]
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_weights_that_an_own_stage_reads_too_stay() -> None:
    own, foreign = nn.Linear(3, 3), nn.Linear(3, 3)
    foreign.weight = own.weight
    release([own], [foreign])
    assert own.weight.shape == (3, 3)
    assert foreign.bias.shape == (0,)
