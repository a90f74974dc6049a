"""Clusters known by name: this machine's cores, and those of the PipeDream paper."""

from collections.abc import Callable
from typing import NamedTuple

from backend.cluster.cluster import Cluster, Device, Level
from backend.cores import usable_cores
from backend.errors import InvalidInput
from backend.whole import is_whole

LOOPBACK_BANDWIDTH = 2.5e9
LOOPBACK_LATENCY = 60e-6


def local(num_devices: int, cores: int | None = None) -> Cluster:
    """`num_devices` processes on the `cores` of one machine (None = a core for each), joined by
    gloo over loopback.

    Measured on 2026-11-20 between two single-threaded torch 2.13 processes on a 2-core AMD
    EPYC machine, medians of two runs. Send/recv (half a ping-pong): 4 B 55-71 us, 64 KiB
    77-79 us, 1 MiB 0.28-0.30 ms, 4 MiB 0.90-0.95 ms, 64 MiB 13-15 ms (5.2-4.4 GB/s).
    All-reduce, which moves its size once between two: 4 B 0.11-0.14 ms, 1 MiB 0.50-0.54 ms,
    4 MiB 1.6 ms (2.6 GB/s), 64 MiB 35-37 ms (1.9 GB/s). 2.5 GB/s and 60 us fit the
    all-reduce, where bandwidth counts, and send/recv of up to 1 MiB within a factor of two.
    Other machines differ: measure yours and write it into a cluster file.
    """
    level = Level(num_devices, LOOPBACK_BANDWIDTH, LOOPBACK_LATENCY, cores)
    return Cluster((level,), Device("cpu"))


def this_machine(num_devices: int) -> Cluster:
    """`local` on the cores of this machine that the process may use."""
    return local(num_devices, usable_cores())


def cluster_a(servers: int = 4) -> Cluster:
    """Cluster-A of PipeDream (Narayanan et al., SOSP 2019, table 2): Azure NC24 v3, 4 V100 a
    server on PCIe at 12 GB/s, 10 Gbit/s between servers. The bandwidths are those that the
    authors' planner is run with. Device memory is not stated there, so it is not checked.
    """
    return Cluster((Level(4, 12e9), Level(servers, 1.25e9)), Device("V100"))


def cluster_b(servers: int = 2) -> Cluster:
    """Cluster-B (same table): AWS p3.16xlarge, 8 V100 a server on NVLink at 30 GB/s,
    25 Gbit/s between servers."""
    return Cluster((Level(8, 30e9), Level(servers, 3.125e9)), Device("V100"))


def cluster_c(servers: int = 4) -> Cluster:
    """Cluster-C (same table): one Titan X a server, 40 Gbit/s between servers."""
    return Cluster((Level(servers, 5e9),), Device("Titan X"))


class Preset(NamedTuple):
    """`build(count)`: the cluster with `count` devices ("local") or servers (the others)."""

    title: str
    build: Callable[[int], Cluster]


PRESETS: dict[str, Preset] = {
    "local": Preset("This machine's cores", this_machine),
    "cluster-a": Preset("PipeDream's Cluster-A: 4 V100 a server, 10 Gbit/s", cluster_a),
    "cluster-b": Preset("PipeDream's Cluster-B: 8 V100 a server, 25 Gbit/s", cluster_b),
    "cluster-c": Preset("PipeDream's Cluster-C: 1 Titan X a server, 40 Gbit/s", cluster_c),
}


def named_preset(text: str) -> tuple[str, int] | None:
    """A preset and its count, written as "cluster-a:4"; None where `text` is something else."""
    name, colon, count = text.strip().partition(":")
    return (name, int(count)) if name in PRESETS and colon and is_whole(count) else None


def preset(name: str, count: int) -> Cluster:
    """The preset `name` with `count` devices or servers; raises `InvalidInput`."""
    if name not in PRESETS:
        raise InvalidInput(f"no cluster preset {name!r}", f"Known are: {', '.join(PRESETS)}.")
    return PRESETS[name].build(count)
