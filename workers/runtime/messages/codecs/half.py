"""Numbers of two bytes."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.coder import as_bytes


@dataclass(frozen=True, slots=True)
class HalfCoder:
    """Rounds to the nearest number of `dtype`, ties to even; float16 is infinite above 65,504."""

    dtype: torch.dtype

    def encode(self, tensor: Tensor) -> Tensor:
        return as_bytes(tensor.to(self.dtype))

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        return coded.view(self.dtype).view(spec.shape).to(spec.dtype)
