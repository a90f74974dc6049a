"""Joules that a host's processors and a rank's GPU have taken, where they tell.

Linux counts those of each processor (RAPL, "energy_uj" below /sys/class/powercap, which only root
reads on most systems), NVIDIA's library those of each GPU since its driver was loaded. Both count
whatever ran there.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from math import nan
from pathlib import Path
from typing import Any

import torch

POWERCAP = Path("/sys/class/powercap")
PACKAGES = "intel-rapl:*"
"""Folders of processors ("intel-rapl:0", AMD's too) and of their parts ("intel-rapl:0:0")."""


class EnergyMeter:
    """Counts from when it is made."""

    def __init__(self, device: torch.device, root: Path | None = None) -> None:
        found = (_Processor.of(folder) for folder in sorted((root or POWERCAP).glob(PACKAGES)))
        self._processors = [each for each in found if each is not None]
        self._gpu = _Gpu.of(device) if device.type == "cuda" else None

    @property
    def tells(self) -> bool:
        """Whether anything counts here what trains: on a GPU that alone."""
        return self._gpu is not None or bool(self._processors)

    def taken(self) -> tuple[float, float]:
        """Joules of the host's processors and of the GPU since it was asked before; not a number
        where a counter lets itself be read no longer."""
        gpu = self._gpu.taken() if self._gpu else 0.0
        return sum(each.taken() for each in self._processors), gpu


class _Processor:
    """One counter, which begins again at 0 above its range."""

    def __init__(self, file: Path, most: int) -> None:
        self._file, self._most = file, most
        self._before = self._read()

    @staticmethod
    def of(folder: Path) -> "_Processor | None":
        """None of a part of a processor, and of one that does not let itself be read."""
        if folder.name.count(":") > 1:
            return None
        with suppress(OSError, ValueError):
            most = int((folder / "max_energy_range_uj").read_text())
            return _Processor(folder / "energy_uj", most)
        return None

    def taken(self) -> float:
        try:
            now = self._read()
        except (OSError, ValueError):
            return nan
        since = (now - self._before) % (self._most + 1)
        self._before = now
        return since / 1e6

    def _read(self) -> int:
        return int(self._file.read_text())


class _Gpu:
    """One GPU by NVIDIA's library, where Python's package for it (nvidia-ml-py) is installed."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read, self._before = read, read()

    @staticmethod
    def of(device: torch.device) -> "_Gpu | None":
        """None where the package is not there, or the GPU does not count."""
        try:
            nvml: Any = import_module("pynvml")
            nvml.nvmlInit()
            uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            return _Gpu(partial(nvml.nvmlDeviceGetTotalEnergyConsumption, handle))
        except Exception:  # of the driver, of a library that is not there
            return None

    def taken(self) -> float:
        try:
            now = self._read()
        except Exception:  # of the driver
            return nan
        since, self._before = now - self._before, now
        return since / 1e3
