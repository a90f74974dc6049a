"""Profiles, plans, predicted timelines and nodes, whatever the database."""

import time
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import pytest

from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.codec import from_json, to_json
from backend.definitions.definition import Definition
from backend.errors import InvalidInput, NotFound
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.prediction.predict import predict, predicted_program
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.history.labels import Change, NameTaken
from backend.runs.plans import PlanInUse, StoredPlan
from backend.runs.profiles import ProfileInUse
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.services.runs.stores import Stores
from backend.storage.nodes.nodes import SqlNodes

LAYERS = tuple(Layer(f"l{i}", "Linear", 1e-3, 2e-3, 64, 128) for i in range(4))
PROFILE = Profile("tiny", ModelGraph.chain(LAYERS), 8, notes=("measured on a Tuesday",))
CLUSTER = Cluster((Level(2, 1e9, 1e-5),), Device("cpu", 1e9, 1.0))
PLAN = Plan("even", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,)))), "pipedream", 8)


@pytest.fixture
def plan(backend: Backend, definition: Definition) -> StoredPlan:
    profile = backend.profiles.add(PROFILE, definition.id)
    return backend.plans.save(profile.id, CLUSTER, predict(PROFILE, CLUSTER, PLAN))


def test_a_profile_comes_back_whole(backend: Backend, definition: Definition):
    stored = backend.profiles.add(PROFILE, definition.id)
    assert stored.profile == PROFILE
    assert backend.profiles.get(stored.id) == stored
    assert list(backend.profiles.list(definition.id)) == [stored]
    assert not backend.profiles.list(definition.id + 1)


def test_a_profile_is_read_once_however_often_it_is_listed(
    backend: Backend, definition: Definition
):
    stored = backend.profiles.add(PROFILE, definition.id)
    (first,) = backend.profiles.list()
    backend.profiles.label(stored.id, Change(name="Monday's", tags=("paper",)))
    (second,) = backend.profiles.list()
    assert first.profile is second.profile
    assert second == backend.profiles.get(stored.id)
    assert (first.name, second.name, second.tags) == ("", "Monday's", ("paper",))
    other = backend.profiles.add(replace(PROFILE, microbatch=16), definition.id)
    assert [kept.profile.microbatch for kept in backend.profiles.list()] == [16, 8]
    backend.profiles.delete(other.id)
    assert list(backend.profiles.list()) == [second]


def test_a_profile_of_nothing_is_refused(backend: Backend, definition: Definition):
    with pytest.raises(NotFound, match="no model 9"):
        backend.profiles.add(PROFILE, 9)
    with pytest.raises(NotFound, match="no run 9"):
        backend.profiles.add(PROFILE, definition.id, 9)
    with pytest.raises(NotFound, match="no profile 9"):
        backend.profiles.get(9)


def test_a_profile_is_brought_in_as_json(backend: Backend, definition: Definition):
    stored = backend.profiles.add(from_json(Profile, to_json(Profile, PROFILE)), definition.id)
    assert stored.profile == PROFILE
    with pytest.raises(InvalidInput, match="graph"):
        from_json(Profile, b'{"name": "x", "microbatch": 1}')


def test_a_plan_comes_back_whole(backend: Backend, plan: StoredPlan):
    assert plan.cluster == CLUSTER
    assert plan.plan == PLAN
    assert plan.name == PLAN.label
    assert backend.plans.get(plan.id) == plan
    assert list(backend.plans.list(plan.profile_id)) == [plan]
    assert not backend.plans.list(plan.profile_id + 1)


def test_a_plan_gets_another_name(backend: Backend, plan: StoredPlan):
    named = backend.plans.label(plan.id, Change(name="  the one for Monday "))
    assert named == replace(plan, name="the one for Monday") == backend.plans.get(plan.id)
    for bad in ("", " ", "x" * 121, "two\nlines"):
        with pytest.raises(InvalidInput, match="cannot name a plan"):
            backend.plans.label(plan.id, Change(name=bad))
    with pytest.raises(NotFound, match="no plan 99"):
        backend.plans.label(99, Change(name="Monday"))


