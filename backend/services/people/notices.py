"""What people are told of runs: each chooses where, and of what."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.notifications.notifier import Notifier
from backend.people.rights import Right
from backend.runs.history.notices import NoticePlace, PlaceKind, RunEvent, place_address
from backend.runs.run import Run
from backend.services.people.access import Access
from backend.storage.people.notices import SqlNotices
from backend.storage.people.people import SqlPeople

OPERATOR = 0
"""Who holds the machine, and everybody where nobody signs in."""


@dataclass(frozen=True)
class NoticeService:
    """A person's own places, of which nobody else learns. `takes_mail` where settings name a mail
    server."""

    _store: SqlNotices
    _notifier: Notifier
    _access: Access
    takes_mail: bool

    def add(
        self,
        kind: PlaceKind,
        address: str,
        events: Sequence[RunEvent] = tuple(RunEvent),
        all_runs: bool = False,
    ) -> NoticePlace:
        """From now on the actor is told there. Raises `InvalidInput`."""
        self._check("add a place for notifications")
        found = place_address(kind, address)
        if kind is PlaceKind.MAIL and not self.takes_mail:
            raise InvalidInput("mail is not set up", "Use a chat or a webhook.")
        if not events:
            raise InvalidInput("no event is chosen", "Choose at least one event.")
        runs = "all" if all_runs else "mine"
        return self._store.add(self._person, kind, found, events, runs)

    def list(self) -> Sequence[NoticePlace]:
        """The actor's own, in the order in which they were added."""
        return self._store.list(self._person)

    def remove(self, place_id: int) -> None:
        """Raises `NotFound`."""
        self._check("remove a place for notifications")
        self._store.remove(place_id, self._person)

    def try_now(self, place: NoticePlace) -> str:
        """Send a test; "" where it was delivered, else why not."""
        self._check("send a test")
        return self._notifier.try_now(place)

    def watch(self, run_id: int, told: bool) -> None:
        """Be told of this run, or not, whatever one's places say. Raises `NotFound`."""
        self._check("watch")
        self._store.watch(run_id, self._person, told)

    def is_told(self, run: Run) -> bool:
        """Whether the actor is told of this run, at some place."""
        return any(
            wants(each, run, self._access.actor.name, self._said(run)) for each in self.list()
        )

    def _said(self, run: Run) -> bool | None:
        return self._store.watchers(run.id).get(self._person)

    @property
    def _person(self) -> int:
        return self._access.actor.person_id or OPERATOR

    def _check(self, action: str) -> None:
        """A token that may only read changes nothing of its owner's either."""
        actor = self._access.actor
        right = Right.EDIT if actor.token and actor.reads_only else Right.VIEW
        self._access.check(right, action, "", self._access.home)


@dataclass(frozen=True)
class Addressees:
    """Whoever wants to be told of a run, and may see it now."""

    _store: SqlNotices
    _people: SqlPeople
    _operator: str

    def __call__(self, run: Run, events: frozenset[RunEvent]) -> Sequence[NoticePlace]:
        places = [each for each in self._store.all() if events & set(each.events)]
        if not places:
            return ()
        said = self._store.watchers(run.id)
        names = {OPERATOR: self._operator}
        for person in self._people.list():
            visible = person.actor().visible
            if not person.disabled and (visible is None or run.project_id in visible):
                names[person.id] = person.name
        return [
            each
            for each in places
            if each.person_id in names
            and wants(each, run, names[each.person_id], said.get(each.person_id))
        ]


def wants(place: NoticePlace, run: Run, name: str, said: bool | None) -> bool:
    """Whether a person of this name, who has `said` so or otherwise of this very run, is told of it
    at a place."""
    if said is not None:
        return said
    return place.runs == "all" or (bool(run.owner) and run.owner == name)
