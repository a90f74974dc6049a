"""The engine's requests, and what it makes of the answers; jobs do not run."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Device
from backend.runs.pools.job import JobOrder, JobState
from backend.runs.pools.room import Machines, PoolRoom
from tests.contract.kubelet import SETTINGS
from tests.contract.kubernetes_api import KubernetesApi, served, stamp
from workers.pools.engine import EngineAway, OrderRefused
from workers.pools.kubernetes.api import PAGE
from workers.pools.kubernetes.engine import KubernetesEngine

ORDER = JobOrder("stageflow-gpu-1-1", 1, 2, 4, ("stageflow", "worker"), seconds=3600.0)
GPU = "nvidia.com/gpu"


def states(engine: KubernetesEngine) -> dict[str, JobState]:
    return {name: seen.state for name, seen in engine.look().items()}


def pod_of(api: KubernetesApi, name: str, place: int, phase: str = "Running") -> None:
    labels = {"stageflow-pool": "gpu", "stageflow-job": name}
    labels["batch.kubernetes.io/job-completion-index"] = str(place)
    api.add("pods", f"{name}-{place}", metadata={"labels": labels}, status={"phase": phase})


def finish(api: KubernetesApi, name: str) -> None:
    said = {"type": "Failed", "status": "True", "message": "BackoffLimitExceeded"}
    api.find("jobsets", "team", name)["status"]["conditions"] = [said]


def test_a_job_is_submitted_once(api: KubernetesApi, engine: KubernetesEngine) -> None:
    assert engine.submit(ORDER) == engine.submit(ORDER) == ORDER.name
    assert states(engine) == {ORDER.name: JobState.WAITING}
    assert len(api.kept["jobsets"]) == 1


def test_any_name_is_found_again(engine: KubernetesEngine) -> None:
    """Pools are named by people."""
    first, second = replace(ORDER, name="Nächte/1"), replace(ORDER, name="nächte 1")
    assert engine.submit(first) != engine.submit(second)
    assert set(engine.look()) == {first.name, second.name}
    engine.end(first.name)
    assert set(engine.look()) == {second.name}


def test_an_ended_job_makes_room_for_one_of_its_name(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    engine.submit(ORDER)
    finish(api, ORDER.name)
    assert states(engine) == {ORDER.name: JobState.GONE}
    engine.submit(ORDER)
    assert states(engine) == {ORDER.name: JobState.WAITING}


def test_an_ended_job_that_is_still_being_removed_is_waited_for(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    api.on_delete = lambda _: False
    engine.submit(ORDER)
    finish(api, ORDER.name)
    with pytest.raises(EngineAway, match="still has the name"):
        engine.submit(ORDER)


def test_the_job_of_another_pool_is_left_alone(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    with served(api) as client:
        other = KubernetesEngine(replace(SETTINGS, pool="theirs"), client)
        other.submit(ORDER)
        assert engine.look() == {}
        with pytest.raises(OrderRefused, match="not of the pool gpu"):
            engine.submit(ORDER)
        engine.end(ORDER.name)
        assert states(other) == {ORDER.name: JobState.WAITING}


def test_what_is_not_there_can_be_ended(engine: KubernetesEngine) -> None:
    engine.end("nothing")
    assert engine.look() == {}
    assert engine.output("nothing") == ""


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_kueue_tells_why_a_job_waits(api: KubernetesApi, version: str) -> None:
    api.groups["kueue.x-k8s.io"] = {version}
    said = "insufficient unused quota for nvidia.com/gpu in flavor h100, 4 more needed"
    with served(api) as client:
        engine = KubernetesEngine(replace(SETTINGS, queue="gpu"), client)
        engine.submit(ORDER)
        assert engine.look()[ORDER.name].reason == "Suspended"
        uid = api.kept["jobsets"][0]["metadata"]["uid"]
        condition = {"type": "QuotaReserved", "status": "False", "message": said}
        owner = {"ownerReferences": [{"uid": uid}]}
        api.add("workloads", "w", metadata=owner, status={"conditions": [condition]})
        found = engine.look()[ORDER.name]
    assert (found.state, found.reason) == (JobState.WAITING, said)


@pytest.mark.parametrize("kind", ["workloads", "events"])
def test_reasons_that_may_not_be_read_are_done_without(
    api: KubernetesApi, engine: KubernetesEngine, kind: str
) -> None:
    api.refuses["list", kind] = (403, "forbidden")
    engine.submit(ORDER)
    api.kept["jobsets"][0]["spec"]["suspend"] = kind == "workloads"
    assert states(engine) == {ORDER.name: JobState.WAITING}


def test_the_last_event_about_a_job_is_told(api: KubernetesApi, engine: KubernetesEngine) -> None:
    engine.submit(ORDER)
    for text, at in (("exceeded quota", "2026-11-23T12:00:00Z"), ("old", "2026-11-23T11:00:00Z")):
        api.add(
            "events",
            text.replace(" ", "-"),
            involvedObject={"name": f"{ORDER.name}-agent-0"},
            message=text,
            type="Warning",
            lastTimestamp=at,
        )
    assert engine.look()[ORDER.name].reason == "exceeded quota"


def test_what_the_first_failed_agent_printed_is_told(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    engine.submit(ORDER)
    pod_of(api, ORDER.name, 1, "Failed")
    pod_of(api, ORDER.name, 0)
    api.logs = {f"{ORDER.name}-0": "fine", f"{ORDER.name}-1": "é" * 5000 + " no torch"}
    printed = engine.output(ORDER.name)
    assert len(printed) == 4000
    assert printed.endswith("é no torch")


def test_a_pod_that_has_not_begun_has_printed_nothing(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    engine.submit(ORDER)
    pod_of(api, ORDER.name, 0, "Pending")
    assert engine.output(ORDER.name) == ""


def test_room_is_what_nodes_have_and_pods_leave(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    """Over several pages."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {GPU: "8"}}
    for number in range(PAGE + 1):
        api.add("nodes", f"n{number}", status=ready)
    holds = [{"resources": {"requests": {GPU: "3"}}}]
    api.add("pods", "p", spec={"nodeName": f"n{PAGE}", "containers": holds})
    assert engine.room().machines == (Machines(Device("gpu"), 8, (8,) * PAGE + (5,)),)


