"""A run that lost a node goes on by a plan for those that are left, on every database."""

from dataclasses import replace

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Device
from backend.cluster.registered import from_nodes
from backend.pipeline.kept_order import kept as written
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites
from backend.prediction.fallbacks import IN_PLACE
from backend.prediction.fewer_sites import FEWER_SITES
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.request.spec import DataSpec, TrainSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.services.runs import survival
from backend.services.runs.attempt import Attempt
from backend.services.runs.stores import Stores

CPU = (Device("cpu"),)
LAYERS = tuple(Layer(f"l{n}", "Linear", 0.1, 0.2, 10**4, 10**6) for n in range(3))
STAGES = tuple(Stage(n, n + 1, (n,)) for n in range(3))
LOST = RunError("NodeLost", "the node is lost")


@pytest.fixture
def spec(backend: Backend) -> TrainSpec:
    """A stage on each of three nodes of one device."""
    for name in "abc":
        backend.nodes.beat(name, CPU)
    definition = backend.definitions.add("m.py", b"def model():\n    return None\n")
    profile = Profile("three", ModelGraph.chain(LAYERS), 4)
    kept = backend.profiles.add(profile, definition.id)
    cluster, plan = from_nodes([CPU] * 3), Plan("", Partition(STAGES), "gpipe", 4, batch=6)
    stored = backend.plans.save(kept.id, cluster, predict(profile, cluster, plan))
    return TrainSpec(definition.id, plan, stored.id, nodes=("a", "b", "c"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survival, "WAIT", 0.0)


def claimed(backend: Backend, run: Run, node: str = "a") -> Attempt:
    attempt = backend.dispatch.claim(run.id, node)
    assert attempt is not None
    attempt.running()
    return attempt


def lose(backend: Backend, attempt: Attempt, *nodes: str, step: int = 1) -> None:
    """A checkpoint, and then these nodes are lost."""
    kept(attempt, step)
    attempt.finish(RunState.FAILED, RunSummary(), LOST)
    for node in nodes:
        backend.nodes.lost(node)


def kept(attempt: Attempt, step: int) -> None:
    folder = attempt.checkpoint_folder(step)
    folder.mkdir(parents=True)
    (folder / "stage-0.safetensors").write_bytes(b"12345")
    file = CheckpointFile("stage-0.safetensors", 5, "ab")
    attempt.checkpoint(Mark(0, step * 24, step), [file], 3)


@pytest.mark.parametrize("gone", ["b", "bc", "c"])
def test_what_is_left_goes_on(backend: Backend, spec: TrainSpec, impatient, gone: str):
    run = backend.runs.submit(spec)
    one, two = run.fallbacks
    assert (one.count, two.count) == (1, 2)
    assert backend.runs.get(run.id).fallbacks == (one, two)
    lose(backend, claimed(backend, run), *gone)
    attempt = claimed(backend, run)
    chosen = (one, two)[len(gone) - 1]
    now = attempt.run.spec
    assert isinstance(now, TrainSpec)
    assert (now.plan, now.nodes) == (chosen.plan, tuple(n for n in "abc" if n not in gone))
    assert {share.node for share in attempt.shares} <= set("abc") - set(gone)
    first, second = backend.runs.attempts(run.id)
    assert (first.plan, first.factor) == (None, None)
    assert (second.plan, second.factor) == (chosen.plan, chosen.factor)
    assert backend.runs.get(run.id).spec == run.spec
    (checkpoint,) = attempt.beginnings()
    assert not attempt.is_cut_alike(checkpoint)


def test_a_run_with_an_order_goes_on_by_a_schedule(
    backend: Backend, spec: TrainSpec, monkeypatch: pytest.MonkeyPatch
):
    """The order is of three ranks; what takes its place is told while the run waits."""
    stored = backend.plans.get(spec.plan_id)
    profile = backend.profiles.get(stored.profile_id)
    order = written(lower(schedule("zb-h1"), spec.plan.shape(6)).ranks)
    plan = replace(spec.plan, schedule="custom", kept_order=order)
    told = predict(profile.profile, stored.cluster, plan)
    saved = backend.plans.save(profile.id, stored.cluster, told)
    run = backend.runs.submit(replace(spec, plan=plan, plan_id=saved.id))
    one, _ = run.fallbacks
    assert one.instead == one.plan.schedule
    lose(backend, claimed(backend, run), "b")
    assert backend.dispatch.claim(run.id, "a") is None
    reason = str(backend.runs.why_apart(backend.runs.get(run.id)))
    monkeypatch.setattr(survival, "WAIT", 0.0)
    assert f"{IN_PLACE}schedule {one.instead}." in reason
    now = claimed(backend, run).run.spec
    assert isinstance(now, TrainSpec)
    assert (now.plan, now.plan.kept_order) == (one.plan, ())


@pytest.fixture
def on_sites(backend: Backend, spec: TrainSpec) -> TrainSpec:
    """The whole model on each of two nodes, which are sites."""
    stored = backend.plans.get(spec.plan_id)
    profile = backend.profiles.get(stored.profile_id)
    whole = Partition((Stage(0, 3, (0,)),))
    sites = Sites("diloco", devices=1)
    plan = Plan("", whole, "gpipe", 4, batch=6, num_pipelines=2, sites=sites)
    cluster = from_nodes([CPU] * 2)
    kept = backend.plans.save(profile.id, cluster, predict(profile.profile, cluster, plan))
    return replace(spec, plan=plan, plan_id=kept.id, nodes=("a", "b"))


def test_a_lost_site_is_told_and_after_a_while_the_others_go_on(
    backend: Backend, on_sites: TrainSpec, monkeypatch: pytest.MonkeyPatch
):
    run = backend.runs.submit(on_sites)
    (fallback,) = run.fallbacks
    assert (fallback.sites, fallback.plan.num_pipelines, fallback.plan.sites) == (1, 1, None)
    lose(backend, claimed(backend, run), "b", "c")  # the third could stand in
    assert backend.dispatch.claim(run.id, "a") is None
    reason = str(backend.runs.why_apart(backend.runs.get(run.id)))
    assert f"goes on by {fallback.plan.label} on 1 site of 2, at 0." in reason
    assert FEWER_SITES in reason
    monkeypatch.setattr(survival, "WAIT", 0.0)
    now = claimed(backend, run).run.spec
    assert isinstance(now, TrainSpec)
    assert (now.plan, now.nodes) == (fallback.plan, ("a",))
    assert now.round == 12  # an epoch is as long as it was: whole batches of both sites


def test_it_waits_first(backend: Backend, spec: TrainSpec):
    run = backend.runs.submit(spec)
    lose(backend, claimed(backend, run), "b")
    assert backend.dispatch.claim(run.id, "a") is None
    reason = str(backend.runs.why_apart(backend.runs.get(run.id)))
    assert f"After 60 s it goes on by {run.fallbacks[0].plan.label}, at 0." in reason
    backend.nodes.beat("b", CPU)
    assert claimed(backend, run).run.spec == run.spec
    (outage,) = Stores(backend.settings, backend.database).runs.outages(5)
    assert 0.0 <= outage < 60.0


@pytest.mark.parametrize("changes", [{"replan": False}, {"plan_id": None}])
def test_it_waits_where_no_other_plan_is_wanted_or_known(
    backend: Backend, spec: TrainSpec, impatient, changes
):
    run = backend.runs.submit(replace(spec, **changes))
    assert run.fallbacks == ()
    lose(backend, claimed(backend, run), "b")
    assert backend.dispatch.claim(run.id, "a") is None


def test_who_has_no_checkpoint_does_not_lead(backend: Backend, spec: TrainSpec, impatient):
    run = backend.runs.submit(spec)
    attempt = claimed(backend, run)
    lose(backend, attempt, "a")
    (attempt.checkpoint_folder(1) / "stage-0.safetensors").unlink()
    assert backend.dispatch.claim(run.id, "b") is None
    (attempt.checkpoint_folder(1) / "stage-0.safetensors").write_bytes(b"12345")
    attempt = claimed(backend, run, "b")
    assert attempt.shares[0].node == "b"


def test_it_returns_when_its_nodes_are_back_and_free(backend: Backend, spec: TrainSpec, impatient):
    run = backend.runs.submit(replace(spec, epochs=1000))
    lose(backend, claimed(backend, run), "b", "c")
    attempt = claimed(backend, run)
    kept(attempt, 2)
    assert not attempt.is_outgrown()
    backend.nodes.beat("b", CPU)
    backend.nodes.beat("c", CPU)
    assert attempt.is_outgrown()
    other = backend.runs.submit(TrainSpec(spec.definition_id, replace_stages(spec.plan)))
    taken = claimed(backend, other, "c")
    assert not attempt.is_outgrown()
    taken.finish(RunState.CANCELLED, RunSummary())
    returned = RunError("NodesReturned", "they are back")
    attempt.finish(RunState.FAILED, RunSummary(), returned)
    again = claimed(backend, run)
    assert again.run.spec == backend.runs.get(run.id).spec
    assert not again.is_outgrown()
    assert [one.plan is None for one in backend.runs.attempts(run.id)] == [True, False, True]


def test_it_takes_one_of_two_back(backend: Backend, spec: TrainSpec, impatient, monkeypatch):
    run = backend.runs.submit(replace(spec, epochs=1000))
    one, two = run.fallbacks
    lose(backend, claimed(backend, run), "b", "c")
    attempt = claimed(backend, run)
    kept(attempt, 2)
    assert not attempt.is_outgrown()
    backend.nodes.beat("c", CPU)
    assert attempt.is_outgrown()
    kept(attempt, 42_666)
    assert not attempt.is_outgrown()  # nothing is left to do
    attempt.finish(RunState.FAILED, RunSummary(), RunError("NodesReturned", "one is back"))
    monkeypatch.setattr(survival, "WAIT", 60.0)
    assert backend.dispatch.claim(run.id, "a") is None  # b has spoken a moment ago
    monkeypatch.setattr(survival, "WAIT", 0.0)
    again = claimed(backend, run)
    assert isinstance(again.run.spec, TrainSpec)
    assert (again.run.spec.plan, again.run.spec.nodes) == (one.plan, ("a", "c"))
    assert not again.is_outgrown()
    assert [each.plan for each in backend.runs.attempts(run.id)] == [None, two.plan, one.plan]


def test_with_replicas_it_does_not_wait(backend: Backend, spec: TrainSpec):
    """Nothing is trained again, because others had all that the lost node had."""
    plan = replace(spec.plan, partition=Partition((Stage(0, 3, (0, 1, 2)),)))
    run = backend.runs.submit(replace(spec, plan=plan))
    attempt = claimed(backend, run)
    attempt.progress(RunProgress("train", 7, 170))
    lose(backend, attempt, "b", step=6)
    assert backend.dispatch.claim(run.id, "a") is None
    backend.runs.cancel(run.id)
    backend.nodes.beat("b", CPU)
    run = backend.runs.submit(replace(spec, plan=plan))
    attempt = claimed(backend, run)
    attempt.progress(RunProgress("train", 7, 170))
    lose(backend, attempt, "b", step=7)
    again = claimed(backend, run)
    assert isinstance(again.run.spec, TrainSpec)
    assert again.run.spec.plan == run.fallbacks[0].plan


def test_near_the_end_it_does_not_return(backend: Backend, spec: TrainSpec, impatient):
    data = replace(spec.data, samples=24 * 4)
    run = backend.runs.submit(replace(spec, epochs=1, data=data))
    lose(backend, claimed(backend, run), "b")
    attempt = claimed(backend, run)
    kept(attempt, 3)
    backend.nodes.beat("b", CPU)
    assert not attempt.is_outgrown()


def test_its_end_is_expected_as_predicted(backend: Backend, spec: TrainSpec, impatient):
    rate = backend.plans.get(spec.plan_id or 0).prediction.samples_per_second
    data = DataSpec("synthetic", round(1000 * rate))
    run, other = (backend.runs.submit(replace(spec, data=data, epochs=1)) for _ in range(2))
    attempt = claimed(backend, run)
    assert until(backend) == pytest.approx([1000] * 3, abs=100)
    assert backend.runs.line().turns[other.id].seconds == pytest.approx(1000, abs=100)
    lose(backend, attempt, "b")
    backend.runs.cancel(other.id)
    attempt = claimed(backend, run)
    attempt.progress(RunProgress("train", 0, data.samples // 24))
    (fallback, _) = run.fallbacks
    assert set(until(backend)) == {until(backend)[0]}
    assert until(backend)[0] == pytest.approx(1000 / fallback.factor, rel=0.01)


def until(backend: Backend) -> list[float]:
    """In how many seconds each device that is held is expected to be free."""
    found = backend.runs.expected_free(backend.runs.held())
    return [seconds for there in found.values() for seconds in there.values()]


def replace_stages(plan: Plan) -> Plan:
    """The same on one device."""
    return replace(plan, partition=Partition((Stage(0, 3, (0,)),)))
