"""The machines that run jobs, as their agents report them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from backend.cluster.cluster import Device
from backend.runs.use import Use

OFF = 2.0
"""Seconds by which clocks may differ: more than the way to the database takes."""


@dataclass(frozen=True, slots=True)
class Node:
    """`alive`: its last sign of life is no older than a lease. `versions` name -> version.
    `use` as of that sign of life: the machine's, then that of each GPU. `address` is where the
    ranks of other nodes reach its own. `ahead`: seconds that its clock is ahead of the store's.
    `run_id`: the run for which alone its agent was started; None = it takes any."""

    name: str
    devices: tuple[Device, ...]
    alive: bool
    heartbeat_at: datetime
    versions: Mapping[str, str]
    use: tuple[Use, ...] = ()
    address: str = ""
    ahead: float = 0.0
    run_id: int | None = None

    @property
    def is_off(self) -> bool:
        """Is its clock so far off that what it notes stands at wrong times?"""
        return abs(self.ahead) > OFF
