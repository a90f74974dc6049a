"""What an agent that died had not written of its attempts: the next one writes it."""

import logging
from pathlib import Path
from urllib.parse import quote

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.runs.attempt import Attempt
from backend.runs.fence import LeaseLost
from backend.settings import Settings
from backend.storage.errors import DatabaseUnreachable, StorageFull
from workers.sandbox.room import work_folder
from workers.supervisor.journal import Journal
from workers.supervisor.spool import Spool

AT_ONCE = 1.0
"""Seconds of writing between two signs of life."""
log = logging.getLogger(__name__)


def spool_folder(settings: Settings) -> Path:
    """The node's own: of one name no two agents live in a home."""
    return settings.home / "spool" / quote(settings.node, safe="")


def delivered(backend: Backend, path: Path) -> tuple[int, int] | None:
    """Write what is left in a spool that nobody uses, as far as its attempt still holds the
    run; (run, attempt). One that cannot be read is put aside. Raises `DatabaseUnreachable` and
    `StorageFull`, upon which it may be called again."""
    try:
        spool = Spool.left(path)
        if spool is None:
            path.unlink()
            return None
        _deliver(backend, spool)
    except (ValueError, LookupError, TypeError, InvalidInput) as fault:
        log.warning("%s cannot be read: %s", path, fault)
        path.rename(path.with_suffix(".unreadable"))
        return None
    return spool.fence.run_id, spool.fence.attempt


def _deliver(backend: Backend, spool: Spool) -> None:
    try:
        _write(backend, backend.dispatch.holding(spool.fence), spool)
    except (LeaseLost, NotFound) as fault:
        log.warning("%d entries of a dead agent are refused: %s", len(spool), fault)
    spool.remove()


def _write(backend: Backend, attempt: Attempt, spool: Spool) -> None:
    """Under their numbers; an entry that cannot be written, for its file is gone, is left."""
    folder = work_folder(backend.settings.run_folder(attempt.run.id, attempt.number))
    journal = Journal(attempt, folder, spool)
    journal.skip(attempt.written())
    log.info("run %d: writing %d entries of a dead agent", attempt.run.id, len(spool))
    while journal.num_waiting:
        attempt.beat()
        try:
            journal.flush(AT_ONCE)
        except (LeaseLost, DatabaseUnreachable, StorageFull):
            raise
        except StageflowError as fault:
            log.warning("run %d: %s", attempt.run.id, fault)
            before = len(spool)
            spool.done()
            if len(spool) == before:  # not even read
                raise