def test_a_project_has_one_plan_of_each_name(backend: Backend, plan: StoredPlan):
    """What nobody named is numbered; a name that is given and taken is refused."""
    keep = partial(backend.plans.save, plan.profile_id, plan.cluster, plan.prediction)
    assert [keep().name, keep().name] == [f"{plan.name} (2)", f"{plan.name} (3)"]
    monday = keep("Monday")
    with pytest.raises(NameTaken, match="has a plan 'MONDAY'") as refusal:
        keep("MONDAY")
    assert "another name" in refusal.value.advice
    with pytest.raises(NameTaken):
        backend.plans.label(plan.id, Change(name="monday"))
    assert backend.plans.label(monday.id, Change(name="MONDAY")).name == "MONDAY"


def test_plans_profiles_and_clusters_have_notes_and_tags(backend: Backend, plan: StoredPlan):
    cluster = backend.clusters.save("room", plan.cluster)
    backend.profiles.label(plan.profile_id, Change(name="the quiet one"))
    for service, id_ in (
        (backend.plans, plan.id),
        (backend.profiles, plan.profile_id),
        (backend.clusters, cluster.id),
    ):
        before = service.get(id_)
        told = service.label(id_, Change(note="for the paper", tags=(" b", "a", "b")))
        assert told == replace(before, note="for the paper", tags=("a", "b"))
        assert service.label(id_, Change(add=("c",), remove=("a",))).tags == ("b", "c")
        assert service.get(id_) == replace(before, note="for the paper", tags=("b", "c"))
        assert service.get(id_) in service.list()
        with pytest.raises(InvalidInput, match="10,001 characters"):
            service.label(id_, Change(note="x" * 10_001))
        with pytest.raises(InvalidInput, match="21 tags"):
            service.label(id_, Change(tags=tuple(map(str, range(21)))))
    with pytest.raises(InvalidInput, match="cannot name a profile"):
        backend.profiles.label(plan.profile_id, Change(name="x" * 121))
    assert backend.profiles.label(plan.profile_id, Change(name=" ")).name == ""


def test_plans_and_profiles_go_when_nothing_needs_them(backend: Backend, plan: StoredPlan):
    profile = backend.profiles.get(plan.profile_id)
    spec = TrainSpec(profile.definition_id, plan.plan, plan.id)
    run = backend.runs.submit(spec, "by the plan")
    with pytest.raises(PlanInUse, match=f"needed by run {run.id}"):
        backend.plans.delete(plan.id)
    with pytest.raises(ProfileInUse, match=f"needed by plan {plan.id}"):
        backend.profiles.delete(profile.id)
    assert backend.profiles.models({profile.id, 99}) == {profile.id: "tiny"}
    backend.runs.cancel(run.id)
    backend.runs.delete(run.id)
    assert backend.plans.delete(plan.id) == plan
    assert backend.profiles.delete(profile.id) == profile
    assert not backend.plans.list()
    assert not backend.profiles.list()
    with pytest.raises(NotFound):
        backend.plans.delete(plan.id)


def test_a_plan_of_nothing_is_refused(backend: Backend, plan: StoredPlan):
    with pytest.raises(NotFound, match="no profile 99"):
        backend.plans.save(99, CLUSTER, plan.prediction)
    with pytest.raises(NotFound, match="no plan 99"):
        backend.plans.get(99)


def test_a_run_of_a_stored_plan_gets_its_predicted_timeline(
    backend: Backend, definition: Definition, plan: StoredPlan
):
    run = backend.runs.submit(TrainSpec(definition.id, PLAN, plan.id))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    assert attempt.predict(segment=2, num_microbatches=6)
    _, expected = predicted_program(PROFILE, CLUSTER, PLAN, 6)
    assert backend.runs.spans.timeline(run.id, "predicted", 2) == expected
    assert list(backend.runs.spans.segments(run.id, "predicted")) == [2]


