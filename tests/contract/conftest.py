"""Every storage test runs on SQLite and on a real PostgreSQL server of its own."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from backend.bootstrap import Backend, connect
from backend.definitions.definition import Definition
from backend.people.project import Project
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores
from backend.settings import Settings
from backend.storage.schema import upgrade
from tests.contract.belongings import ended
from tests.migrated import migrated
from tests.postgres import Postgres, postgres

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
SOURCE = b"def model():\n    return None\n"


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL that writes nothing through to the disk."""
    with postgres() as server:
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def template(server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a PostgreSQL database that the migrations made, which others are copies of."""
    server.psql("CREATE DATABASE template")
    folder = tmp_path_factory.mktemp("template")
    upgrade(Settings(home=folder, database_url=server.database("template")))
    return "template"


@pytest.fixture(params=DATABASES)
def blank(request: pytest.FixtureRequest, home: Path) -> Iterator[Settings]:
    """Settings of a database that has no tables yet."""
    if request.param == "sqlite":
        yield Settings(home=home, node="here")
        return
    server: Postgres = request.getfixturevalue("server")
    name = f"t{uuid4().hex}"
    engine = create_engine(server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        copied = "settings" in request.fixturenames
        source = request.getfixturevalue("template") if copied else "template1"
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {source}"))
        yield Settings(home=home, node="here", database_url=server.database(name))
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


@pytest.fixture
def settings(blank: Settings) -> Settings:
    """Settings of a database of today's schema."""
    if not blank.database_url:
        migrated(blank)
    return blank


@pytest.fixture
def backend(settings: Settings) -> Iterator[Backend]:
    """Real services on a real database; no Redis answers."""
    backend = connect(settings)
    yield backend
    backend.close()


@pytest.fixture
def stores(backend: Backend) -> Stores:
    return Stores(backend.settings, backend.database)


@pytest.fixture
def definition(backend: Backend) -> Definition:
    return backend.definitions.add("tiny.py", SOURCE)


@pytest.fixture
def run(backend: Backend, definition: Definition) -> Run:
    return backend.runs.submit(ProfileSpec(definition.id))


@pytest.fixture
def vision(backend: Backend) -> Project:
    return backend.projects.add("Vision")


@pytest.fixture
def theirs(backend: Backend, vision: Project) -> Run:
    """An ended run of another project, with one of everything that a run can have."""
    return ended(backend.within(vision.id))
