"""Who is told of a run, on both databases."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound
from backend.people.project import Project
from backend.people.rights import Role
from backend.runs.history.notices import HUNG, PlaceKind, RunEvent, events_of
from backend.runs.run import Run, RunError, RunSummary
from backend.runs.states import RunState
from backend.services.people.access import NotAllowed
from backend.services.people.notices import Addressees
from backend.storage.people.notices import SqlNotices
from backend.storage.people.people import SqlPeople
from tests.contract.belongings import member

HOOK = "https://example.org/hook"


def addressees(backend: Backend) -> Addressees:
    database = backend.database
    return Addressees(SqlNotices(database), SqlPeople(database), backend.actor.name)


def test_places_are_their_owners_alone(
    backend: Backend, vision: Project, theirs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gil = member(backend, vision, Role.VIEWER)
    own = gil.notices.add(PlaceKind.CHAT, f" {HOOK} ", (RunEvent.FAILED,))
    assert (own.address, own.events, own.runs) == (HOOK, (RunEvent.FAILED,), "mine")
    assert gil.notices.list() == [own]
    assert backend.notices.list() == []
    with pytest.raises(NotFound):
        backend.notices.remove(own.id)
    for kind, address, events in (
        (PlaceKind.MAIL, "gil@example.org", (RunEvent.FAILED,)),  # settings name no mail server
        (PlaceKind.CHAT, "nowhere", (RunEvent.FAILED,)),
        (PlaceKind.CHAT, HOOK, ()),
    ):
        with pytest.raises(InvalidInput):
            gil.notices.add(kind, address, events)
    monkeypatch.setattr("backend.storage.people.notices.MAX_PLACES", 1)
    with pytest.raises(InvalidInput, match="1 places are kept"):
        gil.notices.add(PlaceKind.CHAT, HOOK)
    gil.notices.remove(own.id)
    assert gil.notices.list() == []


def test_who_is_told_of_what(backend: Backend, vision: Project, theirs: Run) -> None:
    """Of the events that they chose, of their own runs or of all, of those that they watch; never
    of what they may not see."""
    tell = addressees(backend)
    gil = member(backend, vision, Role.VIEWER)
    ended = events_of(theirs)
    own = gil.notices.add(PlaceKind.WEBHOOK, HOOK, tuple(ended))
    operators = backend.notices.add(PlaceKind.WEBHOOK, HOOK, tuple(ended))
    assert tell(theirs, ended) == [operators]
    assert tell(replace(theirs, owner="Gil"), ended) == [own]
    gil.notices.watch(theirs.id, True)
    assert tell(theirs, ended) == [own, operators]
    assert gil.notices.is_told(theirs)
    assert not tell(theirs, frozenset({RunEvent.STALLED}))
    every = gil.notices.add(PlaceKind.WEBHOOK, HOOK, tuple(ended), all_runs=True)
    gil.notices.watch(theirs.id, False)
    assert tell(theirs, ended) == [operators]
    assert tell(replace(theirs, id=theirs.id + 1, owner=""), ended) == [every]
    gil.notices.watch(theirs.id, True)
    backend.projects.set_role(vision.id, "gil", None)
    assert tell(theirs, ended) == [operators]
    (person,) = [each for each in backend.team.list() if each.name == "Gil"]
    with pytest.raises(NotAllowed):
        backend.acting(person.actor()).notices.watch(theirs.id, True)


def test_what_happened_to_a_run(theirs: Run) -> None:
    hung = replace(theirs, state=RunState.FAILED, error=RunError(HUNG, "it stood still"))
    assert events_of(hung) == {RunEvent.FAILED, RunEvent.STALLED}
    assert events_of(replace(hung, error=None)) == {RunEvent.FAILED}
    assert events_of(replace(theirs, state=RunState.CANCELLED)) == {RunEvent.FINISHED}
    reached = replace(theirs, summary=RunSummary(seconds_to_target=3.0))
    assert events_of(reached) == {RunEvent.FINISHED, RunEvent.TARGET}
