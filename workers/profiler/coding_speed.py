"""How fast this node codes messages between stages: every codec of the catalog, on one core."""

from collections.abc import Callable
from functools import cache
from statistics import median
from time import thread_time

import torch

from backend.pipeline.actions import Flow
from backend.profiles.coding_speed import CodingSpeed
from workers.definitions.tracing.record import TensorSpec
from workers.profiler.message_overhead import line
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS

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
    small, large = (_seconds(name, flow, size) for size in (SMALL, LARGE))
    (encode, encode_byte), (decode, decode_byte) = (
        line(few, many, SMALL, LARGE) for few, many in zip(small, large, strict=True)
    )
    return CodingSpeed(name, encode, encode_byte, decode, decode_byte, flow.value)


def _seconds(name: str, flow: Flow, size: int) -> tuple[float, float]:
    """Median seconds in which a tensor of `size` bytes is coded, and read again."""
    round_trip, tensor = ROUND_TRIPS[name](), torch.randn(ROWS, size // 4 // ROWS)
    round_trip.of(Flow.ACTIVATION).encode(tensor)
    coder, spec = round_trip.of(flow), TensorSpec.of(tensor)
    coded = coder.encode(tensor)
    return _took(lambda: coder.encode(tensor)), _took(lambda: coder.decode(coded, spec))


def _took(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(WARM_UP + ROUNDS):
        start = thread_time()
        work()
        taken.append(thread_time() - start)
    return median(taken[WARM_UP:])
