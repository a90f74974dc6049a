"""Answers of any shape: the engine reads them, or says that it cannot."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.runs.pools.job import JobOrder, JobState
from tests.contract.kubelet import SETTINGS
from tests.contract.kubernetes_api import KubernetesApi, served, stamp
from workers.pools.engine import EngineAway
from workers.pools.kubernetes.engine import KubernetesEngine

ORDER = JobOrder("stageflow-gpu-1-1", 1, 2, 4, ("stageflow", "worker"))
JUNK: list[Any] = [None, [], {}, "x", -1, [None], {"name": None}]


class Garbled(KubernetesApi):
    """One value of every list's answer is another."""

    def __init__(self) -> None:
        super().__init__()
        self.spoil: tuple[int, Any] | None = None

    def answer(self, method: str, url: str, body: dict[str, Any]) -> Any:
        said = super().answer(method, url, body)
        if self.spoil is None or "items" not in said:
            return said
        spoilt, (number, junk) = deepcopy(said), self.spoil
        places = list(_places(spoilt))
        owner, key = places[number % len(places)]
        owner[key] = junk
        return spoilt


def _places(owner: Any) -> Iterator[tuple[Any, Any]]:
    pairs = owner.items() if isinstance(owner, dict) else enumerate(owner)
    for key, value in list(pairs):
        yield owner, key
        if isinstance(value, dict | list):
            yield from _places(value)


@pytest.fixture(scope="module")
def api() -> Garbled:
    return Garbled()


@pytest.fixture(scope="module")
def engine(api: Garbled) -> Iterator[KubernetesEngine]:
    """With a job that runs, one that is queued, and one that is being started."""
    with ExitStack() as stack:
        engine = KubernetesEngine(SETTINGS, stack.enter_context(served(api)), room_every=0)
        for number, kind in enumerate(("runs", "queued", "starts")):
            name = f"stageflow-gpu-{kind}"
            engine.submit(JobOrder(name, number, 1, 1, ("x",)))
            jobset = api.kept["jobsets"][-1]
            jobset["spec"]["suspend"] = kind == "queued"
            labels = {"stageflow-pool": "gpu", "stageflow-job": name}
            api.add(
                "pods",
                f"{name}-agent-0-0",
                metadata={"labels": labels | {"batch.kubernetes.io/job-completion-index": "0"}},
                spec={"nodeName": "n1", "containers": [{"resources": {"requests": {}}}]},
                status={
                    "phase": "Pending" if kind == "starts" else "Running",
                    "startTime": stamp(),
                    "conditions": [{"type": "PodScheduled", "status": "True"}],
                    "containerStatuses": [{"state": {"waiting": {"reason": "x", "message": ""}}}],
                },
            )
        said = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "m"}
        owner = {"ownerReferences": [{"uid": api.kept["jobsets"][1]["metadata"]["uid"]}]}
        api.add("workloads", "w", metadata=owner, status={"conditions": [said]})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        taints = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
        api.add("nodes", "n1", spec=taints, status=ready | {"allocatable": {"nvidia.com/gpu": "8"}})
        yield engine


def test_unspoilt_they_are_read(engine: KubernetesEngine, api: Garbled) -> None:
    api.spoil = None
    states = [seen.state for seen in engine.look().values()]
    assert states == [JobState.RUNNING, JobState.WAITING, JobState.RUNNING]
    assert engine.room().free == 8


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 400), junk=st.sampled_from(JUNK))
def test_one_value_of_another_shape(
    engine: KubernetesEngine, api: Garbled, number: int, junk: Any
) -> None:
    """Anything but an answer or `EngineAway` would be a traceback."""
    api.spoil = number, junk
    for ask in (engine.look, engine.room, lambda: engine.output("stageflow-gpu-runs")):
        with suppress(EngineAway):
            ask()
