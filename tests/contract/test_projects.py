"""What belongs to a project is seen and changed by its members alone, whatever the database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text

from backend.bootstrap import Backend, connect, stores_on
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.people.audit import NotAllowed, Outcome
from backend.people.person import Person, Scope
from backend.people.project import DEFAULT_PROJECT, Project, Quota
from backend.people.rights import Right, Role
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.labels import Change
from backend.runs.listing import RunFilter
from backend.runs.run import Run, RunSummary
from backend.runs.spec import ProfileSpec, TrainSpec
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.people_tables import Base
from backend.storage.reach import BY_PROJECT, BY_RUN, EVERYBODYS
from backend.storage.schema import configuration, upgrade
from backend.storage.tables import PlanRow, ProfileRow
from tests.app.seed import a_profile, plan_for

PASSWORD = "nine quiet stages"
SOURCE = b"def model():\n    return None\n"
PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 8)
MISSING = 2_000_000_000


@pytest.fixture
def vision(backend: Backend) -> Project:
    return backend.projects.add("Vision")


@pytest.fixture
def theirs(backend: Backend, vision: Project) -> Run:
    """An ended run of another project, with one of everything that a run can have."""
    return ended(backend.within(vision.id))


def ended(inside: Backend) -> Run:
    definition = inside.definitions.add("net.py", SOURCE)
    run = inside.runs.submit(ProfileSpec(definition.id), "deep secret")
    attempt = inside.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.logs([(0, 0.0, "a line")])
    inside.labels.change([run.id], Change(add=("hidden",)))
    file = inside.settings.home / "kept.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("the same bytes in every project")
    attempt.artifact("kept.txt", file)
    profile_id = attempt.profile(a_profile())
    attempt.finish(RunState.SUCCEEDED, RunSummary(profile_id=profile_id))
    plan_for(inside, inside.profiles.get(profile_id))
    return inside.runs.get(run.id)


def join(backend: Backend, name: str, role: Role) -> Person:
    _, link = backend.team.add(name, role)
    found = backend.accounts.person(backend.accounts.accept(link, "", PASSWORD))
    assert found
    return found[0]


def member(backend: Backend, project: Project, role: Role | None) -> Backend:
    """The services for a guest with a role in the project."""
    join(backend, "Gil", Role.GUEST)
    if role is not None:
        backend.projects.seat(project.id, "gil", role)
    (gil,) = [p for p in backend.team.list() if p.name == "Gil"]
    return backend.acting(gil.actor())


Act = Callable[[Backend, Run, int], object]
BY_ID: dict[str, Act] = {
    "run": lambda b, r, i: b.runs.get(i),
    "retry": lambda b, r, i: b.runs.retry(i),
    "resume": lambda b, r, i: b.runs.resume(i),
    "cancel": lambda b, r, i: b.runs.cancel(i),
    "delete": lambda b, r, i: b.runs.delete(i),
    "file": lambda b, r, i: b.runs.artifact_path(i, "kept.txt"),
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
BY_NUMBER: dict[str, Act] = {
    "project": lambda b, r, i: b.projects.get(i),
    "members": lambda b, r, i: b.projects.members(i),
    "choose": lambda b, r, i: b.within(i),
    "rename": lambda b, r, i: b.projects.rename(i, "mine"),
    "limit": lambda b, r, i: b.projects.limit(i, Quota()),
    "seat": lambda b, r, i: b.projects.seat(i, "gil", Role.ADMIN),
}
EMPTY: dict[str, Act] = {
    "log": lambda b, r, i: b.runs.logs(i),
    "several": lambda b, r, i: b.runs.several([i]),
    "metrics": lambda b, r, i: b.runs.metric_names(i),
    "files": lambda b, r, i: b.runs.artifacts(i),
    "attempts": lambda b, r, i: b.runs.attempts(i),
    "checkpoints": lambda b, r, i: b.runs.checkpoints(i),
    "segments": lambda b, r, i: b.runs.segments(i),
}
CASES = {**BY_ID, **BY_MODEL, **BY_PROFILE, **BY_PLAN, **BY_NUMBER}


def number_for(name: str, inside: Backend, run: Run) -> int:
    if name in BY_MODEL:
        return run.spec.definition_id
    if name in BY_PROFILE:
        return inside.profiles.list()[0].id
    if name in BY_PLAN:
        return inside.plans.list()[0].id
    return run.project_id if name in BY_NUMBER else run.id


def test_a_foreign_number_is_answered_as_one_that_nobody_has(
    backend: Backend, vision: Project, theirs: Run
):
    """No error tells that there is something, and nothing is changed or noted."""
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
    outside = member(backend, vision, None)
    for text_sought in ("", "secret", "hidden", theirs.owner):
        assert outside.runs.list(RunFilter(text=text_sought)).total == 0
    assert outside.runs.count() == {}
    assert outside.labels.tags() == outside.labels.owners() == []
    for service in (outside.definitions, outside.profiles, outside.plans, outside.projects):
        assert list(service.list()) == []
    backend.projects.seat(vision.id, "Gil", Role.VIEWER)
    (gil,) = [p for p in backend.team.list() if p.name == "Gil"]
    inside = backend.acting(gil.actor())
    assert [run.id for run in inside.runs.list(RunFilter(text="secret")).runs] == [theirs.id]
    assert inside.labels.tags() == ["hidden"]
    assert inside.runs.artifact_path(theirs.id, "kept.txt").is_file()
    assert [project.name for project in inside.projects.list()] == ["Vision"]
    assert inside.access.home == vision.id


def test_the_chosen_project_is_what_lists_show_and_where_new_things_go(
    backend: Backend, vision: Project, theirs: Run, run: Run
):
    inside = backend.within(vision.id)
    assert [each.id for each in inside.runs.list().runs] == [theirs.id]
    assert inside.runs.get(run.id) == run  # a link leads there nevertheless
    assert {each.id for each in backend.runs.list().runs} == {theirs.id, run.id}
    ours = backend.definitions.add("net.py", b"def model():\n    return 2\n")
    assert (ours.project_id, ours.version) == (DEFAULT_PROJECT, 1)
    assert inside.definitions.resolve("net").id == theirs.spec.definition_id
    assert inside.definitions.add("net.py", b"def model():\n    return 3\n").version == 2


EDITS: dict[str, Act] = {
    "add a model": lambda b, r, i: b.acting(b.actor, r.project_id).definitions.add_zoo("mlp"),
    "launch": lambda b, r, i: b.runs.submit(r.spec),
    "retry": lambda b, r, i: b.runs.retry(r.id),
    "cancel": lambda b, r, i: b.runs.cancel(r.id),
    "label": lambda b, r, i: b.labels.change([r.id], Change(starred=True)),
    "save a plan": lambda b, r, i: plan_for(b, b.profiles.list()[0]),
    "delete a model": lambda b, r, i: b.definitions.delete(r.spec.definition_id),
    "delete": lambda b, r, i: b.runs.delete(r.id),
}
MANAGES: dict[str, Act] = {
    "rename": lambda b, r, i: b.projects.rename(r.project_id, "Eyes"),
    "seat": lambda b, r, i: b.projects.seat(r.project_id, "Gil", Role.ADMIN),
}
TEAMS: dict[str, Act] = {
    "limit": lambda b, r, i: b.projects.limit(r.project_id, Quota(running=1)),
    "make": lambda b, r, i: b.projects.add("Third"),
    "people": lambda b, r, i: b.team.list(),
    "audit": lambda b, r, i: b.audit.list(),
}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
def test_a_members_role_says_what_they_may(
    backend: Backend, vision: Project, theirs: Run, role: Role
):
    mine = member(backend, vision, role)
    for acts, right in ((EDITS, Right.EDIT), (MANAGES, Right.MANAGE)):
        for name, act in acts.items():
            if mine.access.may(right, vision.id):
                try:
                    act(mine, theirs, 0)
                except NotAllowed:
                    raise
                except StageflowError:
                    assert name == "delete a model"  # it is needed
            else:
                refused(backend, mine, act, theirs)
    for act in TEAMS.values():
        refused(backend, mine, act, theirs)


def refused(backend: Backend, mine: Backend, act: Act, run: Run) -> None:
    with pytest.raises(NotAllowed, match="Gil"):
        act(mine, run, 0)
    entry = backend.audit.list(limit=1)[0]
    assert (entry.actor, entry.outcome) == ("Gil", Outcome.DENIED)


def test_the_teams_role_holds_in_the_first_project_and_an_administrators_in_all(
    backend: Backend, vision: Project, theirs: Run, run: Run
):
    eve = backend.acting(join(backend, "Eve", Role.EDITOR).actor())
    assert eve.runs.cancel(run.id).state is RunState.CANCELLED
    with pytest.raises(NotFound):
        eve.runs.get(theirs.id)
    ada = backend.acting(join(backend, "Ada", Role.ADMIN).actor())
    assert {each.id for each in ada.runs.list().runs} == {theirs.id, run.id}
    assert [m.name for m in ada.projects.members(DEFAULT_PROJECT)] == ["Ada", "Eve"]


def test_what_a_run_is_made_of_lies_in_its_project(
    backend: Backend, vision: Project, theirs: Run, run: Run
):
    weights = backend.within(vision.id).definitions.add(
        "w.safetensors", (2).to_bytes(8, "little") + b"{}"
    )
    spec = TrainSpec(run.spec.definition_id, PLAN, weights_id=weights.id)
    with pytest.raises(InvalidInput, match="another project"):
        backend.runs.submit(spec)
    with pytest.raises(NotFound, match="checkpoint"):
        backend.runs.submit(TrainSpec(run.spec.definition_id, PLAN, checkpoint_id=7))


def test_equal_bytes_stay_while_another_project_has_them(
    backend: Backend, vision: Project, theirs: Run
):
    """Files and contents are kept once, whoever has them."""
    gone = ended(backend)
    editor = backend.acting(join(backend, "Eve", Role.EDITOR).actor())
    editor.runs.delete(gone.id)
    assert backend.runs.artifact_path(theirs.id, "kept.txt").read_text().startswith("the same")
    spare = editor.definitions.clone(gone.spec.definition_id, "spare")
    editor.definitions.delete(spare.id)
    assert backend.definitions.source(theirs.spec.definition_id) == SOURCE


def test_a_token_may_be_bound_to_one_project(
    backend: Backend, vision: Project, theirs: Run, run: Run
):
    ada = join(backend, "Ada", Role.ADMIN)
    tokens = backend.acting(ada.actor()).tokens
    _, secret = tokens.add("vision only", Scope.WRITE, project=vision.id)
    assert tokens.list()[0].project == vision.id
    actor = backend.accounts.bearer(secret) or pytest.fail("no token")
    bound = backend.acting(actor)
    assert [each.id for each in bound.runs.list().runs] == [theirs.id]
    assert bound.runs.retry(theirs.id).project_id == vision.id
    with pytest.raises(NotFound):
        bound.runs.get(run.id)
    for act in TEAMS.values():
        with pytest.raises(NotAllowed):
            act(bound, theirs, 0)
    gil = member(backend, vision, None)
    with pytest.raises(NotFound):
        gil.tokens.add("not mine", Scope.READ, project=vision.id)
    with pytest.raises(NotAllowed):
        gil.tokens.add("nothing to write", Scope.WRITE)


def test_a_member_who_is_dismissed_sees_no_more_of_it(
    backend: Backend, vision: Project, theirs: Run
):
    member(backend, vision, Role.EDITOR)
    secret = backend.accounts.sign_in("Gil", PASSWORD)
    person, _ = backend.accounts.person(secret) or pytest.fail("no session")
    assert backend.acting(person.actor()).runs.list().total == 1
    backend.projects.seat(vision.id, "Gil", None)
    person, _ = backend.accounts.person(secret) or pytest.fail("no session")
    assert backend.acting(person.actor()).runs.list().total == 0


def test_names_are_one_and_the_first_project_stays(backend: Backend, vision: Project):
    for name in ("vision", "VISION ", "general"):
        with pytest.raises(InvalidInput, match="already"):
            backend.projects.add(name)
    assert backend.projects.rename(DEFAULT_PROJECT, "Ours").name == "Ours"
    assert backend.projects.named("ours").id == DEFAULT_PROJECT
    assert backend.projects.named(str(vision.id)) == vision
    for act in (
        lambda: backend.projects.archive(DEFAULT_PROJECT),
        lambda: backend.projects.seat(DEFAULT_PROJECT, "x", Role.VIEWER),
        lambda: backend.projects.seat(vision.id, "x", Role.GUEST),
        lambda: backend.projects.add(""),
        lambda: backend.projects.limit(vision.id, Quota(running=-1)),
        lambda: backend.projects.limit(vision.id, Quota(share=0)),
    ):
        with pytest.raises(InvalidInput):
            act()
    with pytest.raises(NotFound):
        backend.projects.seat(vision.id, "nobody", Role.VIEWER)


def test_every_table_says_who_sees_its_rows():
    """A table that is added without a rule would be seen by everybody."""
    told = {*BY_PROJECT, *BY_RUN, ProfileRow, PlanRow} | EVERYBODYS
    assert {mapper.class_ for mapper in Base.registry.mappers} == told
    for row in EVERYBODYS:
        assert not {"project_id", "run_id"} & set(row.__table__.columns.keys()) or (
            row.__tablename__ in ("tokens", "reservations")
        )


def test_what_was_there_before_projects_belongs_to_the_first(settings: Settings, tmp_path: Path):
    backend = connect(settings)
    run = ended(backend)
    join(backend, "Eve", Role.EDITOR)
    secret = backend.accounts.sign_in("Eve", PASSWORD)
    before = (backend.runs.list(), backend.plans.list(), backend.runs.logs(run.id))
    backend.close()
    engine = open_engine(settings, foreign_keys=False)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), "0009")
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM runs")).scalar() == 1
    engine.dispose()
    upgrade(settings)
    backend = connect(settings)
    assert (backend.runs.list(), backend.plans.list(), backend.runs.logs(run.id)) == before
    (only,) = backend.projects.list()
    assert (only.id, only.name, only.archived) == (DEFAULT_PROJECT, "General", False)
    person, _ = backend.accounts.person(secret) or pytest.fail("the session did not last")
    eve = backend.acting(person.actor())
    assert eve.runs.list() == before[0]
    assert eve.runs.retry(run.id).project_id == DEFAULT_PROJECT
    assert backend.projects.add("Second").id == 2
    assert stores_on(settings, backend.database).runs.get(run.id).project_id == DEFAULT_PROJECT
    backend.close()