def test_without_a_stored_plan_there_is_nothing_to_predict(
    backend: Backend, definition: Definition
):
    for spec in (TrainSpec(definition.id, PLAN), ProfileSpec(definition.id)):
        run = backend.runs.submit(spec)
        attempt = backend.dispatch.claim(run.id, "here")
        assert attempt is not None
        assert not attempt.predict(segment=0, num_microbatches=6)
        assert backend.runs.spans.timeline(run.id, "predicted") is None


def test_a_plan_that_is_not_for_this_model_is_refused(
    backend: Backend, definition: Definition, plan: StoredPlan
):
    other = backend.definitions.add("other.py", b"def model(): ...\n")
    shorter = replace(PLAN, partition=Partition((Stage(0, 3, (0,)),)))
    for spec, fault in (
        (TrainSpec(other.id, PLAN, plan.id), f"made for definition {definition.id}"),
        (TrainSpec(definition.id, shorter, plan.id), "covers 3 layers"),
    ):
        with pytest.raises(InvalidInput, match=fault):
            backend.runs.submit(spec)
    with pytest.raises(NotFound, match="no plan 99"):
        backend.runs.submit(TrainSpec(definition.id, PLAN, 99))


def test_nodes_are_listed_by_their_last_sign_of_life(backend: Backend, stores: Stores):
    devices = (Device("gpu", 8e9), Device("cpu"))
    backend.nodes.beat("a", devices, {"torch": "2.13"})
    backend.nodes.beat("b")
    backend.nodes.beat("a", devices[:1], {"torch": "2.14"})
    a, b = backend.nodes.list()
    assert (a.name, a.devices, a.versions, a.alive) == ("a", devices[:1], {"torch": "2.14"}, True)
    assert (b.name, b.devices, b.versions) == ("b", (), {})
    assert a.heartbeat_at >= b.heartbeat_at
    assert not any(node.alive for node in SqlNodes(backend.database, lease=-1.0).list())


def test_a_node_tells_how_far_its_clock_is_off(backend: Backend, monkeypatch: pytest.MonkeyPatch):
    backend.nodes.beat("a")
    right = time.time
    monkeypatch.setattr("backend.storage.nodes.nodes.time", Mock(time=lambda: right() - 3600))
    backend.nodes.beat("b")
    found = {node.name: node for node in backend.nodes.list()}
    assert abs(found["a"].ahead) < 60
    assert found["b"].ahead == pytest.approx(-3600, abs=60)
    assert (found["b"].is_off, found["b"].alive) == (True, True)


def test_a_lost_node_is_not_alive_before_its_next_sign_of_life(backend: Backend):
    backend.nodes.beat("a", (Device("cpu"),))
    backend.nodes.beat("b")
    backend.nodes.lost("a")
    backend.nodes.lost("nobody")
    assert {node.name: node.alive for node in backend.nodes.list()} == {"a": False, "b": True}
    backend.nodes.beat("a", (Device("cpu"),))
    assert all(node.alive for node in backend.nodes.list())


def test_a_plan_that_its_state_does_not_fit_is_refused(backend: Backend, plan: StoredPlan):
    """Planned for momentum in float32: 256 bytes of weights twice, a gradient, a velocity."""
    most = max(plan.prediction.memory_bytes)
    small = replace(CLUSTER, device=replace(CLUSTER.device, memory=most))
    tight = backend.plans.save(plan.profile_id, small, plan.prediction)
    profile = backend.profiles.get(plan.profile_id)
    spec = TrainSpec(profile.definition_id, PLAN, tight.id)
    adam = replace(spec, optimizer=OptimizerSpec("adam"))
    assert backend.runs.submit(spec, "as planned")
    with pytest.raises(PlanDoesNotFit, match="too much"):
        backend.runs.submit(adam, "adam")
    kept = replace(adam, precision="bfloat16", state_precision="bfloat16")
    assert backend.runs.submit(kept, "in bfloat16")
    with pytest.raises(InvalidInput, match="nobody to share"):
        backend.runs.submit(replace(adam, plan=replace(PLAN, shard_state=True)), "shared")
