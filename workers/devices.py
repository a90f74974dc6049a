"""What this machine has to compute with, asked without importing torch."""

from importlib import metadata
from platform import python_version

import psutil

from backend.cluster.cluster import Device
from workers import use

FIRST = 20.0
"""Seconds for nvidia-smi, which may have to load the driver."""


def devices() -> tuple[Device, ...]:
    """The CUDA devices where there are any, else one device per CPU core with an even
    share of the machine's memory."""
    return gpus() or cores()


def gpus() -> tuple[Device, ...]:
    """The GPUs that nvidia-smi names; memory None where the driver gives no number."""
    return tuple(Device(gpu.name, gpu.total) for gpu in use.gpus(FIRST))


def cores() -> tuple[Device, ...]:
    """One device per logical core."""
    count = psutil.cpu_count() or 1
    share = float(psutil.virtual_memory().total // count)
    return (Device("cpu", share),) * count


def versions() -> dict[str, str]:
    """Python and the packages that runs depend on, as far as they are installed."""
    found = {"python": python_version()}
    for name in ("stageflow", "torch", "celery"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