def test_who_may_not_list_nodes_sees_the_quota(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    api.refuses["list", "nodes"] = (403, "nodes is forbidden")
    assert engine.room() == PoolRoom(())
    hard, used = {f"requests.{GPU}": "16"}, {f"requests.{GPU}": "4"}
    api.add("resourcequotas", "q", status={"hard": hard, "used": used})
    assert engine.room() == PoolRoom((Machines(Device("gpu"), 16, (12,)),))


def test_an_estimate_submits_nothing_but_may_be_refused(
    api: KubernetesApi, engine: KubernetesEngine
) -> None:
    assert engine.estimate(ORDER) is None
    assert engine.look() == {}
    api.refuses["create", "jobsets"] = (422, "nodes must be fewer")
    with pytest.raises(OrderRefused, match="nodes must be fewer"):
        engine.estimate(ORDER)


REFUSALS = [(400, "nonsense"), (403, "exceeded quota"), (404, 'namespaces "team" not found')]
REFUSALS += [(422, "spec is invalid")]


@pytest.mark.parametrize("answer", REFUSALS, ids=lambda answer: str(answer[0]))
def test_an_order_is_refused_with_advice(
    api: KubernetesApi, engine: KubernetesEngine, answer: tuple[int, str]
) -> None:
    api.refuses["create", "jobsets"] = answer
    with pytest.raises(OrderRefused, match=answer[1]) as caught:
        engine.submit(ORDER)
    assert caught.value.advice


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503, 504])
def test_an_api_that_does_not_answer_is_away(
    api: KubernetesApi, engine: KubernetesEngine, status: int
) -> None:
    engine.submit(ORDER)
    for verb, kind in (("list", "jobsets"), ("get", "jobsets"), ("list", "pods")):
        api.refuses[verb, kind] = (status, "not now")
    api.refuses["list", "nodes"] = (500, "not now")
    if status == 404:
        del api.refuses["get", "jobsets"]  # of one object it says that there is none
        api.refuses["delete", "jobsets"] = (503, "not now")
    for ask in (engine.look, engine.room, lambda: engine.end(ORDER.name)):
        with pytest.raises(EngineAway) as caught:
            ask()
        assert caught.value.advice


def test_an_api_that_hangs_is_away(
    api: KubernetesApi, engine: KubernetesEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.pools.kubernetes.api.PATIENCE", (0.2, 0.2))
    api.silent = 1.0
    with pytest.raises(EngineAway, match="does not answer"):
        engine.room()


def test_no_api_at_all_is_away(api: KubernetesApi) -> None:
    with served(api) as client:
        engine = KubernetesEngine(SETTINGS, client)
    for ask in (engine.look, engine.room, lambda: engine.submit(ORDER)):
        with pytest.raises(EngineAway, match="does not answer"):
            ask()


@pytest.mark.parametrize("answer", ["<html>Sign in</html>", {}, []], ids=str)
def test_an_answer_that_is_no_list_is_away(
    api: KubernetesApi, engine: KubernetesEngine, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    """As of a proxy that asks people to sign in; no job is gone by that."""
    monkeypatch.setattr(api, "answer", lambda *_: answer)
    with pytest.raises(EngineAway, match="cannot be read"):
        engine.look()


def test_times_of_the_api_are_read(api: KubernetesApi, engine: KubernetesEngine) -> None:
    engine.submit(ORDER)
    for place in range(ORDER.nodes):
        pod_of(api, ORDER.name, place)
    api.kept["pods"][0]["status"]["startTime"] = stamp()
    found = engine.look()[ORDER.name]
    assert found.state is JobState.RUNNING
    assert found.starts_at is not None
    assert found.starts_at.tzinfo is not None
