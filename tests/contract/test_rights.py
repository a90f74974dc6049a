"""Every role may do what the table says, and the audit log tells of it, whatever the database."""

from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.people.audit import AuditOutcome
from backend.people.rights import Right, Role
from backend.runs.history.labels import Change
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run
from backend.services.people.access import NotAllowed
from tests.contract.people import join

ACTS = {
    "add a model": lambda b, r: b.definitions.add("more.py", b"def model():\n    return 2\n"),
    "clone a model": lambda b, r: b.definitions.clone(r.spec.definition_id, "other"),
    "delete a model": lambda b, r: b.definitions.delete(r.spec.definition_id),
    "launch": lambda b, r: b.runs.submit(ProfileSpec(r.spec.definition_id)),
    "retry": lambda b, r: b.runs.retry(r.id),
    "cancel": lambda b, r: b.runs.cancel(r.id),
    "delete": lambda b, r: b.runs.delete(r.id),
    "label": lambda b, r: b.labels.change([r.id], Change(starred=True)),
    "people": lambda b, r: b.team.list(),
    "audit": lambda b, r: b.audit.list(),
}
MANAGING = {"people", "audit"}
SEEING = {
    "models": lambda b, r: b.definitions.list(),
    "run": lambda b, r: b.runs.get(r.id),
    "logs": lambda b, r: b.runs.logs.list(r.id),
}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
@pytest.mark.parametrize("name", [*ACTS, *SEEING])
def test_every_role_may_do_exactly_what_the_table_says(
    backend: Backend, run: Run, role: Role, name: str
):
    actor = replace(join(backend, "Bob", role).actor())
    ended = backend.runs.cancel(run.id)
    need = Right.VIEW if name in SEEING else Right.MANAGE if name in MANAGING else Right.EDIT
    act = (ACTS | SEEING)[name]
    mine = backend.acting(actor)
    if actor.may(need):
        try:
            act(mine, ended)
        except NotAllowed:
            raise
        except StageflowError:
            pass  # a model in use is not deleted, whoever asks
        return
    with pytest.raises(NotAllowed, match="Bob"):
        act(mine, ended)
    newest = backend.audit.list(limit=1)[0]
    assert (newest.actor, newest.outcome) == ("Bob", AuditOutcome.DENIED)


def test_whoever_acts_owns_the_run_and_is_in_the_log(backend: Backend, run: Run):
    bob = join(backend, "Bob")
    again = backend.acting(bob.actor()).runs.submit(run.spec, "mine")
    assert again.owner == "Bob"
    entry = backend.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.target) == ("Bob", "launch", "mine")
    assert entry.outcome is AuditOutcome.DONE
    assert [e.id for e in backend.audit.all()] == sorted(
        (e.id for e in backend.audit.list(limit=1000)), reverse=True
    )


@pytest.mark.parametrize("change", ["UPDATE audit_log SET actor = 'Eve'", "DELETE FROM audit_log"])
def test_the_log_only_grows(backend: Backend, run: Run, change: str):
    before = backend.audit.list()
    assert before
    with (
        pytest.raises((SQLAlchemyError, StageflowError)),
        backend.database.write() as session,
    ):
        session.execute(text(change))
    assert backend.audit.list() == before


def test_the_number_of_a_deleted_run_is_never_given_again(backend: Backend, run: Run):
    backend.runs.cancel(run.id)
    backend.runs.delete(run.id)
    assert backend.runs.submit(run.spec).id > run.id
