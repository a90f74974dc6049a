"""A recommender: embeddings of eight kinds of things, many of them rare, and a perceptron behind,
which learns what a fixed teacher says."""

import torch
from torch import Tensor, nn

FIELDS, ROWS, WIDTH = 8, 500, 16
SAMPLES, HELD_OUT = 32768, 4096


def model() -> nn.Module:
    return nn.Sequential(
        nn.Embedding(FIELDS * ROWS, WIDTH),
        nn.Flatten(),
        nn.Linear(FIELDS * WIDTH, 64),
        nn.ReLU(),
        nn.Linear(64, 64),
        nn.ReLU(),
        nn.Linear(64, 2),
    )


def example(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randint(FIELDS * ROWS, (batch, FIELDS)), torch.randint(2, (batch,))


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output, target)


def data() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Things of a field are met about as often as one over their number; the teacher adds a liking
    of each thing and a little of how pairs of fields agree, and likes half of the samples."""
    generator = torch.Generator().manual_seed(1)
    count = SAMPLES + HELD_OUT
    drawn = torch.rand(count, FIELDS, generator=generator)
    rows = (ROWS**drawn - 1).long().clamp(0, ROWS - 1)
    things = rows + ROWS * torch.arange(FIELDS)
    vectors = torch.randn(FIELDS * ROWS, 2, generator=generator)[things]
    pairs = (vectors[:, ::2, 1] * vectors[:, 1::2, 1]).sum(1)
    liked = vectors[..., 0].sum(1) + 0.3 * pairs
    answers = (liked > liked.median()).long()
    return (things[:SAMPLES], answers[:SAMPLES]), (things[SAMPLES:], answers[SAMPLES:])
