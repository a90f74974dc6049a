"""Controllers and machines for `KubernetesApi`: pods are processes of this machine.

A JobSet that is not suspended gets its pods at once. A pod's process is told by SIGTERM when its
JobSet is deleted, or its Job's deadline has come, and killed after the pod's grace.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.kubernetes_api import KubernetesApi, served, stamp
from workers.pools.kubernetes.engine import KubernetesEngine
from workers.pools.kubernetes.settings import KubernetesSettings

SETTINGS = KubernetesSettings(
    namespace="team", pool="gpu", image="registry.example/stageflow:1", secret="s", claim="c"
)


@contextmanager
def kubernetes_engine(folder: Path) -> Iterator[KubernetesEngine]:
    """An engine whose jobs are processes of this machine; `folder`: for what they print."""
    api = KubernetesApi()
    machines = Kubelet(api, folder)
    try:
        with served(api) as client:
            yield KubernetesEngine(SETTINGS, client)
    finally:
        machines.close()


class Kubelet:
    """`folder`: for what pods print. `close` ends whatever still runs."""

    def __init__(self, api: KubernetesApi, folder: Path) -> None:
        self._api, self._folder = api, folder
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._timers: list[threading.Timer] = []
        self._followers: list[threading.Thread] = []
        api.on_create, api.on_delete = self._created, self._deleted

    def admit(self, name: str) -> None:
        """As Kueue does."""
        with self._api.lock:
            jobset = self._api.find("jobsets", "team", name)
            jobset["spec"]["suspend"] = False
            self._created(jobset)

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()
        for process in self._started.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for follower in self._followers:
            follower.join()

    def _created(self, jobset: dict[str, Any]) -> None:
        if "replicatedJobs" not in jobset["spec"] or jobset["spec"].get("suspend"):
            return
        job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
        for index in range(job["completions"]):
            self._start(jobset, job, index)
        if seconds := job.get("activeDeadlineSeconds"):
            self._later(seconds, lambda: self._fail(jobset, "Job was active longer than specified"))

    def _start(self, jobset: dict[str, Any], job: dict[str, Any], index: int) -> None:
        template, name = job["template"], f"{jobset['metadata']['name']}-agent-0-{index}-abcde"
        container = template["spec"]["containers"][0]
        place = {"batch.kubernetes.io/job-completion-index": str(index)}
        pod = self._api.add(
            "pods",
            name,
            metadata={"labels": template["metadata"]["labels"] | place},
            spec={"nodeName": f"n{index}", **template["spec"]},
            status={"phase": "Running", "startTime": stamp()},
        )
        printed = self._folder / name
        with printed.open("wb") as out:
            self._started[name] = process = subprocess.Popen(
                container["command"],
                env={"PATH": os.environ["PATH"], "JOB_COMPLETION_INDEX": str(index)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        follower = threading.Thread(target=self._follow, args=(jobset, pod, process, printed))
        self._followers.append(follower)
        follower.start()

    def _follow(
        self, jobset: dict[str, Any], pod: dict[str, Any], process: Any, printed: Path
    ) -> None:
        code = process.wait()
        with self._api.lock:
            self._api.logs[pod["metadata"]["name"]] = printed.read_text()
            pod["status"]["phase"] = "Failed" if code else "Succeeded"
            phases = [each["status"]["phase"] for each in self._pods(jobset)]
            if code:
                self._fail(jobset, "jobset failed due to one or more job failures")
            elif all(phase == "Succeeded" for phase in phases):
                self._over(jobset, "Completed", "jobset completed successfully")
            if "deletionTimestamp" in pod["metadata"]:
                self._api.remove("pods", pod)
            if "deletionTimestamp" in jobset["metadata"] and "Running" not in phases:
                self._forget(jobset)

    def _fail(self, jobset: dict[str, Any], why: str) -> None:
        with self._api.lock:
            self._over(jobset, "Failed", why)
            self._tell(jobset)

    def _over(self, jobset: dict[str, Any], kind: str, why: str) -> None:
        said = {"type": kind, "status": "True", "message": why}
        jobset["status"].setdefault("conditions", [said])

    def _deleted(self, jobset: dict[str, Any]) -> bool:
        self._tell(jobset)
        if any(pod["status"]["phase"] == "Running" for pod in self._pods(jobset)):
            return False
        self._forget(jobset)
        return True

    def _tell(self, jobset: dict[str, Any]) -> None:
        for pod in self._pods(jobset):
            process = self._started[pod["metadata"]["name"]]
            if process.poll() is None and "deletionTimestamp" not in pod["metadata"]:
                pod["metadata"]["deletionTimestamp"] = stamp(
                    pod["spec"]["terminationGracePeriodSeconds"]
                )
                process.terminate()
                grace = pod["spec"]["terminationGracePeriodSeconds"]
                self._later(grace, process.kill)

    def _forget(self, jobset: dict[str, Any]) -> None:
        for pod in self._pods(jobset):
            self._api.remove("pods", pod)
        self._api.remove("jobsets", jobset)

    def _pods(self, jobset: dict[str, Any]) -> list[dict[str, Any]]:
        label = jobset["metadata"]["name"]
        every = self._api.kept.get("pods", [])
        return [pod for pod in every if pod["metadata"]["labels"]["stageflow-job"] == label]

    def _later(self, seconds: float, act: Any) -> None:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)
