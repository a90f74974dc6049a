"""A job of a cluster that carries an attempt of a run: what is asked for, what is seen of it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

WARNING = 120.0
"""Seconds before its end at which a job's agents are told."""


class JobState(StrEnum):
    """Of a job, as its cluster has it. It never says how a run ended.

    SUBMITTING  written down here, and not yet known to be in the cluster's queue
    WAITING     for its turn or for room
    HELD        until somebody lets it go, or for ever: `Seen.advice` says what to do
    RUNNING     its agents are started, or will be in a moment
    GONE        ended, however it did
    """

    SUBMITTING = "submitting"
    WAITING = "waiting"
    HELD = "held"
    RUNNING = "running"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class JobOrder:
    """One job: an agent on each of `nodes` machines, which together carry an attempt of a run.

    name      unique among the jobs of its submitter; a job is found again by it
    devices   GPUs of each machine, or cores where the cluster has no GPUs
    seconds   after which the cluster may end it; 0 = as long as it lets a job run
    warning   seconds before that end at which the agents are told
    command   what runs on each machine; its agents tell their places apart by themselves
    """

    name: str
    run_id: int
    nodes: int
    devices: int
    command: tuple[str, ...]
    seconds: float = 0.0
    warning: float = WARNING


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as its cluster shows it.

    engine_id  by which the cluster knows it
    reason     why it waits, in the cluster's own word; "" where it tells none
    advice     for people: what to do where it will never start by itself; "" where it may
    starts_at  when the cluster expects to start it, or did
    hosts      the machines that it is on
    """

    engine_id: str
    state: JobState
    reason: str = ""
    advice: str = ""
    starts_at: datetime | None = None
    hosts: tuple[str, ...] = ()
