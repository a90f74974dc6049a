"""Nodes that a run on several hosts holds beside the one that carries it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summons:
    """Where a node that was reserved for an attempt reports, and what shows that it was asked."""

    run_id: int
    attempt: int
    address: str
    port: int
    secret: str
