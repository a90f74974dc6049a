"""What a project can hold, and who belongs to it."""

from collections.abc import Callable

from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.people.project import Project
from backend.people.rights import Role
from backend.runs.history.labels import Change
from backend.runs.history.views import ListView
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from backend.runs.sweeps.report import SweepReport
from backend.runs.sweeps.sweep import SweepAxis, SweepSpec
from tests.app.seed import a_profile, plan_for
from tests.contract.people import join

SOURCE = b"def model():\n    return None\n"
Act = Callable[[Backend, Run, int], object]


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
    inside.clusters.save(f"of run {run.id}", local(4))
    inside.comments.add(run.id, "a secret word")
    inside.views.save(f"of run {run.id}", ListView(), shared=True)
    return inside.runs.get(run.id)


def swept(inside: Backend) -> SweepReport:
    """A sweep of one run by the project's plan, cancelled."""
    (plan,) = inside.plans.list()
    base = TrainSpec(inside.profiles.get(plan.profile_id).definition_id, plan.plan, plan.id)
    return inside.sweeps.cancel(inside.sweeps.start(SweepSpec(base, (SweepAxis("seed", (1,)),))).id)


def member(backend: Backend, project: Project, role: Role | None) -> Backend:
    """The services for a guest with a role in the project."""
    join(backend, "Gil", Role.GUEST)
    if role is not None:
        backend.projects.set_role(project.id, "gil", role)
    (gil,) = [p for p in backend.team.list() if p.name == "Gil"]
    return backend.acting(gil.actor())
