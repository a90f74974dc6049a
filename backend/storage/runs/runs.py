"""Runs in SQL: states move by compare-and-set, leases end by the database's clock."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from sqlalchemy import Update, and_, func, select, update
from sqlalchemy.orm import Session, aliased

from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.prediction.fallback import Fallback
from backend.runs.attempts.fence import Fence
from backend.runs.dispatch.placement import Share
from backend.runs.history.listing import RunFilter, RunOrder, RunPage
from backend.runs.history.records import StoredAttempt
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import LIVE, RESTARTED, RunState, move
from backend.sandbox_level import SandboxLevel
from backend.storage.database import Database
from backend.storage.fence import held
from backend.storage.look_up import look_up, value_of
from backend.storage.quotas import admit_run
from backend.storage.runs import claims
from backend.storage.runs.claims import Claim
from backend.storage.runs.decoded import run_of
from backend.storage.runs.removal import remove_run
from backend.storage.runs.run_list import conditions, ordered
from backend.storage.tables.metric_tables import RunMetricRow
from backend.storage.tables.tables import AttemptRow, DefinitionRow, RunRow
from backend.storage.tables.values import DatabaseClock, DatabaseMoment, Few

Fallbacks = tuple[Fallback, ...]
AWAY = ("NodeLost", "AgentLost", "NodesMissing")
"""Errors of attempts after which a run waits for nodes."""


class SqlRuns:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        name: str,
        spec: RunSpec,
        owner: str,
        origin_id: int | None,
        fallbacks: Sequence[Fallback] = (),
    ) -> Run:
        with self._database.write() as session:
            return _run(added(session, name, spec, owner, origin_id, fallbacks))

    def get(self, run_id: int) -> Run:
        """Raises `NotFound`."""
        return _run(self._database.get(RunRow, run_id))

    def several(self, run_ids: Sequence[int]) -> Sequence[Run]:
        """Those that there are, in the order of the ids."""
        with self._database.read() as session:
            return _several(session, run_ids)

    def page(self, wanted: RunFilter, order: RunOrder, limit: int, offset: int) -> RunPage:
        """The ids come first, from an index where there is one; then the wide rows of one
        page alone."""
        found = select(RunRow.id).where(*conditions(wanted))
        with self._database.read() as session:
            total = session.scalar(select(func.count()).select_from(found.subquery()))
            ids = session.scalars(ordered(found, order).limit(limit).offset(offset)).all()
            return RunPage(tuple(_several(session, ids)), total or 0)

    def count(self) -> Mapping[RunState, int]:
        """How many runs there are in each state that some run has."""
        query = select(RunRow.state, func.count()).group_by(RunRow.state)
        with self._database.read() as session:
            return dict(session.execute(query).all())

    def asked(self, run_id: int) -> RunSpec | None:
        """What a queued run is asked for; None where the run is not queued, or
        unreadable."""
        spec = claims.asked(self._database, run_id)
        with suppress(InvalidInput):
            return None if spec is None else from_plain(RunSpec, spec)
        return None

    def claim(self, asked: Claim) -> tuple[Run, tuple[Share, ...]] | None:
        """Compare-and-set from queued to starting, with devices of all nodes that it needs or of
        none; None where the run is not queued or they are not free. The shares say which."""
        found = claims.claim(self._database, asked)
        if found is None:
            return None
        row, shares = found
        return run_of(row, claims.tags(row)), shares

    def cancel_queued(self, run_id: int) -> bool:
        """Compare-and-set from queued to cancelled."""
        queued = update(RunRow).where(RunRow.id == run_id, RunRow.state == RunState.QUEUED)
        cancelled = queued.values(
            state=move(RunState.QUEUED, RunState.CANCELLED),
            cancel_requested=True,
            finished_at=DatabaseMoment(),
        )
        with self._database.write() as session:
            return _has_changed(session, cancelled)

    def fail_queued(self, run_id: int, error: RunError) -> bool:
        """Compare-and-set from queued to failed, for a run that no agent can begin."""
        queued = update(RunRow).where(RunRow.id == run_id, RunRow.state == RunState.QUEUED)
        failed = queued.values(
            state=move(RunState.QUEUED, RunState.FAILED),
            error=to_plain(RunError, error),
            finished_at=DatabaseMoment(),
        )
        with self._database.write() as session:
            return _has_changed(session, failed)

    def request_cancel(self, run_id: int) -> bool:
        """Ask the holder of a live run to end it."""
        query = update(RunRow).where(RunRow.id == run_id, RunRow.state.in_(LIVE))
        with self._database.write() as session:
            return _has_changed(session, query.values(cancel_requested=True))

    def request_stacks(self, run_id: int) -> bool:
        """Ask the holder of a live run for the stacks of its ranks."""
        query = update(RunRow).where(RunRow.id == run_id, RunRow.state.in_(LIVE))
        with self._database.write() as session:
            return _has_changed(session, query.values(stacks_asked=RunRow.stacks_asked + 1))

    def lost(self) -> Sequence[Run]:
        """The live runs whose lease is over."""
        query = select(RunRow).where(
            Few(RunRow.state.in_(LIVE)), RunRow.lease_until < DatabaseClock()
        )
        return [_run(row) for row in self._database.rows(query.order_by(RunRow.id))]

    def give_up(self, lost: Run, state: RunState, error: RunError, at_once: bool = False) -> bool:
        """Compare-and-set: end the attempt that `lost` tells of, if its lease is over or
        `at_once`, and put the run into `state`: queued again, or a final one."""
        held = (
            RunRow.id == lost.id,
            RunRow.attempt == lost.attempt,
            RunRow.state.in_(LIVE),
            *(() if at_once else (RunRow.lease_until < DatabaseClock(),)),
        )
        with self._database.write() as session:
            if not _has_changed(session, update(RunRow).where(*held).values(token=None)):
                return False
            _end_attempt(session, look_up(session, RunRow, lost.id), state, error)
            return True

    def attempts(self, run_id: int) -> Sequence[StoredAttempt]:
        """The first one first."""
        query = select(AttemptRow).where(AttemptRow.run_id == run_id).order_by(AttemptRow.number)
        return [value_of(StoredAttempt, row) for row in self._database.rows(query)]

    def outages(self, most: int) -> Sequence[float]:
        """For how many seconds runs that had lost a node waited until they went on by their own
        plan, the newest first."""
        later = aliased(AttemptRow)
        follows = (later.run_id == AttemptRow.run_id, later.number > AttemptRow.number)
        back = func.min(later.started_at)
        query = (
            select(AttemptRow.finished_at, back)
            .join(later, and_(*follows, later.plan.is_(None)))
            .where(AttemptRow.outcome == RESTARTED)
            .where(AttemptRow.error["kind"].as_string().in_(AWAY))
            .group_by(AttemptRow.run_id, AttemptRow.number, AttemptRow.finished_at)
            .order_by(back.desc())
            .limit(most)
        )
        with self._database.read() as session:
            found = session.execute(query).all()
        return [(back - gone).total_seconds() for gone, back in found if gone is not None]

    def beat(self, fence: Fence, lease: float) -> bool:
        """Renew the lease; True where a cancel was asked for."""
        with held(self._database, fence, lease_until=DatabaseClock() + lease) as session:
            return look_up(session, RunRow, fence.run_id).cancel_requested

    def written(self, fence: Fence) -> int:
        """The number of the attempt's newest numbered write; 0 where there is none."""
        with held(self._database, fence) as session:
            return look_up(session, RunRow, fence.run_id).last_batch

    def begin(self, fence: Fence) -> None:
        """From starting to running. Raises `IllegalMove`."""
        with held(self._database, fence) as session:
            row = look_up(session, RunRow, fence.run_id)
            row.state = move(row.state, RunState.RUNNING)

    def isolated(self, fence: Fence, level: SandboxLevel) -> None:
        """Note the sandbox in which the ranks of this attempt are started."""
        with held(self._database, fence, sandbox=level.value):
            pass

    def resumed(self, fence: Fence, step: int) -> None:
        """Note the checkpoint from which this attempt goes on."""
        with held(self._database, fence) as session:
            row = session.get(AttemptRow, (fence.run_id, fence.attempt))
            if row is not None:
                row.step = step

    def progress(self, fence: Fence, progress: RunProgress) -> None:
        with held(self._database, fence, progress=to_plain(RunProgress, progress)):
            pass

    def finish(
        self, fence: Fence, state: RunState, summary: RunSummary, error: RunError | None
    ) -> None:
        """To a final state, or back to queued for another attempt. Raises `IllegalMove`."""
        with held(self._database, fence) as session:
            row = look_up(session, RunRow, fence.run_id)
            if state is not RunState.QUEUED:
                row.summary = to_plain(RunSummary, summary)
                row.accuracy = summary.accuracy
                reached = [
                    RunMetricRow(run_id=row.id, name=name, value=value)
                    for name, value in summary.reached.items()
                ]
                session.add_all(reached)
            _end_attempt(session, row, state, error)

    def delete(self, run_id: int) -> bool:
        """Take an ended run away with all its records; False where there is no such run, or
        it has not ended. What others measured or made from it stays."""
        return remove_run(self._database, run_id)


