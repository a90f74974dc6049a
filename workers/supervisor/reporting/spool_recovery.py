"""What an agent that died had not written of its attempts: the next one writes it."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.runs.attempts.fence import LeaseLost
from backend.services.runs.attempt import Attempt
from backend.storage.errors import DatabaseUnreachable, StorageFull
from workers.sandbox.room import work_folder
from workers.supervisor.reporting.event_writer import EventWriter
from workers.supervisor.spool import spool, text_form
from workers.supervisor.spool.spool import Spool

AT_ONCE = 1.0
"""Seconds of writing between two signs of life."""
log = logging.getLogger(__name__)


def left_spools(folder: Path) -> list[Path]:
    """The spools that dead agents left in `folder`, those of older versions converted."""
    for path in sorted(folder.glob(f"*{text_form.SUFFIX}")):
        try:
            text_form.convert(path)
        except (ValueError, TypeError, InvalidInput) as fault:
            _put_aside(path, fault)
    return sorted(folder.glob(f"*{spool.SUFFIX}"))


def recovered(backend: Backend, path: Path) -> tuple[int, int] | None:
    """Write what is left in a spool that nobody uses, as far as its attempt still holds the
    run; (run, attempt). One that cannot be read is put aside. Raises `DatabaseUnreachable` and
    `StorageFull`, upon which it may be called again."""
    try:
        left = Spool.left(path)
        with closing(left):
            _write(backend, backend.dispatch.holding(left.fence), left)
    except (LeaseLost, NotFound) as fault:
        log.warning("%d entries of a dead agent are refused: %s", left.num_waiting, fault)
    except (ValueError, LookupError, TypeError, InvalidInput, sqlite3.DatabaseError) as fault:
        _put_aside(path, fault)
        return None
    left.remove()
    return left.fence.run_id, left.fence.attempt


def _put_aside(path: Path, fault: Exception) -> None:
    log.warning("%s cannot be read: %s", path, fault)
    for file in spool.files_of(path):
        if file.exists():
            file.rename(file.with_name(f"{file.name}.unreadable"))


def _write(backend: Backend, attempt: Attempt, left: Spool) -> None:
    """Under their numbers; an entry that cannot be written, for its file is gone, is left."""
    folder = work_folder(backend.settings.run_folder(attempt.run.id, attempt.number))
    writer = EventWriter(attempt, folder, left)
    writer.skip(attempt.written())
    log.info("run %d: writing %d entries of a dead agent", attempt.run.id, left.num_waiting)
    while writer.num_waiting:
        attempt.beat()
        try:
            writer.flush(AT_ONCE)
        except (LeaseLost, DatabaseUnreachable, StorageFull):
            raise
        except StageflowError as fault:
            log.warning("run %d: %s", attempt.run.id, fault)
            before = left.num_waiting
            left.done()
            if left.num_waiting == before:  # not even read
                raise
