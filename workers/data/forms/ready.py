"""Data that need no file: the handwritten digits, synthetic ones, the definition's own."""

from pathlib import Path

import numpy as np
import torch

from workers.data.request import DataRequest
from workers.data.split import DataSet, TensorSplit

DIGITS = Path(__file__).with_name("digits.npz")
NUM_TRAINED = 1437


def digits(request: DataRequest) -> DataSet:
    """scikit-learn's 1,797 handwritten digits: 1x8x8 in [0, 1]; 1,437 to train, 360 held out.

    The split is stratified by class and always the same. They lie here as scikit-learn 1.9 loads
    and splits them, the training ones first: importing it would take each rank a second.
    """
    with np.load(DIGITS) as arrays:
        images = torch.tensor(arrays["images"], dtype=torch.float32).view(-1, 1, 8, 8) / 16
        labels = torch.tensor(arrays["labels"], dtype=torch.long)
    train, held_out = slice(NUM_TRAINED), slice(NUM_TRAINED, None)
    return DataSet(
        TensorSplit(images[train], labels[train]),
        TensorSplit(images[held_out], labels[held_out]),
        "digits",
    )


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
