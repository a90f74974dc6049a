"""Every storage test runs on SQLite and on a real PostgreSQL server of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from backend.bootstrap import Backend, connect
from backend.definitions.definition import Definition
from backend.people import secret
from backend.people.project import Project
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores
from backend.settings import Settings
from tests.contract.belongings import ended
from tests.contract.emptied import Emptied
from tests.migrated import migrated
from tests.postgres import Postgres, postgres

DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
SOURCE = b"def model():\n    return None\n"


@pytest.fixture(autouse=True, scope="module")
def quick_passwords() -> Iterator[None]:
    """Passwords are hashed as always, but with little memory: what hashes promise is argon2's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret, "_hasher", PasswordHasher(time_cost=1, memory_cost=64))
        secret._nobodys.cache_clear()
        yield
    secret._nobodys.cache_clear()


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL that writes nothing through to the disk."""
    with postgres() as server:
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def emptied(server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Emptied:
    """PostgreSQL databases that the migrations made, the same one for many tests."""
    return Emptied(server, tmp_path_factory.mktemp("template"))


@pytest.fixture(params=DATABASES)
def blank(request: pytest.FixtureRequest, home: Path) -> Iterator[Settings]:
    """Settings of a database that has no tables yet; with `settings`, of one that has them."""
    if request.param == "sqlite":
        yield Settings(home=home, node="here")
        return
    emptied: Emptied = request.getfixturevalue("emptied")
    lent = emptied.lent if "settings" in request.fixturenames else emptied.bare
    with lent() as url:
        yield Settings(home=home, node="here", database_url=url)


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
