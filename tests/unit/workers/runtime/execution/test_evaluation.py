"""Which class an output predicts."""

import pytest
import torch

from workers.runtime.execution.evaluation import predicted_classes


def test_classes_in_the_last_dimension() -> None:
    logits = torch.tensor([[0.0, 2.0], [3.0, 1.0]])
    assert predicted_classes(logits, torch.zeros(2, dtype=torch.long)).tolist() == [1, 0]


def test_classes_of_a_sequence() -> None:
    assert predicted_classes(torch.rand(2, 5, 7), torch.zeros(2, 5, dtype=torch.long)).shape == (
        2,
        5,
    )


def test_classes_in_the_second_dimension() -> None:
    picture = torch.zeros(2, 3, 4, 5)
    picture[:, 2] = 1.0
    found = predicted_classes(picture, torch.zeros(2, 4, 5, dtype=torch.long))
    assert found.shape == (2, 4, 5)
    assert found.unique().tolist() == [2]


@pytest.mark.parametrize(
    ("output", "targets"),
    [
        (torch.rand(2, 3), torch.rand(2)),
        (torch.rand(2, 3), torch.zeros(2, 3, dtype=torch.long)),
        ((torch.rand(2, 3),), torch.zeros(2, dtype=torch.long)),
    ],
)
def test_no_classes(output, targets) -> None:
    assert predicted_classes(output, targets) is None
