"""The migrations make the tables that the models say, and an old schema is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from backend.bootstrap import connect
from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.errors import SchemaOutdated
from backend.storage.revision import current, known, newest
from backend.storage.schema import configuration, upgrade
from backend.storage.tables.people_tables import Base

ROOT = Path(__file__).parents[2]


def test_an_upgrade_goes_from_nothing_to_the_newest_revision(blank: Settings):
    before, head = current(blank)
    assert before is None
    assert upgrade(blank) == head
    assert current(blank) == (head, head)
    assert upgrade(blank) == head


def test_models_and_migrations_do_not_differ(settings: Settings):
    with open_engine(settings).connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_the_way_back_leaves_no_table(settings: Settings):
    engine = open_engine(settings)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    assert upgrade(settings) == current(settings)[1]
    engine.dispose()


def test_revisions_are_read_as_alembic_reads_them(settings: Settings):
    script = ScriptDirectory.from_config(configuration())
    assert newest() == script.get_current_head()
    assert known() == {step.revision for step in script.walk_revisions()}
    with open_engine(settings).connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    assert current(settings)[0] == found


def test_a_database_without_tables_is_refused_with_the_command(blank: Settings):
    with pytest.raises(SchemaOutdated, match="no tables yet") as caught:
        connect(blank)
    assert "stageflow db upgrade" in caught.value.advice


def test_a_newer_database_is_refused_with_other_advice(settings: Settings):
    with open_engine(settings).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaOutdated, match="9999") as caught:
        connect(settings)
    assert "newer" in caught.value.advice
    with pytest.raises(SchemaOutdated) as refused:
        upgrade(settings)
    assert (str(refused.value), refused.value.advice) == (str(caught.value), caught.value.advice)


def test_processes_that_upgrade_at_once_all_succeed(blank: Settings):
    code = "from backend.settings import Settings; from backend.storage.schema import upgrade; "
    environment = os.environ | {
        "STAGEFLOW_HOME": str(blank.home),
        "STAGEFLOW_DATABASE_URL": blank.database_url,
    }
    upgrades = [
        subprocess.Popen(
            [sys.executable, "-c", code + "print(upgrade(Settings()))"],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    head = current(blank)[1]
    assert [each.communicate()[0].strip() for each in upgrades] == [head] * 3
    assert current(blank) == (head, head)
