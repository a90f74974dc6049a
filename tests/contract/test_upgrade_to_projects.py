"""A database of the time before projects is brought to them."""

from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from backend.bootstrap import connect
from backend.people.project import DEFAULT_PROJECT
from backend.people.rights import Role
from backend.services.runs.stores import Stores
from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.schema import configuration, upgrade
from tests.contract.belongings import ended
from tests.contract.people import PASSWORD, join


def test_what_was_there_before_projects_belongs_to_the_first(settings: Settings, tmp_path: Path):
    backend = connect(settings)
    run = ended(backend)
    join(backend, "Eve", Role.EDITOR)
    secret = backend.accounts.sign_in("Eve", PASSWORD)
    before = (backend.runs.list(), backend.plans.list(), backend.runs.logs.list(run.id))
    backend.close()
    engine = open_engine(settings, foreign_keys=False)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), "0009")
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 1
    engine.dispose()
    upgrade(settings)
    backend = connect(settings)
    assert (backend.runs.list(), backend.plans.list(), backend.runs.logs.list(run.id)) == before
    (only,) = backend.projects.list()
    assert (only.id, only.name, only.archived) == (DEFAULT_PROJECT, "General", False)
    person, _ = backend.accounts.person(secret) or pytest.fail("the session did not last")
    eve = backend.acting(person.actor())
    assert eve.runs.list() == before[0]
    assert eve.runs.retry(run.id).project_id == DEFAULT_PROJECT
    assert backend.projects.add("Second").id == 2
    assert Stores(settings, backend.database).runs.get(run.id).project_id == DEFAULT_PROJECT
    backend.close()
