"""What the process of a rank uses: its cores and memory, its GPU, its connections."""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import psutil
import torch

from backend.runs.use import Use

COUNTERS, SIZE = 120, 136
"""Of Linux's struct tcp_info: where tcpi_bytes_acked and tcpi_bytes_received stand, and its bytes
up to their end (linux/tcp.h)."""


class RankUseMeter:
    """Each call tells of the time since the one before. To be used by one thread."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._before = (time.monotonic(), time.process_time(), traffic())

    def __call__(self) -> Use:
        now, cpu, moved = time.monotonic(), time.process_time(), traffic()
        then, cpu_then, moved_then = self._before
        self._before = now, cpu, moved
        seconds = max(now - then, 1e-6)
        sent, received = (
            max(0, new - old) / seconds for new, old in zip(moved, moved_then, strict=True)
        )
        rates = {"sent": sent, "received": received}
        if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            return _of_gpu(rates)
        memory = float(self._process.memory_info().rss)
        return Use("cpu", (cpu - cpu_then) / seconds, memory, **rates)


def _of_gpu(rates: dict[str, float]) -> Use:
    """The device is told by the driver, whoever uses it; what it does not tell, or where
    nvidia-ml-py is missing, is not known."""
    number = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
    free, total = torch.cuda.mem_get_info(number)
    return Use(
        torch.cuda.get_device_name(number),
        _told(lambda: torch.cuda.utilization(number) / 100),
        float(total - free),
        float(total),
        _told(lambda: torch.cuda.temperature(number)),
        watts=_told(lambda: torch.cuda.power_draw(number) / 1000),
        **rates,
    )


def _told(ask: Callable[[], float]) -> float | None:
    try:
        return float(ask())
    except Exception:  # of the driver, of a library that is not there
        return None


def traffic() -> tuple[int, int]:
    """Bytes that this process has sent and received by TCP on the connections that are open now:
    messages and collectives alike, as the kernel counts them. Linux alone tells."""
    sent = received = 0
    for handle in _sockets():
        with suppress(OSError), socket.fromfd(handle, socket.AF_INET, socket.SOCK_STREAM) as each:
            told = each.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE)
            if len(told) == SIZE:
                acked, got = struct.unpack_from("QQ", told, COUNTERS)
                sent, received = sent + acked, received + got
    return sent, received


def _sockets() -> Iterator[int]:
    """The numbers of this process's open sockets, of any kind."""
    with suppress(OSError):
        for entry in os.scandir("/proc/self/fd"):
            with suppress(OSError):
                if os.readlink(entry.path).startswith("socket:"):
                    yield int(entry.name)
