"""What the server does for us when one of its clients stands still."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from backend.settings import Settings
from backend.storage.database import Database, open_engine
from backend.storage.errors import DatabaseUnreachable
from tests.postgres import Postgres, postgres

pytestmark = pytest.mark.postgres
LEASE = 0.5  # seconds


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


def test_who_stands_still_in_a_write_is_put_out_of_it_after_a_lease(server: Postgres) -> None:
    ours, theirs = (
        Database(open_engine(Settings(database_url=server.url, lease=lease)))
        for lease in (LEASE, 3600.0)
    )
    add = text("UPDATE counted SET number = number + 1")
    with theirs.write() as session:
        session.execute(text("CREATE TABLE counted AS SELECT 0 AS number"))

    def stand_still() -> None:
        with ours.write() as still:
            still.execute(add)
            with theirs.write() as other:  # waits for the row until the server lets go of it
                other.execute(add)
            still.execute(add)

    with pytest.raises(DatabaseUnreachable, match="timeout"):
        stand_still()
    with ours.write() as again:
        assert again.execute(text("SELECT number FROM counted")).scalar_one() == 1
    ours.close()
    theirs.close()
