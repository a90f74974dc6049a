"""What the history says of the way to a target."""

from backend.comparison.to_target import Histories, Target, learnt
from backend.runs.history.listing import RunFilter, RunOrder
from backend.services.runs.stores import Stores

LOOKED_AT = 100
"""Runs of a model, the newest, that are looked at."""


def learnt_of(stores: Stores, definition_id: int, target: Target) -> Histories:
    """By update rule what the newest trainings of a definition took to `target`."""
    wanted = RunFilter(kind="train", definition_id=definition_id)
    found = stores.runs.page(wanted, RunOrder(), LOOKED_AT, 0).runs
    return learnt([(run, stores.metrics.list(run.id, target.metric)) for run in found], target)
