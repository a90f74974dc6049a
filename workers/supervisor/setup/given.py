"""What the ranks of a run are given of their node, by the devices that it holds there."""

import os
from collections.abc import Sequence

from backend.cores import usable_cores
from backend.units import count_text
from workers.supervisor.ranks.place import Place


def gpus_for(place: Place, gpus: Sequence[str]) -> Sequence[str]:
    """The node's GPUs, among which each rank has its own by its device's number; none where they
    are too few for that, because NCCL refuses two ranks on one GPU."""
    has_own = len(set(place.devices)) == len(place.devices)
    return gpus if has_own and max(place.devices) < len(gpus) else ()


def cores_for(place: Place, gpus: Sequence[str]) -> Sequence[int]:
    """The cores to which the ranks are bound, so that runs do not disturb each other's times: on a
    node without GPUs, whose devices they are. () = any."""
    if gpus or not hasattr(os, "sched_getaffinity"):
        return ()
    cores = sorted(os.sched_getaffinity(0))
    return sorted({cores[device % len(cores)] for device in place.held})


def share_of(held: Sequence[int], gpus: Sequence[str], devices: int = 0) -> float:
    """How much of the node's memory and disk a run gets that holds these devices, at most 1.
    `devices`: as many as a node without GPUs has, 0 = one per core."""
    return min(1.0, len(held) / (len(gpus) or devices or usable_cores()))


def sharing(place: Place, gpus: Sequence[str]) -> Sequence[str]:
    """What to warn of where there are too few devices."""
    if gpus_for(place, gpus):
        return ()
    ranks, cores = len(place.ranks), len(cores_for(place, gpus)) or usable_cores()
    warnings = []
    if gpus:
        warnings.append(
            f"{ranks} ranks and {count_text(len(place.held), 'GPU')}: NCCL allows one rank per "
            "GPU, so the ranks run on CPU cores"
        )
    if ranks > cores:
        warnings.append(f"{ranks} ranks share {count_text(cores, 'CPU core')}: slower than planned")
    return warnings
