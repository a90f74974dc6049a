"""The port to a cluster's queue, by the API of Kubernetes."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import inf

from kubernetes.client import ApiClient

from backend.runs.pools.job import JobOrder, Seen
from backend.runs.pools.room import PoolRoom
from workers.pools.engine import EngineAway, OrderRefused
from workers.pools.kubernetes.amounts import room_of_nodes, room_of_quotas
from workers.pools.kubernetes.api import ClusterApi, Object
from workers.pools.kubernetes.faults import told
from workers.pools.kubernetes.manifest import jobset
from workers.pools.kubernetes.names import JOB, POOL, dns_label
from workers.pools.kubernetes.seen import (
    is_over,
    is_queued,
    is_starting,
    name_of,
    order_name,
    seen,
)
from workers.pools.kubernetes.settings import KubernetesSettings

ROOM_EVERY = 60.0
PRINTED = 4000
"""Characters of a job's output."""
PLACE = "batch.kubernetes.io/job-completion-index"
"""The label with a pod's number in its Job."""


class KubernetesEngine:
    """Jobs are JobSets of one namespace with this pool's label. Their ids are their names, which
    `kubectl get jobset` shows."""

    def __init__(
        self, settings: KubernetesSettings, client: ApiClient, room_every: float = ROOM_EVERY
    ) -> None:
        self._settings = settings
        self._api = ClusterApi(client, settings.namespace)
        self._room_every, self._room_at, self._room = room_every, -inf, PoolRoom(())
        self._pool = f"{POOL}={dns_label(settings.pool)}"

    def submit(self, order: JobOrder) -> str:
        wanted = jobset(order, self._settings)
        name: str = wanted["metadata"]["name"]
        if self._api.create(wanted):
            return name
        there = self._api.jobset(name)
        if there is not None and not self._is_ours(there):
            raise OrderRefused(
                f"the JobSet {name} is not of the pool {self._settings.pool}",
                "Give the pool a name that nobody else has in this namespace.",
            )
        if there is not None and not is_over(there):
            return name
        if there is not None:
            self._api.delete(there)
        if not self._api.create(wanted):
            raise EngineAway(
                f"an ended job still has the name {name}",
                "Kubernetes is about to remove it; it is tried again.",
            )
        return name

    def look(self) -> Mapping[str, Seen]:
        with told():
            return self._look()

    def end(self, name: str) -> None:
        there = self._api.jobset(dns_label(name))
        if there is not None and self._is_ours(there):
            self._api.delete(there)

    def room(self) -> PoolRoom:
        """Every so many seconds, as asked last: it reads all pods of the cluster."""
        if time.monotonic() >= self._room_at + self._room_every:
            with told():
                self._room, self._room_at = self._ask_room(), time.monotonic()
        return self._room

    def estimate(self, order: JobOrder) -> datetime | None:
        """None: Kueue tells no time. Yet the API says whether it would take the order."""
        self._api.create(jobset(order, self._settings), dry=True)
        return None

    def output(self, name: str) -> str:
        """Of the first agent that failed by itself, otherwise of the first."""
        label = dns_label(name)
        with told():
            pods = self._pods(f"{self._pool},{JOB}={label}").get(label, ())
            found = min(pods, key=_is_wanted_less, default=None)
            return self._api.log(name_of(found))[-PRINTED:] if found is not None else ""

    def _look(self) -> Mapping[str, Seen]:
        found = [each for each in self._api.jobsets(self._pool) if order_name(each)]
        pods = self._pods(self._pool) if found else {}
        of = {name_of(each): pods.get(name_of(each), ()) for each in found}
        queued = any(is_queued(each) for each in found)
        starting = any(is_starting(each, of[name_of(each)]) for each in found)
        workloads = _by_owner(self._api.workloads() if queued else ())
        warnings = _by_object(self._api.warnings() if starting else ())
        now = datetime.now(UTC)
        return {
            order_name(each): seen(
                each, of[name_of(each)], workloads.get(each["metadata"]["uid"]), warnings, now
            )
            for each in found
        }

    def _ask_room(self) -> PoolRoom:
        device = self._settings.device
        nodes = self._api.nodes()
        if nodes is None:
            return room_of_quotas(self._api.quotas(), device)
        return room_of_nodes(nodes, self._api.all_pods(), device)

    def _is_ours(self, there: Object) -> bool:
        labels = there["metadata"].get("labels") or {}
        return bool(labels.get(POOL) == dns_label(self._settings.pool))

    def _pods(self, labels: str) -> Mapping[str, Sequence[Object]]:
        """By their JobSet's name, in the order of their places."""
        found: dict[str, list[Object]] = defaultdict(list)
        for pod in sorted(self._api.pods(labels), key=_place):
            found[pod["metadata"]["labels"].get(JOB, "")].append(pod)
        return found


def _place(pod: Object) -> int:
    return int(pod["metadata"]["labels"].get(PLACE, 0))


def _is_wanted_less(pod: Object) -> bool:
    return pod["status"].get("phase") != "Failed" or "deletionTimestamp" in pod["metadata"]


def _by_owner(workloads: Sequence[Object]) -> Mapping[str, Object]:
    """By the uid of what Kueue made each of them for."""
    return {
        owner["uid"]: workload
        for workload in workloads
        for owner in workload["metadata"].get("ownerReferences") or ()
    }


def _by_object(events: Sequence[Object]) -> Mapping[str, str]:
    """The last text about each object, by its name."""
    when = sorted(events, key=lambda event: event.get("lastTimestamp") or "")
    return {event["involvedObject"].get("name", ""): event.get("message", "") for event in when}
