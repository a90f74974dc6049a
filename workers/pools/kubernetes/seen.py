"""A JobSet with its pods and Kueue's workload, as a pool sees a job; no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from backend.runs.pools.job import JobState, Seen
from workers.pools.kubernetes.names import AGENT, ORDER

Object = Mapping[str, Any]

LONGEST = 300
"""Characters of a reason."""
ENDED = frozenset({"Completed", "Failed"})
"""Conditions of a JobSet that has ended."""
NO_IMAGE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
    | {"ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}
)
NO_START = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
    | {"StartError", "ContainerCannotRun"}
)
"""Why a container waits that will not start by itself; the kubelet's words."""
NEVER = frozenset({"Inadmissible", "Misconfigured", "ExceedsMaxQuota", "Deactivated"})
"""Kueue's reasons (QuotaReserved=False) that stay until somebody changes something."""
BEYOND_QUOTA = "maximum capacity"
"""What a Kueue without the reason ExceedsMaxQuota says instead."""


def seen(
    jobset: Object,
    pods: Sequence[Object],
    workload: Object | None,
    warnings: Mapping[str, str],
    now: datetime,
) -> Seen:
    """`pods` are those of the JobSet; `warnings` the last of each object, by its name."""
    name = name_of(jobset)
    if ended := _ended_as(jobset):
        return Seen(name, JobState.GONE, _short(ended))
    if is_over(jobset):
        alive = any(_is_alive(pod, now) for pod in pods)
        state = JobState.RUNNING if alive else JobState.GONE
        return Seen(name, state, "Terminating", hosts=_hosts(pods))
    if is_queued(jobset):
        return _queued(name, workload)
    if not pods:
        refused = warnings.get(f"{name}-{AGENT}-0", "") or warnings.get(name, "")
        return Seen(name, JobState.WAITING, _short(refused))
    return _started(name, pods, warnings, _size(jobset))


def name_of(owner: Object) -> str:
    """Of any object."""
    return str(owner["metadata"]["name"])


def order_name(jobset: Object) -> str:
    """The order's; "" where it was made by other means."""
    return str((jobset["metadata"].get("annotations") or {}).get(ORDER, ""))


def is_over(jobset: Object) -> bool:
    """Whether it has ended, or is about to be removed."""
    return bool(_ended_as(jobset) or jobset["metadata"].get("deletionTimestamp"))


def is_queued(jobset: Object) -> bool:
    """Whether Kueue keeps it back."""
    return not is_over(jobset) and bool(jobset["spec"].get("suspend"))


def is_starting(jobset: Object, pods: Sequence[Object]) -> bool:
    """Whether it may, and not all of it has."""
    if is_over(jobset) or is_queued(jobset):
        return False
    return len(pods) < _size(jobset) or any(pod["status"].get("phase") == "Pending" for pod in pods)


def _ended_as(jobset: Object) -> str:
    """What the JobSet says of its end; "" where it has not ended."""
    for condition in _conditions(jobset):
        if condition["type"] in ENDED and condition["status"] == "True":
            return condition.get("message") or str(condition["type"])
    return str(jobset.get("status", {}).get("terminalState") or "")


def _size(jobset: Object) -> int:
    """How many pods belong to it."""
    return int(jobset["spec"]["replicatedJobs"][0]["template"]["spec"].get("parallelism", 1))


def _queued(name: str, workload: Object | None) -> Seen:
    if workload is None:
        return Seen(name, JobState.WAITING, "Suspended")
    for kind in ("QuotaReserved", "Admitted"):
        for said in _conditions(workload):
            if said["type"] == kind and said["status"] == "False":
                word, text = said.get("reason", ""), said.get("message", "")
                held = word in NEVER or BEYOND_QUOTA in text
                inactive = workload.get("spec", {}).get("active") is False
                return Seen(
                    name,
                    JobState.HELD if held or inactive else JobState.WAITING,
                    _short(text or word),
                    _admission_advice(name, inactive) if held or inactive else "",
                )
    return Seen(name, JobState.WAITING, "Suspended")


def _admission_advice(name: str, inactive: bool) -> str:
    if inactive:
        return (
            f"Kueue deactivated {name}. Cancel the run, or set its workload's spec.active to true."
        )
    return (
        "It will not start as things are. Look at the queue (kubectl get localqueues, kubectl get"
        " clusterqueues): correct the pool's queue, or start the run with fewer devices."
    )


def _started(name: str, pods: Sequence[Object], warnings: Mapping[str, str], size: int) -> Seen:
    hosts, since = _hosts(pods), min(filter(None, map(_start, pods)), default=None)
    for word, text in _stopped(pods):
        return Seen(name, JobState.HELD, _short(f"{word}: {text}"), _advice(word), since, hosts)
    for pod in pods:
        if text := _unplaced(pod):
            return Seen(name, JobState.WAITING, _short(text))
    if len(pods) < size:
        return Seen(name, JobState.WAITING, "", "", None, hosts)
    for pod in pods:  # a volume that cannot be mounted is told in an event alone
        if pod["status"].get("phase") == "Pending" and (
            text := warnings.get(pod["metadata"]["name"], "")
        ):
            return Seen(name, JobState.HELD, _short(text), _advice(""), None, hosts)
    return Seen(name, JobState.RUNNING, "", "", since, hosts)


def _stopped(pods: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """Why containers wait that wait in vain."""
    for pod in pods:
        for container in pod["status"].get("containerStatuses", ()):
            waiting = container.get("state", {}).get("waiting") or {}
            if waiting.get("reason") in NO_IMAGE | NO_START:
                yield waiting["reason"], waiting.get("message", "")


def _advice(word: str) -> str:
    if word in NO_IMAGE:
        return (
            "Correct the pool's image. If its registry asks for a password, give the namespace's"
            " default service account an image pull secret."
        )
    return (
        "Look whether the pool's Secret and claim are in its namespace, and whether the image runs"
        " as the pool's user: kubectl describe pods -l stageflow-job."
    )


def _unplaced(pod: Object) -> str:
    for condition in _conditions(pod):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason") or "Unschedulable")
    return ""


def _conditions(owner: Object) -> Sequence[Object]:
    found: Sequence[Object] = owner.get("status", {}).get("conditions") or ()
    return found


def _is_alive(pod: Object, now: datetime) -> bool:
    """A pod on a machine that is lost keeps its phase for ever, beyond the end of its grace."""
    until = pod["metadata"].get("deletionTimestamp")
    going = pod["status"].get("phase") in ("Pending", "Running")
    return going and (until is None or datetime.fromisoformat(until) > now)


def _start(pod: Object) -> datetime | None:
    since = pod["status"].get("startTime")
    return datetime.fromisoformat(since) if since else None


def _hosts(pods: Sequence[Object]) -> tuple[str, ...]:
    return tuple(host for pod in pods if (host := pod["spec"].get("nodeName")))


def _short(text: str) -> str:
    return " ".join(text.split())[:LONGEST]
