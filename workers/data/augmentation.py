"""Pictures changed at random in every epoch, and normalised: without torchvision."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from backend.runs.request.sample_specs import PictureSpec
from workers.data.drawn import generator_of
from workers.data.errors import DataFailed
from workers.data.split import DataSet, Split
from workers.definitions.samples import Samples

GREY = (0.299, 0.587, 0.114)
"""How bright red, green and blue are (ITU-R BT.601), as torchvision and Pillow have it."""
AREA, RATIO, TRIES = (0.02, 0.33), (0.3, 3.3), 10
"""Of what is erased: its share of the picture, height to width; torchvision's own."""


@dataclass(frozen=True, slots=True)
class PictureDraw:
    """What becomes of one picture. `top`, `left`: of the part that is cut out of the padded
    picture. `factors`: of brightness, contrast and saturation. `erased`: top, left, height and
    width."""

    top: int = 0
    left: int = 0
    is_flipped: bool = False
    factors: tuple[float, float, float] | None = None
    erased: tuple[int, int, int, int] | None = None


def drawn(spec: PictureSpec, shape: tuple[int, ...], generator: torch.Generator) -> PictureDraw:
    """One draw for a picture of (channels, height, width)."""
    height, width = shape[1:]

    def upto(most: int) -> int:
        return int(torch.randint(most + 1, (), generator=generator))

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), generator=generator))

    top, left = (upto(2 * spec.crop), upto(2 * spec.crop)) if spec.crop else (0, 0)
    flipped = spec.flip and uniform(0, 1) < 0.5
    factors = None
    if spec.jitter:
        low, high = 1 - spec.jitter, 1 + spec.jitter
        factors = uniform(low, high), uniform(low, high), uniform(low, high)
    erased = None
    if spec.erase and uniform(0, 1) < spec.erase:
        for _ in range(TRIES):
            area = height * width * uniform(*AREA)
            ratio = math.exp(uniform(math.log(RATIO[0]), math.log(RATIO[1])))
            tall, wide = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < tall < height and 0 < wide < width:
                erased = upto(height - tall), upto(width - wide), tall, wide
                break
    return PictureDraw(top, left, flipped, factors, erased)


def changed(picture: Tensor, draw: PictureDraw, spec: PictureSpec) -> Tensor:
    """(channels, height, width) in [0, 1] with a draw carried out: cut out, mirrored, its colours
    changed, normalised, and erased to 0, which is the mean then."""
    height, width = picture.shape[1:]
    found = picture
    if spec.crop:
        padded = functional.pad(found, (spec.crop,) * 4)
        found = padded[:, draw.top : draw.top + height, draw.left : draw.left + width]
    if draw.is_flipped:
        found = found.flip(2)
    if draw.factors is not None:
        found = _coloured(found, *draw.factors)
    found = normalised(found, spec)
    if draw.erased is not None:
        top, left, tall, wide = draw.erased
        found = found.clone()
        found[:, top : top + tall, left : left + wide] = 0
    return found


def _coloured(picture: Tensor, brightness: float, contrast: float, saturation: float) -> Tensor:
    found = (picture * brightness).clamp(0, 1)
    found = _blend(found, _grey(found).mean(), contrast)
    return _blend(found, _grey(found), saturation) if len(found) == 3 else found


def _blend(picture: Tensor, other: Tensor, factor: float) -> Tensor:
    return (factor * picture + (1 - factor) * other).clamp(0, 1)


def _grey(picture: Tensor) -> Tensor:
    if len(picture) != 3:
        return picture
    return (picture * picture.new_tensor(GREY)[:, None, None]).sum(0, keepdim=True)


def normalised(pictures: Tensor, spec: PictureSpec) -> Tensor:
    """(..., channels, height, width) less the mean of each channel, over its deviation."""
    if not spec.mean:
        return pictures
    mean, deviation = (pictures.new_tensor(v)[:, None, None] for v in (spec.mean, spec.deviation))
    return (pictures - mean) / deviation


@dataclass(frozen=True, slots=True)
class Augmented:
    """Pictures of another split, each changed as (`seed`, `epoch`, its number) draw it. Without an
    epoch (-1: an evaluation) they are normalised alone."""

    whole: Split
    spec: PictureSpec
    seed: int = 0
    epoch: int = -1
    lengths: ClassVar[None] = None

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def is_at_hand(self) -> bool:
        return self.whole.is_at_hand and not self.spec.augments

    @property
    def labels(self) -> Tensor | None:
        return self.whole.labels

    def of_epoch(self, seed: int, epoch: int) -> "Augmented":
        return replace(self, seed=seed, epoch=epoch)

    def inputs(self, numbers: Tensor, length: int | None = None) -> Samples:
        pictures = self.whole.inputs(numbers, length)
        assert isinstance(pictures, Tensor), "looked at when the split was made"
        if self.epoch < 0 or not self.spec.augments:
            return normalised(pictures, self.spec)
        each = zip(numbers.tolist(), pictures, strict=True)
        return torch.stack([self._changed(number, picture) for number, picture in each])

    def targets(self, numbers: Tensor, length: int | None = None) -> Samples:
        return self.whole.targets(numbers, length)

    def _changed(self, number: int, picture: Tensor) -> Tensor:
        generator = generator_of(self.seed, self.epoch, number)
        draw = drawn(self.spec, tuple(picture.shape), generator)
        return changed(picture, draw, self.spec)


def augmented(data: DataSet, spec: PictureSpec) -> DataSet:
    """The same with pictures to train on as `spec` has them, those held out normalised alone.
    Raises `DataFailed` where the samples are no pictures."""
    if not spec.augments and not spec.mean:
        return data
    inputs, _ = data.first(1)
    if not isinstance(inputs, Tensor) or inputs.dim() != 4 or not inputs.is_floating_point():
        raise DataFailed(
            f"{data.name} has no pictures to augment or normalise",
            "Leave that out, or give data of pictures: (samples, channels, height, width).",
        )
    channels = inputs.shape[1]
    if spec.mean and len(spec.mean) not in (1, channels):
        raise DataFailed(
            f"{len(spec.mean)} means are given for pictures of {channels} channels",
            f"Give {channels}, or one for all of them.",
        )
    if spec.jitter and (channels not in (1, 3) or not _in_range(data)):
        raise DataFailed(
            f"the colours of {data.name} cannot be changed",
            "Colour jitter takes pictures of 1 or 3 channels in [0, 1]: leave it out, or scale "
            "them and normalise here.",
        )
    held_out = None if data.held_out is None else Augmented(data.held_out, spec)
    return replace(data, train=Augmented(data.train, spec), held_out=held_out)


def _in_range(data: DataSet) -> bool:
    """Whether the first pictures are within [0, 1]."""
    inputs, _ = data.first(min(16, data.num_train))
    return isinstance(inputs, Tensor) and bool(((inputs >= 0) & (inputs <= 1)).all())
