"""Controllers and machines for `KubernetesApi`: pods are processes of this machine.

A JobSet that nobody suspends starts once all its pods fit, the oldest first, one to a machine. A
pod is told by SIGTERM when its JobSet is deleted or fails, or its Job's deadline has come, and is
killed after its grace. A pod that was told is not kept.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contract.kubernetes_api import KubernetesApi, served, stamp
from workers.pools.kubernetes.engine import KubernetesEngine
from workers.pools.kubernetes.settings import KubernetesSettings

SETTINGS = KubernetesSettings(
    namespace="team", pool="gpu", image="stageflow:1", secret="s", claim="c"
)
Made = dict[str, Any]


@contextmanager
def kubernetes_engine(
    folder: Path,
    settings: KubernetesSettings = SETTINGS,
    devices: int = 2,
    environment: Mapping[str, str] | None = None,
) -> Iterator[KubernetesEngine]:
    """An engine on two machines, whose jobs are processes of this one; `folder`: for what they
    print."""
    api = KubernetesApi()
    kubelet = Kubelet(api, folder, settings.device, devices, environment or {})
    try:
        with served(api) as client:
            yield KubernetesEngine(settings, client, room_every=0)
    finally:
        kubelet.close()


class Kubelet:
    """Two machines with so many of the `device` each. `environment`: where volumes are really, as
    the agents are told. `close` ends whatever still runs."""

    def __init__(
        self,
        api: KubernetesApi,
        folder: Path,
        device: str,
        devices: int,
        environment: Mapping[str, str],
    ) -> None:
        self._api, self._folder, self._device = api, folder, device
        self._environment = environment
        self._free = {"n0": devices, "n1": devices}
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._timers: list[threading.Timer] = []
        self._followers: list[threading.Thread] = []
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        for name in self._free:
            api.add("nodes", name, status=ready | {"allocatable": {device: str(devices)}})
        api.on_create, api.on_delete = self._created, self._deleted

    def close(self) -> None:
        with self._api.lock:
            self._free = {}
        for timer in self._timers:
            timer.cancel()
        for process in self._started.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        for follower in self._followers:
            follower.join()

    def _created(self, _: Made) -> None:
        for jobset in self._api.kept["jobsets"]:
            if "conditions" not in jobset["status"] and not self._pods(jobset):
                if not self._fits(jobset):
                    return
                self._begin(jobset)

    def _fits(self, jobset: Made) -> bool:
        wanted = self._wanted(jobset)
        return sum(free >= wanted for free in self._free.values()) >= _job(jobset)["completions"]

    def _begin(self, jobset: Made) -> None:
        job, wanted = _job(jobset), self._wanted(jobset)
        hosts = [host for host, free in self._free.items() if free >= wanted]
        for index in range(job["completions"]):
            self._free[hosts[index]] -= wanted
            self._start(jobset, index, hosts[index])
        if seconds := job.get("activeDeadlineSeconds"):
            why = "Job was active longer than specified deadline"
            self._later(seconds, lambda: self._over(jobset, "Failed", why))

    def _start(self, jobset: Made, index: int, host: str) -> None:
        template, name = _job(jobset)["template"], f"{jobset['metadata']['name']}-agent-0-{index}"
        place = {"batch.kubernetes.io/job-completion-index": str(index)}
        pod = self._api.add(
            "pods",
            name,
            metadata={"labels": template["metadata"]["labels"] | place},
            spec=template["spec"] | {"nodeName": host},
            status={"phase": "Running", "startTime": stamp()},
        )
        with (self._folder / name).open("wb") as out:
            self._started[name] = subprocess.Popen(
                _container(jobset)["command"],
                env=self._variables(jobset) | {"JOB_COMPLETION_INDEX": str(index)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        follower = threading.Thread(target=self._follow, args=(jobset, pod, self._started[name]))
        self._followers.append(follower)
        follower.start()

    def _follow(self, jobset: Made, pod: Made, process: subprocess.Popen[bytes]) -> None:
        code, name = process.wait(), pod["metadata"]["name"]
        with self._api.lock:
            self._api.logs[name] = (self._folder / name).read_text()
            pod["status"]["phase"] = "Failed" if code else "Succeeded"
            if not self._free:
                return
            self._free[pod["spec"]["nodeName"]] += self._wanted(jobset)
            if "deletionTimestamp" in pod["metadata"]:
                self._api.remove("pods", pod)
            elif code:
                self._over(jobset, "Failed", "jobset failed due to one or more job failures")
            elif all(each["status"]["phase"] == "Succeeded" for each in self._pods(jobset)):
                self._over(jobset, "Completed", "jobset completed successfully")
            if "deletionTimestamp" in jobset["metadata"] and not self._alive(jobset):
                self._forget(jobset)
            self._created(jobset)

    def _over(self, jobset: Made, kind: str, why: str) -> None:
        with self._api.lock:
            said = {"type": kind, "status": "True", "message": why}
            jobset["status"].setdefault("conditions", [said])
            self._tell(jobset)

    def _deleted(self, jobset: Made) -> bool:
        self._tell(jobset)
        if self._alive(jobset):
            return False
        self._forget(jobset)
        return True

    def _tell(self, jobset: Made) -> None:
        for pod in self._alive(jobset):
            if "deletionTimestamp" not in pod["metadata"]:
                grace = pod["spec"]["terminationGracePeriodSeconds"]
                process = self._started[pod["metadata"]["name"]]
                pod["metadata"]["deletionTimestamp"] = stamp(grace)
                process.terminate()
                self._later(grace, process.kill)

    def _forget(self, jobset: Made) -> None:
        for pod in self._pods(jobset):
            self._api.remove("pods", pod)
        self._api.remove("jobsets", jobset)

    def _alive(self, jobset: Made) -> list[Made]:
        return [pod for pod in self._pods(jobset) if pod["status"]["phase"] == "Running"]

    def _pods(self, jobset: Made) -> list[Made]:
        label = jobset["metadata"]["name"]
        every = self._api.kept.get("pods", [])
        return [pod for pod in every if pod["metadata"]["labels"]["stageflow-job"] == label]

    def _variables(self, jobset: Made) -> dict[str, str]:
        given = {each["name"]: each["value"] for each in _container(jobset)["env"]}
        return {"PATH": os.environ["PATH"]} | given | dict(self._environment)

    def _wanted(self, jobset: Made) -> int:
        return int(_container(jobset)["resources"]["limits"][self._device])

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)


def _job(jobset: Made) -> Made:
    found: Made = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    return found


def _container(jobset: Made) -> Made:
    found: Made = _job(jobset)["template"]["spec"]["containers"][0]
    return found