def added(
    session: Session,
    name: str,
    spec: RunSpec,
    owner: str,
    origin_id: int | None,
    fallbacks: Sequence[Fallback],
) -> RunRow:
    """A queued run, in this transaction. Raises `ProjectArchived` and `QuotaReached`."""
    row = RunRow(
        name=name,
        owner=owner,
        origin_id=origin_id,
        starred=False,
        note="",
        kind=spec.kind,
        definition_id=spec.definition_id,
        plan_id=spec.plan_id if isinstance(spec, TrainSpec) else None,
        spec=to_plain(RunSpec, spec),
        state=RunState.QUEUED,
        attempt=0,
        last_seq=0,
        last_batch=0,
        cancel_requested=False,
        summary=to_plain(RunSummary, RunSummary()),
        created_at=DatabaseMoment(),
        fallbacks=to_plain(Fallbacks, tuple(fallbacks)),
    )
    of_definition = DefinitionRow.id == spec.definition_id
    project = session.scalar(select(DefinitionRow.project_id).where(of_definition))
    admit_run(session.connection(), project or 0)
    row.project_id = project or 0
    session.add(row)
    session.flush()
    return row


def _end_attempt(session: Session, row: RunRow, state: RunState, error: RunError | None) -> None:
    """The attempt is over; so is the run, unless it is queued again."""
    row.state = move(row.state, state)
    now = session.scalar(select(DatabaseMoment()))
    told = to_plain(RunError, error) if error else None
    attempt = session.get(AttemptRow, (row.id, row.attempt))
    if attempt is not None:  # none where it was claimed before attempts were stored
        attempt.finished_at = now
        attempt.outcome = RESTARTED if state is RunState.QUEUED else state.value
        attempt.error = told
    if state is not RunState.QUEUED:
        row.error, row.finished_at = told, now
        if row.started_at is not None and now is not None:
            row.seconds = (now - row.started_at).total_seconds()


def _has_changed(session: Session, query: Update) -> bool:
    done = session.scalars(query.returning(RunRow.id).execution_options(synchronize_session=False))
    return len(done.all()) == 1


def _several(session: Session, ids: Sequence[int]) -> list[Run]:
    rows = session.scalars(select(RunRow).where(RunRow.id.in_(ids)))
    by_id = {row.id: _run(row) for row in rows}
    return [by_id[id_] for id_ in ids if id_ in by_id]


def _run(row: RunRow) -> Run:
    return run_of(row, [tag.tag for tag in row.tags])
