"""Elastic averaging: what it conserves, and where it stands still."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.state.averaging import average

VALUES = st.lists(st.floats(-10, 10), min_size=1, max_size=4)


def exchange(
    pipelines: list[torch.Tensor], centre: torch.Tensor, alpha: float
) -> list[torch.Tensor]:
    """All pipelines at once; every pipeline's own reference afterwards."""
    total = sum(alpha * (pipeline - centre) for pipeline in pipelines)
    references = [centre.clone() for _ in pipelines]
    for pipeline, reference in zip(pipelines, references, strict=True):
        average([pipeline], [reference], alpha, lambda tensor: tensor.copy_(total))
    return references


@given(VALUES, st.floats(-10, 10), st.floats(0, 1))
def test_it_conserves_the_sum_of_all(values: list[float], centre: float, share: float) -> None:
    pipelines = [torch.tensor([value], dtype=torch.float64) for value in values]
    before = torch.tensor([centre], dtype=torch.float64)
    whole = float(before + sum(pipelines))
    references = exchange(pipelines, before, share / len(pipelines))
    assert float(references[0] + sum(pipelines)) == pytest.approx(whole, abs=1e-9)
    assert all(torch.equal(reference, references[0]) for reference in references)


def test_equal_pipelines_stay_equal() -> None:
    pipelines = [torch.full((3,), 2.0) for _ in range(3)]
    references = exchange(pipelines, torch.zeros(3), 1 / 3)
    assert all(torch.equal(pipeline, pipelines[0]) for pipeline in pipelines)
    assert torch.equal(references[0], torch.full((3,), 2.0))


def test_one_pipeline_without_elasticity_is_left_alone() -> None:
    pipelines = [torch.full((3,), 2.0)]
    exchange(pipelines, torch.zeros(3), 0.0)
    assert torch.equal(pipelines[0], torch.full((3,), 2.0))


def test_a_stage_without_weights() -> None:
    average([], [], 0.5, lambda tensor: None)
