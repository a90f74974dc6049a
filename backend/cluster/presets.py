"""Clusters known by name: this machine's cores, those of the PipeDream paper, and today's machines
as their vendors specify them."""

from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Machine:
    """A server of 8 devices of `memory` GiB each, behind switches that give every pair of them the
    whole NVLink bandwidth.

    nvlink   GB/s in and out of a device together, as data sheets write it
    network  Gbit/s of the adapters for traffic between devices, all together, each way
    """

    title: str
    device: str
    memory: int
    nvlink: int
    network: int
    source: str

    def cluster(self, servers: int) -> Cluster:
        """`servers` of them. Bandwidths are one direction's: half of NVLink's figure, and that of
        all adapters, which the devices of a server share (one message alone takes one adapter, an
        eighth of it on most). They are nominal, and latency, which nobody publishes, is 0."""
        inside = Level(8, self.nvlink / 2 * 1e9)
        between = Level(servers, self.network / 8 * 1e9)
        return Cluster((inside, between), Device(self.device, self.memory * 2.0**30))


_NDR, _HDR = 8 * 400, 8 * 200
MACHINES: dict[str, Machine] = {
    #                                    device       GiB  NVLink network  source
    "dgx-a100": Machine("DGX A100", "A100 80GB", 80, 600, _HDR, "NVIDIA's DGX A100 data sheet"),
    "dgx-h100": Machine("DGX H100", "H100", 80, 900, _NDR, "NVIDIA's DGX H100 data sheet"),
    "dgx-h200": Machine("DGX H200", "H200", 141, 900, _NDR, "NVIDIA's DGX H200 data sheet"),
    "dgx-b200": Machine("DGX B200", "B200", 180, 1800, _NDR, "NVIDIA's DGX B200 user guide"),
    "aws-p4d": Machine("AWS p4d.24xlarge", "A100", 40, 600, 400, "AWS's page on EC2 P4"),
    "aws-p5": Machine("AWS p5.48xlarge", "H100", 80, 900, 3200, "AWS's page on EC2 P5"),
    "azure-nd-a100-v4": Machine(
        "Azure ND A100 v4", "A100", 40, 600, _HDR, "Microsoft Learn, ND A100 v4-series"
    ),
    "azure-nd-h100-v5": Machine(
        "Azure ND H100 v5", "H100", 80, 900, _NDR, "Microsoft Learn, ND H100 v5-series"
    ),
    "gcp-a3-ultra": Machine(
        "Google A3 Ultra", "H200", 141, 900, _NDR, "Compute Engine docs, networking of GPU machines"
    ),
}
"""NVIDIA's systems with their default adapters (ConnectX-6 HDR, ConnectX-7 NDR InfiniBand), and
instances of 8 devices. Compared on 2026-11-23 with excerpts of the DGX B200 user guide, the DGX
BasePOD reference architecture (H100, H200, B200), the A100 white paper (600 GB/s), Microsoft Learn,
the Compute Engine documentation and AWS's article on P4d. The adapters of DGX A100, P5 and the
900 and 1800 GB/s of NVLink are from memory of the pages and data sheets that are named."""


class Preset(NamedTuple):
    """`build(count)`: the cluster with `count` devices ("local") or servers (the others).
    `source`: where its figures are published."""

    title: str
    build: Callable[[int], Cluster]
    source: str = "PipeDream, SOSP 2019, table 2"


def _speed(gigabits: int) -> str:
    return f"{gigabits / 1000:g} Tbit/s" if gigabits >= 1000 else f"{gigabits} Gbit/s"


PRESETS: dict[str, Preset] = {
    "local": Preset("This machine's cores", this_machine, "measured on one machine over loopback"),
    **{
        name: Preset(
            f"{machine.title}: 8 {machine.device} a server, {_speed(machine.network)}",
            machine.cluster,
            machine.source,
        )
        for name, machine in MACHINES.items()
    },
    "cluster-a": Preset("PipeDream's Cluster-A: 4 V100 a server, 10 Gbit/s", cluster_a),
    "cluster-b": Preset("PipeDream's Cluster-B: 8 V100 a server, 25 Gbit/s", cluster_b),
    "cluster-c": Preset("PipeDream's Cluster-C: 1 Titan X a server, 40 Gbit/s", cluster_c),
}


def named_preset(text: str) -> tuple[str, int] | None:
    """A preset and its count, written as "cluster-a:4"; None where `text` is something else."""
    found = name_and_count(text)
    return found if found and found[0] in PRESETS else None


def name_and_count(text: str) -> tuple[str, int] | None:
    """The same, whether there is a preset of that name or not."""
    name, _, count = text.strip().partition(":")
    return (name, int(count)) if is_whole(count) else None


def preset_of(cluster: Cluster) -> tuple[str, int] | None:
    """The preset, and its count, that builds this very cluster; None where none does."""
    counts = dict.fromkeys((cluster.levels[-1].count, 1))
    built = ((name, count) for name in PRESETS for count in counts)
    return next(((name, n) for name, n in built if PRESETS[name].build(n) == cluster), None)


def preset(name: str, count: int) -> Cluster:
    """The preset `name` with `count` devices or servers; raises `InvalidInput`."""
    if name not in PRESETS:
        raise InvalidInput(f"no cluster preset {name!r}", f"Choose one of: {', '.join(PRESETS)}.")
    return PRESETS[name].build(count)
