"""Prediction and similarity matching: samples of one class are to look alike (Nøkland and Eidnes,
ICML 2019, with their code's constants)."""

import torch
from torch import Tensor, nn

from workers.definitions.definition import Loss
from workers.definitions.samples import Samples, target_of
from workers.runtime.compute.local_heads.features import Features
from workers.runtime.compute.local_heads.head import Bundle, HeadSize, LocalHead, zero_linear

SHARE = 0.99
"""b: of the loss what similarity has; prediction has the rest."""
SMALL = 1e-8
"""Added to a norm before dividing by it."""
KERNEL = 3
"""Width of the convolution in front of the similarities of pictures."""


class SimilarityHead(LocalHead):
    """(1 - b) loss(decoder(pooled h), y) + b MSE(S(map(h)), S(onehot y)), for each tensor h that it
    reads; `map` is a convolution of pictures, else linear, as wide as h."""

    def __init__(self, features: Features, size: HeadSize) -> None:
        super().__init__(features, zero_linear(size))
        self.num_classes = size.scores
        self.maps = nn.ParameterList([size.drawn(*_map_shape(shape)) for shape in size.shapes])

    def loss(self, bundle: Bundle, answers: Samples, of_model: Loss) -> Tensor:
        labels = target_of(answers)
        assert isinstance(labels, Tensor), "local heads are made for one tensor of answers"
        wanted = similarity(nn.functional.one_hot(labels, self.num_classes).to(bundle[0].dtype))
        read = [bundle[place] for place in self.features.places]
        apart = [
            nn.functional.mse_loss(similarity(_mapped(h, by)), wanted)
            for h, by in zip(read, self.maps, strict=True)
        ]
        alike = torch.stack(apart).mean()
        return (1 - SHARE) * super().loss(bundle, answers, of_model) + SHARE * alike


def similarity(values: Tensor) -> Tensor:
    """S (samples x samples): cosines between samples whose mean is taken off. Of pictures the
    deviation within each channel counts, where they have more than three and more than a row."""
    if values.dim() == 4 and values.shape[1] > 3 and values.shape[2] > 1:
        values = values.flatten(2).std(2)
    rows = values.flatten(1)
    centred = rows - rows.mean(1, keepdim=True)
    length = SMALL + torch.linalg.vector_norm(centred, dim=1, keepdim=True)
    unit = centred / length
    cosines: Tensor = unit @ unit.T
    return cosines.clamp(-1, 1)


def _map_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of the weight of a map that is as wide as what it maps."""
    width = shape[1] if len(shape) == 4 else shape[-1]
    return (width, width, KERNEL, KERNEL) if len(shape) == 4 else (width, width)


def _mapped(values: Tensor, weight: Tensor) -> Tensor:
    if values.dim() == 4:
        return nn.functional.conv2d(values, weight, padding=KERNEL // 2)
    return nn.functional.linear(values, weight)


def similar(features: Features, size: HeadSize) -> LocalHead:
    """For one class of each sample alone."""
    return SimilarityHead(features, size)
