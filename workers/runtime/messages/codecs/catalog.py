"""How every codec, by its name, begins with a tensor that crosses a cut."""

from collections.abc import Callable
from functools import partial

import torch

from backend.pipeline.codecs.blocks import FP8, INT4, INT8
from backend.pipeline.codecs.half import BF16, FP16
from backend.pipeline.codecs.top import TOP
from workers.runtime.messages.codecs.blocks import BlockCoder, Bytes, Floats, HalfBytes
from workers.runtime.messages.codecs.coder import Apart, Coder, RoundTrip
from workers.runtime.messages.codecs.half import HalfCoder
from workers.runtime.messages.codecs.top import TopRoundTrip


def _apart(activation: Coder, gradient: Coder | None = None) -> Callable[[], RoundTrip]:
    round_trip = Apart(activation, gradient or activation)
    return lambda: round_trip


_INT8 = BlockCoder(Bytes())
ROUND_TRIPS: dict[str, Callable[[], RoundTrip]] = {
    BF16.name: _apart(HalfCoder(torch.bfloat16)),
    FP16.name: _apart(HalfCoder(torch.float16)),
    INT8.name: _apart(_INT8),
    FP8.name: _apart(
        BlockCoder(Floats(torch.float8_e4m3fn)), BlockCoder(Floats(torch.float8_e5m2))
    ),
    INT4.name: _apart(BlockCoder(HalfBytes()), _INT8),
    **{codec.name: partial(TopRoundTrip, percent) for percent, codec in TOP.items()},
}
