"""Bounds the memory that reading a report may take: a small file can expand to a large one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.errors import StageflowError
from backend.units import bytes_text

if sys.platform != "win32":
    import resource

MOST = 768 << 20
"""Bytes: room for about a million spans. Below the 1 GiB that Arrow's allocator takes at once
where it can; with 1.1 GiB it took that and had no room left to read."""


class ReportExceedsMemory(StageflowError):
    """A rank's report would fill the agent's memory."""

    advice = "A definition must leave its rank's pipe of events and its reports alone."


@contextmanager
def bounded(most: int = MOST) -> Iterator[None]:
    """While it holds, this process cannot take `most` bytes more than it has; what fails
    for that becomes `ReportExceedsMemory`. On Linux; elsewhere nothing is bounded."""
    held = _held()
    if held is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    bound = held + most
    if before[0] != resource.RLIM_INFINITY:
        bound = min(bound, before[0])
    resource.setrlimit(resource.RLIMIT_DATA, (bound, before[1]))
    try:
        yield
    except MemoryError as fault:
        raise ReportExceedsMemory(
            f"a report takes more than {bytes_text(most)} of memory"
        ) from fault
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _held() -> int | None:
    """Bytes of writable private memory, as RLIMIT_DATA counts it."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    return int(fields[5]) * resource.getpagesize()
