"""The last writes of an attempt: what is left of the journal, the prediction, the end."""

import logging
import time
from math import inf

from backend.runs.attempt import Attempt
from backend.runs.fence import LeaseLost
from backend.runs.run import RunSummary
from backend.storage.errors import DatabaseUnreachable, StorageFull
from workers.supervisor.ending import SUCCEEDED, Ending, failed
from workers.supervisor.journal import Journal
from workers.supervisor.measured import num_microbatches, summarise

PAUSE = 0.5
LAST_WORDS = 2.0
"""Seconds for what the ranks of a run that did not succeed still had to tell."""

log = logging.getLogger(__name__)


def conclude(attempt: Attempt, journal: Journal, ending: Ending, lease: float) -> None:
    """End the run; raises `LeaseLost`. Only a success is spoilt by a fault in the last
    writes: another end has its cause already."""
    summary = RunSummary()
    try:
        _write(attempt, journal, ending)
        started = attempt.run.started_at
        summary = summarise(
            attempt.run.spec, journal.results, started.timestamp() if started else None
        )
    except LeaseLost:
        raise
    except Exception as fault:
        log.exception("run %d: last words not written", attempt.run.id)
        if ending is SUCCEEDED:
            ending = failed(fault, journal.folder)
    _finish(attempt, ending, summary, lease)


def _write(attempt: Attempt, journal: Journal, ending: Ending) -> None:
    """Beside the last segment that was measured goes its prediction."""
    if ending is SUCCEEDED:
        journal.begin()
    journal.settle(LAST_WORDS)
    journal.flush(inf if ending is SUCCEEDED else LAST_WORDS)
    results = journal.results
    if ending is SUCCEEDED and results.segment is not None:
        attempt.beat()
        attempt.predict(results.segment, num_microbatches(results))


def _finish(attempt: Attempt, ending: Ending, summary: RunSummary, lease: float) -> None:
    """Write the end; try again, up to a lease, while the database cannot take it."""
    deadline = time.monotonic() + lease
    while True:
        try:
            return attempt.finish(ending.state, summary, ending.error)
        except (DatabaseUnreachable, StorageFull) as fault:
            log.warning("run %d: end not written: %s", attempt.run.id, fault)
            if time.monotonic() > deadline:
                return None
            time.sleep(PAUSE)
