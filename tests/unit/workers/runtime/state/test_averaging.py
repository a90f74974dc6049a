"""Elastic averaging: what it conserves, and where it stands still."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.state.averaging import average

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=4)


def exchange(lanes: list[torch.Tensor], centre: torch.Tensor, alpha: float) -> list[torch.Tensor]:
    """All lanes at once; every lane's own reference afterwards."""
    total = sum(alpha * (lane - centre) for lane in lanes)
    references = [centre.clone() for _ in lanes]
    for lane, reference in zip(lanes, references, strict=True):
        average([lane], [reference], alpha, lambda tensor: tensor.copy_(total))
    return references


@given(VALUES, st.floats(-10, 10), st.floats(0, 1))
def test_it_conserves_the_sum_of_all(values: list[float], centre: float, share: float) -> None:
    lanes = [torch.tensor([value], dtype=torch.float64) for value in values]
    before = torch.tensor([centre], dtype=torch.float64)
    whole = float(before + sum(lanes))
    references = exchange(lanes, before, share / len(lanes))
    assert float(references[0] + sum(lanes)) == pytest.approx(whole, abs=1e-9)
    assert all(torch.equal(reference, references[0]) for reference in references)


def test_equal_lanes_stay_equal() -> None:
    lanes = [torch.full((3,), 2.0) for _ in range(3)]
    references = exchange(lanes, torch.zeros(3), 1 / 3)
    assert all(torch.equal(lane, lanes[0]) for lane in lanes)
    assert torch.equal(references[0], torch.full((3,), 2.0))


def test_one_lane_without_elasticity_is_left_alone() -> None:
    lanes = [torch.full((3,), 2.0)]
    exchange(lanes, torch.zeros(3), 0.0)
    assert torch.equal(lanes[0], torch.full((3,), 2.0))


def test_a_stage_without_weights() -> None:
    average([], [], 0.5, lambda tensor: None)
