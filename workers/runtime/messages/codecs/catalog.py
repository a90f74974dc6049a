"""The coders of every codec by its name: for activations, and for their gradients."""

import torch

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.blocks import FP8, INT4, INT8
from backend.pipeline.codecs.half import BF16, FP16
from workers.runtime.messages.codecs.blocks import BlockCoder, Bytes, Floats, HalfBytes
from workers.runtime.messages.codecs.coder import Coder
from workers.runtime.messages.codecs.half import HalfCoder


def _both(coder: Coder) -> dict[Flow, Coder]:
    return dict.fromkeys(Flow, coder)


_INT8 = BlockCoder(Bytes())
CODERS: dict[str, dict[Flow, Coder]] = {
    BF16.name: _both(HalfCoder(torch.bfloat16)),
    FP16.name: _both(HalfCoder(torch.float16)),
    INT8.name: _both(_INT8),
    FP8.name: {
        Flow.ACTIVATION: BlockCoder(Floats(torch.float8_e4m3fn)),
        Flow.GRADIENT: BlockCoder(Floats(torch.float8_e5m2)),
    },
    INT4.name: {Flow.ACTIVATION: BlockCoder(HalfBytes()), Flow.GRADIENT: _INT8},
}
