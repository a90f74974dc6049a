"""How fast this node codes messages between stages: every codec of the catalog, on one core."""

from collections.abc import Callable
from functools import cache
from statistics import median
from time import thread_time

import torch
from torch import Tensor

from backend.pipeline.actions import Flow
from backend.profiles.coding_speed import CodingSpeed
from workers.definitions.tracing.record import TensorSpec
from workers.profiler.message_overhead import line
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.codecs.coder import Coder

SMALL, LARGE = 64 << 10, 1 << 20
"""Bytes of the tensors between which, and beyond which, seconds grow evenly."""
ROWS = 16
"""Samples in them."""
ROUNDS, WARM_UP = 10, 2


@cache
def coding_speeds() -> tuple[CodingSpeed, ...]:
    """Medians of a few tensors of two sizes, once per process; of float32."""
    return tuple(_speed(name, flow) for name in ROUND_TRIPS for flow in Flow)


def _speed(name: str, flow: Flow) -> CodingSpeed:
    small, large = (_seconds(_coder(name, flow, size), size) for size in (SMALL, LARGE))
    (encode, encode_byte), (decode, decode_byte) = (
        line(few, many, SMALL, LARGE) for few, many in zip(small, large, strict=True)
    )
    return CodingSpeed(name, encode, encode_byte, decode, decode_byte, flow.value)


def _coder(name: str, flow: Flow, size: int) -> Coder:
    """The codec's for the flow of a tensor of `size` bytes whose activation was coded before."""
    round_trip = ROUND_TRIPS[name]()
    round_trip.of(Flow.ACTIVATION).encode(_tensor(size))
    return round_trip.of(flow)


def _tensor(size: int) -> Tensor:
    return torch.randn(ROWS, size // 4 // ROWS)


@cache  # several codecs have one coder, and most code gradients as they code activations
def _seconds(coder: Coder, size: int) -> tuple[float, float]:
    """Median seconds in which a tensor of `size` bytes is coded, and read again."""
    tensor = _tensor(size)
    coded, spec = coder.encode(tensor), TensorSpec.of(tensor)
    return _took(lambda: coder.encode(tensor)), _took(lambda: coder.decode(coded, spec))


def _took(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(WARM_UP + ROUNDS):
        start = thread_time()
        work()
        taken.append(thread_time() - start)
    return median(taken[WARM_UP:])
