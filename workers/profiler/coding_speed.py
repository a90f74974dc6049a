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
from workers.runtime.messages.codecs.catalog import CODERS

SMALL, LARGE = 64 << 10, 1 << 20
"""Bytes of the tensors between which, and beyond which, seconds grow evenly."""
ROUNDS, WARM_UP = 10, 2


@cache
def coding_speeds() -> tuple[CodingSpeed, ...]:
    """Medians of a few tensors of two sizes, once per process; of activations in float32."""
    return tuple(map(_speed, CODERS))


def _speed(name: str) -> CodingSpeed:
    small, large = (_seconds(name, size) for size in (SMALL, LARGE))
    (encode, encode_byte), (decode, decode_byte) = (
        line(few, many, SMALL, LARGE) for few, many in zip(small, large, strict=True)
    )
    return CodingSpeed(name, encode, encode_byte, decode, decode_byte)


def _seconds(name: str, size: int) -> tuple[float, float]:
    """Median seconds in which a tensor of `size` bytes is coded, and read again."""
    coder, tensor = CODERS[name][Flow.ACTIVATION], torch.randn(size // 4)
    coded, spec = coder.encode(tensor), TensorSpec.of(tensor)
    return _took(lambda: coder.encode(tensor)), _took(lambda: coder.decode(coded, spec))


def _took(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(WARM_UP + ROUNDS):
        start = thread_time()
        work()
        taken.append(thread_time() - start)
    return median(taken[WARM_UP:])
