"""Two hosts on one machine: network namespaces joined by a wire of a given speed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SPEEDS = ("loopback", "10gbit", "1gbit", "100mbit")
"""Those that are raced by default; any other rate is written alike."""
UNITS = {"gbit": 1e9, "mbit": 1e6}
SAVED, FRAMES = 1e-3, 16_000
"""What a wire that was idle may send at once: the bytes of so many seconds, and at least some
frames. More than that would let messages after a pause be faster than the wire."""


def speed(name: str) -> float | None:
    """Bytes per second of a network's name ("loopback", "250mbit"); None where the kernel's
    own speed counts."""
    unit = name[-4:]
    return float(name[:-4]) * UNITS[unit] / 8 if unit in UNITS else None


@dataclass(frozen=True)
class Network:
    """`prefix[rank]` is put before a rank's command, `address` is rank 0's."""

    name: str
    prefix: tuple[tuple[str, ...], ...]
    address: str
    interface: str


def available() -> bool:
    """Whether this process may make namespaces."""
    if not shutil.which("ip") or not shutil.which("tc") or os.geteuid():
        return False
    made = subprocess.run(["ip", "netns", "add", "sf-try"], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", "sf-try"], capture_output=True, check=False)
    return made.returncode == 0


@contextmanager
def network(name: str, ranks: int = 2) -> Iterator[Network]:
    """Hosts joined by a bridge, each wire as fast as `name` says both ways; gone afterwards."""
    if speed(name) is None:
        yield Network(name, ((),) * ranks, "127.0.0.1", "lo")
        return
    tag = f"sf{os.getpid() % 10000}"
    try:
        _run(f"ip netns add {tag}-hub")
        _run(f"ip -n {tag}-hub link add br0 type bridge")
        _run(f"ip -n {tag}-hub link set br0 up")
        for rank in range(ranks):
            _host(tag, rank, name)
        prefix = tuple(("ip", "netns", "exec", f"{tag}-{rank}") for rank in range(ranks))
        yield Network(name, prefix, "10.77.0.1", "eth0")
    finally:
        for part in ("hub", *map(str, range(ranks))):
            subprocess.run(f"ip netns del {tag}-{part}".split(), capture_output=True, check=False)


def _host(tag: str, rank: int, rate: str) -> None:
    host, hub, plug = f"{tag}-{rank}", f"{tag}-hub", f"port{rank}"
    _run(f"ip netns add {host}")
    _run(f"ip link add eth0 netns {host} type veth peer name {plug} netns {hub}")
    _run(f"ip -n {host} addr add 10.77.0.{rank + 1}/24 dev eth0")
    _run(f"ip -n {host} link set eth0 up")
    _run(f"ip -n {host} link set lo up")
    _run(f"ip -n {hub} link set {plug} master br0 up")
    burst = max(FRAMES, int((speed(rate) or 0) * SAVED))
    for at, device in ((host, "eth0"), (hub, plug)):
        _run(f"tc -n {at} qdisc add dev {device} root tbf rate {rate} burst {burst} latency 100ms")


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True, capture_output=True)
