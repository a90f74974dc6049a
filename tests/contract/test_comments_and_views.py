"""Comments on runs and kept views of their list, on both databases."""

from datetime import UTC, datetime

import pytest

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound
from backend.people.project import Project
from backend.people.rights import Role
from backend.runs.history import comments, views
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.history.views import ListView, ViewNameTaken
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.people.access import NotAllowed
from tests.contract.belongings import member

FAILED = ListView(
    RunFilter(states=(RunState.FAILED,), since=datetime(2026, 3, 1, tzinfo=UTC), min_accuracy=0.9),
    RunOrder(RunSort.ACCURACY, descending=False),
    ("State", "Loss"),
)


def test_what_is_said_of_a_run_is_kept_and_goes_with_it(
    backend: Backend, theirs: Run, monkeypatch: pytest.MonkeyPatch
):
    (before,) = backend.comments.list(theirs.id)
    first = backend.comments.add(theirs.id, "  the loss rises\nagain \0 ")
    assert first.text == "the loss rises\nagain \N{REPLACEMENT CHARACTER}"
    assert first.author == backend.actor.name
    second = backend.comments.add(theirs.id, "so it does")
    assert backend.comments.list(theirs.id) == [before, first, second]
    for text in ("", " \n", "x" * (comments.MAX_COMMENT + 1)):
        with pytest.raises(InvalidInput, match="comment has"):
            backend.comments.add(theirs.id, text)
    monkeypatch.setattr("backend.storage.runs.comments.MAX_COMMENTS", 3)
    with pytest.raises(InvalidInput, match="has 3 comments"):
        backend.comments.add(theirs.id, "one more")
    assert backend.comments.delete(first.id) == first
    assert backend.comments.list(theirs.id) == [before, second]
    backend.runs.delete(theirs.id)
    with pytest.raises(NotFound):
        backend.comments.delete(second.id)


@pytest.mark.parametrize("role", list(Role)[1:])
def test_who_edits_comments_and_who_manages_deletes_what_others_say(
    backend: Backend, vision: Project, theirs: Run, role: Role
):
    said = backend.comments.add(theirs.id, "of the operator")
    gil = member(backend, vision, role)
    assert gil.comments.list(theirs.id)[-1] == said
    if role is Role.VIEWER:
        with pytest.raises(NotAllowed):
            gil.comments.add(theirs.id, "me too")
    else:
        own = gil.comments.add(theirs.id, "me too")
        assert (own.author, gil.comments.may_delete(own, vision.id)) == ("Gil", True)
        assert gil.comments.delete(own.id) == own
    assert gil.comments.may_delete(said, vision.id) == (role is Role.ADMIN)
    if role is Role.ADMIN:
        assert gil.comments.delete(said.id) == said
    else:
        with pytest.raises(NotAllowed):
            gil.comments.delete(said.id)


def test_a_view_is_kept_as_it_is_and_found_by_its_name(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
):
    kept = backend.views.save(" What failed ", FAILED, shared=True)
    assert (kept.name, kept.view, kept.is_shared) == ("What failed", FAILED, True)
    assert backend.views.get(kept.id) == backend.views.named("what FAILED") == kept
    own = backend.views.save("what failed", ListView())
    assert backend.views.named("What failed") == own
    for shared in (True, False):
        with pytest.raises(ViewNameTaken, match="there is a view 'WHAT FAILED'"):
            backend.views.save("WHAT FAILED", ListView(), shared)
    for name in ("", "two\nlines", "x" * (views.MAX_NAME + 1)):
        with pytest.raises(InvalidInput, match="cannot name a view"):
            backend.views.save(name, ListView())
    monkeypatch.setattr("backend.storage.runs.views.MAX_VIEWS", 1)
    with pytest.raises(InvalidInput, match="1 views are kept"):
        backend.views.save("another", ListView())
    assert backend.views.delete(own.id) == own
    assert backend.views.list() == [kept]
    with pytest.raises(NotFound, match="no view 'another'"):
        backend.views.named("another")


def test_what_somebody_keeps_for_themselves_is_nobody_elses(
    backend: Backend, vision: Project, theirs: Run
):
    inside = backend.within(vision.id)
    (before,) = inside.views.list()
    shared, own = (inside.views.save("slow", FAILED, shared) for shared in (True, False))
    gil = member(backend, vision, Role.VIEWER)
    assert gil.views.list() == [before, shared]
    for look in (gil.views.get, gil.views.delete):
        with pytest.raises(NotFound, match=f"no view {own.id}"):
            look(own.id)
    with pytest.raises(NotAllowed):
        gil.views.delete(shared.id)
    with pytest.raises(NotAllowed):
        gil.views.save("for all", ListView(), shared=True)
    mine = gil.views.save("slow", ListView())
    assert gil.views.named("slow") == mine
    assert gil.views.delete(mine.id) == mine
