"""The coders of every codec by its name: for activations, and for their gradients."""

import torch

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.half import BF16, FP16
from backend.pipeline.codecs.int8 import INT8
from workers.runtime.messages.codecs.coder import Coder
from workers.runtime.messages.codecs.half import HalfCoder
from workers.runtime.messages.codecs.int8 import Int8Coder


def _both(coder: Coder) -> dict[Flow, Coder]:
    return dict.fromkeys(Flow, coder)


CODERS: dict[str, dict[Flow, Coder]] = {
    BF16.name: _both(HalfCoder(torch.bfloat16)),
    FP16.name: _both(HalfCoder(torch.float16)),
    INT8.name: _both(Int8Coder()),
}
