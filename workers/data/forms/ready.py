"""Data that need no file: the handwritten digits, synthetic ones, the definition's own."""

import torch

from workers.data.request import DataRequest
from workers.data.split import DataSet, TensorSplit


def digits(request: DataRequest) -> DataSet:
    """scikit-learn's 1,797 handwritten digits: 1x8x8 in [0, 1]; 1,437 to train, 360 held out.

    The split is stratified by class and always the same.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    inputs = [torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8) / 16 for x in parts[:2]]
    targets = [torch.tensor(y, dtype=torch.long) for y in parts[2:]]
    return DataSet(TensorSplit(inputs[0], targets[0]), TensorSplit(inputs[1], targets[1]), "digits")


def synthetic(request: DataRequest) -> DataSet:
    """`spec.samples` samples of the definition's example, and a quarter as many held out."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        train, held_out = (
            TensorSplit(*request.definition.example(count))
            for count in (request.spec.samples, max(1, request.spec.samples // 4))
        )
        return DataSet(train, held_out, "synthetic")


def own(request: DataRequest) -> DataSet:
    """What the definition's `data()` returns."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        train, held_out = request.definition.data()
        return DataSet(TensorSplit(*train), TensorSplit(*held_out), "the definition's data()")
