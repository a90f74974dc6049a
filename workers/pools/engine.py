"""The port to a cluster's queue: submit a job, look at the jobs, end one, ask for the room."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from backend.errors import StageflowError
from backend.runs.pools.job import JobOrder, Seen
from backend.runs.pools.room import PoolRoom


class EngineAway(StageflowError):
    """The cluster's controller does not answer. Nothing follows from that for any job."""


class OrderRefused(StageflowError):
    """The cluster will not take this job as it is."""


class Engine(Protocol):
    """A cluster, as one of its users reaches it. Every call raises `EngineAway` where it does not
    answer in time. A job is known by its order's name throughout, so that a submitter that died
    between two steps finds what it did."""

    def submit(self, order: JobOrder) -> str:
        """Put a job into the queue; how the cluster calls it. A job of that name that waits or
        runs already is left alone, and its id told. Raises `OrderRefused`."""
        ...

    def look(self) -> Mapping[str, Seen]:
        """By name, every job of this submitter that waits or runs, and those that ended a short
        while ago. What is not named is gone."""
        ...

    def end(self, name: str) -> None:
        """Take a waiting job away, and end a running one: its agents are told first. There may be
        none of that name."""
        ...

    def room(self) -> PoolRoom:
        """What the cluster has, and what of it is free."""
        ...

    def estimate(self, order: JobOrder) -> datetime | None:
        """When the job would start if it were submitted now; None where nobody knows. Raises
        `OrderRefused`."""
        ...

    def output(self, name: str) -> str:
        """The end of what the job printed, at most 4,000 characters; "" where there is nothing."""
        ...
