"""What must hold in every database, whatever happened to agents, ranks and machines."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from backend.runs.states import FINAL, LIVE, RunState
from backend.settings import Settings
from backend.storage.database import Database
from backend.storage.runs.checkpoints import SqlCheckpoints
from backend.storage.runs.decoded import UNREADABLE, run_of
from backend.storage.tables.tables import (
    ArtifactRow,
    AttemptRow,
    CheckpointRow,
    LogRow,
    MetricRow,
    RunRow,
)
from backend.storage.tables.values import DatabaseClock


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule` that is broken, and by what."""

    rule: str
    found: str


def violations(database: Database, settings: Settings) -> list[Violation]:
    """Every broken rule, none in a sound database; reads every kept file. Attempts that ended
    before they were stored one by one are not asked for."""
    with database.read() as session:
        found = [
            Violation(rule.__doc__ or rule.__name__, text)
            for rule in RULES
            for text in rule(session, settings)
        ]
    return found + [
        Violation("every file of a checkpoint is what was written", text)
        for text in _damaged_checkpoints(database, settings)
    ]


def _readable(session: Session, _: Settings) -> Iterator[str]:
    """the record of a run can be read"""
    for row in session.scalars(select(RunRow).execution_options(yield_per=1_000)):
        error = run_of(row, ()).error
        if error is not None and error.kind == UNREADABLE:
            yield error.message


def _held(session: Session, _: Settings) -> Iterator[str]:
    """a live run has an agent, a token and a lease"""
    missing = or_(RunRow.node.is_(None), RunRow.token.is_(None), RunRow.lease_until.is_(None))
    for row in session.scalars(select(RunRow).where(RunRow.state.in_(LIVE), missing)):
        yield f"run {row.id} is {row.state.value} with node {row.node}"


def _reaped(session: Session, settings: Settings) -> Iterator[str]:
    """a run is given up soon after its lease"""
    late = RunRow.lease_until < DatabaseClock() - 2 * settings.lease
    for run_id in session.scalars(select(RunRow.id).where(RunRow.state.in_(LIVE), late)):
        yield f"run {run_id}: its lease ended long ago, and no agent has noticed"


def _ended(session: Session, _: Settings) -> Iterator[str]:
    """an ended run has the time of its end, a failed one its error"""
    missing = or_(
        RunRow.finished_at.is_(None),
        and_(RunRow.state == RunState.FAILED, RunRow.error.is_(None)),
    )
    for row in session.scalars(select(RunRow).where(RunRow.state.in_(FINAL), missing)):
        yield f"run {row.id} is {row.state.value} since {row.finished_at}"


def _one_attempt(session: Session, _: Settings) -> Iterator[str]:
    """attempts count from 1 to the run's own, and the last one alone goes on, while it is live"""
    query = select(AttemptRow).order_by(AttemptRow.run_id, AttemptRow.number)
    by_run: dict[int, list[AttemptRow]] = {}
    for row in session.scalars(query):
        by_run.setdefault(row.run_id, []).append(row)
    for run in session.scalars(select(RunRow).where(RunRow.id.in_(by_run))):
        numbers = [row.number for row in by_run[run.id]]
        going_on = [row.number for row in by_run[run.id] if row.outcome is None]
        last = list(range(run.attempt - len(numbers) + 1, run.attempt + 1))
        if numbers != last or going_on != ([run.attempt] if run.state in LIVE else []):
            yield (
                f"run {run.id} is {run.state.value} at attempt {run.attempt}, but has attempts "
                f"{numbers}, of which {going_on} go on"
            )


def _log(session: Session, _: Settings) -> Iterator[str]:
    """log lines are numbered through, each once"""
    lines = select(LogRow.run_id, func.count().label("n"), func.max(LogRow.seq).label("last"))
    counted = lines.group_by(LogRow.run_id).subquery()
    query = select(RunRow.id, RunRow.last_seq, counted.c.n).join(
        counted, counted.c.run_id == RunRow.id
    )
    wrong = or_(counted.c.n != RunRow.last_seq, counted.c.last != RunRow.last_seq)
    for run_id, last, count in session.execute(query.where(wrong)):
        yield f"run {run_id} has {count} lines of {last}"


def _metrics(session: Session, _: Settings) -> Iterator[str]:
    """a metric has one value per step"""
    key = (MetricRow.run_id, MetricRow.name, MetricRow.step)
    query = select(*key, func.count()).group_by(*key).having(func.count() > 1)
    for run_id, name, step, count in session.execute(query):
        yield f"run {run_id} has {count} values of {name} at step {step}"


def _checkpoints(session: Session, _: Settings) -> Iterator[str]:
    """a checkpoint belongs to an attempt that there was"""
    query = select(CheckpointRow.run_id, CheckpointRow.attempt).join(
        RunRow, RunRow.id == CheckpointRow.run_id
    )
    for run_id, attempt in session.execute(query.where(CheckpointRow.attempt > RunRow.attempt)):
        yield f"run {run_id} has a checkpoint of attempt {attempt}"


def _artifacts(session: Session, settings: Settings) -> Iterator[str]:
    """every kept file is what was written"""
    sound: dict[str, bool] = {}
    for row in session.scalars(select(ArtifactRow)):
        path = settings.artifacts_folder / row.digest
        if row.digest not in sound:
            sound[row.digest] = digest(path) == row.digest
        if not sound[row.digest]:
            yield f"run {row.run_id}: {row.name} is missing or damaged at {path}"


Rule = Callable[[Session, Settings], Iterator[str]]
RULES: tuple[Rule, ...] = (
    _readable,
    _held,
    _reaped,
    _ended,
    _one_attempt,
    _log,
    _metrics,
    _checkpoints,
    _artifacts,
)


def _damaged_checkpoints(database: Database, settings: Settings) -> Iterator[str]:
    store = SqlCheckpoints(database, settings.checkpoints_folder)
    runs = database.rows(select(CheckpointRow.run_id).distinct())
    for checkpoint in (checkpoint for run_id in runs for checkpoint in store.list(run_id)):
        for file in checkpoint.files:
            if digest(checkpoint.folder / file.name) != file.sha256:
                yield f"run {checkpoint.run_id}: {checkpoint.folder / file.name}"


def digest(path: Path) -> str | None:
    """SHA-256 in hex; None where there is no such file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
