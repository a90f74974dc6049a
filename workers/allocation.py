"""What of this machine the agent may use: who started it, or a scheduler, may have given it a part.

GPUs     CUDA_VISIBLE_DEVICES, as CUDA reads it: numbers in nvidia-smi's order or UUIDs
cores    the process's affinity (`backend.cores`)
memory   the least of the machine's, those of its control groups, and SLURM_MEM_PER_NODE
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from backend.errors import InvalidInput
from workers.use import Gpu

log = logging.getLogger(__name__)

VISIBLE = "CUDA_VISIBLE_DEVICES"
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
SLURM_MEMORY = "SLURM_MEM_PER_NODE"
MIB = 2**20


def allowed(found: Sequence[Gpu], variables: Mapping[str, str]) -> tuple[Gpu, ...]:
    """Those of the machine's GPUs that the agent may use, in the order in which it was given them.

    Without the variable these are all that are whole. As in CUDA, what names no GPU ends the list.
    Raises `InvalidInput` where the variable names slices of a GPU (MIG), or one cut into slices.
    """
    named = variables.get(VISIBLE)
    if named is None:
        for gpu in found:
            if gpu.is_sliced:
                log.warning("GPU %d (%s) is cut into MIG slices: left out", gpu.index, gpu.use.name)
        return tuple(gpu for gpu in found if not gpu.is_sliced)
    chosen: list[Gpu] = []
    for name in map(str.strip, named.split(",")):
        if name.startswith("MIG-"):
            raise _sliced(f"{VISIBLE} names the slice {name}")
        its = next((gpu for gpu in found if gpu.goes_by(name)), None)
        if its is None:
            break
        if its.is_sliced:
            raise _sliced(f"GPU {its.index} ({its.use.name}), which {VISIBLE} names, is cut")
        chosen.append(its)
    return tuple(dict.fromkeys(chosen))


def _sliced(what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}: ranks use whole GPUs, not MIG slices",
        f"Switch MIG off (nvidia-smi -i N -mig 0), or name other GPUs in {VISIBLE}.",
    )


def memory(
    variables: Mapping[str, str] = os.environ, groups: Path = GROUPS, own: Path = OWN_GROUPS
) -> int:
    """Bytes of main memory."""
    limits = [psutil.virtual_memory().total, *_group_limits(groups, own)]
    if (given := variables.get(SLURM_MEMORY, "")).isdigit() and int(given):
        limits.append(int(given) * MIB)
    return min(limits)


def _group_limits(groups: Path, own: Path) -> Iterator[int]:
    """Those of the process's control group and of all around it: of version 2, or of version 1's
    memory controller."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root, name = groups / controllers, "limit_in_bytes" if controllers else "max"
        inner = root / path.lstrip("/")
        for group in (inner, *inner.parents):
            if not group.is_relative_to(root):
                break
            try:
                text = (group / f"memory.{name}").read_text().strip()
            except OSError:
                continue
            if text.isdigit():
                yield int(text)
