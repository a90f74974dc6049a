"""How every codec, by its name, begins with a tensor that crosses a cut."""

import torch

from backend.pipeline.codecs.blocks import FP8, INT4, INT8
from backend.pipeline.codecs.differences import AQ2, AQ4
from backend.pipeline.codecs.half import BF16, FP16
from backend.pipeline.codecs.top import TOP
from workers.runtime.messages.codecs.blocks import BlockCoder, Bytes, FewBits, Floats
from workers.runtime.messages.codecs.coder import ALL_ZERO, Apart, Begin, Coder, Past, RoundTrip
from workers.runtime.messages.codecs.differences import DifferenceTrip
from workers.runtime.messages.codecs.half import HalfCoder
from workers.runtime.messages.codecs.top import TopRoundTrip


def _apart(activation: Coder, gradient: Coder | None = None) -> Begin:
    round_trip = Apart(activation, gradient or activation)

    def begin(past: Past = ALL_ZERO) -> RoundTrip:
        return round_trip

    return begin


def _top(percent: int) -> Begin:
    def begin(past: Past = ALL_ZERO) -> RoundTrip:
        return TopRoundTrip(percent)

    return begin


def _differences(blocks: BlockCoder, gradient: Coder) -> Begin:
    def begin(past: Past = ALL_ZERO) -> RoundTrip:
        return DifferenceTrip(blocks, gradient, past)

    return begin


_INT8, _INT4 = BlockCoder(Bytes()), BlockCoder(FewBits(4))
ROUND_TRIPS: dict[str, Begin] = {
    BF16.name: _apart(HalfCoder(torch.bfloat16)),
    FP16.name: _apart(HalfCoder(torch.float16)),
    INT8.name: _apart(_INT8),
    FP8.name: _apart(
        BlockCoder(Floats(torch.float8_e4m3fn)), BlockCoder(Floats(torch.float8_e5m2))
    ),
    INT4.name: _apart(_INT4, _INT8),
    **{codec.name: _top(percent) for percent, codec in TOP.items()},
    AQ4.name: _differences(_INT4, _INT8),
    AQ2.name: _differences(BlockCoder(FewBits(2)), _INT4),
}
