"""What becomes of pictures and of the columns of a table before a model is given them."""

import re
from dataclasses import dataclass, fields
from math import isfinite

from backend.errors import InvalidInput

ADVICE = "For example: crop=4, flip, jitter=0.2, erase=0.25"


@dataclass(frozen=True, slots=True)
class PictureSpec:
    """The first four are drawn anew in every epoch, for training alone; 0 = not at all.

    crop       pixels of padding around a picture, of which a part of its own size is cut out
    flip       whether half of the pictures are mirrored, left to right
    jitter     most by which brightness, contrast and saturation are changed, as a factor less 1
    erase      chance that a rectangle of a picture is erased
    mean       of each channel, which is taken off, always; () = none
    deviation  of each channel, which what is left is divided by
    """

    crop: int = 0
    flip: bool = False
    jitter: float = 0.0
    erase: float = 0.0
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()

    @property
    def augments(self) -> bool:
        return bool(self.crop or self.flip or self.jitter or self.erase)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """fill      whether empty cells of numbers get the mean of the column's others
    standard  whether columns of fractions are brought to a mean of 0 and a deviation of 1

    Both by the samples to train on alone.
    """

    fill: bool = False
    standard: bool = False


def pictures_as_told(augment: str, normalise: str) -> PictureSpec:
    """Read "crop=4, flip, jitter=0.2, erase=0.25" and "0.5 0.4 0.4 / 0.2 0.2 0.2", means and
    deviations. Raises `InvalidInput`."""
    found: dict[str, str] = {}
    for word in filter(None, (word.strip() for word in augment.split(","))):
        name, _, value = word.partition("=")
        found[name.strip()] = value.strip()
    mean, _, deviation = normalise.partition("/")
    if unknown := [name for name in found if name not in ("crop", "flip", "jitter", "erase")]:
        raise InvalidInput(f"pictures are not augmented by {', '.join(unknown)}", ADVICE)
    crop = _number("crop", found.get("crop", "0"))
    if crop != int(crop):
        raise InvalidInput(f"crop={crop:g} is not a whole number of pixels", ADVICE)
    if found.get("flip"):
        raise InvalidInput(f"flip={found['flip']}: flip takes no number", ADVICE)
    spec = PictureSpec(
        int(crop),
        "flip" in found,
        _number("jitter", found.get("jitter", "0")),
        _number("erase", found.get("erase", "0")),
        _numbers(mean),
        _numbers(deviation),
    )
    check_pictures(spec)
    return spec


def told(spec: PictureSpec) -> tuple[str, str]:
    """The two texts that `pictures_as_told` reads it from."""
    given = {each.name: getattr(spec, each.name) for each in fields(spec)}
    words = [f"{name}={given[name]:g}" for name in ("crop", "jitter", "erase") if given[name]]
    augment = ", ".join([*words, *(["flip"] if spec.flip else [])])
    both = [" ".join(f"{value:g}" for value in part) for part in (spec.mean, spec.deviation)]
    return augment, " / ".join(filter(None, both))


def check_pictures(spec: PictureSpec) -> None:
    """Raise `InvalidInput` on what no picture can be given."""
    if spec.crop < 0 or not 0 <= spec.jitter <= 1 or not 0 <= spec.erase <= 1:
        raise InvalidInput(
            f"crop {spec.crop}, jitter {spec.jitter:g}, erase {spec.erase:g}",
            "Crop by 0 pixels or more; jitter and the chance to erase are from 0 to 1.",
        )
    wrong = any(not (isfinite(each) and each > 0) for each in spec.deviation)
    if wrong or len(spec.mean) != len(spec.deviation) or not all(map(isfinite, spec.mean)):
        raise InvalidInput(
            f"{len(spec.mean)} means and {len(spec.deviation)} deviations normalise no picture",
            "Give one of each per channel, deviations above 0: 0.5 0.4 0.4 / 0.2 0.2 0.2",
        )


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_number("a mean or deviation", word) for word in re.split(r"[\s,]+", text) if word)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{name} of {text or 'nothing'!r} is not a number", ADVICE) from None
    if not isfinite(value):
        raise InvalidInput(f"{name} of {text} is not finite", ADVICE)
    return value
