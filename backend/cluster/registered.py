"""A cluster from the devices that registered nodes report."""

from collections.abc import Sequence

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY
from backend.errors import InvalidInput

ETHERNET = 1.25e9
"""Bytes/s of 10 Gbit/s, assumed between nodes where nobody has measured; 50 us of latency."""
ETHERNET_LATENCY = 50e-6


def from_nodes(
    nodes: Sequence[Sequence[Device]],
    inside: tuple[float, float] = (LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY),
    between: tuple[float, float] = (ETHERNET, ETHERNET_LATENCY),
) -> Cluster:
    """The cluster of `nodes`, each given by its devices; links as (bytes/s, seconds).

    Nodes report their devices and not their links: those are what the caller says. A level
    has members of one size, so nodes of different sizes are taken as one level of all their
    devices on the links between nodes, the slower ones. Raises `InvalidInput` without devices.
    """
    filled = [tuple(node) for node in nodes if node]
    devices = tuple(device for node in filled for device in node)
    if not devices:
        raise InvalidInput("no registered node has a device", "Start one: stageflow worker.")
    if len(filled) == 1:
        levels: tuple[Level, ...] = (Level(len(devices), *inside),)
    elif len({len(node) for node in filled}) == 1:
        levels = (Level(len(filled[0]), *inside), Level(len(filled), *between))
    else:
        levels = (Level(len(devices), *between),)
    same = len(set(devices)) == 1
    return Cluster(levels, devices[0], () if same else devices)
