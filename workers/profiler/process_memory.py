"""What a rank's process holds beside its model: Python, torch, what a definition imports."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import psutil
import torch

STATUS = Path("/proc/self/status")
FORGET = Path("/proc/self/clear_refs")
FORGET_PEAK = "5"
RUNTIME = 32 << 20
"""What a rank on a CPU comes to hold beside what a profile finds in its process: groups of
processes, transport, evaluation, writing the model. Measured with a model that does nothing
(docs/evidence/prediction.md)."""


def private_bytes() -> int:
    """Resident bytes of this process that no file backs, without what was freed; 0 where the
    system does not tell."""
    if not STATUS.exists():
        return 0
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _told("RssAnon")


def unused_bytes(work: Callable[[], object], most: int, device: torch.device) -> int:
    """Bytes that the device's allocator holds at most during `work` beside those that are alive,
    of which `work` has `most` at once: what lies between them is too small for others. 0 where
    the system does not tell."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        work()
        held = torch.cuda.max_memory_reserved(device)
        return max(0, held - torch.cuda.max_memory_allocated(device))
    if not private_bytes():
        return 0
    try:
        FORGET.write_text(FORGET_PEAK)
    except OSError:
        return 0
    before = _told("VmRSS")
    work()
    return max(0, _told("VmHWM") - before - most)


def process_bytes(private: int, device: torch.device) -> int:
    """`private` bytes and those of libraries, once the model has run: a kernel's code comes with
    its first use. On a GPU all that is taken beside torch's own allocations."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return int(total - free - torch.cuda.memory_reserved(device))
    return private + _library_bytes() + RUNTIME if private else 0


def _library_bytes() -> int:
    """Resident bytes of the code that this process has used so far."""
    mapped = psutil.Process().memory_maps(grouped=True)
    return sum(one.rss - one.anonymous for one in mapped if ".so" in Path(one.path).name)


def _told(field: str) -> int:
    """Bytes that the kernel counts of this process."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10
