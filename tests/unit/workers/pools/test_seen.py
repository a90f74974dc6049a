"""What a pool makes of a JobSet, its pods, Kueue's workload and events."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backend.runs.pools.job import JobState, Seen
from workers.pools.kubernetes.seen import seen

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
NAME = "stageflow-gpu-1-1"


def jobset(status: Any = None, suspend: bool = False, deleted: str = "") -> dict[str, Any]:
    job = {"spec": {"parallelism": 2}}
    meta = {"name": NAME} | ({"deletionTimestamp": deleted} if deleted else {})
    spec = {"replicatedJobs": [{"template": job}], "suspend": suspend}
    return {"metadata": meta, "spec": spec, "status": status or {}}


def pod(phase: str = "Running", host: str = "n1", waiting: Any = None, **more: Any) -> Any:
    containers = [{"state": {"waiting": waiting}}] if waiting else []
    return {
        "metadata": {"name": f"{NAME}-agent-0-0-x"} | more.pop("metadata", {}),
        "spec": {"nodeName": host} if host else {},
        "status": {"phase": phase, "containerStatuses": containers} | more,
    }


def workload(kind: str, reason: str, message: str, **spec: Any) -> Any:
    said = {"type": kind, "status": "False", "reason": reason, "message": message}
    return {"spec": spec, "status": {"conditions": [said]}}


def look(jobset: Any, *pods: Any, queued: Any = None, warnings: Any = None) -> Seen:
    return seen(jobset, pods, queued, warnings or {}, NOW)


@pytest.mark.parametrize("kind", ["Completed", "Failed"])
def test_an_ended_job_is_gone_whatever_its_pods_say(kind: str) -> None:
    """A pod on a lost machine runs for ever as far as the API knows."""
    ended = {"conditions": [{"type": kind, "status": "True", "message": "it is over"}]}
    found = look(jobset(ended), pod())
    assert (found.state, found.reason) == (JobState.GONE, "it is over")


def test_a_condition_that_is_not_true_says_nothing() -> None:
    status = {"conditions": [{"type": "Failed", "status": "False"}]}
    assert look(jobset(status), pod(), pod(host="n2")).state is JobState.RUNNING


def test_a_running_job_has_hosts_and_a_start() -> None:
    first, second = "2026-11-23T11:00:05Z", "2026-11-23T11:00:00Z"
    found = look(jobset(), pod(startTime=first), pod(host="n2", startTime=second))
    assert found.state is JobState.RUNNING
    assert found.hosts == ("n1", "n2")
    assert found.starts_at == datetime.fromisoformat(second)


def test_kueue_says_why_a_job_waits() -> None:
    said = "couldn't assign flavors to pod set agent: insufficient unused quota"
    found = look(jobset(suspend=True), queued=workload("QuotaReserved", "Pending", said))
    assert found == Seen(NAME, JobState.WAITING, said)


@pytest.mark.parametrize(
    "queued",
    [
        workload("QuotaReserved", "Inadmissible", "LocalQueue gpu doesn't exist"),
        workload("QuotaReserved", "ExceedsMaxQuota", "too much"),
        workload("QuotaReserved", "Pending", "request > maximum capacity (8)"),
        workload("QuotaReserved", "Pending", "The workload is deactivated", active=False),
    ],
    ids=["no queue", "too much", "too much for an older Kueue", "deactivated"],
)
def test_a_job_that_kueue_will_never_admit_is_held(queued: Any) -> None:
    found = look(jobset(suspend=True), queued=queued)
    assert found.state is JobState.HELD
    assert found.reason == queued["status"]["conditions"][0]["message"]
    assert found.advice


def test_a_job_with_quota_may_still_wait_for_a_check() -> None:
    queued = workload("Admitted", "NoChecks", "waits for the check provisioning")
    queued["status"]["conditions"].insert(0, {"type": "QuotaReserved", "status": "True"})
    found = look(jobset(suspend=True), queued=queued)
    assert (found.state, found.reason) == (JobState.WAITING, "waits for the check provisioning")


def test_who_may_not_read_workloads_sees_that_a_job_is_kept_back() -> None:
    assert look(jobset(suspend=True)) == Seen(NAME, JobState.WAITING, "Suspended")


def test_a_job_without_pods_waits_and_an_event_may_say_why() -> None:
    assert look(jobset()) == Seen(NAME, JobState.WAITING)
    refused = {f"{NAME}-agent-0": "pods is forbidden: exceeded quota"}
    assert look(jobset(), warnings=refused).reason == "pods is forbidden: exceeded quota"


def test_a_job_of_which_a_pod_is_missing_waits() -> None:
    assert look(jobset(), pod()).state is JobState.WAITING


def test_a_pod_without_a_place_makes_the_job_wait() -> None:
    said = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    nowhere = {"type": "PodScheduled", "status": "False", "message": said}
    found = look(jobset(), pod(), pod("Pending", "", conditions=[nowhere]))
    assert (found.state, found.reason) == (JobState.WAITING, said)


@pytest.mark.parametrize("word", ["ImagePullBackOff", "ErrImagePull", "InvalidImageName"])
def test_an_image_that_is_not_there_holds_the_job(word: str) -> None:
    found = look(jobset(), pod(), pod("Pending", waiting={"reason": word, "message": "not found"}))
    assert (found.state, found.reason) == (JobState.HELD, f"{word}: not found")
    assert "image" in found.advice


def test_a_container_that_cannot_be_made_holds_the_job() -> None:
    waiting = {"reason": "CreateContainerConfigError", "message": "runs as root"}
    found = look(jobset(), pod("Pending", waiting=waiting), pod())
    assert found.state is JobState.HELD
    assert "user" in found.advice


def test_a_container_that_is_being_made_is_about_to_run() -> None:
    waiting = {"reason": "ContainerCreating"}
    assert look(jobset(), pod("Pending", waiting=waiting), pod()).state is JobState.RUNNING


def test_a_secret_that_is_not_there_holds_the_job() -> None:
    """Only an event tells of it."""
    warning = {f"{NAME}-agent-0-0-x": 'MountVolume.SetUp failed: secret "stageflow" not found'}
    found = look(jobset(), pod("Pending"), pod(), warnings=warning)
    assert found.state is JobState.HELD
    assert "Secret" in found.advice


def test_a_job_that_is_being_removed_runs_until_its_agents_have_ended() -> None:
    later = (NOW + timedelta(seconds=60)).isoformat()
    going, lost = {"deletionTimestamp": later}, {"deletionTimestamp": "2026-11-23T11:59:00Z"}
    gone = jobset(deleted="2026-11-23T11:59:00Z")
    assert look(gone, pod(metadata=going)).state is JobState.RUNNING
    assert look(gone, pod(metadata=lost)).state is JobState.GONE
    assert look(gone, pod("Failed", metadata=going)).state is JobState.GONE
    assert look(gone).state is JobState.GONE
