"""Which ranks of a run are this host's, and where all of them meet."""

from dataclasses import dataclass

from workers.address import LOOPBACK


@dataclass(frozen=True, slots=True)
class Place:
    """`ranks` run here, each on the device of that number; `held` are all devices that the run
    holds here. `host` is this one's number among `hosts`; all ranks meet at `address` and `port`.
    Their messages go through `interface` of this host ("" = as torch finds it)."""

    ranks: tuple[int, ...]
    devices: tuple[int, ...]
    port: int
    address: str = LOOPBACK
    host: int = 0
    hosts: int = 1
    interface: str = ""
    held: tuple[int, ...] = ()
