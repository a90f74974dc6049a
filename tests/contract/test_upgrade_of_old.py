"""A database of every older revision, with data in it, is brought to today's and loses nothing."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Table, create_engine, select

from backend.bootstrap import Backend, connect
from backend.settings import Settings
from backend.storage.backup.layout import go_on_from, lay_out, snapshot
from backend.storage.backup.rows import Sum, insert, names, rows_of, tables
from backend.storage.revision import current
from backend.storage.schema import configuration, upgrade, whole
from backend.storage.soundness import violations
from backend.storage.tables.tables import CheckpointRow
from tests.app import seed
from tests.contract.test_backup import fill

REVISIONS = [
    step.revision for step in ScriptDirectory.from_config(configuration()).walk_revisions()
]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A database of today's revision with something in nearly every table."""
    home = tmp_path_factory.mktemp("today") / "home"
    with seed.settings(home):
        settings = Settings(node="here")
        upgrade(settings)
        fill(settings)
    return settings


@cache
def tables_of(today: str) -> list[Table]:
    """Of the database at this URL, which nobody changes: to read them takes 0.1 s."""
    with create_engine(today).connect() as connection:
        return tables(connection)


def held(
    connection: Connection, wanted: Mapping[str, tuple[str, ...]], there: Sequence[Table] = ()
) -> dict[str, Sum]:
    """What these columns of these tables add up to; `there`: the tables, where they are known."""
    found = {}
    for table in there or tables(connection):
        if table.name in wanted:
            places = [names(table).index(name) for name in wanted[table.name]]
            rows = ([row[place] for place in places] for row in rows_of(connection, table))
            found[table.name] = Sum().plus(rows)
    return found


def carry(settings: Settings, revision: str, today: Settings) -> dict[str, tuple[str, ...]]:
    """Lay out the old revision and put into it what it can hold; its tables and columns."""
    with snapshot(today) as source, whole(settings) as connection:
        lay_out(connection, revision)
        full = {table.name: table for table in tables_of(today.sql_url)}
        old = tables(connection)
        for table in old:
            places = [names(full[table.name]).index(name) for name in names(table)]
            rows = ([row[place] for place in places] for row in rows_of(source, full[table.name]))
            insert(connection, table, rows)
        go_on_from(connection, {})
        return {table.name: names(table) for table in old}


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_old_database_loses_nothing(
    revision: str, blank: Settings, today: Settings, home: Path
) -> None:
    columns = carry(blank, revision, today)
    with snapshot(today) as connection:
        before = held(connection, columns, tables_of(today.sql_url))
    assert before["runs"].rows == 4
    assert current(blank)[0] == revision
    assert upgrade(blank) == current(blank)[1]
    with snapshot(blank) as connection:
        assert held(connection, columns) == before
    backend, old = connect(blank), connect(today)
    check_what_people_see(backend, old)
    patient = blank.model_copy(update={"lease": 3600.0, "home": today.home})
    assert [
        each for each in violations(backend.database, patient) if "lease" not in each.rule
    ] == []
    backend.close()
    old.close()


def check_what_people_see(backend: Backend, old: Backend) -> None:
    """Runs with their logs, curves, timelines, profiles and plans; and a new one can be made."""
    runs = old.runs.list().runs
    assert {run.id for run in backend.runs.list().runs} == {run.id for run in runs}
    for run in runs:
        found = backend.runs.get(run.id)
        assert (found.spec, found.state, found.error) == (run.spec, run.state, run.error)
        assert (found.summary, found.created_at) == (run.summary, run.created_at)
        assert backend.runs.logs.list(run.id) == old.runs.logs.list(run.id)
        assert backend.runs.metrics.list(run.id, "loss") == old.runs.metrics.list(run.id, "loss")
        assert backend.runs.spans.segments(run.id) == old.runs.spans.segments(run.id)
        if run.summary.profile_id is not None:
            profiles = [each.profiles.get(run.summary.profile_id) for each in (backend, old)]
            assert profiles[0].profile == profiles[1].profile
    assert sizes(backend).items() <= sizes(old).items()
    assert [plan.plan for plan in backend.plans.list()] == [plan.plan for plan in old.plans.list()]
    ended = next(run for run in runs if run.state.is_final)
    assert backend.runs.retry(ended.id).id > max(run.id for run in runs)


def sizes(backend: Backend) -> dict[int, int]:
    """Bytes by checkpoint, as projects' quotas count them."""
    query = select(CheckpointRow.id, CheckpointRow.size)
    with backend.database.read() as session:
        found: dict[int, int] = dict(session.execute(query).all())
    assert all(found.values())
    return found
