"""Pictures changed at random: each operation beside a plain reference, and when it applies."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from backend.errors import InvalidInput
from backend.runs.request.sample_specs import PictureSpec, check_pictures, pictures_as_told, told
from workers.data.augmentation import AREA, PictureDraw, augmented, changed, drawn
from workers.data.cutting import Cutting
from workers.data.drawn import generator_of
from workers.data.errors import DataFailed
from workers.data.split import DataSet, TensorSplit
from workers.runtime.samples.epoch import Epoch

EVERY = PictureSpec(2, True, 0.3, 0.5, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))
BYTES = torch.randint(256, (6, 3, 8, 9), generator=torch.Generator().manual_seed(1))
PICTURES = BYTES / 255


def as_image(number: int) -> Image.Image:
    return Image.fromarray(BYTES[number].permute(1, 2, 0).numpy().astype(np.uint8))


def as_tensor(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(image, np.float32) / 255).permute(2, 0, 1)


@pytest.mark.parametrize("is_flipped", [False, True])
def test_cut_out_and_mirrored_as_pillow_does_it(is_flipped: bool) -> None:
    padded = ImageOps.expand(as_image(0), 2)
    expected = padded.crop((1, 3, 1 + 9, 3 + 8))
    expected = ImageOps.mirror(expected) if is_flipped else expected
    found = changed(PICTURES[0], PictureDraw(3, 1, is_flipped), PictureSpec(2))
    assert torch.equal(found, as_tensor(expected))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_colours_are_those_of_pillow_to_a_rounded_byte(place: int, factor: float) -> None:
    make = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[place]
    factors = tuple(factor if n == place else 1.0 for n in range(3))
    found = changed(PICTURES[1], PictureDraw(factors=factors), PictureSpec(jitter=0.3))
    expected = as_tensor(make(as_image(1)).enhance(factor))
    assert float((found - expected).abs().max()) < 2.1 / 255


def test_normalised_and_erased_to_the_mean() -> None:
    found = changed(PICTURES[2], PictureDraw(erased=(1, 2, 3, 4)), EVERY_PLAIN)
    expected = PICTURES[2].clone()
    for channel in range(3):
        expected[channel] = (expected[channel] - EVERY.mean[channel]) / EVERY.deviation[channel]
    expected[:, 1:4, 2:6] = 0
    assert torch.allclose(found, expected)


EVERY_PLAIN = PictureSpec(mean=EVERY.mean, deviation=EVERY.deviation)


def test_draws_have_the_chances_and_the_bounds_that_are_asked_for() -> None:
    draws = [drawn(EVERY, (3, 32, 32), generator_of(0, 0, n)) for n in range(800)]
    assert {draw.top for draw in draws} == {draw.left for draw in draws} == {0, 1, 2, 3, 4}
    assert np.mean([d.is_flipped for d in draws]) == pytest.approx(0.5, abs=0.06)
    factors = np.array([draw.factors for draw in draws])
    assert factors.min() >= 0.7
    assert factors.max() <= 1.3
    assert factors.mean() == pytest.approx(1, abs=0.02)
    boxes = [draw.erased for draw in draws if draw.erased]
    assert len(boxes) / len(draws) == pytest.approx(0.5, abs=0.06)
    shares = [tall * wide / 1024 for _, _, tall, wide in boxes]
    assert AREA[0] * 0.8 < min(shares)
    assert max(shares) < AREA[1] * 1.1
    assert all(top + tall <= 32 and left + wide <= 32 for top, left, tall, wide in boxes)


def data() -> DataSet:
    labels = torch.arange(6)
    return DataSet(TensorSplit(PICTURES, labels), TensorSplit(PICTURES, labels))


def test_an_epoch_is_the_same_wherever_it_begins_and_another_one_is_not() -> None:
    part, cutting = augmented(data(), EVERY).train, Cutting(2)
    whole = Epoch.shuffled(part, cutting, 7, 3)
    resumed = Epoch.shuffled(part, cutting, 7, 3, first=1)
    for number in range(2):
        assert torch.equal(whole.inputs(number + 1), resumed.inputs(number))
        assert torch.equal(whole.targets(number + 1), resumed.targets(number))
    everything = torch.arange(6)
    seen = [part.of_epoch(7, epoch).inputs(everything) for epoch in (3, 3, 4)]
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])
    assert not torch.equal(seen[0], part.of_epoch(8, 3).inputs(everything))
    number = int(whole.targets(0)[0])
    assert torch.equal(whole.inputs(0)[0], seen[0][number])


def test_held_out_pictures_are_normalised_alone() -> None:
    found = augmented(data(), EVERY)
    assert found.held_out is not None
    epoch = Epoch.in_order(found.held_out, Cutting(6))
    mean, deviation = (torch.tensor(v)[:, None, None] for v in (EVERY.mean, EVERY.deviation))
    assert torch.allclose(epoch.inputs(0), (PICTURES - mean) / deviation)
    assert augmented(data(), PictureSpec()).train.inputs(torch.arange(6)) is not None


@pytest.mark.parametrize(
    ("given", "spec", "said"),
    [
        (torch.rand(4, 3), PictureSpec(2), "has no pictures to augment"),
        (torch.rand(4, 3, 2, 2), PictureSpec(mean=(1, 1), deviation=(1, 1)), "2 means"),
        (torch.rand(4, 3, 2, 2) * 9, PictureSpec(jitter=0.2), "colours of .* cannot be changed"),
    ],
)
def test_what_is_no_picture_is_refused(given: torch.Tensor, spec: PictureSpec, said: str) -> None:
    with pytest.raises(DataFailed, match=said):
        augmented(DataSet(TensorSplit(given, torch.arange(4)), None), spec)


def test_what_is_told_is_read_again() -> None:
    assert pictures_as_told(*told(EVERY)) == EVERY
    assert pictures_as_told("", "") == PictureSpec()
    assert pictures_as_told("crop=4,flip", "0.1/0.3") == PictureSpec(4, True, 0, 0, (0.1,), (0.3,))


@pytest.mark.parametrize(
    ("augment", "normalise"),
    [
        *(("turn=3", ""), ("crop=x", ""), ("crop=0.5", ""), ("flip=2", ""), ("crop=-1", "")),
        *(("jitter=2", ""), ("erase=inf", ""), ("", "0.5"), ("", "0.5/0"), ("", "a/b")),
    ],
)
def test_what_makes_no_sense_is_refused_with_an_example(augment: str, normalise: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_pictures(pictures_as_told(augment, normalise))
    assert caught.value.advice
