"""Samples of different lengths, padded as they are loaded."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

PAD_INPUT = 0
PAD_TARGET = -100
"""What torch's cross entropy leaves out of its mean (`ignore_index`)."""


@dataclass(frozen=True, slots=True)
class Ragged:
    """A tensor per sample. Targets as long as their inputs are padded with what the loss leaves
    out; targets of one tensor (a label per sample) are taken as they are."""

    each: Sequence[Tensor]
    answers: Sequence[Tensor] | Tensor
    is_at_hand: bool = True

    def __len__(self) -> int:
        return len(self.each)

    @property
    def lengths(self) -> Tensor:
        return torch.tensor([len(sample) for sample in self.each])

    @property
    def labels(self) -> Tensor:
        return self.targets(torch.arange(len(self)))

    def inputs(self, numbers: Tensor, length: int | None = None) -> Tensor:
        return _padded([self.each[n] for n in numbers.tolist()], length, PAD_INPUT)

    def targets(self, numbers: Tensor, length: int | None = None) -> Tensor:
        if isinstance(self.answers, Tensor):
            return self.answers[numbers]
        return _padded([self.answers[n] for n in numbers.tolist()], length, PAD_TARGET)


def _padded(samples: Sequence[Tensor], length: int | None, value: int) -> Tensor:
    joined = pad_sequence(list(samples), batch_first=True, padding_value=value)
    missing = (length or 0) - joined.shape[1]
    if missing <= 0:
        return joined
    filling = joined.new_full((joined.shape[0], missing, *joined.shape[2:]), value)
    return torch.cat((joined, filling), 1)
