"""Labels outside the model's classes are found before training, with the file and the sample."""

import pytest
import torch

from workers.data.errors import DataFailed
from workers.data.labels import check_labels
from workers.data.ragged import Ragged
from workers.data.split import DataSet, TensorSplit, divided

MODEL = (
    "def model(): return nn.Linear(2, 3)\ndef example(n): return torch.rand(n, 2), torch.zeros(n)"
)
OWN_LOSS = MODEL + "\ndef loss(output, target): return output.sum()"


def held(labels: list[int]) -> TensorSplit:
    return TensorSplit(torch.rand(len(labels), 2), torch.tensor(labels))


def check(definition, data: DataSet) -> None:
    check_labels(data, definition, 3)


@pytest.mark.parametrize("wrong", [3, -1, -7])
def test_a_label_that_is_no_class_is_named(define, wrong: int) -> None:
    data = DataSet(held([0, 1, 2]), held([0, wrong, 1]), "plants.csv")
    with pytest.raises(DataFailed, match=f"plants.csv: 1 of 3 labels .* first is {wrong}, of sa"):
        check(define(MODEL), data)


def test_what_is_left_out_of_the_loss_is_no_wrong_label(define) -> None:
    lines = Ragged([torch.ones(1), torch.ones(2)], [torch.tensor([0]), torch.tensor([1, 2])])
    check(define(MODEL), DataSet(lines, None))
    check(define(MODEL), divided(held([0, 1, 2, 2]), 0.5, "x"))


def test_other_losses_and_other_targets_are_left_alone(define) -> None:
    check(define(OWN_LOSS), DataSet(held([9, 9]), None))
    check(define(MODEL), DataSet(TensorSplit(torch.rand(2, 2), torch.rand(2, 3)), None))
