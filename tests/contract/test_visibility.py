"""What is not in one's projects is not there, whatever the database."""

import pytest

from backend.bootstrap import Backend
from backend.errors import NotFound
from backend.people.project import Project, Quota
from backend.people.rights import Role
from backend.runs.history.labels import Change
from backend.runs.history.listing import RunFilter
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import Run
from backend.services.people.access import NotAllowed
from backend.storage.tables.people_tables import Base
from backend.storage.tables.tables import PlanRow, ProfileRow
from backend.storage.tables.team_tables import SweepRunRow
from backend.storage.visibility import BY_PROJECT, BY_RUN, EVERYBODYS
from tests.app.seed import a_profile
from tests.contract.belongings import SOURCE, Act, ended, member, swept
from tests.contract.people import join

MISSING = 2_000_000_000
BY_ID: dict[str, Act] = {
    "run": lambda b, r, i: b.runs.get(i),
    "retry": lambda b, r, i: b.runs.retry(i),
    "resume": lambda b, r, i: b.runs.resume(i),
    "cancel": lambda b, r, i: b.runs.cancel(i),
    "delete": lambda b, r, i: b.runs.delete(i),
    "file": lambda b, r, i: b.runs.artifacts.path(i, "kept.txt"),
}
BY_MODEL: dict[str, Act] = {
    "model": lambda b, r, i: b.definitions.get(i),
    "source": lambda b, r, i: b.definitions.source(i),
    "describe": lambda b, r, i: b.definitions.describe(i),
    "clone": lambda b, r, i: b.definitions.clone(i, "mine"),
    "delete model": lambda b, r, i: b.definitions.delete(i),
    "launch": lambda b, r, i: b.runs.submit(ProfileSpec(i)),
    "add profile": lambda b, r, i: b.profiles.add(a_profile(), i),
}
BY_PROFILE: dict[str, Act] = {
    "profile": lambda b, r, i: b.profiles.get(i),
}
BY_PLAN: dict[str, Act] = {"plan": lambda b, r, i: b.plans.get(i)}
BY_CLUSTER: dict[str, Act] = {
    "cluster": lambda b, r, i: b.clusters.get(i),
    "label cluster": lambda b, r, i: b.clusters.label(i, Change(name="mine")),
    "delete cluster": lambda b, r, i: b.clusters.delete(i),
}
BY_COMMENT: dict[str, Act] = {"delete comment": lambda b, r, i: b.comments.delete(i)}
BY_VIEW: dict[str, Act] = {
    "view": lambda b, r, i: b.views.get(i),
    "delete view": lambda b, r, i: b.views.delete(i),
}
BY_SWEEP: dict[str, Act] = {
    "sweep": lambda b, r, i: b.sweeps.get(i),
    "cancel sweep": lambda b, r, i: b.sweeps.cancel(i),
}
BY_NUMBER: dict[str, Act] = {
    "project": lambda b, r, i: b.projects.get(i),
    "members": lambda b, r, i: b.projects.members(i),
    "choose": lambda b, r, i: b.within(i),
    "rename": lambda b, r, i: b.projects.rename(i, "mine"),
    "limit": lambda b, r, i: b.projects.limit(i, Quota()),
    "set_role": lambda b, r, i: b.projects.set_role(i, "gil", Role.ADMIN),
}
EMPTY: dict[str, Act] = {
    "log": lambda b, r, i: b.runs.logs.list(i),
    "several": lambda b, r, i: b.runs.several([i]),
    "metrics": lambda b, r, i: b.runs.metrics.names(i),
    "files": lambda b, r, i: b.runs.artifacts.list(i),
    "comments": lambda b, r, i: b.comments.list(i),
    "attempts": lambda b, r, i: b.runs.attempts(i),
    "checkpoints": lambda b, r, i: b.runs.checkpoints.list(i),
    "segments": lambda b, r, i: b.runs.spans.segments(i),
}
CASES = {**BY_ID, **BY_MODEL, **BY_PROFILE, **BY_PLAN, **BY_CLUSTER, **BY_COMMENT, **BY_VIEW}
CASES |= {**BY_SWEEP, **BY_NUMBER, "comment": lambda b, r, i: b.comments.add(i, "mine")}


