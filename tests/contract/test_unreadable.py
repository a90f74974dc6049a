"""A record that cannot be read costs its own line alone, and can be deleted."""

import pytest
from sqlalchemy import update

from backend.bootstrap import Backend
from backend.definitions.definition import Definition
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.storage.runs.decoded import UNREADABLE
from backend.storage.soundness import violations
from backend.storage.tables.tables import RunRow

CLOCK = {"rank": 0, "segment": 0, "seconds": None, "error": None, "event": "clock"}
DAMAGES = {
    "summary": {"clocks": [CLOCK]},
    "progress": {"phase": "train", "done": None, "total": 1},
    "error": {"kind": 1},
    "fallbacks": [1],
    "spec": {"kind": "unheard of"},
}


@pytest.mark.parametrize("column", DAMAGES)
def test_an_unreadable_record(
    backend: Backend, definition: Definition, run: Run, column: str
) -> None:
    backend.runs.submit(ProfileSpec(definition.id), "sound")
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    with backend.database.write() as session:
        damaged = {column: DAMAGES[column]}
        session.execute(update(RunRow).where(RunRow.id == run.id).values(damaged))
    page = backend.runs.list()
    assert [(each.name, each.error is None) for each in page.runs] == [
        ("sound", True),
        (run.name, False),
    ]
    found = backend.runs.get(run.id)
    assert found.error is not None
    assert (found.error.kind, found.state) == (UNREADABLE, RunState.SUCCEEDED)
    assert [each.found for each in violations(backend.database, backend.settings)] == [
        found.error.message
    ]
    assert backend.runs.delete(run.id) == found
    assert violations(backend.database, backend.settings) == []


def test_an_unreadable_run_that_waits_is_cancelled_and_starts_nowhere(
    backend: Backend, run: Run
) -> None:
    with backend.database.write() as session:
        session.execute(update(RunRow).where(RunRow.id == run.id).values(spec={"kind": "?"}))
    assert backend.dispatch.claim(run.id, "here") is None
    backend.dispatch.waiting_for("here")
    backend.runs.cancel(run.id)
    assert backend.runs.get(run.id).state is RunState.CANCELLED
