"""The overhead of a message on the processors of two ranks (o and G of LogGP), measured between two
ends in one process.

Both ends are gloo's own over loopback, as between ranks of a host. A convolution runs before each
message, forward and backward: after compute the code of a message is in no cache, and it takes
three times as long as after another message.
"""

import ctypes
import threading
from datetime import timedelta
from functools import cache
from statistics import median
from time import process_time, thread_time
from typing import Protocol, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import HashStore, ProcessGroupGloo

from backend.profiles.message_overhead import MessageOverhead

SMALL, LARGE = 64 << 10, 1 << 20
"""Bytes of the messages between which, and beyond which, seconds grow evenly."""
ROUNDS, WARM_UP = 12, 3
CHANNELS, PIXELS, SAMPLES = 64, 32, 4
"""Of the convolution: eight samples gave the same medians in twice the time, two gave others."""
PATIENCE = timedelta(seconds=30)


class End(Protocol):
    """A member of a group, as gloo's own is; its stubs do not say so."""

    def send(self, tensors: list[Tensor], to: int, tag: int) -> dist.Work: ...

    def recv(self, tensors: list[Tensor], source: int, tag: int) -> dist.Work: ...


@cache
def message_overhead() -> MessageOverhead:
    """Medians of a few messages of two sizes, once per process. Raises what gloo raises where
    there is no loopback."""
    here, there = _ends()
    small, large = (_costs(here, there, size) for size in (SMALL, LARGE))
    (send, send_byte), (receive, receive_byte) = (
        line(few, many, SMALL, LARGE) for few, many in zip(small, large, strict=True)
    )
    return MessageOverhead(send, send_byte, receive, receive_byte)


def _ends() -> tuple[End, End]:
    """Two members of a group, which must meet at the same time. They are never taken down: gloo
    joins its threads then, and one of them may be the thread that lets go of the last tensor."""
    store, found = HashStore(), dict[int, End]()

    def join(rank: int) -> None:
        found[rank] = cast(End, ProcessGroupGloo(store, rank, 2, PATIENCE))

    other = threading.Thread(target=join, args=(1,))
    other.start()
    join(0)
    other.join()
    for end in found.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(end))
    return found[0], found[1]


def _costs(here: End, there: End, size: int) -> tuple[float, float]:
    """Median seconds of the processor that a message of `size` bytes costs at either end."""
    sent, received = torch.zeros(size // 4), torch.zeros(size // 4)
    layer = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
    samples = torch.ones(SAMPLES, CHANNELS, PIXELS, PIXELS)
    sending, receiving = [], []
    for number in range(WARM_UP + ROUNDS):
        coming = there.recv([received], 0, number)
        layer(samples).sum().backward()
        start, spent = thread_time(), process_time()
        going = here.send([sent], 1, number)
        sending.append(thread_time() - start)
        coming.wait()
        going.wait()
        receiving.append(max(0.0, process_time() - spent - sending[-1]))
    return median(sending[WARM_UP:]), median(receiving[WARM_UP:])


def line(few: float, many: float, small: int, large: int) -> tuple[float, float]:
    """(seconds, seconds per byte) through what `small` and `large` bytes take; none below 0."""
    slope = max(0.0, (many - few) / (large - small))
    return max(0.0, few - slope * small), slope
