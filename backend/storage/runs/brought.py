"""Runs of others in SQL, with all that they left."""

from dataclasses import asdict
from datetime import UTC, datetime
from math import isfinite

from sqlalchemy import insert, select

from backend.codec import to_plain
from backend.errors import InvalidInput
from backend.runs.history.brought import TheirRun
from backend.runs.history.labels import MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS
from backend.runs.request.spec import ImportedSpec
from backend.runs.run import RunSummary
from backend.storage.database import Database
from backend.storage.portions import ROWS, in_turns
from backend.storage.quotas import admit
from backend.storage.runs.removal import remove_run
from backend.storage.tables.metric_tables import RunMetricRow
from backend.storage.tables.tables import DefinitionRow, MetricRow, RunRow, TagRow
from backend.storage.tables.values import DatabaseMoment


class SqlBrought:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, history: TheirRun, spec: ImportedSpec, summary: RunSummary, owner: str) -> int:
        """An ended run; its id. Its points follow in portions; where they cannot be stored, nothing
        of it stays. Raises `ProjectArchived`, and `InvalidInput` where the project has this run
        already."""
        run_id = self._added(history, spec, summary, owner)
        points = _points(run_id, history)
        try:
            for first in in_turns(range(0, len(points), ROWS)):
                with self._database.write() as session:
                    session.execute(insert(MetricRow), points[first : first + ROWS])
        except BaseException:
            remove_run(self._database, run_id)
            raise
        return run_id

    def _added(self, history: TheirRun, spec: ImportedSpec, summary: RunSummary, owner: str) -> int:
        of_definition = DefinitionRow.id == spec.definition_id
        with self._database.write() as session:
            project = session.scalar(select(DefinitionRow.project_id).where(of_definition)) or 0
            admit(session.connection(), project)
            imported = (RunRow.project_id == project, RunRow.kind == spec.kind)
            same = RunRow.spec["remote"].as_string() == spec.remote
            if known := session.scalar(select(RunRow.id).where(*imported, same).limit(1)):
                raise InvalidInput(
                    f"run {known} is {history.tracker}'s run {spec.remote} already",
                    "Delete it to import the run anew.",
                )
            row = _row(history, spec, summary)
            row.owner, row.project_id = owner, project
            session.add(row)
            session.flush()
            session.add_all(TagRow(run_id=row.id, tag=tag) for tag in _tags(history))
            session.add_all(
                RunMetricRow(run_id=row.id, name=name, value=value)
                for name, value in summary.reached.items()
            )
            return row.id


def _row(history: TheirRun, spec: ImportedSpec, summary: RunSummary) -> RunRow:
    finished = history.started if history.finished is None else history.finished
    return RunRow(
        name=history.name[:MAX_NAME],
        starred=False,
        note=history.note[:MAX_NOTE],
        kind=spec.kind,
        definition_id=spec.definition_id,
        spec=to_plain(ImportedSpec, spec),
        state=history.state,
        attempt=0,
        last_seq=0,
        last_batch=0,
        cancel_requested=False,
        summary=to_plain(RunSummary, summary),
        accuracy=summary.accuracy,
        created_at=DatabaseMoment(),
        started_at=datetime.fromtimestamp(history.started, UTC),
        finished_at=datetime.fromtimestamp(finished, UTC),
        seconds=max(0.0, finished - history.started),
        fallbacks=[],
    )


def _tags(history: TheirRun) -> tuple[str, ...]:
    tidy = (tag.replace(",", " ").strip()[:MAX_TAG] for tag in history.tags)
    return tuple(dict.fromkeys(filter(None, tidy)))[:MAX_TAGS]


def _points(run_id: int, history: TheirRun) -> list[dict[str, object]]:
    return [
        {
            **asdict(point),
            "value": point.value if isfinite(point.value) else None,
            "run_id": run_id,
            "name": name,
        }
        for name, points in history.metrics.items()
        for point in points
    ]
