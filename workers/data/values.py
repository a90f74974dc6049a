"""Numbers as models take them, refused where nothing can be learned from them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from workers.data.errors import DataFailed

BYTE = 255


def tensor_of(array: Any, name: str, file: str) -> Tensor:
    """float32 for numbers with a fraction, int64 for whole ones, [0, 1] for unsigned bytes
    (pictures). Raises `DataFailed` where a value is no number, or not finite."""
    found = np.asarray(array)
    if found.dtype == np.uint8:
        return torch.from_numpy(found.astype(np.float32) / BYTE)
    if found.dtype.kind in "iub":
        return torch.from_numpy(found.astype(np.int64))
    if found.dtype.kind != "f":
        raise DataFailed(f"{file}: {name} holds {found.dtype}, not numbers", "Choose others.")
    return finite(torch.from_numpy(found.astype(np.float32)), name, file)


def finite(tensor: Tensor, name: str, file: str) -> Tensor:
    """The tensor; raises `DataFailed` naming the first sample that holds NaN or infinity."""
    if not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()):
        return tensor
    wrong = ~torch.isfinite(tensor.reshape(len(tensor), -1)).all(1)
    first = int(wrong.nonzero()[0])
    raise DataFailed(
        f"{file}: {int(wrong.sum())} of {len(tensor)} samples hold NaN or infinity in {name}, "
        f"the first is sample {first}",
        "Remove these samples, or fill the gaps.",
    )


def whole(tensor: Tensor) -> bool:
    """Whether it holds labels or tokens."""
    return not (tensor.is_floating_point() or tensor.is_complex())


def target(tensor: Tensor) -> Tensor:
    """As losses take it: labels (N), other numbers (N, k)."""
    return tensor if whole(tensor) or tensor.dim() > 1 else tensor.unsqueeze(1)
