"""What this agent has to compute with, asked without importing torch."""

import os
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from platform import python_version

from backend.cluster.cluster import Device
from backend.cores import usable_cores
from workers import use
from workers.allocation import allowed, memory
from workers.use import Gpu

FIRST = 20.0
"""Seconds for nvidia-smi, which may have to load the driver."""


def devices(found: Sequence[Gpu], count: int = 0) -> tuple[Device, ...]:
    """The GPUs that were `found`, their memory None where the driver gives no number; else so many
    devices of the CPU (0 = one per core) with an even share of the memory."""
    return tuple(Device(gpu.use.name, gpu.use.total) for gpu in found) or cores(count)


def gpus() -> tuple[Gpu, ...]:
    """Those of the GPUs that nvidia-smi names which this agent may use. Raises `InvalidInput`."""
    return allowed(use.gpus(FIRST), os.environ)


def cores(count: int = 0) -> tuple[Device, ...]:
    """One device per logical core that this process may use, or so many as are given."""
    count = count or usable_cores()
    return (Device("cpu", float(memory() // count)),) * count


@cache  # every heartbeat names them, and each is read from a file
def versions() -> dict[str, str]:
    """Python and the packages that runs depend on, as far as they are installed."""
    found = {"python": python_version()}
    for name in ("stageflow", "torch", "celery"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
