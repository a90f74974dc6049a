"""Pictures that are decoded as they are loaded: red, green, blue (or grey) in [0, 1]."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from workers.data.errors import DataFailed
from workers.data.values import BYTE

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")
Size = tuple[int, int, int]
"""Channels (1 or 3), height, width."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """Files, or their bytes, each brought to `size`; a label each."""

    sources: Sequence[Path | bytes]
    labels: Tensor
    size: Size
    lengths: None = None
    is_at_hand: bool = False

    def __len__(self) -> int:
        return len(self.sources)

    def inputs(self, numbers: Tensor, length: int | None = None) -> Tensor:
        return torch.stack([picture(self.sources[n], self.size) for n in numbers.tolist()])

    def targets(self, numbers: Tensor, length: int | None = None) -> Tensor:
        return self.labels[numbers]


def picture(source: Path | bytes, size: Size) -> Tensor:
    """One picture of that size; raises `DataFailed` where it cannot be decoded."""
    channels, height, width = size
    with _opened(source) as image:
        try:
            found = image.convert("L" if channels == 1 else "RGB")
        except OSError as fault:
            raise _broken(source, fault) from None
    if found.size != (width, height):
        found = found.resize((width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(found, dtype=np.float32).reshape(height, width, channels)
    return torch.from_numpy(pixels / BYTE).permute(2, 0, 1).contiguous()


def size_of(source: Path | bytes) -> Size:
    """Its own size, in colours unless it is grey."""
    with _opened(source) as image:
        return (1 if image.mode in ("1", "L") else 3, image.height, image.width)


def _opened(source: Path | bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source)
    except (UnidentifiedImageError, OSError) as fault:
        raise _broken(source, fault) from None


def _broken(source: Path | bytes, fault: Exception) -> DataFailed:
    name = "a picture" if isinstance(source, bytes) else str(source)
    return DataFailed(f"{name} cannot be decoded: {fault}", "Replace it or remove it.")