def number_for(name: str, inside: Backend, run: Run) -> int:
    if name in BY_MODEL:
        return run.spec.definition_id
    if name in BY_PROFILE:
        return inside.profiles.list()[0].id
    if name in BY_PLAN:
        return inside.plans.list()[0].id
    if name in BY_CLUSTER:
        return inside.clusters.list()[0].id
    if name in BY_COMMENT:
        return inside.comments.list(run.id)[0].id
    if name in BY_SWEEP:
        return inside.sweeps.list()[0].sweep.id
    if name in BY_VIEW:
        return inside.views.list()[0].id
    return run.project_id if name in BY_NUMBER else run.id


def test_a_foreign_number_is_answered_as_one_that_nobody_has(
    backend: Backend, vision: Project, theirs: Run
):
    """No error tells that there is something, and nothing is changed or noted."""
    swept(backend.within(vision.id))
    outside = member(backend, vision, None)
    for name, act in CASES.items():
        foreign = number_for(name, backend, theirs)
        said = []
        for number in (foreign, MISSING):
            with pytest.raises(NotFound) as caught:
                act(outside, theirs, number)
            said.append((str(caught.value).replace(str(number), "N"), caught.value.advice))
        assert said[0] == said[1], name
    for name, look in EMPTY.items():
        assert look(outside, theirs, theirs.id) == look(outside, theirs, MISSING), name
        assert look(backend, theirs, theirs.id) != () or name in ("metrics", "segments")
    for number in (theirs.id, MISSING):
        with pytest.raises(NotAllowed):
            outside.labels.change([number], Change(name="mine"))
    assert backend.runs.get(theirs.id) == theirs


def test_lists_searches_and_counts_show_what_is_seen(
    backend: Backend, vision: Project, theirs: Run
):
    swept(backend.within(vision.id))
    outside = member(backend, vision, None)
    for text_sought in ("", "secret", "hidden", theirs.owner):
        assert outside.runs.list(RunFilter(text=text_sought)).total == 0
    assert outside.runs.count() == {}
    assert outside.labels.tags() == outside.labels.owners() == []
    for service in (
        outside.definitions,
        outside.profiles,
        outside.plans,
        outside.clusters,
        outside.views,
        outside.sweeps,
        outside.projects,
    ):
        assert list(service.list()) == []
    backend.projects.set_role(vision.id, "Gil", Role.VIEWER)
    (gil,) = [p for p in backend.team.list() if p.name == "Gil"]
    inside = backend.acting(gil.actor())
    assert [run.id for run in inside.runs.list(RunFilter(text="secret")).runs] == [theirs.id]
    assert inside.labels.tags() == ["hidden"]
    assert inside.runs.artifacts.path(theirs.id, "kept.txt").is_file()
    assert [project.name for project in inside.projects.list()] == ["Vision"]
    assert inside.access.home == vision.id


def test_every_table_says_who_sees_its_rows():
    """A table that is added without a rule would be seen by everybody."""
    told = {*BY_PROJECT, *BY_RUN, ProfileRow, PlanRow, SweepRunRow} | EVERYBODYS
    assert {mapper.class_ for mapper in Base.registry.mappers} == told
    for row in EVERYBODYS:
        assert not {"project_id", "run_id"} & set(row.__table__.columns.keys()) or (
            row.__tablename__ in ("tokens", "reservations", "held_devices", "nodes")
        )


def test_equal_bytes_stay_while_another_project_has_them(
    backend: Backend, vision: Project, theirs: Run
):
    """Files and contents are kept once, whoever has them."""
    gone = ended(backend)
    editor = backend.acting(join(backend, "Eve", Role.EDITOR).actor())
    editor.runs.delete(gone.id)
    assert backend.runs.artifacts.path(theirs.id, "kept.txt").read_text().startswith("the same")
    spare = editor.definitions.clone(gone.spec.definition_id, "spare")
    editor.definitions.delete(spare.id)
    assert backend.definitions.source(theirs.spec.definition_id) == SOURCE
