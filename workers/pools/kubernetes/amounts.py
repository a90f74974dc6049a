"""What nodes have and what pods hold of it, or what a quota grants; no I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kubernetes.utils import parse_quantity

from backend.cluster.cluster import Device
from backend.runs.pools.room import Machines, PoolRoom
from workers.pools.kubernetes.settings import CORES

Object = Mapping[str, Any]

PRODUCTS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
)
"""Labels that name a node's devices, as the vendors' own discovery sets them."""
MEMORY = "nvidia.com/gpu.memory"
"""The label with the MiB of each of them."""
CLOSING = frozenset({"NoSchedule", "NoExecute"})


def room_of_nodes(nodes: Iterable[Object], pods: Iterable[Object] | None, device: str) -> PoolRoom:
    """By kind of device. Without `pods`, which not everybody may list, nothing counts as free."""
    held: dict[str, Decimal] = defaultdict(Decimal)
    for pod in pods or ():
        held[pod["spec"].get("nodeName", "")] += _held(pod, device)
    kinds: dict[tuple[Device, int], list[int]] = defaultdict(list)
    for node in nodes:
        has = parse_quantity(node["status"].get("allocatable", {}).get(device, "0"))
        if has >= 1:
            is_open = pods is not None and _is_open(node, device)
            free = int(has - held[node["metadata"]["name"]]) if is_open else 0
            kinds[_kind(node, device), int(has)].append(max(0, free))
    found = (Machines(kind, number, tuple(free)) for (kind, number), free in kinds.items())
    return PoolRoom(tuple(sorted(found, key=lambda machines: -machines.count)))


def room_of_quotas(quotas: Iterable[Object], device: str) -> PoolRoom:
    """What the tightest quota of the devices grants, as if it were one machine: which machines
    there are, it does not say. No machines where there is no quota."""
    granted = []
    for quota in quotas:
        status = quota.get("status", {})
        for key in (f"requests.{device}", device):
            if key in status.get("hard", {}):
                total = int(parse_quantity(status["hard"][key]))
                used = parse_quantity(status.get("used", {}).get(key, "0"))
                granted.append((max(0, int(total - used)), total))
    if not granted:
        return PoolRoom(())
    free, total = min(granted)
    return PoolRoom((Machines(Device(_name(device)), total, (free,)),))


def _held(pod: Object, device: str) -> Decimal:
    """What its containers hold together, or the one before them that asks for most."""
    spec = pod["spec"]
    together = sum((_asks(each, device) for each in spec.get("containers") or ()), Decimal())
    return max([together, *(_asks(each, device) for each in spec.get("initContainers") or ())])


def _asks(container: Object, device: str) -> Decimal:
    asked = container.get("resources", {}).get("requests") or {}
    amount: Decimal = parse_quantity(asked.get(device, "0"))
    return amount


def _is_open(node: Object, device: str) -> bool:
    """Whether it takes jobs of a pool."""
    spec, conditions = node.get("spec", {}), node["status"].get("conditions", ())
    taints = (t for t in spec.get("taints") or () if t.get("effect") in CLOSING)
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and not spec.get("unschedulable") and all(t["key"] == device for t in taints)


def _kind(node: Object, device: str) -> Device:
    labels = node["metadata"].get("labels") or {}
    product = next((labels[label] for label in PRODUCTS if label in labels), _name(device))
    memory = labels.get(MEMORY, "")
    known = device != CORES and memory.isdecimal() and int(memory) > 0
    return Device(
        product if device != CORES else CORES, float(int(memory) * 2**20) if known else None
    )


def _name(device: str) -> str:
    return device.rpartition("/")[2]
