"""People who have come in, and a clock."""

from datetime import UTC, datetime, timedelta

from backend.bootstrap import Backend
from backend.people.person import Person
from backend.people.rights import Role

PASSWORD = "nine quiet stages"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go(self, time: timedelta) -> None:
        self.now += time


def join(backend: Backend, name: str, role: Role = Role.EDITOR) -> Person:
    _, link = backend.team.add(name, role)
    secret = backend.accounts.accept(link, "", PASSWORD)
    found = backend.accounts.person(secret)
    assert found
    return found[0]
