"""What is free: allocatable less what pods request."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Device
from backend.runs.pools.room import Machines, PoolRoom
from workers.pools.kubernetes.amounts import room_of_nodes, room_of_quotas

GPU = "nvidia.com/gpu"
READY = {"type": "Ready", "status": "True"}


def node(name: str, gpus: int = 8, ready: bool = True, labels: Any = None, **spec: Any) -> Any:
    conditions = [READY | {"status": str(ready)}]
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {GPU: str(gpus), "cpu": "3920m"},
            "conditions": conditions,
        },
    }


def pod(host: str, *requests: str, before: str = "0", device: str = GPU) -> Any:
    containers = [{"resources": {"requests": {device: each}}} for each in requests]
    first = [{"resources": {"requests": {device: before}}}]
    return {"spec": {"nodeName": host, "containers": containers, "initContainers": first}}


def free(room: PoolRoom) -> list[int]:
    return [each for kind in room.machines for each in kind.free]


def test_machines_of_a_kind_are_told_together() -> None:
    h100 = {"nvidia.com/gpu.product": "H100", "nvidia.com/gpu.memory": "81559"}
    nodes = [node("a", labels=h100), node("b", 4), node("c", labels=h100)]
    found = room_of_nodes(nodes, [pod("a", "2"), pod("c", "1", "4"), pod("b", "1")], GPU)
    assert found.machines == (
        Machines(Device("H100", 81559.0 * 2**20), 8, (6, 3)),
        Machines(Device("gpu"), 4, (3,)),
    )
    assert (found.total, found.free) == (20, 12)


def test_a_pod_holds_what_it_needed_to_begin() -> None:
    assert free(room_of_nodes([node("a")], [pod("a", "1", before="4")], GPU)) == [4]


def test_machines_that_take_no_jobs_have_nothing_free() -> None:
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    nodes = [
        node("cordoned", unschedulable=True),
        node("lost", ready=False),
        node("others", taints=[taint]),
        node("gpus", taints=[taint | {"key": GPU}]),
        node("soft", taints=[taint | {"effect": "PreferNoSchedule"}]),
    ]
    assert free(room_of_nodes(nodes, [], GPU)) == [0, 0, 0, 8, 8]


def test_machines_without_devices_are_none() -> None:
    assert room_of_nodes([node("a", 0)], [], GPU) == PoolRoom(())


def test_who_may_not_list_pods_knows_of_nothing_free() -> None:
    found = room_of_nodes([node("a")], None, GPU)
    assert (found.total, found.free) == (8, 0)


def test_cores_come_in_thousandths() -> None:
    pods = [pod("a", "400m", device="cpu"), pod("a", "450m", device="cpu")]
    found = room_of_nodes([node("a")], pods, "cpu")
    assert found.machines == (Machines(Device("cpu"), 3, (3,)),)


@given(st.lists(st.tuples(st.integers(0, 8), st.lists(st.integers(0, 8))), max_size=5))
def test_no_more_is_free_than_there_is(nodes: list[tuple[int, list[int]]]) -> None:
    held = [pod(str(n), str(gpus)) for n, (_, pods) in enumerate(nodes) for gpus in pods]
    found = room_of_nodes([node(str(n), gpus) for n, (gpus, _) in enumerate(nodes)], held, GPU)
    assert found.total == sum(gpus for gpus, _ in nodes)
    assert found.free == sum(max(0, gpus - sum(pods)) for gpus, pods in nodes)


def quota(hard: dict[str, str], used: dict[str, str]) -> Any:
    return {"status": {"hard": hard, "used": used}}


def test_the_tightest_quota_counts() -> None:
    key = f"requests.{GPU}"
    quotas = [quota({key: "16"}, {key: "4"}), quota({key: "8"}, {}), quota({"pods": "9"}, {})]
    found = room_of_quotas(quotas, GPU)
    assert found.machines == (Machines(Device("gpu"), 8, (8,)),)


def test_without_a_quota_nothing_is_known() -> None:
    assert room_of_quotas([quota({"pods": "9"}, {})], GPU) == PoolRoom(())
