"""Every storage test runs on SQLite and on a real PostgreSQL server of its own."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, text

from backend.bootstrap import Backend, connect, stores_on
from backend.definitions.definition import Definition
from backend.runs.ports import Stores
from backend.runs.run import Run
from backend.runs.spec import ProfileSpec
from backend.settings import Settings
from backend.storage.schema import upgrade

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
SOURCE = b"def model():\n    return None\n"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A server's URL: `.format(name)` gives that of one of its databases. It lies outside of
    pytest's folder, which another pytest may close to the server's own user."""
    if sys.version_info >= (3, 13):
        pytest.skip("pgserver has no build for this Python")
    import pgserver

    with tempfile.TemporaryDirectory(prefix="stageflow-pg-") as folder:
        server = pgserver.get_server(folder)
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield f"postgresql://postgres:@/{{}}?host={folder}"
        server.cleanup()


@pytest.fixture(params=DATABASES)
def blank(request: pytest.FixtureRequest, home: Path) -> Iterator[Settings]:
    """Settings of a database that has no tables yet."""
    if request.param == "sqlite":
        yield Settings(home=home, node="here")
        return
    url: str = request.getfixturevalue("postgres")
    name = f"t{uuid4().hex}"
    server = create_engine(url.format("postgres"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        yield Settings(home=home, node="here", database_url=url.format(name))
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def settings(blank: Settings) -> Settings:
    upgrade(blank)
    return blank


@pytest.fixture
def backend(settings: Settings) -> Iterator[Backend]:
    """Real services on a real database; no Redis answers."""
    backend = connect(settings)
    yield backend
    backend.close()


@pytest.fixture
def stores(backend: Backend) -> Stores:
    return stores_on(backend.settings, backend.database)


@pytest.fixture
def definition(backend: Backend) -> Definition:
    return backend.definitions.add("tiny.py", SOURCE)


@pytest.fixture
def run(backend: Backend, definition: Definition) -> Run:
    return backend.runs.submit(ProfileSpec(definition.id))
