"""How a process of a run begins: one thread, an end when its parent ends, a stack on demand; and
the device and memory that it has."""

import ctypes
import faulthandler
import os
import signal
import sys
from importlib import import_module

import psutil
import torch

if sys.platform != "win32":
    import resource

USABLE = 0.9
"""Of the free memory: the rest is for workspaces, and for what grows beside."""
LATE = ("torch._dynamo", "torch.fx.experimental.symbolic_shapes")
"""What torch imports once a model is made of shapes: 800 modules and 1.2 s of a core (2.13)."""
LATE_IF_CAPTURED = ("torch._export.non_strict_utils", "torch._functorch.partitioners")
"""What it imports once a model is captured, 0.5 s more."""
_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def die_with_parent() -> None:
    """Let the kernel kill this process when its parent ends; SIGTERM ends it at once too.

    A handler that the parent ignored would be inherited, so the default is set again.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def tell_stacks() -> None:
    """SIGUSR2 writes the stack of every thread to standard error, which is the run's log: by the
    handler itself, so also where the interpreter waits inside C. Before that the launcher lets it
    be ignored."""
    faulthandler.register(signal.SIGUSR2, all_threads=True)


def import_late(captured: bool = False) -> None:
    """Import what torch would import once a model is made of shapes, and `captured`."""
    for name in LATE + (LATE_IF_CAPTURED if captured else ()):
        import_module(name)


def use_one_thread() -> None:
    """Ranks share the machine's cores, so each takes one."""
    torch.set_num_threads(1)


def keep_freed_memory() -> bool:
    """Let glibc hand freed memory out again instead of giving it back to the kernel; whether
    it agreed.

    Activations and gradients are as large in every step; by default each of them is mapped,
    faulted in page by page, and unmapped again (figures in docs/evidence/prediction.md).
    """
    libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
    if libc is None or not hasattr(libc, "mallopt"):
        return False
    agreed = libc.mallopt(_M_MMAP_MAX, 0), libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
    return agreed == (1, 1)


def device(local_rank: int = 0) -> torch.device:
    """The GPU that torchrun's LOCAL_RANK names, or the CPU."""
    if torch.cuda.is_available():
        chosen = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(chosen)
        return chosen
    return torch.device("cpu")


def free(device: torch.device) -> int:
    """Bytes that this process may still take on the device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] * USABLE)
    room = psutil.virtual_memory().available
    if sys.platform.startswith("linux"):
        most, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if most != resource.RLIM_INFINITY:
            room = min(room, most - psutil.Process().memory_info().data)
    return int(max(0, room) * USABLE)


def device_name(chosen: torch.device) -> str:
    """As people know it: "cpu", "NVIDIA H200"."""
    return torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else chosen.type
