"""What this machine has to compute with, asked without importing torch."""

import shutil
import subprocess
from importlib import metadata
from platform import python_version

import psutil

from backend.cluster.cluster import Device

QUERY = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
MIB = 1024**2


def devices() -> tuple[Device, ...]:
    """The CUDA devices where there are any, else one device per CPU core with an even
    share of the machine's memory."""
    return gpus() or cores()


def gpus() -> tuple[Device, ...]:
    """One device per line of nvidia-smi; none where it is missing or fails."""
    if shutil.which(QUERY[0]) is None:
        return ()
    try:
        answer = subprocess.run(QUERY, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_gpus(answer.stdout)


def parse_gpus(table: str) -> tuple[Device, ...]:
    """Lines "name, MiB"; memory None where the driver gives no number ("[N/A]")."""
    found = []
    for line in filter(str.strip, table.splitlines()):
        name, _, mebibytes = line.rpartition(",")
        size = mebibytes.strip()
        found.append(Device(name.strip(), float(size) * MIB if size.isdigit() else None))
    return tuple(found)


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
