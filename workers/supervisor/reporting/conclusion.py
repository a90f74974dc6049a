"""The last writes of an attempt: what is left of the writer, the prediction, the end."""

import logging
import time
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path

from backend.errors import StageflowError
from backend.runs.attempts.fence import LeaseLost
from backend.runs.run import RunSummary
from backend.runs.states import IllegalMove
from backend.services.runs.attempt import Attempt
from backend.storage.errors import DatabaseUnreachable, StorageFull
from workers.stop import Stop
from workers.supervisor.reporting import ballast
from workers.supervisor.reporting.event_writer import EventWriter
from workers.supervisor.reporting.faults import failed
from workers.supervisor.reporting.measured import num_microbatches, summarise
from workers.supervisor.state.ending import CANCELLED, SUCCEEDED, Ending
from workers.supervisor.state.rank_states import RESCUE

PAUSE = 0.5
LAST_WORDS = 2.0
"""Seconds for what the ranks of a cancelled run still had to tell."""
LOSSES = frozenset({"NodeLost", "PeerLost", "RankKilled"})
"""Ends after which the ranks that are left may have saved what they had."""
PORTION = 1.0

log = logging.getLogger(__name__)


def conclude(
    attempt: Attempt, writer: EventWriter, folder: Path, ending: Ending, stop: Stop
) -> bool:
    """End the run, as soon as the database is there; False where the agent has to `stop` before.
    The attempt's `folder` holds back room for that. Raises `LeaseLost`. Only a success is spoilt by
    a fault in the last writes: another end has its cause already. Numbers that the database does
    not take leave an end without them."""
    summary = RunSummary()
    try:
        if not _told(attempt, writer, ending, stop):
            return False
        started = attempt.run.started_at
        summary = summarise(
            attempt.run.asked, writer.results, started.timestamp() if started else None
        )
    except LeaseLost:
        raise
    except Exception as fault:
        log.exception("run %d: the last reports were not written", attempt.run.id)
        if ending is SUCCEEDED:
            ending = failed(fault, writer.folder)
    ballast.let_go(folder)
    try:
        return _finished(attempt, ending, summary, stop)
    except (LeaseLost, IllegalMove):
        raise
    except Exception as fault:
        log.exception("run %d: its end was not written", attempt.run.id)
        if ending is SUCCEEDED:
            ending = failed(fault, writer.folder)
        return _finished(attempt, ending, RunSummary(), stop)


def _finished(attempt: Attempt, ending: Ending, summary: RunSummary, stop: Stop) -> bool:
    finish = partial(attempt.finish, ending.state, summary, ending.error)
    return _persistently(attempt, finish, stop, (DatabaseUnreachable, StorageFull))


def _told(attempt: Attempt, writer: EventWriter, ending: Ending, stop: Stop) -> bool:
    """Write the rest of the writer, and beside the last segment that was measured its
    prediction. A run that somebody cancelled is not kept waiting for all of it, unless it is
    late because the database was away."""
    if ending is SUCCEEDED and not _persistently(attempt, writer.begin, stop):
        return False
    lost = ending.error is not None and ending.error.kind in LOSSES
    writer.settle(RESCUE if lost else LAST_WORDS)
    deadline = inf if ending is not CANCELLED else time.monotonic() + LAST_WORDS
    goes_on = True
    while goes_on and (time.monotonic() < deadline or writer.is_away):
        if not _persistently(attempt, partial(_portion, attempt, writer), stop):
            return False
        goes_on = writer.num_waiting > 0
    results = writer.results
    if ending is SUCCEEDED and results.segment is not None:
        attempt.beat()
        attempt.predict(results.segment, num_microbatches(results))
    return True


def _portion(attempt: Attempt, writer: EventWriter) -> None:
    """A second of writing, after a sign of life."""
    attempt.beat()
    writer.flush(PORTION)


def _persistently(
    attempt: Attempt,
    write: Callable[[], None],
    stop: Stop,
    faults: tuple[type[StageflowError], ...] = (DatabaseUnreachable,),
) -> bool:
    """Make a write, again and again while the database is away; False where the agent has to
    stop before it is back."""
    while True:
        try:
            write()
            return True
        except faults as fault:
            log.warning("run %d: the end is not written yet: %s", attempt.run.id, fault)
            if stop.is_set():
                return False
            stop.wait(PAUSE)
